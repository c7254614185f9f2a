"""An unlabelled test set is run, and its answers are handed in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalsuite.cli import main

if TYPE_CHECKING:
    import pytest

    from tests.plugin.conftest import Suite

SUITE = """
from evalsuite import benchmark

@benchmark("treb")
def test_treb(scores):
    pass
"""


def test_a_test_set_without_references_is_run_and_handed_in(
    suite: Suite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (suite.path / "test_capitals.py").unlink()
    questions = [
        {
            "id": f"Table_Query|web|{n}",
            "question": f"What is {n}?",
            **({"answer": ""} if n else {}),
            "Table_markdown": ["|a|\n|-|\n|1|"],
        }
        for n in range(2)
    ]
    folder = suite.path / "data" / "treb"
    folder.mkdir(parents=True)
    (folder / "Table_Query.json").write_text(json.dumps(questions), encoding="utf-8")
    suite.pytester.makepyfile(test_it=SUITE)
    suite.run("--data=data", "--mode=treb=tcot_markdown", "--run=one").assert_outcomes(passed=2)
    monkeypatch.chdir(suite.path)
    assert main(["export", "submission", "treb", "one", "--model-name", "Own-7B"]) == 0
    assert "one.jsonl: 2 answers of Own-7B" in capsys.readouterr().out
    lines = [json.loads(line) for line in (suite.path / "one.jsonl").read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["Table_Query|web|0", "Table_Query|web|1"]
    assert [line["question"] for line in lines] == ["What is 0?", "What is 1?"]
    assert all(line["generation"] for line in lines)
    assert list(lines[0]) == ["id", "model_name", "question", "generation", "pred_answer"]
