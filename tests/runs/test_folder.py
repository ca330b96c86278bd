"""Run folders: what was saved is what is opened, whole or not at all, and nothing in them can run code."""

import pickle

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

import regard.runs.folder
from regard.config import recipe_from
from regard.errors import InputError
from regard.models import build_model
from regard.runs import open_run, read_weights, save_run, write_weights
from regard.text import train_tokenizer

TASKS = {"translate": "encoder-decoder", "generate": "decoder-only", "classify": "encoder-only"}


def made(task="translate", **model):
    """A recipe, its tokeniser and a new model."""
    torch.manual_seed(3)
    values = {"d_model": 8, "heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1, "vocabulary": 260}
    stated = {"task": task, "tokens": {"kind": "byte"}, "model": {**values, **model}}
    if task == "classify":
        stated["model"]["labels"] = 3
    recipe = recipe_from(stated)
    return recipe, train_tokenizer([], recipe.tokens), build_model(recipe.model)


@pytest.mark.parametrize("task", TASKS)
def test_saved_is_opened(task, tmp_path):
    recipe, tokenizer, model = made(task)
    save_run(tmp_path / "a" / "run", recipe, tokenizer, model)
    run = open_run(tmp_path / "a" / "run")
    assert run.recipe == recipe
    assert run.recipe.model.family == TASKS[task]
    assert not run.model.training
    assert run.model.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(run.model.state_dict()[name], weight) for name, weight in model.state_dict().items())
    assert run.tokenizer.encode("wörd") == tokenizer.encode("wörd")
    assert run.source_tokenizer is run.tokenizer


def test_two_vocabularies_are_two_files(tmp_path):
    recipe, tokenizer, model = made(embeddings="tied_output", source_vocabulary=30)
    source = train_tokenizer(["abc abd"], recipe_from({"task": "translate", "tokens": {"kind": "char"}}).tokens)
    save_run(tmp_path, recipe, tokenizer, model, source_tokenizer=source)
    run = open_run(tmp_path)
    assert run.source_tokenizer is not run.tokenizer
    assert run.source_tokenizer.encode("abd") == source.encode("abd")
    assert run.tokenizer.encode("abd") == tokenizer.encode("abd")


def test_a_folder_holds_only_whole_files_and_no_pickle(tmp_path):
    recipe, tokenizer, model = made()
    for _ in range(2):
        save_run(tmp_path, recipe, tokenizer, model)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"recipe.toml", "model.safetensors"} < names
    (tokens,) = (name for name in names - {"recipe.toml", "model.safetensors"} if not name.startswith("."))
    assert {name for name in names if name.startswith(".")} == {f".{tokens}.sha256"}


def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    write_weights(path, {"weight": torch.ones(2)})

    def half(tensors, beside, metadata):
        beside.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("regard.runs.folder.save_file", half)
    with pytest.raises(OSError, match="disk full"):
        write_weights(path, {"weight": torch.zeros(2)})
    assert torch.equal(read_weights(path)["weight"], torch.ones(2))
    assert [place.name for place in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("missing", ["recipe.toml", "model.safetensors"])
def test_what_is_missing_is_named(missing, tmp_path):
    save_run(tmp_path, *made())
    (tmp_path / missing).unlink()
    with pytest.raises(InputError, match=f"not a finished run, it has no {missing}"):
        open_run(tmp_path)
    with pytest.raises(InputError, match="nowhere: no such run folder"):
        open_run(tmp_path / "nowhere")


class Harmful:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


def test_a_pickle_is_no_weights(tmp_path):
    save_run(tmp_path, *made())
    (tmp_path / "model.safetensors").write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(InputError, match="not a whole safetensors file"):
        open_run(tmp_path)


def test_half_a_file_is_no_weights(tmp_path):
    save_run(tmp_path, *made())
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="not a whole safetensors file"):
        open_run(tmp_path)
    with pytest.raises(InputError, match=r"other.safetensors: no such file"):
        read_weights(tmp_path / "other.safetensors")


def test_weights_that_are_not_numbers_are_refused_by_name(tmp_path):
    recipe, tokenizer, model = made()
    with torch.no_grad():
        model.target_pieces.weight[4, 2] = float("nan")
    save_run(tmp_path, recipe, tokenizer, model)
    with pytest.raises(
        InputError, match=r"target_pieces.weight: 1 of 2080 values are not finite, first nan at \[4, 2\]"
    ):
        open_run(tmp_path)


def test_weights_of_another_recipe_are_refused(tmp_path):
    recipe, tokenizer, model = made()
    save_run(tmp_path, recipe, tokenizer, model)
    text = (tmp_path / "recipe.toml").read_text(encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(text.replace("d_ff = 8", "d_ff = 12"), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"misshapen encoder.layers.0.feed_forward.inner.weight: \(8, 8\), the model has"
    ):
        open_run(tmp_path)


def flipped(path, share):
    content = bytearray(path.read_bytes())
    content[min(int(len(content) * share), len(content) - 1)] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_a_flipped_byte_of_the_weights_is_refused(share, tmp_path):
    """Weights were once taken as they came: a flipped bit of one is a number like any other."""
    recipe, tokenizer, model = made()
    save_run(tmp_path, recipe, tokenizer, model)
    flipped(tmp_path / "model.safetensors", share)
    with pytest.raises(InputError, match=r"damaged|not a whole safetensors file"):
        open_run(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_a_flipped_byte_of_the_tokeniser_is_refused(share, tmp_path):
    recipe, tokenizer, model = made()
    save_run(tmp_path, recipe, tokenizer, model)
    (tokens,) = tmp_path.glob("tokens.*")
    flipped(tokens, share)
    with pytest.raises(InputError, match="is damaged or was changed"):
        open_run(tmp_path)


def test_what_has_no_checksum_is_taken_as_it_is(tmp_path):
    """Other programs' safetensors, and tokenisers that somebody made."""
    recipe, tokenizer, model = made()
    save_run(tmp_path, recipe, tokenizer, model)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, tmp_path / "model.safetensors")
    for seal in tmp_path.glob(".tokens.*"):
        seal.unlink()
    assert open_run(tmp_path).model is not None


def test_a_full_disk_is_an_error_of_the_system(tmp_path, monkeypatch):
    """safetensors tells of it in words of its own."""

    def full(values, path, **more):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(regard.runs.folder, "save_file", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_weights(tmp_path / "model.safetensors", {"weight": torch.ones(2)})
