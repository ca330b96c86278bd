"""A run's journal as one course: what a resumed run did again or left behind is told once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.training.journal import read_journal

Row = Mapping[str, Any]
"""An event's facts."""


@dataclass(frozen=True, kw_only=True)
class History:
    """How a run went."""

    steps: tuple[Row, ...]
    """updates, in order, each once"""
    validations: tuple[Row, ...]
    """in order, each update's last"""
    sessions: tuple[Row, ...]
    """the starts: the first and those that went on"""
    status: str
    """finished, interrupted, stopped or unfinished"""
    seconds: float
    """time spent, as far as the journal tells"""
    padding: tuple[float, ...] = ()
    """for each side (source, target) the share of an epoch's batches that is padding"""
    tested: Row | None = None
    """the scores of the test text, if they are known"""

    @property
    def updates(self) -> int:
        """How far it came."""
        return int(self.steps[-1]["step"]) if self.steps else 0

    @property
    def tokens(self) -> int:
        """Target pieces learned from."""
        return sum(int(row.get("tokens", 0)) for row in self.steps)

    @property
    def best(self) -> Row | None:
        """The validation whose weights were kept."""
        kept = [row for row in self.validations if row.get("better")]
        return kept[-1] if kept else None


def read_history(folder: Path) -> History:
    """The course that a run's journal tells; an empty one if there is no journal."""
    events = [event for event in read_journal(folder) if isinstance(event, dict)]
    steps: dict[int, Row] = {}
    validations: dict[int, Row] = {}
    sessions: list[Row] = []
    status = "unfinished"
    padding: tuple[float, ...] = ()
    tested: Row | None = None
    for event in events:
        step = int(event.get("step", 0))  # type: ignore[call-overload]
        match event.get("event"):
            case "started" | "resumed":
                sessions.append(event)
                steps = {number: row for number, row in steps.items() if number <= step}
                validations = {number: row for number, row in validations.items() if number <= step}
            case "tested":
                tested = event
            case "planned":
                padding = tuple(event.get("padding", ()))  # type: ignore[arg-type]
            case "step" | "skipped":
                steps[step] = event
                status, tested = "unfinished", None
            case "validated":
                validations[step] = event
            case "finished" | "interrupted" | "stopped" as ended:
                status = str(ended)
    return History(
        steps=tuple(steps[number] for number in sorted(steps)),
        validations=tuple(validations[number] for number in sorted(validations)),
        sessions=tuple(sessions),
        padding=padding,
        tested=tested,
        status=status,
        seconds=_seconds(events),
    )


def _seconds(events: list[dict[str, object]]) -> float:
    """The sum of the sessions' times in the journal; an end that tells the run's own count is believed instead."""
    spent, start, last = 0.0, None, 0.0
    for event in events:
        now = float(event.get("time", 0.0))  # type: ignore[arg-type]
        if event.get("event") in ("started", "resumed"):
            spent += last - start if start is not None else 0.0
            start = now
        elif event.get("event") == "finished" and "seconds" in event:
            spent, start = float(event["seconds"]), None  # type: ignore[arg-type]
        last = now
    return spent + (last - start if start is not None else 0.0)
