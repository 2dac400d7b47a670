"""What flash-linear-attention has for a form of scan, on arguments of its own of the same shape."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.material import Shape
from dsfc.plan.scan_ir import Form


@dataclass(frozen=True)
class Peer:
    """A function of another library.

    Attributes:
        module, name: where it is.
        draws: arguments by name.
    """

    module: str
    name: str
    draws: Callable[[Shape, Callable[..., Tensor]], dict[str, Tensor]]


def _scalar(shape: Shape, drawn: Callable[..., Tensor]) -> dict[str, Tensor]:
    lead = shape.batch, shape.length, shape.heads
    q, k, v = (drawn(*lead, shape.width) for _ in range(3))
    return {"q": q, "k": k, "v": v, "g": torch.nn.functional.logsigmoid(drawn(*lead).float())}


def _elementwise(shape: Shape, drawn: Callable[..., Tensor]) -> dict[str, Tensor]:
    size = shape.batch, shape.length, shape.heads * shape.width
    return {"x": drawn(*size), "g": torch.nn.functional.logsigmoid(drawn(*size))}


PEERS = {
    Form.MATRIX: Peer("fla.ops.simple_gla", "chunk_simple_gla", _scalar),
    Form.ELEMENTWISE: Peer("fla.ops.hgrn", "chunk_hgrn", _elementwise),
}


def fla_version() -> str:
    """Its version, or why it is not there."""
    for package in ("flash-linear-attention", "fla-core"):
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
    return "not installed"


def works(
    form: Form, shape: Shape, dtype: torch.dtype, device: torch.device
) -> dict[str, Callable[[], Any]]:
    """Returns the work of a peer, `forward` and `both` ways.

    Raises:
        LookupError: there is none, or it cannot be imported.
    """
    peer = PEERS.get(form)
    if peer is None:
        raise LookupError(f"flash-linear-attention has nothing for {form.value} here")
    if device.type != "cuda":
        raise LookupError("flash-linear-attention needs a GPU")
    try:
        call = getattr(importlib.import_module(peer.module), peer.name)
    except Exception as error:  # what is missing of it, or of its own libraries, has many types
        raise LookupError(f"{peer.module}: {error}") from error
    given = peer.draws(shape, lambda *size: torch.randn(size, dtype=dtype, device=device))
    leaves = {n: x.detach().requires_grad_() for n, x in given.items()}
    cotangent = torch.ones_like(call(**given)[0])

    def forward() -> object:
        with torch.no_grad():
            return call(**given)

    def both() -> object:
        return torch.autograd.grad(call(**leaves)[0], list(leaves.values()), cotangent)

    return {"forward": forward, "both": both}
