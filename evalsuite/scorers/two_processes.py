"""Code for two processes in the sandbox: one runs the answer, the other runs the tests without seeing it.

This file imports only the standard library, because the scorer sends it as source text. In the tests' process, a proxy
stands for each function, class and object of the answer. A proxy sends requests to the answer's process through the
scorer; the check's thread waits for each result. Plain values are copied between the processes; other objects of the
answer stay in the answer's process. Expected values never leave the tests' process, so this process makes all
comparisons. Two objects of the answer are equal if their attributes are equal.
"""

import asyncio
import builtins
import collections
import collections.abc
import contextlib
import copy
import datetime as dt
import decimal
import enum
import importlib
import io
import itertools
import json
import operator
import os
import queue
import sys
import threading
import types
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

MOST_ITEMS = 10_000  # Maximum number of items that are taken from a generator.
SCALARS: dict[type, Callable[[Any], Any]] = {int: int.__int__, float: float.__float__, str: str.__str__}
PLAIN_BASES = SCALARS | {kind: kind for kind in (list, dict, set, tuple, collections.deque, bytearray)}
REFERRED: set[type] = set()
"""Classes whose objects stay in the answer's process, although they extend a plain type: they have own methods."""
FACTORIES: dict[Any, Any] = {kind.__name__: kind for kind in (int, float, str, list, dict, set)}


def _list_keys_and_values(mapping: Any) -> list[Any]:
    return [part for pair in mapping.items() for part in pair]


def _make_mapping(keys_and_values: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys_and_values[::2], keys_and_values[1::2], strict=True))


async def _make_coroutine(result: Any) -> Any:
    return result


def _split_pandas_table(table: Any) -> list[Any]:
    """Split a DataFrame or Series into its index and its columns; each column has a name, a dtype and values."""
    columns = [(table.name, table)] if table.ndim == 1 else table.items()
    parts = [
        [name, str(column.dtype), [None if type(cell).__name__ in {"NaTType", "NAType"} else cell for cell in column]]
        for name, column in columns
    ]
    return [table.ndim, list(table.index.names), table.index.tolist(), parts]


def _rebuild_pandas_table(parts: list[Any]) -> Any:
    pandas = importlib.import_module("pandas")
    dimensions, names, labels, columns = parts
    index = (pandas.MultiIndex.from_tuples(labels) if len(names) > 1 else pandas.Index(labels)).set_names(names)
    series = [pandas.Series(values, index, dtype, name) for name, dtype, values in columns]
    table = series[0] if dimensions == 1 else pandas.DataFrame(dict(enumerate(series)), index)
    # Refuse cells that a dtype made of plain ones: the tests could not pass them on, and would run beside the answer.
    encode_value(_split_pandas_table(table))
    return table if dimensions == 1 else table.set_axis([each.name for each in series], axis=1)


# For each kind of value: its types, a function that splits a value into parts, and a function that rebuilds it.
KINDS: dict[str, tuple[Any, Callable[[Any], list[Any]], Callable[[list[Any]], Any]]] = {
    "Counter": (collections.Counter, _list_keys_and_values, lambda parts: collections.Counter(_make_mapping(parts))),
    "OrderedDict": (OrderedDict, _list_keys_and_values, lambda parts: OrderedDict(_make_mapping(parts))),
    "defaultdict": (
        collections.defaultdict,
        lambda value: [getattr(value.default_factory, "__name__", None), *_list_keys_and_values(value)],
        lambda parts: collections.defaultdict(FACTORIES.get(parts[0]), _make_mapping(parts[1:])),
    ),
    "dict": (dict, _list_keys_and_values, _make_mapping),
    "namedtuple": (
        (),
        lambda value: [type(value).__name__, list(value._fields), *value],
        lambda parts: collections.namedtuple(parts[0], parts[1])(*parts[2:]),  # noqa: PYI024 - read from data
    ),
    "tuple": (tuple, list, tuple),
    "set": (set, list, set),
    "frozenset": (frozenset, list, frozenset),
    "deque": (collections.deque, list, collections.deque),
    "keys": (type({}.keys()), list, lambda parts: dict.fromkeys(parts).keys()),
    "range": (range, lambda value: [value.start, value.stop, value.step], lambda parts: range(*parts)),
    "bytes": (bytes, lambda value: [value.hex()], lambda parts: bytes.fromhex(*parts)),
    "bytearray": (bytearray, lambda value: [value.hex()], lambda parts: bytearray.fromhex(*parts)),
    "datetime": (dt.datetime, lambda value: [value.isoformat()], lambda parts: dt.datetime.fromisoformat(*parts)),
    "date": (dt.date, lambda value: [value.isoformat()], lambda parts: dt.date.fromisoformat(*parts)),
    "time": (dt.time, lambda value: [value.isoformat()], lambda parts: dt.time.fromisoformat(*parts)),
    "timedelta": (
        dt.timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: dt.timedelta(*parts),
    ),
    "complex": (complex, lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    "Decimal": (decimal.Decimal, lambda value: [str(value)], lambda parts: decimal.Decimal(*parts)),
    "Fraction": (Fraction, lambda value: [value.numerator, value.denominator], lambda parts: Fraction(*parts)),
    "coroutine": (types.CoroutineType, lambda value: [asyncio.run(value)], lambda parts: _make_coroutine(*parts)),
    "table": ((), _split_pandas_table, _rebuild_pandas_table),
    "iterator": (
        (collections.abc.Iterator, type({}.values()), type({}.items())),
        lambda value: list(itertools.islice(value, MOST_ITEMS)),
        iter,
    ),
}


class NotPlainError(TypeError):
    """The value cannot be passed to the other process."""


def encode_value(value: Any, make_reference: Callable[[Any], Any] | None = None) -> Any:
    """Convert a value to JSON data; `make_reference` encodes objects that are not plain data (None refuses them)."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in REFERRED and make_reference is not None:
        return {"type": "object", "value": make_reference(value)}
    if isinstance(value, list):
        return [encode_value(item, make_reference) for item in value]
    kind = _find_value_kind(value)
    if kind is not None:
        return {"type": kind, "value": [encode_value(part, make_reference) for part in KINDS[kind][1](value)]}
    return _encode_value_without_kind(value, make_reference)


def _find_value_kind(value: Any) -> str | None:
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        return "namedtuple"
    if isinstance(value, io.IOBase):  # Do not treat a file as an iterable, because iterating would read it to its end.
        return None
    if _is_pandas_table(value):
        return "table"
    return next((name for name, (types_of_kind, _, _) in KINDS.items() if isinstance(value, types_of_kind)), None)


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _is_pandas_table(value: Any) -> bool:
    return type(value).__module__.startswith("pandas") and type(value).__name__ in {"DataFrame", "Series"}


def _encode_value_without_kind(value: Any, make_reference: Callable[[Any], Any] | None) -> Any:
    """Convert a value that `KINDS` does not list to JSON data: a proxy, an array, or an object by its reference."""
    if isinstance(value, Remote):
        identity = _read_own_attribute(value, "identity")
        return {"type": "object", "value": identity if isinstance(identity, str) else [identity]}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        listed = value.tolist()
        if not isinstance(listed, list):
            return encode_value(listed)
        form = [str(value.dtype), list(value.shape)] if value.dtype.kind in "biufcmMSU" else []
        return {"type": "array", "value": [encode_value(listed), *form]}
    # Do not call `str(value)`: for a member of an enumeration, for example, it returns the name instead of the value.
    copy_base = next((copies for base, copies in SCALARS.items() if isinstance(value, base)), None)
    if copy_base is not None:
        return copy_base(value)
    if make_reference is not None:
        return {"type": "object", "value": make_reference(value)}
    # Do not pass exceptions to the answer, because they would give it access to this process.
    if isinstance(value, BaseException):
        raise TypeError("an exception cannot be passed to the answer")
    raise NotPlainError(f"a value of the type {type(value).__name__} is not plain data")


def decode_value(data: Any, find: Callable[[Any], Any] | None = None) -> Any:
    """Convert JSON data back to a value; `find` returns the object to which a reference refers."""
    if not isinstance(data, dict):
        return [decode_value(item, find) for item in data] if isinstance(data, list) else data
    kind, value = data["type"], data["value"]
    if kind == "object" and find is not None:
        return find(value)
    parts = [decode_value(part, find) for part in value]
    return _rebuild_array(*parts) if kind == "array" else KINDS[kind][2](parts)


def _rebuild_array(items: list[Any], dtype: str | None = None, shape: list[int] | None = None) -> Any:
    array = importlib.import_module("numpy").array(items, dtype)
    return array if shape is None else array.reshape(shape)


def _send_message(token: str, message: Any) -> None:
    with contextlib.suppress(AttributeError, ValueError):  # The answer may have removed or closed its output.
        sys.stdout.flush()
    data = f"\n{token}{json.dumps(message)}".encode()
    while data:
        data = data[os.write(1, data) :]


def _get_comparable_state(value: Any) -> list[Any] | None:
    """Return what `==` compares: a class's name and an object's attributes or, for plain data, None and the value.

    Return None for an object that equals only itself.
    """
    kind = type(value)
    plain = next((copies for base, copies in PLAIN_BASES.items() if isinstance(value, base)), None)
    if plain is not None:
        return [None, plain(value)]
    slots = [slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ()) if hasattr(value, slot)]
    state = {**getattr(value, "__dict__", {}), **{slot: getattr(value, slot) for slot in slots}}
    compares = any("__eq__" in vars(base) for base in kind.__mro__[:-1])
    return [kind.__name__, state] if state and compares else None


BINARY = ["add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"]
ARITHMETIC = [*BINARY, "neg", "invert"]
OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, *args, **named: function(*args, **named),
    "state": _get_comparable_state,
    "iter": lambda value: list(itertools.islice(value, MOST_ITEMS)),
    "getattr": getattr,
    "setattr": setattr,
    **{function.__name__: function for function in (len, str, repr, bool, abs, int, float, round, format)},
    **{function.__name__: function for function in (copy.copy, copy.deepcopy)},
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "delitem", "contains")},
    **{name: getattr(operator, f"__{name}__") for name in ("lt", "le", "gt", "ge", *ARITHMETIC)},
}
"""Operations that the tests may request on an object of the answer."""


class AnswerProcess:
    """The answer's process: it holds the answer's module, and the objects of the answer to which the tests refer."""

    def __init__(self, code: str) -> None:
        module = types.ModuleType("answer")
        sys.modules["answer"] = module
        self.names = vars(module)
        self.objects: list[Any] = []
        exec(compile(code, "<program answer>", "exec", dont_inherit=True), self.names)  # noqa: S102 - in the sandbox

    def send_error_classes(self, token: str, names: list[str]) -> None:
        """Send which of these names are exception classes of the program, with the names of their bases."""
        kinds = {name: self.names.get(name) for name in names}
        classes = {name: kind for name, kind in kinds.items() if isinstance(kind, type)}
        REFERRED.update(kind for kind in classes.values() if _has_own_methods(kind))
        errors = {name: kind for name, kind in classes.items() if issubclass(kind, BaseException)}
        _send_message(token, {name: _list_class_and_base_names(kind) for name, kind in errors.items()})

    def perform_request(self, token: str, request: str) -> None:
        """Execute a request of the tests; send the result and the possibly changed arguments, or the exception."""
        operation, args, named = json.loads(request)
        message: Any
        try:
            positional, keywords = decode_value(args, self._find_object), decode_value(named, self._find_object)
            result = encode_value(OPERATIONS[operation](*positional, **keywords), self._make_reference)
            given = [*positional, *keywords.values()]
            mutable = [
                value if isinstance(value, MUTABLE) or _is_pandas_table(value) or _is_array(value) else None
                for value in given
            ]
            message = ["result", result, encode_value(mutable, self._make_reference)]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the answer may raise anything
            parts = [list(error.args), vars(error)]
            kind, text = type(error), str(error)[:500]
            bases, encoded = _list_class_and_base_names(kind), encode_value(parts, self._make_reference)
            message = ["raised", bases, encoded, text, kind.__module__]
        _send_message(token, message)

    def _find_object(self, reference: Any) -> Any:
        if isinstance(reference, list):
            return self.objects[reference[0]]
        if reference not in self.names:
            raise NameError(f"name {reference!r} is not defined")
        return self.names[reference]

    def _make_reference(self, value: Any) -> list[Any]:
        """Store an object of the answer; return its index and the names of its class and bases."""
        place = next((place for place, known in enumerate(self.objects) if known is value), len(self.objects))
        self.objects[place:] = self.objects[place:] or [value]
        return [place, _list_class_and_base_names(type(value))]


# Methods through which the answer's object could learn the expected value, or decide a test's result.
DECIDING_METHODS = (
    {name for kind in (str, set, float) for name in dir(kind) if name.startswith(("is", "starts", "ends"))}
    | {"difference", "symmetric_difference", "intersection"}
    | {"all", "any", "equals", "isin", "eq", "ne", "compare"}
)
MOST_PARTS = 1000
MUTABLE = (list, dict, set, collections.deque, bytearray)


def _has_own_methods(kind: type) -> bool:
    """Tell whether a class adds methods to a plain type; a plain copy of its objects would lack these methods."""
    own = [vars(base) for base in kind.__mro__ if base.__module__ == "answer"]
    names = [name for each in own for name, part in each.items() if isinstance(part, types.FunctionType | property)]
    is_extended = issubclass(kind, (*MUTABLE, tuple, str)) and any(not name.startswith("_") for name in names)
    return is_extended or issubclass(kind, enum.Enum)


def _list_class_and_base_names(kind: type) -> list[str]:
    return [base.__name__ for base in kind.__mro__]


class Remote:
    """Proxy that the tests' process uses for a function, class or object in the answer's process."""

    # `__is_own`: whether the tests made the object, by calling its class or by arithmetic with such an object.
    __slots__ = ("__bases", "__identity", "__is_own", "__may_call", "__process")

    def __init__(
        self, process: "CheckProcess", identity: str | int, bases: list[str], *, may_call: bool, is_own: bool = False
    ) -> None:
        values = {"process": process, "identity": identity, "bases": bases, "may_call": may_call, "is_own": is_own}
        for name, value in values.items():
            object.__setattr__(self, f"_Remote__{name}", value)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not self.__may_call:
            raise TypeError("a method that plain values have is called only if the tests name the object's class")
        return self.__process.request_operation("call", [self, *args], named, made_class=self.__identity)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        is_named = isinstance(self.__identity, str) or self.__process.is_class_named_by_tests(self.__bases)
        may_call = is_named or name not in DECIDING_METHODS
        return self.__process.request_operation("getattr", [self, name], {}, may_call=may_call)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__process.request_operation("setattr", [self, name, value], {})

    def __iter__(self) -> Any:
        return iter(self.__process.request_operation("iter", [self], {}))

    def __contains__(self, item: Any) -> bool:
        if not self.__is_own:  # Do not show the item to the answer: it may be the expected value, as in `3 in f(1)`.
            return any(each is item or each == item for each in self)
        return bool(self.__process.request_operation("contains", [self, item], {}))

    def __instancecheck__(self, value: Any) -> bool:
        return self.__identity in (
            [type(value).__name__] if not isinstance(value, Remote) else _read_own_attribute(value, "bases")
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remote):
            state = self.__process.request_operation("state", [self], {})
            return state[1] == other if state is not None and state[0] is None else NotImplemented
        if self.__identity == other.__identity:
            return True
        states = [self.__process.request_operation("state", [value], {}) for value in (self, other)]
        return bool(states[0] is not None and states[0] == states[1])

    def __deepcopy__(self, memo: object) -> Any:
        return self.__process.request_operation("deepcopy", [self], {})

    def __hash__(self) -> int:
        # The hash does not depend on the object's index, because two equal objects may have different indexes.
        return hash(tuple(self.__bases))


def _read_own_attribute(remote: Remote, name: str) -> Any:
    # This is a function instead of a method, because the answer's object may have an attribute of the same name.
    return object.__getattribute__(remote, f"_Remote__{name}")


def _add_operator_to_remote(name: str, *, between_objects: bool, reflected: bool = False) -> None:
    """Add an operator's special method to `Remote`; it requests the operation from the answer's process."""

    def request_operation(self: Remote, *args: Any) -> Any:
        may_see = name in ARITHMETIC and _read_own_attribute(self, "is_own")
        if between_objects and not (isinstance(args[0], Remote) or may_see):
            # Do not show the operand to the answer: it may be the expected value, as in `abs(f(1) - 3) < 1e-6`.
            return NotImplemented
        operands = [*args, self] if reflected else [self, *args]
        made = _read_own_attribute(self, "bases")[0] if may_see else None
        return _read_own_attribute(self, "process").request_operation(name, operands, {}, made_class=made)

    setattr(Remote, f"__{'r' * reflected}{name}__", request_operation)


UNARY = ("len", "str", "repr", "bool", "abs", "int", "float", "round", "format", "neg", "invert", "copy")
for _name in (*UNARY, "getitem", "setitem", "delitem"):
    _add_operator_to_remote(_name, between_objects=False)
for _name in ("lt", "le", "gt", "ge"):
    _add_operator_to_remote(_name, between_objects=True)
for _name in BINARY:
    _add_operator_to_remote(_name, between_objects=True)
    _add_operator_to_remote(_name, between_objects=True, reflected=True)


class CheckProcess:
    """The tests' process: one thread runs one check; the thread blocks until the result of each request arrives."""

    def __init__(self, token: str, before: str, check: str, names: list[str], errors: str) -> None:
        self._token = token
        self._requests: queue.Queue[Any] = queue.Queue()
        self._results: queue.Queue[str] = queue.Queue()
        self._classes = {name for name in names if name[:1].isupper()}
        self._errors: dict[str, type[BaseException]] = {}
        self._remotes: dict[Any, Remote] = {}
        self._got_object = False
        self._thread = threading.Thread(target=self._run_check, args=(before, check, names, errors), daemon=True)

    def start_check(self) -> None:
        self._thread.start()
        _send_message(self._token, self._requests.get())

    def resume_check(self, result: str) -> None:
        self._results.put(result)
        _send_message(self._token, self._requests.get())

    def is_class_named_by_tests(self, bases: list[str]) -> bool:
        return not self._classes.isdisjoint(bases)

    def request_operation(
        self, operation: str, args: list[Any], kwargs: dict[str, Any], *, may_call: bool = True, made_class: Any = None
    ) -> Any:
        """Request an operation from the answer's process; if it raises an exception there, raise it here.

        `made_class` names the object's class if the tests make the object by this operation.
        """
        self._requests.put(["call", json.dumps([operation, encode_value(args), encode_value(kwargs)])])
        outcome = json.loads(self._results.get())
        try:
            raised = self._rebuild_exception(*outcome[1:]) if outcome[0] == "raised" else None
            if raised is None:
                result = decode_value(
                    outcome[1], lambda data: self._make_remote(*data, may_call=may_call, made_class=made_class)
                )
                for argument, changed in zip([*args, *kwargs.values()], outcome[2], strict=True):
                    _update_argument(argument, decode_value(changed, lambda data: self._make_remote(*data)))
        except Exception as error:
            raise ValueError(f"the answer's result cannot be read: {error}") from error
        if raised is not None:
            raise raised
        return result

    def _run_check(self, code_before: str, check: str, answer_names: list[str], error_bases: str) -> None:
        names: dict[str, Any] = {"__name__": "tests"}
        try:
            for name, bases in sorted(json.loads(error_bases).items(), key=lambda item: len(item[1])):
                self._errors[name] = self._find_error_class(bases)
            # `code_before` may be a prompt with an incomplete function, which cannot be parsed.
            with contextlib.suppress(SyntaxError):
                exec(compile(code_before, "<program before>", "exec", dont_inherit=True), names)  # noqa: S102 - in the sandbox
            for name in answer_names:
                names[name] = self._errors.get(name) or Remote(self, name, [], may_call=True)
            exec(compile(check, "<program check>", "exec", dont_inherit=True), names)  # noqa: S102 - as above
            self._requests.put(["passed"])
        except NotPlainError as error:
            # If the answer returned an object, do not run the tests in the answer's process: the answer could
            # manipulate them.
            self._requests.put(["failed" if self._got_object else "not plain", str(error)])
        except BaseException as error:  # noqa: BLE001 - whatever the check raises
            # Limit the length, because the answer chooses the name of an exception's class.
            self._requests.put(["failed", f"{type(error).__name__}: {error}"[:500].rstrip(": ") or "an exception"])

    def _make_remote(self, place: int, bases: list[str], *, may_call: bool = True, made_class: Any = None) -> Remote:
        """Make a proxy for an object of the answer, or return its existing proxy."""
        self._got_object = self._got_object or not self.is_class_named_by_tests(bases)
        # Only an object that this operation made is the tests' own; one that a function returns is not.
        is_own = made_class == bases[0] and made_class in self._classes
        key = (int(place), may_call, is_own)
        return self._remotes.setdefault(key, Remote(self, int(place), list(bases), may_call=may_call, is_own=is_own))

    def _rebuild_exception(self, bases: list[str], encoded: Any, text: str, module: str) -> BaseException:
        args, attributes = decode_value(encoded, lambda data: self._make_remote(*data))
        kind = self._find_error_class(bases, module)
        error = kind.__new__(kind, *args)
        error.args = tuple(args)
        vars(error).update(attributes, **({} if kind.__module__ == "builtins" else {"_text": text}))
        if isinstance(error, SystemExit):
            error.code = args[0] if args else None
        return error

    def _find_error_class(self, bases: list[str], module: str = "builtins") -> type[BaseException]:
        """Find an exception class in the tests, among built-in classes or in a module; otherwise, make an empty one."""
        name, *others = bases
        if name in self._errors:
            return self._errors[name]
        for kind in (getattr(builtins, name, None), getattr(sys.modules.get(module), name, None)):
            if isinstance(kind, type) and issubclass(kind, Exception | SystemExit) and not _is_refused(kind):
                return kind
        base = self._find_error_class(others) if others and others[0] not in {"BaseException", "object"} else Exception
        # The text is the one that the exception had in the process of the answer.
        return type(name, (base,), {"__str__": lambda error: str(vars(error).get("_text", Exception.__str__(error)))})


NOT_RAISED = (AssertionError, UnicodeError, StopIteration, StopAsyncIteration)
"""Exceptions that must not be raised by name: they would end a check or its loops, or need further arguments."""


def _is_refused(error: type[BaseException]) -> bool:
    # Some exceptions of test frameworks skip or stop a test without failing it.
    return issubclass(error, NOT_RAISED) or error.__module__.partition(".")[0] in {"unittest", "_pytest"}


def _is_item_moved(old_item: Any, new_item: Any, before: list[Any], after: list[Any]) -> bool:
    """Tell whether items moved within a list: the new item was in the old list, or the old item is in the new list."""
    try:
        return bool(old_item != new_item and (new_item in before or old_item in after))
    except Exception:  # noqa: BLE001 - arrays in the items have no single truth value
        return True


def _update_argument(argument: Any, changed: Any) -> None:
    """Give a mutable argument the content that its copy in the answer's process has after the call."""
    if type(argument) is not type(changed):
        return
    if isinstance(argument, list) and len(argument) <= MOST_PARTS:
        # Update a nested list in place unless it moved, because the tests may hold another reference to it.
        for place, (part, item) in enumerate(zip(argument, changed, strict=False)):
            is_mutable = isinstance(part, MUTABLE) and type(part) is type(item)
            if is_mutable and not _is_item_moved(part, item, argument, changed):
                _update_argument(part, item)
                changed[place] = part
    if isinstance(argument, list | bytearray):
        argument[:] = changed
    elif isinstance(argument, dict | set | collections.deque):
        argument.clear()
        (argument.extend if isinstance(argument, collections.deque) else argument.update)(changed)
    elif _is_array(argument):
        argument[...] = changed
    elif _is_pandas_table(argument):
        argument._update_inplace(changed)  # noqa: SLF001 - as pandas does for `inplace=True`
