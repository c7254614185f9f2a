"""The executor `recorded`: repeats what tools and users answered in an earlier run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from evalsuite.core.errors import RunError, ToolError, shorten_to_beginning
from evalsuite.core.protocols import Model
from evalsuite.core.types import Sample
from evalsuite.tools.execution import ASK_TO_USER, FINISH, ToolDocument, ToolFailure

RECORDS = "records.jsonl"
_FAILED = "Error: "
LONGEST_CALL = 300
CallResult = tuple[str, bool]  # A call's observation, and whether the call failed.


@dataclass
class Recording:
    """The tool calls of an earlier run; they are read from its records when first needed."""

    run: Path  # The run's folder.

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

    def find_reply(self, request: str, question: str) -> str:
        """Find the user's first recorded reply to a question about a request."""
        key = _make_call_key(request, {"question": question})
        if key not in self.calls.replies:
            raise self.make_missing_error(f"the question {question!r}")
        return self.calls.replies[key]

    def find_result(self, request: str, earlier_calls: Sequence[str], key: str) -> CallResult:
        """Find the recorded result of a call, given the earlier calls of its episode.

        Prefer the result from an episode with the same request and the same earlier calls. Without such an episode, a
        result is used only if all equal calls in the run had the same result.
        """
        at = len(earlier_calls)
        for episode in self.calls.episodes.get(request, ()):
            if [made for made, _ in episode[: at + 1]] == [*earlier_calls, key]:
                return episode[at][1]
        results = self.calls.results.get(key, [])
        if not results:
            raise self.make_missing_error(f"the call {key}")
        if len(set(results)) > 1:
            raise ToolError(
                f"the recording {self.run} holds {len(set(results))} different results of the call "
                f"{shorten_to_beginning(key, LONGEST_CALL)}, which depend on what went before, and no episode of this "
                "request that began with the same calls; run the tools themselves"
            )
        return results[0]

    def make_missing_error(self, missing: str) -> ToolError:
        return ToolError(
            f"the recording {self.run} does not hold {shorten_to_beginning(missing, LONGEST_CALL)}; record it in a run "
            "with executor='simulated' or 'live', or let this run do so"
        )


@dataclass(slots=True)
class RecordedExecutor:
    """Answers the calls of one episode with recorded results."""

    recording: Recording  # The recording of an earlier run.
    request: str  # The request: the input of the episode's sample.
    kind: str = "recorded"
    _made: list[str] = field(default_factory=list, repr=False)

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:  # noqa: ARG002 - the executors' signature
        key = _make_call_key(document.origin, document.name, dict(arguments))
        observation, failed = self.recording.find_result(self.request, self._made, key)
        self._made.append(key)
        if failed:
            raise ToolFailure(observation.removeprefix(_FAILED))
        return observation


@dataclass(frozen=True, slots=True)
class RecordedUser:
    """Repeats the user's recorded reply to the same question about the same request."""

    recording: Recording
    kind: str = "recorded"

    async def reply(self, sample: Sample, question: str, past_replies: Sequence[tuple[str, str]], model: Model) -> str:  # noqa: ARG002 - the users' signature
        return self.recording.find_reply(str(sample.input), question)


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
