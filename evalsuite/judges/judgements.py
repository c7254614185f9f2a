"""Opinions (parsed judgements), ballots (opinions with judge and order), rules to combine them, and people's labels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol

from evalsuite.core.errors import ScoringError
from evalsuite.core.json_codec import digest
from evalsuite.core.redaction import mask_params
from evalsuite.core.types import COUNTED_APART, Metric, Score
from evalsuite.judges.asking import AGAIN, Log, Vote, require_quorum
from evalsuite.judges.prompts import JudgedInput, mark_sections

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample

PairVerdict = Literal["first", "second", "tie", "cannot tell"]
Lead = Literal["Reply", "End"]
# Name of the score of a comparison: the preference for the first of two answers, from 0 to 1.
PREFERENCE = "preference"
OTHER: Mapping[str, Any] = {"first": "second", "second": "first"}
# Version of the judges' code, which is part of every signature. Increase the version if the code that reads or combines
# judges' answers changes. A changed prompt needs no new version, because signatures also contain the prompts.
VERSION = 6
UNDER_TEST = "the model under test"
CANNOT_TELL: Literal["cannot tell"] = "cannot tell"
# Key of the fact about the single judge that is asked before a panel (its verdict and calls).
SINGLE_JUDGE_FACT = "alone"


@dataclass(frozen=True, slots=True)
class Opinion:
    """One parsed judgement: scores, or the verdict on two answers."""

    # Scores of one answer are keyed by aspect, scores of two answers by `first` and `second`; a graded verdict has the
    # key `preference`.
    scores: Mapping[str, float] = field(default_factory=dict)
    verdict: PairVerdict | None = None  # The better of two answers; None if only one answer is judged.

    def __str__(self) -> str:
        if self.verdict and PREFERENCE not in self.scores:
            return self.verdict
        return ", ".join(f"{name} {value:g}" for name, value in self.scores.items())

    def exchange_answers(self) -> Opinion:
        """Return the opinion with the first and the second answer exchanged."""
        scores = {OTHER.get(key, key): 1 - value if key == PREFERENCE else value for key, value in self.scores.items()}
        return Opinion(scores, OTHER.get(self.verdict or "", self.verdict))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot(Opinion):
    """One judge's opinion about the answers, shown in one of their orders; its fields are stored in the record.

    Reports recognise stored ballots by exactly these fields, so a new field would hide the ballots of earlier runs.
    Verdict and scores are converted: `first` is the case's first answer, even if the judge saw it second.
    """

    judge: str  # The debater's name in a panel, otherwise the number of the repetition.
    model: str
    swapped: bool = False  # Whether the second answer was shown first.


@dataclass(frozen=True, slots=True)
class Assessment:
    """The combined opinion of one method of judging, with its ballots and all messages."""

    opinion: Opinion
    ballots: tuple[Ballot, ...]
    log: Log
    # Further facts for the case's record, such as how a weighted score was computed.
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """The number of completions that were requested, including those of repeated judgements."""
        return sum(entry["role"] == "assistant" for entry in self.log)

    def encode_assessment(self) -> dict[str, Any]:
        """Return JSON data for a record: `verdict`, `calls`, `ballots`, further facts, and `cut_off` unless it is 0."""
        ballots = list(map(asdict, self.ballots))
        facts = {"verdict": self.opinion.verdict, "calls": self.calls, "ballots": ballots, **self.facts}
        return facts | make_cut_off_fact(self.log)


def make_cut_off_fact(log: Log) -> dict[str, int]:
    """Return the fact `cut_off`: how many answers ended because of the token limit; {} if there are none."""
    cut = sum(bool(entry.get("cut_off")) for entry in log)
    return {"cut_off": cut} if cut else {}


class Judge(Protocol):
    """A method of judging: one model that judges once or several times, or a panel."""

    def list_prompt_sentences(self) -> Sequence[str]:
        """List the prompts' fixed texts, for the judge's signature."""

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment: ...


def find_majority_or_tie(verdicts: Sequence[PairVerdict]) -> PairVerdict:
    """Return the verdict that has more than half of the votes; without one, return `tie`."""
    winner, votes = Counter(verdicts).most_common(1)[0]
    return winner if 2 * votes > len(verdicts) else "tie"


def find_better_answer(first: float, second: float) -> PairVerdict:
    """Return which of two answers has the higher score, or `tie`."""
    if math.isclose(first, second, rel_tol=1e-12):
        return "tie"
    return "first" if first > second else "second"


def average_scores(mappings: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Average the values of each name, ignoring mappings that lack the name."""
    columns: dict[str, list[float]] = {}
    for mapping in mappings:
        for name, value in mapping.items():
            columns.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in columns.items()}


Votes = Sequence[Vote[Opinion]]


def make_ballots(votes: Votes, *, swapped: bool) -> list[Ballot]:
    """Make a ballot from each readable vote; `swapped` means that the judges saw the second answer first."""
    read = [(vote, vote.value.exchange_answers() if swapped else vote.value) for vote in votes if vote.value]
    return [Ballot(one.scores, one.verdict, judge=vote.judge, model=vote.model, swapped=swapped) for vote, one in read]


def combine_orders(
    combine: Callable[[Sequence[Opinion]], Opinion], orders: Sequence[tuple[Votes, Log]], quorum: int | None
) -> Assessment:
    """Combine the votes on all orders of the answers into one opinion.

    Both orders get equal weight even if one has fewer ballots, because a position bias cancels only with equal weights.

    Args:
        combine: the function that combines opinions; in each, `first` means the case's first answer.
        orders: the votes and the log of each order of the answers; in the second order, the second answer comes first.
        quorum: the minimum number of readable ballots in each order; None requires more than half of the requested
            ballots.
    """
    log = tuple(entry for _, messages in orders for entry in messages)
    problems = [[vote.problem for vote in votes if not vote.value] for votes, _ in orders]
    ballots = [make_ballots(votes, swapped=bool(at)) for at, (votes, _) in enumerate(orders)]
    for readable, unread in zip(ballots, problems, strict=True):
        require_quorum(len(readable), unread, quorum, "ballots", log)
    lost = sum(map(len, problems))
    decided = [[ballot for ballot in order if ballot.verdict != CANNOT_TELL] for order in ballots]
    if not all(is_mostly_decided(len(told), len(order)) for told, order in zip(decided, ballots, strict=True)):
        opinion = Opinion(verdict=CANNOT_TELL)
    elif len({*map(len, decided)}) == 1 or not all(ballot.scores for order in decided for ballot in order):
        opinion = combine([*chain(*decided)])
    else:
        opinion = combine([combine(order) for order in decided])
    return Assessment(opinion, tuple(chain(*ballots)), log, {"unreadable": lost} if lost else {})


def is_mostly_decided(verdicts: int, judgements: int) -> bool:
    """Tell whether more than half of the readable judgements have a verdict."""
    return 2 * verdicts > judgements


def declare_scores(name: str, range_: tuple[float, float] | None) -> dict[str, Metric]:
    """Declare a score, and a second metric (suffix `COUNTED_APART`) that counts the cases without a verdict."""
    return {name: Metric(range_), name + COUNTED_APART: Metric((0.0, 1.0), better="lower")}


def write_signature(kind: str, models: Sequence[Model], *content: Any) -> str:
    """Write a signature, which identifies how a score is made: `rubric|judge:gpt-4|version:2|hash:5f0c2a71d3b49e08`.

    Two signatures are equal if the same models get the same prompts and answers are read in the same way. The hash
    covers the models, the run's parameters (without secrets), the judge's own prompts and settings (`content`), and the
    sentences that are in every judge's prompt. Without `models`, the tested model is itself the judge.
    """
    names = [model.name for model in models]
    overrides = [mask_params(model.overrides) for model in models]
    shared = [VERSION, AGAIN, mark_sections([("section", "")])]
    hashed = digest([kind, names, overrides, shared, content])
    return f"{kind}|judge:{'+'.join(names) or UNDER_TEST}|version:{VERSION}|hash:{hashed}"


def make_judge_signature(judge: Judge, models: Sequence[Model], shown: Any = None) -> str:
    """Write the signature of a `Judge`; see `write_signature`."""
    kind, plain = type(judge).__name__.lower(), make_address_free_repr(judge)
    return write_signature(kind, models, judge.list_prompt_sentences(), plain, shown)


def make_address_free_repr(settings: Any) -> str:
    """Return the `repr` of settings without memory addresses, because they differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(settings))


def sign_scores(scores: Mapping[str, float | Score], signature: str) -> dict[str, float | Score]:
    """Add a signature to each score."""
    plain = {name: score if isinstance(score, Score) else Score(score) for name, score in scores.items()}
    return {name: replace(score, signature=signature) for name, score in plain.items()}


WINS: Mapping[Any, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""The first answer's score for each verdict on two answers."""

LABELS: Mapping[str, float] = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, **WINS}
"""The words that are labels, each with its number."""


def parse_label(label: Any) -> float | None:
    """Read a number or one of the `LABELS`; return None for any other value."""
    if isinstance(label, str):
        word = label.strip().casefold()
        try:
            label = LABELS[word] if word in LABELS else float(word)
        except ValueError:
            return None
    is_number = isinstance(label, (bool, int, float)) and math.isfinite(label)
    return float(label) if is_number else None


def is_on_scale(label: Any, scale: tuple[float, float]) -> bool:
    """Tell whether a label is on a judge's scale; words and truth values fit only scales whose best mark is 1."""
    value, (low, high) = parse_label(label), scale
    is_word = isinstance(label, bool) or (isinstance(label, str) and label.strip().casefold() in LABELS)
    return value is not None and low <= value <= high and (high == 1 or not is_word)


def make_people_facts(
    sample: Sample,
    score_names: Sequence[str],
    *,
    scale: tuple[float, float] | None = None,
    passing_score: float | None = None,
    nominal: bool = False,
) -> dict[str, Any]:
    """Return the fact `people`: each score's human label and how it is compared with the score; {} without labels.

    If `nominal` is true, the scores are categories, not points on a scale.
    """
    human = sample.metadata.get("human")
    if not nominal and isinstance(human, str) and human.strip().casefold() in WINS:
        # Ignore `first`, `tie` and `second`, because these labels do not say which score an answer deserves.
        return {}
    by_score = human if isinstance(human, Mapping) else dict.fromkeys(score_names, human)
    given = {name: by_score[name] for name in score_names if by_score.get(name) is not None}
    labels = {name: _parse_sample_label(sample, label) for name, label in given.items()}
    for name, label in given.items():
        if scale and not is_on_scale(label, scale):
            raise ScoringError(
                f"sample {sample.id} has the label {label!r:.60} under 'human' in its metadata; {name} has a "
                f"scale from {scale[0]:g} to {scale[1]:g}: give a number on it, or a mapping of labels by score"
            )
    compared: dict[str, Any] = {"scale": list(scale)} if scale else {}
    compared |= {"passes": passing_score} if passing_score is not None else {}
    compared |= {"nominal": True} if nominal else {}
    return {"people": {name: {"label": label, **compared} for name, label in labels.items()}} if labels else {}


def check_labels(sample: Sample) -> None:
    """Raise ScoringError if a label of the sample cannot be read."""
    human = sample.metadata.get("human")
    labels = list(human.values()) if isinstance(human, Mapping) else [human]
    if not labels or None in labels:
        raise ScoringError(f"sample {sample.id} has no label under 'human' in its metadata")
    for label in labels:
        _parse_sample_label(sample, label)


def _parse_sample_label(sample: Sample, label: Any) -> float:
    value = parse_label(label)
    if value is None:
        raise ScoringError(
            f"sample {sample.id} has the label {label!r:.60} under 'human' in its metadata; a label is a number or one "
            f"of {', '.join(LABELS)}"
        )
    return value
