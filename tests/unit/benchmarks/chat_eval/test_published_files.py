"""FairEval's and Topical-Chat's own files in every mode: who sees what in which order, and what comes of it.

Expected verdicts and scores are worked out here from the files, by the rules of `scripted_panel`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.chat_eval import CHAT_EVAL
from evalsuite.benchmarks.chat_eval.solver import MODES, parse_mode
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion, TokenLogprob
from tests.unit.benchmarks.chat_eval.scripted_panel import (
    ASPECTS,
    CHANCE,
    ScriptedPanel,
    debates,
    likeliest,
    logprobs,
    rating,
    worth,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.benchmarks.chat_eval.solver import JudgingMode
    from evalsuite.core.types import Sample, Transcript
    from tests.unit.benchmarks.chat_eval.scripted_panel import Shown

PUBLISHED = Path(__file__).parents[5] / "shared/data/chat_eval"
pytestmark = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the folder shared/data/chat_eval is not beside the project"
)
QUESTIONS, RESPONSES = 8, 6
"""Of the files, how many a test reads."""

ROLES = ("general public", "critic", "psychologist", "news author", "scientist")
SUFFIXED = (
    "paper:one_by_one:3roles",
    "paper:one_by_one:4roles:3turns",
    "paper:one_by_one:2roles:2turns:same_role",
    "paper:one_by_one:3turns:ballots",
    "paper:simultaneous:3roles:3turns",
    "paper:simultaneous:3roles:2turns:ballots",
    "paper:simultaneous_summarizer:3roles:3turns",
)
EVERY_MODE = (*MODES, *SUFFIXED)
DEBATED = [mode for mode in EVERY_MODE if mode.startswith("paper")]
Heard = tuple[tuple[str, int], ...]
"""Speakers with the turns in which they said what was heard."""


@dataclass
class Model:
    """The scripted judges as a model."""

    panel: ScriptedPanel = field(default_factory=ScriptedPanel)
    name: str = "scripted"
    overrides: dict[str, Any] = field(default_factory=dict)

    async def chat(self, prompt: Any, *, tools: Any = (), **params: Any) -> Completion:
        system, user = ["", *(message.content for message in prompt)][-2:]
        text = self.panel.answer(system, user, params)
        top = [(token, math.log(p)) for token, p in logprobs(user, text)] if params.get("logprobs") else []
        return Completion(text, logprobs=(TokenLogprob(text, top[0][1], tuple(top)),) if top else None)

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Model:
        return Model(self.panel, name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of each published file, in the published format."""
    small = tmp_path_factory.mktemp("published")
    for file in ("question.jsonl", *(f"answer/answer_{one}.jsonl" for one in ("gpt35", "vicuna-13b"))):
        _first_lines(PUBLISHED / "faireval" / file, small / "faireval" / file)
    review = "review/review_gpt35_vicuna-13b_human.txt"
    _first_lines(PUBLISHED / "faireval" / review, small / "faireval" / review)
    responses = json.loads((PUBLISHED / "topical_chat.json").read_text("utf-8"))[:RESPONSES]
    (small / "topical_chat.json").write_text(json.dumps(responses), "utf-8")
    return small


def _first_lines(source: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:QUESTIONS]), "utf-8")


@pytest.fixture(scope="module")
def judged(folder: Path) -> Callable[[str], tuple[list[tuple[Sample, Transcript]], ScriptedPanel]]:
    """All samples with what one mode made of them, and the calls that it took."""

    def run(mode: str) -> tuple[list[tuple[Sample, Transcript]], ScriptedPanel]:
        setup = Setup("scripted", data=folder, modes=(mode,))
        solver, model = CHAT_EVAL.solver(setup), Model()
        samples = CHAT_EVAL.load(setup).samples
        return [(sample, asyncio.run(solver(sample, model))) for sample in samples], model.panel

    return run


@pytest.mark.parametrize("mode", EVERY_MODE)
def test_verdicts_and_scores_are_those_that_the_files_give_by_hand(judged: Any, mode: str) -> None:
    results, _ = judged(mode)
    assert len(results) == QUESTIONS + RESPONSES
    for sample, transcript in results:
        assert "unparsed" not in transcript.facts
        answers = sample.metadata["answers"]
        if sample.tags["task"] == "pairs":
            assert transcript.facts["verdict"] == verdict(mode, *answers), sample.id
        else:
            wanted = {aspect: mean_rating(mode, aspect, answers[0]) for aspect in ASPECTS}
            assert transcript.facts["judged"] == pytest.approx(wanted), sample.id


@pytest.mark.parametrize("mode", DEBATED)
def test_everybody_hears_what_the_strategy_says_in_its_order(judged: Any, mode: str) -> None:
    rules = parse_mode(mode)
    results, panel = judged(mode)
    orders = {len(sample.metadata["answers"]) for sample, _ in results}
    assert orders == {1, 2}
    held = debates(panel.calls)
    assert len(held) == 2 * QUESTIONS + RESPONSES, "each comparison is debated in both orders"
    for calls in held.values():
        assert Counter(heard(calls)) == Counter(script(rules))


def names(mode: JudgingMode) -> list[str]:
    """The seats, in the order of speaking."""
    if mode.strategy is None:
        return ["judge"]
    if not mode.same_role:
        return list(ROLES[: mode.roles])
    return ["annotator"] if mode.roles == 1 else [f"annotator {at}" for at in range(1, mode.roles + 1)]


def judges(name: str) -> list[str]:
    """Whose opinions count in a mode."""
    mode = parse_mode(name)
    if mode.kind == "mec":
        return [f"judge {seed}" for seed in range(3)]
    return names(mode) if mode.kind == "paper" else ["judge"]


def verdict(mode: str, first: str, second: str) -> str:
    """By the means of both orders' scores, or by choices; a point is the gain of whatever stands first."""
    kind = parse_mode(mode).kind
    if kind == "weighted":
        return better(*(expected("quality", 1, 5, text) for text in (first, second)))
    ours = [(worth(judge, first), worth(judge, second)) for judge in judges(mode)]
    if kind in ("mec", "paper"):
        return better(*(sum(2 * worths[at] + 1 for worths in ours) for at in (0, 1)))
    votes = [better(one + 1, two) for one, two in ours] + [better(one, two + 1) for one, two in ours]
    winner, count = Counter(votes).most_common(1)[0]
    return winner if 2 * count > len(votes) else "tie"


def better(first: float, second: float) -> str:
    return "tie" if math.isclose(first, second) else "first" if first > second else "second"


def mean_rating(mode: str, aspect: str, response: str) -> float:
    """The mean over the judges, or the expected score."""
    if parse_mode(mode).kind == "weighted":
        return expected(aspect, *ASPECTS[aspect], response)
    ratings = [rating(judge, aspect, response) for judge in judges(mode)]
    return sum(ratings) / len(ratings)


def expected(aspect: str, low: int, high: int, text: str) -> float:
    return CHANCE * likeliest(aspect, low, high, text) + (1 - CHANCE) * low


def heard(calls: Sequence[Shown]) -> list[tuple[str, str, Heard]]:
    """Of one debate, each call's speaker and kind, and what was heard: who, and in which of their turns."""
    heard_later = {number for call in calls for _, number in call.heard}
    turns: Counter[str] = Counter()
    place: dict[int, tuple[str, int]] = {}
    for call in sorted(calls, key=lambda call: call.number):
        if call.number in heard_later or call.kind != "judgement":
            turns[call.speaker] += 1
            place[call.number] = (call.speaker, turns[call.speaker])
    for call in calls:
        assert all(place[number][0] == speaker for speaker, number in call.heard), "nobody speaks for others"
    return [(call.speaker, call.kind, in_turns([place[number] for _, number in call.heard])) for call in calls]


def in_turns(spoken: Sequence[tuple[str, int]]) -> Heard:
    """What was heard, each turn's speakers by name; turns come in their order."""
    turns = [turn for _, turn in spoken]
    assert turns == sorted(turns)
    return tuple(sorted(spoken, key=lambda one: (one[1], one[0])))


def script(mode: JudgingMode) -> list[tuple[str, str, Heard]]:
    """Who is asked and has heard what: section 2.3 of the paper."""
    seats = names(mode)
    asked: list[tuple[str, str, Heard]] = []
    audible: list[tuple[str, int]] = []
    spoken: list[tuple[str, int]] = []
    for turn in range(1, mode.turns + 1):
        kind = "judgement" if turn == mode.turns else "talk"
        said = [(seat, turn) for seat in seats]
        for at, seat in enumerate(seats):
            before = said[:at] if mode.strategy in (None, "one_by_one") else []
            asked.append((seat, kind, in_turns([*audible, *before])))
        spoken += said
        if mode.strategy != "simultaneous_summarizer":
            audible += said
        elif kind == "talk":
            asked.append(("summary", "summary", in_turns(spoken)))
            audible.append(("summary", turn))
        if mode.ballots and kind == "talk":
            asked += [(seat, "judgement", in_turns(audible)) for seat in seats]
    return asked
