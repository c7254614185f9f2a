"""A gateway's audit log: for each request, its time, client, model and cost, but no prompt, answer or client token."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import EvalsuiteError, RunError, SettingsError

if TYPE_CHECKING:
    from evalsuite.core.types import Usage

MODE = 0o600  # Only the file's owner may read the log of requests.


class AuditLog:
    """Appends one line of JSON per request to a file.

    Args:
        path: the file, which may exist; several gateways may share it.
        complain: function that receives a message the first time that writing to the file fails.

    Raises:
        SettingsError: the file cannot be opened.
    """

    def __init__(self, path: Path, complain: Callable[[EvalsuiteError], None]) -> None:
        self._path, self._complain, self._failing = path, complain, False
        try:
            # In append mode, lines of several processes do not mix.
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE)
        except OSError as error:
            raise SettingsError(f"--audit {path}: {error.strerror or error}") from error

    def write_entry(self, client: str, model: str, outcome: str, usage: Usage | None, seconds: float) -> None:
        """Append the line of one request.

        Args:
            outcome: `answered`, or the name of the error.
            usage: the answer's tokens and cost, also if the answer came from the store; None without an answer.
            seconds: time between the request and its answer.
        """
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "client": client,
            "model": model,
            "outcome": outcome,
            "prompt_tokens": usage.prompt_tokens if usage else 0,
            "completion_tokens": usage.completion_tokens if usage else 0,
            "cost": round(usage.cost, 8) if usage else 0.0,
            "seconds": round(seconds, 3),
        }
        try:
            os.write(self._file, json.dumps(line).encode() + b"\n")
        except OSError as error:
            if not self._failing:
                self._complain(RunError(f"--audit {self._path}: {error.strerror or error}; requests go on unlogged"))
            self._failing = True
        else:
            self._failing = False

    def close(self) -> None:
        os.close(self._file)
