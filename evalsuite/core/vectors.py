"""Embedding vectors as text: base64 of little-endian 32-bit floats, as the OpenAI API sends them."""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def encode_vector(vector: Sequence[float]) -> str:
    """Write a vector as base64, each number rounded to 32 bits.

    Raises:
        ValueError: an entry is not a number, or too large.
    """
    try:
        return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
    except (struct.error, OverflowError, TypeError) as error:
        raise ValueError(f"{str(vector)[:80]} is not a vector of numbers: {error}") from error


def decode_vector(text: str) -> list[float]:
    """Read what `encode_vector` wrote.

    Raises:
        ValueError: the text is not base64 of whole 32-bit floats.
    """
    content = b64decode(text, validate=True)
    if len(content) % 4:
        raise ValueError(f"{len(content)} bytes are not a vector of 32-bit floats")
    return list(struct.unpack(f"<{len(content) // 4}f", content))
