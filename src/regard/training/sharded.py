"""The optimizer of many processes that share one model: FSDP2 (`torch.distributed.fsdp.fully_shard`) and Adam.

Each process keeps its share of every weight, of its gradient and of its moments. The matrices of self-attention and of
the feed-forward networks are whole only while their layer computes; cross-attention's and the embeddings stay whole
from the forward pass to the end of the backward one, since they are also used outside a layer's own forward.

It is `FlatAdam` to the outside: same arithmetic, and the same checkpoints, so that a run may go on with more or fewer
processes, sharded or not.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard

from regard.config import TrainingConfig
from regard.nn.blocks import Layer
from regard.training.machines import Machines
from regard.training.optimizer import square_sum


class ShardedAdam:
    """Adam or AdamW over this process's shares of the weights. Every method is called by all processes alike."""

    def __init__(self, model: nn.Module, config: TrainingConfig, dtype: torch.dtype, machines: Machines) -> None:
        self.config, self.machines = config, machines
        self._mesh = init_device_mesh(machines.device.type, (machines.world,))
        self._units = _shard(model, dtype, self._mesh)
        named = list(model.named_parameters())
        named.sort(key=lambda pair: pair[1].dim() < 2)  # stable: matrices first, as FlatAdam has them
        self._parameters: dict[str, DTensor] = {}
        self._still: dict[str, DTensor] = {}
        """weights that do not learn"""
        for name, parameter in named:
            assert isinstance(parameter, DTensor)
            (self._parameters if parameter.requires_grad else self._still)[name] = parameter
        self._leaves = {name: nn.Parameter(shared.to_local().detach()) for name, shared in self._parameters.items()}
        self._average = {name: leaf.detach().clone() for name, leaf in self._leaves.items()} if config.ema else None
        matrices = [leaf for name, leaf in self._leaves.items() if self._parameters[name].dim() >= 2]
        vectors = [leaf for name, leaf in self._leaves.items() if self._parameters[name].dim() < 2]
        self._groups = [matrices, vectors]
        self._adam = torch.optim.AdamW(
            [
                {"params": [leaf for leaf in group if leaf.numel()], "weight_decay": decay}
                for group, decay in zip(self._groups, (config.weight_decay, 0.0), strict=True)
            ],
            lr=0.0, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=True,
        )  # fmt: skip

    def let_go(self) -> None:
        """Forget the weights that a forward pass without a backward one left whole: they may change now."""
        for unit in self._units:
            unit.reshard()

    def collect(self) -> float:
        """Take over the gradients, which backward has summed and shared out, and give the length of the whole."""
        square = torch.zeros((), dtype=torch.float64, device=self.machines.device)
        for name, shared in self._parameters.items():
            leaf = self._leaves[name]
            gradient = shared.grad
            if gradient is None:
                leaf.grad = torch.zeros_like(leaf)
            else:
                assert isinstance(gradient, DTensor)
                leaf.grad = gradient.to_local().detach() * self.machines.world  # FSDP gives the mean, we want the sum
                shared.grad = None
            square += square_sum(leaf.grad)
        dist.all_reduce(square)
        return float(square.sqrt())

    def step(self, rate: float, length: float) -> None:
        """One update with the collected gradient, whose length is known."""
        if self.config.clip is not None and length > self.config.clip:
            for leaf in self._leaves.values():
                assert leaf.grad is not None
                leaf.grad *= self.config.clip / length
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        if self._average is not None:
            for name, mean in self._average.items():
                mean.lerp_(self._leaves[name].detach(), 1 - self.config.ema)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The model sees the average over time, if one is kept; and it is whole, so that it can also decode."""
        kept = {name: leaf.detach().clone() for name, leaf in self._leaves.items()} if self._average else {}
        self._fill(self._average or {})
        for unit in self._units:
            unit.set_reshard_after_forward(False, recurse=False)
            unit.unshard()
        try:
            yield
        finally:
            self.let_go()
            for unit in self._units:
                unit.set_reshard_after_forward(unit is not self._units[-1], recurse=False)
            self._fill(kept)

    @torch.no_grad()
    def _fill(self, values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            self._leaves[name].copy_(value)

    def named_weights(self) -> dict[str, Tensor]:
        """The float32 weights by name and in shape, on the first process: the average over time, if one is kept."""
        still = {name: self._whole(name, shared.to_local()) for name, shared in self._still.items()}
        return {**still, **{name: self._whole(name, share) for name, share in (self._average or self._leaves).items()}}

    def state(self) -> dict[str, Tensor]:
        """All that a resumed run needs of it, as FlatAdam states it; on the first process, others get empty tensors."""
        tensors = {"weights": self._flat(self._leaves)}
        if self._average is not None:
            tensors["average"] = self._flat(self._average)
        for number, group in enumerate(self._groups):
            steps = [self._adam.state[leaf]["step"] for leaf in group if leaf in self._adam.state]
            if not self._any(bool(steps)):
                continue
            mine = {name: leaf for name, leaf in self._leaves.items() if any(leaf is one for one in group)}
            tensors[f"adam.{number}.step"] = self._most(steps)
            for moment in ("exp_avg", "exp_avg_sq"):
                found = {name: self._adam.state.get(leaf, {}).get(moment, leaf) for name, leaf in mine.items()}
                tensors[f"adam.{number}.{moment}"] = self._flat(found)
        return tensors

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `state` gave, here or in FlatAdam."""
        self._fill(self._shares(tensors["weights"], list(self._leaves)))
        if self._average is not None:
            means = self._shares(tensors.get("average", tensors["weights"]), list(self._leaves))
            for name, mean in means.items():
                self._average[name].copy_(mean)
        for number, group in enumerate(self._groups):
            if f"adam.{number}.step" not in tensors:
                continue
            names = [name for name, leaf in self._leaves.items() if any(leaf is one for one in group)]
            moments = {
                moment: self._shares(tensors[f"adam.{number}.{moment}"], names) for moment in ("exp_avg", "exp_avg_sq")
            }
            for name in names:
                leaf = self._leaves[name]
                if leaf.numel():
                    its = {moment: values[name].to(leaf.device).clone() for moment, values in moments.items()}
                    self._adam.state[leaf] = {"step": tensors[f"adam.{number}.step"].to(leaf.device).clone(), **its}

    def _shares(self, flat: Tensor, names: list[str]) -> dict[str, Tensor]:
        """This process's share of each of the tensors that stand one after another in a flat one."""
        shares, start = {}, 0
        for name in names:
            shape = self._parameters[name].shape
            parts = flat[start : start + shape.numel()].view(shape).chunk(self.machines.world)
            rank = self.machines.rank
            shares[name] = parts[rank] if rank < len(parts) else parts[0][:0]
            start += shape.numel()
        return shares

    def _flat(self, shares: dict[str, Tensor] | dict[str, nn.Parameter]) -> Tensor:
        """All processes' shares put together, one tensor after another."""
        return torch.cat([self._whole(name, share).flatten() for name, share in shares.items()])

    def _whole(self, name: str, share: Tensor) -> Tensor:
        """One tensor put together, in the first process's ordinary memory."""
        like = self._parameters[name] if name in self._parameters else self._still[name]
        shared = DTensor.from_local(
            share.detach(), self._mesh, [Shard(0)], run_check=False, shape=like.shape, stride=like.stride()
        )
        whole = shared.full_tensor()
        return whole.cpu() if self.machines.first else whole.new_empty(0, device="cpu")

    def _any(self, value: bool) -> bool:
        return self.machines.total(torch.tensor(float(value), device=self.machines.device)) > 0

    def _most(self, steps: list[Tensor]) -> Tensor:
        """How many updates there were: a process whose shares are all empty counts none."""
        most = torch.stack([step.to(self.machines.device) for step in steps]).amax() if steps else None
        most = torch.zeros((), device=self.machines.device) if most is None else most
        dist.all_reduce(most, dist.ReduceOp.MAX)
        return most.cpu()


def _shard(model: nn.Module, dtype: torch.dtype, mesh: DeviceMesh) -> list[FSDPModule]:
    """Cut the model's weights up, in place; answers with the parts that are made whole at a time, the root last."""
    # What is said of in-place operations on a module's output does not concern us: there is none in our layers.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    policy = MixedPrecisionPolicy(
        param_dtype=None if dtype == torch.float32 else dtype, reduce_dtype=torch.float32, cast_forward_inputs=False
    )
    units = []
    for layer in [module for module in model.modules() if isinstance(module, Layer)]:
        units += [
            fully_shard(part, mesh=mesh, mp_policy=policy) for part in (layer.attention, layer.feed_forward)
        ]  # fmt: skip
    return [*units, fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)]
