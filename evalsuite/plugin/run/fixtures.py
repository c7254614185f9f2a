"""The fixtures of a case: sample, transcript, scores, model, endpoint and judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalsuite.core.errors import Detached, ScoringError, SettingsError
from evalsuite.plugin.marks import FINDINGS, FIXTURE, case_of, running_items

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalsuite.applications.case_model import BlockingModel, CaseModel
    from evalsuite.applications.endpoint import Endpoint
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.plugin.collection.cases import Case
    from evalsuite.plugin.run.outcomes import Findings
    from evalsuite.plugin.session.process_state import Process


OF_A_CASE = ("sample", "transcript", "scores", "evalsuite_case")
"""The fixtures that only the test of a benchmark has."""


def process_of(config: pytest.Config) -> Process:
    """The plugin's state in this process."""
    from evalsuite.plugin.session.process_state import PROCESS

    return config.stash[PROCESS]


class RunningCase(NamedTuple):
    """A case with what is learnt about it while its item runs."""

    case: Case
    findings: Findings


# Neither this fixture nor those below take `request`: pytest makes it anew three times for a test that has one of them.
@pytest.fixture
def evalsuite_case() -> RunningCase:
    """The case of this item, solved and scored: every benchmark's test uses it."""
    from evalsuite.plugin.run.outcomes import findings_of

    item = running_items[-1]
    case = case_of(item)
    if case is None:
        names = getattr(item, "fixturenames", ())
        asked_for = next((name for name in names if name in OF_A_CASE), FIXTURE)
        raise SettingsError(
            f"the fixture {asked_for!r} belongs to a case: put @benchmark(...) on {item.name}"
        )
    findings = findings_of(item)
    if case.bound.solver is not None:
        solved = process_of(item.config).result(case)
        if isinstance(solved.error, Detached):
            pytest.skip(f"a later session will collect its answer: {solved.error}")
        findings.score(case, solved)
        # junit and other tools show them.
        item.user_properties.extend(findings.scores.items())
    return RunningCase(case, findings)


@pytest.fixture
def sample(evalsuite_case: RunningCase) -> Sample:
    """The sample of this case."""
    return evalsuite_case.case.sample


def _transcript_of(running: RunningCase) -> Transcript:
    solved = running.findings.solved
    if solved is None or solved.transcript is None:
        raise ScoringError(
            f"benchmark {running.case.bound.name} has no solver, so its cases have no transcript and no scores"
        )
    return solved.transcript


@pytest.fixture
def transcript(evalsuite_case: RunningCase) -> Transcript:
    """Everything that was said and run for this case, and the final answer."""
    return _transcript_of(evalsuite_case)


@pytest.fixture
def scores(evalsuite_case: RunningCase) -> Mapping[str, float]:
    """Metric name to value, each a finite number."""
    from evalsuite.engine.case_scores import CaseScores, NotedScore

    _transcript_of(evalsuite_case)
    findings = evalsuite_case.findings
    return CaseScores(
        {
            name: NotedScore(value, findings.notes[name]) if name in findings.notes else value
            for name, value in findings.scores.items()
        }
    )


def _lend(request: pytest.FixtureRequest, model: CaseModel) -> Iterator[BlockingModel]:
    from evalsuite.applications.case_model import BlockingModel

    yield BlockingModel(model, process_of(request.config).background.loop)
    model.close_endpoints()
    findings = request.node.stash.get(FINDINGS, None)
    if findings is not None:
        findings.used += model.meter.usage
        findings.asked = {**model.meter.fingerprints, **findings.asked}


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[BlockingModel]:
    """The model under test."""
    case = case_of(request.node)
    model = process_of(request.config).models.model(case.epoch if case else 1)
    yield from _lend(request, model)
    findings = request.node.stash.get(FINDINGS, None)
    if findings is not None and model.log.calls:
        findings.conversation = model.log.transcript()


@pytest.fixture
def endpoint(model: BlockingModel) -> Endpoint:
    """An address on loopback where the model under test is served to programs of any language."""
    return model.endpoint()


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Iterator[BlockingModel]:
    """The judge, if the run has one; else an error that says how to name one."""
    case = case_of(request.node)
    judge = process_of(request.config).models.judge(case.epoch if case else 1)
    if judge is None:
        raise SettingsError("this test asks a judge: name one with --judge-model")
    yield from _lend(request, judge)
    findings = request.node.stash.get(FINDINGS, None)
    if findings is not None:
        findings.judge_used += judge.meter.usage
