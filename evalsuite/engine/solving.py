"""Solves a case and runs the scorers that have to wait for something: a judge, or another model."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.applications.case_model import CaseModel
from evalsuite.core.errors import JudgeError, ModelError, RunError, ScoringError, SettingsError
from evalsuite.engine.scoring import A_SCORER, check_call, name_of, own_judge, read_scores
from evalsuite.gateway.concealment import public_settings
from evalsuite.gateway.handle import Effects, Meter
from evalsuite.solvers.any_function import run_solver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalsuite.core.protocols import JudgedScorer
    from evalsuite.core.settings import Settings
    from evalsuite.core.types import Score, Transcript, Usage
    from evalsuite.engine.cases import Case
    from evalsuite.gateway.handle import CaseAsker

    Scoring = Callable[[], Awaitable[Mapping[str, float | Score]]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Solved:
    """A case whose transcript is made and judged; its test comes next.

    Attributes:
        transcript: None if solving failed, or without a solver.
        judged: scores that took a call or other waiting, by name, as each scorer gave them.
        error: why solving or judging failed; None if it did not.
        logs: answers of judges that failed, kept because they were paid for.
        usage: tokens and cost of all its calls.
        judge_usage: the judge's part of `usage`.
        simulator_usage: the part of `usage` of models that played users or tools.
        seconds: wall time, waiting for the limiter included.
        solving_seconds: wall time until the answer was complete.
        fingerprints: hashes of the requests, as `Meter.fingerprints`.
    """

    transcript: Transcript | None
    judged: Sequence[Mapping[str, float | Score]]
    error: BaseException | None
    logs: Mapping[str, Sequence[Mapping[str, Any]]]
    usage: Usage
    judge_usage: Usage
    simulator_usage: Usage
    seconds: float
    solving_seconds: float
    fingerprints: Mapping[str, str]


class Models:
    """Gives cases the run's models.

    Args:
        asker: the gateway, or the connection to it.
        settings: they name the model and the judge.
        model: the model's name, with the default filled in.
    """

    def __init__(self, asker: CaseAsker, settings: Settings, model: str) -> None:
        # Requests hold addresses without logins; the gateway knows those.
        self._asker, self._settings, self._model = asker, public_settings(settings), model
        self._overrides = self._settings.model_params

    def meter(self, scope: str) -> Meter:
        """Return a meter for one case, or for another part of a session with its own draws."""
        return Meter(scope=scope, share_greedy=self._settings.share_greedy)

    async def note_cancelled(self, meter: Meter) -> None:
        """Store the requests that a case cancelled by itself; called after it is solved."""
        for request, seconds in meter.cancelled:
            with suppress(RunError):
                await self._asker.note_cancelled(request, seconds)

    def model(self, epoch: int = 1, meter: Meter | None = None, case: str = "") -> CaseModel:
        """Return the model under test; the tool calls of a named case are kept."""
        base_url = self._settings.model_base_url
        effects = Effects(self._asker, case, epoch) if case else None
        return CaseModel(
            self._asker,
            self._model,
            base_url,
            epoch,
            self._overrides,
            meter,
            effects=effects,
            user_model=self._user_model(),
        )

    def _user_model(self) -> tuple[str, str | None] | None:
        settings = self._settings
        if settings.user_model:
            return settings.user_model, settings.user_base_url
        return (settings.judge_model, settings.judge_base_url) if settings.judge_model else None

    def judge(self, epoch: int = 1, meter: Meter | None = None, own: str = "") -> CaseModel | None:
        """Return the run's judge; if it has none, the model that a scorer names as its own, if it does."""
        name, base_url = self._settings.judge_model or own, self._settings.judge_base_url
        overrides = self._settings.judge_params
        return CaseModel(self._asker, name, base_url, epoch, overrides, meter) if name else None

    def demand_judge(self, epoch: int = 1, meter: Meter | None = None) -> CaseModel:
        """Return the run's judge.

        Raises:
            SettingsError: the run has none.
        """
        judge = self.judge(epoch, meter)
        if judge is None:
            raise SettingsError("this test asks a judge: name one with --judge-model")
        return judge


async def solve(case: Case, models: Models) -> Solved:
    """Solve a case and have it judged. Never raises: failures are part of the result."""
    started, meter = time.monotonic(), models.meter(case.scope)
    of_judge, transcript, scored = Meter(meter), None, NOTHING_AHEAD
    error: BaseException | None = None
    model = models.model(case.epoch, meter, case.scope)
    try:
        if case.bound.solver is not None:
            transcript, error = await _attempt(partial(run_solver, case.bound.solver, case.sample, model))
        solving_seconds = time.monotonic() - started
        if transcript is not None:
            judge_of = partial(models.judge, case.epoch, of_judge)
            scored = await _score_ahead(case, transcript, judge_of, models.model(case.epoch, meter))
    finally:
        model.close_endpoints()
    await models.note_cancelled(meter)
    return Solved(
        transcript,
        scored.scores,
        error or scored.error,
        scored.logs,
        meter.usage,
        of_judge.usage,
        model.players.usage,
        time.monotonic() - started,
        solving_seconds,
        meter.fingerprints,
    )


@dataclass(frozen=True, slots=True)
class ScoredAhead:
    """The results of the scorers that have to wait for something.

    Attributes:
        scores: those of each scorer that succeeded.
        error: the first failure, in the order of the scorers.
        logs: answers of judges that failed.
    """

    scores: Sequence[Mapping[str, float | Score]]
    error: BaseException | None
    logs: Mapping[str, Sequence[Mapping[str, Any]]]


NOTHING_AHEAD = ScoredAhead((), None, {})


async def _score_ahead(
    case: Case, transcript: Transcript, judge_of: Callable[[str], CaseModel | None], model: CaseModel
) -> ScoredAhead:
    _, asynchronous, judged, asking = case.bound.sorted_scorers
    waiting: list[tuple[object, Scoring]] = [
        *((scorer, partial(_score, scorer, case, transcript)) for scorer in asynchronous),
        *(
            (scorer, partial(_judge, scorer, case, transcript, judge_of(own_judge(scorer))))
            for scorer in judged
        ),
        *((scorer, partial(scorer.scored, case.sample, transcript, model)) for scorer in asking),
    ]
    if not waiting:
        return NOTHING_AHEAD
    results = await asyncio.gather(
        *(_attempt(partial(_check, scoring, scorer)) for scorer, scoring in waiting)
    )
    errors = [error for _, error in results if error is not None]
    unread = [error for error in errors if isinstance(error, JudgeError) and error.log]
    return ScoredAhead(
        [scores for scores, _ in results if scores is not None],
        errors[0] if errors else None,
        {f"judge that failed{f' {at}' if at > 1 else ''}": error.log for at, error in enumerate(unread, 1)},
    )


async def _judge(
    scorer: JudgedScorer, case: Case, transcript: Transcript, judge: CaseModel | None
) -> Mapping[str, float | Score]:
    if judge is None:
        raise ScoringError(
            f"benchmark {case.bound.name} has a scorer that asks a judge: name one with --judge-model"
        )
    try:
        return await scorer.judged(case.sample, transcript, judge)
    except ModelError as error:
        # An error of the same class, so that equal causes are counted together.
        if type(error).__module__ != ModelError.__module__:
            raise
        raise type(error)(f"the judge {judge.name}: {error}") from error


async def _score(
    scorer: Callable[..., Awaitable[Mapping[str, float | Score]]], case: Case, transcript: Transcript
) -> Mapping[str, float | Score]:
    try:
        return await scorer(case.sample, transcript)
    except TypeError:
        check_call(scorer, A_SCORER, error=ScoringError)
        raise


async def _check(scoring: Scoring, scorer: object) -> Mapping[str, float | Score]:
    return read_scores(await scoring(), name_of(scorer))


async def _attempt(work: Callable[[], Awaitable[T]]) -> tuple[T | None, BaseException | None]:
    """Return the result or the exception, because whatever a case's code raises is the case's own error.

    The coroutine is created here, so that cancelling a task before its first step leaves none that was never awaited.
    """
    try:
        return await work(), None
    except asyncio.CancelledError:
        raise
    except (SystemExit, KeyboardInterrupt) as caught:
        # It would end the event loop, and with it all cases in flight.
        return None, ScoringError(f"the code of this case raised {caught!r}; it should raise an exception")
    except Exception as caught:  # noqa: BLE001 - see above
        return None, caught
