"""PyTorch's operators of complex tensors as operators of real and imaginary parts.

`RULES` is the table: operator → function of `Parts` and whatever else the operator takes. What has
no rule is refused by its name. At finite numbers the rules are the operators to rounding; products
and quotients of infinities may differ, as they do between complex libraries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dsfc.programs.token_loop import NoProgram

Rule = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """A complex tensor.

    Attributes:
        re: its real part.
        im: its imaginary part, of the same shape and dtype.
    """

    re: Tensor
    im: Tensor


def joined(z: Parts) -> Tensor:
    """Returns both parts in a last axis of 2, as `torch.view_as_real` does."""
    return torch.stack((z.re, z.im), -1)


def separated(x: Tensor) -> Parts:
    """Returns the parts that a last axis of 2 holds."""
    return Parts(x.select(-1, 0), x.select(-1, 1))


def in_parts(operator: Any, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - as of any operator
    """Computes an operator of complex numbers.

    Args:
        operator: of `torch.ops.aten`.
        args: what it takes, with `Parts` for complex tensors.
        named: what it takes by name.

    Raises:
        NoProgram: there is no rule for it, or not for these arguments.
    """
    packet = getattr(operator, "overloadpacket", operator)
    rule, name = RULES.get(packet), str(packet).removeprefix("aten.")
    if rule is None:
        raise NoProgram(f"there is no rule for {name} of complex numbers, which ONNX has not")
    try:
        inspect.signature(rule).bind(*args, **named)
    except TypeError as e:
        raise NoProgram(f"there is no rule for {name} of complex numbers: {e}") from None
    return rule(*args, **named)


# --- numbers --------------------------------------------------------------------------------------


def _split(x: Any) -> tuple[Any, Any]:  # noqa: ANN401 - a tensor, parts or a number
    """The parts of a value; None for the imaginary part of a real one."""
    if isinstance(x, Parts):
        return x.re, x.im
    return (x.real, x.imag) if isinstance(x, complex) else (x, None)


def _tensor(x: Any, like: Tensor) -> Tensor:  # noqa: ANN401 - a tensor, a number or nothing
    return x if isinstance(x, Tensor) else torch.full_like(like, x or 0)


def _parts(re: Any, im: Any) -> Parts:  # noqa: ANN401 - one of them may be a number
    """Parts of one shape and dtype, where one is broadcast to the other."""
    re = _tensor(re, im)
    im = _tensor(im, re)
    dtype = torch.promote_types(re.dtype, im.dtype)
    if _sizes(re) != _sizes(im):
        re, im = torch.broadcast_tensors(re, im)
    return Parts(re.to(dtype), im.to(dtype))


def _sizes(x: Tensor) -> list[str]:
    """Sizes in words: comparing open sizes themselves would fix them."""
    return [str(n) for n in x.shape]


def _real(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the parts of a dtype."""
    return dtype.to_real() if dtype.is_complex else dtype


# --- arithmetic -----------------------------------------------------------------------------------


def _add(a: Any, b: Any, *, alpha: Any = 1) -> Parts:  # noqa: ANN401
    (a_re, a_im), (b_re, b_im) = _split(a), _split(b)
    re = torch.add(a_re, b_re, alpha=alpha)
    if b_im is None:
        return _parts(re, a_im)
    if a_im is None:
        return _parts(re, b_im * alpha)
    return _parts(re, torch.add(a_im, b_im, alpha=alpha))


def _subtract(a: Any, b: Any, *, alpha: Any = 1) -> Parts:  # noqa: ANN401
    return _add(a, b, alpha=-alpha)


def _product(by: Rule, a: Any, b: Any) -> Parts:  # noqa: ANN401
    """A product that is linear in both of its factors, such as that of matrices."""
    (a_re, a_im), (b_re, b_im) = _split(a), _split(b)
    if a_im is None:
        return _parts(by(a_re, b_re), by(a_re, b_im))
    if b_im is None:
        return _parts(by(a_re, b_re), by(a_im, b_re))
    return _parts(by(a_re, b_re) - by(a_im, b_im), by(a_re, b_im) + by(a_im, b_re))


_multiply = partial(_product, torch.mul)


def _plus_product(by: Rule, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Parts:  # noqa: ANN401
    """β x + α a b, as `addmm` gives it."""
    return _add(_multiply(x, beta), _product(by, a, b), alpha=alpha)


def _linear(x: Any, weight: Any, bias: Any = None) -> Parts:  # noqa: ANN401
    out = _product(torch.nn.functional.linear, x, weight)
    return out if bias is None else _add(out, bias)


def _einsum(equation: str, factors: Sequence[Any], *, path: Any = None) -> Parts:  # noqa: ANN401
    if len(factors) == 1:
        (z,) = factors
        return Parts(torch.einsum(equation, z.re), torch.einsum(equation, z.im))
    if len(factors) > 2:
        raise NoProgram("there is no rule for einsum of three complex factors, which ONNX has not")
    return _product(lambda a, b: torch.einsum(equation, a, b), *factors)


def _divide(a: Any, b: Any) -> Parts:  # noqa: ANN401
    """The quotient, scaled so that the square of a large or small divisor is not taken."""
    (a_re, a_im), (b_re, b_im) = _split(a), _split(b)
    if b_im is None:
        return _parts(torch.div(a_re, b_re), torch.div(a_im, b_re))
    like = next(x for x in (b_re, a_re) if isinstance(x, Tensor))
    b_re, b_im = _tensor(b_re, like), _tensor(b_im, like)
    scale = torch.maximum(b_re.abs(), b_im.abs())
    b_re, b_im = b_re / scale, b_im / scale
    z = _multiply(a, Parts(b_re, -b_im))
    square = b_re * b_re + b_im * b_im
    return _parts(z.re / square / scale, z.im / square / scale)


def _reciprocal(z: Parts) -> Parts:
    return _divide(torch.ones_like(z.re), z)


def _power(z: Any, exponent: Any) -> Parts:  # noqa: ANN401
    """An integer power, by squares."""
    whole = isinstance(exponent, int | float) and float(exponent).is_integer()
    if not (isinstance(z, Parts) and whole):
        raise NoProgram("there is no rule for pow of complex numbers but for integer exponents")
    result, square, left = None, z, abs(int(exponent))
    while left:
        if left % 2:
            result = square if result is None else _multiply(result, square)
        left //= 2
        square = _multiply(square, square) if left else square
    if result is None:
        return Parts(torch.ones_like(z.re), torch.zeros_like(z.im))
    return result if exponent > 0 else _reciprocal(result)


# --- functions ------------------------------------------------------------------------------------


def _absolute(z: Parts) -> Tensor:
    """√(re² + im²), scaled so that no square overflows or vanishes; 0 at 0."""
    large = torch.maximum(z.re.abs(), z.im.abs())
    small = torch.minimum(z.re.abs(), z.im.abs())
    ratio = small / torch.where(large == 0, torch.ones_like(large), large)
    return large * torch.sqrt(1 + ratio * ratio)


def _sign(z: Parts) -> Parts:
    size = _absolute(z)
    size = torch.where(size == 0, torch.ones_like(size), size)
    return Parts(z.re / size, z.im / size)


def _polar(size: Tensor, angle: Tensor) -> Parts:
    return _parts(size * torch.cos(angle), size * torch.sin(angle))


def _exp(z: Parts) -> Parts:
    return _polar(torch.exp(z.re), z.im)


def _expm1(z: Parts) -> Parts:
    """e^z - 1: near 0 neither e^re - 1 nor cos im - 1 is a difference of two numbers near 1."""
    half = torch.sin(z.im / 2)
    re = torch.expm1(z.re) * torch.cos(z.im) - 2 * half * half
    return Parts(re, torch.exp(z.re) * torch.sin(z.im))


def _sin(z: Parts) -> Parts:
    return Parts(torch.sin(z.re) * torch.cosh(z.im), torch.cos(z.re) * torch.sinh(z.im))


def _cos(z: Parts) -> Parts:
    return Parts(torch.cos(z.re) * torch.cosh(z.im), -torch.sin(z.re) * torch.sinh(z.im))


# --- parts and dtypes -----------------------------------------------------------------------------


def _conjugate(z: Parts) -> Parts:
    return Parts(z.re, -z.im)


def _converted(x: Any, *, dtype: torch.dtype | None = None, **named: Any) -> Any:  # noqa: ANN401
    """A change of dtype, device or layout; a real dtype takes the real part, as PyTorch does."""
    copy: Callable[..., Tensor] = torch.ops.aten._to_copy.default
    if dtype is not None:
        named["dtype"] = _real(dtype)
    if not isinstance(x, Parts):
        return _parts(copy(x, **named), None)
    if dtype is not None and not dtype.is_complex:
        return copy(x.re, **named)
    return Parts(copy(x.re, **named), copy(x.im, **named))


def _full(sizes: Sequence[Any], value: Any, *, dtype: torch.dtype, **named: Any) -> Parts:  # noqa: ANN401
    re, im = _split(value)
    named["dtype"] = _real(dtype)
    return Parts(torch.full(sizes, re, **named), torch.full(sizes, im or 0, **named))


def _full_like(x: Any, value: Any, *, dtype: torch.dtype | None = None, **named: Any) -> Any:  # noqa: ANN401
    """A tensor of one number like another, real where the dtype is."""
    named.pop("pin_memory", None)
    like = x.re if isinstance(x, Parts) else x
    re, im = _split(value)
    filled = torch.full_like(like, re, dtype=_real(dtype or like.dtype), **named)
    if dtype is not None and not dtype.is_complex:
        return filled
    return Parts(filled, torch.full_like(filled, im or 0))


# --- layout ---------------------------------------------------------------------------------------


def _each_part(operator: Any) -> Rule:  # noqa: ANN401
    """An operator that is linear and real: it acts on both parts alike, whatever else it takes."""

    def rule(z: Parts, *args: Any, **named: Any) -> Any:  # noqa: ANN401
        if isinstance(named.get("dtype"), torch.dtype):
            named["dtype"] = _real(named["dtype"])
        re, im = operator(z.re, *args, **named), operator(z.im, *args, **named)
        if isinstance(re, Tensor):
            return Parts(re, im)
        return [Parts(*pair) for pair in zip(re, im, strict=True)]

    return rule


def _each_of(operator: Any) -> Rule:  # noqa: ANN401
    """An operator that puts tensors together; real ones among them have no imaginary part."""

    def rule(tensors: Sequence[Any], *args: Any, **named: Any) -> Parts:  # noqa: ANN401
        whole = [x if isinstance(x, Parts) else _parts(x, None) for x in tensors]
        return Parts(
            operator([z.re for z in whole], *args, **named),
            operator([z.im for z in whole], *args, **named),
        )

    return rule


def _where(condition: Tensor, a: Any, b: Any) -> Parts:  # noqa: ANN401
    (a_re, a_im), (b_re, b_im) = _split(a), _split(b)
    re = torch.where(condition, a_re, b_re)
    return _parts(re, torch.where(condition, *(0.0 if x is None else x for x in (a_im, b_im))))


def _with_value(operator: Any) -> Rule:  # noqa: ANN401
    """An operator that fills places with a number."""

    def rule(z: Parts, places: Any, value: Any = 0) -> Parts:  # noqa: ANN401
        re, im = _split(value)
        return Parts(operator(z.re, places, re), operator(z.im, places, im or 0))

    return rule


def _table() -> dict[Any, Rule]:
    aten = torch.ops.aten
    alike = (
        aten.alias, aten.clone, aten.cumsum, aten.detach, aten.diagonal,
        aten.expand, aten.flip, aten.gather, aten.index, aten.index_select, aten.lift_fresh_copy,
        aten.mean, aten.movedim, aten.narrow, aten.neg, aten.permute, aten.repeat,
        aten.repeat_interleave, aten.reshape, aten.roll, aten.select, aten.slice, aten.split,
        aten.split_with_sizes, aten.squeeze, aten.sum, aten.t, aten.transpose, aten.tril, aten.triu,
        aten.unbind, aten.unflatten, aten.unsqueeze,
    )  # fmt: skip
    products = (aten.mul, aten.mm, aten.bmm, aten.matmul, aten.mv, aten.dot)
    return {
        **{operator: _each_part(operator) for operator in alike},
        # Parts may be laid out as the whole is not, and then have no view where it has one.
        **dict.fromkeys((aten.view, aten._unsafe_view), _each_part(aten.reshape)),
        **{operator: partial(_product, operator) for operator in products},
        aten.add: _add,
        aten.sub: _subtract,
        aten.div: _divide,
        aten.reciprocal: _reciprocal,
        aten.pow: _power,
        aten.addmm: partial(_plus_product, torch.mm),
        aten.baddbmm: partial(_plus_product, torch.bmm),
        aten.linear: _linear,
        aten.einsum: _einsum,
        aten.abs: _absolute,
        aten.sgn: _sign,
        aten.exp: _exp,
        aten.expm1: _expm1,
        aten.sin: _sin,
        aten.cos: _cos,
        aten.complex: _parts,
        aten.polar: _polar,
        aten.real: lambda z: z.re,
        aten.imag: lambda z: z.im,
        aten.view_as_real: joined,
        aten.view_as_complex: separated,
        **dict.fromkeys(
            (aten.conj, aten._conj, aten.conj_physical, aten._conj_physical), _conjugate
        ),
        **dict.fromkeys((aten.resolve_conj, aten.resolve_neg), lambda z: z),
        aten._to_copy: _converted,
        aten.full: _full,
        aten.full_like: _full_like,
        aten.ones_like: lambda x, **named: _full_like(x, 1, **named),
        aten.zeros_like: lambda x, **named: _full_like(x, 0, **named),
        aten.cat: _each_of(aten.cat),
        aten.stack: _each_of(aten.stack),
        aten.where: _where,
        aten.masked_fill: _with_value(aten.masked_fill),
        aten.constant_pad_nd: _with_value(aten.constant_pad_nd),
        aten.sym_size: lambda z, axis: z.re.shape[axis],
        aten._assert_tensor_metadata: lambda *_, **__: None,
    }


RULES = _table()
"""Operator → what it is of `Parts`."""
