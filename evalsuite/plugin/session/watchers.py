"""Calls the hooks of `hookspecs`; an exception in an implementation is reported and has no other effect."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from evalsuite.core.json_codec import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from evalsuite.decisions.verdict import Verdict
    from evalsuite.output.reports.section import Section
    from evalsuite.results.runs import Run


class Watchers:
    """The conftests and plugins that watch a run.

    Args:
        config: of the session.

    Attributes:
        faults: what implementations raised, one line for each hook.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._wants_records = bool(config.hook.pytest_evalsuite_record.get_hookimpls())
        self._faults: dict[str, str] = {}

    @property
    def faults(self) -> list[str]:
        """What implementations raised, one line for each hook."""
        return list(self._faults.values())

    def record(self, line: str) -> None:
        """Shows a record, given as its line of `records.jsonl`."""
        if self._wants_records:
            with self._guarded("pytest_evalsuite_record"):
                record = decode_record(line)
                self._config.hook.pytest_evalsuite_record(record=record, config=self._config)

    def sections(self, run: Run, verdict: Verdict) -> list[Section]:
        """The sections to add to the report."""
        sections: list[Section] = []
        with self._guarded("pytest_evalsuite_report"):
            for added in self._config.hook.pytest_evalsuite_report(
                run=run, verdict=verdict, config=self._config
            ):
                sections += map(_section, added)
        return sections

    def verdict(self, verdict: Verdict, folder: Path) -> None:
        """Shows the verdict."""
        with self._guarded("pytest_evalsuite_verdict"):
            self._config.hook.pytest_evalsuite_verdict(verdict=verdict, folder=folder, config=self._config)

    @contextmanager
    def _guarded(self, hook: str) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - anybody's code, on which no release may hang, not even on its sys.exit
            self._faults.setdefault(hook, f"the hook {hook} raised {type(error).__name__}: {error}")


def _section(added: object) -> Section:
    """What a hook adds to the report, if it is a section of one.

    Raises:
        TypeError: it is something else.
    """
    from evalsuite.output.reports.section import Section

    if not isinstance(added, Section):
        raise TypeError(f"it returned {added!r:.60} in place of a Section")
    return added
