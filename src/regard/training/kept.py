"""The weights that a run keeps, `model.safetensors`, looked after: damaged, lost or of another update than the run
remembers, they are restored from a snapshot.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from regard.errors import InputError
from regard.runs import read_notes, read_weights
from regard.runs.folder import WEIGHTS
from regard.text.files import fill_whole
from regard.training.snapshots import list_snapshots, step_of

STEP = "step"
"""the note beside the weights that says after which update they were taken"""


def restore_kept(folder: Path, step: int, notice: Callable[[str], None]) -> bool:
    """Have the weights of an update kept, from a snapshot if need be; false if they are lost."""
    path = folder / WEIGHTS
    fault = _fault(path, step)
    if not fault:
        return True
    snapshots = [one for one in list_snapshots(folder) if step_of(one) == step and not _fault(one, step)]
    if not snapshots:
        notice(f"{fault}; the next validation's weights will be kept instead")
        return False
    fill_whole(path, lambda beside: shutil.copyfile(snapshots[0], beside))
    notice(f"{fault}; restored from {snapshots[0]}")
    return True


def _fault(path: Path, step: int) -> str:
    """What is wrong with the weights of an update, if anything is."""
    try:
        read_weights(path)
        found = read_notes(path).get(STEP)
    except InputError as error:
        return str(error)
    return "" if found == str(step) else f"{path}: holds the weights of update {found}, not of update {step}"
