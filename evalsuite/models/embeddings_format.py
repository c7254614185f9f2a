"""The embeddings format: a vector for each message of a request.

Source: the OpenAI API reference, "Create embeddings". Vectors are asked for as base64, which is a third of the
size of numbers in decimal; servers that do not know it send lists of numbers, which are read as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Completion, Usage
from evalsuite.core.vectors import decode_vector, encode_vector
from evalsuite.models.chat_format import OURS
from evalsuite.models.protocol import Transient

if TYPE_CHECKING:
    from evalsuite.core.types import Request


def request_body(request: Request, model: str) -> dict[str, Any]:
    """Builds the body of the POST to `/embeddings`."""
    params = {name: value for name, value in request.params.items() if value is not None and name not in OURS}
    texts = [message.content for message in request.messages]
    return {"model": model, "input": texts, "encoding_format": "base64", **params}


def read_answer(answer: Any) -> Completion:
    """Reads the vectors from a server's JSON, in the order of the texts.

    Raises:
        Transient: it holds none.
    """
    try:
        entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
        vectors = tuple(_vector(entry["embedding"]) for entry in entries)
        tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Transient(f"the server's answer holds no embeddings: {str(answer)[:200]}") from error
    return Completion("", usage=Usage(1, tokens, 0), embeddings=vectors)


def _vector(embedding: Any) -> str:
    if isinstance(embedding, str):
        decode_vector(embedding)
        return embedding
    return encode_vector(embedding)
