"""Snapshots and their mean: as many as the recipe says, and what `regard average` makes of them is a run."""

import pytest
import torch

from regard.cli import main
from regard.errors import InputError
from regard.runs import open_run, read_notes, read_weights, write_weights
from regard.tasks.run import load
from regard.tasks.start import train
from regard.training.snapshots import SNAPSHOTS, forget_after, keep_snapshot, list_snapshots, mean_weights, step_of


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("snapshots") / "run"


@pytest.fixture
def run(place, recipe):
    """A run of six validations, of which three leave their weights."""
    if not place.exists():
        train(recipe(training={"valid_every": 2, "snapshots": 3}), place)
    return place


def test_the_newest_stay(run):
    assert [step_of(path) for path in list_snapshots(run)] == [8, 10, 12]
    assert sorted(path.name for path in (run / SNAPSHOTS).iterdir()) == [path.name for path in list_snapshots(run)]


def test_the_last_one_is_the_model_at_the_end(recipe, tmp_path):
    train(recipe(training={"steps": 2, "valid_every": 2}), tmp_path)
    (only,) = list_snapshots(tmp_path)
    kept, model = read_weights(only), read_weights(tmp_path / "model.safetensors")
    assert all(torch.equal(kept[name], weight) for name, weight in model.items())


def test_none_are_kept_if_none_are_wanted(recipe, tmp_path):
    train(recipe(training={"steps": 2, "valid_every": 1, "snapshots": 0}), tmp_path)
    assert not (tmp_path / SNAPSHOTS).exists()


def test_the_mean_is_a_run(run, capsys, tmp_path):
    out = tmp_path / "mean"
    assert main(["average", str(run), "--out", str(out)]) == 0
    assert "the mean of 3 snapshots, after updates 8, 10, 12" in capsys.readouterr().out
    found = read_weights(out / "model.safetensors")
    every = [read_weights(path) for path in list_snapshots(run)]
    for name, weight in found.items():
        assert torch.allclose(weight, sum(one[name] for one in every) / 3, atol=1e-7), name
    assert read_notes(out / "model.safetensors")["mean of updates"] == "8, 10, 12"
    assert load(out).translate("the cat sleeps .").text == load(out).translate("the cat sleeps .").text
    assert open_run(out).recipe == open_run(run).recipe
    assert main(["average", str(run), "--out", str(out)]) == 2
    assert "is there already; take another --out" in capsys.readouterr().err


def test_some_of_them(run, capsys, tmp_path):
    assert main(["average", str(run), "--last", "1", "--out", str(tmp_path / "one")]) == 0
    newest = read_weights(list_snapshots(run)[-1])
    assert all(torch.equal(newest[name], weight) for name, weight in
               read_weights(tmp_path / "one" / "model.safetensors").items())  # fmt: skip
    for last, said in (("4", "keeps 3 snapshots"), ("0", "must be 1 or more")):
        assert main(["average", str(run), "--last", last, "--out", str(tmp_path / "none")]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_run_without_any_is_refused(recipe, tmp_path, capsys):
    train(recipe(training={"steps": 1, "snapshots": 0}), tmp_path / "run")
    assert main(["average", str(tmp_path / "run")]) == 2
    assert "train with training.snapshots above 0" in capsys.readouterr().err


def test_weights_that_do_not_belong_together_are_refused(tmp_path):
    for name, weights in {"a": {"w": torch.ones(2)}, "b": {"v": torch.ones(2)}, "c": {"w": torch.ones(3)}}.items():
        write_weights(tmp_path / name, weights)
    for other, said in (("b", "holds other weights than"), ("c", "w has another shape than")):
        with pytest.raises(InputError, match=said):
            mean_weights([tmp_path / "a", tmp_path / other])


def test_the_mean_of_many_loses_no_digits(tmp_path):
    value = torch.tensor([1.0, 1e-8, 3.0])
    files = [tmp_path / str(number) for number in range(7)]
    for file in files:
        write_weights(file, {"w": value})
    assert torch.equal(mean_weights(files)["w"], value)


def test_a_run_that_fell_back_forgets_what_came_later(tmp_path):
    for step in (2, 4, 6):
        keep_snapshot(tmp_path, step, {"w": torch.ones(1)}, most=5)
    forget_after(tmp_path, 4)
    assert [step_of(path) for path in list_snapshots(tmp_path)] == [2, 4]
