"""How a run was made: command and versions, without secrets."""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from evalsuite.core.redaction import redact
from evalsuite.gateway.concealment import Vault

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = (
    "evalsuite",
    "pytest",
    "pytest-xdist",
    "xllamacpp",
    "sacrebleu",
    "nltk",
    "jieba",
    "numpy",
    "pandas",
)


def versions(program_env: str) -> dict[str, str]:
    """The versions of packages that may change a score.

    Args:
        program_env: what programs of the model import from; one of its own is described after its name.
    """
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed | _programs(program_env)


def _programs(program_env: str) -> dict[str, str]:
    from evalsuite.core.settings import Settings

    if program_env == Settings().program_env:
        return {}
    from evalsuite.sandbox.environments import environment

    return {program_env: f"({environment(program_env).mentioned})"}


def command_line(args: Sequence[str]) -> str:
    """The command as it could be typed, without the secrets in addresses and parameters."""
    return redact(shlex.join(["pytest", *Vault().conceal_arguments(args)]))
