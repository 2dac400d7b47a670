"""Stages that no scan runs, as modules: loops written by hand, λ of any sign, masks, packs, memory.

The promises that every module keeps are checked on the same mixers in `test_unusual.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from unusual_specs import STEPPED

LENGTH = 7
COUPLED = STEPPED["feedback_of_gates"]


def draw(layer: torch.nn.Module, batch: int = 2, length: int = LENGTH) -> Tensor:
    torch.manual_seed(3)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn_like(p) / 2)
    return torch.randn(batch, length, layer.d, dtype=torch.float64)


def coupled_loop(layer: torch.nn.Module, u: Tensor, s: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    """S and t of `feedback_of_gates`, written by hand."""
    a, c = (torch.sigmoid(u @ w.T) for w in (layer.A, layer.C))
    b, e = (torch.tanh(u @ w.T) for w in (layer.B, layer.E))
    rows = []
    for i in range(u.shape[1]):
        s, t = a[:, i] * s + b[:, i] * t + u[:, i], c[:, i] * t + e[:, i] * s + u[:, i]
        rows.append(s + t)
    return torch.stack(rows, 1), s, t


def dense_loop(layer: torch.nn.Module, u: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """X of `dense_over_time`: a full matrix, scaled by the token."""
    drive, rows = u @ layer.B.T, []
    for i in range(u.shape[1]):
        x = torch.sigmoid(drive[:, i]) * (x @ layer.A.T) + drive[:, i]
        rows.append(x)
    return torch.stack(rows, 1), x


def rewrites_loop(layer: torch.nn.Module, u: Tensor, S: Tensor) -> tuple[Tensor, ...]:
    """S of `two_rewrites`: two factors of diagonal plus rank one."""
    q, k, v = (torch.einsum("bld,hnd->blhn", u, w) for w in (layer.W_q, layer.W_k, layer.W_v))
    f, rows = torch.sigmoid(torch.einsum("bld,hd->blh", u, layer.w_f)), []
    for i in range(u.shape[1]):
        kS = torch.einsum("bhn,bhnp->bhp", k[:, i], S)
        S = f[:, i, :, None, None] * (S - k[:, i, :, :, None] * kS[:, :, None])
        qS = torch.einsum("bhn,bhnp->bhp", q[:, i], S)
        S = S - q[:, i, :, :, None] * qS[:, :, None] + k[:, i, :, :, None] * v[:, i, :, None]
        rows.append(torch.einsum("bhn,bhnp->bhp", q[:, i], S))
    return torch.stack(rows, 1), S


LOOPS: dict[str, tuple[Callable[..., tuple[Tensor, ...]], tuple[str, ...]]] = {
    "feedback_of_gates": (coupled_loop, ("s", "t")),
    "dense_over_time": (dense_loop, ("x",)),
    "two_rewrites": (rewrites_loop, ("S",)),
}


@pytest.fixture(params=LOOPS)
def case(request: pytest.FixtureRequest, build):
    module = build(request.param, STEPPED[request.param]).module
    layer = getattr(module, module.__all__[0])(d=3, dtype=torch.float64)
    loop, states = LOOPS[request.param]
    return module, layer, loop, states


def started(layer: torch.nn.Module, module, names: tuple[str, ...], batch: int = 2):
    """States that are not 0, and have gradients."""
    zeros = layer.initial_state(batch)
    values = [torch.randn_like(getattr(zeros, n)).requires_grad_() for n in names]
    return values, module.State(**dict(zip(names, values, strict=True)))


@pytest.mark.parametrize("chunk", [1, 3, LENGTH + 1])
def test_values_states_and_gradients_are_those_of_a_loop_by_hand(case, chunk: int) -> None:
    module, layer, loop, names = case
    u = draw(layer).requires_grad_()
    values, state = started(layer, module, names)
    got, last = layer(u, state, return_state=True, chunk=chunk)
    want = loop(layer, u, *values)
    outs = (got, *(getattr(last, n) for n in names))
    torch.testing.assert_close(outs, want, rtol=1e-12, atol=1e-12)
    weights = [torch.randn_like(x) for x in outs]
    leaves = [u, *values, *layer.parameters()]
    grads = [
        torch.autograd.grad(sum((w * x).sum() for w, x in zip(weights, xs, strict=True)), leaves)
        for xs in (outs, want)
    ]
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-11, atol=1e-11)


def test_steps_and_cuts_are_the_whole(case) -> None:
    module, layer, loop, names = case
    u = draw(layer)
    values, state = started(layer, module, names)
    want, *_ = loop(layer, u, *values)
    rows, at = [], state
    for i in range(LENGTH):
        y, at = layer.step(u[:, i], at)
        rows.append(y)
    torch.testing.assert_close(torch.stack(rows, 1), want, rtol=1e-12, atol=1e-12)
    first, between = layer(u[:, :3], state, return_state=True)
    torch.testing.assert_close(
        torch.cat((first, layer(u[:, 3:], between)), 1), want, rtol=1e-12, atol=1e-12
    )


def test_nothing_of_a_masked_token_leaks_whatever_it_holds(case) -> None:
    module, layer, loop, names = case
    u = draw(layer)
    mask = torch.tensor([[1, 0, 1, 1, 0, 0, 1], [0, 0, 1, 0, 1, 0, 0]], dtype=torch.bool)
    foul = torch.where(mask[..., None], u, torch.nan).requires_grad_()
    values, state = started(layer, module, names)
    y, last = layer(foul, state, mask=mask, return_state=True)
    (y.sum() + sum(getattr(last, n).sum().real for n in names)).backward()
    for row in range(2):
        kept = u[row : row + 1, mask[row]]
        want, *ends = loop(layer, kept, *(v[row : row + 1] for v in values))
        torch.testing.assert_close(y[row, mask[row]], want[0], rtol=1e-12, atol=1e-12)
        for n, end in zip(names, ends, strict=True):
            torch.testing.assert_close(getattr(last, n)[row], end[0], rtol=1e-12, atol=1e-12)
    assert (y[~mask] == 0).all()
    assert (foul.grad[~mask] == 0).all() and foul.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in (*layer.parameters(), *values))


def test_sequences_of_a_pack_are_alone_and_empty_ones_keep_their_state(case) -> None:
    module, layer, loop, names = case
    u = draw(layer, 1)
    ends = [0, 0, 3, 3, 7]
    values, state = started(layer, module, names, batch=4)
    y, last = layer(u, state, cu_seqlens=torch.tensor(ends), return_state=True)
    for n, (start, end) in enumerate(pairwise(ends)):
        given = [v[n : n + 1] for v in values]
        if start == end:
            wants = given
        else:
            want, *wants = loop(layer, u[:, start:end], *given)
            torch.testing.assert_close(y[:, start:end], want, rtol=1e-12, atol=1e-12)
        for name, want in zip(names, wants, strict=True):
            torch.testing.assert_close(getattr(last, name)[n], want[0], rtol=1e-12, atol=1e-12)


def test_an_empty_sequence_returns_the_state_and_its_gradient(case) -> None:
    module, layer, _, names = case
    values, state = started(layer, module, names)
    y, last = layer(draw(layer)[:, :0], state, return_state=True)
    assert y.shape[1] == 0
    for n, v in zip(names, values, strict=True):
        torch.testing.assert_close(getattr(last, n), v)
    sum(getattr(last, n).sum() for n in names).backward()
    assert all((v.grad == 1).all() for v in values)


# --- λ of any value -------------------------------------------------------------------------------

ANY_DECAY = "dims d\n input u, λ, μ : d\n state s, t : d\n {}; y = s + t"


@pytest.mark.parametrize("decay", [0.0, -1.5, 2.0])
def test_a_decay_may_be_zero_negative_or_more_than_one(decay: float, build) -> None:
    body = ANY_DECAY.format("s = λ * s[i-1] + μ * t[i-1] + u; t = λ * t[i-1] - μ * s[i-1] + u")
    module = build("any_decay", body).module
    u, mu = (torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    rate = torch.full_like(u, decay).requires_grad_()
    s, t = (torch.randn(2, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(
        lambda *x: module.any_decay(*x, chunk=2), (u, rate, mu, s, t), atol=1e-8
    )


def test_complex_states_that_read_each_other_have_their_gradients(build) -> None:
    name = "feedback_of_complex_states"
    module = build(name, STEPPED[name]).module
    layer = getattr(module, module.__all__[0])(d=2, dtype=torch.float64)
    u = draw(layer, length=4).requires_grad_()
    s, t = (torch.randn(2, 2, dtype=torch.complex128, requires_grad=True) for _ in range(2))

    def run(u: Tensor, s: Tensor, t: Tensor) -> tuple[Tensor, ...]:
        y, last = layer(u, module.State(s=s, t=t), return_state=True)
        return y, last.s, last.t

    assert torch.autograd.gradcheck(run, (u, s, t), atol=1e-8)


# --- memory, text ---------------------------------------------------------------------------------


def test_the_text_steps_the_states_by_their_names(build) -> None:
    text = build("feedback_of_gates", COUPLED).text
    assert "    s_after = a * s_before + b * t_before + u\n" in text
    assert "    t_after = c * t_before + e * s_before + u\n" in text
    assert 'MODES = ("recurrent",)' in text


def test_explain_says_that_it_is_the_only_form_and_why(build) -> None:
    module = build("feedback_of_gates", COUPLED).module
    said = getattr(module, module.__all__[0])(d=2).explain(4096)
    first, legal, _ = said.split("\n")
    assert first.startswith("mode recurrent, ")
    assert legal == (
        "legal: recurrent, 4,096 steps; no faster form: `s` and `t` read another state"
    )
    assert "Recurrent only: `s` and `t` read another state." in " ".join(module.__doc__.split())
