"""How `regard cost` prints: plain aligned columns of numbers, each row in the unit that suits it."""

from collections.abc import Callable, Sequence

from regard.config import ModelConfig
from regard.evaluation.cost import BYTES, Cost, Decoding
from regard.evaluation.flops import total

LABEL, UNIT, NUMBER = 40, 8, 17
COLUMNS = 3
"""numbers beside each other: with them a page is 99 columns wide"""

OPERATIONS = (1000, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP", "YFLOP"))
MEMORY = (1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))
Scale = tuple[int, tuple[str, ...]]


def row(label: str, values: Sequence[float | None], scale: Scale | None = None, *, unit: str = "") -> str:
    """A line: what it is, the unit, and the numbers with three digits or more; a dash where there is none.

    With a scale the unit is the largest of which each number is at least one.
    """
    least = min((abs(value) for value in values if value), default=0)
    power = 0
    if scale is not None:
        step, names = scale
        while least >= step ** (power + 1) and power + 1 < len(names):
            power += 1
        unit, least = names[power], least / step**power
        values = [None if value is None else value / step**power for value in values]
    whole = all(value is None or float(value).is_integer() for value in values)
    decimals = 0 if (whole and power == 0) or least >= 100 else 1 if least >= 10 else 2
    cells = ["-" if value is None else f"{value:,.{decimals}f}" for value in values]
    return f"{label:<{LABEL}}{unit:>{UNIT}}" + "".join(f"{cell:>{NUMBER}}" for cell in cells)


def cost_page(name: str, config: ModelConfig, costs: Sequence[Cost]) -> str:
    """What a model costs, for each of some pieces of work."""
    parts = [parameter_table(name, config, costs[0])]
    for start in range(0, len(costs), COLUMNS):
        parts.append(_work_table(config, costs[start : start + COLUMNS]))
    return "\n\n".join(parts)


def parameter_table(name: str, config: ModelConfig, cost: Cost) -> str:
    """Parameters by part."""
    count = total(cost.parameters)
    lines = [
        f"{name}: {config.family}, {config.vocabulary:,} pieces", "",
        f"{'parameters':<{LABEL}}{'':{UNIT}}{'':{NUMBER}}{'share':>{NUMBER}}",
    ]  # fmt: skip
    for part, parameters in cost.parameters.items():
        lines.append(row(f"  {part}", [parameters]) + f"{parameters / count:>{NUMBER - 2}.1%}".replace("%", " %"))
    return "\n".join([*lines, row("  all", [count])])


def _work_table(config: ModelConfig, costs: Sequence[Cost]) -> str:
    both = config.family == "encoder-decoder"

    def each(value: Callable[[Cost], float | None]) -> list[float | None]:
        return [value(cost) for cost in costs]

    lines = [
        f"work, {costs[0].work.precision} on {costs[0].work.device}",
        row("  texts at once", each(lambda cost: cost.work.batch)),
        row("  tokens of each source" if both else "  tokens of each text", each(lambda cost: cost.work.length)),
    ]
    if both:
        lines.append(row("  tokens of each target", each(lambda cost: cost.work.written(config))))
    lines += [
        "", "arithmetic of a training step",
        row("  forward", each(lambda cost: total(cost.forward)), OPERATIONS),
        row("  backward", each(lambda cost: cost.backward), OPERATIONS),
        row("  both", each(lambda cost: cost.training), OPERATIONS),
        row("    of it, between tokens", each(lambda cost: cost.between_tokens / cost.training * 100), unit="%"),
        row("    for each token of a " + ("target" if both else "text"),
            each(lambda cost: cost.training / cost.tokens), OPERATIONS),
    ]  # fmt: skip
    if costs[0].decoding:
        lines += ["", *_decoding_rows(config, costs)]
    lines += [
        "", "memory of a training step",
        row("  weights", each(lambda cost: cost.bytes.weights), MEMORY),
        row("  gradients", each(lambda cost: cost.bytes.gradients), MEMORY),
        row("  Adam's two moments", each(lambda cost: cost.bytes.moments), MEMORY),
        row("  activations", each(lambda cost: cost.bytes.activations), MEMORY),
        row("  all", each(lambda cost: cost.bytes.training), MEMORY),
        "", "memory of use",
        row("  weights", each(lambda cost: cost.bytes.decoding_weights), MEMORY),
    ]  # fmt: skip
    if costs[0].decoding:
        lines += [
            row("  cache, a token of a text", each(lambda cost: cost.bytes.cache_token), MEMORY),
            row("  cache, all", each(lambda cost: cost.bytes.cache), MEMORY),
        ]
    if both:
        lines.append(row("  the sources' keys and values", each(lambda cost: cost.bytes.source), MEMORY))
    return "\n".join(lines)


def _decoding_rows(config: ModelConfig, costs: Sequence[Cost]) -> list[str]:
    def each(value: Callable[[Decoding], float]) -> list[float | None]:
        return [value(cost.decoding) if cost.decoding else None for cost in costs]

    written = [cost.work.written(config) for cost in costs]
    rows = [
        "arithmetic of decoding, one text",
        row("  the last token, with the cache", each(lambda decoding: decoding.last_cached), OPERATIONS),
        row("  the last token, all again", each(lambda decoding: decoding.last_again), OPERATIONS),
        row("  all tokens, with the cache", each(lambda decoding: decoding.all_cached), OPERATIONS),
        row("  all tokens, all again each time", each(lambda decoding: decoding.all_again), OPERATIONS),
        row("    times as many", each(lambda decoding: decoding.all_again / decoding.all_cached)),
    ]
    if config.family == "encoder-decoder":
        sources = each(lambda decoding: decoding.source)
        shares = [(source or 0) / tokens for source, tokens in zip(sources, written, strict=True)]
        rows += [
            row("  reading the source, once", sources, OPERATIONS),
            row("    its share for each token", shares, OPERATIONS),
        ]
    return rows


def problem_page(name: str, config: ModelConfig, cost: Cost, *, trained_on: float) -> str:
    """How large the problem is to train and to use a model of this shape, over its whole window."""
    decoding = cost.decoding
    assert decoding is not None
    numbers, window = total(cost.parameters), cost.work.length
    token, cache_numbers = cost.training / cost.tokens, cost.bytes.cache_token // BYTES[cost.work.precision]
    types = list(BYTES.values())

    def sizes(label: str, count: int) -> str:
        return row(label, [count * size for size in types], MEMORY)

    lines = [
        parameter_table(name, config, cost), "",
        f"{'':{LABEL + UNIT}}" + "".join(f"{precision:>{NUMBER}}" for precision in BYTES),
        sizes("bytes of the parameters", numbers),
        row("with gradients and Adam's moments", [16 * numbers, 18 * numbers], MEMORY),
        sizes("cache, a token", cache_numbers),
        sizes(f"cache, the window of {window:,} tokens", cache_numbers * window), "",
        "arithmetic of training",
        row("  a window, forward", [total(cost.forward)], OPERATIONS),
        row("  a window, forward and backward", [cost.training], OPERATIONS),
        row("    of it, between tokens", [cost.between_tokens / cost.training * 100], unit="%"),
        row("  a token of it", [token], OPERATIONS),
        row("    6 for each parameter would be", [6 * numbers], OPERATIONS),
        row(f"  {trained_on / 1e9:,.0f} billion tokens", [token * trained_on], OPERATIONS), "",
        "arithmetic of inference",
        row("  the last token, with the cache", [decoding.last_cached], OPERATIONS),
        row("  the last token, the window again", [decoding.last_again], OPERATIONS),
        row("  all tokens, with the cache", [decoding.all_cached], OPERATIONS),
        row("  all tokens, all again each time", [decoding.all_again], OPERATIONS),
    ]  # fmt: skip
    return "\n".join(lines)
