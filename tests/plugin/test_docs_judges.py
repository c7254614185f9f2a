"""Every example of docs/judges.md does what the page says, as it stands there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PAGE = (Path(__file__).parents[2] / "docs" / "judges.md").read_text("utf-8")
JUDGE = """
import json, re

def judge(messages):
    asked = messages[-1]["content"]
    reason = {"reason": "so it is"}
    if "Verdict: 1 much better" in asked:
        return "Verdict: 1 much better" if "Rain, rain" in asked.split("<answer_2")[1] else "Verdict: 2 better"
    if "Verdict: 1" in asked:
        return "Verdict: tie"
    if '"items"' in asked:
        if "turn" in asked:
            turns = re.findall(r"<turn_(\\\\d+)_user", asked)
            return json.dumps({"items": [{"turn": turn, "score": 5, **reason} for turn in turns]})
        return json.dumps({"items": [{"claim": "c", "score": "yes", **reason}]})
    if '"answers"' in asked:
        return json.dumps({"answers": [{"criterion": at, "verdict": "yes", **reason} for at in (1, 2)]})
    if '"score"' in asked:
        return json.dumps({"score": 4, **reason})
    if "looked up" in asked:
        assert re.search(r'price.*?tea.*?-> .*?3 EUR', asked, re.S), asked
    if "<answer" in asked and "Nice" in asked:
        return json.dumps({"verdict": "no", **reason})
    if "`wit" in asked:
        return "wit: 3\\ntact: 5"
    if "`rhythm" in asked:
        return "rhythm: 7\\\\nimagery: 6"
    return json.dumps({"verdict": "yes", **reason}) if "verdict" in asked else "Both have something."

def other(messages):
    return judge(messages)

def seller(messages, tools=()):
    last = messages[-1]
    if last["role"] == "user" and "cost" in last["content"]:
        call = {"name": "price", "arguments": json.dumps({"item": "tea"})}
        return {"content": "", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
    return "3 EUR." if last["role"] == "tool" else "A tea between green and black."
"""


def example(holding: str) -> str:
    """The page's one example in Python that holds these words."""
    examples: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (code,) = [code for code in examples if f"def test_{holding}(" in code]
    return code


def commands() -> list[list[str]]:
    """The commands that the page shows, word by word."""
    blocks = re.findall(r"^```\n((?:evalsuite|pytest) .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture
def page(suite: Suite) -> Suite:
    """A suite of nothing but the page's examples, and a judge who answers them."""
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(judges=JUDGE.replace("\\\\", "\\"))
    return suite


def test_every_example_in_python_is_run_by_a_test_of_this_file() -> None:
    assert re.findall(r"```python\n.*?def (test_\w+)\(", PAGE, re.DOTALL) == [
        "test_explains",
        "test_better",
        "test_poems",
        "test_canary",
    ]


def test_a_rubric_of_every_kind_scores_a_case_and_so_do_panels_pairs_and_canaries(page: Suite) -> None:
    named = ("poems", "explains", "better", "canary")
    page.pytester.makepyfile(**{f"test_{name}": example(name) for name in named})
    page.run("--judge-model=function:judges:judge").assert_outcomes(passed=5)
    records = {record["case"]: record for record in page.records()}
    scores = {case.partition("::")[2]: record["scores"] for case, record in records.items()}
    assert scores["test_explains[sky]"] == {
        "plain": 1.0,
        "clear": 4.0,
        "list": 1.0,
        "tree": 2.0,
        "calls": 1.0,
        "wit": 3.0,
        "tact": 5.0,
        "steps": 1.0,
        "faithful": 1.0,
        "citations": 1.0,
        "context_recall": 1.0,
        "context_precision": 1.0,
        "relevant": 4.0,
        "factual": 1.0,
        "follows": 1.0,
        "conversation": 5.0,
    }
    (explained,) = [record for record in records.values() if record["benchmark"] == "explains"]
    assert explained["notes"]["plain"] == "so it is"
    signatures = explained["facts"]["judge_signatures"]
    assert set(signatures) == set(explained["scores"])
    assert signatures["plain"].startswith("rubric|judge:function:judges:judge|")
    report = next(page.pytester.path.glob("reports/*/report.md")).read_text("utf-8")
    assert signatures["plain"].rpartition(":")[2] in report
    assert scores["test_poems[rain]"] == {"rhythm": 7.0, "imagery": 6.0, "debated_preference": 0.5}
    assert scores["test_better[rain]"] == {
        "preference": 0.875,
        "rhythm_preference": 0.5,
        "best_preference": pytest.approx(1 / 3),
    }
    assert [scores[f"test_canary[{one}]"]["factual"] for one in ("right", "wrong")] == [1.0, 0.0]


SHOP = '''
from evalsuite import Sample, benchmark, rubric
from evalsuite.solvers import conversation
from evalsuite.tools import Scripted, tool
from evalsuite.judges import each_turn


@tool
def price(item: str) -> str:
    """Looks up a price."""
    return "3 EUR"


@benchmark(
    "shop",
    [Sample(id="tea", input="Tea?")],
    solver=conversation([price], user=Scripted(["What is oolong?", "And what does it cost?"])),
    scorers=[each_turn(), rubric("Was every price looked up?", name="looked_up", fields=["conversation", "tools"])],
)
def test_shop(scores):
    assert scores["conversation"] >= 4
    assert scores["looked_up"] == 1.0
'''


def test_a_conversation_of_two_turns_with_tools_is_judged_turn_by_turn_and_call_by_call(page: Suite) -> None:
    page.pytester.makepyfile(test_shop=SHOP)
    page.model = ("--model=function:judges:seller",)
    page.run("--judge-model=function:judges:judge").assert_outcomes(passed=1)
    (record,) = page.records()
    assert record["facts"]["conversation"]["parts"] == {"1. 1": 5.0, "2. 2": 5.0}


LABELLED = """
from evalsuite import Sample, benchmark
from evalsuite.judges import faithful

SAMPLES = [
    Sample(
        f"{at}",
        "Say it.",
        metadata={"passages": ["So it is."]} | ({"human": "no" if at % 8 == 0 else "yes"} if at < 40 else {}),
    )
    for at in range(80)
]

def answer(sample, model):
    return "It is so." if int(sample.id) % 8 else "Nice."

@benchmark("qa", SAMPLES, solver=answer, scorers=[faithful(passes=0.5)])
def test_qa(scores):
    assert "faithful" in scores
"""


def test_the_commands_of_the_page_label_certify_and_gate(
    page: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page.pytester.makepyfile(test_qa=LABELLED)
    label, *judging, against, ranking, gated = commands()
    ((_, _, judge, *gates),) = [gated]
    assert judge == "--judge-model=gpt-4"
    ran = page.run("--run=RUN", "--judge-model=function:judges:judge", *gates)
    assert "judge.kappa: " in ran.stdout.str()
    assert "qa.corrected_faithful: " in ran.stdout.str()
    assert ran.ret in (0, 10), "there are labels enough for both gates"
    monkeypatch.chdir(page.path)
    monkeypatch.syspath_prepend(page.path)
    assert main(label[1:]) == 0
    sheet = (page.path / "labels.csv").read_text("utf-8")
    for person in ("ann", "ben"):
        (page.path / f"{person}.csv").write_text(sheet.replace("so.,", "so.,yes").replace("Nice.,", "Nice.,no"))
    (page.path / "cat.csv").write_text(sheet.replace("so.,", "so.,5").replace("Nice.,", "Nice.,1"))
    models = {"gpt-4": "function:judges:judge", "gpt-4o-mini": "function:judges:other"}
    assert len(judging) == 3
    for command in judging:
        assert main([models.get(word, word) for word in command[1:]]) in (0, 10)
    for copy in ("OLD", "NEW", "A", "B", "C"):
        shutil.copytree(page.path / "reports/RUN", page.path / "reports" / copy)
    for command in (against, ranking):
        assert main([models.get(word, word) for word in command[1:]]) in (0, 10)
    shown = capsys.readouterr().out
    for part in (
        "Win rates",
        "Ratings by",
        "Agreement with people",
        "People among themselves",
        "Judges compared",
        "Mutation tests",
        "judge.kappa",
    ):
        assert part in shown
