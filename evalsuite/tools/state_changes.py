"""Stores a world's final state, if it is large, as differences from the initial state, which a run stores only once."""

from __future__ import annotations

import base64
import copy
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

# A state with at least this many characters of JSON is large; smaller states are stored as a whole.
LARGE_STATE = 1 << 16
Change: TypeAlias = "Mapping[str, Any]"
"""One difference: its path `at`, and the values `from` and `to`. If an object gained or lost a key, one of the values
is absent. If a list changed its length, the items `from` became the items `to` at the position `index`."""


def list_changes(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """List the differences between two JSON values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() - after.keys():
            yield {"at": [*path, key], "from": before[key]}
        for key, value in after.items():
            if key in before:
                yield from list_changes(before[key], value, (*path, key))
            else:
                yield {"at": [*path, key], "to": value}
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) == len(after):
            for number, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from list_changes(old, new, (*path, number))
        else:
            # Leave out the equal items at the beginning and the end of both lists.
            shorter = min(len(before), len(after))
            first = next((n for n in range(shorter) if _are_different(before[n], after[n])), shorter)
            rest = shorter - first
            last = next((n for n in range(rest) if _are_different(before[-1 - n], after[-1 - n])), rest)
            old, new = before[first : len(before) - last], after[first : len(after) - last]
            yield {"at": [*path], "index": first, "from": old, "to": new}
    elif type(before) is not type(after) or before != after:
        yield {"at": [*path], "from": before, "to": after}


def _are_different(before: Any, after: Any) -> bool:
    return next(list_changes(before, after), None) is not None


def apply_changes(before: Any, changes: Sequence[Change]) -> Any:
    """Apply the changes to a value, and return the result."""
    root = {"": copy.deepcopy(before)}
    for change in changes:
        way: list[Any] = ["", *change["at"]]
        place: Any = root
        for step in way[:-1]:
            place = place[step]
        key = way[-1]
        if "index" in change:
            place[key][change["index"] : change["index"] + len(change["from"])] = change["to"]
        elif "to" in change:
            place[key] = change["to"]
        else:
            del place[key]
    return root[""]


def compress_state(state: Any) -> str:
    """Compress a state to Base64 text."""
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()


def decompress_state(packed: str) -> Any:
    """Reverse `compress_state`."""
    return json.loads(zlib.decompress(base64.b64decode(packed)).decode("utf-8", "surrogatepass"))
