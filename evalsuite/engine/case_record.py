"""Make a case's record from its solution and its test: scores, outcome, and whose fault an error was."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from evalsuite.core.errors import ScoringError
from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.types import ASSERTS, CHANGES, SIGNATURES, Outcome, Record, Score, Usage
from evalsuite.engine.fingerprints import planned_fingerprints
from evalsuite.engine.scoring import CaseScores, NotedScore, name_of, read_value, score_by_rule
from evalsuite.gateway.faults import TAG, tag_of
from evalsuite.journal.planned import same_ask

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalsuite.applications.case_model import BlockingModel
    from evalsuite.core.protocols import NamedScores
    from evalsuite.core.settings import Settings
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.engine.bound import Bound
    from evalsuite.engine.cases import Case
    from evalsuite.engine.solving import Models, Solved

LONGEST_GROUP = 40  # characters of metadata by which cases can be grouped; a longer text is a sample's own
NOT_RUN = "async def functions are not natively supported"
"""Begins pytest's message if no plugin runs an async test: nothing was measured."""


@dataclass
class CaseFindings:
    """Findings about a case while its test runs."""

    # the transcript and the judges' scores; None if the case has no solver or was not solved yet
    solved: Solved | None = None
    scores: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    logs: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    outcome: Outcome = "passed"
    error: str | None = None
    cause: str | None = None
    # why a missed threshold does not fail the session: `gate`, `epochs`, `quarantine` or `xfail`
    excused: str | None = None
    used: Usage = field(default_factory=Usage)  # Usage of the test itself, through the fixtures `model` and `judge`.
    judge_used: Usage = field(default_factory=Usage)  # The judge's part of `used`.
    asked: dict[str, str] = field(default_factory=dict)  # Fingerprints of the requests that the case sent.
    conversation: Transcript | None = None  # Messages between the test and the model, if the test asks by itself.

    def score(self, case: Case, solved: Solved) -> None:
        """Add a solved case's transcript and judged scores, and run the scorers that ask no model.

        If one scorer fails, the scores of the others are kept.
        """
        self.solved = solved
        self.asked |= solved.fingerprints
        self.logs |= {name: list(log) for name, log in solved.logs.items()}
        errors = [] if solved.error is None else [solved.error]
        if solved.transcript is not None:
            self.facts |= _drop_large_state(solved.transcript.facts)
            errors += self._score_now(case, solved.transcript, solved.judged)
        if errors:
            raise errors[0]

    def _score_now(self, case: Case, transcript: Transcript, judged: Sequence[NamedScores]) -> list[Exception]:
        scorings: list[tuple[str, Callable[[], NamedScores]]] = [
            ("a scorer", partial(dict, scores)) for scores in judged
        ]
        scorings += [
            (f"the scorer {name_of(scorer)}", partial(score_by_rule, scorer, case.sample, transcript))
            for scorer in case.bound.sorted_scorers.rules
        ]
        errors: list[Exception] = []
        for scorer_name, scoring in scorings:
            try:
                self.add_scores(scoring(), scorer_name, case.bound)
            except Exception as error:  # noqa: BLE001 - whatever a scorer raises is the case's error
                errors.append(error)
        return errors

    def add_scores(self, scores: NamedScores, scorer_name: str = "a scorer", bound: Bound | None = None) -> None:
        """Add scores."""
        for name, given in scores.items():
            if name in self.scores:
                raise ScoringError(
                    f"two scorers give the score {name!r}; give one of them another name, or leave it out"
                )
            score = given if isinstance(given, Score) else Score(given)
            range_ = bound.find_range(name) if bound is not None else None
            self.scores[name] = read_value(name, score.value, scorer_name, range_)
            self.facts |= score.facts
            if score.note:
                self.notes[name] = score.note
            if score.log:
                self.logs[name] = list(score.log)
            if score.signature:
                self.signatures[name] = score.signature

    def transcript_of(self, case: Case) -> Transcript:
        """Return the case's transcript."""
        if self.solved is None or self.solved.transcript is None:
            raise ScoringError(
                f"benchmark {case.bound.name} has no solver, so its cases have no transcript and no scores"
            )
        return self.solved.transcript

    def scores_of(self, case: Case) -> CaseScores:
        """Return the scores as a test sees them, shown with their notes."""
        self.transcript_of(case)
        notes = self.notes
        return CaseScores(
            (name, NotedScore(value, notes[name]) if name in notes else value) for name, value in self.scores.items()
        )

    def note_error(self, error: BaseException, message: str, *, in_test: bool) -> bool:
        """Note an exception of a case, and tell whether it is a missed threshold."""
        if _is_outcome(error, "skip"):
            if self.outcome == "passed":
                self.outcome = "skipped"
            return False
        is_missed = in_test and _states_threshold(error)
        self.outcome = "failed" if is_missed else "error"
        self.error = message.split("\n", 1)[0] or "the test failed" if is_missed else message or type(error).__name__
        self.cause = None if is_missed else type(error).__name__
        return is_missed

    def keep(self, case: Case, name: str, settings: Settings, model: str) -> KeptRecord:
        """Make the case's record for the run."""
        fingerprints = planned_fingerprints(case, settings, model)
        return KeptRecord.of(self.record(case, name, model, fingerprints), case.bound.declared_metrics)

    def record(
        self, case: Case, name: str, model: str, fingerprints: Mapping[str, str] = MappingProxyType({})
    ) -> Record:
        """Make the case's record."""
        solved = self.solved
        declaration = case.bound.declaration
        if declaration.at_least is not None:
            self.facts["at_least"] = declaration.at_least
        if not declaration.asserts:
            self.facts[ASSERTS] = False
        if groups := groups_in(case.sample.metadata):
            self.facts["metadata"] = groups
        if cut := sum(bool(entry.get("cut_off")) for log in self.logs.values() for entry in log):
            self.facts["cut_off"] = cut
        if self.signatures:
            self.facts[SIGNATURES] = self.signatures
        tags = case.sample.tags
        if case.bound.faults:
            met = list(solved.faults) if solved else []
            self.facts["faults"], tags = met, {**tags, TAG: tag_of(met)}
        transcript = (solved.transcript if solved else None) or self.conversation
        return Record(
            case=name,
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
            input=input_text(case.sample),
            target=case.sample.target,
            transcript=transcript and replace(transcript, facts=_drop_large_state(transcript.facts)),
            logs=self.logs,
            fingerprints={**fingerprints, **self.asked},
        )


@contextmanager
def lend(
    models: Models, loop: AbstractEventLoop, case: Case | None, name: str, findings: CaseFindings | None, *, judge: bool
) -> Iterator[BlockingModel]:
    """Give a test the model or the judge, and add the usage and requests of the test to its findings afterwards.

    Args:
        case: None if the test is not a case, as its findings.
        name: the test's name, under which a test that is not a case keeps its draws.
    """
    from evalsuite.applications.case_model import BlockingModel

    meter = models.meter(f"{case.scope if case else name}, fixture {'judge' if judge else 'model'}")
    model = (models.demand_judge if judge else models.model)(case.epoch if case else 1, meter)
    lent = BlockingModel(model, loop)
    try:
        yield lent
    finally:
        lent.finish()
        if findings is not None:
            findings.used += meter.usage
            findings.asked = {**meter.fingerprints, **findings.asked}
            if judge:
                findings.judge_used += meter.usage
            elif model.log.calls:
                findings.conversation = model.log.transcript()


def find_excuse(case: Case, settings: Settings, quarantine: Quarantine | None) -> str | None:
    """Find why a case's missed threshold does not fail by itself: `quarantine`, `gate`, `epochs`, or nothing."""
    from evalsuite.decisions.gates import parse_gates

    name = case.bound.name
    if quarantine is not None and quarantine.entry_of(name, case.source.id):
        return "quarantine"
    if any(gate.covers(name) for gate in parse_gates(settings.gate)):
        return "gate"
    return "epochs" if case.bound.declaration.at_least else None


def groups_in(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata by which cases can be grouped, as text: short texts, whole numbers, true and false."""
    return {
        name: str(value)
        for name, value in metadata.items()
        if isinstance(value, (str, int)) and 0 < len(str(value)) <= LONGEST_GROUP
    }


def _drop_large_state(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Keep only the changes of a large state."""
    return {name: value for name, value in facts.items() if name != "state" or CHANGES not in facts}


def input_text(sample: Sample) -> str:
    """Return a sample's input as text; of a conversation, its messages in order."""
    if isinstance(sample.input, str):
        return sample.input
    return "\n".join(f"{message.role}: {message.content}" for message in sample.input)


def _states_threshold(error: BaseException) -> bool:
    if _is_outcome(error, "fail"):
        return not str(error).startswith(NOT_RUN)
    return isinstance(error, AssertionError)


def _is_outcome(error: BaseException, name: str) -> bool:
    """Tell whether pytest.skip() or pytest.fail() raised an error; without pytest, nobody can have called them."""
    pytest = sys.modules.get("pytest")
    return pytest is not None and isinstance(error, getattr(pytest, name).Exception)


class KeptRecord(NamedTuple):
    """A finished record on its way to the run, as plain data that may come from another process."""

    line: str  # The record as a line of `records.jsonl`.
    benchmark: str  # Name of the case's benchmark.
    declared: str  # Place of the benchmark's declaration.
    metrics: Mapping[str, Mapping[str, Any]] | None  # Declared metrics of the benchmark; None if unknown.
    same: str  # A hash that is equal for two interchangeable records (see `same_ask`).

    @classmethod
    def of(cls, record: Record, metrics: Mapping[str, Mapping[str, Any]] | None) -> KeptRecord:
        """Encode a record."""
        return cls(
            dumps(encode_record(record)), record.benchmark, record.declared, metrics, same_ask(record.fingerprints)
        )
