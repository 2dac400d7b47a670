"""Which specs have kernels of tokens, and how modules of two targets are run beside each other."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from emitted import NEED_ALL_TOKENS, in_c
from torch import Tensor

from dsfc.validate.surface import Sample, surface

FIRST = ("retnet", "gla", "gated_deltanet")
"""Specs of some forms with a kernel of one token: decays of heads and of keys, a delta rule."""
FORMS = [*FIRST, *(pytest.param(n, marks=pytest.mark.ci) for n in ("rwkv7", "s4d"))]
"""One of each form: also a low-rank part with a decay of keys, and a convolution."""
LENGTH = 5


def with_steps() -> tuple[str, ...]:
    """Specs that have kernels in C, and whose outputs need no tokens to come."""
    return tuple(n for n in in_c() if n not in NEED_ALL_TOKENS)


def with_kernels(first: tuple[str, ...] = FIRST) -> list[object]:
    marked = [pytest.param(n, marks=pytest.mark.ci) for n in with_steps() if n not in first]
    return [*first, *marked]


def sample_of(module: ModuleType, dtype: torch.dtype, batch: int = 2) -> Sample:
    torch.manual_seed(0)
    return surface(module).sample(LENGTH, batch=batch, dtype=dtype, state=False)


def off(got: list[Tensor], want: list[Tensor]) -> float:
    """The largest error, each relative to the largest entry of its tensor."""
    errors = [0.0]
    for x, y in zip(got, want, strict=True):
        wide = torch.complex128 if y.is_complex() else torch.float64
        size = float(y.to(wide).abs().max()) if y.numel() else 0.0
        if size > 0 and torch.isfinite(y).all():
            errors.append(float((x.to(wide) - y.to(wide)).abs().max()) / size)
    return max(errors)


def same_parameters(sample: Sample, like: Sample) -> Sample:
    sample.layer.load_state_dict(like.layer.state_dict())
    return Sample(sample.layer, {n: x.to(sample.inputs[n].dtype) for n, x in like.inputs.items()})
