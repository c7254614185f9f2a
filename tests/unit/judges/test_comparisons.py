"""`rubric` with `compare=`, several scores and expected scores: one way to say how a judge judges."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import evalsuite
from evalsuite import rubric
from evalsuite.commands.judge_sheet import _list_score_names
from evalsuite.core.errors import JudgeError, SettingsError
from evalsuite.core.types import Completion, Sample, Score, TokenLogprob, Transcript
from evalsuite.judges import JudgeScorer, Likert, YesNo, multiple_evidence, pairwise, weighted

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE = Sample(
    "sky", "Why is the sky blue?", "Scattering.", metadata={"old": "Paint.", "new": "Magic.", "human": "no"}
)
ANSWER = Transcript("Air scatters blue light.")


def judged(scorer: Any, model: Any) -> dict[str, Score]:
    found: dict[str, Score] = asyncio.run(scorer.judged(SAMPLE, ANSWER, model))
    return found


def prefers(*texts: str) -> Callable[[Any], str]:
    """Chooses the first of these texts that it sees, at whatever place."""

    def answer(asked: Any) -> str:
        shown = re.findall(r"<answer_(\d)>\n(.*?)\n</", asked.prompt)
        places = {text: place for place, text in shown}
        return f"Verdict: {next(places[text] for text in texts if text in places)}"

    return answer


def test_two_answers_are_compared_on_a_question_in_both_orders(scripted: Any) -> None:
    model = scripted(prefers(ANSWER.answer))
    found = judged(rubric("Is it true?", compare="old", name="true"), model)
    assert found["true_preference"].value == 1.0
    assert len(model.calls) == 2
    assert "Which answer is better in this respect? Is it true?" in model.calls[0].prompt


def test_two_answers_are_scored_on_a_scale_with_reasons_first_and_means_are_compared(scripted: Any) -> None:
    model = scripted(lambda _: "so\nScore of answer 1: 3\nScore of answer 2: 2")
    found = judged(rubric("Is it clear?", scale=(1, 3), compare="old", samples=2), model)
    assert found["preference"].value == 0.5, "whoever prefers the first place decides nothing"
    assert len(model.calls) == 4
    assert "Score both answers on score (1 to 3: Is it clear?)" in model.calls[0].prompt
    assert {call.params["temperature"] for call in model.calls} == {1.0}


def test_several_questions_on_a_scale_give_a_score_each_in_one_call(scripted: Any) -> None:
    model = scripted(lambda _: "so\nclarity: 4\nwit: 2")
    asked = [Likert("is it clear?", name="clarity"), Likert("does it surprise?", 1, 3, name="wit")]
    found = judged(rubric(asked), model)
    assert (found["clarity"].value, found["wit"]) == (4.0, Score(2.0, signature=found["clarity"].signature))
    assert len(model.calls) == 1


def test_overall_quality_is_scored_where_only_a_scale_is_given(scripted: Any) -> None:
    assert judged(rubric(scale=(1, 10)), scripted(lambda _: "fine\nquality: 7"))["quality"].value == 7.0


def test_the_anchors_of_a_scale_reach_every_form(scripted: Any) -> None:
    model = scripted(lambda _: "Score of answer 1: 3\nScore of answer 2: 3")
    judged(rubric("Clear?", anchors={1: "muddled", 3: "lucid"}, compare="old"), model)
    assert "1: muddled\n3: lucid" in model.calls[0].prompt


def test_an_expected_score_is_weighted_by_the_probabilities_of_its_token(scripted: Any) -> None:
    likely = TokenLogprob("4", -0.6931471805599453, (("4", -0.6931471805599453), ("2", -0.6931471805599453)))
    model = scripted(lambda _: Completion("4", logprobs=(likely,)))
    found = judged(rubric("Is it clear?", scale=(1, 5), name="clear", aggregate="expected"), model)
    assert found["clear"].value == pytest.approx(3.0)
    assert len(model.calls) == 1


def test_the_best_of_several_answers_is_chosen_with_each_at_each_place(scripted: Any) -> None:
    model = scripted(prefers(ANSWER.answer))
    (score,) = judged(rubric(compare=["old", "new"]), model).values()
    assert (score.value, score.facts["wins"]) == (1.0, [1.0, 0.0, 0.0])
    assert [re.findall(r"<answer_\d>\n(\w+)", call.prompt) for call in model.calls] == [
        ["Air", "Paint", "Magic"],
        ["Paint", "Magic", "Air"],
        ["Magic", "Air", "Paint"],
    ]
    assert "Which answer is best?" in model.calls[0].prompt.replace("the best", "best")


@pytest.mark.parametrize(
    ("said", "value"), [("Verdict: 1", 1 / 3), ("Verdict: answer C", 1 / 3), ("Verdict: tie", 1 / 3)]
)
def test_a_judge_that_prefers_a_place_gives_every_answer_the_same_share(scripted: Any, said: str, value: float) -> None:
    (score,) = judged(rubric(compare=["old", "new"]), scripted(lambda _: said)).values()
    assert score.facts["wins"] == pytest.approx([value] * 3)


def test_most_orders_of_a_choice_must_be_readable(scripted: Any) -> None:
    def first_order(asked: Any) -> str:
        return "Verdict: 1" if "<answer_1>\nAir" in asked.prompt else "?"

    with pytest.raises(JudgeError, match="1 of 3 answers could be read; 2 are needed"):
        judged(rubric(compare=["old", "new"], attempts=1), scripted(first_order))
    (score,) = judged(rubric(compare=["old", "new"], attempts=1, quorum=1), scripted(first_order)).values()
    assert score.value == 1.0


def test_people_label_comparisons_of_two_answers_only() -> None:
    two, three = rubric(compare="old"), rubric(compare=["old", "new"])
    assert [_list_score_names(scorer) for scorer in (two, three)] == [["preference"], []]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"compare": "old", "levels": 4}, "levels is 3 or 5"),
        ({"criteria": "Right?", "levels": 5}, "belong to compare="),
        ({"criteria": "Right?", "swap": False}, "belong to compare="),
        ({"compare": "old", "fields": ["answer"]}, "fields= belongs to one score"),
        ({"compare": "old", "aggregate": "median"}, "aggregate= belongs to one score"),
        ({"compare": "old", "model": ["a", "b"]}, "model= belongs to one score"),
        ({"compare": ["old", "new"], "scale": (1, 5)}, "only chooses the best"),
        ({"compare": ["old", "new"], "samples": 3}, "only chooses the best"),
        ({"compare": [f"rival {at}" for at in range(9)]}, "at most 8 rivals; got 9"),
        ({"criteria": {"a?": 1}, "compare": "old"}, "one question on a scale"),
        ({"criteria": YesNo("a?"), "aggregate": "expected"}, "one question on a scale"),
        ({"criteria": [Likert("a?", name="a"), Likert("b?", name="b")], "compare": "old"}, "a single aspect"),
        ({"criteria": "Clear?", "scale": (1, 10), "aggregate": "expected"}, "within 0 to 9"),
    ],
)
def test_options_that_do_not_go_together_are_refused_where_they_are_declared(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        rubric(**options)


def test_older_names_make_the_same_judges() -> None:
    quality = Likert("how well the answer does overall what was asked", 1, 10, name="quality")
    for old, new in (
        (pairwise("old", levels=5), rubric(compare="old", levels=5)),
        (multiple_evidence(rival="old"), rubric([quality], compare="old", samples=3)),
        (weighted(rival="old"), rubric([replace(quality, high=5)], compare="old", aggregate="expected")),
    ):
        assert isinstance(new, JudgeScorer)
        assert old.write_signature([]) == new.write_signature([])
    with pytest.warns(DeprecationWarning, match="is now evalsuite.judges.pairwise"):
        assert getattr(evalsuite, "pairwise") is pairwise  # noqa: B009 - the stub leaves the older name out


def test_an_expected_score_without_a_name_is_called_as_any_other(scripted: Any) -> None:
    model = scripted(lambda _: "4")
    for criteria in ("Is it clear?", Likert("is it clear?")):
        asked = rubric(criteria, scale=(1, 5) if isinstance(criteria, str) else None, aggregate="expected", samples=2)
        assert set(judged(asked, model)) == {"rubric"}
