"""The executor `recorded`: nothing but what tools and users said in an earlier run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.errors import RunError, ToolError
from evalsuite.tools.documents import ASK_TO_USER
from evalsuite.tools.execution import ToolFailure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalsuite.protocols import Model
    from evalsuite.tools.documents import ToolDocument
    from evalsuite.types import Sample

RECORDS = "records.jsonl"
_FAILED = "Error: "


@dataclass(slots=True)
class Recording:
    """The observations of a run, read from its records when the first one is asked for.

    Where a run has several observations of one call, the first one counts; so tools whose answers depend
    on earlier calls cannot be replayed from a recording.

    Attributes:
        run: the run's folder.
    """

    run: Path
    _found: dict[str, tuple[str, bool]] | None = field(default=None, repr=False)

    def find(self, *call: Any) -> tuple[str, bool]:
        """What came of a call, and whether it failed.

        Args:
            call: for a tool its origin, name and arguments; for a question to the user its sample's input
                instead of the origin.

        Raises:
            RunError: the run has no records, or they cannot be read.
            ToolError: the run does not hold this call.
        """
        if self._found is None:
            self._found = _observations(self.run / RECORDS)
        if _key(call) not in self._found:
            shown = json.dumps(call[1:], ensure_ascii=False)
            raise ToolError(
                f"the recording {self.run} does not hold the call {shown[:300]}; record it in a run with "
                "executor='simulated' or 'live', or let this run do so"
            )
        return self._found[_key(call)]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Answers each call of a tool from a recording."""

    recording: Recording
    kind: str = "recorded"

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:  # noqa: ARG002 - the executors' signature
        """The recorded observation.

        Raises:
            ToolFailure: the recorded call failed.
            ToolError: the recording does not hold this call.
            RunError: the recording cannot be read.
        """
        text, failed = self.recording.find(document.origin, document.name, dict(arguments))
        if failed:
            raise ToolFailure(text.removeprefix(_FAILED))
        return text


@dataclass(frozen=True, slots=True)
class RecordedUser:
    """Repeats what the user of a recording replied to the same question about the same request."""

    recording: Recording
    kind: str = "recorded"

    async def reply(
        self,
        sample: Sample,
        question: str,
        before: Sequence[tuple[str, str]],  # noqa: ARG002 - the users' signature
        model: Model,  # noqa: ARG002 - likewise
    ) -> str:
        """The recorded reply."""
        return self.recording.find(str(sample.input), ASK_TO_USER.name, {"question": question})[0]


def _observations(path: Path) -> dict[str, tuple[str, bool]]:
    found: dict[str, tuple[str, bool]] = {}
    try:
        for record in _records(path):
            for event in (record.get("transcript") or {}).get("events", ()):
                if event.get("kind") == "call" and event["executor"]:
                    asked = event["tool"] == ASK_TO_USER.name
                    place = record["input"] if asked else event["origin"]
                    call = (place, event["tool"], event["arguments"])
                    found.setdefault(_key(call), (event["observation"], event["failed"]))
    except (AttributeError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunError(f"{path}: these are no records of a run ({type(error).__name__}: {error})") from error
    return found


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; a recording is the folder of an earlier run") from error


def _key(call: Sequence[Any]) -> str:
    return json.dumps(call, ensure_ascii=False, sort_keys=True)
