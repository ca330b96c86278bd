"""A live explorer for tests: a server on a free port of the loopback, in a thread."""

import http.client
import json
from contextlib import contextmanager
from threading import Thread

from regard.explorer.live import listening, server_of


@contextmanager
def served(runs, questions=(), state=None):
    """Serve, and give the address."""
    listener = listening(0)
    server = server_of(listener, runs, questions, state=state or {})
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


class Client:
    """What the page does, without the page."""

    def __init__(self, address):
        self.host = address.removeprefix("http://")

    def ask(self, path, body=None, **headers):
        """Status, headers and bytes of an answer; `body` goes as JSON. A header of None is left out."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        given = {"Host": self.host, **({} if body is None else {"Content-Type": "application/json"})}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.putrequest("GET" if sent is None else "POST", path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        if sent is not None and "Content_Length" not in headers:
            connection.putheader("Content-Length", str(len(sent)))
        connection.endheaders(sent)
        answer = connection.getresponse()
        try:
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def json(self, path, body=None, **headers):
        """Status and JSON of an answer."""
        status, _, data = self.ask(path, body, **headers)
        return status, json.loads(data)
