"""The 382 published queries, asked of four scripted agents; every value is worked out from the paper's formulas."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.tool_eyes import TOOL_EYES
from evalsuite.benchmarks.tool_eyes.dataset import CAPABILITIES, SCENARIOS, load_dataset
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Record, Score
from evalsuite.output.reports.section import Table
from evalsuite.results.tally import Row, RunView, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Request, Sample

PUBLISHED = Path(__file__).parents[5] / "shared" / "data" / "tool_eyes"
pytestmark = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the folder shared/data/tool_eyes is not beside the project"
)
# What the judge says, in tenths.
INTENT, VALIDITY, INTEGRITY, MATCH, QUALITY = 0.8, 0.9, 0.6, 0.5, 0.7
JUDGED = {"intent_comprehension": INTENT, "behaviour_planning": VALIDITY * INTEGRITY}
# What each agent does, and what comes of it: N_valid / N, and for tool selection sum(reality x match) / N_valid.
EXPECTED: Sequence[Mapping[str, float]] = (
    # One good call, then the answer.
    {"format_alignment": 1, "reality": 1, "tool_selection": MATCH, "answer_organisation": QUALITY},
    # A turn of no form before that: 2 of 3 turns are valid, and both of their calls are real.
    {"format_alignment": 2 / 3, "reality": 1, "tool_selection": MATCH, "answer_organisation": QUALITY},
    # A tool that does not exist, then the answer: 1 of 2 calls is real.
    {"format_alignment": 1, "reality": 1 / 2, "tool_selection": MATCH / 2, "answer_organisation": QUALITY},
    # Nine good calls and no answer.
    {"format_alignment": 1, "reality": 1, "tool_selection": MATCH, "answer_organisation": 0},
)


def agent_of(sample: Sample) -> int:
    return len(str(sample.input)) % len(EXPECTED)


def turns_of(sample: Sample) -> list[str]:
    document = sample.metadata["documents"][0]
    required = dict.fromkeys(document["parameters"]["required"], "x")
    good = act(document["name"], required)
    finish = act("finish", {"answer": "Done."})
    return ([good, finish], ["I will see.", good, finish], [act("no_such_tool", {}), finish], [good] * 9)[
        agent_of(sample)
    ]


def act(name: str, arguments: Mapping[str, str]) -> str:
    return f"Thought: I look.\nAction: {name}\nAction Input: {dict(arguments)}"


def judge(request: Request) -> str:
    marks = {
        "Judge how well the assistant's thoughts": INTENT,
        "Judge how well the assistant plans": VALIDITY,
        "Judge how sound": INTEGRITY,
        "Judge the answer": QUALITY,
    }
    asked = request.messages[0].content
    mark = next((mark for words, mark in marks.items() if words in asked), MATCH)
    return f"So.\nScore: {mark * 10:.0f}"


@pytest.fixture(scope="module")
def rows(backend: Any) -> list[tuple[Sample, Row]]:
    setup = Setup("tested", judge="judge", data=PUBLISHED, modes=("paper",))
    samples = load_dataset(setup).samples
    script: list[str] = []

    def answer(request: Request) -> str:
        if request.messages[0].content.startswith("You take the place"):
            return '{"status": "fine"}'
        if request.model == "judge":
            return judge(request)
        said = sum(message.role == "assistant" for message in request.messages)
        return script[said]

    async def play() -> list[tuple[Sample, Row]]:
        solver: Any = TOOL_EYES.solver(setup)
        rules, capabilities = TOOL_EYES.scorers(setup)
        asked, played = backend(answer), []
        for sample in samples:
            script[:] = turns_of(sample)
            transcript = await solver(sample, asked.handle())
            judgement: Any = await capabilities.judged(sample, transcript, asked.handle("judge"))  # type: ignore[union-attr]
            scores = {**rules(sample, transcript), **judgement}  # type: ignore[operator, dict-item]
            values = {name: score.value if isinstance(score, Score) else score for name, score in scores.items()}
            row = Row(sample.id, sample.id, 1, "passed", dict(sample.tags), values, transcript.facts)
            played.append((sample, row))
        await solver.aclose()
        return played

    return asyncio.run(play())


def test_every_official_query_scores_what_the_formulas_say(rows: list[tuple[Sample, Row]]) -> None:
    assert len(rows) == 382
    assert min(Counter(agent_of(sample) for sample, _ in rows).values()) > 50
    for sample, row in rows:
        expected = {**EXPECTED[agent_of(sample)], **JUDGED}
        overall = sum(expected[name] for name in CAPABILITIES) / 5
        for name, value in {**expected, "overall": overall, "match": MATCH}.items():
            assert row.scores[name] == pytest.approx(value), (sample.id, name)


def test_the_report_of_the_official_queries_has_the_paper_s_tables(rows: list[tuple[Sample, Row]]) -> None:
    def read(case: str) -> Record:
        return Record(case=case, benchmark="tool_eyes", sample=case, epoch=1, model="m", outcome="passed")

    assert TOOL_EYES.report
    section = TOOL_EYES.report([RunView("m", Tally.of(row for _, row in rows), judge="judge", read=read)])
    tables = {block.title: block for block in section.blocks if isinstance(block, Table)}
    # Table 1 of the paper, TG DU RS PL IR AM FT; its file counts 30 tools in AM, where the authors' page has 164.
    assert [list(cells) for cells in tables["What was asked"].rows] == [
        ["Categories", 5, 5, 6, 8, 9, 6, 2, 41],
        ["Subcategories", 6, 5, 14, 30, 19, 7, 14, 95],
        ["Tools", 27, 26, 75, 164, 150, 30, 96, 568],
        ["Queries", 58, 49, 56, 70, 54, 45, 50, 382],
    ]
    (overall,) = tables["Overall score by scenario"].rows
    for scenario, cell in zip(SCENARIOS, overall[2:], strict=False):
        values = [row.scores["overall"] for sample, row in rows if sample.tags["scenario"] == scenario]
        assert cell.value == pytest.approx(mean(values))  # type: ignore[union-attr]
    (selection,) = tables["Parts of the capabilities"].rows
    shares = Counter(agent_of(sample) for sample, _ in rows)
    half = shares[2] / 382
    expected = [1 - half / 2, MATCH, MATCH * (1 - half / 2)]
    assert [cell.value for cell in selection[1:4]] == pytest.approx(expected)  # type: ignore[union-attr]
