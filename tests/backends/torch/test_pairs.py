"""Sums over all pairs of tokens are operators: PyTorch's machinery takes them as one call each."""

from __future__ import annotations

import pytest
import torch
from unusual_specs import PAIRS

from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, deterministic_torch, run
from dsfc.validate.surface import Surface, surface

BY_NAME = {check.name: check for check in CHECKS}
SOON = ("gradcheck", "forward mode", "owned memory", "memory", "flops", "meta", "vmap")
"""Promises about operators that are held to in no time."""
LATER = ("opcheck", "gradgradcheck", "hessian", "third order", "compile", "dynamic", "export")
FEW = ("sigmoid_attention", "pairs_of_complex_values", "sums_before_and_after")
"""A sum with a constant size, one of complex numbers, two of which one is over later tokens."""


@pytest.fixture
def found(name: str, build) -> Surface:
    return surface(build(name, PAIRS[name]).module)


@pytest.mark.share(45)
@pytest.mark.parametrize("promise", SOON)
@pytest.mark.parametrize("name", (*FEW, "pairs_of_one_value", "pairs_of_distances_alone"))
def test_operators_keep_the_promises_of_operators(name: str, promise: str, found: Surface) -> None:
    with deterministic_torch():
        row = run(BY_NAME[promise], found)
    assert row.outcome is Outcome.KEPT, row.figure


@pytest.mark.ci
@pytest.mark.share(1, ci=24)
@pytest.mark.parametrize("promise", LATER)
@pytest.mark.parametrize("name", FEW)
def test_operators_are_traced_compiled_and_exported(
    name: str, promise: str, found: Surface
) -> None:
    with deterministic_torch():
        row = run(BY_NAME[promise], found)
    assert row.outcome is Outcome.KEPT, row.figure


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["sigmoid_attention", "pairs_of_one_value"])
def test_one_graph_has_one_call_of_the_sum(name: str, found: Surface) -> None:
    layer = found.layer()
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    try:
        run = torch.compile(layer, fullgraph=True, dynamic=True, backend=backend)
        with deterministic_torch(), torch.no_grad():
            for length in (7, 5, 12):
                x = found.draw(length)["u"]
                torch.testing.assert_close(run(x), layer(x), rtol=1e-12, atol=1e-12)
    finally:
        torch._dynamo.reset()
    assert len(graphs) == 1


@pytest.mark.parametrize("name", ["sigmoid_attention", "sums_before_and_after"])
def test_the_sum_and_its_gradient_are_one_operator_each(name: str, found: Surface) -> None:
    calls = [c.op.name().rpartition("::")[2] for c in found.calls(found.sample(5))]
    sums = 1 if name == "sigmoid_attention" else 2
    assert len(calls) == 2 * sums
    assert sum("pairs_forward" in c for c in calls) == sums
    assert sum("pairs_backward" in c for c in calls) == sums


def test_a_tensor_that_grows_is_named_by_a_tuple(build) -> None:
    name = "pairs_of_distances_alone"
    assert surface(build(name, PAIRS[name]).module).growing == ("seen",)


@pytest.mark.ci
def test_a_maximum_of_a_pair_has_second_derivatives(build) -> None:
    """The gradient of a maximum is a step, whose own derivative is 0."""
    text = "dims d\n input u : d\n y = sum[j < i](max(u, u[j]) * u[j])"
    found = surface(build("maximum", text).module)
    u = found.draw(3, batch=1)["u"].requires_grad_()
    assert torch.autograd.gradgradcheck(found.layer(), (u,))
