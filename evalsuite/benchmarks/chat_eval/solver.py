"""The model under test as a judge: the modes, the judge's input, and the scores of the judgements."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from evalsuite.benchmarks.chat_eval.dataset import HUMAN_ASPECTS
from evalsuite.core.errors import JudgeError
from evalsuite.core.keywords import GENERATION, refuse_unknown
from evalsuite.core.types import Transcript
from evalsuite.judges.asking import wait_for_all
from evalsuite.judges.forms import Aspect, ChoiceForm, PairedScores, ScoresForm
from evalsuite.judges.g_eval import STARS, Weighted
from evalsuite.judges.judgements import count_cut_off, judge_signature, settle_rounds, sign_scores
from evalsuite.judges.panels import SEATED, SUM_UP, Debate, Panel, PanelRules, make_debaters
from evalsuite.judges.prompts import OFFICE, REASONS, JudgedInput, withhold_names
from evalsuite.judges.scorers import Sampled
from evalsuite.metrics.text import bleu, rouge_l

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.core.protocols import Model, NamedScores, Setup
    from evalsuite.core.types import Sample
    from evalsuite.judges.judgements import Assessment, Form, Judge, Round
    from evalsuite.judges.panels import DebaterRole, Silence, Speech, Strategy
    from evalsuite.judges.prompts import Part
    from evalsuite.metrics.neural import BertScore

JudgingMethod = Literal["single", "mec", "weighted", "panel", "paper"]
PANEL = "3 roles and 2 turns; to change them, append :4roles, :3turns, :same_role, in this order"
PAPER = "2 roles and 2 turns; to change them, append :4roles, :3turns, :same_role, :ballots, in this order"
MODES = {
    "single": "one judgement in one line, pairs in both orders (ours)",
    "mec": "3 judgements with reasons, pairs in both orders, averaged (FairEval)",
    "weighted": "expected scores from the probabilities of tokens (G-Eval)",
    "weighted:steps": "like weighted, after the judge has written evaluation steps (as in G-Eval)",
    "panel:one_by_one": f"each debater sees all earlier speeches; then a secret vote (ours); {PANEL}",
    "panel:simultaneous": f"each debater sees the speeches of earlier turns; then a secret vote (ours); {PANEL}",
    "panel:simultaneous_summarizer": f"each sees summaries of earlier turns; then a secret vote (ours); {PANEL}",
    "paper:single": "one referee with the paper's template: reasons, then scores; append :same_role to change the role",
    "paper:one_by_one": f"the paper's debate, whose last turn is the judgement; {PAPER}",
    "paper:simultaneous": f"the paper's debate, where each sees the earlier turns, shuffled; {PAPER}",
    "paper:simultaneous_summarizer": f"the paper's debate, where each sees summaries of all earlier speeches; {PAPER}",
}
STRATEGIES = "one_by_one|simultaneous|simultaneous_summarizer"
SUFFIXES = "(?::(?P<roles>[1-9])roles)?(?::(?P<turns>[0-9])turns)?(?::(?P<same_role>same_role))?"
"""Suffixes as in `panel:one_by_one:4roles:3turns:same_role`: at most 9 debaters and 9 turns, in this order."""

PANELS = re.compile(f"panel:(?P<strategy>{STRATEGIES}){SUFFIXES}")
REFEREES = re.compile(f"paper:(?P<strategy>{STRATEGIES}){SUFFIXES}(?::(?P<ballots>ballots))?")


@dataclass(frozen=True, slots=True)
class JudgingMode:
    """A way of judging."""

    kind: JudgingMethod
    strategy: Strategy | None = None
    roles: int = 1  # Number of debaters; 1 without a panel.
    turns: int = 0  # For a `panel`, turns before the secret vote; for a `paper` mode, turns including the judgement.
    same_role: bool = False  # Whether all debaters have the same role.
    steps: bool = False  # Whether evaluation steps are generated first.
    ballots: bool = False  # Whether debaters also judge in secret after each turn but the last.


SIMPLE: Mapping[str, JudgingMode] = {
    "single": JudgingMode("single"),
    "mec": JudgingMode("mec"),
    "weighted": JudgingMode("weighted"),
    "weighted:steps": JudgingMode("weighted", steps=True),
    "paper:single": JudgingMode("paper", turns=1),
    "paper:single:same_role": JudgingMode("paper", turns=1, same_role=True),
}


def read_mode(name: str) -> JudgingMode:
    """Read a mode's name; raise KeyError if the name is unknown."""
    if name in SIMPLE:
        return SIMPLE[name]
    if match := PANELS.fullmatch(name):
        return _read_debate("panel", match, roles=3)
    match = REFEREES.fullmatch(name)
    if match and match["turns"] != "0":
        return replace(_read_debate("paper", match, roles=2), ballots=bool(match["ballots"]))
    raise KeyError(name)


def _read_debate(kind: JudgingMethod, match: re.Match[str], roles: int) -> JudgingMode:
    strategy = cast("Strategy", match["strategy"])
    roles, turns = int(match["roles"] or roles), int(match["turns"] or 2)
    return JudgingMode(kind, strategy, roles, turns, same_role=bool(match["same_role"]))


class Modes(Mapping[str, str]):
    """Descriptions of the modes by name; modes with suffixes can be looked up, but iteration leaves them out."""

    def __getitem__(self, name: str) -> str:
        mode = read_mode(name)
        if name in MODES:
            return MODES[name]
        roles = "of the same role" if mode.same_role else "of different roles"
        ballots = ", secret ballots after each turn except the last" if mode.ballots else ""
        return f"{mode.roles} debaters {roles}, {mode.turns} turns, {mode.strategy or 'alone'}{ballots}"

    def __iter__(self) -> Iterator[str]:
        return iter(MODES)

    def __len__(self) -> int:
        return len(MODES)


NO_VERDICT = "no verdict"
ROOM_TO_REASON = 512
PARAMS: Mapping[str, Mapping[str, Any]] = {
    "single": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
    "mec": {"temperature": 1.0, "max_tokens": ROOM_TO_REASON},
    "weighted": {"temperature": 0.0, "max_tokens": 64},
    "panel": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
    "paper": {"temperature": 0.0, "max_tokens": ROOM_TO_REASON},
}
PAPER_QUALITY = Aspect("quality", "its helpfulness, relevance, accuracy and level of detail")


@dataclass(frozen=True, slots=True)
class AsJudge:
    """Lets the model judge each sample in the sample's mode."""

    attempts: int = 2  # Maximum number of requests until an answer can be read.
    params: Mapping[str, Any] = field(default_factory=dict)  # Generation parameters that override those of `PARAMS`.
    seed: int = 0  # The seed that shuffles simultaneous speeches.
    # The folder of an encoder for BERTScore of dialogue responses, which needs the extra `neural`.
    bert_score: str | Path | None = None

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Judge one sample; an unreadable answer is a failure of the model, not an error."""
        subject = judged_input(sample)
        facts = await asyncio.to_thread(self._collect_facts, sample, subject)
        judge = self.judge(read_mode(sample.tags["mode"]), sample.tags["task"])
        # The signature leaves out the model under test, so models with the same prompts share a signature.
        facts["signature"] = judge_signature(judge, [])
        try:
            assessment = await judge(subject, model)
        except JudgeError as error:
            facts |= {"unparsed": str(error), **count_cut_off(tuple(error.log))}
            return Transcript(NO_VERDICT, events=_make_events(error.log), facts=facts)
        facts |= {**assessment.plain(), "judged": dict(assessment.opinion.scores)}
        return Transcript(_write_answer(assessment), events=_make_events(assessment.log), facts=facts)

    def judge(self, mode: JudgingMode, task: str) -> Judge:
        params = {**PARAMS[mode.kind], **self.params}
        if mode.kind == "paper":
            return self._make_referees(mode, task, params)
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

    def _collect_facts(self, sample: Sample, subject: JudgedInput) -> dict[str, Any]:
        """Collect the facts that need no judge: people's verdict, and the overlap with the reference."""
        names = ("human", "systems", "dialogue")
        facts: dict[str, Any] = {name: sample.metadata[name] for name in names if name in sample.metadata}
        if reference := sample.metadata.get("reference"):
            encoder = Path(self.bert_score) if self.bert_score else None
            facts[OVERLAP] = dict(overlap(subject.answers[0], reference, encoder))
        return {**facts, "lengths": [len(answer) for answer in subject.answers], "verdict": None}

    def _make_referees(self, mode: JudgingMode, task: str, params: Mapping[str, Any]) -> RefereePanel:
        """Make the paper's panel; the paper's single judge is a panel with one role and one turn."""
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
    """Make the solver with the fields of `AsJudge` and the generation parameters that the benchmark declares."""
    own = [field.name for field in fields(AsJudge)]
    refuse_unknown("ChatEval", setup.args, {*own, *GENERATION})
    options = {name: value for name, value in setup.args.items() if name in own}
    params = {name: value for name, value in setup.args.items() if name not in own} | setup.args.get("params", {})
    return AsJudge(**{"seed": setup.seed, **options, "params": params})


def judged_input(sample: Sample) -> JudgedInput:
    """Make the judge's input, without the authors of the answers and without people's verdict."""
    names = sample.metadata["names"]
    answers = tuple(withhold_names(answer, names) for answer in sample.metadata["answers"])
    return JudgedInput(str(sample.input), answers, sample.metadata.get("background", ""))


def _write_answer(assessment: Assessment) -> str:
    scores = ", ".join(f"{name}: {value:g}" for name, value in assessment.opinion.scores.items())
    return assessment.opinion.verdict or scores


def _make_events(log: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple({"kind": "said", **entry} for entry in log)


OVERLAP = "overlap"  # The fact with the overlap of response and reference, by the metric's name.
ENCODING = Lock()  # The lock of the thread that loads or uses the encoder.


@lru_cache(maxsize=1024)
def overlap(response: str, reference: str, encoder: Path | None) -> dict[str, float]:
    """Compute ROUGE-L, BLEU and, with an encoder, BERTScore's F1 of a response and its reference, in [0, 1]."""
    values = {"ROUGE-L": rouge_l(response, reference), "BLEU": bleu(response, reference)}
    if encoder is not None:
        # Cases are scored in threads, and transformers' imports and tokenizers are not safe in several threads.
        with ENCODING:
            values["BERTScore"] = _bert_score(encoder).score(response, reference).f1
    return values


@cache
def _bert_score(folder: Path) -> BertScore:
    from evalsuite.metrics.neural import BertScore

    return BertScore(folder)


def against_people(sample: Sample, transcript: Transcript) -> NamedScores:
    """Score `parsed`, 1.0 if the judgement could be read, and the verdict or the scores.

    For pairs, `accuracy` is 1.0 if the verdict equals people's verdict, otherwise 0.0, also without a verdict. For
    dialogues, each aspect has the judge's score on people's scale; without a judgement, these scores are missing.
    """
    if sample.tags["task"] == "pairs":
        scores = {"accuracy": float(transcript.facts["verdict"] == sample.metadata["human"])}
    else:
        scores = transcript.facts.get("judged", {})
    parsed = float("unparsed" not in transcript.facts)
    return {"parsed": parsed, **sign_scores(scores, transcript.facts["signature"])}


TASK = "The task of the panel: {task} Do not let the order of the answers sway you.\n"
TALK = (
    "It is your turn to talk, {name}. Say briefly what you make of it and how you see what the others said. "
    "The scores are given in a later turn."
)
JUDGEMENT = "It is your turn, {name}, and this is the last turn. You need not agree with the others.\n"


@dataclass(frozen=True, slots=True)
class RefereePanel(PanelRules):
    """Debaters who speak in turns; in the last turn, each gives a judgement.

    `turns` includes the last turn, so two debaters in two turns speak four times. With one_by_one, each debater sees
    all earlier speeches, also in the last turn. With simultaneous, each sees the shuffled speeches of earlier turns.
    With a summarizer, each sees only summaries of all earlier speeches.
    """

    seed: int = 0
    # Whether each debater also casts a secret ballot after each turn except the last, to show who changes their mind.
    interim: bool = False

    fewest_turns: ClassVar[int] = 1

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        debates = [PaperDebate(self, Debate(self, subject, model, swapped)) for swapped in self.orders]
        rounds = await wait_for_all(debate.hold() for debate in debates)
        assessment = settle_rounds(self.form, rounds, self.quorum)
        interim = [ballot for debate in debates for ballot in debate.interim]
        return replace(assessment, facts={**assessment.facts, "interim": interim}) if interim else assessment

    def prompts(self) -> Sequence[str]:
        task, request = self.form.task(), self.form.request("End")
        return (OFFICE, SEATED, TASK, TALK, JUDGEMENT, REASONS, SUM_UP, task, request)


@dataclass
class PaperDebate:
    """One debate of a `RefereePanel`, for one order of the answers."""

    panel: RefereePanel
    debate: Debate
    spoken: list[Part] = field(default_factory=list)  # All speeches so far, hidden ones included.
    # The secret ballots, as plain data, each with its turn.
    interim: list[Mapping[str, Any]] = field(default_factory=list)

    async def hold(self) -> Round:
        try:
            for turn in range(1, self.panel.turns + 1):
                await self._hold_turn(turn)
        except JudgeError as error:
            return self.debate.fail(error)
        return self.debate.end()

    async def _hold_turn(self, turn: int) -> None:
        if self.panel.strategy == "one_by_one":
            for debater in self.panel.debaters:
                self.debate.shown += self._keep([await self._ask(debater, turn)], turn)
        else:
            contributions = await wait_for_all(self._ask(debater, turn) for debater in self.panel.debaters)
            self.spoken += (parts := self._keep(contributions, turn))
            if turn < self.panel.turns:
                self.debate.shown += await self._summarize_or_shuffle(parts, turn)
        if self.panel.interim and turn < self.panel.turns:
            await self._secret_ballots(turn)

    async def _ask(self, debater: DebaterRole, turn: int) -> Speech[Any] | Silence:
        task = TASK.format(task=self.panel.form.task())
        if turn < self.panel.turns:
            return await self.debate.speak(debater, turn, task + TALK.format(name=debater.name))
        return await self.debate.judge(debater, turn, task + self._request_judgement(debater), self.panel.form.parse)

    def _request_judgement(self, debater: DebaterRole) -> str:
        return JUDGEMENT.format(name=debater.name) + REASONS + self.panel.form.request("End")

    def _keep(self, contributions: Sequence[Speech[Any] | Silence], turn: int) -> list[Part]:
        speeches = self.debate.keep(*contributions)
        if turn == self.panel.turns:
            self.debate.count(*contributions)
        return [speech.part() for speech in speeches]

    async def _summarize_or_shuffle(self, parts: list[Part], turn: int) -> list[Part]:
        if self.panel.strategy == "simultaneous_summarizer":
            summary = await self.debate.sum_up(self.spoken, turn)
            self.debate.keep(summary)
            return [summary.part()]
        return shuffle_parts(parts, self.panel.seed, turn, self.debate.subject.shown(swapped=self.debate.swapped))

    async def _secret_ballots(self, turn: int) -> None:
        ballots = await wait_for_all(
            self.debate.judge(debater, turn, self._request_judgement(debater), self.panel.form.parse)
            for debater in self.panel.debaters
        )
        for speech in self.debate.keep(*ballots):
            self.interim.append({"turn": turn, **self.debate.ballot(speech).plain()})


def shuffle_parts(parts: Sequence[Part], seed: int, turn: int, subject: str) -> list[Part]:
    """Shuffle the parts by the seed, the turn and the subject, so that the order is the same on every machine."""
    digest = sha256(f"{seed}\0{turn}\0{subject}".encode("utf-8", "surrogatepass")).digest()
    mixed = list(parts)
    random.Random(digest).shuffle(mixed)  # noqa: S311 - the order of speeches need not be unpredictable
    return mixed
