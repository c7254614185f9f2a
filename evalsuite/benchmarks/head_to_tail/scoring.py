"""Scores answers as right, made up or missing, by rules and by a judge if the run has one.

Each scorer returns shares per case, so that means over cases are the paper's rates: accuracy A, hallucination
rate H = 1 - A - M and missing rate M, all in [0, 1].
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.head_to_tail.abstention import is_missing
from evalsuite.benchmarks.head_to_tail.paper_prompts import PAPER_MODES, PaperPrompts, paper_prompts
from evalsuite.benchmarks.head_to_tail.prompts import judge_prompt
from evalsuite.benchmarks.head_to_tail.variants import widened
from evalsuite.core.types import Score
from evalsuite.judges.parse_retry import ask_until_parsed
from evalsuite.judges.signature import signature, signed
from evalsuite.judges.verdict_text import without_thoughts
from evalsuite.metrics.text import as_texts, exact_match, rouge_l, token_f1

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Setup
    from evalsuite.core.types import Sample, Transcript

# The short name that each rule has in `accuracy_em` and so on.
RULES = {"em": ("exact_match", exact_match), "f1": ("token_f1", token_f1), "rl": ("rouge_l", rouge_l)}
ASKED_WITH: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
"""Generation parameters of the judge."""
_VERDICT = re.compile(r"\b(?:in)?correct\b")
_NEGATED = re.compile(r"(?:\bnot|n['\u2019]t|\bnever)\b[^.\n]{0,30}\bcorrect\b", re.IGNORECASE)
"""What does not say whether something is wrong or merely doubtful."""
_LABEL = re.compile(r"\s*(?:a|answer|the answer is)\s*:\s*", re.IGNORECASE)


def scorers(setup: Setup) -> Sequence[Scorer | JudgedScorer]:
    """The rules, and `accuracy` and `hallucination` by the judge if there is one, else by exact match."""
    if setup.judge is None:
        return (ByRule(), ByExactMatch())
    return (ByRule(), ByJudge(paper_prompts(setup.data, setup.modes, judged=True)))


class ByRule:
    """`missing`, the three text metrics, and accuracy and hallucination by each of them.

    The text metrics take the best over the acceptable answers and their variants.
    """

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Scores one answer."""
        missing = float(says_nothing(sample, transcript))
        answer, accepted = spoken(transcript), acceptable(sample)
        scores = {"missing": missing}
        for rule, (name, metric) in RULES.items():
            scores[name] = metric(answer, accepted)
            scores |= _shares(scores[name], missing, f"_{rule}")
        return scores


class ByExactMatch:
    """`accuracy` and `hallucination` by exact match, for runs without a judge."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Scores one answer."""
        matched = exact_match(spoken(transcript), acceptable(sample))
        return _shares(matched, float(says_nothing(sample, transcript)))


@dataclass(frozen=True, slots=True)
class ByJudge:
    """`correct` as the judge decides, and accuracy and hallucination accordingly.

    A missing answer is not shown to the judge, since it is neither right nor made up. Questions asked with the
    paper's prompts are judged with the paper's prompt, too.
    """

    paper: PaperPrompts | None = None

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Scores one answer.

        Raises:
            JudgeError: the judge gave no verdict.
            ModelError: a call to it failed for good.
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
        return signed(scores, signature("head_to_tail", [judge], self._asked(sample, "", [], ""), ASKED_WITH))

    async def _verdict(self, sample: Sample, transcript: Transcript, judge: Model) -> Score:
        asked = self._asked(sample, str(sample.input), _answers(sample), spoken(transcript))
        judgement = await ask_until_parsed(judge, asked, _parse_verdict, **ASKED_WITH)
        return Score(judgement.value, note=f"judge: {judgement.text.strip()}", log=judgement.log)

    def _asked(self, sample: Sample, question: str, answers: Sequence[str], reply: str) -> str:
        """The question to the judge, in the words of the sample's mode."""
        if self.paper and sample.tags.get("mode") in PAPER_MODES:
            return self.paper.verdict(question, answers, reply)
        return judge_prompt(question, answers, reply)


def acceptable(sample: Sample) -> tuple[str, ...]:
    """The sample's answers with their variants."""
    return widened(_answers(sample), str(sample.input))


def spoken(transcript: Transcript) -> str:
    """The answer without a leading label."""
    return (
        _LABEL.sub("", transcript.answer, count=1) if _LABEL.match(transcript.answer) else transcript.answer
    )


def says_nothing(sample: Sample, transcript: Transcript) -> bool:
    """Whether the answer is missing; an answer that matches is not (there is a film named Unknown)."""
    answer = spoken(transcript)
    return is_missing(answer) and not exact_match(answer, _answers(sample))


def _answers(sample: Sample) -> list[str]:
    return as_texts(() if sample.target is None else sample.target)


def _shares(right: float, missing: float, suffix: str = "") -> dict[str, float]:
    accuracy = 0.0 if missing else right
    return {f"accuracy{suffix}": accuracy, f"hallucination{suffix}": 1.0 - accuracy - missing}


def _parse_verdict(text: str) -> float:
    words = set(_VERDICT.findall(without_thoughts(text).casefold()))
    if len(words) != 1 or _NEGATED.search(text):
        raise ValueError('it is not the one word "correct" or "incorrect".')
    return float(words == {"correct"})
