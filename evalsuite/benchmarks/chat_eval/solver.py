"""The model under test as judge: what it is shown, in which form it answers, and what a transcript keeps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.chat_eval.modes import read_mode
from evalsuite.benchmarks.chat_eval.overlap import OVERLAP, overlap
from evalsuite.benchmarks.chat_eval.ratings import HUMAN_ASPECTS
from evalsuite.benchmarks.chat_eval.referees import RefereePanel
from evalsuite.core.errors import JudgeError
from evalsuite.core.keywords import GENERATION, refuse_unknown
from evalsuite.core.types import Transcript
from evalsuite.judges.forms import Aspect, ChoiceForm, PairedScores, ScoresForm
from evalsuite.judges.g_eval import STARS, Weighted
from evalsuite.judges.judgements import count_cut_off, judge_signature
from evalsuite.judges.panels import Panel, make_debaters
from evalsuite.judges.prompts import JudgedInput, withhold_names
from evalsuite.judges.scorers import Sampled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.chat_eval.modes import JudgingMode
    from evalsuite.core.protocols import Model, Setup
    from evalsuite.core.types import Sample
    from evalsuite.judges.judgements import Assessment, Form, Judge

NO_VERDICT = "no verdict"
ROOM_TO_REASON = 512
PARAMS: Mapping[str, Mapping[str, Any]] = {
    "single": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
    "mec": {"temperature": 1.0, "max_tokens": ROOM_TO_REASON},
    "weighted": {"temperature": 0.0, "max_tokens": 8},
    "panel": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
    "paper": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
}
PAPER_QUALITY = Aspect("quality", "its helpfulness, relevance, accuracy and level of detail")


@dataclass(frozen=True, slots=True)
class AsJudge:
    """Lets the model judge each sample in the sample's mode.

    Attributes:
        attempts: answers asked for at most, until one can be parsed.
        params: generation parameters over those of `PARAMS`.
        seed: of what is left to chance: the shuffling of simultaneous speeches.
        bert_score: folder of an encoder, with which BERTScore stands beside the judges of dialogue responses;
            it needs the extra `neural`.
    """

    attempts: int = 2
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    bert_score: str | Path | None = None

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Judges one sample. An answer that cannot be parsed is the model's own failure, not an error."""
        subject = shown(sample)
        facts = await asyncio.to_thread(self._facts, sample, subject)
        judge = self.judge(read_mode(sample.tags["mode"]), sample.tags["task"])
        # Judging is what the model is tested in: models judge under one signature if they are asked the same.
        facts["signature"] = judge_signature(judge, [])
        try:
            assessment = await judge(subject, model)
        except JudgeError as error:
            facts |= {"unparsed": str(error), **count_cut_off(tuple(error.log))}
            return Transcript(NO_VERDICT, events=_events(error.log), facts=facts)
        facts |= {**assessment.plain(), "judged": dict(assessment.opinion.scores)}
        return Transcript(_answer(assessment), events=_events(assessment.log), facts=facts)

    def judge(self, mode: JudgingMode, task: str) -> Judge:
        """The judge of a mode for pairs or dialogues."""
        params = {**PARAMS[mode.kind], **self.params}
        if mode.kind == "paper":
            return self._referees(mode, task, params)
        form: Form = ChoiceForm() if task == "pairs" else ScoresForm(HUMAN_ASPECTS)
        if mode.kind == "mec":
            scored = PairedScores() if task == "pairs" else form
            return Sampled(scored, repeats=3, reasons=True, attempts=self.attempts, params=params)
        if mode.kind == "weighted":
            aspects = (STARS,) if task == "pairs" else HUMAN_ASPECTS
            return Weighted(aspects, attempts=self.attempts, params=params, steps=mode.steps)
        if mode.strategy:
            seats = make_debaters(mode.roles, same_role=mode.same_role)
            return Panel(form, seats, mode.strategy, mode.turns, attempts=self.attempts, params=params)
        return Sampled(form, attempts=self.attempts, params=params)

    def _facts(self, sample: Sample, subject: JudgedInput) -> dict[str, Any]:
        """What is known before anything is judged: people's verdict, and how the texts compare by themselves."""
        kept = ("human", "systems", "dialogue")
        facts: dict[str, Any] = {name: sample.metadata[name] for name in kept if name in sample.metadata}
        if reference := sample.metadata.get("reference"):
            encoder = Path(self.bert_score) if self.bert_score else None
            facts[OVERLAP] = dict(overlap(subject.answers[0], reference, encoder))
        return {**facts, "lengths": [len(answer) for answer in subject.answers], "verdict": None}

    def _referees(self, mode: JudgingMode, task: str, params: Mapping[str, Any]) -> RefereePanel:
        """The paper's panel; its single judge is a panel of one, so that they differ in the debate alone."""
        form: Form = PairedScores(PAPER_QUALITY) if task == "pairs" else ScoresForm(HUMAN_ASPECTS)
        return RefereePanel(
            form,
            make_debaters(mode.roles, same_role=mode.same_role),
            mode.strategy or "one_by_one",
            mode.turns,
            attempts=self.attempts,
            params=params,
            seed=self.seed,
            interim=mode.ballots,
        )


def as_judge(setup: Setup) -> AsJudge:
    """The solver, with `attempts`, `bert_score` and generation parameters from where the benchmark is declared.

    Raises:
        SettingsError: something else is given there.
    """
    own = [field.name for field in fields(AsJudge)]
    refuse_unknown("ChatEval", setup.args, {*own, *GENERATION})
    named = {name: value for name, value in setup.args.items() if name not in own}
    params = {**named, **setup.args.get("params", {})}
    options = {name: value for name, value in setup.args.items() if name in own}
    return AsJudge(**{"seed": setup.seed, **options, "params": params})


def shown(sample: Sample) -> JudgedInput:
    """What the judge is shown of a sample: never who wrote an answer, nor what people thought of it."""
    names = sample.metadata["names"]
    answers = tuple(withhold_names(answer, names) for answer in sample.metadata["answers"])
    return JudgedInput(str(sample.input), answers, sample.metadata.get("background", ""))


def _answer(assessment: Assessment) -> str:
    scores = ", ".join(f"{name}: {value:g}" for name, value in assessment.opinion.scores.items())
    return assessment.opinion.verdict or scores


def _events(log: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple({"kind": "said", **entry} for entry in log)
