"""Builds Head-to-Tail from knowledge sources: `evalsuite build head-to-tail SOURCE --from DIR --to FILE`.

`dump_reader` decompresses a dump into a pipe, and `workspace` reads it as a table. The source's own module (`imdb`,
`goodreads`, `mag`, `dblp`, `dbpedia`) makes questions (`questions`). `drawing` cuts entities by popularity, draws lots,
and chooses equally many questions of each template. `command` writes them.
"""

from __future__ import annotations

from evalsuite.builders.head_to_tail.command import add_arguments, run

__all__ = ["add_arguments", "run"]
