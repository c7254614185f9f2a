"""The paper's published results, to be shown beside a run's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path(__file__).parent / "data" / "published.json"


@dataclass(frozen=True, slots=True)
class Published:
    """One of the paper's tables.

    Attributes:
        source: where it stands.
        rows: for each model its values by column (`TU PoT`, `Overall`), in [0, 1].
    """

    source: str
    rows: Mapping[str, Mapping[str, float]]


def published_results() -> dict[str, Published]:
    """The tables by metric: `rouge_l`, `judge`, `exact_match`."""
    document = read_json(FILE, dict)
    return {
        table["metric"]: Published(
            f"arXiv 2506.18421, Table {table['table']}",
            {
                model: {name: value / 100 for name, value in zip(table["columns"], values, strict=True)}
                for model, values in table["rows"].items()
            },
        )
        for table in document["tables"]
    }
