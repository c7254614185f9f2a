"""The ways to hold programs: on this machine bubblewrap, then Landlock alone; elsewhere containers and servers."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SandboxUnavailable, SettingsError
from evalsuite.sandbox import bubblewrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalsuite.sandbox.environments import ProgramEnvironment
    from evalsuite.sandbox.inside.limits import Limits
    from evalsuite.sandbox.script_hosts import ScriptHost

TIERS = ("bubblewrap", "landlock")
"""The tiers of this machine, which are tried where no other is named."""
DOCKER = "docker:"
SERVERS = ("http://", "https://")


def tiers_of(name: str) -> tuple[str, ...]:
    """What `--sandbox` names: `auto` for the tiers of this machine, else one.

    Raises:
        SettingsError: it is none.
    """
    if name == "auto":
        return TIERS
    if name in TIERS or name.startswith(SERVERS) or name.removeprefix(DOCKER) not in {"", name}:
        return (name,)
    raise SettingsError(
        f"--sandbox {name}: it is auto, {', '.join(TIERS)}, docker:IMAGE, or the address of a SandboxFusion server"
    )


def script_host(tier: str, limits: Limits) -> ScriptHost | None:
    """The place outside of this machine's own walls that a tier names; None for the tiers of this machine.

    Raises:
        SandboxUnavailable: there is no docker here.
    """
    if tier.startswith(SERVERS):
        from evalsuite.sandbox.fusion_server import FusionServer

        return FusionServer(tier, limits)
    if tier.startswith(DOCKER):
        from evalsuite.sandbox.docker import Docker

        return Docker(tier.removeprefix(DOCKER), limits)
    return None


def _nothing() -> None:
    """Nothing has to be cleared away."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to start the warm interpreter.

    Attributes:
        tier: which walls it has.
        name: for messages.
        command: what is started.
        folder: where it is started.
        setup: what the walls need to know (see `inside/walls.py`).
        clear: called when the interpreter has ended.
    """

    tier: str
    name: str
    command: Sequence[str]
    folder: str | None = None
    setup: Mapping[str, Any] = field(default_factory=dict)
    clear: Callable[[], None] = _nothing


def ways(tiers: Sequence[str], environment: ProgramEnvironment, failures: dict[str, str]) -> Iterator[Way]:
    """The ways of these tiers; what cannot even be tried is put among the failures.

    Raises:
        SandboxUnavailable: on this kind of machine there are none.
    """
    bubblewrap.demand_linux()
    if "bubblewrap" in tiers:
        try:
            yield from (_wrapped(bwrap, environment) for bwrap in bubblewrap.candidates())
        except SandboxUnavailable as error:
            if len(tiers) == 1:
                raise
            failures["bubblewrap"] = str(error)
    if "landlock" in tiers:
        yield _landlocked(environment)


def _wrapped(bwrap: str, environment: ProgramEnvironment) -> Way:
    setup = {"walls": "namespaces", "kept": bubblewrap.kept(environment)}
    return Way("bubblewrap", bwrap, bubblewrap.command(bwrap, environment), setup=setup)


def _landlocked(environment: ProgramEnvironment) -> Way:
    scratch = tempfile.mkdtemp(prefix="evalsuite-programs-")
    # A program may be another user, who has to get to its own folder below.
    Path(scratch).chmod(0o711)
    return Way(
        "landlock",
        "Landlock",
        [environment.interpreter.executable, "-s", "-S", "-B", "-m", "inside"],
        str(bubblewrap.INSIDE.parent),
        {"walls": "landlock", "shown": _readable(environment), "scratch": scratch},
        lambda: shutil.rmtree(scratch, ignore_errors=True),
    )


def _readable(environment: ProgramEnvironment) -> list[str]:
    """What programs may read; of a folder that holds evalsuite, whose data hold answers, all else in it."""
    package = bubblewrap.INSIDE.parents[1].resolve()
    readable = []
    for path in bubblewrap.shown(environment):
        resolved = Path(path).resolve()
        while resolved in package.parents:
            step = resolved / package.relative_to(resolved).parts[0]
            readable += [str(entry) for entry in resolved.iterdir() if entry != step]
            resolved = step
        if resolved != package:
            readable.append(path)
    return readable
