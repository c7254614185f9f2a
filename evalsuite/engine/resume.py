"""What a resumed or replayed run takes over from the earlier one."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.given_settings import check_batch
from evalsuite.core.redaction import HIDDEN
from evalsuite.core.settings import Settings, restore, take_over
from evalsuite.gateway.concealment import demand_secrets
from evalsuite.results.run_folders import find_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalsuite.journal.lease import Lease

MODELS = ("model", "judge_model", "user_model")
CODE = "function:"
"""How a model's name begins that is code to be imported."""


def adopt(settings: Settings, reports: Path, selection: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Settings and selection, taken over from the resumed or replayed run unless given.

    Raises:
        RunError: there is no such run.
        SettingsError: it asked another model, or something must be given again that a folder cannot decide.
    """
    name = settings.resume or settings.replay
    if not name:
        return settings, selection
    folder = find_folder(reports, name)
    info = folder.info()
    taken = take_over(settings, restore(info.get("settings", {})))
    if settings.resume:
        demand_secrets(taken, name)
        _demand_code(taken, name)
    model = info.get("model")
    if taken.model is None:
        taken = replace(taken, model=model)
    if settings.resume and taken.model != model:
        raise SettingsError(
            f"--resume {name}: that run asked {model}; another model is another run, so leave out --model, "
            "or leave out --resume"
        )
    check_batch(taken)
    # By its path, since `last` will mean this run once it has begun.
    path = str(folder.path.resolve())
    named = replace(taken, resume=path) if settings.resume else replace(taken, replay=path)
    return named, selection if any(selection.values()) else info.get("selection", selection)


def _demand_code(settings: Settings, run: str) -> None:
    """Refuses to import or call what only a run's folder names, since that may come from anybody."""
    restored = [option for option in MODELS if option not in settings.given]
    for option in restored:
        value = getattr(settings, option) or ""
        if value.startswith(CODE):
            flag = "--" + option.replace("_", "-")
            raise SettingsError(
                f"--resume {run}: that run asked {value}, which is code, and a run's folder does not decide what is "
                f"imported: give {flag}={value} again"
            )


def flags_to_repeat(settings: Mapping[str, Any]) -> str:
    """The options that `--resume` of a run needs again, each with a space before it.

    Args:
        settings: of the run, as its folder holds them.
    """
    return "".join(f" {shlex.quote(flag)}" for flag in _repeated(settings))


def _repeated(settings: Mapping[str, Any]) -> Iterator[str]:
    for option in (*MODELS, "model_base_url", "judge_base_url", "user_base_url"):
        value = str(settings.get(option) or "")
        if value.startswith(CODE) or HIDDEN in value:
            yield f"--{option.replace('_', '-')}={value}"


def take_lease(settings: Settings) -> Lease | None:
    """Takes the lease on the run that is resumed.

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
        # Now, so that damage is found before anything is paid for.
        Journal(folder / JOURNAL, read_only=True).close()
    return lease
