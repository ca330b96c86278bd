"""`regard evaluate` as it is typed."""

import json

import pytest
import torch

from regard.cli import main
from regard.config import recipe_from
from regard.evaluation.scores import score
from regard.models import build_model
from regard.runs import save_run
from regard.tasks.run import load
from regard.text import train_tokenizer

SOURCES = ["un chat dort ici", "deux chiens", "Trois"]
TARGETS = ["a cat sleeps right here", "two dogs", "Three"]


def write(path, texts):
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return str(path)


@pytest.fixture
def make(tmp_path):
    """Make a run folder with a new model; `data.test` is the sentences above."""
    files = [write(tmp_path / "test.fr", SOURCES), write(tmp_path / "test.en", TARGETS)]

    def make(name="run", *, seed=1, tags=(), **data):
        torch.manual_seed(seed)
        size = {"d_model": 8, "heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1, "max_length": 64}
        values = {"task": "translate", "tokens": {"kind": "byte"}, "data": {"test": files, **data}}
        recipe = recipe_from({**values, "decoding": {"beam": 2}, "model": {**size, "vocabulary": 260 + len(tags)}})
        save_run(tmp_path / name, recipe, train_tokenizer([], recipe.tokens, list(tags)), build_model(recipe.model))
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


def test_it_translates_the_recipes_test_text(make, capsys):
    run = make()
    expected = score([one.text.replace("\n", " ") for one in load(run).translate(SOURCES)], TARGETS)
    plain = json.loads(said(capsys, run, "--json"))
    assert [one["value"] for one in plain["scores"]] == [one.value for one in expected.whole]
    assert (plain["sentences"], plain["beam"]) == (3, 2)
    lines = said(capsys, run, "--beam", "1").splitlines()
    assert lines[0].endswith("test.en: 3 sentences, beam 1")
    assert [line.split()[0] for line in lines[2:5]] == ["BLEU", "chrF2++", "TER"]
    assert "tok:13a" in lines[2]


def test_a_file_of_hypotheses_needs_no_model(make, capsys, tmp_path):
    run = make()
    (tmp_path / "run" / "model.safetensors").unlink()
    file = write(tmp_path / "made.en", ["a cat sleeps", "two Dogs", ""])
    plain = json.loads(said(capsys, run, "--hypotheses", file, "--json"))
    expected = score(["a cat sleeps", "two Dogs", ""], TARGETS)
    assert [one["value"] for one in plain["scores"]] == [one.value for one in expected.whole]
    assert plain["beam"] is None
    lower = json.loads(said(capsys, run, "--hypotheses", file, "--json", "--lowercase", "--tokenize", "char"))
    assert "case:lc" in lower["scores"][0]["signature"]
    assert "tok:char" in lower["scores"][0]["signature"]
    assert lower["scores"][1]["value"] > plain["scores"][1]["value"]


def test_other_text_and_against_a_file_and_a_run(make, capsys, tmp_path):
    run, other = make(), make("other", seed=2)
    words = ["--source", write(tmp_path / "s", SOURCES[:2]), "--target", write(tmp_path / "t", TARGETS[:2])]
    right = write(tmp_path / "right", TARGETS[:2])
    plain = json.loads(said(capsys, run, *words, "--against", right, "--json"))
    assert plain["sentences"] == 2
    assert [one["theirs"]["value"] for one in plain["differences"]] == pytest.approx([100, 100, 0])
    assert [one["name"] for one in plain["differences"]] == ["BLEU", "chrF2++", "TER"]
    shown = said(capsys, run, "--against", other)
    assert shown == said(capsys, run, "--against", other)
    assert "bs:1000|seed:12345" in shown
    assert other in shown.splitlines()[1]


def test_each_sentence_is_written(make, capsys, tmp_path):
    run = make()
    file = write(tmp_path / "made", ["a cat sleeps right here", "two\tdogs", "3"])
    said(capsys, run, "--hypotheses", file, "--per-sentence", str(tmp_path / "new" / "s.tsv"))
    rows = [line.split("\t") for line in (tmp_path / "new" / "s.tsv").read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["source", "target", "hypothesis", "bleu", "chrf", "ter"]
    assert rows[1] == [SOURCES[0], TARGETS[0], TARGETS[0], "100.00", "100.00", "0.00"]
    assert rows[2][2] == "two dogs"
    said(capsys, run, "--hypotheses", file, "--per-sentence", str(tmp_path / "s.jsonl"))
    plain = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    assert plain[1]["hypothesis"] == "two\tdogs"
    assert plain[2]["bleu"] == score(["3"], ["Three"]).sentences[0].bleu


def test_a_recipe_in_lower_case_is_scored_so(make, capsys, tmp_path):
    run = make(lowercase=True)
    plain = json.loads(
        said(capsys, run, "--hypotheses", write(tmp_path / "h", ["A CAT sleeps right here", *TARGETS[1:]]), "--json")
    )
    assert [one["value"] for one in plain["scores"]] == pytest.approx([100, 100, 0])
    assert "case:lc" in plain["scores"][0]["signature"]


def test_directions(make, capsys, tmp_path):
    table = tmp_path / "test.jsonl"
    rows = [{"source": "un", "target": "one", "to": "<2en>"}, {"source": "un", "target": "bir", "to": "<2tr>"}]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sets = [{"files": ["a", "b"], "tag": "<2en>"}, {"files": ["c", "d"], "tag": "<2tr>"}]
    run = make(tags=["<2en>", "<2tr>"], sets=sets)
    assert "several directions; say which with --tag: <2en>, <2tr>" in refused(capsys, run)
    said(capsys, run, "--tag", "<2tr>")
    assert "<2fr>" in refused(capsys, run, "--tag", "<2fr>")
    run = make("table", tags=["<2en>", "<2tr>"], sets=sets, test=[str(table)], tag_field="to")
    out = tmp_path / "s.jsonl"
    said(capsys, run, "--per-sentence", str(out))
    opened = load(run)
    found = [json.loads(line)["hypothesis"] for line in out.read_text(encoding="utf-8").splitlines()]
    assert found == [opened.translate("un", tag=tag).text.replace("\n", " ") for tag in ("<2en>", "<2tr>")]


def test_what_is_wrong_is_one_line_and_2(make, capsys, tmp_path):
    run = make()
    short = write(tmp_path / "short", ["a"])
    assert "short: 1 lines for 3 sentences" in refused(capsys, run, "--hypotheses", short)
    assert "short: 1 lines for 3 sentences" in refused(capsys, run, "--against", short)
    assert "--source without --target" in refused(capsys, run, "--source", short)
    assert "test.fr" in refused(capsys, run, "--source", short, "--target", str(tmp_path / "test.fr"))
    assert "no such file" in refused(capsys, run, "--hypotheses", str(tmp_path / "none"))
    empty = write(tmp_path / "empty", [])
    refused(capsys, run, "--source", empty, "--target", empty)
    assert "--beam = 0" in refused(capsys, run, "--beam", "0")
    assert "not a run folder" in refused(capsys, str(tmp_path / "nowhere"))
    assert "is a folder" in refused(capsys, run, "--per-sentence", str(tmp_path))
    assert "its recipe has no data.test" in refused(capsys, make("bare", test=[]))
