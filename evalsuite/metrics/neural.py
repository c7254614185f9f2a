"""Compute text metrics with neural models (BERTScore, BARTScore, BLEURT); the user names each model's folder.

The models require the extra `neural` (transformers and torch), and use a GPU if torch finds one. Nothing is downloaded;
a model's folder must contain weights and tokenizer as `save_pretrained` writes them. If the folder is missing or
contains another kind of model, SettingsError is raised; without the extra, ScoringError is raised.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.core.errors import ScoringError, SettingsError

LONGEST = 512  # Maximum tokens of a text that an encoder reads, if its tokenizer sets no smaller limit.
LONGEST_BART = 1_024  # Maximum tokens of a text that BARTScore reads, as in the authors' code.
USUAL_LAYERS: Mapping[tuple[str, int, int], int] = {
    ("bert", 12, 768): 9, ("bert", 24, 1024): 18, ("distilbert", 6, 768): 5, ("roberta", 12, 768): 10,
    ("roberta", 6, 768): 5, ("roberta", 24, 1024): 17, ("xlm-roberta", 12, 768): 9, ("xlm-roberta", 24, 1024): 17,
    ("albert", 12, 768): 9, ("electra", 12, 768): 9, ("electra", 24, 1024): 14, ("deberta", 12, 768): 9,
    ("deberta", 24, 1024): 16, ("deberta", 48, 1024): 18, ("mpnet", 12, 768): 8,
}  # fmt: skip
"""The layer closest to human ratings, by kind of model, layer count and width (bert_score's `model2layers`)."""


@dataclass(frozen=True, slots=True)
class BertScoreResult:
    """Precision, recall and their harmonic mean, each in [-1, 1], or lower if rescaled by a baseline."""

    precision: float
    recall: float
    f1: float


class BertScore:
    """BERTScore (Zhang et al. 2020, equations 1 to 3), without idf weights.

    Each token of one text is matched with the token of the other text that has the most similar contextual embedding
    (cosine). As in the authors' package, special tokens (a text's beginning and end) can be matched, but the means
    leave out their own matches.
    """

    def __init__(self, folder: Path, *, layer: int | None = None, baseline: Path | None = None) -> None:
        self._tokenizer, self._model = _load_tokenizer_and_model(folder, "AutoModel")
        config = self._model.config
        layers = int(config.num_hidden_layers)
        kind = (str(config.model_type), layers, int(getattr(config, "hidden_size", getattr(config, "dim", 0))))
        self.layer = USUAL_LAYERS.get(kind, layers) if layer is None else layer
        if not 0 <= self.layer <= layers:
            raise SettingsError(f"BERTScore: layer {self.layer} of {folder}, which has the layers 0 to {layers}")
        self._baseline = _read_rescaling_baseline(baseline, self.layer) if baseline else (0.0, 0.0, 0.0)

    def score(self, prediction: str, reference: str) -> BertScoreResult:
        """Compare two texts; all three values are 0.0 if one text is empty, and 1.0 if both texts are empty."""
        if not prediction.strip() or not reference.strip():
            same = float(prediction.strip() == reference.strip())
            return BertScoreResult(same, same, same)
        texts = list(dict.fromkeys((prediction, reference)))
        embeddings = dict(zip(texts, self._embed_texts(texts), strict=True))
        predicted, own = embeddings[prediction]
        wanted, wanted_own = embeddings[reference]
        cosines = predicted @ wanted.T
        precision = float(cosines.max(dim=1).values[own].mean())
        recall = float(cosines.max(dim=0).values[wanted_own].mean())
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0.0
        values = zip((precision, recall, f1), self._baseline, strict=True)
        return BertScoreResult(*((value - base) / (1 - base) for value, base in values))

    def _embed_texts(self, texts: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        """Embed each text as one unit vector per token; return also a mask that excludes special tokens."""
        import torch

        tokens = _tokenize_texts(self._tokenizer, LONGEST, texts, return_special_tokens_mask=True)
        special = tokens.pop("special_tokens_mask")
        with torch.inference_mode():
            output = self._model(**_move_to_device(self._model, tokens), output_hidden_states=True)
        vectors = torch.nn.functional.normalize(output.hidden_states[self.layer], dim=-1).cpu()
        for row, mask, marks in zip(vectors, tokens["attention_mask"].bool(), special, strict=True):
            own = marks[mask] == 0
            # If the tokenizer drops all characters of a text, compare the special tokens, because only these remain.
            yield row[mask], own if own.any() else ~own


class BartScore:
    """BARTScore (Yuan et al. 2021, section 3): the mean log-probability per token of one text, given the other text.

    The score is the mean of both directions (each text given the other text), which the paper calls the F-score. The
    user's folder must contain an encoder-decoder model.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer, self._model = _load_tokenizer_and_model(folder, "AutoModelForSeq2SeqLM")

    def score(self, prediction: str, reference: str) -> float:
        """Compute BARTScore in nats per token, at most 0."""
        directions = [(reference, prediction), (prediction, reference)]
        return sum(self.compute_mean_log_likelihoods(directions)) / 2

    def compute_mean_log_likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Per pair, return the mean log-probability of the second text's tokens, given the first text."""
        import torch

        sources, targets = (
            _move_to_device(self._model, _tokenize_texts(self._tokenizer, LONGEST_BART, side))
            for side in zip(*pairs, strict=True)
        )
        labels, counted = targets["input_ids"], targets["attention_mask"]
        with torch.inference_mode():
            logits = self._model(**sources, labels=labels.masked_fill(counted == 0, -100)).logits.float()
        chosen = logits.log_softmax(dim=-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        values: list[float] = ((chosen * counted).sum(dim=1) / counted.sum(dim=1)).tolist()
        return values


class Bleurt:
    """BLEURT (Sellam et al. 2020): a regression on pairs of texts, from about 0 (different) to 1 (equivalent).

    The user's folder must contain a BLEURT checkpoint in the format of transformers: an encoder with one output.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer, self._model = _load_tokenizer_and_model(folder, "AutoModelForSequenceClassification")
        if self._model.config.num_labels != 1:
            raise SettingsError(f"BLEURT: {folder} is a classifier of {self._model.config.num_labels} classes")

    def score(self, prediction: str, reference: str) -> float:
        """Return the model's rating of the prediction."""
        import torch

        tokens = _move_to_device(self._model, _tokenize_texts(self._tokenizer, LONGEST, [reference], [prediction]))
        with torch.inference_mode():
            return float(self._model(**tokens).logits[0, 0])


def _tokenize_texts(tokenizer: Any, longest: int, *texts: Sequence[str], **more: bool) -> dict[str, Any]:
    limit = min(int(tokenizer.model_max_length), longest)
    sides = (list(side) for side in texts)
    return dict(tokenizer(*sides, truncation=True, padding=True, max_length=limit, return_tensors="pt", **more))


def _move_to_device(model: Any, tokens: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor.to(model.device) for name, tensor in tokens.items()}


def _load_tokenizer_and_model(folder: Path, class_name: str) -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ScoringError(
            f"neural metrics need transformers and torch ({error}): pip install 'evalsuite[neural]'"
        ) from error
    if not (Path(folder) / "config.json").is_file():
        raise SettingsError(f"{folder} lacks config.json: expected a model as save_pretrained writes it")
    local: Mapping[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        model = getattr(transformers, class_name).from_pretrained(folder, **local)
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(f"{folder} cannot be loaded as {class_name}: {error}") from error
    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return tokenizer, model.eval().to(device)


def _read_rescaling_baseline(path: Path, layer: int) -> tuple[float, float, float]:
    """Read a layer's baseline precision, recall and F1 from a file with the columns LAYER, P, R, F."""
    try:
        rows = list(csv.DictReader(Path(path).read_text("utf-8").splitlines()))
        values = next((row for row in rows if int(row["LAYER"]) == layer), None)
        if values is not None:
            return float(values["P"]), float(values["R"]), float(values["F"])
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"BERTScore: {path} is not a file of baselines with the columns LAYER,P,R,F ({error})"
        ) from error
    raise SettingsError(f"BERTScore: {path} has no line for layer {layer}")
