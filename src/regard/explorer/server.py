"""The explorer's requests: the page, and the numbers that it asks for. Only the page itself is answered.

Whatever reaches this port came over the loopback, but perhaps from another site's page in the same browser: under a
name that it made lead here (DNS rebinding), or from its own origin. `Host`, `Origin` and `Sec-Fetch-Site` tell; a
body counts only as JSON, which no form can send.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from threading import Lock
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from regard.errors import InputError
from regard.explorer.arrays import Plain
from regard.explorer.document import HEADERS, live_document, page_files
from regard.explorer.looks import BEST, Question
from regard.explorer.payload import payload_of
from regard.explorer.studio import GoneError, Studio
from regard.nn import Head, Part

LARGEST = 2**20
"""bytes of a request"""
KINDS = {"js": "text/javascript", "css": "text/css"}
Place = tuple[Part, int, int]


class Body(BaseModel):
    """What a request says; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LookBody(Body):
    """A text to look at."""

    text: str
    target: str | None = None
    tag: str | None = None
    run: int = 0
    weights: str = BEST
    heads_off: list[Place] = []
    beam: int | None = None


class DecodeBody(Body):
    """An item to decode anew, or on from these pieces."""

    item: str
    prefix: list[int] = []
    beam: int | None = None


class AblateBody(Body):
    """An item, and heads to switch off."""

    item: str
    heads_off: list[Place]


class MapBody(Body):
    """Items whose tokens are to lie on one map."""

    items: list[str]


class HistoryBody(Body):
    """An item, and a head."""

    item: str
    part: str
    layer: int
    head: int


class Door:
    """Lets in what the page asks, and nothing that another site's page or name could send."""

    def __init__(self, hosts: Collection[str]) -> None:
        self.hosts = frozenset(hosts)

    def refusal(self, request: Request) -> tuple[int, str] | None:
        """Why a request is not answered, and with which status; none if it is."""
        headers = request.headers
        if headers.get("host", "") not in self.hosts:
            return 403, "this server answers only under the address that it printed"
        if headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
            return 403, "this server answers only its own page"
        visited = request.method == "GET" and request.url.path == "/"
        if not visited and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "this server answers only its own page"
        if request.method != "POST":
            return None
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "a request's body has to be application/json"
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > LARGEST:
            return 413, f"a request's body has to be {LARGEST:,} bytes at most, and say how long it is"
        return None


def explorer_app(studio: Studio, *, asks: Sequence[Question], state: dict[str, str], hosts: Collection[str]) -> FastAPI:
    """The server's application; the page begins with these questions."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    lock = Lock()  # a look is a model's work, which takes all cores: one after the other
    _guard(app, Door(hosts))

    def question(body: LookBody) -> Question:
        return Question(
            text=body.text, target=body.target, tag=body.tag, run=body.run, weights=body.weights,
            heads_off=_heads(body.heads_off), beam=body.beam,
        )  # fmt: skip

    @app.get("/")
    def page() -> Response:
        plain = [{"text": ask.text, "target": ask.target, "tag": ask.tag, "beam": ask.beam} for ask in asks]
        runs = [holder.live() for holder in studio.runs]
        payload = payload_of(studio, live=True, state=state, runs=runs, asks=plain)
        return Response(live_document(payload), media_type="text/html")

    @app.get("/page/{name}")
    def part_of_page(name: str) -> Response:
        kind = KINDS.get(name.rpartition(".")[2])
        if kind is None or name not in page_files():
            raise HTTPException(404, f"{name}: is no part of the page")
        return Response(page_files()[name], media_type=kind)

    @app.post("/api/look")
    def look(body: LookBody) -> Response:
        with lock:
            holder = studio.look(question(body))
            holder.section("measures")
            return _json(holder.live())

    @app.get("/api/array/{id}/{name}")
    def array(id: str, name: str, heads: str | None = None, rows: str | None = None) -> Response:
        with lock:
            values = studio.held(id).array(name).values(heads=_numbers("heads", heads), rows=_numbers("rows", rows))
        return Response(values.tobytes(), media_type="application/octet-stream")

    @app.get("/api/section/{id}/{name}")
    def section(id: str, name: Annotated[str, Path()]) -> Response:
        with lock:
            made, arrays = studio.held(id).section(name)
        return _json({"section": made, "arrays": {key: each.entry() for key, each in arrays.items()}})

    @app.post("/api/decode")
    def decode(body: DecodeBody) -> Response:
        with lock:
            _, before = studio.item(body.item)
            asked = replace(before.question, target=None, target_ids=None)
            holder = studio.decode(asked, prefix=body.prefix, beam=body.beam)
            holder.section("decoding")
            return _json(holder.live())

    @app.post("/api/ablate")
    def ablate(body: AblateBody) -> Response:
        with lock:
            return _json(studio.ablate(body.item, _heads(body.heads_off)).live())

    @app.post("/api/map")
    def token_map(body: MapBody) -> Response:
        with lock:
            return _json(studio.map(body.items).live())

    @app.post("/api/history")
    def history(body: HistoryBody) -> Response:
        with lock:
            return _json(studio.history(body.item, body.part, body.layer, body.head).live())

    return app


def _guard(app: FastAPI, door: Door) -> None:
    """Ask at the door first; errors are one line of JSON, and every answer has the headers."""

    @app.middleware("http")
    async def guarded(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        refused = door.refusal(request)
        answer = _error(*refused) if refused else await go_on(request)
        answer.headers.update(HEADERS)
        return answer

    @app.exception_handler(InputError)
    def wrong(request: Request, error: InputError) -> Response:
        return _error(400, " ".join(str(error).split()))

    @app.exception_handler(GoneError)
    def gone(request: Request, error: GoneError) -> Response:
        return _error(404, f"{error.args[0]}: is not kept any more")

    @app.exception_handler(RequestValidationError)
    def misread(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _error(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @app.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> Response:
        return _error(error.status_code, error.detail)


def _error(status: int, text: str) -> Response:
    return _json({"error": text}, status)


def _json(value: Plain, status: int = 200) -> Response:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text, status_code=status, media_type="application/json")


def _heads(places: Sequence[Place]) -> frozenset[Head]:
    return frozenset((part, layer, head) for part, layer, head in places)


def _numbers(name: str, text: str | None) -> list[int] | None:
    """`0,2` as numbers."""
    if text is None:
        return None
    words: list[Any] = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"{name} = {text!r}: must be numbers with commas between, as in 0,2")
    return [int(word) for word in words]
