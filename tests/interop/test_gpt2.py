"""GPT-2 as transformers saves it: the same logits and the same text; and what is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import ByteLevelBPETokenizer
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, GPT2Model, PreTrainedTokenizerFast

from regard.config import recipe_from
from regard.decoding.stream import Sampling
from regard.errors import InputError
from regard.interop import import_run
from regard.runs import open_run, read_weights
from regard.tasks.generate import measure, packed_text
from regard.tasks.run import load
from regard.tasks.start import train

TEXT = ["the house and the water ışık", "water and the day, the house", "köpek gün yol and the house"] * 9
END = "<|endoftext|>"


@pytest.fixture
def save(tmp_path):
    """A folder with a tiny random model of a class of transformers, and the model."""

    def make(kind=GPT2LMHeadModel, *, shard="1GB", **settings):
        trained = ByteLevelBPETokenizer()
        trained.train_from_iterator(TEXT, vocab_size=300, min_frequency=1, special_tokens=[END])
        config = GPT2Config(
            vocab_size=310, n_embd=16, n_layer=2, n_head=4, n_positions=48, layer_norm_epsilon=1e-4,
            bos_token_id=0, eos_token_id=0, **settings,
        )  # fmt: skip
        torch.manual_seed(1)
        model = kind(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        folder = tmp_path / "saved"
        model.save_pretrained(folder, max_shard_size=shard)
        PreTrainedTokenizerFast(
            tokenizer_object=trained._tokenizer, bos_token=END, eos_token=END, unk_token=END
        ).save_pretrained(str(folder))
        return folder, model

    return make


@torch.no_grad()
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (GPT2LMHeadModel, {}), (GPT2Model, {}), (GPT2LMHeadModel, {"shard": "5KB"}),
        (GPT2LMHeadModel, {"n_inner": 40, "activation_function": "relu", "tie_word_embeddings": False}),
    ],
)  # fmt: skip
def test_logits_are_transformers(kind, settings, save, tmp_path):
    folder, theirs = save(kind, **settings)
    imported = import_run(folder, tmp_path / "run")
    assert imported.unused == ()
    run = open_run(tmp_path / "run")
    assert run.recipe == imported.recipe
    ids = torch.randint(310, (2, 40))
    states = run.model(ids)
    if kind is GPT2Model:
        assert torch.allclose(states, theirs(ids).last_hidden_state, atol=1e-5)
    else:
        assert torch.allclose(run.model.logits(states), theirs(ids).logits, atol=1e-4)


def test_text_is_cut_and_continued_as_transformers_does(save, tmp_path):
    folder, theirs = save()
    import_run(folder, tmp_path / "run")
    run = load(tmp_path / "run")
    cut = PreTrainedTokenizerFast.from_pretrained(folder)
    for text in ("the house", " and the water ışık", "Never seen: 日本\n", "a <|endoftext|> b"):
        ours = run.tokenizer.encode(text)
        assert run.tokenizer.decode(ours) == text
        if END not in text:  # a special piece never comes from text here
            assert ours == cut(text)["input_ids"]
    prompts = ["the house", " and the water", ""]
    found = run.writer_in("float32").write(prompts[:2], length=20, sampling=Sampling(temperature=0))
    options = GenerationConfig(do_sample=False, max_new_tokens=20, eos_token_id=0, pad_token_id=0)
    for prompt, ours in zip(prompts, found, strict=False):
        theirs.generation_config = options
        ids = torch.tensor([cut(prompt)["input_ids"]])
        written = theirs.generate(ids, attention_mask=torch.ones_like(ids))[0, ids.shape[1] :].tolist()
        assert list(ours.tokens) == [run.tokenizer.piece(id) for id in written]
        assert ours.text == cut.decode(written, skip_special_tokens=True)
    assert run.writer.write([""], length=3)[0].prompt == ""


def test_what_has_no_place_is_left_out_and_what_is_wrong_is_told(save, tmp_path):
    folder, _ = save()
    weights, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    assert all(name.startswith("transformer.") for name in weights)
    bare = {name.removeprefix("transformer."): weight for name, weight in weights.items()}
    save_file({**bare, "h.0.attn.bias": torch.ones(1, 1, 4, 4)}, folder / "model.safetensors")
    assert import_run(folder, tmp_path / "old").unused == ("h.0.attn.bias",)

    def refused(said):
        with pytest.raises(InputError, match=said):
            import_run(folder, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    save_file({**bare, "h.0.extra": torch.ones(2)}, folder / "model.safetensors")
    refused(r"not in the format's table: h\.0\.extra")
    save_file({name: weight for name, weight in bare.items() if name != "ln_f.bias"}, folder / "model.safetensors")
    refused(r"missing decoder\.norm\.bias \(16,\)")
    save_file(bare, folder / "model.safetensors")
    for key, value, said in (
        ("scale_attn_weights", False, "GPT-2 with scale_attn_weights = False cannot be imported; True can"),
        ("activation_function", "gelu_fast", "activation_function = 'gelu_fast'"),
        ("n_embd", "wide", "config.json: invalid literal"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, key: value}))
        refused(said)
    del config["n_layer"]
    (folder / "config.json").write_text(json.dumps(config))
    refused("its config.json does not say 'n_layer'")


def test_an_imported_model_learns_on(save, tmp_path):
    """With its own pieces, from its own weights; frozen ones stay, and the loss of the text falls."""
    folder, _ = save()
    import_run(folder, tmp_path / "start")
    (tmp_path / "text.txt").write_text("the cat and the dog and the house\n" * 60, encoding="utf-8")
    recipe = recipe_from({
        "task": "generate",
        "data": {"train": [str(tmp_path / "text.txt")], "max_length": 24},
        "training": {
            "start_from": str(tmp_path / "start"), "freeze": ["pieces", "decoder.layers.0"], "steps": 12,
            "valid_every": 6, "tokens_per_batch": 96, "warmup": 0, "learning_rate": 1e-2, "precision": "float32",
        },
    })  # fmt: skip
    train(recipe, tmp_path / "run")
    old, new = (read_weights(tmp_path / name / "model.safetensors") for name in ("start", "run"))
    assert {name.split(".")[0] for name in new if not new[name].equal(old[name])} == {"embedding", "decoder"}
    assert all(new[name].equal(old[name]) for name in new if name.startswith("decoder.layers.0."))
    start, run = (load(tmp_path / name) for name in ("start", "run"))
    assert run.tokenizer.encode("the cat") == start.tokenizer.encode("the cat")
    text = packed_text(run.recipe, (str(tmp_path / "text.txt"),), run.tokenizer, folder=tmp_path / "data")
    losses = [measure(one.model, text, one.tokenizer).loss for one in (start, run)]
    assert losses[1] < losses[0] - 0.5
