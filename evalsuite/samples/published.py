"""Describes published data sets: their files, and the item fields from which samples are made."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalsuite.core.errors import DatasetError
from evalsuite.core.types import Sample
from evalsuite.samples.files import READERS, SampleFields, make_samples
from evalsuite.samples.items import SourceItem

FILE = "file"  # Name of a field that is added to each item: the path of the item's file in the data set's folder.


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """A data set in its published form."""

    # Glob patterns in the data set's folder; only the first pattern that matches any file is used.
    files: tuple[str, ...]
    fields: SampleFields
    # Function that reads the items of a file; None selects a reader by the file's extension.
    read: Callable[[Path], Iterator[SourceItem]] | None = None

    def find_files(self, folder: Path) -> list[Path]:
        """List the data set's files, sorted by name."""
        matches = (
            sorted(path for path in folder.glob(pattern) if path.suffix.lower() in READERS) for pattern in self.files
        )
        return next(filter(None, matches), [])

    def iter_samples(self, folder: Path) -> Iterator[Sample]:
        """Read the samples.

        Raises:
            DatasetError: a file is missing or does not have the published form, or there are zero items.
        """
        paths = self.find_files(folder)
        if not paths:
            raise DatasetError(folder, "", "no questions", f"files as published, such as {self.files[0]}")
        items = (
            replace(item, fields={FILE: path.relative_to(folder).as_posix(), **item.fields})
            for path in paths
            for item in (self.read or READERS[path.suffix.lower()])(path)
        )
        return make_samples(self.fields, folder, items)


def make_label_reader(name: str, meanings: Mapping[Any, str]) -> Callable[[Mapping[str, Any]], str]:
    """Make a function that maps a field's value to its text in `meanings`; any other value raises ValueError."""

    def read_label(item: Mapping[str, Any]) -> str:
        if item[name] not in meanings:
            raise ValueError(f"{name!r} is {item[name]!r:.60}, not one of {', '.join(map(repr, meanings))}")
        return meanings[item[name]]

    return read_label


def read_text_field(item: Mapping[str, Any], name: str) -> str:
    """Return an item's field; raise TypeError unless it is text."""
    if not isinstance(item[name], str):
        raise TypeError(f"{name!r} is {item[name]!r:.60}, not text")
    return str(item[name])
