"""BERT as transformers saves it: the same states and logits, from one file and from several; and what is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel, BertTokenizerFast

from regard.errors import InputError
from regard.interop import import_run
from regard.runs import open_run

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c", "d", ".", "##c"]


@pytest.fixture
def save(tmp_path):
    """A folder with a tiny random model of a class of transformers, and the model."""

    def make(kind, *, shard="1GB", **settings):
        config = BertConfig(
            vocab_size=len(PIECES) + 2, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=24, max_position_embeddings=20, layer_norm_eps=1e-3, **settings,
        )  # fmt: skip
        torch.manual_seed(1)
        model = kind(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        folder = tmp_path / kind.__name__
        model.save_pretrained(folder, max_shard_size=shard)
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES), encoding="utf-8")
        BertTokenizerFast.from_pretrained(str(folder)).save_pretrained(str(folder))
        return folder, model

    return make


IDS = torch.tensor([[2, 5, 6, 7, 3, 8, 9, 3], [2, 8, 9, 3, 5, 3, 0, 0]])
LENGTHS = torch.tensor([8, 6])
SEGMENTS = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 0, 0]])


@torch.no_grad()
def theirs_of(model):
    mask = (torch.arange(8) < LENGTHS[:, None]).long()
    return model(input_ids=IDS, attention_mask=mask, token_type_ids=SEGMENTS)


@torch.no_grad()
@pytest.mark.parametrize("shard", ["1GB", "4KB"])
def test_an_encoders_states_are_transformers(shard, save, tmp_path):
    folder, theirs = save(BertModel, shard=shard)
    assert len(list(folder.glob("*.safetensors"))) > 1 or shard == "1GB"
    imported = import_run(folder, tmp_path / "run")
    assert imported.unused == ("pooler.dense.bias", "pooler.dense.weight") or set(imported.unused) == {
        "pooler.dense.bias", "pooler.dense.weight"
    }  # fmt: skip
    run = open_run(tmp_path / "run")
    assert (run.recipe.model.pooling, run.recipe.model.pooled_layer, run.recipe.task) == ("mean", False, "classify")
    states = run.model(IDS, LENGTHS, segments_BS=SEGMENTS)
    right = theirs_of(theirs).last_hidden_state
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.allclose(states[row, :length], right[row, :length], atol=1e-5)
    assert run.tokenizer.size == len(PIECES) + 2
    assert run.tokenizer.encode("ab cc.") == [5, 6, 7, 10, 9]


@torch.no_grad()
def test_a_classifiers_logits_are_transformers(save, tmp_path):
    names = {0: "no", 1: "yes", 2: "perhaps"}
    folder, theirs = save(BertForSequenceClassification, id2label=names, label2id={v: k for k, v in names.items()})
    imported = import_run(folder, tmp_path / "run")
    assert imported.unused == ()
    run = open_run(tmp_path / "run")
    assert run.recipe.data.labels == ("no", "yes", "perhaps")
    model = run.model
    logits = model.logits(model.pool(model(IDS, LENGTHS, segments_BS=SEGMENTS), LENGTHS))
    assert torch.allclose(logits, theirs_of(theirs).logits, atol=1e-5)


def test_heads_that_guessed_pieces_are_left_out_and_listed(save, tmp_path):
    folder, _ = save(BertForMaskedLM)
    unused = import_run(folder, tmp_path / "run").unused
    assert "cls.predictions.transform.dense.weight" in unused
    assert all(name.startswith("cls.") for name in unused)


def test_old_names_half_precision_and_sentence_transformers_pooling(save, tmp_path):
    folder, _ = save(BertModel)
    right = import_run(folder, tmp_path / "right").model.state_dict()
    weights = load_file(folder / "model.safetensors")
    old = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"):
        weight.half() for name, weight in weights.items()
    }  # fmt: skip
    save_file(old, folder / "model.safetensors")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}', encoding="utf-8")
    imported = import_run(folder / "config.json", tmp_path / "run")
    assert imported.recipe.model.pooling == "first"
    for name, weight in imported.model.state_dict().items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, right[name].half().float())


def test_what_is_wrong_is_told(save, tmp_path):
    folder, _ = save(BertModel)
    out = tmp_path / "run"

    def refused(said, **options):
        with pytest.raises(InputError, match=said):
            import_run(folder, out, **options)
        assert not out.exists()

    refused("has its own", tokenizer=tmp_path / "vocab")
    weights = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    save_file({**weights, "extra.weight": torch.ones(2)}, folder / "model.safetensors")
    refused("not in the format's table: extra.weight")
    save_file({n: w for n, w in weights.items() if n != "embeddings.LayerNorm.bias"}, folder / "model.safetensors")
    refused(r"missing embedding\.norm\.bias \(16,\)")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(r"pytorch_model\.bin: a pickle, which could run code and is never read")
    (folder / "pytorch_model.bin").unlink()
    refused("has no weights: neither")
    index = {"weight_map": {"a": "../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    refused("names '../model.safetensors', which is not a file beside it")
    (folder / "model.safetensors.index.json").unlink()
    for key, value, said in (
        ("position_embedding_type", "relative_key", "position_embedding_type 'relative_key' cannot be imported"),
        ("hidden_act", "geloo", "hidden_act = 'geloo': did you mean 'gelu'"),
        ("model_type", "roberta", "model_type = 'roberta' cannot be imported; there is bert, gpt2"),
        ("hidden_size", "wide", "config.json: invalid literal"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, key: value}), encoding="utf-8")
        refused(said)
    del config["vocab_size"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    refused("its config.json does not say 'vocab_size'")
