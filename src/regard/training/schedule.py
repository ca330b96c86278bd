"""How the learning rate rises and falls."""

import math

from regard.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int, *, share: float, d_model: int) -> float:
    """The rate of update `step` (the first is 1); `share` is how much of the run is done, from 0 to 1.

    All kinds rise in a straight line over the warm-up. `paper` is "Attention Is All You Need", equation 3, times the
    configured rate: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5). `inverse_sqrt` has the same fall from the
    configured peak. `cosine` and `linear` fall from the end of the warm-up to `final_rate`, a share of the peak, at the
    run's end.
    """
    rise = min(1.0, step / config.warmup) if config.warmup else 1.0
    fallen = _after_warmup(config.warmup, step - 1, min(share, 1.0))
    match config.schedule:
        case "paper":
            warmup = max(config.warmup, 1)
            return float(config.learning_rate * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
        case "inverse_sqrt":
            return config.learning_rate * min(rise, math.sqrt(max(config.warmup, 1) / step))
        case "cosine":
            left = 0.5 * (1 + math.cos(math.pi * fallen))
            return config.learning_rate * rise * (config.final_rate + (1 - config.final_rate) * left)
        case "linear":
            return config.learning_rate * rise * (config.final_rate + (1 - config.final_rate) * (1 - fallen))
        case "constant":
            return config.learning_rate * rise


def _after_warmup(warmup: int, done: int, share: float) -> float:
    """How much of what follows the warm-up is done, when `done` updates were `share` of the run.

    The warm-up's own share of a run that is limited by time is known by the pace so far.
    """
    if done <= warmup:
        return 0.0
    taken = share * warmup / done
    return (share - taken) / (1 - taken)
