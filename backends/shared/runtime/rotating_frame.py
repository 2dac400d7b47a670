"""Complex scans in a rotating frame: one real scan of both planes of the state.

With Φ_i = Σ_{l≤i} φ_l, the sum of the phases of λ, the state is S_i = exp(i Φ_i) R_i, where

    R_i = |λ_i| R_{i-1} + (exp(-i Φ_i) key_i) ⊗ value_i    out_i = Re Σ_keys (exp(i Φ_i) read_i) R_i

Values are real, and of outputs the real part is read, so both planes of R are keys of one real
scan, one plane behind the other. Modules hold this where a scan has kernels for that.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .operators import _Tensors

_RealScan = Callable[..., _Tensors | None]
"""Starts kernels of the real scan, of what an operator takes; it returns nothing if none runs."""


def _planes_along(dim: int, x: Tensor) -> Tensor:
    """Both planes of a complex array, one behind the other along an axis."""
    return torch.cat((x.real, x.imag), dim)


def _from_planes_along(dim: int, x: Tensor) -> Tensor:
    """The complex array of such planes."""
    return torch.complex(*x.chunk(2, dim))


def _i_times_planes_along(dim: int, x: Tensor) -> Tensor:
    """Such planes of i times the array."""
    re, im = x.chunk(2, dim)
    return torch.cat((-im, re), dim)


def _turned(g: Tensor) -> Tensor:
    """exp(i Φ) at each token of log λ: `[B, L, h, n]`, or `[B, L, h, 1]` for one λ a head.

    A product of rotations in double precision: a sum of phases rounds the more, the larger it is.
    """
    phase = (g if g.ndim == 4 else g.unsqueeze(-1)).imag.double()
    return torch.polar(torch.ones_like(phase), phase).cumprod(1).to(g.dtype)


def _operands_in_frame(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, S: Tensor
) -> tuple[Tensor, Tensor, _Tensors]:
    """Returns exp(i Φ) of tokens, that of states after the last one, and the real scan's tensors.

    Args:
        q: `[B, L, h, n]`, or `[B, L, n]` where all heads have the same.
        k: like q.
        v: `[B, L, h, p]`, with imaginary parts that are 0.
        g: log λ, `[B, L, h, n]` or `[B, L, h]`.
        S: `[B, h, n, p]`.
    """
    turned = _turned(g)
    q, k = (x.unsqueeze(2) if x.ndim == 3 else x for x in (q, k))
    # The real part of a product is that of real planes less that of imaginary ones.
    read = _planes_along(-1, (turned * q).conj())
    key = _planes_along(-1, turned.conj() * k)
    sizes = torch.cat((g.real, g.real), -1) if g.ndim == 4 else g.real.contiguous()
    last = turned[:, -1:].prod(1).unsqueeze(-1)  # 1 where there is no token
    return turned, last, (read, key, v.real.contiguous(), sizes, _planes_along(-2, S))


def _run_in_frame(run: _RealScan, *tensors: Tensor) -> _Tensors | None:
    """Returns outputs, with imaginary parts that are 0, and the last state of a complex scan.

    Args:
        run: the real scan.
        tensors: of the complex one, as in `_operands_in_frame`.
    """
    _, last, operands = _operands_in_frame(*tensors)
    outs = run(*operands)
    if outs is None:
        return None
    o, R = outs
    return torch.complex(o, torch.zeros_like(o)), last * _from_planes_along(-2, R)


def _pull_in_frame(run: _RealScan, *tensors: Tensor) -> _Tensors | None:
    """Returns the gradients of what `_run_in_frame` takes.

    In the loss, a phase stands wherever something passes over its token, as log |λ| does, but times
    i. So its gradient is that of log |λ| of the same scan driven by i times its keys, from i times
    its state: the gradient runs once more. The sum over time of what each rotation gives would be
    the same number, with the rounding errors of all tokens behind, those behind a λ of 0 too.

    Args:
        run: the gradient of the real scan.
        tensors: of the complex one, as in `_operands_in_frame`, and both cotangents.
    """
    *inputs, do, dS = tensors
    turned, last, (q, k, v, g, R) = _operands_in_frame(*inputs)
    bars = do.real.contiguous(), _planes_along(-2, last.conj() * dS)
    outs = run(q, k, v, g, R, *bars)
    across = run(q, _i_times_planes_along(-1, k), v, g, _i_times_planes_along(-2, R), *bars)
    if outs is None or across is None:
        return None
    dq, dk, dv, dg, dR = outs
    of_sizes, of_phases = dg, across[3]
    if g.ndim == 4:
        of_sizes, of_phases = (x.unflatten(-1, (2, -1)).sum(-2) for x in (of_sizes, of_phases))
    dq = torch.conj_physical(turned * _from_planes_along(-1, dq))
    dk = turned * _from_planes_along(-1, dk)
    if inputs[0].ndim == 3:
        dq, dk = dq.sum(2), dk.sum(2)
    dv = torch.complex(dv, torch.zeros_like(dv))
    return dq, dk, dv, torch.complex(of_sizes, of_phases), _from_planes_along(-2, dR)
