"""A run's folder `reports/<run>/`: its name, its `run.json`, its records, and how to find an earlier run's folder."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.declarations import is_run_folder
from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import digest, parse_json_as
from evalsuite.core.settings import Settings
from evalsuite.core.types import Amount, Count, Metric, Usage
from evalsuite.journal.planned import RunPart

if TYPE_CHECKING:
    from evalsuite.journal.journal import Journal

VERSION = 1
DEFAULTS = Settings()
RECORDS, JOURNAL = "records.jsonl", "journal.sqlite"
INFO, REPORT, SUMMARY, COMMENT = "run.json", "report.md", "summary.json", "comment.md"
LONGEST_NAME = 200  # Maximum bytes of a run's name: file systems allow 255, but some tools add a suffix to names.
LAST = "last"  # `last` means the newest run; an unnamed run of selected cases counts only if no other run exists.


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """The early decisions that ended a run before all of its cases had run."""

    cases: Count
    planned: Count
    gates: list[dict[str, Any]]
    compared: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CollectedCounts:
    """The numbers of a benchmark's cases, selected cases, samples within `--limit`, and all samples (`of`)."""

    cases: Count
    selected: Count
    samples: Count
    of: Count | None


@dataclass(frozen=True, slots=True)
class Promotion:
    """Who made a run a baseline, when and why."""

    run: str
    by: str
    when: str
    why: str
    until: str | None = None  # The last day on which the baseline is valid.
    files: dict[str, str] = field(default_factory=dict)  # Hashes of the baseline's files, from `hash_baseline_files`.


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The contents of `run.json`, after a check; fields that only another version knows are ignored."""

    started: str = ""
    command: str = ""
    model: str | None = None
    settings: Settings = field(default_factory=Settings)
    selection: dict[str, Any] = field(default_factory=dict)
    narrowed: bool = False
    elsewhere: list[str] | None = None
    collected: dict[str, CollectedCounts] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: Amount = 0.0
    stopped: str | None = None
    usage: Usage | None = None
    early: EarlyEnd | None = None
    metrics: dict[str, dict[str, Metric]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    other_failures: Count = 0
    next_part: RunPart | None = None  # The part that follows; None if the session did not end a part of a larger run.
    promoted: Promotion | None = None


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder in which a run is stored."""

    path: Path  # The run's folder, which may not exist yet.

    @property
    def name(self) -> str:
        return self.path.name

    def info(self) -> dict[str, Any]:
        """Read `run.json` (settings, times, cost); return {} if it does not exist."""
        file = self.path / INFO
        try:
            info: dict[str, Any] = json.loads(file.read_text("utf-8"))
            version = info["version"]
        except FileNotFoundError:
            return {}
        except (KeyError, TypeError) as error:
            raise RunError(f"{file} is damaged: it names no version") from error
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{file} cannot be read: {error}") from error
        if version != VERSION:
            raise RunError(f"{file} has version {version}, this evalsuite reads version {VERSION}")
        if isinstance(info.get("settings"), dict):
            # Drop nulls that older versions wrote for settings whose default is another value now.
            info["settings"] = {
                name: value
                for name, value in info["settings"].items()
                if value is not None or getattr(DEFAULTS, name, None) is None
            }
        try:
            parse_json_as(RunInfo, json.dumps(info).encode())
        except ValueError as error:
            raise RunError(f"{file} is damaged: {error}") from error
        return info

    def summary(self) -> dict[str, Any]:
        """Read `summary.json`; return {} if it cannot be read."""
        try:
            summary = json.loads((self.path / SUMMARY).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return summary if isinstance(summary, dict) else {}

    def write_info(self, info: Mapping[str, Any]) -> None:
        """Replace `run.json` in one step."""
        replace_file(self.path / INFO, json.dumps({"version": VERSION, **info}, indent=1, ensure_ascii=False) + "\n")


def hash_baseline_files(folder: Path, info: Mapping[str, Any]) -> dict[str, str]:
    """Compute the SHA-256 of each file of a baseline.

    The hash of `run.json` leaves out the promotion, because the promotion contains the hashes. The hashes ignore the
    kind of line end, which Git may convert.
    """
    parts = {name: value for name, value in info.items() if name not in {"version", "promoted"}}
    contents = {INFO: json.dumps(parts, sort_keys=True).encode()}
    contents |= {name: (folder / name).read_bytes().replace(b"\r\n", b"\n") for name in (RECORDS, SUMMARY)}
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def list_changed_files(folder: Path, info: Mapping[str, Any]) -> list[str]:
    """List the files of a baseline that have changed since it was promoted; empty for a run without hashes."""
    promoted = (info.get("promoted") or {}).get("files")
    if not promoted:
        return []
    try:
        found = hash_baseline_files(folder, info)
    except OSError as error:
        return [str(error.filename)]
    return [name for name, digest in found.items() if promoted.get(name) != digest]


def replace_file(file: Path, text: str) -> None:
    """Replace a file's text in one step, so that a reader sees either the old or the new text."""
    draft = file.with_name(f".{file.name}.draft")
    draft.write_bytes(text.encode("utf-8", "replace"))
    draft.replace(file)


def shorten_model_name(model: str) -> str:
    """Shorten a model's name, and make it a valid part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", model.rpartition("/")[2]).strip("-.")[:40] or "model"


def make_run_folder(reports: Path, name: str | None, model: str, now: datetime) -> RunFolder:
    """Create the folder of a new run; name a run without a name by time and model, and number it if that is taken."""
    if name is not None:
        check_run_name(reports, name)
    stem = f"{now:%Y%m%d-%H%M%S}-{shorten_model_name(model)}" if name is None else name
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    while True:
        path = reports / next(names)
        try:
            path.mkdir(parents=True)
        except OSError as error:
            if name is None and path.exists():
                continue
            if not isinstance(error, FileExistsError) or not path.is_dir():
                raise RunError(
                    f"{path} cannot be made: {error.strerror}; name another folder with --reports"
                ) from error
        return RunFolder(path)


def check_run_name(reports: Path, name: str, *, advice: str | None = None) -> None:
    """Raise an error unless a new run may have this name."""
    if not re.fullmatch(r"[\w.+@=-]+", name) or name.startswith(".") or len(name.encode()) > LONGEST_NAME:
        raise RunError(
            f"{name[:80]!r}: a run's name is letters, digits and . _ - + @ =, at most {LONGEST_NAME} bytes of them, "
            "since it names a folder"
        )
    if name == LAST:
        raise RunError(f"{name!r} is reserved for the newest run; choose another name")
    if is_run_folder(reports / name):
        advice = advice or f"go on with it with --resume {name}, or choose another name"
        raise RunError(f"a run {name} is there already: {advice}")


def find_run_folder(reports: Path, name: str) -> RunFolder:
    """Find the folder of an earlier run by the run's name, its path, or a file in it; `last` means the newest run."""
    folder = _locate_run_folder(reports, name)
    # Refuse links, because writing or copying the run's files would follow links that somebody else made.
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink():
                raise RunError(f"{path} is a link: a run has plain files only; put a copy in the link's place")
    return RunFolder(folder)


def _locate_run_folder(reports: Path, name: str) -> Path:
    if name != LAST:
        for path in (reports / name, Path(name)):
            folder = path.parent if path.name in {INFO, RECORDS, SUMMARY} else path
            if is_run_folder(folder):
                return folder
        if os.path.isfile(name):  # noqa: PTH113 - it never raises an OSError
            raise RunError(f"{name} is not a run's folder, {RECORDS}, {INFO} or {SUMMARY}")
    runs = sorted((folder for folder in reports.glob("*") if (folder / INFO).is_file()), key=read_run_times)
    if name == LAST and runs:
        return next((folder for folder in reversed(runs) if not _is_partial_run(folder)), runs[-1])
    newest = ", ".join(folder.name for folder in reversed(runs[-5:])) or "none"
    remedy = "name one of these or give a path" if runs else "run pytest first, or name another --reports folder"
    raise RunError(f"no run {name!r} in {reports}; the newest there: {newest}; {remedy}")


def _is_partial_run(folder: Path) -> bool:
    """Tell whether -k or ids selected the cases of a run that was not named by --run."""
    try:
        info = RunFolder(folder).info()
    except RunError:
        return False
    selection, settings = info.get("selection") or {}, info.get("settings") or {}
    picked = selection.get("keyword") or any("::" in str(arg) for arg in selection.get("args") or ())
    return bool(picked) and not settings.get("run")


def read_run_times(folder: Path) -> tuple[str, int]:
    """Read a run's start time ("" if `run.json` is damaged) and the time of the last change of its `run.json`."""
    try:
        started = str(RunFolder(folder).info().get("started", ""))
    except RunError:
        started = ""
    return started, (folder / INFO if (folder / INFO).is_file() else folder).stat().st_mtime_ns


def explain_interruption(info: Mapping[str, Any]) -> str | None:
    """Explain why a run did not finish, as `run.json` tells; return None if it finished."""
    if info.get("stopped"):
        return str(info["stopped"])
    return None if "seconds" in info else "it was killed, or it still goes on"


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
    """Copy a file's records into a journal; skip truncated and damaged lines, whose cases run again."""
    from evalsuite.journal.planned import digest_fingerprints

    def parse_lines() -> Iterator[tuple[str, str, str]]:
        for line in lines:
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                record = json.loads(line)
                yield str(record["case"]), digest_fingerprints(record.get("fingerprints") or {}), line.rstrip("\n")

    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        journal.store_records(parse_lines())


ARTEFACTS = "artefacts"
KINDS = (".png", ".csv", ".txt")
_SIGNS = (b'"figures":', b'"files":')


def write_artefacts(records_file: Path) -> None:
    """Extract the files that the cases' programs made into a folder next to the records file, replacing the folder."""
    folder = records_file.parent / ARTEFACTS
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
        made: list[tuple[str, bytes]] = []
        if event.get("kind") == "program":
            for figure in event.get("figures") or ():
                with suppress(KeyError, TypeError, ValueError):
                    made.append((str(figure["name"]), base64.b64decode(figure["png"], validate=True)))
            made += [
                (str(file.get("name")), file["text"].encode("utf-8", "replace"))
                for file in event.get("files") or ()
                if isinstance(file, dict) and isinstance(file.get("text"), str)
            ]
        for name, content in made:
            # Replace special characters, because an untrusted record's name must not lead out of the folder.
            plain = re.sub(r"[^\w.-]+", "_", name)[-80:].encode()[-160:].decode("utf-8", "ignore")
            if plain.endswith(KINDS):
                yield f"{case}-{number}-{plain}", content
