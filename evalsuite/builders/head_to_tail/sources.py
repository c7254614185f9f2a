"""The sources that questions can be built from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.builders.head_to_tail import dblp, dbpedia, goodreads, imdb, mag
from evalsuite.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.builders.head_to_tail.selection import QuestionSource
    from evalsuite.builders.head_to_tail.workspace import Workspace

    Read = Callable[[Workspace, Path, "Path | None"], QuestionSource]


@dataclass(frozen=True, slots=True)
class Origin:
    """A knowledge source.

    Attributes:
        files: their names, in the order of reading; one that is read twice stands here twice.
        target: how many questions are made for each bucket unless a number a template is given.
        paper_cap: how many questions of a template in a bucket the paper's scripts make at most.
        read: reads the files of a folder into a workspace; the last argument is the user's file of
            templates, if any.
    """

    files: tuple[str, ...]
    target: int
    paper_cap: int
    read: Read


def _plain(read: Callable[[Workspace, Path], QuestionSource]) -> Read:
    """A source whose templates are not for the user to choose."""

    def reads(workspace: Workspace, folder: Path, templates: Path | None) -> QuestionSource:
        if templates:
            raise SettingsError("--templates goes with dbpedia only; this source has its own questions")
        return read(workspace, folder)

    return reads


SOURCES = {
    "dblp": Origin(dblp.FILES, 1000, 100, _plain(dblp.Dblp)),
    "dbpedia": Origin(dbpedia.FILES, 3000, 10, dbpedia.Dbpedia),
    "goodreads": Origin(goodreads.FILES, 1000, 250, _plain(goodreads.Goodreads)),
    "imdb": Origin(imdb.FILES, 1000, 85, _plain(imdb.Imdb)),
    "mag": Origin(mag.FILES, 1000, 100, _plain(mag.Mag)),
}
