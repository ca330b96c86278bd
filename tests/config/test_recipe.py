"""Recipes: what is refused and how, what presets fill in, what wins."""

import dataclasses

import pytest

from regard.config import (
    PRESETS,
    DataConfig,
    DataSet,
    DecodingConfig,
    ModelConfig,
    TokensConfig,
    TrainingConfig,
    model_preset,
    read_recipe,
    recipe_from,
)
from regard.config.plain import field_docs
from regard.config.recipe import FAMILY_OF_TASK, merge
from regard.errors import InputError


def refused(values):
    with pytest.raises(InputError) as error:
        recipe_from(values)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", [DataSet, DataConfig, TokensConfig, ModelConfig, TrainingConfig, DecodingConfig])
def test_every_field_says_what_it_is(kind):
    assert list(field_docs(kind)) == [field.name for field in dataclasses.fields(kind)]
    assert all(text[0] != " " and not text.endswith(".") for text in field_docs(kind).values())


def test_records_are_frozen_and_keyword_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig().heads = 3
    with pytest.raises(TypeError):
        ModelConfig("encoder-decoder")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, 'task is not stated: add task = "translate"'),
        ({"task": "translat"}, "task = 'translat': did you mean 'translate'?"),
        ({"task": 3}, "task = '3': there is classify, generate, translate"),
        ({"modle": {}}, "unknown key modle: did you mean 'model'?"),
        ({"model": 3}, "model = 3: must be a table"),
        ({"data": "a.tsv"}, "data = 'a.tsv': must be a table"),
        ({"training": 3, "model": {"preset": "base"}}, "training = 3: must be a table"),
        ({"model": {"d_modle": 3}}, "unknown key model.d_modle: did you mean 'd_model'?"),
        ({"model": {"preset": "smal"}}, "model.preset = 'smal': no such preset; did you mean 'small'?"),
        ({"model": {"heads": "two"}}, "model.heads = 'two': must be a whole number"),
        ({"model": {"heads": 0}}, "model.heads = 0: must be 1 or more"),
        ({"model": {"heads": 3}}, "model.d_model = 256: not divisible by heads = 3; take a multiple of 3"),
        ({"model": {"kv_heads": 3}}, "model.kv_heads = 3: must divide heads = 4"),
        ({"model": {"encoder_layers": -1}}, "model.encoder_layers = -1: must be 0 or more"),
        ({"model": {"labels": 0}}, "model.labels = 0: must be 1 or more"),
        ({"model": {"dropout": 1}}, "model.dropout = 1.0: must be at least 0 and below 1"),
        ({"model": {"norm": "per"}}, "model.norm = 'per': did you mean 'pre'?"),
        ({"model": {"norm_epsilon": 0}}, "model.norm_epsilon = 0.0: must be above 0"),
        ({"model": {"rotary_base": -1}}, "model.rotary_base = -1.0: must be above 0"),
        ({"model": {"positions": "rotary", "d_k": 7}}, "model.d_k = 7: rotary positions turn pairs"),
        ({"model": {"d_model": 255, "heads": 5}}, "model.d_model = 255: sinusoidal positions need an even width"),
        ({"model": {"relative_buckets": 6}}, "model.relative_buckets = 6: must be a multiple of 4"),
        ({"model": {"positions": "relative", "relative_distance": 16}}, "must exceed half of relative_buckets = 32"),
        ({"model": {"global_positions": [0, -1]}}, "model.global_positions = [0, -1]: must be 0 or more"),
        ({"model": {"vocabulary": 9, "source_vocabulary": 8}}, "the vocabularies differ (8 and 9)"),
        ({"data": {"max_length": 0}}, "data.max_length = 0: must be 1 or more"),
        ({"data": {"max_ratio": 0.5}}, "data.max_ratio = 0.5: must be 1 or more"),
        ({"data": {"sets": [{"weight": 2}]}}, "data.sets.files is not stated"),
        ({"data": {"sets": [{"files": "a", "weight": 0}]}}, "data.sets weight = 0.0: must be above 0"),
        ({"data": {"sets": [{"file": "a"}]}}, "unknown key data.sets.file: did you mean 'files'?"),
        ({"data": {"sets": "a"}}, "data.sets = 'a': must be a table"),
        ({"tokens": {"kind": "bep"}}, "tokens.kind = 'bep': did you mean 'bpe'?"),
        ({"tokens": {"size": 7}}, "tokens.size = 7: must be 8 or more"),
        ({"tokens": {"sampling": 1}}, "tokens.sampling = 1.0: must be at least 0 and below 1"),
        ({"tokens": {"joint": "yes"}}, "tokens.joint = 'yes': must be true or false"),
        ({"training": {"steps": 0}}, "training.steps = 0: must be above 0"),
        ({"training": {"minutes": -1}}, "training.minutes = -1.0: must be above 0"),
        ({"training": {"learning_rate": 0}}, "training.learning_rate = 0.0: must be above 0"),
        ({"training": {"label_smoothing": 1.0}}, "training.label_smoothing = 1.0: must be at least 0 and below 1"),
        ({"training": {"warmup": -1}}, "training.warmup = -1"),
        ({"training": {"weight_decay": -0.1}}, "weight_decay = -0.1: must be 0 or more"),
        ({"decoding": {"beam": 0}}, "decoding.beam = 0: must be 1 or more"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(values, said):
    assert said in refused(values if "task" in values or not values else {"task": "translate", **values})


@pytest.mark.parametrize(("task", "family"), list(FAMILY_OF_TASK.items()))
def test_the_task_decides_the_family_unless_one_is_stated(task, family):
    assert recipe_from({"task": task}).model.family == family
    assert recipe_from({"task": task, "model": {"family": "encoder-only"}}).model.family == "encoder-only"


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_models(name):
    model = model_preset(name)
    assert all(getattr(model, field) == value for field, value in PRESETS[name].items())
    assert model_preset(name, dropout=0.25) == dataclasses.replace(model, dropout=0.25)


def test_the_papers_models():
    base, big = model_preset("base"), model_preset("big")
    assert base == ModelConfig()
    assert (base.encoder_layers, base.decoder_layers, base.d_model, base.d_ff, base.heads) == (6, 6, 512, 2048, 8)
    assert (base.key_width, base.value_width, base.key_heads, base.dropout, base.norm) == (64, 64, 8, 0.1, "post")
    assert (big.d_model, big.d_ff, big.heads, big.dropout, big.key_width) == (1024, 4096, 16, 0.3, 64)


def test_a_preset_is_small_unless_stated_and_any_field_wins_over_it():
    assert recipe_from({"task": "translate"}).model == model_preset("small")
    recipe = recipe_from({"task": "translate", "model": {"preset": "tiny", "heads": 8}})
    assert recipe.model == model_preset("tiny", heads=8)


def test_base_and_big_train_as_the_paper_did_unless_stated():
    training = recipe_from({"task": "translate", "model": {"preset": "base"}, "training": {"warmup": 7}}).training
    assert (training.schedule, training.learning_rate, training.warmup, training.clip) == ("paper", 1.0, 7, None)
    assert recipe_from({"task": "translate"}).training == TrainingConfig()


def test_merge_puts_leaves_over_leaves():
    values = {"a": {"x": 1, "y": 2}, "b": [1], "c": 3}
    assert merge(values, {"a": {"y": 9}, "b": [2], "d": {"z": 0}}) == {
        "a": {"x": 1, "y": 9}, "b": [2], "c": 3, "d": {"z": 0},
    }  # fmt: skip
    assert values == {"a": {"x": 1, "y": 2}, "b": [1], "c": 3}


def test_reading_a_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(
        'task = "translate"\n[data]\ntrain = ["a.fr", "a.en"]\n[[data.sets]]\nfiles = "b.tsv"\nweight = 2\n'
    )
    recipe = read_recipe(path, {"model": {"heads": 8}, "data": {"train": "c.tsv"}})
    assert recipe.data == DataConfig(train=("c.tsv",), sets=(DataSet(files=("b.tsv",), weight=2.0),))
    assert recipe.model.heads == 8


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"task = translate", "not TOML: Invalid value (at line 1, column 8)"),
        (b"task = '\xff'", "cannot be read as a recipe"),
        (b"task = 'translate'\n[training]\nseed = " + b"9" * 5000, "not TOML"),
        (b"task = 'translate'\n[model]\nhead = 3", "unknown key model.head: did you mean 'heads'?"),
        (b"task = 'translate'\n[training]\nminutes = 2020-01-01", "must be a finite number"),
    ],
)
def test_a_wrong_file_is_named(content, said, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_recipe(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match="no such recipe"):
        read_recipe(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read as a recipe"):
        read_recipe(tmp_path)


def test_what_the_options_got_wrong_is_not_blamed_on_the_file_alone(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('task = "translate"\n')
    with pytest.raises(InputError, match=r"recipe\.toml with the options given: model\.d_model = 256: not divisible"):
        read_recipe(path, {"model": {"heads": 3}})


def test_a_resolved_recipe_needs_no_preset():
    text = recipe_from({"task": "translate", "model": {"preset": "base"}}).to_toml()
    assert "preset" not in text
    assert "d_model = 512" in text
