"""TReB's metrics: BLEU, ROUGE-L, numeric exact match, rules, a judge, and variants as in the authors' released code.

As in the paper, an answer whose program is missing or has failed scores zero on every metric, because the model is
responsible.

The paper's results were computed with the authors' code (github.com/JT-LM/jiutian-treb, `src/judge`; packages
rouge-chinese 1.0.3, rouge-score 0.1.2, sacrebleu 2.5.1, jieba 0.42.1). The variants named `*_released` follow the
authors' code and differ from `metrics.text` as follows:

- If the reference contains a Chinese character (U+4E00 to U+9FFF), jieba splits both texts. Case and punctuation
  matter, but `metrics.text.rouge_l` ignores both.
- In ROUGE-L of other texts, words consist of the letters a-z and digits, so accents split them.
- Exact match compares how often each capital letter occurs, so two answers without capitals are equal. The authors'
  code applies exact match to every answer. evalsuite applies exact match only if the reference is a number, as the
  paper's Table 5 apparently does.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from evalsuite.benchmarks.treb.dataset import TrebOptions
from evalsuite.benchmarks.treb.rules import find_shipped_rules, list_broken_rules
from evalsuite.core.errors import ScoringError, shorten_to_beginning
from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Setup
from evalsuite.core.types import Message, Sample, Score, Transcript
from evalsuite.judges.asking import ask_until_parsed
from evalsuite.judges.forms import Likert, parse_aspect_score
from evalsuite.judges.judgements import sign_scores, write_signature
from evalsuite.judges.parsing import remove_reasoning
from evalsuite.judges.prompts import mark_sections
from evalsuite.metrics.numbers import numeric_match, parse_number
from evalsuite.metrics.text import bleu, compute_bleu_of_tokens, rouge_l, split_jieba_tokens, stem_words
from evalsuite.solvers.program_text import find_last_boxed_answer, strip_latex

RULES_SUBTASK = "Instruction Following"
BEST = 10
JUDGED_CHARACTERS = 8_000  # Maximum characters of an answer in the judge's prompt.
JUDGE_PARAMS: Mapping[str, Any] = {"temperature": 0.0}

JUDGE = """\
You mark answers to questions about tables and texts. You see a question, the reference answer and the \
answer of a student. Judge whether the student's answer is right: whether it says the same as the reference, \
in whatever words, order or language. Differences of rounding do not matter. Wrong, missing or contradictory \
parts cost points in proportion to their weight; further text that is true does not.
Explain in one or two sentences, then give a whole or decimal number from 0 (entirely wrong) to 10 \
(entirely right) as \\boxed{number}."""


def make_scorers(setup: Setup) -> tuple[Scorer | JudgedScorer, ...]:
    """Make the scorers; add a judge if the run has one, and `released_scores` if the report shows published results."""
    own: list[Scorer | JudgedScorer] = [text_scores, number_score, rule_score]
    if setup.judge:
        own.append(AnswerJudge())
    if TrebOptions.from_setup(setup).published:
        own.append(released_scores)
    return tuple(own)


def text_scores(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """Return `rouge_l` and `bleu`, except for Instruction Following and for samples without a reference."""
    return _compute_measures(sample, transcript, {"rouge_l": rouge_l, "bleu": bleu})


def _compute_measures(
    sample: Sample, transcript: Transcript, measures: Mapping[str, Callable[[str, str], float]]
) -> dict[str, float | Score]:
    """Measure an answer; return nothing without a reference, and zeros with a note if the answer's program failed."""
    if not _has_reference(sample):
        return {}
    note = explain_failed_program(sample, transcript)
    answer, target = transcript.answer, str(sample.target)
    return {name: Score(0.0, note) if note else measure(answer, target) for name, measure in measures.items()}


def number_score(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """Return `exact_match`, 0 or 1, if the reference is a number."""
    number = sample.metadata["number"]
    if number is None or sample.tags["subtask"] == RULES_SUBTASK:
        return {}
    if note := explain_failed_program(sample, transcript):
        return {"exact_match": Score(0.0, note)}
    # Also accept the reference text itself, such as "12 goals".
    same = transcript.answer.strip() == str(sample.target).strip()
    plain = strip_latex(transcript.answer.strip().strip("*_`"))  # Without Markdown's emphasis and LaTeX.
    value = 1.0 if same else numeric_match(plain, number)
    return {"exact_match": Score(value, f"the reference is {number}")}


def rule_score(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """Return `instruction_following`, 1 if the answer satisfies all rules, otherwise 0; {} for other subtasks."""
    if sample.tags["subtask"] != RULES_SUBTASK:
        return {}
    rules = sample.metadata["rules"]
    if rules is None:
        rules = find_shipped_rules(str(sample.input))
    if not rules:
        raise ScoringError(
            f"no rules exist for {sample.input!r} of Instruction Following: its record needs a field "
            f"'rules' (see docs/treb.md)"
        )
    if not transcript.answer.strip():
        return {"instruction_following": Score(0.0, "no answer")}
    broken = list_broken_rules(transcript.answer, rules)
    note = f"breaks {', '.join(str(dict(rule)) for rule in broken)}" if broken else "keeps all its rules"
    return {"instruction_following": Score(float(not broken), note)}


class AnswerJudge:
    """Scores `judge`: a judge's mark from 0 to 10 for agreement with the reference, divided by ten."""

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Request a mark from the judge; a missing answer scores zero without a request."""
        if not _has_reference(sample):
            return {}
        if note := explain_failed_program(sample, transcript) or ("no answer" if not transcript.answer.strip() else ""):
            score = Score(0.0, note)
        else:
            answer = shorten_to_beginning(transcript.answer, JUDGED_CHARACTERS)
            parts = [("question", str(sample.input)), ("reference answer", str(sample.target))]
            asked = mark_sections([*parts, ("answer of the student", answer)])
            messages = [Message("system", JUDGE), Message("user", asked)]
            reading = await ask_until_parsed(judge, messages, read_mark, **JUDGE_PARAMS)
            score = Score(reading.value / BEST, f"{reading.value:g} of {BEST}", log=reading.log)
        signature = write_signature("treb", [judge], JUDGE, BEST, JUDGED_CHARACTERS, JUDGE_PARAMS)
        return sign_scores({"judge": score}, signature)


def _has_reference(sample: Sample) -> bool:
    """Tell whether a sample has a reference answer; Instruction Following and some test sets have none."""
    return sample.tags["subtask"] != RULES_SUBTASK and bool(str(sample.target).strip())


def read_mark(text: str) -> float:
    r"""Read a judge's mark from its last `\boxed{...}`, with or without `/10`; without a box, from a labelled score.

    If the reply has no mark, raise ValueError; its message tells the judge how to give a mark.
    """
    text = remove_reasoning(text)
    boxed = find_last_boxed_answer(text)
    if boxed is None and re.search(r"score|mark|rating", text, re.IGNORECASE):
        with suppress(ValueError):
            return parse_aspect_score(text, Likert("", 0, BEST, name="score"))
    written, slash, best = (boxed or "").partition("/")
    number = parse_number(written) if not slash or best.strip() == str(BEST) else None
    if number is None or number.unit or not 0 <= number.value <= BEST:
        written = "no \\boxed{...}" if boxed is None else f"\\boxed{{{shorten_to_beginning(boxed, 60)}}}"
        raise ValueError(f"it holds {written} instead of \\boxed{{a number from 0 to {BEST}}}.")
    return float(number.value)


def explain_failed_program(sample: Sample, transcript: Transcript) -> str:
    """Explain that a PoT answer scores zero because its program is missing or failed; '' if the program succeeded."""
    state = transcript.facts.get("program", "ok")
    if sample.tags["mode"] != "pot" or state == "ok":
        return ""
    return {
        "missing": "the model wrote no program",
        "printed nothing": "its program printed nothing",
        "package missing": f"its program needed the package {transcript.facts.get('package', 'that is missing')}",
        "timed out": "its program took too long",
    }.get(state, "its program failed")


CHINESE = re.compile(r"[\u4e00-\u9fff]")
WORDS = re.compile(r"[a-z0-9]+")
# Sentence ends in rouge-chinese: a Chinese full stop (or ? or !), an ellipsis, or a closing quotation mark. As in
# rouge-chinese, a blank line counts as one empty word.
_ENDS = (
    re.compile(r"([\u3002\uff01\uff1f?])([^\u201d\u2019])"),
    re.compile(r"(\.{6})([^\u201d\u2019])"),
    re.compile(r"(\u2026{2})([^\u201d\u2019])"),
    re.compile(r"([\u3002\uff01\uff1f?][\u201d\u2019])([^\uff0c\u3002\uff01\uff1f?])"),
)


def released_scores(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """Return `rouge_l_released`, `bleu_released` and `exact_match_released`; nothing without a reference."""
    measures = {"rouge_l_released": compute_released_rouge_l, "bleu_released": compute_released_bleu}
    if sample.metadata["number"] is not None:
        measures["exact_match_released"] = compute_released_exact_match
    return _compute_measures(sample, transcript, measures)


def compute_released_exact_match(prediction: str, reference: str) -> float:
    """Return 1.0 if each capital letter A to Z occurs equally often in both texts, otherwise 0.0."""
    counts = ([text.count(letter) for letter in string.ascii_uppercase] for text in (prediction, reference))
    return float(next(counts) == next(counts))


def compute_released_bleu(prediction: str, reference: str) -> float:
    """Return sacrebleu's sentence BLEU in [0, 1]; Chinese texts are split by jieba."""
    if not CHINESE.search(reference):
        return compute_bleu_of_tokens(prediction, reference)
    return compute_bleu_of_tokens(" ".join(split_jieba_tokens(prediction)), " ".join(split_jieba_tokens(reference)))


def compute_released_rouge_l(prediction: str, reference: str) -> float:
    """Return the F-measure of the longest common subsequence of words."""
    if not CHINESE.search(reference):
        answered, wanted = (stem_words(WORDS.findall(text.lower())) for text in (prediction, reference))
        return _compute_lcs_f_measure(answered, wanted, 0.0)
    if not prediction.strip():
        return 0.0
    # rouge-chinese adds 1e-8 to the denominator to avoid division by zero.
    return _compute_lcs_f_measure(
        _split_chinese_text_into_words(prediction), _split_chinese_text_into_words(reference), 1e-8
    )


def _split_chinese_text_into_words(text: str) -> list[str]:
    joined = " ".join(split_jieba_tokens(text))
    for end in _ENDS:
        joined = end.sub(r"\1\n\2", joined)
    return [word for line in joined.rstrip().split("\n") if line for word in line.split() or [""]]


def _compute_lcs_f_measure(answered: Sequence[str], wanted: Sequence[str], smoothing: float) -> float:
    if not answered or not wanted:
        return 0.0
    import Levenshtein

    common = round(Levenshtein.ratio(answered, wanted) * (len(answered) + len(wanted)) / 2)
    precision, recall = common / len(answered), common / len(wanted)
    return 2 * precision * recall / (precision + recall + smoothing) if common else 0.0
