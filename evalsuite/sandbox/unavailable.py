"""Explains why no sandbox could be started, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.sandbox.bubblewrap import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping

# (setting, the value that closes user namespaces, the command that opens them)
SETTINGS = (
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
CONTAINER = (
    "in a container, allow them: docker run --security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined --security-opt systempaths=unconfined (podman alike)"
)


def why(failures: Mapping[str, str]) -> str:
    """Why each sandbox that was tried did not start, and the advice that fits this machine.

    Args:
        failures: the reason by sandbox; empty where none was allowed.
    """
    if not failures:
        return (
            "model-written code runs only in a sandbox, and none is allowed: Sandbox(tiers=()) names no tier"
        )
    reasons = "; ".join(f"{sandbox}: {reason}" for sandbox, reason in failures.items())
    return (
        f"model-written code runs only in a sandbox, and none could be started ({reasons}). Most often user "
        f"namespaces are closed: {advice()}. Or run programs elsewhere: {ELSEWHERE}"
    )


def advice() -> str:
    """How to allow user namespaces here. A container sees the host's settings, and may forbid them on its own."""
    closed = [command for setting, value, command in SETTINGS if _reads(setting, value)]
    return f"as root, {' and '.join(closed)}; {CONTAINER}" if closed else CONTAINER


def _reads(setting: str, value: str) -> bool:
    try:
        return Path(setting).read_text("ascii").strip() == value
    except OSError:
        return False
