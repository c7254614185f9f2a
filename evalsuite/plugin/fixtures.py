"""The fixtures of a case: sample, transcript, scores, model, endpoint and judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.declarations import FIXTURE
from evalsuite.core.errors import BatchNotAwaited, SettingsError
from evalsuite.plugin.items import get_case, get_findings, running_items
from evalsuite.plugin.process import PROCESS

if TYPE_CHECKING:
    from evalsuite.applications.case_model import BlockingModel
    from evalsuite.applications.endpoint import Endpoint
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.engine.case_record import CaseFindings

CASE_FIXTURES = ("sample", "transcript", "scores", "evalsuite_case")  # Only a benchmark's test can use these fixtures.


# The fixtures of a case do not use `request`, because pytest would create it three times per test, which takes time.
@pytest.fixture
def evalsuite_case() -> CaseFindings:
    """The item's case, solved and scored; each test of a benchmark uses this fixture."""
    item = running_items[-1]
    case = get_case(item)
    if case is None:
        asked_for = next((name for name in getattr(item, "fixturenames", ()) if name in CASE_FIXTURES), FIXTURE)
        raise SettingsError(f"the fixture {asked_for!r} belongs to a case: put @benchmark(...) on {item.name}")
    findings = get_findings(item)
    if case.bound.solver is not None:
        solved = item.config.stash[PROCESS].wait_for_result(case)
        if isinstance(solved.error, BatchNotAwaited):
            pytest.skip(f"a later session will collect its answer: {solved.error}")
        findings.score_case(solved)
        # Store the scores as the item's properties, because JUnit reports and other tools show properties.
        item.user_properties.extend(findings.scores.items())
    return findings


@pytest.fixture
def sample(evalsuite_case: CaseFindings) -> Sample:
    """The sample of this case."""
    return evalsuite_case.case.sample


@pytest.fixture
def transcript(evalsuite_case: CaseFindings) -> Transcript:
    """The messages and program runs of this case, and the final answer."""
    return evalsuite_case.get_transcript()


@pytest.fixture
def scores(evalsuite_case: CaseFindings) -> Mapping[str, float]:
    """The scores of this case: a mapping of metric names to finite numbers."""
    return evalsuite_case.get_scores()


def _provide_model_or_judge(request: pytest.FixtureRequest, *, is_judge: bool) -> Iterator[BlockingModel]:
    from evalsuite.engine.case_record import provide_model

    process, item = request.config.stash[PROCESS], request.node
    findings = get_findings(item) if get_case(item) else None
    models, loop = process.models, process.background_loop.loop
    with provide_model(models, loop, item.nodeid, findings, is_judge=is_judge) as model:
        yield model


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[BlockingModel]:
    """The model under test."""
    yield from _provide_model_or_judge(request, is_judge=False)


@pytest.fixture
def endpoint(model: BlockingModel) -> Endpoint:
    """An address on loopback at which programs in any language can call the model under test."""
    return model.endpoint()


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Iterator[BlockingModel]:
    """The run's judge; without a judge, an error explains how to name one."""
    yield from _provide_model_or_judge(request, is_judge=True)
