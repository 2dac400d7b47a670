"""Facts of the literature about state-space models and gated recurrences, seen on the oracles.

Each oracle is written on its own, so an equality between two of them is evidence for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn.functional import silu, softplus
from torch.testing import assert_close

Load = Callable[[str], ModuleType]
Draw = Callable[..., dict[str, Tensor]]


def output(
    oracle: ModuleType, tensors: dict[str, Tensor], dims: dict[str, int] | None = None
) -> Tensor:
    """Runs an oracle from zero states and returns its output."""
    y: Tensor = oracle.forward(tensors, dims or oracle.DIMS)[0]
    return y


def values(tensors: dict[str, Tensor]) -> Tensor:
    """The values W_V u_i, [B, L, h, p]."""
    return torch.einsum("hpd,bld->blhp", tensors["W_V"], tensors["u"])


def test_s4_is_the_bilinear_step(load: Load, draw: Draw) -> None:
    """(x_i - x_{i-1})/Δ = A (x_i + x_{i-1})/2 + B u_i, and A + A* < 0 makes the step contract."""
    oracle = load("s4")
    tensors = draw(oracle, batch=2, length=1)
    start = draw(oracle, groups=("states",), seed=2)
    x = oracle.forward(tensors, oracle.DIMS, start)[1]["x"]
    low = tensors["P"]
    drift = torch.diag(torch.complex(-tensors["a"].exp(), tensors["omega"]))
    drift = drift - torch.outer(low, low.conj())
    middle = (x + start["x"]) / 2
    expected = middle @ drift.T + tensors["u"][:, 0, :, None] * tensors["B"]
    assert_close((x - start["x"]) / tensors["log_Delta"].exp()[:, None], expected)
    tensors["B"] = 0 * tensors["B"]
    free = oracle.forward(tensors, oracle.DIMS, start)[1]["x"]
    assert (free.norm(dim=-1) < start["x"].norm(dim=-1)).all()


def test_s4_reads_twice_the_real_part(load: Load, draw: Draw) -> None:
    oracle = load("s4")
    tensors = draw(oracle)
    y, state = output(oracle, tensors), dict[str, Tensor]()
    for i in range(7):
        token = {**tensors, "u": tensors["u"][:, i : i + 1]}
        state = oracle.forward(token, oracle.DIMS, state)[1]
        read = (tensors["C"] * state["x"]).sum(-1)
        assert_close(y[:, i], (read + read.conj()).real + tensors["D"] * tensors["u"][:, i])


def held(pole: Tensor, step: Tensor, drive: Tensor) -> Tensor:
    """e^(ΔA) and ∫₀^Δ e^(As) B ds by the exponential of the augmented matrix, one mode."""
    augmented = torch.stack([torch.stack([pole, drive]), torch.zeros(2, dtype=pole.dtype)])
    exponential: Tensor = torch.linalg.matrix_exp(augmented * step)
    return exponential[0]


def test_s4d_and_dss_hold_their_input_over_a_step(load: Load, draw: Draw) -> None:
    oracle, dims = load("s4d"), {"d": 1, "n": 1}
    tensors = draw(oracle, batch=1, length=5, dims=dims)
    pole = torch.complex(-tensors["a"].exp(), tensors["omega"])[0, 0]
    decay, gain = held(pole, tensors["log_Delta"].exp()[0], tensors["B"][0, 0])
    u, state, ys = tensors["u"][0, :, 0], torch.zeros((), dtype=pole.dtype), []
    for i in range(5):
        state = decay * state + gain * u[i]
        ys.append(2 * (tensors["C"][0, 0] * state).real + tensors["D"][0] * u[i])
    assert_close(output(oracle, tensors, dims)[0, :, 0], torch.stack(ys))
    # DSS-EXP keeps the factor (e^(ΔΛ) - 1)/Λ in the read-out: S4D with B = 1, C = w/2, D = 0.
    as_dss = {**tensors, "a": tensors["a"][0], "omega": tensors["omega"][0], "W": tensors["C"]}
    as_s4d = {
        **tensors,
        "B": torch.ones_like(pole)[None, None],
        "C": tensors["C"] / 2,
        "D": torch.zeros(1),
    }
    assert_close(output(load("dss_exp"), as_dss, dims), output(oracle, as_s4d, dims))


def test_dss_with_its_step_is_a_dlr(load: Load, draw: Draw) -> None:
    dss, dims = load("dss_exp"), {"d": 1, "n": 3}
    tensors = draw(dss, dims=dims)
    pole = torch.complex(-tensors["a"].exp(), tensors["omega"])
    step = tensors["log_Delta"].exp()
    as_dlr = {
        "u": tensors["u"],
        "a": (step * tensors["a"].exp()).sqrt(),
        "b": step * tensors["omega"],
        "w": tensors["W"] * (torch.exp(step * pole) - 1) / pole,
        "D": torch.zeros(1, dtype=torch.float64),
    }
    assert_close(output(dss, tensors, dims), output(load("dlr"), as_dlr, dims))


def test_an_lru_of_one_channel_is_a_dlr(load: Load, draw: Draw) -> None:
    dims = {"d": 1, "n": 3}
    tensors = draw(load("lru"), dims=dims)
    as_dlr = {
        "u": tensors["u"],
        "a": (tensors["nu"] / 2).exp(),
        "b": tensors["theta"].exp(),
        "w": tensors["C"] * tensors["gamma"].exp() * tensors["B"].T,
        "D": tensors["D"],
    }
    assert_close(output(load("lru"), tensors, dims), output(load("dlr"), as_dlr, dims))


def test_a_diagonal_linear_rnn_and_a_damped_ema_are_real_dlrs(load: Load, draw: Draw) -> None:
    dims = {"d": 1, "n": 3}
    dlr = draw(load("dlr_real"), dims=dims)
    dense = {
        "u": dlr["u"],
        "A": torch.diag(torch.exp(-(dlr["a"] ** 2))),
        "B": torch.ones(3, 1, dtype=torch.float64),
        "C": dlr["w"],
    }
    expected = output(load("dlr_real"), dlr, dims)
    assert_close(output(load("linear_rnn"), dense, dims) + dlr["D"] * dlr["u"], expected)
    ema = draw(load("mega_ema"), dims=dims)
    p = torch.sigmoid(ema["delta"])
    as_dlr = {
        "u": ema["u"],
        "a": (-torch.log(1 - p * torch.sigmoid(ema["alpha"]))).sqrt()[0],
        "w": ema["gamma"] * p * ema["beta"] / math.sqrt(3),
        "D": ema["omega"],
    }
    expected = silu(output(load("dlr_real"), as_dlr, dims))
    assert_close(output(load("mega_ema"), ema, dims), expected)


def test_products_and_sums_of_dlrs(load: Load, draw: Draw) -> None:
    dlr, dims = load("dlr"), {"d": 4, "n": 3, "m": 2}
    tensors = draw(load("dlr_kronecker"), dims=dims)
    mode = torch.complex(-(tensors["a"] ** 2), tensors["b"])
    other = torch.complex(-(tensors["a2"] ** 2), tensors["b2"])

    def as_dlr(log: Tensor, weight: Tensor) -> Tensor:
        """DLR of given log-decays, without the skip."""
        given = {"u": tensors["u"], "a": (-log.real).sqrt(), "b": log.imag, "w": weight}
        return output(dlr, {**given, "D": torch.zeros(4, dtype=torch.float64)}, dims)

    skip = tensors["D"] * tensors["u"]
    # Before the cast, the product of the kernels is one DLR of size n·m (Gupta et al. 2022 A.2).
    log = (mode[:, None] + other).flatten()
    weight = (tensors["w"][:, :, None] * tensors["w2"][:, None, :]).flatten(1)
    assert_close(output(load("dlr_kronecker"), tensors, dims), as_dlr(log, weight) + skip)
    # Re K · Im K = Re(-(i/2) K²): the modes are the pairwise products.
    log = (mode[:, None] + mode).flatten()
    weight = -0.5j * (tensors["w"][:, :, None] * tensors["w"][:, None, :]).flatten(1)
    assert_close(output(load("dlr_prod"), tensors, dims), as_dlr(log, weight) + skip)
    # The backward branch is a DLR of the reversed input, delayed by one token.
    y = output(load("dlr_bidirectional"), tensors, dims)
    past = as_dlr(mode, tensors["w"])
    tensors["u"] = tensors["u"].flip(1)
    future = as_dlr(other, tensors["w2"]).flip(1)
    assert_close(y[:, :-1], past[:, :-1] + future[:, 1:])
    assert_close(y[:, -1], past[:, -1])


def test_real_dlr_is_dlr_without_rotation(load: Load, draw: Draw) -> None:
    tensors = draw(load("dlr_real"))
    turned = {**tensors, "b": torch.zeros(3, dtype=torch.float64), "w": tensors["w"] + 0j}
    assert_close(output(load("dlr_real"), tensors), output(load("dlr"), turned))


def test_h3_without_a_filter_is_a_gated_dlr(load: Load, draw: Draw) -> None:
    tensors = draw(load("h3"))
    tensors["w"] = 0 * tensors["w"]
    q, k, v = (tensors["u"] @ tensors[name].T for name in ("W_q", "W_k", "W_v"))
    as_dlr = {
        "u": tensors["D_k"] * k * v,
        "a": (tensors["a"] / 2).exp(),
        "b": tensors["omega"],
        "w": 2 * tensors["C"],
        "D": tensors["D"],
    }
    expected = q * output(load("dlr"), as_dlr, load("h3").DIMS)
    assert_close(output(load("h3"), tensors), expected)
    # A filter of one tap is a skip.
    tensors["w"][:, 0], tensors["D_k"] = tensors["D_k"], 0 * tensors["D_k"]
    assert_close(output(load("h3"), tensors), expected)


def test_s6_with_one_decay_and_one_step_is_an_ssd_head(load: Load, draw: Draw) -> None:
    """A = -a·1 and the same Δ for all channels (Sieber et al. 2024 §2: SSD = S6 with scalar A)."""
    dims = {"d": 5, "n": 3, "r": 1, "h": 1, "p": 5}
    ssd = draw(load("ssd"), dims=dims)
    ssd["W_x"] = torch.eye(5, dtype=torch.float64)[None]
    s6 = {
        **ssd,
        "a": ssd["a"].log().expand(5, 3),
        "W_u": ssd["w_Delta"],
        "W_Delta": torch.ones(5, 1, dtype=torch.float64),
        "b_Delta": ssd["b_Delta"].expand(5),
        "D": ssd["D"].expand(5),
    }
    expected = output(load("ssd"), ssd, dims)
    assert_close(output(load("s6"), s6, dims), expected[:, :, 0])


@pytest.mark.parametrize("name", ["ssd", "mamba2_pseudo_lti"])
def test_ssd_is_attention_under_a_decay_mask(name: str, load: Load, draw: Draw) -> None:
    """The pseudo-LTI form keeps the token's step in the drive and the bias's step in the decay."""
    tensors = draw(load(name))
    u = tensors["u"]
    b, c = u @ tensors["W_B"].T, u @ tensors["W_C"].T
    x = torch.einsum("hpd,bld->blhp", tensors["W_x"], u)
    step = softplus(u @ tensors["w_Delta"].T + tensors["b_Delta"])
    in_decay = step if name == "ssd" else softplus(tensors["b_Delta"]).expand_as(step)
    total = (in_decay * tensors["a"]).cumsum(1)
    weight = torch.exp(total[:, None, :] - total[:, :, None]) * step[:, None, :]
    lower = torch.ones(7, 7, dtype=torch.float64).tril()[None, :, :, None]
    weight = weight * lower * (c @ b.mT)[..., None]
    expected = torch.einsum("bijh,bjhp->bihp", weight, x) + tensors["D"][:, None] * x
    assert_close(output(load(name), tensors), expected)


def test_pseudo_lti_is_ssd_when_the_step_is_constant(load: Load, draw: Draw) -> None:
    tensors = draw(load("ssd"))
    assert (
        output(load("ssd"), tensors) - output(load("mamba2_pseudo_lti"), tensors)
    ).abs().max() > 1e-2
    tensors["w_Delta"] = 0 * tensors["w_Delta"]
    assert_close(output(load("ssd"), tensors), output(load("mamba2_pseudo_lti"), tensors))


def test_the_s6_gate_of_power_one_is_the_reversed_sigmoid(load: Load, draw: Draw) -> None:
    """e^(-softplus(x)) = σ(-x): at α = 1 the gate is that of qlstm with -W_f; at α ≤ 0 it is 1."""
    tensors = draw(load("qlstm_s6gate"))
    tensors["alpha"] = torch.ones((), dtype=torch.float64)
    reverse = {**tensors, "W_f": -tensors["W_f"]}
    assert_close(output(load("qlstm_s6gate"), tensors), output(load("qlstm"), reverse))
    tensors["alpha"] = -tensors["alpha"]
    u = tensors["u"]
    gate_in, gate_out = (torch.sigmoid(u @ tensors[w].T) for w in ("W_i", "W_o"))
    total = (gate_in * (u @ tensors["W_u"].T)).cumsum(1)
    assert_close(output(load("qlstm_s6gate"), tensors), gate_out * total)


def test_the_input_of_qlstm_is_a_matrix_product(load: Load, draw: Draw) -> None:
    """diag(σ)·W_u, not the entrywise product of Sieber et al. 2024 eq. 20b."""
    tensors = draw(load("qlstm"), length=1)
    tensors["W_u"] = tensors["W_u"] - torch.diag(tensors["W_u"].diagonal())
    assert output(load("qlstm"), tensors).abs().min() > 1e-4


def test_tanh_of_qlstm_is_invisible_for_small_inputs(load: Load, draw: Draw) -> None:
    tensors = draw(load("qlstm"))
    tensors["W_u"] = 1e-4 * tensors["W_u"]
    difference = output(load("qlstm"), tensors) - output(load("qlstm_tanh"), tensors)
    assert 0 < difference.abs().max() < 1e-10
    tensors["W_u"] = 1e8 * tensors["W_u"]
    assert output(load("qlstm_tanh"), tensors).abs().max() < 1


def test_rg_lru_with_constant_gates_is_a_geometric_filter(load: Load, draw: Draw) -> None:
    tensors = draw(load("rg_lru"))
    tensors["W_r"], tensors["W_g"] = 0 * tensors["W_r"], 0 * tensors["W_g"]
    a = torch.exp(-8 * softplus(tensors["zeta"]) * torch.sigmoid(tensors["b_r"]))
    gain = torch.sqrt(1 - a**2) * torch.sigmoid(tensors["b_g"])
    lag = torch.arange(7.0)[:, None] - torch.arange(7.0)
    kernel = torch.where(lag[..., None] >= 0, a ** lag.clamp(min=0)[..., None], 0.0)
    expected = torch.einsum("ijd,bjd->bid", kernel, gain * tensors["u"])
    assert_close(output(load("rg_lru"), tensors), expected)
