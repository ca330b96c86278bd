"""A disk that fills while a run goes: the command says so, and with room again the run comes to its end unharmed.

The disk is a small tmpfs, which only an administrator can mount; elsewhere `test_checkpoint.py` stands for it, where
writes of a run are made to fail by hand.
"""

import shutil
import subprocess

import pytest

from regard.cli import main

MIB = 2**20
SHORT = {"ema": 0.9, "steps": 6, "valid_every": 2}


@pytest.fixture
def disk(tmp_path):
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)]
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no program mount; test_checkpoint.py tests a full disk by hand")
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted ({done.stderr.strip()}); test_checkpoint.py tests a full disk by hand")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_run_on_a_disk_that_fills(disk, recipe, tmp_path, outcome, capsys):
    """With room for a tenth of what the run writes, for three tenths, and so on."""
    path = tmp_path / "recipe.toml"
    path.write_text(recipe(training=SHORT).to_toml(), encoding="utf-8")
    train = ["train", str(path), "--training.checkpoint_minutes", "1e-9", "--out"]
    empty = shutil.disk_usage(disk).free
    assert main([*train, str(disk / "whole")]) == 0
    expected, needed = outcome(disk / "whole"), empty - shutil.disk_usage(disk).free
    shutil.rmtree(disk / "whole")
    said = []
    for tenths in (1, 3, 5, 7, 9):
        run, ballast = disk / f"run-{tenths}", disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(disk).free - needed * tenths // 10))
        capsys.readouterr()
        assert main([*train, str(run)]) == 1
        said.append(capsys.readouterr().err.splitlines()[-1])
        ballast.unlink()
        assert main([*train, str(run)]) == 0
        assert "damaged" not in capsys.readouterr().err
        assert outcome(run) == expected
        shutil.rmtree(run)
    assert all(line.startswith("regard: the disk is full") for line in said), said
    assert all(line.endswith("make room, and run the same command again") for line in said), said
