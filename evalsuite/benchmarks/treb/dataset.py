"""Define TReB's options, and load samples from official or shipped files, which have the same format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from evalsuite.benchmarks.treb.records import SUBTASKS, TEXT_MODES, QuestionRecord, find_subtask, read_records
from evalsuite.core.errors import DatasetError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Dataset, Setup
from evalsuite.core.types import Sample
from evalsuite.metrics.text import HAN


@dataclass(frozen=True, slots=True)
class TrebOptions:
    """The keyword arguments of TReB in `@benchmark`."""

    max_tokens: int = 2048  # Maximum tokens of one model answer.
    # Sampling temperature, by default the paper's; `--model-param temperature=...` overrides it.
    temperature: float | None = 0.2
    # The model's context length in tokens; 8192 in the paper. In TCoT, the limit of a table in characters is half of
    # this number, as in the published code. In PoT and ICoT, the description of the data frames may use about half of
    # the context.
    context: int = 8192
    timeout: float = 10.0  # Time limit in seconds for one program (PoT) or one round of code (ICoT).
    published: bool = False  # Whether the report shows the paper's results; `--mode published` has the same effect.

    @classmethod
    def from_setup(cls, setup: Setup) -> TrebOptions:
        """Read and check the options of a run."""
        return read_options("TReB", cls, {**setup.args, **({"published": True} if "published" in setup.modes else {})})


SHIPPED = Path(__file__).parent / "data" / "samples"
# Folders with files of subtasks: `English` and `Chinese` in the published archive, `JSON` in the leaderboard's files.
FOLDERS = (".", "English", "Chinese", "JSON")
MODES = {
    "auto": "official files: all modes of each subtask; shipped samples: one per subtask, the modes in turn",
    "tcot": "reasoning in words, the table as Markdown and once more as HTML",
    "tcot_markdown": "reasoning in words, the table as Markdown",
    "tcot_html": "reasoning in words, the table as HTML",
    "pot": "the model writes one program, whose output is the answer",
    "icot": "plan, program and result in up to three rounds, then the answer",
    "published": "adds the paper's results to the report, as rows marked as published",
}
DEFAULT_MODES = ("auto",)


def load_dataset(setup: Setup) -> Dataset:
    """Load one sample per record and mode; for shipped records without requested modes, load one sample per subtask."""
    root = setup.data or SHIPPED
    paths = find_files(root)
    options = TrebOptions.from_setup(setup)
    limit = options.context // 2
    records = list(_number_repeated_ids(record for path in paths for record in read_records(path, root, limit)))
    wanted = set(setup.modes) - {"auto", "published"}  # Without a requested mode, each subtask runs in all its modes.
    if "tcot" in wanted:
        wanted.update(TEXT_MODES)
    if wanted.intersection(TEXT_MODES):
        wanted.add("tcot")
    if setup.data is None and not wanted:
        pairs = list(_choose_record_per_subtask(records))
    else:
        pairs = [(each, mode) for each in records for mode in each.subtask.modes if not wanted or mode in wanted]
    samples = [_make_sample(record, mode, published=options.published) for record, mode in pairs]
    if setup.data is not None:
        names = ", ".join(path.name for path in paths) if len(paths) <= 3 else f"{len(paths)} files"
        return Dataset(samples, f"{names}, {len(records)} records")
    used = len({record.id for record, _ in pairs})
    return Dataset(samples, "shipped samples" + (f", {used} of {len(records)} records" if used < len(records) else ""))


def find_files(root: Path) -> list[Path]:
    """List the files of the subtasks, in the order of the paper's Table 1 within each folder."""
    ordered = [
        (folder, SUBTASKS.index(subtask), path)
        for folder, name in enumerate(FOLDERS)
        for path in (root / name).glob("*.json*")
        if path.suffix in (".json", ".jsonl") and (subtask := find_subtask(path.stem))
    ]
    if not ordered:
        expected = f"files named after subtasks ({SUBTASKS[6].file}.json, ...), there or in English/ and Chinese/"
        raise DatasetError(root, "", "no file of a subtask", expected)
    return [path for _, _, path in sorted(ordered)]


def _number_repeated_ids(records: Iterable[QuestionRecord]) -> Iterator[QuestionRecord]:
    """Yield the records; make their ids unique with the suffix `#2`, because English and Chinese files share ids."""
    counts: Counter[str] = Counter()
    for record in records:
        counts[record.id] += 1
        number = counts[record.id]
        yield replace(record, id=record.id if number == 1 else f"{record.id}#{number}", cluster=record.id)


def _choose_record_per_subtask(records: Iterable[QuestionRecord]) -> Iterator[tuple[QuestionRecord, str]]:
    """Pair the first record of each subtask with one of its modes, in rotation, so that every mode occurs."""
    turns = {modes: cycle(modes) for modes in {subtask.modes for subtask in SUBTASKS}}
    seen = set()
    for record in records:
        if record.subtask not in seen:
            seen.add(record.subtask)
            yield record, next(turns[record.subtask.modes])


def _make_sample(record: QuestionRecord, mode: str, *, published: bool) -> Sample:
    tags = {
        "skill": record.subtask.skill,
        "subtask": record.subtask.name,
        "mode": mode,
        "language": "zh" if HAN.search(record.question) else "en",
        # A record's cases in all modes and languages form one cluster, because their scores are not independent.
        "cluster": record.cluster,
    }
    return Sample(
        id=f"{record.id}|{mode}",
        input=record.question,
        target=record.answer,
        # Store the option `published` as a tag of the cases, because the report cannot read the options.
        tags=tags | ({"published": "shown"} if published else {}),
        metadata={"tables": record.tables, "number": record.number, "rules": record.rules},
    )
