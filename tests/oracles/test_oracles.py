"""What every oracle keeps: its interface, its shapes, causality, segments, derivatives."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

HERE = Path(__file__).parent
SPECS = HERE.parents[1] / "specs"
MIXERS = sorted(
    path.stem for path in HERE.glob("*.py") if not path.stem.startswith(("test_", "conftest"))
)
# A sum over the past whose compiled form is a recurrence has that recurrence written out as well.
RECURRENT = [
    "generalized_attn",
    "linear_attn",
    "lln",
    "normalized_attn",
    "normalized_attn_multihead",
    "normalized_attn_sigmoid",
    "normalized_attn_softplus",
    "performer",
    "retnet",
]
# They read earlier tokens from the input itself (filters, token shift), not from a declared state.
WINDOWED = ["gla_block", "h3", "lnssm_block"]
# Forms whose only mention of the past is a sum or a filter.
STATELESS = [
    *RECURRENT,
    "dlr",
    "dlr_bidirectional",
    "dlr_kronecker",
    "dlr_prod",
    "dlr_real",
    "mamba3",
    "retnet_rope",
    "rwkv4",
    "separable",
    "short_convolution",
    "softmax",
    "taylor_softmax",
]
STATEFUL = [name for name in MIXERS if name not in STATELESS]

Load = Callable[[str], ModuleType]
Draw = Callable[..., dict[str, Tensor]]


# A base has no output, and what is not linear in its state is refused.
WITHOUT = ["lstm", "qkv", "slstm"]


def test_there_is_one_oracle_for_every_mixer() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in SPECS.glob("*.dsf")}
    mixers = {name for name, text in texts.items() if re.search(rf"^mixer {name} ", text, re.M)}
    assert sorted([*MIXERS, *WITHOUT]) == sorted(mixers)


@pytest.mark.parametrize("name", MIXERS)
def test_an_oracle_imports_torch_and_nothing_of_the_project(name: str) -> None:
    tree = ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None
            imported.add(node.module.split(".")[0])
    assert imported <= {"torch"} | set(sys.stdlib_module_names)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_shapes(name: str, batch: int, length: int, load: Load, draw: Draw) -> None:
    oracle = load(name)
    y, final = oracle.forward(draw(oracle, batch, length), oracle.DIMS)
    shapes = oracle.shapes(oracle.DIMS)
    assert y.shape == (batch, length, *shapes["output"]["y"])
    assert y.dtype == torch.float64
    assert set(final) == set(shapes["states"])
    for state, axes in shapes["states"].items():
        assert final[state].shape == (batch, *axes)
        assert final[state].is_complex() == (state in oracle.COMPLEX)
    assert all(torch.isfinite(value).all() for value in (y, *final.values()))


@pytest.mark.parametrize("name", MIXERS)
def test_declarations_name_tensors_of_the_oracle(name: str, load: Load) -> None:
    oracle = load(name)
    shapes = oracle.shapes(oracle.DIMS)
    assert set(shapes) - {"abstracts", "recurrent"} == {
        "inputs",
        "params",
        "buffers",
        "states",
        "output",
    }
    names = {tensor for group in shapes.values() for tensor in group}
    assert names >= oracle.COMPLEX
    assert names >= set(oracle.CONSTRAINTS)
    assert set(oracle.CONSTRAINTS.values()) <= {"positive", "unit", "nonzero"}
    assert len(set(oracle.DIMS.values())) == len(oracle.DIMS), "axes are told apart by their sizes"


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_every_tensor_matters(name: str, load: Load, draw: Draw) -> None:
    oracle = load(name)
    tensors = draw(oracle, seed=3)
    if name == "qlstm_s6gate":  # relu: a negative exponent has no derivative
        tensors["alpha"] = tensors["alpha"].abs()
    for value in tensors.values():
        value.requires_grad_()
    oracle.forward(tensors, oracle.DIMS)[0].square().sum().backward()
    for tensor, value in tensors.items():
        assert value.grad is not None and value.grad.abs().max() > 0, tensor


@pytest.mark.parametrize("name", [name for name in MIXERS if name != "dlr_bidirectional"])
def test_outputs_do_not_see_the_future(name: str, load: Load, draw: Draw) -> None:
    oracle = load(name)
    tensors = draw(oracle)
    inputs = oracle.shapes(oracle.DIMS)["inputs"]
    y, _ = oracle.forward(tensors, oracle.DIMS)
    changed = {
        key: torch.cat([value[:, :4], 1 - value[:, 4:]], 1) if key in inputs else value
        for key, value in tensors.items()
    }
    other, _ = oracle.forward(changed, oracle.DIMS)
    assert torch.equal(y[:, :4], other[:, :4])
    assert not torch.allclose(y[:, 4:], other[:, 4:])


def test_the_bidirectional_mixer_sees_the_future(load: Load, draw: Draw) -> None:
    oracle = load("dlr_bidirectional")
    tensors = draw(oracle)
    y, _ = oracle.forward(tensors, oracle.DIMS)
    tensors["u"] = torch.cat([tensors["u"][:, :-1], 1 - tensors["u"][:, -1:]], 1)
    assert not torch.allclose(y[:, 0], oracle.forward(tensors, oracle.DIMS)[0][:, 0])


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_the_double_sum_is_the_recurrence(
    name: str, batch: int, length: int, load: Load, draw: Draw
) -> None:
    oracle = load(name)
    tensors = draw(oracle, batch, length)
    y, _ = oracle.forward(tensors, oracle.DIMS)
    other, final = oracle.recurrent(tensors, oracle.DIMS)
    torch.testing.assert_close(other, y, rtol=1e-12, atol=1e-13)
    for state, axes in oracle.shapes(oracle.DIMS)["recurrent"].items():
        assert final[state].shape == (batch, *axes)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", sorted(set(STATEFUL) - set(WINDOWED)) + RECURRENT)
@pytest.mark.parametrize("cut", [0, 1, 4, 7])
def test_two_segments_are_the_whole(name: str, cut: int, load: Load, draw: Draw) -> None:
    oracle = load(name)
    run = oracle.recurrent if name in RECURRENT else oracle.forward
    group = "recurrent" if name in RECURRENT else "states"
    tensors = draw(oracle)
    inputs = oracle.shapes(oracle.DIMS)["inputs"]
    start = draw(oracle, groups=(group,), seed=1)
    if "z" in start:  # a denominator's state is a sum of positive terms
        start["z"] = start["z"].abs()

    def part(where: slice) -> dict[str, Tensor]:
        return {k: v[:, where] if k in inputs else v for k, v in tensors.items()}

    y, final = run(tensors, oracle.DIMS, start)
    head, middle = run(part(slice(cut)), oracle.DIMS, start)
    tail, last = run(part(slice(cut, None)), oracle.DIMS, middle)
    assert torch.equal(torch.cat([head, tail], 1), y)
    assert all(torch.equal(last[state], final[state]) for state in final)
    assert set(final) == set(start)


@pytest.mark.parametrize("name", STATELESS)
def test_a_sum_over_the_past_takes_no_initial_state(name: str, load: Load, draw: Draw) -> None:
    oracle = load(name)
    with pytest.raises(ValueError, match="state"):
        oracle.forward(draw(oracle), oracle.DIMS, {"S": torch.zeros(2)})


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_derivatives_of_inputs_parameters_and_states(name: str, load: Load, draw: Draw) -> None:
    oracle = load(name)
    tensors = draw(oracle, batch=1, length=3, seed=5)
    start = draw(oracle, batch=1, groups=("states",), seed=6)
    if "z" in start:
        start["z"] = start["z"].abs()
    names, states = list(tensors), list(start)

    def run(*values: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(names, values, strict=False))
        initial = dict(zip(states, values[len(names) :], strict=True))
        y, final = oracle.forward(given, oracle.DIMS, initial)
        return (y, *final.values())

    arguments = [value.requires_grad_() for value in (*tensors.values(), *start.values())]
    assert torch.autograd.gradcheck(run, arguments, fast_mode=True)
