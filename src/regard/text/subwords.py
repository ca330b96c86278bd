"""Subword tokenisers: BPE and unigram, by sentencepiece, whose model file is stored as it is.

Text goes through unchanged: no normalisation, no white space removed, and characters that were never seen are spelt in
bytes. One character sentencepiece cannot carry: U+2581, its own sign for a space. Text is cut at it, and it is spelt in
bytes whether it was seen or not. Without `byte_fallback` it, and every character not seen in training, becomes the
unknown piece, and the text does not come back exactly.
"""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
import sentencepiece

from regard.errors import InputError
from regard.text.files import write_sealed
from regard.text.modelfile import is_bpe
from regard.text.tokenizer import UNKNOWN_TEXT, Ids, Specials, Tokenizer, check_unicode, unknown_tag

SPACE = "▁"

# A protobuf reader merges a second normalizer_spec (field 3 of the model) into the first, so these four bytes at a
# model's end say `add_dummy_prefix = false` (field 3 of the spec) and leave the rest as it is.
_NO_PREFIX = b"\x1a\x02\x18\x00"

_SHARPEST = 100.0
"""Largest alpha for unigram: other cuts than the best hardly ever come, and sums do not overflow."""

_SEED_AND_SAMPLE = threading.Lock()
"""sentencepiece has one seed for all: between setting it and the last draw nobody else may."""


class SubwordTokenizer(Tokenizer):
    """A sentencepiece model."""

    def __init__(self, model: bytes) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise InputError(f"not a sentencepiece model: {error}") from None
        self._model = model
        processor, count = self._processor, self._processor.get_piece_size()
        specials = _specials(processor)
        own = (specials.pad, specials.begin, specials.end, specials.mask)
        super().__init__(
            specials=specials,
            tags=[processor.id_to_piece(id) for id in range(count) if processor.is_control(id) and id not in own],
            surfaces=[_surface(processor, id) for id in range(count)],
            prefix=" " if processor.encode("x", out_type=str)[0].startswith(SPACE) else "",
        )
        spelt = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE.encode()]
        self._space_sign = spelt if all(map(processor.is_byte, spelt)) else [specials.unknown]

    @cached_property
    def _bare(self) -> sentencepiece.SentencePieceProcessor:
        """The same model for text that goes on from other text: it puts no space before it."""
        return sentencepiece.SentencePieceProcessor(model_proto=self._model + _NO_PREFIX)

    def encode(self, text: str, *, continued: bool = False) -> list[int]:
        """The text's ids."""
        check_unicode(text)
        return self._cut(text, continued=continued)

    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of many texts, on several threads where they are many."""
        for text in texts:
            check_unicode(text)
        threads = min(os.cpu_count() or 1, 8, 1 + len(texts) // 1000)
        batch = self._processor.encode(list(texts), num_threads=threads)
        return [
            np.array(self._cut(text) if SPACE in text else ids, dtype=np.int32)
            for text, ids in zip(texts, batch, strict=True)
        ]

    def sample_all(self, texts: Sequence[str], strength: float, rng: np.random.Generator) -> list[Ids]:
        """BPE leaves out each merge with the chance `strength` (Provilkov et al. 2020, "BPE-Dropout"). Unigram draws
        from all cuts by their probability to the power of (1 - strength) / strength (Kudo 2018, "Subword
        Regularization", whose alpha that is): near 0 always the best cut, at 0.5 each as often as the model says.

        sentencepiece draws from a generator of the thread it runs in, which old versions seed only when the thread
        first draws: with a thread for each call (a tenth of a millisecond) the cuts follow `rng` in all versions.
        """
        if not 0 <= strength < 1:
            raise InputError(f"strength of sampling = {strength}: must be at least 0 and below 1")
        if strength == 0:
            return self.encode_all(texts)
        for text in texts:
            check_unicode(text)
        alpha = strength if self._is_bpe else min((1 - strength) / strength, _SHARPEST)
        seed = int(rng.integers(2**32))

        def draw() -> list[Ids]:
            sentencepiece.set_random_generator_seed(seed)
            return [np.array(self._cut(text, alpha=alpha), dtype=np.int32) for text in texts]

        with _SEED_AND_SAMPLE, ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(draw).result()

    def piece(self, id: int) -> str:
        """The piece as sentencepiece names it."""
        self._surface(id)
        name: str = self._processor.id_to_piece(id)
        return name

    def tag_id(self, tag: str) -> int:
        """The id of a tag."""
        if tag not in self.tags:
            raise unknown_tag(tag, self.tags)
        id: int = self._processor.piece_to_id(tag)
        return id

    def save(self, folder: str | Path, name: str = "tokens") -> Path:
        """Write NAME.model, which Marian, CTranslate2 and sentencepiece's own tools read too."""
        path = Path(folder) / f"{name}.model"
        write_sealed(path, self._model)
        return path

    @cached_property
    def _is_bpe(self) -> bool:
        return is_bpe(self._model)

    def _cut(self, text: str, *, continued: bool = False, alpha: float | None = None) -> list[int]:
        """The ids of what stands between the signs that sentencepiece cannot carry, and those signs spelt."""
        ids: list[int] = []
        for number, part in enumerate(text.split(SPACE)):
            if number:
                ids += self._space_sign
            processor = self._bare if number or continued else self._processor
            if not (number or part or continued):
                processor, part = self._bare, self._prefix if text else ""  # text that begins with the sign
            if part:
                if alpha is None:
                    ids += processor.encode(part)
                else:
                    ids += processor.encode(part, enable_sampling=True, nbest_size=-1, alpha=alpha)
        return ids


def _specials(processor: sentencepiece.SentencePieceProcessor) -> Specials:
    """The model's own, where -1 means none."""
    unknown, end = processor.unk_id(), processor.eos_id()
    pad = processor.pad_id() if processor.pad_id() >= 0 else unknown
    begin = processor.bos_id() if processor.bos_id() >= 0 else pad  # T5 begins with its pad
    if end < 0:
        raise InputError("the sentencepiece model has no piece for the end of a text (eos_id = -1)")
    masks = [processor.piece_to_id(name) for name in ("<mask>", "[MASK]")]
    mask = next((id for id in masks if id != unknown and processor.is_control(id)), None)
    return Specials(pad=pad, unknown=unknown, begin=begin, end=end, mask=mask)


def _surface(processor: sentencepiece.SentencePieceProcessor, id: int) -> bytes | None:
    if processor.is_control(id):
        return None
    if processor.is_unknown(id):
        return UNKNOWN_TEXT.encode()
    name: str = processor.id_to_piece(id)
    return bytes([int(name[1:-1], 16)]) if processor.is_byte(id) else name.replace(SPACE, " ").encode()
