"""Prices of models, and the spending of a run and its limit."""

import asyncio
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from evalsuite.core.errors import RequestRefused, SettingsError, SpendLimitReached
from evalsuite.core.json_codec import dumps, encode_message
from evalsuite.core.types import Completion, Request, Usage
from evalsuite.models.openai_formats import build_chat_body, build_response_body

UNBOUNDED_ANSWER = 4096  # Assumed maximum number of an answer's tokens if the request sets no limit.

# Tolerance in US dollars, because sums of floats are not exact. Without this tolerance, rounding could keep a run from
# spending exactly its limit.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Price:
    """A model's prices in US dollars per million tokens."""

    prompt: float  # Price of the prompt.
    completion: float  # Price of the answer, reasoning included.
    longest: int | None = None  # Maximum tokens of a prompt at these prices; None means no maximum.
    long_prompt: float = 0.0  # Price of a prompt of more than `longest` tokens.
    long_completion: float = 0.0  # Price of the answer to a prompt of more than `longest` tokens.
    cached: float | None = None  # Price of prompt tokens read from the cache; None means the same price as `prompt`.
    # Price of prompt tokens that are written into the cache; None means the same price as `prompt`.
    cache_write: float | None = None

    def multiply_prices(self, factor: float) -> "Price":
        prices = {name: value for name, value in asdict(self).items() if name != "longest" and value is not None}
        return replace(self, **{name: factor * price for name, price in prices.items()})

    def compute_cost(
        self, prompt_tokens: float, completion_tokens: float, *, cached: float = 0, cache_writes: float = 0
    ) -> float:
        """Compute the cost of one call, in US dollars."""
        prompt, completion, dearer = self.prompt, self.completion, 1.0
        if self.longest is not None and prompt_tokens > self.longest:
            prompt, completion = self.long_prompt, self.long_completion
            dearer = prompt / self.prompt if self.prompt else 1.0
        read = prompt if self.cached is None else self.cached * dearer
        written = prompt if self.cache_write is None else self.cache_write * dearer
        plain = prompt_tokens - cached - cache_writes
        return (plain * prompt + cached * read + cache_writes * written + completion_tokens * completion) / 1e6

    def compute_usage_cost(self, usage: Usage) -> float:
        """Compute the cost of calls in US dollars; prices that depend on the prompt's length use the mean length."""
        calls = max(1, usage.calls)
        parts = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cache_write_tokens)
        prompt, completion, cached, written = (tokens / calls for tokens in parts)
        return calls * self.compute_cost(prompt, completion, cached=cached, cache_writes=written)

    def bound_cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Compute the maximum cost of these tokens, whatever part of the prompt the server caches."""
        compute = partial(self.compute_cost, prompt_tokens, completion_tokens)
        return max(compute(), compute(cached=prompt_tokens), compute(cache_writes=prompt_tokens))


def read_price_file(file: Path) -> list[str]:
    """Read a user's file of prices; return each price as text in the form of `--price`.

    Args:
        file: a TOML file with a line per model, such as `"gpt-6-sol" = [2.0, 10.0]`. The prices, in US dollars per
            million tokens, are for the prompt, the completion and, optionally, cache reads and cache writes.
    """
    form = (
        'write a line per model, "gpt-6-sol" = [2.0, 10.0], for prompt and completion (in an ini file, single prices '
        "belong to evalsuite_price)"
    )
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"evalsuite_prices {file}: cannot be read: {error}; {form}") from error
    for model, pair in table.items():
        if not (isinstance(pair, list) and 2 <= len(pair) <= 4 and all(type(each) in {int, float} for each in pair)):
            raise SettingsError(
                f"evalsuite_prices {file}: {model} is {pair!r:.60}, which is not two to four numbers; {form}"
            )
    texts = [f"{model}={'/'.join(map(str, numbers))}" for model, numbers in table.items()]
    read_prices(texts)
    return texts


def _read_price_table() -> dict[str, Any]:
    return json.loads(resources.files("evalsuite.gateway").joinpath("prices.json").read_text("utf-8"))  # type: ignore[no-any-return] # an object


def read_prices(overrides: Iterable[str] = ()) -> dict[str, Price]:
    """Read the shipped table of prices; the user's `model=prompt/completion` overrides its entries."""
    shipped = _read_price_table()
    cached, written = (shipped[f"usd_per_million_{part}_tokens"] for part in ("cached", "cache_write"))
    prices = {
        model: replace(Price(*numbers), cached=cached.get(model), cache_write=written.get(model))
        for model, numbers in shipped["usd_per_million_tokens"].items()
    }
    for override in overrides:
        model, _, text = override.rpartition("=")
        try:
            numbers = [float(part) for part in text.split("/")]
        except ValueError:
            numbers = []
        if not (model and 2 <= len(numbers) <= 4 and all(0 <= number < math.inf for number in numbers)):
            raise SettingsError(
                f"--price {override}: not a price; write MODEL=PROMPT/COMPLETION in US dollars per million tokens, "
                "for example gpt-4=30/60; two more numbers are the prices of reading and of writing the cache"
            )
        prompt, completion, cached_price, write_price = [*numbers, None, None][:4]
        prices[model] = Price(prompt or 0.0, completion or 0.0, cached=cached_price, cache_write=write_price)
    return prices


def find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Find a model's price. A dated version such as `gpt-4-2024-08-06` has the price of the model `gpt-4`."""
    names = [name for name in prices if model == name or model.startswith(f"{name}-20")]
    return prices[max(names, key=len)] if names else None


def explain_unknown_price(model: str) -> str:
    """Format the error message for a model whose price is needed but unknown."""
    return (
        f"--max-cost cannot be kept, as no price of {model} is known: name it with --price "
        f"{model}=PROMPT/COMPLETION in US dollars per million tokens (0/0 for a server of your own), or in a file "
        f"with evalsuite_prices; the shipped table is of {_read_price_table()['as_of']}"
    )


def encode_prompt(request: Request) -> str:
    """Return a request's messages and tools as JSON; the length of this JSON gives an estimate of the tokens."""
    return dumps([[encode_message(message) for message in request.messages], request.tools])


def estimate_prompt_tokens(request: Request, encoded_prompt: str | None = None) -> int:
    """Estimate the number of prompt tokens.

    The estimate is high on purpose: one token per three characters of ASCII text, or per two bytes of other text.
    """
    text = encode_prompt(request) if encoded_prompt is None else encoded_prompt
    return 8 * len(request.messages) + (len(text) // 3 if text.isascii() else len(text.encode()) // 2)


def bound_prompt_tokens(request: Request, encoded_prompt: str | None = None) -> int:
    """Compute the maximum number of prompt tokens: one token per byte, because no tokenizer makes more.

    A picture counts as PICTURE tokens; a conversation or file that is stored at the server counts as STORED tokens.
    """
    text = encode_prompt(request) if encoded_prompt is None else encoded_prompt
    size = len(text) if text.isascii() else len(text.encode())
    parts = [part for message in request.messages for part in message.parts]
    pictures = [part for part in parts if not isinstance(part, str) and part.get("type") in PICTURES]
    size += PICTURE * len(pictures) - sum(len(dumps(part).encode()) for part in pictures)
    fields = request.params.keys() | _find_extra_body(request).keys()
    files = [part for part in parts if part not in pictures and any(name in FILES for name, _ in _walk_fields(part))]
    size += STORED * (len(fields & STORED_FIELDS) + len(files))
    # Also count the texts and objects among the parameters, because schemas and predicted outputs may be billed.
    further = [value for value in request.params.values() if isinstance(value, str | Mapping | list | tuple)]
    return size + (len(dumps(further).encode()) if further else 0) + 16 * len(request.messages)


PICTURES = frozenset({"image_url", "input_image", "input_audio"})
"""Types of parts that are not billed by their bytes; all other parts are text, or files that may hold text."""

PICTURE = 4000  # Assumed maximum of tokens for a picture or sound in a message.
STORED_FIELDS = frozenset({"previous_response_id", "conversation", "cached_content"})
"""Fields that name a conversation at the server; the server bills the whole conversation as prompt."""

FILES = frozenset({"file_id", "file_url"})  # Fields of a message part that refer to a file at the server or elsewhere.
STORED = 2_000_000
"""Tokens that a conversation or file at the server may be billed as: the longest prompt that any model takes."""

MOST_TOKENS = 10**9  # Maximum plausible tokens of one call; a larger count from a server is replaced by an estimate.
LIMITS = {"chat": ("max_tokens", "max_completion_tokens"), "responses": ("max_output_tokens",)}
"""The fields of a body that limit an answer, by API; embeddings have no answer to limit."""

BOUNDS = frozenset({
    "max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "max_length", "maxOutputTokens",
    "max_tokens_to_sample", "n_predict", "num_predict",
})  # fmt: skip
"""Fields that set the maximum length of an answer on some server, at any depth of a body."""

BUDGETS = frozenset({"budget_tokens", "thinking_budget", "thinking_token_budget", "thinkingBudget"})
"""Fields that set the maximum length of reasoning, which some servers allow beside the answer's maximum length."""

REPEATS = frozenset({"n", "best_of", "num_return_sequences", "num_generations", "num_choices", "candidateCount"})
"""Some servers' fields for the number of answers, at any depth of a body."""


def bound_completion_tokens(request: Request) -> int:
    """Compute the maximum number of completion tokens from all the limits in the request's body, at any depth.

    The largest limit and the largest budget for reasoning are added. A nested limit counts both as a limit and as a
    budget: it may concern the answer, as `options.num_predict`, or the reasoning, as `reasoning.max_tokens`. For a body
    without a limit, use the limit that `limit_completion_tokens` adds.
    """
    api = _find_api_name(request)
    if api == "embeddings":
        return 0
    body = _find_body(request)
    nested = list(_walk_fields(list(body.values())))
    fields = [*body.items(), *nested]
    limits = [_parse_limit(value) for name, value in fields if name in BOUNDS]
    if not any(_parse_limit(body.get(name)) for name in LIMITS[api]):
        limits.append(UNBOUNDED_ANSWER)
    budgets = [_parse_limit(value) for name, value in nested if name in BOUNDS]
    budgets += [_parse_limit(value) for name, value in fields if name in BUDGETS]
    answers = [_parse_limit(value) for name, value in fields if name in REPEATS]
    return (max(limits) + max(budgets, default=0)) * max(1, *answers, 1)


def limit_completion_tokens(request: Request) -> Request:
    """Limit the answer's length if the request does not, so that the call costs at most the reserved amount."""
    api, extra = _find_api_name(request), _find_extra_body(request)
    if can_call_other_model(request):
        raise RequestRefused("the body names another model, whose price --max-cost cannot take into account")
    if api == "embeddings":
        return request
    # Remove negative and null limits, because some servers read such a limit as "unlimited", even if another field sets
    # a limit.
    bounded = replace(request, params=_drop_unlimited_fields(request.params))
    body = _find_body(bounded)
    if any(_parse_limit(body.get(name)) for name in LIMITS[api]):
        return bounded
    # Reasoning models accept only the newer name of the limit; other servers often accept only the older name.
    name = request.model.partition(":")[2] or request.model
    limit = LIMITS[api][-1] if REASONING_MODELS.match(name) else LIMITS[api][0]
    # Remove all fields that set a limit, because these fields could override the new limit.
    names = {*LIMITS["chat"], limit}
    params = {name: value for name, value in bounded.params.items() if name not in names}
    if extra:
        params["extra_body"] = {name: value for name, value in _find_extra_body(bounded).items() if name not in names}
    return replace(request, params={**params, limit: UNBOUNDED_ANSWER})


def can_call_other_model(request: Request) -> bool:
    """Tell whether the body could make the server call a model other than the one that the request names."""
    fields = request.params.keys() | _find_extra_body(request).keys()
    return not fields.isdisjoint({"model", "models", "fallbacks"})


REASONING_MODELS = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|[12]\d)(?!\d))")
"""Names of OpenAI's models that refuse `max_tokens`: o1 and later, gpt-5 and later, but not gpt-35-turbo."""


def _drop_unlimited_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Remove fields, at any depth, that allow an answer of unlimited length."""
    return {
        name: _drop_unlimited_fields(value) if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if name not in BOUNDS | BUDGETS or isinstance(value, Mapping) or _parse_limit(value)
    }


def _find_api_name(request: Request) -> str:
    name = request.params.get("api")
    return name if name in {"responses", "embeddings"} else "chat"


def _find_body(request: Request) -> Mapping[str, Any]:
    """Return the request's body without messages and tools, which are large and contain no limits."""
    if _find_api_name(request) == "chat" and not request.params.get("extra_body"):
        # In a chat request without `extra_body`, the parameters are the body's fields.
        return request.params
    build_body = build_response_body if _find_api_name(request) == "responses" else build_chat_body
    params = {**request.params, "extra_body": _find_extra_body(request)}
    return build_body(replace(request, messages=(), tools=(), params=params), "")


def _find_extra_body(request: Request) -> Mapping[str, Any]:
    extra = request.params.get("extra_body")
    return extra if isinstance(extra, Mapping) else {}


def _walk_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each field of JSON data, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name, inner
            if isinstance(inner, Mapping | list | tuple):
                yield from _walk_fields(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _walk_fields(inner)


def find_plausible_usage(request: Request, completion: Completion) -> Usage:
    """Return a completion's usage; if the server's counts are missing or impossible, return a marked estimate."""
    usage = completion.usage
    if 0 < usage.prompt_tokens + usage.completion_tokens <= MOST_TOKENS:
        return usage
    text = completion.text + completion.reasoning + "".join(call.arguments for call in completion.tool_calls)
    written = min(bound_completion_tokens(request), len(text.encode("utf-8", "replace")) // 2 + 8)
    return replace(usage, prompt_tokens=estimate_prompt_tokens(request), completion_tokens=written, estimated=1)


def _parse_limit(value: object) -> int:
    """Return a limit as an integer, rounded up from a number or its text; 0 if it is not a positive number."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type] # it may be anything
    except (TypeError, ValueError, OverflowError):
        return 0
    return math.ceil(number) if 0 < number < math.inf else 0


class Ledger:
    """Counts spending, and delays calls that might exceed the spend limit.

    A call's maximum cost is reserved before the call. Spending exceeds the limit only if servers ignore the maximum
    length of answers. Spending then exceeds the limit by at most the cost of the overlong answers in flight.

    Args:
        limit: the spend limit in US dollars; None means no limit.

    Attributes:
        uncertain: the part of `paid`, in US dollars, for failed calls that may have been billed.
        by_model: US dollars that this session paid, by model.
        elsewhere: the part of `paid`, in US dollars, that is reserved for calls in flight at other gateways.
    """

    def __init__(self, limit: float | None = None, paid: Usage | None = None) -> None:
        self.limit = limit
        self.paid = paid or Usage()
        self.uncertain = self.elsewhere = 0.0
        self.by_model: dict[str, float] = {}
        self._reserved: list[float] = []
        self._settled = asyncio.Event()

    async def reserve_cost(self, amount: float) -> None:
        """Reserve a call's maximum cost.

        If amounts reserved for other calls leave too little, wait until those calls end.

        Raises:
            SpendLimitReached: the amounts that are already paid leave too little for this call.
        """
        while amount and self._is_limit_exceeded_after_paying(amount, *self._reserved):
            if self._is_limit_exceeded_after_paying(amount, -self.elsewhere):
                unsure = f" (${self.uncertain:.4f} of it for calls that failed and may be billed)"
                shares = [f"${cost:.4f} by {model}" for model, cost in sorted(self.by_model.items()) if cost]
                by_model = f" ({', '.join(shares)})" if len(shares) > 1 else ""
                raise SpendLimitReached(
                    f"the spend limit is reached: ${self.paid.cost:.4f} of --max-cost ${self.limit:g} is spent"
                    f"{unsure if self.uncertain else ''}{by_model} and "
                    f"the next call may cost ${amount:.4f}; raise the limit and go on with --resume last"
                )
            self._settled.clear()
            await self._settled.wait()
        self._reserved.append(amount)

    def _is_limit_exceeded_after_paying(self, *amounts: float) -> bool:
        return self.limit is not None and math.fsum((self.paid.cost, *amounts)) > self.limit + ROUNDING

    def set_total_paid(self, paid: float, elsewhere: float) -> None:
        """Set the amount that all gateways together have paid until now, and wake the waiting calls.

        Args:
            paid: US dollars that all gateways have paid, including `elsewhere`.
        """
        self.paid = replace(self.paid, cost=paid)
        self.elsewhere = elsewhere
        self._settled.set()

    def book_cost(self, amount: float, usage: Usage | None, model: str = "", *, answered: bool = True) -> None:
        """Release a reserved amount, and book the call's usage; if `usage` is None, the call failed without cost.

        Args:
            model: the called model, as the user names it.
            answered: whether the server answered; a failed call that may be billed costs the reserved amount.
        """
        self._reserved.remove(amount)
        if usage:
            self.paid += usage
            self.by_model[model] = self.by_model.get(model, 0.0) + usage.cost
            self.uncertain += 0.0 if answered else usage.cost
        self._settled.set()
