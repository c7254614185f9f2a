"""Names that do not exist, and those that may have been meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from evalsuite.decisions.measured import PASS_RATE
from evalsuite.results.built_in import built_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.decisions.conditions import Gate


def misspelt(gate: Gate, benchmark: str, metrics: Iterable[str]) -> str:
    """What is wrong with a gate's metric, given the scores of a first case; empty if nothing is.

    Other cases may have further scores, so only a name that closely resembles an existing one counts as misspelt.

    Args:
        gate: any.
        benchmark: of the case.
        metrics: names of its scores, and all that are declared.
    """
    names = {*metrics, PASS_RATE}
    if gate.benchmark != benchmark or gate.metric in {*names, "*"} or built_in(gate.metric) is not None:
        return ""
    if not difflib.get_close_matches(gate.metric, names, n=1, cutoff=0.8):
        return ""
    return f"gate '{gate.text}': no such metric{near(gate.metric, names)}"


def near(name: str, candidates: Iterable[str]) -> str:
    """The end of a message: the names that may have been meant, or the first dozen of all names."""
    names: Sequence[str] = sorted(candidates)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; available: {shown}" if names else ""
