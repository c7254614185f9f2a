"""One backend a file behind one small protocol; this is the one place that chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.errors import SettingsError

if TYPE_CHECKING:
    from evalsuite.models.protocol import Backend

DEFAULT = "local:smollm2"

KINDS = """\
  gpt-4                            OpenAI, or any OpenAI-compatible server at --model-base-url
  local:smollm2                    the embedded SmolLM2-135M-Instruct (extra `local`)
  local:/path/to/model.gguf        any GGUF file under llama.cpp (extra `local`)
  litellm:provider/name            a hundred other providers (extra `litellm`)
  function:package.module:name     a Python function of your own, sync or async"""


def open_backend(model: str, base_url: str | None = None) -> Backend:
    """The backend for a model as the user names it. Nothing is started or checked yet.

    Raises:
        SettingsError: the name is of no known kind.
    """
    kind, colon, rest = model.partition(":")
    if not model or (colon and not rest):
        raise SettingsError(f"--model {model!r} names no model. A model is one of:\n{KINDS}")
    if kind == "function" and colon:
        from evalsuite.models.function import FunctionBackend

        return FunctionBackend(rest)
    if kind == "local" and colon:
        from evalsuite.models.llama_cpp import LlamaCppBackend

        return LlamaCppBackend(rest)
    if kind == "litellm" and colon:
        from evalsuite.models.litellm import LitellmBackend

        return LitellmBackend(rest, base_url)
    from evalsuite.models.openai import OpenAIBackend

    return OpenAIBackend(base_url)
