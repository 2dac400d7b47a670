"""How far NaN and infinity reach: never to the past in `recurrent`, in others to their chunk's.

What a mask leaves out and the neighbours of a sequence in a pack never show, in any mode; for
masks see the promise `masks`, which fills what is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from emitted import compiled
from torch import Tensor

from dsfc.validate.surface import Surface, surface

VALUES = (math.nan, math.inf, -math.inf)
CHUNK, LENGTH = 4, 10
Inputs = dict[str, Tensor]


def filled(inputs: Inputs, start: int, end: int, value: float) -> Inputs:
    """Inputs with one value at all tokens from start to end."""
    return {
        name: torch.cat((x[:, :start], torch.full_like(x[:, start:end], value), x[:, end:]), 1)
        for name, x in inputs.items()
    }


def called(found: Surface, mode: str) -> tuple[Inputs, Callable[[Inputs], Tensor]]:
    """Inputs, and a call of the module that goes on from a state."""
    sample = found.sample(LENGTH)
    chunk = {"chunk": CHUNK} if mode in ("chunked", "scan") else {}
    return sample.inputs, lambda x: sample.layer(**x, state=sample.state, mode=mode, **chunk)


@pytest.mark.share(2, ci=9)
@pytest.mark.parametrize("value", VALUES)
def test_later_tokens_never_show_token_by_token(module: ModuleType, value: float) -> None:
    found = surface(module)
    if found.causal:
        inputs, call = called(found, "recurrent")
        with torch.no_grad():
            want = call(inputs)
            for t in range(1, LENGTH):
                got = call(filled(inputs, t, LENGTH, value))
                assert torch.equal(got[:, :t], want[:, :t]), t


@pytest.mark.share(1, ci=4)
def test_chunks_before_that_of_the_token_are_not_changed(module: ModuleType) -> None:
    found = surface(module)
    for mode in {"chunked", "scan"}.intersection(found.modes if found.causal else ()):
        inputs, call = called(found, mode)
        with torch.no_grad():
            want = call(inputs)
            for value in VALUES:
                for t in (CHUNK, 2 * CHUNK):
                    got = call(filled(inputs, t + 1, LENGTH, value))
                    assert torch.equal(got[:, :t], want[:, :t]), (mode, value, t)


@pytest.mark.share(1, ci=4)
def test_neighbours_in_a_pack_never_show(module: ModuleType) -> None:
    """The second of three sequences, whatever the others hold: outputs, and their gradients."""
    found = surface(module)
    start, end = 3, 8
    sample = found.sample(1, 3)
    ends = torch.tensor((0, start, end, LENGTH))
    inputs = found.draw(LENGTH, 1)
    state = {"state": sample.state} if found.causal else {}
    for mode in found.modes:
        if mode == "fft":
            continue
        seen = []
        for value in (None, *VALUES):
            x = inputs
            if value is not None:
                x = filled(filled(x, 0, start, value), end, LENGTH, value)
            x = {name: v.clone().requires_grad_() for name, v in x.items()}
            y = sample.layer(**x, **state, mode=mode, cu_seqlens=ends)[:, start:end]
            grads = torch.autograd.grad(y.square().sum(), list(x.values()), allow_unused=True)
            seen.append((y, *(g[:, start:end] for g in grads if g is not None)))
        want, *others = seen
        for got in others:
            for a, b in zip(got, want, strict=True):
                assert torch.equal(a, b), mode


def test_all_specs_are_asked() -> None:
    assert len(compiled()) >= 45


def test_a_module_says_so(load: Callable[[str], ModuleType]) -> None:
    said = load("gla").Gla(d=8).explain(8)
    assert "later tokens that are finite change no earlier output; NaN and infinity" in said
    assert "but in fft by rounding" in load("s4d").S4d(d=8, n=4).explain(8)
    assert "later" not in load("dlr_bidirectional").DlrBidirectional(d=4, n=2, m=2).explain(8)
