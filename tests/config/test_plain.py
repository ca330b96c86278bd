"""Plain values to records and back: types, messages, TOML."""

import tomllib
from dataclasses import dataclass
from typing import Literal

import pytest

from regard.config.plain import build, convert, describe_type, field_docs, to_plain, to_toml
from regard.errors import InputError, nearest


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part."""

    name: str
    """what it is
    called"""
    size: float | None = 1.0


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A whole."""

    parts: tuple[Part, ...] = ()
    kind: Literal["round", "square"] = "round"
    count: int | None = None


@pytest.mark.parametrize(
    ("hint", "value", "right"),
    [
        (int, 3, 3), (int, "3", 3), (int, "-3", -3), (float, 3, 3.0), (float, "1e-3", 1e-3), (bool, True, True),
        (bool, "False", False), (str, "3", "3"), (int | None, "none", None), (int | None, None, None),
        (int | None, "4", 4), (tuple[int, ...], "4", (4,)), (tuple[int, ...], ["4", 5], (4, 5)),
        (tuple[str, ...], "a.tsv", ("a.tsv",)), (Literal["none", "all"], "none", "none"),
        (tuple[Part, ...], [{"name": "a"}], (Part(name="a"),)), (tuple[Part, ...], {"name": "a"}, (Part(name="a"),)),
    ],
)  # fmt: skip
def test_values_become_what_the_type_says(hint, value, right):
    made = convert(hint, value, where="x")
    assert made == right
    assert type(made) is type(right)


@pytest.mark.parametrize(
    ("hint", "value", "said"),
    [
        (int, "three", "x = 'three': must be a whole number"),
        (int, 3.5, "x = 3.5: must be a whole number"),
        (int, True, "x = True: must be a whole number"),
        (int, "9" * 5000, "must be a whole number"),
        (int | None, "nothing", "x = 'nothing': must be a whole number"),
        (float, "a lot", "x = 'a lot': must be a finite number"),
        (float, "nan", "x = 'nan': must be a finite number"),
        (float, float("inf"), "x = inf: must be a finite number"),
        (float, 10**400, "must be a finite number"),
        (float, False, "x = False: must be a finite number"),
        (float, [1.0], "x = [1.0]: must be a finite number"),
        (bool, "yes", "x = 'yes': must be true or false"),
        (bool, 1, "x = 1: must be true or false"),
        (str, 3, "x = 3: must be Unicode text"),
        (str, "caf\udce9.txt", "must be Unicode text"),
        (Literal["round", "square"], "rund", "x = 'rund': did you mean 'round'?"),
        (Literal["round", "square"], 3, "x = 3: there is round, square"),
        (tuple[int, ...], ["4", "five"], "x = 'five': must be a whole number"),
        (Part, 3, "x = 3: must be a table"),
        (Part, {"nmae": "a"}, "unknown key x.nmae: did you mean 'name'?"),
        (Part, {"size": 2}, "x.name is not stated: it must be TEXT"),
    ],
)
def test_wrong_values_name_field_value_and_what_would_be_right(hint, value, said):
    with pytest.raises(InputError) as error:
        convert(hint, value, where="x")
    assert said in str(error.value)


def test_a_set_without_files_is_wrong_input():
    """`[[data.sets]]` with only a weight ended in a TypeError of the dataclass."""
    with pytest.raises(InputError, match=r"parts\.name is not stated"):
        build(Whole, {"parts": [{"size": 2}]})


def test_none_is_left_out_unless_something_else_is_the_default():
    """A recipe whose clip is none came back with the default 1.0, since none was always left out."""
    assert to_plain(Part(name="a", size=None)) == {"name": "a", "size": "none"}
    assert to_plain(Whole()) == {"parts": [], "kind": "round"}
    assert build(Part, to_plain(Part(name="a", size=None))) == Part(name="a", size=None)


def test_toml_is_read_back():
    values = {
        "text": 'say "hi"\\\n\t\r\0\x1f\x7f\x85\u2028é☃😀\u202e',
        "numbers": [1, -2, 1e-9, 1e16, 0.1, 10**15],
        "truth": [True, False],
        "tables": [{"a": "b", "c": [1, 2]}, {}],
        "empty": {},
        "outer": {"x": 1, "inner": {"y": [], "deepest": {"z": "1"}}, "other": {"w": 2}},
    }
    assert tomllib.loads(to_toml(values)) == values


def test_a_scalar_after_a_table_stays_outside_it():
    assert tomllib.loads(to_toml({"a": {"x": 1}, "b": 2})) == {"a": {"x": 1}, "b": 2}


def test_field_docs_are_the_lines_below():
    assert field_docs(Part) == {"name": "what it is called"}


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int, "INT"), (float, "NUMBER"), (str, "TEXT"), (bool, "true|false"), (int | None, "INT|none"),
        (tuple[int, ...], "INT …"), (Literal["a", "b"], "a|b"), (Part, "TABLE"),
    ],
)  # fmt: skip
def test_types_in_words(hint, words):
    assert describe_type(hint) == words


def test_nearest():
    assert nearest("haeds", ["heads", "d_k"]) == "did you mean 'heads'?"
    assert nearest("zzz", ["heads", "d_k"]) == "there is d_k, heads"
