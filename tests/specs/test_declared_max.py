"""Running maxima that a spec declares, beside loops by hand in float64 that share no code.

The stabilised forms of xLSTM and RWKV-4 as they are published, and maxima that are values: y = m.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

import dsfc
from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, deterministic_torch, run
from dsfc.validate.surface import surface

LOWEST = -(2.0**100)
SPEC = """
mixer xlstm {
  dims heads h, n, p
  input q, k : h × n;  v : h × p;  a, b : h
  state C : h × n × p;  z : h × n;  m : h
  l = -softplus(-b)
  m = max(l + m[i-1], a)
  f = exp(l + m[i-1] - m)
  C = f * C[i-1] + exp(a - m) * k ⊗ v
  z = f * z[i-1] + exp(a - m) * k
  y = (q · C) / max(abs(q · z), exp(-m))
}
mixer rwkv {
  dims d
  input k, v, w : d
  param bonus : d
  state o, a, b : d
  o = max(o[i-1] - exp(w), k)
  a = exp(o[i-1] - exp(w) - o) * a[i-1] + exp(k - o) * v
  b = exp(o[i-1] - exp(w) - o) * b[i-1] + exp(k - o)
  r = max(o[i-1], bonus + k)
  y = (exp(o[i-1] - r) * a[i-1] + exp(bonus + k - r) * v) /
    (exp(o[i-1] - r) * b[i-1] + exp(bonus + k - r))
}
mixer below {
  dims d
  input u, a : d
  state m : d
  m = max(u, max(m[i-1] + a, m[i-1] - 1))
  y = u * m
}
mixer largest {
  dims d
  input u : d
  state y : d
  y = max(y[i-1], u)
}
"""


def _xlstm(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Beck et al. 2024, equations 19 to 27, one token after another."""
    m, C, z, rows = a.new_full(a[:, 0].shape, LOWEST), 0.0, 0.0, []
    for i in range(a.shape[1]):
        gate = torch.nn.functional.logsigmoid(b[:, i])
        now = torch.maximum(gate + m, a[:, i])
        f, g = torch.exp(gate + m - now), torch.exp(a[:, i] - now)
        C = f[..., None, None] * C + g[..., None, None] * k[:, i, :, :, None] * v[:, i, :, None]
        z = f[..., None] * z + g[..., None] * k[:, i]
        m, below = now, (q[:, i] * z).sum(-1)
        scale = torch.maximum(below.abs(), torch.exp(-m))
        rows.append((q[:, i, :, :, None] * C).sum(2) / scale[..., None])
    return torch.stack(rows, 1)


def _rwkv(k: Tensor, v: Tensor, w: Tensor, bonus: Tensor) -> Tensor:
    """Peng et al. 2023, appendix D, one token after another."""
    o, a, b, rows = k.new_full(k[:, 0].shape, LOWEST), 0.0, 0.0, []
    for i in range(k.shape[1]):
        r = torch.maximum(o, bonus + k[:, i])
        old, new = torch.exp(o - r), torch.exp(bonus + k[:, i] - r)
        rows.append((old * a + new * v[:, i]) / (old * b + new))
        moved = o - torch.exp(w[:, i])
        now = torch.maximum(moved, k[:, i])
        old, new = torch.exp(moved - now), torch.exp(k[:, i] - now)
        o, a, b = now, old * a + new * v[:, i], old * b + new
    return torch.stack(rows, 1)


def _below(u: Tensor, a: Tensor) -> Tensor:
    m, rows = u.new_full(u[:, 0].shape, LOWEST), []
    for i in range(u.shape[1]):
        m = torch.maximum(u[:, i], m + torch.maximum(a[:, i], -torch.ones_like(m)))
        rows.append(u[:, i] * m)
    return torch.stack(rows, 1)


def _largest(u: Tensor) -> Tensor:
    y, rows = u.new_full(u[:, 0].shape, LOWEST), []
    for i in range(u.shape[1]):
        y = torch.maximum(y, u[:, i])
        rows.append(y)
    return torch.stack(rows, 1)


LOOPS: dict[str, Callable[..., Tensor]] = {
    "xlstm": _xlstm, "rwkv": _rwkv, "below": _below, "largest": _largest
}  # fmt: skip
SIZES = {"h": 2, "n": 3, "p": 4, "d": 3}
SHAPES = {
    "xlstm": {"q": "hn", "k": "hn", "v": "hp", "a": "h", "b": "h"},
    "rwkv": {"k": "d", "v": "d", "w": "d"},
    "below": {"u": "d", "a": "d"},
    "largest": {"u": "d"},
}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    folder = tmp_path_factory.mktemp("maxima")
    (folder / "maxima.dsf").write_text(SPEC)
    return {
        name: dsfc.import_module(dsfc.compile(folder / "maxima.dsf", out=folder, mixer=name))
        for name in LOOPS
    }


def _layer(module: ModuleType, name: str, dtype: torch.dtype) -> torch.nn.Module:
    cls = getattr(module, module.__all__[0])
    axes = ("h", "n", "p") if name == "xlstm" else ("d",)
    layer: torch.nn.Module = cls(**{a: SIZES[a] for a in axes}).to(dtype)
    for p in layer.parameters():
        torch.nn.init.normal_(p)
    return layer


def _drawn(name: str, length: int, scale: float = 1.0, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    exponents = {"xlstm": "a", "rwkv": "k", "below": "u", "largest": "u"}[name]
    out = {}
    for key, axes in SHAPES[name].items():
        x = torch.randn(2, length, *(SIZES[a] for a in axes), generator=g, dtype=torch.float64)
        x = x * scale if key == exponents else x
        out[key] = (-x.abs() if name == "below" and key == "a" else x).requires_grad_()
    return out


def _truth(name: str, given: dict[str, Tensor], layer: torch.nn.Module) -> Tensor:
    more = [p.double() for p in layer.parameters()]
    return LOOPS[name](*given.values(), *more)


def _grads(y: Tensor, *wrt: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(torch.sin(y).sum(), wrt)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", LOOPS)
def test_every_mode_is_the_loop_in_values_and_gradients(
    name: str, modules: dict[str, ModuleType]
) -> None:
    layer, given = _layer(modules[name], name, torch.float64), _drawn(name, 9)
    wrt = (*given.values(), *layer.parameters())
    want = _truth(name, given, layer)
    grads = _grads(want, *wrt)
    for mode in modules[name].MODES:
        got = layer(**given, mode=mode, chunk=4)
        # Rounding of nine steps in float64.
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)
        for a, b in zip(_grads(got, *wrt), grads, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", LOOPS)
def test_a_cut_sequence_and_steps_go_on_from_the_state(
    name: str, modules: dict[str, ModuleType]
) -> None:
    layer, given = _layer(modules[name], name, torch.float64), _drawn(name, 7)
    want = _truth(name, given, layer)
    first, state = layer(**{k: x[:, :3] for k, x in given.items()}, return_state=True)
    rest = layer(**{k: x[:, 3:] for k, x in given.items()}, state=state)
    torch.testing.assert_close(torch.cat((first, rest), 1), want, rtol=1e-11, atol=1e-11)
    rows, state = [], layer.initial_state(2)
    for i in range(7):
        row, state = layer.step(**{k: x[:, i] for k, x in given.items()}, state=state)
        rows.append(row)
    torch.testing.assert_close(torch.stack(rows, 1), want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", LOOPS)
def test_masked_tokens_are_not_there_whatever_they_hold(
    name: str, modules: dict[str, ModuleType]
) -> None:
    layer, given = _layer(modules[name], name, torch.float64), _drawn(name, 8)
    mask = torch.tensor([True, False, True, True, False, False, True, True]).expand(2, -1)
    kept = {k: x.detach()[:, mask[0]].requires_grad_() for k, x in given.items()}
    spoiled = {}
    for k, x in given.items():
        hidden = torch.where(mask.reshape(2, 8, *(1,) * (x.ndim - 2)), x.detach(), torch.nan)
        spoiled[k] = hidden.requires_grad_()
    want = _truth(name, kept, layer)
    grads = _grads(want, *kept.values())
    for mode in (m for m in modules[name].MODES if m != "fft"):
        got = layer(**spoiled, mask=mask, mode=mode, chunk=4)[:, mask[0]]
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)
        for a, b in zip(_grads(got, *spoiled.values()), grads, strict=True):
            torch.testing.assert_close(a[:, mask[0]], b, rtol=1e-10, atol=1e-10)
            assert not a[:, ~mask[0]].any()


@pytest.mark.parametrize("low", [-60.0, -100.0, -1e4])
def test_a_guard_that_overflows_gives_small_outputs_and_gradients_that_are_numbers(
    low: float, modules: dict[str, ModuleType]
) -> None:
    """exp(-m) is infinite in float32 from m = -88 down; the quotient and its gradients are e^m."""
    layer = _layer(modules["xlstm"], "xlstm", torch.float32)
    given = {k: x.detach().float() for k, x in _drawn("xlstm", 9).items()}
    # A numerator of e^30 makes quotients that float32 holds.
    given["a"], given["v"] = given["a"] + low, given["v"] * 1e13
    exact = {k: x.double().requires_grad_() for k, x in given.items()}
    given = {k: x.requires_grad_() for k, x in given.items()}
    want = _truth("xlstm", exact, layer)
    for mode in modules["xlstm"].MODES:
        got = layer(**given, mode=mode, chunk=4)
        # Exponents near 100 are rounded to 2^-18, and 9 tokens' sums to a few 2^-24. Below 1e-38
        # float32 has no digits left, in the quotient and in e^m.
        torch.testing.assert_close(got.double(), want, rtol=2e-4, atol=1e-31)
        grads = torch.autograd.grad(got.sum(), list(given.values()))
        wanted = torch.autograd.grad(want.sum(), list(exact.values()), retain_graph=True)
        for a, b in zip(grads, wanted, strict=True):
            b = b if low > -700 else torch.zeros_like(b)  # float64 has no e^10000
            torch.testing.assert_close(a.double(), b, rtol=1e-3, atol=1e-30)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("name", ["xlstm", "rwkv"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_of_any_size_are_finite_and_right(
    name: str, dtype: torch.dtype, scale: float, modules: dict[str, ModuleType]
) -> None:
    layer = _layer(modules[name], name, torch.float32).to(dtype)
    given = {k: x.detach().to(dtype) for k, x in _drawn(name, 24, scale).items()}
    given = {k: x.requires_grad_() for k, x in given.items()}
    exact = {k: x.detach().double() for k, x in given.items()}
    want = _truth(name, exact, layer).detach()
    # Exponents of the scale are rounded to a share 2^-24 of it, and their exponentials err by that;
    # a result in bfloat16 is rounded to 2^-9 of the largest, and its sums are of rounded products.
    allowed = 40 * scale * 2.0**-24 + (2e-2 if dtype is torch.bfloat16 else 1e-5)
    for mode in modules[name].MODES:
        got = layer(**given, mode=mode, chunk=8)
        error = (got.double() - want).abs().max() / want.abs().max().clamp(min=1.0)
        assert error < allowed, mode
        for g in _grads(got, *given.values()):
            assert g.isfinite().all(), mode


def test_equal_values_share_the_gradient(modules: dict[str, ModuleType]) -> None:
    """1, 1, 0, 1: half of what m_1 gets goes to u_1, the rest to u_0 …, as of torch.maximum."""
    layer = _layer(modules["largest"], "largest", torch.float64)
    u = torch.tensor([1.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    u = u.reshape(1, 4, 1).expand(1, 4, 3).clone().requires_grad_()
    for mode in modules["largest"].MODES:
        (got,) = torch.autograd.grad(layer(u=u, mode=mode)[:, -1].sum(), u)
        assert got[0, :, 0].tolist() == [0.25, 0.25, 0.0, 0.5], mode


@pytest.mark.parametrize("name", ["below", "largest"])
def test_packed_sequences_are_alone_and_may_be_empty(
    name: str, modules: dict[str, ModuleType]
) -> None:
    layer, given = _layer(modules[name], name, torch.float64), _drawn(name, 6)
    packed = {k: x.detach()[:1] for k, x in given.items()}
    starts = torch.tensor([0, 2, 2, 6])
    got = layer(**packed, cu_seqlens=starts)
    parts = [(0, 2), (2, 6)]
    want = [_truth(name, {k: x[:, i:j] for k, x in packed.items()}, layer) for i, j in parts]
    torch.testing.assert_close(got, torch.cat(want, 1), rtol=1e-11, atol=1e-11)


@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize(
    "promise",
    ["complaints", *(pytest.param(p, marks=pytest.mark.ci) for p in ("dynamic", "compile"))],
)
@pytest.mark.parametrize("name", LOOPS)
def test_a_promise_is_kept(name: str, promise: str, modules: dict[str, ModuleType]) -> None:
    (check,) = (c for c in CHECKS if c.name == promise)
    with deterministic_torch():
        row = run(check, surface(modules[name]))
    assert row.outcome is Outcome.KEPT, row.figure
