"""Modules beside loops written by hand, in values and gradients: corners that were once wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus
from unusual_specs import COMPILED, STEPPED

from dsfc.mixer import evaluate as evaluate_mixer
from dsfc.system.evaluate import evaluate
from dsfc.validate.surface import surface

Params = dict[str, Tensor]
LENGTH, CHUNK = 7, 3


def selective(decay: Callable[[Params, Tensor], Tensor], read: str) -> Callable:
    """S_i = λ_i S_{i-1} + u_i b_iᵀ, and its sum or mean over the entries of a key."""

    def loop(p: Params, u: Tensor) -> list[Tensor]:
        S = torch.zeros(*u.shape[:1], u.shape[-1], len(p["W_b"]), dtype=u.dtype)
        out = []
        for x in u.unbind(1):
            b = x @ p["W_b"].T
            S = decay(p, x) * S + x[:, :, None] * b[:, None, :]
            out.append(S.sum(-1) if read == "sum" else S.mean(-1))
        return out

    return loop


def per_entry(p: Params, x: Tensor) -> Tensor:
    return torch.exp(-softplus(x @ p["W_D"].T)[:, :, None] * torch.exp(p["a"]))


def product_per_entry(p: Params, u: Tensor) -> list[Tensor]:
    """S_i = σ(C u_i ∘ E u_i) ∘ S_{i-1} + u_i (B u_i)ᵀ, read with B u_i."""
    S = torch.zeros(*u.shape[:1], *p["C"].shape[:2], dtype=u.dtype)
    out = []
    for x in u.unbind(1):
        c, e = (torch.einsum("dnx,bx->bdn", p[name], x) for name in "CE")
        b = x @ p["B"].T
        S = torch.sigmoid(c * e) * S + x[:, :, None] * b[:, None, :]
        out.append((S * b[:, None, :]).sum(-1))
    return out


def per_channel(p: Params, x: Tensor) -> Tensor:
    return torch.sigmoid(x @ p["W_D"].T)[:, :, None]


def diagonal(p: Params, s: Tensor) -> Tensor:
    return torch.sigmoid(p["w"]) * s


def full(p: Params, s: Tensor) -> Tensor:
    return torch.einsum("mn,bnh->bmh", p["A"], s)


def fixed(transition: Callable[[Params, Tensor], Tensor]) -> Callable:
    """s_i = Λ s_{i-1} + b ∘ (B u_i), of the same Λ at every token, read with c."""

    def loop(p: Params, u: Tensor) -> list[Tensor]:
        s = torch.zeros(*u.shape[:1], *p["b"].shape, dtype=u.dtype)
        out = []
        for x in u.unbind(1):
            s = transition(p, s) + p["b"] * (x @ p["B"].T)[:, None, :]
            out.append((p["c"] * s).sum(1))
        return out

    return loop


LOOPS = {
    "sum_of_a_selective_state": selective(per_entry, "sum"),
    "sum_of_a_state_decayed_by_channel": selective(per_channel, "sum"),
    "mean_of_a_state_decayed_by_channel": selective(per_channel, "mean"),
    "decay_of_a_product_per_entry": product_per_entry,
    "heads_behind_keys": fixed(diagonal),
    "dense_heads_behind_keys": fixed(full),
}


@pytest.mark.parametrize("name", LOOPS)
def test_values_and_gradients_are_those_of_a_loop(name: str, build) -> None:
    found = surface(build(name, COMPILED[name]).module)
    sample = found.sample(LENGTH, state=False)
    layer, u = sample.layer, sample.inputs["u"].detach().requires_grad_()
    params = dict(layer.named_parameters())
    want = torch.stack(LOOPS[name](params, u), 1)
    wanted = gradients(want, [u, *params.values()])
    for mode in found.modes:
        got = layer(u, mode=mode, chunk=CHUNK)
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)
        bars = gradients(got, [u, *params.values()])
        torch.testing.assert_close(bars, wanted, rtol=1e-11, atol=1e-11)


def gradients(y: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """Gradients of a sum of y with weights of both signs; 0 for what y does not depend on."""
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
    whole = (y * weights).sum()
    found = torch.autograd.grad(whole, leaves, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def test_a_decay_of_later_tokens_is_that_of_a_sum_over_them(build) -> None:
    found = surface(build("decay_of_a_later_token", STEPPED["decay_of_a_later_token"]).module)
    sample = found.sample(LENGTH, state=False)
    q, k, v, g = (sample.inputs[n].detach().requires_grad_() for n in "qkvg")
    a = torch.sigmoid(g)
    rows = []
    for i in range(LENGTH):
        row, weight = torch.zeros_like(v[:, i]), torch.ones_like(a[:, i])
        for j in range(i, LENGTH):
            weight = weight * a[:, j] if j > i else weight
            row = row + (weight * (q[:, i] * k[:, j]).sum(-1))[..., None] * v[:, j]
        rows.append(row)
    want = torch.stack(rows, 1)
    for mode in found.modes:
        got = sample.layer(q=q, k=k, v=v, g=g, mode=mode, chunk=CHUNK)
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)
        pairs = (gradients(y, [q, k, v, g]) for y in (got, want))
        torch.testing.assert_close(*pairs, rtol=1e-11, atol=1e-11)


def test_a_filter_of_a_state_does_not_see_the_initial_state(build) -> None:
    built = build("filter_of_a_state", COMPILED["filter_of_a_state"])
    found = surface(built.module)
    sample = found.sample(LENGTH, state=False)
    layer, u = sample.layer, sample.inputs["u"].detach().requires_grad_()
    w = dict(layer.named_parameters())["w"]
    start = torch.linspace(-1, 1, u[:, 0].numel(), dtype=u.dtype).reshape(u[:, 0].shape)
    s, states = start, []
    for x in u.unbind(1):
        s = torch.sigmoid(x) * s + x
        states.append(s)
    taps = range(len(w))
    y = [sum(w[r] * states[i - r] for r in taps if r <= i) for i in range(LENGTH)]
    want = torch.stack(y, 1)
    wanted = gradients(want, [u, w])
    for mode in found.modes:
        state = replace(layer.initial_state(len(u)), s=start)
        got = layer(u, state=state, mode=mode, chunk=CHUNK)
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(gradients(got, [u, w]), wanted, rtol=1e-11, atol=1e-11)
    mixer, arrays = built.spec.mixer, {"w": w.detach().numpy()}
    known = {"d": u.shape[-1], "t": len(w)}
    for row, given in enumerate(u.detach().numpy()):
        at = {"u": given}, arrays, known
        literal = evaluate_mixer(mixer, *at, initial={"s": start[row].numpy()})["y"]
        system = evaluate(built.spec.system, *at, {"s": start[row].numpy()}).outputs["y"]
        for value in (literal, system):
            torch.testing.assert_close(
                torch.from_numpy(value), want[row].detach(), rtol=1e-12, atol=1e-12
            )
