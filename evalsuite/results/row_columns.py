"""A run's rows in columns: about a quarter of a kilobyte a case, where objects would take two.

A `Row` is made when it is looked at. What a run of a hundred thousand cases keeps in memory are ids, scores, amounts
and fingerprints as bytes and numbers, equal tags and facts once, and facts that are different in every case in a
temporary file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evalsuite.results.rows import PackedRows, Row
from evalsuite.results.value_columns import (
    FingerprintColumn,
    MappingColumn,
    ScoreColumn,
    SharedColumn,
    TextColumn,
    UsageColumn,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.core.types import Record


class CaseColumn:
    """Node ids of cases: the function, and what stands in brackets behind it, which often is the sample's id."""

    def __init__(self) -> None:
        self._functions, self._ends = SharedColumn[str](), TextColumn()
        self._samples, self._places = TextColumn(), array("I")
        self._other_samples = 0

    def append(self, case: str, sample: str) -> None:
        """Adds a case and its sample."""
        function, bracket, end = case.partition("[")
        self._functions.append(function + bracket)
        self._ends.append(end)
        if f"{sample}]" == end:
            self._places.append(0)
        else:
            self._samples.append(sample)
            self._other_samples += 1
            self._places.append(self._other_samples)

    def __getitem__(self, at: int) -> str:
        """One case's id."""
        return f"{self._functions[at]}{self._ends[at]}"

    def sample(self, at: int) -> str:
        """The id of one case's sample."""
        place = self._places[at]
        return self._samples[place - 1] if place else self._ends[at][:-1]

    def are_apart(self, places: Iterable[int]) -> bool:
        """Whether these cases surely have a sample each: one function's, whose ids are the samples' ids."""
        functions = set()
        for at in places:
            functions.add(self._functions.code(at))
            if self._places[at] or len(functions) > 1:
                return False
        return True


class SampleColumn:
    """The samples' ids, by way of the cases'."""

    def __init__(self, cases: CaseColumn) -> None:
        self._cases = cases

    def __getitem__(self, at: int) -> str:
        """One sample's id."""
        return self._cases.sample(at)


class RowColumns:
    """The rows of a run, in the order of its file; the attributes of `Row` are columns."""

    def __init__(self) -> None:
        self.case = CaseColumn()
        self.sample = SampleColumn(self.case)
        self.benchmark, self.outcome = SharedColumn[str](), SharedColumn[str]()
        self.excused = SharedColumn[str | None]()
        self.epoch, self.offset = array("Q"), array("Q")
        self.seconds, self.solving_seconds = array("d"), array("d")
        self.tags, self.facts, self.scores = MappingColumn(), MappingColumn(), ScoreColumn()
        self.usage, self.judge_usage, self.simulator_usage = UsageColumn(), UsageColumn(), UsageColumn()
        self.fingerprints = FingerprintColumn()
        self._last_case, self._in_order = "", True

    def append(self, record: Record, offset: int) -> None:
        """Adds a record.

        Args:
            record: its texts are not kept.
            offset: where it begins in its file.
        """
        self._in_order &= self._last_case < record.case
        self._last_case = record.case
        self.case.append(record.case, record.sample)
        self.offset.append(offset)
        for name in COLUMNS:
            getattr(self, name).append(getattr(record, name))

    def __len__(self) -> int:
        """How many records were added."""
        return len(self.offset)

    def counted(self) -> array[int]:
        """The places of the rows that count, by case id; of a case that ran twice, the later one."""
        places = array("I", range(len(self)))
        if self._in_order:
            return places
        ordered = sorted(places, key=self.case.__getitem__)
        following = [*ordered[1:], None]
        return array(
            "I",
            (
                at
                for at, then in zip(ordered, following, strict=True)
                if then is None or self.case[at] != self.case[then]
            ),
        )

    def row(self, at: int) -> Row:
        """One row."""
        return Row(
            self.case[at],
            self.sample[at],
            self.epoch[at],
            self.outcome[at],  # type: ignore[arg-type] # what was added is an outcome
            self.tags[at],
            self.scores[at],
            self.facts[at],
            self.usage[at],
            self.judge_usage[at],
            self.simulator_usage[at],
            self.seconds[at],
            self.solving_seconds[at],
            self.excused[at],
            self.fingerprints[at],
        )


COLUMNS = (
    "benchmark", "outcome", "excused", "epoch", "seconds", "solving_seconds", "tags", "facts", "scores", "usage",
    "judge_usage", "simulator_usage", "fingerprints",
)  # fmt: skip


class StoredRows(PackedRows):
    """Some of a run's rows.

    Args:
        columns: hold the rows.
        places: which of them, in order.
    """

    def __init__(self, columns: RowColumns, places: array[int]) -> None:
        self._columns, self._places = columns, places

    def __len__(self) -> int:
        """How many there are."""
        return len(self._places)

    def __iter__(self) -> Iterator[Row]:
        """The rows, made one after the other."""
        return map(self._columns.row, self._places)

    def __getitem__(self, at: Any) -> Any:
        """One row, or those of a slice."""
        if isinstance(at, slice):
            return StoredRows(self._columns, self._places[at])
        return self._columns.row(self._places[at])

    def __eq__(self, other: object) -> bool:
        """Whether the rows are equal."""
        return isinstance(other, tuple | StoredRows) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment] # as long as a list's would be

    def each(self, attribute: str) -> Iterator[Any]:
        """One attribute of each row, without making the rows."""
        column = getattr(self._columns, attribute)
        return (column[at] for at in self._places)

    def score_names(self) -> Iterator[tuple[str, ...]]:
        """The names of each row's scores."""
        return map(self._columns.scores.names, self._places)

    def scores_of(self, metric: str) -> Iterator[float | None]:
        """One score of each row; None where a row has none."""
        return (self._columns.scores.get(at, metric) for at in self._places)

    def pick(self, places: Sequence[int]) -> StoredRows:
        """Those at these places."""
        return StoredRows(self._columns, array("I", (self._places[place] for place in places)))

    def samples_are_apart(self) -> bool:
        """Whether each row surely has a sample of its own."""
        return self._columns.case.are_apart(self._places)


class Offsets(Mapping[str, int]):
    """Where each case's record begins, by the case's id.

    Args:
        columns: hold the rows.
        places: of the rows that count, by case id.
    """

    def __init__(self, columns: RowColumns, places: array[int]) -> None:
        self._columns, self._places = columns, places

    def __getitem__(self, case: str) -> int:
        """One case's."""
        from bisect import bisect_left

        at = bisect_left(self._places, case, key=self._columns.case.__getitem__)
        if at == len(self._places) or self._columns.case[self._places[at]] != case:
            raise KeyError(case)
        return self._columns.offset[self._places[at]]

    def __iter__(self) -> Iterator[str]:
        """The cases' ids, in order."""
        return map(self._columns.case.__getitem__, self._places)

    def __len__(self) -> int:
        """How many cases there are."""
        return len(self._places)
