"""Runs functions and programs as solvers, and converts the results to transcripts."""

import asyncio
import contextlib
import dataclasses
import inspect
import json
import os
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from evalsuite.applications.call_log import ANSWER, make_transcript
from evalsuite.applications.case_model import BlockingModel, CaseModel
from evalsuite.applications.spans import SpanCollector, read_span, require_opentelemetry
from evalsuite.core.errors import SettingsError, SolverError, write_count
from evalsuite.core.json_codec import encode_message, parse_json
from evalsuite.core.threads import call_maybe_async, is_async
from evalsuite.core.types import Sample, Transcript
from evalsuite.solvers.services import DEFAULT_REQUEST, LARGEST_ANSWER, CaseExchange, ServiceApplication

ApplicationInput = str | list[dict[str, Any]]  # A sample's input: text, or messages in the OpenAI format.
LONGEST_END = 5.0  # Maximum seconds to wait for a killed program to end.
LONGEST_ERROR = 2000  # Maximum characters of a failed program's output in an error message.


@dataclass(frozen=True, slots=True)
class FunctionApplication:
    """A function under test; made by `application`."""

    function: Callable[..., Any]
    answer: str
    timeout: float | None
    route: bool = False

    async def reply(self, question: ApplicationInput, exchange: CaseExchange) -> Transcript:
        """Call the function with one question, and return the transcript of its reply."""
        from evalsuite.applications.endpoint import route_clients

        model, asynchronous = exchange.model, is_async(self.function)
        blocking = BlockingModel(model, asyncio.get_running_loop())
        make: dict[str, Callable[[], Any]] = {
            "client": blocking.openai if asynchronous else blocking.openai_sync,
            "endpoint": blocking.endpoint,
            "model": lambda: model if asynchronous else blocking,
            "sample": lambda: exchange.sample,
            "world": lambda: exchange.world,
        }
        # The first parameter gets the question, whatever its name is.
        further = list(inspect.signature(self.function).parameters)[1:]
        arguments = {name: make[name]() for name in further if name in make}
        try:
            with route_clients(model.endpoint() if self.route else None) as route:
                async with asyncio.timeout(self.timeout):
                    result = await call_maybe_async(self.function, question, **arguments)
        except TimeoutError as error:
            raise SolverError(f"the application gave no answer within {self.timeout:g} s") from error
        transcript = make_transcript(result, self.answer)
        if not route.past:
            return transcript
        past = f"{write_count(route.past, 'call')} went past the gateway; use application(function, route=True)"
        return dataclasses.replace(transcript, facts={**transcript.facts, "unrouted": past})


@dataclass(frozen=True, slots=True)
class ProgramApplication:
    """A program under test; made by `application`."""

    command: Sequence[str]
    answer: str
    timeout: float | None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | str | None = None

    async def reply(self, question: ApplicationInput, exchange: CaseExchange) -> Transcript:
        """Run the program with one question, and return the transcript of its reply."""
        text = question if isinstance(question, str) else json.dumps(question, ensure_ascii=False)
        endpoint = exchange.model.endpoint()
        command = [part.replace("{base_url}", endpoint.base_url).replace("{input}", text) for part in self.command]
        output = await self._run_program(command, text, endpoint.env(**self.env))
        value = parse_json(output)
        replied = isinstance(value, dict) and isinstance(value.get(self.answer), str)
        return make_transcript(value if replied else output.strip(), self.answer)

    async def _run_program(self, command: Sequence[str], text: str, env: Mapping[str, str]) -> str:
        try:
            program = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(env),
                cwd=self.cwd,
                # Start a new process group, so that the program can be killed together with its child processes.
                start_new_session=True,
            )
        except OSError as error:
            raise SolverError(f"the program {command[0]} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self.timeout):
                output, error_output = await self._exchange_texts(program, text.encode("utf-8", "replace"))
        except TimeoutError as error:
            raise SolverError(f"the program {command[0]} did not end within {self.timeout:g} s") from error
        finally:
            await _end_program(program)
        if program.returncode:
            # Some programs, such as command-line agents, report errors on standard output.
            words = (error_output.strip() or output.strip()).decode("utf-8", "replace")[-LONGEST_ERROR:]
            raise SolverError(
                f"the program {command[0]} ended with status {program.returncode}: {words or '(it says nothing)'}"
            )
        return output.decode("utf-8", "replace")

    async def _exchange_texts(self, program: asyncio.subprocess.Process, text: bytes) -> tuple[bytes, bytes]:
        """Write a text to the program's standard input; return its output and the end of its error output."""
        output, error_output = bytearray(), bytearray()
        stdin, stdout, stderr = program.stdin, program.stdout, program.stderr
        assert stdin and stdout and stderr  # noqa: S101, PT018 - all three are pipes

        async def write() -> None:
            with contextlib.suppress(ConnectionError):  # The program need not read its input.
                stdin.write(text)
                await stdin.drain()
            stdin.close()

        async def read_output() -> None:
            while chunk := await stdout.read(2**16):
                output.extend(chunk)
                if len(output) > LARGEST_ANSWER:
                    most = f"{LARGEST_ANSWER >> 20} MiB; an answer may not be longer"
                    raise SolverError(f"the program {self.command[0]} printed more than {most}")

        async def read_error_output() -> None:
            while chunk := await stderr.read(2**16):
                error_output.extend(chunk)
                del error_output[: -4 * LONGEST_ERROR]

        try:
            # Unlike `gather`, a task group stops the other tasks if one fails.
            async with asyncio.TaskGroup() as tasks:
                for work in (write(), read_output(), read_error_output(), program.wait()):
                    tasks.create_task(work)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return bytes(output), bytes(error_output)


async def _end_program(program: asyncio.subprocess.Process) -> None:
    """Kill a program with its process group, and close its pipes, which a process that left the group may hold open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    if program.stdin and program.stdin.transport.get_write_buffer_size():
        program.stdin.transport.abort()  # `close` would first write the rest.
    # Nothing public closes the pipes that are read.
    transport: Any = program._transport  # type: ignore[attr-defined]  # noqa: SLF001
    for number in range(3):
        if pipe := transport.get_pipe_transport(number):
            pipe.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_END):
            await program.wait()


@dataclass(frozen=True, slots=True)
class Application:
    """Sends questions to the function, program or service under test; made by `application`."""

    target: FunctionApplication | ProgramApplication | ServiceApplication
    spans: bool = False
    models: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(isinstance(spec, str) and spec for spec in self.models.values()):
            raise SettingsError(f"application: models={self.models!r:.200}: each value names a model as --model does")
        timeout: object = self.target.timeout
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            raise SettingsError(f"application: timeout={timeout!r}; give a number of seconds above 0, or None")

    async def __call__(self, sample: Sample, model: CaseModel) -> Transcript:
        question = sample.input if isinstance(sample.input, str) else list(map(encode_message, sample.input))
        return await self.reply(question, CaseExchange(sample, model))

    async def reply(self, question: ApplicationInput, exchange: CaseExchange) -> Transcript:
        """Answer one question of a case; all questions of a conversation get the same `CaseExchange`."""
        exchange.model.models = self.models
        if not self.spans:
            return await self.target.reply(question, exchange)
        model = exchange.model
        collector = model.api.spans = SpanCollector(uuid4().hex)
        with collector.collect_from_process():
            transcript = await self.target.reply(question, exchange)
        # Store the spans for a replay, because new spans would have other durations.
        model.log.spans += map(
            read_span, await model.effects.run_tool_once("spans of the application", {}, collector.get_spans)
        )
        return transcript


def application(  # noqa: PLR0913 - the arguments of three kinds of target
    target: Callable[..., Any] | str | Sequence[str] | None = None,
    *,
    url: str | None = None,
    request: Mapping[str, Any] | Callable[[Any, str], Any] | None = None,
    headers: Mapping[str, str] | None = None,
    answer: str = ANSWER,
    timeout: float | None = 600.0,
    route: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    spans: bool = False,
    models: Mapping[str, str] | None = None,
) -> Application:
    """Test an application as it is shipped; the model under test answers the application's model calls.

    A **function** gets the sample's input as its first argument: text, or messages in the OpenAI format. It may also
    have parameters named `client` (an `AsyncOpenAI` for an async function, else an `OpenAI`), `endpoint`,
    `model`, `sample` and `world`. A function returns its answer as text, or in an object (mapping, dataclass, pydantic
    model), whose other fields become facts of the transcript.

    A **program** reads the sample's input from standard input, or in its arguments in place of `{input}`. The program
    finds the model's address and key in the environment variables OPENAI_BASE_URL and OPENAI_API_KEY, and in those of
    Anthropic and Gemini. `{base_url}` in the program's arguments is replaced by the model's address. The program prints
    its answer, either as plain text or as a JSON object whose field `answer` is the answer; other fields become facts.
    If the program's exit status is not 0, the case has an error, whose message contains the end of standard error.

    A **service** gets `request` as JSON in a POST request with the header `traceparent`. In `request` and `headers`,
    names in braces are placeholders. They are `input`, `messages` (the conversation), `session` (the case's id, which
    is also its trace id), `base_url` and `api_key` (of the endpoint that calls the case's model). The service answers
    with JSON, plain text, server-sent events or JSON lines; streamed pieces are joined. A service's answers are stored
    and used again in a replay, unless the service receives `base_url` or `api_key`.

    Args:
        target: a function; or a program's command, as a list or as one text, which is split like a shell command.
        url: the address of a service, which takes the place of `target`.
        request: the body of a request to the service, or a function of (question, session id) that returns it; None
            means `{"input": "{input}", "session": "{session}"}`.
        headers: HTTP headers for the service; error messages never show their values.
        answer: the name of the field that has the answer; for a service, a path such as `choices.0.delta.content`.
        timeout: time limit of one question in seconds; None means no limit.
        route: whether the model under test also answers clients that a function makes itself (`OpenAI()`,
            `Anthropic()`, `genai.Client()`). If false, these clients call their own provider, and `facts["unrouted"]`
            counts their calls.
        env: environment variables that a program gets in addition.
        cwd: the working directory of a program; None means pytest's own.
        spans: whether to add OpenTelemetry spans of a function or program to the transcript as events with the kind
            `span`. An event has `name`, `operation`, `id`, `parent`, `begin` (seconds), `seconds`, `failed`, and, if
            known, `agent`, `tool` and `documents`. Programs send spans to the address in OTEL_EXPORTER_OTLP_ENDPOINT.
            Model calls that bypassed the gateway are read from them. Limits are 32 MiB and 10,000 spans per question.
        models: a mapping from model names in the application's requests to models, written as in `--model`. A request
            with any other name is an error of the case. With None, the model under test answers whatever the name.

    Raises:
        SettingsError: the target is missing, empty or invalid; both a target and a `url` are given; an argument does
            not fit this kind of target; `timeout` is not above 0; a value of `models` is not a model's name; or
            packages for `spans` are not installed.
    """
    if (target is None) == (url is None):
        raise SettingsError("application: give a function, a program's command, or the url of a service")
    if url is None and (request is not None or headers):
        raise SettingsError("application: request and headers are for services; give url=")
    if route and not callable(target):
        raise SettingsError("application: route is for functions; a program finds the model in its environment")
    if (url is not None or callable(target)) and (env or cwd):
        raise SettingsError("application: env and cwd are for programs; a function runs within pytest")
    if spans:
        if url is not None:
            raise SettingsError("application: spans are for functions and programs; a service has its own exporter")
        require_opentelemetry("application(..., spans=True)")
    named = dict(models or {})
    if url is not None:
        return Application(
            ServiceApplication(url, answer, timeout, request or DEFAULT_REQUEST, dict(headers or {})), models=named
        )
    if callable(target):
        return Application(FunctionApplication(target, answer, timeout, route), spans, named)
    command = _read_command(target)
    return Application(ProgramApplication(command, answer, timeout, dict(env or {}), cwd), spans, named)


def _read_command(target: object) -> list[str]:
    try:
        command: object = shlex.split(target) if isinstance(target, str) else target
    except ValueError as error:
        raise SettingsError(f"application({target!r:.200}): the command cannot be split: {error}") from error
    if not isinstance(command, list | tuple) or not all(isinstance(part, str) for part in command):
        raise SettingsError(
            f"application({target!r:.200}): give a function, or a program's command as text or as a list of texts"
        )
    if not command:
        raise SettingsError("application: the command is empty; name a program and its arguments")
    return list(command)
