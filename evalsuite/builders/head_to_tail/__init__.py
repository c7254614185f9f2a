"""Head-to-Tail made from the knowledge sources: `evalsuite build head-to-tail SOURCE --from DIR --to FILE`.

The way of a dump: `dump_reader` decompresses it into a pipe, `dumps` makes it a table, the source's own module
(`imdb`, `goodreads`, `mag`, `dblp`, `dbpedia`) counts popularity and draws lots (`popularity`, `drawing`),
asks in words (`questions`), and `selection` takes equally many of each template; `output` writes them.
"""

from __future__ import annotations

from evalsuite.builders.head_to_tail.command import add_arguments, run

__all__ = ["add_arguments", "run"]
