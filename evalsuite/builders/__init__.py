"""Builders, which make a benchmark's data from its sources for `evalsuite build NAME`."""

BUILDERS = {
    "head-to-tail": "questions from IMDb, Goodreads, MAG, DBLP or DBpedia",
    "struc-bench": (
        "items of Struc-Bench from box scores, from .tex and .html files; FormatCoT descriptions; statistics"
    ),
    "treb": "question-answer pairs from a folder of CSV tables",
}
"""Products of the builders by their names on the command line; packages have underscores instead of hyphens."""
