"""Solves several cases concurrently, and runs the scorers that have to wait for a judge or another model.

Each process solves and judges its next cases before their tests begin. The gateway's limits, not the number of
processes, determine how many calls run at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.applications.call_log import make_transcript
from evalsuite.applications.case_model import BlockingModel, CaseModel
from evalsuite.core.errors import InternalError, JudgeError, ModelError, ScoringError, SolverError, describe_error
from evalsuite.core.threads import RaisedInThread, call_maybe_async, is_async
from evalsuite.engine.scoring import SCORER_SIGNATURE, check_callable, convert_scores, get_callable_name, get_own_judge
from evalsuite.gateway.concealment import make_public_settings
from evalsuite.gateway.handle import CASE_EFFECTS, CaseCallProvider, CaseToolCalls, UsageMeter

if TYPE_CHECKING:
    from evalsuite.core.protocols import AnySolver, JudgedScorer
    from evalsuite.core.settings import Settings
    from evalsuite.core.types import Sample, Score, Transcript, Usage
    from evalsuite.engine.bound import BoundBenchmark
    from evalsuite.engine.cases import Case
    from evalsuite.gateway.loop import BackgroundLoop

    Scoring = Callable[[], Awaitable[Mapping[str, float | Score]]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SolvedCase:
    """The transcript and the judges' scores of a case, made before the case's test begins."""

    transcript: Transcript | None  # The transcript; None if solving failed or the benchmark has no solver.
    # Scores by name, one mapping per scorer that had to wait (for example for a judge).
    judged: Sequence[Mapping[str, float | Score]]
    error: BaseException | None  # The exception with which solving or judging failed; None if nothing failed.
    logs: Mapping[str, Sequence[Mapping[str, Any]]]  # Answers in failed judgements, kept because they were paid for.
    usage: Usage  # Tokens and cost of all calls of the case.
    judge_usage: Usage  # The part of `usage` for calls of judges.
    simulator_usage: Usage  # The part of `usage` for models that simulated users or tools.
    seconds: float  # Wall-clock time of solving and judging, including waits for the limiter.
    solving_seconds: float  # Seconds until the answer was complete, minus those for which calls waited for the limiter.
    fingerprints: Mapping[str, str]  # Hashes of the requests, as in `UsageMeter.fingerprints`.
    faults: Sequence[str] = ()  # The injected faults, in order.


class RunModels:
    """Gives cases access to the run's models."""

    def __init__(self, asker: CaseCallProvider, settings: Settings, model: str) -> None:
        # Remove logins from the addresses, because only the gateway needs the logins.
        self._asker, self._settings, self._model = asker, make_public_settings(settings), model
        self._overrides = self._settings.model_params

    def make_meter(self, scope: str) -> UsageMeter:
        """Return a meter of requests and usage for one case, or for another part of a session."""
        return UsageMeter(scope=scope, share_greedy=self._settings.share_greedy)

    def get_model(self, epoch: int = 1, meter: UsageMeter | None = None, case: str = "") -> CaseModel:
        """Return the model under test; if `case` names a case, its tool calls are stored in the journal."""
        effects, settings = CaseToolCalls(self._asker, case, epoch) if case else None, self._settings
        asked = self._asker, self._model, settings.model_base_url, epoch, self._overrides, meter
        # Without a user model, the judge plays the user.
        players = (settings.user_model, settings.user_base_url), (settings.judge_model, settings.judge_base_url)
        user_model = next(((name, base_url) for name, base_url in players if name), None)
        return CaseModel(*asked, effects=effects, user_model=user_model)

    def get_judge(self, epoch: int = 1, meter: UsageMeter | None = None, own_judge: str = "") -> CaseModel | None:
        """Return the run's judge; without one, return the scorer's own judge (`own_judge`), or None if it has none."""
        name, base_url = self._settings.judge_model or own_judge, self._settings.judge_base_url
        overrides = self._settings.judge_params
        return CaseModel(self._asker, name, base_url, epoch, overrides, meter) if name else None


async def solve_case(case: Case, models: RunModels) -> SolvedCase:
    """Solve and judge a case. Never raise an exception: a failure is part of the result."""
    started, meter = time.monotonic(), models.make_meter(case.storage_scope)
    of_judge, transcript = UsageMeter(meter), None
    error: BaseException | None = None
    results: Sequence[tuple[Mapping[str, float | Score] | None, BaseException | None]] = ()
    model = models.get_model(case.epoch, meter, case.storage_scope)
    model.faults = case.bound.faults
    try:
        if case.bound.solver is not None:
            transcript, error = await _catch_exception(partial(run_solver, case.bound.solver, case.sample, model))
        solving_seconds = time.monotonic() - started - meter.times.waited
        if transcript is not None:
            get_judge_by_name = partial(models.get_judge, case.epoch, of_judge)
            scorings = _list_waiting_scorings(case, transcript, get_judge_by_name, models.get_model(case.epoch, meter))
            results = await asyncio.gather(*map(_catch_exception, scorings))
    finally:
        model.close_endpoints()
    await model.finish()
    errors = [failure for _, failure in results if failure is not None]
    unread = [failure for failure in errors if isinstance(failure, JudgeError) and failure.log]
    return SolvedCase(
        transcript,
        [scores for scores, _ in results if scores is not None],
        error or next(iter(errors), None),
        {f"judge that failed{f' {at}' if at > 1 else ''}": failure.log for at, failure in enumerate(unread, 1)},
        meter.usage,
        of_judge.usage,
        model.players.usage,
        time.monotonic() - started,
        solving_seconds,
        meter.fingerprints,
        tuple(model.log.faults),
    )


async def run_solver(solver: AnySolver, sample: Sample, model: CaseModel) -> Transcript:
    """Solve a sample with an async function, or with a plain function in a separate thread.

    A plain (not async) function gets a model whose methods block until the answer is there. If a model call failed
    permanently, the case has this error even if the function caught it, because its answer is not the model's.
    """
    loop = asyncio.get_running_loop()
    token = CASE_EFFECTS.set((model.effects, loop))
    try:
        result = await call_maybe_async(solver, sample, model if is_async(solver) else BlockingModel(model, loop))
    except RaisedInThread as error:
        raise SolverError(f"the solver raised {error}; it should raise an exception") from error.__cause__
    except Exception as error:
        if model.log.failure is not None and error is not model.log.failure:
            raise model.log.failure from error
        raise
    finally:
        CASE_EFFECTS.reset(token)
    if model.log.failure is not None:
        raise model.log.failure
    return model.log.complete_transcript(make_transcript(result))


def _list_waiting_scorings(
    case: Case, transcript: Transcript, get_judge_by_name: Callable[[str], CaseModel | None], model: CaseModel
) -> list[Scoring]:
    """List the scorings that have to wait: for a judge, another model, or whatever an async scorer awaits."""
    _, asynchronous, judged, asking = case.bound.sorted_scorers
    waiting: list[tuple[object, Scoring]] = [
        *((scorer, partial(_call_async_scorer, scorer, case, transcript)) for scorer in asynchronous),
        *(
            (scorer, partial(_call_judged_scorer, scorer, case, transcript, get_judge_by_name(get_own_judge(scorer))))
            for scorer in judged
        ),
        *((scorer, partial(scorer.scored, case.sample, transcript, model)) for scorer in asking),
    ]
    return [partial(_await_named_scores, scoring, scorer) for scorer, scoring in waiting]


async def _call_judged_scorer(
    scorer: JudgedScorer, case: Case, transcript: Transcript, judge: CaseModel | None
) -> Mapping[str, float | Score]:
    if judge is None:
        raise ScoringError(f"benchmark {case.bound.name} has a scorer that asks a judge: name one with --judge-model")
    try:
        return await scorer.judged(case.sample, transcript, judge)
    except ModelError as error:
        # Keep the class of the error, because errors are counted by class.
        if type(error).__module__ != ModelError.__module__:
            raise
        raise type(error)(f"the judge {judge.name}: {error}") from error


async def _call_async_scorer(
    scorer: Callable[..., Awaitable[Mapping[str, float | Score]]], case: Case, transcript: Transcript
) -> Mapping[str, float | Score]:
    try:
        return await scorer(case.sample, transcript)
    except TypeError:
        check_callable(scorer, SCORER_SIGNATURE, error=ScoringError)
        raise


async def _await_named_scores(start_scoring: Scoring, scorer: object) -> Mapping[str, float | Score]:
    return convert_scores(await start_scoring(), get_callable_name(scorer))


async def _catch_exception(work: Callable[[], Awaitable[T]]) -> tuple[T | None, BaseException | None]:
    """Return the result or the exception, because any exception of a case's code is an error of this case only.

    Create the coroutine in this function, because a task that is cancelled before its first step would not await it.
    """
    try:
        return await work(), None
    except asyncio.CancelledError:
        raise
    except (SystemExit, KeyboardInterrupt) as caught:
        # Convert the exception, because the original would end the event loop and with it all cases in flight.
        return None, ScoringError(f"the code of this case raised {caught!r}; it should raise an exception")
    except Exception as caught:  # noqa: BLE001 - see above
        return None, caught


MOST_CASES_IN_BATCH = 50_000  # Maximum cases in flight with `--batch`: the maximum size of a batch.


def compute_window_size(settings: Settings, workers: int = 1) -> int:
    """Return how many cases a process keeps in flight: its share of the connections, doubled with several processes.

    Doubling the share keeps connections busy when another process falls behind.
    """
    if settings.batch:
        return MOST_CASES_IN_BATCH
    share = -(-settings.max_connections // workers)
    return min(settings.max_connections, 2 * share) if workers > 1 else share


class UpcomingCases:
    """Yields the cases that a process solves next, if the order of all its items is known.

    Args:
        cases: the case of each item, in the order in which the items run; None if there is nothing to solve.
    """

    def __init__(self, cases: Mapping[Any, Case | None]) -> None:
        self._cases = list(cases.values())
        self._positions = {item: position for position, item in enumerate(cases)}
        self._position = self._given = 0

    def move_to(self, item: object, nextitem: object = None) -> None:  # noqa: ARG002 - as `WorkerQueue` has it
        """Move to the item that runs now, unless it belongs to another session."""
        self._position = self._positions.get(item, self._position)

    def __call__(self, limit: int) -> Iterator[Case]:
        """Yield the cases among the next `limit` items, each case once."""
        self._given = max(self._given, self._position + 1)
        while self._given < min(self._position + 1 + limit, len(self._cases)):
            case = self._cases[self._given]
            self._given += 1
            if case is not None:
                yield case


class Prefetcher:
    """Solves the next cases while the current case is tested.

    Args:
        upcoming: function that yields the cases among the next items, each case once; its argument is the maximum
            number of items. The loop's thread calls it.
        window: maximum number of cases in flight.
    """

    def __init__(
        self, background: BackgroundLoop, models: RunModels, upcoming: Callable[[int], Iterator[Case]], window: int
    ) -> None:
        self._background, self._models, self._upcoming, self._window = background, models, upcoming, window
        self._tasks: set[asyncio.Task[None]] = set()
        # The main thread itself waits for these futures and removes them, without waking the loop's thread.
        self._results: dict[Case, Future[SolvedCase]] = {}
        self._bounds: set[BoundBenchmark] = set()

    def begin_case(self, case: Case | None) -> None:
        """Start the current case, and as many further cases as may be in flight; called when an item begins."""
        is_started = case is None or case in self._results
        if not (is_started and len(self._tasks) >= self._window):
            # Pass None for a started case, because the scheduled call would restart a case whose result was fetched.
            self._background.schedule_call(self._start_cases, None if is_started else case)

    def wait_for_result(self, case: Case) -> SolvedCase:
        """Wait for a case's result; start the case if it is not started yet."""
        self._background.raise_in_forked_child()
        future = self._results.get(case) or self._background.run(self._start_awaited_case(case))
        try:
            return future.result()
        finally:
            self._results.pop(case, None)

    async def _start_awaited_case(self, case: Case) -> Future[SolvedCase]:
        return self._start_case(case)

    def _start_cases(self, case: Case | None = None) -> None:
        """Start this case, then as many upcoming cases as may be in flight."""
        if case is not None:
            self._start_case(case)
        # Limit the look-ahead, because during a slow test, results of later cases would fill the memory.
        coming = self._upcoming(4 * self._window)
        while len(self._tasks) < self._window and (case := next(coming, None)) is not None:
            self._start_case(case)

    def _start_case(self, case: Case) -> Future[SolvedCase]:
        """Return the future of a case's result; start the case if it is not started yet."""
        if case in self._results:
            return self._results[case]
        future: Future[SolvedCase] = Future()
        self._results[case] = future
        self._bounds.add(case.bound)
        task = asyncio.get_running_loop().create_task(self._solve_case(case, future))
        self._tasks.add(task)
        task.add_done_callback(self._replace_finished_task)
        return future

    async def _solve_case(self, case: Case, future: Future[SolvedCase]) -> None:
        try:
            solved = await solve_case(case, self._models)
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whoever waits for the result gets it
            # An exception here is a bug of evalsuite, because exceptions of solvers and scorers are part of results.
            failed = InternalError(f"evalsuite failed on {case.id}: {describe_error(error)}")
            failed.__cause__ = error
            future.set_exception(failed)
        except BaseException as error:  # noqa: BLE001 - as above; SystemExit and its like keep their meaning
            future.set_exception(error)
        else:
            future.set_result(solved)

    def _replace_finished_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start_cases()

    async def aclose(self) -> None:
        """Cancel the cases in flight, and close solvers and scorers."""
        self._upcoming = lambda _: iter(())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for bound in self._bounds:
            for holder in (bound.solver, *bound.scorers):
                close = getattr(holder, "aclose", None)
                if close is not None:
                    await close()
