"""Run folders with random weights, to look at."""

from dataclasses import replace

import torch

from regard.config import recipe_from
from regard.models import build_model
from regard.runs import save_run
from regard.tasks.run import load
from regard.text import train_tokenizer

TEXT, TARGET = "the animal didn't cross the street", "je suis étudiant"
LINES = ["the animal didn't cross the street", "it was too tired and too wide", "je suis étudiant", "a bank, a bank"]


def make_run(folder, *, seed=3, lines=LINES, tokens=None, **model):
    """A run folder with random weights, whose pieces are those of some lines."""
    sizes = {"d_model": 16, "heads": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2, "max_length": 200,
             "norm": "post"}  # fmt: skip
    recipe = recipe_from(
        {"task": "translate", "data": {"train": ["a", "b"]}, "tokens": tokens or {"size": 320},
         "decoding": {"precision": "float32"},
         "model": {**sizes, **model}}
    )  # fmt: skip
    tokenizer = train_tokenizer(iter(lines * 20), recipe.tokens, ["<2fr>", "<2en>"], lambda line: None)
    recipe = replace(recipe, model=replace(recipe.model, vocabulary=tokenizer.size))
    torch.manual_seed(seed)
    built = build_model(recipe.model)
    for parameter in built.parameters():  # so that norms and biases are seen too
        parameter.data += 0.3 * torch.randn(parameter.shape)
    save_run(folder, recipe, tokenizer, built)
    return load(folder)
