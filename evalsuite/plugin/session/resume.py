"""What a resumed or replayed run takes over from the earlier one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.errors import SettingsError
from evalsuite.gateway.concealment import demand_secrets
from evalsuite.results.runs import find_folder
from evalsuite.settings import Settings, restore, take_over

if TYPE_CHECKING:
    from evalsuite.journal.lease import Lease


def adopt(settings: Settings, reports: Path, selection: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Settings and selection, those of the resumed or replayed run taken over where they were not given.

    Raises:
        RunError: there is no such run.
        SettingsError: it asked another model.
    """
    name = settings.resume or settings.replay
    if not name:
        return settings, selection
    folder = find_folder(reports, name)
    info = folder.info()
    taken = take_over(settings, restore(info.get("settings", {})))
    if settings.resume:
        demand_secrets(taken, name)
    asked = info.get("model")
    if taken.model is None:
        taken = replace(taken, model=asked)
    if settings.resume and taken.model != asked:
        raise SettingsError(
            f"--resume {name}: that run asked {asked}; another model is another run, so leave out --model, "
            "or leave out --resume"
        )
    # By its path, as `last` would mean another run once this one has begun.
    found = str(folder.path.resolve())
    named = replace(taken, resume=found) if settings.resume else replace(taken, replay=found)
    return named, selection if any(selection.values()) else info.get("selection", selection)


def take_lease(settings: Settings) -> Lease | None:
    """The right to write to the run that is resumed.

    Raises:
        RunError: another living session has it, or the run's journal cannot be read.
    """
    if not settings.resume:
        return None
    from evalsuite.journal.journal import Journal
    from evalsuite.journal.lease import Lease
    from evalsuite.results.record_file import JOURNAL

    folder = Path(settings.resume)
    lease = Lease(folder)
    if (folder / JOURNAL).is_file():
        # Now, as damage should be found before anything is paid for.
        Journal(folder / JOURNAL, read_only=True).close()
    return lease
