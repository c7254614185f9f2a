"""The exceptions of evalsuite, for `except` in code of your own."""

from evalsuite.core.errors import (
    BackendUnavailable,
    CallFailed,
    DatasetError,
    EvalsuiteError,
    JudgeError,
    ModelError,
    ReplayMiss,
    RequestRefused,
    RunError,
    SandboxError,
    SandboxUnavailable,
    ScoringError,
    SettingsError,
    SolverError,
    SpendLimitReached,
    ToolError,
)

__all__ = [
    "BackendUnavailable",
    "CallFailed",
    "DatasetError",
    "EvalsuiteError",
    "JudgeError",
    "ModelError",
    "ReplayMiss",
    "RequestRefused",
    "RunError",
    "SandboxError",
    "SandboxUnavailable",
    "ScoringError",
    "SettingsError",
    "SolverError",
    "SpendLimitReached",
    "ToolError",
]
