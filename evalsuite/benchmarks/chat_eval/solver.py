"""Use the model under test as a judge: its modes, its input, and the scores of its judgements."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, cast

from evalsuite.benchmarks.chat_eval.authors import AspectPanels, AuthorsSetting, choose_settings, read_settings
from evalsuite.benchmarks.chat_eval.dataset import HUMAN_ASPECTS, OVERLAP
from evalsuite.core.errors import JudgeError
from evalsuite.core.keywords import GENERATION, refuse_unknown_names
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.judges.forms import ChoiceForm, Form, Likert, PairedScores, ScoresForm
from evalsuite.judges.g_eval import FIVE_POINTS, Weighted
from evalsuite.judges.judgements import Judge, make_cut_off_fact, make_judge_signature, sign_scores
from evalsuite.judges.panels import Panel, Strategy, make_debaters
from evalsuite.judges.prompts import JudgedInput, redact_names
from evalsuite.judges.scorers import Sampled
from evalsuite.metrics.text import bleu, rouge_l

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model, NamedScores, Setup
    from evalsuite.metrics.neural import BertScore

JudgingMethod = Literal["single", "mec", "weighted", "paper"]
PAPER = "2 roles and 2 turns; to change them, append :4roles, :3turns, :same_role, :ballots, in this order"
MODES = {
    "single": "one judgement in one line, pairs in both orders (ours)",
    "mec": "3 judgements with reasons, pairs in both orders, averaged (FairEval)",
    "weighted": "expected scores from the probabilities of tokens (G-Eval)",
    "weighted:steps": "like weighted, after the judge has written evaluation steps (as in G-Eval)",
    "paper:single": "one referee without a role: reasons, then scores",
    "paper:one_by_one": f"the paper's debate, whose last turn is the judgement; {PAPER}",
    "paper:simultaneous": f"the paper's debate, where each sees the earlier turns, shuffled; {PAPER}",
    "paper:simultaneous_summarizer": f"the paper's debate, where each sees summaries of all earlier speeches; {PAPER}",
}
MODE = re.compile(
    "single|mec|weighted(?::(?P<steps>steps))?|paper:(?:single|"
    "(?P<strategy>one_by_one|simultaneous|simultaneous_summarizer)(?::(?P<roles>[1-9])roles)?"
    "(?::(?P<turns>[1-9])turns)?(?::(?P<same_role>same_role))?(?::(?P<ballots>ballots))?)"
)
"""Matches the name of a mode. Suffixes have a fixed order, as in `paper:one_by_one:4roles:3turns:same_role`."""


@dataclass(frozen=True, slots=True)
class JudgingMode:
    """The options that a mode's name encodes."""

    kind: JudgingMethod
    strategy: Strategy | None = None
    roles: int = 1  # Number of debaters in the panel; 1 without a panel.
    turns: int = 0  # Number of turns, including the judgement; 0 without a panel.
    same_role: bool = False  # Whether all debaters have the same role.
    steps: bool = False  # Whether the model first writes the steps by which it will evaluate.
    ballots: bool = False  # Whether debaters also judge in secret (cast a ballot) after each turn except the last.


def parse_mode(name: str) -> JudgingMode:
    """Read the options that a mode's name encodes; raise KeyError if the name is unknown."""
    match = MODE.fullmatch(name)
    if not match:
        raise KeyError(name)
    kind, strategy = cast("JudgingMethod", name.partition(":")[0]), cast("Strategy | None", match["strategy"])
    if strategy is None:
        return JudgingMode(kind, turns=int(kind == "paper"), steps=bool(match["steps"]))
    roles, turns = int(match["roles"] or 2), int(match["turns"] or 2)
    return JudgingMode(kind, strategy, roles, turns, same_role=bool(match["same_role"]), ballots=bool(match["ballots"]))


class ModeDescriptions(Mapping[str, str]):
    """Descriptions by mode name; names with suffixes, such as a number of roles, are valid but are not listed."""

    def __getitem__(self, name: str) -> str:
        mode = parse_mode(name)
        if name in MODES:
            return MODES[name]
        roles = "of the same role" if mode.same_role else "of different roles"
        ballots = ", secret ballots after each turn except the last" if mode.ballots else ""
        return f"{mode.roles} debaters {roles}, {mode.turns} turns, {mode.strategy}{ballots}"

    def __iter__(self) -> Iterator[str]:
        return iter(MODES)

    def __len__(self) -> int:
        return len(MODES)


NO_VERDICT = "no verdict"
OWN_WORDS = "this project's own words"
ROOM_TO_REASON = 512
PARAMS: Mapping[str, Mapping[str, Any]] = {
    "single": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
    "mec": {"temperature": 1.0, "max_tokens": ROOM_TO_REASON},
    "weighted": {"temperature": 0.0, "max_tokens": 64},
    "paper": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
}
PAPER_QUALITY = Likert("its helpfulness, relevance, accuracy and level of detail", 1, 10, name="quality")


@dataclass(frozen=True, slots=True)
class JudgingSolver:
    """Lets the model under test judge each sample, in the mode that the sample's tag `mode` names."""

    attempts: int = 2  # Maximum requests per answer: an unreadable answer is requested again.
    params: Mapping[str, Any] = field(default_factory=dict)  # Generation parameters, which override `PARAMS`.
    seed: int = 0  # The seed for shuffling the order in which simultaneous speeches are shown.
    # The folder of an encoder for BERTScore of dialogue responses; BERTScore needs the extra `neural`.
    bert_score: str | Path | None = None
    released: Sequence[AuthorsSetting] = ()  # Panel configurations, with prompts, that the authors released.

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Judge one sample; an unreadable answer is a failure of the model, not an error."""
        subject = make_judged_input(sample)
        facts = await asyncio.to_thread(self._collect_facts, sample, subject)
        mode = parse_mode(sample.tags["mode"])
        judge = self.make_judge(mode, sample.tags["task"])
        if mode.kind == "paper":
            chosen = choose_settings(self.released, mode, sample.tags["task"])
            facts["prompts"] = ", ".join(setting.file for setting in chosen.values()) or OWN_WORDS
        # Leave the model under test out of the signature, so that runs of several models have the same signature.
        facts["signature"] = make_judge_signature(judge, [])
        try:
            assessment = await judge(subject, model)
        except JudgeError as error:
            if mode.kind == "paper" and sample.tags["task"] == "pairs":
                # As in the authors' script, an unreadable judgement is a tie; `unparsed` in `facts` marks such ties.
                facts["verdict"] = "tie"
            facts |= {"unparsed": str(error), **make_cut_off_fact(tuple(error.log))}
            return Transcript(NO_VERDICT, events=_make_judge_events(error.log), facts=facts)
        facts |= {**assessment.encode_assessment(), "judged": dict(assessment.opinion.scores)}
        scores = ", ".join(f"{name}: {value:g}" for name, value in assessment.opinion.scores.items())
        return Transcript(assessment.opinion.verdict or scores, events=_make_judge_events(assessment.log), facts=facts)

    def make_judge(self, mode: JudgingMode, task: str) -> Judge:
        params = {**PARAMS[mode.kind], **self.params}
        if mode.kind == "paper":
            return self._make_papers_judge(mode, task, params)
        form: Form = ChoiceForm() if task == "pairs" else ScoresForm(HUMAN_ASPECTS)
        if mode.kind == "mec":
            scored = PairedScores() if task == "pairs" else form
            return Sampled(scored, repeats=3, reasons=True, attempts=self.attempts, params=params)
        if mode.kind == "weighted":
            aspects = (FIVE_POINTS,) if task == "pairs" else HUMAN_ASPECTS
            return Weighted(aspects, attempts=self.attempts, params=params, steps=mode.steps)
        return Sampled(form, attempts=self.attempts, params=params)

    def _collect_facts(self, sample: Sample, subject: JudgedInput) -> dict[str, Any]:
        """Collect the `facts` that need no judge, such as people's verdict and the overlap with the reference."""
        names = ("human", "systems", "dialogue")
        facts: dict[str, Any] = {name: sample.metadata[name] for name in names if name in sample.metadata}
        if reference := sample.metadata.get("reference"):
            encoder = Path(self.bert_score) if self.bert_score else None
            facts[OVERLAP] = dict(compute_overlap(subject.answers[0], reference, encoder))
        return {**facts, "lengths": [len(answer) for answer in subject.answers], "verdict": None}

    def _make_papers_judge(self, mode: JudgingMode, task: str, params: Mapping[str, Any]) -> Judge:
        """Make the judge of a `paper:` mode; use the authors' prompts if a released file configures this mode."""
        options: dict[str, Any] = {"attempts": self.attempts, "seed": self.seed, "interim": mode.ballots}
        form: Form = PairedScores(PAPER_QUALITY) if task == "pairs" else ScoresForm(HUMAN_ASPECTS)
        if chosen := choose_settings(self.released, mode, task):
            if task == "dialogues":
                settings = [(chosen[aspect.name], ScoresForm((aspect,))) for aspect in HUMAN_ASPECTS]
                return AspectPanels(tuple(one.make_panel(own, self.params, **options) for one, own in settings))
            return chosen[""].make_panel(form, self.params, **options)
        if mode.strategy is None:
            return Sampled(form, reasons=True, attempts=self.attempts, params=params)
        debaters = make_debaters(mode.roles, same_role=mode.same_role)
        return Panel(form, debaters, mode.strategy, mode.turns, params=params, **options)


def make_solver(setup: Setup) -> JudgingSolver:
    """Make the solver; the benchmark's arguments are fields of `JudgingSolver` or generation parameters."""
    own = [field.name for field in fields(JudgingSolver) if field.name != "released"]
    refuse_unknown_names("ChatEval", setup.args, {*own, *GENERATION})
    options = {name: value for name, value in setup.args.items() if name in own}
    params = {name: value for name, value in setup.args.items() if name not in own} | setup.args.get("params", {})
    released = read_settings(setup.data) if any(parse_mode(mode).kind == "paper" for mode in setup.modes) else ()
    return JudgingSolver(**{"seed": setup.seed, **options, "params": params, "released": released})


def make_judged_input(sample: Sample) -> JudgedInput:
    """Make the judge's input; it reveals neither the systems that wrote the answers nor people's verdict."""
    answers = tuple(redact_names(answer, sample.metadata["names"]) for answer in sample.metadata["answers"])
    return JudgedInput(str(sample.input), answers, sample.metadata.get("background", ""))


def _make_judge_events(log: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple({"kind": "said", **entry} for entry in log)


ENCODER_LOCK = Lock()  # Lets only one thread at a time load or use the encoder.


@lru_cache(maxsize=1024)
def compute_overlap(response: str, reference: str, encoder: Path | None) -> dict[str, float]:
    """Compute ROUGE-L and BLEU of a response and its reference, in [0, 1]; with an encoder, also BERTScore's F1."""
    values = {"ROUGE-L": rouge_l(response, reference), "BLEU": bleu(response, reference)}
    if encoder is not None:
        # Use a lock, because cases are scored in threads, and transformers' imports and tokenizers are not thread-safe.
        with ENCODER_LOCK:
            values["BERTScore"] = _load_bert_score(encoder).score(response, reference).f1
    return values


@cache
def _load_bert_score(folder: Path) -> BertScore:
    from evalsuite.metrics.neural import BertScore

    return BertScore(folder)


def against_people(sample: Sample, transcript: Transcript) -> NamedScores:
    """Return `parsed` (1.0 if the judgement could be read, otherwise 0.0) and the scores to compare with people's.

    For pairs, `accuracy` is 1.0 if the judge's verdict equals people's verdict, otherwise 0.0. For dialogues, each
    aspect that the judge scored has a score on people's scale.
    """
    if sample.tags["task"] == "pairs":
        scores = {"accuracy": float(transcript.facts["verdict"] == sample.metadata["human"])}
    else:
        scores = transcript.facts.get("judged", {})
    # A record takes ballots from scorers only, because an application's output may have fields of any name.
    ballots = {name: value for name, value in transcript.facts.items() if name == "ballots"}
    parsed = Score(float("unparsed" not in transcript.facts), facts=ballots)
    return {"parsed": parsed, **sign_scores(scores, transcript.facts["signature"])}
