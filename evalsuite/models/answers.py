"""Backends that call no model: one for ready-made answers (`--answers FILE`), and one for replays."""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalsuite.core.errors import BackendUnavailable, DatasetError, ReplayMiss, RequestRefused
from evalsuite.core.types import Completion, Request
from evalsuite.models.protocol import Backend
from evalsuite.samples.items import read_json_lines

EXPECTED = 'JSON lines {"id": ..., "answer": ...}, with or without "benchmark" where two benchmarks share an id'
NAMES_SHOWN = 3


class AnswersBackend(Backend):
    """`answers:FILE`: the model's name in a run that scores ready-made answers.

    The name only identifies the run; this backend refuses every call.
    """

    def __init__(self, file: str, base_url: str | None = None) -> None:  # noqa: ARG002 - as every backend
        self._file = file
        self.identity = f"answers {Path(file).name}"

    def check(self) -> None:
        read_answers_file(self._file)

    async def complete(self, request: Request) -> Completion:  # noqa: ARG002 - as every backend
        raise RequestRefused(
            f"this run scores the ready-made answers of {self._file}, so it asks no model; a judge is named "
            "with --judge-model"
        )


class ReadyAnswers:
    """Ready-made answers, keyed by benchmark and sample id; for lines without a benchmark, the benchmark is ""."""

    def __init__(self, file: str, by_key: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        self._file, self._by_key = file, by_key

    def list_traces(self, benchmark: str) -> list[Mapping[str, Any]]:
        """List the traces (lines that also contain a sample's input)."""
        fitting = (line for (name, _), line in self._by_key.items() if name in {"", benchmark})
        return [line for line in fitting if "input" in line]

    def list_unused_answers(self, asked: Collection[tuple[str, str]]) -> list[str]:
        """List the ids of lines whose benchmark and id are not in `asked`."""
        names = {name for _, name in asked}
        return [
            name
            for benchmark, name in self._by_key
            if (benchmark, name) not in asked and (benchmark or name not in names)
        ]

    def find_answer(self, benchmark: str, ids: Iterable[str]) -> Mapping[str, Any]:
        """Find a sample's line in the file by the first of the sample's ids that the file contains."""
        names = list(ids)
        for name in names:
            for key in ((benchmark, name), ("", name)):
                if key in self._by_key:
                    return self._by_key[key]
        available = ", ".join(repr(name) for _, name in list(self._by_key)[:NAMES_SHOWN])
        raise RequestRefused(
            f"{self._file} holds no answer for {names[0]!r} of {benchmark}; its ids are {available}"
            + (" and so on" if len(self._by_key) > NAMES_SHOWN else "")
        )


@lru_cache(maxsize=8)
def read_answers_file(file: str) -> ReadyAnswers:
    """Read a file of answers; the result is cached in each process."""
    answers: dict[tuple[str, str], Mapping[str, Any]] = {}
    try:
        for item in read_json_lines(Path(file), "a file of answers", refuse_surrogates=False):
            name, benchmark, answer = item.fields.get("id"), item.read("benchmark", str, ""), item.read("answer", str)
            if not isinstance(name, str | int):
                raise item.make_error(f"the id {name!r:.60}", "text or an integer")
            key = (benchmark, str(name))
            if key in answers:
                raise item.make_error(f"a second answer for {key[1]!r}", "one answer per id")
            # Replace lone surrogates, because they cannot be written to a file.
            answers[key] = {**item.fields, "answer": answer.encode("utf-8", "replace").decode()}
        if not answers:
            raise DatasetError(file, "", "no answer in it", "one answer at least")
    except DatasetError as error:
        raise BackendUnavailable(f"--answers {error}; it must have {EXPECTED}") from error
    return ReadyAnswers(file, answers)


class ReplayBackend(Backend):
    """Stands in for a backend in a replay, which reads stored answers and needs neither a key nor a server."""

    def __init__(self, original: Backend, run: str) -> None:
        self.identity = original.identity
        self._run = run

    async def complete(self, request: Request) -> Completion:
        """Raise an error, because the gateway calls the backend only if the store has no answer."""
        last_message = request.messages[-1].content if request.messages else ""
        raise ReplayMiss(
            f"run {self._run} holds no answer of {request.model} to this request (epoch {request.epoch}, "
            f"it ends in {last_message[-80:]!r}); a replay "
            f"never asks a model: use --resume {self._run} to ask for what is missing"
        )
