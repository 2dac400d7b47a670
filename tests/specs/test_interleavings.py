"""States hold under any interleaving: prefill, steps, drafts, rollback, forks, packs and masks."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from emitted import KINDS, causal
from interleaving import BAR, Interleaving, interleave
from torch import Tensor

FIRST = ("gla", "softmax", "lnssm", "short_convolution")
"""A finite state, a cache, a running maximum, earlier tokens."""


@pytest.mark.share(2)
@pytest.mark.parametrize("exact", [False, True], ids=["rounded", "exact"])
@pytest.mark.parametrize("name", FIRST)
def test_any_interleaving_is_the_whole_sequence(module: ModuleType, exact: bool) -> None:
    for seed in range(2):
        interleave(module, seed, exact)


@pytest.mark.ci
@pytest.mark.parametrize("exact", [False, True], ids=["rounded", "exact"])
@pytest.mark.parametrize("name", [n for n in KINDS if n not in FIRST])
def test_of_each_class(module: ModuleType, exact: bool) -> None:
    for seed in range(100, 103):
        interleave(module, seed, exact)


@pytest.mark.full
@pytest.mark.parametrize("exact", [False, True], ids=["rounded", "exact"])
@pytest.mark.parametrize("name", causal())
def test_of_each_mixer(module: ModuleType, exact: bool) -> None:
    for seed in range(200, 220):
        interleave(module, seed, exact)


def _flipped(state: Any) -> Any:
    return type(state)(*(getattr(state, name).flip(0) for name in state.layout))


def _leaked(masked: Any, unmasked: Any, mask: Tensor | None) -> Any:
    return masked if mask is None else (masked[0], unmasked[1])


MUTANTS: dict[tuple[str, str], Callable[..., Any]] = {
    ("State", "index"): lambda run: lambda *a: _flipped(run(*a)),
    ("State", "cat"): lambda run: lambda states: run([*states][::-1]),
    ("State", "repeat"): lambda run: lambda *a: _flipped(run(*a)),
    ("States", "select"): lambda run: lambda self, tokens: run(self, (tokens - 1).clamp(min=0)),
    ("States", "at"): lambda run: lambda self, tokens: run(self, self.count),
    ("Gla", "forward"): lambda run: (
        lambda *a, mask=None, **k: _leaked(run(*a, mask=mask, **k), run(*a, **k), mask)
    ),
    ("Gla", "checkpoints"): lambda run: (
        lambda *a, **k: (lambda y, s: (y, (s[-1],) * len(s)))(*run(*a, **k))
    ),
}
"""Methods by class and name, and what makes a wrong one of each."""


@pytest.mark.parametrize("method", MUTANTS, ids=".".join)
@pytest.mark.parametrize("name", ["gla"])
def test_a_wrong_state_is_seen(
    method: tuple[str, str], module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name = getattr(module, method[0]), method[1]
    monkeypatch.setattr(kind, name, MUTANTS[method](getattr(kind, name)))
    with pytest.raises(AssertionError, match="off by"):
        for seed in range(60):
            interleave(module, seed)


@pytest.mark.parametrize("name", ["gla"])
def test_a_mode_that_is_not_exact_is_seen(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = module.Gla.forward
    monkeypatch.setattr(module.Gla, "forward", lambda *a, mode, **k: run(*a, **k))
    with pytest.raises(AssertionError, match="bits differ"):
        for seed in range(12):
            interleave(module, seed, exact=True)


def _larger(y: Tensor, size: Tensor) -> Tensor:
    return y + 2 * BAR * size


def _next(y: Tensor, size: Tensor) -> Tensor:
    return torch.nextafter(y, size.new_tensor(torch.inf))


@pytest.mark.parametrize(("seed", "exact"), [(8, False), (0, True), (8, True)])
@pytest.mark.parametrize("name", ["gla"])
def test_a_wrong_output_is_seen_wherever_it_stands(
    module: ModuleType, seed: int, exact: bool
) -> None:
    one, changed = Interleaving(module, seed, exact), _next if exact else _larger
    one.run(8)
    requests = [r for r in (*one.done, *one.requests) if r.tokens]
    assert len({len(r.tokens) for r in requests}) > 2
    for request in requests:
        right, size = request.outputs, torch.stack(request.outputs).abs().max()
        for k in {0, len(right) // 2, len(right) - 1}:
            request.outputs = [*right[:k], changed(right[k], size), *right[k + 1 :]]
            with pytest.raises(AssertionError, match="bits differ" if exact else "off by"):
                one.judge()
        request.outputs = right
    one.judge()


@pytest.mark.ci
@pytest.mark.parametrize("name", ["gla", "softmax", "mlstm", "s4d", "ssd"])
def test_exact_of_larger_layers_on_several_threads(name: str, module: ModuleType) -> None:
    """Sizes at which PyTorch cuts a single operation into threads and vectors with a rest."""
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            torch.manual_seed(0)
            sizes = {"d": 516} | ({"n": 67} if name in ("s4d", "ssd") else {})
            layer = getattr(module, module.__all__[0])(**sizes)
            u = torch.randn(3, 5, 516)
            with torch.no_grad():
                whole = layer(u, mode="exact")
                alone = [layer(u[b : b + 1], mode="exact") for b in range(3)]
                head, state = layer(u[:, :2], mode="exact", return_state=True)
                tail = layer(u[:, 2:], state, mode="exact")
            assert torch.equal(whole, torch.cat(alone))
            assert torch.equal(whole, torch.cat((head, tail), 1))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ["gla", "softmax"])
def test_exact_has_the_same_bits_with_gradients(name: str, module: ModuleType) -> None:
    layer = getattr(module, module.__all__[0])(d=16)
    u = torch.randn(2, 4, 16)
    y = layer(u, mode="exact")
    y.square().sum().backward()
    with torch.no_grad():
        assert torch.equal(y, layer(u, mode="exact"))
    assert all(p.grad is not None for p in layer.parameters())


def _refused(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("dlr_bidirectional")


@pytest.mark.ci
def test_exact_is_refused_where_there_are_no_steps(load: Callable[[str], ModuleType]) -> None:
    module = _refused(load)
    layer = getattr(module, module.__all__[0])(d=4, n=3, m=3)
    with pytest.raises(ValueError, match="E-STEP"):
        layer(torch.randn(1, 3, 4), mode="exact")
    with pytest.raises(ValueError, match="E-STEP"):
        layer.checkpoints(torch.randn(1, 3, 4), every=2)
