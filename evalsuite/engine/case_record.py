"""Make a case's record from its solution and its test: scores, outcome, the failed assertion, and an error's cause."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from evalsuite.core.errors import ScoringError, SettingsError, SpendLimitReached, get_message
from evalsuite.core.json_codec import write_record
from evalsuite.core.types import ASSERTS, CHANGES, PASS_RATE, SIGNATURES, Record, Score, Transcript, Usage
from evalsuite.engine.cases import compute_planned_fingerprints
from evalsuite.engine.scoring import ScoresByName, ScoreWithNote, convert_score, get_callable_name, run_rule_scorer
from evalsuite.gateway.faults import TAG, format_fault_tag
from evalsuite.journal.planned import digest_fingerprints
from evalsuite.results.tally import UNMEASURED

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from evalsuite.applications.case_model import BlockingModel
    from evalsuite.core.protocols import NamedScores
    from evalsuite.core.settings import Settings
    from evalsuite.core.types import Outcome, Sample
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.engine.cases import Case
    from evalsuite.engine.solving import RunModels, SolvedCase

LONGEST_GROUP = 40  # Maximum characters of metadata that can group cases; longer texts are usually unique to a sample.
NOT_RUN = "async def functions are not natively supported"
"""Start of pytest's message if no plugin runs an async test; such a case measures nothing."""


@dataclass
class CaseFindings:
    """A case, and the data that are collected while its test runs."""

    case: Case
    # The transcript and the judges' scores; None if the case has no solver or was not solved yet.
    solved: SolvedCase | None = None
    scores: dict[str, float] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # Names of the scores that the test has read.
    notes: dict[str, str] = field(default_factory=dict)
    logs: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    outcome: Outcome = "passed"
    error: str | None = None
    cause: str | None = None
    # Why a missed threshold does not fail the session: `gate`, `epochs`, `quarantine` or `xfail`.
    excused: str | None = None
    used: Usage = field(default_factory=Usage)  # Usage of the test's own calls (fixtures `model` and `judge`).
    judge_used: Usage = field(default_factory=Usage)  # The part of `used` that belongs to the judge.
    asked: dict[str, str] = field(default_factory=dict)  # Fingerprints of the requests that the case sent.
    conversation: Transcript | None = None  # The test's messages, if the test itself calls the model.
    failures: int = 0  # Number of the case's pytest reports (setup, call, teardown) that failed the session.

    def score_case(self, solved: SolvedCase) -> None:
        """Add the solved case's transcript and judges' scores, and run the scorers that call no model.

        If one scorer fails, the scores of all other scorers are kept.
        """
        self.solved = solved
        self.asked |= solved.fingerprints
        self.logs |= {name: list(log) for name, log in solved.logs.items()}
        errors = [] if solved.error is None else [solved.error]
        scorings: list[tuple[str, Callable[[], NamedScores]]] = []
        if (transcript := solved.transcript) is not None:
            self.facts |= _select_facts(transcript.facts, OWN_FACTS | JUDGES_FACTS)
            scorings += [("a scorer", partial(dict, given)) for given in solved.judged]
            scorings += [
                (f"the scorer {get_callable_name(each)}", partial(run_rule_scorer, each, self.case.sample, transcript))
                for each in self.case.bound.sorted_scorers.rules
            ]
        for scorer_name, scoring in scorings:
            try:
                self._add_scores(scoring(), scorer_name)
            except Exception as error:  # noqa: BLE001 - whatever a scorer raises is the case's error
                errors.append(error)
        if errors:
            raise errors[0]

    def _add_scores(self, scores: NamedScores, scorer_name: str) -> None:
        bound = self.case.bound
        for name, given in scores.items():
            if name in self.scores:
                raise ScoringError(f"two scorers give the score {name!r}; rename one of them, or leave it out")
            if name == PASS_RATE or name in bound.declaration.benchmark.derived:
                raise ScoringError(f"{scorer_name} gives {name!r}, the name of a metric over all cases; choose another")
            score = given if isinstance(given, Score) else Score(given)
            self.scores[name] = convert_score(name, score.value, scorer_name, bound.find_range(name))
            facts = _select_facts(score.facts, OWN_FACTS)
            # Nest the facts of a second judge without a name, because they would replace the first judge's.
            self.facts |= {name: facts} if "ballots" in facts and "ballots" in self.facts else facts
            if score.note:
                self.notes[name] = score.note
            if score.log:
                self.logs[name] = list(score.log)
            if score.signature:
                self.signatures[name] = score.signature

    def get_transcript(self) -> Transcript:
        if self.solved is None or self.solved.transcript is None:
            raise ScoringError(
                f"benchmark {self.case.bound.name} has no solver, so its cases have no transcript or scores"
            )
        return self.solved.transcript

    def get_scores(self) -> ScoresByName:
        """Return the scores for the fixture `scores`; a score's repr contains the scorer's note."""
        self.get_transcript()
        own, notes = self.scores, self.notes
        scores = {name: ScoreWithNote(value, notes[name]) if name in notes else value for name, value in own.items()}
        return ScoresByName(scores, self.read)

    def record_error(
        self, error: BaseException, message: str, settings: Settings, quarantine: Quarantine | None, *, in_test: bool
    ) -> bool:
        """Record the case's exception; return whether the exception is a missed threshold."""
        if isinstance(error, SpendLimitReached) and settings.until_decided:
            self.outcome, self.cause = "skipped", type(error).__name__
            return False
        if _is_raised_by_pytest(error, "skip"):
            if self.outcome == "passed":
                self.outcome = "skipped"
            return False
        is_missed = in_test and isinstance(error, AssertionError)
        if in_test and _is_raised_by_pytest(error, "fail"):
            is_missed = not str(error).startswith(NOT_RUN)
        self.outcome = "failed" if is_missed else "error"
        self.error = message.split("\n", 1)[0] or "the test failed" if is_missed else message or type(error).__name__
        self.cause = None if is_missed else type(error).__name__
        if is_missed:
            self.excused = self._find_excuse(settings, quarantine)
        return is_missed

    def _find_excuse(self, settings: Settings, quarantine: Quarantine | None) -> str | None:
        from evalsuite.decisions.gates import parse_gates

        name = self.case.bound.name
        if quarantine is not None and quarantine.find_entry(name, self.case.source.id):
            return "quarantine"
        if any(gate.covers_benchmark(name) for gate in parse_gates(settings.gate)):
            return "gate"
        return "epochs" if self.case.bound.declaration.at_least else None

    def make_storable_record(self, case_name: str, settings: Settings, model: str) -> StorableRecord:
        """Encode the case's record, with the fingerprints known before the case ran, for the journal."""
        record = self.make_record(case_name, model, compute_planned_fingerprints(self.case, settings, model))
        return StorableRecord.from_record(record, self.case.bound.declared_metrics)

    def make_record(self, case_name: str, model: str, fingerprints: Mapping[str, str] = MappingProxyType({})) -> Record:
        case, solved = self.case, self.solved
        if case.bound.declaration.at_least is not None:
            self.facts["at_least"] = case.bound.declaration.at_least
        if not case.bound.declaration.asserts:
            self.facts[ASSERTS] = False
        if groups := select_grouping_metadata(case.sample.metadata):
            self.facts["metadata"] = groups
        if cut := sum(bool(entry.get("cut_off")) for log in self.logs.values() for entry in log):
            self.facts["cut_off"] = cut
        if self.signatures:
            self.facts[SIGNATURES] = self.signatures
        tags = case.sample.tags
        transcript = (solved.transcript if solved else None) or self.conversation
        if case.bound.faults:
            met = list(solved.faults) if solved else []
            tags = {**tags, TAG: format_fault_tag(met)}
            of_world = transcript.facts.get("injected") if transcript else None
            self.facts["injected"] = [*(of_world if isinstance(of_world, list) else []), *met]
        return Record(
            case=case_name,
            benchmark=case.bound.name,
            sample=case.sample.id,
            epoch=case.epoch,
            model=model,
            outcome=self.outcome,
            tags=tags,
            source=case.bound.dataset.source,
            declared=case.bound.place,
            scores=self.scores,
            error=self.error,
            cause=self.cause,
            excused=self.excused,
            notes=self.notes,
            facts=self.facts,
            usage=(solved.usage if solved else Usage()) + self.used,
            judge_usage=(solved.judge_usage if solved else Usage()) + self.judge_used,
            simulator_usage=solved.simulator_usage if solved else Usage(),
            seconds=round(solved.seconds, 3) if solved else 0.0,
            solving_seconds=round(solved.solving_seconds, 6) if solved else 0.0,
            input=format_input(case.sample),
            target=case.sample.target,
            transcript=transcript and replace(transcript, facts=_select_facts(transcript.facts)),
            logs=self.logs,
            fingerprints={**fingerprints, **self.asked},
        )


@contextmanager
def provide_model(
    models: RunModels, loop: AbstractEventLoop, nodeid: str, findings: CaseFindings | None, *, is_judge: bool
) -> Iterator[BlockingModel]:
    """Yield the model or the judge to a test; after the test, add the usage and requests to the case's findings.

    Args:
        nodeid: the node id of the test, under which requests are numbered if the test is not a case.
        findings: the findings of the test's case; None if the test is not a case.
    """
    from evalsuite.applications.case_model import BlockingModel

    case = findings.case if findings is not None else None
    meter = models.make_meter(f"{case.storage_scope if case else nodeid}, fixture {'judge' if is_judge else 'model'}")
    epoch = case.epoch if case else 1
    model = models.get_judge(epoch, meter) if is_judge else models.get_model(epoch, meter)
    if model is None:
        raise SettingsError("this test asks a judge: name one with --judge-model")
    blocking = BlockingModel(model, loop)
    try:
        yield blocking
    finally:
        blocking.finish()
        if findings is not None:
            findings.used += meter.usage
            findings.asked = {**meter.fingerprints, **findings.asked}
            if is_judge:
                findings.judge_used += meter.usage
            elif model.log.calls:
                findings.conversation = model.log.make_transcript()


def select_grouping_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """List the metadata by which cases can be grouped (short texts, integers and booleans), converted to text."""
    return {
        name: str(value)
        for name, value in metadata.items()
        if isinstance(value, (str, int)) and 0 < len(str(value)) <= LONGEST_GROUP
    }


OWN_FACTS = frozenset({ASSERTS, SIGNATURES, "at_least", "metadata"})
"""Facts that decide what a case counts for. Solvers and scorers cannot set them: their facts stay in the transcript."""
JUDGES_FACTS = frozenset({UNMEASURED, "ballots", "mutations"})  # Facts that only scorers and judges set.


def _select_facts(facts: Mapping[str, Any], reserved: AbstractSet[str] = frozenset()) -> dict[str, Any]:
    """Drop reserved facts, and the final state of a simulated environment if the facts also list its changes."""
    dropped = reserved | {"state"} if CHANGES in facts else reserved
    return {name: value for name, value in facts.items() if name not in dropped}


def format_input(sample: Sample) -> str:
    """Return a sample's input as text; a conversation is written message by message."""
    if isinstance(sample.input, str):
        return sample.input
    return "\n".join(f"{message.role}: {message.content}" for message in sample.input)


def _is_raised_by_pytest(error: BaseException, function_name: str) -> bool:
    """Tell whether the function `skip` or `fail` of pytest raised this error; false if pytest is not imported."""
    pytest = sys.modules.get("pytest")
    return pytest is not None and isinstance(error, getattr(pytest, function_name).Exception)


class StorableRecord(NamedTuple):
    """A finished record as JSON text, with the other data that the process with the journal needs to store it."""

    line: str  # The record as a line of `records.jsonl`.
    benchmark: str  # Name of the case's benchmark.
    declared: str  # The place of the benchmark's declaration.
    metrics: Mapping[str, dict[str, Any]] | None  # Declared metrics of the benchmark; None if unknown.
    same: str  # Hash of the fingerprints; it is equal for two records of the same question, model and scorers.
    excused: str | None  # As in `Record`.

    @classmethod
    def from_record(cls, record: Record, metrics: Mapping[str, dict[str, Any]] | None) -> StorableRecord:
        """Encode a record of a benchmark that declares these metrics."""
        line, same = write_record(record), digest_fingerprints(record.fingerprints)
        return cls(line, record.benchmark, record.declared, metrics, same, record.excused)


LONGEST_VALUE = 240  # Maximum characters of a value that is shown for a failed assertion, as in pytest.


def get_statement_source(lines: Sequence[str], number: int) -> str:
    """Return the source of the statement that contains a line, or the line alone if the source cannot be parsed."""
    node = _find_statement(lines, number)
    if node is None:
        return lines[number - 1].strip() if number <= len(lines) else ""
    first, last = node.lineno, node.end_lineno or node.lineno
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        # For a compound statement, return only the first line or lines, such as `if x:`.
        last = max(first, body[0].lineno - 1)
    return "".join(lines[first - 1 : last]).strip()


def _find_statement(lines: Sequence[str], number: int) -> ast.stmt | None:
    """Find the innermost statement that contains a line."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= number <= (node.end_lineno or node.lineno):
            found = node  # Keep the last match, because `ast.walk` visits outer statements before inner statements.
    return found


def describe_assertion(error: AssertionError) -> str:
    """Describe a failed assertion as the first line of pytest's message, such as `assert 0.0 == 1.0`.

    pytest rewrites assertions only in files that it imports as tests. An assertion that pytest does not rewrite has no
    message, so the values of a simple comparison are read from the failed frame.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if error.args or traceback is None:
        return get_message(error)
    frame = traceback.tb_frame
    node = _find_statement(linecache.getlines(frame.f_code.co_filename), traceback.tb_lineno)
    if not isinstance(node, ast.Assert):
        return ""
    names = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    try:
        return f"assert {_format_expression_values(node.test, names)}"
    except Exception:  # noqa: BLE001 - reading a value runs the user's code, which may raise anything
        return f"assert {ast.unparse(node.test)}"


def _format_expression_values(node: ast.expr, variables: Mapping[str, Any]) -> str:
    """Format the value of an expression, shortened; for a comparison, format the values of both sides."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"not {_format_expression_values(node.operand, variables)}"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = (
            ast.Name(_format_expression_values(side, variables)) for side in (node.left, node.comparators[0])
        )
        return ast.unparse(ast.Compare(left, node.ops, [right]))
    text = repr(_evaluate_expression(node, variables))
    if len(text) <= LONGEST_VALUE:
        return text
    first = (LONGEST_VALUE - 3) // 2
    return f"{text[:first]}...{text[len(text) - (LONGEST_VALUE - 3 - first) :]}"


def _evaluate_expression(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """Evaluate names, attributes and subscripts; raise a `LookupError` for other expressions, such as calls."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return variables[node.id]
    if isinstance(node, ast.Attribute):
        return getattr(_evaluate_expression(node.value, variables), node.attr)
    if isinstance(node, ast.Subscript):
        return _evaluate_expression(node.value, variables)[_evaluate_expression(node.slice, variables)]
    raise LookupError(ast.unparse(node))
