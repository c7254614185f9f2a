"""A judge that may say "cannot tell": the case has no score, and is counted apart."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import Sample, benchmark, evaluate, generate, rubric
from evalsuite.core.errors import JudgeError, ScoringError, SettingsError
from evalsuite.core.types import Score, Transcript
from evalsuite.engine.scoring import ScoresByName
from evalsuite.judges import each_turn, pairwise
from evalsuite.output.reports.judges import read_judged_cases, tabulate_biases
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = Sample(
    "sky",
    "Why is the sky blue?",
    metadata={"old": "Dust.", "criteria": ["Is it true?"], "human": {"preference": "yes"}},
)
ANSWER = Transcript("Because of scattering.")
UNTOLD = json.dumps({"reason": "nothing is shown of it", "verdict": "cannot tell"})


def judged(scorer: Any, model: Any) -> dict[str, Any]:
    return asyncio.run(scorer.judged(SAMPLE, ANSWER, model))


def numbers(scores: dict[str, Any]) -> dict[str, float]:
    return {name: score.value if isinstance(score, Score) else score for name, score in scores.items()}


def in_turn(*answers: str) -> Any:
    left = list(answers)
    return lambda _: left.pop(0)


@pytest.mark.parametrize(
    ("criteria", "options", "key"),
    [
        ("Is it true?", {}, "verdict"),
        ("Is it clear?", {"scale": (1, 5)}, "score"),
        (["Is it true?", "Is it short?"], {}, "answers"),
        ({"question": "Is it true?", "yes": 1, "no": 0}, {}, "answers"),
        (None, {}, "answers"),
    ],
)
def test_of_any_criteria_a_judge_may_say_that_it_cannot_tell(
    scripted: Any, criteria: Any, options: Any, key: str
) -> None:
    model = scripted(lambda _: json.dumps({"reason": "nothing is shown of it", key: "cannot tell"}))
    scores = judged(rubric(criteria, cannot_tell=True, **options), model)
    assert numbers(scores) == {"rubric_cannot_tell": 1.0}
    score = scores["rubric_cannot_tell"]
    assert (score.note, score.facts["rubric"]["cannot_tell"]) == ("nothing is shown of it", 1)
    assert f'write "cannot tell" as the {key}.' in model.calls[0].prompt
    schema = model.calls[0].params["response_format"]["json_schema"]["schema"]
    assert schema["properties"][key]["anyOf"][1] == {"type": "string", "enum": ["cannot tell"]}


def test_items_may_be_undecidable_as_a_whole(scripted: Any) -> None:
    model = scripted(lambda _: '{"items": "cannot tell"}')
    assert numbers(judged(each_turn(cannot_tell=True), model)) == {"conversation_cannot_tell": 1.0}


def test_a_judge_that_tells_scores_as_without_the_offer(scripted: Any) -> None:
    scores = judged(rubric("True?", cannot_tell=True), scripted(lambda _: '{"reason": "it is", "verdict": "yes"}'))
    assert numbers(scores) == {"rubric": 1.0, "rubric_cannot_tell": 0.0}


@pytest.mark.parametrize(
    "answer", ["Verdict: cannot tell", "I can't tell", "Verdict: undecided", "verdict: unable to judge"]
)
def test_words_with_the_same_meaning_are_read(scripted: Any, answer: str) -> None:
    assert numbers(judged(rubric("True?", cannot_tell=True), scripted(lambda _: answer))) == {"rubric_cannot_tell": 1.0}
    assert "preference_cannot_tell" in judged(pairwise("old", cannot_tell=True), scripted(lambda _: answer))


@pytest.mark.parametrize("scorer", [rubric("True?", attempts=1), pairwise("old", attempts=1)])
def test_a_judge_to_whom_it_was_not_offered_gives_no_usable_answer(scripted: Any, scorer: Any) -> None:
    with pytest.raises(JudgeError, match="no usable answer"):
        judged(scorer, scripted(lambda _: "Verdict: cannot tell"))


def test_an_answer_with_both_is_asked_again(scripted: Any) -> None:
    model = scripted(in_turn("Verdict: cannot tell\nScore: yes\nVerdict: yes", "Verdict: yes"))
    assert numbers(judged(rubric("True?", cannot_tell=True), model))["rubric"] == 1.0
    assert "gives a verdict as well" in model.calls[1].messages[-1].content


@pytest.mark.parametrize(
    ("told", "value"), [(["yes", "cannot tell", "no"], 0.5), (["yes", "cannot tell", "cannot tell"], None)]
)
def test_a_case_has_a_score_if_more_than_half_of_the_judgements_tell(
    scripted: Any, told: list[str], value: float | None
) -> None:
    model = scripted(in_turn(*(json.dumps({"reason": "r", "verdict": verdict}) for verdict in told)))
    scores = judged(rubric("True?", samples=3, cannot_tell=True), model)
    assert numbers(scores).get("rubric") == value
    facts = next(iter(scores.values())).facts["rubric"]
    assert facts["cannot_tell"] == told.count("cannot tell")
    assert [ballot["scores"] for ballot in facts["ballots"]].count({}) == told.count("cannot tell")


@pytest.mark.parametrize(("later", "value"), [("cannot tell", None), ("yes", 1.0), ("no", 0.0)])
def test_a_failure_that_is_not_confirmed_because_judges_cannot_tell_is_not_one(
    scripted: Any, later: str, value: float | None
) -> None:
    told = ["no", later, later]
    model = scripted(in_turn(*(json.dumps({"reason": "r", "verdict": verdict}) for verdict in told)))
    scores = judged(rubric("True?", confirm_failures=3, cannot_tell=True), model)
    assert numbers(scores).get("rubric") == value


def test_a_judge_that_cannot_tell_is_not_asked_to_confirm_it(scripted: Any) -> None:
    model = scripted(lambda _: UNTOLD)
    judged(rubric("True?", confirm_failures=3, cannot_tell=True), model)
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    ("levels", "told", "scores"),
    [
        (3, ["1", "2"], {"preference": 1.0, "preference_cannot_tell": 0.0}),
        (3, ["1", "cannot tell"], {"preference_cannot_tell": 1.0}),
        (5, ["1 better", "2 much better"], {"preference": 0.875, "preference_cannot_tell": 0.0}),
        (5, ["cannot tell", "2 better"], {"preference_cannot_tell": 1.0}),
    ],
)
def test_a_comparison_has_a_score_if_both_orders_tell(
    scripted: Any, levels: Any, told: list[str], scores: dict[str, float]
) -> None:
    model = scripted(in_turn(*(f"Verdict: {verdict}" for verdict in told)))
    assert numbers(judged(pairwise("old", levels=levels, cannot_tell=True), model)) == scores
    assert "`Verdict: cannot tell`" in model.calls[0].prompt


def test_ballots_that_do_not_tell_are_left_out_beside_those_that_do(scripted: Any) -> None:
    told = ["1", "1", "cannot tell", "2", "cannot tell", "2"]
    model = scripted(in_turn(*(f"Verdict: {verdict}" for verdict in told)))
    scores = judged(pairwise("old", samples=3, cannot_tell=True), model)
    assert numbers(scores) == {"preference": 1.0, "preference_cannot_tell": 0.0}
    assert scores["preference"].facts["people"]["preference"]["label"] == 1.0
    (case,) = read_judged_cases(Tally((make_row(numbers(scores), scores["preference"].facts),)))
    assert [vote.verdict for vote in case.votes] == ["first"] * 4


def test_a_case_without_verdict_shows_no_bias(scripted: Any) -> None:
    scores = judged(pairwise("old", cannot_tell=True), scripted(lambda _: "Verdict: cannot tell"))
    facts = scores["preference_cannot_tell"].facts
    assert (facts["verdict"], facts.get("people")) == ("cannot tell", None)
    table = tabulate_biases("Biases", [("mine", Tally((make_row(numbers(scores), facts),)))])
    assert [row[2] for row in table.rows] == [None] * 4


def test_the_offer_is_part_of_the_signature_and_leaves_other_signatures_as_they_were(scripted: Any) -> None:
    judge = scripted(lambda _: "")
    assert rubric("True?").write_signature([judge]) != rubric("True?", cannot_tell=True).write_signature([judge])
    assert rubric().write_signature([judge]) != rubric(cannot_tell=True).write_signature([judge])
    assert pairwise("old").write_signature([judge]) != pairwise("old", cannot_tell=True).write_signature([judge])


def test_the_share_of_cases_without_verdict_is_better_if_it_is_lower() -> None:
    assert rubric("True?").metrics == pairwise().metrics == {}
    declared = rubric("Clear?", scale=(1, 5), name="clear", cannot_tell=True).metrics
    assert {name: (one.range, one.better) for name, one in declared.items()} == {
        "clear": ((1.0, 5.0), "higher"),
        "clear_cannot_tell": ((0.0, 1.0), "lower"),
    }
    assert rubric(cannot_tell=True).metrics["rubric"].range is None
    assert set(pairwise(cannot_tell=True).given(prefix="x_").metrics) == {"x_preference", "x_preference_cannot_tell"}


def test_a_template_has_its_own_verdicts() -> None:
    with pytest.raises(SettingsError, match="anchors and cannot_tell"):
        rubric(template="{answer}", cannot_tell=True)


def test_a_test_that_asks_for_the_missing_score_is_told_why() -> None:
    with pytest.raises(ScoringError, match="the judge cannot tell 'plain'"):
        ScoresByName({"plain_cannot_tell": 1.0}, set())["plain"]
    with pytest.raises(ScoringError, match="no scorer gives the score 'plain'"):
        ScoresByName({"plain_cannot_tell": 0.0}, set())["plain"]


def affirm(_: Any) -> str:
    return "yes"


def tell_all_but_one(messages: Any) -> str:
    return UNTOLD if "question 7" in str(messages) else '{"reason": "it is", "verdict": "yes"}'


def test_a_gate_counts_cases_without_verdict_at_the_bad_end_and_another_their_share(tmp_path: Path) -> None:
    samples = [Sample(f"q{at}", f"question {at}.") for at in range(20)]

    @benchmark("told", samples, solver=generate(), scorers=[rubric("True?", name="true", cannot_tell=True)])
    def check(scores: Any) -> None:
        assert scores.get("true", 1.0) == 1.0

    gates = ["true >= 0.96", "true_cannot_tell <= 0.05", "true_cannot_tell <= 0.04"]
    run = evaluate(check, model=affirm, judge=tell_all_but_one, gates=gates, reports=str(tmp_path))
    assert [record.outcome for record in run.records] == ["passed"] * 20
    assert sum("true" in record.scores for record in run.records) == 19
    assert [decision.verdict for decision in run.verdict.decisions] == ["no data", "met", "missed"]
    assert "1 without this score" in run.verdict.decisions[0].reason


def make_row(scores: dict[str, float], facts: Any) -> Row:
    return Row("case", "sky", 1, "passed", {}, scores, facts)
