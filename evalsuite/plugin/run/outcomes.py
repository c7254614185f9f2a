"""From pytest's reports to a case's record: what was scored, what failed, and whose fault it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import ScoringError, SpendLimitReached
from evalsuite.core.types import Outcome, Record, Score, Usage
from evalsuite.engine.case_scores import checked_scores, finite_score
from evalsuite.engine.scorer_kinds import check_signature, kinds_of, name_of
from evalsuite.plugin.marks import FINDINGS
from evalsuite.plugin.session.signals import interrupted_by_user
from evalsuite.results.judge_labels import SIGNATURES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.core.protocols import Scorer
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.engine.prefetch import Solved
    from evalsuite.plugin.collection.cases import Case

EXCUSES = {
    "gate": "below threshold; the gate decides",
    "epochs": "below threshold; the sample's other epochs decide with it",
    "quarantine": "below threshold; in quarantine, and decides nothing",
}
"""Why a case below its threshold does not fail the session by itself."""

LONGEST_GROUP = 40
"""A longer text is no group's name, but a sample's own words."""


@dataclass
class Findings:
    """What is learnt about a case while its item runs."""

    solved: Solved | None = None
    scores: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    logs: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    outcome: Outcome = "passed"
    error: str | None = None
    cause: str | None = None
    excused: str | None = None
    failures: int = 0
    """How many reports of this item count as failures of the session."""
    used: Usage = field(default_factory=Usage)
    """What the test itself used, through the fixtures `model` and `judge`."""
    judge_used: Usage = field(default_factory=Usage)
    """The judge's part of `used`."""
    asked: dict[str, str] = field(default_factory=dict)
    """Fingerprints of the requests that the case sent."""
    conversation: Transcript | None = None
    """What the test and the model said to each other, where the test asks by itself."""

    def score(self, case: Case, solved: Solved) -> None:
        """Takes over what was solved and judged, and runs the scorers that need no call.

        If one scorer fails, the scores of the others are kept.

        Raises:
            EvalsuiteError: solving, judging or scoring failed; the first failure, where there are several.
        """
        self.solved = solved
        self.asked |= solved.fingerprints
        self.logs |= {name: list(log) for name, log in solved.logs.items()}
        errors = [] if solved.error is None else [solved.error]
        if solved.transcript is not None:
            self.facts |= solved.transcript.facts
            errors += self._score_now(case, solved.transcript, solved.judged)
        if errors:
            raise errors[0]

    def _score_now(
        self, case: Case, transcript: Transcript, judged: Sequence[Mapping[str, float | Score]]
    ) -> list[Exception]:
        """Collects the judges' scores and those of scorers that need no call; returns what failed."""
        scorings: list[tuple[str, Callable[[], Mapping[str, float | Score]]]] = [
            ("a scorer", partial(dict, scores)) for scores in judged
        ]
        scorings += [
            (f"the scorer {name_of(scorer)}", partial(_score, scorer, case.sample, transcript))
            for scorer in kinds_of(case.bound).rules
        ]
        errors: list[Exception] = []
        for scorer_name, scoring in scorings:
            try:
                self.take(scoring(), scorer_name)
            except Exception as error:  # noqa: BLE001 - whatever a scorer raises is the case's error
                errors.append(error)
        return errors

    def take(self, scores: Mapping[str, float | Score], scorer_name: str = "a scorer") -> None:
        """Adds scores.

        Args:
            scores: by name.
            scorer_name: who gave them, for messages.

        Raises:
            ScoringError: one is not a finite number, or another scorer gave it.
        """
        for name, given in scores.items():
            if name in self.scores:
                raise ScoringError(
                    f"two scorers give the score {name!r}; give one of them another name, or leave it out"
                )
            score = given if isinstance(given, Score) else Score(given)
            self.scores[name] = finite_score(name, score.value, scorer_name)
            self.facts |= score.facts
            if score.note:
                self.notes[name] = score.note
            if score.log:
                self.logs[name] = list(score.log)
            if score.signature:
                self.signatures[name] = score.signature

    def record(
        self,
        item: pytest.Item,
        case: Case,
        model: str,
        fingerprints: Mapping[str, str] = MappingProxyType({}),
    ) -> Record:
        """The case's record, once its item has ended."""
        solved = self.solved
        declaration = case.bound.declaration
        if declaration.at_least is not None:
            self.facts["at_least"] = declaration.at_least
        if groups := groupable(case.sample.metadata):
            self.facts["metadata"] = groups
        if cut := sum(bool(entry.get("cut_off")) for log in self.logs.values() for entry in log):
            self.facts["cut_off"] = cut
        if self.signatures:
            self.facts[SIGNATURES] = self.signatures
        return Record(
            case=item.nodeid,
            benchmark=case.bound.name,
            sample=case.sample.id,
            epoch=case.epoch,
            model=model,
            outcome=self.outcome,
            tags=case.sample.tags,
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
            solving_seconds=round(solved.solving_seconds, 3) if solved else 0.0,
            input=input_text(case.sample),
            target=case.sample.target,
            transcript=(solved.transcript if solved else None) or self.conversation,
            logs=self.logs,
            fingerprints={**fingerprints, **self.asked},
        )


def groupable(metadata: Mapping[str, Any]) -> dict[str, str]:
    """What of a sample's metadata cases can be grouped by: short texts, whole numbers, true and false, as text."""
    return {
        name: str(value)
        for name, value in metadata.items()
        if isinstance(value, (str, int)) and 0 < len(str(value)) <= LONGEST_GROUP
    }


def _score(scorer: Scorer, sample: Sample, transcript: Transcript) -> Mapping[str, float | Score]:
    """Runs a scorer without letting it end the session, whatever it calls.

    Raises:
        ScoringError: it tried to, or it takes something else than a sample and a transcript.
    """
    try:
        return checked_scores(scorer(sample, transcript), name_of(scorer))
    except TypeError:
        check_signature(scorer)
        raise
    except SystemExit as error:
        raise ScoringError(
            f"a scorer called sys.exit({error.code!r}); it should raise an exception"
        ) from error
    except KeyboardInterrupt as error:
        if interrupted_by_user():
            raise
        raise ScoringError("a scorer raised KeyboardInterrupt; it should raise an exception") from error


def findings_of(item: pytest.Item) -> Findings:
    """A case's findings, empty when its item begins, since some plugins run an item several times."""
    return item.stash.setdefault(FINDINGS, Findings())


def input_text(sample: Sample) -> str:
    """A sample's input as text; for a conversation, its messages in order."""
    if isinstance(sample.input, str):
        return sample.input
    return "\n".join(f"{message.role}: {message.content}" for message in sample.input)


def note_phase(
    findings: Findings, call: pytest.CallInfo[None], report: pytest.TestReport, excuse: str | None
) -> None:
    """Notes how one phase of a case's item ended, and sets how pytest shows it.

    Args:
        findings: of the case.
        call: the phase.
        report: what pytest made of it.
        excuse: a key of `EXCUSES`, if a missed threshold is decided elsewhere.
    """
    if call.excinfo is None:
        return
    error = call.excinfo.value
    if isinstance(error, pytest.skip.Exception):
        if findings.outcome == "passed":
            findings.outcome = "skipped"
        return
    # pytest.fail and assert state a threshold; any other exception means that nothing was measured.
    threshold = call.when == "call" and _states_threshold(error)
    findings.outcome = "failed" if threshold else "error"
    findings.error = _first_line(str(error)) if threshold else str(error) or type(error).__name__
    findings.cause = None if threshold else type(error).__name__
    if threshold and report.outcome != "failed":
        findings.excused = "xfail"
    elif threshold and excuse:
        findings.excused = excuse
        report.outcome = "skipped"
        report.wasxfail = EXCUSES[excuse]
    findings.failures += report.failed


def pass_over(findings: Findings, report: pytest.TestReport) -> None:
    """Takes note of a case that --until-decided had no money left for: it is neither right nor an error."""
    findings.outcome, findings.cause = "skipped", SpendLimitReached.__name__
    report.outcome = "skipped"
    report.longrepr = (str(report.location[0]), report.location[1] or 0, "Skipped: the money is spent")


NOT_RUN = "async def functions are not natively supported"
"""How pytest's own message begins where no plugin runs an async test: nothing was measured."""


def _states_threshold(error: BaseException) -> bool:
    if isinstance(error, pytest.fail.Exception):
        return not str(error).startswith(NOT_RUN)
    return isinstance(error, AssertionError)


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0] or "the test failed"
