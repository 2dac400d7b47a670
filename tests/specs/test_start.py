"""Parameters of emitted modules start as the papers and their programs say.

Each row is a function of the values that a module draws, and the law that it has: a distribution
over a range, or the values themselves. Distributions are compared by the largest difference of
their distribution functions (Kolmogorov and Smirnov).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dsfc.validate.surface import Sample, surface

LEVEL = 1.95
"""Of K and S: √N times their difference exceeds it once in a thousand draws; the seed is fixed."""

Values = dict[str, Tensor]


class Law(NamedTuple):
    """A distribution: its distribution function, and where all of it lies."""

    cdf: Callable[[Tensor], Tensor]
    low: float = -math.inf
    high: float = math.inf


class Row(NamedTuple):
    """What one spec draws.

    Attributes:
        spec: its name.
        value: of what is drawn.
        law: of it, or the values, from those of the same draw.
    """

    spec: str
    value: Callable[[Values], Tensor]
    law: Law | Callable[[Values], Tensor]


def uniform(a: float, b: float) -> Law:
    return Law(lambda x: (x - a) / (b - a), a, b)


def log_uniform(a: float, b: float) -> Law:
    return Law(lambda x: (x / a).log() / math.log(b / a), a, b)


def normal(std: float, mean: float = 0.0) -> Law:
    return Law(lambda x: torch.special.ndtr((x - mean) / std))


def count(x: Tensor) -> Tensor:
    """0, 1, 2, … along the last axis."""
    return torch.arange(x.shape[-1], dtype=torch.float64).expand(x.shape)


def place(x: Tensor) -> Tensor:
    """0, …, 1 over all entries in order: n / (d - 1) of channel n."""
    return torch.linspace(0, 1, x.numel(), dtype=torch.float64).reshape(x.shape)


def zigzag(x: Tensor) -> Tensor:
    """0, 1, -1, 0, … over all entries in order: RWKV's ((n + 1) mod 3) - 1."""
    return ((torch.arange(x.numel()) + 1) % 3 - 1).double().reshape(x.shape)


def legs_slope(omega: Tensor) -> Tensor:
    """d/dω Σ_k atan(ω / (k + 1/2)), of N terms."""
    a = count(omega) + 0.5
    return (a / (a**2 + omega[:, None] ** 2)).sum(1)


STEP = log_uniform(1e-3, 1e-1)
"""Of Δ, in all state space models: the step of their discretisation."""

N, D, H = 32, 128, 8
"""Sizes of the axes n (and m, r), d and h."""

ROWS = (
    # S4 and its relatives: Δ, B, C, D of the authors' program, A = -1/2 + iπn (S4D-Lin); that of S4
    # is HiPPO-LegS, whose every value is known from ω (tests/expr/test_distributions.py).
    Row("s4d", lambda v: v["log_Delta"].exp(), STEP),
    Row("s4d", lambda v: -v["a"].exp(), lambda v: torch.full_like(v["a"], -0.5)),
    Row("s4d", lambda v: v["omega"], lambda v: math.pi * count(v["omega"])),
    Row("s4d", lambda v: v["B"].real, lambda v: torch.ones(D, N)),
    Row("s4d", lambda v: v["C"].imag, normal(0.5**0.5)),
    Row("s4", lambda v: v["log_Delta"].exp(), STEP),
    Row("s4", lambda v: -v["a"].exp(), lambda v: torch.full_like(v["a"], -0.5)),
    Row(
        "s4",
        lambda v: torch.atan(v["omega"][:, None] / (count(v["a"]) + 0.5)).sum(1),
        lambda v: math.pi * (count(v["a"]) + 0.5 - N / 2),
    ),
    Row("s4", lambda v: v["P"], lambda v: legs_slope(v["omega"]) ** -0.5),
    Row("s4", lambda v: v["B"], lambda v: (legs_slope(v["omega"]) / 2) ** -0.5),
    Row("dss_exp", lambda v: v["log_Delta"].exp(), STEP),
    Row("dss_exp", lambda v: v["omega"], lambda v: math.pi * count(v["omega"])),
    Row("dss_exp", lambda v: v["W"].real, normal(0.5**0.5)),
    # H3: exp(a) is S4D's Δ / 2.
    Row("h3", lambda v: 2 * v["a"].exp(), STEP),
    # LRU: |λ|² uniform on [0, 1], the phase on [0, 6.28], γ from |λ|.
    Row("lru", lambda v: (-2 * v["nu"].exp()).exp(), uniform(0, 1)),
    Row("lru", lambda v: v["theta"].exp(), uniform(0, 6.28)),
    Row(
        "lru",
        lambda v: v["gamma"],
        lambda v: torch.log(-torch.expm1(-2 * v["nu"].exp())) / 2,
    ),
    Row("lru", lambda v: v["B"].real, normal((2 * D) ** -0.5)),
    Row("lru", lambda v: v["C"].imag, normal(N**-0.5)),
    # DLR: |λ| = exp(-e^r / 2), r uniform on [log 0.0005, log 0.5]; the circle in equal steps.
    Row("dlr", lambda v: 2 * v["a"] ** 2, log_uniform(0.0005, 0.5)),
    Row("dlr", lambda v: v["b"], lambda v: 2 * math.pi * count(v["b"]) / N),
    Row("dlr", lambda v: v["w"].real, normal(1 / N)),
    Row("dlr_bidirectional", lambda v: 2 * v["a2"] ** 2, log_uniform(0.0005, 0.5)),
    # Mega: N(0, 0.2²) before the sigmoids, β = ±1 in turn, with noise.
    Row("mega_ema", lambda v: v["delta"], normal(0.2)),
    Row("mega_ema", lambda v: v["alpha"], normal(0.2)),
    Row("mega_ema", lambda v: v["beta"] * (1 - 2 * (count(v["beta"]) % 2)), normal(0.02, 1)),
    # Mamba, Mamba-2 and what took their gate.
    Row("s6", lambda v: F.softplus(v["b_Delta"]), STEP),
    Row("s6", lambda v: v["a"].exp(), lambda v: count(v["a"]) + 1),
    Row("s6", lambda v: v["W_Delta"], uniform(-((D // 16) ** -0.5), (D // 16) ** -0.5)),
    Row("s6", lambda v: v["D"], lambda v: torch.ones(D)),
    Row("ssd", lambda v: v["D"], lambda v: torch.ones(H)),
    Row("ssd", lambda v: F.softplus(v["b_Delta"]), STEP),
    Row("ssd", lambda v: v["a"], uniform(1, 16)),
    Row("gated_deltanet", lambda v: F.softplus(v["b_alpha"]), STEP),
    Row("gated_deltanet", lambda v: v["a"], uniform(0, 16)),
    # Griffin: exp(-softplus) uniform by area on the ring [0.9, 0.999].
    Row("rg_lru", lambda v: (-2 * F.softplus(v["zeta"])).exp(), uniform(0.9**2, 0.999**2)),
    # RWKV in its first layer, whose ratio ℓ of the layers is 0; channels counted over all heads.
    Row("rwkv4", lambda v: v["omega"], lambda v: -5 + 8 * place(v["omega"]) ** 0.7),
    Row("rwkv4", lambda v: v["bonus"], lambda v: math.log(0.3) + zigzag(v["bonus"]) / 2),
    Row("rwkv5", lambda v: v["w_0"], lambda v: -6 + 5 * place(v["w_0"]) ** 0.7),
    Row("rwkv6", lambda v: v["w_0"], lambda v: -6 + 5 * place(v["w_0"]) ** 0.7),
    Row("rwkv6", lambda v: v["bonus"], lambda v: zigzag(v["bonus"]) / 10),
    Row("rwkv6", lambda v: v["W_1"], lambda v: torch.zeros_like(v["W_1"])),
    Row("rwkv6", lambda v: v["W_2"], uniform(-0.01, 0.01)),
    Row("lnssm", lambda v: v["omega"], lambda v: -6 + 5 * place(v["omega"]) ** 0.7),
    # Constant decays, and biases of forget gates.
    Row("retnet", lambda v: v["gamma"], lambda v: 1 - 2 ** (-5 - count(v["gamma"]))),
    Row("mlstm", lambda v: v["b_f"], lambda v: 3 + 3 * place(v["b_f"])),
    Row("hgrn2", lambda v: v["lb"], lambda v: torch.zeros(())),
    Row("normalized_attn", lambda v: v["b_eta"], lambda v: torch.zeros(H)),
    Row("normalized_attn", lambda v: v["w_eta"], normal(0.02)),
    Row("normalized_attn", lambda v: v["W_Q"], normal(0.02)),
    Row("short_convolution", lambda v: v["w"], uniform(-0.5, 0.5)),
)

LATE = ("dlr_bidirectional", "lnssm", "gated_deltanet", "mega_ema", "dss_exp", "s4", "h3")
"""Left to the ci tier: rows alike stand in others."""


def _rows() -> list[object]:
    names = dict.fromkeys(row.spec for row in ROWS)
    return [pytest.param(n, marks=[pytest.mark.ci] * (n in LATE), id=n) for n in names]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", _rows())
def test_parameters_start_as_published(name: str, load: Callable[[str], ModuleType]) -> None:
    drawn = _drawn(load(name))
    for k, row in enumerate(r for r in ROWS if r.spec == name):
        value = row.value(drawn)
        if isinstance(row.law, Law):
            distance, outside = _apart(value, row.law)
            assert outside == 0, f"row {k}: {outside} of {value.numel()} outside"
            assert distance < LEVEL / value.numel() ** 0.5, f"row {k}: {distance:.3f}"
        else:
            torch.testing.assert_close(
                value, row.law(drawn).to(value), msg=lambda m, k=k: f"{k} {m}"
            )


def test_a_wrong_range_is_seen() -> None:
    """The test above sees bounds a tenth off, and a draw in place of its logarithm."""
    torch.manual_seed(0)
    x = torch.empty(4096, dtype=torch.float64)
    assert _apart(x.uniform_(-7, -2.3).exp(), STEP)[1] > 0
    assert _apart(x.uniform_(1e-3, 1e-1), STEP)[0] > 10 * LEVEL / len(x) ** 0.5
    assert _apart(x.normal_(0, 0.022), normal(0.02))[0] > LEVEL / len(x) ** 0.5


def _apart(value: Tensor, law: Law) -> tuple[float, int]:
    """The largest difference of the distribution functions, and how many lie outside the range."""
    x = value.reshape(-1).sort().values
    slack = 1e-12  # of rounding, in a function that takes a bound to itself
    outside = int(((x < law.low - slack) | (x > law.high + slack)).sum())
    at = law.cdf(x)
    steps = torch.arange(len(x) + 1, dtype=torch.float64) / len(x)
    return max(float((steps[1:] - at).max()), float((at - steps[:-1]).max())), outside


def _drawn(module: ModuleType) -> Values:
    """Values of all parameters and buffers of a fresh layer, as its functional form takes them."""
    cls = surface(module).cls
    declared = inspect.signature(cls).parameters.values()
    given = {p.name: D if p.name == "d" else N for p in declared if p.default is p.empty}
    if any(p.name == "h" for p in declared):
        given["h"] = H
    found = surface(module, given)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = found.cls(**found.sizes, dtype=torch.float64)
        values = found.values(Sample(layer, found.draw(1, 1)))
    return {n.rstrip("_"): v.detach() for n, v in values.items()}
