"""Modules under torch.compile, as one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dsfc.validate.surface import surface


def graph(run: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(run, fullgraph=True, backend="aot_eager")
    return compiled


@pytest.fixture(params=["normalized_attn", "mlstm"], scope="module")
def layer(request: pytest.FixtureRequest, build: Any) -> torch.nn.Module:
    module = surface(build(request.param, None).module, {"d": 8}).module
    made: torch.nn.Module = getattr(module, module.__all__[0])(d=8)
    return made


# PyTorch's compiler itself makes an instance of the autograd function that it traces.
@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_values_and_gradients_are_those_without_compiling(layer: Any) -> None:
    u = torch.linspace(-1, 1, 2 * 5 * 8).reshape(2, 5, 8).requires_grad_()
    want, got = (run(u) for run in (layer, graph(lambda u: layer(u))))
    torch.testing.assert_close(got, want)
    grads = (torch.autograd.grad(y.square().sum(), u)[0] for y in (got, want))
    torch.testing.assert_close(*grads)


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
def test_nothing_has_to_have_a_gradient(layer: Any) -> None:
    u = torch.linspace(-1, 1, 2 * 5 * 8).reshape(2, 5, 8)
    with torch.no_grad():
        torch.testing.assert_close(graph(lambda u: layer(u))(u), layer(u))
        state = layer.initial_state(2)
        step = graph(lambda u, state: layer.step(u, state)[0])
        torch.testing.assert_close(step(u[:, 0], state), layer.step(u[:, 0], state)[0])
