"""Preparing things ahead in a background thread, the same things in the same order."""

import atexit
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from threading import Event, Semaphore, Thread, current_thread
from typing import TypeVar

T = TypeVar("T")


class _End:
    """Comes last; with what went wrong, if something did."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def prepare_ahead(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """The items, up to `depth` of them prepared before they are asked for.

    What is raised while they are prepared is raised here, in its turn. The thread begins with the first item that is
    asked for, and has ended once this generator is closed, dropped or used up.
    """
    ready: SimpleQueue[tuple[T] | _End] = SimpleQueue()
    room, halt = Semaphore(depth), Event()

    def work() -> None:
        error: BaseException | None = None
        try:
            while True:
                room.acquire()
                if halt.is_set():
                    break
                ready.put((next(items),))
        except StopIteration:
            pass
        except BaseException as raised:
            error = raised
        ready.put(_End(error))

    thread = Thread(target=work, name="batches ahead", daemon=True)

    def end() -> None:
        halt.set()
        room.release()
        if thread is not current_thread():  # where a generator that was dropped in a cycle may be collected
            thread.join()

    thread.start()
    atexit.register(end)  # a daemon that the interpreter stops half-way could be waited for in vain
    try:
        while not isinstance(item := ready.get(), _End):
            room.release()
            yield item[0]
        if item.error is not None:
            raise item.error
    finally:
        end()
        atexit.unregister(end)
