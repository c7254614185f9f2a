"""Export a run's journal to `records.jsonl` (one line per case) and to the files that the cases' programs made."""

from __future__ import annotations

import base64
import binascii
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import digest

if TYPE_CHECKING:
    from evalsuite.journal.journal import Journal

RECORDS, JOURNAL = "records.jsonl", "journal.sqlite"


def export_records(journal: Journal, folder: Path) -> None:
    """Write the valid record of each case into `records.jsonl`, replacing the file in one step."""
    draft = folder / f".{RECORDS}.draft"
    with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in journal.iterate_record_lines())
    draft.replace(folder / RECORDS)
    write_artefacts(folder / RECORDS)
    if not journal.database.read_only:
        journal.mark_records_exported()


def update_records_file(folder: Path) -> bool:
    """Write `records.jsonl` again if it lacks records of the journal; return whether the journal can be read."""
    file = folder / RECORDS
    if not (folder / JOURNAL).is_file():
        return False
    from evalsuite.journal.journal import Journal

    try:
        journal = Journal(folder / JOURNAL, read_only=True)
    except RunError:
        if file.is_file():
            return False
        raise
    with closing(journal):
        try:
            if not (journal.has_exported_records and file.is_file() and count_lines(file) >= journal.count_records()):
                export_records(journal, folder)
        except OSError as error:
            raise RunError(f"{file} cannot be written from the journal: {error.strerror}") from error
    return True


def count_lines(file: Path) -> int:
    """Count the lines of a file; return 0 if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    except OSError:
        return 0


def import_records(journal: Journal, file: Path) -> None:
    """Copy a file's records into a journal."""
    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        journal.store_records(_parse_record_lines(lines))


def _parse_record_lines(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the case, the digest of the fingerprints, and the text of each line that is a record."""
    from evalsuite.journal.planned import digest_fingerprints

    for line in lines:
        try:
            record = json.loads(line)
            case, same = str(record["case"]), digest_fingerprints(record.get("fingerprints") or {})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Skip truncated and damaged lines; the cases of these lines run again.
            continue
        yield case, same, line.rstrip("\n")


FOLDER = "artefacts"
KINDS = (".png", ".csv", ".txt")
_SIGNS = (b'"figures":', b'"files":')


def write_artefacts(records_file: Path) -> None:
    """Extract the files that the cases' programs made into a folder next to the records file, replacing the folder."""
    folder = records_file.parent / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    with records_file.open("rb") as lines:
        for line in lines:
            if any(sign in line for sign in _SIGNS):
                for name, content in _list_artefacts(json.loads(line)):
                    folder.mkdir(exist_ok=True)
                    (folder / name).write_bytes(content)


def _list_artefacts(record: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield a file name and the content for each file that the programs of a case made."""
    case = re.sub(r"[^A-Za-z0-9_-]+", "-", record["sample"])[:60] + f"-{digest(record['case'])[:6]}"
    for number, event in enumerate((record.get("transcript") or {}).get("events") or (), 1):
        if event.get("kind") == "program":
            for name, content in _list_files_of_program(event):
                # Replace special characters, because an untrusted record's name must not lead out of the folder.
                plain = re.sub(r"[^\w.-]+", "_", name)[-80:].encode()[-160:].decode("utf-8", "ignore")
                if plain.endswith(KINDS):
                    yield f"{case}-{number}-{plain}", content


def _list_files_of_program(event: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for figure in event.get("figures") or ():
        try:
            yield str(figure["name"]), base64.b64decode(figure["png"], validate=True)
        except (KeyError, TypeError, binascii.Error, ValueError):
            continue
    for file in event.get("files") or ():
        if isinstance(file, dict) and isinstance(file.get("text"), str):
            yield str(file.get("name")), file["text"].encode("utf-8", "replace")
