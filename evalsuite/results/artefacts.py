"""The files that programs wrote, as files of the run's folder: `artefacts/CASE-ROUND-NAME`.

The records hold them, so that they go wherever records go; these are copies to be opened and handed on.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FOLDER = "artefacts"
KINDS = (".png", ".csv", ".txt")
_SIGNS = (b'"figures":', b'"files":')


def write_artefacts(records: Path) -> None:
    """Writes the files of all programs beside a file of records, in place of those of an earlier session."""
    folder = records.parent / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    with records.open("rb") as lines:
        for line in lines:
            if any(sign in line for sign in _SIGNS):
                for name, content in _files(json.loads(line)):
                    folder.mkdir(exist_ok=True)
                    (folder / name).write_bytes(content)


def _files(record: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    case = re.sub(r"[^A-Za-z0-9_-]+", "-", record["sample"])[:60] + f"-{digest(record['case'])[:6]}"
    for number, event in enumerate((record.get("transcript") or {}).get("events") or (), 1):
        if event.get("kind") == "program":
            for name, content in (*_pictures(event), *_texts(event)):
                # Records may come from anybody.
                plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[-80:]
                if plain.endswith(KINDS):
                    yield f"{case}-{number}-{plain}", content


def _pictures(event: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for figure in event.get("figures") or ():
        try:
            yield str(figure["name"]), base64.b64decode(figure["png"], validate=True)
        except (KeyError, TypeError, binascii.Error, ValueError):
            continue


def _texts(event: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for file in event.get("files") or ():
        if isinstance(file, dict) and isinstance(file.get("text"), str):
            yield str(file.get("name")), file["text"].encode("utf-8", "replace")
