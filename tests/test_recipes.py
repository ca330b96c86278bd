"""The recipes: each resolves and reads only what can be had, and the full one has every key at its default."""

import argparse
import dataclasses
import re
import runpy
import shlex
from pathlib import Path

import pytest
import torch

from regard.cli.options import add_recipe_options, overrides
from regard.config import DataSet, read_recipe, recipe_from
from regard.config.plain import field_docs, to_plain
from regard.data.fetch import known_sets
from regard.errors import InputError
from regard.evaluation.flops import total
from regard.evaluation.paper import PIECES, TABLE_3
from regard.evaluation.parameters import parameters
from regard.tasks.start import train
from regard.text import training_sets

ROOT = Path(__file__).parent.parent
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))
TRANSLATION = [path for path in RECIPES if 'task = "translate"' in path.read_text(encoding="utf-8")]


def named(path: Path) -> str:
    return path.stem


def test_the_recipes_that_there_are():
    pairs = {f"multi30k-{pair}" for pair in ("fr-en", "en-fr", "en-de", "de-en")}
    others = {"translate", "tatoeba-en-tr", "wmt14-en-de-base", "wmt14-en-de-big"}
    assert {named(path) for path in TRANSLATION} >= pairs | others
    text = {"shakespeare-char", "shakespeare-bpe", "toy-generate"}
    labels = {"sst2", "sst2-minilm", "toy-classify"}
    assert {named(path) for path in RECIPES} >= text | labels


@pytest.mark.parametrize("path", RECIPES, ids=named)
def test_a_recipe_resolves_and_reads_what_can_be_had(path, monkeypatch):
    """Its text is in this folder, comes by `regard data get`, or is said not to."""
    monkeypatch.delenv("REGARD_DATA", raising=False)
    recipe = read_recipe(path, {"training": {"start_from": "none"}})  # another run's shape and pieces are not here
    assert recipe_from(to_plain(recipe)) == recipe
    files = [file for data_set in training_sets(recipe.data) for file in data_set.files]
    for name in [*files, *recipe.data.valid, *recipe.data.test]:
        folder, source, file = name.split("/", 2)
        if folder == "recipes":
            assert (ROOT / name).is_file()
        elif source in known_sets():
            fetched = [
                there
                for remote in known_sets()[source].files
                for there in (
                    [remote.name, remote.divide.train, remote.divide.valid, remote.divide.test]
                    if remote.divide
                    else [remote.name]
                )
            ]
            assert file in fetched
        else:
            assert "NOT RUN HERE" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECIPES, ids=named)
def test_a_recipe_begins_with_data_time_hardware_and_score(path):
    text = path.read_text(encoding="utf-8")
    head = text[: text.index("\n\n")]
    assert all(line.startswith("#") for line in head.splitlines())
    assert all(word in head for word in ("Data: ", "Time", "Score: ", f"regard train recipes/{path.name}"))
    assert all(len(line) <= 140 for line in text.splitlines())


def uncommented(text: str) -> str:
    """With every key that stands behind a # taken out from there; the table of one more set is left."""
    kept = re.sub(r"#\[\[data\.sets\]\]\n(?:#.*\n)*", "", text)
    return re.sub(r"^#(?=\w+ = )", "", kept, flags=re.MULTILINE)


def test_the_full_recipe_has_every_key_once_with_its_default(tmp_path):
    text = (ROOT / "recipes" / "translate.toml").read_text(encoding="utf-8")
    path = tmp_path / "all.toml"
    path.write_text(uncommented(text), encoding="utf-8")
    found = read_recipe(path)
    assert found == read_recipe(ROOT / "recipes" / "translate.toml")

    toy = found.data
    values = {"task": "translate", "data": {"train": toy.train, "valid": toy.valid, "test": toy.test}}
    values |= {"tokens": {"size": 800}, "training": {"epochs": 5, "tokens_per_batch": 512, "warmup": 50}}
    assert found == recipe_from(values)  # all else is at its default

    parts = re.split(r"^\[(\w+)\]$", uncommented(text), flags=re.MULTILINE)
    for section, part in zip(parts[1::2], parts[2::2], strict=True):
        keys = re.findall(r"^(\w+) = ", part, flags=re.MULTILINE)
        names = [field.name for field in dataclasses.fields(getattr(found, section)) if field.name != "sets"]
        assert keys == (["preset"] if section == "model" else []) + names
        said = " ".join(line.removeprefix("# ") for line in part.splitlines() if line.startswith("# "))
        assert all(doc in said for doc in field_docs(type(getattr(found, section))).values())
    assert [line.split()[0] for line in text.split("#[[data.sets]]\n")[1].splitlines()[1:6:2]] == [
        f"#{field.name}" for field in dataclasses.fields(DataSet)
    ]


def test_the_full_recipe_and_its_text_are_as_the_tool_writes_them():
    stale = runpy.run_path(str(ROOT / "tools" / "full_recipe.py"))["stale"]
    assert stale(ROOT / "recipes") == {}


@pytest.mark.parametrize("name", ["toy-generate", "toy-classify"])
def test_a_toy_recipe_learns(name, tmp_path, monkeypatch):
    """A few updates of it; the figures in its head are of all of them."""
    monkeypatch.chdir(ROOT)
    recipe = read_recipe(ROOT / "recipes" / f"{name}.toml", {"training": {"steps": 60, "epochs": "none"}})
    with torch.random.fork_rng(devices=[]):
        progress = train(recipe, tmp_path / "run")
    assert progress.finished
    assert progress.best < 2.6 if recipe.task == "generate" else progress.best > 0.5


def table_3() -> list[list[str]]:
    text = (ROOT / "recipes" / "table3.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return rows[1:]


@pytest.mark.parametrize("row", table_3(), ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row_of_table_3_resolves(row):
    name, options, *_, million = row
    parser = argparse.ArgumentParser()
    add_recipe_options(parser)
    words = shlex.split(options.strip("`")) if options.startswith("`") else []
    stated = overrides(parser.parse_args(words))
    assert bool(stated) == (name not in ("base", "big"))
    recipe = read_recipe(ROOT / "recipes" / f"wmt14-en-de-{'big' if name == 'big' else 'base'}.toml", stated)
    count = total(parameters(dataclasses.replace(recipe.model, vocabulary=PIECES)))
    changes = {key: value for key, value in stated.get("model", {}).items() if key != "dropout"}
    (ours,) = [one for one in TABLE_3 if one.changes == changes and (one.preset == "big") == (name == "big")]
    assert count == ours.ours
    if name != "D":
        assert ours.group == name
        assert (str(ours.million) if ours.stated else "") == million


def test_table_3_is_whole():
    assert [row[0] for row in table_3()] == ["base", *"A" * 4, *"B" * 2, *"C" * 7, *"D" * 4, "E", "big"]


def test_data_that_stands_elsewhere_is_found(tmp_path, monkeypatch):
    """REGARD_DATA says where data/ is, as it says where `regard data get` puts it; what is here comes first."""
    (tmp_path / "sets" / "own").mkdir(parents=True)
    for side in ("a", "b"):
        (tmp_path / "sets" / "own" / f"train.{side}").write_text("x\n", encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('task = "translate"\n[data]\ntrain = ["data/own/train.a", "data/own/train.b"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "sets"))
    assert read_recipe(recipe).data.train == tuple(str(tmp_path / "sets" / "own" / f"train.{side}") for side in "ab")
    (tmp_path / "data" / "own").mkdir(parents=True)
    (tmp_path / "data" / "own" / "train.a").write_text("x\n", encoding="utf-8")
    assert read_recipe(recipe).data.train[0] == "data/own/train.a"


def test_data_that_was_not_fetched_says_how(tmp_path, monkeypatch):
    from regard.text.corpus import read_pairs

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"data/multi30k/train.fr.gz: no such file; .*regard data get multi30k"):
        list(read_pairs(["data/multi30k/train.fr.gz", "data/multi30k/train.en.gz"]))
