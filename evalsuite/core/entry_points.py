"""Find benchmarks and model backends by name, in evalsuite and in installed packages; import names on first use.

Benchmarks and backends of other packages are entry points, in the same form as evalsuite's own in `SHIPPED`:

    [project.entry-points."evalsuite.benchmarks"]
    proverbs = "proverbs.benchmark:PROVERBS"        # a `Benchmark`; @benchmark("proverbs") finds it

    [project.entry-points."evalsuite.models"]
    parrot = "proverbs.parrot:Parrot"               # Parrot(name, base_url) is a backend: --model=parrot:grey
"""

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal

import lazy_loader  # type: ignore[import-untyped]

from evalsuite.core.errors import SettingsError, describe_error

Group = Literal["evalsuite.benchmarks", "evalsuite.models"]

SHIPPED: Mapping[Group, Mapping[str, str]] = {
    "evalsuite.benchmarks": {
        "head_to_tail": "evalsuite.benchmarks.head_to_tail:HEAD_TO_TAIL",
        "struc_bench": "evalsuite.benchmarks.struc_bench:STRUC_BENCH",
        "treb": "evalsuite.benchmarks.treb:TREB",
        "chat_eval": "evalsuite.benchmarks.chat_eval:CHAT_EVAL",
        "tool_eyes": "evalsuite.benchmarks.tool_eyes:TOOL_EYES",
        "bfcl": "evalsuite.benchmarks.bfcl:BFCL",
        "tau2": "evalsuite.benchmarks.tau2:TAU2",
        "wikitablequestions": "evalsuite.benchmarks.table_questions:WIKITABLEQUESTIONS",
        "tabfact": "evalsuite.benchmarks.table_questions:TABFACT",
        "tablebench": "evalsuite.benchmarks.table_questions:TABLEBENCH",
        "databench": "evalsuite.benchmarks.table_questions:DATABENCH",
        "spider": "evalsuite.benchmarks.table_questions:SPIDER",
        "bird": "evalsuite.benchmarks.table_questions:BIRD",
    },
    "evalsuite.models": {
        "local": "evalsuite.models.llama_cpp:LlamaCppBackend",
        "litellm": "evalsuite.models.litellm:LitellmBackend",
        "answers": "evalsuite.models.answers:AnswersBackend",
        "function": "evalsuite.models.function:FunctionBackend",
    },
}
"""Import targets of evalsuite's own names, which also work from a source tree, because no packages are scanned."""


def find_import_target(group: Group, name: str) -> str | None:
    """Find the import target `package.module:NAME` of a name; return None if no package registers the name."""
    if name in SHIPPED[group]:
        return SHIPPED[group][name]
    targets = _map_names_to_import_targets(group).get(name, ())
    if len(targets) > 1:
        raise SettingsError(
            f"{name!r} is offered twice, by {' and by '.join(targets)} (entry points {group}); uninstall one package"
        )
    return targets[0] if targets else None


def list_known_names(group: Group) -> list[str]:
    """List all registered names, evalsuite's own names first."""
    return [*SHIPPED[group], *sorted(_map_names_to_import_targets(group).keys() - SHIPPED[group])]


def load_import_target(target: str) -> Any:
    """Import the object that `package.module:NAME` names."""
    module, _, attribute = target.partition(":")
    try:
        value: Any = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except Exception as error:
        raise SettingsError(f"{target} cannot be imported: {describe_error(error)}") from error
    return value


@cache
def _map_names_to_import_targets(group: Group) -> dict[str, tuple[str, ...]]:
    from importlib.metadata import entry_points

    targets: dict[str, dict[str, None]] = {}
    for entry in entry_points(group=group):
        # If a package is on `sys.path` twice, it registers the same object twice.
        targets.setdefault(entry.name, {})[entry.value] = None
    return {name: tuple(values) for name, values in targets.items()}


def attach_names(
    package: str, file: str, renamed: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` for a package whose names are declared in its stub file.

    Args:
        renamed: maps each former name to its present path, relative to the package.
    """
    find, listed, names = lazy_loader.attach_stub(package, file)

    def find_attribute(name: str) -> Any:
        if name not in renamed:
            return find(name)
        current = f"{package}.{renamed[name]}"
        warnings.warn(f"{package}.{name} is now {current}", DeprecationWarning, stacklevel=2)
        module, _, attribute = current.rpartition(".")
        return getattr(import_module(module), attribute)

    return find_attribute, listed, names
