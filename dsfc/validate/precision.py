"""Promises about float32 and bfloat16: as accurate as plain torch, states kept wide.

The yardstick is the module's own definition, written as plain torch and run in the low precision
with autograd; the truth is the same definition in float64 on the same (rounded) parameters.
"""

from __future__ import annotations

import copy
import dataclasses

import torch
from torch import Tensor

from dsfc.validate.compare import BrokenPromiseError, Error, agree, bar_share, errors, worst_of
from dsfc.validate.surface import Sample, Surface, ends, pull_back
from dsfc.validate.values import defined, outcome

PRECISIONS = (torch.float32, torch.bfloat16)

_LENGTH, _CHUNK = 50, 8

# A largest error hangs on one or two entries: where few draws are beyond the bar, many decide.
_DRAWS, _MANY_DRAWS = 8, 32

# With extreme inputs nothing is well conditioned; what these bounds tell apart is lost digits.
_EXTREME, _TOLD, _TIMES = 1e-9, 3e-5, 10.0

# A rounded logarithm of bfloat16 is off by 2⁻⁹ of its size, and its number by that; a lost part of
# a complex number by about 1.
_ROUNDED = 0.1


def low_precision(surface: Surface, dtypes: tuple[torch.dtype, ...] = PRECISIONS) -> str:
    """Errors are at most 2 times (gradients: 3 times) those of plain torch in the same dtype."""
    figures = []
    for dtype in dtypes:
        try:
            share = _share(surface, dtype, _DRAWS)
        except BrokenPromiseError:
            share = _share(surface, dtype, _MANY_DRAWS)
        figures.append(f"{share:.2f} in {str(dtype).removeprefix('torch.')}")
    return f"largest error, as a part of what is allowed: {', '.join(figures)}"


def _share(surface: Surface, dtype: torch.dtype, draws: int) -> float:
    """The largest error of any mode in a dtype, as a share of what is allowed.

    Raises:
        BrokenPromiseError: an error is larger than allowed.
    """
    plain: list[dict[str, Error]] = []
    got: dict[str, list[dict[str, Error]]] = {mode: [] for mode in surface.modes}
    for seed in range(draws):
        sample = surface.sample(_LENGTH, dtype=dtype, state=False, seed=seed)
        truth = defined(surface, _widened(sample))
        # Plain torch stores all its parameters in the dtype; what that rounds is not granted.
        rounded = _rounded(sample, dtype)
        theirs = truth if rounded is sample else defined(surface, _widened(rounded))
        plain.append(errors(defined(surface, rounded, dtype=dtype), theirs))
        for mode, outputs in got.items():
            outputs.append(errors(outcome(surface, sample, mode, _CHUNK, output_only=True), truth))
    return max(
        bar_share(outputs, plain, dtype, f"{mode}, {dtype}") for mode, outputs in got.items()
    )


def extremes(surface: Surface) -> str:
    """Inputs that shut gates or forget everything: right wherever float32 has room for them."""
    worst, narrow, own, count = 0.0, 0.0, 0.0, 0
    for scale in (0.0, 4.0, 16.0, 64.0, 512.0):
        sample = surface.sample(_LENGTH, dtype=torch.float32, state=False)
        scaled = {k: v if k in surface.unit else scale * v for k, v in sample.inputs.items()}
        sample = dataclasses.replace(sample, inputs=scaled)
        plain = defined(surface, sample, dtype=torch.float32)
        if not all(bool(torch.isfinite(x).all()) for x in plain.values()):
            continue
        count += 1
        wide = _widened(sample)
        truth = defined(surface, wide)
        theirs = max(_relative(plain, truth).values())
        own, allowed = max(own, theirs), max(_TOLD, _TIMES * theirs)
        for mode in surface.modes:
            where = f"{mode}, inputs times {scale:g}"
            got = outcome(surface, wide, mode, _CHUNK, output_only=True)
            worst = max(worst, agree(got, truth, _EXTREME, where))
            got = outcome(surface, sample, mode, _CHUNK, output_only=True)
            narrow = max(narrow, agree(got, truth, allowed, f"{where}, float32"))
    return (
        f"inputs of {count} scales; {worst_of(worst)} in float64, and in float32 {narrow:.1e}, "
        f"where the definition itself in float32 errs by {own:.1e}"
    )


def _relative(got: dict[str, Tensor], truth: dict[str, Tensor]) -> dict[str, float]:
    relative = errors(got, truth)
    return {k: e.size / e.scale if e.scale else e.size for k, e in relative.items()}


def _widened(sample: Sample) -> Sample:
    """The same numbers in float64."""
    return dataclasses.replace(
        sample,
        layer=copy.deepcopy(sample.layer).double(),
        inputs={k: v.double() for k, v in sample.inputs.items()},
    )


def _rounded(sample: Sample, dtype: torch.dtype) -> Sample:
    """The same with all parameters rounded to a dtype, or the sample if they are of that dtype."""
    if all(p.dtype == dtype for p in sample.layer.parameters()):
        return sample
    layer = copy.deepcopy(sample.layer)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(p.to(dtype))
    return dataclasses.replace(sample, layer=layer)


def wide_sums(surface: Surface) -> str:
    """Sums over time are kept in float32 at least: in bfloat16 all modes end in one state."""
    worst = 0.0
    for seed in range(_DRAWS):
        sample = surface.sample(_LENGTH, dtype=torch.bfloat16, seed=seed)
        want = _last(surface, sample, "recurrent")
        for mode in surface.modes:
            got = _last(surface, sample, mode)
            # What is rounded on its way into a state may be rounded the other way, rarely.
            worst = max(worst, agree(got, want, torch.finfo(torch.bfloat16).eps / 4, mode))
    return worst_of(worst)


def _last(surface: Surface, sample: Sample, mode: str) -> dict[str, Tensor]:
    with torch.no_grad():
        how = {"mode": mode, "chunk": _CHUNK, **surface.carried}
        _, state = ends(sample.layer(**sample.inputs, state=sample.state, **how))
    return surface.tensors(state)


def dtypes(surface: Surface) -> str:
    """Outputs have the dtype of the inputs; states and gradients that of what they belong to."""
    _casts(surface)
    for dtype in (torch.float64, *PRECISIONS, torch.float16):
        sample = surface.sample(5, dtype=dtype)
        inputs = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
        y, after = ends(sample.layer(**inputs, state=sample.state, **surface.carried))
        if y.dtype != dtype:
            raise BrokenPromiseError(f"inputs of {dtype} give y of {y.dtype}")
        for name, x in surface.tensors(after).items():
            before = getattr(sample.state, name)
            fresh = getattr(sample.layer.initial_state(2, dtype=dtype), name)
            if not x.dtype == before.dtype == fresh.dtype:
                raise BrokenPromiseError(f"state {name} goes from {before.dtype} to {x.dtype}")
        pull_back(y.sum())
        for name, x in [*inputs.items(), *sample.layer.named_parameters()]:
            if x.grad is not None and x.grad.dtype != x.dtype:
                raise BrokenPromiseError(f"the gradient of {name} is {x.grad.dtype}")
    return ""


def _casts(surface: Surface) -> None:
    """Checks that a layer cast after it was made keeps its numbers, complex ones both parts."""
    sample = surface.sample(5, state=False)
    whole = surface.values(sample)
    for dtype in (*PRECISIONS, torch.float16):
        layer = copy.deepcopy(sample.layer).to(dtype)
        inputs = {k: v.to(dtype) for k, v in sample.inputs.items()}
        cast = surface.values(Sample(layer, inputs))
        for name, x in cast.items():
            if x.is_complex() != whole[name].is_complex():
                raise BrokenPromiseError(f"in a layer cast to {dtype} {name} is {x.dtype}")
        agree(cast, whole, _ROUNDED, f"in a layer cast to {dtype}")


def autocast(surface: Surface) -> str:
    """Under autocast y is bfloat16, states stay wide, gradients float32, and nothing is NaN."""
    sample = surface.sample(20, dtype=torch.float32, state=False)
    want = _autocast_free(sample)
    inputs = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
    with torch.autocast("cpu", torch.bfloat16):
        y, after = ends(sample.layer(**inputs, **surface.carried))
        pull_back(y.sum())
        again = {k: v.detach().bfloat16() for k, v in inputs.items()}
        sample.layer(**again, state=after)
    if y.dtype != torch.bfloat16:
        raise BrokenPromiseError(f"autocast to bfloat16 gives y of {y.dtype}")
    least = surface.tensors(sample.layer.initial_state(1, dtype=torch.bfloat16))
    for name, x in surface.tensors(after).items():
        if torch.promote_types(x.dtype, least[name].dtype) != x.dtype:
            raise BrokenPromiseError(f"state {name} is kept in {x.dtype}, not {least[name].dtype}")
    off = (y.double() - want).abs().max().item() / max(want.abs().max().item(), 1e-30)
    if not off < 0.1:
        raise BrokenPromiseError(f"y is off by {off:.1e} under autocast")
    return f"y differs from y without autocast by {off:.1%} of its largest entry"


def _autocast_free(sample: Sample) -> Tensor:
    with torch.no_grad():
        y: Tensor = sample.layer(**sample.inputs)
    return y.double()
