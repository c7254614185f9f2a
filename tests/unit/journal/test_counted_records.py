"""Which records of a journal count."""

from __future__ import annotations

from pathlib import Path

from evalsuite.journal.journal import Journal, RecordSummary
from evalsuite.journal.planned import PlannedCase, digest_fingerprints


def plan(case: str, content: str, *, selected: bool = True) -> PlannedCase:
    return PlannedCase(case, "capitals", case, 1, {}, "samples", "", selected, {"input": content})


def test_a_record_counts_if_its_case_is_planned_alike_and_it_is_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.begin_session("2026-01-01T00:00:00", "pytest")
    names = {"same": "a", "changed": "b", "gone": "c", "damaged": "d", "deselected": "e", "deselected and damaged": "f"}
    for case, content in names.items():
        journal.store_record(case, digest_fingerprints({"input": content}), "{}")
    journal.store_record("same", digest_fingerprints({"input": "an older text"}), "{}")
    assert journal.summarise_records() == RecordSummary(6, [], [], [])
    journal.store_plan(
        [
            *(plan(case, names[case]) for case in ("same", "damaged")),
            *(plan(case, names[case], selected=False) for case in ("deselected", "deselected and damaged")),
            plan("changed", "another text"),
            plan("new", "g"),
        ]
    )
    journal.database.write(("UPDATE records SET checksum = '' WHERE \"case\" LIKE '%damaged'", ()))
    assert journal.count_records() == 4
    assert journal.summarise_records() == RecordSummary(
        2, ["changed", "gone"], ["damaged", "deselected and damaged"], ["changed", "damaged", "new"]
    )
    journal.close()
