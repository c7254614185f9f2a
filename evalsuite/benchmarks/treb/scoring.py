"""TReB's metrics: BLEU and ROUGE-L, numeric exact match, checked rules, and a judge's score.

The paper counts a program that is missing or fails as zero on every metric: it is the model's own failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.treb.rules import broken_rules, published_rules
from evalsuite.core.errors import ScoringError
from evalsuite.core.shortening import beginning
from evalsuite.core.types import Message, Score
from evalsuite.judges.marks import marked
from evalsuite.judges.parse_retry import ask_until_parsed
from evalsuite.judges.signature import signature, signed
from evalsuite.judges.verdict_text import said_numbers, without_thoughts
from evalsuite.metrics.numbers import numeric_match, parse_number
from evalsuite.metrics.text import bleu, rouge_l
from evalsuite.solvers.boxed import last_boxed_answer, plain_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Setup
    from evalsuite.core.types import Sample, Transcript

RULES_SUBTASK = "Instruction Following"
BEST = 10
JUDGED = 8_000  # characters of an answer that a judge is shown: a program may print far more than fits
ASKED_WITH: Mapping[str, Any] = {"temperature": 0.0}
"""Generation parameters of the judge."""

JUDGE = """\
You mark answers to questions about tables and texts. You see a question, the reference answer and the \
answer of a student. Judge whether the student's answer is right: whether it says the same as the reference, \
in whatever words, order or language. Differences of rounding do not matter. Wrong, missing or contradictory \
parts cost points in proportion to their weight; further text that is true does not.
Explain in one or two sentences, then give a whole or decimal number from 0 (entirely wrong) to 10 \
(entirely right) as \\boxed{number}."""


def own_scorers(setup: Setup) -> tuple[Scorer | JudgedScorer, ...]:
    """TReB's scorers; each skips samples that it does not apply to, and the judge's needs a judge in the run."""
    own: tuple[Scorer | JudgedScorer, ...] = (text_scores, number_score, rule_score)
    return (*own, AnswerJudge()) if setup.judge else own


def text_scores(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """`rouge_l` and `bleu` in [0, 1], for all subtasks except Instruction Following; no scores without a reference."""
    if sample.tags["subtask"] == RULES_SUBTASK or not _has_reference(sample):
        return {}
    if note := failed_program(sample, transcript):
        return {"rouge_l": Score(0.0, note), "bleu": Score(0.0, note)}
    target = str(sample.target)
    return {"rouge_l": rouge_l(transcript.answer, target), "bleu": bleu(transcript.answer, target)}


def number_score(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """`exact_match`, 0 or 1, where the reference is a number."""
    number = sample.metadata["number"]
    if number is None or sample.tags["subtask"] == RULES_SUBTASK:
        return {}
    if note := failed_program(sample, transcript):
        return {"exact_match": Score(0.0, note)}
    # A reference with words around its number ("12 goals") is right as it stands, too.
    same = transcript.answer.strip() == str(sample.target).strip()
    value = 1.0 if same else numeric_match(plain_words(transcript.answer), number)
    return {"exact_match": Score(value, f"the reference is {number}")}


def rule_score(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """`instruction_following`, 0 or 1: whether the answer keeps all rules of its question.

    Raises:
        ScoringError: no rules are known for the question.
    """
    if sample.tags["subtask"] != RULES_SUBTASK:
        return {}
    rules = sample.metadata["rules"]
    if rules is None:
        rules = published_rules(str(sample.input))
    if not rules:
        raise ScoringError(
            f"no rules are known for {sample.input!r} of Instruction Following: its record needs a field "
            f"'rules' (see docs/treb.md)"
        )
    broken = broken_rules(transcript.answer, rules)
    note = f"breaks {', '.join(str(dict(rule)) for rule in broken)}" if broken else "keeps all its rules"
    return {"instruction_following": Score(float(not broken), note)}


class AnswerJudge:
    """`judge`: a judge's mark from 0 to 10 for agreement with the reference, divided by ten."""

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Asks the judge; an answer that is missing is zero without asking.

        Raises:
            JudgeError: the judge gave no mark.
            ModelError: a call failed for good.
        """
        if sample.tags["subtask"] == RULES_SUBTASK or not _has_reference(sample):
            return {}
        mark_given = await self._mark(sample, transcript, judge)
        return signed({"judge": mark_given}, signature("treb", [judge], JUDGE, BEST, JUDGED, ASKED_WITH))

    async def _mark(self, sample: Sample, transcript: Transcript, judge: Model) -> Score:
        if note := failed_program(sample, transcript) or (
            "no answer" if not transcript.answer.strip() else ""
        ):
            return Score(0.0, note)
        asked = marked(
            [
                ("question", str(sample.input)),
                ("reference answer", str(sample.target)),
                ("answer of the student", beginning(transcript.answer, JUDGED)),
            ]
        )
        reading = await ask_until_parsed(
            judge, [Message("system", JUDGE), Message("user", asked)], mark, **ASKED_WITH
        )
        return Score(reading.value / BEST, f"{reading.value:g} of {BEST}", log=reading.log)


def _has_reference(sample: Sample) -> bool:
    """Whether there is anything to compare with: some test sets have no reference answers."""
    return bool(str(sample.target).strip())


def mark(text: str) -> float:
    r"""The mark in the last `\boxed{...}` of a judge's answer, perhaps with `/10` behind it, or called a score.

    Raises:
        ValueError: there is none between 0 and 10; the message tells the judge how to give it.
    """
    text = without_thoughts(text)
    boxed = last_boxed_answer(text)
    called = {value for label in ("score", "mark") for value in said_numbers(label, text, BEST)}
    if boxed is None and len(called) == 1 and 0 <= (value := called.pop()) <= BEST:
        return value
    written, slash, best = (boxed or "").partition("/")
    number = parse_number(written) if not slash or best.strip() == str(BEST) else None
    if number is None or number.unit or not 0 <= number.value <= BEST:
        written = "no \\boxed{...}" if boxed is None else f"\\boxed{{{beginning(boxed, 60)}}}"
        raise ValueError(f"it holds {written} instead of \\boxed{{a number from 0 to {BEST}}}.")
    return float(number.value)


def failed_program(sample: Sample, transcript: Transcript) -> str:
    """Why an answer counts as zero in PoT; empty if it does not."""
    state = transcript.facts.get("program", "ok")
    if sample.tags["mode"] != "pot" or state == "ok":
        return ""
    package = transcript.facts.get("package", "that is not there")
    return {
        "missing": "the model wrote no program",
        "printed nothing": "its program printed nothing",
        "package missing": f"its program wanted the package {package}",
        "timed out": "its program took too long",
    }.get(state, "its program failed")
