"""CPU milliseconds of `evalsuite gateway` for one request: asked of a model server, and kept already.

    PERF_TOOLS=DIR python perf/gateway_service.py [--store postgresql://...] [REQUESTS]

PERF_TOOLS holds fake_server.py. CPU time, as the machine may be busy with other things; Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evalsuite.core.types import Message, Request
from evalsuite.models.openai import OpenAIBackend
from evalsuite.service.clients import ServiceAddress
from evalsuite.service.remote import RemoteBackend

FAKE_PORT = 8197
AT_ONCE = 100


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask_all(url: str, upstream: str, number: int) -> float:
    """Asks as a session does; returns seconds on the wall."""
    backend = RemoteBackend(OpenAIBackend(upstream), [ServiceAddress(url, None)])
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(item: int) -> None:
        async with places:
            await backend.complete(Request("fake", (Message("user", f"ITEM {item}"),), {"max_tokens": 8}))

    started = time.perf_counter()
    await asyncio.gather(*map(ask, range(number)))
    seconds = time.perf_counter() - started
    await backend.aclose()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("requests", type=int, nargs="?", default=5000)
    parser.add_argument("--store")
    options = parser.parse_args()
    upstream = f"http://127.0.0.1:{FAKE_PORT}/v1"
    fake = [sys.executable, f"{os.environ['PERF_TOOLS']}/fake_server.py", str(FAKE_PORT), "--latency", "0.05"]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(fake) as server:
        store = options.store or f"{folder}/store.sqlite"
        command = [sys.executable, "-m", "evalsuite", "gateway", "--port=0", "--max-connections=100"]
        command += [f"--upstream={upstream}", f"--store={store}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
            assert gateway.stdout
            url = gateway.stdout.readline().partition(": ")[2].strip()
            # Imports and connections are no part of it.
            asyncio.run(ask_all(url, upstream, 200))
            for kind in ("asked and kept, after the first 200", "kept already"):
                before = cpu_seconds(gateway.pid)
                seconds = asyncio.run(ask_all(url, upstream, options.requests))
                used = cpu_seconds(gateway.pid) - before
                each = 1000 * used / options.requests
                print(f"{kind}: {each:.2f} ms CPU, {options.requests / seconds:.0f}/s on the wall")
            gateway.terminate()
        server.terminate()


main()
