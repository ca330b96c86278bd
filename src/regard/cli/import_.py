"""`regard import`: a model of another program becomes a run folder."""

import argparse
from pathlib import Path

EPILOG = """examples:
  regard import stories260K --out runs/stories
  regard import all-MiniLM-L6-v2 --out runs/minilm
  regard import distilgpt2 --out runs/distilgpt2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.add_argument(
        "path",
        metavar="PATH",
        type=Path,
        help="the model: a llama2.c checkpoint (.bin) or its folder, or a BERT or GPT-2 folder saved by transformers",
    )
    parser.add_argument("--out", metavar="RUN", type=Path, required=True, help="the run folder to make")
    parser.add_argument(
        "--tokenizer", metavar="FILE", type=Path, help="the tokeniser's file, where it does not lie beside the model"
    )
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Import, and say what came."""
    from regard.interop import import_run

    imported = import_run(arguments.path, arguments.out, tokenizer=arguments.tokenizer)
    model = imported.recipe.model
    layers = {
        "decoder-only": model.decoder_layers,
        "encoder-only": model.encoder_layers,
        "encoder-decoder": model.encoder_layers + model.decoder_layers,
    }[model.family]
    parameters = sum(weight.numel() for weight in imported.model.parameters())
    print(f"imported {arguments.path} ({imported.source}) into {arguments.out}")
    print(
        f"{model.family}, {parameters:,} parameters, {layers} layer{'s' * (layers != 1)}, "
        f"vocabulary of {imported.tokenizer.size:,} pieces"
    )
    if labels := imported.recipe.data.labels:
        print(f"labels: {', '.join(labels)}")
    if imported.unused:
        print(f"left out, having no place here: {', '.join(imported.unused)}")
    return 0
