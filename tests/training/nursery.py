"""Runs `regard` in children of one process that has imported everything, and kills them when it is told to.

A process that imports torch takes two seconds to start, a fork of one that has it a few milliseconds. This one computes
nothing itself: threads do not survive a fork. It reads a line of JSON for each child and answers with one: the child's
exit status, and how many file operations it began.

`kill_after` seconds, or at the file operation numbered `kill_at`, the child gets SIGKILL. File operations are those of
which Python tells its audit hooks (opening, making, renaming, cutting, taking away) inside the folder `within`.
"""

import json
import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

OPERATIONS = {
    "open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.listdir", "os.scandir", "os.chmod",
    "shutil.rmtree", "shutil.copyfile",
}  # fmt: skip
NEEDED = (
    "torch._dynamo", "sacrebleu.metrics.bleu", "sacrebleu.metrics.chrf", "rich.console", "regard.cli.train",
    "regard.cli.progress", "regard.tasks.start", "regard.explorer.report",
)  # fmt: skip
"""what a run imports on its way"""


def serve() -> None:
    """A child for each line of standard input."""
    for name in NEEDED:
        import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_raise_child(**json.loads(line))), flush=True)


def _raise_child(words: list[str], within: str, kill_after: float | None, kill_at: int | None) -> dict[str, object]:
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        _live(words, within, kill_at, writes)
    os.close(writes)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(reads, "rb") as told:
        return {"status": status, "operations": len(told.read())}


def _live(words: list[str], within: str, kill_at: int | None, told: int) -> None:
    """The child's life: never returns."""
    from regard.cli import main

    begun = 0

    def hear(event: str, given: tuple[Any, ...]) -> None:
        nonlocal begun
        if event in OPERATIONS and str(given[0]).startswith(within):
            begun += 1
            if begun == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(told, b".")

    sys.addaudithook(hear)
    code = 1
    try:
        code = main(words)
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
