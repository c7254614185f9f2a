"""The exceptions of evalsuite, which a user's code may catch."""

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
    "BackendUnavailable", "CallFailed", "DatasetError", "EvalsuiteError", "JudgeError", "ModelError", "ReplayMiss",
    "RequestRefused", "RunError", "SandboxError", "SandboxUnavailable", "ScoringError", "SettingsError", "SolverError",
    "SpendLimitReached", "ToolError",
]  # fmt: skip
