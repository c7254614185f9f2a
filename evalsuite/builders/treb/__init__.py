"""Make TReB questions and answers from a folder of tables (`evalsuite build treb`), by templates or by models.

The templates follow the rule-based construction of arXiv 2506.18421 for Query, Selection, General Operations and
Distribution Testing. A template's answer is computed in plain Python from the table's cells. A question-answer pair is
kept only if its pandas program, run in the sandbox, prints the same answer. With `--model`, models make questions for
the other subtasks.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from random import Random

from evalsuite.builders.building import format_csv_sheet
from evalsuite.builders.model_session import TAKEN, add_options
from evalsuite.builders.treb.model_questions import (
    DISPUTED,
    REVIEW_COLUMNS,
    SUBTASKS,
    TASKS,
    VOTES,
    ZERO_SHOT,
    BuiltPairs,
    add_model_pairs,
    make_record,
)
from evalsuite.builders.treb.sheet import Sheet, list_table_files, read_sheets
from evalsuite.builders.treb.templates import TEMPLATES, TemplatePair, has_chinese_names, is_same_answer, translate_pair
from evalsuite.core.errors import SettingsError, write_count
from evalsuite.core.option_values import declare_arguments, make_int_parser
from evalsuite.sandbox import Sandbox, TableFile

TRIES = 5  # Attempts per pair; an attempt fails if the random draw does not allow a question.


def _parse_subtask(name: str) -> str:
    if name not in SUBTASKS:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(SUBTASKS)}")
    return name


@declare_arguments(
    f"""
    tables=FOLDER?  folder of tables (CSV, TSV, Excel, SQLite) with one header row; may be left out with --zero-shot,
        which then makes all questions
    --out DIR       folder for the JSON files and csv/; for --data, call it .../treb
    --seed SEED     the same folder and seed give the same files (default 0)
    --each EACH     maximum pairs per template and table (default 1)
    models=--model MODEL*              a model that makes questions for the other subtasks, named as for a run; may be
        repeated; the first model writes the questions, and all models answer them as candidates
    judge_models=--judge-model MODEL*  a discriminator: only questions with its full marks are kept; the first one also
        compares answers and classifies questions; may be repeated (the paper has two)
    --judge-base-url URL               address of the judges' server
    --votes N       number of candidate answers, by the models in turn; all must agree, or people decide (default
        {VOTES})
    subtasks=--subtask NAME*  a subtask for which models make questions ({", ".join(SUBTASKS)}); may be repeated
        (default: all)
    --zero-shot N   tables that the first model invents, for a question of each of {", ".join(ZERO_SHOT)} (default 0)
    """,
    required=("out",),
    seed=0,
    each=(make_int_parser(1), 1),
    votes=(make_int_parser(1), VOTES),
    zero_shot=(make_int_parser(1), 0),
    subtasks=_parse_subtask,
    extend_parser=partial(add_options, names=set(TAKEN) - {"model"}),
)
def run_build(args: argparse.Namespace) -> int:
    """Build pairs of question and answer, print their number, and return the exit status: 1 if none was made."""
    if args.tables is None and not (args.models and args.zero_shot):
        raise SettingsError("name a folder of tables, or --model and --zero-shot for tables that a model invents")
    paths = list_table_files(args.tables) if args.tables else []
    built = asyncio.run(build_pairs(paths, seed=args.seed, limit=args.each))
    if args.models:
        add_model_pairs(args, built)
    for name, reason in (built.skipped | built.refuted).items():
        sys.stderr.write(f"{name} is left out: {reason}\n")
    if not built.records and not built.disputed:
        source = f"the tables in {args.tables}" if args.tables else "invented tables"
        sys.stderr.write(f"no question could be made of {source}\n")
        return 1
    try:
        write_pairs(built, args.out)
    except OSError as error:
        raise SettingsError(f"--out {args.out} cannot be written: {error.strerror}") from error
    counts = Counter(record["id"].split("|")[0] for record in built.records)
    by_subtask = ", ".join(f"{name} {count}" for name, count in counts.items())
    tables = write_count(len(built.sheets) or len(built.further), "table")
    sys.stdout.write(f"{write_count(len(built.records), 'pair')} from {tables} in {args.out}: {by_subtask}\n")
    if undecided := sum(not row[-1] for row in built.disputed):
        asked = f"fill in the column accepted of {args.out / DISPUTED}, and build again"
        sys.stdout.write(f"{write_count(undecided, 'pair')} disputed: {asked}\n")
    return 0


async def build_pairs(paths: Iterable[Path], *, seed: int = 0, limit: int = 1) -> BuiltPairs:
    """Make question-answer pairs about all tables, and verify them."""
    built, sandbox = BuiltPairs(), Sandbox(preload=("numpy", "pandas", "scipy.stats"))
    try:
        for path in paths:
            for name, sheet in read_sheets(path):
                if isinstance(sheet, str):
                    built.skipped[name] = sheet
                    continue
                # Rename a table if a table of another file has the same name.
                names = chain([sheet.name], (f"{sheet.name}_{number}" for number in count(2)))
                named = replace(sheet, name=next(each for each in names if each not in built.sheets))
                built.sheets[named.name] = named
                await _add_question_pairs(named, built, sandbox, Random(f"{seed} {name}"), limit)  # noqa: S311
    finally:
        await sandbox.aclose()
    return built


def write_pairs(built: BuiltPairs, out: Path) -> None:
    """Write the pairs to one JSON file per subtask, and the tables to `csv/`."""
    (out / "csv").mkdir(parents=True, exist_ok=True)
    for sheet in (*built.sheets.values(), *built.further):
        (out / "csv" / f"{sheet.name}.csv").write_text(sheet.table.format_csv(), encoding="utf-8", newline="")
    for subtask in TASKS:
        records = [record for record in built.records if record["id"].startswith(f"{subtask}|")]
        if records or (subtask in TEMPLATES and built.sheets):
            text = json.dumps(records, ensure_ascii=False, indent=1)
            (out / f"{subtask}.json").write_text(f"{text}\n", encoding="utf-8")
    if built.disputed:
        (out / DISPUTED).write_text(format_csv_sheet(REVIEW_COLUMNS, built.disputed), "utf-8", newline="")


async def _add_question_pairs(sheet: Sheet, built: BuiltPairs, sandbox: Sandbox, random: Random, limit: int) -> None:
    """Add a table's template pairs if their programs print their answers; note why other pairs are left out."""
    sent = {"df": TableFile(sheet.table.format_csv().encode())}
    chinese = has_chinese_names(sheet)
    for name, english in _make_template_pairs(sheet, random, limit):
        pair = translate_pair(english) if chinese else english
        execution = await sandbox.run(pair.program, sent)
        printed = execution.stdout.strip()
        if execution.error is not None or not is_same_answer(printed, pair.answer):
            built.refuted[name] = execution.error or f"its program prints {printed!r} instead of {pair.answer!r}"
        else:
            more = {"question_en": english.question} if pair is not english else {}
            built.records.append(make_record(name, pair, sheet) | more)


def _make_template_pairs(sheet: Sheet, random: Random, limit: int) -> Iterator[tuple[str, TemplatePair]]:
    """Yield question-answer pairs with their ids; no question occurs twice."""
    for subtask, templates in TEMPLATES.items():
        for template in templates:
            pairs_by_question: dict[str, TemplatePair] = {}
            for _ in range(TRIES * limit):
                pair = template(sheet, random) if len(pairs_by_question) < limit else None
                if pair:
                    pairs_by_question.setdefault(pair.question, pair)
            for number, pair in enumerate(pairs_by_question.values(), 1):
                yield f"{subtask}|generated|{sheet.name}|{template.__name__.removeprefix('_ask_')}_{number}", pair
