"""Equalities of faster ways to write: the compiled kernel, a draft that guesses, and products in fewer bits."""

import copy
import math
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.config import DecodingConfig, Recipe
from regard.data import text_pairs
from regard.decoding import PlainModel, StepModel, step_model
from regard.decoding.chosen import Kind
from regard.decoding.drafted import Draft, write_drafted
from regard.decoding.fast import FastModel
from regard.decoding.stream import Sampling, Written, write_on
from regard.models import DecoderOnly, EncoderDecoder
from regard.tasks.run import Run, load
from regard.tasks.translator import Asked, Translator
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.subject import Subject, decoders
from regard.verify.trials import Decoder, Trial, asked, heads_of

COURSE = (((0,), ()), ((0, 0, 0), ()), ((2, 0, 2), (2, 0)), ((1, 1, 0, 2), (1, 0)))
"""Steps: which rows go on, and then which sentences."""
GREEDY, DRAWN = Sampling(temperature=0), Sampling(temperature=1.3, top_k=12, top_p=0.95)
DRAFTS = ((0.02, 4, GREEDY), (0.02, 4, DRAWN), (10.0, 2, GREEDY), (10.0, 2, DRAWN))
"""How far the draft's weights are from the model's, what it guesses at a time, and how pieces are chosen."""
FEWER: tuple[Kind, ...] = ("bf16", "int8")
SENTENCES = 1000
"""of a run's test text, at most, that are translated in each precision: all of a usual one"""
TOKENS_OFF, BLEU_OFF = 0.01, 0.2
"""how far fewer bits may lead: so large a share of the pieces, or so much BLEU"""


@torch.no_grad()
def compiled_is_plain(subject: Subject) -> Measured:
    """Scores and attention of rows that move while sentences come and go."""
    for name, model in decoders(subject.models):
        fast = step_model(model)
        if isinstance(fast, FastModel):
            sides = zip(_course(subject, fast, model), _course(subject, PlainModel(model), model), strict=True)
            for step, (one, other) in enumerate(sides):
                yield f"{name}, step {step}", difference(one, other)


@torch.no_grad()
def drafted_is_plain(subject: Subject) -> Measured:
    """Drafts that often guess right and some that never do, greedily and by lot, beyond the context too."""
    writers = [(name, model) for name, model in decoders(subject.models) if isinstance(model, DecoderOnly)]
    for turn, (noise, ahead, sampling) in enumerate(DRAFTS):
        for name, model in writers[turn % len(writers) :: len(DRAFTS)] if writers else ():
            prompts = [request.read for request in asked(subject, model, Trial(DecodingConfig()))[0]]
            draft = Draft(_near(model, noise, subject.seed), 9, ahead)
            plain, drafted = (
                _rows(write(prompts, sampling=sampling, limits=[12, 5, 9], end=-1, context=10, with_logp=True))
                for write in (partial(write_on, PlainModel(model)), partial(write_drafted, model, draft))
            )
            same = [[one.id for one in row] for row in plain] == [[one.id for one in row] for row in drafted]
            logps = [torch.tensor([one.logp for row in side for one in row]) for side in (plain, drafted)]
            case = f"{name}, noise {noise}, {ahead} ahead, temperature {sampling.temperature}"
            yield case, difference(logps[1], logps[0]) if same else math.inf


def fewer_bits_are_near(subject: Subject) -> Measured:
    """The run's own search over its test text, in every precision that the kernel has."""
    run = None if subject.folder is None else load(subject.folder)
    if run is None or not isinstance(run.model, EncoderDecoder) or not isinstance(step_model(run.model), FastModel):
        return
    sources, references = _test_text(run.recipe)
    if not sources:
        return
    plain = _translated(run, sources, "float32")
    score = _bleu([text for text, _ in plain], references)
    for kind in FEWER:
        found = _translated(run, sources, kind)
        same = sum(_same(one, other) for (_, one), (_, other) in zip(found, plain, strict=True))
        share = same / max(1, sum(max(len(one), len(other)) for (_, one), (_, other) in zip(found, plain, strict=True)))
        bleu = _bleu([text for text, _ in found], references)
        yield (
            f"{kind}, {len(sources)} sentences: {share:.2%} of float32's pieces, BLEU {bleu:.2f} and {score:.2f}",
            min((1 - share) / TOKENS_OFF, abs(bleu - score) / BLEU_OFF),
        )


def _course(subject: Subject, steps_of: StepModel, model: Decoder) -> Iterator[Tensor]:
    """The scores of each step, and what two heads look at."""
    requests, _ = asked(subject, model, Trial(DecodingConfig()))
    draw = np.random.default_rng(subject.seed)
    heads = heads_of(model) if isinstance(model, EncoderDecoder) else ()
    sources, prompts = [each.source for each in requests], [each.read[:place] for place, each in enumerate(requests)]
    steps = steps_of.start(sources, prompts, capacity=model.config.max_length, observe=heads)
    for parents, stay in COURSE:
        tokens = torch.from_numpy(draw.integers(steps_of.pieces, size=(steps.sentences, len(parents))))
        came = torch.tensor([parents] * steps.sentences)
        yield steps.advance(tokens.to(steps_of.device), came.to(steps_of.device)).clone()
        if heads:
            yield steps.observed().clone()
        if stay:
            steps.keep(torch.tensor(stay, device=steps_of.device))
        if len(stay) == 2 and steps.sentences == 2:
            later = steps_of.start(sources[:1], prompts[:1], capacity=model.config.max_length, observe=heads)
            later.advance(tokens[:1, :1], came[:1, :1] * 0)
            later.advance(tokens[:1], came[:1] * 0)
            steps.add(later)


def _near(model: DecoderOnly, noise: float, seed: int) -> DecoderOnly:
    """The model with other weights."""
    draw = torch.Generator().manual_seed(seed)
    other = copy.deepcopy(model)
    for parameter in other.parameters():
        more = torch.randn(parameter.shape, generator=draw).to(parameter)
        parameter.add_(noise * parameter.abs().mean() * more)
    return other


def _rows(steps: Iterator[list[Written]]) -> list[list[Written]]:
    rows: dict[int, list[Written]] = {}
    for step in steps:
        for one in step:
            rows.setdefault(one.row, []).append(one)
    return [rows[row] for row in sorted(rows)]


def _test_text(recipe: Recipe) -> tuple[list[Asked], list[str]]:
    """What the run held out, as far as it is there: its test text, else its validation text."""
    for files in (recipe.data.test, recipe.data.valid):
        if files and all(Path(file).exists() for file in files):
            pairs = list(islice(text_pairs(recipe.data, files, tag=recipe.data.tag), SENTENCES))
            return [Asked(text=pair.source, tag=pair.tag) for pair in pairs], [pair.target for pair in pairs]
    return [], []


def _translated(run: Run, sources: Sequence[Asked], kind: Kind) -> list[tuple[str, tuple[str, ...]]]:
    """Texts and pieces."""
    assert isinstance(run.model, EncoderDecoder)
    translator = Translator(
        run.model, run.tokenizer, run.source_tokenizer, run.recipe, writer=step_model(run.model, kind)
    )  # fmt: skip
    return [(found[0].text, found[0].tokens) for found in translator.translate(sources)]


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """Pieces that stand in both, in the same order."""
    return sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())


def _bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    from sacrebleu.metrics.bleu import BLEU

    return float(BLEU().corpus_score(texts, [references]).score)


FASTER = (
    Equality(
        name="compiled steps = plain steps",
        says="the compiled kernel's scores and attention are those of the model's own steps, in float32",
        bound=1e-4,
        measure=compiled_is_plain,
    ),
    Equality(
        name="drafted text = plain text",
        says="with a draft that guesses the same pieces are written, greedy or drawn",
        bound=1e-4,
        measure=drafted_is_plain,
    ),
    Equality(
        name="fewer bits = float32, nearly",
        says="bf16 and int8 write 99 % of a run's test text as float32 does, or are within 0.2 BLEU (1: at the limit)",
        bound=1.0,
        measure=fewer_bits_are_near,
        tells=True,
    ),
)
"""What holds of faster ways to write."""
