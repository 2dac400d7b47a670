"""Single operators of PyTorch on random numbers, beside float64."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

from dsfc.rounding.enclosure import UnknownError, exact
from dsfc.rounding.interpret import run

DTYPES = (torch.float32, torch.bfloat16, torch.float16)

OPERATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a number added": lambda x, y: x + 0.3337,
    "taken from a number": lambda x, y: 0.3337 - x,
    "times a number": lambda x, y: x * 0.3337,
    "over a number": lambda x, y: x / 0.3337,
    "a number over it": lambda x, y: 0.3337 / y,
    "a constant without axes": lambda x, y: x + x.new_full((), 0.3337, dtype=_wide(x)),
    "times whole numbers": lambda x, y: x * torch.arange(997, 1003),
    "times one whole number": lambda x, y: x * torch.tensor(1003),
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "in place, of another dtype": lambda x, y: x.clone().mul_(y.to(_wide(y)) * 1.001),
    "written into a part": lambda x, y: _written(x, y),
    "sum": lambda x, y: (x * y).sum(-1),
    "running sum": lambda x, y: x.cumsum(-1),
    "matrices": lambda x, y: x @ y.mT,
    "softmax": lambda x, y: torch.softmax(8 * x, -1),
    "attention": lambda x, y: torch.nn.functional.scaled_dot_product_attention(
        x[None], 4 * y[None], x[None], is_causal=True
    ),
    "normalized": lambda x, y: torch.nn.functional.normalize(x, dim=-1),
    "length": lambda x, y: torch.linalg.vector_norm(x, dim=-1),
    "exponential": lambda x, y: torch.exp(3 * x),
    "logarithm": lambda x, y: torch.log(y),
    "sigmoid": lambda x, y: torch.sigmoid(5 * x),
    "log sigmoid": lambda x, y: torch.nn.functional.logsigmoid(5 * x),
    "silu": lambda x, y: torch.nn.functional.silu(5 * x),
    "elu": lambda x, y: torch.nn.functional.elu(5 * x),
    "softplus": lambda x, y: torch.nn.functional.softplus(2 * x),
    "tanh": lambda x, y: torch.tanh(3 * x),
    "clamp": lambda x, y: x.clamp(-0.3337, 0.3337),
    "cast": lambda x, y: (x.to(_wide(x)) * 1.0001).to(x.dtype),
}


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _written(x: Tensor, y: Tensor) -> Tensor:
    out = x.new_empty(x.shape)
    out[:, :2] = x[:, :2] * y[:, :2]
    out[:, 2:].copy_(x[:, 2:]).add_(y[:, 2:])
    return out


@pytest.fixture
def module() -> ModuleType:
    made = ModuleType("operators")
    vars(made).update(NAMESPACE="none", __file__=__file__)
    return made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_no_error_of_an_operator_is_above_its_bound(
    module: ModuleType, name: str, dtype: torch.dtype
) -> None:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(40, 6, generator=draw).to(dtype)
    y = (0.2 + torch.rand(40, 6, generator=draw)).to(dtype)
    operator = OPERATORS[name]
    result, seen = run(module, operator, (exact(x), exact(y)), {})
    low, high, bound = result.parts
    got, true = operator(x, y).double(), operator(x.double(), y.double())
    error = (got - true).abs()
    assert result.dtype == operator(x, y).dtype
    assert not seen.hazards
    assert bool(((low - 1e-12 <= true) & (true <= high + 1e-12)).all())
    assert bool((error <= bound).all())
    assert float(error.max()) > 1e-4 * float(bound.max())


def test_an_order_that_numbers_decide_is_unknown(module: ModuleType) -> None:
    with pytest.raises(UnknownError, match="no rule for sort"):
        run(module, lambda x: x.sort().values, (exact(torch.ones(2)),), {})


def test_a_comparison_that_errors_may_turn_is_unknown(module: ModuleType) -> None:
    thirds = exact(torch.full((4,), 3.0))
    with pytest.raises(UnknownError, match="not decided"):
        run(module, lambda x: torch.where(1 / x > 1 / 3, x, -x), (thirds,), {})
    result, _ = run(module, lambda x: torch.where(1 / x > 1 / 4, x, -x), (thirds,), {})
    assert bool((result.parts[0] == 3).all())
