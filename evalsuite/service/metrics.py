"""What a gateway service tells Prometheus, in its text format 0.0.4."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalsuite.core.types import Usage
    from evalsuite.gateway.gateway import Gateway

MOST_MODELS = 100
"""Names of models in metrics; clients choose them, and each is a series for ever."""


class Counts:
    """What was answered, by client and model."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.tokens: Counter[tuple[str, str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self._models: set[str] = set()

    def answered(self, client: str, model: str, usage: Usage) -> None:
        """Counts an answer, wherever it came from."""
        if len(self._models) < MOST_MODELS:
            self._models.add(model)
        shown = model if model in self._models else "others"
        self.answers[client, shown] += 1
        self.tokens[client, shown, "prompt"] += usage.prompt_tokens
        self.tokens[client, shown, "completion"] += usage.completion_tokens

    def failed(self, client: str, error: Exception) -> None:
        """Counts a request that failed for good."""
        self.errors[client, type(error).__name__] += 1


def exposition(gateway: Gateway, counts: Counts) -> str:
    """All metrics as text."""
    ledger = gateway.ledger
    shares: Mapping[str, float] = {
        name: share.paid.cost for name, share in getattr(ledger, "shares", {}).items()
    }
    families = [
        _family("answers_total", "counter", "answers given", ("client", "model"), counts.answers),
        _family("tokens_total", "counter", "tokens in answers", ("client", "model", "kind"), counts.tokens),
        _family(
            "errors_total", "counter", "requests that failed for good", ("client", "kind"), counts.errors
        ),
        _family(
            "requests_total",
            "counter",
            "requests: kept in the store, joined to a call under way, asked",
            ("served",),
            {(name,): gateway.served[name] for name in ("kept", "joined", "asked")},
        ),
        _family("calls_in_flight", "gauge", "calls under way", (), {(): gateway.limiter.places.in_flight}),
        _family("calls_waiting", "gauge", "calls that wait for their turn", (), {(): gateway.waiting}),
        _family("servers_down", "gauge", "model servers that are down", (), {(): len(gateway.outages())}),
        _family("keeping", "gauge", "1 while answers can be kept", (), {(): int(not gateway.lost)}),
        _family("spent_dollars", "gauge", "US dollars over the store's life", (), {(): ledger.paid.cost}),
        _family(
            "client_spent_dollars",
            "gauge",
            "US dollars of each client",
            ("client",),
            {(name,): cost for name, cost in shares.items()},
        ),
    ]
    return "".join(families)


def _family(name: str, kind: str, help_text: str, labels: Iterable[str], values: Mapping[Any, float]) -> str:
    whole = f"evalsuite_gateway_{name}"
    lines = [f"# HELP {whole} {help_text}", f"# TYPE {whole} {kind}"]
    for key, value in sorted(values.items()):
        pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in zip(labels, key, strict=True))
        lines.append(f"{whole}{{{pairs}}} {value:.10g}" if pairs else f"{whole} {value:.10g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
