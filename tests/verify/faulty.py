"""A process of `two processes = one` in which a fault is planted: its name, then the words of regard.verify.process."""

import sys

from regard.training.optimizer import FlatAdam, square_sum
from regard.training.sharded import ShardedAdam
from regard.verify.process import main

FORGOTTEN = "decoder.layers.1.feed_forward_norm.weight"
"""a vector that moves little"""


def divides_twice():
    """Gradients are divided by the number of processes, though each process has divided by all tokens already."""

    def flat(self, kept):
        length = kept(self)
        self.gradient /= 2
        return length / 2

    def shared(self, kept):
        length = kept(self)
        for leaf in self._leaves.values():
            leaf.grad /= 2
        return length / 2

    plant(FlatAdam, flat)
    plant(ShardedAdam, shared)


def forgets_one():
    """Of one vector each process keeps its own gradient; where weights are shared, the mean of all gradients."""

    def flat(self, kept):
        number = self.names.index(FORGOTTEN)
        gradient = self.parameters[number].grad  # none where the process had no part of the batch
        own = 0 if gradient is None else gradient.clone()
        length = kept(self)
        self.gradient[self.places[number]] = own
        return length

    def shared(self, kept):
        length = kept(self)
        self._leaves[FORGOTTEN].grad /= 2
        return length

    plant(FlatAdam, flat)
    plant(ShardedAdam, shared)


def own_length():
    """Each process clips by the length of its own share of the gradient."""

    def shared(self, kept):
        kept(self)
        return float(sum(square_sum(leaf.grad) for leaf in self._leaves.values()).sqrt())

    plant(ShardedAdam, shared)


def plant(optimizer, fault):
    kept = optimizer.collect
    optimizer.collect = lambda self: fault(self, kept)


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    {"none": lambda: None, **{fault.__name__: fault for fault in (divides_twice, forgets_one, own_length)}}[name]()
    main(words)
