"""Criteria of a rubric: yes/no questions, scales, checklists, decision trees, and questions about each item of a list.

Each criterion requests a JSON object in which the reason precedes the score, because judges judge better after giving
reasons. The judge may also answer in labelled lines instead of JSON.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any, Protocol

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.types import Sample
from evalsuite.judges import parsing
from evalsuite.judges.asking import make_number_schema, make_object_schema
from evalsuite.judges.forms import CANNOT_TELL_PATTERN, SCORE_SYNONYMS, TEXT, Likert, Reading, ScaleCriteria
from evalsuite.judges.judgements import CANNOT_TELL, is_mostly_decided
from evalsuite.judges.parsing import YES_OR_NO, AnswerField, AnswerForm, ChoiceFormat, MissingFieldError, NumberFormat
from evalsuite.judges.prompts import NONE, Part

MOST_ITEMS = 200  # The maximum length of a list of items; longer lists are refused, because each item needs a call.
LONGEST_ITEM = 500  # The maximum length, in characters, of an item's text in a record.
YES_OR_NO_SCHEMA = {"type": "string", "enum": ["yes", "no"]}
VERDICT = AnswerField(("verdict", "answer", "decision", "judgement", "judgment", "result", "conclusion"), YES_OR_NO)


class Criteria(Protocol):
    """A question to a judge, with a scale for its answer from `worst` to `best`."""

    @property
    def worst(self) -> float:
        """The worst value on the scale."""

    @property
    def best(self) -> float:
        """The best value on the scale."""

    def write_answer_request(self) -> str:
        """Write the part of the prompt that asks the question and describes the form of the answer."""

    def make_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the answer."""

    def read_answer(self, text: str) -> Reading:
        """Read the value and the reason in a judge's answer; raise ValueError if the answer has another form."""


@dataclass(frozen=True, slots=True)
class YesNo:
    """One yes/no question; the value is 1.0 for yes and 0.0 for no."""

    question: str
    worst, best = 0.0, 1.0

    def write_answer_request(self) -> str:
        return (
            f"Decide: {self.question}\n"
            'Reply with one JSON object: {"reason": "<in one or two sentences>", "verdict": "yes" or "no"}'
        )

    def make_schema(self) -> dict[str, Any]:
        return make_object_schema(reason=TEXT, verdict=YES_OR_NO_SCHEMA)

    def read_answer(self, text: str) -> Reading:
        try:
            value = AnswerForm({"verdict": VERDICT}).read_fields(text)["verdict"]
        except MissingFieldError as missing:
            raise ValueError("it has no verdict, yes or no, at its beginning or end.") from missing
        return Reading(value, parsing.find_reason(text))


@dataclass(frozen=True, slots=True)
class Template(ScaleCriteria):
    """A complete prompt for a judge that was trained on exactly this prompt, and a parser for its answers."""

    text: str  # The judge's prompt; each `{name}` in it is replaced by the section with this name.
    low: int
    high: int
    # A function that reads the score, or a pattern whose last match contains the score; None reads as `Likert` does.
    reader: str | Callable[[str], float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.reader, str) and re.compile(self.reader).groups != 1:
            raise SettingsError(f"read={self.reader!r}: a pattern has one group, around the score")

    def list_sections(self) -> set[str]:
        """List the sections for which the prompt has placeholders."""
        return set(PLACEHOLDER.findall(self.text))

    def write_answer_request(self) -> str:
        return self.text

    def make_schema(self) -> dict[str, Any]:
        return {}

    def write_prompt(self, parts: Sequence[tuple[str, str]]) -> str:
        """Fill in the prompt; the placeholder `{passage}` is replaced by all of `passage 1`, `passage 2` and so on."""
        known = self.list_sections()
        texts: dict[str, list[str]] = {}
        for part, text in parts:
            name = part if part in known else part.rpartition(" ")[0]
            texts.setdefault(name, []).append(text)
        return PLACEHOLDER.sub(lambda found: "\n\n".join(texts.get(found[1], ())), self.text)

    def read_answer(self, text: str) -> Reading:
        if self.reader is None:
            return Likert("", self.low, self.high).read_answer(text)
        if isinstance(self.reader, str):
            matches = re.findall(self.reader, parsing.remove_reasoning(text))
            number = parsing.parse_answer_value(matches[-1], NumberFormat(self.high)) if matches else None
        else:
            number = self.reader(text)
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"it has no score from {self.low} to {self.high}.")
        return Reading(float(number), parsing.shorten_to_line(parsing.remove_reasoning(text)))


@dataclass(frozen=True, slots=True)
class OrCannotTell:
    """Criteria for which a judge may also answer `cannot tell`; the value of this answer is NaN."""

    criteria: Criteria

    def write_answer_request(self) -> str:
        asked = self.criteria.write_answer_request()
        return f'{asked}\nIf what you see does not decide it, write "{CANNOT_TELL}" as the {self._get_value_key()}.'

    def make_schema(self) -> dict[str, Any]:
        schema, key = self.criteria.make_schema(), self._get_value_key()
        either = {"anyOf": [schema["properties"][key], {"type": "string", "enum": [CANNOT_TELL]}]}
        return make_object_schema(**{**schema["properties"], key: either})

    def _get_value_key(self) -> str:
        """Return the name of the JSON schema's last property, which holds the score or verdict."""
        return str(list(self.criteria.make_schema()["properties"])[-1])

    def read_answer(self, text: str) -> Reading:
        labels = (self._get_value_key(), *VERDICT.labels, *SCORE_SYNONYMS)
        try:
            AnswerForm({"verdict": AnswerField(labels, ChoiceFormat({True: CANNOT_TELL_PATTERN}))}).read_fields(text)
        except MissingFieldError:
            return self.criteria.read_answer(text)
        try:
            self.criteria.read_answer(text)
        except ValueError:
            return Reading(math.nan, parsing.find_reason(text))
        raise ValueError("it says that it cannot tell, and gives a verdict as well.")


PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Each(ScaleCriteria):
    """A score for each item of an answer (claim, turn or other) that the judge finds; the value is the scores' mean.

    Attributes:
        item: what an item is called, in the singular: `claim`, `turn`.
        question: the question to ask about each item.
        low: the worst score.
        high: the best score; if `high` is 1, the judge answers yes or no for each item.
        none: the value if the judge finds no item. An empty answer gets `low` without a call.
        section: the section that contains the items, such as `answer`. If it is longer than `at_once`, the judge first
            lists the items, then judges each in a separate call. Without a section, one call judges all items.
        at_once: the maximum length, in characters, of a section whose items are all judged in one call.
        given: whether the items are known: each text of the section is one item, and is judged in a separate call.
        ranked: whether the items are ranked search results. The value is then the average precision: the share of
            useful items from the first item to each useful item, averaged over the useful items.
    """

    item: str
    question: str
    low: int = 0
    high: int = 1
    none: float = 1.0
    section: str = ""
    at_once: int = 1000
    given: bool = False
    ranked: bool = False

    def write_answer_request(self) -> str:
        scale = '"yes" or "no"' if self.high == 1 else f"<{self.low} (worst) to {self.high} (best)>"
        return (
            f"List every {self.item}, and of each decide: {self.question}\n"
            f'Reply with one JSON object: {{"items": [{{"{self.item}": "<in short>", "reason": "<one sentence>", '
            f'"score": {scale}}}, ...]}}; the list is empty where there is no {self.item}.'
        )

    def make_schema(self) -> dict[str, Any]:
        score = YES_OR_NO_SCHEMA if self.high == 1 else make_number_schema(self.low, self.high)
        entry = make_object_schema(**{self.item: TEXT}, reason=TEXT, score=score)
        return make_object_schema(items={"type": "array", "items": entry})

    def read_answer(self, text: str) -> Reading:
        entries = _find_list_in_json(text, "items")
        if entries is None or not all(isinstance(entry, Mapping) for entry in entries):
            raise ValueError('it is not a JSON object with a list of objects under "items".')
        items = [str(entry.get(self.item, "")) for entry in entries]
        shorten = parsing.shorten_to_line
        readings = [Reading(self._read_item_score(each), shorten(each.get("reason"))) for each in entries]
        return self.combine_readings(items, readings)

    def split_items(self, parts: Sequence[Part]) -> tuple[list[Part], list[str]] | None:
        """Return the sections without items, and the items to judge one by one; None if one call judges all items."""
        held = [part for part in parts if self.section in (part[0], part[0].rpartition(" ")[0])] if self.section else []
        if not held or not (self.given or sum(len(text) for _, text in held) > self.at_once):
            return None
        return [part for part in parts if part not in held], [text for _, text in held if text != NONE]

    def make_item_listing(self) -> "ItemListing":
        return ItemListing(self.item, self.section)

    def make_item_question(self) -> YesNo | Likert:
        """Make the question about one item; the prompt shows the item in a section of its own."""
        question = f"Of the {self.item} in its section: {self.question}"
        return YesNo(question) if self.high == 1 else Likert(question, self.low, self.high)

    def combine_readings(self, items: Sequence[str], readings: Sequence[Reading]) -> Reading:
        """Combine the readings of all items; the value is NaN if at most half of the items have a verdict."""
        if not items:
            return Reading(self.none, f"there is no {self.item}")
        told = [
            (f"{at}. {item}"[:LONGEST_ITEM], reading)
            for at, (item, reading) in enumerate(zip(items, readings, strict=True), 1)
            if reading.is_decided
        ]
        if not is_mostly_decided(len(told), len(items)):
            return Reading(math.nan, next(reading.reason for reading in readings if not reading.is_decided))
        scores = [reading.value for _, reading in told]
        name, worst = min(told, key=lambda one: one[1].value)
        value = math.fsum(scores) / len(scores)
        if self.ranked:
            found = [at for at, score in enumerate(scores, 1) if score]
            value = math.fsum(hit / at for hit, at in enumerate(found, 1)) / len(found) if found else 0.0
        return Reading(value, f"{name[:80]}: {worst.reason}", {name: reading.value for name, reading in told})

    def _read_item_score(self, entry: Mapping[str, Any]) -> float:
        value = entry.get("score", entry.get("verdict"))
        if self.high == 1:
            return read_yes_or_no(value)
        number = parsing.parse_answer_value(value, NumberFormat(self.high))
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"the score {value!r:.40} is not a number from {self.low} to {self.high}.")
        return number


def _find_list_in_json(text: str, key: str) -> list[Any] | None:
    """Find the list under a key in a text's JSON objects; None if it is missing, ambiguous or retracted later."""
    text = parsing.remove_reasoning(text)
    found = [(item[key], end) for item, _, end in parsing.list_json_objects(text) if isinstance(item.get(key), list)]
    if any(items != found[0][0] for items, _ in found) or (found and parsing.RETRACTED.search(text[found[-1][1] :])):
        return None
    return found[0][0] if found else None


@dataclass(frozen=True, slots=True)
class ItemListing(ScaleCriteria):
    """A request to list the items of a section, such as an answer's claims; `Reading.parts` has the items as keys."""

    item: str
    section: str
    low, high = 0, 1

    def write_answer_request(self) -> str:
        return (
            f"List every {self.item} in the section {self.section}, each as a short sentence that can be understood by "
            "itself. Keep its citations, such as [2]. Do not judge it.\n"
            f'Reply with one JSON object: {{"items": ["<{self.item}>", ...]}}'
        )

    def make_schema(self) -> dict[str, Any]:
        return make_object_schema(items={"type": "array", "items": TEXT})

    def read_answer(self, text: str) -> Reading:
        items = _find_list_in_json(text, "items")
        if items is None or len(items) > MOST_ITEMS or not all(isinstance(item, str) for item in items):
            raise ValueError(f'it is not a JSON object with a list of at most {MOST_ITEMS} texts under "items".')
        return Reading(1.0, "", dict.fromkeys((item for item in items if item.strip()), 1.0))


def read_yes_or_no(value: Any) -> float:
    """Read a JSON value that means yes (1.0) or no (0.0)."""
    number = {1: 1.0, 0: 0.0, "1": 1.0, "0": 0.0}.get(value) if isinstance(value, (int, str)) else None
    read = parsing.parse_answer_value(value, YES_OR_NO) if number is None else number
    if read is None:
        raise ValueError(f"{value!r:.40} is neither yes nor no.")
    return read


NUMBERED = re.compile(
    rf"^[\s*`_#>-]{{0,6}}(?:criterion )?(\d{{1,3}})[.):*\s]{{1,6}}{parsing.OPENING}[*`_]{{0,3}}({YES_OR_NO.pattern})"
    rf"[*`_]{{0,3}}{parsing.CLOSING}({parsing.REASON})\s*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches a line such as `2. no - it evades`."""


@dataclass(frozen=True, slots=True)
class Checklist:
    """Weighted yes/no questions; the value is the sum of weights answered yes, divided by the sum of positive weights.

    A question about a fault has a negative weight: `{"Is it right?": 4, "Is it harmful?": -5}` (as in HealthBench,
    arXiv 2505.08775, section 3).
    """

    weights: Mapping[str, float]
    best = 1.0

    def __post_init__(self) -> None:
        weights: list[Any] = list(self.weights.values())
        are_numbers = all(isinstance(weight, Real) and math.isfinite(weight) and weight for weight in weights)
        if not are_numbers or not any(weight > 0 for weight in weights):
            raise SettingsError(
                f"a checklist has criteria with weights other than 0, at least one above 0; got "
                f"{dict(self.weights)!r:.200}"
            )

    @property
    def worst(self) -> float:
        """The worst value on the scale."""
        return math.fsum(weight for weight in self.weights.values() if weight < 0) / self._sum_positive_weights()

    def _sum_positive_weights(self) -> float:
        return math.fsum(weight for weight in self.weights.values() if weight > 0)

    def write_answer_request(self) -> str:
        listed = "\n".join(f"{at}. {question}" for at, question in enumerate(self.weights, 1))
        return (
            f"Decide each of these, by itself:\n{listed}\n"
            'Reply with one JSON object: {"answers": [{"criterion": 1, "reason": "<one sentence>", "verdict": "yes" or '
            '"no"}, ...]}, with one entry for each criterion.'
        )

    def make_schema(self) -> dict[str, Any]:
        entry = make_object_schema(criterion={"type": "integer"}, reason=TEXT, verdict=YES_OR_NO_SCHEMA)
        return make_object_schema(answers={"type": "array", "items": entry})

    def read_answer(self, text: str) -> Reading:
        answers = self.read_answers(text)
        total = math.fsum(weight * answers[one][0] for one, weight in self.weights.items())
        missed = [
            f"{'met' if met else 'not met'}: {one}{f' ({why})' if why else ''}"
            for one, (met, why) in answers.items()
            if bool(met) == (self.weights[one] < 0)
        ]
        parts = {one: met for one, (met, _) in answers.items()}
        return Reading(total / self._sum_positive_weights(), "; ".join(missed) or "all met", parts)

    def read_answers(self, text: str) -> dict[str, tuple[float, str]]:
        """Map each question to the verdict (1.0 or 0.0) and the reason that an answer gives for it.

        Raise ValueError if a question has no answer, or has two different answers.
        """
        text = parsing.remove_reasoning(text)
        questions = list(self.weights)
        verdicts = _collect_verdicts([*_list_entries_in_json(text, questions)] or _list_numbered_lines(text))
        missing = [str(at) for at in range(1, len(questions) + 1) if at not in verdicts]
        if missing:
            raise ValueError(f"it has no verdict, yes or no, for criterion {', '.join(missing)}.")
        return {question: verdicts[at] for at, question in enumerate(questions, 1)}


@dataclass(frozen=True, slots=True)
class Tree:
    """A decision tree: yes/no questions whose answers lead to further questions or to a score.

    The judge answers all questions of the tree in one call; its answers then select a path to a score.

    Attributes:
        root: the first question: `{"question": ..., "yes": <node or number>, "no": <node or number>}`
    """

    root: Mapping[str, Any]

    def __post_init__(self) -> None:
        _list_questions_and_scores(self.root)

    @property
    def worst(self) -> float:
        """The worst value on the scale."""
        return min(_list_questions_and_scores(self.root)[1])

    @property
    def best(self) -> float:
        """The best value on the scale."""
        return max(_list_questions_and_scores(self.root)[1])

    def write_answer_request(self) -> str:
        return self._make_checklist_of_questions().write_answer_request()

    def make_schema(self) -> dict[str, Any]:
        return self._make_checklist_of_questions().make_schema()

    def read_answer(self, text: str) -> Reading:
        answers = self._make_checklist_of_questions().read_answers(text)
        node: Any = self.root
        parts: dict[str, float] = {}
        reasons: list[str] = []
        while isinstance(node, Mapping):
            met, why = answers[node["question"]]
            parts[node["question"]] = met
            reasons.append(f"{node['question']} {'yes' if met else 'no'}{f' ({why})' if why else ''}")
            node = node["yes" if met else "no"]
        return Reading(float(node), "; ".join(reasons), parts)

    def _make_checklist_of_questions(self) -> Checklist:
        return Checklist(dict.fromkeys(_list_questions_and_scores(self.root)[0], 1.0))


CRITERION = re.compile(r"(?:criterion )?#?(\d{1,3})\b", re.IGNORECASE)


def _list_entries_in_json(text: str, questions: Sequence[str]) -> Iterator[tuple[int, Any, Any]]:
    """Yield each entry's criterion number, verdict and reason; if it names no criterion, its position is the number."""
    entries = [entry for entry in _find_list_in_json(text, "answers") or () if isinstance(entry, Mapping)]
    for at, entry in enumerate(entries, 1):
        name = str(entry.get("criterion")).strip()
        match = CRITERION.match(name)
        number = questions.index(name) + 1 if name in questions else int(match[1]) if match else 0
        yield number or at, entry.get("verdict", entry.get("met", entry.get("answer"))), entry.get("reason")


def _list_numbered_lines(text: str) -> list[tuple[int, Any, Any]]:
    """List each line's number, verdict and reason; return [] if a reason or later text takes a verdict back."""
    matches = list(NUMBERED.finditer(text))
    clear = all(parsing.is_unchanged_by_reason(match, YES_OR_NO) for match in matches)
    if not clear or (matches and parsing.RETRACTED.search(text[matches[-1].end() :])):
        return []
    return [(int(match[1]), match[2], match[3].strip(" -:.,()\n")) for match in matches]


def _collect_verdicts(entries: Iterable[tuple[int, Any, Any]]) -> dict[int, tuple[float, str]]:
    """Map each criterion's number to its verdict (1.0 or 0.0) and reason; raise ValueError if two verdicts differ."""
    verdicts: dict[int, tuple[float, str]] = {}
    for number, word, reason in entries:
        verdict = read_yes_or_no(word)
        if verdicts.get(number, (verdict, ""))[0] != verdict:
            raise ValueError(f"it has two verdicts for criterion {number}.")
        verdicts[number] = (verdict, parsing.shorten_to_line(reason))
    return verdicts


def _list_questions_and_scores(node: Any) -> tuple[list[str], list[float]]:
    """List the questions below a node of a decision tree, and the scores of its leaves."""
    if isinstance(node, Mapping):
        if set(node) != {"question", "yes", "no"}:
            raise SettingsError(f"a node of a decision tree has question, yes and no; got {', '.join(map(str, node))}")
        questions, scores = zip(*(_list_questions_and_scores(node[answer]) for answer in ("yes", "no")), strict=True)
        return [node["question"], *chain(*questions)], [*chain(*scores)]
    if isinstance(node, bool) or not isinstance(node, (int, float)):
        raise SettingsError(f"a leaf of a decision tree is a number; got {node!r:.80}")
    return [], [float(node)]


def make_criteria(
    criteria: str | Sequence[str] | Mapping[str, Any] | Criteria,
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
) -> Criteria:
    """Make `Criteria` from a question, a list of questions, questions with weights, or a tree; see `rubric`."""
    if isinstance(criteria, str):
        if scale or anchors:
            low, high = scale or (min(anchors or ()), max(anchors or ()))
            return Likert(criteria, low, high, anchors or {})
        return YesNo(criteria)
    if scale or anchors:
        raise SettingsError("scale and anchors need a single question; a checklist or a tree has several")
    if isinstance(criteria, Mapping):
        return Tree(criteria) if "question" in criteria else Checklist(criteria)
    return Checklist(dict.fromkeys(criteria, 1.0)) if isinstance(criteria, Sequence) else criteria


def read_sample_criteria(sample: Sample) -> Criteria:
    """Make criteria from the questions in a sample's metadata; raise ScoringError if there are none."""
    criteria = sample.metadata.get("criteria")
    if not isinstance(criteria, (str, list, tuple, Mapping)) or not criteria:
        raise ScoringError(f"sample {sample.id} has no checklist under 'criteria' in its metadata")
    return make_criteria([criteria] if isinstance(criteria, str) else criteria)
