"""TensorBoard, for those who ask for it: the journal's numbers as curves in RUN/tensorboard."""

from pathlib import Path

from regard.errors import InputError

BOARD = "tensorboard"
NAMES = {
    "loss": "training/loss", "rate": "training/learning rate", "gradient": "training/gradient length",
    "speed": "training/tokens a second",
}  # fmt: skip
"""what is drawn of an update"""


class Board:
    """Writes events of the journal; steps that a resumed run does again replace what was drawn of them."""

    def __init__(self, folder: Path, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError(
                "training.tensorboard = true: TensorBoard is not installed; pip install 'regard[tensorboard]'"
            ) from None
        self._writer = SummaryWriter(str(folder / BOARD), purge_step=step + 1 if step else None)

    def write(self, event: str, facts: dict[str, object]) -> None:
        """An update's numbers, or a validation's scores."""
        if event == "step":
            named = {label: facts[name] for name, label in NAMES.items()}
        elif event == "validated":
            named = {f"validation/{name}": value for name, value in facts.items() if name not in ("step", "better")}
        else:
            return
        for label, value in named.items():
            self._writer.add_scalar(label, value, facts["step"])

    def close(self) -> None:
        """Bring it to the disk."""
        self._writer.close()
