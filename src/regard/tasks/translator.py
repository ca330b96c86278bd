"""A translator in use: texts in, translations out, in order.

Text is read here: tags, lower case, what is not translated, phrases that are wanted. The search knows only ids.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from zlib import crc32

from regard.config import DecodingConfig, Recipe
from regard.decoding import (
    CrossHead,
    Ensemble,
    Forced,
    Found,
    Given,
    Hypothesis,
    Request,
    Search,
    SearchTree,
    StepModel,
    choose_steps,
    force,
    search,
)
from regard.decoding.heads import fitted_temperature, telling_heads
from regard.errors import InputError
from regard.models import EncoderDecoder
from regard.tasks.known import known_pairs
from regard.tasks.mbr import agreement
from regard.tasks.sentences import portions
from regard.tasks.shield import Span, required, restore, shield
from regard.tasks.translation import EMPTY, Translation, alignment, text_places
from regard.text import Tokenizer
from regard.text.spellings import spellings
from regard.text.tokenizer import UNKNOWN_TEXT

MBR_SAMPLES = 32


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked of translations, beside how they are searched."""

    nbest: int = 1
    """translations of each text"""
    alignments: bool = False
    """whether each comes with its alignment"""
    confidence: bool = False
    """whether each comes with its confidence"""
    tree: bool = False
    """whether the best comes with its search tree"""
    keep: tuple[str, ...] = ()
    """terms that are not translated"""
    markup: bool = False
    """whether tags and addresses are kept as they are"""
    glossary: Mapping[str, str] = field(default_factory=dict)
    """terms, and what has to be written where they stand in a text"""
    split: bool = False
    """whether each text is cut at the ends of its sentences, and these are translated one by one"""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One text, and what is asked of its translation alone."""

    text: str
    tag: str | None = None
    """the direction, of a model with several"""
    prefix: str = ""
    """what the translation begins with"""
    phrases: tuple[str, ...] = ()
    """what it has to hold"""


class TextError(InputError):
    """One of the texts cannot be translated: the others can."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True, kw_only=True)
class _Job:
    """A text as ids."""

    request: Request
    prefix: tuple[int, ...]
    spans: tuple[Span, ...]


class Translator:
    """A model in use. `others` write with it as an ensemble; `writer` is how it takes its steps, otherwise the options'
    precision says it. `workers` threads search; as many as there are processors if it is not stated.
    """  # fmt: skip

    def __init__(
        self, model: EncoderDecoder, tokenizer: Tokenizer, source_tokenizer: Tokenizer, recipe: Recipe, *,
        folder: Path | None = None, others: Sequence[EncoderDecoder] = (), writer: StepModel | None = None,
        workers: int | None = None,
    ) -> None:  # fmt: skip
        self.model, self.tokenizer, self.source_tokenizer = model, tokenizer, source_tokenizer
        self.recipe, self.folder = recipe, folder
        self.models = (model, *others)
        self.workers = workers or processors()
        self._writer = writer
        self._chosen: tuple[object, StepModel, str] | None = None

    def translate(
        self, asked: Sequence[Asked], decoding: DecodingConfig | None = None, wanted: Wanted | None = None, *,
        place: Callable[[int], str] = lambda row: f"text {row + 1}",
    ) -> list[list[Translation]]:  # fmt: skip
        """Each text's translations, best first; an empty text's is empty. `place` is what an error calls a text."""
        decoding, wanted = decoding or self.recipe.decoding, wanted or Wanted()
        if decoding.mbr and not decoding.samples:
            decoding = replace(decoding, samples=MBR_SAMPLES)
        if (decoding.samples or decoding.groups > 1) and (
            wanted.keep or wanted.markup or wanted.glossary or any(each.phrases for each in asked)
        ):
            raise InputError("phrases, a glossary and what is kept have to be written: only by a beam without groups")
        if wanted.split:
            return self._split(asked, decoding, wanted, place)
        said = [row for row, each in enumerate(asked) if each.text.strip()]
        jobs = {}
        for row in said:
            try:
                jobs[row] = self._job(asked[row], decoding, wanted)
            except InputError as error:
                raise TextError(f"{place(row)}: {error}", row) from None
        options = self._options(decoding, wanted)
        writer, _ = self.writer(decoding)
        found = search(writer, [jobs[row].request for row in said], options, workers=self.workers)
        answers = [[EMPTY] for _ in asked]
        made = self._translations([jobs[row] for row in said], found, decoding, wanted)
        for row, translations in zip(said, made, strict=True):
            answers[row] = translations
        return answers

    def writer(self, decoding: DecodingConfig) -> tuple[StepModel, str]:
        """How it takes its steps with these options, and why so; made anew when the weights have changed."""
        if self._writer is not None:
            return self._writer, "as given"
        weights = [weight for model in self.models for weight in model.parameters()]
        key = (decoding.precision, [(weight.data_ptr(), weight._version) for weight in weights])
        if self._chosen is None or self._chosen[0] != key:
            made = [choose_steps(model, decoding.precision) for model in self.models]
            steps = Ensemble([each.steps for each in made]) if len(made) > 1 else made[0].steps
            self._chosen = (key, steps, made[0].reason)
        return self._chosen[1:]

    def score(self, pairs: Sequence[tuple[str, str]], tag: str | None = None) -> list[list[float]]:
        """For each pair of texts the log-probability of each of the target's pieces, the end last."""
        specials = self.tokenizer.specials
        lower = self.recipe.data.lowercase
        given = [
            Given(
                self.source_ids(source, tag), (specials.begin,),
                (*self.tokenizer.encode(target.lower() if lower else target), specials.end),
            )
            for source, target in pairs
        ]  # fmt: skip
        return [each.logps for each in force(self.models, given)]

    def source_ids(self, text: str, tag: str | None = None) -> tuple[int, ...]:
        """What the encoder reads of a text: its tag, its pieces, the end."""
        known = [] if tag is None else [self.source_tokenizer.tag_id(tag)]
        text = text.lower() if self.recipe.data.lowercase else text
        return (*known, *self.source_tokenizer.encode(text), self.source_tokenizer.specials.end)

    @cached_property
    def alignment_heads(self) -> tuple[CrossHead, ...]:
        """The recipe's, or those that tell most about known pairs; without any, all of the last layer but one."""
        stated = self._stated_heads(self.recipe.decoding)
        if stated:
            return stated
        known = self._known
        if known:
            return telling_heads(self.model, known)
        config = self.model.config
        return tuple((max(0, config.decoder_layers - 2), head) for head in range(config.heads))

    @cached_property
    def temperature(self) -> float:
        """What scores are divided by for the confidence: fitted to known pairs, 1 where none are known."""
        known = self._known[:100]
        return fitted_temperature(self.models, known) if known else 1.0

    @cached_property
    def _known(self) -> list[Given]:
        if self.folder is None:
            return []
        return known_pairs(self.folder, self.recipe, self.tokenizer, self.source_tokenizer)

    def _stated_heads(self, decoding: DecodingConfig) -> tuple[CrossHead, ...]:
        config, heads = self.model.config, []
        for stated in decoding.alignment_heads:
            layer, head = map(int, stated.split("."))
            if layer >= config.decoder_layers or head >= config.heads:
                raise InputError(
                    f"decoding.alignment_heads {stated!r}: the decoder has layers 0 to {config.decoder_layers - 1} "
                    f"and heads 0 to {config.heads - 1}"
                )
            heads.append((layer, head))
        return tuple(heads)

    def _heads(self, decoding: DecodingConfig) -> tuple[CrossHead, ...]:
        heads = self._stated_heads(decoding) or self.alignment_heads
        for layer, head in heads:
            if any(layer >= each.config.decoder_layers or head >= each.config.heads for each in self.models):
                raise InputError(
                    f"decoding.alignment_heads: one of the models has no head {layer}.{head}; state others"
                )
        return heads

    def _options(self, decoding: DecodingConfig, wanted: Wanted) -> Search:
        unknown = ((self.tokenizer.specials.unknown,),) if decoding.unknown == "forbid" else ()
        return Search(
            end=self.tokenizer.specials.end, options=decoding, nbest=decoding.samples or wanted.nbest,
            forbidden=(*spellings(self.tokenizer, decoding.forbid), *unknown), tree=wanted.tree,
            coverage_heads=self._heads(decoding) if decoding.coverage_penalty else (),
        )  # fmt: skip

    def _job(self, asked: Asked, decoding: DecodingConfig, wanted: Wanted) -> _Job:
        lower = self.recipe.data.lowercase
        shielded = shield(asked.text, wanted.keep, markup=wanted.markup, lowercase=lower)
        source = self.source_ids(shielded.text, asked.tag)
        most = self.recipe.model.max_length
        if len(source) > most:
            raise InputError(
                f"{len(source):,} pieces, of which the model reads {most:,}; cut it, or have it split at the "
                "ends of its sentences (--split)"
            )
        prefix = tuple(self.tokenizer.encode(asked.prefix.lower() if lower else asked.prefix))
        pieces = len(source) - 1
        limit = decoding.max_length or int(decoding.max_ratio * pieces) + 20
        limit = min(max(1, limit - len(prefix)), most - len(prefix))
        if limit < 1:
            raise InputError(f"its prefix has {len(prefix):,} pieces, and the model writes {most:,}")
        least = max(decoding.min_length, math.ceil(decoding.min_ratio * pieces)) - len(prefix)
        request = Request(
            source=source, read=(self.tokenizer.specials.begin, *prefix), limit=limit, least=max(0, min(least, limit)),
            phrases=self._phrases(asked, shielded.spans, wanted), key=crc32(repr(source).encode()),
        )  # fmt: skip
        return _Job(request=request, prefix=prefix, spans=shielded.spans)

    def _phrases(self, asked: Asked, spans: Sequence[Span], wanted: Wanted) -> tuple[tuple[int, ...], ...]:
        """Pieces that have to be written; of two phrases one of which holds the other, the longer."""
        texts = [*asked.phrases, *required(asked.text, wanted.glossary), *(span.placeholder for span in spans)]
        texts = [text.lower() for text in texts] if self.recipe.data.lowercase else texts
        phrases = list(dict.fromkeys(tuple(self.tokenizer.encode(text)) for text in texts))
        for text, ids in zip(texts, map(self.tokenizer.encode, texts), strict=True):
            if not ids or self.tokenizer.specials.unknown in ids:
                raise InputError(f"phrase {text!r}: the tokeniser has no pieces for it")
        return tuple(
            phrase
            for phrase in phrases
            if not any(
                len(other) > len(phrase) and phrase in {other[k : k + len(phrase)] for k in range(len(other))}
                for other in phrases
            )
        )

    def _translations(
        self, jobs: Sequence[_Job], found: Sequence[Found], decoding: DecodingConfig, wanted: Wanted
    ) -> list[list[Translation]]:
        answers = [self._ranked(each.answers, decoding)[: wanted.nbest] for each in found]
        end, replaced = self.tokenizer.specials.end, decoding.unknown == "replace"
        looked = wanted.alignments or replaced
        forced: list[Forced | None] = [None for own in answers for _ in own]
        if looked or wanted.confidence:
            given = [
                Given(
                    job.request.source, job.request.read[:1],
                    (*job.prefix, *answer.ids, *((end,) if answer.ended else ())),
                )
                for job, own in zip(jobs, answers, strict=True) for answer in own
            ]  # fmt: skip
            heads = self._heads(decoding) if looked else ()
            temperature = self.temperature if wanted.confidence else 1.0
            forced = list(force(self.models, given, heads=heads, temperature=temperature))
        coming = iter(forced)
        return [
            [
                self._translation(job, answer, next(coming), each.tree if rank == 0 else None, wanted, replaced)
                for rank, answer in enumerate(own)
            ]
            for job, own, each in zip(jobs, answers, found, strict=True)
        ]

    def _ranked(self, answers: Sequence[Hypothesis], decoding: DecodingConfig) -> list[Hypothesis]:
        """As found; of samples each once, and by minimum Bayes risk if that is wanted."""
        if not decoding.samples:
            return list(answers)
        order = list(answers)
        if decoding.mbr:
            agreed = agreement([self.tokenizer.decode(answer.ids) for answer in answers])
            order = [answers[place] for place in sorted(range(len(answers)), key=lambda each: -agreed[each])]
        return list({tuple(answer.ids): answer for answer in reversed(order)}.values())[::-1]

    def _translation(
        self,
        job: _Job,
        answer: Hypothesis,
        forced: Forced | None,
        tree: SearchTree | None,
        wanted: Wanted,
        replaced: bool,
    ) -> Translation:
        ids = [*job.prefix, *answer.ids]
        text = self.tokenizer.decode(ids)
        aligned = confidence = None
        if forced and forced.weights is not None:
            aligned = alignment(self.source_tokenizer, self.tokenizer, job.request.source, ids, forced.weights)
            if replaced:
                text = self._known_words(text, ids, job.request.source, forced)
        if forced and wanted.confidence:
            confidence = math.exp(sum(forced.logps) / max(1, len(forced.logps)))
        return Translation(
            text=restore(text, job.spans), score=answer.score, ended=answer.ended, logp=answer.logp,
            tokens=tuple(self.tokenizer.piece(id) for id in ids), guarded=answer.guarded, confidence=confidence,
            alignment=aligned if wanted.alignments else None, tree=tree,
        )  # fmt: skip

    def _known_words(self, text: str, ids: Sequence[int], source: Sequence[int], forced: Forced) -> str:
        """The text with the source word that it looks at in place of each unknown piece."""
        assert forced.weights is not None
        words = self.source_tokenizer.words(source)
        places = text_places(self.source_tokenizer, source)
        parts = text.split(UNKNOWN_TEXT)
        unknown = [place for place, id in enumerate(ids) if id == self.tokenizer.specials.unknown]
        if len(parts) != len(unknown) + 1:
            return text
        made = [parts[0]]
        for place, part in zip(unknown, parts[1:], strict=True):
            best = places.start + int(forced.weights[place, places.start : places.stop].argmax()) if places else 0
            word = [id for id, number in zip(source, words, strict=True) if number == words[best]]
            made += [self.source_tokenizer.decode(word).strip(), part]
        return "".join(made)

    def _split(
        self, asked: Sequence[Asked], decoding: DecodingConfig, wanted: Wanted, place: Callable[[int], str]
    ) -> list[list[Translation]]:
        if wanted.nbest > 1 or wanted.alignments or wanted.tree:
            raise InputError("split: gives one translation of a text, and no alignment or tree")
        most = min(self.recipe.model.max_length, self.recipe.data.max_length)
        cuts = [portions(each.text, lambda part: len(self.source_ids(part)) < most) for each in asked]
        rows = [row for row, cut in enumerate(cuts) for _ in cut]
        parts = [
            replace(asked[row], text=part, prefix=asked[row].prefix if number == 0 else "")
            for row, cut in enumerate(cuts) for number, (part, _) in enumerate(cut)
        ]  # fmt: skip
        inner = replace(wanted, split=False)
        try:
            coming = iter(self.translate(parts, decoding, inner, place=lambda part: place(rows[part])))
        except TextError as error:
            raise TextError(str(error), rows[error.row]) from None
        return [[_joined([(next(coming)[0], space) for _, space in cut])] for cut in cuts]


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _joined(parts: Sequence[tuple[Translation, str]]) -> Translation:
    """One translation of several, with the source's white space between them."""
    made = [part for part, _ in parts if part.tokens]
    if len(made) <= 1:
        return made[0] if made else EMPTY
    pieces = sum(len(part.tokens) for part in made)
    sure = [part.confidence for part in made if part.confidence is not None]
    return Translation(
        text="".join(part.text + space for part, space in parts).strip(),
        score=sum(part.score * len(part.tokens) for part in made) / pieces,
        tokens=tuple(token for part in made for token in part.tokens),
        ended=all(part.ended for part in made),
        logp=sum(part.logp for part in made),
        guarded=any(part.guarded for part in made),
        confidence=math.prod(sure) ** (1 / len(sure)) if sure else None,
    )
