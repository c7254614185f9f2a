"""`evalsuite score traces`: yesterday's traffic, scored by the suite; `evalsuite export cases`: what failed."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.cli import main
from evalsuite.commands import traces as command
from evalsuite.samples.files import load_samples

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.conftest import Suite

CASES = """
from evalsuite import Sample, benchmark, contains

def never(sample, model):
    raise AssertionError("a model was asked")

SAMPLES = [Sample(id="oslo", input="?", target="Oslo", tags={"city": "yes"}), Sample(id="rome", input="?", target="x")]

@benchmark("traffic", SAMPLES, solver=never, scorers=[contains()])
def test_traffic(scores, transcript):
    calls = [event for event in transcript.events if event["kind"] == "call"]
    assert [(call["tool"], call["observation"]) for call in calls] == [("weather", "sunny")]
    assert scores["contains"] == 1.0
"""
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
OPENAI = {
    "id": "oslo",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "assistant", "content": "Sunny in Oslo."},
    ],
}
ANTHROPIC = {
    "id": "rome",
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Rome?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Sunny."}]},
    ],
}


@pytest.fixture
def logs(suite: Suite) -> Path:
    """A suite, and a folder with a log of each kind."""
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    folder = suite.path / "logs"
    folder.mkdir()
    (folder / "openai.jsonl").write_text(json.dumps(OPENAI), encoding="utf-8")
    (folder / "anthropic.json").write_text(json.dumps([ANTHROPIC]), encoding="utf-8")
    return folder


def test_logs_are_scored_and_what_failed_becomes_samples(suite: Suite, logs: Path) -> None:
    arguments = ["score", "traces", str(logs), "--suite", "test_capitals.py"]
    assert main([*arguments, "--run=first", "--gate=traffic.contains >= 0.9"]) == 10
    failed, passed = sorted(suite.records("first"), key=lambda record: record["outcome"])
    assert (passed["sample"], passed["tags"], passed["input"]) == ("oslo", {"city": "yes"}, "Oslo?")
    assert (failed["outcome"], failed["scores"]) == ("failed", {"contains": 0.0})
    # The records are traces, too.
    assert main(["score", "traces", "reports/first", "--suite", "test_capitals.py", "--run=second"]) == 1
    assert [record["transcript"] for record in suite.records("second")] == [
        record["transcript"] for record in suite.records("first")
    ]
    records = suite.path / "reports" / "first" / "records.jsonl"
    assert list(command.read_traces(records)) == list(command.read_traces(records.parent))
    # A run that was killed has a journal alone.
    records.unlink()
    arguments = ["score", "traces", str(records.with_name("journal.sqlite")), "--suite", "test_capitals.py"]
    assert main([*arguments, "--run=third"]) == 1
    assert [record["transcript"] for record in suite.records("third")] == [
        record["transcript"] for record in suite.records("second")
    ]
    assert main(["export", "cases", "first", "--failed", "-o", "wrong.jsonl"]) == 0
    (sample,) = load_samples(suite.path / "wrong.jsonl", id="id")
    assert (sample.id, sample.input, sample.metadata["answer"]) == ("rome", "Rome?", "Sunny.")


def test_no_failed_case_is_told(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.run("--run=first", "-k", "fr")
    assert main(["export", "cases", "first", "--failed"]) == 2
    assert "has no such case" in capsys.readouterr().err


def test_an_instrumented_agent_yields_its_transcript(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.test import TestModel

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = Agent(TestModel(), system_prompt="Be brief.")
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"sunny in {city}"

    answer = asyncio.run(agent.run("Oslo?")).output
    file = tmp_path / "otlp.json"
    file.write_text(json.dumps(MessageToDict(encode_spans(exporter.get_finished_spans()))), encoding="utf-8")
    (line,) = command.read_traces(file)
    assert (line["input"], line["answer"]) == ("Oslo?", answer)
    assert [message["role"] for message in line["transcript"]["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant")
    ]
    turn, call, _, agent, *_ = line["transcript"]["events"]
    assert (call["tool"], call["observation"]) == ("weather", "sunny in a")
    assert turn["usage"]["prompt_tokens"] > 0
    assert (agent["kind"], agent["operation"], agent["begin"]) == ("span", "invoke_agent", 0)


def test_a_question_in_parts_of_text_is_a_text(tmp_path: Path) -> None:
    texts, picture = [{"type": "text", "text": "Oslo?"}], {"type": "image_url", "image_url": {"url": "http://x/y"}}
    for parts, given in ((texts, "Oslo?"), ([*texts, picture], [{"role": "user", "content": [*texts, picture]}])):
        log = [{"role": "user", "content": parts}, {"role": "assistant", "content": "Sunny."}]
        (tmp_path / "a.json").write_text(json.dumps(log), encoding="utf-8")
        (line,) = command.read_traces(tmp_path / "a.json")
        assert line["input"] == given


def attribute(key: str, value: Any) -> dict[str, Any]:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def write_span(file: Path, *attributes: dict[str, Any]) -> None:
    span = {"traceId": "t" * 80, "name": "chat", "startTimeUnixNano": "1", "attributes": attributes}
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}), encoding="utf-8")


def test_spans_of_a_trace_may_be_in_several_files_and_twice_and_traces_without_answers_are_counted(
    suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    def export(trace: str, name: str, **times: str) -> dict[str, Any]:
        attributes = [attribute(key, json.dumps(value)) for key, value in SPOKEN.items()] if name == "chat" else []
        span = {"traceId": trace, "spanId": name, "name": name, "attributes": attributes, **times}
        return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}

    chat, search = export("1", "chat", startTimeUnixNano="2"), export("1", "search", startTimeUnixNano="1")
    for name, exports in {"a": [search, search], "b": [chat, export("2", "health")], "c": [chat]}.items():
        (suite.path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, exports)), "utf-8")
    files = [suite.path / f"{name}.jsonl" for name in "abc"]
    line, empty = command.read_traces(*files)
    assert [event["name"] for event in line["transcript"]["events"] if event["kind"] == "span"] == ["search", "chat"]
    assert [event["kind"] for event in line["transcript"]["events"]] == ["turn", "span", "span"]
    assert empty == {}
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    main(["score", "traces", *map(str, files), "--suite", "test_capitals.py"])
    assert "1 trace of 3 files; without an answer of a model: 1" in capsys.readouterr().out


SPOKEN = {
    "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
    "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Ho"}]}],
}


def test_spans_of_openinference_are_read(tmp_path: Path) -> None:
    said, made = "llm.output_messages.0.message.", "llm.output_messages.0.message.tool_calls.0.tool_call."
    write_span(
        tmp_path / "a.json",
        attribute("llm.input_messages.0.message.role", "user"),
        attribute("llm.input_messages.0.message.content", "Oslo?"),
        attribute(f"{said}role", "assistant"),
        attribute(f"{said}content", "I look."),
        attribute(f"{said}contents.all.message_content.text", "A name without a number counts only without a content."),
        attribute(f"{made}function.name", "weather"),
        attribute(f"{made}function.arguments", '{"city": "Oslo"}'),
        attribute("llm.token_count.prompt", 7),
    )
    (line,) = command.read_traces(tmp_path / "a.json")
    turn, call, _ = line["transcript"]["events"]
    assert (line["input"], line["answer"], len(line["id"])) == ("Oslo?", "I look.", 64)
    assert (turn["usage"]["prompt_tokens"], call["tool"], call["arguments"]) == (7, "weather", {"city": "Oslo"})


def test_values_of_every_kind_are_read(tmp_path: Path) -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        part = [{"key": "type", "value": {"stringValue": "text"}}, {"key": "content", "value": {"stringValue": text}}]
        parts = {"arrayValue": {"values": [{"kvlistValue": {"values": part}}]}}
        return {
            "kvlistValue": {
                "values": [{"key": "role", "value": {"stringValue": role}}, {"key": "parts", "value": parts}]
            }
        }

    write_span(
        tmp_path / "a.json",
        {"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": [message("user", "Hi")]}}},
        {"key": "gen_ai.output.messages", "value": {"arrayValue": {"values": [message("assistant", "Ho")]}}},
        {"key": "empty", "value": {}},
    )
    (line,) = command.read_traces(tmp_path / "a.json")
    assert (line["input"], line["answer"]) == ("Hi", "Ho")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: found no JSON"),
        ("\xff", "byte 0: found the byte 0xff, expected UTF-8 text"),
        ("[1]", "entry 1: found what cannot be read"),
        ("[" * 100_000, "no JSON"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": "x"}]}]}]}', "cannot be read"),
        ('{"messages": [{"role": "user", "content": "Hi"}]}', "no trace with an answer of a model"),
        ('{"id": 1, "messages": [{"role": "assistant", "content": "Hi"}]}\n' * 2, "an id that an earlier trace has"),
        ('{"messages": [], "system": "x"}', "at least one message"),
    ],
)
def test_a_malformed_file_is_one_clear_message(
    suite: Suite, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (suite.path / "bad.json").write_text(text, encoding="latin-1")
    assert main(["score", "traces", "bad.json", "--suite", "test_capitals.py"]) == 2
    assert words in capsys.readouterr().err


def test_an_enormous_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(command.LARGEST_FILE + 1)
    assert main(["score", "traces", str(tmp_path / "a.json"), "--suite", str(tmp_path)]) == 2
    assert "more than 512 MiB" in capsys.readouterr().err


@pytest.mark.parametrize(("field", "value"), [("transcript", {"answer": 1}), ("input", [1]), ("tags", 3)])
def test_a_line_of_answers_with_a_broken_trace_is_an_error(suite: Suite, field: str, value: Any) -> None:
    line = {"id": "fr", "answer": "Paris", "input": "Paris?", field: value}
    (suite.path / "given.jsonl").write_text(json.dumps(line), encoding="utf-8")
    result = suite.run("--answers=given.jsonl", model=False)
    assert result.ret
    assert "cannot be read" in result.stdout.str() + result.stderr.str()


def test_a_source_is_never_written_over(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = logs / "trace-answers.jsonl"
    kept.write_text(json.dumps(OPENAI), "utf-8")
    for source in (kept, logs):
        assert main(["score", "traces", str(source), "--suite", ".", "--to", str(kept)]) == 2
        assert "that is one of the traces" in capsys.readouterr().err
    assert json.loads(kept.read_text("utf-8")) == OPENAI
