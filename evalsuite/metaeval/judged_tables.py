"""A judge's P-Score of rated tables, to be measured against people beside the metrics."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.p_score import p_score
from evalsuite.builders.building import BuildProgress
from evalsuite.builders.model_session import session
from evalsuite.core.errors import JudgeError
from evalsuite.metrics.tables import strip_answer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalsuite.core.protocols import Model
    from evalsuite.core.settings import Settings
    from evalsuite.metaeval.rated_tables import RatedTable

UNREAD = float("nan")


def judged(rated: Sequence[RatedTable], settings: Settings, store: Path) -> dict[str, list[float]]:
    """Return the P-Scores of content and of format, from 0 to 10; NaN where the judge gave no readable mark.

    Args:
        rated: what is judged, each in both orders.
        settings: the model and its limits.
        store: the SQLite file that keeps its answers.

    Raises:
        ModelError: the judge cannot be asked; what was answered until then is kept.
    """
    scores = [(UNREAD, UNREAD)] * len(rated)

    async def judge(model: Model) -> None:
        import asyncio

        async def one(place: int) -> None:
            table = rated[place]
            answer = strip_answer(table.prediction, table.format)
            try:
                score = await p_score(model, answer, table.reference, format=table.format)
                scores[place] = (score.content, score.format)
            except JudgeError:
                pass
            progress.advance(1)

        await asyncio.gather(*map(one, range(len(rated))))

    with session(settings, store) as opened, BuildProgress(len(rated), "output") as progress:
        opened.do(judge)
    if unread := sum(math.isnan(content) for content, _ in scores):
        sys.stderr.write(f"{settings.model}: no readable judgement of {unread} of {len(rated)} outputs\n")
    names = (f"p_content ({settings.model})", f"p_format ({settings.model})")
    return {name: [score[side] for score in scores] for side, name in enumerate(names)}
