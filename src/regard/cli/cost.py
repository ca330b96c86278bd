"""`regard cost`: what a model costs before anybody trains it."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.options import add_recipe_options, overrides
from regard.config import PRESETS, ModelConfig, Recipe, model_preset, read_recipe
from regard.config.plain import to_plain
from regard.errors import InputError, nearest

if TYPE_CHECKING:
    from regard.evaluation.cost import Cost, Work

LENGTHS = (32, 128, 512)
PIECES = 37_000
GPT3_TOKENS = 300e9
"""that GPT-3 was trained on (Brown et al. 2020, Table 2.1)"""

EPILOG = """\
examples:
  regard cost base --length 25 50 100 --batch 64
  regard cost recipes/translate.toml --precision bf16
  regard cost base --model.d_model 256 --model.d_k 32 --model.d_v 32
  regard cost --table3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("model", metavar="PRESET|RECIPE", nargs="?", help=f"one of {', '.join(PRESETS)}; or a recipe")
    parser.add_argument("--batch", type=int, nargs="+", metavar="INT", default=[64], help="texts at once")
    parser.add_argument(
        "--length", type=int, nargs="+", metavar="INT",
        help=f"tokens of each text, of a translation's sources; {' '.join(map(str, LENGTHS))} unless stated",
    )  # fmt: skip
    parser.add_argument("--target-length", type=int, metavar="INT", help="tokens of each target; as many unless stated")
    parser.add_argument(
        "--vocabulary", type=int, metavar="INT",
        help=f"pieces; the recipe's or the preset's unless stated, else {PIECES:,} as the paper has",
    )  # fmt: skip
    parser.add_argument(
        "--precision", choices=("float32", "bf16"), default="float32",
        help="of the model's numbers; in training the optimizer keeps its own in float32",
    )  # fmt: skip
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu",
        help="where it would run; cuda needs one, for activations are found on it",
    )  # fmt: skip
    views = parser.add_mutually_exclusive_group()
    views.add_argument(
        "--table3", action="store_true", help='Tables 2 and 3 of "Attention Is All You Need" beside ours'
    )
    views.add_argument(
        "--problem-size", action="store_true",
        help="what it takes to train and to use a decoder over its whole window; gpt3 unless stated",
    )  # fmt: skip
    views.add_argument("--check", action="store_true", help="count by running the model too; 1 if anything differs")
    parser.add_argument("--json", action="store_true", help="for programs")
    add_recipe_options(parser, ["model"])


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    if arguments.table3:
        counted = arguments.length or arguments.target_length or arguments.vocabulary or arguments.batch != [64]
        if arguments.model or arguments.json or overrides(arguments) or counted:
            raise InputError("--table3 is of the paper's own models: it takes nothing beside it")
        from regard.cli.cost_paper import paper_page

        print(paper_page())
        return 0
    name = arguments.model or ("gpt3" if arguments.problem_size else None)
    if name is None:
        raise InputError(f"say which model: a preset ({', '.join(PRESETS)}) or a recipe; or --table3, --problem-size")
    config = _config(name, arguments)
    if arguments.problem_size:
        return _problem_size(name, config, arguments)
    works = _works(config, arguments)
    if arguments.check:
        return _check(config, works)
    from regard.evaluation.cost import cost
    from regard.evaluation.running import activation_bytes

    costs = [cost(config, work) for work in works]  # first what refuses wrong lengths
    costs = [cost(config, work, activations=activation_bytes(config, work)) for work in works]
    if arguments.json:
        print(json.dumps({"model": to_plain(config), "costs": [_plain(one) for one in costs]}, indent=2))
    else:
        from regard.cli.cost_tables import cost_page

        print(cost_page(name, config, costs))
    return 0


def _config(name: str, arguments: argparse.Namespace) -> ModelConfig:
    """The model that is meant, with its vocabulary."""
    stated = overrides(arguments)
    changes = dict(stated.get("model", {}))
    if arguments.vocabulary is not None:
        changes["vocabulary"] = arguments.vocabulary
    if name in PRESETS:
        if "preset" in changes:
            raise InputError(f"preset {name} and --model.preset {changes['preset']}: say one")
        return model_preset(name, **{"vocabulary": PIECES, **PRESETS[name], **changes})
    if not Path(name).exists():
        raise InputError(f"{name!r} is neither a preset nor a recipe that is there: {nearest(name, PRESETS)}")
    recipe = read_recipe(name, {"model": changes})
    if recipe.model.vocabulary is None:
        recipe = read_recipe(name, {"model": _with_pieces(recipe, changes)})
    return recipe.model


def _with_pieces(recipe: Recipe, changes: dict[str, object]) -> dict[str, object]:
    """The changes, and the vocabulary that the recipe's tokeniser will have."""
    if recipe.tokens.kind in ("char", "byte"):
        raise InputError(f"a vocabulary of {recipe.tokens.kind}s is known when it is made: state --vocabulary")
    size = recipe.tokens.size
    separate = recipe.model.family == "encoder-decoder" and not recipe.tokens.joint
    return {**changes, "vocabulary": size, **({"source_vocabulary": size} if separate else {})}


def _works(config: ModelConfig, arguments: argparse.Namespace) -> list["Work"]:
    from regard.evaluation.cost import Work

    if arguments.target_length is not None and config.family != "encoder-decoder":
        raise InputError(f"--target-length: a model that is {config.family} has no targets; --length is all")
    lengths = arguments.length or [length for length in LENGTHS if length <= config.max_length] or [config.max_length]
    return [
        Work(
            batch=batch, length=length, target_length=arguments.target_length,
            precision=arguments.precision, device=arguments.device,
        )
        for batch in arguments.batch
        for length in lengths
    ]  # fmt: skip


def _problem_size(name: str, config: ModelConfig, arguments: argparse.Namespace) -> int:
    from regard.cli.cost_tables import problem_page
    from regard.evaluation.cost import Work, cost

    if config.family != "decoder-only":
        raise InputError(f"--problem-size of {name}: it is {config.family}, and the view is of a decoder-only model")
    if arguments.length or arguments.target_length or arguments.batch != [64]:
        raise InputError("--problem-size is of one whole window: it takes no --length, --target-length or --batch")
    work = Work(batch=1, length=config.max_length, precision=arguments.precision, device=arguments.device)
    found = cost(config, work)
    if arguments.json:
        print(json.dumps({"model": to_plain(config), "costs": [_plain(found)]}, indent=2))
    else:
        print(problem_page(name, config, found, trained_on=GPT3_TOKENS))
    return 0


def _plain(cost: "Cost") -> dict[str, object]:
    """The record, and what follows from it."""
    return {**asdict(cost), "backward": cost.backward, "training": cost.training, "between_tokens": cost.between_tokens}


def _check(config: ModelConfig, works: list["Work"]) -> int:
    """Both counts beside each other."""
    from regard.evaluation.cost import cost
    from regard.evaluation.flops import total
    from regard.evaluation.running import counted

    same = True
    for work in works:
        formula, seen = cost(config, work), counted(config, work)
        pairs = [
            ("parameters", total(formula.parameters), seen.parameters),
            ("training, forward: FLOP", total(formula.forward), seen.forward),
            ("training, backward: FLOP", formula.backward, seen.backward),
        ]
        if formula.decoding:
            pairs += [
                ("reading the source: FLOP", formula.decoding.source, seen.source),
                ("last token with the cache: FLOP", formula.decoding.last_cached, seen.last_cached),
                ("last token, all again: FLOP", formula.decoding.last_again, seen.last_again),
                ("cache: bytes", formula.bytes.cache, seen.cache),
                ("sources' keys and values: bytes", formula.bytes.source, seen.source_cache),
            ]
        print(f"{work.batch} texts of {work.length} tokens{'':24}{'formula':>24}{'run':>24}")
        for label, ours, theirs in pairs:
            print(f"  {label:40}{ours:>24,}{theirs:>24,}  {'same' if ours == theirs else 'DIFFERENT'}")
            same = same and ours == theirs
        if seen.recomputed:
            print(f"  {'beside it, scores computed again: FLOP':40}{'':24}{seen.recomputed:>24,}")
    return 0 if same else 1
