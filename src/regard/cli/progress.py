"""Showing a training run on a terminal; where there is none, a line for each event."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from regard.training.checkpoint import Progress


class Screen:
    """A watcher that writes to standard error, and on a terminal keeps a bar at its foot; a quiet one says nothing.

    `told` is what the speed counts.
    """

    def __init__(self, *, quiet: bool = False, told: str = "tokens") -> None:
        self.told = told
        self.console = Console(stderr=True, highlight=False, quiet=quiet)
        share, left = TextColumn("{task.percentage:>3.0f} %"), (TimeRemainingColumn(), TextColumn("left"))
        columns = (TextColumn("{task.description}"), BarColumn(), share, *left)
        self._bar = Bar(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self._task: TaskID | None = None
        self._speed = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, line: str) -> None:
        """Something worth a line."""
        self.console.print(line, markup=False, soft_wrap=True)

    def stepped(self, progress: "Progress", *, share: float, loss: float, rate: float, speed: float) -> None:
        """Move the bar."""
        self._speed = speed if not self._speed else 0.95 * self._speed + 0.05 * speed
        if self._bar.disable:
            return
        text = f"update {progress.step:,}  loss {loss:.3f}  rate {rate:.1e}  {self._speed:,.0f} {self.told}/s"
        if self._task is None:
            self._task = self._bar.add_task(text, total=1.0)
        self._bar.update(self._task, description=text, completed=share)

    def validated(self, progress: "Progress", scores: dict[str, float], *, better: bool) -> None:
        """A line of scores."""
        shown = "  ".join(f"{name} {value:.4g}" for name, value in scores.items())
        minutes = progress.seconds / 60
        mark = "  best so far" if better else ""
        self.say(f"{minutes:5.1f} min  update {progress.step:>6,}  {shown}  {self._speed:,.0f} {self.told}/s{mark}")
        sys.stderr.flush()
