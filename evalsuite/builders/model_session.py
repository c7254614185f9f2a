"""Model access for builds, through the gateway, which limits, retries and stores requests."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.settings import OPTIONS, Settings, read_settings

if TYPE_CHECKING:
    from argparse import _ActionsContainer  # Base class of argparse's parsers and argument groups.
    from collections.abc import Callable, Container, Coroutine, Iterator, Mapping

    from evalsuite.core.types import Completion, Request
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.gateway.handle import ModelHandle

TAKEN = ("model", "model_base_url", "model_param", "max_connections", "max_rpm", "max_tpm", "max_cost", "price")
"""The run's options that a build with a model also has."""


def add_options(
    parser: _ActionsContainer, names: Container[str], *, required: Container[str] = (), defaults: bool = False
) -> None:
    """Add the named options of a run; `defaults` states each default in the help."""
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


def add_model_options(parser: _ActionsContainer, *, required: bool = True, without: Container[str] = ()) -> None:
    """Add the options of `TAKEN`, except the names in `without`, which the command defines itself."""
    names = [name for name in TAKEN if name not in without]
    add_options(parser, names, required={"model"} if required else ())


def select_model_settings(values: Mapping[str, Any]) -> Settings:
    """Read the settings among a command's arguments."""
    return read_settings({name: values.get(name) for name in TAKEN})


class ModelSession:
    """A model whose requests run in a background event loop, so that Ctrl-C can interrupt the main thread."""

    def __init__(self, settings: Settings, store: Path) -> None:
        from evalsuite.gateway.loop import BackgroundLoop

        self._background = BackgroundLoop()
        self._settings, self._store = settings, store
        self._gateway: Gateway | None = None
        self.cut_off = 0
        try:
            self._gateway = self._background.run(self._open_gateway(store))
        except BaseException:
            self._background.close()
            raise

    async def _open_gateway(self, store: Path) -> Gateway:
        # The store must be opened in the loop's thread.
        from evalsuite.gateway.opening import make_credentials, open_gateway
        from evalsuite.gateway.spend import read_prices
        from evalsuite.journal.answers import Answers
        from evalsuite.models.choice import open_backend

        settings = self._settings
        read_prices(settings.price)
        open_backend(settings.model or "", settings.model_base_url, make_credentials(settings)).check()
        return open_gateway(settings, Answers.open(store))

    async def ask(self, request: Request) -> Completion:
        """Send a request to the gateway; count truncated answers."""
        if self._gateway is None:
            raise RuntimeError("the session is not open")
        completion = await self._gateway.ask(request)
        self.cut_off += completion.finish_reason == "length"
        return completion

    def run_coroutine(self, work: Callable[[ModelHandle], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine that uses the model, and wait until it ends."""
        from evalsuite.gateway.handle import ModelHandle

        settings = self._settings
        model = ModelHandle(self, settings.model or "", settings.model_base_url, overrides=settings.model_params)
        self._background.run(work(model))

    def close(self) -> None:
        """Wait briefly for pending calls, because they cost money; store their answers, and cancel the other calls."""
        if self._gateway is not None:
            self._background.run(self._close_gateway(self._gateway))
        self._background.close()

    async def _close_gateway(self, gateway: Gateway) -> None:
        await gateway.aclose()
        from evalsuite.journal.answers import Answers

        with closing(Answers.open(self._store, read_only=True)) as answers:
            is_empty = not len(answers)
        # Delete an empty store, because the model was never reached.
        if is_empty:
            self._store.unlink()


@contextmanager
def open_session(settings: Settings, store: Path) -> Iterator[ModelSession]:
    """Open a session for the duration of the block."""
    # Modules of the current directory must be importable for `function:package.module:name`, as they are under pytest.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    opened = ModelSession(settings, store)
    try:
        yield opened
    finally:
        opened.close()
