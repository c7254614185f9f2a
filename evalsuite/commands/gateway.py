"""`evalsuite gateway`: serve one gateway to many sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.given_settings import read_settings
from evalsuite.core.settings import OPTIONS
from evalsuite.service.clients import PORT

if TYPE_CHECKING:
    import argparse

SHARED = (
    *("max_connections", "max_rpm", "max_tpm", "max_cost", "price", "patience"),
    *("connect_timeout", "silence_timeout", "call_timeout", "max_answer_mb"),
)
"""Settings that mean the same here as in a session."""

EPILOG = """\
The keys of model servers are in this process's environment (OPENAI_API_KEY) and nowhere else. Sessions come with
--gateway URL, other programs with OPENAI_BASE_URL=URL/v1; a client's token is in EVALSUITE_GATEWAY_TOKEN or is the
API key. docs/scaling.md has an example for a CI matrix.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where it listens, whom it serves, what it asks, and its limits."""
    parser.epilog = EPILOG
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=PORT, help=f"default: {PORT}; 0 takes a free one")
    parser.add_argument(
        "--tls-cert", type=Path, metavar="FILE", help="certificate (PEM); required beyond loopback"
    )
    parser.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="its private key, if not in the same file"
    )
    parser.add_argument(
        "--clients",
        type=Path,
        metavar="FILE",
        help='who may ask: {"ci": {"token": "...", "share": 0.5}}, the share being of --max-cost (default: '
        "everybody on this host)",
    )
    parser.add_argument(
        "--store",
        default="gateway.sqlite",
        metavar="FILE|URL",
        help="where answers are kept: a file (default: gateway.sqlite), or postgresql://USER@HOST/DATABASE for "
        "several gateways (extra `postgres`; the password in PGPASSWORD)",
    )
    parser.add_argument(
        "--max-age",
        type=float,
        default=24.0,
        metavar="HOURS",
        help="how long an answer serves again, so that a model that has changed is noticed (default 24; inf: forever)",
    )
    parser.add_argument(
        "--upstream",
        action="append",
        default=[],
        metavar="URL[,KEY_ENV]",
        help="a model server that may be asked, with the variable of its key where that is not OPENAI_API_KEY; may "
        "be repeated, and the first serves programs that name none (default: OPENAI_BASE_URL, or OpenAI)",
    )
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="MODEL",
        help="serve these models only; may be repeated. local:, function: and the like have to be named",
    )
    for option in OPTIONS:
        if option.name in SHARED:
            action = "append" if option.repeat else "store"
            parser.add_argument(
                option.flag, dest=option.name, metavar=option.metavar, action=action, help=option.help
            )


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    import math
    import sys

    from evalsuite.core.errors import SettingsError
    from evalsuite.service.serving import Service, serve

    if not options.max_age >= 0:
        raise SettingsError(f"--max-age {options.max_age}: it is a number of hours from 0, or inf")
    if not 0 <= options.port < 2**16:
        raise SettingsError(f"--port {options.port}: it must be a number from 0 (any free port) to 65535")
    if any(model.startswith("function:") for model in options.model):
        # A function is looked for from here, as a session looks for it from its root.
        sys.path.insert(0, str(Path.cwd()))
    serve(
        Service(
            settings=read_settings({name: getattr(options, name) for name in SHARED}),
            host=options.host,
            port=options.port,
            store=options.store,
            max_age=None if math.isinf(options.max_age) else options.max_age * 3600.0,
            clients=options.clients,
            models=options.model,
            upstreams=options.upstream,
            certificate=options.tls_cert,
            key=options.tls_key,
        )
    )
    return 0
