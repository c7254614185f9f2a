"""`evalsuite score traces`: score what an application did before, from chat logs, OTLP files, records and runs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.applications.case_model import CallLog, LoggedCall
from evalsuite.applications.chat_api import BadRequest
from evalsuite.applications.messages_api import read_message_request
from evalsuite.commands import demand_suite, own_declarations
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.json_codec import dumps, encode_message, encode_record, encode_transcript
from evalsuite.core.phrases import number_of
from evalsuite.core.types import Completion, Message, ToolCall, Transcript, Usage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

LARGEST_FILE = 2**29  # Bytes.
EXPECTED = "OTLP JSON, records of a run, or chat logs: lists of messages of OpenAI or Anthropic, or objects with one"
SUFFIXES = (".json", ".jsonl")


def add_traces_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files, the suite, and the file of answers."""
    parser.add_argument("sources", nargs="+", type=Path, metavar="PATH", help=f"file, folder, or run: {EXPECTED}")
    parser.add_argument("--suite", required=True, metavar="SUITE", help="the benchmarks that score the traces")
    parser.add_argument(
        "--to", type=Path, default=Path("trace-answers.jsonl"), metavar="FILE", help="the answers to write"
    )
    parser.epilog = (
        "The command writes FILE and runs `pytest --answers=FILE SUITE`; other options go to pytest. Each trace is a "
        "sample of each benchmark, with the target of the benchmark's sample of the same id, if there is one."
    )


def run_traces(options: argparse.Namespace) -> int:
    """Write the traces as answers and let pytest score them; the exit status is pytest's."""
    demand_suite(options.suite)
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    files = [file for source in options.sources for file in _list_files(source)]
    if options.to.resolve() in {file.resolve() for file in files}:
        raise SettingsError(f"--to {options.to}: that is one of the traces; name another file, or move this one away")
    for file in files:
        for line in read_traces(file):
            key = line.get("benchmark", ""), line["id"]
            if key in lines:
                raise DatasetError(file, f"trace {line['id']!r:.80}", "an id that an earlier trace has", "unique ids")
            lines[key] = line
    if not lines:
        raise DatasetError(options.sources[0], "", "no trace with an answer of a model", EXPECTED)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text("".join(f"{dumps(line)}\n" for line in lines.values()), "utf-8", "replace")
    sys.stdout.write(f"{options.to}: {number_of(len(lines), 'trace')} of {number_of(len(files), 'file')}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", f"--answers={options.to}", options.suite, *options.further]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - the user's own suite and options


def _list_files(source: Path) -> list[Path]:
    if not source.is_dir() or (source / "run.json").is_file():
        return [source]
    return sorted(file for file in source.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def read_traces(path: Path) -> Iterator[dict[str, Any]]:
    """Read the traces of one file, or of a run's folder, as lines of answers."""
    if path.is_dir():
        from evalsuite.results.run_folders import RunFolder
        from evalsuite.results.runs import load_run

        for record in load_run(RunFolder(path), own_declarations(None)).records:
            yield from _read_record(encode_record(record))
        return
    spans: dict[str, list[Mapping[str, Any]]] = {}
    for number, (where, item) in enumerate(_list_items(path), 1):
        try:
            if isinstance(item, dict) and "resourceSpans" in item:
                for span in _list_spans(item):
                    spans.setdefault(span["trace"], []).append(span)
            elif isinstance(item, dict) and {"case", "sample", "outcome"} <= item.keys():
                yield from _read_record(item)
            else:
                yield from _read_chat(item, f"{path.stem}-{number}")
        except (BadRequest, KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
            found = f"what cannot be read ({type(error).__name__}: {str(error)[:200]})"
            raise DatasetError(path, where, found, EXPECTED) from error
    for trace, members in spans.items():
        yield from _read_trace(trace, members)


def _list_items(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a file with their places: lines, or the entries of a list."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise DatasetError(path, "", f"more than {LARGEST_FILE >> 20} MiB", "smaller files; split it")
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(path, f"byte {error.start}", "bytes that are not UTF-8", "a text file in UTF-8") from error
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
    # A list of messages is one log; a list of anything else holds a log per entry.
    is_list = isinstance(whole, list) and not (whole and isinstance(whole[0], dict) and "role" in whole[0])
    yield from ((f"entry {number}", item) for number, item in enumerate(whole if is_list else [whole], 1))


def _read_record(plain: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if plain.get("transcript"):
        names = ("benchmark", "input", "target", "tags", "transcript")
        line = {name: plain[name] for name in names if plain.get(name) is not None}
        epoch = f"@{plain['epoch']}" if plain.get("epoch", 1) != 1 else ""
        yield {"id": f"{plain['sample']}{epoch}", "answer": plain["transcript"]["answer"], **line}


def _read_chat(item: Any, usual: str) -> Iterator[dict[str, Any]]:
    log = item if isinstance(item, dict) else {"messages": item}
    plain = log["messages"]
    blocks = [block for one in plain if isinstance(one.get("content"), list) for block in one["content"]]
    kinds = {block.get("type") for block in blocks if isinstance(block, dict)}
    if "system" in log or kinds & {"tool_use", "tool_result", "thinking"}:
        messages = read_message_request({"messages": plain, "system": log.get("system")}).messages
    else:
        messages = tuple(map(Message.from_openai, plain))
    calls = [
        LoggedCall(str(log.get("model", "")), messages[:at], Completion(said.content, tool_calls=said.tool_calls), 0.0)
        for at, said in enumerate(messages)
        if said.role == "assistant"
    ]
    kept = {name: log[name] for name in ("tags", "target") if log.get(name) is not None}
    yield from _write_line(str(log.get("id", usual)), calls, kept)


def _write_line(name: str, calls: Sequence[LoggedCall], more: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Write the calls of one trace as an answer with its transcript; nothing if no model answered."""
    if not calls:
        return
    transcript = CallLog(list(calls)).transcript()
    asked = [message for message in calls[0].messages if message.role not in {"system", "developer"}]
    plain = [encode_message(message) for message in asked]
    is_text = len(asked) == 1 and isinstance(plain[0]["content"], str)
    facts = {**transcript.facts, **more.get("facts", {})}
    whole = Transcript(transcript.answer, transcript.messages, transcript.reasoning, transcript.events, facts)
    yield {
        **{key: value for key, value in more.items() if key != "facts"},
        "id": name,
        "answer": transcript.answer,
        "input": asked[0].content if is_text else plain,
        "transcript": encode_transcript(whole),
    }


def _list_spans(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Flatten one OTLP export."""
    for resource in item["resourceSpans"]:
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                begin, end = int(span.get("startTimeUnixNano", 0)), int(span.get("endTimeUnixNano", 0))
                attributes = {str(pair["key"]): _read_value(pair.get("value")) for pair in span.get("attributes", ())}
                yield {
                    "trace": str(span["traceId"]),
                    "name": str(span.get("name", "")),
                    "begin": begin,
                    "seconds": max(0, end - begin) / 1e9,
                    "call": _read_call(attributes, max(0, end - begin) / 1e9),
                }


def _read_value(value: Any) -> Any:
    match value:
        case {"intValue": number}:
            return int(number)
        case {"arrayValue": {"values": list(values)}}:
            return [_read_value(one) for one in values]
        case {"kvlistValue": {"values": list(pairs)}}:
            return {str(pair["key"]): _read_value(pair.get("value")) for pair in pairs}
        case dict() if value:
            return next(iter(value.values()))
    return None


def _read_call(attributes: Mapping[str, Any], seconds: float) -> LoggedCall | None:
    """Read a model call by OpenTelemetry's GenAI conventions, or by OpenInference's; None if the span is another."""
    # The span of an agent may repeat the messages of its model calls.
    if attributes.get("gen_ai.operation.name") in {"invoke_agent", "create_agent", "execute_tool"}:
        return None
    if "gen_ai.output.messages" in attributes:
        sent = [
            *_read_parts(attributes, "gen_ai.system_instructions"),
            *_read_parts(attributes, "gen_ai.input.messages"),
        ]
        said = list(_read_parts(attributes, "gen_ai.output.messages"))
    else:
        sent, said = (_read_numbered(attributes, f"llm.{side}_messages.") for side in ("input", "output"))
    if not said:
        return None
    names = (
        ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
        ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    )
    read, written = (next((int(attributes[name]) for name in pair if name in attributes), 0) for pair in names)
    model = str(attributes.get("gen_ai.response.model") or attributes.get("llm.model_name") or "")
    usage = Usage(calls=1, prompt_tokens=read, completion_tokens=written)
    completion = Completion(said[-1].content, tool_calls=said[-1].tool_calls, usage=usage)
    return LoggedCall(model, tuple(sent), completion, seconds)


def _read_parts(attributes: Mapping[str, Any], name: str) -> Iterator[Message]:
    """Read messages in parts, as JSON text or as values."""
    value = attributes.get(name) or []
    items = json.loads(value) if isinstance(value, str) else value
    if name.endswith("instructions"):
        items = [{"role": "system", "parts": items}] if items else []
    for item in items:
        parts = item["parts"]
        text = "\n".join(str(part["content"]) for part in parts if part.get("type") == "text")
        calls = tuple(
            ToolCall(str(part.get("id") or ""), part["name"], _write_json(part.get("arguments") or {}))
            for part in parts
            if part.get("type") == "tool_call"
        )
        results = [part for part in parts if part.get("type") == "tool_call_response"]
        for part in results:
            result = part.get("response", part.get("result", ""))
            yield Message("tool", _write_json(result), tool_call_id=str(part.get("id") or ""))
        if text or calls or not results:
            yield Message(item["role"], text, calls)


def _write_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_numbered(attributes: Mapping[str, Any], prefix: str) -> list[Message]:
    """Read OpenInference's messages: one attribute per field, with the message's number in its name."""
    messages: dict[int, dict[str, Any]] = {}
    calls: dict[tuple[int, int], dict[str, str]] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            number, _, rest = name.removeprefix(prefix).partition(".message.")
            made, _, field = rest.removeprefix("tool_calls.").partition(".tool_call.")
            messages.setdefault(int(number), {})
            if field:
                calls.setdefault((int(number), int(made)), {})[field] = _write_json(value)
            else:
                messages[int(number)][rest] = value
    return [
        Message(
            message.get("role", "user"),
            str(message.get("content") or ""),
            tuple(
                ToolCall(call.get("id", ""), call.get("function.name", ""), call.get("function.arguments", "{}"))
                for (owner, _), call in sorted(calls.items())
                if owner == number
            ),
            message.get("tool_call_id"),
        )
        for number, message in sorted(messages.items())
    ]


def _read_trace(trace: str, spans: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    ordered = sorted(spans, key=lambda span: span["begin"])
    calls = [span["call"] for span in ordered if span["call"] is not None]
    shown = [{"name": span["name"], "seconds": round(span["seconds"], 6)} for span in ordered]
    name = trace if len(trace) <= 64 else hashlib.sha256(trace.encode("utf-8", "replace")).hexdigest()
    yield from _write_line(name, calls, {"facts": {"spans": shown}})
