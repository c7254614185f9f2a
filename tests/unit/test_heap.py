"""What the garbage collector is kept from, and how often it looks."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING

import pytest

from evalsuite.core import heap

if TYPE_CHECKING:
    from collections.abc import Iterator


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.enable()


def test_pythons_usual_number_of_new_objects_is_raised_and_restored() -> None:
    gc.set_threshold(700, 10, 10)
    restore = heap.look_rarely()
    assert gc.get_threshold() == (heap.YOUNG, 10, 10)
    restore()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (50_000, 20, 20)])
def test_a_number_that_somebody_chose_stays(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    heap.look_rarely()
    assert gc.get_threshold() == chosen


@pytest.mark.parametrize("was_on", [True, False])
def test_an_import_is_undisturbed_and_the_collector_is_then_as_before(was_on: bool) -> None:  # noqa: FBT001 - a parameter
    (gc.enable if was_on else gc.disable)()
    kept = gc.get_freeze_count()
    with heap.importing():
        assert not gc.isenabled()
    assert gc.isenabled() is was_on
    assert gc.get_freeze_count() > kept


def test_garbage_goes_before_the_rest_is_set_aside() -> None:
    knot = Knot()
    gone = weakref.ref(knot)
    del knot
    heap.set_aside()
    assert gone() is None
    assert gc.get_count()[2] == 0


@pytest.mark.parametrize("given_back", [True, False])
def test_what_was_set_aside_is_no_leak_when_the_interpreter_ends(given_back: bool) -> None:  # noqa: FBT001 - a parameter
    pytest.importorskip("duckdb", reason="pip install duckdb")
    program = (
        "import duckdb\nfrom evalsuite.core import heap\nduckdb.connect().sql('SELECT 1').fetchall()\n"
        f"heap.set_aside()\n{'heap.give_back_at_exit()' if given_back else ''}\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ("leaked" in ended.stderr) is not given_back
