"""A complex scan of real values is a real scan in the frame that turns with its phases."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from dsfc.backends.shared.runtime.rotating_frame import _pull_in_frame, _run_in_frame, _turned
from torch import Tensor

B, H, N, P = 2, 2, 3, 4
ROUNDED = 1e-12
"""Largest relative error in float64: values are sums of a few hundred products."""


def loop(q: Tensor, k: Tensor, v: Tensor, g: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """The scan, token by token; of complex numbers or of real ones."""
    rows = []
    for i in range(v.shape[1]):
        q_i, k_i = (
            x[:, i].unsqueeze(-1) if x.ndim == 4 else x[:, i, None, :, None] for x in (q, k)
        )
        g_i = g[:, i].unsqueeze(-1) if g.ndim == 4 else g[:, i, :, None, None]
        S = torch.exp(g_i) * S + k_i * v[:, i].unsqueeze(-2)
        rows.append((q_i * S).sum(-2))
    return torch.stack(rows, 1) if rows else 0 * v, S


def gradients(q: Tensor, k: Tensor, v: Tensor, g: Tensor, S: Tensor, *bars: Tensor) -> list[Tensor]:
    """Its gradients, by autograd."""
    given = [x.detach().requires_grad_() for x in (q, k, v, g, S)]
    outs = loop(*given)
    return [*torch.autograd.grad(outs, given, bars, materialize_grads=True)]


def drawn(length: int, log_size: float, *, keyed: bool, shared: bool) -> list[Tensor]:
    """Operands of a complex scan, and both cotangents; phases of a few turns a token."""
    torch.manual_seed(length)
    draw = partial(torch.randn, dtype=torch.complex128)
    of_keys = (B, length, N) if shared else (B, length, H, N)
    of_decays = (B, length, H, N) if keyed else (B, length, H)
    size = log_size * torch.rand(of_decays, dtype=torch.float64)
    size[:, 3::7] = -torch.inf
    g = torch.complex(size, 20 * torch.randn(of_decays, dtype=torch.float64))
    v, do = (draw(B, length, H, P).real.to(torch.complex128) for _ in range(2))
    return [draw(of_keys), draw(of_keys), v, g, draw(B, H, N, P), do, draw(B, H, N, P)]


@pytest.mark.parametrize(("keyed", "shared"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("log_size", [-0.1, -1e4])
@pytest.mark.parametrize("length", [0, 1, 40])
def test_outputs_states_and_gradients_are_those_of_the_complex_scan(
    length: int, log_size: float, keyed: bool, shared: bool
) -> None:
    *given, do, dS = drawn(length, log_size, keyed=keyed, shared=shared)
    outs = _run_in_frame(loop, *given)
    grads = _pull_in_frame(lambda *x: tuple(gradients(*x)), *given, do, dS)
    assert outs is not None and grads is not None
    want, bars = loop(*given), gradients(*given, do, dS)
    # The scan reads the real part of outputs, and its values are real.
    for got, wanted in ((outs[0], want[0]), (grads[2], bars[2])):
        assert not got.imag.any()
        torch.testing.assert_close(got.real, wanted.real, rtol=ROUNDED, atol=ROUNDED)
    pairs = [(outs[1], want[1]), *zip(grads, bars, strict=True)]
    for got, wanted in (p for k, p in enumerate(pairs) if k != 3):
        scale = ROUNDED * max(1.0, wanted.abs().max().item()) if wanted.numel() else ROUNDED
        torch.testing.assert_close(got, wanted, rtol=0, atol=scale)


def test_what_starts_no_kernel_gives_nothing() -> None:
    *given, do, dS = drawn(3, -1.0, keyed=True, shared=False)
    none: Callable[..., None] = lambda *tensors: None  # noqa: E731
    assert _run_in_frame(none, *given) is None
    assert _pull_in_frame(none, *given, do, dS) is None


def test_errors_do_not_grow_with_the_sum_of_phases() -> None:
    """Sums of alike phases round one way: of 4,096 of them, in float64, by 1e-10."""
    phase = torch.full((1, 4096, 1, 1), 0.7311000000001, dtype=torch.float64)
    exact = np.cumsum(phase.numpy().astype(np.longdouble), 1)
    turned = _turned(torch.complex(torch.zeros_like(phase), phase))
    assert np.abs(turned.real.numpy() - np.cos(exact)).max() < 2e-12
    assert np.abs(turned.imag.numpy() - np.sin(exact)).max() < 2e-12
