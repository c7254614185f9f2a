"""Reads judges' answers by one rule: text counts as a statement only if it has the requested form.

A statement is a JSON field or a line `label: value`; a reason may follow the value. The whole value must be a known
synonym: `Verdict: answer 1` is a statement; `Verdict: answer 1 is worse` is not. If one value is requested, it must
begin or end the answer, because text in the middle may be a quotation. All statements in an answer about the same value
must agree. An answer that breaks these rules raises ValueError, and the judge is asked again.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
THOUGHT = re.compile(r"<(think|thinking|thought)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
UNOPENED_THOUGHT = re.compile(r"\A.*</(?:think|thinking|thought)>", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<([A-Za-z][\w ]{0,30})>\s{0,3}([^<>\n]{1,300}?)\s{0,3}</\1>")
FENCE = re.compile(r"^[ \t]*```[a-zA-Z]*[ \t]*$", re.MULTILINE)
DECORATION = re.compile(r"(?<!\w)[*`_]+|[*`_]+(?!\w)")
EMOJI = "\u2705\u2728\u2b50\ufe0f\U0001f300-\U0001faff"  # Without crosses and boxes, which may contradict a value.
BULLET = re.compile(rf"^[\s>#|•{EMOJI}-]+|(?<![\s|{EMOJI}])(?:\s[-\u2013\u2014](?=\s?[{EMOJI}]))?[\s|{EMOJI}]+$")
NAME = re.compile(r"(?:the )?(?:[a-z]+[ _#-]{1,2}(?:\d|[a-z]|one|two)|(?:first|second|1st|2nd) [a-z]+)", re.IGNORECASE)
"""Matches the name of an answer, such as `Answer 1`, which may be a heading or introduce a remark."""
NUMERAL = re.compile(r"^\d{1,2}[.)]\s{1,3}")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<!\s)\s++(?=\[[A-Za-z ]{1,30}\])")
FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
MOST_OBJECTS = 20
OBJECT_START = re.compile(r'\{(?=\s*["}])')
BEGUN_OBJECT = re.compile(r"\{\s{0,20}\"[^}]*\Z")
FRACTION = re.compile(r'("[\w -]{1,60}"\s{0,3}:\s{0,3})(\d{1,3}(?:\.\d{1,3})?\s?/\s?\d{1,3})(?=\s{0,20}[,}])')
"""Matches a key of a JSON object and a value such as 9/10, which is not JSON without quotation marks."""

LEAD = (
    r"(?:(?:so|thus|therefore|hence|overall|finally|in (?:conclusion|summary|short))[,:]? )?"
    r"(?:i (?:would )?(?:think|believe|find|say|conclude)(?: that)? )?(?:(?:the|my|our|its|overall|final|total) ){0,3}"
)
"""Words that may precede a label, as in `My final score: 8`."""
LEADING = re.compile(LEAD, re.IGNORECASE)
SEPARATOR = r"\s{0,3}(?:[:=|]|->|→|\bis\b:?|(?<=\])|(?<= )[-\u2013\u2014](?= ))\s{0,3}"
OPENING = r"(?:[\[({\"'$]|<(?=[^<>\n]{1,40}>)){0,3}(?:\\boxed\{)?"
REMARK_START = (
    r"\((?!\W*(?:but|or|no(?=[,)])|actually|wait|rather)\b)"
    r"(?!before\b|[^()\n]{0,200}\b(?:reduced|lowered|raised|changed) to\b)"
    r"(?![^()\n]{0,200}\b(?:after|final)\b[^()\n]{0,60}\b\d{1,3}\))"
)
"""Matches a bracket, unless its words take back the value before it or name another stage of the value."""
REMARK = rf"(?:\s?{REMARK_START}[^()\n]{{1,60}}\))"
CLOSING = r"[\])}>\"'$]{0,4}"
REASON = (
    rf"\s{{0,3}}(?:[.!]{{0,3}}|{REMARK_START}[^()\n]{{1,200}}\)[.!]?|"
    r"(?:[.!:;,|]|\s[-\u2013\u2014]{1,2})\s(?P<why>.+)|"
    r"\s(?P<because>(?:because|since|as it)\b.+))"
)
"""Matches the end of a statement: nothing, a remark in brackets, or a reason after a delimiter."""
BETWEEN = rf"{REMARK}?(?:[,;.|]{{1,2}}\s{{0,3}}(?:and )?|\s{{1,3}}and |\s{{1,3}}\|\s{{0,3}}|$)"
"""Matches the end of one of several statements in a line."""

HEDGE = re.compile(
    r"\W*(?:(?:\w+\W+)?(?:but|if|unless|or|no(?=,)|less|minus|plus|wait|actually|al?though|however|except|perhaps|maybe|"
    r"rather)|well|to|up to|sa(?:id|ys)|claims?|according)\b",
    re.IGNORECASE,
)
"""Matches the beginning of a reason that retracts or quotes the value."""
INTERJECTION = r"wait|hold on|sorry|actually"
REVERSAL = r"on reflection|second thoughts?|(?:scratch|strike) that|take (?:that|it) back"
SELF_CORRECTION = re.compile(
    rf"(?:\A|[.!?\u2026]\s{{1,3}}|\s[-\u2013\u2014]\s)\W{{0,3}}(?:(?:{INTERJECTION}|no)(?=[,:.!-])|hmm|correction:|"
    rf"let me re(?:consider|think|vise|evaluate|check))|\b(?:{REVERSAL})\b",
    re.IGNORECASE,
)
"""Matches words in a reason by which a judge takes back the value before it."""
RETRACTION = (
    rf"^no(?=,)|{INTERJECTION}|{REVERSAL}|reconsider\w*|correction|let me re\w+|"
    r"(?:should|must|ought to) be|would (?:lower|raise)|changed?|changes to|instead"
)
RETRACTED = re.compile(rf"\b(?:{RETRACTION})\b", re.IGNORECASE)
"""Matches words after the last statement that suggest that the judge has changed a value."""
CONCLUDED = re.compile(rf"\b(?:{RETRACTION}|therefore|thus|in conclusion|overall|final(?:ly)?)\b", re.IGNORECASE)
"""Matches words that suggest that another verdict follows."""


Item = tuple["str | Mapping[str, Any]", bool]  # A line or a JSON object of an answer, and whether it is a quotation.


class MissingFieldError(ValueError):
    """A judge's answer lacks a field of the requested form."""


class ValueFormat(Protocol[T_co]):
    """The format in which a judge must write a field's value."""

    @property
    def pattern(self) -> str:
        """The regular expression that matches exactly the texts that `read_value` can read."""

    def read_value(self, text: str) -> T_co | None:
        """Read a text as a value; return None if the text contains anything else."""

    def is_clear_before_reason(self, reason: str) -> bool:
        """Tell whether the reason after a value leaves the value clear, that is, names no other value."""


@dataclass(frozen=True)
class NumberFormat:
    """A number, possibly followed by the upper end of the scale: `8`, `8/10`, `8 out of 10`, `8 points`."""

    high: float
    pattern = (
        r"[+-]?\d{1,12}(?:\.\d{1,20})?(?:e-\d{1,3})?"
        r"(?:\s?(?:/|out of)\s?\d{1,12}(?:\.0)?)?(?:\s(?:points?|stars?))?"
    )

    def read_value(self, text: str) -> float | None:
        number, *scale = re.findall(r"[+-]?\d+(?:\.\d+)?(?:e-\d+)?", text)
        return float(number) if not scale or float(scale[0]) == self.high else None

    def is_clear_before_reason(self, reason: str) -> bool:
        return not re.search(r"\d", reason)


@dataclass(frozen=True)
class ChoiceFormat(Generic[T]):
    """One of several options, such as verdicts; `options` maps each option to a regular expression for its synonyms."""

    options: Mapping[T, str]

    @cached_property
    def pattern(self) -> str:
        """The regular expression that matches every synonym of every option."""
        return "|".join(f"(?:{synonyms})" for synonyms in self.options.values())

    def read_value(self, text: str) -> T | None:
        found = (meaning for meaning, synonyms in self.options.items() if re.fullmatch(synonyms, text, re.IGNORECASE))
        return next(found, None)

    def is_clear_before_reason(self, reason: str) -> bool:
        conclusion = rf"(?:[.!?:;,]\s|\b(?:so|but|prefer)\s){LEAD}(?:{self.pattern})\s?(?:[.!]|\Z)"
        return not re.search(rf"\A\W*(?:{self.pattern})\b|{conclusion}", reason, re.IGNORECASE)


YES_OR_NO: ChoiceFormat[float] = ChoiceFormat(
    {1.0: "yes|true|met|pass(?:ed)?|supported", 0.0: "no|false|unmet|not met|fail(?:ed)?|unsupported|not supported"}
)


@dataclass(frozen=True)
class AnswerField(Generic[T]):
    """One labelled value in a judge's answer."""

    labels: Sequence[str]  # The field's requested label, then synonyms of this label.
    value: ValueFormat[T]  # The kind of value; all fields of one form have values of the same kind.


class AnswerForm(Generic[T]):
    """The form that was requested of a judge; `read_fields` reads an answer in this form."""

    def __init__(self, fields: Mapping[str, AnswerField[T]]) -> None:
        self._fields = fields
        self._names = {_normalise_label(label): name for name, field in fields.items() for label in field.labels}
        longest_first = sorted(self._names, key=len, reverse=True)
        either = "|".join(re.escape(label).replace(r"\ ", "[ _-]") for label in longest_first)
        self._pattern = next(iter(fields.values())).value.pattern
        value = rf"{OPENING}(?P<value>{self._pattern}){CLOSING}"
        statement = rf"{LEAD}\[?(?P<label>{either})\]?(?: (?:score|rating))?{REMARK}?{SEPARATOR}{value}"
        unnamed = re.sub(r"\?P<\w+>", "?:", statement)
        self._value = re.compile(value + REASON, re.IGNORECASE)
        self._heading = re.compile(rf"{LEAD}(?:{either}):?", re.IGNORECASE)
        self._begun = re.compile(statement, re.IGNORECASE)
        self._statement = re.compile(statement + BETWEEN, re.IGNORECASE)
        self._with_reason = re.compile(statement + REASON, re.IGNORECASE)
        self._several = re.compile(f"(?:{unnamed}{BETWEEN})+", re.IGNORECASE)
        self._boxed = re.compile(rf"(?:\[\[|\\boxed\{{)(?:{self._pattern})(?:\]\]|\}})\$?\W{{0,3}}$", re.IGNORECASE)

    def read_fields(self, text: str) -> dict[str, T]:
        """Read each field's value from an answer."""
        items = self._split_answer(remove_reasoning(text).translate(FULL_WIDTH))
        found = [self._read_statements(item) for item, _ in items]
        single = len(self._fields) == 1
        if single and items:
            end = len(items) - 1
            names = [isinstance(item, str) and NAME.fullmatch(item) for item, _ in items]
            for at, (item, _) in enumerate(items):
                # A line that is only a name may be a heading, so it counts only if the last line is a name, too.
                if names[end] if names[at] else at in (0, end):
                    found[at] = found[at] or self._read_bare_value(item, is_last=at == end)
            if not any(found[at] and not items[at][1] for at in (0, -1)):
                raise MissingFieldError(*self._fields)
        last = max((at for at, statements in enumerate(found) if statements), default=-1)
        after = [item for item, _ in items[last + 1 :] if isinstance(item, str)]
        if any((CONCLUDED if single else RETRACTED).search(line) or self._begun.match(line) for line in after):
            raise MissingFieldError(*self._fields)
        values: dict[str, T] = {}
        for name, value in (statement for statements in found for statement in statements):
            if values.setdefault(name, value) != value:
                raise ValueError(f"there are several lines '{name}:' that contradict one another.")
        if missing := [name for name in self._fields if name not in values]:
            raise MissingFieldError(missing[0])
        return values

    def _split_answer(self, text: str) -> list[Item]:
        """Split an answer into its JSON objects and lines; remove Markdown characters such as `**`."""
        text = FRACTION.sub(r'\1"\2"', text)
        inside = {at for _, start, end in list_json_objects(text) for at in range(start, end)}
        # Keep tags inside a JSON object, because they belong to a text, such as a reason that quotes HTML.
        text = TAG.sub(lambda tag: tag[0] if tag.start() in inside else f"\n{tag[1]}: {tag[2]}\n", text)
        items: list[Item] = []
        at = 0
        for item, start, end in list_json_objects(text):
            items += self._split_lines(text[at:start])
            before = text[:start].rstrip(" \t")
            # A JSON object counts as a quotation if it is inside a sentence.
            items.append((item, bool(before) and before[-1] not in "\n:>`"))
            at = end
        rest = text[at:]
        begun = BEGUN_OBJECT.search(rest)
        items += self._split_lines(rest[: begun.start()] if begun else rest)
        return [*items, ("(cut off)", False)] if begun else items

    def _split_lines(self, text: str) -> list[Item]:
        """Split a text into lines without Markdown; join a label to a value in the next line; mark quotations."""
        quoting = "\n" in text.strip()
        lines: list[Item] = []
        for raw in FENCE.sub("", text).splitlines():
            line = BULLET.sub("", DECORATION.sub("", BULLET.sub("", raw)))
            if not re.search(r"\w", line):
                continue
            if lines and self._heading.fullmatch(heading := str(lines[-1][0])):
                # A heading above a whole statement, such as `Verdict` above `Verdict: 2`, is not a label.
                line = line if self._begun.match(line) else f"{heading.rstrip(':')}: {line}"
                lines.pop()
            lines.append((line, quoting and raw.lstrip().startswith(">")))
        return lines

    def _read_statements(self, item: str | Mapping[str, Any]) -> list[tuple[str, T]]:
        """Return names and values of fields in a JSON object, a line, or a line's last sentence; [] without fields."""
        if not isinstance(item, str):
            return list(self._read_json_object(item))
        line = NUMERAL.sub("", item)
        for part in dict.fromkeys((line, SENTENCE_END.split(line)[-1])):
            several = self._several.fullmatch(part)
            matches = list(self._statement.finditer(part)) if several else [self._with_reason.fullmatch(part)]
            read = [self._read_statement(match) for match in matches if match]
            if read and None not in read:
                return [statement for statement in read if statement is not None]
        return []

    def _read_statement(self, match: re.Match[str]) -> tuple[str, T] | None:
        """Return a field's name and value; None if the text after the value may change the value."""
        name = self._names[_normalise_label(match["label"])]
        value = self._fields[name].value
        kept = is_unchanged_by_reason(match, value) and not self._begun.search(match.string, match.end("value"))
        read = value.read_value(match["value"]) if kept or match.re is self._statement else None
        return None if read is None else (name, read)

    def _read_json_object(self, item: Mapping[str, Any]) -> Iterator[tuple[str, T]]:
        """Yield the name and value of each field in a JSON object or in an object inside it."""
        for key, inner in item.items():
            name = self._names.get(_normalise_label(key))
            if name is None and isinstance(inner, Mapping):
                yield from self._read_json_object(inner)
            elif name is not None:
                field = inner.get("score", inner.get("value")) if isinstance(inner, Mapping) else inner
                if (read := parse_answer_value(field, self._fields[name].value)) is not None:
                    yield name, read

    def _read_bare_value(self, item: str | Mapping[str, Any], *, is_last: bool) -> list[tuple[str, T]]:
        """Read a line that consists of a value; in the last line, a value in the last sentence or a box is enough."""
        if not isinstance(item, str):
            return []
        ((name, field),) = self._fields.items()
        parts = [item, LEADING.sub("", item, count=1)]
        if is_last:
            end, boxed = SENTENCE_END.split(item)[-1], self._boxed.search(item)
            # A verdict in the last sentence does not count if the line begins with another statement.
            parts += [LEADING.sub("", end, count=1)] if " " in end and not self._begun.match(item) else []
            parts += [boxed[0]] if boxed else []
        for part in parts:
            match = self._value.fullmatch(part)
            if match and not _is_remark_introduction(match) and is_unchanged_by_reason(match, field.value):
                read = field.value.read_value(match["value"])
                return [] if read is None else [(name, read)]
        return []


def parse_answer_value(json_value: Any, value_format: ValueFormat[T]) -> T | None:
    """Read a JSON number or text as a value; return None if the number or text does not have this format."""
    if not isinstance(json_value, (str, int, float)):
        return None
    text = DECORATION.sub("", str(json_value).translate(FULL_WIDTH)).strip()
    match = re.fullmatch(rf"{OPENING}(?P<value>{value_format.pattern}){CLOSING}{REASON}", text, re.IGNORECASE)
    return value_format.read_value(match["value"]) if match and is_unchanged_by_reason(match, value_format) else None


def is_unchanged_by_reason(match: re.Match[str], value_format: ValueFormat[Any]) -> bool:
    """Return False if the reason after a value contradicts or weakens the value; otherwise, return True."""
    reasons = match.groupdict()
    why = reasons.get("why")
    if SELF_CORRECTION.search(why or reasons.get("because") or ""):
        return False
    return why is None or (not HEDGE.match(why) and value_format.is_clear_before_reason(why))


def _is_remark_introduction(match: re.Match[str]) -> bool:
    """Tell whether a value only names the topic of a remark, as in `Answer 1: it is short` (not `No: it is short`)."""
    if NUMERAL.match(match.string):  # The value is the number of a list item, as in `1. Relevance: good.`
        return True
    value, rest = match["value"], match.string[match.end("value") :]
    if NAME.fullmatch(value):
        return bool(re.match(r":\s|\s[-\u2013\u2014]", rest))
    return bool(re.search(r"\d$|^\w$", value)) and rest.startswith(": ")


def _normalise_label(label: str) -> str:
    return re.sub(r"[ _-]+", " ", label).strip().casefold()


def remove_reasoning(text: str) -> str:
    """Remove the reasoning that a model shows in its answer.

    If the closing tag is missing, the reasoning extends to the end of the text. If the opening tag is missing (some
    chat templates put it into the prompt), the reasoning starts at the beginning of the text.
    """
    return UNOPENED_THOUGHT.sub("", THOUGHT.sub("", text)).strip() if "<" in text else text.strip()


def list_json_objects(
    text: str, decoder: json.JSONDecoder | None = None, *, most: int = MOST_OBJECTS
) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the JSON objects in a text, each with the positions of its start and end.

    At most `most` opening braces are tried; a brace that cannot begin an object, as in LaTeX, does not count. By
    default, an object is left out if it repeats a name with a different value.
    """
    decoder = decoder or json.JSONDecoder(object_pairs_hook=_refuse_contradictions)
    end = 0
    for _ in range(most):
        if not (start := OBJECT_START.search(text, end)):
            return
        try:
            item, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            end = start.end()
        else:
            yield item, start.start(), end


def _refuse_contradictions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raise ValueError if an object repeats a name with a different value; Python would keep the last value."""
    item: dict[str, Any] = {}
    for name, value in pairs:
        if item.setdefault(name, value) != value:
            raise ValueError(f"the object has two values of {name}")
    return item


def find_reason(text: str) -> str:
    """Return the reason from the first JSON object with a reason; otherwise return the beginning of the text."""
    text = remove_reasoning(text)
    reasons = [item["reason"] for item, _, _ in list_json_objects(text) if item.get("reason")]
    return shorten_to_line(reasons[0] if reasons else text)


def shorten_to_line(text: Any) -> str:
    """Put the first 300 characters of a text into one line; return "" if the value is not a text."""
    return " ".join(text.split())[:300] if isinstance(text, str) else ""
