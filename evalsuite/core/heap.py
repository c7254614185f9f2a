"""The garbage collector looks through all objects again and again; here it is kept from those that stay anyway.

Modules, pytest and all items stay until the session ends. To look through them took a twentieth of a quick run.
"""

from __future__ import annotations

import atexit
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

YOUNG = 10_000
"""New objects between two looks at them; Python's usual number is 700."""


def look_rarely() -> Callable[[], None]:
    """Lets the garbage collector run less often, unless somebody has set how often it runs.

    Returns:
        What makes it run as often as before.
    """
    usual = gc.get_threshold()
    if usual[0] in {700, 2000}:
        gc.set_threshold(YOUNG, *usual[1:])
    return lambda: gc.set_threshold(*usual)


@contextmanager
def importing() -> Iterator[None]:
    """Around the import of something large: nothing of it is garbage, and none of it is looked at later."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def set_aside() -> None:
    """Takes out the garbage, and keeps the collector from all that is left."""
    gc.collect()
    gc.freeze()


def give_back_at_exit() -> None:
    """Lets the interpreter, when it ends, free what was set aside.

    Extension modules made with nanobind, as that of duckdb, print what is left as leaks.
    """
    atexit.unregister(gc.unfreeze)
    atexit.register(gc.unfreeze)
