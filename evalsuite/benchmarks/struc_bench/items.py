"""Read Struc-Bench's items: one JSON file `[{instruction, input, output}]` per format, as published."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from evalsuite.benchmarks.struc_bench.abilities import ERROR_TYPES
from evalsuite.benchmarks.struc_bench.p_score import require_table_placeholders
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Dataset, Setup
from evalsuite.core.types import Sample
from evalsuite.metrics.tables import FORMATS, Format, describe_form, read_reference_tables
from evalsuite.samples.items import read_json_records

RATINGS = "human_scores.json"
ASPECTS = {"content": "Content", "format": "Format"}


def read_human_scores(path: Path, model: str) -> dict[str, dict[str, Any]]:
    """Read people's ratings from a JSON list of objects, and average the ratings of one model's outputs per `sample`.

    A rating has `sample`, the item's id in reports (`html-003`) or the id of its sample in one mode
    (`html-003-format_cot`), and the scores `content` and `format`, on any scale that is the same for all outputs. It
    may have `model`, the model whose output was rated; `rater`, the person's name; and `errors`, the errors that the
    person found, as names in `ERROR_TYPES` (left out or null if the person did not look for errors). Ratings without a
    model count for every model, unless the sample also has ratings of the given model.

    Returns:
        For each sample, the mean scores `content` and `format`, and each person's pair of scores in `raters`. `errors`
        has the share of people who found each type of error, among those who looked; it is empty if nobody looked.
    """
    by_sample: dict[str, list[Mapping[str, Any]]] = {}
    numbers: dict[str, str] = {}  # Records must not contain the names of people, so people are numbered.
    for item in read_json_records(path, "item", first_number=0):
        for aspect in ASPECTS:
            item.read(aspect, float)
        rated_model, rater, sample = item.read("model", str, ""), item.read("rater", str, ""), item.read("sample", str)
        labels = item.read_list("errors", str, optional=True)
        if unknown := [name for name in labels if name not in ERROR_TYPES]:
            raise item.make_error(repr(unknown[0])[:60], f"some of {', '.join(ERROR_TYPES)}", "errors")
        numbers.setdefault(rater, str(len(numbers) + 1))
        if rated_model in ("", model):
            by_sample.setdefault(sample, []).append(item.fields)
    averages = {}
    for sample, ratings in by_sample.items():
        own = [rating for rating in ratings if rating.get("model", "") == model] or ratings
        named = [rating for rating in own if rating.get("rater")]
        labelled = [rating["errors"] for rating in own if rating.get("errors") is not None]
        averages[sample] = {
            **{aspect: fmean(rating[aspect] for rating in own) for aspect in ASPECTS},
            "raters": {numbers[each["rater"]]: tuple(float(each[aspect]) for aspect in ASPECTS) for each in named},
            "errors": {name: fmean(name in labels for labels in labelled) for name in ERROR_TYPES} if labelled else {},
        }
    return averages


NEURAL = ("bertscore", "bartscore", "bleurt")
QUICK_ITEMS_PER_FORMAT = 4  # Number of shipped items per format in a run without the option `each`.


@dataclass(frozen=True, slots=True)
class StrucBenchOptions:
    """The keyword arguments of Struc-Bench in `@benchmark`."""

    each: int = 0  # Maximum items per format; 0 means no limit. If omitted: 4 for shipped items, otherwise 0.
    # Maximum tokens of an answer; None allows 1.5 times the tokens of the wanted table, but at least `least_tokens`.
    max_tokens: int | None = None
    least_tokens: int = 2048  # Lower bound of the limit if `max_tokens` is None, to leave room for reasoning.
    temperature: float | None = 0.0
    row_order: bool = True  # Whether the order of rows matters; use False for RotoWire, whose texts have no order.
    bertscore: str | None = None  # Folder of the encoder for BERTScore; None leaves out this score.
    # The encoder's layer whose embeddings are compared; None selects the usual layer of the model.
    bertscore_layer: int | None = None
    bertscore_baseline: str | None = None  # File of the bert_score package with baselines for rescaling BERTScore.
    bartscore: str | None = None  # Folder of the encoder-decoder for BARTScore; None leaves out this score.
    bleurt: str | None = None  # Folder of a BLEURT checkpoint; None leaves out BLEURT.
    # The prompt template for the P-Score's judge; None selects `PROMPT` in `struc_bench.p_score`. A template must
    # contain {tables} and may contain the other placeholders of `PROMPT`.
    p_prompt: str | None = None

    @classmethod
    def from_setup(cls, setup: Setup) -> "StrucBenchOptions":
        """Read and check the options of a run."""
        options = read_options("Struc-Bench", cls, {"each": 0 if setup.data else QUICK_ITEMS_PER_FORMAT, **setup.args})
        if options.p_prompt is not None:
            try:
                require_table_placeholders(options.p_prompt)
            except ValueError as error:
                raise SettingsError(f"Struc-Bench: p_prompt {error}") from error
        return options


WORDS: Mapping[Format, frozenset[str]] = {
    "html": frozenset({"html"}),
    "latex": frozenset({"latex", "tex"}),
    "markdown": frozenset({"table", "tables", "text", "raw", "rawtext", "markdown", "rotowire"}),
}
"""Words in a file's name that identify its format, in the order of their tests: `html_table.json` is HTML."""


@dataclass(frozen=True, slots=True)
class TableItem:
    """An item of a published file: a task, a text, and the table that the text is to become."""

    instruction: str  # The task for the model.
    input: str  # The text that the model must write as a table.
    output: str  # The wanted table.
    # Description of the table's format for the mode `format_cot`; may be empty. The published files lack descriptions;
    # `evalsuite build struc-bench format-cot` adds them.
    format_description: str = ""


def read_items(path: Path) -> list[TableItem]:
    """Read the items of one file."""
    items = []
    expected = "items {instruction, input, output}"
    for item in read_json_records(path, "item", first_number=0, expected=expected):
        task, text, output = (item.read(key, str) for key in ("instruction", "input", "output"))
        if not output.strip():
            raise item.make_error("nothing", "a table", "output")
        items.append(TableItem(task, text, output, item.read("format_description", str, "")))
    return items


def encode_items(items: Iterable[TableItem]) -> str:
    """Convert items to the JSON that `read_items` reads; lone surrogates become question marks."""
    # Leave out the field of an empty description, because the published files do not have this field.
    records = [
        {name: value for name, value in asdict(item).items() if value or name != "format_description"} for item in items
    ]
    return f"{json.dumps(records, ensure_ascii=False, indent=1)}\n".encode("utf-8", "replace").decode()


def find_files(folder: Path) -> dict[Format, Path]:
    """Find each format's file in a folder by its name; of several files, prefer one with `test` in its name."""
    files = {}
    for written in FORMATS:
        paths = [path for path in sorted(folder.glob("*.json")) if find_format(path) == written]
        chosen = [path for path in paths if "test" in path.stem.lower()] or paths
        if len(chosen) > 1:
            found = f"several files of {written} items: {', '.join(path.name for path in chosen)}"
            raise DatasetError(folder, "", found, "one, or one named ..._test.json")
        if chosen:
            files[written] = chosen[0]
    if not files:
        expected = "files of items named after their format: table_test.json, html_test.json, latex_test.json"
        raise DatasetError(folder, "", "no such file", expected)
    return files


def find_format(path: Path) -> Format | None:
    """Return the format that a file's name shows, or None."""
    words = set(re.findall("[a-z]+", path.stem.lower()))
    return next((written for written, markers in WORDS.items() if words & markers), None)


FORMAT_NAMES: Mapping[Format, str] = {"markdown": "Raw text", "latex": "LaTeX", "html": "HTML"}
"""Displayed names of the formats, in the order of the paper's Table 2."""

ANSWER: Mapping[Format, str] = {
    "markdown": "Write each table row on its own line, cells between | characters, the column names first. "
    "Above each table put its name and a colon, and leave a cell empty where the text gives no value. An answer on "
    "another text looks like this:\n\n"
    "Team:\n| | Wins | Points |\n| Blue | 12 | 98 |\n| Green | | 87 |\n\n"
    "Player:\n| | Assists |\n| Ann Bell | 4 |\n\n"
    "Reply with the tables alone.",
    "latex": "Reply with the LaTeX code of the table alone.",
    "html": "Reply with the HTML code of the table alone.",
}


TEXT_FOLLOWS = "The text:\n"


def write_question(item: TableItem, syntax: Format, mode: str) -> str:
    """Write the complete question for an item."""
    if mode == "format_facts":
        item = replace(item, format_description=describe_form(read_reference_tables(item.output, syntax)))
    parts = [write_instruction(item, mode), f"{TEXT_FOLLOWS}{item.input}", ANSWER[syntax]]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def extract_text(question: str, syntax: Format) -> str:
    """Extract the text to be written as a table from a complete question."""
    after = question.partition(TEXT_FOLLOWS)[2] or question
    return after.removesuffix(ANSWER[syntax].strip()).strip()


def write_instruction(item: TableItem, mode: str) -> str:
    """Write the instruction; in all modes except `direct`, add the description of the format."""
    description = "" if mode == "direct" else f"The format of the table:\n{item.format_description}"
    return "\n\n".join(part.strip() for part in (item.instruction, description) if part.strip())


SHIPPED = Path(__file__).parent / "data"
MODES = {
    "direct": "the instruction and the text",
    "format_cot": "the instruction, a model's description of the table's format, and the text",
    "format_facts": "the instruction, the facts of form read off the wanted table, and the text",
}
DEFAULT_MODES = ("direct",)


def load_dataset(setup: Setup) -> Dataset:
    """Make one sample for each item and mode."""
    folder, options = setup.data or SHIPPED, StrucBenchOptions.from_setup(setup)
    ratings = folder / RATINGS
    people = read_human_scores(ratings, setup.model) if ratings.is_file() else {}
    samples, counts, ids = list[Sample](), list[str](), set[str]()
    for written, path in find_files(folder).items():
        items = read_items(path)
        names = [f"{written}-{place:03}" for place in range(len(items))]
        ids.update(names)
        chosen = items[: options.each or None]
        counts.append(f"{written} {len(chosen)} of {len(items)}")
        for place, item in enumerate(chosen):
            # Refuse an item whose wanted table cannot be read, because no answer could be compared with it.
            if not read_reference_tables(item.output, written).tables:
                start = repr(" ".join(item.output.split())[:60])
                expected = f"a table that can be read as {written} (docs/table_metrics.md lists the markup)"
                raise DatasetError(path, f"item {place}, field 'output'", start, expected)
            for mode in setup.modes:
                if mode == "format_cot" and not item.format_description:
                    expected = (
                        "a description of the table's format for the mode format_cot: "
                        f"evalsuite build struc-bench format-cot {path.name} --model MODEL --to FILE writes them"
                    )
                    raise DatasetError(path, f"item {place}", "no field 'format_description'", expected)
                name, variant = names[place], f"{names[place]}-{mode}"
                ratings_of_item = people.get(variant) or people.get(name)
                sample = Sample(
                    id=variant if len(setup.modes) > 1 else name,
                    input=write_question(item, written, mode),
                    target=item.output,
                    tags={"format": written, "mode": mode, "cluster": name},
                    metadata={"text": item.input, **({"people": ratings_of_item} if ratings_of_item else {})},
                )
                samples.append(sample)
    # Refuse ratings of unknown items, which would otherwise be ignored silently.
    if strangers := sorted(people.keys() - ids - {f"{item}-{mode}" for item in ids for mode in MODES}):
        expected = f"an item of this folder, {min(ids)} say, or its output in a mode, {min(ids)}-direct"
        raise DatasetError(ratings, "field 'sample'", repr(strangers[0]), expected)
    where = f"files of {folder.name}" if setup.data else "shipped samples"
    return Dataset(samples, f"{where} ({', '.join(counts)})")
