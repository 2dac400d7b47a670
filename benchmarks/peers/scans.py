"""The scan of one number per channel: PyTorch's own associative scan, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch._higher_order_ops import associative_scan

from benchmarks.contender import Contender, Tensors

_Pair = tuple[Tensor, Tensor]


def _combine(earlier: _Pair, later: _Pair) -> _Pair:
    """Composes two affine maps y ↦ a y + v."""
    (a, v), (b, w) = earlier, later
    return b * a, b * v + w


def _scan(g: Tensor, v: Tensor) -> Tensor:
    y: Tensor = associative_scan(_combine, (torch.exp(g), v), dim=1, combine_mode="generic")[1]
    return y


@cache
def _compiled() -> Callable[[Tensor, Tensor], Tensor]:
    return torch.compile(_scan)


EAGER = Contender(
    "associative_scan",
    "torch, BSD: torch._higher_order_ops.associative_scan, generic, eager",
    lambda x: _scan(x["g"], x["v"]),
)
COMPILED = Contender(
    "associative_scan, compiled",
    "the same under torch.compile, which needs a C++ compiler",
    lambda x: _compiled()(x["g"], x["v"]),
    context=True,
    compiles=True,
)


def loop(x: Tensors) -> Tensor:
    """The scan as a loop over tokens, `unbind` instead of an index so that it trains in L, not L².

    Args:
        x: `g` and `v`, `[B, L, d]`.
    """
    y, rows = torch.zeros_like(x["v"][:, 0]), []
    for decay, v in zip(torch.exp(x["g"]).unbind(1), x["v"].unbind(1), strict=True):
        y = decay * y + v
        rows.append(y)
    return torch.stack(rows, 1)


LOOP = Contender("loop over tokens", "plain torch, written here", loop, context=True)
