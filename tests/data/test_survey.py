"""Counting a recipe's text before training."""

from regard.cli import main
from regard.config import DataConfig, DataSet
from regard.data.survey import survey

TRAIN = ["a b c\tx", "a b c\tx", "same\tsame", "\tempty", "d\ty z"]


def written(folder, **files):
    for name, rows in files.items():
        (folder / f"{name}.tsv").write_text("".join(f"{row}\n" for row in rows))
    return {name: (str(folder / f"{name}.tsv"),) for name in files}


def test_what_is_kept_and_what_stands_in_two_parts(tmp_path):
    files = written(tmp_path, train=TRAIN, more=["d\ty z", "e\tw"], valid=["a b c\tq", "new\tq"], test=["e\tw"])
    config = DataConfig(
        train=files["train"], sets=(DataSet(files=files["more"], weight=0.5, tag="<2x>"),), valid=files["valid"],
        test=files["test"], drop_duplicates=True, drop_copies=True,
    )  # fmt: skip
    first, second, valid, test = survey(config)
    assert (first.report.kept, first.report.empty, first.report.copies, first.report.duplicates) == (2, 1, 1, 1)
    assert (second.report.kept, second.report.read, second.tag, second.weight) == (2, 2, "<2x>", 0.5)
    assert first.words == ((1, 3, 3, 3), (1, 2, 2, 2))
    assert (valid.known, test.known) == (1, 1)


def test_the_command(tmp_path, capsys):
    files = written(tmp_path, train=TRAIN, valid=["a b c\tq"])
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'task = "translate"\n[data]\ntrain = {list(files["train"])}\nvalid = {list(files["valid"])}\n')
    assert main(["data", "check", str(recipe)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "  4 of 5 kept; left out: 1 empty"
    assert out[-1] == "  in the training text too: 1 sources (100.0%)"
    (tmp_path / "train.tsv").write_text("one column\n")
    assert main(["data", "check", str(recipe)]) == 2
    assert "train.tsv, line 1: 1 column, so no column 2" in capsys.readouterr().err
