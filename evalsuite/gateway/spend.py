"""What the run has spent, what its prices are, and the limit that it must not pass."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from evalsuite.errors import SettingsError, SpendLimitReached
from evalsuite.json_codec import dumps, encode_message
from evalsuite.types import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalsuite.types import Request

# Where a request does not bound its answer, this many tokens are set aside for it.
UNBOUNDED_ANSWER = 4096

# US dollars: sums of floats are not exact, a limit that is met to the cent must be.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def read_prices(overrides: Iterable[str] = ()) -> dict[str, Price]:
    """The shipped table of prices, with the user's own `model=prompt/completion` over it.

    Raises:
        SettingsError: an override is malformed.
    """
    table = json.loads(resources.files("evalsuite.gateway").joinpath("prices.json").read_text("utf-8"))
    prices = {model: Price(*pair) for model, pair in table["usd_per_million_tokens"].items()}
    for override in overrides:
        model, _, pair = override.rpartition("=")
        try:
            prompt, completion = (float(part) for part in pair.split("/"))
        except ValueError:
            prompt = completion = math.nan
        if not (model and 0 <= prompt < math.inf and 0 <= completion < math.inf):
            raise SettingsError(
                f"--price {override}: not a price; write MODEL=PROMPT/COMPLETION in US dollars a million tokens, "
                "for example gpt-4=30/60"
            )
        prices[model] = Price(prompt, completion)
    return prices


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """A model's price: by its name, else by the longest known name that it begins with (dated versions)."""
    names = [name for name in prices if model == name or model.startswith(f"{name}-20")]
    return prices[max(names, key=len)] if names else None


def estimate_tokens(request: Request) -> int:
    """Prompt tokens, roughly.

    No tokenizer is at hand for every model; three characters a token errs on the high side for English, two
    bytes a token for other languages.
    """
    text = dumps([[encode_message(message) for message in request.messages], request.tools])
    return 8 * len(request.messages) + (len(text) // 3 if text.isascii() else len(text.encode()) // 2)


def answer_bound(request: Request) -> int:
    """Completion tokens at most, as far as the request says."""
    bound = _whole(request.params.get("max_tokens")) or _whole(request.params.get("max_completion_tokens"))
    return (bound or UNBOUNDED_ANSWER) * (_whole(request.params.get("n")) or 1)


def _whole(given: object) -> int:
    """A parameter as it should be; 0 for nonsense, which the server will refuse with better words."""
    return given if isinstance(given, int) and given > 0 else 0


class Ledger:
    """Counts what is paid and holds back the call that would pass the limit.

    Args:
        limit: US dollars; None is no limit.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.paid = Usage()
        self._reserved: list[float] = []
        self._settled = asyncio.Event()

    async def reserve(self, amount: float) -> None:
        """Sets aside what a call may cost at most; waits where calls under way may yet turn out cheaper.

        Raises:
            SpendLimitReached: the limit would be passed even if nothing else were under way.
        """
        while amount and self._passes(amount, *self._reserved):
            if self._passes(amount):
                raise SpendLimitReached(
                    f"the spend limit is reached: ${self.paid.cost:.4f} of --max-cost ${self.limit:g} is spent and "
                    f"the next call may cost ${amount:.4f}; raise the limit and go on with --resume last"
                )
            self._settled.clear()
            await self._settled.wait()
        self._reserved.append(amount)

    def _passes(self, *amounts: float) -> bool:
        """Whether the limit would be passed if all of this were paid, too."""
        return self.limit is not None and math.fsum((self.paid.cost, *amounts)) > self.limit + ROUNDING

    def settle(self, amount: float, usage: Usage | None) -> None:
        """Gives back what was set aside, and books what was used (None: the call failed and cost nothing)."""
        self._reserved.remove(amount)
        if usage:
            self.paid += usage
        self._settled.set()
