"""The pages of docs/commands are what the commands say of themselves."""

import subprocess
import sys
from pathlib import Path

from regard.cli.commands import COMMANDS, parser_of
from regard.cli.layout import markdown

ROOT = Path(__file__).parents[2]


def help_pages(*words):
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "help_pages.py", *words], capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip


def test_the_pages_are_not_out_of_date():
    done = help_pages("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_that_no_command_owns_is_out_of_date_and_goes(tmp_path):
    old = tmp_path / "gone.md"
    old.write_text("# regard gone\n", encoding="utf-8")
    done = help_pages("--check", "--folder", tmp_path)
    assert done.returncode == 1
    assert f"{old}: out of date" in done.stderr
    assert old.exists()
    assert help_pages("--folder", tmp_path).returncode == 0
    assert {path.stem for path in tmp_path.iterdir()} == set(COMMANDS)
    assert help_pages("--check", "--folder", tmp_path).returncode == 0


def test_a_page_holds_usage_options_defaults_and_the_example(command, monkeypatch):
    command(lambda arguments: 0)
    page = markdown(parser_of("brew"))
    monkeypatch.setenv("COLUMNS", "50")
    assert markdown(parser_of("brew")) == page, "a page does not depend on the terminal"
    assert page.startswith("# regard brew\n\nMakes coffee.\n\n```text\nusage: regard brew RECIPE --out RUN")
    assert (
        "## arguments\n\n| argument | what it says | default |\n|---|---|---|\n| `RECIPE` | what to brew |  |" in page
    )
    assert "| `--out RUN` | where \\| it &lt;goes> |  |" in page
    assert "| `--cups CUPS` | how many | `2` |" in page
    assert "| `--model.norm pre\\|post` | where the norm stands" in page
    assert "  regard brew coffee.toml --out pot\n```" in page
