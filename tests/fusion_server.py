"""A server on this machine that speaks SandboxFusion's `POST /run_code`, and really runs what it is sent.

Written from the protocol (github.com/bytedance/SandboxFusion, `sandbox/server/sandbox_api.py` and
`sandbox/runners/base.py`): files are put beside the script and fetched afterwards, a limit on memory bounds the address
space, and standard error is kept up to 1 MiB. An answer is sent in two packets. Scripts run in this project's own
sandbox, within one program that starts them as a process of their own.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from evalsuite.sandbox import Limits, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUN = """
import base64, json, os, subprocess, sys, time
started = time.monotonic()
path = os.environ | {{"PYTHONPATH": os.pathsep.join(sys.path[1:])}}
open("script.py", "wb").write(base64.b64decode({code!r}))
for name, content in {files!r}.items():
    open(name, "wb").write(base64.b64decode(content))
if {memory} > 0:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (min({memory} << 20, resource.getrlimit(resource.RLIMIT_AS)[1]),) * 2)
try:
    done = subprocess.run([sys.executable, "-B", "script.py"], capture_output=True, timeout={seconds!r}, env=path)
    result = ["Finished", done.returncode, done.stdout, done.stderr]
except subprocess.TimeoutExpired as error:
    result = ["TimeLimitExceeded", None, error.stdout or b"", error.stderr or b""]
result[2:] = [part[: 1 << 20].decode("utf-8", "replace") for part in result[2:]]
fetched = {{
    name: base64.b64encode(open(name, "rb").read()).decode() for name in {fetch!r} if os.path.isfile(name)
}}
print(json.dumps([*result, time.monotonic() - started, fetched]))
"""


@contextmanager
def fusion_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields its address, and the requests that it has heard."""
    heard: list[dict[str, Any]] = []
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    sandbox = Sandbox(limits=Limits(output=8 << 20), tiers=("bubblewrap", "landlock"))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append(asked | {"authorization": self.headers.get("Authorization")})
            code = base64.b64encode(asked["code"].encode()).decode()
            program = _RUN.format(
                code=code,
                seconds=asked["run_timeout"],
                files=asked["files"],
                memory=asked["memory_limit_MB"],
                fetch=asked["fetch_files"],
            )
            ran = asyncio.run_coroutine_threadsafe(sandbox.run(program, timeout=asked["run_timeout"] + 20), loop)
            answer: dict[str, Any] = {"status": "SandboxError", "message": "it broke", "run_result": None}
            execution = ran.result()
            if execution.error is None:
                status, code, stdout, stderr, seconds, fetched = json.loads(execution.stdout)
                answer = {
                    "status": "Success" if code == 0 else "Failed",
                    "message": "",
                    "compile_result": None,
                    "run_result": {
                        "status": status,
                        "return_code": code,
                        "stdout": stdout,
                        "stderr": stderr,
                        "execution_time": seconds,
                    },
                    "files": fetched,
                }
            data = json.dumps(answer).encode()
            self.send_response(200 if self.path == "/run_code" else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            # A client that takes the first packet for the whole answer reads half of it.
            self.wfile.write(data[:100])
            time.sleep(0.05)
            self.wfile.write(data[100:])

        def log_message(self, *_: object) -> None:
            """The terminal is the tests'."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
        asyncio.run_coroutine_threadsafe(sandbox.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
