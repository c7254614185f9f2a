"""Fingerprints: short hashes that tell whether two records come from the same question, asked and scored alike.

`input` and `target` belong to the sample, `model` and `judge` to the run, `scorers` to the benchmark, `programs` to
Python and the packages that programs of the model find; `prompt` and `params` are what the case's first request sent,
`requests` all that the case sent.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import digest, encode_message
from evalsuite.core.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.settings import Settings
    from evalsuite.engine.bound import Bound
    from evalsuite.engine.cases import Case

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # an object's address in memory, which differs from process to process


def planned_fingerprints(case: Case, settings: Settings, model: str) -> dict[str, str]:
    """Compute the fingerprints that are known before a case runs."""
    return {
        "input": digest(_make_input(case)),
        "target": digest(case.sample.target),
        **_of_all_cases(case.bound, settings, model),
        **_make_programs(case),
    }


@lru_cache(maxsize=64)
def _of_all_cases(bound: Bound, settings: Settings, model: str) -> Mapping[str, str]:
    return {
        "scorers": scorers_fingerprint(bound),
        "model": digest([model, redact(settings.model_base_url or ""), settings.model_params]),
        **({"faults": digest([[str(fault) for fault in bound.faults.faults], settings.seed])} if bound.faults else {}),
        **_judge(settings),
        **_user(settings),
    }


def _make_programs(case: Case) -> dict[str, str]:
    environments = sorted({sandbox.environment.fingerprint for sandbox in case.sandboxes()})
    if not environments:
        return {}
    return {"programs": environments[0] if len(environments) == 1 else digest(environments)}


def _judge(settings: Settings) -> dict[str, str]:
    if not settings.judge_model:
        return {}
    return {"judge": digest([settings.judge_model, redact(settings.judge_base_url or ""), settings.judge_params])}


def _user(settings: Settings) -> dict[str, str]:
    if not settings.user_model:
        return {}
    return {"user": digest([settings.user_model, redact(settings.user_base_url or "")])}


def _make_input(case: Case) -> Any:
    shown_input = case.sample.input
    return shown_input if isinstance(shown_input, str) else [encode_message(message) for message in shown_input]


def scorers_fingerprint(bound: Bound) -> str:
    """Hash all scorers of a benchmark with their arguments and their versions."""
    return digest(sorted(_write_scorer(scorer) for scorer in bound.scorers))


def _write_scorer(scorer: Any) -> str:
    kind = scorer if inspect.isfunction(scorer) else type(scorer)
    cells = [stable_text(_make_content(cell)) for cell in getattr(scorer, "__closure__", None) or ()]
    arguments = "" if kind is scorer else stable_text(scorer)
    # A scorer of evalsuite's own stays the same scorer when its file moves.
    module = "evalsuite" if _is_shipped(kind) else kind.__module__
    return f"{module}.{kind.__qualname__} {arguments} {cells} {_write_version(scorer, kind)}"


def stable_text(value: Any) -> str:
    """Return a value's repr, made the same in every process: members of sets are sorted, addresses are left out.

    The order of a set depends on the process's hash seed, and workers have seeds of their own.
    """
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(stable_text, value)))}}}"
    if type(value) in {list, tuple}:
        return f"[{', '.join(map(stable_text, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{stable_text(key)}: {stable_text(inner)}' for key, inner in value.items())}}}"
    if is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.repr:  # type: ignore[attr-defined]
        shown = [f"{field.name}={stable_text(getattr(value, field.name))}" for field in fields(value) if field.repr]
        return f"{type(value).__qualname__}({', '.join(shown)})"
    return ADDRESS.sub("", repr(value))


def _make_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # The cell is not filled yet, because the function refers to itself.
        return None


def _write_version(scorer: Any, kind: Any) -> str:
    # A scorer's own version, evalsuite's version for shipped scorers, and the source code of all others.
    if (own := getattr(scorer, "version", None)) is not None:
        return str(own)
    if _is_shipped(kind):
        return version("evalsuite")
    try:
        return digest(inspect.getsource(kind))
    except (OSError, TypeError):
        return "unknown"


def _is_shipped(kind: Any) -> bool:
    return str(kind.__module__).partition(".")[0] == "evalsuite"
