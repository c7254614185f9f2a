"""Any function as a solver: its arguments, and the meaning of its result."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalsuite.applications.case_model import BlockingModel
from evalsuite.core.errors import SolverError
from evalsuite.core.threads import RaisedInThread, in_thread, is_async
from evalsuite.core.types import Transcript

if TYPE_CHECKING:
    from evalsuite.applications.case_model import CaseModel
    from evalsuite.core.protocols import AnySolver
    from evalsuite.core.types import Sample

ANSWER = "answer"
"""The field of an application's result that is the answer."""


async def run_solver(solver: AnySolver, sample: Sample, model: CaseModel) -> Transcript:
    """Solves a sample with an async function, or with a plain one in a thread of its own.

    A plain function gets a model whose methods block. A model call that failed for good is the case's error even if the
    function handled it: an answer without the model measures nothing.

    Raises:
        SolverError: the function returned something that is not an answer, or called `sys.exit`.
        ModelError: a call failed for good.
        Exception: whatever the function raised.
    """
    try:
        result = await _result(solver, sample, model)
    except RaisedInThread as error:
        raise SolverError(f"the solver raised {error}; it should raise an exception") from error.__cause__
    except Exception as error:
        if model.log.failures and error is not model.log.failures[0]:
            raise model.log.failures[0] from error
        raise
    if model.log.failures:
        raise model.log.failures[0]
    return model.log.complete(read_result(result))


async def _result(solver: AnySolver, sample: Sample, model: CaseModel) -> Any:
    if is_async(solver):
        return await solver(sample, model)
    result = await in_thread(solver, sample, BlockingModel(model, asyncio.get_running_loop()))
    return await result if inspect.isawaitable(result) else result


def read_result(result: Any, answer: str = ANSWER) -> Transcript:
    """The transcript that a solver's result means.

    Text is the answer. Of a mapping, a dataclass or a pydantic model the field named by `answer` is the
    answer, and the other fields become facts.

    Raises:
        SolverError: it is none of these.
    """
    if isinstance(result, Transcript):
        return result
    if isinstance(result, str):
        return Transcript(result)
    fields = _fields(result)
    if fields is None or not isinstance(fields.get(answer), str):
        raise SolverError(
            f"the solver returned {result!r:.200} ({type(result).__name__}); it must return text, a Transcript, or "
            f"an object whose field {answer!r} is text"
        )
    return Transcript(fields[answer], facts={name: value for name, value in fields.items() if name != answer})


def _fields(result: Any) -> Mapping[str, Any] | None:
    if isinstance(result, Mapping):
        return result
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return dataclasses.asdict(result)
    # A pydantic model, whose package need not be there.
    dump = None if isinstance(result, type) else getattr(result, "model_dump", None)
    dumped = dump(mode="json") if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else None
