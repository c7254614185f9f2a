"""Judges as scorers: each declared in one line where a case is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from evalsuite.errors import ScoringError, SettingsError
from evalsuite.judging.forms import QUALITY, Aspect, ChoiceForm, PairedScores, ScoresForm
from evalsuite.judging.g_eval import STARS, Weighted
from evalsuite.judging.judged_input import JudgedInput, conversation, without_names
from evalsuite.judging.panels import Panel
from evalsuite.judging.people_facts import people_facts
from evalsuite.judging.repeated_judge import OFFICE, Sampled
from evalsuite.judging.roles import debaters
from evalsuite.judging.signature import signature
from evalsuite.keywords import generation_params
from evalsuite.types import Score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.judging.forms import Form
    from evalsuite.judging.opinions import Assessment, Judge
    from evalsuite.judging.panels import Strategy
    from evalsuite.judging.roles import DebaterRole
    from evalsuite.protocols import Model
    from evalsuite.types import Sample, Transcript

DecisionRule = Literal["vote", "scores"]
PREFERENCE = "preference"
WINS: Mapping[str | None, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""What a verdict is worth to the first answer, which is the answer under test."""


@dataclass(frozen=True, slots=True)
class JudgeScorer:
    """A judge that scores cases; see `single`, `pairwise`, `multiple_evidence`, `weighted` and `panel`.

    Attributes:
        judge: how it is judged.
        rival: what the answer is compared with: a key of the sample's metadata, or `target`; None where
            the answer is scored alone.
        background: key of the metadata with what a good answer may draw on.
        hide: names that are withheld wherever an answer mentions them.
        prefix: put before each score's name, and around its facts, where a case has two judges.
        model: another judge than the run's; empty for the run's.
    """

    judge: Judge
    rival: str | None = None
    background: str | None = None
    hide: tuple[str, ...] = ()
    prefix: str = ""
    model: str = ""

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """The scores; the first one carries the facts and the log of all judge calls."""
        subject = self.subject(sample, transcript)
        judge = judge.peer(self.model) if self.model else judge
        found = await self.judge(subject, judge)
        name, *others = (values := _values(found))
        facts = {**found.plain(), "lengths": [len(answer) for answer in subject.answers]}
        facts |= _known(sample) if self.rival else {}
        facts |= self._people(sample, list(values))
        facts["signature"] = self.signature(judge.name)
        # Two judges of one case would overwrite each other's facts: a prefix keeps them apart, too.
        facts = {self.prefix: facts} if self.prefix else facts
        first = Score(values[name], note=_note(found), facts=facts, log=found.log)
        return {self.prefix + name: first, **{self.prefix + other: values[other] for other in others}}

    def signature(self, model: str) -> str:
        """What the scores hang on, in a line; see `signature`."""
        kind = type(self.judge).__name__.lower()
        form = getattr(self.judge, "form", None)
        asked = form.request() if form else ""
        shown = [self.rival, self.background, list(self.hide)]
        return signature(kind, [model], [OFFICE, asked, repr(self.judge), shown])

    def _people(self, sample: Sample, names: Sequence[str]) -> dict[str, Any]:
        """People's labels, by the names under which the scores are kept."""
        if self.rival and not isinstance(sample.metadata.get("human"), (str, Mapping)):
            return {}
        return people_facts(sample, [self.prefix + name for name in names], nominal=bool(self.rival))

    def given(
        self, *, background: str | None = None, hide: Sequence[str] = (), prefix: str = ""
    ) -> JudgeScorer:
        """The same judge, told or spared more; see the attributes."""
        return replace(self, background=background, hide=tuple(hide), prefix=prefix)

    def subject(self, sample: Sample, transcript: Transcript) -> JudgedInput:
        """What the judge gets to see of a case.

        Raises:
            ScoringError: the sample lacks the rival answer or the background.
        """
        answers = [transcript.answer, *([_text(sample, self.rival)] if self.rival else [])]
        return JudgedInput(
            question=conversation(sample.input),
            answers=tuple(without_names(answer, self.hide) for answer in answers),
            background=_text(sample, self.background) if self.background else "",
            reference=_target(sample) if not self.rival else "",
        )


def single(
    aspects: Sequence[str | Aspect] = (),
    *,
    attempts: int = 3,
    model: str = "",
    **params: Any,
) -> JudgeScorer:
    """One judge scores the answer: one call.

    Args:
        aspects: what to score, one score each; a bare name is scored from 1 to 10. None at all means one
            score `quality`.
        attempts: answers asked for at most, until one can be parsed.
        model: another judge than the run's.
        params: generation parameters.

    Raises:
        SettingsError: an aspect is named twice, or its scale is empty.
    """
    checked = generation_params(single, params)
    judge = Sampled(ScoresForm(_aspects(aspects)), attempts=attempts, params=checked)
    return JudgeScorer(judge, model=model)


def pairwise(
    rival: str = "target",
    *,
    swap: bool = True,
    attempts: int = 3,
    model: str = "",
    **params: Any,
) -> JudgeScorer:
    """One judge says which of two answers is better: two calls, one in each order.

    The score `preference` is 1.0 where the answer under test is preferred in both orders, 0.0 where the
    rival is, 0.5 otherwise.

    Args:
        rival: key of the sample's metadata with the answer to compare with; `target` for the sample's
            target where the metadata has no such key.
        swap: whether both orders are asked; without it the answer under test always stands first.
        attempts: see `single`.
        model: see `single`.
        params: see `single`.
    """
    checked = generation_params(pairwise, params)
    judge = Sampled(ChoiceForm(), swap=swap, attempts=attempts, params=checked)
    return JudgeScorer(judge, rival, model=model)


def multiple_evidence(
    aspects: Sequence[str | Aspect] = (),
    *,
    samples: int = 3,
    rival: str | None = None,
    swap: bool = True,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    **params: Any,
) -> JudgeScorer:
    """One judge gives reasons, then scores, several times; scores are averaged (FairEval's MEC and BPC).

    `samples` calls; twice as many with a rival, in both orders.

    Args:
        aspects: see `single`; with a rival at most one, on which both answers are scored.
        samples: judgements in each order, at temperature 1 unless `params` say otherwise.
        rival: see `pairwise`; None scores the answer alone.
        swap: see `pairwise`.
        attempts: see `single`.
        model: see `single`.
        quorum: judgements that must be readable in each order; None for more than half.
        params: see `single`.
    """
    checked = {"temperature": 1.0, **generation_params(multiple_evidence, params)}
    judge = Sampled(_form(aspects, rival, "scores"), samples, True, swap, attempts, checked, quorum)
    return JudgeScorer(judge, rival, model=model)


def weighted(
    aspects: Sequence[str | Aspect] = (),
    *,
    samples: int = 20,
    rival: str | None = None,
    attempts: int = 3,
    model: str = "",
    **params: Any,
) -> JudgeScorer:
    """One judge scores each aspect alone; the score is its expected value (G-Eval).

    One call for each aspect and answer where the backend gives log-probabilities, else `samples` more;
    the fact `weights` says which.

    Args:
        aspects: see `single`, but a bare name is scored from 1 to 5, and scales have one digit.
        samples: judgements where there are no log-probabilities.
        rival: see `pairwise`; None scores the answer alone. Of two answers, each is scored by itself.
        attempts: see `single`.
        model: see `single`.
        params: see `single`.
    """
    wanted = _aspects(aspects, STARS)
    _one_aspect(wanted, rival)
    judge = Weighted(wanted, samples, attempts, generation_params(weighted, params))
    return JudgeScorer(judge, rival, model=model)


def panel(  # noqa: PLR0913 - a judge is declared in one line, each option a keyword
    roles: int | Sequence[str | DebaterRole] = 3,
    *,
    strategy: Strategy = "one_by_one",
    turns: int = 2,
    aspects: Sequence[str | Aspect] = (),
    rival: str | None = None,
    decide: DecisionRule = "vote",
    swap: bool = True,
    same_role: bool = False,
    summarizer: str | None = None,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    **params: Any,
) -> JudgeScorer:
    """Debaters talk the answer over, then each judges (ChatEval).

    Calls: orders x (debaters x (turns + 1) + summaries); 2 orders with a rival, else 1; as many summaries
    as turns under `simultaneous_summarizer`, else none.

    Args:
        roles: known roles or names of your own, in the order of speaking; `Role` objects for prompts or
            models of your own; or how many of the known roles to take.
        strategy: `one_by_one`, `simultaneous` or `simultaneous_summarizer`.
        turns: of talk, before the final one in which each judges.
        aspects: see `multiple_evidence`.
        rival: see `pairwise`; None scores the answer alone.
        decide: with a rival: by `vote`, a tie where there is no majority, or by mean `scores`.
        swap: see `pairwise`.
        same_role: gives every debater the same neutral prompt (the paper's ablation).
        summarizer: the model that sums up; None for the judge model.
        attempts: see `single`.
        model: see `single`.
        quorum: see `multiple_evidence`.
        params: see `single`.

    Raises:
        SettingsError: no debaters, an unknown strategy, fewer than no turns, or aspects as in `single`.
    """
    form = _form(aspects, rival, decide)
    seats = debaters(roles, same_role=same_role)
    checked = generation_params(panel, params)
    judge = Panel(form, seats, strategy, turns, swap, summarizer, attempts, checked, quorum)
    return JudgeScorer(judge, rival, model=model)


def _form(aspects: Sequence[str | Aspect], rival: str | None, decide: DecisionRule) -> Form:
    wanted = _aspects(aspects)
    if decide not in get_args(DecisionRule):
        raise SettingsError(f"a comparison is decided by vote or by scores; got {decide!r}")
    if rival is None:
        return ScoresForm(wanted)
    _one_aspect(wanted, rival)
    return ChoiceForm(wanted[0]) if decide == "vote" else PairedScores(wanted[0])


def _aspects(aspects: Sequence[str | Aspect], plain: Aspect = QUALITY) -> tuple[Aspect, ...]:
    if isinstance(aspects, str):
        raise SettingsError(f"aspects are a list of names; got the text {aspects!r}")
    found = [
        Aspect(aspect, low=plain.low, high=plain.high) if isinstance(aspect, str) else aspect
        for aspect in aspects or (plain,)
    ]
    names = [aspect.name for aspect in found]
    if len(set(names)) < len(names):
        raise SettingsError(f"aspects are scores and need names of their own; got {', '.join(names)}")
    return tuple(found)


def _one_aspect(aspects: Sequence[Aspect], rival: str | None) -> None:
    if rival is not None and len(aspects) > 1:
        names = ", ".join(aspect.name for aspect in aspects)
        raise SettingsError(f"two answers are compared on one aspect, not on several; got {names}")


def _known(sample: Sample) -> dict[str, Any]:
    """What biases are measured by: who wrote both answers, and people's verdict, where the sample says so."""
    systems, human = sample.metadata.get("systems"), sample.metadata.get("human")
    known: dict[str, Any] = {}
    if isinstance(systems, (list, tuple)) and [type(system) for system in systems] == [str, str]:
        known["systems"] = list(systems)
    if isinstance(human, str) and human in WINS:
        known["human"] = human
    return known


def _values(found: Assessment) -> dict[str, float]:
    if found.opinion.verdict is not None:
        return {PREFERENCE: WINS[found.opinion.verdict]}
    return dict(found.opinion.scores)


def _note(found: Assessment) -> str:
    said = [ballot.opinion.verdict or _numbers(ballot.opinion.scores) for ballot in found.ballots]
    return "; ".join(f"{ballot.judge}: {what}" for ballot, what in zip(found.ballots, said, strict=True))


def _numbers(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in scores.items())


def _target(sample: Sample) -> str:
    target = sample.target
    if target is None or isinstance(target, (str, int, float)):
        return "" if target is None else str(target)
    return str(target[0]) if target else ""


def _text(sample: Sample, key: str) -> str:
    found = sample.metadata.get(key, _target(sample) if key == "target" else None)
    if not isinstance(found, str) or not found:
        raise ScoringError(
            f"sample {sample.id} has no text {key!r} for its judge: its metadata holds "
            f"{', '.join(map(repr, sample.metadata)) or 'nothing'}; name another key or fill this one"
        )
    return found
