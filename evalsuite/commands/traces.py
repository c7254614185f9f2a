"""`evalsuite score traces`: score an application's earlier model calls from chat logs, OTLP files, records or runs."""

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from evalsuite.applications.call_log import CallLog, LoggedCall, TraceSpan
from evalsuite.applications.messages_api import convert_request
from evalsuite.applications.spans import SPAN_ERRORS, list_spans, read_span
from evalsuite.commands import make_declarations, print_at_once, require_suite, run_pytest
from evalsuite.core.errors import DatasetError, SettingsError, write_count
from evalsuite.core.json_codec import dumps, encode_message, encode_record, encode_transcript
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.types import Completion, Message
from evalsuite.results.run_folders import JOURNAL, RunFolder
from evalsuite.results.runs import load_run
from evalsuite.samples.items import read_text

LARGEST_FILE = 2**29  # Bytes.
EXPECTED = "OTLP JSON, a run's records or journal, or chat logs: messages of OpenAI or Anthropic, or objects with them"
SUFFIXES = (".json", ".jsonl")


@declare_arguments(
    f"""
    sources=PATH+  file, folder, or run: {EXPECTED}
    --suite SUITE  the benchmarks that score the traces
    --to FILE      the answers to write

    The command writes FILE and runs `pytest --answers=FILE SUITE`; other options go to pytest. Each trace is a sample
    of each benchmark, with the target of the benchmark's sample of the same id, if there is one.
    """,
    sources=Path,
    required=("suite",),
    to=Path("trace-answers.jsonl"),
)
def run_traces(options: argparse.Namespace) -> int:
    """Write the traces as answers and let pytest score these answers; return pytest's exit status."""
    require_suite(options.suite)
    files = [file for source in options.sources for file in _list_trace_paths(source)]
    if options.to.resolve() in {file.resolve() for file in files}:
        raise SettingsError(f"--to {options.to}: that is one of the traces; name another file, or move this one away")
    found = list(read_traces(*files))
    lines = [line for line in found if line]
    if not lines:
        raise DatasetError(options.sources[0], "", "no trace with an answer of a model", EXPECTED)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text("".join(f"{dumps(line)}\n" for line in lines), "utf-8", "replace")
    left_out = f"; without an answer of a model: {len(found) - len(lines):,}" if len(found) > len(lines) else ""
    print_at_once(f"{options.to}: {write_count(len(lines), 'trace')} of {write_count(len(files), 'file')}{left_out}")
    return run_pytest(f"--answers={options.to}", options.suite, *options.further)


def _list_trace_paths(source: Path) -> list[Path]:
    """List a source's trace files; for a run, list only the run's folder."""
    if source.name == JOURNAL or (source / "run.json").is_file():
        return [source.parent if source.name == JOURNAL else source]
    if not source.is_dir():
        return [source]
    return sorted(file for file in source.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def read_traces(*paths: Path) -> Iterator[dict[str, Any]]:
    """Read the traces of files, or of runs' folders, as lines of answers.

    A trace without an answer of a model gives an empty line. A trace's spans may be in several files, and a span may be
    exported more than once: its last version counts.
    """
    spans: dict[str, dict[str, TraceSpan]] = {}
    known = set[tuple[str, str]]()
    found = ((path, line) for path in paths for line in _read_file(path, spans))
    for path, line in chain(found, ((paths[-1], line) for line in _join_spans(spans))):
        key = line.get("benchmark", ""), line.get("id", "")
        if line and key in known:
            raise DatasetError(path, f"trace {key[1]!r:.80}", "an id that an earlier trace has", "unique ids")
        known.add(key)
        yield line


def _join_spans(spans: Mapping[str, Mapping[str, TraceSpan]]) -> Iterator[dict[str, Any]]:
    for trace, by_id in spans.items():
        members = sorted(by_id.values(), key=lambda span: span.begin)
        # An agent may return something other than the model's last text, such as the argument of a last tool call.
        answer = next(({"answer": span.answer} for span in members if span.answer), {})
        name = trace if len(trace) <= 64 else hashlib.sha256(trace.encode("utf-8", "replace")).hexdigest()
        log = CallLog([span.call for span in members if span.call], spans=members)
        yield _convert_calls_to_answer(name, log, answer)


def _read_file(path: Path, spans: dict[str, dict[str, TraceSpan]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file's records and chat logs, or of a run's; add the file's spans to `spans`."""
    if path.is_dir():
        for record in load_run(RunFolder(path), make_declarations(None)).records:
            yield from _convert_record_to_answer(encode_record(record))
        return
    for number, (where, item) in enumerate(_iterate_json_values(path), 1):
        try:
            if isinstance(item, dict) and "resourceSpans" in item:
                for plain in list_spans(item):
                    members = spans.setdefault(plain["trace"], {})
                    members[plain["id"] or f"no id {len(members)}"] = read_span(plain)
            elif isinstance(item, dict) and {"case", "sample", "outcome"} <= item.keys():
                yield from _convert_record_to_answer(item)
            else:
                yield _convert_chat_to_answer(item, f"{path.stem}-{number}")
        except SPAN_ERRORS as error:
            found = f"what cannot be read ({type(error).__name__}: {str(error)[:200]})"
            raise DatasetError(path, where, found, EXPECTED) from error


def _iterate_json_values(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each JSON value of a file with its position: a line number, or an entry's number in a list."""
    if path.stat().st_size > LARGEST_FILE:
        raise DatasetError(path, "", f"more than {LARGEST_FILE >> 20} MiB", "smaller files; split it")
    text = read_text(path, "a file of traces")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield f"line {number}", json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DatasetError(path, f"line {number}", f"no JSON ({error})", EXPECTED) from error
        return
    # A list of messages is one log; in any other list, each entry is a log.
    is_list = isinstance(whole, list) and not (whole and isinstance(whole[0], dict) and "role" in whole[0])
    yield from ((f"entry {number}", item) for number, item in enumerate(whole if is_list else [whole], 1))


def _convert_record_to_answer(encoded_record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if encoded_record.get("transcript"):
        names = ("benchmark", "input", "target", "tags", "transcript")
        line = {name: encoded_record[name] for name in names if encoded_record.get(name) is not None}
        epoch = f"@{encoded_record['epoch']}" if encoded_record.get("epoch", 1) != 1 else ""
        yield {"id": f"{encoded_record['sample']}{epoch}", "answer": encoded_record["transcript"]["answer"], **line}


def _convert_chat_to_answer(chat: Any, default_id: str) -> dict[str, Any]:
    log = chat if isinstance(chat, dict) else {"messages": chat}
    plain = log["messages"]
    blocks = [block for one in plain if isinstance(one.get("content"), list) for block in one["content"]]
    kinds = {block.get("type") for block in blocks if isinstance(block, dict)}
    if "system" in log or kinds & {"tool_use", "tool_result", "thinking"}:
        messages = convert_request({"messages": plain, "system": log.get("system")}).messages
    else:
        messages = tuple(map(Message.from_openai, plain))
    calls = [
        LoggedCall(str(log.get("model", "")), messages[:at], Completion(said.content, tool_calls=said.tool_calls), 0.0)
        for at, said in enumerate(messages)
        if said.role == "assistant"
    ]
    kept = {name: log[name] for name in ("tags", "target") if log.get(name) is not None}
    return _convert_calls_to_answer(str(log.get("id", default_id)), CallLog(calls), kept)


def _convert_calls_to_answer(name: str, log: CallLog, further_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calls of one trace as an answer with its transcript; return {} if the trace has no call."""
    if not log.calls:
        return {}
    transcript = log.make_transcript()
    asked = [message for message in log.calls[0].messages if message.role not in {"system", "developer"}]
    plain = [encode_message(message) for message in asked]
    parts = asked[0].parts if asked else ()
    is_text = len(asked) == 1 and all(isinstance(part, str) or part["type"] == "text" for part in parts)
    transcript = dataclasses.replace(transcript, answer=further_fields.get("answer", transcript.answer))
    return {
        **further_fields,
        "id": name,
        "answer": transcript.answer,
        "input": asked[0].content if is_text else plain,
        "transcript": encode_transcript(transcript),
    }
