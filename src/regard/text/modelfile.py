"""The few parts of sentencepiece's model file that we write and read ourselves.

The file is a protocol-buffer message (sentencepiece_model.proto): a row of fields, each a key (number times 8 plus the
kind of its value) and a value. Knowing two kinds of value is enough here, so no protobuf library is needed.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from regard.text.tokenizer import Specials

# Fields of the model.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
# Fields of the trainer's part, and how it counts the kinds of model.
_MODEL_TYPE, _VOCAB_SIZE, _BYTE_FALLBACK, _UNKNOWN_ID, _BEGIN_ID, _END_ID, _PAD_ID = 3, 4, 35, 40, 41, 42, 43
_BPE = 2
# Fields of the normalizer's part.
_NAME, _ADD_DUMMY_PREFIX, _REMOVE_EXTRA_WHITESPACES = 1, 3, 4

Kind = Literal["normal", "unknown", "control", "byte"]
_KINDS: dict[Kind, int] = {"normal": 1, "unknown": 2, "control": 3, "byte": 6}


class Piece(NamedTuple):
    """A piece as the model file lists it; ▁ stands for a space, and a higher score is merged first."""

    text: str
    score: float
    kind: Kind


def write_bpe(pieces: Sequence[Piece], specials: Specials) -> bytes:
    """A BPE model of these pieces: text unchanged, but for a space put before it, and bytes for what has no piece.

    The pieces' places are their ids. A pad that is another special's id is written as "none", as the file has it.
    """
    shared = specials.pad in (specials.unknown, specials.begin, specials.end)
    trainer = [
        _number(_MODEL_TYPE, _BPE),
        _number(_VOCAB_SIZE, len(pieces)),
        _number(_BYTE_FALLBACK, 1),
        _number(_UNKNOWN_ID, specials.unknown),
        _number(_BEGIN_ID, specials.begin),
        _number(_END_ID, specials.end),
        _number(_PAD_ID, -1 if shared else specials.pad),
    ]
    normalizer = [_text(_NAME, b"identity"), _number(_ADD_DUMMY_PREFIX, 1), _number(_REMOVE_EXTRA_WHITESPACES, 0)]
    rows = [
        _text(1, piece.text.encode()) + _key(2, 5) + struct.pack("<f", piece.score) + _number(3, _KINDS[piece.kind])
        for piece in pieces
    ]
    parts = [_text(_PIECES, row) for row in rows]
    return b"".join([*parts, _text(_TRAINER, b"".join(trainer)), _text(_NORMALIZER, b"".join(normalizer))])


def is_bpe(model: bytes) -> bool:
    """Whether the model file holds BPE, and not unigram (which is what a file that says nothing holds)."""
    kind = 1
    for number, value in _fields(model):
        if number == _TRAINER and isinstance(value, bytes):
            kind = next((k for n, k in _fields(value) if n == _MODEL_TYPE and isinstance(k, int)), kind)
    return kind == _BPE


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _number(number: int, value: int) -> bytes:
    return _key(number, 0) + _varint(value % 2**64)


def _text(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth bit says that more follow."""
    parts = bytearray()
    while value >= 128:
        parts.append(value % 128 | 128)
        value //= 128
    return bytes([*parts, value])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            part = message[place]
            place, value, shift = place + 1, value | (part & 127) << shift, shift + 7
            if part < 128:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        width = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[place : place + width]
        place += width
