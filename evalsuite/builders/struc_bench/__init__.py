"""Make Struc-Bench's data from other sources; each step is a subcommand of `evalsuite build struc-bench`."""

from evalsuite.benchmarks.struc_bench.items import RATINGS
from evalsuite.builders.struc_bench import files, ratings, rotowire, texts
from evalsuite.core.option_values import declare_subcommands

FORMAT_COT = "FormatCoT: a model's description of each table's format, and the instruction set"
run_build = declare_subcommands(
    "STEP",
    {
        "rotowire": (rotowire.run_rotowire, "raw-text items from RotoWire's box scores and reports"),
        "files": (files.run_files, "LaTeX and HTML items from a folder of .tex and .html files"),
        "texts": (texts.run_texts, "texts by a model, which hold every value of their tables"),
        "format-cot": (texts.run_format_cot, FORMAT_COT),
        "statistics": (files.run_statistics, "items, format, mean rows and columns of files of items, as Markdown"),
        "sheet": (ratings.run_sheet, "a blind sheet of runs' outputs, for people to rate"),
        "ratings": (ratings.run_ratings, f"the file {RATINGS} from sheets that people filled in"),
    },
)
