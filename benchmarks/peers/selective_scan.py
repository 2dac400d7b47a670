"""The selective scan: mamba.py's parallel one, and the reference of Mamba's repository."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from benchmarks.contender import Contender, Tensors


@cache
def _block() -> Any:  # noqa: ANN401 - the package has no types
    from mambapy.mamba import MambaBlock

    return MambaBlock


def _pscan(x: Tensors) -> Tensor:
    """`MambaBlock.selective_scan`, which reads nothing of the block."""
    arguments = x["u"], x["delta"], -x["rate"], x["b"], x["c"], x["D"]
    y: Tensor = _block().selective_scan(None, *arguments)
    return y


def reference(x: Tensors) -> Tensor:
    """The selective scan as Mamba's `selective_scan_ref` goes about it, for real A and no gate.

    Every decay and every drive is made first, `[B, d, L, N]` each; then a loop over tokens takes
    its slice of them by index. The gradient of an index is a whole tensor of zeros, so training
    takes time in L². That is how the reference is, and part of what is shown.

    Args:
        x: `u` and `delta` `[B, d, L]`, `rate` `[d, N]` = -A, `b` and `c` `[B, N, L]`, `D` `[d]`.

    Returns:
        y: `[B, d, L]`.
    """
    u, delta, b, c = x["u"], x["delta"], x["b"], x["c"]
    decay = torch.einsum("bdl,dn->bdln", delta, -x["rate"]).exp()
    drive = torch.einsum("bdl,bnl,bdl->bdln", delta, b, u)
    S = torch.zeros_like(decay[:, :, 0])
    rows = []
    for i in range(u.shape[-1]):
        S = decay[:, :, i] * S + drive[:, :, i]
        rows.append(torch.einsum("bdn,bn->bd", S, c[:, :, i]))
    return torch.stack(rows, -1) + u * x["D"][:, None]


PSCAN = Contender("mambapy pscan", "mambapy, MIT: MambaBlock.selective_scan", _pscan)
REFERENCE = Contender(
    "selective_scan_ref",
    "written after selective_scan_ref of state-spaces/mamba (Apache-2.0), whose package needs CUDA",
    reference,
    time_last=frozenset({"u", "delta", "b", "c", "y"}),
    context=True,
)
