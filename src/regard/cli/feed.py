"""Lines that come in: from a file in large blocks, from a pipe as many as are there, so that nobody waits for more.

A thread reads; so many lines wait at most that memory stays bounded, however fast they come.
"""

import sys
from collections.abc import Iterator
from queue import Empty, Queue
from threading import Thread

from regard.errors import InputError
from regard.text import lines, lines_of

BLOCK = 2048
"""lines that are translated together, at most"""

Told = list[InputError]


def blocks(file: str | None, *, replace_errors: bool) -> Iterator[tuple[list[str], Told]]:
    """Blocks of lines, and what was wrong with them. What ends them (bytes that are no UTF-8) is raised behind them."""
    queue: Queue[str | InputError | BaseException | None] = Queue(maxsize=2 * BLOCK)

    def read() -> None:
        told = queue.put if replace_errors else None
        try:
            for line in lines(file, told=told) if file else lines_of(sys.stdin.buffer, "standard input", told=told):
                queue.put(line)
            queue.put(None)
        except BaseException as error:
            queue.put(_Ended(error))

    Thread(target=read, daemon=True).start()
    over = False
    while not over:
        held: list[str] = []
        wrong: Told = []
        failed: BaseException | None = None
        item = queue.get()
        while True:
            match item:
                case str():
                    held.append(item)
                case InputError():
                    wrong.append(item)
                case _Ended():
                    over, failed = True, item.error
                case _:
                    over = True
            if over or len(held) >= BLOCK:
                break
            try:
                item = queue.get(timeout=1.0) if file else queue.get_nowait()
            except Empty:
                break
        if held or wrong:
            yield held, wrong
        if failed:
            raise failed


class _Ended(Exception):  # noqa: N818 (it carries what ended the reading)
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
