"""A running maximum over tokens, and its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .operators import _applied


def _running_max(weight: Tensor, before: Tensor, decay: Tensor | None) -> tuple[Tensor, Tensor]:
    """Returns m_i = max(m_{i-1} + decay_i, weight_i) of all tokens, in log L rounds, and the last.

    Args:
        weight: `[B, L, ...]`.
        before: `[B, ...]`, m before the first token.
        decay: as `weight`; 0 if not given.
    """
    with torch.no_grad():
        most, size = torch.cat((before.unsqueeze(1), weight), 1), 1
        if decay is None:
            most = most.cummax(1).values
        else:
            decay = F.pad(decay, (0, 0) * (decay.ndim - 2) + (1, 0))
            while size < most.shape[1]:
                reached = torch.maximum(most[:, size:], most[:, :-size] + decay[:, size:])
                decay = torch.cat((decay[:, :size], decay[:, size:] + decay[:, :-size]), 1)
                most, size = torch.cat((most[:, :size], reached), 1), 2 * size
        return most[:, 1:].clone(), most[:, -1].clone()


def _running_max_flops(weight: Any, *_: Any, **__: Any) -> int:
    return 3 * int(math.prod(weight)) * max(int(weight[1]), 1).bit_length()


def _reaching(first: Tensor, bar: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Returns r_i = bar_i + kept_i · r_{i+1}, in log L rounds: what later tokens hand back.

    Args:
        first: `[B, ...]`, the bar before the first token.
        bar: `[B, L, ...]`.
        kept: `[B, L, ...]`, of the token before each; what is 0 takes nothing, not even NaN.
    """
    with torch.no_grad():
        total, size = torch.cat((first.unsqueeze(1), bar), 1), 1
        keep = F.pad(kept, (0, 0) * (kept.ndim - 2) + (0, 1))
        while size < total.shape[1]:
            later = torch.where(keep[:, :-size] == 0, 0, keep[:, :-size] * total[:, size:])
            total = torch.cat((total[:, :-size] + later, total[:, -size:]), 1)
            keep = torch.cat((keep[:, :-size] * keep[:, size:], keep[:, -size:]), 1)
            size *= 2
        return total[:, 0].clone(), total[:, 1:].clone()


def _reaching_flops(first: Any, bar: Any, *_: Any, **__: Any) -> int:
    return _running_max_flops(bar)


# Operators of running maxima and of their gradients, by number.
_MAXIMA: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


class _Reaching(torch.autograd.Function):
    """Sums over later tokens; the gradient sums over earlier ones."""

    generate_vmap_rule = True

    @staticmethod
    def forward(kind: int, first: Tensor, bar: Tensor, kept: Tensor) -> Any:
        return _MAXIMA[kind][1](first, bar, kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.kind = inputs[0]
        ctx.save_for_backward(inputs[3])

    @staticmethod
    def backward(ctx: Any, first: Tensor, bar: Tensor) -> tuple[Tensor | None, ...]:
        back = torch.cat((first.unsqueeze(1), bar), 1).flip(1)
        args = ctx.kind, back[:, 0], back[:, 1:], ctx.saved_tensors[0].flip(1)
        # PyTorch leaves `apply` untyped.
        ends = _Reaching.apply(*args)  # type: ignore[no-untyped-call]
        back = torch.cat((ends[0].unsqueeze(1), ends[1]), 1).flip(1)
        return None, back[:, 0], back[:, 1:], None


class _RunningMax(torch.autograd.Function):
    """A running maximum with a gradient: to the larger of the two, half to each if equal."""

    generate_vmap_rule = True

    @staticmethod
    def forward(kind: int, weight: Tensor, before: Tensor, decay: Tensor | None) -> Any:
        return _MAXIMA[kind][0](weight, before, decay)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.kind, weight, before, decay = inputs
        moved = torch.cat((before.unsqueeze(1), output[0]), 1)[:, :-1]
        moved = moved if decay is None else moved + decay
        kept = ((moved > weight).to(weight.dtype) + (moved >= weight).to(weight.dtype)) / 2
        ctx.decays = decay is not None
        ctx.save_for_backward(kept)

    @staticmethod
    def backward(ctx: Any, bar: Tensor, last_bar: Tensor) -> tuple[Tensor | None, ...]:
        (kept,) = ctx.saved_tensors
        last = last_bar.unsqueeze(1)
        bar = torch.cat((torch.zeros_like(last), bar), 1)
        bar = torch.cat((bar[:, :-1], bar[:, -1:] + last), 1)
        args = ctx.kind, bar[:, 0], bar[:, 1:], kept
        # PyTorch leaves `apply` untyped.
        before_bar, bar = _Reaching.apply(*args)  # type: ignore[no-untyped-call]
        won, lost = (torch.where(x == 0, 0, x * bar) for x in (kept, 1 - kept))
        return None, lost, before_bar, won if ctx.decays else None


def _maximum_of(run: Callable[..., Any], reach: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a running maximum with a gradient, from its operator and that of `_reaching`."""
    apply, kind = _applied(_RunningMax), len(_MAXIMA)
    _MAXIMA.append((run, reach))
    return lambda *args: apply(kind, *args)
