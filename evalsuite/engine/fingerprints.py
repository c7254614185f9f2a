"""Fingerprints: short hashes that tell whether two records come from the same question, asked and scored alike.

`input` and `target` belong to the sample, `model` and `judge` to the run, `scorers` to the benchmark, `programs` to
Python and the packages that programs of the model find; `prompt` and `params` are what the case's first request sent,
`requests` all that the case sent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import digest, encode_message
from evalsuite.core.redaction import redact
from evalsuite.engine.scoring import scorers_fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.settings import Settings
    from evalsuite.engine.bound import Bound
    from evalsuite.engine.cases import Case


def planned_fingerprints(case: Case, settings: Settings, model: str) -> dict[str, str]:
    """Compute the fingerprints that are known before a case runs."""
    return {
        "input": digest(_make_input(case)),
        "target": digest(case.sample.target),
        **_hash_run(case.bound, settings, model),
        **_find_programs(case),
    }


@lru_cache(maxsize=64)
def _hash_run(bound: Bound, settings: Settings, model: str) -> Mapping[str, str]:
    return {
        "scorers": scorers_fingerprint(bound.scorers),
        "model": digest([model, redact(settings.model_base_url or ""), settings.model_params]),
        **({"faults": digest([[str(fault) for fault in bound.faults.faults], settings.seed])} if bound.faults else {}),
        **_judge(settings),
        **_user(settings),
    }


def _find_programs(case: Case) -> dict[str, str]:
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
