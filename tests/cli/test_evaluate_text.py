"""`regard evaluate` of a language model, as it is typed."""

import json
import math

import pytest
import torch

from regard.cli import main
from regard.config import recipe_from
from regard.models import build_model
from regard.runs import open_run, save_run
from regard.text import train_tokenizer

TEXT = "the house and the day\nwater and house, day\n" * 10


@pytest.fixture
def make(tmp_path):
    """Make a run folder with a new byte model; its training text is the sentences above."""
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")

    def make(name="run", *, seed=1, **data):
        torch.manual_seed(seed)
        model = {"d_model": 8, "heads": 2, "d_ff": 8, "decoder_layers": 1, "max_length": 32, "vocabulary": 260}
        values = {"task": "generate", "tokens": {"kind": "byte"}, "model": model}
        recipe = recipe_from({**values, "data": {"train": [str(tmp_path / "text.txt")], **data}})
        save_run(tmp_path / name, recipe, train_tokenizer([], recipe.tokens), build_model(recipe.model))
        return str(tmp_path / name)

    return make


def said(capsys, *words):
    assert main(["evaluate", *words]) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    assert main(["evaluate", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def by_hand(run, text):
    """Nats of a short text, read whole."""
    stored = open_run(run)
    specials = stored.tokenizer.specials
    ids = torch.tensor([specials.begin, *stored.tokenizer.encode(text), specials.end])
    with torch.no_grad():
        logp = stored.model.logits(stored.model(ids[None, :-1]))[0].log_softmax(-1)
    return -float(logp.gather(1, ids[1:, None]).sum())


def test_a_text_is_scored_and_compared(make, capsys, tmp_path):
    run, other = make(), make("other", seed=2)
    (tmp_path / "new.txt").write_text("day and köpek")
    found = json.loads(said(capsys, run, "--source", str(tmp_path / "new.txt"), "--against", other, "--json"))
    for one, folder in ((found, run), (found["against"], other)):
        nats, size = by_hand(folder, "day and köpek"), len("day and köpek".encode())
        assert (one["pieces"], one["bytes"], one["unknown"]) == (size + 1, size, 0)
        assert one["loss"] == pytest.approx(nats / (size + 1), rel=1e-5)
        assert one["perplexity"] == pytest.approx(math.exp(nats / (size + 1)), rel=1e-5)
        assert one["bits_per_byte"] == pytest.approx(nats / size / math.log(2), rel=1e-5)
    lines = said(capsys, run, "--source", str(tmp_path / "new.txt")).splitlines()
    assert lines[0] == f"{run} on {tmp_path / 'new.txt'}: 15 pieces, 14 bytes"
    assert lines == said(capsys, run, "--test", str(tmp_path / "new.txt")).splitlines()
    assert float(lines[1].split()[1]) == pytest.approx(found["loss"], abs=1e-4)


def test_the_recipes_own_text_is_taken(make, capsys, tmp_path):
    assert "the last 25% of" in said(capsys, make("held", valid_share=0.25))
    assert "validation text" in said(capsys, make("valid", valid=[str(tmp_path / "text.txt")]))
    whole = json.loads(said(capsys, make("test", test=[str(tmp_path / "text.txt")]), "--json"))
    assert (whole["bytes"], whole["window"]) == (len(TEXT), 32)


def test_what_cannot_be_scored_is_refused(make, capsys, tmp_path):
    assert "its recipe has no data.test; say --test FILE" in refused(capsys, make())
    assert "--beam: " in refused(capsys, make("two"), "--beam", "3")
    assert "no such run folder" in refused(
        capsys, make("three"), "--source", str(tmp_path / "text.txt"), "--against", str(tmp_path / "no")
    )
    assert "no such file" in refused(capsys, make("four"), "--source", str(tmp_path / "no.txt"))
