"""Language-model benchmarks as pytest cases.

    from evalsuite import Sample, benchmark, exact_match, generate

    CAPITALS = [Sample(id="fr", input="Capital of France? One word.", target="Paris")]

    @benchmark("capitals", CAPITALS, solver=generate(max_tokens=8), scorers=[exact_match()])
    def test_capitals(scores):
        assert scores["exact_match"] == 1.0

What is named here is imported when it is used: an idle plugin costs a test suite nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalsuite.applications.case_model import BlockingModel, CaseModel
    from evalsuite.applications.endpoint import Endpoint
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
    from evalsuite.core.protocols import Benchmark, Dataset, JudgedScorer, Model, Scorer, Setup, Solver
    from evalsuite.core.types import (
        Completion,
        Message,
        Metric,
        Record,
        Request,
        Sample,
        Score,
        Transcript,
        Usage,
    )
    from evalsuite.judges import multiple_evidence, pairwise, panel, rubric, single, weighted
    from evalsuite.models.protocol import Backend, RateLimited, Transient
    from evalsuite.output.reports.case_metrics import (
        auroc,
        calibration_error,
        confusion_matrix,
        macro_f1,
        micro_f1,
        spearman,
    )
    from evalsuite.output.reports.section import Cell, Chart, Column, Passage, Section, Series, Table
    from evalsuite.plugin.collection.decorator import benchmark
    from evalsuite.results.estimate import Estimate
    from evalsuite.results.rows import Row
    from evalsuite.results.runs import load_run
    from evalsuite.results.tally import RunView, Tally
    from evalsuite.samples.content import audio, file, image
    from evalsuite.samples.files import iter_samples, load_samples
    from evalsuite.samples.lazy import LazySamples
    from evalsuite.scorers.answers import matches, one_of, similar
    from evalsuite.scorers.json_answers import json_schema
    from evalsuite.scorers.targets import bleu, contains, exact_match, numeric_match, rouge_l, token_f1
    from evalsuite.scorers.trajectories import ToolUse, any_of, call, calls, tool_uses
    from evalsuite.scorers.unit_tests import passes_tests
    from evalsuite.scorers.world_state import expect_state
    from evalsuite.solvers.application import application
    from evalsuite.solvers.conversation import conversation
    from evalsuite.solvers.functions import functions
    from evalsuite.solvers.generate import generate
    from evalsuite.solvers.interleaved import interleaved
    from evalsuite.solvers.program_of_thought import program_of_thought
    from evalsuite.solvers.react import react
    from evalsuite.tools import tool
    from evalsuite.tools.mcp_servers import McpServer
    from evalsuite.tools.personas import Persona, Scripted
    from evalsuite.tools.worlds import World

_HOMES = {
    "evalsuite.core.errors": (
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
    ),
    "evalsuite.judges": ("multiple_evidence", "pairwise", "panel", "rubric", "single", "weighted"),
    "evalsuite.applications.endpoint": ("Endpoint",),
    "evalsuite.applications.case_model": ("BlockingModel", "CaseModel"),
    "evalsuite.output.reports.case_metrics": (
        "auroc",
        "calibration_error",
        "confusion_matrix",
        "macro_f1",
        "micro_f1",
        "spearman",
    ),
    "evalsuite.samples.content": ("audio", "file", "image"),
    "evalsuite.samples.lazy": ("LazySamples",),
    "evalsuite.samples.files": ("iter_samples", "load_samples"),
    "evalsuite.plugin.collection.decorator": ("benchmark",),
    "evalsuite.models.protocol": ("Backend", "RateLimited", "Transient"),
    "evalsuite.core.protocols": (
        "Benchmark",
        "Dataset",
        "JudgedScorer",
        "Model",
        "Scorer",
        "Setup",
        "Solver",
    ),
    "evalsuite.output.reports.section": (
        "Cell",
        "Chart",
        "Column",
        "Passage",
        "Section",
        "Series",
        "Table",
    ),
    "evalsuite.results.estimate": ("Estimate",),
    "evalsuite.results.runs": ("load_run",),
    "evalsuite.results.tally": ("Row", "RunView", "Tally"),
    "evalsuite.scorers.answers": ("matches", "one_of", "similar"),
    "evalsuite.scorers.json_answers": ("json_schema",),
    "evalsuite.scorers.targets": ("bleu", "contains", "exact_match", "numeric_match", "rouge_l", "token_f1"),
    "evalsuite.scorers.trajectories": ("ToolUse", "any_of", "call", "calls", "tool_uses"),
    "evalsuite.scorers.unit_tests": ("passes_tests",),
    "evalsuite.scorers.world_state": ("expect_state",),
    "evalsuite.solvers.application": ("application",),
    "evalsuite.solvers.functions": ("functions",),
    "evalsuite.solvers.generate": ("generate",),
    "evalsuite.solvers.interleaved": ("interleaved",),
    "evalsuite.solvers.program_of_thought": ("program_of_thought",),
    "evalsuite.solvers.react": ("react",),
    "evalsuite.tools": ("tool",),
    "evalsuite.solvers.conversation": ("conversation",),
    "evalsuite.tools.mcp_servers": ("McpServer",),
    "evalsuite.tools.personas": ("Persona", "Scripted"),
    "evalsuite.tools.worlds": ("World",),
    "evalsuite.core.types": (
        "Completion",
        "Message",
        "Metric",
        "Record",
        "Request",
        "Sample",
        "Score",
        "Transcript",
        "Usage",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Backend",
    "BackendUnavailable",
    "Benchmark",
    "BlockingModel",
    "CallFailed",
    "CaseModel",
    "Cell",
    "Chart",
    "Column",
    "Completion",
    "Dataset",
    "DatasetError",
    "Endpoint",
    "Estimate",
    "EvalsuiteError",
    "JudgeError",
    "JudgedScorer",
    "LazySamples",
    "McpServer",
    "Message",
    "Metric",
    "Model",
    "ModelError",
    "Passage",
    "Persona",
    "RateLimited",
    "Record",
    "ReplayMiss",
    "Request",
    "RequestRefused",
    "Row",
    "RunError",
    "RunView",
    "Sample",
    "SandboxError",
    "SandboxUnavailable",
    "Score",
    "Scorer",
    "ScoringError",
    "Scripted",
    "Section",
    "Series",
    "SettingsError",
    "Setup",
    "Solver",
    "SolverError",
    "SpendLimitReached",
    "Table",
    "Tally",
    "ToolError",
    "ToolUse",
    "Transcript",
    "Transient",
    "Usage",
    "World",
    "__version__",
    "any_of",
    "application",
    "audio",
    "auroc",
    "benchmark",
    "bleu",
    "calibration_error",
    "call",
    "calls",
    "confusion_matrix",
    "contains",
    "conversation",
    "exact_match",
    "expect_state",
    "file",
    "functions",
    "generate",
    "image",
    "interleaved",
    "iter_samples",
    "json_schema",
    "load_run",
    "load_samples",
    "macro_f1",
    "matches",
    "micro_f1",
    "multiple_evidence",
    "numeric_match",
    "one_of",
    "pairwise",
    "panel",
    "passes_tests",
    "program_of_thought",
    "react",
    "rouge_l",
    "rubric",
    "similar",
    "single",
    "spearman",
    "token_f1",
    "tool",
    "tool_uses",
    "weighted",
]


__version__: str
"""Of the installed package."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("evalsuite")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
