"""What may be set where the benchmark is declared: `@benchmark(TREB, max_tokens=2048)`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from evalsuite.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.protocols import Setup


@dataclass(frozen=True, slots=True)
class TrebOptions:
    """See the module.

    Attributes:
        max_tokens: of one completion; 2048, but 48 for a model on this machine that is asked the default
            selection of the shipped samples, which is made to be quick (and `context` 2048).
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
        known = {field.name for field in fields(cls)}
        if unknown := set(setup.args) - known:
            raise SettingsError(
                f"TReB knows no argument {', '.join(sorted(unknown))}; it knows {', '.join(sorted(known))}"
            )
        hurried = is_quick(setup) and setup.model.startswith("local:")
        defaults: Mapping[str, Any] = {"max_tokens": 48, "context": 2048} if hurried else {}
        mode = {"published": True} if "published" in setup.modes else {}
        return cls(**{**defaults, **setup.args, **mode})


def is_quick(setup: Setup) -> bool:
    """Whether the run is the default selection of the shipped samples."""
    return setup.data is None and not set(setup.modes) - {"auto", "published"}
