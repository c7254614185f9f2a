"""A shard's session, as a node of a cluster runs it; Ray itself is not needed."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from evalsuite.clusters.sharded_run import run_shard

CASES = """
from evalsuite import Sample, benchmark, generate

def is_picture(sample, transcript):
    return {"picture": float(transcript.answer.startswith("iVBOR"))}

@benchmark("pictures", [Sample(id="a", input="Draw a cat.")], solver=generate(), scorers=[is_picture])
def test_pictures(scores):
    assert scores["picture"] == 1.0
"""


class Collector:
    """Stands in for Ray's queue."""

    def __init__(self) -> None:
        self.cases: list[str] = []

    def put_nowait_batch(self, cases: list[str]) -> None:
        self.cases += cases


def test_a_case_whose_answer_is_a_picture_is_counted_and_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A journal stores a long Base64 string apart from its record, so the record's stored text is not JSON.
    picture = "iVBOR" + "A" * 10_000
    (tmp_path / "test_pictures.py").write_text(CASES)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["evalsuite.plugin"]\n')
    (tmp_path / "answers.jsonl").write_text(json.dumps({"id": "a", "answer": picture}))
    monkeypatch.chdir(tmp_path)
    collector = Collector()
    result = run_shard(1, ["test_pictures.py", "--answers=answers.jsonl"], None, collector)
    assert result.status == 0, result.output
    assert collector.cases == ["test_pictures.py::test_pictures[a]"]
    with tarfile.open(fileobj=io.BytesIO(result.folder)) as tar:
        records = tar.extractfile("shard-1/records.jsonl")
        assert records is not None
        assert picture in records.read().decode()
