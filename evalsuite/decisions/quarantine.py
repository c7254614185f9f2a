"""Quarantine: a file that lists cases to exclude from decisions, each with a reason and a last day.

    [[case]]
    benchmark = "capitals"
    sample = "fr"                # `*` matches any text
    reason = "the map service is being moved: issue 123"
    until = 2026-12-31           # the last day

Cases in quarantine run and are recorded like all others, but gates, comparisons and early stops ignore them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError, write_count
from evalsuite.decisions.gates import suggest_names
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from evalsuite.results.runs import Run

KEYS = ("benchmark", "sample", "reason", "until")
_FORM = '[[case]] with benchmark = "capitals", sample = "fr", reason = "...", until = 2026-12-31'


@dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """One entry of a quarantine file."""

    benchmark: str
    sample: str  # The sample's id, in which `*` matches any text.
    reason: str
    until: str  # The last day in quarantine, in ISO 8601.

    def matches_sample(self, benchmark: str, sample: str) -> bool:
        pattern = ".*".join(map(re.escape, self.sample.split("*")))
        return benchmark == self.benchmark and re.fullmatch(pattern, sample, re.DOTALL) is not None

    def __str__(self) -> str:
        return f"{self.benchmark} {self.sample}"


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The entries of a quarantine file."""

    entries: Sequence[QuarantineEntry] = ()
    today: str = ""  # The current day, in ISO 8601; entries with an earlier last day have ended.

    @property
    def ended_entries(self) -> list[QuarantineEntry]:
        """The entries whose last day has passed; their cases count in decisions again."""
        return [entry for entry in self.entries if entry.until < self.today]

    def find_entry(self, benchmark: str, sample: str) -> QuarantineEntry | None:
        """Find the entry that excludes a sample from decisions; None if the sample counts."""
        held = (one for one in self.entries if one.until >= self.today and one.matches_sample(benchmark, sample))
        return next(held, None)

    def encode(self) -> dict[str, Any]:
        """Convert the quarantine to JSON data, for workers and for `run.json`."""
        return {"today": self.today, "entries": [asdict(entry) for entry in self.entries]}


def read_quarantine(path: Path, now: datetime) -> Quarantine:
    """Read a quarantine file."""
    place = f"evalsuite_quarantine {path}"
    try:
        plain = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{place}: {getattr(error, 'strerror', None) or error}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{place}: not TOML: {error}") from error
    cases = plain.get("case", [])
    if set(plain) - {"case"} or not isinstance(cases, list):
        raise SettingsError(f"{place}: found {', '.join(map(repr, plain))}; write {_FORM}")
    entries = [_parse_quarantine_entry(case, f"{place}, case {number}") for number, case in enumerate(cases, 1)]
    return Quarantine(tuple(entries), now.date().isoformat())


def _parse_quarantine_entry(case: object, place: str) -> QuarantineEntry:
    if not isinstance(case, dict) or set(case) != set(KEYS):
        keys = ", ".join(map(repr, case)) if isinstance(case, dict) and case else repr(case)[:60]
        raise SettingsError(f"{place}: found {keys}; it needs exactly {', '.join(KEYS)}")
    for name in KEYS[:3]:
        if not isinstance(case[name], str) or not case[name].strip():
            raise SettingsError(f"{place}: {name} is {case[name]!r}; write some words")
    until = case["until"]
    if isinstance(until, datetime) or not isinstance(until, date):
        raise SettingsError(f"{place}: until is {until!r}; write a day without quotes, as in until = 2026-12-31")
    return QuarantineEntry(case["benchmark"], case["sample"], case["reason"].strip(), until.isoformat())


def decode_quarantine(plain: Mapping[str, Any] | None) -> Quarantine:
    """Decode the JSON data of a quarantine; None gives an empty quarantine."""
    if not plain:
        return Quarantine()
    return Quarantine(tuple(QuarantineEntry(**entry) for entry in plain["entries"]), plain["today"])


def read_run_quarantine(run: Run) -> Quarantine:
    """Read the quarantine that applied during a run."""
    return decode_quarantine(run.info.get("quarantine"))


def drop_quarantined_cases(run: Run, quarantine: Quarantine) -> Run:
    """Copy a run without the cases in quarantine; `info["quarantined"]` counts the removed cases by benchmark."""
    if not quarantine.entries:
        return run
    benchmarks = {
        name: replace(bench, tally=Tally.of(row for row in bench.tally if not quarantine.find_entry(name, row.sample)))
        for name, bench in run.benchmarks.items()
    }
    held = {name: len(bench.tally) - len(benchmarks[name].tally) for name, bench in run.benchmarks.items()}
    return replace(run, benchmarks=benchmarks, info={**run.info, "quarantined": held})


def list_quarantine_remarks(run: Run, quarantine: Quarantine) -> Iterator[str]:
    """Yield remarks for the verdict: the cases that were left out, and the entries that have no effect."""
    if not quarantine.entries:
        return
    named: set[QuarantineEntry] = set()
    for name, bench in run.benchmarks.items():
        held = [entry for row in bench.tally if (entry := quarantine.find_entry(name, row.sample))]
        for entry in dict.fromkeys(held):
            cases = held.count(entry)
            yield (
                f"in quarantine until {entry.until}: {write_count(cases, 'case')} of {entry}, left out of every "
                f"decision ({entry.reason})"
            )
        named |= {one for one in quarantine.entries for row in bench.tally if one.matches_sample(name, row.sample)}
    for entry in quarantine.ended_entries:
        yield f"the quarantine of {entry} ended on {entry.until}, and it decides again: take it out of the file"
    settings = run.info.get("settings", {})
    if settings.get("shard"):
        return  # The cases may be in another shard; the run that joins the shards reports the entries.
    in_part = settings.get("limit") or run.info.get("narrowed") or run.info.get("early")
    for entry in quarantine.entries:
        if entry.benchmark not in run.benchmarks:
            suggestion = suggest_names(entry.benchmark, run.benchmarks)
            yield f"the quarantine names {entry}, and no case of {entry.benchmark} is here{suggestion}"
        elif not in_part and entry not in named and entry not in quarantine.ended_entries:
            yield f"the quarantine names {entry}, which this suite does not have"
