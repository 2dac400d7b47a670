"""The search for inputs of a box on which a module errs much: evidence beside a bound, no proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

import torch
from torch import Tensor

Values = Mapping[str, Tensor]
Box = Mapping[str, tuple[Tensor, Tensor]]
"""Name → lower and upper ends of entries."""

DRAWN, CLIMBED = 16, 16
"""Points that are drawn, and neighbours of the worst that are tried."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one mode.

    Attributes:
        points: how many points were run.
        worst: the largest error.
        values: where it is; None where no output was finite.
        broken: at how many points an output was infinite or NaN while the definition was finite.
    """

    points: int = 0
    worst: float = 0.0
    values: Values | None = None
    broken: int = 0


def search(
    box: Box,
    dtypes: Mapping[str, torch.dtype],
    runs: Mapping[str, Callable[[Values], Tensor]],
    reference: Callable[[Values], Tensor],
    seed: int = 0,
) -> dict[str, Seen]:
    """Returns the largest error of each mode seen on points of a box.

    Points are corners, those that gradients of outputs lead to, draws, and neighbours of the worst.

    Args:
        box: where points lie.
        dtypes: of the arrays, by name.
        runs: the module's output, by mode.
        reference: that of the definition, in float64, differentiable.
        seed: points of one seed are the same on every machine.
    """
    draw = torch.Generator().manual_seed(seed)
    seen, best, worst = {mode: Seen() for mode in runs}, None, -1.0
    points = _points(box, reference, draw)
    for k in range(DRAWN + CLIMBED):
        point = next(points) if k < DRAWN or best is None else _near(best, box, draw)
        values = {name: _inside(x, box[name], dtypes[name]) for name, x in point.items()}
        with torch.no_grad():
            exact = reference(values)
            for mode, run in runs.items():
                seen[mode] = _looked(seen[mode], values, exact, run(values))
        largest = max((x.worst for x in seen.values()), default=0.0)
        if largest > worst:
            worst, best = largest, values
    return seen


def _looked(seen: Seen, values: Values, exact: Tensor, got: Tensor) -> Seen:
    """What was seen, with one more point."""
    wide = got.to(exact.dtype)
    if not bool(torch.isfinite(wide).all()):
        return replace(seen, broken=seen.broken + bool(torch.isfinite(exact).all()))
    error = float((wide - exact).abs().max()) if exact.numel() else 0.0
    if error > seen.worst or seen.values is None:
        return Seen(seen.points + 1, error, values, seen.broken)
    return replace(seen, points=seen.points + 1)


def _points(
    box: Box, reference: Callable[[Values], Tensor], draw: torch.Generator
) -> Iterator[Values]:
    """Points of a box, in an endless row of corners, draws, and corners that signs lead to."""
    yield {name: high for name, (_, high) in box.items()}
    yield {name: low for name, (low, _) in box.items()}
    for k in count():
        corner: Values = {name: _mixed(ends, _bits(ends, draw)) for name, ends in box.items()}
        if k % 4 == 1:  # one token again and again
            corner = {name: x[:, :1].expand(x.shape) if x.ndim > 1 else x
                      for name, x in corner.items()}  # fmt: skip
        if k % 4 == 2:
            corner = {name: _mixed(ends, torch.rand(ends[0].shape, generator=draw))
                      for name, ends in box.items()}  # fmt: skip
        if k % 4 == 3:
            corner = _aligned(corner, box, reference, draw)
        yield corner


def _bits(ends: tuple[Tensor, Tensor], draw: torch.Generator) -> Tensor:
    return torch.randint(0, 2, ends[0].shape, generator=draw).double()


def _mixed(ends: tuple[Tensor, Tensor], share: Tensor) -> Tensor:
    low, high = ends
    return low + (high - low) * share


def _aligned(
    point: Values, box: Box, reference: Callable[[Values], Tensor], draw: torch.Generator
) -> Values:
    """The corner that the gradient of one output leads to, twice."""
    for _ in range(2):
        leaves = {name: x.clone().requires_grad_() for name, x in point.items()}
        with torch.enable_grad():
            y = reference(leaves)
            at = int(torch.randint(0, max(y.numel(), 1), (1,), generator=draw))
            picked = y.flatten()[at].abs()
            grads = torch.autograd.grad(picked, list(leaves.values()), allow_unused=True)
        point = {
            name: point[name] if g is None else _mixed(box[name], (g > 0).double())
            for name, g in zip(leaves, grads, strict=True)
        }
    return point


def _near(point: Values, box: Box, draw: torch.Generator) -> Values:
    """A point with a few entries drawn anew, or moved a little."""
    out = {}
    for name, x in point.items():
        ends = box[name]
        kept = torch.rand(x.shape, generator=draw) < 0.9
        other = _mixed(ends, torch.rand(x.shape, generator=draw))
        out[name] = torch.where(kept, x.double(), other)
    return out


def _inside(x: Tensor, ends: tuple[Tensor, Tensor], dtype: torch.dtype) -> Tensor:
    """Numbers of a dtype that lie in a box, near those given."""
    rounded = x.to(dtype)
    over = (rounded.double() > ends[1]) | (rounded.double() < ends[0])
    return torch.where(over, (x * (1 - 2.0**-7)).to(dtype), rounded)
