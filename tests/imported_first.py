"""What sessions within other processes find imported: all of evalsuite, and what it imports late.

A session within a test's own process puts sys.modules back as it was, so each would import the same modules anew;
those written in C do not survive that, and one that a test patches would not be the one that the session uses.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import Distribution
from typing import TYPE_CHECKING

from _pytest.config import default_plugins

import evalsuite

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

LIBRARIES = (
    *(f"_pytest.{plugin}" for plugin in default_plugins),
    "aiohttp",
    "bs4",
    "jsonschema",
    "faulthandler",
    "httpcore2",  # httpx2 imports it late and keeps its exceptions
    "Levenshtein",
    "lxml.etree",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "numpy",
    "openai",
    "pdb",
    "pytest",
    "sacrebleu",
    "scipy.special",
    "scipy.stats",
    "tabulate",
    "xdist.dsession",
    "xdist.remote",
)
# Programs, which run when they are imported or belong into a sandbox.
PROGRAMS = ("evalsuite.__main__", "evalsuite.sandbox.inside")


@cache
def import_all() -> None:
    """Imports them; a second time costs nothing."""
    for library in LIBRARIES:
        importlib.import_module(library)
    for module in pkgutil.walk_packages(evalsuite.__path__, "evalsuite."):
        if not module.name.startswith(PROGRAMS):
            importlib.import_module(module.name)
    _keep_entry_points()


def _keep_entry_points() -> None:
    """Reads each package's entry points once; pytest looks among all of them for each plugin that is named."""
    read = Distribution.entry_points.fget  # type: ignore[attr-defined]
    kept: dict[str, EntryPoints] = {}

    def entry_points(package: Distribution) -> EntryPoints:
        folder = str(package._path)  # type: ignore[attr-defined]
        if folder not in kept:
            kept[folder] = read(package)
        return kept[folder]

    Distribution.entry_points = property(entry_points)  # type: ignore[assignment]
