"""Right, made up or missing: rules, the judge, and answers that admit not knowing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL
from evalsuite.benchmarks.head_to_tail.scoring import RULES, ByExactMatch, ByJudge, ByRule, is_abstention
from evalsuite.core.errors import JudgeError
from evalsuite.core.protocols import JudgedScorer, Setup
from evalsuite.core.types import Completion, Sample, Score, Target, Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Message


class Scripted:
    """A model that says what it is told to, one answer a call, and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.params: dict[str, Any] = {}
        self.overrides: dict[str, Any] = {}

    async def chat(
        self,
        prompt: str | Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        **params: Any,
    ) -> Completion:
        self.asked.append(prompt)
        self.params = params
        return Completion(self.answers.pop(0))

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Scripted:
        return self


def sample(target: Target = "Christopher Nolan", question: str = "Who directed Inception?") -> Sample:
    return Sample("one", question, target, {"domain": "movie", "bucket": "head", "mode": "few_shot"})


def by_rule(answer: str, target: Target = "Christopher Nolan") -> dict[str, float]:
    one, said = sample(target), Transcript(answer)
    return {**ByRule()(one, said), **ByExactMatch()(one, said)}


def judged(answer: str, *verdicts: str) -> tuple[dict[str, Score], Scripted]:
    judge = Scripted(*verdicts)
    scores = asyncio.run(ByJudge().judged(sample(), Transcript(answer), judge))
    assert {str(getattr(score, "signature", "")).split("|")[1] for score in scores.values()} == {"judge:scripted"}
    return {name: score for name, score in scores.items() if isinstance(score, Score)}, judge


def test_a_right_answer_is_accurate_by_every_rule() -> None:
    scores = by_rule("Nolan")
    assert scores["accuracy"] == scores["accuracy_em"] == scores["accuracy_f1"] == scores["accuracy_rl"] == 1.0
    assert scores["hallucination"] == scores["missing"] == 0.0


def test_a_wrong_answer_is_made_up_and_partly_right_by_the_soft_rules() -> None:
    scores = by_rule("Christopher Columbus")
    assert (scores["accuracy_em"], scores["hallucination_em"], scores["missing"]) == (0.0, 1.0, 0.0)
    assert scores["accuracy_f1"] == scores["token_f1"] == 0.5
    assert scores["hallucination_f1"] == 0.5


def test_an_unsure_answer_is_missing_and_neither_right_nor_made_up() -> None:
    scores = by_rule("unsure", target="Not Sure")
    assert scores["missing"] == 1.0
    assert scores["token_f1"] == 0.0
    shares = {value for name, value in scores.items() if name.startswith(("accuracy", "hallucination"))}
    assert shares == {0.0}


def test_a_missing_answer_that_shares_words_with_the_target_is_still_not_accurate() -> None:
    scores = by_rule("I don't know", target="I Know What You Did Last Summer")
    assert scores["token_f1"] > 0.0
    assert scores["accuracy_f1"] == scores["hallucination_f1"] == 0.0


def test_the_right_answer_unknown_is_not_missing() -> None:
    scores = by_rule("Unknown", target="Unknown")
    assert (scores["missing"], scores["accuracy"]) == (0.0, 1.0)


def test_the_label_that_models_repeat_is_no_part_of_the_answer() -> None:
    for answer in ("Answer: Christopher Nolan", "**Answer:** Christopher Nolan", "**A**: *Christopher Nolan*"):
        assert by_rule(answer)["accuracy"] == 1.0
    assert by_rule("A: unsure")["missing"] == 1.0
    assert by_rule("A: Nolan")["token_f1"] == 1.0


def test_the_best_of_several_acceptable_answers_counts() -> None:
    assert by_rule("Ulan Bator", target=["Ulaanbaatar", "Ulan Bator"])["accuracy"] == 1.0


@given(answer=st.text(max_size=40), target=st.text(min_size=1, max_size=20))
@settings(deadline=None, max_examples=60)
def test_accuracy_hallucination_and_missing_make_up_the_whole_of_every_case(answer: str, target: str) -> None:
    scores = by_rule(answer, target)
    for suffix in ("", *(f"_{rule}" for rule in RULES)):
        accuracy, hallucination = scores[f"accuracy{suffix}"], scores[f"hallucination{suffix}"]
        assert hallucination == 1.0 - accuracy - scores["missing"]
        assert 0.0 <= accuracy <= 1.0
        assert 0.0 <= hallucination <= 1.0


@pytest.mark.parametrize(("verdict", "right"), [("correct", 1.0), ("Incorrect.", 0.0)])
def test_the_judge_decides_accuracy(verdict: str, right: float) -> None:
    scores, judge = judged("The director of Memento", verdict)
    correct = scores["correct"]
    assert correct.value == scores["accuracy"].value == scores["accuracy_lm"].value == right
    assert scores["hallucination"].value == scores["hallucination_lm"].value == 1.0 - right
    assert correct.log[0]["content"] == judge.asked[0][0].content
    assert "The director of Memento" in correct.log[0]["content"]
    assert judge.params["temperature"] == 0


def test_the_judge_is_not_asked_about_a_missing_answer() -> None:
    scores, judge = judged("unsure")
    assert judge.asked == []
    assert (scores["accuracy"].value, scores["hallucination"].value) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("I would say it is correct.", 1.0),
        ("**Incorrect**: he was the composer.", 0.0),
        ('{"verdict": "incorrect"}', 0.0),
        ("<think>Is it incorrect? No.</think>Correct", 1.0),
        ("Incorrect.\n\nThe correct answer is Stanley Kubrick.", 0.0),
        ("The given answer is incorrect because it names the composer.", 0.0),
        ("The answer names the composer. It is incorrect.", 0.0),
        ("<answer>incorrect</answer>", 0.0),
    ],
)
def test_a_verdict_that_a_reader_would_understand_is_read(said: str, right: float) -> None:
    scores, judge = judged("Nolan", said)
    assert scores["accuracy"].value == right
    assert len(judge.asked) == 1


def test_a_judge_that_decides_nothing_is_asked_again_and_then_is_an_error() -> None:
    scores, judge = judged("Nolan", "It is not correct.", "correct")
    assert scores["accuracy"].value == 1.0
    assert len(judge.asked) == 2
    with pytest.raises(JudgeError, match="scripted"):
        judged("Nolan", "correct or incorrect", "yes", "It isn't entirely correct.")


@pytest.mark.parametrize(
    "said",
    [
        "No. The correct answer is Stanley Kubrick.",
        "It would be correct if he had directed it.",
        "The answer is partly correct.",
        "Correct, but only in part.",
        "Nobody would call it correct.",
    ],
)
def test_a_sentence_that_holds_the_word_correct_is_not_a_verdict(said: str) -> None:
    scores, judge = judged("Nolan", said, "incorrect")
    assert scores["accuracy"].value == 0.0
    assert len(judge.asked) == 2


def test_without_a_judge_exact_match_decides_and_with_one_it_does() -> None:
    def deciders(judge: str | None) -> list[bool]:
        return [isinstance(one, JudgedScorer) for one in HEAD_TO_TAIL.scorers(Setup("m", judge=judge))]

    assert deciders(None) == [False, False]
    assert deciders("gpt-4") == [False, True]


def test_the_solver_asks_greedily_for_a_short_answer_and_takes_other_parameters() -> None:
    model = Scripted("Nolan", "Nolan")
    said = asyncio.run(HEAD_TO_TAIL.solver(Setup("m"))(sample(), model))
    assert said.answer == "Nolan"
    assert model.params == {"temperature": 0, "max_tokens": 32}
    assert said.messages[-2].content.endswith("Question: Who directed Inception?")
    assert [message.content for message in said.messages if message.role == "assistant"] == [
        "Mercury",
        "unsure",
        "Nolan",
    ]
    asyncio.run(HEAD_TO_TAIL.solver(Setup("m", args={"max_tokens": 256}))(sample(), model))
    assert model.params == {"temperature": 0, "max_tokens": 256}


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n",
        "...",
        "unsure",
        "Unsure.",
        '"unsure"',
        "I'm unsure",
        "I am not sure.",
        "I\u2019m not entirely certain who that was.",
        "I don't know",
        "I do not know who directed the film.",
        "I'm sorry, but I don't know.",
        "I'm afraid I don't know.",
        "It isn't known",
        "I do not have that information.",
        "I haven't a clue",
        "That information is not publicly available.",
        "Unsure - I don't know",
        "As an AI language model, I do not have enough information.",
        "Answer: unsure",
        "The answer is unknown.",
        "Unknown",
        "N/A",
        "No idea.",
        "I cannot determine the answer.",
        "I'm not aware of any such film.",
        "unsure\n\nI hope this helps!",
        "unsure\nQuestion: Who else? Answer: unsure",
        "I do not have access to that",
        "There is no information about this",
        "It is not known",
        "It is not known who wrote it.",
        "I'm unable to help",
        "I have no clue",
        "Unsure. I don't know.",
        "Unknown. Please give more context.",
        "Unsure, sorry",
        "As an AI, I cannot know",
        "As an AI assistant, I can't know that.",
        "Ich weiß es leider nicht.",
        "Das weiß ich nicht",
        "Keine Ahnung.",
        "Je ne sais pas qui a réalisé ce film.",
        "No lo sé.",
        "Non lo so",
        "Não sei.",
        "Ik weet het niet",
        "Не знаю, кто это снял.",
        "我不知道。",
        "不确定",
        "わかりません。",
        "모르겠습니다.",
        "Nie wiem.",
        "لا أعرف",
        "Unbekannt",
        "Desconocido.",
        "Не могу ответить на этот вопрос.",
        "Я не уверена.",
        "Bunu bilmiyorum.",
        "Bilmiyorum, üzgünüm.",
        "Jag vet tyvärr inte.",
        "Det vet jag inte",
        "En valitettavasti tiedä.",
        "Bohužel nevím.",
        "To nevím.",
        "मुझे नहीं पता।",
        "अज्ञात",
    ],
)
def test_owning_up_to_not_knowing_is_missing(answer: str) -> None:
    assert is_abstention(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Paris",
        "1999",
        "Unknown Pleasures",
        "Unsure, but maybe Paris",
        "Not sure, but I think it was Kubrick",
        "I don't know for certain, perhaps 1999",
        "Sure Thing",
        "Unsure. Stanley Kubrick",
        "Unsure - Stanley Kubrick",
        "No One Knows",
        "Unsure, Stanley Kubrick.",
        "unknown: 1999",
        "I am unable to determine that. Kubrick",
        "None Shall Escape",
        "It is unsure who wrote it; Homer is named most often",
        "Nairobi",
        "Je ne sais pas, mais peut-être Truffaut",
        "Ich weiß es nicht, vielleicht Wien",
        "我不知道，但可能是北京",
        "Bilmiyorum, belki İzmir",
        "Jag vet inte, kanske Bergman",
        "En tiedä, ehkä Kaurismäki",
        "Nevím, možná Forman",
        "मुझे नहीं पता, शायद दिल्ली",
        "Nevima",
        "Soy Cuba",
        "Sais Pasha",
    ],
)
def test_an_attempt_is_not_missing(answer: str) -> None:
    assert not is_abstention(answer)


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=60)
def test_any_text_is_decided_and_white_space_around_it_does_not_matter(answer: str) -> None:
    assert is_abstention(answer) == is_abstention(f" {answer}\n")


@pytest.mark.parametrize(
    ("question", "answer", "missing"),
    [
        ("How many sequels does it have?", "None.", 0.0),
        ("Which awards, if any, did it win?", "none", 0.0),
        ("Who directed it?", "None", 1.0),
        ("How many sequels does it have?", "Unknown", 1.0),
    ],
)
def test_none_is_an_answer_only_where_the_question_allows_it(question: str, answer: str, missing: float) -> None:
    sample = Sample(id="1", input=question, target="3")
    assert ByRule()(sample, Transcript(answer=answer))["missing"] == missing


def test_none_is_a_right_number_of_zero() -> None:
    scores = ByRule()(Sample(id="1", input="How many sequels does it have?", target="0"), Transcript(answer="None"))
    assert (scores["accuracy_em"], scores["missing"]) == (1.0, 0.0)
