"""Judge an earlier run's answers again, and test the judge on mutations of these answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

from evalsuite.core.errors import BackendUnavailable, CallFailed, JudgeError, ModelError, RequestRefused, SettingsError
from evalsuite.core.types import COUNTED_APART, Completion, Message, Record, Request, Sample, Score, Transcript
from evalsuite.gateway.handle import CompletionProvider, ModelHandle
from evalsuite.gateway.opening import make_credentials, open_gateway
from evalsuite.journal.answers import Answers
from evalsuite.judges import mutations
from evalsuite.judges.criteria import YesNo
from evalsuite.judges.judgements import PREFERENCE
from evalsuite.judges.prompts import SYSTEM_PROMPT, mark_sections
from evalsuite.judges.rubrics import Rubric
from evalsuite.judges.scorers import JudgeScorer
from evalsuite.models.choice import make_functions_importable, open_backend
from evalsuite.models.function import FunctionBackend
from evalsuite.output.reports.judges.certificate import JudgeResults
from evalsuite.results.judge_labels import NOT_ASKED
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from evalsuite.core.protocols import JudgedScorer
    from evalsuite.core.settings import Settings
    from evalsuite.gateway.gateway import Gateway

    Case = tuple[Sample, Transcript]

ScoresByCase = dict[str, dict[str, Score]]  # Scores by case and name; unreadable judgements give no score.


@dataclass(frozen=True, slots=True)
class AnswersToJudge:
    """The answers to judge, with their scorers and samples."""

    records: Sequence[Record]  # Records of the cases that have an answer.
    scorers: Sequence[JudgedScorer]  # The scorers that call the judge.
    samples: Mapping[str, Sample]  # Samples by id; `make_case` makes a missing sample from the case's record.
    passes: float | None = None  # The lowest score that passes; None uses each scorer's own threshold.

    def make_case(self, record: Record) -> Case:
        """Return the sample and the transcript of a record."""
        sample = self.samples.get(record.sample) or Sample(record.sample, record.input, record.target)
        return sample, record.transcript or Transcript("")

    def find_scale(self, name: str) -> tuple[tuple[float, float] | None, float | None]:
        """Return the lowest and highest possible value of a score, and its lowest passing value; None if unknown."""
        rubrics = (scorer for scorer in self.scorers if isinstance(scorer, Rubric) and scorer.name == name)
        rubric, scale, passes = next(rubrics, None), None, None
        if rubric and rubric.criteria:
            scale, passes = (rubric.criteria.worst, rubric.criteria.best), rubric.find_passing_score(rubric.criteria)
        elif rubric:
            scale, passes = (0.0, 1.0), 1.0 if rubric.passes is None else rubric.passes
        return (0.0, 1.0) if name.endswith(PREFERENCE) else scale, passes if self.passes is None else self.passes


def is_judged(scorer: JudgedScorer, case: Case) -> bool:
    """Tell whether a scorer would call the judge for a case; a benchmark's scorer may judge only some cases."""
    asks = getattr(scorer, "asks", None)
    return asks is None or asks(*case)


async def rejudge_answers(
    settings: Settings,
    answers: AnswersToJudge,
    mutation_limit: int,
    store: Path,
    people: Mapping[str, float] | None = None,
    seed: int = 0,
) -> list[JudgeResults]:
    """Judge the answers with one judge, and return one result per score.

    Args:
        mutation_limit: the maximum number of cases per kind of mutation, drawn at random with the seed.
        store: the file that stores the judge's answers, so that each answer is paid for only once.
        people: people's labels by case.
    """
    gateway = _open_judge_gateway(settings, store)
    try:
        caller = _JudgeCaller(_VersionedGateway(gateway), settings, answers)
        scores = await caller.score_records(answers.records)
        found = (name.removesuffix(COUNTED_APART) for case in scores.values() for name in case)
        names = list(dict.fromkeys(found)) or [""]
        results = [_make_judge_results(caller, name, scores) for name in names]
        for at, result in enumerate(results):
            if mutation_limit and result.scores:
                test = _MutationTest(caller, caller.scorer_of[result.score], result, mutation_limit, seed)
                results[at] = replace(result, mutations=await test.test_judge(people or {}))
    finally:
        await gateway.aclose()
    return results


def _open_judge_gateway(settings: Settings, store: Path) -> Gateway:
    judge = settings.judge_model or ""
    make_functions_importable(Path.cwd(), judge)
    try:
        open_backend(judge, settings.judge_base_url, make_credentials(settings)).check()
    except (SettingsError, BackendUnavailable) as error:
        raise type(error)(str(error).replace("--model", "--judge")) from error
    return open_gateway(settings, Answers.open(store))


@dataclass(frozen=True, slots=True)
class _VersionedGateway:
    """Sends requests to a gateway; reuses answers of a `function:` judge only while the judge's code is the same.

    For `function:` judges, ignore stored answers without a version; older stores contain such answers.
    """

    gateway: Gateway
    versions: dict[str, str] = field(default_factory=dict)  # The hash of the judge's code, by model.

    async def ask(self, request: Request) -> Completion:
        prefix, _, target = request.model.partition(":")
        if prefix != "function":
            return await self.gateway.ask(request)
        if request.model not in self.versions:
            self.versions[request.model] = FunctionBackend(target).hash_code()
        return await self.gateway.ask(replace(request, draw=f"code {self.versions[request.model]}"))


@dataclass(frozen=True, slots=True)
class _JudgeCaller:
    """Calls one judge for many answers at once."""

    asker: CompletionProvider
    settings: Settings
    answers: AnswersToJudge
    failures: list[ModelError] = field(default_factory=list)
    scorer_of: dict[str, JudgedScorer] = field(default_factory=dict)  # The scorer of each score, by the score's name.

    def _make_judge_handle(self) -> ModelHandle:
        settings, judge = self.settings, self.settings.judge_model or ""
        return ModelHandle(self.asker, judge, settings.judge_base_url, overrides=settings.judge_params)

    async def score_records(self, records: Sequence[Record]) -> ScoresByCase:
        calls = [(record, scorer) for record in records for scorer in self.answers.scorers]
        cases = ((scorer, self.answers.make_case(record)) for record, scorer in calls)
        scored = await asyncio.gather(*(self.score_case(scorer, case) for scorer, case in cases))
        values: ScoresByCase = {record.case: {} for record in records}
        for (record, scorer), scores in zip(calls, scored, strict=True):
            self.scorer_of.update(dict.fromkeys(scores, scorer))
            values[record.case] |= scores
        if self.failures and not any(values.values()):
            raise self.failures[0]
        return values

    async def score_case(self, scorer: JudgedScorer, case: Case) -> dict[str, Score]:
        try:
            values = await scorer.judged(*case, self._make_judge_handle())
        except JudgeError:
            return {}
        except (RequestRefused, CallFailed) as error:
            # If a content filter refuses one answer, the other answers are still judged.
            self.failures.append(error)
            return {}
        return {name: value if isinstance(value, Score) else Score(float(value)) for name, value in values.items()}

    async def request_change(self, kind: str, text: str) -> str | None:
        """Let the judge's model change a text; return None if the same model then judges the change to be wrong."""
        instruction = f"{mutations.WRITTEN[kind]} {mutations.REPLY}"
        changed = await self._ask_judge(f"{mark_sections([('text', text)])}\n\n{instruction}")
        if not mutations.is_plausible_change(kind, text, changed):
            return None
        check = YesNo(mutations.SAME_MEANING_QUESTION)
        asked = f"{mark_sections([('text', text), ('other', changed)])}\n\n{check.write_answer_request()}"
        try:
            same = check.read_answer(await self._ask_judge(asked))
        except ValueError:
            return None
        return changed if (same.value == 1.0) == (kind in mutations.TRICKS) else None

    async def _ask_judge(self, prompt: str) -> str:
        """Return the judge's reply to a prompt; "" if the call fails or the reply is cut off."""
        messages = [Message("system", SYSTEM_PROMPT), Message("user", prompt)]
        try:
            completion = await self._make_judge_handle().chat(messages)
        except (RequestRefused, CallFailed):
            return ""
        return "" if completion.finish_reason == "length" else completion.text.strip()


@dataclass(frozen=True, slots=True)
class _MutationTest:
    """Tests whether a judge lowers its score for corrupted answers, and whether it resists tricks."""

    caller: _JudgeCaller
    scorer: JudgedScorer
    judge: JudgeResults
    most: int  # The maximum number of cases per kind of mutation.
    seed: int

    async def test_judge(self, people: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """Return the outcomes of each test (such as `detects_numbers`) by case: 1.0 if the judge passed, else 0.0."""
        cases = {record.case: self.caller.answers.make_case(record) for record in self.caller.answers.records}
        good = {case: cases[case] for case in self._list_passing_cases(people)}
        found: dict[str, dict[str, float]] = {}
        detected: dict[str, tuple[Case, float]] = {}  # By case: the first detected corruption, and its score.
        for kind in mutations.CORRUPTIONS:
            changed = await self._corrupt_answers(kind, good, list(cases.values()))
            for case, score in (await self._judge_cases(changed)).items():
                found.setdefault(f"detects_{kind}", {})[case] = float(score < self.judge.scores[case])
                if score < self.judge.scores[case]:
                    detected.setdefault(case, (changed[case], score))
        for kind in mutations.TRICKS:
            found[f"resists_{kind}"] = await self._test_trick(kind, good, detected)
        return {metric: outcomes for metric, outcomes in found.items() if outcomes}

    def _list_passing_cases(self, people: Mapping[str, float]) -> list[str]:
        """List the cases that passed according to people; if there are none, those that passed according to the judge.

        If scores are not pass/fail, cases in the upper half of the scores count as passed. Cases with the lowest
        possible score are left out, because their score cannot fall when the answer is corrupted.
        """
        scores, lowest = self.judge.scores, self.judge.scale[0] if self.judge.scale else 0.0
        able = [case for case, score in scores.items() if score > lowest]
        for marks in ({case: people[case] for case in able if case in people}, {case: scores[case] for case in able}):
            middle = median(marks.values()) if marks else 0.0
            if good := [
                case
                for case, mark in marks.items()
                if (mark >= middle if (verdict := self.judge.find_verdict(mark)) is None else verdict > 0)
            ]:
                return good
        return []

    async def _corrupt_answers(
        self, kind: str, passing_cases: Mapping[str, Case], all_cases: Sequence[Case]
    ) -> dict[str, Case]:
        changed: dict[str, Case] = {}
        left = []
        for case in self._shuffle_cases(kind, passing_cases):
            rng = self._make_random_generator(kind, case)
            variants = mutations.corrupt_case(kind, passing_cases[case], all_cases, rng)
            variant = next((one for one in variants if self._has_other_prompt(passing_cases[case], one)), None)
            if variant is None:
                left.append(case)
            elif len(changed) < self.most:
                changed[case] = variant
        unchanged = {case: passing_cases[case] for case in left}
        return changed | await self._request_changes(kind, unchanged, self.most - len(changed))

    async def _request_changes(self, kind: str, cases: Mapping[str, Case], most: int) -> dict[str, Case]:
        """Let the judge's model change some answers; leave out changes that the same model then judges to be wrong."""
        some = self._shuffle_cases(kind, cases)[:most] if kind in mutations.WRITTEN else []
        old = {case: text[0] for case in some if (text := mutations.list_texts(cases[case][1]))}
        new = await asyncio.gather(*(self.caller.request_change(kind, text) for text in old.values()))
        written = {
            case: (cases[case][0], mutations.replace_text(cases[case][1], old[case], text))
            for case, text in zip(old, new, strict=True)
            if text
        }
        return {case: one for case, one in written.items() if self._has_other_prompt(cases[case], one)}

    async def _test_trick(
        self, kind: str, passing_cases: Mapping[str, Case], detected: Mapping[str, tuple[Case, float]]
    ) -> dict[str, float]:
        """Tell per case whether the judge resists a trick; apply tricks in `PERSUASIONS` only to corrupted answers."""
        names = self._shuffle_cases(kind, detected)[: self.most]
        sides = [{case: detected[case][0] for case in names}]
        sides += [] if kind in mutations.PERSUASIONS else [{case: passing_cases[case] for case in names}]
        sides = [{case: one for case, one in side.items() if mutations.list_texts(one[1])} for side in sides]
        resisted = dict.fromkeys(names, 1.0)
        # Exchange the answers if the judge compares two.
        rival = None
        if kind == "position" and isinstance(self.scorer, JudgeScorer) and len(self.scorer.rivals) == 1:
            rival = self.scorer, self.scorer.rivals[0]
        for original, cases in enumerate(sides):
            changed = await self._request_changes(kind, cases, self.most)
            for case, one in cases.items() if kind not in mutations.WRITTEN else ():
                other = _exchange_answers(one, *rival) if rival else mutations.apply_trick(kind, one, self.judge.judge)
                if other and self._has_other_prompt(one, other):
                    changed[case] = other
            scores = await self._judge_cases(changed)
            if rival:
                scores = {case: 1 - score for case, score in scores.items()}
            resisted = {case: value for case, value in resisted.items() if case in scores}
            for case in resisted:
                before, after = (self.judge.scores[case] if original else detected[case][1]), scores[case]
                beyond = after <= detected[case][1] if original else after >= self.judge.scores[case]
                if beyond or self.judge.find_verdict(before) != self.judge.find_verdict(after):
                    resisted[case] = 0.0
        return resisted

    async def _judge_cases(self, cases: Mapping[str, Case]) -> dict[str, float]:
        scored = await asyncio.gather(*(self.caller.score_case(self.scorer, case) for case in cases.values()))
        return _select_score_values(dict(zip(cases, scored, strict=True)), self.judge.score)

    def _has_other_prompt(self, before: Case, after: Case) -> bool:
        """Tell whether the judge would get different prompts for two cases; if unknown, assume that it would."""
        shown = getattr(self.scorer, "make_prompt_sections", None)
        return shown is None or shown(*before) != shown(*after)

    def _shuffle_cases(self, kind: str, cases: Iterable[str]) -> list[str]:
        return sorted(cases, key=lambda case: (self._make_random_generator(kind, case).random(), case))

    def _make_random_generator(self, kind: str, case: str) -> Random:
        return Random(f"{self.seed} {kind} {case}")  # noqa: S311 - a random choice of cases, not a secret


def _exchange_answers(case: Case, scorer: JudgeScorer, rival_key: str) -> Case:
    """Copy a case with its answer and its rival answer exchanged, so that the judge sees them in opposite order."""
    sample, transcript = case
    answer, other = scorer.make_judged_input(*case).answers
    exchanged = replace(sample, metadata={**sample.metadata, rival_key: answer})
    return exchanged, mutations.replace_text(transcript, transcript.answer, other)


def _make_judge_results(caller: _JudgeCaller, name: str, scores: ScoresByCase) -> JudgeResults:
    answers, scorer_of = caller.answers, caller.scorer_of
    of_score = [score[name] for score in scores.values() if name in score]
    # Leave out other scorers' facts, because the facts of two judges without a name have the same names.
    own = {other for other in scorer_of if scorer_of[other] is scorer_of.get(name)}
    values, rows, known = _select_score_values(scores, name), [], []
    scale, passes = answers.find_scale(name)
    for record in answers.records:
        given = scores[record.case]
        facts = {fact: value for each in given if each in own for fact, value in given[each].facts.items()}
        row = Row(record.case, record.sample, record.epoch, "passed", record.tags, {}, facts)
        if not own or is_judged(scorer_of[name], answers.make_case(record)):
            rows.append(row)
        elif record.case in values:
            known.append(replace(row, scores={name: values[record.case]}, facts={NOT_ASKED: True}))
    return JudgeResults(
        judge=caller.settings.judge_model or "",
        scores={row.case: values[row.case] for row in rows if row.case in values},
        known=Tally(known),
        asked=len(rows),
        untold=sum(_select_score_values(scores, name + COUNTED_APART).values()),
        passes=passes,
        signature=next((score.signature for score in of_score if score.signature), ""),
        score=name,
        nominal=name.endswith(PREFERENCE),
        scale=scale,
        lengths={record.case: len(record.transcript.answer) for record in answers.records if record.transcript},
        tally=Tally(rows),
    )


def _select_score_values(scores: ScoresByCase, name: str) -> dict[str, float]:
    return {case: float(scored[name].value) for case, scored in scores.items() if name in scored}
