"""`evalsuite judge RUN --judge MODEL`: judges an earlier run's answers, and says how far the judge can be trusted."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.commands.again import AGAIN
from evalsuite.commands.arguments import add_reports_folder
from evalsuite.errors import JudgeError, RunError, SettingsError
from evalsuite.judging.people_labels import joined, read_labels
from evalsuite.judging.probes import probes
from evalsuite.judging.rubrics import rubric
from evalsuite.reporting.judges.certificate import JudgeResults, certificate
from evalsuite.reporting.markdown import render
from evalsuite.results.runs import find_folder, load_run
from evalsuite.settings import OPTIONS, read_settings
from evalsuite.types import Sample, Score

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from evalsuite.gateway.gateway import Gateway
    from evalsuite.judging.rubrics import Rubric
    from evalsuite.settings import Settings
    from evalsuite.types import Record

TAKEN = (
    "judge_base_url",
    "judge_param",
    "judge_key_env",
    "max_connections",
    "max_rpm",
    "max_tpm",
    "max_cost",
    "price",
)
"""Those of the house's options that this command has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the run, the judges, what they judge, and people's labels."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`; it is left as it is")
    parser.add_argument(
        "--judge",
        action="append",
        required=True,
        metavar="MODEL",
        help="a judge; may be repeated, to compare",
    )
    parser.add_argument(
        "--criteria", required=True, metavar="QUESTION", help="what is judged, as in rubric(...)"
    )
    parser.add_argument("--scale", metavar="LOW-HIGH", help="for example 1-5; without it, yes or no")
    parser.add_argument(
        "--passes", type=float, metavar="SCORE", help="the least score that passes (default: the best)"
    )
    parser.add_argument("--benchmark", metavar="NAME", help="which of the run's benchmarks")
    sheet = "a sheet of `evalsuite label`; may be repeated"
    parser.add_argument("--people", action="append", type=Path, default=[], metavar="FILE", help=sheet)
    parser.add_argument(
        "--probes", type=int, default=20, metavar="N", help="cases to probe the judge on (default: 20)"
    )
    for option in OPTIONS:
        if option.name in TAKEN:
            parser.add_argument(
                option.flag,
                dest=option.name,
                metavar=option.metavar,
                action="append" if option.repeat else "store",
                help=option.help.partition(". Default: ")[0].replace("%%", "%").replace("%", "%%"),
            )


def run(options: argparse.Namespace) -> int:
    """Prints the certificate and writes it beside the answers of the judges, which are paid for once."""
    folder = find_folder(options.reports, options.name)
    records = _records(folder, options.benchmark)
    sheets = [read_labels(path) for path in options.people]
    people = joined(sheets)
    if people and not set(people) & {record.case for record in records}:
        raise RunError(f"no label is of a case of {folder.path}: a label names its case as the sheet did")
    scorer = _scorer(options)
    target = folder.path / AGAIN / "judge"
    target.mkdir(parents=True, exist_ok=True)
    judges = [_judged(name, scorer, records, options, target / "store.sqlite") for name in options.judge]
    text = render([certificate(judges, people, len(sheets))], ())
    (target / "certificate.md").write_text(text, "utf-8")
    sys.stdout.write(f"{text}\n{target / 'certificate.md'}\n")
    return 0


def _records(folder: Any, benchmark: str | None) -> list[Record]:
    run = load_run(folder)
    names = [benchmark] if benchmark else list(run.benchmarks)
    if len(names) != 1 or names[0] not in run.benchmarks:
        raise RunError(f"name one of the run's benchmarks with --benchmark: {', '.join(run.benchmarks)}")
    records = [run.read(row.case) for row in run.benchmarks[names[0]].tally]
    answered = [record for record in records if record.transcript is not None]
    if not answered:
        raise RunError(f"{folder.path} has no answer to judge")
    return answered


def _scorer(options: argparse.Namespace) -> Rubric:
    scale = None
    if options.scale:
        low, _, high = options.scale.partition("-")
        if not (low.isdecimal() and high.isdecimal()):
            raise SettingsError(f"--scale {options.scale}: write LOW-HIGH, for example 1-5")
        scale = (int(low), int(high))
    return rubric(options.criteria, scale=scale, passes=options.passes)


def _judged(
    name: str, scorer: Rubric, records: list[Record], options: argparse.Namespace, store: Path
) -> JudgeResults:
    from evalsuite.gateway.loop import BackgroundLoop

    values = {option: getattr(options, option) for option in TAKEN}
    settings = read_settings({**values, "judge_model": name})
    background = BackgroundLoop()
    try:
        return background.run(_all(settings, scorer, records, options.probes, store))
    finally:
        background.close()


async def _all(
    settings: Settings, scorer: Rubric, records: list[Record], probed: int, store: Path
) -> JudgeResults:
    gateway = _open(settings, store)
    try:
        judging = _Judging(gateway, settings, scorer)
        scores = await judging.scores({record.case: record for record in records})
        changed = probes({one.case: one.transcript.answer for one in records[:probed] if one.transcript})
        by_case = {record.case: record for record in records}
        results = {
            name: await judging.scores(
                {case: _answering(by_case[case], text) for case, text in answers.items()}
            )
            for name, answers in changed.items()
        }
    finally:
        await gateway.aclose()
    passes = scorer.passes if scorer.passes is not None else scorer.criteria.best if scorer.criteria else 1.0
    return JudgeResults(settings.judge_model or "", scores, len(records), passes, results, judging.signature)


def _open(settings: Settings, store: Path) -> Gateway:
    from evalsuite.gateway.opening import credentials_of, open_gateway
    from evalsuite.journal.answers import Answers
    from evalsuite.models import open_backend

    open_backend(settings.judge_model or "", settings.judge_base_url, credentials_of(settings)).check()
    return open_gateway(settings, Answers.open(store))


class _Judging:
    """One judge and the criteria, for many answers at once."""

    def __init__(self, gateway: Gateway, settings: Settings, scorer: Rubric) -> None:
        self._gateway, self._settings, self._scorer = gateway, settings, scorer
        self.signature = ""

    async def scores(self, records: Mapping[str, Record]) -> dict[str, float]:
        """By case; what could not be read is left out."""
        values = await asyncio.gather(*map(self._score, records.values()))
        return {case: value for case, value in zip(records, values, strict=True) if value is not None}

    async def _score(self, record: Record) -> float | None:
        from evalsuite.gateway.handle import ModelHandle

        settings = self._settings
        judge = ModelHandle(
            self._gateway,
            settings.judge_model or "",
            settings.judge_base_url,
            overrides=settings.judge_params,
        )
        sample = Sample(record.sample, record.input, record.target)
        if record.transcript is None:
            return None
        try:
            scored = await self._scorer.judged(sample, record.transcript, judge)
        except JudgeError:
            return None
        (score,) = scored.values()
        if isinstance(score, Score):
            self.signature = score.facts[self._scorer.name]["signature"]
        return float(score.value) if isinstance(score, Score) else float(score)


def _answering(record: Record, answer: str) -> Record:
    if record.transcript is None:
        return record
    return replace(record, transcript=replace(record.transcript, answer=answer))
