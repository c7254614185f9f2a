"""Checks, groups and calls the solvers and scorers of users, and checks the scores that scorers return."""

import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, Self

from evalsuite import __version__
from evalsuite.core.errors import EvalsuiteError, ScoringError, SettingsError
from evalsuite.core.json_codec import digest
from evalsuite.core.protocols import JudgedScorer, ModelScorer, NamedScores, Scorer
from evalsuite.core.threads import is_async
from evalsuite.core.types import COUNTED_APART, Metric, Sample, Score, Transcript
from evalsuite.engine.signals import is_keyboard_interrupt

LONGEST_NOTE = 200  # Maximum characters of a scorer's note in the repr of a score.
ROUNDING = 1e-9  # Share of a metric's range by which a score may lie outside the range, because of rounding.
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # Matches an object's memory address, which differs in every process.
SCORER_SIGNATURE = "a scorer takes (sample, transcript)"


class ScoreWithNote(float):
    """A score whose repr contains the scorer's note, for example in pytest's failure message."""

    note: str

    def __new__(cls, value: float, note: str = "") -> Self:
        score = super().__new__(cls, value)
        line = " ".join(note.split())
        score.note = "".join(sign for sign in line[:LONGEST_NOTE] if sign.isprintable())
        return score

    def __repr__(self) -> str:
        """Show the note, as in `assert 0.0 (the answer names no source) == 1.0`."""
        return f"{float.__repr__(self)} ({self.note})"

    def __str__(self) -> str:
        return float.__repr__(self)


class ScoresByName(dict[str, float]):
    """The fixture `scores` of a case. Reading a missing score raises an error that lists the existing scores.

    Args:
        scores: the scores by name.
        read: a set; the name of each score that the test reads is added to it.
    """

    def __init__(self, scores: Mapping[str, float], read: set[str]) -> None:
        super().__init__(scores)
        self._read = read

    def __getitem__(self, name: str) -> float:
        self._read.add(name)
        return super().__getitem__(name)

    def __missing__(self, name: str) -> float:
        if self.get(name + COUNTED_APART):
            raise ScoringError(
                f"the judge cannot tell {name!r} of this case; ask for it under `if {name!r} in scores:`, or let a "
                "gate decide instead of the test"
            )
        raise ScoringError(f"no scorer gives the score {name!r}; there are {', '.join(map(repr, self)) or 'none'}")


class ScorerGroups(NamedTuple):
    """The scorers of a benchmark, grouped by how they run; one scorer may be in several groups."""

    rules: tuple[Any, ...]  # Scorers that are plain functions, which run in the test's thread.
    asynchronous: tuple[Any, ...]  # Scorers that are async functions.
    judged: tuple[JudgedScorer, ...]  # Scorers that call the judge.
    asking: tuple[ModelScorer, ...]  # Scorers that call a model of their own choice.


def group_scorers(scorers: Sequence[Any]) -> ScorerGroups:
    """Group scorers by how they run; call this once per benchmark, because `isinstance` with a protocol is slow."""
    return ScorerGroups(
        tuple(scorer for scorer in scorers if callable(scorer) and not is_async(scorer)),
        tuple(scorer for scorer in scorers if is_async(scorer)),
        tuple(scorer for scorer in scorers if isinstance(scorer, JudgedScorer)),
        tuple(scorer for scorer in scorers if isinstance(scorer, ModelScorer)),
    )


def get_callable_name(solver_or_scorer: object) -> str:
    """Return the name of a solver's or scorer's function or class, for messages."""
    inner = getattr(solver_or_scorer, "func", solver_or_scorer)
    return str(getattr(inner, "__name__", type(inner).__name__))


def get_own_judge(scorer: object) -> str:
    """Return the model that a scorer names as its judge; empty if the scorer uses the run's judge."""
    named = getattr(scorer, "models", None) or getattr(scorer, "model", None)
    first = named[0] if isinstance(named, tuple) else named
    return first if isinstance(first, str) else ""


def needs_run_judge(scorer: object) -> bool:
    """Tell whether a scorer uses the run's judge."""
    return isinstance(scorer, JudgedScorer) and not get_own_judge(scorer)


def check_benchmark_parts(name: str, solver: object, scorers: object) -> None:
    """Check that a benchmark's solver and scorers can be called, and that the names of their scores are unique."""
    given_by: dict[str, object] = {}
    try:
        if solver is not None:
            _require_callable(solver, "solver", "(sample, model)")
        if not isinstance(scorers, Sequence) or isinstance(scorers, str):
            raise SettingsError(f"scorers must be a list; write scorers=[...] around {_format_callable(scorers)}")
        for scorer in scorers:
            if inspect.isclass(scorer) or not isinstance(scorer, (JudgedScorer, ModelScorer)):
                _require_callable(scorer, "scorer", "(sample, transcript)")
        for scorer in scorers:
            metrics = getattr(scorer, "metrics", None) or {}
            if not isinstance(metrics, Mapping) or not all(
                isinstance(score, str) and isinstance(metric, Metric) for score, metric in metrics.items()
            ):
                raise SettingsError(
                    f"{_format_callable(scorer)}.metrics is {metrics!r:.80}; write {{'quality': Metric(range=(0, 1))}}"
                )
            # Compare declared names only, because other scores' names are known only when the scores arrive.
            if twice := [
                name for name in metrics if "*" not in name and given_by.setdefault(name, scorer) is not scorer
            ]:
                raise SettingsError(f"two scorers give the score {twice[0]!r}; rename one of them, or leave it out")
        if scorers and solver is None:
            raise SettingsError(
                "it has scorers but no solver, so nothing would be scored; add solver=generate(), or leave out scorers"
            )
    except SettingsError as error:
        raise SettingsError(f"benchmark {name}: {error}") from error


def _require_callable(part: object, kind: str, arguments: str) -> None:
    if not callable(part):
        raise SettingsError(f"{_format_callable(part)} is not a {kind}; a {kind} is called with {arguments}")
    check_callable(part, f"a {kind} takes {arguments}")


def check_callable(
    function: object, expectation: str, argument_count: int = 2, *, error: type[EvalsuiteError] = SettingsError
) -> None:
    """Check that a callable takes this number of arguments; skip the check if Python cannot read the signature."""
    module = getattr(function, "__module__", None) or ""
    if module.startswith(("evalsuite.metrics.", "evalsuite.stats")):
        # Refuse functions from `metrics` and `stats`, because they compare plain values and are not scorers. Counting
        # arguments would not reveal the mistake, because some functions of `metrics` take two, as scorers do.
        namespace = "evalsuite.scorers" if argument_count == 2 else "evalsuite.case_metrics"
        raise error(
            f"{expectation}; {get_callable_name(function)} of {module} compares plain values: "
            f"use a function of {namespace}, or call {get_callable_name(function)} in a function of your own"
        )
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type] # a TypeError says that it cannot be called
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * argument_count)
    except TypeError as mismatch:
        hint = f"; write {get_callable_name(function)}(), with parentheses" if module.startswith("evalsuite.") else ""
        raise error(f"{expectation}; {get_callable_name(function)} takes {signature}{hint}") from mismatch


def _format_callable(solver_or_scorer: object) -> str:
    """Return the name of a solver or scorer; if it has none of its own, return its repr."""
    name = get_callable_name(solver_or_scorer)
    return name if name != "function" else repr(solver_or_scorer)


def convert_scores(scores: object, scorer: str) -> NamedScores:
    """Convert a scorer's result to scores by name; a single number, bool or `Score` gets the scorer's own name."""
    if isinstance(scores, Mapping):
        return scores
    # Accept scalars of numpy and similar packages, but not arrays and texts.
    if isinstance(scores, Score) or (hasattr(scores, "__float__") and not hasattr(scores, "__len__")):
        if not scorer.isidentifier():
            raise ScoringError(
                f"the scorer {scorer} gave {scores!r:.80}, but has no name for this score: write it with def, or "
                "return {'quality': ...}"
            )
        return {scorer: scores}  # type: ignore[dict-item] # `convert_score` reads it
    raise ScoringError(
        f"the scorer {scorer} gave {scores!r:.80}; it must give a number, a bool or named scores, for example "
        "{'quality': 0.5}"
    )


def convert_score(name: str, value: Any, scorer_name: str, declared: tuple[float, float] | None) -> float:
    """Convert a score (also a number of numpy) to a float; check that it lies in the `declared` range, if any."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    except OverflowError:  # An integer is too large for a float; leave out its digits, which would fill the message.
        number = value = math.inf
    if not math.isfinite(number):
        raise ScoringError(
            f"the score {name} is {value!r}; a score must be a finite number, and {scorer_name} gave this one"
        )
    if declared is None:
        return number
    low, high = declared
    within = min(max(number, low), high)
    if abs(number - within) > ROUNDING * (high - low):
        raise ScoringError(
            f"the score {name} is {number:g}, and it is declared to lie in [{low:g}, {high:g}]; {scorer_name} gave "
            "it: correct the scorer, or declare Metric(range=...)"
        )
    return within


def run_rule_scorer(scorer: Scorer, sample: Sample, transcript: Transcript) -> Mapping[str, float | Score]:
    """Run a scorer that calls no model; convert SystemExit and KeyboardInterrupt to errors, so that the run goes on."""
    try:
        return convert_scores(scorer(sample, transcript), get_callable_name(scorer))
    except TypeError:
        check_callable(scorer, SCORER_SIGNATURE, error=ScoringError)
        raise
    except SystemExit as error:
        raise ScoringError(f"a scorer called sys.exit({error.code!r}); it should raise an exception") from error
    except KeyboardInterrupt as error:
        if is_keyboard_interrupt():
            raise
        raise ScoringError("a scorer raised KeyboardInterrupt; it should raise an exception") from error


def hash_scorers(scorers: Iterable[Any]) -> str:
    """Hash scorers with their arguments and their versions."""
    return digest(sorted(map(_describe_scorer_for_hash, scorers)))


def _describe_scorer_for_hash(scorer: Any) -> str:
    kind = scorer if inspect.isfunction(scorer) else type(scorer)
    cells = [make_stable_repr(_get_closure_value(cell)) for cell in getattr(scorer, "__closure__", None) or ()]
    arguments = "" if kind is scorer else make_stable_repr(scorer)
    # Omit the module of evalsuite's own scorers, so that moving a scorer does not change its fingerprint.
    module = "evalsuite" if _is_shipped_class(kind) else kind.__module__
    return f"{module}.{kind.__qualname__} {arguments} {cells} {_find_scorer_version(scorer, kind)}"


def make_stable_repr(value: Any) -> str:
    """Return a repr that is equal in every process: members of sets are sorted, memory addresses are left out.

    Without sorting, the order of a set would depend on the process's hash seed, which differs between workers.
    """
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(make_stable_repr, value)))}}}"
    if type(value) in {list, tuple}:
        return f"[{', '.join(map(make_stable_repr, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{make_stable_repr(key)}: {make_stable_repr(inner)}' for key, inner in value.items())}}}"
    if is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.repr:  # type: ignore[attr-defined]
        shown = [f"{item.name}={make_stable_repr(getattr(value, item.name))}" for item in fields(value) if item.repr]
        return f"{type(value).__qualname__}({', '.join(shown)})"
    return ADDRESS.sub("", repr(value))


def _get_closure_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # A closure's cell is empty while a recursive function has not been assigned to its name.
        return None


def _find_scorer_version(scorer: Any, kind: Any) -> str:
    # If a scorer has no version, use evalsuite's version for its own scorers, and a hash of the source for others.
    if (own := getattr(scorer, "version", None)) is not None:
        return str(own)
    if _is_shipped_class(kind):
        return __version__
    try:
        return digest(inspect.getsource(kind))
    except (OSError, TypeError):
        return "unknown"


def _is_shipped_class(kind: Any) -> bool:
    return str(kind.__module__).partition(".")[0] == "evalsuite"
