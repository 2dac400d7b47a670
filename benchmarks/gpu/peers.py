"""Functions of flash-linear-attention for mixers, on arguments of their own of the same shape."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize

from benchmarks.gpu.material import Shape

Draw = Callable[..., Tensor]
"""Returns normal numbers of a size, in the precision that is timed."""


@dataclass(frozen=True)
class Peer:
    """A function of another library.

    Attributes:
        module, name: where it is.
        draws: arguments by name.
    """

    module: str
    name: str
    draws: Callable[[Shape, Draw], dict[str, Tensor]]


def _tokens(shape: Shape) -> tuple[int, int, int]:
    return shape.batch, shape.length, shape.heads


def _retention(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    return {name: drawn(*_tokens(shape), shape.width) for name in "qkv"}


def _gla(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    decay = logsigmoid(drawn(*_tokens(shape), shape.width)) / 16
    return {**_retention(shape, drawn), "g": decay}


def _rwkv6(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    made = _retention(shape, drawn)
    decay = -torch.exp(drawn(*_tokens(shape), shape.width) - 3)
    return {"r": made["q"], "k": made["k"], "v": made["v"], "w": decay} | {
        "u": drawn(shape.heads, shape.width)
    }


def _delta(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    made = _retention(shape, drawn)
    unit = {name: normalize(made[name], dim=-1) for name in "qk"}
    return {**made, **unit, "beta": drawn(*_tokens(shape)).sigmoid()}


def _gated_delta(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    return {**_delta(shape, drawn), "g": logsigmoid(drawn(*_tokens(shape)).float())}


def _kda(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    return {**_delta(shape, drawn), "g": _gla(shape, drawn)["g"].float()}


def _rwkv7(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    made = _rwkv6(shape, drawn)
    removal = normalize(drawn(*_tokens(shape), shape.width), dim=-1)
    rate = drawn(*_tokens(shape), shape.width).sigmoid()
    return {name: made[name] for name in "rwkv"} | {"a": -removal, "b": removal * rate}


def _hgrn(shape: Shape, drawn: Draw) -> dict[str, Tensor]:
    size = shape.batch, shape.length, shape.heads * shape.width
    return {"x": drawn(*size), "g": logsigmoid(drawn(*size))}


PEERS = {
    "retnet": Peer("fla.ops.retention", "chunk_retention", _retention),
    "rg_lru": Peer("fla.ops.hgrn", "chunk_hgrn", _hgrn),
    "gla": Peer("fla.ops.gla", "chunk_gla", _gla),
    "gated_deltanet": Peer("fla.ops.gated_delta_rule", "chunk_gated_delta_rule", _gated_delta),
    "kda": Peer("fla.ops.kda", "chunk_kda", _kda),
    "rwkv6": Peer("fla.ops.rwkv6", "chunk_rwkv6", _rwkv6),
    "deltanet": Peer("fla.ops.delta_rule", "chunk_delta_rule", _delta),
    "rwkv7": Peer("fla.ops.rwkv7", "chunk_rwkv7", _rwkv7),
}
"""By the mixer that a peer is timed beside, the mixers that decide most first."""


def fla_version() -> str:
    """Its version, or why it is not there."""
    for package in ("flash-linear-attention", "fla-core"):
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
    return "not installed"


def works(
    spec: str, shape: Shape, dtype: torch.dtype, device: torch.device
) -> dict[str, Callable[[], Any]]:
    """Returns the work of the peer of a mixer, `forward` and `both` ways.

    Raises:
        LookupError: there is none, or it cannot be imported.
    """
    peer = PEERS.get(spec)
    if peer is None:
        raise LookupError(f"flash-linear-attention is not asked for {spec} here")
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
