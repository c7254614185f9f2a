"""Defines `rubric`, which makes a judge with your own criteria, and ready-made judges with the same options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from statistics import fmean, median, multimode
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import select_generation_params
from evalsuite.core.types import COUNTED_APART, Message, Metric, Sample, Score, Transcript
from evalsuite.judges import judgements, prompts
from evalsuite.judges.asking import (
    SchemaAsker,
    Vote,
    ask_until_parsed,
    get_vote,
    join_logs,
    require_quorum,
    wait_for_all,
)
from evalsuite.judges.criteria import Criteria, Each, OrCannotTell, Template, make_criteria, read_sample_criteria
from evalsuite.judges.forms import QUALITY, Likert, Reading, ScaleCriteria, ScoresForm
from evalsuite.judges.g_eval import FIVE_POINTS, MOST_SAMPLES
from evalsuite.judges.judgements import CANNOT_TELL, Ballot
from evalsuite.judges.prompts import SYSTEM_PROMPT, Part
from evalsuite.judges.scorers import JudgeScorer, Levels, Sampled, make_aspects, make_judge_scorer

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model

Aggregate = Literal["mean", "median", "min", "max", "majority", "expected"]
# The temperature of repeated requests is above 0, because at 0 a judge would repeat its answer.
CONFIRMING_TEMPERATURE = 1.0


def rubric(  # noqa: PLR0913 - a judge is declared in one line, each option a keyword
    criteria: str | Sequence[str] | Sequence[Likert] | Mapping[str, Any] | Criteria | None = None,
    *,
    template: str | None = None,
    read: str | Callable[[str], float] | None = None,
    compare: str | Sequence[str] = (),
    levels: Levels = 3,
    swap: bool = True,
    name: str = "",
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
    steps: Sequence[str] = (),
    examples: Sequence[Mapping[str, Any]] = (),
    fields: Sequence[str] | Mapping[str, str] = (),
    model: str | Sequence[str] = (),
    samples: int = 1,
    aggregate: Aggregate = "mean",
    quorum: int | None = None,
    passes: float | None = None,
    confirm_failures: int = 0,
    cannot_tell: bool = False,
    attempts: int = 3,
    **params: Any,
) -> Rubric | JudgeScorer:
    """Make a judge with your own criteria; the judge gives reasons before the score.

    Each judge is called once per sample; the reason that it gives becomes the score's note. A comparison of two answers
    takes one call per order of the answers.

    Args:
        criteria: a question, which the judge answers by yes (1.0) or no (0.0), or on a `scale`. Several questions,
            perhaps with weights, form a checklist. A checklist's value is the sum of the weights of questions answered
            yes, divided by the sum of the positive weights. Faults have negative weights. A decision tree consists of
            nodes `{"question": ..., "yes": ..., "no": ...}`; its leaves are scores. `YesNo`, `Likert`, `Checklist`,
            `Tree` and `Each` are accepted, too; each of several `Likert` gives one score. With None, the checklist is
            in the sample's metadata, under `criteria`; with `compare`, a scale or expected scores, None means overall
            quality.
        template: a whole prompt that replaces the criteria, for a judge that was trained on this prompt (such as
            Prometheus). `{question}`, `{answer}` and `{reference}`, or the names in `fields`, are replaced by these
            parts of the case. The answer under test is not marked, so the judge could mistake it for instructions.
        read: a pattern or a function that finds the score in the answer to a `template`. The last match of the pattern
            counts; its one group is the score. The function raises ValueError if it finds no score. By default, the
            answer is read as if it were on a `scale`.
        compare: the metadata key of a rival answer; `target` means the sample's target. The judge
            chooses the better answer, or scores both on a `scale`. The score `preference` is 1.0 if the answer under
            test wins by most verdicts or a higher mean score, 0.0 if the rival wins, else 0.5. With several rivals (at
            most 8), the judge chooses the best answer once per order; the score is the share won.
        levels: how many verdicts a comparison allows, 3 or 5. With 5, a verdict counts as 1.0 (much better), 0.75, 0.5,
            0.25 or 0.0, and the score is the mean of all verdicts.
        swap: whether to show two answers in both orders; if not, the answer under test comes first.
        name: the name of the score, by default `rubric`; for a comparison, the prefix of the score NAME_preference.
        scale: the lowest and the highest point of the scale; None if the answers are yes and no.
        anchors: descriptions of points on the scale. If `scale` is None, the scale reaches from the lowest to the
            highest of these points.
        steps: the steps that the judge follows before it judges.
        examples: example judgements, each a mapping of names to texts.
        fields: the parts of the case that the judge sees: `input`, `answer`, `reasoning`, `target` (all references),
            `conversation`, `tools` (calls with results), `metadata.KEY`, `facts.KEY` or a bare key. A mapping gives
            each part the name of its section. The default is the question, the answer and the references, if any.
        model: the judge model, or a list of judge models; the default is the run's judge model.
        samples: the number of judgements per judge; if it is above 1, the temperature is 1.
        aggregate: the rule that combines several values: `mean`, `median`, `min`, `max` or `majority`. `expected`
            (G-Eval) averages the points of the scale, weighted by the probabilities of their tokens; each point must be
            one digit. If the model returns no log-probabilities, the probabilities are estimated from `samples` answers
            (20 by default). `weights` in the facts tells which method was used.
        quorum: the minimum number of readable judgements; None requires more than half.
        passes: the lowest value that passes. None requires the best value; on a scale such as 1 to 5, None means
            that cases neither pass nor fail.
        confirm_failures: how many votes to collect if the first verdict is a failure; the case fails only if most votes
            are failures. With 0, the first verdict is final.
        cannot_tell: whether the judge may say that it cannot tell. If in at least half of the judgements the judge
            cannot tell, the case has no score, and the metric NAME_cannot_tell is 1.0 (otherwise 0.0).
        attempts: maximum requests until an answer can be read.
        params: generation parameters; unless they set a temperature, it is 0.

    Raises:
        SettingsError: the criteria, the scale, the aggregate or a number is invalid.
    """
    if aggregate not in get_args(Aggregate):
        raise SettingsError(f"aggregate is one of {', '.join(get_args(Aggregate))}; got {aggregate!r}")
    if samples < 1 or attempts < 1 or confirm_failures < 0:
        raise SettingsError("a rubric needs at least 1 sample and 1 attempt, and 0 or more confirmations")
    if isinstance(steps, str):
        raise SettingsError(f"steps is a list of texts; got the text {steps!r:.80}")
    overall = criteria is None and template is None and bool(scale or anchors)
    several = isinstance(criteria, (list, tuple)) and any(isinstance(one, Likert) for one in criteria)
    if compare or aggregate == "expected" or several or overall:
        for_one: dict[str, Any] = {"template": template, "read": read, "steps": steps, "examples": examples}
        for_one |= {"passes": passes, "confirm_failures": confirm_failures, "aggregate": aggregate in FOR_ONE_ANSWER}
        for_one |= {"fields": fields, "model": model and not isinstance(model, str)}
        if wrong := next((option for option, value in for_one.items() if value), None):
            raise SettingsError(f"rubric: {wrong}= belongs to one score of one answer; leave it out here")
        return make_judge_scorer(
            cast("str | Likert | Sequence[Likert] | None", criteria),
            compare=(compare,) if isinstance(compare, str) else tuple(compare),
            name=name,
            scale=scale,
            anchors=anchors,
            samples=samples,
            expected=aggregate == "expected",
            levels=levels,
            swap=swap,
            cannot_tell=cannot_tell,
            attempts=attempts,
            model=str(model or ""),
            quorum=quorum,
            params=select_generation_params(rubric, params),
        )
    asked: Criteria | None
    shown = prompts.map_sections_to_fields(fields)
    if template is not None:
        if criteria is not None or steps or examples or anchors or cannot_tell:
            raise SettingsError(
                "a template is the whole prompt; leave out criteria, steps, examples, anchors and cannot_tell"
            )
        asked = _make_prompt_template(template, scale or (1, 5), read, shown or DEFAULT_SLOTS)
    else:
        asked = None if criteria is None else make_criteria(cast("Any", criteria), scale, anchors or {})
    problems = {
        "read= belongs to a template=; the criteria say what form of answer the judge gives": (
            read is not None and template is None
        ),
        "rubric: levels= and swap= belong to compare=": levels != 3 or not swap,
        "confirm_failures needs passes=, the lowest value that passes": (
            isinstance(asked, (Likert, Template)) and confirm_failures and passes is None
        ),
    }
    if problem := next((message for message, is_wrong in problems.items() if is_wrong), None):
        raise SettingsError(problem)
    if asked:
        check_passing_score(asked, passes)
    return Rubric(
        asked,
        name or "rubric",
        tuple(steps),
        tuple(examples),
        shown,
        (model,) if isinstance(model, str) else tuple(model),
        samples,
        aggregate,
        quorum,
        passes,
        confirm_failures,
        attempts,
        select_generation_params(rubric, params),
        cannot_tell,
    )


def check_passing_score(criteria: Criteria, passes: float | None) -> None:
    """Raise SettingsError if `passes` is off the scale of the criteria."""
    if passes is not None and not criteria.worst <= passes <= criteria.best:
        raise SettingsError(f"passes={passes:g} is off the scale from {criteria.worst:g} to {criteria.best:g}")


DEFAULT_SLOTS = {"question": "input", "answer": "answer", "reference": "target"}


def _make_prompt_template(
    text: str, scale: tuple[int, int], read: str | Callable[[str], float] | None, fields: Mapping[str, str]
) -> Template:
    template = Template(text, *scale, read)
    unknown = template.list_sections() - set(fields)
    if unknown or not template.list_sections():
        wrong = f"has the unknown part {{{min(unknown)}}}" if unknown else "shows no part of the case"
        raise SettingsError(f"the template {wrong}; its parts are {', '.join(f'{{{name}}}' for name in fields)}")
    return template


# What a judge sees of a case: the sections of the prompt, and pictures, recordings and files.
Shown = tuple[Sequence[Part], tuple[Mapping[str, Any], ...]]


@dataclass(frozen=True, slots=True)
class Rubric:
    """A judge with your own criteria; the function `rubric` describes the attributes."""

    criteria: Criteria | None
    name: str
    steps: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...]
    fields: Mapping[str, str]
    models: tuple[str, ...]
    samples: int
    aggregate: Aggregate
    quorum: int | None
    passes: float | None
    confirm_failures: int
    attempts: int
    params: Mapping[str, Any]
    cannot_tell: bool = False
    structured: SchemaAsker = field(default_factory=SchemaAsker, compare=False, repr=False)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The declarations of the scores; empty unless the judge may answer `cannot tell`."""
        range_ = (self.criteria.worst, self.criteria.best) if self.criteria else None
        return judgements.declare_scores(self.name, range_) if self.cannot_tell else {}

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Score a case; if the judge cannot tell, only the metric that counts such cases has a score."""
        criteria = self.criteria or read_sample_criteria(sample)
        check_passing_score(criteria, self.passes)
        shown = (self.make_prompt_sections(sample, transcript), self.list_media(sample, transcript))
        models = [judge.peer(name) for name in self.models] or [judge]
        seats = [(model, at) for model in models for at in range(self.samples)]
        fields = self._choose_shown_fields(sample)
        holding = [fields.get(criteria.section)] if isinstance(criteria, Each) and criteria.section else fields.values()
        if isinstance(criteria, Each) and "answer" in holding and not transcript.answer.strip():
            reading = Reading(criteria.worst, "the answer is empty")
            votes = [Vote(model.name, model.name, reading) for model in models]
        else:
            votes = await wait_for_all(self.ask_for_vote(criteria, shown, model, at) for model, at in seats)
        value, votes = await self._combine_votes(criteria, shown, models[0], votes)
        people = judgements.make_people_facts(
            sample, [self.name], scale=(criteria.worst, criteria.best), passing_score=self.find_passing_score(criteria)
        )
        score = self._make_score(value, votes, models, people)
        if math.isnan(value):
            return {self.name + COUNTED_APART: replace(score, value=1.0)}
        return {self.name: score, self.name + COUNTED_APART: 0.0} if self.cannot_tell else {self.name: score}

    def find_passing_score(self, criteria: Criteria) -> float | None:
        """Return the lowest passing score; None for a scale unless `passes` sets it."""
        on_scale = isinstance(criteria, ScaleCriteria) and (criteria.worst, criteria.best) != (0.0, 1.0)
        return self.passes if on_scale or self.passes is not None else criteria.best

    def make_prompt_sections(self, sample: Sample, transcript: Transcript) -> list[Part]:
        return prompts.make_field_sections(sample, transcript, self._choose_shown_fields(sample))

    def _choose_shown_fields(self, sample: Sample) -> Mapping[str, str]:
        if self.fields:
            return self.fields
        if isinstance(self.criteria, Template):
            return {name: field for name, field in DEFAULT_SLOTS.items() if name in self.criteria.list_sections()}
        return {name: field for name, field in DEFAULT_SLOTS.items() if field != "target" or sample.target is not None}

    def list_media(self, sample: Sample, transcript: Transcript) -> tuple[Mapping[str, Any], ...]:
        """List the pictures, recordings and files that the judge sees."""
        return prompts.list_media(sample, transcript, self._choose_shown_fields(sample))

    def write_question(self, sample: Sample) -> str:
        """Write the judge's prompt, except the description of the answer's form."""
        instruction = self.write_instruction(self.criteria or read_sample_criteria(sample))
        return instruction.partition("\nReply with one JSON object")[0]

    async def _combine_votes(
        self, criteria: Criteria, shown: Shown, model: Model, votes: list[Vote[Reading]]
    ) -> tuple[float, list[Vote[Reading]]]:
        """Combine votes to one value; if this value fails, request more votes, up to the number `confirm_failures`.

        The value is NaN if at least half of the votes cannot tell. Raise JudgeError if too few votes are readable.
        """
        problems = [f"{self.name}: {vote.problem}" for vote in votes if vote.value is None]
        require_quorum(len(votes) - len(problems), problems, self.quorum, "judges", join_logs(votes))
        values, passing = _list_values(votes), self.find_passing_score(criteria)
        value = AGGREGATES[self.aggregate](values) if values else math.nan
        if passing is None or not value < passing or len(votes) >= self.confirm_failures or not join_logs(votes):
            return value, votes
        again = range(len(votes), self.confirm_failures)
        votes += await wait_for_all(self.ask_for_vote(criteria, shown, model, at, confirms=True) for at in again)
        values = _list_values(votes)
        failed = [value for value in values if value < passing]
        passed = [value for value in values if value >= passing]
        agreeing = failed if len(failed) > len(passed) else passed
        return AGGREGATES[self.aggregate](agreeing) if agreeing else math.nan, votes

    def _make_score(
        self, value: float, votes: Sequence[Vote[Reading]], models: Sequence[Model], people_facts: Mapping[str, Any]
    ) -> Score:
        read = [(vote, vote.value) for vote in votes if vote.value]
        readings, log = [reading for _, reading in read], join_logs(votes)
        ballots = [
            asdict(Ballot({self.name: reading.value} if reading.is_decided else {}, judge=vote.judge, model=vote.model))
            for vote, reading in read
        ]
        alike = [reading for reading in readings if reading.is_decided != math.isnan(value)]
        nearest = min(alike, key=lambda reading: abs(reading.value - value))
        lost, untold = len(votes) - len(readings), sum(not reading.is_decided for reading in readings)
        calls = sum(entry["role"] == "assistant" for entry in log)
        facts: dict[str, Any] = {"verdict": None, "calls": calls, "ballots": ballots, **people_facts}
        facts |= {"parts": dict(nearest.parts)} if nearest.parts else {}
        facts |= {"unreadable": lost} if lost else {}
        facts |= {"cannot_tell": untold} if untold else {}
        return Score(value, nearest.reason, {self.name: facts}, log, self.write_signature(models))

    async def ask_for_vote(
        self, criteria: Criteria, shown: Shown, model: Model, at: int, *, confirms: bool = False
    ) -> Vote[Reading]:
        """Request a model's vote number `at`; judging the items of a long answer one by one takes several calls."""
        name, (parts, media) = f"{model.name} {at + 1}" if at else model.name, shown
        if isinstance(criteria, Each) and (split := criteria.split_items(parts)):
            vote = await self._judge_items_separately(criteria, shown, *split, model=model, at=at, confirms=confirms)
            return replace(vote, judge=name)
        temperature = CONFIRMING_TEMPERATURE if confirms or self.samples > 1 else 0.0
        # Vary the seed of repeated requests, because equal requests may get the same answer.
        seed = {"seed": int(self.params.get("seed") or 0) + at} if at else {}
        options: dict[str, Any] = {"temperature": temperature, **self.params, **seed, "attempts": self.attempts}
        if isinstance(criteria, Template):
            question = Message("user", criteria.write_prompt(parts), parts=media)
            return await get_vote(ask_until_parsed(model, [question], criteria.read_answer, **options), name, model)
        sections = prompts.mark_sections(parts)
        prompt = prompts.make_prompt_messages(sections, self.write_instruction(criteria), media)
        asked = OrCannotTell(criteria) if self.cannot_tell else criteria
        call = self.structured.ask_with_schema(model, prompt, asked.read_answer, asked.make_schema(), **options)
        return await get_vote(call, name, model)

    async def _judge_items_separately(
        self, criteria: Each, shown: Shown, others: list[Part], items: list[str], **seat: Any
    ) -> Vote[Reading]:
        """Judge each item in a separate call; if the items are not known, a first call lists them."""
        # Omit the rubric's steps and examples, because they may be about all items together.
        plain = replace(self, steps=(), examples=())
        votes: list[Vote[Reading]] = []
        if not criteria.given:
            lister = replace(plain, cannot_tell=False)
            votes.append(await lister.ask_for_vote(criteria.make_item_listing(), shown, **seat))
            items = list(votes[0].value.parts) if votes[0].value else []
        question = criteria.make_item_question()
        inputs = [([*others, (criteria.item, item)], shown[1]) for item in items]
        votes += (judged := await wait_for_all(plain.ask_for_vote(question, each, **seat) for each in inputs))
        unread = [vote.problem for vote in votes if vote.value is None]
        readings = [vote.value for vote in judged if vote.value]
        reading = None if unread else criteria.combine_readings(items, readings)
        return Vote("", seat["model"].name, reading, "".join(unread[:1]), log=join_logs(votes))

    def write_instruction(self, criteria: Criteria | None) -> str:
        """Write the end of the prompt: steps, examples, criteria and the form of the answer."""
        steps = "".join(f"\n{at}. {step}" for at, step in enumerate(self.steps, 1))
        shown = ("; ".join(f"{name}: {value}" for name, value in example.items()) for example in self.examples)
        examples = "".join(f"\n- {example}" for example in shown)
        blocks = [
            f"Go through these steps first:{steps}" if steps else "",
            f"Examples of judgements:{examples}" if examples else "",
            (OrCannotTell(criteria) if self.cannot_tell else criteria).write_answer_request() if criteria else "",
        ]
        return "\n\n".join(block for block in blocks if block)

    def write_signature(self, models: Sequence[Model]) -> str:
        """Write the signature of the judge's models, prompts and settings, without criteria in samples' metadata."""
        shown = {"fields": dict(self.fields), "office": SYSTEM_PROMPT, "asked": self.write_instruction(self.criteria)}
        settings = [self.samples, self.aggregate, self.quorum, self.passes, self.confirm_failures, dict(self.params)]
        apart: list[str] = [CANNOT_TELL] if self.cannot_tell else []
        if isinstance(self.criteria, Each) and self.criteria.section:
            asked = (self.criteria.make_item_listing(), self.criteria.make_item_question())
            apart += [one.write_answer_request() for one in asked]
        criteria = judgements.make_address_free_repr(self.criteria)
        return judgements.write_signature("rubric", models, shown, criteria, settings, *apart)


def _list_values(votes: Sequence[Vote[Reading]]) -> list[float]:
    """List the judgements' values; return [] if at least half of the readable judgements could not tell."""
    readings = [vote.value for vote in votes if vote.value]
    values = [reading.value for reading in readings if reading.is_decided]
    return values if judgements.is_mostly_decided(len(values), len(readings)) else []


FOR_ONE_ANSWER = ("median", "min", "max", "majority")
AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "majority": lambda values: min(multimode(values)),  # The lowest of the most frequent values.
}


faithful = partial(
    rubric,
    Each("claim", "do the given passages support it? What they do not say counts as unsupported.", section="answer"),
    name="faithful",
    fields={"question": "input", "passages": "passages", "answer": "answer"},
    steps=(
        "Split the answer into the claims of fact that it makes, each a short sentence of its own.",
        "For each claim, look for the passage that says it.",
    ),
)
"""Scores the share of the answer's claims that the passages support; metadata or facts contain the `passages`."""

citations = partial(
    rubric,
    Each("claim", "does it cite a passage by its number, such as [2], and does that passage say it?", section="answer"),
    name="citations",
    fields={"question": "input", "passages": "passages", "answer": "answer"},
)
"""Scores the share of the answer's claims that their own citations support; uncited claims count as unsupported."""

context_recall = partial(
    rubric,
    Each("claim", "do the given passages say it?", section="reference"),
    name="context_recall",
    fields={"question": "input", "passages": "passages", "reference": "target"},
)
"""Scores the share of the reference's claims that the retrieved passages contain."""

context_precision = partial(
    rubric,
    Each(
        *("passage", "does it help to answer the question as the reference does?"),
        section="passages",
        given=True,
        ranked=True,
        none=0.0,
    ),
    name="context_precision",
    fields={"question": "input", "reference": "target", "passages": "passages"},
)
"""Scores the average precision of the retrieved passages, in their order; the judge is called once per passage."""

relevant = partial(
    rubric,
    "Does the answer address what was asked?",
    name="relevant",
    fields={"question": "input", "answer": "answer"},
    anchors={
        1: "it is about something else",
        2: "it touches the question and misses its point",
        3: "it answers a part of it, or hides the answer among other things",
        4: "it answers the question, with some that was not asked",
        5: "it answers the whole question and nothing else",
    },
)
"""Scores from 1 to 5 how well the answer addresses the question."""

factual = partial(
    rubric,
    "Does the answer say the same as one of the references? It may say more, but must contradict none of it.",
    name="factual",
    fields={"question": "input", "reference": "target", "answer": "answer"},
)
"""Scores 1.0 if the answer agrees with a reference, otherwise 0.0."""

follows = partial(rubric, None, name="follows", fields={"instruction": "input", "answer": "answer"})
"""Scores the weighted share of the criteria that the answer meets; the metadata contain the `criteria`."""

each_turn = partial(
    rubric,
    Each("turn", "how well does the assistant serve the user in it, given all that was said before?", 1, 5),
    name="conversation",
    fields=("conversation",),
)
"""Scores each turn of the dialogue from 1 to 5; the score is the mean over the turns."""


# Deprecated functions; the function `rubric` can make the same judges.


def single(aspects: Sequence[str | Likert] = (), *, attempts: int = 3, model: str = "", **params: Any) -> JudgeScorer:
    """Let one judge score the answer without a reason; `rubric(scale=(1, 10))` asks for a reason first."""
    checked = {"temperature": 0.0, **select_generation_params(single, params)}
    return JudgeScorer(Sampled(ScoresForm(make_aspects(aspects)), attempts=attempts, params=checked), model=model)


def pairwise(rival: str = "target", **options: Any) -> JudgeScorer:
    """Let one judge choose the better of two answers; this is the same as `rubric(compare=rival)`."""
    return cast("JudgeScorer", rubric(compare=rival, **options))


def multiple_evidence(
    aspects: Sequence[str | Likert] = (), *, samples: int = 3, rival: str | None = None, **options: Any
) -> JudgeScorer:
    """Average scores that follow reasons; this equals `rubric(scale=(1, 10), compare=rival, samples=3)`."""
    return cast("JudgeScorer", rubric(make_aspects(aspects, QUALITY), compare=rival or (), samples=samples, **options))


def weighted(
    aspects: Sequence[str | Likert] = (), *, samples: int = MOST_SAMPLES, rival: str | None = None, **options: Any
) -> JudgeScorer:
    """Compute expected scores (G-Eval); equals `rubric(scale=(1, 5), compare=rival, aggregate="expected")`."""
    questions = make_aspects(aspects, FIVE_POINTS)
    judge = rubric(questions, compare=rival or (), samples=samples, aggregate="expected", **options)
    return cast("JudgeScorer", judge)
