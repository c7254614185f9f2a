"""Prepares a run before collection: finds package versions and settings, including a resumed or replayed run's."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.declarations import is_suite_file
from evalsuite.core.errors import SettingsError
from evalsuite.core.redaction import HIDDEN, redact
from evalsuite.core.settings import (
    OPTIONS,
    OWN_PACKAGES,
    Settings,
    check_batch_options,
    merge_earlier_settings,
    restore_settings,
)
from evalsuite.engine.checks import check_given_options, check_reports_folder, find_default_model, print_progress
from evalsuite.models.choice import CODE, make_functions_importable

if TYPE_CHECKING:
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.journal.lease import RunLock
    from evalsuite.journal.planned import RunPart

MODELS = ("model", "judge_model", "user_model")
ADDRESSES = ("model_base_url", "judge_base_url", "user_base_url")
PACKAGES = ("evalsuite", "pytest", "pytest-xdist", "xllamacpp", "sacrebleu", "nltk", "jieba", "numpy", "pandas")
"""Packages whose version may change a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """The specification of a run: its settings, its model, and its selection of tests."""

    settings: Settings  # The run's settings, including those of a resumed or replayed run.
    model: str | None  # Name of the model: that of `--model`, or else the installed default model; None without either.
    root: Path  # The folder to which relative paths refer.
    command: str = ""  # The command, without secrets.
    # The tests that the command selects; a run that resumes this run selects the same tests.
    selection: Mapping[str, Any] = field(default_factory=dict)
    lease: RunLock | None = None  # The lock on the resumed run; None for a new run.
    part: RunPart | None = None  # The part that this session runs; None if the session may not be divided into parts.
    earlier: Mapping[str, Any] = field(default_factory=dict)  # `run.json` of earlier parts; empty for the first part.
    quarantine: Quarantine | None = None  # Cases excluded from decisions until a date; None without a quarantine file.

    @property
    def reports_folder(self) -> Path:
        return self.root / self.settings.reports

    def make_run_info(self) -> dict[str, Any]:
        """Return the entries of the specification for `run.json`."""
        from evalsuite.gateway.concealment import make_public_settings

        return {
            "command": self.command,
            "model": self.model,
            "settings": make_public_settings(self.settings).plain(),
            "selection": self.selection,
            **({"quarantine": self.quarantine.encode()} if self.quarantine else {}),
            "versions": find_package_versions(self.settings.program_env),
        }


def prepare_run(
    settings: Settings,
    root: Path,
    command: str,
    selection: Mapping[str, Any],
    *,
    given_models: AbstractSet[str],
    runs_cases: bool = True,
) -> RunSpec:
    """Make the specification of a new, resumed or replayed run; check what can be checked before collection."""
    if settings.prices is not None:
        from evalsuite.gateway.spend import read_price_file

        # Add the file's prices to the settings, which the run stores, so that a resumed run does not need the file.
        listed = read_price_file(root / settings.prices)
        settings = replace(settings, price=(*listed, *settings.price), given=settings.given | {"price"})
    settings, selection = adopt_earlier_run(settings, root / settings.reports, selection)
    lease = _lock_resumed_run(settings)
    try:
        make_functions_importable(root, settings.model, settings.judge_model, settings.user_model)
        if runs_cases:
            _build_program_environment(settings)
            if "reports" in settings.given:
                check_reports_folder(root / settings.reports)
        if settings.given:
            check_given_options(settings, root, given_models if runs_cases else frozenset())
        quarantine = None
        if settings.quarantine is not None:
            from evalsuite.decisions.quarantine import read_quarantine

            quarantine = read_quarantine(root / settings.quarantine, datetime.now().astimezone())
        return RunSpec(
            settings=settings,
            model=settings.model or find_default_model(),
            root=root,
            command=command,
            selection=selection,
            lease=lease,
            quarantine=quarantine,
        )
    except BaseException:
        if lease is not None:
            lease.release()
        raise


def adopt_earlier_run(
    settings: Settings, reports: Path, selection: Mapping[str, Any]
) -> tuple[Settings, Mapping[str, Any]]:
    """Take settings and selection from the resumed or replayed run, except values that the user gave."""
    name = settings.resume or settings.replay
    if not name:
        return settings, selection
    from evalsuite.gateway.concealment import require_secrets
    from evalsuite.results.run_folders import INFO, find_run_folder

    folder = find_run_folder(reports, name)
    info = folder.info()
    earlier = restore_settings(info.get("settings", {}))
    taken = merge_earlier_settings(settings, earlier)
    if settings.resume:
        require_secrets(taken, name)
    _refuse_code_of_run(taken, name)
    model = info.get("model")
    if not info and taken.model is None:
        raise SettingsError(f"{folder.path / INFO} is missing, so that run's model is unknown: give --model")
    if taken.model is None:
        taken = replace(taken, model=model)
    if settings.resume and taken.model != model:
        raise SettingsError(
            f"--resume {name}: that run asked {model or 'no model'}; another model is another run, so leave out "
            "--model, or leave out --resume"
        )
    check_batch_options(taken)
    # Store the run's path instead of `last`, because `last` will soon mean the new run.
    path = str(folder.path.resolve())
    # A replay stores no answers, so the replay of a replay reads the answers of the original run.
    if settings.resume:
        # `replay` is set beside `resume` only if this session runs the next part of a replay.
        taken = replace(taken, resume=path, replay=settings.replay and earlier.replay)
    else:
        taken = replace(taken, replay=earlier.replay or path)
    return taken, selection if any(selection.values()) else info.get("selection", selection)


def _refuse_code_of_run(settings: Settings, run: str) -> None:
    """Refuse to load code that only a run's folder names, because the folder may come from an untrusted source.

    A replay imports no model, but installs packages for models' programs, so its list of packages is checked, too.
    """
    for option in ("program_env", *(MODELS if settings.resume else ())):
        value = getattr(settings, option) or ""
        is_code = value.startswith(CODE)
        if option == "program_env":
            is_code = Path(value).is_file() and not is_suite_file(Path(value), Path.cwd())
        if is_code and option not in settings.given:
            flag = "--" + option.replace("_", "-")
            raise SettingsError(
                f"{run}: that run used {value}, which is code, and a run's folder does not decide what is imported or "
                f"installed: give {flag}={value} again"
            )


def format_options_to_repeat(settings: Mapping[str, Any]) -> str:
    """Return the options that the user must repeat to resume a run, with a space before each option."""
    options = [(option, str(settings.get(option.name) or "")) for option in OPTIONS]
    return "".join(
        " " + shlex.quote(option.write_argument(value))
        for option, value in options
        if option.name in {*MODELS, *ADDRESSES} and (value.startswith(CODE) or HIDDEN in value)
    )


def _lock_resumed_run(settings: Settings) -> RunLock | None:
    if not settings.resume:
        return None
    from evalsuite.journal.database import Database
    from evalsuite.journal.lease import RunLock
    from evalsuite.results.run_folders import JOURNAL

    folder = Path(settings.resume)
    lease = RunLock(folder)
    if (folder / JOURNAL).is_file():
        # Open the journal now, so that damage that cannot be repaired is reported before any paid call.
        Database(folder / JOURNAL, read_only=True).close()
    return lease


def _build_program_environment(settings: Settings) -> None:
    """Build the environment in which models' programs run, before any process needs it."""
    has_own_packages = settings.program_env in OWN_PACKAGES
    if settings.sandbox != Settings().sandbox:
        from evalsuite.sandbox.tiers import TIERS, parse_tiers

        if not set(parse_tiers(settings.sandbox)) & set(TIERS) and not has_own_packages:
            raise SettingsError(
                f"evalsuite_program_env {settings.program_env} and --sandbox {settings.sandbox} exclude each other: "
                "this sandbox has its own packages"
            )
    if has_own_packages:
        return
    from evalsuite.sandbox.environments import provide_environment

    provide_environment(settings.program_env, print_progress)


def format_command(args: Sequence[str]) -> str:
    """Return pytest's command as the user could type it, without secrets in addresses and parameters."""
    from evalsuite.gateway.concealment import HashedSecrets

    return redact(shlex.join(["pytest", *HashedSecrets().conceal_arguments(args)]))


def find_package_versions(program_env: str) -> dict[str, str]:
    """Find the versions of Python and of packages that may change a score."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    if program_env not in OWN_PACKAGES:
        from evalsuite.sandbox.environments import provide_environment

        found[program_env] = f"({provide_environment(program_env).description})"
    return found
