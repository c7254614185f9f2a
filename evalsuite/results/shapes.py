"""What the JSON of a run's files must look like, so that a damaged file is one message and never a wrong report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, get_args

from evalsuite.core.settings import OPTIONS, Settings
from evalsuite.core.types import Outcome

Shape = Callable[[Any], str]
"""What is wrong with a value, with the way to it before a colon; empty where nothing is."""


def _of(kind: type, words: str) -> Shape:
    return lambda value: "" if isinstance(value, kind) else words


def anything(_: Any) -> str:
    """Nothing can be wrong."""
    return ""


def number(value: Any, least: float = -math.inf, *, whole: bool = False) -> str:
    """A finite number of at least so much; true and false are none."""
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if right and math.isfinite(value) and value >= least:
        return ""
    return "no finite number" if least == -math.inf else f"no number of at least {least:g}"


def amount(value: Any) -> str:
    """A number that is not negative."""
    return number(value, 0)


def count(value: Any) -> str:
    """A whole number that is not negative."""
    return "" if type(value) is int and value >= 0 else "no whole number of at least 0"


text, truth = _of(str, "no text"), _of(bool, "neither true nor false")


def either(*values: Any) -> Shape:
    """One of a few values."""
    return lambda value: "" if isinstance(value, str) and value in values else f"none of {', '.join(values)}"


def maybe(shape: Shape) -> Shape:
    """Null, or of this shape."""
    return lambda value: "" if value is None else shape(value)


def each(shape: Shape) -> Shape:
    """An object whose values have this shape."""

    def check(value: Any) -> str:
        if not isinstance(value, Mapping):
            return "no object"
        for name, inner in value.items():
            if problem := shape(inner):
                return _at(name, problem)
        return ""

    return check


def many(shape: Shape) -> Shape:
    """A list of things of this shape."""

    def check(value: Any) -> str:
        if not isinstance(value, list):
            return "no list"
        for at, inner in enumerate(value):
            if problem := shape(inner):
                return _at(at, problem)
        return ""

    return check


def fields(**shapes: Shape) -> Shape:
    """An object with some of these fields; others, of another version, are passed over."""

    # Every record of a run is looked at, so this is a plain loop.
    def check(value: Any) -> str:
        if not isinstance(value, Mapping):
            return "no object"
        for name, shape in shapes.items():
            if name in value and (problem := shape(value[name])):
                return _at(name, problem)
        return ""

    return check


def full(shape: Shape, *names: str) -> Shape:
    """An object of this shape that has these fields."""
    return lambda value: shape(value) or next((f"no {name}" for name in names if name not in value), "")


def _at(name: object, problem: str) -> str:
    return f"{name}{'.' if ': ' in problem else ': '}{problem}"


def _span(value: Any) -> str:
    return (
        ""
        if isinstance(value, list) and len(value) == 2 and not any(map(number, value)) and value[0] < value[1]
        else "no range"
    )


USAGE = fields(calls=count, prompt_tokens=count, completion_tokens=count, cost=amount, estimated=count)
TRANSCRIPT = fields(
    answer=text,
    messages=many(each(anything)),
    reasoning=text,
    events=many(each(anything)),
    facts=each(anything),
)
RECORD = fields(
    case=text,
    benchmark=text,
    sample=text,
    epoch=count,
    model=text,
    outcome=either(*get_args(Outcome)),
    tags=each(text),
    source=text,
    declared=text,
    scores=each(number),
    error=maybe(text),
    cause=maybe(text),
    excused=maybe(text),
    notes=each(text),
    facts=each(anything),
    usage=USAGE,
    judge_usage=USAGE,
    simulator_usage=USAGE,
    seconds=amount,
    solving_seconds=amount,
    input=text,
    transcript=maybe(TRANSCRIPT),
    logs=each(many(each(anything))),
    fingerprints=each(text),
)


@cache
def _settings() -> Shape:
    default = Settings()
    shapes: dict[str, Shape] = {}
    for option in OPTIONS:
        shape = many(text) if option.repeat else truth if option.kind is bool else text
        if option.kind in {int, float}:
            shape = partial(number, least=option.least, whole=option.kind is int)
        shapes[option.name] = maybe(shape) if getattr(default, option.name) is None else shape
    return fields(**shapes, given=many(text))


def info(value: Any) -> str:
    """What is wrong with `run.json`."""
    gates = many(full(fields(gate=text, verdict=text), "gate", "verdict"))
    compared = many(full(fields(baseline=text, subject=text, verdict=text), "baseline", "subject", "verdict"))
    early = full(
        fields(cases=count, planned=count, gates=gates, compared=compared), "cases", "planned", "gates"
    )
    metric = full(fields(range=maybe(_span), better=either("higher", "lower")), "range", "better")
    shape = fields(
        started=text,
        command=text,
        model=maybe(text),
        settings=_settings(),
        selection=fields(args=many(text), keyword=text, markexpr=text),
        narrowed=truth,
        versions=each(text),
        seconds=amount,
        stopped=maybe(text),
        usage=maybe(full(USAGE, "calls", "prompt_tokens", "completion_tokens", "cost")),
        early=maybe(early),
        metrics=each(each(metric)),
        remarks=many(text),
        other_failures=count,
    )
    return shape(value)
