"""Rules of softmax, and of attention by it in any order of the keys.

Weights are e^{s - m} over their sum, with the largest score m, or, while keys come block by block,
the largest so far, which cancels. Scores that are off by t change numerators by factors between
e^{-t} and e^t, a weight p to no more than e^{2t} p, and a mean of values that lie between l and h
by no more than (h - l) tanh(t / 2): see `dsfc.bounds.means`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dsfc.rounding.arithmetic import Fresh
from dsfc.rounding.enclosure import Enclosure, computed, each, enclose, outward
from dsfc.rounding.products import product
from dsfc.rounding.units import ULPS, least, unit, wide


def _factors(score: Enclosure, seen: Tensor, rescaled: int) -> tuple[Tensor, Tensor]:
    """By how much logarithms of numerators are off, for errors of scores and for rounding.

    Args:
        score: the scores, keys last.
        seen: which keys count.
        rescaled: how often sums are rescaled, at most.
    """
    e = score.parts[2]
    inner = unit(wide(score.dtype))
    passed = torch.where(seen, e, torch.zeros_like(e)).amax(-1, keepdim=True)
    sizes = torch.where(seen, computed(score), torch.zeros_like(e)).amax(-1, keepdim=True)
    # Each e^{s - m} and each factor of a later m rounds a difference of two scores and is off
    # by some units in the last place; differences telescope, but their rounding adds up.
    each = 2 * sizes * inner + (2 * ULPS + 2) * inner
    return passed, each * (rescaled + 1)


def softmax(score: Enclosure, dim: int, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """Weights that are positive and add up to 1; a score of minus infinity counts for nothing."""
    moved = each(lambda x: x.movedim(dim, -1), score)
    a, b, _ = moved.parts
    seen, keys = b > -torch.inf, a.shape[-1]
    passed, fresh = _factors(moved, seen, 0)
    inner = unit(wide(dtype))
    sums = keys * inner / (1 - keys * inner) + 2 * inner
    top = b.masked_fill(~seen, -torch.inf).amax(-1, keepdim=True)
    # The least and the largest weight: all others as large, or as small, as they may be.
    up, down = torch.exp(b - top), torch.exp(a - top)
    up, down = (torch.where(seen, x, torch.zeros_like(x)) for x in (up, down))
    high = (up / (up + (down.sum(-1, keepdim=True) - down).clamp(min=0))).clamp(max=1)
    low = down / (down + (up.sum(-1, keepdim=True) - up).clamp(min=0))
    high, low = (torch.where(seen, x, torch.zeros_like(x)) for x in (high, low))
    low, high = outward(low, high)
    low, high = low.clamp(min=0) * (1 - 2.0**-30), high * (1 + 2.0**-30)
    # A weight is at most 1 before as after.
    error = (high * torch.expm1(2 * passed)).clamp(max=1)
    grown = high * torch.exp((2 * passed).clamp(max=600))
    local = grown * (torch.expm1(2 * fresh + 2 * sums) + 2 * unit(dtype))
    local = local + least(torch.float32) * keys + least(dtype)
    parts = (x.movedim(-1, dim) for x in (low, high, error))
    return enclose(parts, dtype), (local.clamp(max=2)).movedim(-1, dim)


def mean(
    score: Enclosure, seen: Tensor, values: Enclosure, dtype: torch.dtype
) -> tuple[Enclosure, Fresh]:
    """Σ over keys of softmax weights and values, however a kernel orders and cuts the keys."""
    keys, two = score.shape[-1], unit(dtype) if wide(dtype) != dtype else 0.0
    passed, fresh = _factors(score, seen, keys)
    inner = unit(wide(dtype))
    sums = 2 * (2 * keys + 4) * inner / (1 - (2 * keys + 4) * inner)
    weight, _ = softmax(_hidden(score, seen), -1, torch.float64)
    a, b, e = values.parts
    counted = seen.unsqueeze(-1)
    low = torch.where(counted, a.unsqueeze(-3), torch.inf).amin(-2)
    high = torch.where(counted, b.unsqueeze(-3), -torch.inf).amax(-2)
    off = torch.where(counted, e.unsqueeze(-3), 0.0).amax(-2)
    exact, _ = product(weight, values, torch.float64)
    spread = high - low
    low, high = torch.maximum(low, exact.parts[0]), torch.minimum(high, exact.parts[1])
    moved = off + spread * torch.tanh(passed / 2)
    low, high = outward(low, high)
    out = enclose((low, high, moved * (1 + 2.0**-40)), dtype)
    size = computed(out)
    largest = torch.where(counted, computed(values).unsqueeze(-3), 0.0).amax(-2)
    # Weights in two bytes are rounded once more; sums are of weights that add up to 1.
    local = spread * torch.tanh(fresh / 2) + largest * (math.expm1(sums) + 2 * two)
    return out, local + size * 2 * unit(dtype) + least(torch.float32) * keys + least(dtype)


def _hidden(score: Enclosure, seen: Tensor) -> Enclosure:
    a, b, e = score.parts
    low, high = (x.masked_fill(~seen, -math.inf) for x in (a, b))
    return Enclosure((low, high, e.masked_fill(~seen, 0.0)), score.dtype)
