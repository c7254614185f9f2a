"""Model access for builds, through the gateway, which limits, retries and stores requests."""

from __future__ import annotations

import asyncio
import sys
from argparse import _ActionsContainer  # Base class of argparse's parsers and argument groups.
from collections.abc import Container, Coroutine, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.core.settings import OPTIONS, Settings, make_settings

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.gateway.loop import BackgroundLoop

T = TypeVar("T")
TAKEN = ("model", "model_base_url", "model_param", "max_connections", "max_rpm", "max_tpm", "max_cost", "price")
"""The run's options that a build with a model also has."""


def add_options(
    parser: _ActionsContainer, names: Container[str], *, required: Container[str] = (), defaults: bool = False
) -> None:
    """Add the run options in `names` to a parser; with `defaults`, the options' help states their default values."""
    for option in OPTIONS:
        if option.name in names:
            text = option.help if defaults else option.help.partition(". Default: ")[0]
            parser.add_argument(
                option.flag,
                dest=option.name,
                metavar=option.metavar,
                required=option.name in required,
                action="append" if option.repeat else "store",
                help=text.replace("%%", "%").replace("%", "%%"),
            )


def make_model_settings(values: Mapping[str, Any]) -> Settings:
    """Make the model's settings from a command's arguments."""
    return make_settings({name: values.get(name) for name in TAKEN})


class ModelSession:
    """A model whose requests run in a background event loop, so that Ctrl-C can interrupt the main thread."""

    def __init__(self, settings: Settings, gateway: Gateway, background: BackgroundLoop) -> None:
        from evalsuite.gateway.handle import ModelHandle

        self._gateway, self._background = gateway, background
        self.model = ModelHandle(self, settings.model or "", settings.model_base_url, overrides=settings.model_params)
        self.cut_off = 0

    async def ask(self, request: Request) -> Completion:
        """Send a request to the gateway; count truncated answers."""
        completion = await self._gateway.ask(request)
        self.cut_off += completion.finish_reason == "length"
        return completion

    def run_coroutines(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run all coroutines concurrently, because the gateway limits connections; return their results in order."""

        async def gather_results() -> list[T]:
            return await asyncio.gather(*coroutines)

        return self._background.run(gather_results())


@contextmanager
def open_session(settings: Settings, store: Path) -> Iterator[ModelSession]:
    """Open a session for the duration of the `with` block; `store` is the file that keeps the model's answers."""
    from evalsuite.gateway.loop import BackgroundLoop
    from evalsuite.gateway.opening import make_credentials, open_gateway
    from evalsuite.gateway.spend import read_prices
    from evalsuite.journal.answers import Answers
    from evalsuite.models.choice import open_backend

    async def open_session_gateway() -> Gateway:
        # The store must be opened in the loop's thread.
        read_prices(settings.price)
        open_backend(settings.model or "", settings.model_base_url, make_credentials(settings)).check()
        return open_gateway(settings, Answers.open(store))

    async def close_session_gateway(gateway: Gateway) -> bool:
        # Wait briefly for pending calls, because their answers are paid for; then cancel the remaining calls.
        await gateway.aclose()
        with closing(Answers.open(store, read_only=True)) as answers:
            return len(answers) == 0

    # Make modules of the current directory importable for `function:package.module:name`, as under pytest.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    background = BackgroundLoop()
    try:
        gateway = background.run(open_session_gateway())
        try:
            yield ModelSession(settings, gateway, background)
        finally:
            if background.run(close_session_gateway(gateway)):
                store.unlink()  # Delete an empty store: no answer arrived.
    finally:
        background.close()
