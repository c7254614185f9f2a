"""Judges as scorers: `single`, `pairwise`, `multiple_evidence`, `weighted`, `panel`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from evalsuite.core.errors import JudgeError, ScoringError, SettingsError
from evalsuite.core.keywords import generation_params
from evalsuite.core.types import Message, Score
from evalsuite.judges.asking import StructuredAnswers, ask_until_parsed, wait_for_all
from evalsuite.judges.forms import QUALITY, Aspect, ChoiceForm, GradedChoice, PairedScores, ScoresForm
from evalsuite.judges.g_eval import STARS, Weighted
from evalsuite.judges.human_labels import people_facts
from evalsuite.judges.judgements import (
    CANNOT_TELL,
    COUNTED_APART,
    PREFERENCE,
    Ballot,
    Round,
    declare_scores,
    judge_signature,
    settle_rounds,
    sign_scores,
)
from evalsuite.judges.panels import Panel, make_debaters
from evalsuite.judges.prompts import OFFICE, REASONS, JudgedInput, as_text, find_media, withhold_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Metric, Sample, Transcript
    from evalsuite.judges.asking import Log
    from evalsuite.judges.judgements import Assessment, Form, Judge, Opinion
    from evalsuite.judges.panels import DebaterRole, Strategy
    from evalsuite.judges.prompts import Part

DecisionRule = Literal["vote", "scores"]
Levels = Literal[3, 5]
CHOICES_BY_LEVELS: Mapping[Levels, type[ChoiceForm | GradedChoice]] = {3: ChoiceForm, 5: GradedChoice}
WINS: Mapping[str | None, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""The score of the first answer, which is the answer under test, for each verdict."""


def single(aspects: Sequence[str | Aspect] = (), *, attempts: int = 3, model: str = "", **params: Any) -> JudgeScorer:
    """Let one judge score the answer, with one call.

    Args:
        aspects: the aspects to score, with one score each; a bare name is scored from 1 to 10. By default one
            score `quality`.
        attempts: maximum answers to request, until one can be read.
        model: the judge model, if it is not the run's.
        params: generation parameters; the temperature is 0 by default, and None leaves it to the server.

    Raises:
        SettingsError: an aspect occurs twice, or its scale is empty.
    """
    checked = _with_temperature(0.0, single, params)
    judge = Sampled(ScoresForm(_read_aspects(aspects)), attempts=attempts, params=checked)
    return JudgeScorer(judge, model=model)


def pairwise(  # noqa: PLR0913 - a judge is declared in one line, each option a keyword
    rival: str = "target",
    *,
    levels: Levels = 3,
    samples: int = 1,
    swap: bool = True,
    cannot_tell: bool = False,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    **params: Any,
) -> JudgeScorer:
    """Let one judge decide which of two answers is better, with one call for each of the two orders.

    With three levels, the score `preference` is 1.0 if the answer under test wins by a majority over both
    orders, 0.0 if the rival wins, and 0.5 otherwise. With five levels, the values of the verdicts are 1.0
    (much better), 0.75 (better), 0.5 (a tie), 0.25 and 0.0, and the score is the mean of these values.

    Args:
        rival: the key in the sample's metadata with the other answer; `target` is the sample's target if the
            metadata has no such key.
        levels: 3; or 5 for verdicts that also have a degree.
        samples: the number of judgements in each order; several are requested at temperature 1.
        swap: whether to judge both orders; otherwise the answer under test is always shown first.
        cannot_tell: whether the judge may say that it cannot tell. If at least half of the judgements in one order say
            so, the case has no score, and the metric `preference_cannot_tell` is 1.0 (otherwise 0.0).
        attempts: maximum answers to request, until one can be read.
        model: the judge model, if it is not the run's.
        quorum: the minimum number of readable judgements in each order; None requires more than half.
        params: generation parameters, as for `single`.

    Raises:
        SettingsError: the number of levels is not 3 or 5, or `samples` is less than 1.
    """
    if levels not in CHOICES_BY_LEVELS:
        raise SettingsError(f"pairwise: levels is 3 or 5; got {levels!r}")
    checked = _with_temperature(1.0 if samples > 1 else 0.0, pairwise, params)
    form: Form = CHOICES_BY_LEVELS[levels](cannot_tell=cannot_tell)
    judge = Sampled(form, samples, swap=swap, attempts=attempts, params=checked, quorum=quorum)
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
    """Let one judge give reasons and then scores, several times; scores are averaged (FairEval's MEC and BPC).

    The judge is called `samples` times. With a rival, it is called twice as often, to cover both orders.

    Args:
        aspects: see `single`; with a rival, at most one aspect, on which both answers are scored.
        samples: the number of judgements in each order; the default temperature is 1.
        rival: see `pairwise`; None scores the answer alone.
        swap: whether to judge both orders.
        attempts: maximum answers to request, until one can be read.
        model: the judge model, if it is not the run's.
        quorum: the minimum number of readable judgements in each order; None requires more than half.
        params: generation parameters, as for `single`.
    """
    checked = _with_temperature(1.0, multiple_evidence, params)
    judge = Sampled(_choose_form(aspects, rival, "scores"), samples, True, swap, attempts, checked, quorum)
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
    """Let one judge score each aspect separately; the score is its expected value (G-Eval).

    The judge is called once per aspect and answer. If the backend returns no log-probabilities, the judge is called
    `samples` more times; the fact `weights` names the method.

    Args:
        aspects: the aspects to score. A bare name is scored from 1 to 5, and all scores must have one digit.
        samples: number of judgements if the backend returns no log-probabilities.
        rival: see `pairwise`; None scores the answer alone. Two answers are scored separately.
        attempts: maximum answers to request, until one can be read.
        model: the judge model, if it is not the run's.
        params: generation parameters, as for `single`.
    """
    wanted = _read_aspects(aspects, STARS)
    _check_one_aspect(wanted, rival)
    judge = Weighted(wanted, samples, attempts, _with_temperature(0.0, weighted, params))
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
    """Let debaters discuss the answer and then judge it separately (ChatEval).

    The number of calls is orders x (debaters x (turns + 1) + summaries). There are 2 orders with a rival,
    otherwise 1, and one summary per turn with `simultaneous_summarizer`, otherwise none.

    Args:
        roles: the number of predefined roles, or a list in the order of speaking: names of predefined roles, your
            own names, or `DebaterRole` objects with your own prompts or models.
        strategy: `one_by_one`, `simultaneous` or `simultaneous_summarizer`.
        turns: turns of speaking, before the final turn in which each debater judges.
        aspects: see `multiple_evidence`.
        rival: see `pairwise`; None scores the answer alone.
        decide: the rule for comparing with a rival: `vote`, with a tie without a majority, or mean
            `scores`.
        swap: whether to judge both orders.
        same_role: whether every debater gets the same neutral prompt (the paper's ablation).
        summarizer: the model that writes summaries; None for the judge model.
        attempts: maximum answers to request, until one can be read.
        model: the judge model, if it is not the run's.
        quorum: the minimum number of readable judgements in each order; None requires more than half.
        params: generation parameters, as for `single`.

    Raises:
        SettingsError: the list of debaters is empty, the strategy is unknown, the number of turns is negative, or the
            aspects are invalid as in `single`.
    """
    form = _choose_form(aspects, rival, decide)
    debaters = make_debaters(roles, same_role=same_role)
    checked = _with_temperature(0.0, panel, params)
    judge = Panel(form, debaters, strategy, turns, swap, summarizer, attempts, checked, quorum)
    return JudgeScorer(judge, rival, model=model)


def _with_temperature(
    temperature: float, factory: Callable[..., JudgeScorer], params: Mapping[str, Any]
) -> dict[str, Any]:
    return {"temperature": temperature, **generation_params(factory, params)}


def _choose_form(aspects: Sequence[str | Aspect], rival: str | None, decide: DecisionRule) -> Form:
    wanted = _read_aspects(aspects)
    if decide not in get_args(DecisionRule):
        raise SettingsError(f"decide is 'vote' or 'scores'; got {decide!r}")
    if rival is None:
        return ScoresForm(wanted)
    _check_one_aspect(wanted, rival)
    return ChoiceForm(wanted[0]) if decide == "vote" else PairedScores(wanted[0])


def _read_aspects(aspects: Sequence[str | Aspect], plain: Aspect = QUALITY) -> tuple[Aspect, ...]:
    if isinstance(aspects, str):
        raise SettingsError(f"aspects is a list of names; got the text {aspects!r}")
    wanted = [
        Aspect(aspect, low=plain.low, high=plain.high) if isinstance(aspect, str) else aspect
        for aspect in aspects or (plain,)
    ]
    names = [aspect.name for aspect in wanted]
    if len(set(names)) < len(names):
        raise SettingsError(f"each aspect needs a unique name; got {', '.join(names)}")
    return tuple(wanted)


def _check_one_aspect(aspects: Sequence[Aspect], rival: str | None) -> None:
    if rival is not None and len(aspects) > 1:
        names = ", ".join(aspect.name for aspect in aspects)
        raise SettingsError(f"two answers are compared on a single aspect; got {names}")


@dataclass(frozen=True, slots=True)
class Sampled:
    """Asks one model the same question `repeats` times in each order: a plain judge, or FairEval's calibrations.

    Multiple evidence (MEC) asks several times at a temperature above zero, with reasons before the score.
    Balanced positions (BPC) shows two answers in both orders. All scores are averaged. Wang et al., "Large
    Language Models are not Fair Evaluators" (arXiv 2305.17926, sections 3.1 and 3.2).
    """

    form: Form  # The form of the answer.
    repeats: int = 1  # The number of judgements in each order; several differ in the parameter `seed`.
    reasons: bool = False  # Whether the judge gives reasons before its judgement.
    swap: bool = True  # Whether to show two answers in both orders.
    attempts: int = 3  # Maximum answers to request, until one can be read.
    params: Mapping[str, Any] = field(default_factory=dict)  # Generation parameters.
    quorum: int | None = None  # The minimum number of readable judgements in each order; None requires more than half.
    # Sends JSON schemas, if the judge gives no reasons first.
    structured: StructuredAnswers = field(default_factory=StructuredAnswers, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise SettingsError(f"a judge gives at least 1 judgement; got {self.repeats}")

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        orders = (False, True) if self.form.compares and self.swap else (False,)
        rounds = await wait_for_all(self._judge_order(subject, model, swapped=swapped) for swapped in orders)
        return settle_rounds(self.form, rounds, self.quorum)

    def prompts(self) -> Sequence[str]:
        return (OFFICE, self._request())

    async def _judge_order(self, subject: JudgedInput, model: Model, *, swapped: bool) -> Round:
        repeats = range(self.repeats)
        answers = await wait_for_all(self._ask(subject, model, at, swapped=swapped) for at in repeats)
        ballots = tuple(ballot for ballot, _ in answers if isinstance(ballot, Ballot))
        problems = tuple(ballot for ballot, _ in answers if isinstance(ballot, str))
        return Round(ballots, problems, tuple(entry for _, log in answers for entry in log))

    async def _ask(self, subject: JudgedInput, model: Model, at: int, *, swapped: bool) -> tuple[Ballot | str, Log]:
        """Return a ballot, or the reason why the answer could not be read; and the log."""
        shown = f"{subject.shown(swapped=swapped)}\n\n{self._request()}"
        prompt = [Message("system", OFFICE), Message("user", shown, parts=subject.media)]
        # A server repeats its answer for an equal seed, and evalsuite_share_greedy sends equal requests only once.
        seed = {"seed": int(self.params.get("seed") or 0) + at} if self.repeats > 1 else {}
        options: dict[str, Any] = {"attempts": self.attempts, **self.params, **seed}
        name = f"sample {at + 1}" if self.repeats > 1 else "judge"
        place = {"speaker": name, "model": model.name, "order": "swapped" if swapped else "as given"}
        try:
            if self.reasons:
                judgement = await ask_until_parsed(model, prompt, self.form.parse, **options)
            else:
                schema = self.form.schema()
                judgement = await self.structured.ask(model, prompt, self.form.parse, schema, **options)
        except JudgeError as error:
            return str(error), tuple({**place, **entry} for entry in error.log)
        opinion = judgement.value.exchange() if swapped else judgement.value
        log = tuple({**place, **entry} for entry in judgement.log)
        return Ballot(name, model.name, swapped, opinion), log

    def _request(self) -> str:
        return REASONS + self.form.request("End") if self.reasons else self.form.request()


@dataclass(frozen=True, slots=True)
class JudgeScorer:
    """A judge that scores cases; see `single`, `pairwise`, `multiple_evidence`, `weighted` and `panel`.

    Attributes:
        judge: the way of judging.
        rival: the answer to compare with: a key in the sample's metadata, or `target`; None to score the answer
            alone.
        background: the key in the metadata with information that a good answer may use.
        hide: names that are withheld wherever an answer mentions them.
        prefix: text before each score's name, and the key around its facts, if a case has two judges.
        model: the judge model; empty for the run's.
    """

    judge: Judge
    rival: str | None = None
    background: str | None = None
    hide: tuple[str, ...] = ()
    prefix: str = ""
    model: str = ""

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Score a case; the first score carries the facts and the log of all judge calls."""
        subject = self.subject(sample, transcript)
        judge = judge.peer(self.model) if self.model else judge
        assessment = await self.judge(subject, judge)
        values = self._score_values(assessment.opinion)
        name, *others = values
        facts = {**assessment.plain(), "lengths": [len(answer) for answer in subject.answers]}
        facts |= _collect_bias_facts(sample) if self.rival else {}
        facts |= self._collect_labels(sample, [name for name in values if not name.endswith(COUNTED_APART)])
        # Without the prefix, two judges of one case would overwrite each other's facts.
        facts = {self.prefix: facts} if self.prefix else facts
        note = "; ".join(f"{ballot.judge}: {_write_opinion(ballot.opinion)}" for ballot in assessment.ballots)
        scores: dict[str, float | Score] = {
            self.prefix + name: Score(values[name], note=note, facts=facts, log=assessment.log),
            **{self.prefix + other: values[other] for other in others},
        }
        return sign_scores(scores, self.signature(judge))

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The scores, if the judge may say that it cannot tell."""
        return declare_scores(self.prefix + PREFERENCE, (0.0, 1.0)) if self._may_abstain() else {}

    def _may_abstain(self) -> bool:
        return bool(getattr(getattr(self.judge, "form", None), "cannot_tell", False))

    def _score_values(self, opinion: Opinion) -> dict[str, float]:
        if opinion.verdict is None:
            return dict(opinion.scores)
        if opinion.verdict == CANNOT_TELL:
            return {PREFERENCE + COUNTED_APART: 1.0}
        apart = {PREFERENCE + COUNTED_APART: 0.0} if self._may_abstain() else {}
        return {PREFERENCE: opinion.scores.get(PREFERENCE, WINS[opinion.verdict]), **apart}

    def signature(self, judge: Model) -> str:
        """Write the judge's signature; see `judgements.signature`."""
        return judge_signature(self.judge, [judge], [self.rival, self.background, list(self.hide)])

    def _collect_labels(self, sample: Sample, names: Sequence[str]) -> dict[str, Any]:
        if self.rival and not isinstance(sample.metadata.get("human"), (str, Mapping)):
            return {}
        return people_facts(sample, [self.prefix + name for name in names], nominal=bool(self.rival))

    def given(self, *, background: str | None = None, hide: Sequence[str] = (), prefix: str = "") -> JudgeScorer:
        """Copy the judge with another background, other hidden names or another prefix."""
        return replace(self, background=background, hide=tuple(hide), prefix=prefix)

    def sections(self, sample: Sample, transcript: Transcript) -> list[Part]:
        """List the parts of a case that the judge sees."""
        return self.subject(sample, transcript).parts()

    @property
    def aspects(self) -> dict[str, Aspect]:
        """The aspects by the names of their scores; a comparison has one score."""
        form = getattr(self.judge, "form", self.judge)
        aspects = getattr(form, "aspects", None) or (getattr(form, "aspect", QUALITY),)
        return {self.prefix + (PREFERENCE if self.rival else aspect.name): aspect for aspect in aspects}

    def subject(self, sample: Sample, transcript: Transcript) -> JudgedInput:
        """Collect the parts of a case that the judge sees.

        Raises:
            ScoringError: the sample lacks the rival answer or the background.
        """
        answers = [transcript.answer, *([_find_text(sample, self.rival)] if self.rival else [])]
        return JudgedInput(
            question=as_text(sample.input),
            media=tuple(find_media(sample.input)),
            answers=tuple(withhold_names(answer, self.hide) for answer in answers),
            background=_find_text(sample, self.background) if self.background else "",
            reference=_first_target(sample) if not self.rival else "",
        )


def _collect_bias_facts(sample: Sample) -> dict[str, Any]:
    """Return the authors of both answers and people's verdict, as far as the sample contains these."""
    systems, human = sample.metadata.get("systems"), sample.metadata.get("human")
    facts: dict[str, Any] = {}
    if isinstance(systems, (list, tuple)) and [type(system) for system in systems] == [str, str]:
        facts["systems"] = list(systems)
    if isinstance(human, str) and human in WINS:
        facts["human"] = human
    return facts


def _write_opinion(opinion: Opinion) -> str:
    if opinion.verdict and PREFERENCE not in opinion.scores:
        return opinion.verdict
    return ", ".join(f"{name} {value:g}" for name, value in opinion.scores.items())


def _first_target(sample: Sample) -> str:
    target = sample.target
    if target is None or isinstance(target, (str, int, float)):
        return "" if target is None else str(target)
    return str(target[0]) if target else ""


def _find_text(sample: Sample, key: str) -> str:
    text = sample.metadata.get(key, _first_target(sample) if key == "target" else None)
    if not isinstance(text, str) or not text:
        raise ScoringError(
            f"sample {sample.id} has no text {key!r} for its judge: its metadata holds "
            f"{', '.join(map(repr, sample.metadata)) or 'nothing'}; give another key, or add a text under this key"
        )
    return text
