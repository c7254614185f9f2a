"""`records.jsonl`: one line a case, written from the run's journal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalsuite.core.errors import RunError
from evalsuite.results.artefacts import write_artefacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from evalsuite.journal.journal import Journal

RECORDS, JOURNAL = "records.jsonl", "journal.sqlite"


def export_records(journal: Journal, folder: Path) -> None:
    """Writes the records that count; the file is, at every instant, the old one or the new one."""
    _replace(folder / RECORDS, journal.lines())
    write_artefacts(folder / RECORDS)
    if not journal.database.read_only:
        journal.note_export()


def _replace(file: Path, lines: Iterable[str]) -> None:
    draft = file.with_name(f".{file.name}.draft")
    with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    draft.replace(file)


def bring_up_to_date(folder: Path) -> bool:
    """Writes the records from the journal, of a run that was killed or still goes on, or where some are lost.

    Returns:
        whether there is a journal to hold them against.

    Raises:
        RunError: the journal cannot be read, and there are no records without it.
    """
    journal = _journal(folder)
    if journal is None:
        return False
    try:
        if not journal.exported or _holds_fewer(folder / RECORDS, journal):
            export_records(journal, folder)
    except OSError as error:
        raise RunError(f"{folder / RECORDS} cannot be written from the journal: {error.strerror}") from error
    else:
        return True
    finally:
        journal.close()


def _journal(folder: Path) -> Journal | None:
    """The journal; None where there is none, or one that cannot be read beside records that may be."""
    file = folder / JOURNAL
    if not file.is_file():
        return None
    from evalsuite.journal.journal import Journal

    try:
        return Journal(file, read_only=True)
    except RunError:
        if (folder / RECORDS).is_file():
            return None
        raise


def _holds_fewer(file: Path, journal: Journal) -> bool:
    """Whether the records are missing, or some of those that the journal counts are."""
    try:
        with file.open("rb") as stream:
            lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    except FileNotFoundError:
        return True
    return lines < journal.count()


def take_in(journal: Journal, file: Path) -> None:
    """Records that are in no journal yet: of a run whose journal is gone, or of another run."""
    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        journal.take(_readable(lines))


def _readable(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    from evalsuite.journal.planned import same_ask

    for line in lines:
        try:
            record = json.loads(line)
            case, same = str(record["case"]), same_ask(record.get("fingerprints") or {})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Cut short, or damaged: it counts for nothing, and its case is asked again.
            continue
        yield case, same, line.rstrip("\n")
