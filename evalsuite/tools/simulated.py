"""Tools and users that are not asked themselves: a model plays them, or an earlier run recorded what they answered.

The answers of a model that plays them are stored, so that equal calls get equal answers in every run.
"""

import hashlib
import json
import sqlite3
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from evalsuite.core.errors import RunError, SettingsError, ToolError, shorten_to_beginning
from evalsuite.core.json_codec import dumps
from evalsuite.core.protocols import Model
from evalsuite.core.types import Message, Sample
from evalsuite.tools.execution import ASK_TO_USER, FINISH, ToolDocument, ToolFailure

FILE = "tool_observations.sqlite"
# A row for each distinct question to a simulating model. The key is the SHA-256 of the question's JSON, which is stored
# for people to read. A row is never overwritten, so that equal questions always get the first answer.
SCHEMA = """
CREATE TABLE IF NOT EXISTS observations (
  key TEXT PRIMARY KEY,
  question TEXT NOT NULL,
  observation TEXT NOT NULL
) WITHOUT ROWID
"""


class ObservationStore:
    """Stores answers by question, in a file that processes may share or, without a folder, in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._place = folder, str(folder / FILE) if folder else ":memory:"

    def find_answer(self, question: Any) -> str | None:
        """Return the stored answer to a question; None if there is none."""
        key = hashlib.sha256(dumps(question).encode()).hexdigest()
        row = self._run_and_fetch_row("SELECT observation FROM observations WHERE key = ?", key)
        return row[0] if row else None

    def store_answer(self, question: Any, observation: str) -> str:
        """Store an answer to a question if there is none yet; return the stored answer."""
        text = dumps(question)
        values = hashlib.sha256(text.encode()).hexdigest(), text, observation
        self._run_and_fetch_row("INSERT OR IGNORE INTO observations VALUES (?, ?, ?)", *values)
        return self.find_answer(question) or observation

    def close(self) -> None:
        if connection := vars(self).pop("_connection", None):
            connection.close()

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._place, timeout=30, check_same_thread=False)
        # Close the connection when this object is collected, because Python 3.13 warns of open connections.
        weakref.finalize(self, connection.close)
        connection.execute(SCHEMA)
        return connection

    def _run_and_fetch_row(self, statement: str, *values: str) -> Any:
        try:
            with self._connection as connection:
                return connection.execute(statement, values).fetchone()
        except (sqlite3.Error, OSError) as error:
            raise ToolError(
                f"the library of tool observations ({self._place}) cannot be used: {error}; "
                "if the file is damaged, delete it and simulated tools will be asked again"
            ) from error


_TOOL_ROLE = """\
You take the place of a software tool. You are shown the tool's document and one call of it. Reply with \
exactly what the tool would return for this call and with nothing else: no greeting, no explanation, no code \
fence. Prefer compact JSON. Where the real tool would look something up, make up data that is plausible, \
specific and free of contradictions. If the arguments make no sense for this tool, reply with a short error \
message such as the tool would give."""

_USER_ROLE = """\
You are the person who wrote the request below to an assistant. The assistant asks you something. \
Answer as that person would: briefly, in the first person, with one definite choice or fact that fits the \
request, made up where the request leaves it open. Do not solve the task yourself and do not thank."""


def find_simulating_model(asker: Model, name: str, base_url: str | None, *, epoch: int | None = None) -> Model:
    """Return the model that plays a tool or a user in a case; `asker` counts its usage separately, if it can."""
    ask: Callable[..., Model] = getattr(asker, "player", asker.peer)
    return ask(name, base_url, epoch=epoch)


@dataclass(frozen=True, slots=True)
class SimulatingModel:
    """A model that plays tools, by their documents, and users, who see their request and the questions so far."""

    model: str  # The model's name.
    base_url: str | None = None  # The address of the model; with None, the backend's usual address.
    library: ObservationStore = field(default_factory=ObservationStore)  # The model's answers in this or earlier runs.
    max_tokens: int = 512  # Maximum number of tokens in an answer.
    kind: str = "simulated"

    async def request_answer(self, messages: tuple[Message, ...], asker: Model) -> str:
        """Return the stored answer to these messages, from any epoch or run; if none is stored, ask the model."""
        plain = [[message.role, message.content] for message in messages]
        question = {"model": self.model, "base_url": self.base_url, "messages": plain}
        kept = self.library.find_answer(question)
        if kept is not None:
            return kept
        peer = find_simulating_model(asker, self.model, self.base_url, epoch=1)
        completion = await peer.chat(messages, temperature=0, max_tokens=self.max_tokens)
        if completion.finish_reason == "length" or not completion.text.strip():
            fault = "cut off" if completion.text.strip() else "empty"
            raise ToolError(
                f"the answer of {self.model}, which plays a tool or a user, is {fault} ({completion.finish_reason}, "
                f"max_tokens {self.max_tokens}); nothing is kept of it"
            )
        return self.library.store_answer(question, completion.text.strip())

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:
        call = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        document_text = json.dumps(document.plain(), ensure_ascii=False)
        prompt = f"Document:\n{document_text}\n\nCall of {document.name} with these arguments:\n{call}"
        return await self.request_answer((Message("system", _TOOL_ROLE), Message("user", prompt)), model)

    async def reply(self, sample: Sample, question: str, past_replies: Sequence[tuple[str, str]], model: Model) -> str:
        request = sample.input if isinstance(sample.input, str) else sample.input[-1].content
        earlier = "".join(f"The assistant asked: {past}\nYou answered: {answer}\n" for past, answer in past_replies)
        prompt = f"Your request:\n{request}\n\n{earlier}The assistant asks: {question}\nYour answer:"
        return await self.request_answer((Message("system", _USER_ROLE), Message("user", prompt)), model)


NOTHING_TO_ADD = "I have nothing to add; please go on with what I told you."


class User(Protocol):
    """Answers the model's questions in place of the person who made the request."""

    @property
    def kind(self) -> str:
        """The kind of user, as named in records and reports: `scripted`, `simulated` or `recorded`."""
        ...

    async def reply(self, sample: Sample, question: str, past_replies: Sequence[tuple[str, str]], model: Model) -> str:
        """Return the user's reply to the model's question; each past reply comes with its question."""
        ...


@dataclass(frozen=True, slots=True)
class ScriptedUser:
    """Replies with the texts under `user` in the sample's metadata, in order, then with `NOTHING_TO_ADD`."""

    kind: str = "scripted"

    async def reply(self, sample: Sample, question: str, past_replies: Sequence[tuple[str, str]], model: Model) -> str:  # noqa: ARG002 - the users' signature
        replies: Sequence[str] = sample.metadata.get("user", ())
        return replies[len(past_replies)] if len(past_replies) < len(replies) else NOTHING_TO_ADD


END = "###END###"
"""The line with which a simulated user ends the conversation."""

_PERSON_ROLE = """\
You play a person who talks to an assistant. Stay in this role whatever the assistant says. Write only what the \
person says next: briefly, in the first person, one thing at a time. Do not reveal everything at once, and invent \
nothing that is not stated here.

What you want:
{goal}

What you know, to be told when you are asked for it:
{knows}

Say {end} and nothing else when {stop}."""

GREETING = Message("user", "Hello, how can I help you?")


def make_user_model_message(line: tuple[str, str]) -> Message:
    """Convert a line of the conversation to a message for the model that plays the user."""
    who, text = line
    return Message("assistant" if who == "user" else "user", text)


class ConversationUser(Protocol):
    """A simulated user who talks to the agent in a conversation."""

    async def speak(self, sample: Sample, spoken: Sequence[tuple[str, str]], model: Model) -> str | None:
        """Return what the user says next; None ends the conversation."""
        ...


@dataclass(frozen=True, slots=True)
class Scripted:
    """A simulated user who sends prepared messages in order, and then ends the conversation.

    Attributes:
        lines: the messages; None means the sample's input, followed by the list `user` in the sample's metadata.
    """

    lines: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.lines, str):
            raise SettingsError(f"Scripted({self.lines!r:.200}): give a list of messages")

    async def speak(self, sample: Sample, spoken: Sequence[tuple[str, str]], model: Model) -> str | None:  # noqa: ARG002 - the speakers' signature
        """Return the next prepared message; after the last one, return None."""
        lines = self.lines
        if lines is None:
            lines = [str(sample.input), *sample.metadata.get("user", ())]
        turn = sum(who == "user" for who, _ in spoken)
        return lines[turn] if turn < len(lines) else None


@dataclass(frozen=True, slots=True)
class Persona:
    """A user whom a model plays: the model in the setting `evalsuite_user_model` or, if it is not set, the judge.

    Attributes:
        goal: what the person wants; with None, the sample's input.
        knows: facts that the person can tell if asked; with None, `knows` in the sample's metadata.
        stop: the condition for ending the conversation; in the prompt, this clause follows the word "when".
        max_tokens: maximum number of tokens in each message of the person.
        tools: names of the world's tools that the person uses instead of the agent. If the sample's metadata have a
            list `user_tools`, the person has only the tools in this list.
    """

    goal: str | None = None
    knows: str | None = None
    stop: str = "you have what you want, or see that you will not get it"
    max_tokens: int = 300
    tools: Sequence[str] = ()

    async def speak(self, sample: Sample, spoken: Sequence[tuple[str, str]], model: Model) -> str | None:
        """Let the model write what the person says next.

        Raises:
            SettingsError: no model is set to play the user.
            ToolError: the model's message was empty.
            ModelError: the call failed permanently.
        """
        player = self.find_simulating_model(model)
        prompt = [Message("system", self.write_role(sample)), GREETING, *map(make_user_model_message, spoken)]
        completion = await player.chat(prompt, temperature=0, max_tokens=self.max_tokens)
        return self.parse_line(completion.text, completion.finish_reason)

    def find_simulating_model(self, model: Model) -> Model:
        """Find the model that plays the user of a case; `model` is the case's model."""
        name, base_url = getattr(model, "user_model", None) or (None, None)
        if name is None:
            raise SettingsError("a Persona is played by a model: name one with evalsuite_user_model or --judge-model")
        return find_simulating_model(model, name, base_url)

    def parse_line(self, text: str, reason: str) -> str | None:
        """Return what the person says in a model's text; None if the text ends the conversation."""
        if not text.strip():
            raise ToolError(f"the model that plays the user said nothing ({reason})")
        return None if END in text else text.strip()

    def write_role(self, sample: Sample) -> str:
        """Write the system prompt for the model that plays the person."""
        goal = str(sample.input) if self.goal is None else self.goal
        knows = str(sample.metadata.get("knows", "nothing more")) if self.knows is None else self.knows
        return _PERSON_ROLE.format(goal=goal, knows=knows, stop=self.stop, end=END)


RECORDS = "records.jsonl"
_FAILED = "Error: "
LONGEST_CALL = 300
CallResult = tuple[str, bool]  # A call's observation, and whether the call failed.


@dataclass
class Recording:
    """The tool calls of an earlier run; they are read from its records when first needed."""

    run: Path  # The run's folder.
    kind: str = "recorded"  # The kind of user; a `RecordedExecutor` repeats the calls of tools.

    @cached_property
    def calls(self) -> "_RecordedCalls":
        """Read the calls from the run's records; raise RunError if this is impossible."""
        path, calls = self.run / RECORDS, _RecordedCalls()
        try:
            with path.open(encoding="utf-8") as lines:
                for line in filter(str.strip, lines):
                    calls.add_record(json.loads(line))
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}; a recording is the folder of an earlier run") from error
        except (AttributeError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise RunError(f"{path}: these are not records of a run ({type(error).__name__}: {error})") from error
        return calls

    async def reply(self, sample: Sample, question: str, past_replies: Sequence[tuple[str, str]], model: Model) -> str:  # noqa: ARG002 - the users' signature
        """Repeat the user's recorded reply to the same question about the same request."""
        replies, key = self.calls.replies, _make_call_key(str(sample.input), {"question": question})
        if key not in replies:
            raise self.make_missing_error(f"the question {question!r}")
        return replies[key]

    def make_missing_error(self, missing: str) -> ToolError:
        return ToolError(
            f"the recording {self.run} does not hold {shorten_to_beginning(missing, LONGEST_CALL)}; record it in a run "
            "with executor='simulated' or 'live', or let this run do so"
        )


@dataclass(slots=True)
class RecordedExecutor:
    """Answers the calls of one episode with recorded results.

    Prefer the result from an episode with the same request and the same earlier calls. Without such an episode, a
    result is used only if all equal calls in the run had the same result.
    """

    recording: Recording  # The recording of an earlier run.
    request: str  # The request: the input of the episode's sample.
    kind: str = "recorded"
    _made: list[str] = field(default_factory=list, repr=False)

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:  # noqa: ARG002 - the executors' signature
        key = _make_call_key(document.origin, document.name, dict(arguments))
        recorded, at = self.recording.calls, len(self._made)
        self._made.append(key)
        results = [
            episode[at][1]
            for episode in recorded.episodes.get(self.request, ())
            if [made for made, _ in episode[: at + 1]] == self._made
        ]
        if not results:
            results = recorded.results.get(key, [])
            if not results:
                raise self.recording.make_missing_error(f"the call {key}")
            if len(set(results)) > 1:
                raise ToolError(
                    f"the recording {self.recording.run} holds {len(set(results))} different results of the call "
                    f"{shorten_to_beginning(key, LONGEST_CALL)}, which depend on what went before, and no episode of "
                    "this request that began with the same calls; run the tools themselves"
                )
        observation, failed = results[0]
        if failed:
            raise ToolFailure(observation.removeprefix(_FAILED))
        return observation


@dataclass(frozen=True, slots=True)
class _RecordedCalls:
    """The tool calls that a run made, and the replies of its user."""

    # The calls of each episode in order, keyed by the episode's request.
    episodes: dict[str, list[list[tuple[str, CallResult]]]] = field(default_factory=dict)
    results: dict[str, list[CallResult]] = field(default_factory=dict)  # For each call, its results in all episodes.
    replies: dict[str, str] = field(default_factory=dict)  # The user's first reply, keyed by request and question.

    def add_record(self, record: Mapping[str, Any]) -> None:
        """Add the tool calls and the user's replies in a case's record."""
        episode: list[tuple[str, CallResult]] = []
        for event in (record.get("transcript") or {}).get("events", ()):
            if event.get("kind") != "call" or not event["executor"] or event["tool"] == FINISH.name:
                continue
            if event["tool"] == ASK_TO_USER.name:
                self.replies.setdefault(_make_call_key(record["input"], event["arguments"]), event["observation"])
                continue
            key = _make_call_key(event["origin"], event["tool"], event["arguments"])
            episode.append((key, (event["observation"], event["failed"])))
            self.results.setdefault(key, []).append(episode[-1][1])
        if episode:
            self.episodes.setdefault(record["input"], []).append(episode)


def _make_call_key(*call: Any) -> str:
    """Write the parts of a call as JSON; equal calls give equal JSON."""
    return json.dumps(call, ensure_ascii=False, sort_keys=True)
