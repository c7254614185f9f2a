"""Check the names of generation parameters among keyword arguments, so that a misspelt name fails where it was written.

The functions for solvers, judges and benchmarks accept generation parameters beside their own arguments. Without this
check, a misspelt name would reach the model's server, which would ignore it or refuse every call. These functions
accept a generation parameter in only two forms:

    generate(max_tokens=8)                     a parameter that servers are known to understand
    generate(params={"my_parameter": 1})       any other parameter, given deliberately

The known names come from OpenAI's chat completions and responses (platform.openai.com/docs/api-reference), and from the
documentation of llama.cpp's server, vLLM and litellm.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from evalsuite.core.errors import SettingsError

GENERATION = frozenset({
    "temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "stop", "max_tokens", "max_completion_tokens",
    "max_output_tokens", "min_tokens", "ignore_eos", "presence_penalty", "frequency_penalty", "repeat_penalty",
    "repetition_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format", "json_schema", "grammar",
    "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "reasoning",
    "reasoning_effort", "reasoning_format", "thinking", "thinking_budget", "verbosity", "tool_choice",
    "parallel_tool_calls", "modalities", "prediction", "service_tier", "store", "user", "metadata",
    "safety_identifier", "prompt_cache_key", "chat_template_kwargs", "extra_body", "cache_prompt",
})  # fmt: skip
PARAMS = "params"  # the argument that contains parameters whose names are not checked
CLOSE = 0.9
"""Similarity (`difflib.SequenceMatcher.ratio`) from which a name counts as a misspelling of another:
max_tokns and max_tokens have 0.95; max_new_tokens, which some servers accept, has 0.83.
"""

Options = TypeVar("Options")


def select_generation_params(owner: Callable[..., Any] | str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Select the generation parameters among keyword arguments."""
    further = given.get(PARAMS, {})
    if not isinstance(further, Mapping):
        raise SettingsError(f"{_describe_owner(owner)}: params={further!r} must be a mapping of generation parameters")
    own = () if isinstance(owner, str) else inspect.signature(owner).parameters
    named = [name for name, parameter in dict(own).items() if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    refuse_unknown_names(owner, given, {*named, *GENERATION, PARAMS})
    return {name: value for name, value in given.items() if name != PARAMS} | dict(further)


def read_options(owner: str, options: type[Options], given: Mapping[str, Any]) -> Options:
    """Read a benchmark's options, a dataclass, from the keyword arguments of `@benchmark`."""
    refuse_unknown_names(owner, given, [field.name for field in fields(options)])  # type: ignore[arg-type] # a dataclass
    return options(**given)


def refuse_unknown_names(owner: Callable[..., Any] | str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error for the first name that is not among the known names; suggest a similar known name."""
    known = sorted(known)
    for name in names:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else _describe_accepted_arguments(known)
        raise SettingsError(f"{_describe_owner(owner)} takes no argument {name!r}; {hint}")


def refuse_misspelt_params(option: str, names: Iterable[str]) -> None:
    """Refuse names that differ from a generation parameter by a letter or two, because they are probably misspelt.

    Names that resemble no generation parameter are passed on, because a server may have parameters of its own.
    """
    for name in names:
        if name not in GENERATION and (near := difflib.get_close_matches(name, GENERATION, 1, CLOSE)):
            raise SettingsError(
                f"{option} {name}: did you mean {near[0]}? If the server has a parameter of this very name, write "
                f"{option} 'extra_body={{\"{name}\": ...}}'"
            )


def _describe_accepted_arguments(names: list[str]) -> str:
    if PARAMS not in names:
        return f"there are {', '.join(names)}" if names else "it takes none"
    others = [name for name in names if name not in {PARAMS, *GENERATION}]
    listed = f"{', '.join(others)}, and " if others else ""
    return (
        f"it takes {listed}generation parameters (temperature, max_tokens, ...); one that evalsuite does not "
        "know goes into params={...}"
    )


def _describe_owner(owner: Callable[..., Any] | str) -> str:
    """Return the name by which messages mention the owner, for example `generate()` for a function."""
    return owner if isinstance(owner, str) else f"{owner.__name__}()"
