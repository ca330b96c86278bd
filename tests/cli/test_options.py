"""Every key of the recipe is an option, reads what the recipe reads, and says what it is."""

import argparse
import dataclasses

import pytest

from regard.cli.layout import page
from regard.cli.options import SECTIONS, add_recipe_options, overrides
from regard.cli.parser import Parser, nearest_option
from regard.config import PRESETS, Recipe, read_recipe, recipe_from
from regard.errors import InputError


def parser(*sections):
    made = Parser(prog="regard brew", description="Makes coffee.")
    add_recipe_options(made, sections or SECTIONS)
    return made


def stated(*words):
    return overrides(parser().parse_args(words))


def keys():
    defaults = recipe_from({"task": "translate"})
    for section in SECTIONS:
        for field in dataclasses.fields(getattr(defaults, section)):
            if (section, field.name) != ("data", "sets"):
                yield section, field.name


def test_the_sections_are_the_recipes():
    assert ("task", *SECTIONS) == tuple(field.name for field in dataclasses.fields(Recipe))


@pytest.mark.parametrize(("section", "name"), list(keys()))
def test_every_key_is_an_option_with_its_default(section, name):
    value = getattr(getattr(recipe_from({"task": "translate"}), section), name)
    if value == ():
        value = ("a.tsv",)
    words = [*map(str, value)] if isinstance(value, tuple) else ["none" if value is None else str(value)]
    for spelling in (name, name.replace("_", "-")):
        assert stated(f"--{section}.{spelling}", *words) == {section: {name: value}}


def test_nothing_stated_is_nothing():
    assert stated() == {}


def test_values_are_read_as_their_types():
    given = stated(
        "--data.train", "a.fr", "a.en", "--tokens.joint", "false", "--model.preset", "big", "--model.d_k=none",
        "--model.global-positions", "0", "5", "--training.learning_rate", "1e-4", "--training.clip", "none",
    )  # fmt: skip
    assert given == {
        "data": {"train": ("a.fr", "a.en")},
        "tokens": {"joint": False},
        "model": {"preset": "big", "d_k": None, "global_positions": (0, 5)},
        "training": {"learning_rate": 1e-4, "clip": None},
    }


def test_what_is_stated_wins_over_the_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('task = "translate"\n[model]\nheads = 2\nd_ff = 64\n[training]\nclip = 2.0\n', encoding="utf-8")
    recipe = read_recipe(path, stated("--model.heads", "8", "--training.clip", "none", "--model.preset", "tiny"))
    assert (recipe.model.heads, recipe.model.d_ff, recipe.model.d_model, recipe.training.clip) == (8, 64, 128, None)


def test_options_of_the_command_itself_are_no_overrides():
    made = parser("decoding")
    made.add_argument("--cups", type=int)
    assert overrides(made.parse_args(["--cups", "3", "--decoding.beam", "2"])) == {"decoding": {"beam": 2}}


def test_a_command_may_take_one_section():
    with pytest.raises(InputError, match=r"unknown option --training\.steps"):
        parser("model").parse_args(["--training.steps", "3"])
    with pytest.raises(InputError, match="did you mean 'model'"):
        parser("modle")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model.d_model", "3x"], "model.d_model = '3x': must be a whole number"),
        (["--model.dropout", "lots"], "model.dropout = 'lots': must be a finite number"),
        (["--model.dropout", "nan"], "model.dropout = 'nan': must be a finite number"),
        (["--model.norm", "per"], "model.norm = 'per': did you mean 'pre'?"),
        (["--tokens.joint", "yes"], "tokens.joint = 'yes': must be true or false"),
        (["--model.preset", "smal"], "model.preset = 'smal': no such preset; did you mean 'small'?"),
        (["--model.global_positions", "0", "x"], "model.global_positions = 'x': must be a whole number"),
        (["--training.seed", "--model.heads", "3"], "argument --training.seed: expected one argument"),
        (["--data.sets", "x"], "unknown option --data.sets"),
    ],
)
def test_wrong_values_name_field_value_and_what_would_be_right(words, said):
    with pytest.raises(InputError) as error:
        parser().parse_args(words)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("--model.d_modle", "--model.d_model"),
        ("--model.head", "--model.heads"),
        ("--d-model", "--model.d_model"),
        ("--haeds", "--model.heads"),
        ("--modle.haeds", "--model.heads"),
        ("--modle.d_model", "--model.d_model"),
        ("--otu", "--out"),
        ("--model.zzzz", None),
        ("--zzzz", None),
    ],
)
def test_nearest_option(name, right):
    assert nearest_option(name, ["--out", "--model.d_model", "--model.d_ff", "--model.norm", "--model.heads"]) == right


def test_help_says_each_key_its_type_its_default_and_its_section(monkeypatch):
    monkeypatch.setenv("COLUMNS", "96")
    text = parser().format_help()
    assert max(map(len, text.splitlines())) <= 96
    assert all(f"  --{section}.{name} " in text for section, name in keys())
    assert all(f"\n{section}: " in text for section in SECTIONS)
    joined = " ".join(text.split())
    assert "--training.warmup INT updates over which the learning rate rises [500]" in joined
    assert "--model.norm pre|post where the norm stands" in joined
    assert "those of preset small" in joined
    assert "schedule paper, learning_rate 1, warmup 4000, clip none" in joined
    assert all(preset in joined for preset in PRESETS)
    assert "usage: regard brew [--section.key VALUE] ..." in text


@pytest.mark.parametrize("columns", ["20", "60", "80", "400"])
def test_help_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    made = parser("training")
    made.add_argument("files", nargs="*", help="100% of what is read, or nothing at all".replace("%", "%%"))
    for name in ("one", "two", "three", "four", "five", "six"):
        made.add_argument(f"--{name}-of-many", metavar="VALUE", required=name == "six")
    text = made.format_help()
    assert max(map(len, text.splitlines())) <= max(65, min(int(columns), 96))
    assert " ".join(text.split()).startswith("usage: regard brew [FILES ...] --six-of-many VALUE [--one")
    assert "100% of what is read" in " ".join(text.split())


def test_a_help_line_of_a_plain_action():
    made = argparse.ArgumentParser(prog="x", add_help=False)
    made.add_argument("--kind", choices=["a", "b"], default="a", help="which")
    made.add_argument("--pair", nargs=2, metavar=("X", "Y"), help="two")
    made.add_argument("--hidden", help=argparse.SUPPRESS)
    assert page(made).split("\n\n") == [
        "usage: x [--kind a|b] [--pair X Y]",
        "options:\n  --kind a|b  which [a]\n  --pair X Y  two",
    ]
