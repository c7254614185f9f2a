"""A benchmark's records as a log of inspect, which its viewer and its `read_eval_log` open.

Source of the format: `EvalLog`, version 2, in the reference of inspect_ai.log.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from evalsuite.decisions.verdict import estimate_of

if TYPE_CHECKING:
    from evalsuite.core.types import Message, Record
    from evalsuite.results.runs import Run

FORMAT = 2


def inspect_log(run: Run, benchmark: str) -> dict[str, Any]:
    """The log of one benchmark of a run."""
    bench = run.benchmarks[benchmark]
    records = [run.read(row.case) for row in bench.tally]
    started = str(run.info.get("started", ""))
    samples = list(dict.fromkeys(record.sample for record in records))
    errors = sum(record.outcome == "error" for record in records)
    return {
        "version": FORMAT,
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
            "packages": {"evalsuite": version("evalsuite")},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(records),
            "completed_samples": len(records) - errors,
            "scores": [_score(run, benchmark, name) for name in bench.tally.metrics()],
        },
        "stats": {"started_at": started, "completed_at": started, "model_usage": _model_usage(records)},
        "samples": [_sample(record) for record in records],
    }


def file_name(run: Run, benchmark: str) -> str:
    """As inspect names its logs, time first: others its viewer passes over. Underscores divide the parts."""
    begun = str(run.info.get("started") or "1970-01-01T00:00:00+00:00").replace(":", "-")
    parts = [part.replace("_", "-") for part in (begun, benchmark, run.folder.name)]
    return f"{'_'.join(parts)}.json"


def _score(run: Run, benchmark: str, name: str) -> dict[str, Any]:
    estimate = estimate_of(run, benchmark, name)
    mean = {"name": "mean", "value": estimate.value if estimate else 0.0, "params": {}}
    return {"name": name, "scorer": name, "params": {}, "metrics": {"mean": mean}}


def _model_usage(records: list[Record]) -> dict[str, Any]:
    usage: dict[str, Any] = {}
    for record in records:
        counted = usage.setdefault(record.model, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0})
        counted["input_tokens"] += record.usage.prompt_tokens
        counted["output_tokens"] += record.usage.completion_tokens
        counted["total_tokens"] += record.usage.prompt_tokens + record.usage.completion_tokens
    return usage


def _sample(record: Record) -> dict[str, Any]:
    transcript = record.transcript
    answer = transcript.answer if transcript else ""
    target = record.target if isinstance(record.target, list | tuple) else [record.target]
    sample: dict[str, Any] = {
        "id": record.sample,
        "epoch": record.epoch,
        "input": record.input,
        "target": [str(value) for value in target if value is not None],
        "messages": [_message(message, record.model) for message in transcript.messages]
        if transcript
        else [],
        "output": {
            "model": record.model,
            "choices": [
                {
                    "message": {"role": "assistant", "content": answer, "source": "generate"},
                    "stop_reason": "stop",
                }
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


def _message(message: Message, model: str) -> dict[str, Any]:
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
