"""`evalsuite judge sheet`: write a page and a table on which people label cases that a judge has judged."""

import argparse
import math
import sys
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import pstdev
from typing import Any

from evalsuite.builders.building import format_csv_sheet
from evalsuite.commands import AGAIN, make_declarations
from evalsuite.commands.judge import SCORES, combine_answers_with_scorers, hash_content, read_scores
from evalsuite.commands.judged_again import AnswersToJudge, is_judged
from evalsuite.core.errors import RunError, escape_for_terminal, escape_formula, shorten_to_beginning
from evalsuite.core.json_codec import digest
from evalsuite.core.option_values import declare_arguments, make_int_parser
from evalsuite.core.protocols import JudgedScorer
from evalsuite.core.types import Record
from evalsuite.judges.criteria import YesNo, read_sample_criteria
from evalsuite.judges.forms import ChoiceForm, Likert, ScoresForm
from evalsuite.judges.judgements import PREFERENCE, WINS
from evalsuite.judges.prompts import find_media, format_conversation
from evalsuite.judges.rubrics import Rubric, rubric
from evalsuite.judges.scorers import JudgeScorer
from evalsuite.metrics.text import convert_targets
from evalsuite.output.page.document import build_sheet_page
from evalsuite.results.run_folders import find_run_folder
from evalsuite.results.runs import Run, load_run

COLUMNS = ("case", "input", "answer", "label", "content")
LONGEST_CELL = 32_000  # Maximum characters of a text in the table; a spreadsheet's cell holds 32,767.
SPREAD_WEIGHT = 0.25  # Share of a case's sampling probability that depends on the judges' disagreement.


@declare_arguments(
    """
    --reports RUN
    --cases N          number of cases (default: 50)
    --seed N           seed of the random choice of cases (default: 0)
    --benchmark NAME   take cases of this benchmark only
    --criteria --scale
    --random           draw all cases with equal probability, even if judges disagree (for kappa and rho)
    --equally TAG,...  draw equally many cases for each value of these tags, such as domain,bucket
    --score NAME       the judge's score that people give (default: the first)
    -o --output FILE   a table, or a page if FILE ends with .html (default: labels.csv, and labels.html beside it)

    The sheet shows neither scores nor the model. The page shows what the judge sees, takes labels by keyboard and saves
    them as CSV; in the table, each person fills in the column `label` of a separate copy: yes or no, or a number.
    `evalsuite judge RUN --people FILE` then says how far a judge agrees with the labels.
    """,
    cases=(make_int_parser(1), 50),
    seed=0,
    output=Path("labels.csv"),
)
def run_label(options: argparse.Namespace) -> int:
    """Write the sheet; refuse to overwrite an existing file, because it may contain labels."""
    folder = find_run_folder(options.reports, options.name)
    run = load_run(folder, make_declarations(Path.cwd()))
    names = [options.benchmark] if options.benchmark else list(run.benchmarks)
    if unknown := [name for name in names if name not in run.benchmarks]:
        raise RunError(f"{folder.path} has no benchmark {unknown[0]}; it has {', '.join(run.benchmarks)}")
    cases = [row.case for name in names for row in run.benchmarks[name].tally]
    answered = [record for record in map(run.read, cases) if record.transcript is not None]
    if not answered:
        raise RunError(f"{folder.path} has no case with an answer to label")
    table, page = _choose_sheet_paths(options)
    questions = {name: _choose_question(run, name, answered, options) for name in names}
    answered = [record for record in answered if questions[record.benchmark].is_judged(record)]
    earlier = [] if options.random else read_scores(folder.path / AGAIN / "judge" / SCORES)
    spreads = [0.0 if options.random else questions[one.benchmark].compute_spread(one, earlier) for one in answered]
    strata = [_make_stratum_name(record, options.equally) for record in answered]
    weights = draw_cases_per_stratum(strata, spreads, options.cases, options.seed)
    chosen = [(answered[at], weight) for at, weight in weights.items()]
    weighted = len(set(weights.values())) > 1
    if page:
        shown = [questions[one.benchmark].make_page_case(one, weight, options.seed) for one, weight in chosen]
        content = {"key": f"labels {digest(shown)}", "file": page.with_suffix(".csv").name, "cases": shown}
        _write_new_file(page, build_sheet_page("Cases to label", {**content, "weighted": weighted}))
    if table:
        columns = (*COLUMNS, "weight") if weighted else COLUMNS
        listed = (_make_sheet_row(record, weight)[: len(columns)] for record, weight in chosen)
        _write_new_file(table, format_csv_sheet(columns, listed))
    written = " and ".join(str(path) for path in (table, page) if path)
    how = ", more of those on which judges disagree; --random draws all alike" if any(spreads) and weighted else ""
    how += f", of {len(set(strata))} strata ({options.equally})" if options.equally else ""
    sys.stdout.write(escape_for_terminal(f"{written}: {len(chosen)} of {len(cases)} cases to label{how}") + "\n")
    return 0


def draw_cases(spreads: Sequence[float], count: int, seed: int) -> dict[int, float]:
    """Draw cases, preferring those on which judges disagree; map a drawn case's index to its weight (1 / probability).

    Three quarters of a case's sampling probability do not depend on the case. The remaining quarter is proportional to
    the standard deviation of the judges' scores (`spreads`). With these probabilities, no weight exceeds 4/3 of the
    average weight. Cases are drawn by systematic sampling in random order (Madow, 1949).
    """
    random, total = Random(seed), math.fsum(spreads)  # noqa: S311 - a random part, no secret
    if count >= len(spreads) or not total:
        chosen = random.sample(range(len(spreads)), min(count, len(spreads)))
        return dict.fromkeys(chosen, len(spreads) / len(chosen))
    wanted = [(1 - SPREAD_WEIGHT) + SPREAD_WEIGHT * spread * len(spreads) / total for spread in spreads]
    certain: set[int] = set()
    while True:
        free = [at for at in range(len(spreads)) if at not in certain]
        scale = (count - len(certain)) / math.fsum(wanted[at] for at in free)
        reached = {at for at in free if wanted[at] * scale >= 1}
        if not reached:
            break
        certain |= reached
    likely = [1.0 if at in certain else share * scale for at, share in enumerate(wanted)]
    order = random.sample(range(len(spreads)), len(spreads))
    sums, start = list(accumulate(likely[at] for at in order)), random.random()
    chosen = [order[min(bisect(sums, start + step), len(order) - 1)] for step in range(count)]
    return {at: 1 / likely[at] for at in random.sample(chosen, len(chosen))}


def draw_cases_per_stratum(strata: Sequence[str], spreads: Sequence[float], count: int, seed: int) -> dict[int, float]:
    """Draw the same number of cases from each stratum, in random order; return weights as `draw_cases` does."""
    members: dict[str, list[int]] = {}
    for at, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(at)
    if count < len(members):
        raise RunError(f"--cases {count} is too few for {len(members)} strata; give at least one case for each")
    drawn: dict[int, float] = {}
    # If a stratum has too few cases, draw the missing number from the larger strata.
    for left, cases in zip(range(len(members), 0, -1), sorted(members.values(), key=len), strict=True):
        weights = draw_cases([spreads[at] for at in cases], (count - len(drawn)) // left, seed + left - 1)
        drawn |= {cases[at]: weight for at, weight in weights.items()}
    order = Random(seed).sample(list(drawn), len(drawn))  # noqa: S311 - a random order, no secret
    return {at: drawn[at] for at in order}


def _make_stratum_name(record: Record, tags: str | None) -> str:
    """Join a case's values of the given tags into the name of its stratum; refuse a tag that the case lacks."""
    names = tags.split(",") if tags else []
    if missing := [name for name in names if name not in record.tags]:
        raise RunError(f"--equally: {record.case} has no tag {missing[0]!r}; it has {', '.join(record.tags) or 'none'}")
    return ", ".join(record.tags[name] for name in names)


def _choose_sheet_paths(options: argparse.Namespace) -> tuple[Path | None, Path | None]:
    """Choose the paths of the sheet's table and page; refuse a path that exists."""
    output: Path = options.output
    if output.suffix == ".html":
        files: tuple[Path | None, Path | None] = (None, output)
    else:
        files = (output, output.with_suffix(".html") if output == Path("labels.csv") else None)
    for path in files:
        if path and path.exists():
            raise RunError(f"{path} already exists and may hold labels; choose another file with -o")
    return files


def _write_new_file(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}; choose another file with -o") from error


def _make_sheet_row(record: Record, weight: float) -> list[str]:
    answer = record.transcript.answer if record.transcript else ""
    # Shorten texts, because a spreadsheet's cell has a limit; replace NUL bytes, because no CSV file may contain them.
    shown = (shorten_to_beginning(text.replace("\0", "\ufffd"), LONGEST_CELL) for text in (record.input, answer))
    return [record.case, *shown, "", hash_content(record), repr(weight)]


def _choose_question(run: Run, bench: str, records: Sequence[Record], options: argparse.Namespace) -> "_SheetQuestion":
    """Choose the scorer whose question people answer: the scorer of `--score`, or the first one that needs a judge."""
    own = [record for record in records if record.benchmark == bench]
    plain = rubric("Is the answer right?")
    try:
        answers = combine_answers_with_scorers(run, bench, own, options) if own else AnswersToJudge(own, [plain], {})
    except RunError as error:
        sys.stdout.write(escape_for_terminal(f"the page asks whether the answer is right, because {error}") + "\n")
        answers = AnswersToJudge(own, [plain], {})
    named = {name: scorer for scorer in answers.scorers for name in _list_score_names(scorer)}
    if options.score and options.score not in named:
        there_is = ", ".join(named) or "one question, whether the answer is right; omit --score"
        raise RunError(f"{bench} has no question to people about {options.score}; it has {there_is}")
    score = options.score or next(iter(named), "")
    return _SheetQuestion(answers, named.get(score, answers.scorers[0]), score)


def _list_score_names(scorer: JudgedScorer) -> list[str]:
    if isinstance(scorer, Rubric):
        return [scorer.name]
    # Leave out scorers that compare three or more answers, because the page has shortcut keys for two only.
    return list(scorer.aspects) if isinstance(scorer, JudgeScorer) and len(scorer.rivals) < 2 else []


@dataclass(frozen=True, slots=True)
class _SheetQuestion:
    """A scorer's question to its judge; on the sheet, people answer the same question."""

    answers: AnswersToJudge
    scorer: JudgedScorer
    score: str  # The name of the score.

    def compute_spread(self, record: Record, earlier_scores: Sequence[Mapping[str, Any]]) -> float:
        """Compute the standard deviation of all judges' scores of a case, from the run and from `earlier_scores`."""
        parts = [part for part in (record.facts, *record.facts.values()) if isinstance(part, Mapping)]
        ballots = [ballot for part in parts for ballot in part.get("ballots") or () if isinstance(ballot, Mapping)]
        values = [ballot["scores"][self.score] for ballot in ballots if self.score in ballot.get("scores", {})]
        if self.score.endswith(PREFERENCE):
            values += [WINS[ballot["verdict"]] for ballot in ballots if ballot.get("verdict") in WINS]
        found = [line["cases"].get(record.case) for line in earlier_scores if line["score"] == self.score]
        values += [value for value in found if value is not None]
        return pstdev(values) if len(values) > 1 else 0.0

    def is_judged(self, record: Record) -> bool:
        return is_judged(self.scorer, self.answers.make_case(record))

    def make_page_case(self, record: Record, weight: float, seed: int) -> dict[str, Any]:
        """Describe a case for the page; if people compare two answers, these are in random order."""
        sample, transcript = case = self.answers.make_case(record)
        scorer, low, high = self.scorer, 0.0, 1.0
        choices = [("y", "yes", "yes"), ("n", "no", "no")]
        question, media = "Is the answer right?", find_media(sample.input)
        shown = sample.target if hasattr(scorer, "asks") else None
        right = [("right", "\n".join(convert_targets(shown)))] if shown else []
        sections = [("question", format_conversation(sample.input)), *right, ("answer", transcript.answer)]
        if isinstance(scorer, Rubric):
            criteria = scorer.criteria or read_sample_criteria(sample)
            question, media = scorer.write_question(sample), list(scorer.list_media(*case))
            sections = scorer.make_prompt_sections(*case)
            low, high = criteria.worst, criteria.best
            choices = choices if isinstance(criteria, YesNo) else _list_scale_points(criteria)
        elif isinstance(scorer, JudgeScorer):
            swapped = bool(scorer.rivals) and Random(f"{seed} {record.case}").random() < 0.5  # noqa: S311 - no secret
            aspect = scorer.aspects[self.score]
            question = (ChoiceForm(aspect) if scorer.rivals else ScoresForm((aspect,))).write_judging_task()
            sections = scorer.make_judged_input(*case).list_parts(swapped=swapped)
            first, second = ("second", "first") if swapped else ("first", "second")
            choices = [("1", "answer 1 is better", first), ("2", "answer 2 is better", second), ("0", "tie", "tie")]
            if not scorer.rivals:
                low, high, choices = aspect.low, aspect.high, _list_scale_points(aspect)
        urls = [part["image_url"].get("url") for part in media if isinstance(part.get("image_url"), Mapping)]
        pictures = [url for url in urls if url and isinstance(url, str)]
        # The page loads no remote file, so a remote picture is shown as its address.
        sections = [*sections, *(("picture", url) for url in pictures if not url.startswith("data:"))]
        return {
            "case": escape_formula(record.case),
            "content": hash_content(record),
            "question": question,
            "sections": sections,
            "choices": choices,
            "range": None if choices else [low, high],
            "pictures": [url for url in pictures if url.startswith("data:image/")],
            "weight": weight,
        }


def _list_scale_points(scale: Any) -> list[tuple[str, str, str]]:
    """List a scale's points if each is a single digit (one keyboard key); return an empty list for other scales."""
    if not isinstance(scale, Likert) or scale.low < 0 or scale.high > 9:
        return []
    return [(str(point), "", str(point)) for point in range(scale.low, scale.high + 1)]
