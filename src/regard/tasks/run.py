"""A run in use: `regard.load(folder)`, then translate and look."""

from collections.abc import Sequence
from pathlib import Path
from typing import overload

import torch

from regard.errors import InputError
from regard.models import EncoderDecoder, Model
from regard.nn import Part, Trace
from regard.runs import Stored, open_run
from regard.tasks.translate import Translation, Translator, encode_sources


class Run:
    """A trained model with its recipe and tokenisers."""

    def __init__(self, stored: Stored) -> None:
        self.folder, self.recipe, self.model = stored.folder, stored.recipe, stored.model
        self.tokenizer, self.source_tokenizer = stored.tokenizer, stored.source_tokenizer

    def __repr__(self) -> str:
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        return f"Run({str(self.folder)!r}, {self.recipe.task}, {weights:,} weights)"

    @overload
    def translate(self, text: str, *, beam: int | None = None, tag: str | None = None) -> Translation: ...

    @overload
    def translate(
        self, text: list[str] | tuple[str, ...], *, beam: int | None = None, tag: str | None = None
    ) -> list[Translation]: ...

    def translate(
        self, text: str | list[str] | tuple[str, ...], *, beam: int | None = None, tag: str | None = None
    ) -> Translation | list[Translation]:
        """The best translation of a text, or of each of several; `tag` says the direction where there are several."""
        texts = [text] if isinstance(text, str) else list(text)
        found = [answers[0] for answers in self._translator.translate(texts, [tag] * len(texts), beam=beam)]
        return found[0] if isinstance(text, str) else found

    def nbest(self, text: str, *, beam: int, tag: str | None = None) -> list[Translation]:
        """The `beam` best translations of a text."""
        return self._translator.translate([text], [tag], beam=beam)[0]

    def trace(
        self, text: str, target: str | None = None, *, kinds: Sequence[str] = ("weights",),
        parts: Sequence[Part] | None = None, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None,
        tag: str | None = None,
    ) -> tuple[Trace, list[str], list[str]]:  # fmt: skip
        """What every head looked at while the model read the text and wrote the target (its own translation if none).

        Beside the trace: the pieces of the source, its end included, and of the target as the decoder read it.
        """
        model = self._encoder_decoder
        ids = encode_sources(self.source_tokenizer, [(text, tag)])[0] + [self.source_tokenizer.specials.end]
        wanted = self.translate(text, tag=tag).text if target is None else target
        written = [self.tokenizer.specials.begin, *self.tokenizer.encode(wanted)]
        trace = Trace(
            kinds=frozenset(kinds),
            parts=None if parts is None else tuple(parts),
            layers=None if layers is None else tuple(layers),
            heads=None if heads is None else tuple(heads),
        )
        with torch.no_grad():
            states = model(torch.tensor([ids]), torch.tensor([len(ids)]), torch.tensor([written]), trace=trace)
            model.logits(states, trace=trace)
        return trace, [self.source_tokenizer.piece(id) for id in ids], [self.tokenizer.piece(id) for id in written]

    @property
    def _encoder_decoder(self) -> EncoderDecoder:
        if not isinstance(self.model, EncoderDecoder):
            raise InputError(f"{self.folder}: its task is {self.recipe.task}, it does not translate")
        return self.model

    @property
    def _translator(self) -> Translator:
        return Translator(self._encoder_decoder, self.tokenizer, self.source_tokenizer, self.recipe)


def load(folder: str | Path, *, device: torch.device | str = "cpu") -> Run:
    """The run in a folder, ready for use."""
    return Run(open_run(folder, device=device))


__all__ = ["Model", "Run", "load"]
