"""Exit codes, and what stands on which stream."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli import main
from regard.cli.commands import COMMANDS
from regard.errors import InputError

SOURCES = Path(__file__).parents[2] / "src"


def refused(capsys, *words):
    """The one line that a wrong command line is answered with."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("regard: ")
    assert err.count("\n") == 1
    return err


def in_new_process(code, **more):
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, **more)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_the_overview_lists_every_command(words, capsys, command):
    command(lambda arguments: 0)
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "usage: regard COMMAND" in out
    assert all(f"  {name} " in out and entry.summary in out for name, entry in COMMANDS.items())


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "regard 0.1.0\n"


def test_a_command_gets_its_words_and_gives_the_exit_code(command):
    seen = []
    command(lambda arguments: seen.append(arguments) or 7)
    assert main(["brew", "a.toml", "--out", "pot", "--cups", "3"]) == 7
    assert (seen[0].recipe, seen[0].out, seen[0].cups, seen[0].very_strong) == ("a.toml", "pot", 3, False)


def test_unknown_command_names_the_nearest(capsys, command):
    command(lambda arguments: 0)
    assert "unknown command 'brwe': did you mean 'brew'?" in refused(capsys, "brwe")


def test_unknown_option_before_a_command(capsys):
    assert "unknown option --verison: did you mean '--version'?" in refused(capsys, "--verison")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model.d_modle", "3"], "unknown option --model.d_modle: did you mean --model.d_model?"),
        (["--modle.d_model=3"], "unknown option --modle.d_model: did you mean --model.d_model?"),
        (["--label-smoothing", "0"], "unknown option --label-smoothing: did you mean --training.label_smoothing?"),
        (["--model.zzzz", "3"], "unknown option --model.zzzz: regard brew --help lists them"),
        (["--very-stong"], "unknown option --very-stong: did you mean --very-strong?"),
        (["--ver"], "unknown option --ver"),
        (["--out"], "argument --out: expected one argument; see regard brew --help"),
        (["a.toml"], "the following arguments are required: --out; see regard brew --help"),
        (["a.toml", "--out", "pot", "b.toml"], "unrecognized arguments: b.toml"),
        (["a.toml", "--out", "pot", "--cups", "some"], "argument --cups: invalid int value: 'some'"),
        (["a.toml", "--out", "pot", "--model.heads", "x"], "model.heads = 'x': must be a whole number"),
    ],
)
def test_wrong_words_are_one_line_and_2(words, said, capsys, command):
    command(lambda arguments: 0)
    assert said in refused(capsys, "brew", *words)


def test_an_input_error_of_a_command_is_one_line_even_when_it_has_more(capsys, command):
    def run(arguments):
        raise InputError("line 3: no such word:\nnord")

    command(run)
    assert refused(capsys, "brew", "a", "--out", "b") == "regard: line 3: no such word: nord\n"


def test_interrupted_is_130(capsys, command):
    def run(arguments):
        raise KeyboardInterrupt

    command(run)
    assert main(["brew", "a", "--out", "b"]) == 130
    assert capsys.readouterr().err == "regard: interrupted\n"


def test_a_bug_is_not_hidden(command):
    def run(arguments):
        raise ZeroDivisionError

    command(run)
    with pytest.raises(ZeroDivisionError):
        main(["brew", "a", "--out", "b"])


def test_words_after_two_dashes_are_no_options(command):
    seen = []
    command(lambda arguments: seen.append(arguments.recipe) or 0)
    assert main(["brew", "--out", "b", "--", "--model.d_modle"]) == 0
    assert seen == ["--model.d_modle"]


def test_a_reader_that_leaves_is_no_error():
    code = "import sys, regard.cli as c; c._run = lambda w: print('y' * 10**6); sys.exit(c.main([]))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_python_dash_m():
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-m", "regard", "--hlep"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "regard: unknown option --hlep: did you mean '--help'?\n"


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(words):
    done = in_new_process(
        "import sys\nfrom regard.cli import main\n"
        f"assert main({words!r}) == 0\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'matplotlib', 'rich', 'safetensors'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    assert (done.returncode, done.stderr) == (0, "")
