"""A run in use: `regard.load(folder)`, then translate and look."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import overload

import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.decoding.drafted import AHEAD
from regard.decoding.stream import Sampling
from regard.errors import InputError
from regard.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from regard.nn import Part, Trace
from regard.runs import Stored, open_run
from regard.tasks.classify import Classification, Classifier
from regard.tasks.embed import Embedder, Pooling
from regard.tasks.reading import Text
from regard.tasks.translate import encode_sources
from regard.tasks.translation import Translation
from regard.tasks.translator import Asked, Translator, Wanted
from regard.tasks.writing import Generated, Precision, Writer


class Run:
    """A trained model with its recipe and tokenisers."""

    def __init__(self, stored: Stored) -> None:
        self.folder, self.recipe, self.model = stored.folder, stored.recipe, stored.model
        self.tokenizer, self.source_tokenizer = stored.tokenizer, stored.source_tokenizer

    def __repr__(self) -> str:
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        return f"Run({str(self.folder)!r}, {self.recipe.task}, {weights:,} weights)"

    @overload
    def translate(
        self,
        text: str,
        *,
        beam: int | None = None,
        nbest: None = None,
        tag: str | None = None,
        wanted: Wanted | None = None,
        decoding: DecodingConfig | None = None,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: str,
        *,
        beam: int | None = None,
        nbest: int,
        tag: str | None = None,
        wanted: Wanted | None = None,
        decoding: DecodingConfig | None = None,
    ) -> list[Translation]: ...

    @overload
    def translate(
        self,
        text: list[str] | tuple[str, ...],
        *,
        beam: int | None = None,
        nbest: None = None,
        tag: str | None = None,
        wanted: Wanted | None = None,
        decoding: DecodingConfig | None = None,
    ) -> list[Translation]: ...

    @overload
    def translate(
        self,
        text: list[str] | tuple[str, ...],
        *,
        beam: int | None = None,
        nbest: int,
        tag: str | None = None,
        wanted: Wanted | None = None,
        decoding: DecodingConfig | None = None,
    ) -> list[list[Translation]]: ...

    def translate(
        self,
        text: str | list[str] | tuple[str, ...],
        *,
        beam: int | None = None,
        nbest: int | None = None,
        tag: str | None = None,
        wanted: Wanted | None = None,
        decoding: DecodingConfig | None = None,
    ) -> Translation | list[Translation] | list[list[Translation]]:
        """The best translation of a text, or of each of several; with `nbest` a list of so many.

        `tag` says the direction where there are several; `wanted` asks for alignments and more; `decoding` says how to
        search, and is the recipe's if it is not stated.
        """
        chosen = with_beam(decoding or self.recipe.decoding, beam)
        asked_for = wanted or Wanted()
        if nbest is not None:
            asked_for = replace(asked_for, nbest=nbest)
        texts = [text] if isinstance(text, str) else list(text)
        answers = self.translator.translate([Asked(text=each, tag=tag) for each in texts], chosen, asked_for)
        if nbest is not None:
            return answers[0] if isinstance(text, str) else answers
        return answers[0][0] if isinstance(text, str) else [each[0] for each in answers]

    @overload
    def classify(self, text: Text) -> Classification: ...

    @overload
    def classify(self, text: list[Text]) -> list[Classification]: ...

    def classify(self, text: Text | list[Text]) -> Classification | list[Classification]:
        """The labels of a text, or of each in a list of them; a tuple of two is read as two texts with one label."""
        found = self.classifier.classify(text if isinstance(text, list) else [text])
        return found if isinstance(text, list) else found[0]

    def embed(self, texts: Sequence[str], *, pooling: Pooling | None = None, normalise: bool = True) -> Tensor:
        """The texts' vectors, (N, D)."""
        return self.embedder.embed(list(texts), pooling=pooling, normalise=normalise)

    @property
    def classifier(self) -> Classifier:
        """The model as one that tells labels."""
        return Classifier(self._encoder_only, self.tokenizer, self.recipe)

    @property
    def embedder(self) -> Embedder:
        """The model as one that makes vectors."""
        return Embedder(self._encoder_only, self.tokenizer, lowercase=self.recipe.data.lowercase)

    @property
    def _encoder_only(self) -> EncoderOnly:
        if not isinstance(self.model, EncoderOnly):
            raise InputError(
                f"{self.folder}: its task is {self.recipe.task}; an encoder-only run classifies and embeds"
            )
        return self.model

    def nbest(self, text: str, *, beam: int, tag: str | None = None) -> list[Translation]:
        """The `beam` best translations of a text."""
        return self.translate(text, beam=beam, nbest=beam, tag=tag)

    def score(self, pairs: Sequence[tuple[str, str]], *, tag: str | None = None) -> list[list[float]]:
        """For each pair of texts the log-probability of each of the target's pieces, its end last."""
        return self.translator.score(pairs, tag)

    def ensemble(self, others: "Sequence[Run]", *, workers: int | None = None) -> "Translator":
        """A translator in which this run and others write together. They must have the same tokenisers."""
        for other in others:
            if not self._same_tokens(other):
                raise InputError(
                    f"{other.folder}: its tokenisers are not those of {self.folder}; they must be the same"
                )
        return Translator(
            self._encoder_decoder, self.tokenizer, self.source_tokenizer, self.recipe, folder=self.folder,
            others=[other._encoder_decoder for other in others], workers=workers,
        )  # fmt: skip

    def generate(
        self, prompt: str = "", *, length: int = 256, samples: int = 1, sampling: Sampling | None = None,
        stop: Sequence[str] = (), with_logp: bool = False,
    ) -> list[Generated]:  # fmt: skip
        """`samples` texts that go on from a prompt, of at most `length` pieces each."""
        return self.writer.write(
            [prompt], length=length, samples=samples, sampling=sampling, stop=stop, with_logp=with_logp
        )

    @cached_property
    def writer(self) -> Writer:
        """For many prompts, and for text as it is written."""
        return self.writer_in(self.recipe.decoding.precision)

    def writer_in(self, precision: Precision) -> Writer:
        """A writer that multiplies in these numbers."""
        if not isinstance(self.model, DecoderOnly):
            raise InputError(f"{self.folder}: its task is {self.recipe.task}, it does not generate")
        return Writer(self.model, self.tokenizer, self.recipe, precision=precision)

    def drafted(self, draft: "Run", *, ahead: int = AHEAD) -> Writer:
        """A writer that writes the same, with another run of the same tokeniser guessing `ahead` pieces at a time."""
        if not self._same_tokens(draft):
            raise InputError(f"{draft.folder}: its tokeniser is not that of {self.folder}; it must be the same")
        mine = self.writer
        return Writer(
            mine.model, mine.tokenizer, mine.recipe, precision="float32", draft=draft.writer, ahead=ahead
        )  # fmt: skip

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

    def look(self, *texts: str, target: str | None = None, tag: str | None = None, at: str = "") -> object:
        """The explorer of these texts, which a notebook shows in the cell; `at` is as in `regard look --at`."""
        # By name, since the explorer is a higher room: this is the one door from a run up to it.
        shown: object = import_module("regard.explorer.pages").framed(self, texts, target=target, tag=tag, at=at)
        return shown

    @property
    def _encoder_decoder(self) -> EncoderDecoder:
        if not isinstance(self.model, EncoderDecoder):
            raise InputError(f"{self.folder}: its task is {self.recipe.task}, it does not translate")
        return self.model

    @cached_property
    def translator(self) -> Translator:
        """What translates, with every option."""
        return Translator(self._encoder_decoder, self.tokenizer, self.source_tokenizer, self.recipe, folder=self.folder)

    def _same_tokens(self, other: "Run") -> bool:
        pairs = ((self.tokenizer, other.tokenizer), (self.source_tokenizer, other.source_tokenizer))
        return all(
            one.size == two.size and all(one.piece(id) == two.piece(id) for id in range(one.size)) for one, two in pairs
        )


def with_beam(decoding: DecodingConfig, beam: int | None) -> DecodingConfig:
    """The options with another beam, if one is stated; groups that do not divide it become one."""
    if beam is None:
        return decoding
    return replace(decoding, beam=beam, groups=decoding.groups if beam % decoding.groups == 0 else 1)


def load(folder: str | Path, *, device: torch.device | str = "cpu") -> Run:
    """The run in a folder, ready for use."""
    return Run(open_run(folder, device=device))


__all__ = ["Model", "Run", "load"]
