"""The work of each class: which tensors it is given, and how an emitted module does it.

Sizes are called by the letters of the classes' formulas: B batch, L length, H heads, K and V key
and value width, d channels, N states per channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from benchmarks import emitted
from benchmarks.contender import Run, Tensors
from benchmarks.peers.convolution import s4d_kernel

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Workload:
    """What is computed.

    Attributes:
        formula: the output in terms of the arguments, for a reader.
        draw: the arguments in float32, from the module, the sizes and a source of randomness.
        ours: how a module computes it, from the module, the sizes and a mode.
        for_peers: drawn tensors that only a peer takes.
    """

    formula: str
    draw: Callable[[ModuleType, Sizes, Generator], dict[str, Tensor]]
    ours: Callable[[ModuleType, Sizes, str], Run]
    for_peers: frozenset[str] = frozenset()


def _normal(generator: Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator)


# --- matrix states: scalar and per-key decay ------------------------------------------------------
def _draw_scalar(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    B, L, H, K, V = (sizes[name] for name in "BLHKV")
    return {
        "q": _normal(generator, B, L, H, K),
        "k": _normal(generator, B, L, H, K) * K**-0.5,
        "v": _normal(generator, B, L, H, V),
        "g": F.logsigmoid(_normal(generator, B, L, H)) / 16,
    }


def _draw_per_key(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    B, L, H, K = (sizes[name] for name in "BLHK")
    tensors = _draw_scalar(module, sizes, generator)
    return tensors | {"g": F.logsigmoid(_normal(generator, B, L, H, K)) / 16}


def _matrix_state(module: ModuleType, sizes: Sizes, mode: str) -> Run:
    recurrence = emitted.recurrence(module, mode)
    H, K, V = (sizes[name] for name in "HKV")

    def run(x: Tensors) -> Tensor:
        S = x["q"].new_zeros(len(x["q"]), H, K, V)
        read = recurrence(q=x["q"], k=x["k"], v=x["v"], g=x["g"], S=S)
        return read / math.sqrt(K)

    return run


SCALAR = Workload(
    "S_i = exp(g_i) S_{i-1} + k_i ⊗ v_i,  y_i = K^(-1/2) q_i · S_i;  g one number per head",
    _draw_scalar,
    _matrix_state,
)
PER_KEY = Workload(
    "S_i = exp(g_i) S_{i-1} + k_i ⊗ v_i,  y_i = K^(-1/2) q_i · S_i;  g one number per head and key",
    _draw_per_key,
    _matrix_state,
)


# --- one token of a matrix state ------------------------------------------------------------------
def _draw_token(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    B, H, K, V = (sizes[name] for name in "BHKV")
    return _draw_scalar(module, {**sizes, "L": 1}, generator) | {
        "S": _normal(generator, B, H, K, V)
    }


def _token(module: ModuleType, sizes: Sizes, mode: str) -> Run:
    recurrence = emitted.recurrence(module, "recurrent")
    scale = sizes["K"] ** -0.5
    return lambda x: recurrence(**x) * scale


def _draw_step(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    B, H, d = (sizes[name] for name in "BHd")
    torch.manual_seed(generator.initial_seed())
    layer = emitted.layer(module, d=d, h=H)
    stored = {name: x.detach() for name, x in layer.state_dict().items()}
    return {"u": _normal(generator, B, d), **stored, "S": _normal(generator, B, H, d // H, d // H)}


def _step(module: ModuleType, sizes: Sizes, mode: str) -> Run:
    layer: Any = emitted.layer(module, d=sizes["d"], h=sizes["H"])
    tables = layer._parameters, layer._buffers

    def run(x: Tensors) -> Tensor:
        # `functional_call` would take longer than the step.
        if x["W_Q"] is not layer.W_Q:
            for table in tables:
                table.update({name: x[name] for name in table})
        y: Tensor = layer.step(x["u"], module.State(S=x["S"]))[0]
        return y

    return run


TOKEN = Workload(
    "S_i = exp(g_i) S_{i-1} + k_i ⊗ v_i,  y_i = K^(-1/2) q_i · S_i;  of one token i",
    _draw_token,
    _token,
)
STEP = Workload(
    "S_i = γ S_{i-1} + (W_K u_i) ⊗ (W_V u_i),  y_i = K^(-1/2) (W_Q u_i) · S_i;  of one token i",
    _draw_step,
    _step,
)


# --- matrix states that each token rewrites: the gated delta rule ---------------------------------
def _draw_delta(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    tensors = _draw_scalar(module, sizes, generator)
    k = F.normalize(tensors["k"], dim=-1)
    return tensors | {"k": k, "beta": torch.sigmoid(_normal(generator, *k.shape[:3]))}


def _draw_keyed_delta(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    tensors = _draw_delta(module, sizes, generator)
    return tensors | {"g": F.logsigmoid(_normal(generator, *tensors["k"].shape)) / 16}


def _delta(module: ModuleType, sizes: Sizes, mode: str) -> Run:
    recurrence = emitted.recurrence(module, mode)
    H, K, V = (sizes[name] for name in "HKV")

    def run(x: Tensors) -> Tensor:
        S = x["q"].new_zeros(len(x["q"]), H, K, V)
        # F + k ⊗ (β v - β kᵀ F), F = exp(g) S
        value = x["beta"][..., None] * x["v"]
        read = recurrence(q=x["q"], k=x["k"], v=value, r=-x["beta"], g=x["g"], S=S)
        return read / math.sqrt(K)

    return run


DELTA = Workload(
    "S_i = exp(g_i) (1 - β_i k_i k_iᵀ) S_{i-1} + β_i k_i ⊗ v_i,  y_i = K^(-1/2) q_i · S_i",
    _draw_delta,
    _delta,
)
KEYED_DELTA = Workload(
    "F = exp(g_i) S_{i-1},  S_i = F + β_i k_i ⊗ (v_i - k_i · F),  y_i = K^(-1/2) q_i · S_i;  "
    "g one number per head and key",
    _draw_keyed_delta,
    _delta,
)


# --- one number per channel -----------------------------------------------------------------------
def _draw_elementwise(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    shape = tuple(sizes[name] for name in "BLd")
    return {
        "v": _normal(generator, *shape),
        "g": F.logsigmoid(2 + _normal(generator, *shape)),
    }


def _elementwise(module: ModuleType, sizes: Sizes, mode: str) -> Run:
    recurrence = emitted.recurrence(module, mode)

    def run(x: Tensors) -> Tensor:
        return recurrence(v=x["v"], g=x["g"], S=torch.zeros_like(x["v"][:, 0]))

    return run


ELEMENTWISE = Workload("y_i = exp(g_i) y_{i-1} + v_i", _draw_elementwise, _elementwise)


# --- N states per channel, which share keys and queries -------------------------------------------
def _draw_selective(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    B, L, d, N = (sizes[name] for name in "BLdN")
    return {
        "u": _normal(generator, B, L, d),
        "delta": F.softplus(_normal(generator, B, L, d) - 4),
        "rate": torch.arange(1.0, N + 1).expand(d, N).clone(),
        "b": _normal(generator, B, L, N),
        "c": _normal(generator, B, L, N),
        "D": _normal(generator, d),
    }


def _selective(module: ModuleType, sizes: Sizes, mode: str) -> Run:
    recurrence = emitted.recurrence(module, mode)
    d, N = sizes["d"], sizes["N"]

    def run(x: Tensors) -> Tensor:
        batch = len(x["u"])
        read = recurrence(
            q=x["c"],
            k=x["b"],
            v=x["delta"] * x["u"],
            g1=x["delta"],
            g2=x["rate"].expand(batch, d, N),
            S=x["u"].new_zeros(batch, d, N),
        )
        return read + x["D"] * x["u"]

    return run


SELECTIVE = Workload(
    "S_i = exp(-delta_i rate) S_{i-1} + (delta_i u_i) ⊗ b_i,  y_i = S_i c_i + D u_i",
    _draw_selective,
    _selective,
)


# --- time-invariant -------------------------------------------------------------------------------
def _draw_s4d(module: ModuleType, sizes: Sizes, generator: Generator) -> dict[str, Tensor]:
    B, L, d, N = (sizes[name] for name in "BLdN")
    torch.manual_seed(generator.initial_seed())
    layer = emitted.layer(module, d=d, n=N)
    parameters = {name: x.detach() for name, x in layer.named_parameters()}
    with torch.no_grad():
        kernel = s4d_kernel({k: x.to(_wide(x)) for k, x in parameters.items()}, L).float()
    return {"u": _normal(generator, B, L, d), **parameters, "kernel": kernel}


def _wide(x: Tensor) -> torch.dtype:
    return torch.complex128 if x.is_complex() else torch.float64


def _s4d(module: ModuleType, sizes: Sizes, mode: str) -> Run:
    layer = emitted.layer(module, d=sizes["d"], n=sizes["N"])
    names = tuple(name for name, _ in layer.named_parameters())

    def run(x: Tensors) -> Tensor:
        parameters = {name: x[name] for name in names}
        y: Tensor = torch.func.functional_call(layer, parameters, (x["u"],), {"mode": mode})
        return y

    return run


S4D = Workload(
    "y = Re(K * u) + D u, K the kernel of S4D by zero-order hold, from its parameters",
    _draw_s4d,
    _s4d,
    for_peers=frozenset({"kernel"}),
)
