"""The explorer as one HTML file: which numbers go into it, and the file itself.

All weights always do. Scores, and the vectors of the calculation, go in as far as there is room: those that the page
starts with first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl
from uuid import uuid4

from regard.errors import InputError
from regard.explorer.arrays import Array, Pack
from regard.explorer.document import file_document, in_a_frame, page_size
from regard.explorer.filling import filled
from regard.explorer.holders import Holder
from regard.explorer.looks import Question
from regard.explorer.opening import opened
from regard.explorer.payload import payload_of
from regard.explorer.studio import Studio
from regard.tasks.run import Run
from regard.text.files import write_whole

ROOM = 1_420_000
"""letters of a file, which scores and vectors may fill; what it must have may be more"""
MOST = 96 * 2**20
"""bytes of weights in a file"""
SECTIONS = ("measures", "calculation", "displacement", "decoding", "classes", "ablation")

Texts = Sequence[str | Question]
State = Mapping[str, str | int]


def write_page(
    run: Run, texts: Texts, out: str | Path, *, state: State | None = None, against: Run | None = None,
) -> Path:  # fmt: skip
    """Write the explorer of these texts in this run as one HTML file; answers with the file.

    A text may be a `Question`, which also names a target and a tag. `state` says where the page starts: the keys of
    docs/explorer-payload.md, such as view, part, layer, heads, row. With `against` each text is looked at in both.
    """
    path = Path(out)
    document = page_document(run, texts, state=state, against=against)
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    write_whole(path, document.encode())
    return path


def page_document(
    run: Run, texts: Texts, *, state: State | None = None, against: Run | None = None, frame: str | None = None
) -> str:
    """The same as text; `frame` names it among several inside another page."""
    studio = Studio([run] if against is None else [run, against])
    start = {key: str(value) for key, value in (state or {}).items()}
    items: list[Holder] = []
    for text in texts:
        question = text if isinstance(text, Question) else Question(text=text)
        for number in range(len(studio.runs)):
            items.append(studio.look(replace(question, run=number)))
    if not items:
        raise InputError("texts: is empty; name at least one")
    _check(items)
    measured, _ = items[0].section("measures")
    begin = opened(start, measured["opening"] if measured else None)
    pack = Pack()
    for holder in items:
        _complete(holder, studio, begin)
    whole = studio.map([holder.id for holder in items if holder.facts["run"] == 0])
    room = (ROOM - page_size()) // len(items)
    payload = payload_of(
        studio, live=False, state=start, frame=frame,
        runs=[holder.packed(pack, sections=["positions"], arrays=_all) for holder in studio.runs],
        token_map=whole.packed(pack, sections=(), arrays=_all),
        items=[filled(holder, pack, begin, room=room) for holder in items],
    )  # fmt: skip
    return file_document(payload, pack.text())


class Framed:
    """The page in a notebook's cell."""

    def __init__(self, document: str, title: str) -> None:
        self.document, self.title = document, title

    def _repr_html_(self) -> str:
        return in_a_frame(self.document, self.title)

    def __repr__(self) -> str:
        return f"{self.title}: a page of {len(self.document):,} letters, which a notebook shows"


def framed(
    run: Run, texts: Sequence[str], *, target: str | None = None, tag: str | None = None, at: str = ""
) -> Framed:
    """The page of these texts for a notebook's cell; `at` is what the page's address would have behind #."""
    if target is not None and len(texts) != 1:
        raise InputError(f"target: belongs to one text, {len(texts)} are given")
    questions = [Question(text=text, target=target, tag=tag) for text in texts]
    document = page_document(run, questions, state=state_at(at), frame=uuid4().hex)
    return Framed(document, f"the explorer of {run.folder.resolve().name}")


def state_at(place: str) -> dict[str, str]:
    """Where a page begins, out of what the page's address has behind #."""
    return dict(parse_qsl(place.removeprefix("#")))


def _check(items: Iterable[Holder]) -> None:
    size = 0
    for holder in items:
        assert holder.look is not None
        for shape in holder.look.parts:
            sides = holder.look.sides
            size += 4 * shape.layers * shape.heads * len(sides[shape.rows]) * len(sides[shape.keys])
    if size > MOST:
        raise InputError(
            f"text: its weights are {size / 2**20:,.0f} MB, a file takes {MOST / 2**20:,.0f}; look at it live, without "
            "--html"
        )


def _all(name: str, array: Array) -> Array:
    return array


def _complete(holder: Holder, studio: Studio, state: Mapping[str, str]) -> None:
    """Make the item's sections."""
    look = holder.look
    assert look is not None
    for name in SECTIONS:
        holder.section(name)
    if look.question.run == 0 and {"part", "layer", "heads"} <= set(state) and state["heads"].split(",")[0].isdigit():
        section, arrays = studio.history_of(look, state["part"], int(state["layer"]), int(state["heads"].split(",")[0]))
        if section:
            holder.sections["history"] = section
            holder.arrays.update(arrays)
