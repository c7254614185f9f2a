"""Make samples from a file, given which fields of its items to use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import DatasetError
from evalsuite.core.types import Sample
from evalsuite.samples.readers import source_items

if TYPE_CHECKING:
    from pathlib import Path

Field = str | Callable[[Mapping[str, Any]], Any]
"""The name of an item's field, with dots for nested fields; or a function of the item."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an item that make up a sample; see `load_samples`."""

    input: Field
    target: Field | None
    id: Field | None
    tags: Sequence[str] | Mapping[str, Field]
    metadata: Sequence[str] | Mapping[str, Field] | None

    def sample(self, path: str, where: str, number: int, item: Mapping[str, Any]) -> Sample:
        """Make a sample from an item; without a field for the id, the item's number is the id."""
        identity = number if self.id is None else _value(item, self.id, path, where)
        if not isinstance(identity, str | int) or identity == "":
            raise DatasetError(path, where, f"the id {identity!r}", "text or an integer; name its field with id=")
        question = _value(item, self.input, path, where)
        if not isinstance(question, str | list) or not question:
            raise DatasetError(
                path, where, f"the input {question!r:.80}", "text or a list of messages; name its field with input="
            )
        try:
            return Sample(
                identity,
                question,
                None if self.target is None else _value(item, self.target, path, where),
                {name: _value(item, field, path, where) for name, field in _read_name(self.tags).items()},
                self._metadata(item, path, where),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                path, where, f"messages that cannot be read ({error})", "messages in the OpenAI chat format"
            ) from error

    def _metadata(self, item: Mapping[str, Any], path: str, where: str) -> Mapping[str, Any]:
        if self.metadata is None:
            used = {field for field in (self.input, self.target, self.id) if isinstance(field, str)}
            return {name: value for name, value in item.items() if name not in used}
        return {name: _value(item, field, path, where) for name, field in _read_name(self.metadata).items()}


def _read_name(fields: Sequence[str] | Mapping[str, Field]) -> Mapping[str, Field]:
    if isinstance(fields, Mapping):
        return fields
    names = (fields,) if isinstance(fields, str) else fields
    return {name: name for name in names}


def _value(item: Mapping[str, Any], field: Field, path: str, where: str) -> Any:
    if callable(field):
        try:
            return field(item)
        except Exception as error:
            raise DatasetError(
                path, where, f"an item on which {getattr(field, '__name__', field)} raised {error!r}", "one it can read"
            ) from error
    if field in item:
        return item[field]
    value: Any = item
    for name in field.split("."):
        if not isinstance(value, Mapping) or name not in value:
            available = ", ".join(map(repr, item)) or "none"
            raise DatasetError(
                path, where, f"the fields {available}", f"the field {field!r}; name fields that are there"
            )
        value = value[name]
    return value


def load_samples(
    path: str | Path,
    *,
    input: Field = "input",  # noqa: A002 - the sample's own word
    target: Field | None = "target",
    id: Field | None = None,  # noqa: A002 - likewise
    tags: Sequence[str] | Mapping[str, Field] = (),
    metadata: Sequence[str] | Mapping[str, Field] | None = None,
    split: str = "test",
) -> list[Sample]:
    """Read samples from a file of JSON Lines, JSON, CSV, TSV, YAML or Parquet, according to its file name extension.

    Any other source that is not a file is the name of a data set on the Hugging Face hub (`org/name`, or
    `org/name:configuration`). This requires the package `datasets`.

    Args:
        path: the file. JSON and YAML files contain a list of items, either at the top or in one key of an
            object.
        input: the field with the question, with dots for nested fields (`question.text`), or a function of
            the item. Its value is text, or a list of messages in the OpenAI format.
        target: the field with the correct answer or answers; None if the items have none.
        id: the field with the id; None numbers the items from 1.
        tags: fields that become tags; a mapping renames them, or computes them with functions.
        metadata: fields that become metadata, in the same form as `tags`; None selects all fields that are
            not input, target or id.
        split: the split of a data set from the hub.

    Raises:
        DatasetError: the file has a broken line, a missing field or a duplicate id.
        SettingsError: the extension is unknown, or a required package is missing; the message says how to
            install it.
    """
    return list(iter_samples(path, input=input, target=target, id=id, tags=tags, metadata=metadata, split=split))


def iter_samples(
    path: str | Path,
    *,
    input: Field = "input",  # noqa: A002 - the sample's own word
    target: Field | None = "target",
    id: Field | None = None,  # noqa: A002 - likewise
    tags: Sequence[str] | Mapping[str, Field] = (),
    metadata: Sequence[str] | Mapping[str, Field] | None = None,
    split: str = "test",
) -> Iterator[Sample]:
    """Read samples one by one, like `load_samples`; `--limit N` then reads only the first N items of a large file.

    Example: `@benchmark("capitals", iter_samples("capitals.jsonl"))`. JSON Lines and Parquet files are read
    piece by piece, other files as a whole.

    Args:
        path: the file; see `load_samples` for all arguments.
        input: the field with the question.
        target: the field with the correct answer or answers.
        id: the field with the id.
        tags: fields that become tags.
        metadata: fields that become metadata.
        split: the split of a data set from the hub.

    Raises:
        DatasetError: as for `load_samples`, raised when the faulty item is reached.
        SettingsError: as for `load_samples`.
    """
    fields = Fields(input, target, id, tags, metadata)
    place_of: dict[str, str] = {}
    for number, (where, item) in enumerate(source_items(path, split), 1):
        sample = fields.sample(str(path), where, number, item)
        if sample.id in place_of:
            raise DatasetError(
                str(path), where, f"the id {sample.id!r} of {place_of[sample.id]} again", "ids that are unique"
            )
        place_of[sample.id] = where
        yield sample
    if not place_of:
        raise DatasetError(str(path), "", "no items", "at least one")
