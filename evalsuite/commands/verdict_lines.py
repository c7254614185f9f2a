"""A verdict on standard output, as a session's last lines show it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evalsuite.core.errors import for_terminal
from evalsuite.output.reports.markdown import decision_line

if TYPE_CHECKING:
    from evalsuite.decisions.verdict import Verdict


def print_verdict(verdict: Verdict, status: int, *asides: str) -> None:
    """Print each gate, the reasons, and the headline.

    Args:
        verdict: the run's.
        status: the command's exit status.
        asides: what else must be known.
    """
    for decision in verdict.decisions:
        sys.stdout.write(f"{decision_line(decision)}\n")
    for line in (*verdict.reasons, *verdict.remarks, *asides):
        sys.stdout.write(f"{for_terminal(line)}\n")
    sys.stdout.write(f"{verdict.headline} (exit status {status})\n")
