"""`evalsuite compare`: compare runs, cases (`cases`), two tables (`tables`), or releases over time (`history`)."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from evalsuite.commands import make_declarations, print_lines
from evalsuite.commands.score import print_score, read_table, score_pair, write_diff_page
from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import RunError, escape_for_terminal, write_count
from evalsuite.core.option_values import declare_arguments, make_int_parser
from evalsuite.decisions.verdict import read_comparison_rules
from evalsuite.output.reports.case_block import add_baseline_answer, format_case_block
from evalsuite.output.reports.markdown import convert_for_terminal
from evalsuite.results.run_folders import INFO, RunFolder, explain_interruption, find_run_folder
from evalsuite.results.runs import Run, load_run
from evalsuite.results.tally import Row


@declare_arguments("""
    --reports --code
    names=RUN+     two runs or more: names or folders, or `last`
    --label NAME*  label of a run; once for each run, in their order (default: the name of its model)
    --to DIR       folder for comparison.md, .html and .json and the pictures (default: reports/compare-A-B)
""")
def run_compare(options: argparse.Namespace) -> int:
    """Write the files of a comparison of runs, and print its summary."""
    from evalsuite.output.reports.compare import write_comparison

    folders = [find_run_folder(options.reports, name) for name in options.names]
    target = options.to or options.reports / ("compare-" + "-".join(folder.name for folder in folders))[:120]
    sys.stdout.write(write_comparison(folders, target, make_declarations(options.code), options.label))
    return 0


# A case's rows in the first and the second run, and the greatest change of a score (0.0 without common scores).
ChangedCase = tuple[Row, Row, float]


@declare_arguments(
    """
    --reports
    first=A    a run's name or folder, or `last`
    second=B   the other run, named like A
    --answers  also show each case's question and answers
    --most N   number of cases to list (default: 50)
    """,
    most=(make_int_parser(0), 50),
)
def run_diff(options: argparse.Namespace) -> int:
    """Print the cases that differ between two runs."""
    before, after = (load_run(find_run_folder(options.reports, name)) for name in (options.first, options.second))
    changes = find_changed_cases(before, after)
    for old, new, change in changes[: options.most]:
        line = f"{old.outcome:>7} -> {new.outcome:<7} {change:+.4f}  {new.case}"
        sys.stdout.write(f"{escape_for_terminal(line)}\n")
        if options.answers:
            block = format_case_block(after.read(new.case))
            sys.stdout.write(f"{add_baseline_answer(block, before.read(new.case))}\n\n")
    print_lines(_summarise_changed_cases(before, after, changes, options.most))
    return 0


def find_changed_cases(before: Run, after: Run) -> list[ChangedCase]:
    """List the cases that differ: different outcomes come first, then the largest changes of a score."""
    rows = {row.case: row for row in before.all_rows()}
    changes = []
    for new in after.all_rows():
        if old := rows.get(new.case):
            differences = [new.scores[name] - old.scores[name] for name in new.scores if name in old.scores]
            change = max(differences, key=abs, default=0.0)
            if change or old.outcome != new.outcome:
                changes.append((old, new, change))
    return sorted(changes, key=lambda each: (each[0].outcome == each[1].outcome, -abs(each[2]), each[1].case))


def _summarise_changed_cases(before: Run, after: Run, changes: list[ChangedCase], most_listed: int) -> Iterator[str]:
    if len(changes) > most_listed:
        yield f"... and {len(changes) - most_listed} more"
    both = write_count(len(before.offsets.keys() & after.offsets.keys()), "case")
    flipped = sum(old.outcome != new.outcome for old, new, _ in changes)
    yield f"{both} in both runs: {flipped} with another outcome, {len(changes) - flipped} with other scores alone"
    for run, other in ((before, after), (after, before)):
        if alone := len(run.offsets.keys() - other.offsets.keys()):
            yield f"{write_count(alone, 'case')} in {run.folder.name} alone"


@declare_arguments(
    """
    first=A      a file with a table, such as a model's answer
    second=B     the file with the wanted table
    --format --any-order --html
    --most N     number of cells to list (default: 50)
    """,
    first=Path,
    second=Path,
    most=(make_int_parser(0), 50),
)
def run_table_diff(options: argparse.Namespace) -> int:
    """Print the table with its differences marked, then a line for each cell that differs."""
    pair = {"prediction": read_table(options.first), "reference": read_table(options.second)}
    score = score_pair(pair, options.format, any_order=options.any_order)
    differing = score.differences
    print_score(score)
    print_lines(["", *differing[: options.most], *([] if differing else ["no cell differs"])])
    if len(differing) > options.most:
        sys.stdout.write(f"... and {len(differing) - options.most} more (--most)\n")
    write_diff_page([(options.first.name, score)], options.html)
    return 0


DRIFT_STATUS = 11  # Exit status if the newest release has drifted from a reference; a regression has the same status.


@declare_arguments("""
    --reports --code
    names=RUN*        releases in their order: names or folders (default: all finished runs of the folder, by time)
    --reference RUN*  run with which every later release is compared; may be repeated (default: the first release)
    --to DIR          folder for history.md, page and pictures (default: reports/history)

    The exit status is 11 if the newest release has drifted from a reference.
""")
def run_history(options: argparse.Namespace) -> int:
    """Write the history; return `DRIFT_STATUS` if the newest release has drifted from a reference, otherwise 0."""
    from evalsuite.decisions.history import track_metrics
    from evalsuite.output.page.write import COMPARISON
    from evalsuite.output.reports.compare import write_history

    runs = _load_releases(options)
    by_path = {run.folder.path.resolve(): run for run in runs}
    folders = [find_run_folder(options.reports, name) for name in options.reference]
    declarations = make_declarations(options.code)
    references = [by_path.get(folder.path.resolve()) or load_run(folder, declarations) for folder in folders]
    courses = track_metrics(runs, references or [runs[0]], read_comparison_rules(runs[-1].info.get("settings", {})))
    target = options.to or options.reports / "history"
    file = write_history(runs, courses, target)
    latest = [line for course in courses for line in course.list_drifts(latest_only=True)]
    text = convert_for_terminal(file.read_text("utf-8"))
    print_lines([text, "", f"history: {file}", f"page:    {target / COMPARISON}"])
    return DRIFT_STATUS if latest else 0


def _load_releases(options: argparse.Namespace) -> list[Run]:
    """Read the named runs, or else all finished runs, oldest first; refuse fewer than two."""
    declarations = make_declarations(options.code)
    if options.names:
        runs = [load_run(find_run_folder(options.reports, name), declarations) for name in options.names]
        found = f"{runs[0].folder.name} alone was named"
    else:
        runs = _load_finished_runs(options.reports, declarations)
        found = f"{options.reports} holds {write_count(len(runs), 'finished run')}"
    if len(runs) < 2:
        raise RunError(f"a history needs two releases or more; {found}")
    return runs


def _load_finished_runs(reports: Path, declarations: Declarations) -> list[Run]:
    """Read all finished runs that are not shards, oldest first; report each damaged run on standard error."""
    runs = []
    for path in sorted(reports.glob(f"*/{INFO}")):
        folder = RunFolder(path.parent)
        try:
            info = folder.info()
            if explain_interruption(info) is None and not info.get("settings", {}).get("shard"):
                runs.append(load_run(folder, declarations))
        except RunError as error:
            sys.stderr.write(f"{folder.name} is left out: {escape_for_terminal(str(error))}\n")
    return sorted(runs, key=lambda run: (run.info.get("started", ""), run.folder.name))
