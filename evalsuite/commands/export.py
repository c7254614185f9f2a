"""`evalsuite export`: write cases or numbers for other tools, a `paper`, a `bundle` or a leaderboard's `submission`."""

import argparse
import csv
import json
import re
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Any

from evalsuite import __version__
from evalsuite.commands import make_declarations, print_lines
from evalsuite.core.errors import RunError, escape_formula, write_count
from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.types import Message, Record
from evalsuite.decisions.verdict import estimate_metric
from evalsuite.output.paper import format_latex_table, write_paper
from evalsuite.output.reports.compare import make_primary_metrics_table, make_run_labels
from evalsuite.output.reports.plots import can_draw_charts
from evalsuite.results.run_folders import INFO, JOURNAL, RECORDS, REPORT, SUMMARY, find_run_folder
from evalsuite.results.runs import Run, flatten_record, list_columns, load_run


def _list_case_rows(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Yield one flat row per case, with the run's name first."""
    for run in runs:
        for record in run.records:
            yield {"run": run.folder.name, **flatten_record(record)}


def _write_cases_as_csv(runs: Sequence[Run], target: Path) -> None:
    # Read the records twice, first to find the columns, because all rows together may not fit into memory.
    columns = list_columns(_list_case_rows(runs))
    with target.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(map(escape_formula, columns))
        for row in _list_case_rows(runs):
            writer.writerow([escape_formula(row.get(name)) for name in columns])


def _write_cases_as_jsonl(runs: Sequence[Run], target: Path) -> None:
    with target.open("w", encoding="utf-8", errors="replace") as stream:
        for run in runs:
            for record in run.records:
                plain = {"run": run.folder.name, **encode_record(record)}
                stream.write(json.dumps(plain, ensure_ascii=False, default=dict) + "\n")


def _write_cases_as_parquet(runs: Sequence[Run], target: Path) -> None:
    try:
        import duckdb
        import pandas as pd
    except ImportError as error:
        raise RunError("Parquet needs duckdb and pandas: pip install 'evalsuite[build,sandbox]'") from error
    frame = pd.DataFrame(_list_case_rows(runs))
    # A Parquet column has one type, but a target may be text in one case and a number in another.
    frame["target"] = frame["target"].map(lambda value: None if value is None else str(value))
    with duckdb.connect() as database:
        database.register("cases", frame)
        database.table("cases").write_parquet(str(target))


def _write_benchmarks_as_latex(runs: Sequence[Run], target: Path) -> None:
    table = make_primary_metrics_table(runs, make_run_labels(runs))
    text = format_latex_table(table, "Benchmarks with 95% intervals.")
    target.write_text(f"% needs \\usepackage{{booktabs}}\n{text}", "utf-8")


def _write_inspect_logs(runs: Sequence[Run], target: Path) -> list[Path]:
    files = []
    for run in runs:
        for name in run.benchmarks:
            file = target / _make_inspect_file_name(run, name)
            target.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(_make_inspect_log(run, name), indent=1, default=dict), "utf-8")
            files.append(file)
    return files


def _write_lm_eval_results(runs: Sequence[Run], target: Path) -> None:
    if len(runs) > 1:
        raise RunError("lm-eval's results are of one run; export each by itself")
    target.write_text(json.dumps(_make_lm_eval_results(runs[0]), indent=1), "utf-8")


WIDTH = 2 * NormalDist().inv_cdf(0.975)  # The width of a normal 95% interval in standard errors (about 3.92).


def _make_lm_eval_results(run: Run) -> dict[str, Any]:
    """Convert a run to lm-eval's result format; standard errors come from the 95% intervals, which respect clusters."""
    benches = run.benchmarks
    return {
        "results": {name: {"alias": name, **_make_lm_eval_values(run, name)} for name in benches},
        "configs": {name: {"task": name, "dataset_path": bench.source} for name, bench in benches.items()},
        "versions": dict.fromkeys(benches, 0),
        "n-samples": {
            name: {"original": len(bench.tally), "effective": sum(row.outcome != "error" for row in bench.tally)}
            for name, bench in benches.items()
        },
        "higher_is_better": {
            name: {metric: not run.lower_is_better(name, metric) for metric in bench.tally.metrics()}
            for name, bench in benches.items()
        },
        "config": {"model": run.info.get("model"), "evalsuite_version": __version__},
        "date": run.info.get("started"),
    }


def _make_lm_eval_values(run: Run, benchmark: str) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for metric in run.benchmarks[benchmark].tally.metrics():
        if (estimate := estimate_metric(run, benchmark, metric)) is not None:
            values[f"{metric},none"] = estimate.value
            low, high = estimate.low, estimate.high
            values[f"{metric}_stderr,none"] = "N/A" if low is None or high is None else (high - low) / WIDTH
    return values


INSPECT_FORMAT = 2


def _make_inspect_log(run: Run, benchmark: str) -> dict[str, Any]:
    """Convert one benchmark of a run to an evaluation log of the tool inspect."""
    bench = run.benchmarks[benchmark]
    records = [run.read(row.case) for row in bench.tally]
    started = str(run.info.get("started", ""))
    samples = list(dict.fromkeys(record.sample for record in records))
    errors = sum(record.outcome == "error" for record in records)
    scores = []
    for name in bench.tally.metrics():
        estimate = estimate_metric(run, benchmark, name)
        mean = {"name": "mean", "value": estimate.value if estimate else 0.0, "params": {}}
        scores.append({"name": name, "scorer": name, "params": {}, "metrics": {"mean": mean}})
    return {
        "version": INSPECT_FORMAT,
        "status": "success",
        "eval": {
            "eval_id": f"{run.folder.name}-{benchmark}",
            "run_id": run.folder.name,
            "created": started,
            "task": benchmark,
            "task_id": f"{run.folder.name}-{benchmark}",
            "task_version": 0,
            "task_attribs": {},
            "task_args": {},
            "dataset": {"name": bench.source, "samples": len(samples), "sample_ids": samples},
            "model": bench.model,
            "model_args": {},
            "config": {"epochs": max((record.epoch for record in records), default=1)},
            "packages": {"evalsuite": __version__},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": len(records), "completed_samples": len(records) - errors, "scores": scores},
        "stats": {"started_at": started, "completed_at": started, "model_usage": _sum_tokens_by_model(records)},
        "samples": [_make_inspect_sample(record) for record in records],
    }


def _make_inspect_file_name(run: Run, benchmark: str) -> str:
    """Name the log file like inspect, beginning with the time, because inspect's viewer ignores other names.

    The name keeps only letters, digits and `.+-`, because a run of another machine may have any name.
    """
    begun = str(run.info.get("started") or "1970-01-01T00:00:00+00:00")
    parts = [re.sub(r"[^\w.+-]|_", "-", part) for part in (begun, benchmark, run.folder.name)]
    return f"{'_'.join(parts)}.json"


def _sum_tokens_by_model(records: list[Record]) -> dict[str, Any]:
    usage: dict[str, Any] = {}
    for record in records:
        counted = usage.setdefault(record.model, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0})
        counted["input_tokens"] += record.usage.prompt_tokens
        counted["output_tokens"] += record.usage.completion_tokens
        counted["total_tokens"] += record.usage.prompt_tokens + record.usage.completion_tokens
    return usage


def _make_inspect_sample(record: Record) -> dict[str, Any]:
    transcript, model = record.transcript, record.model
    answer, messages = (transcript.answer, transcript.messages) if transcript else ("", ())
    target = record.target if isinstance(record.target, list | tuple) else [record.target]
    sample: dict[str, Any] = {
        "id": record.sample,
        "epoch": record.epoch,
        "input": record.input,
        "target": [str(value) for value in target if value is not None],
        "messages": [_make_inspect_message(message, model) for message in messages],
        "output": {
            "model": model,
            "choices": [
                {"message": {"role": "assistant", "content": answer, "source": "generate"}, "stop_reason": "stop"}
            ],
            "completion": answer,
        },
        "scores": {
            name: {"value": value, "answer": answer, "explanation": record.notes.get(name)}
            for name, value in record.scores.items()
        },
        "metadata": {"case": record.case, "outcome": record.outcome, "tags": dict(record.tags)},
        "total_time": record.seconds,
    }
    if record.outcome == "error":
        words = f"{record.cause}: {record.error}"
        sample["error"] = {"message": words, "traceback": words, "traceback_ansi": words}
    return sample


def _make_inspect_message(message: Message, model: str) -> dict[str, Any]:
    role = "system" if message.role == "developer" else message.role
    plain: dict[str, Any] = {"role": role, "content": message.content}
    if role == "assistant":
        plain["model"] = model
        calls = [
            {"id": call.id, "function": call.name, "arguments": {"json": call.arguments}, "type": "function"}
            for call in message.tool_calls
        ]
        plain |= {"tool_calls": calls} if calls else {}
    if role == "tool":
        plain["tool_call_id"] = message.tool_call_id
    return plain


FORMATS: dict[str, tuple[Callable[[Sequence[Run], Path], list[Path] | None], str]] = {
    "csv": (_write_cases_as_csv, "cases.csv"),
    "parquet": (_write_cases_as_parquet, "cases.parquet"),
    "latex": (_write_benchmarks_as_latex, "benchmarks.tex"),
    "jsonl": (_write_cases_as_jsonl, "cases.jsonl"),
    "inspect": (_write_inspect_logs, "inspect-logs"),
    "lm-eval": (_write_lm_eval_results, "results.json"),
}
"""The writer of each format, and the default of `-o`; a writer returns its files if `-o` is their folder."""


@declare_arguments(
    """
    --reports --code
    names=RUN+        names or folders of runs, or `last`
    format=--to FORMAT  the format
    -o --output PATH  file (for inspect: folder) to write; default: by format

    csv, parquet and jsonl hold every case; text that a spreadsheet would run as a formula gets an apostrophe in CSV.
    latex is a table of the benchmarks' primary metrics with intervals. inspect is a log for each benchmark, lm-eval the
    harness's results JSON.
    """,
    required=("format",),
    format=list(FORMATS),
    output=Path,
)
def run_export(options: argparse.Namespace) -> int:
    """Write the files and print their paths."""
    runs = [load_run(find_run_folder(options.reports, name), make_declarations(options.code)) for name in options.names]
    write, usual = FORMATS[options.format]
    target = options.output or Path(usual)
    target.parent.mkdir(parents=True, exist_ok=True)
    print_lines(write(runs, target) or [target])
    return 0


@declare_arguments(
    """
    --reports RUN
    --failed          only cases that failed or ended in an error
    -o --output FILE  file to write (default: samples.jsonl)

    Each line has id, input, target (null where it must be filled in), tags, and the answer with its error.
    `load_samples(FILE)` reads the file.
    """,
    output=Path("samples.jsonl"),
)
def run_cases(options: argparse.Namespace) -> int:
    """Run the form `cases` of the command: write the samples of a run's cases, each sample once."""
    run = load_run(find_run_folder(options.reports, options.name), make_declarations(None))
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for record in run.records:
        if not options.failed or record.outcome in {"failed", "error"}:
            plain = encode_record(record)
            line: dict[str, Any] = {"id": record.sample, "input": _restore_conversation(record)}
            line |= {name: plain.get(name) for name in ("target", "tags", "error")}
            lines[record.benchmark, record.sample] = {**line, "answer": (plain.get("transcript") or {}).get("answer")}
    if not lines:
        raise RunError(f"{options.name} has no such case, so no file is written")
    options.output.write_text("".join(f"{dumps(line)}\n" for line in lines.values()), "utf-8", "replace")
    sys.stdout.write(f"{options.output}: {write_count(len(lines), 'sample')}\n")
    return 0


@declare_arguments(
    """
    --reports --code
    names=RUN+     two runs or more, the first being the baseline
    --label NAME*  label of a run; once for each run, in their order
    --to DIR       folder (default: paper)

    Include tables.tex, figures.tex and appendix.tex in a document that loads the packages booktabs and graphicx.
    Scripts beyond Latin need lualatex or xelatex with a font that has them.
    """,
    to=Path("paper"),
)
def run_paper(options: argparse.Namespace) -> int:
    """Write tables.tex, appendix.tex, and figures.tex with its figures."""
    runs = [load_run(find_run_folder(options.reports, name), make_declarations(options.code)) for name in options.names]
    if len(runs) < 2:
        raise RunError("a paper's tables compare two runs or more; for one run use `evalsuite export --to latex`")
    labels = make_run_labels(runs, options.label)
    print_lines(write_paper(runs, labels, options.to))
    if not can_draw_charts():
        sys.stdout.write("no figures: they need matplotlib (pip install 'evalsuite[plots]')\n")
    return 0


def _restore_conversation(record: Record) -> str | list[dict[str, str]]:
    """Return a record's input; if it is a conversation written as text, the same messages from the transcript."""
    written, messages = "", []
    for message in record.transcript.messages if record.transcript else ():
        if message.parts or message.tool_calls:
            break
        messages.append({"role": message.role, "content": message.content})
        written += f"\n{message.role}: {message.content}"
        if written[1:] == record.input:
            return messages
    return record.input


TEXTS = (INFO, RECORDS, SUMMARY, REPORT)  # Files in a bundle besides the journal.


@declare_arguments("""
    --reports RUN
    -o --output FILE  default: RUN.zip

    `evalsuite runs verify RUN.zip` compares every printed number with the answers inside. To run the cases on those
    answers again: unzip it into reports/RUN, then `pytest cases/ --replay RUN`.
""")
def run_bundle(options: argparse.Namespace) -> int:
    """Write a run's files and its journal into a zip file."""
    folder = find_run_folder(options.reports, options.name)
    target = options.output or Path(f"{folder.name}.zip")
    journal = folder.path / JOURNAL
    if not journal.is_file():
        raise RunError(f"{folder.path} has no {JOURNAL}: there is nothing to replay from")
    if replayed := folder.info().get("settings", {}).get("replay"):
        raise RunError(f"{folder.path} is a replay, which stores no answers: export the run that asked, {replayed}")
    with TemporaryDirectory() as draft:
        # VACUUM INTO copies one consistent state, even while a session writes to the journal.
        try:
            with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as database:
                database.execute("VACUUM INTO ?", [str(Path(draft) / JOURNAL)])
        except sqlite3.Error as error:
            raise RunError(f"{journal} cannot be read ({error}): there is nothing to replay from") from error
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as bundle:
            bundle.write(Path(draft) / JOURNAL, JOURNAL)
            for name in TEXTS:
                if (folder.path / name).is_file():
                    bundle.write(folder.path / name, name)
    sys.stdout.write(f"{target}\n")
    return 0


def unpack_bundle(bundle: Path, folder: Path) -> None:
    """Unpack a run's files from a bundle into a folder; ignore other files in the bundle."""
    try:
        with zipfile.ZipFile(bundle) as archive:
            names = set(archive.namelist())
            if not {JOURNAL, INFO} <= names:
                raise RunError(f"{bundle} is not a bundle of a run: it lacks {JOURNAL} or {INFO}")
            for name in (JOURNAL, *TEXTS):
                if name in names:
                    archive.extract(name, folder)
    except zipfile.BadZipFile as error:
        raise RunError(f"{bundle} is not a bundle, or the bundle is damaged: {error}") from error


@declare_arguments(
    """
    benchmark=NAME     the leaderboard's benchmark
    --reports RUN
    --mode MODE*       mode whose answer is submitted if a question ran in several; may be repeated, in order of
        preference
    --model-name NAME  the model's name on the leaderboard (default: its name in the run)
    -o --output FILE   default: RUN.jsonl, in the present folder

    Each line has id, model_name, question, generation and pred_answer. Questions without references are answered but
    not scored. The exit status is 1 if an answer is missing.
    """,
    benchmark=["treb"],
)
def run_submit(options: argparse.Namespace) -> int:
    """Write the submission without the cases that ended in an error, because they have no answer."""
    from evalsuite.benchmarks.treb.report import choose_rows, make_submission_line

    folder = find_run_folder(options.reports, options.name)
    loaded = load_run(folder)
    if options.benchmark not in loaded.benchmarks:
        raise RunError(f"{folder.path} has no case of {options.benchmark}; it has {', '.join(loaded.benchmarks)}")
    bench = loaded.benchmarks[options.benchmark]
    rows = choose_rows(bench.tally, options.mode)
    answered = [row for row in rows if row.outcome != "error"]
    output: Path = options.output or Path(f"{folder.name}.jsonl")
    name = options.model_name or bench.model
    with output.open("w", encoding="utf-8", errors="replace") as file:
        for row in answered:
            file.write(json.dumps(make_submission_line(loaded.read(row.case), name), ensure_ascii=False) + "\n")
    sys.stdout.write(f"{output}: {write_count(len(answered), 'answer')} of {name}\n")
    if missing := len(rows) - len(answered):
        sys.stdout.write(
            f"{write_count(missing, 'question')} without an answer, because the cases ended in errors; "
            f"`pytest ... --resume {folder.name}` asks again\n"
        )
    return int(bool(missing))
