"""Kernels that go token by token compute, in float64, what the loops over time do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from dsfc.backends.torch.operators import skeletons
from dsfc.backends.torch.skeletons import Skeleton
from numpy.typing import NDArray
from torch import Tensor

import dsfc
from dsfc.kernel_ir.interpret import interpret, value_of
from dsfc.kernel_ir.ir import Access, Kernel
from dsfc.kernels.tokens import backward, forward, has_tokens, steps
from dsfc.plan.scan_ir import Form

Array = NDArray[Any]
SPAN = 3
LENGTHS = [0, 1, SPAN - 1, SPAN, SPAN + 1, 2 * SPAN, 7]
DECAYS = ["usual", "none", "strong"]
SPECS = ["gsa", "qlstm", "qlstm_s6gate", "qlstm_tanh", "rg_lru", "rwkv4", "s6", "taylor_softmax"]


@cache
def scans(spec: str) -> tuple[Skeleton, ...]:
    """The scans of a spec that have kernels."""
    parts = skeletons(dsfc.load(spec).plan)
    return tuple(s for s in parts if has_tokens(s.scan, s.adjoint, lambda _: True))


def kernels(s: Skeleton) -> tuple[Kernel, Kernel]:
    leaves = dict(zip(s.leaf_buffers, s.decays, strict=True))
    return (
        forward(s.scan, s.arrays, leaves, "forward"),
        backward(s.scan, s.adjoint, s.arrays, leaves, "backward"),
    )


def sizes_of(kernel: Kernel, length: int) -> dict[str, int]:
    """Small sizes; channels are no multiple of their block."""
    sizes = {name: 3 + k for k, name in enumerate(kernel.static)}
    spans = {"SPAN": SPAN, "SPANS": -(-length // SPAN)}
    return sizes | {"BLOCK": 2, "B": 2, "L": length, **spans}


def drawn(kernel: Kernel, s: Skeleton, length: int, decay: str) -> dict[str, Array]:
    """Arguments, with log λ as asked for: of an elementwise scan it is the argument g itself."""
    draw, sizes = np.random.default_rng(length), sizes_of(kernel, length)
    out = {}
    for a in kernel.arguments:
        if a.access is not Access.READ:
            continue
        x = draw.normal(size=[value_of(n, sizes) for n in a.shape])
        if a.name in s.decays:
            x = np.abs(x)
            x = -x if s.scan.form is Form.ELEMENTWISE or len(s.decays) == 1 else x
            x = {"usual": x, "none": 0 * x, "strong": 60 * x}[decay]
        out[a.name] = x
    return out


def given(s: Skeleton, arguments: Mapping[str, Array]) -> list[Tensor]:
    """What the operator takes, in its order."""
    return [torch.from_numpy(arguments[name]) for name in s.leaves]


def agree(got: Mapping[str, Array], want: Mapping[str, Array], lead: int = 2) -> None:
    """Whether all are the same; what programs share is summed over the dimensions behind time."""
    assert got.keys() == want.keys()
    for name, x in got.items():
        more = x.ndim - want[name].ndim
        first = min(lead, want[name].ndim)
        total = x.sum(tuple(range(first, first + more))) if more else x
        assert total.shape == want[name].shape
        assert np.allclose(total, want[name], rtol=1e-10, atol=1e-12), name


# --- beside loops written by hand -----------------------------------------------------------------


def elementwise(v: Tensor, g: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """o_i = h_i = e^g_i h_{i-1} + v_i."""
    rows = []
    for i in range(v.shape[1]):
        S = torch.exp(g[:, i]) * S + v[:, i]
        rows.append(S)
    return torch.stack(rows, 1) if rows else v, S


def s6_loop(
    q: Tensor, k: Tensor, v: Tensor, g1: Tensor, g2: Tensor, S: Tensor
) -> tuple[Tensor, Tensor]:
    """The recurrence of S6, eq. 2 of Mamba, of a step size g1 and rates g2."""
    rows = []
    for i in range(v.shape[1]):
        decay = torch.exp(-g1[:, i, :, None] * g2)
        S = decay * S + v[:, i, :, None] * k[:, i, None, :]
        rows.append((S * q[:, i, None, :]).sum(-1))
    return torch.stack(rows, 1) if rows else v, S


LOOPS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {"qlstm": elementwise, "s6": s6_loop}


@pytest.mark.share(2)
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("spec", LOOPS)
def test_values_and_gradients_are_those_of_a_loop_by_hand(
    spec: str, length: int, decay: str
) -> None:
    (s,) = scans(spec)
    go, back = kernels(s)
    arguments = drawn(back, s, length, decay)
    leaves = [x.requires_grad_() for x in given(s, arguments)]
    outs = LOOPS[spec](*leaves)
    values = interpret(go, arguments, sizes_of(go, length))
    names = ("o", "S_last")
    agree(values, dict(zip(names, (x.detach().numpy() for x in outs), strict=True)))
    bars = [torch.from_numpy(arguments[n]) for n in ("do", "dS_last")]
    wanted = torch.autograd.grad(outs, leaves, bars, allow_unused=True, materialize_grads=True)
    gradients = interpret(back, arguments, sizes_of(back, length))
    pairs = zip((f"d{n}" for n in s.leaves), (x.numpy() for x in wanted), strict=True)
    agree_gradients(s, gradients, dict(pairs))


def agree_gradients(s: Skeleton, got: Mapping[str, Array], want: Mapping[str, Array]) -> None:
    constant = {f"d{n}" for n in s.inputs if n not in s.timed}
    timed = got.keys() - constant
    assert got.keys() == want.keys()
    agree({n: got[n] for n in timed}, {n: want[n] for n in timed})
    agree({n: got[n] for n in constant}, {n: want[n] for n in constant}, lead=1)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("length", [0, 1, SPAN + 1, 7])
def test_complex_values_and_gradients_are_those_of_a_loop_by_hand(length: int, decay: str) -> None:
    (s,) = scans("hgrn")
    go, back = kernels(s)
    planes = drawn(back, s, length, "usual")
    planes["g"][..., 0] *= {"usual": 1, "none": 0, "strong": 60}[decay]
    numbers = {n: torch.complex(*torch.from_numpy(x).unbind(-1)) for n, x in planes.items()}
    leaves = [numbers[n].requires_grad_() for n in s.leaves]
    outs = elementwise(*leaves)
    values = interpret(go, planes, sizes_of(go, length))
    names = ("o", "S_last")
    agree(values, {n: parts(x) for n, x in zip(names, outs, strict=True)})
    bars = [numbers[n] for n in ("do", "dS_last")]
    wanted = torch.autograd.grad(outs, leaves, bars, allow_unused=True, materialize_grads=True)
    # PyTorch's gradient is the adjoint at the conjugates.
    at = planes | {n: parts(numbers[n].conj()) for n in s.leaves}
    gradients = interpret(back, at, sizes_of(back, length))
    agree(gradients, {f"d{n}": parts(x) for n, x in zip(s.leaves, wanted, strict=True)})


def parts(x: Tensor) -> Array:
    """Real and imaginary parts along a new last axis."""
    both: Array = torch.view_as_real(x.detach().resolve_conj()).numpy()
    return both


@pytest.mark.share(4)
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("spec", SPECS)
def test_the_states_after_all_tokens_are_the_last_ones_of_fewer(spec: str, decay: str) -> None:
    for s in scans(spec):
        go, _ = kernels(s)
        leaves = dict(zip(s.leaf_buffers, s.decays, strict=True))
        each = steps(s.scan, s.arrays, leaves, "steps")
        arguments = drawn(go, s, 4, decay)
        got = interpret(each, arguments, sizes_of(each, 4))
        whole = interpret(go, arguments, sizes_of(go, 4))
        assert np.array_equal(got["o"], whole["o"]) and len(got["S_each"]) == 4
        for count in range(1, 5):
            fewer = {n: x[:, :count] if n in s.timed else x for n, x in arguments.items()}
            last = interpret(go, fewer, sizes_of(go, count))["S_last"]
            assert np.array_equal(got["S_each"][count - 1], last)


def test_nothing_of_the_past_is_left_where_log_decay_is_minus_infinity() -> None:
    (s,) = scans("qlstm")
    go, back = kernels(s)
    arguments = drawn(back, s, 7, "usual")
    arguments["g"][:, 4] = -np.inf
    arguments["do"][:, :4] = 0
    values = interpret(go, arguments, sizes_of(go, 7))
    assert (values["o"][:, 4] == arguments["v"][:, 4]).all()
    gradients = interpret(back, arguments, sizes_of(back, 7))
    assert all(np.isfinite(x).all() for x in gradients.values())
    assert (gradients["dS"] == 0).all()
    assert (gradients["dv"][:, :4] == 0).all()
    assert (gradients["dg"][:, 4] == 0).all()


# --- beside the operators of torch modules --------------------------------------------------------


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    folder = tmp_path_factory.mktemp("modules")

    @cache
    def imported(spec: str) -> ModuleType:
        return dsfc.import_module(dsfc.compile(spec, out=folder / f"{spec}.py"))

    return imported


@pytest.mark.share(9)
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("length", [1, 7])
@pytest.mark.parametrize("spec", SPECS)
def test_values_and_gradients_are_those_of_the_torch_operator(
    spec: str, length: int, decay: str, module: Callable[[str], ModuleType]
) -> None:
    assert scans(spec)
    for s in scans(spec):
        go, back = kernels(s)
        arguments = drawn(back, s, length, decay)
        run = getattr(module(spec), f"_forward_recurrent{s.suffix}")
        wanted = [x.numpy() for x in run(*given(s, arguments))]
        values = interpret(go, arguments, sizes_of(go, length))
        agree(values, dict(zip(("o", "S_last"), wanted, strict=True)))
        run = getattr(module(spec), f"_backward_recurrent{s.suffix}")
        bars = [torch.from_numpy(arguments[n]) for n in ("do", "dS_last")]
        wanted = [x.numpy() for x in run(*given(s, arguments), *bars, SPAN)]
        gradients = interpret(back, arguments, sizes_of(back, length))
        names = [f"d{n}" for n in s.leaves]
        agree_gradients(s, gradients, dict(zip(names, wanted, strict=True)))


def test_every_elementwise_and_selective_scan_of_real_numbers_has_kernels() -> None:
    for spec in SPECS:
        forms = {Form.ELEMENTWISE, Form.SELECTIVE}
        all_scans = [s for s in skeletons(dsfc.load(spec).plan) if s.scan.form in forms]
        assert len(scans(spec)) == len(all_scans)
