"""The straightforward implementation of the released definition, and markup at random."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

PLAIN = Path(__file__).parents[4] / "perf" / "h_score_plain.py"


@pytest.fixture(scope="session")
def plain() -> ModuleType:
    """`perf/h_score_plain.py`, which shares nothing with the package."""
    specification = importlib.util.spec_from_file_location("h_score_plain", PLAIN)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
