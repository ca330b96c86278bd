"""Checkpoints and journals after a crash, a flipped byte and a full disk: steps are lost, never the run."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
import torch

import regard.runs.folder
from regard.errors import InputError
from regard.tasks.start import train
from regard.training.checkpoint import CHECKPOINTS, KEPT, Progress, load_checkpoint, save_checkpoint, set_random_state
from regard.training.journal import JOURNAL, Journal, read_journal


def tensors(step):
    return {"weights": torch.full((50,), float(step)), "adam.0.step": torch.tensor(float(step))}


def saved(folder, *steps):
    return [save_checkpoint(folder, Progress(step=step, best=step / 2), tensors(step)) for step in steps]


def newest(folder):
    found = load_checkpoint(folder, lambda line: None)
    return found and found[0].step


def test_what_is_saved_is_loaded(tmp_path):
    assert load_checkpoint(tmp_path, print) is None
    torch.manual_seed(3)
    progress = Progress(step=7, epoch=1, batch=2, seconds=1.5, tokens=99, best=3.25, waited=1, owed=True)
    save_checkpoint(tmp_path, progress, tensors(7))
    expected = torch.rand(3)
    torch.manual_seed(4)
    found, state, random = load_checkpoint(tmp_path, print)
    assert found == progress
    (only,) = random
    set_random_state(only)
    assert torch.equal(torch.rand(3), expected)
    assert state.keys() == tensors(7).keys()
    assert all(torch.equal(state[name], value) for name, value in tensors(7).items())


def test_few_stay_and_the_same_step_may_come_again(tmp_path):
    saved(tmp_path, 1, 2, 3, 3, 3)
    assert len(list((tmp_path / CHECKPOINTS).iterdir())) == KEPT
    assert newest(tmp_path) == 3
    saved(tmp_path, 4)
    assert newest(tmp_path) == 4
    assert len(list((tmp_path / CHECKPOINTS).iterdir())) == KEPT


def test_later_ones_that_a_run_fell_back_behind_make_room(tmp_path):
    """A damaged one of update 90 once counted as the newest for ever, so that of the whole ones only one stayed."""
    _, newest_of_all = saved(tmp_path, 50, 90)
    flip(newest_of_all / "state.safetensors", 0.5)
    assert newest(tmp_path) == 50
    saved(tmp_path, 60, 70)
    assert sorted(path.name for path in (tmp_path / CHECKPOINTS).iterdir()) == ["step-00000060", "step-00000070"]


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def flip(path, share):
    content = bytearray(path.read_bytes())
    content[int(len(content) * share)] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["state.safetensors", "state.json"])
@pytest.mark.parametrize("damage", [cut, flip])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.97])
def test_a_damaged_one_is_left_aside(name, damage, share, tmp_path):
    older, newer = saved(tmp_path, 4, 8)
    damage(newer / name, share)
    told = []
    progress, state, _ = load_checkpoint(tmp_path, told.append)
    assert progress.step == 4
    assert float(state["weights"][0]) == 4.0
    (line,) = told
    assert line.startswith(f"{newer} is damaged and left aside: ")
    damage(older / name, share)
    with pytest.raises(InputError, match="all 2 checkpoints are damaged; move the folder away to start anew"):
        load_checkpoint(tmp_path, told.append)


@pytest.mark.parametrize("name", ["state.safetensors", "state.json"])
def test_a_file_that_is_not_there_is_damage_too(name, tmp_path):
    _, newer = saved(tmp_path, 4, 8)
    (newer / name).unlink()
    assert newest(tmp_path) == 4


def test_a_run_falls_back_and_comes_to_the_same_end(recipe, tmp_path, teller, outcome):
    whole, hurt = tmp_path / "whole", tmp_path / "hurt"
    train(recipe(), whole)

    def stop(now):
        if now == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe(), hurt, watcher=teller(stop))
    names = sorted(path.name for path in (hurt / CHECKPOINTS).iterdir())
    assert names == ["step-00000004", "step-00000008"]
    flip(hurt / CHECKPOINTS / names[1] / "state.safetensors", 0.5)
    watcher = teller()
    assert train(recipe(), hurt, watcher=watcher).finished
    assert any("step-00000008 is damaged and left aside" in line for line in watcher.lines)
    assert [event["step"] for event in read_journal(hurt) if event["event"] == "resumed"] == [4]
    assert outcome(hurt) == outcome(whole)


class FullDisk:
    """From the write numbered `room` on, each fails; a tensor file is left half written, as a full disk leaves it."""

    def __init__(self, monkeypatch, room):
        self.room, self.writes = room, 0
        save, sync, mkdir, write = regard.runs.folder.save_file, os.fsync, Path.mkdir, Path.write_text

        def saving(values, path, **more):
            if not self.left():
                Path(path).write_bytes(b"half of it")
                self.fail()
            save(values, path, **more)

        def guard(kept):
            def guarded(*given, **more):
                if not self.left():
                    self.fail()
                return kept(*given, **more)

            return guarded

        monkeypatch.setattr(regard.runs.folder, "save_file", saving)
        monkeypatch.setattr(os, "fsync", guard(sync))
        monkeypatch.setattr(Path, "mkdir", guard(mkdir))
        monkeypatch.setattr(Path, "rename", guard(Path.rename))
        monkeypatch.setattr(Path, "replace", guard(Path.replace))
        monkeypatch.setattr(Path, "write_text", guard(write))

    def left(self):
        self.writes += 1
        return self.writes <= self.room

    def fail(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_at_every_write_of_a_checkpoint(tmp_path, monkeypatch):
    saved(tmp_path / "count", 1, 2)
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, 10**9)
        saved(tmp_path / "count", 3)
    writes = disk.writes
    assert writes >= 7
    for room in range(writes):
        folder = tmp_path / str(room)
        saved(folder, 1, 2)
        with monkeypatch.context() as patch:
            FullDisk(patch, room)
            with pytest.raises(OSError, match="No space left"):
                saved(folder, 3)
        assert newest(folder) == (3 if room == writes - 1 else 2)  # the last only brings the new one's name to the disk
        assert not list(folder.rglob("*.part"))
        saved(folder, 3)
        assert newest(folder) == 3


@pytest.mark.parametrize("point", range(5))
def test_a_full_disk_in_a_run(point, recipe, tmp_path, monkeypatch, outcome, teller):
    """Wherever in the run it happens, from a quarter of its writes on; with room again it comes to the same end."""
    short = recipe(training={"steps": 6, "valid_every": 2})
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, 10**9)
        train(short, tmp_path / "whole")
    with monkeypatch.context() as patch:
        FullDisk(patch, disk.writes // 4 + point * disk.writes // 7)
        with pytest.raises(OSError, match="No space left"):
            train(short, run)
    assert not list(run.rglob("*.part"))
    told = teller()
    assert train(short, run, watcher=told).finished
    assert not any("damaged" in line for line in told.lines)
    assert outcome(run) == outcome(tmp_path / "whole")


def test_a_write_that_was_killed_is_cleared_away(tmp_path):
    """Half a checkpoint of a step that did not come again once stayed for ever."""
    home = tmp_path / CHECKPOINTS
    saved(tmp_path, 1)
    shutil.copytree(home / "step-00000001", home / ".step-00000002.part")
    assert newest(tmp_path) == 1
    saved(tmp_path, 3)
    assert sorted(path.name for path in home.iterdir()) == ["step-00000001", "step-00000003"]


def test_a_torn_last_line_of_the_journal_is_mended(tmp_path):
    journal = Journal(tmp_path)
    journal.write("started", step=0)
    journal.write("step", step=1, word="kış")
    journal.close()
    path = tmp_path / JOURNAL
    whole = path.read_bytes()
    for torn in (b'{"event": "st', '{"event": "kı'.encode()[:-1], b"{"):
        path.write_bytes(whole + torn)
        assert [event["event"] for event in read_journal(tmp_path)] == ["started", "step"]
        again = Journal(tmp_path)
        again.write("resumed", step=1)
        again.close()
        assert path.read_bytes().startswith(whole)
        assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["started", "step", "resumed"]
    path.write_bytes(b'{"event"')
    Journal(tmp_path).close()
    assert path.read_bytes() == b""
    assert read_journal(tmp_path / "nowhere") == []
