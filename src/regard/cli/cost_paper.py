"""The page of `regard cost --table3`: the sizes and the training cost of "Attention Is All You Need" beside ours."""

from regard.evaluation.paper import (
    BATCH_TOKENS,
    GPUS,
    P100_FLOPS,
    PIECES,
    SENTENCE_TOKENS,
    TABLE_2,
    TABLE_3,
    Row,
    Training,
)


def paper_page() -> str:
    """Both tables."""
    lines = [
        f'"Attention Is All You Need", Table 3: million parameters, at {PIECES:,} pieces', "",
        f"{'row':6}{'changed of the base model':42}{'paper':>8}{'here':>10}{'off':>10}",
        *map(_size, TABLE_3), "",
        "*: blank in the paper: as base. Rows (D) change only dropout and label smoothing.", "",
        "", "Table 2: operations of training", "",
        f"{'model':6}{'time':12}{'paper':>10}{'from the time':>18}{'steps':>12}{'from the model':>18}{'share':>10}",
        *map(_training, TABLE_2), "",
        f"From the time: hours x {GPUS} P100 x {P100_FLOPS / 1e12} TFLOP/s, what the processors could have done in it.",
        f"From the model: its matrix products, forward and backward, for each step {BATCH_TOKENS:,} source and as many",
        f"target tokens; we assume sentences of {SENTENCE_TOKENS}, no padding, and {PIECES:,} pieces.",
    ]  # fmt: skip
    return "\n".join(lines)


def _size(row: Row) -> str:
    changed = ", ".join(f"{name} {value}" for name, value in row.changes.items())
    paper = f"{row.million}{' ' if row.stated else '*'}"
    return f"{row.group:6}{changed:42}{paper:>9}{row.ours / 1e6:>9.1f}{100 * row.off:>+8.1f} %"


def _training(run: Training) -> str:
    time = f"{run.hours:g} h" if run.hours < 24 else f"{run.hours / 24:g} days"
    share = f"{run.from_model / run.from_time:.0%}".replace("%", " %")
    stated = f"{run.stated:.1e}".replace("e+", "e")
    from_time, from_model = (f"{value:.2e}".replace("e+", "e") for value in (run.from_time, run.from_model))
    return f"{run.preset:6}{time:12}{stated:>10}{from_time:>18}{run.steps:>12,}{from_model:>18}{share:>10}"
