"""Prefetch: of the cases that this process will run, a window is kept in flight, being solved and judged.

Concurrency is therefore set by the gateway, not by the number of processes.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.applications.case_model import CaseModel
from evalsuite.core.errors import InternalError, JudgeError, ModelError, ScoringError
from evalsuite.engine.case_scores import checked_scores
from evalsuite.engine.scorer_kinds import check_signature, kinds_of, name_of, own_judge
from evalsuite.gateway.concealment import public_settings
from evalsuite.gateway.effects import Effects
from evalsuite.gateway.handle import Meter
from evalsuite.solvers.any_function import run_solver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from evalsuite.core.protocols import JudgedScorer
    from evalsuite.core.settings import Settings
    from evalsuite.core.types import Score, Transcript, Usage
    from evalsuite.engine.bound import Bound
    from evalsuite.gateway.asker import CaseAsker
    from evalsuite.gateway.loop import BackgroundLoop
    from evalsuite.plugin.collection.cases import Case

    Scoring = Callable[[], Awaitable[Mapping[str, float | Score]]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Solved:
    """What is known of a case before its test runs.

    Attributes:
        transcript: None where solving failed, or where there is no solver.
        judged: scores that took a call or other waiting, by name, as each scorer gave them.
        error: why solving or judging failed; None if it did not.
        logs: what judges said before they failed, since it was paid for.
        usage: what all its calls took.
        judge_usage: the judge's part of `usage`.
        simulator_usage: the part of `usage` of models that played users or tools.
        seconds: wall time, waiting for the limiter included.
        solving_seconds: the same until the answer stood.
        fingerprints: of the requests, as `Meter.fingerprints`.
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
    """Hands out models to cases.

    Args:
        asker: the gateway, or the wire to it.
        settings: name the model and the judge.
        model: the model's name, with the default filled in.
    """

    def __init__(self, asker: CaseAsker, settings: Settings, model: str) -> None:
        # Requests hold addresses without logins; the gateway knows those.
        self._asker, self._settings, self._model = asker, public_settings(settings), model
        self._overrides = self._settings.model_params

    def model(self, epoch: int = 1, meter: Meter | None = None, case: str = "") -> CaseModel:
        """The model under test; the tool calls of a named case are kept."""
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
        """The model that plays users: the one named for it, or the judge."""
        settings = self._settings
        if settings.user_model:
            return settings.user_model, settings.user_base_url
        return (settings.judge_model, settings.judge_base_url) if settings.judge_model else None

    def judge(self, epoch: int = 1, meter: Meter | None = None, own: str = "") -> CaseModel | None:
        """The run's judge; where it has none, the model that a scorer names as its own, if it does."""
        name, base_url = self._settings.judge_model or own, self._settings.judge_base_url
        overrides = self._settings.judge_params
        return CaseModel(self._asker, name, base_url, epoch, overrides, meter) if name else None


async def solve(case: Case, models: Models) -> Solved:
    """Solves a case and has it judged. Never raises: failures are part of the result."""
    started, meter = time.monotonic(), Meter()
    of_judge, transcript, scored = Meter(meter), None, NOTHING_AHEAD
    error: BaseException | None = None
    model = models.model(case.epoch, meter, case.id)
    try:
        if case.bound.solver is not None:
            transcript, error = await _attempted(partial(run_solver, case.bound.solver, case.sample, model))
        solving_seconds = time.monotonic() - started
        if transcript is not None:
            judge_of = partial(models.judge, case.epoch, of_judge)
            scored = await _score_ahead(case, transcript, judge_of, models.model(case.epoch, meter))
    finally:
        model.close_endpoints()
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
        scores: of each scorer that worked, whatever became of the others.
        error: the first failure, in the order of the scorers.
        logs: of judges that failed.
    """

    scores: Sequence[Mapping[str, float | Score]]
    error: BaseException | None
    logs: Mapping[str, Sequence[Mapping[str, Any]]]


NOTHING_AHEAD = ScoredAhead((), None, {})


async def _score_ahead(
    case: Case, transcript: Transcript, judge_of: Callable[[str], CaseModel | None], model: CaseModel
) -> ScoredAhead:
    """Runs the scorers that have to wait for something: for a judge, or for what an async function awaits."""
    _, asynchronous, judged, asking = kinds_of(case.bound)
    waiting: list[tuple[object, Scoring]] = [
        *((scorer, partial(_scored, scorer, case, transcript)) for scorer in asynchronous),
        *(
            (scorer, partial(_judged, scorer, case, transcript, judge_of(own_judge(scorer))))
            for scorer in judged
        ),
        *((scorer, partial(scorer.scored, case.sample, transcript, model)) for scorer in asking),
    ]
    if not waiting:
        return NOTHING_AHEAD
    results = await asyncio.gather(
        *(_attempted(partial(_checked, scoring, scorer)) for scorer, scoring in waiting)
    )
    errors = [error for _, error in results if error is not None]
    unread = [error for error in errors if isinstance(error, JudgeError) and error.log]
    return ScoredAhead(
        [scores for scores, _ in results if scores is not None],
        errors[0] if errors else None,
        {f"judge that failed{f' {at}' if at > 1 else ''}": error.log for at, error in enumerate(unread, 1)},
    )


async def _judged(
    scorer: JudgedScorer, case: Case, transcript: Transcript, judge: CaseModel | None
) -> Mapping[str, float | Score]:
    if judge is None:
        raise ScoringError(
            f"benchmark {case.bound.name} has a scorer that asks a judge: name one with --judge-model"
        )
    try:
        return await scorer.judged(case.sample, transcript, judge)
    except ModelError as error:
        # The same kind of error, so that its cause is counted with its like.
        if type(error).__module__ != ModelError.__module__:
            raise
        raise type(error)(f"the judge {judge.name}: {error}") from error


async def _scored(
    scorer: Callable[..., Awaitable[Mapping[str, float | Score]]], case: Case, transcript: Transcript
) -> Mapping[str, float | Score]:
    try:
        return await scorer(case.sample, transcript)
    except TypeError:
        check_signature(scorer)
        raise


async def _checked(scoring: Scoring, scorer: object) -> Mapping[str, float | Score]:
    return checked_scores(await scoring(), name_of(scorer))


async def _attempted(work: Callable[[], Awaitable[T]]) -> tuple[T | None, BaseException | None]:
    """The result, or the exception that it raised: whatever a case's code raises is the case's own error.

    The work is begun here, so that a task cancelled before its first step leaves no coroutine that was never awaited.
    """
    try:
        return await work(), None
    except asyncio.CancelledError:
        raise
    except (SystemExit, KeyboardInterrupt) as caught:
        # It would end the loop, and with it all cases in flight.
        return None, ScoringError(f"the code of this case raised {caught!r}; it should raise an exception")
    except Exception as caught:  # noqa: BLE001 - see above
        return None, caught


class Prefetcher:
    """Keeps a window of cases in flight.

    Args:
        background: where the work is done.
        models: for the cases.
        upcoming: the cases that this process will run after the present one, in order, each of them once;
            called in the loop's thread.
        window: cases in flight at most.
    """

    def __init__(
        self,
        background: BackgroundLoop,
        models: Models,
        upcoming: Callable[[int], Iterator[Case]],
        window: int,
    ) -> None:
        self._background, self._models, self._upcoming, self._window = background, models, upcoming, window
        self._tasks: set[asyncio.Task[None]] = set()
        # Results of the cases that were started; the main thread waits here and takes them away, so that most of the
        # time neither thread has to wake the other.
        self._results: dict[Case, Future[Solved]] = {}
        self._bounds: set[Bound] = set()
        self._in_flight = 0

    def begin(self, case: Case | None) -> None:
        """Starts the present case, and what the window has room for; to be called when an item begins."""
        under_way = case is None or case in self._results
        if not (under_way and self._in_flight >= self._window):
            # By the time the loop hears of it, a case that is under way may have been taken away, and would begin anew.
            self._background.soon(self._begin, None if under_way else case)

    def result(self, case: Case) -> Solved:
        """Waits for a case's result, starting it if need be."""
        self._background.refuse_in_child()
        future = self._results.get(case) or self._background.run(self._started(case))
        try:
            return future.result()
        finally:
            # Kept until now; its transcript is let go with it.
            self._results.pop(case, None)

    def _begin(self, case: Case | None) -> None:
        if case is not None and case not in self._results:
            self._start(case)
        self._refill()

    async def _started(self, case: Case) -> Future[Solved]:
        return self._results.get(case) or self._start(case)

    def _refill(self) -> None:
        # Results that wait for their test are bounded, too: a slow test must not make all others pile up.
        coming = self._upcoming(4 * self._window)
        while self._in_flight < self._window and (case := next(coming, None)) is not None:
            if case not in self._results:
                self._start(case)

    def _start(self, case: Case) -> Future[Solved]:
        future: Future[Solved] = Future()
        self._results[case] = future
        self._bounds.add(case.bound)
        self._in_flight += 1
        task = asyncio.get_running_loop().create_task(self._solve(case, future))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return future

    async def _solve(self, case: Case, future: Future[Solved]) -> None:
        try:
            solved = await solve(case, self._models)
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whoever waits for the result gets it
            # Whatever a solver or scorer raises is part of the result.
            failed = InternalError(f"evalsuite failed on {case.id}: {type(error).__name__}: {error}")
            failed.__cause__ = error
            future.set_exception(failed)
        except BaseException as error:  # noqa: BLE001 - as above; SystemExit and its like keep their meaning
            future.set_exception(error)
        else:
            future.set_result(solved)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._in_flight -= 1
        self._refill()

    async def aclose(self) -> None:
        """Cancels what is in flight, and has solvers and scorers release what they hold."""
        self._upcoming = lambda _: iter(())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for bound in self._bounds:
            for holder in (bound.solver, *bound.scorers):
                close = getattr(holder, "aclose", None)
                if close is not None:
                    await close()
