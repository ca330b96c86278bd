"""The README's examples run and print what it says; what it names exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.cli.commands import COMMANDS
from regard.config import recipe_from

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"), ids=["attention", "trace"])
def test_examples_run_and_print_what_they_say(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    said = capsys.readouterr().out.strip()
    expected = {"attention": str(list(range(84, 101))), "trace": "torch.Size([1, 2, 5, 7])"}
    assert said == expected["trace" if "Trace" in code else "attention"]


def test_the_recipe_is_one():
    import tomllib

    (text,) = blocks("toml")
    assert recipe_from(tomllib.loads(text)).training.minutes == 10


def test_commands_in_the_table_are_those_there_are():
    named = set(re.findall(r"^\| `regard (\w+)", README, flags=re.MULTILINE))
    assert named == set(COMMANDS)


def test_pages_that_are_linked_are_there():
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link


def test_every_public_name_is_there():
    for name in regard.__all__:
        assert getattr(regard, name) is not None
    assert set(regard.__all__) == set(dir(regard))


def test_import_is_light():
    """`import regard` must not bring torch along: the command line answers --help through it."""
    code = "import regard, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
