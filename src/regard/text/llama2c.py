"""The tokeniser file of llama2.c, turned into a sentencepiece model.

The file: the length of the longest piece (int32), then for each id its score (float32), length (int32) and bytes, all
little-endian. Ids 0, 1 and 2 are unknown, begin and end, 3 to 258 the bytes, the others pieces whose ▁ was written as
a space. Its rule, a space put before the text and then always the best-scored merge, leftmost first, is
sentencepiece's own BPE, so that the result is stored and used like any other.
"""

import struct
from pathlib import Path

from regard.errors import InputError
from regard.text.files import check_files
from regard.text.modelfile import Piece, write_bpe
from regard.text.subwords import SPACE, SubwordTokenizer
from regard.text.tokenizer import Specials, Tokenizer

_FIRST = [Piece("<unk>", 0.0, "unknown"), Piece("<s>", 0.0, "control"), Piece("</s>", 0.0, "control")]
_BYTES = [Piece(f"<0x{byte:02X}>", 0.0, "byte") for byte in range(256)]


def read_llama2c_tokenizer(path: str | Path, size: int | None = None) -> Tokenizer:
    """The tokeniser; `size` is the number of ids that the model has, if it is known.

    There is no pad id; batches are filled with the unknown one, which text never gives.
    """
    check_files([path])
    listed = _pieces(Path(path).read_bytes(), path)
    if size is not None and len(listed) != size:
        raise InputError(f"{path}: has {len(listed)} pieces, but the model has {size}; take the file made for it")
    fixed = [*_FIRST, *_BYTES]
    if [text for text, _ in listed[3 : len(fixed)]] != [piece.text for piece in _BYTES]:
        raise InputError(f"{path}: not a tokeniser of llama2.c: ids 3 to 258 must be the bytes <0x00> to <0xFF>")
    learnt = [Piece(text.replace(" ", SPACE), score, "normal") for text, score in listed[len(fixed) :]]
    return SubwordTokenizer(write_bpe([*fixed, *learnt], Specials(pad=0, unknown=0, begin=1, end=2)))


def _pieces(content: bytes, path: str | Path) -> list[tuple[str, float]]:
    pieces: list[tuple[str, float]] = []
    place = 4
    try:
        while place < len(content):
            score, length = struct.unpack_from("<fi", content, place)
            text = content[place + 8 : place + 8 + length]
            if length < 0 or len(text) < length:
                raise ValueError
            pieces.append((text.decode(), score))
            place += 8 + length
    except (struct.error, ValueError):
        raise InputError(f"{path}: not a tokeniser of llama2.c, or cut off, at byte {place}") from None
    return pieces
