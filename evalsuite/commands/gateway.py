"""`evalsuite gateway`: serve model calls to many sessions. `evalsuite ray`: run a suite's shards on a cluster."""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Container
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.builders.model_session import add_options
from evalsuite.commands import make_declarations, print_at_once, require_suite
from evalsuite.commands.gate import print_verdict
from evalsuite.core.errors import SettingsError, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.settings import OPTIONS, make_settings
from evalsuite.service.clients import PORT, TOKEN

if TYPE_CHECKING:
    from evalsuite.clusters.sharded_run import RayCluster, ShardedRun

SHARED = (
    *("max_connections", "max_rpm", "max_tpm", "max_cost", "price", "patience"),
    *("connect_timeout", "silence_timeout", "call_timeout", "max_answer_mb"),
)
"""Settings with the same meaning for a gateway as for a session."""


@declare_arguments(
    """
    --host HOST                address on which the gateway listens (default: 127.0.0.1)
    --port PORT                port on which the gateway listens (default: 4747; 0: a free port)
    --tls-cert FILE            certificate (PEM); required beyond loopback
    --tls-key FILE             private key of the certificate, if it is in another file
    --clients FILE             clients that may ask: {"ci": {"token": "...", "share": 0.5, "max_rpm": 600, "max_tpm":
        90000}}, where share is a part of --max-cost, and the limits are per minute (default: everybody on this host)
    --audit FILE               file that gets a line of JSON per request: time, client, model, outcome, tokens, cost; no
        texts
    --store FILE|URL           store of the answers: a file (default: gateway.sqlite), or
        postgresql://USER@HOST/DATABASE for several gateways (extra `postgres`; the password in PGPASSWORD)
    --max-age HOURS            hours for which a stored answer is reused, so that a change of the model is noticed
        (default 24; inf: no limit)
    --upstream URL[,KEY_ENV]*  a model server that may be called, with the variable of its key if this is not
        OPENAI_API_KEY; may be repeated. The first serves programs that name no server (default: OPENAI_BASE_URL, or
        OpenAI)
    --model MODEL*             serve only these models; may be repeated. local: and function: models must be named

    The keys of model servers are in this process's environment (OPENAI_API_KEY) and nowhere else. Sessions connect by
    --gateway URL, other programs by OPENAI_BASE_URL=URL/v1. A session sends the token in EVALSUITE_GATEWAY_TOKEN,
    another program sends its token as the API key. docs/scaling.md has an example for a CI matrix.
    """,
    host="127.0.0.1",
    port=PORT,
    store="gateway.sqlite",
    max_age=24.0,
    extend_parser=partial(add_options, names=SHARED, defaults=True),
)
def run_gateway(options: Namespace) -> int:
    """Serve until a signal arrives."""
    from evalsuite.models.choice import make_functions_importable
    from evalsuite.service.serving import serve_until_signal

    if not options.max_age >= 0:
        raise SettingsError(f"--max-age {options.max_age}: it must be a number of hours of at least 0, or inf")
    if not 0 <= options.port < 2**16:
        raise SettingsError(f"--port {options.port}: it must be a number from 0 (any free port) to 65535")
    make_functions_importable(Path.cwd(), *options.model)
    asyncio.run(serve_until_signal(options, make_settings({name: getattr(options, name) for name in SHARED})))
    return 0


MODELS = ("model", "judge_model", "user_model")
ADDRESSES = [(f"{role}_base_url", f"{role}_key_env") for role in ("model", "judge", "user")]


def _forbid_abbreviations(parser: ArgumentParser) -> None:
    # argparse would otherwise mistake some options of pytest for abbreviated options of this command.
    parser.allow_abbrev = False


@declare_arguments(
    """
    suite=SUITE        folder or file of the cases, below the current directory
    --shards N         number of shards, each a Ray task
    --address ADDRESS  HOST:PORT of the cluster, or `auto` to find one (default: start one on this machine)
    --gateway URL      gateway that all shards ask (default: this command starts one, if all nodes are on this host).
        Its token is in EVALSUITE_GATEWAY_TOKEN
    --cpus N           cores that Ray sets aside for each shard (default: 1)
    --pip PACKAGE*     package to install on every node; may be repeated
    name=--run NAME    name of the joined run's folder (default: ray- and the time)
    --reports

    All other options are pytest's and evalsuite's own, as in a session: --model, --gate, --limit, -k. Limits and
    prices of calls (--max-rpm, --max-cost, --price ...) apply to the gateway that all shards ask. Keys stay in this
    process's environment. A shard whose node dies is run again on another node; stored answers are not asked for again.
    """,
    required=("shards",),
    shards=int,
    cpus=1.0,
    extend_parser=_forbid_abbreviations,
)
def run_ray(options: Namespace) -> int:
    """Run all shards and join them; return the exit status that a single session would have."""
    from evalsuite.clusters.sharded_run import STORE, RayCluster, ShardedRun

    if options.shards < 1:
        raise SettingsError(f"--shards {options.shards}: it must be a whole number of at least 1")
    if not options.cpus >= 0 or math.isinf(options.cpus):
        raise SettingsError(f"--cpus {options.cpus:g}: it must be a number of at least 0")
    require_suite(options.suite)
    name = options.name or time.strftime("ray-%Y-%m-%d-%H%M%S")
    with ExitStack() as stack:
        cluster = RayCluster(options.address, Path.cwd(), options.pip, options.cpus)
        stack.callback(cluster.close)
        sharded = ShardedRun(options.reports, name)
        gateway, arguments = _provide_gateway(options, cluster, sharded.path, stack)
        declarations = make_declarations(Path(options.suite.partition("::")[0]))
        report = sharded.join_results(_run_shards(options, cluster, gateway, arguments, sharded), declarations)
    # Delete the gateway's store, because the run's journal contains all of the store's answers.
    (sharded.path / STORE).unlink(missing_ok=True)
    status = sharded.compute_exit_status(int(report.verdict.status))
    print_verdict(report.verdict, status)
    sys.stdout.write(f"report: {sharded.path / 'report.md'}\n")
    return status


def _provide_gateway(options: Namespace, cluster: RayCluster, folder: Path, stack: ExitStack) -> tuple[str, list[str]]:
    """Return the gateway's address and the sessions' arguments; without `--gateway`, start a gateway."""
    from evalsuite.clusters.sharded_run import STORE, run_own_gateway

    limits, rest = read_given_settings(options.further, SHARED)
    own = [f"--{name.replace('_', '-')}={value}" for name, values in limits.items() for value in values]
    if options.gateway:
        if own:
            raise SettingsError(
                f"{shlex.join(own)}: a gateway of your own has these settings; give them to `evalsuite gateway`"
            )
        return options.gateway, [options.suite, *rest]
    if not cluster.is_on_one_host:
        raise SettingsError(
            "nodes of this cluster are on other hosts, which cannot reach this one's loopback: start `evalsuite "
            "gateway --host ... --tls-cert ... --clients ...` and name it with --gateway"
        )
    served = run_own_gateway([*own, *make_upstream_options(rest)], Path.cwd(), folder / STORE)
    return stack.enter_context(served), [options.suite, *rest]


def read_given_settings(arguments: list[str], names: Container[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Read settings that are given as options or by pytest's `-o`; return their values and the remaining arguments."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--override-ini", action="append", default=[])
    for option in OPTIONS:
        if option.name in names:
            parser.add_argument(option.flag, dest=option.name, action="append", default=[])
    recognised, rest = parser.parse_known_args(arguments)
    values = vars(recognised)
    for text in values.pop("override_ini"):
        key, _, value = text.partition("=")
        name = key.removeprefix("evalsuite_")
        if key != name and name in values:
            values[name].append(value)
        else:
            rest.append(f"-o{text}")
    return values, rest


def make_upstream_options(arguments: list[str]) -> list[str]:
    """Convert a session's models and their addresses to options of `evalsuite gateway`."""
    values, _ = read_given_settings(arguments, (*MODELS, *chain.from_iterable(ADDRESSES)))
    last = {name: given[-1] for name, given in values.items() if given and given[-1]}
    models = [f"--model={last[name]}" for name in MODELS if name in last]
    pairs = [filter(None, (last[address], last.get(key))) for address, key in ADDRESSES if address in last]
    return [*models, *(f"--upstream={','.join(pair)}" for pair in pairs)]


def _run_shards(
    options: Namespace, cluster: RayCluster, gateway: str, arguments: list[str], sharded_run: ShardedRun
) -> Any:
    """Run the shards on the cluster, and print the progress; yield each shard's result."""
    jobs = {
        part: [*arguments, f"--shard={part}/{options.shards}", f"--gateway={gateway}"]
        for part in range(1, options.shards + 1)
    }
    last_line = ""

    def print_progress(words: str) -> None:
        nonlocal last_line
        line = f"{words}, {write_count(len(sharded_run.cases), 'case')}"
        if line != last_line:
            last_line = line
            print_at_once(line)

    return cluster.run_shards(jobs, os.environ.get(TOKEN), sharded_run.cases.update, print_progress)
