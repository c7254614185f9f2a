"""`--answers FILE`: a suite scores answers that exist already, and asks no model."""

from __future__ import annotations

import json

import pytest

CASE = """
from evalsuite import Sample, benchmark, exact_match, generate

CAPITALS = [
    Sample(id="fr", input="Capital of France?", target="Paris"),
    Sample(id="it", input="Capital of Italy?", target="Rome"),
]

@benchmark("capitals", CAPITALS, solver=generate(), scorers=[exact_match()])
def test_capitals(scores):
    assert scores["exact_match"] == 1.0
"""


def _answers(*records: dict[str, object]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_suite_runs_on_ready_made_answers_without_a_model(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(CASE)
    lines = _answers({"id": "fr", "answer": "Paris"}, {"id": "it", "answer": "Milan", "benchmark": "capitals"})
    pytester.path.joinpath("given.jsonl").write_text(lines)
    result = pytester.runpytest_subprocess("--answers=given.jsonl", "--run=r", "-n", workers)
    result.assert_outcomes(passed=1, failed=1)
    records = [json.loads(line) for line in pytester.path.joinpath("reports/r/records.jsonl").read_text().splitlines()]
    assert {record["sample"]: record["scores"]["exact_match"] for record in records} == {"fr": 1.0, "it": 0.0}
    assert {record["model"] for record in records} == {"answers:given.jsonl"}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_answers_that_no_case_asks_for_are_counted_in_a_remark(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(CASE)
    lines: list[dict[str, object]] = [{"id": name, "answer": "Paris"} for name in ("fr", "it", "es")]
    lines += [{"id": "fr", "benchmark": "rivers", "answer": "Seine"}]
    pytester.path.joinpath("given.jsonl").write_text(_answers(*lines))
    result = pytester.runpytest_subprocess("--answers=given.jsonl", "--run=r", "-n", workers)
    remark = "2 answers not scored, because no case asked for them, among them 'es'"
    result.stdout.fnmatch_lines(f"*{remark}*")
    assert remark in pytester.path.joinpath("reports/r/report.md").read_text("utf-8")
    pytester.path.joinpath("given.jsonl").write_text(_answers(*lines[:2]))
    assert "not scored" not in pytester.runpytest_subprocess("--answers=given.jsonl").stdout.str()


def test_an_answer_may_hold_what_ends_a_line_of_text_but_not_of_json(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(CASE)
    lines = [{"id": "fr", "answer": "Paris"}, {"id": "it", "answer": "Ro\u2028\x85me"}]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\r\n" for line in lines)
    pytester.path.joinpath("given.jsonl").write_bytes(text.encode())
    pytester.runpytest_subprocess("--answers=given.jsonl", "--run=r").assert_outcomes(passed=1, failed=1)


def test_a_sample_without_an_answer_is_an_error_and_no_zero(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(CASE)
    pytester.path.joinpath("given.jsonl").write_text(_answers({"id": "fr", "answer": "Paris"}))
    result = pytester.runpytest_subprocess("--answers=given.jsonl", "--run=r")
    assert result.ret
    records = [json.loads(line) for line in pytester.path.joinpath("reports/r/records.jsonl").read_text().splitlines()]
    missing = next(record for record in records if record["sample"] == "it")
    assert missing["outcome"] == "error"
    assert "no answer for 'it'" in str(missing["error"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no answer in it"),
        ("{", "line 1: found the end of the text, expected one JSON object per line"),
        ('{"id": "fr"}', "line 1: found only the fields 'id', expected the field 'answer'"),
        (_answers({"id": "fr", "answer": "a"}, {"id": "fr", "answer": "b"}), "line 2: found a second answer for 'fr'"),
    ],
)
def test_a_bad_file_is_one_message_before_any_case(pytester: pytest.Pytester, text: str, message: str) -> None:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(CASE)
    pytester.path.joinpath("given.jsonl").write_text(text)
    result = pytester.runpytest_subprocess("--answers=given.jsonl")
    output = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert message in output
    assert "INTERNALERROR" not in output
