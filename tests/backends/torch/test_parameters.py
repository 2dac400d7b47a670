"""What a layer stores: values inside their constraint, started as the spec says."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from emitted import compiled

from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.validate.surface import Sample, surface

KINDS = """
  dims d, n = 30
  input u : d
  param a : d {init}
  param b : d positive {init}
  param c : d unit {init}
  param e : d nonneg {init}
  param g : d nonzero {init}
  param W : d -> n {small}
  buffer h : d unit {init}
  buffer r : d
  y = (a + b * c) * e / g * u * h * sum[n](W u) + r * u
"""


def layer_of(
    build, name: str, body: str | None = None, dtype: torch.dtype = torch.float64, **sizes
):
    """A layer with parameters drawn, and the values that its functional form is called with."""
    built = build(name, body)
    found = surface(built.module, sizes or None)
    torch.manual_seed(0)
    layer = found.cls(**found.sizes, dtype=dtype)
    inputs = {k: torch.zeros(1, 1, *axes, dtype=dtype) for k, axes in found.inputs.items()}
    return layer, found.values(Sample(layer, inputs))


@pytest.mark.parametrize(
    ("init", "want"),
    [
        ("= 1/4", 0.25),
        ("~ uniform(0.2, 0.7)", (0.2, 0.7)),
        ("~ log_uniform(0.01, 0.5)", (0.01, 0.5)),
        ("= (iota[d] + 1) / (d + 1)", "iota"),
        ("~ 1/2 + 1/4 * uniform(-1, 1)", (0.25, 0.75)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_values_start_as_the_spec_says_however_they_are_stored(build, init, want, dtype) -> None:
    name = "kinds" + "".join(c if c.isalnum() else "_" for c in init)
    body = KINDS.format(init=init, small="~ normal(0, 0.02)")
    _, values = layer_of(build, name, body, dtype, d=40)
    room = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2}[dtype]
    for x in (values[n].double() for n in "abcegh"):
        if want == "iota":
            wanted = (torch.arange(40.0, dtype=torch.float64) + 1) / 41
            torch.testing.assert_close(x, wanted, rtol=room, atol=room)
        elif isinstance(want, tuple):
            low, high = want
            assert low * (1 - room) <= x.min() and x.max() <= high * (1 + room)
            assert x.std() > 0.1 * (high - low)
        else:
            torch.testing.assert_close(x, torch.full_like(x, want), rtol=room, atol=room)


def test_without_an_initialiser_values_are_finite_and_can_be_trained(build) -> None:
    layer, values = layer_of(build, "kinds_bare", KINDS.format(init="", small=""))
    for name in "bceg":
        assert (values[name] > 0).all() and (name != "c" or (values[name] < 1).all())
    assert (values["a"] == 0).all() and (values["r"] == 0).all()
    assert 0.01 < values["W"].std() < 0.04
    u = torch.randn(2, 3, values["a"].shape[0], dtype=torch.float64)
    layer(u).square().sum().backward()
    for name, p in layer.named_parameters():
        assert torch.isfinite(p).all() and torch.isfinite(p.grad).all(), name
        assert p.grad.abs().max() > 0, name


def test_whatever_is_stored_the_value_keeps_its_constraint(build) -> None:
    layer, _ = layer_of(build, "kinds_bare", KINDS.format(init="", small=""))
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn_like(p) * 30)
    found = surface(build("kinds_bare", KINDS.format(init="", small="")).module)
    inputs = {k: torch.zeros(1, 1, *axes, dtype=torch.float64) for k, axes in found.inputs.items()}
    values = found.values(Sample(layer, inputs))
    assert (values["b"] > 0).all() and (values["e"] >= 0).all()
    assert (values["c"] >= 0).all() and (values["c"] <= 1).all()


def test_buffers_are_not_trained(build) -> None:
    layer, _ = layer_of(build, "kinds_bare", KINDS.format(init="", small=""))
    assert {n for n, _ in layer.named_buffers()} == {"h", "r"}
    assert {n for n, _ in layer.named_parameters()} == {
        "a", "log_b", "logit_c", "root_e", "g", "W",
    }  # fmt: skip


@pytest.mark.share(6, ci=11)
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, pytest.param(torch.float32, marks=pytest.mark.ci)]
)
@pytest.mark.parametrize("name", compiled())
def test_every_shipped_layer_starts_finite(build, name: str, dtype: torch.dtype) -> None:
    layer, values = layer_of(build, name, dtype=dtype)
    for stored, tensor in layer.state_dict().items():
        kept = stored in layer.float32_parameters
        assert tensor.dtype == (torch.float32 if kept else dtype) and torch.isfinite(tensor).all()
    assert all(torch.isfinite(x).all() for x in values.values())


def test_a_layer_draws_afresh_and_reproducibly(build) -> None:
    layer, _ = layer_of(build, "normalized_attn")
    again, _ = layer_of(build, "normalized_attn")
    assert all(map(torch.equal, layer.parameters(), again.parameters()))
    before = [p.clone() for p in layer.parameters()]
    layer.reset_parameters()
    changed = [not torch.equal(p, q) for p, q in zip(layer.parameters(), before, strict=True)]
    assert any(changed)


def test_rg_lru_starts_within_the_bounds_of_its_paper_in_bfloat16(build) -> None:
    """What the papers ask for in float64 stands in `tests/specs/test_start.py`."""
    _, values = layer_of(build, "rg_lru", dtype=torch.bfloat16, d=512)
    zeta = values["zeta"].double()
    decay = torch.exp(-2 * F.softplus(zeta))
    assert torch.isfinite(zeta).all()
    assert decay.min() >= 0.81 - 0.01 and decay.max() <= 0.998 + 0.01
    assert abs((decay < (0.81 + 0.998) / 2).double().mean() - 0.5) < 0.1


def test_a_long_initialiser_may_bound_a_number(build) -> None:
    """A part that gets a line of its own stays a number, which `clamp` does not take."""
    body = """dims d, heads h = 4, n = d / h
      input u : d
      param a : h × n = 3 + 5 * (((n * iota[h]) ⊗ ones[n] + ones[h] ⊗ iota[n]) / max(h * n - 1, 1))
      param W : d -> h × n ~ normal(0, 0.02)
      y = a * W u"""
    _, values = layer_of(build, "bounded", body, d=32, h=4)
    want = torch.linspace(3, 8, 32, dtype=torch.float64).reshape(4, 8)
    torch.testing.assert_close(values["a"], want)


def test_two_draws_are_two_numbers_however_alike_they_are_written(build) -> None:
    body = """dims d = 4000
      input u : d
      param a : d complex ~ cplx(normal(0, 1), normal(0, 1))
            b : d ~ normal(0, 1) - normal(0, 1)
      y = Re(a * u) + b * u"""
    module = build("alike", body).module
    torch.manual_seed(0)
    layer = module.Alike()
    real, imag = layer.parts_a.detach().double().unbind(-1)
    # Means of 4,000 products of independent numbers: within 5 standard deviations of their own.
    assert abs((real * imag).mean()) < 5 / 4000**0.5
    assert abs(layer.b.detach().double().square().mean() - 2) < 5 * 2 * (2 / 4000) ** 0.5


LEGS = """
  dims d, n
  input u : d
  param front : d × n ~ 2 * legs_frequency[d](2 * d)
        last  : d × n ~ legs_low_rank[n](n)
        both  : d × n ~ ones[d] ⊗ legs_frequency[n](2 * n) + legs_low_rank[d](d) ⊗ ones[n]
        log_λ : d × n positive ~ legs_frequency[n](2 * n)
        z     : d × n complex ~ cplx(normal(0, 1), ones[d] ⊗ legs_frequency[n](n))
  y = u * sum[n](front + last * both + log_λ + Im(z))
"""


def test_a_sequence_is_along_its_axis(build) -> None:
    d, n = 5, 3
    layer, values = layer_of(build, "legs", LEGS, d=d, n=n)
    omega, low = (DISTRIBUTIONS[k].sequence for k in ("legs_frequency", "legs_low_rank"))
    want = {
        "front": 2 * omega(2 * d)[-d:, None],
        "last": low(n),
        "both": omega(2 * n)[-n:] + low(d)[:, None],
        "log_lambda": omega(2 * n)[-n:],
    }
    for name, value in want.items():
        wanted = torch.from_numpy(value).expand(d, n)
        torch.testing.assert_close(values[name], wanted, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(values["z"].imag, torch.from_numpy(omega(n)).expand(d, n))
    assert len(values["z"].real.unique()) == d * n
    assert all(p.is_meta for p in type(layer)(d=d, n=n, device="meta").parameters())
