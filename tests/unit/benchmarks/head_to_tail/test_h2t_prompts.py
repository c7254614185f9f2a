"""Each mode asks as it says, and the judge's prompt holds all that it needs."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, cast

import pytest

from evalsuite.benchmarks.head_to_tail.dataset import load_dataset
from evalsuite.benchmarks.head_to_tail.prompts import (
    OWN_MODES,
    PAPER_MODES,
    make_judge_prompt,
    make_prompt,
    make_solver,
    read_paper_prompts,
)
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion, Message, Sample

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "Who wrote {it}?"
OTHER = ("Who wrote {that}?", "A. Nother")
# Not the paper's words, but its slots.
PAPER = {
    2: "Check. Question: {QUESTION} Truth: {GROUND_TRUTH} Said: {PREDICTION} Verdict:",
    3: "Few shots.\n\nQuestion: {QUESTION} Answer:",
    4: "No shots. {QUESTION}",
    5: "One shot.\nQuestion: {QUESTION#} Answer: {ANSWER#}\nQuestion: {QUESTION} Answer:",
    6: "Briefly. {QUESTION}",
    7: "Guess. {QUESTION} Answer:",
}


def shown(mode: str) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in make_prompt(mode, QUESTION, OTHER)]


def written(mode: str) -> str:
    return "\n".join(content for _, content in shown(mode))


def answers(mode: str) -> list[str]:
    return [content for role, content in shown(mode) if role == "assistant"]


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    for number, text in PAPER.items():
        (tmp_path / f"prompt_{number}.txt").write_text(text, encoding="utf-8")
    records = [[name, "t-0", f"Who wrote {name}?", f"Author of {name}"] for name in ("One", "Two")]
    (tmp_path / "head_to_tail_book.json").write_text(
        json.dumps({"head": records, "torso": [], "tail": []}), encoding="utf-8"
    )
    return tmp_path


class Asked:
    """A model that answers with what it was asked."""

    async def chat(self, messages: object, **_: object) -> Completion:
        self.messages = messages
        return Completion("unsure")


@pytest.mark.parametrize("mode", OWN_MODES)
def test_every_mode_ends_with_the_question_as_it_stands(mode: str) -> None:
    role, content = shown(mode)[-1]
    assert role == "user"
    assert content.endswith(QUESTION)


def test_few_shot_shows_one_answer_and_one_unsure_as_turns_that_went_before() -> None:
    assert [role for role, _ in shown("few_shot")] == ["user", "assistant"] * 2 + ["user"]
    assert answers("few_shot") == ["Mercury", "unsure"]


def test_zero_shot_is_few_shot_without_the_examples() -> None:
    assert shown("zero_shot") == shown("few_shot")[-1:]


def test_in_domain_swaps_the_answerable_example_for_one_of_the_same_template() -> None:
    assert answers("in_domain") == ["A. Nother", "unsure"]
    assert shown("in_domain")[2:] == shown("few_shot")[2:]
    assert OTHER[0] in shown("in_domain")[0][1]


def test_in_domain_shows_the_usual_example_where_a_template_has_no_other_question() -> None:
    assert make_prompt("in_domain", QUESTION) == make_prompt("few_shot", QUESTION)


def test_a_sample_in_domain_has_an_example_of_its_template_about_another_entity() -> None:
    for sample in load_dataset(Setup(model="m", modes=("in_domain",))).samples:
        example = sample.metadata["example"]
        assert example["question"] != sample.input
        assert example["answer"] != sample.target


def test_no_brief_takes_away_only_the_wish_for_brevity() -> None:
    assert "brief" in written("few_shot")
    assert "brief" not in written("no_brief")
    assert written("no_brief").count("unsure") == written("few_shot").count("unsure")


def test_no_unsure_takes_away_every_mention_of_it_and_keeps_two_examples() -> None:
    assert "unsure" not in written("no_unsure")
    assert len(answers("no_unsure")) == 2
    assert "brief" in written("no_unsure")


def test_neither_is_the_bare_question() -> None:
    assert shown("neither") == [("user", QUESTION)]


def test_brief_only_asks_for_brevity_alone() -> None:
    assert "brief" in written("brief_only")
    assert "unsure" not in written("brief_only")
    assert answers("brief_only") == []


def test_best_guess_asks_for_a_guess_in_place_of_unsure() -> None:
    assert "guess" in written("best_guess")
    assert "unsure" not in written("best_guess")


def test_cloze_shows_sentences_with_gaps_and_asks_for_one() -> None:
    sample = next(iter(load_dataset(Setup(model="m", modes=("cloze",))).samples))
    assert sample.input == "Who directed the 1997 film Titanic?"
    assert sample.metadata["gap"] == "The 1997 film Titanic was directed by _."
    lines = [content for role, content in shown("cloze")[:-1] if role == "user"]
    assert all("_." in line and "?" not in line for line in lines)


def test_no_example_is_a_question_of_the_shipped_pack() -> None:
    asked = {str(sample.input) for sample in load_dataset(Setup(model="m")).samples}
    examples = "\n".join(written(mode) for mode in OWN_MODES)
    assert not [question for question in asked if question in examples]


def test_the_judge_sees_the_question_every_acceptable_answer_and_the_given_one() -> None:
    asked = make_judge_prompt("Who?", ["A. One", "B. Two"], "C. Three")
    assert "Who?" in asked
    assert "- A. One\n- B. Two" in asked
    assert re.search(r'<given key="(\w+)">\nC\. Three\n</given key="\1">', asked)


@pytest.mark.parametrize("mode", ["paper", "paper:zero_shot", "paper:brief", "paper:best_guess"])
def test_a_mode_of_the_paper_asks_in_the_words_of_the_file(paper: Path, mode: str) -> None:
    model = Asked()
    sample = load_dataset(Setup(model="m", data=paper, modes=(mode,))).samples[0]
    asyncio.run(make_solver(Setup(model="m", data=paper, modes=(mode,)))(sample, model))  # type: ignore[arg-type]
    assert asked(model) == PAPER[PAPER_MODES[mode]].replace("{QUESTION}", "Who wrote One?")


def test_the_paper_s_in_domain_prompt_shows_another_question_of_the_template(paper: Path) -> None:
    setup, model = Setup(model="m", data=paper, modes=("paper:in_domain",)), Asked()
    asyncio.run(make_solver(setup)(load_dataset(setup).samples[0], model))  # type: ignore[arg-type]
    expected = "One shot.\nQuestion: Who wrote Two? Answer: Author of Two\nQuestion: Who wrote One? Answer:"
    assert asked(model) == expected


def test_what_a_question_says_in_braces_is_no_slot(paper: Path) -> None:
    setup, model = Setup(model="m", data=paper, modes=("paper:zero_shot",)), Asked()
    sample = Sample("x", "Who wrote {QUESTION}?", "A", {"mode": "paper:zero_shot"})
    asyncio.run(make_solver(setup)(sample, model))  # type: ignore[arg-type]
    assert asked(model) == "No shots. Who wrote {QUESTION}?"


def test_the_judge_of_the_paper_s_mode_is_asked_in_the_paper_s_words(paper: Path) -> None:
    prompts = read_paper_prompts(paper, ["paper"], judged=True)
    assert prompts is not None
    assert (
        prompts.write_judge_prompt("Who?", ["A", "B"], "C")
        == 'Check. Question: Who? Truth: ["A", "B"] Said: C Verdict:'
    )


def test_a_mode_of_the_paper_without_data_says_where_its_prompts_come_from() -> None:
    with pytest.raises(SettingsError, match=r"prompt_2.txt to prompt_7.txt .* --data DIR"):
        make_solver(Setup(model="m", modes=("paper",)))


@pytest.mark.parametrize(
    ("judge", "number", "text", "message"),
    [
        (None, 3, None, "prompt_3.txt: no such file"),
        ("j", 2, None, "prompt_2.txt: no such file"),
        (None, 3, "Question: ___", "no {QUESTION}"),
        ("j", 2, "{QUESTION} {GROUND_TRUTH}", "no {PREDICTION}"),
    ],
)
def test_a_prompt_that_is_missing_or_lacks_a_slot_is_named(
    paper: Path, judge: str | None, number: int, text: str | None, message: str
) -> None:
    file = paper / f"prompt_{number}.txt"
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(DatasetError) as caught:
        make_solver(Setup(model="m", judge=judge, data=paper, modes=("paper",)))
    assert message in str(caught.value)


def asked(model: Asked) -> str:
    (message,) = cast("tuple[Message, ...]", model.messages)
    return str(message.content)
