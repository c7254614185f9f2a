"""Text metrics by neural models: BERTScore, BARTScore and BLEURT, each over a model folder that the user names.

They need the extra `neural` (transformers and torch). Nothing is downloaded: a folder holds what
`save_pretrained` writes, weights and tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.errors import ScoringError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 512
"""Tokens read of a text, if its tokenizer has no smaller limit of its own."""


@dataclass(frozen=True, slots=True)
class BertScoreResult:
    """Precision, recall and their harmonic mean, each in [-1, 1] and mostly in [0, 1]."""

    precision: float
    recall: float
    f1: float


class BertScore:
    """BERTScore (Zhang et al. 2020, equations 1 to 3), without idf weights and without rescaling.

    Each token of one text is matched with the token of the other whose contextual embedding has the greatest
    cosine. As in the authors' package, the tokens that begin and end a text can be matched, but are no part of
    the means.

    Args:
        folder: of an encoder.
        layer: which hidden states are the embeddings; the last by default, as -1.

    Raises:
        SettingsError: the folder is missing, or holds no such model.
        ScoringError: the extra is not installed.
    """

    def __init__(self, folder: Path, *, layer: int = -1) -> None:
        self._tokenizer, self._model = _load(folder, "AutoModel")
        self._layer = layer
        states = int(self._model.config.num_hidden_layers) + 1
        if not -states <= layer < states:
            raise SettingsError(
                f"BERTScore: layer {layer} of {folder}, which has the layers 0 to {states - 1}"
            )

    def score(self, prediction: str, reference: str) -> BertScoreResult:
        """Compares two texts; where one is empty all three are 0.0, where both are, 1.0."""
        if not prediction.strip() or not reference.strip():
            same = float(prediction.strip() == reference.strip())
            return BertScoreResult(same, same, same)
        said, said_counts = self._embed(prediction)
        wanted, wanted_counts = self._embed(reference)
        cosines = said @ wanted.T
        precision = float(cosines.max(dim=1).values[said_counts].mean())
        recall = float(cosines.max(dim=0).values[wanted_counts].mean())
        both = precision + recall
        return BertScoreResult(precision, recall, 2 * precision * recall / both if both else 0.0)

    def _embed(self, text: str) -> tuple[Any, Any]:
        """Unit vectors, one a token, and which of them are the text's own."""
        import torch

        tokens = _tokens(self._tokenizer, text, return_special_tokens_mask=True)
        own = tokens.pop("special_tokens_mask")[0] == 0
        with torch.inference_mode():
            states = self._model(**tokens, output_hidden_states=True).hidden_states[self._layer][0]
        # A text of characters that the tokenizer drops has no token of its own: then all count.
        return torch.nn.functional.normalize(states, dim=-1), own if own.any() else ~own


class BartScore:
    """BARTScore (Yuan et al. 2021, section 3): the mean log-probability of a token of one text given the other.

    The score is the mean of both directions, which the paper calls the F-score.

    Args:
        folder: of an encoder-decoder.

    Raises:
        SettingsError: the folder is missing, or holds no such model.
        ScoringError: the extra is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer, self._model = _load(folder, "AutoModelForSeq2SeqLM")

    def score(self, prediction: str, reference: str) -> float:
        """Nats a token, at most 0."""
        return (self.log_likelihood(reference, prediction) + self.log_likelihood(prediction, reference)) / 2

    def log_likelihood(self, source: str, target: str) -> float:
        """Mean natural-log probability of the target's tokens, its end included, given the source."""
        import torch

        labels = _tokens(self._tokenizer, target)["input_ids"]
        with torch.inference_mode():
            loss = self._model(**_tokens(self._tokenizer, source), labels=labels).loss
        return -float(loss)


class Bleurt:
    """BLEURT (Sellam et al. 2020): a regression on the pair of texts, about 0 (unlike) to 1 (alike).

    Args:
        folder: of a BLEURT checkpoint in the format of transformers, an encoder with one output.

    Raises:
        SettingsError: the folder is missing, or holds no such model.
        ScoringError: the extra is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer, self._model = _load(folder, "AutoModelForSequenceClassification")
        if self._model.config.num_labels != 1:
            raise SettingsError(
                f"BLEURT: {folder} is a classifier of {self._model.config.num_labels} classes"
            )

    def score(self, prediction: str, reference: str) -> float:
        """The model's rating of the prediction."""
        import torch

        with torch.inference_mode():
            return float(self._model(**_tokens(self._tokenizer, reference, prediction)).logits[0, 0])


def _tokens(tokenizer: Any, *texts: str, **more: bool) -> dict[str, Any]:
    limit = min(int(tokenizer.model_max_length), LONGEST)
    return dict(tokenizer(*texts, truncation=True, max_length=limit, return_tensors="pt", **more))


def _load(folder: Path, kind: str) -> tuple[Any, Any]:
    """Tokenizer and model of a folder, ready to be asked."""
    try:
        import torch  # noqa: F401 - without it transformers fails much later, and unclearly
        import transformers
    except ImportError as error:
        raise ScoringError(
            f"neural metrics need transformers and torch ({error}): pip install 'evalsuite[neural]'"
        ) from error
    if not (Path(folder) / "config.json").is_file():
        raise SettingsError(f"{folder} holds no config.json: expected a model as save_pretrained writes it")
    local: Mapping[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        model = getattr(transformers, kind).from_pretrained(folder, **local)
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(f"{folder} cannot be loaded as {kind}: {error}") from error
    return tokenizer, model.eval()
