"""Load the plugin, and add a section to its reports."""

from collections.abc import Sequence

from evalsuite import Record
from evalsuite.reports import Passage, Section

pytest_plugins = ["evalsuite.plugin"]
squawks: list[str] = []


def pytest_evalsuite_record(record: Record) -> None:
    """Collect the proverbs that the parrot did not know."""
    if record.transcript and record.transcript.answer == "squawk":
        squawks.append(record.sample)


def pytest_evalsuite_report() -> Sequence[Section]:
    """Show the collected proverbs in the report."""
    return [Section("Never heard", [Passage("", ", ".join(sorted(squawks)) or "nothing")])]
