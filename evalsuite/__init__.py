"""Language-model benchmarks as pytest cases.

    from evalsuite import Sample, benchmark, exact_match, generate

    CAPITALS = [Sample(id="fr", input="Capital of France? One word.", target="Paris")]

    @benchmark("capitals", CAPITALS, solver=generate(max_tokens=8), scorers=[exact_match()])
    def test_capitals(scores):
        assert scores["exact_match"] == 1.0

`__init__.pyi` declares the names; each is imported on first use, so that an idle plugin does not slow down a test
suite. Other names are in namespaces: `solvers`, `scorers`, `judges`, `tools`, `applications`, `content`, `models`,
`case_metrics`, `reports`, `results`, `protocols`, `errors`, `metrics`, `stats`, `sandbox`.
"""

from evalsuite.core.entry_points import attach_names

__version__ = "0.1.0"

_MOVED = {
    "applications": "BlockingModel CaseModel Endpoint",
    "case_metrics": "auroc calibration_error confusion_matrix macro_f1 micro_f1 spearman",
    "content": "audio file image",
    "errors": "BackendUnavailable CallFailed DatasetError EvalsuiteError JudgeError ModelError ReplayMiss "
    "RequestRefused RunError SandboxError SandboxUnavailable ScoringError SettingsError SolverError "
    "SpendLimitReached ToolError",
    "judges": "multiple_evidence pairwise panel single weighted",
    "models": "Backend RateLimited Transient",
    "protocols": "Completion JudgedScorer Model Request Scorer Solver Usage",
    "reports": "Cell Chart Column Passage Section Series Table",
    "results": "Estimate Row RunView Tally",
    "scorers": "ToolUse any_of bleu call calls expect_state json_schema matches numeric_match "
    "one_of passes_tests rouge_l similar token_f1 tool_uses",
    "solvers": "application conversation functions interleaved program_of_thought react",
    "tools": "McpServer Persona Scripted World tool",
}
"""Former top-level names, by the namespace that now contains them; the former names work with a warning."""
_RENAMED = {"calls": "scorers.tool_calls", "functions": "solvers.tool_loop"}
__getattr__, __dir__, __all__ = attach_names(
    __name__,
    __file__,
    {name: f"{namespace}.{name}" for namespace, names in _MOVED.items() for name in names.split()} | _RENAMED,
)
