"""Export runs in the formats of other tools."""

from __future__ import annotations

import re
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite import __version__
from evalsuite.decisions.verdict import estimate_metric

if TYPE_CHECKING:
    from evalsuite.core.types import Message, Record
    from evalsuite.results.runs import Run

Exported = TypeVar("Exported")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters that make a spreadsheet treat a cell as a formula; an apostrophe is put before such a text."""


def escape_formula(value: Exported) -> Exported | str:
    """Escape a text that a spreadsheet would run as a formula; leave numbers unchanged."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


WIDTH = 2 * NormalDist().inv_cdf(0.975)  # The width of a normal 95% interval in standard errors (about 3.92).


def make_lm_eval_results(run: Run) -> dict[str, Any]:
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


def make_inspect_log(run: Run, benchmark: str) -> dict[str, Any]:
    """Convert one benchmark of a run to an evaluation log of the tool inspect."""
    bench = run.benchmarks[benchmark]
    records = [run.read(row.case) for row in bench.tally]
    started = str(run.info.get("started", ""))
    samples = list(dict.fromkeys(record.sample for record in records))
    errors = sum(record.outcome == "error" for record in records)
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
        "results": {
            "total_samples": len(records),
            "completed_samples": len(records) - errors,
            "scores": [_make_inspect_score(run, benchmark, name) for name in bench.tally.metrics()],
        },
        "stats": {"started_at": started, "completed_at": started, "model_usage": _sum_tokens_by_model(records)},
        "samples": [_make_inspect_sample(record) for record in records],
    }


def make_inspect_file_name(run: Run, benchmark: str) -> str:
    """Name the log file like inspect, beginning with the time, because inspect's viewer ignores other names.

    The name keeps only letters, digits and `.+-`, because a run of another machine may have any name.
    """
    begun = str(run.info.get("started") or "1970-01-01T00:00:00+00:00")
    parts = [re.sub(r"[^\w.+-]|_", "-", part) for part in (begun, benchmark, run.folder.name)]
    return f"{'_'.join(parts)}.json"


def _make_inspect_score(run: Run, benchmark: str, name: str) -> dict[str, Any]:
    estimate = estimate_metric(run, benchmark, name)
    mean = {"name": "mean", "value": estimate.value if estimate else 0.0, "params": {}}
    return {"name": name, "scorer": name, "params": {}, "metrics": {"mean": mean}}


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
