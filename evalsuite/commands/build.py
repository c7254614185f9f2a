"""The command `evalsuite build NAME`, which runs the builder of one benchmark."""

from evalsuite.builders import head_to_tail, struc_bench, treb
from evalsuite.core.option_values import declare_subcommands

STRUC_BENCH = "items of Struc-Bench from box scores, from .tex and .html files; FormatCoT descriptions; statistics"
run_build = declare_subcommands(
    "BENCHMARK",
    {
        "head-to-tail": (head_to_tail.run_build, "questions from IMDb, Goodreads, MAG, DBLP or DBpedia"),
        "struc-bench": (struc_bench.run_build, STRUC_BENCH),
        "treb": (treb.run_build, "question-answer pairs from a folder of tables"),
    },
    verb="Make ",
)
