"""`regard verify` as it is typed."""

import json

import pytest
import torch

import regard.verify
from regard.cli import main
from regard.config import recipe_from
from regard.models import build_model
from regard.runs import save_run
from regard.text import train_tokenizer
from regard.verify import EQUALITIES, Equality


@pytest.fixture
def run(tmp_path):
    """A run folder with a new model."""

    def make(task="translate", **model):
        values = {"d_model": 16, "heads": 4, "d_ff": 16, "encoder_layers": 2, "decoder_layers": 2, "vocabulary": 260,
                  "max_length": 400}  # fmt: skip
        torch.manual_seed(1)
        recipe = recipe_from({"task": task, "tokens": {"kind": "byte"}, "model": {**values, **model}})
        save_run(tmp_path / "run", recipe, train_tokenizer([], recipe.tokens), build_model(recipe.model))
        return str(tmp_path / "run")

    return make


def test_the_built_in_models(capsys):
    threads = torch.get_num_threads()
    assert main(["verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    most = len(EQUALITIES) - 1  # all but that of a run's test text
    assert lines[-1] == f"{most} of {most} equalities hold"
    assert sum(line.startswith("holds  ") for line in lines) == most
    assert all(len(line) <= 100 for line in lines)
    assert torch.get_num_threads() == threads


ONLY_DECODERS = {
    "cached = uncached",
    "ragged rows = each row alone",
    "moved rows = separate rows",
    "the future is not seen",
    "batched search = plain search",
    "searched alone = in company",
    "streamed = whole",
    "compiled steps = plain steps",
}
NO_TEXT = {"fewer bits = float32, nearly"}
NO_DRAFT = {
    "drafted text = plain text", "packed = each document alone", "windowed cache = whole text", *NO_TEXT
}  # fmt: skip


@pytest.mark.parametrize(
    ("task", "model", "left_out"),
    [
        ("translate", {"positions": "sinusoidal"}, {"permuted input = permuted output", *NO_DRAFT}),
        ("translate", {"positions": "none", "norm": "post"}, NO_DRAFT),
        ("generate", {"attention": "sliding", "window": 20, "positions": "alibi"},
         {"permuted input = permuted output", "padded = unpadded", "alignment = forced alignment",
          "compiled steps = plain steps", *NO_TEXT}),
        ("classify", {"labels": 3, "positions": "learned"},
         {"permuted input = permuted output", "alignment = forced alignment", *ONLY_DECODERS, *NO_DRAFT}),
    ],
)  # fmt: skip
def test_a_run(task, model, left_out, run, capsys):
    assert main(["verify", run(task, **model), "--json", "--seed", "5"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["held"] is True
    assert found["environment"]["seed"] == 5
    assert {result["name"] for result in found["results"]} == {each.name for each in EQUALITIES} - left_out
    assert all(result["cases"] > 0 and result["difference"] <= result["bound"] for result in found["results"])


def test_one_that_does_not_hold_is_1(run, capsys, monkeypatch):
    broken = Equality(name="one = two", says="they differ", bound=0.5, measure=lambda subject: iter([("numbers", 1.0)]))
    monkeypatch.setattr(regard.verify, "EQUALITIES", (EQUALITIES[-1], broken))
    folder = run()
    assert main(["verify", folder, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["held"] is False
    assert [result["held"] for result in found["results"]] == [True, False]
    assert main(["verify", folder]) == 1
    out = capsys.readouterr().out
    assert "FAILS  one = two" in out
    assert "worst: numbers" in out
    assert out.endswith("\n1 of 2 equalities hold\n")


def test_wrong_input_is_2(run, capsys, tmp_path):
    assert main(["verify", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err == f"regard: {tmp_path / 'nothing'}: no such run folder\n"
    assert main(["verify", run(max_length=8)]) == 2
    assert "model.max_length = 8: verify needs 11 or more" in capsys.readouterr().err
    assert main(["verify", "--seed", "x"]) == 2
    assert "invalid int value" in capsys.readouterr().err


def test_a_short_table_of_positions_is_no_fault(run):
    """Long inputs are cut to what the model takes."""
    assert main(["verify", run(positions="learned", max_length=11)]) == 0
