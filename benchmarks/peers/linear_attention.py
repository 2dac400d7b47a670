"""Linear attention with decay: the plain PyTorch forms that flash-linear-attention ships.

Its kernels need a GPU, and importing the package needs Triton. Each plain form is a file of its own
that needs torch and einops only, so that file of the installed package is loaded by itself.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from functools import cache
from importlib.metadata import distribution
from types import ModuleType

from torch import Tensor

from benchmarks.contender import Contender, Tensors

_SOURCE = "fla-core (flash-linear-attention), MIT"


@cache
def _naive(op: str) -> ModuleType:
    """Returns `fla/ops/<op>/naive.py` of the installed fla-core, loaded by itself."""
    path = distribution("fla-core").locate_file(f"fla/ops/{op}/naive.py")
    spec = importlib.util.spec_from_file_location(f"fla_naive_{op}", str(path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _chunk_simple_gla(x: Tensors) -> Tensor:
    y: Tensor = _naive("simple_gla").naive_chunk_simple_gla(x["q"], x["k"], x["v"], x["g"])[0]
    return y


def _recurrent_gla(x: Tensors) -> Tensor:
    y: Tensor = _naive("gla").naive_recurrent_gla(x["q"], x["k"], x["v"], x["g"])[0]
    return y


def _chunk_gated_delta(x: Tensors) -> Tensor:
    y: Tensor = _naive("gated_delta_rule").naive_chunk_gated_delta_rule(
        x["q"], x["k"], x["v"], x["g"], x["beta"]
    )[0]
    return y


def _chunk_kda(x: Tensors) -> Tensor:
    chunk = math.gcd(64, x["q"].shape[1])  # it takes whole chunks alone
    y: Tensor = _naive("kda").naive_chunk_kda(
        x["q"], x["k"], x["v"], x["g"], x["beta"], chunk_size=chunk
    )[0]
    return y


CHUNK_SIMPLE_GLA = Contender(
    "naive_chunk_simple_gla", f"{_SOURCE}: a loop over chunks of 64 tokens", _chunk_simple_gla
)
RECURRENT_GLA = Contender("naive_recurrent_gla", f"{_SOURCE}: a loop over tokens", _recurrent_gla)
CHUNK_GATED_DELTA = Contender(
    "naive_chunk_gated_delta_rule",
    f"{_SOURCE}: a loop over chunks of 64 tokens",
    _chunk_gated_delta,
)
CHUNK_KDA = Contender("naive_chunk_kda", f"{_SOURCE}: a loop over chunks of 64 tokens", _chunk_kda)
