"""What operators do to real and imaginary parts is PyTorch's arithmetic of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dsfc.programs.parts import Parts, in_parts, joined, separated
from dsfc.programs.token_loop import NoProgram

aten = torch.ops.aten
WIDE = torch.complex128
CLOSE = 1e-13
"""A few roundings of float64, relative to the largest number."""


def drawn(*sizes: int, seed: int = 0) -> Tensor:
    """Complex numbers of about 1."""
    return torch.randn(*sizes, dtype=WIDE, generator=torch.Generator().manual_seed(seed))


Z, W, M = drawn(2, 3, seed=1), drawn(2, 3, seed=2), drawn(3, 4, seed=3)
ROW, COLUMN, SQUARES = drawn(1, 3, seed=4), drawn(2, 1, seed=5), drawn(5, 2, 3, seed=6)
REAL, WHICH = torch.randn(2, 3, dtype=torch.float64), Z.real > 0
SMALL = Z * 1e-9

CASES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "sum of two": (aten.add.Tensor, (Z, W), {"alpha": 3}),
    "sum with a real one": (aten.add.Tensor, (REAL, Z), {}),
    "sum with a wider real one": (aten.add.Tensor, (COLUMN, REAL), {}),
    "sum with a mask": (aten.add.Tensor, (Z, WHICH), {}),
    "sum with a number": (aten.add.Tensor, (Z, 2), {}),
    "sum with a complex number": (aten.add.Tensor, (REAL, 2 - 1j), {}),
    "difference": (aten.sub.Tensor, (COLUMN, ROW), {}),
    "difference from a real one": (aten.sub.Tensor, (REAL, Z), {"alpha": 2}),
    "product": (aten.mul.Tensor, (COLUMN, ROW), {}),
    "product with a real one": (aten.mul.Tensor, (REAL, Z), {}),
    "product with a number": (aten.mul.Tensor, (Z, 0.5), {}),
    "product with a complex number": (aten.mul.Tensor, (Z, 2 - 3j), {}),
    "real product with a complex number": (aten.mul.Tensor, (REAL, 2 - 3j), {}),
    "quotient": (aten.div.Tensor, (Z, W), {}),
    "quotient by a real one": (aten.div.Tensor, (Z, REAL), {}),
    "quotient of a real one": (aten.div.Tensor, (REAL, COLUMN), {}),
    "quotient by a complex number": (aten.div.Tensor, (Z, 3 + 4j), {}),
    "quotient by what has no square": (aten.div.Tensor, (Z * 1e-200, W * 1e-200), {}),
    "reciprocal": (aten.reciprocal.default, (Z,), {}),
    "exp": (aten.exp.default, (Z,), {}),
    "expm1": (aten.expm1.default, (Z,), {}),
    "sin": (aten.sin.default, (Z,), {}),
    "cos": (aten.cos.default, (Z,), {}),
    "abs": (aten.abs.default, (Z,), {}),
    "abs of what has no square": (aten.abs.default, (Z * 1e300,), {}),
    "abs of 0": (aten.abs.default, (torch.zeros(2, dtype=WIDE),), {}),
    "sgn": (aten.sgn.default, (Z * WHICH,), {}),
    "polar": (aten.polar.default, (REAL.abs(), REAL), {}),
    "complex": (aten.complex.default, (REAL, 2 * REAL[:1]), {}),
    "conj": (aten._conj.default, (Z,), {}),
    "conj_physical": (aten.conj_physical.default, (Z,), {}),
    "real": (aten.real.default, (Z,), {}),
    "imag": (aten.imag.default, (Z,), {}),
    "view_as_real": (aten.view_as_real.default, (Z,), {}),
    "view_as_complex": (aten.view_as_complex.default, (torch.view_as_real(Z),), {}),
    "neg": (aten.neg.default, (Z,), {}),
    "sum over an axis": (aten.sum.dim_IntList, (Z, [-1]), {}),
    "sum in a dtype": (aten.sum.dim_IntList, (Z, [0]), {"dtype": WIDE}),
    "mean": (aten.mean.dim, (Z, [0]), {}),
    "cumsum": (aten.cumsum.default, (Z, 1), {}),
    "mm": (aten.mm.default, (Z, M), {}),
    "bmm": (aten.bmm.default, (SQUARES, SQUARES.mT), {}),
    "matmul": (aten.matmul.default, (SQUARES, M), {}),
    "addmm": (aten.addmm.default, (drawn(4), Z, M), {"beta": 2, "alpha": 3}),
    "linear": (aten.linear.default, (Z, M.T, drawn(4)), {}),
    "einsum": (aten.einsum.default, ("ij,jk->ki", [Z, M]), {}),
    "view": (aten.view.default, (Z, [3, 2]), {}),
    "permute": (aten.permute.default, (SQUARES, [2, 0, 1]), {}),
    "expand": (aten.expand.default, (COLUMN, [2, 4]), {}),
    "select": (aten.select.int, (Z, 1, 2), {}),
    "slice": (aten.slice.Tensor, (Z, 1, 1, 3), {}),
    "unbind": (aten.unbind.int, (Z, 1), {}),
    "split": (aten.split.Tensor, (Z, 2, 1), {}),
    "unsqueeze": (aten.unsqueeze.default, (Z, 1), {}),
    "squeeze": (aten.squeeze.dim, (COLUMN, 1), {}),
    "repeat_interleave": (aten.repeat_interleave.self_int, (COLUMN, 3, 1), {}),
    "index_select": (aten.index_select.default, (Z, 1, torch.tensor([2, 0])), {}),
    "clone": (aten.clone.default, (Z,), {"memory_format": torch.contiguous_format}),
    "stack": (aten.stack.default, ([Z, REAL, W], 1), {}),
    "cat": (aten.cat.default, ([REAL, Z], -1), {}),
    "pad": (aten.constant_pad_nd.default, (Z, [1, 2]), {}),
    "pad with a number": (aten.constant_pad_nd.default, (Z, [1, 2], 3.0), {}),
    "where": (aten.where.self, (WHICH, Z, W), {}),
    "where it is real": (aten.where.self, (WHICH, COLUMN, REAL), {}),
    "masked_fill": (aten.masked_fill.Scalar, (Z, WHICH, 2 + 1j), {}),
    "to complex": (aten._to_copy.default, (REAL,), {"dtype": WIDE}),
    "to a narrower dtype": (aten._to_copy.default, (Z,), {"dtype": torch.complex64}),
    "ones_like": (aten.ones_like.default, (Z,), {}),
    "full_like": (aten.full_like.default, (REAL, 2 - 1j), {"dtype": WIDE}),
    "full": (aten.full.default, ([2, 3], 1 - 2j), {"dtype": WIDE}),
    **{f"power {n}": (aten.pow.Tensor_Scalar, (Z, n), {}) for n in (-3, -1, 0, 1, 2, 5.0)},
}


def mapped(value: Any, each: Callable[[Any], Any]) -> Any:
    """A value with each tensor or parts in it replaced."""
    if isinstance(value, list | tuple):
        return type(value)(mapped(x, each) for x in value)
    return each(value)


def in_two(x: Any) -> Any:
    return Parts(x.real, x.imag) if isinstance(x, Tensor) and x.is_complex() else x


def in_one(x: Any) -> Any:
    return torch.complex(x.re, x.im) if isinstance(x, Parts) else x


def check(operator: Any, args: Sequence[Any], named: dict[str, Any]) -> None:
    want = operator(*args, **named)
    got = mapped(in_parts(operator, *mapped(tuple(args), in_two), **named), in_one)
    for g, w in zip(*([x] if isinstance(x, Tensor) else x for x in (got, want)), strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        assert (g - w).abs().max() <= CLOSE * w.abs().max()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_rule_is_the_operator(name: str) -> None:
    check(*CASES[name])


@given(
    st.complex_numbers(max_magnitude=50), st.complex_numbers(min_magnitude=1e-3, max_magnitude=1e3)
)
def test_rules_hold_at_any_numbers(z: complex, w: complex) -> None:
    a, b = (torch.tensor([x], dtype=WIDE) for x in (z, w))
    for operator in (aten.mul.Tensor, aten.div.Tensor):
        check(operator, (a, b), {})
    for operator in (aten.exp.default, aten.abs.default, aten.sgn.default):
        check(operator, (a,), {})


def test_expm1_near_0_loses_no_digits() -> None:
    """e^z - 1 = z + z² / 2 + …, whose third term is below a rounding of the first here."""
    got = in_one(in_parts(aten.expm1.default, in_two(SMALL)))
    want = SMALL + SMALL * SMALL / 2
    assert ((got.real - want.real).abs() <= 1e-15 * want.abs()).all()
    assert ((got.imag - want.imag).abs() <= 1e-15 * want.abs()).all()


def test_a_decay_of_0_stays_0() -> None:
    z = Parts(torch.tensor([-math.inf]), torch.tensor([2.0]))
    assert not in_one(in_parts(aten.exp.default, z)).any()


def test_parts_are_what_view_as_real_holds() -> None:
    assert torch.equal(joined(in_two(Z)), torch.view_as_real(Z))
    assert torch.equal(in_one(separated(torch.view_as_real(Z))), Z)


def test_a_real_dtype_takes_the_real_part() -> None:
    assert torch.equal(in_parts(aten._to_copy.default, in_two(Z), dtype=torch.float64), Z.real)


def test_parts_have_a_view_where_they_are_broadcast() -> None:
    check(aten.view.default, (Z, [6]), {})
    wide = in_parts(aten.add.Tensor, in_two(COLUMN), REAL)
    assert torch.equal(in_one(in_parts(aten.view.default, wide, [6])), (COLUMN + REAL).view(6))


def test_what_has_no_rule_is_named() -> None:
    with pytest.raises(NoProgram, match="no rule for atanh of complex numbers"):
        in_parts(aten.atanh.default, in_two(Z))
    with pytest.raises(NoProgram, match="pow of complex numbers but for integer exponents"):
        in_parts(aten.pow.Tensor_Scalar, in_two(Z), 0.5)
    with pytest.raises(NoProgram, match=r"no rule for div of complex numbers: .* 'rounding_mode'"):
        in_parts(aten.div.Tensor_mode, in_two(Z), REAL, rounding_mode="floor")
