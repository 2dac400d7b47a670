"""Peers compute what their rows say; those of other projects where they are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

from benchmarks.contender import Contender, Tensors
from benchmarks.peers import convolution, linear_attention, scans, selective_scan, step
from benchmarks.table import ROWS

NOTHING = ModuleType("nothing")
EXACT = 1e-5
"""Sums of some dozen float32 numbers of order one, in another order."""


def draw(row: str, **sizes: int) -> dict[str, Tensor]:
    (work,) = (r.work for r in ROWS if r.name == row)
    return work.draw(NOTHING, sizes, torch.Generator().manual_seed(1))


def same(contender: Contender, plain: Callable[[Tensors], Tensor], tensors: Tensors) -> None:
    """Compares outputs and all gradients."""
    judge = Contender("plain", "", plain)
    cotangent = torch.randn(plain(tensors).shape, generator=torch.Generator().manual_seed(2))
    want = judge.results({k: v.double() for k, v in tensors.items()}, cotangent.double())
    got = contender.results(tensors, cotangent)
    assert set(got) == set(want)
    for name, value in want.items():
        torch.testing.assert_close(got[name].double(), value, rtol=EXACT, atol=EXACT)


def matrix_state(x: Tensors) -> Tensor:
    """The recurrence of a matrix state; a decay per head is one per key as well."""
    q, k, v, g = (x[name] for name in "qkvg")
    g = g[..., None].expand(k.shape) if g.ndim == 3 else g
    S, rows = x.get("S", torch.zeros_like(k[:, 0, :, :, None] * v[:, 0, :, None, :])), []
    for i in range(q.shape[1]):
        S = torch.exp(g[:, i])[..., None] * S + k[:, i, :, :, None] * v[:, i, :, None, :]
        rows.append((q[:, i, :, :, None] * S).sum(-2) * q.shape[-1] ** -0.5)
    return torch.stack(rows, 1)


def selective(x: Tensors) -> Tensor:
    S, rows = torch.zeros_like(x["u"][:, 0, :, None] * x["b"][:, 0, None]), []
    for i in range(x["u"].shape[1]):
        delta, u = x["delta"][:, i, :, None], x["u"][:, i, :, None]
        S = torch.exp(-delta * x["rate"]) * S + delta * u * x["b"][:, i, None]
        rows.append((S * x["c"][:, i, None]).sum(-1) + x["D"] * x["u"][:, i])
    return torch.stack(rows, 1)


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed (extra `benchmark`)")


@needs("fla")
def test_the_chunked_form_of_fla_is_the_recurrence_with_a_decay_per_head() -> None:
    tensors = draw("scalar", B=2, L=70, H=2, K=4, V=3)
    same(linear_attention.CHUNK_SIMPLE_GLA, matrix_state, tensors)


@needs("fla")
def test_the_loop_of_fla_is_the_recurrence_with_a_decay_per_key() -> None:
    tensors = draw("per_key", B=2, L=20, H=2, K=4, V=3)
    same(linear_attention.RECURRENT_GLA, matrix_state, tensors)


@needs("fla")
@pytest.mark.parametrize("name", ["delta", "keyed_delta"])
def test_the_chunked_forms_of_fla_are_the_delta_rules(name: str) -> None:
    peer = {"delta": linear_attention.CHUNK_GATED_DELTA, "keyed_delta": linear_attention.CHUNK_KDA}

    def plain(x: Tensors) -> Tensor:
        S, rows = torch.zeros(2, 2, 4, 3, dtype=x["v"].dtype), []
        for q, k, v, g, beta in zip(
            *(x[n].unbind(1) for n in ("q", "k", "v", "g", "beta")), strict=True
        ):
            S = torch.exp(g)[..., None] * S if g.ndim == 3 else torch.exp(g)[..., None, None] * S
            error = v - (k[..., None] * S).sum(-2)
            S = S + beta[..., None, None] * k[..., None] * error[..., None, :]
            rows.append((q[..., None] * S).sum(-2) / 2)
        return torch.stack(rows, 1)

    same(peer[name], plain, draw(name, B=2, L=128, H=2, K=4, V=3))


def test_a_step_by_hand_is_the_recurrence_of_one_token() -> None:
    tensors = draw("step_op", B=2, H=2, K=4, V=3)
    same(step.RECURRENCE, matrix_state, tensors)
    W_Q, W_K, W_V = (torch.randn(2, 4, 5), torch.randn(2, 4, 5), torch.randn(2, 3, 5))
    u, gamma = torch.randn(2, 5), torch.rand(2)
    layer = {"u": u, "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "gamma": gamma, "S": tensors["S"]}

    def plain(x: Tensors) -> Tensor:
        q, k, v = (torch.einsum("hnd,bd->bhn", x[f"W_{n}"], x["u"])[:, None] for n in "QKV")
        g = torch.log(x["gamma"]).expand(2, 1, 2)
        return matrix_state({"q": q, "k": k, "v": v, "g": g, "S": x["S"]}).squeeze(1)

    same(step.LAYER, plain, layer)


@needs("mambapy")
def test_the_parallel_scan_of_mambapy_is_the_selective_scan() -> None:
    same(selective_scan.PSCAN, selective, draw("selective", B=2, L=20, d=4, N=3))


def test_the_reference_of_mamba_is_the_selective_scan() -> None:
    same(selective_scan.REFERENCE, selective, draw("selective", B=2, L=20, d=4, N=3))


@pytest.mark.parametrize("length", [2, 19, 32])
def test_associative_scan_and_loop_are_the_scan(length: int) -> None:
    def plain(x: Tensors) -> Tensor:
        rows = [torch.zeros_like(x["v"][:, 0])]
        for i in range(length):
            rows.append(torch.exp(x["g"][:, i]) * rows[-1] + x["v"][:, i])
        return torch.stack(rows[1:], 1)

    tensors = draw("elementwise", B=2, L=length, d=3)
    same(scans.EAGER, plain, tensors)
    same(scans.LOOP, plain, tensors)


def test_the_convolution_by_fft_is_the_convolution() -> None:
    u, kernel = torch.randn(2, 3, 17), torch.randn(3, 17)
    rows = [sum(kernel[:, i - j] * u[..., j] for j in range(i + 1)) for i in range(17)]
    torch.testing.assert_close(convolution.convolve(u, kernel), torch.stack(rows, -1))


def test_the_kernel_of_s4d_is_that_of_its_oracle(oracle: Callable[[str], ModuleType]) -> None:
    s4d, length = oracle("s4d"), 12
    shapes = s4d.shapes(s4d.DIMS)["params"]
    parameters = {
        name: torch.randn(shape, dtype=torch.complex64 if name in s4d.COMPLEX else torch.float32)
        for name, shape in shapes.items()
    }
    u = torch.randn(2, length, s4d.DIMS["d"])
    want, _ = s4d.forward({"u": u, **parameters}, s4d.DIMS)
    for name in s4d.COMPLEX & parameters.keys():  # the module stores the parts
        parameters[f"parts_{name}"] = torch.view_as_real(parameters.pop(name))
    kernel = convolution.s4d_kernel(parameters, length)
    for contender in (convolution.KERNEL_MADE, convolution.KERNEL_GIVEN):
        laid = contender.lay_out({"u": u, **parameters, "kernel": kernel})
        got = contender.forward(laid).transpose(1, 2)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_peers_of_other_projects_are_pinned(root: object) -> None:
    """What a row's peers are installed from stands in the extra with its exact version."""
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(str(root)) / "pyproject.toml").read_text(encoding="utf-8"))
    extra = project["project"]["optional-dependencies"]["benchmark"]
    constraints = (Path(str(root)) / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = {entry.partition("==")[0] for entry in extra if "==" in entry}
    assert pinned == {"fla-core", "mambapy"}
    assert all(entry in constraints for entry in extra if "==" in entry)
    assert ROWS
