"""Struc-Bench's files, or the shipped pack in the same format, as samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.human_scores import FILE, RatedOutput, of_model, read_human_scores
from evalsuite.benchmarks.struc_bench.items import find_files, read_items
from evalsuite.benchmarks.struc_bench.options import StrucBenchOptions
from evalsuite.benchmarks.struc_bench.prompts import question
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Dataset
from evalsuite.core.types import Sample
from evalsuite.metrics.tables import read_wanted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.core.protocols import Setup
    from evalsuite.metrics.tables import Format

SHIPPED = Path(__file__).parent / "data"
MODES = {
    "direct": "the instruction and the text",
    "format_cot": "the instruction, a model's description of the table's format, and the text",
    "format_facts": "the instruction, the facts of form read off the wanted table, and the text",
}
DEFAULT_MODES = ("direct",)


def load(setup: Setup) -> Dataset:
    """One sample for each item and mode.

    Raises:
        DatasetError: a file is not as published, an item's table cannot be read, an item lacks the description
            that `format_cot` needs, or a rating is of an item that does not exist.
    """
    folder, options = setup.data or SHIPPED, StrucBenchOptions.of(setup)
    people = _people(folder, setup.model)
    samples, counts, ids = list[Sample](), list[str](), set[str]()
    for written, path in find_files(folder).items():
        items = read_items(path)
        ids |= {_name(written, place) for place in range(len(items))}
        chosen = items[: options.each or None]
        counts.append(f"{written} {len(chosen)} of {len(items)}")
        for place, item in enumerate(chosen):
            _check_readable(item, written, path, place)
            for mode in setup.modes:
                if mode == "format_cot" and not item.format_description:
                    raise DatasetError(path, f"item {place}", "no field 'format_description'", _remedy(path))
                samples.append(_sample(_name(written, place), item, written, mode, setup.modes, people))
    _check_rated(people, ids, folder)
    where = f"files of {folder.name}" if setup.data else "shipped samples"
    return Dataset(samples, f"{where} ({', '.join(counts)})")


def _check_readable(item: TableItem, written: Format, path: Path, place: int) -> None:
    """Without a readable table there is nothing to compare with, and a refusal would score as well as any answer."""
    if not read_wanted(item.output, written).tables:
        start = " ".join(item.output.split())[:60]
        expected = f"a table that can be read as {written} (docs/struc_bench.md lists the markup)"
        raise DatasetError(path, f"item {place}, field 'output'", repr(start), expected)


def _name(written: Format, place: int) -> str:
    return f"{written}-{place:03}"


def _check_rated(people: Collection[str], ids: Collection[str], folder: Path) -> None:
    """A rating of an item that does not exist would otherwise be ignored silently."""
    outputs = {*ids, *(f"{item}-{mode}" for item in ids for mode in MODES)}
    if strangers := sorted(set(people) - outputs):
        expected = f"an item of this folder, {min(ids)} say, or its output in a mode, {min(ids)}-direct"
        raise DatasetError(folder / FILE, "field 'sample'", repr(strangers[0]), expected)


def _sample(
    name: str,
    item: TableItem,
    written: Format,
    mode: str,
    modes: tuple[str, ...],
    people: Mapping[str, RatedOutput],
) -> Sample:
    variant = f"{name}-{mode}"
    ratings = people.get(variant) or people.get(name)
    rated = {"people": ratings.facts()} if ratings else {}
    return Sample(
        id=variant if len(modes) > 1 else name,
        input=question(item, written, mode),
        target=item.output,
        tags={"format": written, "mode": mode, "cluster": name},
        metadata={"text": item.input, **rated},
    )


def _people(folder: Path, model: str) -> dict[str, RatedOutput]:
    path = folder / FILE
    return of_model(read_human_scores(path), model) if path.is_file() else {}


def _remedy(path: Path) -> str:
    return (
        "a description of the table's format for the mode format_cot: "
        f"evalsuite build struc-bench format-cot {path.name} --model MODEL --to FILE writes them"
    )
