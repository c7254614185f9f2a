"""Fingerprints: short hashes that show whether two records come from the same question, request and scoring.

The fingerprints `input` and `target` describe the sample, `model` and `judge` describe the run, and `scorers` describes
the benchmark. The fingerprint `programs` describes Python and the packages that the model's programs can import. The
fingerprints `prompt` and `params` are hashes of the case's first request; `requests` covers all its requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import digest, encode_message
from evalsuite.core.redaction import redact
from evalsuite.engine.scoring import hash_scorers

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings
    from evalsuite.engine.bound import BoundBenchmark
    from evalsuite.engine.cases import Case


def compute_planned_fingerprints(case: Case, settings: Settings, model: str) -> dict[str, str]:
    """Compute the fingerprints that are known before a case runs."""
    shown = case.sample.input
    environments = sorted({sandbox.environment.fingerprint for sandbox in case.iterate_sandboxes()})
    programs = environments[0] if len(environments) == 1 else digest(environments)
    return {
        "input": digest(shown if isinstance(shown, str) else [encode_message(message) for message in shown]),
        "target": digest(case.sample.target),
        **_compute_shared_fingerprints(case.bound, settings, model),
        **({"programs": programs} if environments else {}),
    }


@lru_cache(maxsize=64)
def _compute_shared_fingerprints(bound: BoundBenchmark, settings: Settings, model: str) -> Mapping[str, str]:
    """Compute the fingerprints that all cases of a benchmark share."""
    asked: dict[str, tuple[Any, ...]] = {
        "model": (model, settings.model_base_url, settings.model_params),
        "judge": (settings.judge_model, settings.judge_base_url, settings.judge_params),
        "user": (settings.user_model, settings.user_base_url),
    }
    hashes = {
        role: digest([name, redact(base_url or ""), *params])
        for role, (name, base_url, *params) in asked.items()
        if name or role == "model"
    }
    if bound.faults:
        hashes["faults"] = digest([[str(fault) for fault in bound.faults.faults], settings.seed])
    return {"scorers": hash_scorers(bound.scorers), **hashes}
