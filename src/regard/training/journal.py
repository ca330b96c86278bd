"""The journal of a run: `journal.jsonl`, a line for each event, in the order in which they happened."""

import json
import os
import time
from pathlib import Path

JOURNAL = "journal.jsonl"


class Journal:
    """Appends events; each is on its way to the disk before the next begins."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        _mend(self.path)
        self._file = self.path.open("a", encoding="utf-8")

    def write(self, event: str, **facts: object) -> None:
        """One event, with what is to be said of it."""
        line = {"event": event, "time": round(time.time(), 3), **facts}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()


def read_journal(folder: Path) -> list[dict[str, object]]:
    """The events of a run; a last line that a crash cut off is left out."""
    path = folder / JOURNAL
    if not path.exists():
        return []
    events: list[dict[str, object]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events


def _mend(path: Path) -> None:
    """Take away a last line that a crash cut off, so that the next event starts a line of its own."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        os.truncate(path, len(whole))
