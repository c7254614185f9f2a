"""`evalsuite score benchmark`: each checker's files in their published form, with verdicts worked out by hand."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.checkers import read_bfcl_verdicts, read_tool_eyes_verdicts, read_treb_verdicts
from evalsuite.benchmarks.treb.dataset import SHIPPED
from evalsuite.cli import main
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Sample
from evalsuite.engine.evaluate import evaluate

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, *lines: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")


def say_nothing(messages: Any) -> str:
    return "" if messages else "?"


def verify(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Run the command; return its status and its lines."""
    status = main(["verify-benchmark", name, "--against", str(tmp_path / "given"), "--data", str(tmp_path / "data")])
    written = capsys.readouterr()
    assert written.err == "evalsuite verify-benchmark is now: evalsuite score benchmark\n"
    return status, written.out.splitlines()


PLAY = {"type": "dict", "properties": {"song": {"type": "string"}, "loud": {"type": "boolean"}}, "required": ["song"]}


@pytest.fixture
def bfcl(tmp_path: Path) -> Path:
    """BFCL's questions, the outputs of two models, and the checker's score files."""
    functions = [{"name": "music.play", "description": "Plays.", "parameters": PLAY}]
    question = [[{"role": "user", "content": "Play Ada."}]]
    data, given = tmp_path / "data" / "bfcl", tmp_path / "given"
    for category in ("multiple", "irrelevance"):
        questions = [{"id": f"{category}_{n}", "question": question, "function": functions} for n in range(4)]
        write(data / f"BFCL_v4_{category}.json", *questions)
    truth = [{"music.play": {"song": ["Ada", ""], "loud": [True, ""]}}]
    answers = [{"id": f"multiple_{n}", "ground_truth": truth} for n in range(4)]
    write(data / "possible_answer" / "BFCL_v4_multiple.json", *answers)
    outputs = {
        # A required parameter is missing, although its accepted values include "".
        "multiple": [
            [{"music_play": '{"song": "ada"}'}],
            [{"music_play": '{"loud": true}'}],
            "[music.play(song='Ada')",
            [],
        ],
        # Arguments that cannot be decoded count as no call.
        "irrelevance": ["No.", [{"music_play": '{"song'}], "[music.play(song='Ada')]", "[]"],
    }  # fmt: skip
    wrong = {"multiple": [1, 3], "irrelevance": [2]}
    for category, results in outputs.items():
        lines = [{"id": f"{category}_{n}", "result": result} for n, result in enumerate(results)]
        write(given / "result" / "m" / "non_live" / f"BFCL_v4_{category}_result.json", *lines)
        head = {"accuracy": 0, "correct_count": 4 - len(wrong[category]), "total_count": 4}
        failed = [{"id": f"{category}_{n}", "valid": False} for n in wrong[category]]
        write(given / "score" / "m" / "non_live" / f"BFCL_v4_{category}_score.json", head, *failed)
    return tmp_path


def test_bfcl_agrees_and_a_later_run_says_so(bfcl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "bfcl: agrees in 8 of 8 verdicts of the benchmark's own checker"
    assert verify(bfcl, "bfcl", capsys) == (0, [line])
    run = evaluate("bfcl", model=say_nothing, data=str(bfcl / "data"), reports=str(bfcl / "reports"), run="first")
    assert "scoring agrees in 8 of 8 verdicts of the benchmark's own checker" in run.report.read_text("utf-8")
    kept = bfcl / "data" / "bfcl" / "agreement.json"
    kept.write_text(kept.read_text().replace('"scorers": "', '"scorers": "0'))
    run = evaluate("bfcl", model=say_nothing, data=str(bfcl / "data"), reports=str(bfcl / "reports"), run="later")
    assert "own checker (with other scorers or arguments)" in run.report.read_text("utf-8")


def test_a_different_verdict_is_shown_with_its_place(bfcl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bfcl / "given" / "score" / "m" / "non_live" / "BFCL_v4_multiple_score.json"
    path.write_text(path.read_text().replace("multiple_3", "multiple_0"))
    status, lines = verify(bfcl, "bfcl", capsys)
    assert (status, lines[0]) == (1, "bfcl: agrees in 6 of 8 verdicts of the benchmark's own checker")
    assert lines[1].startswith("  multiple_0, correct: 1 here, 0 there; ")
    assert re.search(r"multiple_3, correct: 0 here \(.*\), 1 there; .*multiple_result\.json, line 4$", lines[2])


def test_outputs_and_scores_of_different_runs_are_refused(bfcl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bfcl / "given" / "score" / "m" / "non_live" / "BFCL_v4_multiple_score.json"
    path.write_text(path.read_text().replace('"total_count": 4', '"total_count": 5'))
    arguments = ["--against", str(bfcl / "given"), "--data", str(bfcl / "data")]
    assert main(["score", "benchmark", "bfcl", *arguments]) == 2
    assert "found total_count 5, expected 4" in capsys.readouterr().err
    assert main(["score", "benchmark", "treb", *arguments]) == 2
    assert "has no folder treb" in capsys.readouterr().err


def test_treb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SHIPPED, tmp_path / "data" / "treb")
    from evalsuite.benchmarks.treb import TREB

    setup = Setup("m", data=tmp_path / "data" / "treb", modes=("auto", "published"))
    numbers = [s for s in TREB.load(setup).samples if s.metadata["number"] is not None and s.tags["mode"] == "icot"]
    best = {"ROUGE": 1.0, "BLEU": 100.0, "EM": 1.0}
    lines = [
        {"id": sample.id.rpartition("|")[0], "text_result": str(sample.target), "judge_scores": best}
        for sample in numbers
        if sample.tags["language"] == "en"
    ]
    lines[0]["judge_scores"] = {**best, "ROUGE": 0.5}
    write(tmp_path / "given" / "v1" / "m" / "ICoT--Any--round1--judge.jsonl", *lines)
    status, shown = verify(tmp_path, "treb", capsys)
    # sacrebleu gives fewer than four tokens less than 100.
    rouge = [line for line in shown[1:] if "rouge_l_released" in line]
    assert (status, len(rouge)) == (1, 1)
    assert "rouge_l_released: 1 here, 0.5 there" in rouge[0]
    assert not any("exact_match_released" in line for line in shown)


def test_wikitablequestions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data" / "wikitablequestions"
    write(folder / "csv" / "1.csv", '"City","People"', '"Oslo","7"')
    questions = ["nt-0\tWhich?\tcsv/1.csv\tOslo|Rome", "nt-1\tHow many?\tcsv/1.csv\t1000", "nt-2\tWho?\tcsv/1.csv\tAda"]
    write(folder / "data" / "pristine-unseen-tables.tsv", "id\tutterance\tcontext\ttargetValue", *questions)
    write(tmp_path / "given" / "a.tsv", "nt-0\tRome\tOslo", "nt-1\t1,000", "nt-2\tAda\tBob", "nt-9\tAda")
    write(tmp_path / "given" / "a.txt", "nt-0\tTrue\tx\ty", "nt-1\tTrue\tx\ty", "nt-2\tFalse\tx\ty", "Examples: 3")
    assert verify(tmp_path, "wikitablequestions", capsys) == (
        0,
        ["wikitablequestions: agrees in 3 of 3 verdicts of the benchmark's own checker; left out 1 output"],
    )


BFCL = "result/m/BFCL_v4_multiple_result.json", "score/m/BFCL_v4_multiple_score.json"
EYES = "tmp/m_res.jsonl", "jsonl/m_structured_data.jsonl"
TALK = {"id": 1, "path": "Tool_Library/Word/Dictionary", "conversations": [{"from": "user", "value": "What is it?"}]}
MARK = {"score for criteria": 1}
PARTS = [{"Ans_pass": MARK, "valid_TS_mean": MARK}]
SCORED = {"id": 1, "FA": MARK, "TS": {**MARK, "score composition": PARTS}, "AO": {"score composition": PARTS}}
MALFORMED: list[tuple[Any, dict[str, list[Any]], str]] = [
    (
        read_bfcl_verdicts,
        {BFCL[0]: [{"id": "multiple_0", "result": 5}], BFCL[1]: []},
        "_score.json, line 1: found total_count",
    ),
    (
        read_treb_verdicts,
        {"TCoT--x--round1--judge.jsonl": [{"id": "a", "judge_scores": {"EM": "x"}}]},
        "line 1, field 'judge_scores', field 'EM': found \"x\"",
    ),
    (
        read_treb_verdicts,
        {"TCoT--x--round1--judge.jsonl": [{"id": "a", "judge_scores": {"EM": None}}]},
        "line 1, field 'judge_scores', field 'EM': found",
    ),
    (
        read_tool_eyes_verdicts,
        {EYES[0]: [{**TALK, "conversations": ["x"]}], EYES[1]: []},
        "_res.jsonl, line 1, field 'conversations', element 1: found \"x\"",
    ),
    (
        read_tool_eyes_verdicts,
        {EYES[0]: [TALK | {"conversations": [{"from": "user"}]}], EYES[1]: []},
        "the field 'value'",
    ),
    (
        read_tool_eyes_verdicts,
        {EYES[0]: [TALK], EYES[1]: [{"id": 1, "TS": 3}]},
        "_structured_data.jsonl, line 1: found",
    ),
    (
        read_tool_eyes_verdicts,
        {EYES[0]: [TALK], EYES[1]: [SCORED | {"FA": {"score for criteria": 10**400}}]},
        "_structured_data.jsonl, line 1: found OverflowError",
    ),
]


@pytest.mark.parametrize(("read", "files", "message"), MALFORMED)
def test_a_malformed_file_of_a_checker_is_named_with_the_place(
    tmp_path: Path, read: Any, files: dict[str, list[Any]], message: str
) -> None:
    for name, lines in files.items():
        write(tmp_path / name, *lines)
    samples = {"one": Sample(id="one", input="What is it?", metadata={"subject": "Word/Dictionary"})}
    with pytest.raises(DatasetError, match=re.escape(message)):
        list(read(tmp_path, samples))
