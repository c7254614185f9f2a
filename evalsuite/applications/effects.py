"""An application's own effects, such as sent mails: replays and resumed runs do not repeat them."""

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ParamSpec, TypeVar, cast

from evalsuite.core.errors import SolverError
from evalsuite.core.threads import is_async
from evalsuite.gateway.handle import CASE_EFFECTS
from evalsuite.gateway.loop import await_on_loop, is_current_loop

P = ParamSpec("P")
T = TypeVar("T")


def effect(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate an application's function, so that replays and resumed runs do not call it again.

    In a replayed or resumed case, the function is not executed, and its caller gets the stored result. If the run ended
    during a call, the resumed run repeats this call; nested calls of decorated functions return their stored results.
    Outside of a case's solver, the decorated function runs as if undecorated. Calls are matched by the order of their
    start, so parallel calls must start in a fixed order. A call that raises an exception is not stored, but repeated.

    Args:
        function: a plain or async function whose arguments and result are JSON data; tuples become lists.

    Raises:
        SolverError: an argument or the result is not JSON data, or a plain function would block the event loop.
        ReplayMiss: a replay calls the function with other arguments or in another order than the run.
        RunError: the journal cannot be used.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    signature = inspect.signature(function)

    def convert_arguments_to_json(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        return _require_json_data({key: value for key, value in bound.items() if key != "self"}, f"{name}: an argument")

    @functools.wraps(function)
    async def call_async_function_once(*args: Any, **kwargs: Any) -> Any:
        found = CASE_EFFECTS.get()
        work = cast("Callable[..., Coroutine[Any, Any, Any]]", function)
        if found is None or not found[0].stores_calls:
            return await work(*args, **kwargs)
        effects, loop = found
        place, kept = await await_on_loop(effects.begin_tool_call(name, convert_arguments_to_json(args, kwargs)), loop)
        if place is None:
            return kept["returned"]
        with effects.collect_model_calls(place, loop) as calls:
            result = _require_json_data(await work(*args, **kwargs), f"{name}: its result")
        await await_on_loop(effects.end_tool_call(place, calls, {"returned": result}), loop)
        return result

    @functools.wraps(function)
    def call_function_once(*args: Any, **kwargs: Any) -> Any:
        found = CASE_EFFECTS.get()
        if found is None or not found[0].stores_calls:
            return function(*args, **kwargs)
        effects, loop = found
        if is_current_loop(loop):
            raise SolverError(
                f"{name}: this plain function with @effect was called in an async solver, where waiting for the "
                "journal would stop all cases: make it async, or call it with asyncio.to_thread"
            )
        begun = effects.begin_tool_call(name, convert_arguments_to_json(args, kwargs))
        place, kept = asyncio.run_coroutine_threadsafe(begun, loop).result()
        if place is None:
            return kept["returned"]
        with effects.collect_model_calls(place, loop) as calls:
            result = _require_json_data(function(*args, **kwargs), f"{name}: its result")
        asyncio.run_coroutine_threadsafe(effects.end_tool_call(place, calls, {"returned": result}), loop).result()
        return result

    return cast("Callable[P, T]", call_async_function_once if is_async(function) else call_function_once)


def _require_json_data(value: Any, label: str) -> Any:
    """Return the data as JSON would read it back (tuples become lists); raise SolverError for other data."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SolverError(
            f"{label} is not JSON data ({error}); a function with @effect takes and returns plain data, because the "
            "run's journal stores both"
        ) from error
