"""Judges that compare answers, give several scores, repeat judgements, average scores by probability, or debate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.keywords import select_generation_params
from evalsuite.core.types import COUNTED_APART, Metric, Sample, Score, Transcript
from evalsuite.judges import asking, judgements, prompts
from evalsuite.judges.forms import QUALITY, BestOfForm, ChoiceForm, Form, GradedChoice, Likert, PairedScores, ScoresForm
from evalsuite.judges.g_eval import FIVE_POINTS, MOST_SAMPLES, Weighted
from evalsuite.judges.judgements import CANNOT_TELL, PREFERENCE, Assessment, Ballot, Judge, Opinion
from evalsuite.judges.panels import DebaterRole, Panel, Strategy, make_debaters
from evalsuite.judges.prompts import REASONS, SYSTEM_PROMPT, JudgedInput, Part
from evalsuite.metrics.text import list_targets

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model

Levels = Literal[3, 5]
MOST_RIVALS = 8  # At most 8 rivals, because a verdict names an answer by a single digit.
CHOICES_BY_LEVELS: Mapping[Levels, type[ChoiceForm]] = {3: ChoiceForm, 5: GradedChoice}


def make_judge_scorer(  # noqa: PLR0913 - called by `rubric`, which describes the arguments
    criteria: str | Likert | Sequence[Likert] | None,
    *,
    compare: Sequence[str] = (),
    name: str = "",
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
    samples: int = 1,
    expected: bool = False,
    levels: Levels = 3,
    swap: bool = True,
    cannot_tell: bool = False,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    params: Mapping[str, Any],
) -> JudgeScorer:
    """Make the scorer for options of `rubric` such as a rival answer, several scores or expected scores."""
    if levels not in CHOICES_BY_LEVELS:
        raise SettingsError(f"rubric: levels is 3 or 5; got {levels!r}")
    default = FIVE_POINTS if expected else QUALITY
    questions = _make_rubric_aspects(criteria, compare, name, scale, anchors, default)
    scaled = scale is not None or bool(anchors) or not isinstance(criteria, (str, NoneType))
    params = {"temperature": 1.0 if samples > 1 and not expected else 0.0, **params}
    judge: Judge
    if expected:
        judge = Weighted(questions, samples if samples > 1 else MOST_SAMPLES, attempts, params)
    elif len(compare) > MOST_RIVALS:
        raise SettingsError(f"rubric: a judge chooses among at most {MOST_RIVALS} rivals; got {len(compare)}")
    elif len(compare) > 1:
        if scaled or samples > 1 or levels != 3 or cannot_tell or not swap:
            raise SettingsError("rubric: of several rivals, the judge only chooses the best; leave out other options")
        judge = BestOf(questions[0], attempts, params, quorum)
    else:
        choose = CHOICES_BY_LEVELS[levels] if compare and not scaled else None
        form = choose(questions[0], cannot_tell=cannot_tell) if choose else _make_scores_form(questions, compare)
        judge = Sampled(form, samples, scaled, swap, attempts, params, quorum)
    return JudgeScorer(judge, tuple(compare), prefix=f"{name}_" if compare and name else "", model=model)


def _make_rubric_aspects(
    criteria: str | Likert | Sequence[str | Likert] | None,
    compare: Sequence[str],
    name: str,
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
    default: Likert = QUALITY,
) -> tuple[Likert, ...]:
    label = "" if compare else name or "rubric"
    if isinstance(criteria, Sequence) and not isinstance(criteria, str):
        aspects = make_aspects(criteria)
        if compare and len(aspects) > 1:
            names = ", ".join(aspect.name for aspect in aspects)
            raise SettingsError(f"two answers are compared on a single aspect; got {names}")
        return aspects
    if criteria is None and not scale and not anchors:
        return (default,)
    if isinstance(criteria, Likert):
        return (replace(criteria, name=criteria.name or label),)
    if not isinstance(criteria, (str, NoneType)):
        raise SettingsError(f"answers are compared and weighted by one question on a scale; got {criteria!r:.200}")
    low, high = scale or ((min(anchors), max(anchors)) if anchors else (default.low, default.high))
    if criteria is None:
        return (replace(default, low=low, high=high, anchors=anchors or {}),)
    return (Likert(criteria, low, high, anchors or {}, label),)


def panel(  # noqa: PLR0913 - a judge is declared in one line, each option a keyword
    roles: int | Sequence[str | DebaterRole] = 2,
    *,
    strategy: Strategy = "one_by_one",
    turns: int = 2,
    criteria: str | Likert | Sequence[str | Likert] | None = None,
    compare: str = "",
    name: str = "",
    swap: bool = True,
    on_demand: bool = False,
    same_role: bool = False,
    summarizer: str | None = None,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    **params: Any,
) -> JudgeScorer:
    """Let debaters discuss the answer and score it in the last turn; the debaters' scores are averaged (ChatEval).

    A case takes `orders * (debaters * turns + summaries)` calls. The number of orders is 2 if answers are compared,
    otherwise 1. Only the strategy `simultaneous_summarizer` needs summaries: one after each turn but the last.

    Args:
        roles: how many predefined roles take part, or a list in the order of speaking. The list has names of predefined
            roles, names of your own, or `DebaterRole` objects with your own prompts or models.
        strategy: the rule for what a debater sees: `one_by_one`, `simultaneous` or `simultaneous_summarizer`.
        turns: the number of turns of speaking; the last turn is the judgement.
        criteria: a question, which is scored from 1 to 10, or a `Likert`. A list of names and `Likert` objects makes
            one score each. The default is overall `quality`. A comparison of two answers needs a single question.
        compare: the rival answer, as in `rubric`; the answer with the higher mean score wins. If empty, only one answer
            is scored.
        name: the name of the score, by default `rubric`; for a comparison, the prefix of the score NAME_preference.
        swap: whether to judge two answers in both orders.
        on_demand: whether a single judge decides first. It compares the answers in both orders, in 2 calls; the panel
            debates only if the two verdicts differ. The fact `alone` has the single judge's verdict and calls. If
            samples' metadata have people's choice under `human`, the report says whether debates were worth their cost.
        same_role: whether all debaters get the same neutral prompt, as in the paper's ablation.
        summarizer: the model that writes summaries; None means the judge model.
        attempts: maximum requests until an answer can be read.
        model: the judge model; by default the run's judge.
        quorum: the minimum number of readable judgements with each order of the answers; None requires more than half.
        params: generation parameters. The default temperature is 0; with None, the server chooses the temperature.

    Raises:
        SettingsError: no debater is given, the strategy is unknown, `turns` is below 1, a score occurs twice, or
            `on_demand` is used without both `compare` and `swap`.
    """
    rivals = (compare,) if compare else ()
    form = _make_scores_form(_make_rubric_aspects(criteria, rivals, name), rivals)
    debaters = make_debaters(roles, same_role=same_role)
    checked = {"temperature": 0.0, **select_generation_params(panel, params)}
    judge: Judge = Panel(form, debaters, strategy, turns, swap, summarizer, attempts, checked, quorum)
    if on_demand:
        if not isinstance(form, PairedScores) or not swap:
            raise SettingsError("a panel on demand compares two answers in both orders: give compare=, not swap=False")
        judge = OnDemand(Sampled(ChoiceForm(form.aspect), attempts=attempts, params=checked), judge)
    return JudgeScorer(judge, rivals, prefix=f"{name}_" if compare and name else "", model=model)


def _make_scores_form(aspects: Sequence[Likert], rivals: Sequence[str]) -> Form:
    return PairedScores(aspects[0]) if rivals else ScoresForm(tuple(aspects))


def make_aspects(aspects: Sequence[str | Likert], default: Likert = QUALITY) -> tuple[Likert, ...]:
    """Make one aspect per name, with the scale of the aspect `default`; without names, return `default` alone."""
    if isinstance(aspects, str):
        raise SettingsError(f"aspects is a list of names; got the text {aspects!r}")
    wanted = [
        Likert("", default.low, default.high, name=aspect) if isinstance(aspect, str) else aspect
        for aspect in aspects or (default,)
    ]
    names = [aspect.name for aspect in wanted]
    if len(set(names)) < len(names):
        raise SettingsError(f"each aspect needs a unique name; got {', '.join(names)}")
    return tuple(wanted)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Asks one model `repeats` times in each order of the answers; FairEval's calibrations are optional.

    Multiple evidence calibration (MEC) asks several times at a temperature above zero, each time for reasons before the
    score. Balanced position calibration (BPC) shows two answers in both orders. The scores of all judgements are
    averaged. Source: Wang et al., "Large Language Models are not Fair Evaluators" (arXiv 2305.17926, sections 3.1 and
    3.2).
    """

    form: Form  # The request to the judge, and the parser of its answer.
    repeats: int = 1  # The number of judgements with each order of the answers; each has a different `seed`.
    reasons: bool = False  # Whether the judge gives reasons before its judgement.
    swap: bool = True  # Whether to show two answers in both orders.
    attempts: int = 3  # Maximum requests until an answer can be read.
    params: Mapping[str, Any] = field(default_factory=dict)  # Generation parameters.
    # The minimum number of readable judgements with each order of the answers; None means more than half.
    quorum: int | None = None
    # Adds JSON schemas to the requests; not used if the judge gives reasons first.
    structured: asking.SchemaAsker = field(default_factory=asking.SchemaAsker, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise SettingsError(f"a judge gives at least 1 judgement; got {self.repeats}")

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        orders = (False, True) if self.form.is_comparison and self.swap else (False,)
        calls = (self._ask(subject, model, at, swapped=swapped) for swapped in orders for at in range(self.repeats))
        votes = await asking.wait_for_all(calls)
        by_order = [votes[at : at + self.repeats] for at in range(0, len(votes), self.repeats)]
        judged = [(own, asking.join_logs(own)) for own in by_order]
        return judgements.combine_orders(self.form.combine_opinions, judged, self.quorum)

    def list_prompt_sentences(self) -> Sequence[str]:
        return (SYSTEM_PROMPT, self._write_answer_request())

    async def _ask(self, subject: JudgedInput, model: Model, repeat: int, *, swapped: bool) -> asking.Vote[Opinion]:
        shown = subject.format_parts(swapped=swapped)
        prompt = prompts.make_prompt_messages(shown, self._write_answer_request(), subject.media)
        # Vary the seed of repeated requests, because equal requests may get the same answer.
        seed = {"seed": int(self.params.get("seed") or 0) + repeat} if self.repeats > 1 else {}
        options: dict[str, Any] = {"attempts": self.attempts, **self.params, **seed}
        name = f"sample {repeat + 1}" if self.repeats > 1 else "judge"
        parse = self.form.parse_opinion
        if self.reasons:
            call = asking.ask_until_parsed(model, prompt, parse, **options)
        else:
            call = self.structured.ask_with_schema(model, prompt, parse, self.form.make_schema(), **options)
        return await asking.get_vote(call, name, model, order="swapped" if swapped else "as given")

    def _write_answer_request(self) -> str:
        return REASONS + self.form.write_answer_request("End") if self.reasons else self.form.write_answer_request()


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Asks a single judge in both orders; a panel debates only if the judge's two verdicts differ."""

    alone: Sampled
    panel: Judge

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        first = await self.alone(subject, model)
        facts = {judgements.SINGLE_JUDGE_FACT: {"verdict": first.opinion.verdict, "calls": first.calls}}
        if len({ballot.verdict for ballot in first.ballots}) == 1:
            return replace(first, facts={**first.facts, **facts})
        debated = await self.panel(subject, model)
        ballots, log = first.ballots + debated.ballots, first.log + debated.log
        return Assessment(debated.opinion, ballots, log, {**debated.facts, **facts})

    def list_prompt_sentences(self) -> Sequence[str]:
        return (*self.alone.list_prompt_sentences(), *self.panel.list_prompt_sentences())


@dataclass(frozen=True, slots=True)
class BestOf:
    """Lets one judge choose the best of several answers in several calls; each answer is in every position once."""

    aspect: Likert
    attempts: int
    params: Mapping[str, Any]
    quorum: int | None  # The minimum number of readable judgements; None means more than half of them.
    structured: asking.SchemaAsker = field(default_factory=asking.SchemaAsker, compare=False, repr=False)

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        count = len(subject.answers)
        quorum = count // 2 + 1 if self.quorum is None else min(self.quorum, count)
        calls = (self._ask_in_order(subject, model, first) for first in range(count))
        choices, log = await asking.collect_readable_judgements(calls, quorum)
        shares = [[choice.value[at] for choice in choices] for at in range(count)]
        ballots = tuple(
            Ballot({PREFERENCE: choice.value[0]}, judge=f"order {at}", model=model.name)
            for at, choice in enumerate(choices, 1)
        )
        wins = [math.fsum(share) / len(share) for share in shares]
        return Assessment(Opinion({PREFERENCE: wins[0]}), ballots, log, {"wins": wins})

    def list_prompt_sentences(self) -> Sequence[str]:
        return (SYSTEM_PROMPT, BestOfForm(self.aspect, count=3).write_answer_request())

    async def _ask_in_order(self, subject: JudgedInput, model: Model, first: int) -> asking.Judgement[list[float]]:
        """Judge the answers in an order rotated to start at index `first`; return each answer's share (best: 1.0)."""
        answers, count = subject.answers, len(subject.answers)
        form = BestOfForm(self.aspect, count=count)
        shown = replace(subject, answers=answers[first:] + answers[:first]).format_parts()
        prompt = prompts.make_prompt_messages(shown, form.write_answer_request(), subject.media)

        def read_win_shares(text: str) -> list[float]:
            place = form.read_best_answer(text)
            chosen = (place - 1 + first) % count
            return [float(at == chosen) if place else 1 / count for at in range(count)]

        options: dict[str, Any] = {"attempts": self.attempts, **self.params}
        judgement = await self.structured.ask_with_schema(model, prompt, read_win_shares, form.make_schema(), **options)
        log = asking.label_log(judgement.log, "judge", model, order=f"answer {first + 1} first")
        return replace(judgement, log=log)


@dataclass(frozen=True, slots=True)
class JudgeScorer:
    """A judge that compares answers, gives several scores or debates; the functions `rubric` and `panel` make it.

    Attributes:
        judge: how the answers are judged, with prompts, scale and parser.
        rivals: metadata keys of the answers to compare with; `target` means the sample's target. Without rivals, only
            the answer under test is scored.
        background: the metadata key of facts that help the judge to recognise a good answer.
        hide: names, such as models' names, that a placeholder replaces in all answers.
        prefix: the text that begins each score's name.
        model: the judge model; empty means the run's judge.
    """

    judge: Judge
    rivals: tuple[str, ...] = ()
    background: str | None = None
    hide: tuple[str, ...] = ()
    prefix: str = ""
    model: str = ""

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Score a case; the first score also carries the record's facts and the log of all calls."""
        subject = self.make_judged_input(sample, transcript)
        judge = judge.peer(self.model) if self.model else judge
        assessment = await self.judge(subject, judge)
        opinion, values = assessment.opinion, dict(assessment.opinion.scores)
        if opinion.verdict == CANNOT_TELL:
            values = {PREFERENCE + COUNTED_APART: 1.0}
        elif opinion.verdict is not None:
            apart = {PREFERENCE + COUNTED_APART: 0.0} if self.metrics else {}
            values = {PREFERENCE: values.get(PREFERENCE, judgements.WINS[opinion.verdict]), **apart}
        name, *others = values
        facts = {**assessment.encode_assessment(), "lengths": [len(answer) for answer in subject.answers]}
        facts |= _collect_bias_facts(sample) if len(self.rivals) == 1 else {}
        if not self.rivals or (len(self.rivals) == 1 and isinstance(sample.metadata.get("human"), (str, Mapping))):
            judged = [self.prefix + name for name in values if not name.endswith(COUNTED_APART)]
            facts |= judgements.make_people_facts(sample, judged, nominal=bool(self.rivals))
        # Nest the facts under the judge's prefix, because the facts of two judges would overwrite each other.
        facts = {self.prefix: facts} if self.prefix else facts
        note = "; ".join(f"{ballot.judge}: {ballot}" for ballot in assessment.ballots)
        scores: dict[str, float | Score] = {
            self.prefix + name: Score(values[name], note=note, facts=facts, log=assessment.log),
            **{self.prefix + other: values[other] for other in others},
        }
        return judgements.sign_scores(scores, self.write_signature([judge]))

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The declarations of the scores; empty unless the judge may answer `cannot tell`."""
        abstains = getattr(getattr(self.judge, "form", None), "cannot_tell", False)
        return judgements.declare_scores(self.prefix + PREFERENCE, (0.0, 1.0)) if abstains else {}

    def write_signature(self, models: Sequence[Model]) -> str:
        return judgements.make_judge_signature(self.judge, models, [self.rivals, self.background, list(self.hide)])

    def given(
        self, *, background: str | None = None, hide: Sequence[str] | None = None, prefix: str | None = None
    ) -> JudgeScorer:
        """Return a copy of the judge with another background, hidden names or prefix; None keeps the present value."""
        hidden = None if hide is None else tuple(hide)
        changes: dict[str, Any] = {"background": background, "hide": hidden, "prefix": prefix}
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def make_prompt_sections(self, sample: Sample, transcript: Transcript) -> list[Part]:
        return self.make_judged_input(sample, transcript).list_parts()

    @property
    def aspects(self) -> dict[str, Likert]:
        """The aspects that the judge scores, keyed by the scores' names; a comparison has only one aspect."""
        form = getattr(self.judge, "form", self.judge)
        aspects = getattr(form, "aspects", None) or (getattr(form, "aspect", QUALITY),)
        return {self.prefix + (PREFERENCE if self.rivals else aspect.name): aspect for aspect in aspects}

    def make_judged_input(self, sample: Sample, transcript: Transcript) -> JudgedInput:
        """Collect what the judge sees of a case; raise ScoringError if the sample lacks the rival or the background."""
        answers = [transcript.answer, *(_get_metadata_text(sample, rival) for rival in self.rivals)]
        return JudgedInput(
            question=prompts.format_conversation(sample.input),
            media=tuple(prompts.find_media(sample.input)),
            answers=tuple(prompts.redact_names(answer, self.hide) for answer in answers),
            background=_get_metadata_text(sample, self.background) if self.background else "",
            reference="" if self.rivals else _get_first_target(sample),
        )


def _collect_bias_facts(sample: Sample) -> dict[str, Any]:
    """Read from the sample's metadata which systems wrote the two answers, and which answer people chose."""
    systems, human = sample.metadata.get("systems"), sample.metadata.get("human")
    facts: dict[str, Any] = {}
    if isinstance(systems, (list, tuple)) and [type(system) for system in systems] == [str, str]:
        facts["systems"] = list(systems)
    if isinstance(human, str) and human in judgements.WINS:
        facts["human"] = human
    return facts


def _get_first_target(sample: Sample) -> str:
    targets = [] if sample.target is None else list_targets(sample.target)
    return str(targets[0]) if targets else ""


def _get_metadata_text(sample: Sample, key: str) -> str:
    text = sample.metadata.get(key, _get_first_target(sample) if key == "target" else None)
    if not isinstance(text, str) or not text:
        found = "there is none" if text is None else f"it is {text!r:.80}"
        raise ScoringError(
            f"sample {sample.id} has no text {key!r} for its judge ({found}): "
            f"its metadata holds {', '.join(map(repr, sample.metadata)) or 'nothing'}; give another key, or add a text "
            "under this key"
        )
    return text
