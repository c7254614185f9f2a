"""ToolEyes' samples: the published queries if `--data` has them, otherwise the shipped ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.options import ToolEyesOptions
from evalsuite.benchmarks.tool_eyes.published_files import LIBRARY, Query, read_library, read_queries
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Dataset
from evalsuite.core.types import Sample
from evalsuite.tools.documents import ASK_TO_USER, FINISH
from evalsuite.tools.live import executing_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.core.protocols import Setup
    from evalsuite.tools.documents import ToolDocument

QUERIES = "scenario_data_raw.json"
SHIPPED = Path(__file__).parent / "data" / "queries.json"


def load(setup: Setup) -> Dataset:
    """One sample per query and mode.

    Raises:
        DatasetError: the published files are missing or not of the published form.
        SettingsError: an option makes no sense.
    """
    if setup.data:
        path = _published(setup.data)
        documents: Mapping[str, Sequence[ToolDocument]] = read_library(setup.data / LIBRARY).subjects
        source = path.name
    else:
        path, documents, source = SHIPPED, _shipped_documents(), "shipped queries"
    queries = read_queries(path)
    for query in queries:
        if query.subject not in documents:
            expected = f"one of the {len(documents)} subjects of {LIBRARY}"
            raise DatasetError(path, f"query {query.id}, field 'path'", repr(query.subject), expected)
    options = ToolEyesOptions.of(setup)
    chosen = _first_of_each(_runnable(queries, options), options.queries)
    if len(chosen) < len(queries):
        source += f", {len(chosen)} of {len(queries)}"
    samples = [
        _sample(query, documents[query.subject], mode, setup) for query in chosen for mode in setup.modes
    ]
    return Dataset(samples, source)


def _published(folder: Path) -> Path:
    """The file of queries, which has its own folder in the authors' repository."""
    elsewhere = folder / "Test_Data" / QUERIES
    return elsewhere if elsewhere.exists() else folder / QUERIES


def _shipped_documents() -> dict[str, tuple[ToolDocument, ...]]:
    from evalsuite.benchmarks.tool_eyes.toolbox import SUBJECTS
    from evalsuite.tools.registry import documents_of

    return {subject: (*documents_of(kind), ASK_TO_USER, FINISH) for subject, kind in SUBJECTS.items()}


def _runnable(queries: Sequence[Query], options: ToolEyesOptions) -> Sequence[Query]:
    """The queries whose tools may be run.

    Raises:
        SettingsError: live tools would execute code of the model's, and nothing is said about that.
    """
    if options.executor != "live" or not options.library or options.allow_code:
        return queries
    executing = executing_files(Path(options.library)) & {query.subject for query in queries}
    if executing and options.allow_code is None:
        raise SettingsError(
            f"the live tools of {', '.join(sorted(executing))} execute code that the model writes, on this machine's "
            "network; allow it with allow_code=True, or leave their queries out with allow_code=False"
        )
    return [query for query in queries if query.subject not in executing]


def _first_of_each(queries: Iterable[Query], count: int | None) -> list[Query]:
    seen: dict[str, int] = {}
    chosen = []
    for query in queries:
        seen[query.scenario] = seen.get(query.scenario, 0) + 1
        if count is None or seen[query.scenario] <= count:
            chosen.append(query)
    return chosen


def _sample(query: Query, documents: Sequence[ToolDocument], mode: str, setup: Setup) -> Sample:
    category, subcategory = query.subject.split("/")
    tags = {"scenario": query.scenario, "category": category, "subcategory": subcategory, "mode": mode}
    return Sample(
        id=query.id if len(setup.modes) == 1 else f"{query.id}-{mode}",
        input=query.text,
        target=query.reference,
        # The modes of a query are not independent cases, so intervals treat them as one cluster.
        tags={**tags, "cluster": query.id},
        metadata={
            "subject": query.subject,
            "user": list(query.user),
            "documents": [document.plain() for document in documents],
        },
    )
