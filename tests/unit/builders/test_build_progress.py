from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evalsuite.builders.building import BuildProgress, sum_file_sizes

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_build_goes_on_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    done = 0
    with BuildProgress(2, "item") as progress:
        for _ in range(2):
            progress.begin_stage("something")
            progress.advance(1)
            done += 1
    assert done == 2


def test_missing_files_have_no_bytes_and_a_file_named_twice_counts_twice(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abc")
    assert sum_file_sizes([tmp_path / "a", tmp_path / "a", tmp_path / "no"]) == 6
