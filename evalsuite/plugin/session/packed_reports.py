"""Reports of tests on their way from a worker: execnet writes each value in plain Python, JSON all of them in C.

Of what a worker does in a run of quick cases, a third was to write three reports a case of forty values each. So
what is plain in a report travels as one text, and is taken apart again before anybody sees it. Only reports that
come back the same are packed: JSON knows no tuples, so a tuple may stand nowhere but where pytest has one.
"""

from __future__ import annotations

import json
from itertools import chain
from operator import itemgetter
from typing import Any

from evalsuite.plugin.marks import RECORD

PACKED = "evalsuite_packed"
"""The key of a packed report's text; keys that others add, before or after, stay beside it."""

PLAIN = (
    "$report_type",
    "nodeid",
    "location",
    "keywords",
    "outcome",
    "longrepr",
    "when",
    "user_properties",
    "sections",
    "duration",
    "start",
    "stop",
)
"""The keys of every report of a test, in the order in which their values are packed."""

_TEXT_HOLDS = {*PLAIN, RECORD}

_values = itemgetter(*PLAIN)
_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

SCALARS = {str, int, float, bool, type(None)}
"""Types of values that JSON gives back as they were."""


def pack(data: dict[str, Any]) -> dict[str, Any]:
    """A report, as pytest has made it serialisable, with what is plain in it as one text; itself where JSON loses any.

    Args:
        data: what `pytest_report_to_serializable` returned.
    """
    try:
        values = _values(data)
        if not _come_back(values):
            return data
        text = _dumps((*values, data.get(RECORD)))
    except (KeyError, TypeError, ValueError):
        return data
    rest = {key: data[key] for key in data.keys() - _TEXT_HOLDS}
    return {PACKED: text, **rest}


def unpack(data: dict[str, Any]) -> None:
    """Puts a report that was packed back as it was, in place, so that every other plugin finds it so."""
    text = data.pop(PACKED, None)
    if text is None:
        return
    *values, record = json.loads(text)
    data.update(zip(PLAIN, values, strict=True))
    data["location"] = tuple(data["location"])
    for key in ("user_properties", "sections"):
        data[key] = [tuple(pair) for pair in data[key]]
    if record is not None:
        data[RECORD] = tuple(record)


def _come_back(values: tuple[Any, ...]) -> bool:
    """Whether the values of the `PLAIN` keys are of the types that they are given back in."""
    kind, nodeid, location, keywords, outcome, longrepr, when, properties, sections, *times = values
    return (
        kind == "TestReport"
        and longrepr is None
        and type(location) is tuple
        and type(keywords) is dict
        and type(properties) is type(sections) is list
        and all(type(pair) is tuple and len(pair) == 2 for pair in (*properties, *sections))
        and {str}.issuperset(map(type, keywords))
        and SCALARS.issuperset(map(type, (nodeid, *location, outcome, when, *times, *keywords.values())))
        and SCALARS.issuperset(map(type, chain(*properties, *sections)))
    )
