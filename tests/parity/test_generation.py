"""Greedy decoding: transformers' `generate`, with its cache, writes the tokens that a loop over our cache writes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import GenerationConfig

from regard.models import DecoderOnly, EncoderDecoder

from .alike import ids, real
from .peers import VOCABULARY, bloom_pair, gpt2_pair, llama_pair, marian_pair, t5_pair

NEW = 14
LENGTHS = torch.tensor([11, 6, 1, 9])
NEVER = -1
"""The end that no row reaches."""


def their_greedy(theirs: nn.Module, tokens: Tensor, kept: Tensor, end: int) -> Tensor:
    """No row writes a piece twice: else it would soon write one for ever, and equality would prove little."""
    theirs.generation_config = GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=NEW, no_repeat_ngram_size=1, pad_token_id=0,
        decoder_start_token_id=0, eos_token_id=None if end == NEVER else end,
    )  # fmt: skip
    return theirs.generate(tokens, attention_mask=kept.long())[:, -NEW:]


def our_greedy(logits: Callable[[Tensor], Tensor], first: Tensor, read: Tensor, end: int) -> Tensor:
    """What follows the pieces that were `read`, from the `first` logits on.

    No row writes a piece twice; one that has written its end is filled up with 0, as theirs is.
    """
    used = torch.zeros_like(first, dtype=torch.bool).scatter(1, read, True)
    scores, done, written = first, torch.zeros(len(first), dtype=torch.bool), []
    while True:
        new = scores.masked_fill(used, float("-inf")).argmax(-1).masked_fill(done, 0)
        written.append(new)
        done = done | (new == end)
        if len(written) == NEW or done.all():
            return torch.stack(written, dim=1)
        used = used.scatter(1, new[:, None], True)
        scores = logits(new[:, None])


def an_end(tokens: Tensor) -> int:
    """A piece that ends some rows early, and not all."""
    assert len(tokens.unique(dim=0)) == len(tokens), tokens
    ends = [piece for piece in tokens[0, 2:8].tolist() if int((tokens == piece).any(1).sum()) < len(tokens)]
    return int(ends[0])


@pytest.mark.parametrize("pair", [marian_pair, t5_pair])
@torch.no_grad()
def test_an_encoder_decoder_writes_what_theirs_generates(pair):
    theirs, ours, _ = pair()
    assert isinstance(ours, EncoderDecoder)
    source, read = ids(VOCABULARY, LENGTHS), torch.zeros(len(LENGTHS), 1, dtype=torch.long)

    def found(end: int) -> Tensor:
        cache = ours.start(source, LENGTHS, capacity=NEW)

        def logits(tokens: Tensor) -> Tensor:
            return ours.logits(ours.step(tokens, cache)[:, -1])

        return our_greedy(logits, logits(read), read, end)

    whole = found(NEVER)
    assert whole.equal(their_greedy(theirs, source, real(LENGTHS), NEVER))
    end = an_end(whole)
    assert found(end).equal(their_greedy(theirs, source, real(LENGTHS), end))


@pytest.mark.parametrize("pair", [gpt2_pair, llama_pair, bloom_pair])
@torch.no_grad()
def test_a_decoder_writes_what_theirs_generates(pair):
    """Prompts of different length: theirs are filled up in front; ours behind, and read in two parts."""
    theirs, ours, _ = pair()
    assert isinstance(ours, DecoderOnly)
    kept = real(LENGTHS)
    read = ids(VOCABULARY, LENGTHS) * kept
    before = torch.zeros_like(read)
    before[kept.flip(1)] = read[kept]

    def found(end: int) -> Tensor:
        cache = ours.start(rows=len(read), capacity=read.shape[1] + NEW)
        counts = LENGTHS.clamp(max=5)
        parts = [ours.step(read[:, :5], cache, counts=counts.tolist())]
        parts.append(ours.step(read[:, 5:], cache, counts=(LENGTHS - counts).tolist()))
        states = torch.cat(parts, dim=1)[torch.arange(len(read)), LENGTHS - 1]

        def logits(tokens: Tensor) -> Tensor:
            return ours.logits(ours.step(tokens, cache)[:, -1])

        return our_greedy(logits, ours.logits(states), read, end)

    whole = found(NEVER)
    assert whole.equal(their_greedy(theirs, before, kept.flip(1), NEVER))
    end = an_end(whole)
    assert found(end).equal(their_greedy(theirs, before, kept.flip(1), end))
