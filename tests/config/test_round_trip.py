"""Any recipe, written as TOML and read again, is the same recipe."""

import dataclasses
import tomllib
import typing
from types import UnionType
from typing import Literal, get_args, get_origin

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from regard.config import PRESETS, DataConfig, Recipe, recipe_from
from regard.errors import InputError

NASTY = st.sampled_from(
    ['"', "\\", "'", '"""', "\n", "\r\n", "\t", "\0", "\x1f", "\x7f", "\x85", "\u2028", "\u202e", "é", "😀",
     "\U0010ffff", "#", "{}", "[x]", "\\u0041", "\\"]
)  # fmt: skip
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
TEXT = st.lists(NASTY | PLAIN, max_size=6).map("".join)
OPTIONAL_TEXT = TEXT.filter(lambda text: text != "none")  # where text may also be none, the word means that

SHARES = {
    "dropout", "attention_dropout", "activation_dropout", "sampling", "beta1", "beta2", "ema", "label_smoothing",
    "valid_share", "final_rate",
}  # fmt: skip
ABOVE_ONE = st.floats(1.0, 100.0) | st.floats(1.0, allow_infinity=False)
BOUND = {
    "heads": st.just(8), "kv_heads": st.sampled_from([None, 1, 2, 8]), "source_vocabulary": st.none(),
    "relative_buckets": st.sampled_from([4, 32]), "hidden_share": st.floats(0.01, 0.99),
}  # fmt: skip
"""Fields that must fit others: few values, so that most draws are valid."""


def values(hint, name):
    """Any value of a field."""
    if name in BOUND:
        return BOUND[name]
    if dataclasses.is_dataclass(hint):
        return records(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (typing.Union, UnionType):
        return st.none() | (OPTIONAL_TEXT if arguments[0] is str else values(arguments[0], name))
    if origin is tuple:
        return st.lists(values(arguments[0], name), max_size=3).map(tuple)
    return {
        bool: st.booleans(),
        int: st.integers(3, 200).map(lambda number: 8 * number) | st.integers(3, 2**60).map(lambda number: 8 * number),
        float: st.floats(0, 0.99) if name in SHARES else ABOVE_ONE,
        str: TEXT,
    }[hint]


def records(kind):
    """Any record that validates."""

    def made(fields):
        try:
            return kind(**fields)
        except InputError:
            assume(False)

    return st.fixed_dictionaries({name: values(hint, name) for name, hint in typing.get_type_hints(kind).items()}).map(
        made
    )


@settings(deadline=None, derandomize=True, max_examples=200)
@given(records(Recipe))
def test_any_recipe(recipe):
    assert recipe_from(tomllib.loads(recipe.to_toml())) == recipe


@pytest.mark.parametrize("task", ["translate", "generate", "classify"])
@pytest.mark.parametrize("preset", PRESETS)
def test_any_preset(preset, task):
    """The paper's clip is none and the default is not: it came back as 1.0."""
    recipe = recipe_from({"task": task, "model": {"preset": preset}})
    assert recipe_from(tomllib.loads(recipe.to_toml())) == recipe


@settings(deadline=None, derandomize=True)
@given(TEXT)
def test_any_text(text):
    recipe = Recipe(task="translate", data=DataConfig(train=(text, f"{text}.en"), source_field=text))
    assert recipe_from(tomllib.loads(recipe.to_toml())) == recipe
