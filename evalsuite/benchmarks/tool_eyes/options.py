"""The arguments of `@benchmark(TOOL_EYES, ...)` beside data and modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.tool_eyes.capabilities import RELEASED_MODES
from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.solvers.episode import MAX_TURNS, OBSERVATION_LIMIT

if TYPE_CHECKING:
    from evalsuite.core.protocols import Setup

Executors = Literal["python", "simulated", "recorded", "live"]


@dataclass(frozen=True, slots=True)
class ToolEyesOptions:
    """The further arguments of `@benchmark(TOOL_EYES, ...)`.

    Attributes:
        queries: maximum number of queries per scenario, the first ones; None for all.
        executor: how the published tools are run: `simulated`, `recorded` or `live`. The shipped tools are Python.
        observations: folder that keeps the observations of simulated tools and users for later runs; by default the
            folder of reports.
        recording: for `recorded`: the folder of the run with the observations.
        library: for `live`: the folder `Tool_Library` with the published `tool.py` files.
        allow_network: for `live`: must be True, because these tools call services on the internet.
        allow_code: for `live`: whether to run tools that execute code written by the model. False leaves their queries
            out; None refuses a run that has such queries.
        max_turns: maximum number of turns of the model; 9 in the paper.
        patience: number of malformed turns in a row after which an episode is given up; None, as in the paper, for no
            such limit.
        max_tokens: limit of each turn; None for 512, or 1,024 in the released modes as in the released code.
        observation_limit: maximum length of an observation in characters.
    """

    queries: int | None = None
    executor: Executors | None = None
    observations: str | None = None
    recording: str | None = None
    library: str | None = None
    allow_network: bool = False
    allow_code: bool | None = None
    max_turns: int = MAX_TURNS
    patience: int | None = None
    max_tokens: int | None = None
    observation_limit: int = OBSERVATION_LIMIT

    @classmethod
    def of(cls, setup: Setup) -> ToolEyesOptions:
        """The options of a setup.

        Raises:
            SettingsError: there is no such option, or a number makes no sense.
        """
        return read_options("ToolEyes", cls, setup.args)

    def __post_init__(self) -> None:
        """Refuses numbers that make no sense.

        Raises:
            SettingsError: one is no whole number of at least 1.
        """
        for name in ("queries", "max_turns", "patience", "max_tokens", "observation_limit"):
            value = getattr(self, name)
            absent = value is None and name in {"queries", "patience", "max_tokens"}
            if not absent and (type(value) is not int or value < 1):
                message = f"tool_eyes was given {name}={value!r}"
                raise SettingsError(f"{message}; it must be a whole number of at least 1")

    def tokens_of(self, mode: str) -> int:
        """The limit on tokens of a turn in a mode."""
        return self.max_tokens or (1024 if mode in RELEASED_MODES else 512)
