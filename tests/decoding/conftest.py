"""Tiny models whose searches meet everything: answers of many lengths, repetition, sources of all lengths."""

import functools

import pytest
import torch

from regard.config import DecodingConfig, ModelConfig
from regard.decoding import PlainModel, Request, Search, search
from regard.models import EncoderDecoder, build_model
from regard.verify.plain_search import PlainSearch, Told

PIECES, BEGIN, END = 13, 1, 2
SOURCES = [(5, 3, 9, 2), (4, 2), (11, 12, 3, 3, 7, 8, 2), (6, 6, 2), (2,)]
LIMITS = [9, 3, 12, 1, 6]


def tiny(family, seed=4):
    """Random, with a bias to the end, so that answers of many lengths come to theirs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = ModelConfig(
            family=family, vocabulary=PIECES, d_model=16, encoder_layers=1, decoder_layers=2, heads=2, d_ff=24,
            dropout=0.0, max_length=60, output_bias=True,
        )  # fmt: skip
        made = build_model(config).eval()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
            made.output_bias[END] += 2.0
    return made


@pytest.fixture(scope="session", params=["encoder-decoder", "decoder-only"])
def model(request):
    return tiny(request.param)


@pytest.fixture(scope="session")
def translator():
    return tiny("encoder-decoder")


def asked(model, row, *, limit=None, prefix=(), **more):
    """A request for one of SOURCES; a model without an encoder reads it as its prompt."""
    limit = LIMITS[row] if limit is None else limit
    if isinstance(model, EncoderDecoder):
        return Request(source=SOURCES[row], read=(BEGIN, *prefix), limit=limit, **more)
    return Request(read=(*SOURCES[row], BEGIN, *prefix), limit=limit, **more)


def found(model, requests, *, nbest=None, forbidden=(), coverage_heads=(), tree=False, **options):
    chosen = DecodingConfig(**options)
    wanted = nbest or chosen.samples or chosen.beam
    return search(
        PlainModel(model), requests,
        Search(end=END, options=chosen, nbest=wanted, forbidden=forbidden, coverage_heads=coverage_heads, tree=tree),
    )  # fmt: skip


def reference(model, request, *, nbest=None, heads=(), forbidden=(), **options):
    """The same search in plain Python; each prefix of a model is computed once, since many tests ask for the same."""
    chosen = DecodingConfig(**options)
    return PlainSearch(
        told(model, heads), request,
        Search(
            end=END, options=chosen, nbest=nbest or chosen.samples or chosen.beam, forbidden=forbidden,
            coverage_heads=heads,
        ),
    )  # fmt: skip


@functools.cache
def told(model, heads):
    return Told([model], heads)
