"""Runs in the sandbox, in two processes: the answer in one, its tests in another that never sees the answer's code.

This file is sent as source, so it imports the standard library alone. The tests call a stand-in for each function of
the answer. The stand-in encodes the arguments and stops its thread; the scorer takes them to the answer's process and
brings back the encoded result. Only plain values pass, so that nothing the answer makes can change how it is compared.
"""

from __future__ import annotations

import builtins
import collections
import collections.abc
import contextlib
import datetime as dt
import decimal
import fractions
import importlib
import itertools
import json
import os
import queue
import sys
import threading
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ITEMS = 10_000
"""Items of a generator that are taken for its values."""
# By name: the types, how a value becomes parts that are plain or of these types, and how it is made of them.
KINDS: dict[str, tuple[Any, Callable[[Any], list[Any]], Callable[[list[Any]], Any]]] = {
    "dict": (
        dict,
        lambda value: [part for pair in value.items() for part in pair],
        lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    ),
    "tuple": (tuple, list, tuple),
    "set": (set, list, set),
    "frozenset": (frozenset, list, frozenset),
    "deque": (collections.deque, list, collections.deque),
    "keys": (type({}.keys()), list, lambda parts: dict.fromkeys(parts).keys()),
    "range": (range, lambda value: [value.start, value.stop, value.step], lambda parts: range(*parts)),
    "bytes": ((bytes, bytearray), lambda value: [value.hex()], lambda parts: bytes.fromhex(*parts)),
    "datetime": (
        dt.datetime,
        lambda value: [value.isoformat()],
        lambda parts: dt.datetime.fromisoformat(*parts),
    ),
    "date": (dt.date, lambda value: [value.isoformat()], lambda parts: dt.date.fromisoformat(*parts)),
    "time": (dt.time, lambda value: [value.isoformat()], lambda parts: dt.time.fromisoformat(*parts)),
    "timedelta": (
        dt.timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: dt.timedelta(*parts),
    ),
    "complex": (complex, lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    "Decimal": (decimal.Decimal, lambda value: [str(value)], lambda parts: decimal.Decimal(*parts)),
    "Fraction": (
        fractions.Fraction,
        lambda value: [value.numerator, value.denominator],
        lambda parts: fractions.Fraction(*parts),
    ),
    "iterator": (
        (collections.abc.Iterator, type({}.values()), type({}.items())),
        lambda value: list(itertools.islice(value, MOST_ITEMS)),
        iter,
    ),
}


class NotPlainError(TypeError):
    """A value cannot pass from one process to the other."""


def encode(value: Any, functions: list[Any] | None = None) -> Any:
    """Convert a value to JSON.

    Args:
        value: JSON-like, one of `KINDS`, or a number or array of numpy.
        functions: receives functions, which pass as their place in this list; None refuses them.

    Raises:
        NotPlainError: the value is something else.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        listed = value.tolist()
        return {"type": "array", "value": [encode(listed)]} if isinstance(listed, list) else encode(listed)
    if isinstance(value, list):
        return [encode(item, functions) for item in value]
    for name, (types_of_kind, split, _) in KINDS.items():
        if isinstance(value, types_of_kind):
            return {"type": name, "value": [encode(part, functions) for part in split(value)]}
    for base in (int, float, str):
        if isinstance(value, base):
            return base(value)
    if callable(value) and functions is not None:
        functions.append(value)
        return {"type": "function", "value": len(functions) - 1}
    raise NotPlainError(f"a value of the type {type(value).__name__} is not plain data")


def decode(data: Any, stand_in: Any = None) -> Any:
    """Convert JSON back to the value; `stand_in` makes a function from its place."""
    if not isinstance(data, dict):
        return [decode(item, stand_in) for item in data] if isinstance(data, list) else data
    kind, value = data["type"], data["value"]
    if kind == "function" and stand_in is not None:
        return stand_in(int(value))
    parts = [decode(part, stand_in) for part in value]
    if kind == "array":
        return importlib.import_module("numpy").array(*parts)
    return KINDS[kind][2](parts)


def _send(token: str, message: Any) -> None:
    sys.stdout.flush()
    data = f"\n{token}{json.dumps(message)}".encode()
    while data:
        data = data[os.write(1, data) :]


class AnswerProcess:
    """The answer's process: its module, whose functions are called by name."""

    def __init__(self, code: str) -> None:
        module = types.ModuleType("answer")
        sys.modules["answer"] = module
        self.names = vars(module)
        self.functions: list[Any] = []
        exec(compile(code, "<program answer>", "exec", dont_inherit=True), self.names)  # noqa: S102 - in the sandbox

    def call(self, token: str, request: str) -> None:
        """Call a function and send its result, or what it raised, and the arguments as it left them."""
        target, args, named = json.loads(request)
        message: Any
        try:
            function = self.functions[target] if isinstance(target, int) else self._find(target)
            positional, keywords = decode(args), decode(named)
            result = encode(function(*positional, **keywords), self.functions)
            message = ["result", result, _encode_lists(positional)]
        except Exception as error:  # noqa: BLE001 - the answer may raise anything
            words = str(error.args[0] if len(error.args) == 1 else error)
            message = ["raised", type(error).__name__, words[:500]]
        _send(token, message)

    def _find(self, name: str) -> Any:
        if name not in self.names:
            raise NameError(f"name {name!r} is not defined")
        return self.names[name]


def _encode_lists(values: list[Any]) -> list[Any]:
    """Encode the arguments that a function may have changed."""
    left: list[Any] = []
    for value in values:
        try:
            left.append(encode(value) if isinstance(value, list | dict | set) else None)
        except NotPlainError:
            left.append(None)
    return left


class CheckProcess:
    """The tests' process: one check in a thread, which waits for the result of each call."""

    def __init__(self, token: str, before: str, check: str, functions: list[str]) -> None:
        self._token = token
        self._requests: queue.Queue[Any] = queue.Queue()
        self._results: queue.Queue[str] = queue.Queue()
        self._got_function = False
        self._thread = threading.Thread(target=self._run, args=(before, check, functions), daemon=True)

    def start(self) -> None:
        """Run the check up to its first call."""
        self._thread.start()
        _send(self._token, self._requests.get())

    def go_on(self, result: str) -> None:
        """Take the result of the last call, and run the check up to its next one."""
        self._results.put(result)
        _send(self._token, self._requests.get())

    def _run(self, before: str, check: str, functions: list[str]) -> None:
        names: dict[str, Any] = {"__name__": "tests"}
        try:
            with contextlib.suppress(
                SyntaxError
            ):  # the beginning of a function, which the answer goes on with
                exec(compile(before, "<program before>", "exec", dont_inherit=True), names)  # noqa: S102 - in the sandbox
            for name in functions:
                names[name] = self._stand_in(name)
            exec(compile(check, "<program check>", "exec", dont_inherit=True), names)  # noqa: S102 - as above
            self._requests.put(["passed"])
        except NotPlainError as error:
            # A function that the answer returned must not be a way to be tested in its own process.
            self._requests.put(["failed" if self._got_function else "not plain", str(error)])
        except BaseException as error:  # noqa: BLE001 - whatever the check raises
            self._requests.put(["failed", f"{type(error).__name__}: {error}"[:500].rstrip(": ")])

    def _stand_in(self, target: str | int) -> Any:
        self._got_function = self._got_function or isinstance(target, int)

        def call(*args: Any, **named: Any) -> Any:
            self._requests.put(["call", json.dumps([target, encode(list(args)), encode(named)])])
            outcome = json.loads(self._results.get())
            if outcome[0] == "raised":
                raise _make_error(str(outcome[1]), str(outcome[2]))
            try:
                result = decode(outcome[1], self._stand_in)
                for argument, left in zip(args, outcome[2], strict=True):
                    _take_over(argument, decode(left))
            except Exception as error:
                raise ValueError(f"the answer's result cannot be read: {error}") from error
            return result

        return call


def _take_over(argument: Any, left: Any) -> None:
    """Change an argument in place as the answer changed its copy."""
    if type(argument) is not type(left):
        return
    if isinstance(argument, list):
        argument[:] = left
    elif isinstance(argument, dict | set):
        argument.clear()
        argument.update(left)


def _make_error(name: str, message: str) -> Exception:
    """Make the built-in exception of that name; for any other, one that only bears it."""
    kind = getattr(builtins, name, None)
    if (
        isinstance(kind, type)
        and issubclass(kind, Exception)
        and not issubclass(kind, AssertionError | UnicodeError | StopIteration | StopAsyncIteration)
    ):
        return kind(message)
    other: type[Exception] = type(name if name.isidentifier() else "Exception", (Exception,), {})
    return other(message)
