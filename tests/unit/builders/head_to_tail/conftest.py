"""Tiny dumps written by hand, and what is built from them."""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from evalsuite.builders.building import BuildProgress, open_build_folder
from evalsuite.builders.head_to_tail import run_build
from evalsuite.builders.head_to_tail.workspace import Workspace
from evalsuite.core.option_values import ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evalsuite.builders.head_to_tail.drawing import QuestionSource

COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
Questions = set[tuple[str, str, str, str, tuple[str | int, ...]]]


@pytest.fixture
def dump(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Writes files into a folder, compressed as their names say."""

    def write(files: Mapping[str, str | bytes]) -> Path:
        folder = tmp_path / "dump"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (folder / name).write_bytes(COMPRESS.get(Path(name).suffix, bytes)(data))
        return folder

    return write


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with open_build_folder(tmp_path / "workspace.json") as folder, BuildProgress(0, "B") as progress:
        workspace = Workspace(folder, progress)
        yield workspace
        workspace.close()


@pytest.fixture
def candidates() -> Callable[[QuestionSource], Questions]:
    """All that a source can ask: bucket, template, entity, question and answers of each candidate."""

    def draw(source: QuestionSource) -> Questions:
        drawn = source.draw_questions(dict.fromkeys(source.templates, 1000))
        return {
            (bucket, template.id, one.entity, one.question, one.answers)
            for template, buckets in drawn.items()
            for bucket, (those, _) in buckets.items()
            for one in those
        }

    return draw


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., dict[str, list[list[Any]]]]:
    """Runs the command and reads what it wrote."""

    def command(source: str, folder: Path, *options: str, to: str = "built.json") -> dict[str, list[list[Any]]]:
        parser = argparse.ArgumentParser()
        ARGUMENTS[run_build](parser)
        target = tmp_path / to
        assert run_build(parser.parse_args([source, "--from", str(folder), "--to", str(target), *options])) == 0
        return json.loads(target.read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    return command
