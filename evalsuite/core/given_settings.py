"""Reads a user's settings, and refuses combinations that make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import refuse_misspelt
from evalsuite.core.option_values import is_given, parse_baselines, parse_changes, parse_shard, read_value
from evalsuite.core.settings import OPTIONS, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_EPOCHS = 5  # with --until-decided, where --epochs does not say


def read_settings(values: Mapping[str, Any]) -> Settings:
    """Make settings from values by name; None and empty mean that the user gave nothing."""
    given = {
        option.name: read_value(option, values[option.name]) for option in OPTIONS if is_given(values.get(option.name))
    }
    if "resume" in given and "replay" in given:
        raise SettingsError(
            "--resume and --replay exclude each other: the first asks for what is missing, the second never asks"
        )
    if "until_decided" in given and "max_cost" not in given:
        # Without a spend limit, nothing would end a run whose gates stay open; it ends with the planned cases.
        given["stop_when_decided"] = given.pop("until_decided")
    given |= {"model": f"answers:{given['answers']}"} if "answers" in given else {}
    settings = Settings(**given | _derive(given), given=frozenset(given))
    if settings.partial and settings.may_end_early:
        raise SettingsError("--partial excludes --until-decided: its cases decide no gate")
    refuse_misspelt("--model-param", settings.model_params)
    refuse_misspelt("--judge-param", settings.judge_params)
    if settings.shard:
        parse_shard(settings.shard)
        if settings.may_end_early:
            raise SettingsError(
                "--shard excludes --until-decided: the gates of a shard are decided when all shards have been joined"
            )
    if settings.gateway and settings.max_cost is not None:
        raise SettingsError(
            "--gateway and --max-cost exclude each other: the spend limit is the gateway's, which knows what all of "
            "its clients spend; give it there, and each client its share"
        )
    if not settings.resume:
        # A resumed run may restore --batch or --gateway.
        check_batch(settings)
    _check_comparison(settings)
    return settings


def _derive(given: Mapping[str, Any]) -> dict[str, Any]:
    """Derive settings from others: the epochs of --until-decided, and what gates say."""
    derived: dict[str, Any] = {}
    if "until_decided" in given and "epochs" not in given:
        derived["epochs"] = MOST_EPOCHS
    if "partial" in given or "only_gate" in given:
        derived["gate"] = () if "partial" in given else given["only_gate"]
    if named := parse_baselines(derived.get("gate", given.get("gate", ()))):
        derived["baseline"] = tuple(dict.fromkeys([*given.get("baseline", ()), *named]))
    return derived


def _check_comparison(settings: Settings) -> None:
    """Check the settings of comparisons."""
    if not 0 < settings.detect < 1:
        raise SettingsError(f"evalsuite_detect {settings.detect:g}: it lies between 0 and 1, for example 0.02")
    for name in ("min_paired", "max_error_share"):
        if (share := getattr(settings, name)) > 1:
            raise SettingsError(f"evalsuite_{name} {share:g}: a share is at most 1, for example 0.9")
    for text in settings.accept_change:
        parse_changes(text)


def check_batch(settings: Settings) -> None:
    """Check that --batch and its related options agree."""
    if settings.detach and not settings.batch:
        raise SettingsError("--detach goes with --batch: it ends the session once the batches are sent")
    if settings.batch and settings.gateway:
        raise SettingsError(
            "--batch and --gateway exclude each other: a gateway answers call by call; leave out one of them"
        )
