"""What sessions within other processes find imported: all of evalsuite, and what it imports late.

A session within a test's own process puts sys.modules back as it was, so each would import the same modules anew;
those written in C do not survive that, and one that a test patches would not be the one that the session uses.
"""

from __future__ import annotations

import importlib
import pkgutil

from _pytest.config import default_plugins

import evalsuite

LIBRARIES = (
    *(f"_pytest.{plugin}" for plugin in default_plugins),
    "aiohttp",
    "bs4",
    "jsonschema",
    "faulthandler",
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


def import_all() -> None:
    """Imports them; a second time costs nothing."""
    for library in LIBRARIES:
        importlib.import_module(library)
    for module in pkgutil.walk_packages(evalsuite.__path__, "evalsuite."):
        if not module.name.startswith(PROGRAMS):
            importlib.import_module(module.name)
