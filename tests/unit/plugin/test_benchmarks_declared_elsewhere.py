"""Test files outside of a session's paths are parsed for the benchmarks of gates."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalsuite.core.declarations import list_decorator_words
from evalsuite.plugin.listener import find_benchmarks_declared_elsewhere


def test_files_are_parsed_until_every_benchmark_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[Path] = []

    def list_and_count(file: Path) -> set[str]:
        parsed.append(file)
        return list_decorator_words(file)

    monkeypatch.setattr("evalsuite.plugin.listener.list_decorator_words", list_and_count)
    for name in ("one", "two", "one"):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "test_it.py").write_text(f'@benchmark("{name}")\ndef test_it(scores): ...\n')
    ini = {"norecursedirs": [".*"], "python_files": ["test_*.py"]}
    config: Any = SimpleNamespace(args=["2"], rootpath=tmp_path, getini=ini.get)

    def find(*names: str) -> set[str]:
        parsed.clear()
        return find_benchmarks_declared_elsewhere(set(names), config, tmp_path / "reports")

    assert find() == set()
    assert parsed == []
    assert find("one", "two", "three") == {"one", "two"}
    assert len(parsed) == 3
    assert find("one", "two") == {"one", "two"}
