"""The processes that train together: one, or as many as torchrun started, each with its device."""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Machines:
    """This process's place among them."""

    rank: int
    world: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and talks to people."""
        return self.rank == 0

    def agree(self, value: float) -> float:
        """The first process's value, for all: clocks and signals differ, decisions must not."""
        if self.world == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.broadcast(shared, src=0)
        return float(shared)

    def one_first(self, work: Callable[[], T]) -> T:
        """The first process works, then the others do and find what it left on the disk."""
        if self.first:
            done = work()
        if self.world > 1:
            dist.barrier()
        return done if self.first else work()

    def gather(self, value: Tensor) -> list[Tensor]:
        """Every process's value, in their order and in ordinary memory; all are of one shape."""
        if self.world == 1:
            return [value]
        values = [torch.empty_like(value, device=self.device) for _ in range(self.world)]
        dist.all_gather(values, value.to(self.device))
        return [one.cpu() for one in values]

    def total(self, value: Tensor) -> float:
        """The sum of all processes' values."""
        if self.world > 1:
            dist.all_reduce(value)
        return float(value)


def leave_machines() -> None:
    """Part from the others in good order, at the end of a command.

    What still holds the group (models that refer to themselves in a circle) is dropped first, so that the group's
    threads end here and not while the interpreter does: one of many processes was aborted at its end.
    """
    if dist.is_initialized():
        gc.collect()
        dist.destroy_process_group()


def join_machines() -> Machines:
    """Join the processes that torchrun started; without it, be the only one."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return Machines(rank=rank, world=world, device=device)
