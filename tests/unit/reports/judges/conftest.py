"""Tallies of cases that a judge has judged, made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evalsuite.results.tally import Row, Tally


def ballot(
    verdict: str | None, judge: str = "judge", model: str = "m", *, swapped: bool = False, **scores: float
) -> Any:
    return {"judge": judge, "model": model, "swapped": swapped, "verdict": verdict, "scores": scores}


def judged_row(name: str, verdict: str | None, ballots: list[Any], *, epoch: int = 1, **facts: Any) -> Row:
    facts = {"verdict": verdict, "ballots": ballots, **facts}
    return Row(f"{name}-{epoch}", name, epoch, "passed", {}, {}, facts)


class Made:
    ballot = staticmethod(ballot)
    row = staticmethod(judged_row)
    tally = staticmethod(Tally.of)


@pytest.fixture(scope="session")
def made() -> type[Made]:
    return Made
