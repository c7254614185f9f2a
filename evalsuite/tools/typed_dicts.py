"""`typing.TypedDict` as pydantic takes it: before Python 3.12 it wants that of typing_extensions."""

from __future__ import annotations

import types
import typing
from functools import reduce
from operator import or_
from typing import Annotated, Any, Union

import typing_extensions


def portable(hint: Any) -> Any:
    """A type with the TypedDicts in it replaced by equal ones of typing_extensions; others stay as they are."""
    if typing.is_typeddict(hint):
        return _replaced(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is None or not any(map(_holds, inner)):
        return hint
    if origin is Annotated:
        return Annotated[(portable(inner[0]), *inner[1:])]
    changed = tuple(map(portable, inner))
    if origin in (Union, types.UnionType):
        return reduce(or_, changed)
    return origin[changed]


def _holds(hint: Any) -> bool:
    return typing.is_typeddict(hint) or any(map(_holds, typing.get_args(hint)))


def _replaced(hint: Any) -> Any:
    required = hint.__required_keys__
    fields = {
        name: (typing_extensions.Required if name in required else typing_extensions.NotRequired)[
            portable(kind)
        ]
        for name, kind in typing.get_type_hints(hint, include_extras=False).items()
    }
    return typing_extensions.TypedDict(hint.__name__, fields)  # type: ignore[operator, unused-ignore]
