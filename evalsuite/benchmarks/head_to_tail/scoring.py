"""Scores answers as right, hallucinated or missing, by rules and by a judge if the run has one.

The mean of a score over cases is one of the paper's rates in [0, 1]: accuracy A, missing rate M, or hallucination rate
H = 1 - A - M.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import permutations
from typing import Any

from evalsuite.benchmarks.head_to_tail.prompts import PAPER_MODES, PaperPrompts, make_judge_prompt, read_paper_prompts
from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Setup
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.judges.asking import ask_until_parsed
from evalsuite.judges.forms import VERDICT_LABELS
from evalsuite.judges.judgements import sign_scores, write_signature
from evalsuite.judges.parsing import AnswerField, AnswerForm, ChoiceFormat, MissingFieldError
from evalsuite.metrics.numbers import NUMBER_WORDS, parse_number
from evalsuite.metrics.text import convert_targets, exact_match, normalise_answer, rouge_l, token_f1

# The rules, keyed by the suffix of their scores: `em` in `accuracy_em`.
RULES = {"em": ("exact_match", exact_match), "f1": ("token_f1", token_f1), "rl": ("rouge_l", rouge_l)}
JUDGE_PARAMS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
_SUBJECTS = ("answer", "given answer", "reply", "response", "given", "it", "this")
_VERDICT = AnswerForm(
    {"verdict": AnswerField((*VERDICT_LABELS, *_SUBJECTS), ChoiceFormat({1.0: "correct", 0.0: "incorrect"}))}
)
_LABEL = re.compile(r"[\s*_]*(?:a|answer|the answer is)[\s*_]*:[\s*_]*", re.IGNORECASE)


def make_scorers(setup: Setup) -> Sequence[Scorer | JudgedScorer]:
    """Return two scorers: one applies all rules, the other the run's judge (or exact match without a judge)."""
    if setup.judge is None:
        return (ByRule(), ByExactMatch())
    return (ByRule(), ByJudge(read_paper_prompts(setup.data, setup.modes, judged=True)))


class ByRule:
    """Scores `missing` and three text metrics; derives accuracy and hallucination from each metric.

    Each metric compares the model's answer with all accepted answers and their variants; the best result counts.
    """

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        missing = float(is_answer_missing(sample, transcript))
        answer, accepted = clean_answer(transcript), list_accepted_answers(sample)
        scores = {"missing": missing}
        for rule, (name, metric) in RULES.items():
            scores[name] = metric(answer, accepted)
            scores |= _compute_accuracy_and_hallucination(scores[name], missing, f"_{rule}")
        return scores


class ByExactMatch:
    """Scores `accuracy` and `hallucination` by exact match, for runs without a judge."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        matched = exact_match(clean_answer(transcript), list_accepted_answers(sample))
        return _compute_accuracy_and_hallucination(matched, float(is_answer_missing(sample, transcript)))


@dataclass(frozen=True, slots=True)
class ByJudge:
    """Scores `correct`, `accuracy` and `hallucination` by the judge's verdict.

    A missing answer is not shown to the judge, because it is neither right nor made up. If a question was asked with a
    prompt of the paper, the paper's prompt for the judge is used.
    """

    paper: PaperPrompts | None = None

    def asks(self, sample: Sample, transcript: Transcript) -> bool:
        """Tell whether the judge must see an answer; only such answers are offered to people for labelling."""
        return not is_answer_missing(sample, transcript)

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Score one answer; ask the judge only if the answer is not missing."""
        missing = is_answer_missing(sample, transcript)
        correct = Score(0.0, "a missing answer")
        if not missing:
            asked = self._write_judge_prompt(sample, str(sample.input), _list_targets(sample), clean_answer(transcript))
            judgement = await ask_until_parsed(judge, asked, _parse_verdict, **JUDGE_PARAMS)
            correct = Score(judgement.value, note=f"judge: {judgement.text.strip()}", log=judgement.log)
        shares = _compute_accuracy_and_hallucination(correct.value, float(missing))
        by_judge = {f"{name}_lm": value for name, value in shares.items()}
        signature = write_signature("head_to_tail", [judge], self._write_judge_prompt(sample, "", [], ""), JUDGE_PARAMS)
        return sign_scores({"correct": correct, **shares, **by_judge}, signature)

    def _write_judge_prompt(self, sample: Sample, question: str, answers: Sequence[str], reply: str) -> str:
        if self.paper and sample.tags.get("mode") in PAPER_MODES:
            return self.paper.write_judge_prompt(question, answers, reply)
        return make_judge_prompt(question, answers, reply)


def list_accepted_answers(sample: Sample) -> tuple[str, ...]:
    """Return the sample's answers, and other spellings of them."""
    return add_answer_variants(_list_targets(sample), str(sample.input))


def clean_answer(transcript: Transcript) -> str:
    """Return the answer without invisible characters and without a leading label such as `Answer:`."""
    answer = transcript.answer.translate(_INVISIBLE)
    return _LABEL.sub("", answer, count=1) if _LABEL.match(answer) else answer


def is_answer_missing(sample: Sample, transcript: Transcript) -> bool:
    """Tell whether the answer is missing.

    A right answer is not missing, even if it reads like an abstention: a film may be called "Unknown". "None" is an
    answer if the question asks for a number or for something that may not exist ("Which awards, if any, did it win?").
    """
    answer = clean_answer(transcript)
    if normalise_answer(answer) == "none" and _MAY_BE_NONE.search(str(sample.input)):
        return False
    return is_abstention(answer) and not exact_match(answer, _list_targets(sample))


def _list_targets(sample: Sample) -> list[str]:
    return convert_targets(() if sample.target is None else sample.target)


def _compute_accuracy_and_hallucination(right: float, missing: float, suffix: str = "") -> dict[str, float]:
    accuracy = 0.0 if missing else right
    return {f"accuracy{suffix}": accuracy, f"hallucination{suffix}": 1.0 - accuracy - missing}


def _parse_verdict(text: str) -> float:
    """Return 1.0 if the judge's verdict is `correct`, 0.0 if it is `incorrect`."""
    try:
        return _VERDICT.read_fields(text)["verdict"]
    except MissingFieldError as missing:
        raise ValueError('it is not the one word "correct" or "incorrect".') from missing


# The patterns match normalised text: lower case, without punctuation and articles.
_ABOUT_ME = (
    r"(?:(?:(?:im |i am )?(?:sorry|afraid)|apologies|unfortunately|as ai(?: language)?(?: model| assistant)?|answer"
    r"|answer is|my answer is|well|but)\s)*(?:(?:i am|im|i)\s)?"
)
_WHOLE = re.compile(
    rf"{_ABOUT_ME}(?:unknown|na|none|no answer|no idea|no clue|not available|uncertain|information not available"
    r"|unbekannt|(?:das ist )?nicht bekannt|keine ahnung|aucune idée|inconnue?|desconocid[oa]|ni idea|sconosciut[oa]"
    r"|desconhecid[oa]|onbekend|geen idee|неизвестно|bilinmiyor|okänt|tuntematon|neznámo|अज्ञात|未知|不明|不清楚"
    r"|it is unknown|(?:(?:it is|its|that is|thats) not|(?:it|that) isnt) known|cannot say|cant say|not known)"
)
_MAY_BE_NONE = re.compile(r"\bhow (?:many|much)\b|\bany\b", re.IGNORECASE)
_ABILITY = r"(?:cannot|cant|could not|couldnt|am unable to|unable to|am not able to|not able to)"
_ABSTENTION_START = re.compile(
    rf"{_ABOUT_ME}(?:(?:really|honestly|quite|currently)\s)?"
    r"(?:unsure|not (?:quite |really |entirely |completely )?(?:sure|certain|aware)|uncertain"
    r"|(?:do not|dont) (?:currently )?have (?:access|(?:(?:enough|any|that|this|such) )?(?:information|data|knowledge"
    r"|details))"
    r"|(?:do not|dont|would not|wouldnt) know|have no (?:idea|information|clue|knowledge|access)|no (?:idea|clue)"
    r"|havent (?:clue|any idea|(?:slightest|faintest) idea)"
    r"|(?:that|this|such) (?:information|data) (?:is not|isnt) (?:\w+ )?(?:available|known)"
    rf"|{_ABILITY} (?:answer|assist|confirm|determine|find|help|identify|know|provide|recall|say|tell|verify)"
    r"|(?:there is|theres) (?:no|not any|not enough|insufficient) (?:\w+ )?(?:information|data|record|evidence)"
    r"|no (?:\w+ )?information (?:is )?(?:available|found)"
    r"|(?:it is|its) (?:not (?:publicly |widely )?(?:known|clear)|unclear|unknown)"
    r" (?:who|what|when|where|which|how|if)"
    r"|(?:ich |das )?weiß (?:ich |das |es )*(?:leider )?nicht|(?:je )?(?:ne )?sais pas|je lignore|(?:yo )?no (?:lo )?sé"
    r"|(?:io )?non (?:lo )?so|(?:eu )?não sei|(?:ik )?weet (?:ik )?(?:het )?niet"
    r"|(?:я )?(?:(?:этого )?не знаю|не уверена?|не могу (?:ответить|сказать))|(?:ja )?nie wiem"
    r"|(?:bunu )?bilmiyorum|emin değilim|(?:jag |det )?vet (?:jag |det )*(?:tyvärr )?inte|(?:minä )?en (?:\w+ )?tiedä"
    r"|(?:já )?(?:to )?(?:bohužel )?nevím|لا (?:أعرف|أعلم))\b"
    r"|(?:我)?不(?:知道|确定|確定)|(?:私は)?(?:分|わ)かりません|知りません|(?:잘 )?(?:모르겠(?:습니다|어요)|모릅니다)"
    r"|(?:मुझे )?(?:नहीं पता|पता नहीं|नहीं मालूम)"
)
# Words that announce an attempt to answer after "not sure".
_ATTEMPT_WORDS = re.compile(
    r"\b(?:but|maybe|may be|might|perhaps|possibly|probably|likely|guess|think|believe|could be|could have"
    r"|aber|vielleicht|wohl|mais|peutêtre|peut être|pero|quizás?|forse|talvez|misschien|maar|но|может|возможно"
    r"|ama|belki|kanske|mutta|ehkä|možná|asi)\b|लेकिन|शायद|但|可能|也许|也許|たぶん|おそらく"
)
# Matches a sentence such as "I don't know." up to its end, then the rest of the line. A comma counts as an end only
# after "unsure" or "not sure", because "I'm sorry, I don't know" is a single abstention.
_ABSTENTION_END = re.compile(
    r"[^\w]*(?:(?:unsure|not sure),|(?P<owned>(?:(?!\s-\s)[^.!?:;\n\u2013\u2014])*)(?:[.!?:;\u2013\u2014]+|\s-\s))"
    r"[^\S\n]*(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
# Words that begin an explanation; text after an abstention is not an answer if it begins with one of these words.
_EXPLANATION_START = re.compile(
    r"(?:as|because|can|could|i|im|it|its|more|my|no|note|please|question|since|sorry|that|there|theres|they|this|"
    r"unfortunately|without|you|your)\b"
)
_MOST_WORDS = 8


def is_abstention(answer: str) -> bool:
    """Tell whether an answer is empty or only states that the model does not know.

    True for "Unsure.", "I'm not sure who directed it." and "I have no clue"; false for "Not sure, but I think it was
    Kubrick" and "Unknown Pleasures".
    """
    text = normalise_answer(answer)
    if not any(map(str.isalnum, text)) or _WHOLE.fullmatch(text):
        return True
    start = _ABSTENTION_START.match(text)
    if not start:
        # The answer may begin with a sentence such as "It is not known."
        parts = _ABSTENTION_END.match(answer)
        is_unknown = bool(parts and _WHOLE.fullmatch(normalise_answer(parts["owned"] or "")))
        return is_unknown and not _has_answer_after_abstention(answer)
    return not _ATTEMPT_WORDS.search(text, start.end()) and not _has_answer_after_abstention(answer)


def _has_answer_after_abstention(answer: str) -> bool:
    """Tell whether a short answer follows "I don't know" or the like on the same line."""
    parts = _ABSTENTION_END.match(answer)
    rest = normalise_answer(parts["rest"]) if parts else ""
    return (
        0 < len(rest.split()) <= _MOST_WORDS
        and not _EXPLANATION_START.match(rest)
        and not _ABSTENTION_START.match(rest)
        and not _WHOLE.fullmatch(rest)
    )


_PERSON = re.compile(
    r"^\W*(?:what/)?who(?:m|se)?\b|\b(?:by|for|from|of|to|with) whom\b"
    r"|^\W*(?:which|what|name (?:a|the)) (?:actor|actress|architect|artist|author|child|composer|director|"
    r"inventor|painter|person|poet|politician|scientist|singer|writer)\b",
    re.IGNORECASE,
)
# Matches "who" questions whose answers are seldom persons. Only the beginning is matched, because a question about a
# person may also have these words later ("Who wrote Emma (published in 1815)?").
_COMPANY = re.compile(
    r"^\W*who (?:(?:distribut|develop|maintain|manufactur|publish)(?:ed|es|s)|(?:is|was|are|were) the (?:\w+ )?"
    r"(?:band|club|company|developer|distributor|label|maintainer|manufacturer|organi[sz]ation|publisher|"
    r"studio|team)s?)\b",
    re.IGNORECASE,
)
# The plain spelling of letters that Unicode does not decompose into a letter and an accent.
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe"}
)
_ACCENTS = re.compile("[\u0300-\u036f]")
# Characters without width: byte order mark, zero-width space, word joiner and soft hyphen.
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u2060\u00ad"))
_ARTICLE = re.compile(r"(?:the|an?) (?=\S)", re.IGNORECASE)
_INVERTED = re.compile(r"(?P<rest>.+), (?P<article>the|an?)", re.IGNORECASE)
_SUBTITLE = re.compile(r"\s*(?:: |; | [-\u2013\u2014] | \().*")


def add_answer_variants(answers: Sequence[str], question: str) -> tuple[str, ...]:
    """Return the answers, then their other acceptable spellings; the question decides which variants are acceptable."""
    persons = is_person_question(question)
    # Normalise names, because they may contain decomposed accents, no-break spaces and Unicode line separators.
    cleaned = [" ".join(unicodedata.normalize("NFC", answer).translate(_INVISIBLE).split()) for answer in answers]
    texts: dict[str, None] = dict.fromkeys([*answers, *cleaned])
    for answer in cleaned:
        if persons:
            texts |= dict.fromkeys(list_person_name_variants(answer))
        else:
            variants = [*list_number_variants(answer, question), *list_date_variants(answer)]
            texts |= dict.fromkeys(variants or _list_title_variants(answer))
    if persons and 2 <= len(answers) <= 3:
        for order in permutations(cleaned):
            texts |= dict.fromkeys((", ".join(order), f"{', '.join(order[:-1])} and {order[-1]}"))
    texts |= {_ACCENTS.sub("", unicodedata.normalize("NFD", text)).translate(_PLAIN_LETTERS): None for text in texts}
    return tuple(text for text in texts if text in answers or any(map(str.isalnum, text)))


def is_person_question(question: str) -> bool:
    """Tell whether the answer should be a person's name."""
    return bool(_PERSON.search(question)) and not _COMPANY.search(question)


def _list_title_variants(title: str) -> Iterable[str]:
    if inverted := _INVERTED.fullmatch(title):
        yield f"{inverted['article']} {inverted['rest']}"
        yield inverted["rest"]
    for text in (title, _SUBTITLE.sub("", title, count=1)):
        yield text
        yield _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text


_SUFFIX = re.compile(r",?\s+(?:jr|sr|ii|iii|iv)\b\.?", re.IGNORECASE)
_DISAMBIGUATION = re.compile(r"\s*\([^)]*\)|\s+\d{4}$")
_INITIALS = re.compile(r"(?:\w\.\s?)+")
_LONGEST = 6  # Maximum words of a person's name.


def list_person_name_variants(name: str) -> Iterable[str]:
    """Yield other spellings of a person's name, and each ending of the name, because any ending may be the surname.

    For example, the endings of "Ludwig van Beethoven" are "van Beethoven" and "Beethoven". Variants may lack a suffix
    such as Jr., or a disambiguation of DBpedia ("John Smith (actor)") or DBLP ("John Smith 0001"). A name of one word,
    or of more than six words, has no variants.
    """
    bare = _DISAMBIGUATION.sub("", name)
    plain = _SUFFIX.sub("", bare)
    yield from (bare, plain)
    words = _INITIALS.sub(lambda initials: initials[0].replace(".", ". "), plain).split()
    if 2 <= len(words) <= _LONGEST:
        for start in range(1, len(words)):
            ending = " ".join(words[start:])
            yield from (ending, f"{words[0]} {ending}", f"{words[0][0]}. {ending}")
        *first_names, surname = words
        # Write the first names as initials, with and without spaces between the initials.
        initials = [f"{word[0]}." for word in first_names]
        yield " ".join((*initials, surname))
        yield f"{''.join(initials)} {surname}"
        if len(first_names) > 1:
            yield " ".join((first_names[0], *initials[1:], surname))
            yield f"{first_names[0]} {''.join(initials[1:])} {surname}"
        yield f"{surname}, {' '.join(first_names)}"


_WORDS_BELOW_HUNDRED = {int(digits): word for word, digits in NUMBER_WORDS.items()}
_UNIT = re.compile(
    r"\b(?:in|how many) (minutes|hours|days|years|pages|episodes|met(?:re|er)s|kilomet(?:re|er)s|miles)\b",
    re.IGNORECASE,
)


def list_number_variants(answer: str, question: str) -> Iterable[str]:
    """Yield other spellings of a whole number; yield nothing for other answers."""
    value = _parse_whole_number(answer)
    if value is None:
        return
    yield str(value)
    yield f"{value:,}"
    if 0 <= value < 1000:
        yield from dict.fromkeys((spell_number(value), spell_number(value).replace("-", " ")))
        yield from () if value else ("none",)
    if named := _UNIT.search(question):
        unit = named[1].lower()
        yield f"{value} {unit}"
        yield f"{value} {unit.removesuffix('s')}"
        if unit == "minutes":
            hours, minutes = divmod(value, 60)
            yield f"{value} min"
            yield f"{hours} hours {minutes} minutes"
            yield f"{hours} hours and {minutes} minutes"
            yield f"{hours} hour {minutes} minutes"
            yield f"{hours}h {minutes}m"


def spell_number(number: int) -> str:
    """Spell a number from 0 to 999 in English: "twenty-one", "three hundred and five"."""
    if number < 100:
        return _WORDS_BELOW_HUNDRED[number]
    hundreds = f"{_WORDS_BELOW_HUNDRED[number // 100]} hundred"
    return f"{hundreds} and {spell_number(number % 100)}" if number % 100 else hundreds


_NUMBERS_BY_WORDS = {
    spelt: number for number in range(1000) for spelt in (spell_number(number), spell_number(number).replace("-", " "))
}


def _parse_whole_number(answer: str) -> int | None:
    if (number := _NUMBERS_BY_WORDS.get(answer.strip().lower())) is not None:
        return number
    read = parse_number(answer)
    # An ISBN or a telephone number that begins with a zero is not a quantity.
    if read is None or read.unit or re.match(r"0\d", answer.strip()):
        return None
    return int(read.value) if abs(read.value) < 10**15 and read.value == int(read.value) else None


_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_MONTH = r"(?P<month>[A-Za-z]{3,9})\.?"
_YEAR = r"(?P<year>\d{4})"
_DATE_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})",
        rf"{_DAY}(?: of)? {_MONTH},? {_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
    )
)


def list_date_variants(answer: str) -> Iterable[str]:
    """Yield other spellings of a date, such as 16 July 1990; none has slashes, because 06/07/1990 is ambiguous."""
    if (day := _parse_date(answer.strip())) is None:
        return
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day not in (11, 12, 13) else 0, "th")
    month, nth = _MONTHS[day.month - 1], f"{day.day}{suffix}"
    yield day.isoformat()
    for name in dict.fromkeys((month, month[:3])):
        for number in (str(day.day), nth):
            yield f"{number} {name} {day.year}"
            yield f"{name} {number}, {day.year}"
    yield f"{nth} of {month} {day.year}"


def _parse_date(answer: str) -> date | None:
    written = next((match for pattern in _DATE_PATTERNS if (match := pattern.fullmatch(answer))), None)
    if written is None:
        return None
    month = written["month"].lower()
    names = [number for number, name in enumerate(_MONTHS, 1) if name.lower().startswith(month)]
    try:
        return date(int(written["year"]), names[0] if names else int(month), int(written["day"]))
    except ValueError:  # The month or the day does not exist.
        return None
