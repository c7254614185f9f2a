"""Scores answers as right, made up or missing, by rules and by a judge if the run has one.

Each scorer returns shares per case, so means over cases are the paper's rates: accuracy A, hallucination rate
H = 1 - A - M and missing rate M, all in [0, 1].
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.head_to_tail.prompts import PAPER_MODES, PaperPrompts, judge_prompt, paper_prompts
from evalsuite.benchmarks.head_to_tail.variants import add_variants
from evalsuite.core.types import Score
from evalsuite.judges.asking import ask_until_parsed
from evalsuite.judges.forms import VERDICT_LABELS
from evalsuite.judges.judgements import sign_scores, signature
from evalsuite.judges.parsing import AnswerField, AnswerForm, Choice, NoStatementError
from evalsuite.metrics.text import as_texts, exact_match, normalise, rouge_l, token_f1

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Setup
    from evalsuite.core.types import Sample, Transcript


# The rules, keyed by the suffixes of `accuracy_em` and so on.
RULES = {"em": ("exact_match", exact_match), "f1": ("token_f1", token_f1), "rl": ("rouge_l", rouge_l)}
ASKED_WITH: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
"""Generation parameters of the judge."""
_SUBJECTS = ("answer", "given answer", "reply", "response", "given", "it", "this")
_VERDICT = AnswerForm(
    {"verdict": AnswerField((*VERDICT_LABELS, *_SUBJECTS), Choice({1.0: "correct", 0.0: "incorrect"}))}
)
_LABEL = re.compile(r"\s*(?:a|answer|the answer is)\s*:\s*", re.IGNORECASE)


def scorers(setup: Setup) -> Sequence[Scorer | JudgedScorer]:
    """Return the rules, and `accuracy` and `hallucination` by the judge if there is one, else by exact match."""
    if setup.judge is None:
        return (ByRule(), ByExactMatch())
    return (ByRule(), ByJudge(paper_prompts(setup.data, setup.modes, judged=True)))


class ByRule:
    """Scores `missing`, the three text metrics, and accuracy and hallucination by each of them.

    The text metrics take the best value over the acceptable answers and their variants.
    """

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Score one answer."""
        missing = float(says_nothing(sample, transcript))
        answer, accepted = spoken(transcript), acceptable(sample)
        scores = {"missing": missing}
        for rule, (name, metric) in RULES.items():
            scores[name] = metric(answer, accepted)
            scores |= _shares(scores[name], missing, f"_{rule}")
        return scores


class ByExactMatch:
    """Scores `accuracy` and `hallucination` by exact match, for runs without a judge."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Score one answer."""
        matched = exact_match(spoken(transcript), acceptable(sample))
        return _shares(matched, float(says_nothing(sample, transcript)))


@dataclass(frozen=True, slots=True)
class ByJudge:
    """Scores `correct` as the judge decides, with accuracy and hallucination.

    A missing answer is not shown to the judge, because it is neither right nor made up. Questions asked with the
    paper's prompts are judged with the paper's prompt.
    """

    paper: PaperPrompts | None = None

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Score one answer.

        Raises:
            JudgeError: the judge gave no verdict.
            ModelError: a call of the judge failed for good.
        """
        missing = says_nothing(sample, transcript)
        correct = (
            Score(0.0, "a missing answer") if missing else await self._verdict(sample, transcript, judge)
        )
        shares = _shares(correct.value, float(missing))
        scores: dict[str, float | Score] = {
            "correct": correct,
            **shares,
            **{f"{name}_lm": value for name, value in shares.items()},
        }
        return sign_scores(
            scores, signature("head_to_tail", [judge], self._build_question(sample, "", [], ""), ASKED_WITH)
        )

    async def _verdict(self, sample: Sample, transcript: Transcript, judge: Model) -> Score:
        asked = self._build_question(sample, str(sample.input), _answers(sample), spoken(transcript))
        judgement = await ask_until_parsed(judge, asked, _parse_verdict, **ASKED_WITH)
        return Score(judgement.value, note=f"judge: {judgement.text.strip()}", log=judgement.log)

    def _build_question(self, sample: Sample, question: str, answers: Sequence[str], reply: str) -> str:
        """Build the question to the judge for the sample's mode."""
        if self.paper and sample.tags.get("mode") in PAPER_MODES:
            return self.paper.verdict(question, answers, reply)
        return judge_prompt(question, answers, reply)


def acceptable(sample: Sample) -> tuple[str, ...]:
    """Return the sample's answers with their variants."""
    return add_variants(_answers(sample), str(sample.input))


def spoken(transcript: Transcript) -> str:
    """Return the answer without a leading label."""
    return (
        _LABEL.sub("", transcript.answer, count=1) if _LABEL.match(transcript.answer) else transcript.answer
    )


def says_nothing(sample: Sample, transcript: Transcript) -> bool:
    """Tell whether the answer is missing; an answer that matches is not missing (there is a film named Unknown)."""
    answer = spoken(transcript)
    return is_missing(answer) and not exact_match(answer, _answers(sample))


def _answers(sample: Sample) -> list[str]:
    return as_texts(() if sample.target is None else sample.target)


def _shares(right: float, missing: float, suffix: str = "") -> dict[str, float]:
    accuracy = 0.0 if missing else right
    return {f"accuracy{suffix}": accuracy, f"hallucination{suffix}": 1.0 - accuracy - missing}


def _parse_verdict(text: str) -> float:
    try:
        return _VERDICT.read(text)["verdict"]
    except NoStatementError as missing:
        raise ValueError('it is not the one word "correct" or "incorrect".') from missing


# The patterns match normalised text: lower case, no punctuation, no articles.
_ABOUT_ME = (
    r"(?:(?:(?:im |i am )?(?:sorry|afraid)|apologies|unfortunately|as ai(?: language)? model|answer|answer is|"
    r"my answer is|well|but)\s)*(?:(?:i am|im|i)\s)?"
)
_WHOLE = re.compile(
    rf"{_ABOUT_ME}(?:unknown|na|none|no answer|no idea|no clue|not available|uncertain|information not available"
    r"|it is unknown|(?:(?:it is|its|that is|thats) not|(?:it|that) isnt) known|cannot say|cant say|not known)"
)
_ABILITY = r"(?:cannot|cant|could not|couldnt|am unable to|unable to|am not able to|not able to)"
_START = re.compile(
    rf"{_ABOUT_ME}(?:(?:really|honestly|quite|currently)\s)?"
    r"(?:unsure|not (?:quite |really |entirely |completely )?(?:sure|certain|aware)|uncertain"
    r"|(?:do not|dont) (?:currently )?have (?:access|(?:(?:enough|any|that|this|such) )?(?:information|data|knowledge"
    r"|details))"
    r"|(?:do not|dont|would not|wouldnt) know|have no (?:idea|information|clue|knowledge|access)|no (?:idea|clue)"
    r"|havent (?:clue|any idea|(?:slightest|faintest) idea)"
    r"|(?:that|this|such) (?:information|data) (?:is not|isnt) (?:\w+ )?(?:available|known)"
    rf"|{_ABILITY} (?:answer|assist|confirm|determine|find|help|identify|provide|recall|say|tell|verify)"
    r"|(?:there is|theres) (?:no|not any|not enough|insufficient) (?:\w+ )?(?:information|data|record|evidence)"
    r"|no (?:\w+ )?information (?:is )?(?:available|found)"
    r"|(?:it is|its) (?:not (?:publicly |widely )?(?:known|clear)|unclear|unknown)"
    r" (?:who|what|when|where|which|how|if))\b"
)
# Words that announce an answer after "not sure".
_ATTEMPT = re.compile(
    r"\b(?:but|maybe|may be|might|perhaps|possibly|probably|likely|guess|think|believe|could be|could have)\b"
)
# An abstention that ends its sentence, and the rest of the line. A comma ends only the bare word, because "I'm
# sorry, I don't know" is a single abstention.
_AND_THEN = re.compile(
    r"[^\w]*(?:(?:unsure|not sure),|(?P<owned>(?:(?!\s-\s)[^.!?:;\n\u2013\u2014])*)(?:[.!?:;\u2013\u2014]+|\s-\s))"
    r"[^\S\n]*(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
# An answer given after an abstention is short and does not begin like an explanation.
_EXPLAINS = re.compile(
    r"(?:as|because|can|could|i|im|it|its|more|my|no|note|please|question|since|sorry|that|there|theres|they|this|"
    r"unfortunately|without|you|your)\b"
)
_MOST_WORDS = 8


def is_missing(answer: str) -> bool:
    """Tell whether an answer is empty or only says that the model does not know.

    "Unsure.", "I'm not sure who directed it." and "I have no clue" are missing; "Not sure, but I think it was
    Kubrick" and "Unsure. Stanley Kubrick" are attempts, and "Unknown Pleasures" is an answer.
    """
    text = normalise(answer)
    if not any(map(str.isalnum, text)) or _WHOLE.fullmatch(text):
        return True
    start = _START.match(text)
    if not start:
        return _is_owned(answer) and not _names_something(answer)
    return not _ATTEMPT.search(text, start.end()) and not _names_something(answer)


def _is_owned(answer: str) -> bool:
    """Tell whether the first sentence says that the answer is unknown ("It is not known. ...")."""
    parts = _AND_THEN.match(answer)
    return bool(parts and _WHOLE.fullmatch(normalise(parts["owned"] or "")))


def _names_something(answer: str) -> bool:
    """Tell whether an answer of a few words follows the abstention on the same line."""
    parts = _AND_THEN.match(answer)
    rest = normalise(parts["rest"]) if parts else ""
    return (
        0 < len(rest.split()) <= _MOST_WORDS
        and not _EXPLAINS.match(rest)
        and not _START.match(rest)
        and not _WHOLE.fullmatch(rest)
    )
