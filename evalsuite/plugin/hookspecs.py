"""The hooks that a conftest.py, or any pytest plugin, may implement to watch a run and to add to its report.

The controlling process calls all hooks of this module. Implement the hooks in the root directory's conftest.py, because
with -n the controlling process loads no other conftest.py. An exception in an implementation is reported at the end of
the session; the run, its report and its exit status do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import describe_error
from evalsuite.core.json_codec import decode_record

if TYPE_CHECKING:
    import pytest

    from evalsuite.core.types import Record
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.output.reports.section import Section
    from evalsuite.results.runs import Run


def pytest_evalsuite_record(record: Record, config: pytest.Config) -> None:
    """Called after a case has ended and its record was stored.

    Args:
        record: the whole record, including the transcript.
        config: the session's configuration.
    """


def pytest_evalsuite_report(run: Run, verdict: Verdict, config: pytest.Config) -> Sequence[Section] | None:
    """Called while the run's report is being written.

    Args:
        run: the run, with the counts and scores of each benchmark; `run.read(case)` reads one whole record.
        verdict: the decision of the gates and of the comparison with the baseline.
        config: the session's configuration.

    Returns:
        Sections to add to report.md and to the tables of summary.json, or None.
    """


def pytest_evalsuite_verdict(verdict: Verdict, folder: Path, config: pytest.Config) -> None:
    """Called at the end of a run, after the gates are decided and all files of the run are written.

    Args:
        verdict: the exit status, the reasons and each gate's decision.
        folder: the run's folder, with report.md, summary.json and records.jsonl.
        config: the session's configuration.
    """


class HookCaller:
    """Calls the hooks of this module; an exception in an implementation has no effect on the run.

    Args:
        config: pytest's configuration.

    Attributes:
        errors: the first exception of each hook's implementations, by the hook's name.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._wants_records = bool(config.hook.pytest_evalsuite_record.get_hookimpls())
        self.errors: dict[str, str] = {}

    def receive_record(self, line: str) -> None:
        if self._wants_records:
            with self._record_hook_exceptions("pytest_evalsuite_record"):
                self._config.hook.pytest_evalsuite_record(record=decode_record(line), config=self._config)

    def make_sections(self, run: Run, verdict: Verdict) -> list[Section]:
        from evalsuite.output.reports.section import Section

        sections: list[Section] = []
        with self._record_hook_exceptions("pytest_evalsuite_report"):
            for given in self._config.hook.pytest_evalsuite_report(run=run, verdict=verdict, config=self._config):
                for section in given:
                    if not isinstance(section, Section):
                        raise TypeError(f"it returned {section!r:.60} in place of a Section")
                    sections.append(section)
        return sections

    def receive_verdict(self, verdict: Verdict, folder: Path) -> None:
        with self._record_hook_exceptions("pytest_evalsuite_verdict"):
            self._config.hook.pytest_evalsuite_verdict(verdict=verdict, folder=folder, config=self._config)

    @contextmanager
    def _record_hook_exceptions(self, hook: str) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - anybody's code must not cost a release, even by its sys.exit
            self.errors.setdefault(hook, f"the hook {hook} raised {describe_error(error)}")
