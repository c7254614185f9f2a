"""Rows of a large run stay in a file; every result equals that of rows in memory."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from evalsuite.cli import main
from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.types import Record, Usage
from evalsuite.results import runs
from evalsuite.results.runs import Run, load_run


def write_run(folder: Path, seed: int, cases: int = 1200) -> Path:
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    hashes = {"scorers": "1" * 16, "judge": "not a hash"} if seed % 2 else {"scorers": "1" * 16}
    records = [
        Record(
            case=f"{name}[{number:04}]",
            benchmark=name,
            sample=f"s{number // 2}",
            epoch=1 + number % 2,
            model="made up",
            source="samples",
            outcome=rng.choice(["passed", "failed", "error"] if number % 50 == 0 else ["passed", "failed"]),
            scores={"right": float(rng.random() < 0.6), "f1": rng.random()} if rng.random() < 0.95 else {},
            tags={"region": rng.choice("abc")} if rng.random() < 0.9 else {},
            facts={"list": [1, 2.0, {"a": None}]} if number % 3 else {"finish_reason": "stop"},
            usage=Usage(1, number % 7, number % 5, 0.01 * (number % 3)),
            seconds=rng.random(),
            fingerprints={"input": f"{number:016x}", **hashes},
        )
        for name in ("alpha", "beta")
        for number in range(cases // 2)
    ]
    (folder / "records.jsonl").write_text("".join(f"{dumps(encode_record(record))}\n" for record in records))
    settings = {"gate": ["alpha.right >= 0.5", "beta.f1 >= 0.3 @95%", "beta.pass_rate >= 0.9"]}
    info = {"version": 1, "model": "made up", "settings": settings, "started": "2026-01-01T00:00:00"}
    (folder / "run.json").write_text(json.dumps(info))
    return folder


def load_from_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    with monkeypatch.context() as patch:
        patch.setattr(runs, "MOST_IN_MEMORY", 0)
        return load_run(folder)


@pytest.mark.parametrize("command", ["report base --to report", "gate base", "gate other --baseline base"])
def test_reports_and_verdicts_equal_those_of_rows_in_memory(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "base", 0)
    write_run(tmp_path / "other", 2)
    results = []
    for most in (100_000, 0):
        monkeypatch.setattr(runs, "MOST_IN_MEMORY", most)
        status = main([*command.split(), "--reports=."])
        files = {file.name: file.read_bytes() for file in sorted(tmp_path.glob("report/*.*"))}
        results.append((status, capsys.readouterr().out, files))
    assert results[0] == results[1]


@pytest.mark.parametrize("seed", range(4))
def test_tallies_of_a_file_equal_tallies_in_memory(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "run", seed)
    near, far = load_run(folder), load_from_file(folder, monkeypatch)
    assert not isinstance(far.benchmarks["alpha"].tally.rows, tuple)
    assert dict(far.offsets) == dict(near.offsets)
    assert [far.read(case) for case in near.offsets] == list(near.records) == list(far.records)
    assert "no such case" not in far.offsets
    for name in near.benchmarks:
        one, two = near.benchmarks[name].tally, far.benchmarks[name].tally
        assert list(one) == list(two)
        assert two.rows[len(two) - 1] == one.rows[-1]
        assert one.metrics() == two.metrics()
        assert list(one.ran().scored("f1")) == list(two.ran().scored("f1"))
        groups = one.groups("region")
        assert groups.keys() == two.groups("region").keys()
        for value, group in two.groups("region").items():
            assert list(group) == list(groups[value]) == list(two.where(region=value))
            assert group.values("f1") == groups[value].values("f1")
            assert group.estimate("right") == groups[value].estimate("right")


def test_of_repeated_cases_in_an_unsorted_file_the_later_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", 0)
    file = folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    repeated = lines[3].replace('"epoch":2', '"epoch":9')
    file.write_text("".join([*lines[600:], *lines[:600], repeated]))
    near, far = load_run(folder), load_from_file(folder, monkeypatch)
    assert dict(far.offsets) == dict(near.offsets)
    assert list(far.all_rows()) == list(near.all_rows())
    assert far.read("alpha[0003]").epoch == 9
