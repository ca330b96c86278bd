"""Examples of the pages: recipes are recipes, commands have the options shown, and five pages are run as a whole."""

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from regard.cli import main
from regard.cli.commands import COMMANDS, parser_of
from regard.config import recipe_from
from regard.demo.grammar import corpus

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHORT = [
    "--model.d_model", "16", "--model.d_ff", "16", "--model.encoder_layers", "1", "--model.decoder_layers", "1",
    "--tokens.size", "300", "--training.steps", "4", "--training.valid_every", "1",
]  # fmt: skip
"""what training is cut down to"""


def blocks(page, language):
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands(page):
    """The lines of indented and of shell blocks that call regard: what is piped in, and the words behind `regard`."""
    text = page.read_text(encoding="utf-8")
    lines = re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    for block in blocks(page, "(?:bash|sh)"):
        lines += block.replace("\\\n", " ").splitlines()
    for line in lines:
        found = re.match(r"(?:echo (?P<piped>.*?) \| )?(?:srun )?(?:torchrun .*? -m )?regard (?P<words>.*)$", line)
        if found:
            piped = "".join(shlex.split(found["piped"])) + "\n" if found["piped"] else None
            yield piped, shlex.split(found["words"].partition(" | ")[0], comments=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_the_options_that_are_shown(page):
    for _, words in commands(page):
        if any(word in ("…", "...") for word in words):
            continue
        assert words[0] in {*COMMANDS, "--help", "--version"}, words
        if words[0] in COMMANDS and "--help" not in words:
            parser_of(words[0]).parse_args(words[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_recipes_are_recipes(page):
    for text in blocks(page, "toml"):
        values = tomllib.loads(text)
        if "start_from" not in values.get("training", {}):
            recipe_from({"task": "translate", **values})


@pytest.mark.parametrize("name", ["training", "data", "decoding", "language-models", "classifiers"])
def test_a_page_is_run(name, tmp_path, monkeypatch, capsys):
    """Its recipes are written under the names they carry, its commands are run in order, its Python at the end."""
    page = ROOT / "docs" / f"{name}.md"
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path)
    for text in blocks(page, "toml"):
        if named := re.match(r"# ([\w-]+\.toml)", text):
            (tmp_path / named[1]).write_text(text, encoding="utf-8")
    done = []
    for piped, words in commands(page):
        if words[:2] == ["data", "get"] or "--training.tensorboard" in words:
            continue  # the network, and a package that need not be there: tested where they belong
        if words[0] == "import":  # what there is to import is tested where it belongs; the page's own run stands in
            shutil.copytree(next((tmp_path / "runs").iterdir()), tmp_path / words[-1])
            continue
        if piped is not None:
            (tmp_path / "piped").write_text(piped, encoding="utf-8")
            words = [*words[:2], "piped", *words[2:]]
        code = main([*words, *(SHORT if words[0] == "train" else [])])
        assert code == 0, (words, capsys.readouterr().err)
        done.append(words[0])
    assert done.count("train") == 1
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), {})


def write_text(folder):
    """The text files that the pages name, of the demonstration's grammar."""
    whole = corpus(size=900, valid=36, test=36)
    tables = {"valid": "", "test": ""}
    for part in ("train", "valid", "test"):
        pairs = [pair for pair in getattr(whole, part) if pair.direction == "fr-en"]
        for language, side in (("fr", "source"), ("en", "target")):
            rows = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
            (folder / f"{part}.{language}").write_text(rows, encoding="utf-8")
    for part in tables:
        for pair in getattr(whole, part):
            tables[part] += f"{pair.source}\t{pair.target}\t<2{pair.direction[-2:]}>\n"
        (folder / f"{part}.tsv").write_text(tables[part], encoding="utf-8")
    english = [pair for pair in whole.train if pair.direction == "en-fr"]
    plain = [pair.source for pair in english]
    (folder / "plays.txt").write_text("\n".join(plain), encoding="utf-8")
    (folder / "prompts.jsonl").write_text('{"text": "The dog"}\n{"text": ""}\n', encoding="utf-8")
    (folder / "sentences.txt").write_text("\n".join(plain[:5]), encoding="utf-8")
    for name in ("reviews.tsv", "reviews.valid.tsv", "new.tsv"):
        rows = "".join(f"{sentence}\t{'good' if 'The' in sentence else 'bad'}\n" for sentence in plain[:60])
        (folder / name).write_text(rows, encoding="utf-8")
    turkish = [pair for pair in whole.train if pair.direction == "en-tr"]
    rows = (json.dumps({"source": pair.source, "target": pair.target}) + "\n" for pair in turkish)
    (folder / "english-turkish.jsonl").write_text("".join(rows), encoding="utf-8")
