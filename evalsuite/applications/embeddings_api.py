"""The embeddings API, as an application speaks it to its endpoint.

Source: the OpenAI API reference, "Create embeddings"; clients of the openai package ask for base64 unless told
otherwise, which is little-endian 32-bit floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.applications.http_answer import BadRequest
from evalsuite.models.embeddings_format import decode_vector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.types import Completion


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """What a request asks.

    Attributes:
        model: by the application's name.
        texts: to be embedded, in order.
        params: further parameters (`dimensions`).
        as_base64: whether vectors are wanted as base64, not as lists of numbers.
    """

    model: str
    texts: tuple[str, ...]
    params: Mapping[str, Any]
    as_base64: bool


def read_embedding(body: Mapping[str, Any]) -> EmbeddingRequest:
    """A request of the embeddings API.

    Raises:
        BadRequest: it names no model, or its input is no text and no texts.
    """
    texts = body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadRequest("input: expected text or a list of texts; lists of tokens are not read here")
    if not isinstance(body.get("model"), str):
        raise BadRequest("model: expected the name of an embedding model")
    params = {name: body[name] for name in ("dimensions", "user") if body.get(name) is not None}
    return EmbeddingRequest(body["model"], tuple(texts), params, body.get("encoding_format") == "base64")


def embedding_list(completion: Completion, asked: EmbeddingRequest) -> dict[str, Any]:
    """The answer."""
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": vector if asked.as_base64 else decode_vector(vector),
        }
        for index, vector in enumerate(completion.embeddings)
    ]
    tokens = completion.usage.prompt_tokens
    return {
        "object": "list",
        "model": asked.model,
        "data": data,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
