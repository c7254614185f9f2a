"""What may be set where the benchmark is declared: `@benchmark(TREB, max_tokens=2048)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.core.keywords import read_options

if TYPE_CHECKING:
    from evalsuite.core.protocols import Setup


@dataclass(frozen=True, slots=True)
class TrebOptions:
    """The keyword arguments of TReB in `@benchmark`.

    Attributes:
        max_tokens: of one completion.
        temperature: the paper's; `--model-param temperature=...` overrides it from the command line.
        context: the model's, in tokens; the paper's 8192. In TCoT a table gets half as many characters, as in
            the released code; in PoT and ICoT what is shown of the frames gets about half the context.
        timeout: seconds for one program or round.
        published: whether the report shows the paper's results, like the mode of that name.
    """

    max_tokens: int = 2048
    temperature: float | None = 0.2
    context: int = 8192
    timeout: float = 10.0
    published: bool = False

    @classmethod
    def of(cls, setup: Setup) -> TrebOptions:
        """The options of a run.

        Raises:
            SettingsError: an argument is none of these.
        """
        mode = {"published": True} if "published" in setup.modes else {}
        return read_options("TReB", cls, {**setup.args, **mode})


def is_quick(setup: Setup) -> bool:
    """Whether the run is the default selection of the shipped samples."""
    return setup.data is None and not set(setup.modes) - {"auto", "published"}
