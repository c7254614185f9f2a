"""The embeddings format: a vector for each message of a request.

Source: the OpenAI API reference, "Create embeddings". Vectors are requested as base64, because it takes a third of the
size of decimal numbers. Servers without base64 send lists of numbers, which are converted.
"""

import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from evalsuite.core.types import Completion, Request, Usage
from evalsuite.models.chat_format import select_body_params
from evalsuite.models.protocol import LostAnswer


def build_body(request: Request, model: str) -> dict[str, Any]:
    """Build the body of the POST to `/embeddings`."""
    texts = [message.content for message in request.messages]
    return {"model": model, "input": texts, "encoding_format": "base64", **select_body_params(request)}


def parse_answer(answer: Any) -> Completion:
    """Read the vectors from a server's JSON, in the order of the texts."""
    try:
        entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
        vectors = tuple(_encode_embedding(entry["embedding"]) for entry in entries)
        tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise LostAnswer(f"the server's answer holds no embeddings: {answer!s:.200}") from error
    return Completion("", usage=Usage(1, tokens, 0), embeddings=vectors)


def _encode_embedding(embedding: Any) -> str:
    """Return a vector in base64; raise an error for text that is not a vector in base64."""
    if isinstance(embedding, str):
        decode_vector(embedding)
        return embedding
    return encode_vector(embedding)


def encode_vector(vector: Sequence[float]) -> str:
    """Write a vector as OpenAI's API sends it: base64 of little-endian 32-bit floats."""
    try:
        return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
    except (struct.error, OverflowError, TypeError) as error:
        raise ValueError(f"{str(vector)[:80]} is not a vector of numbers: {error}") from error


def decode_vector(text: str) -> list[float]:
    """Decode a vector that `encode_vector` wrote."""
    content = b64decode(text, validate=True)
    if len(content) % 4:
        raise ValueError(f"{len(content)} bytes are not a vector of 32-bit floats")
    return list(struct.unpack(f"<{len(content) // 4}f", content))
