"""The explorer live: a server on the loopback, which ends when the terminal's Ctrl-C says so."""

import socket
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from threading import Thread

import uvicorn

from regard.errors import InputError
from regard.explorer.looks import Question
from regard.explorer.server import explorer_app
from regard.explorer.studio import Studio
from regard.tasks.run import Run

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost", "[::1]")
"""under which the page may be opened; a name that another site made lead here is none of them"""


def serve(
    runs: Sequence[Run], questions: Sequence[Question], *, state: Mapping[str, str], port: int = 0,
    browser: bool = True, say: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Show these texts in these runs (two are compared) until interrupted; port 0 takes one that is free."""
    with listening(port) as sockets:
        server = server_of(sockets, runs, questions, state=state)
        address = f"http://{LOOPBACK}:{sockets.getsockname()[1]}/"
        say(f"The explorer: {address}  (Ctrl-C ends it)")
        if browser:
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()  # some browsers block until they end
        server.run(sockets=[sockets])


def server_of(
    listener: socket.socket, runs: Sequence[Run], questions: Sequence[Question], *, state: Mapping[str, str]
) -> uvicorn.Server:
    """The server for a socket that listens."""
    port = listener.getsockname()[1]
    hosts = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())
    app = explorer_app(Studio(runs), asks=questions, state=dict(state), hosts=hosts)
    # A page that is still open keeps its connection: do not wait for it at the end.
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    )


def listening(port: int) -> socket.socket:
    """A socket on the loopback, from now on listening, so that no request of a browser comes too early."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "must be 0 to 65535"
        raise InputError(f"--port {port}: {reason}; without --port a free one is taken") from None
    listener.listen(64)
    return listener
