"""What a run begins with: its own tokeniser or another run's, first weights or another run's, some of them frozen."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import torch

from regard.config import Recipe
from regard.errors import InputError
from regard.models import Model, build_model, freeze, start_weights
from regard.models.encoder_only import HEADS
from regard.runs import read_weights
from regard.runs.folder import TARGET_TOKENS, WEIGHTS
from regard.text import Tokenizer, load_tokenizer
from regard.training.checkpoint import CHECKPOINTS

Say = Callable[[str], None]


def first_tokenizer(recipe: Recipe, out: Path, say: Say, learn: Callable[[], Tokenizer]) -> Tokenizer:
    """The run's tokeniser: the one in its folder, or that of the run it starts from, or one that is learned."""
    if any(out.glob(f"{TARGET_TOKENS}.*")):
        return load_tokenizer(out, TARGET_TOKENS)
    start = recipe.training.start_from
    tokenizer = load_tokenizer(start, TARGET_TOKENS) if start else learn()
    tokenizer.save(out, TARGET_TOKENS)
    say(f"tokens: {tokenizer.size:,} {recipe.tokens.kind} pieces{f' of {start}' if start else ''}")
    return tokenizer


def first_model(recipe: Recipe, out: Path, say: Say, *, fresh: Collection[str] = ()) -> Model:
    """The run's model. Weights whose names begin as `fresh` do are not another run's; frozen ones do not learn.

    A run that goes on takes all its weights from its checkpoint, frozen ones too, and needs no other run.
    """
    torch.manual_seed(recipe.training.seed)
    model = build_model(recipe.model)
    start = recipe.training.start_from
    if start and not any((out / CHECKPOINTS).glob("step-*")):
        path = Path(start) / WEIGHTS
        if not path.is_file():
            raise InputError(f"training.start_from = {start!r}: not a finished run, it has no {WEIGHTS}")
        heads = HEADS if recipe.model.family == "encoder-only" else ()
        started = start_weights(model, read_weights(path), source=str(path), heads=heads, fresh=fresh)
        say(f"weights: from {start}{_listed('; new: ', started.new)}{_listed('; unused: ', started.unused)}")
    if recipe.training.freeze:
        frozen, whole = freeze(model, recipe.training.freeze), sum(weight.numel() for weight in model.parameters())
        say(f"frozen: {frozen:,} of {whole:,} weights")
    return model


def _listed(title: str, names: Sequence[str]) -> str:
    return f"{title}{', '.join(names)}" if names else ""
