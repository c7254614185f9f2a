"""Ends a run early, once the gates and the comparison are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.decisions.early_stops import EarlyDecider, ResultSequencer
from evalsuite.decisions.verdict import read_comparison_rules
from evalsuite.results.run_folders import find_run_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings
    from evalsuite.decisions.early_stops import FindRange
    from evalsuite.decisions.gates import Gate
    from evalsuite.journal.planned import PlannedCase
    from evalsuite.results.tally import Row

FIRST = (1, False)  # The first stage; a stage is a pair (epoch, whether the case is beyond `--limit`).


class EarlyStopper:
    """Decides gates on results in the planned order, and ends the session when all gates are decided.

    Results in the order of arrival would bias the decision, because fast answers would count first.
    """

    def __init__(
        self,
        settings: Settings,
        gates: Sequence[Gate],
        reports: Path,
        stop: Callable[[str], None],
        order: Sequence[str],
        cases: Iterable[PlannedCase],
        find_range: FindRange,
    ) -> None:
        self._stop = stop
        self._decider: EarlyDecider | None = None
        if settings.can_end_early:
            baselines = [load_run(find_run_folder(reports, name)) for name in dict.fromkeys(settings.baseline)]
            self._decider = EarlyDecider(gates, baselines, read_comparison_rules(settings.plain()), find_range)
        self._order: ResultSequencer[tuple[str, Row]] = ResultSequencer(order)
        self._goes_on = settings.until_decided
        self._stages = {planned.case: (planned.epoch, planned.beyond) for planned in cases} if self._goes_on else {}
        # The number of cases that run even without `--until-decided`.
        self._at_first = sum(stage == FIRST for stage in self._stages.values())
        self.decided = False
        self._open = ""  # Why the session ended although a gate or comparison is undecided; else empty.

    @property
    def has_ended(self) -> bool:
        """Whether the session was ended early on purpose."""
        return self.decided or bool(self._open)

    def end_for_spent_budget(self) -> None:
        """End the session because the budget is spent, if it uses --until-decided; the existing results count."""
        if self._goes_on:
            self._end_session_undecided("the money is spent")

    def _end_session_undecided(self, reason: str) -> None:
        if not self.has_ended:
            self._open = reason
            self._stop(reason)

    def add_result(self, item: str, result: tuple[str, Row] | None) -> None:
        """Add an item's result (benchmark and row); None if neither a gate nor a comparison uses the item."""
        if self._decider is None:
            return
        for benchmark, row in self._order.add_result(item, result):
            self._decider.add_case(benchmark, row)
        if self._goes_on and not self._decider.decided:
            # Results count in the planned order, so all stages before that of the next awaited item are complete.
            epoch, beyond = self._stages.get(self._order.next_item or "", FIRST)
            if epoch > 1 and not self._decider.can_use_more_epochs:
                self._end_session_undecided("more epochs would decide nothing more")
            elif beyond and not self._decider.can_use_more_samples:
                self._end_session_undecided("more samples than --limit would decide nothing more")
        if self._decider.decided and not self.has_ended:
            self.decided = True
            self._stop("every gate is decided")

    def encode_early_decisions(self, planned_count: int) -> dict[str, Any] | None:
        """Return the early decisions for `run.json`; None if the session did not end early."""
        if self._decider is None or not self.has_ended:
            return None
        gates = [{"gate": test.gate.text, "verdict": test.verdict} for test in self._decider.gates]
        compared = [
            {"baseline": test.baseline, "subject": str(test.subject), "verdict": test.verdict}
            for test in self._decider.comparisons
        ]
        cases = self._order.waiting_count
        planned_count = self._at_first if self._goes_on else max(planned_count, cases)
        facts = {"cases": cases, "planned": planned_count, "gates": gates, "compared": compared}
        return facts | ({"open": self._open} if self._open else {})
