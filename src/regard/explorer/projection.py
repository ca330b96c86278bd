"""Many numbers a token, drawn as two: principal components, and how the tokens move in them from layer to layer."""

import torch
from torch import Tensor

from regard.explorer.arrays import Array, Axis, Plain, fixed
from regard.explorer.calculation import Group, residual, stacks
from regard.explorer.looks import Look

STEP_AXES: tuple[Axis, ...] = ("place", "row", "point")


@torch.no_grad()
def components(points_ND: Tensor, count: int = 2) -> tuple[Tensor, Tensor, list[float]]:
    """Centre (D), axes (D, 2) along which the points differ most, and the share of the variance along each.

    An axis points to where its largest component is positive, so that the same points always give the same picture.
    """
    points = points_ND.double()
    centre = points.mean(0)
    spread = points - centre
    if len(points) < points.shape[1]:  # few points in many dimensions: their products are the smaller matrix
        values, vectors = torch.linalg.eigh(spread @ spread.T)
        axes = spread.T @ vectors.flip(-1)[:, :count]
        axes = axes / axes.norm(dim=0).clamp(min=1e-12)
    else:
        values, vectors = torch.linalg.eigh(spread.T @ spread)
        axes = vectors.flip(-1)[:, :count]
    values = values.flip(-1).clamp(min=0)[:count]
    if axes.shape[1] < count:
        axes = torch.nn.functional.pad(axes, (0, count - axes.shape[1]))
        values = torch.nn.functional.pad(values, (0, count - len(values)))
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    axes = axes * torch.where(largest < 0, -1.0, 1.0)
    total = float(spread.pow(2).sum())
    return centre, axes, [float(value) / total if total else 0.0 for value in values]


def projected(points: Tensor, centre: Tensor, axes: Tensor) -> Tensor:
    """Where points (…, D) lie along the axes, (…, 2)."""
    return ((points.double() - centre) @ axes).float()


@torch.no_grad()
def displacement(look: Look) -> tuple[Plain, dict[str, Array]]:
    """The section of that name with its arrays: where each sub-layer moves each token, and how far."""
    section: Plain = {}
    arrays: dict[str, Array] = {}
    for name, (_, groups) in stacks(look).items():
        places = [group for group in groups if group.steps]
        states_PTD = path(look, name, groups)
        centre, axes, explained = components(states_PTD.flatten(0, 1))
        moves = states_PTD[1:].double() - states_PTD[:-1].double()
        lengths = torch.cat([torch.zeros_like(moves[:1, :, 0]), moves.norm(dim=-1)])
        alike = torch.cosine_similarity(states_PTD[1:].double(), states_PTD[:-1].double(), dim=-1)
        cosines = torch.cat([torch.ones_like(alike[:1]), alike])
        start = f"displacement.{name}"
        arrays[f"{start}.points"] = fixed(projected(states_PTD, centre, axes), STEP_AXES)
        arrays[f"{start}.lengths"] = fixed(lengths.float(), ("place", "row"))
        arrays[f"{start}.cosines"] = fixed(cosines.float(), ("place", "row"))
        section[name] = {
            "places": [{"name": g.name, "title": g.title, "part": g.part, "layer": g.layer} for g in places],
            "points": f"{start}.points", "lengths": f"{start}.lengths", "cosines": f"{start}.cosines",
            "explained": explained,
        }  # fmt: skip
    return section, arrays


def path(look: Look, stack: str, groups: list[Group]) -> Tensor:
    """The residual stream of every token after the input and after every sub-layer, (places, T, D)."""
    return torch.stack([residual(look, stack, group) for group in groups if group.steps])
