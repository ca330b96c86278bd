"""A run whose test text is there, and which is so sure of itself that fewer bits change little."""

import torch

from regard.config import recipe_from
from regard.models import build_model
from regard.runs import save_run
from regard.text import train_tokenizer

LINES = ["the cat sleeps", "a dog and dogs sleep", "red cats see the dog now", "", "in on under over"]


def sure_run(place):
    """Its folder."""
    for side, lines in (("fr", LINES), ("en", LINES[::-1])):
        (place / f"test.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    plain = {
        "task": "translate", "tokens": {"kind": "word"}, "decoding": {"beam": 3, "max_length": 12},
        "data": {"test": [str(place / "test.fr"), str(place / "test.en")]},
    }  # fmt: skip
    tokenizer = train_tokenizer(LINES, recipe_from(plain).tokens, [])
    sizes = {"d_model": 32, "heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "max_length": 40,
             "output_bias": True, "embeddings": "separate", "vocabulary": tokenizer.size}  # fmt: skip
    recipe = recipe_from({**plain, "model": sizes})
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(2)
        model = build_model(recipe.model)
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        model.output_bias[:260] -= 30
        model.output_bias[tokenizer.specials.end] += 32
        model.output_pieces.weight *= 3
    save_run(place / "run", recipe, tokenizer, model)
    return place / "run"
