"""`regard import`: a model of another program becomes a run folder."""

import argparse
from pathlib import Path

EXAMPLE = "regard import stories260K --out runs/stories"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.add_argument(
        "path", metavar="PATH", type=Path, help="the model: a llama2.c checkpoint (.bin), or its folder"
    )
    parser.add_argument("--out", metavar="RUN", type=Path, required=True, help="the run folder to make")
    parser.add_argument(
        "--tokenizer", metavar="FILE", type=Path, help="the tokeniser's file, where it does not lie beside the model"
    )
    parser.epilog = f"example:\n  {EXAMPLE}"


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
    return 0
