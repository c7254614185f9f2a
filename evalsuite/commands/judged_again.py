"""An earlier run's answers, judged again by one judge: their scores, and the scores of probes."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import BackendUnavailable, CallFailed, JudgeError, RequestRefused, SettingsError
from evalsuite.core.types import Sample, Score
from evalsuite.judges.judgements import PREFERENCE
from evalsuite.judges.probes import PARAPHRASED, REWORD, make_probes
from evalsuite.judges.prompts import mark_sections
from evalsuite.judges.rubrics import Rubric
from evalsuite.output.reports.judges.certificate import JudgeResults
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.errors import ModelError
    from evalsuite.core.protocols import JudgedScorer
    from evalsuite.core.settings import Settings
    from evalsuite.core.types import Record
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.gateway.handle import ModelHandle

ScoresByCase = dict[str, dict[str, Score]]  # by case and name; a judge that could not be read has none


@dataclass(frozen=True, slots=True)
class AnswersToJudge:
    """The answers to judge, and how."""

    records: Sequence[Record]  # Records of the cases that have an answer.
    scorers: Sequence[JudgedScorer]  # The scorers that ask the judge.
    samples: Mapping[str, Sample]  # Samples by id; a missing sample is made from the record.
    passes: float | None = None  # The lowest score that passes; None for the scorers' own.

    def sample(self, record: Record) -> Sample:
        return self.samples.get(record.sample) or Sample(record.sample, record.input, record.target)

    def find_passing_score(self, name: str) -> float | None:
        """Find the least value of a score that passes; None where it is not known."""
        if self.passes is not None:
            return self.passes
        rubric = self._find_rubric(name)
        if rubric is None:
            return None
        if rubric.criteria is None:
            return 1.0 if rubric.passes is None else rubric.passes
        return rubric.find_passing_score(rubric.criteria)

    def scale(self, name: str) -> tuple[float, float] | None:
        """Lowest and highest value of a score; None where they are not known."""
        if name.endswith(PREFERENCE):
            return 0.0, 1.0
        rubric = self._find_rubric(name)
        if rubric is None:
            return None
        return (rubric.criteria.worst, rubric.criteria.best) if rubric.criteria else (0.0, 1.0)

    def _find_rubric(self, name: str) -> Rubric | None:
        rubrics = (scorer for scorer in self.scorers if isinstance(scorer, Rubric))
        return next((rubric for rubric in rubrics if rubric.name == name), None)


async def judged_again(settings: Settings, subject: AnswersToJudge, probed: int, store: Path) -> list[JudgeResults]:
    """Ask one judge and return its results by score; the store keeps each answer, so that it is paid for once."""
    gateway = _open_gateway(settings, store)
    try:
        asking = _JudgeCalls(gateway, settings, subject)
        scores = await asking.scores(subject.records)
        some = {record.case: record for record in subject.records[:probed]}
        answers = {case: record.transcript.answer for case, record in some.items() if record.transcript}
        changed = {**make_probes(answers), PARAPHRASED: await asking.reword_answers(answers)}
        turned = {
            probe: await asking.scores([_replace_answer(some[case], text) for case, text in texts.items()])
            for probe, texts in changed.items()
        }
    finally:
        await gateway.aclose()
    names = list(dict.fromkeys(name for case in scores.values() for name in case)) or [""]
    return [_make_results(settings.judge_model or "", name, subject, scores, turned) for name in names]


def _open_gateway(settings: Settings, store: Path) -> Gateway:
    from evalsuite.gateway.opening import credentials_of, open_gateway
    from evalsuite.journal.answers import Answers
    from evalsuite.models.choice import open_backend

    judge = settings.judge_model or ""
    if judge.startswith("function:") and str(Path.cwd()) not in sys.path:
        # As in a run, a function of the user is imported from the current directory.
        sys.path.insert(0, str(Path.cwd()))
    try:
        open_backend(judge, settings.judge_base_url, credentials_of(settings)).check()
    except (SettingsError, BackendUnavailable) as error:
        raise type(error)(str(error).replace("--model", "--judge")) from error
    return open_gateway(settings, Answers.open(store))


@dataclass(frozen=True, slots=True)
class _JudgeCalls:
    """One judge, which judges many answers concurrently."""

    gateway: Gateway
    settings: Settings
    subject: AnswersToJudge
    failures: list[ModelError] = field(default_factory=list)

    def _judge(self) -> ModelHandle:
        from evalsuite.gateway.handle import ModelHandle

        settings = self.settings
        return ModelHandle(
            self.gateway, settings.judge_model or "", settings.judge_base_url, overrides=settings.judge_params
        )

    async def scores(self, records: Sequence[Record]) -> ScoresByCase:
        values = await asyncio.gather(*map(self._scores, records))
        if self.failures and not any(values):
            raise self.failures[0]
        return {record.case: value for record, value in zip(records, values, strict=True)}

    async def _scores(self, record: Record) -> dict[str, Score]:
        scored = await asyncio.gather(*(self._score_by(scorer, record) for scorer in self.subject.scorers))
        return {name: score for case_scores in scored for name, score in case_scores.items()}

    async def _score_by(self, scorer: JudgedScorer, record: Record) -> dict[str, Score]:
        if record.transcript is None:
            return {}
        try:
            values = await scorer.judged(self.subject.sample(record), record.transcript, self._judge())
        except JudgeError:
            return {}
        except (RequestRefused, CallFailed) as error:
            # An answer that a content filter refuses is an error of its case; the others are judged.
            self.failures.append(error)
            return {}
        return {name: value if isinstance(value, Score) else Score(float(value)) for name, value in values.items()}

    async def reword_answers(self, answers: Mapping[str, str]) -> dict[str, str]:
        """Let the judge paraphrase each answer; an empty or truncated paraphrase is left out."""
        texts = await asyncio.gather(*(self._ask_for_rewording(text) for text in answers.values()))
        return {case: text for case, text in zip(answers, texts, strict=True) if text}

    async def _ask_for_rewording(self, answer: str) -> str:
        try:
            completion = await self._judge().chat(f"{mark_sections([('answer', answer)])}\n\n{REWORD}")
        except (RequestRefused, CallFailed):
            return ""
        return "" if completion.finish_reason == "length" else completion.text.strip()


def _make_results(
    judge: str, name: str, subject: AnswersToJudge, scores: ScoresByCase, turned: Mapping[str, ScoresByCase]
) -> JudgeResults:
    of_score = [score[name] for score in scores.values() if name in score]
    rows = tuple(
        Row(record.case, record.sample, record.epoch, "passed", {}, {}, _merge_facts(scores[record.case]))
        for record in subject.records
    )
    return JudgeResults(
        judge=judge,
        scores=_select_values(scores, name),
        asked=len(subject.records),
        passes=subject.find_passing_score(name),
        probed={probe: _select_values(probe_scores, name) for probe, probe_scores in turned.items()},
        signature=next((score.signature for score in of_score if score.signature), ""),
        score=name,
        nominal=name.endswith(PREFERENCE),
        scale=subject.scale(name),
        lengths={record.case: len(record.transcript.answer) for record in subject.records if record.transcript},
        tally=Tally(rows),
    )


def _select_values(scores: ScoresByCase, name: str) -> dict[str, float]:
    return {case: float(scored[name].value) for case, scored in scores.items() if name in scored}


def _merge_facts(scored: Mapping[str, Score]) -> dict[str, Any]:
    return {name: fact for score in scored.values() for name, fact in score.facts.items()}


def _replace_answer(record: Record, answer: str) -> Record:
    return replace(record, transcript=record.transcript and replace(record.transcript, answer=answer))
