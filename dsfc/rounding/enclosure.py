"""Tensors whose entries are known up to an enclosure and a bound on their error.

A real one holds (low, high, error), a complex one (middle, radius, error), in float64: the number
that exact arithmetic gives lies between low and high, or in the disc, and the number that the
module computes differs from it by no more than error. Views of an enclosure are views of its parts,
so that what is written into one shows in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from dsfc.rounding.units import SLACK, unit

Parts = tuple[Tensor, Tensor, Tensor]


class UnknownError(Exception):
    """The analysis has no rule for what a module does; the text names it."""


class Enclosure(Tensor):
    """A tensor of some dtype, with the parts described above in place of numbers.

    Attributes:
        parts: three tensors of its shape.
        copied: whether parts were copied where PyTorch makes a view.
    """

    parts: Parts
    copied: bool

    @staticmethod
    def __new__(
        cls: type[Enclosure], parts: Parts, dtype: torch.dtype, copied: bool = False
    ) -> Enclosure:
        """Makes a tensor without storage."""
        first = parts[0]
        out: Enclosure = Tensor._make_wrapper_subclass(
            cls, first.size(), strides=first.stride(), dtype=dtype, device=first.device
        )
        out.parts, out.copied = parts, copied
        return out

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # PyTorch's own is a placeholder
        cls,
        func: object,
        types: Iterable[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Refuses: only an interpreter runs operators on enclosures."""
        raise UnknownError(f"{func} runs outside of the interpreter")


def enclose(parts: Iterable[Tensor], dtype: torch.dtype, copied: bool = False) -> Enclosure:
    """Returns an enclosure; where a part is not a number, nothing is known."""
    a, b, error = parts
    lost = a.isnan() | b.isnan() | error.isnan()
    if bool(lost.any()):
        a = a.masked_fill(lost, 0 if dtype.is_complex else -torch.inf)
        b, error = (x.masked_fill(lost, torch.inf) for x in (b, error))
    return Enclosure((a, b, error), dtype, copied)


def exact(x: Tensor) -> Enclosure:
    """Returns the enclosure of numbers that are what they are."""
    if x.is_complex():
        middle = x.to(torch.complex128, copy=True)
        zero = torch.zeros(x.shape, dtype=torch.float64)
        return Enclosure((middle, zero, zero.clone()), x.dtype)
    value = x.to(torch.float64, copy=True)
    return Enclosure((value, value.clone(), torch.zeros_like(value)), x.dtype)


def between(low: Tensor, high: Tensor, dtype: torch.dtype) -> Enclosure:
    """Returns the enclosure of any numbers of a dtype between two, which are in float64."""
    return Enclosure((low.clone(), high.clone(), torch.zeros_like(low)), dtype)


def within(radius: Tensor, dtype: torch.dtype) -> Enclosure:
    """Returns the enclosure of any complex numbers of a dtype whose moduli are bounded."""
    middle = torch.zeros(radius.shape, dtype=torch.complex128)
    return Enclosure((middle, radius.clone(), torch.zeros_like(radius)), dtype)


def scalar(value: complex, dtype: torch.dtype) -> Enclosure:
    """Returns a number of the program, which an operator rounds to what it computes in.

    What is not whole may be the value of a formula, such as log(1/2), which Python calculated.
    """
    if isinstance(value, complex):
        middle = torch.tensor(value, dtype=torch.complex128)
        off = middle.abs()
        complex_dtype = torch.promote_types(dtype, torch.complex64)
        return Enclosure((middle, off * SLACK, off * 2 * unit(complex_dtype)), complex_dtype)
    number = torch.tensor(float(value), dtype=torch.float64)
    whole = float(value).is_integer() or abs(value) == torch.inf
    off = torch.zeros_like(number) if whole else number.abs() * SLACK
    kept = torch.promote_types(dtype, torch.float32)
    kept = kept.to_real() if kept.is_complex else kept
    same = bool(number.to(kept).double() == number)
    error = torch.zeros_like(number) if same else number.abs() * unit(kept) * 2 + 1e-38
    parts = (number - off, number + off, error)
    if dtype.is_complex:
        return Enclosure((number.to(torch.complex128), off, error), dtype)
    return Enclosure(parts, dtype)


def magnitude(x: Enclosure) -> Tensor:
    """Returns the largest absolute value that an exact entry may have."""
    a, b, _ = x.parts
    return a.abs() + b if x.dtype.is_complex else torch.maximum(a.abs(), b.abs())


def computed(x: Enclosure) -> Tensor:
    """Returns the largest absolute value that a computed entry may have."""
    return magnitude(x) + x.parts[2]


def outward(low: Tensor, high: Tensor, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Returns an interval that float64 computed, moved outward by a share of a scale."""
    size = torch.maximum(low.abs(), high.abs()) if scale is None else scale
    finite = torch.where(size.isinf(), torch.zeros_like(size), size)
    return low - finite * SLACK, high + finite * SLACK


def each(move: Callable[[Tensor], Tensor], x: Enclosure, copied: bool = False) -> Enclosure:
    """Returns an enclosure with its entries moved, every part in the same way."""
    a, b, c = (move(part) for part in x.parts)
    return Enclosure((a, b, c), x.dtype, copied or x.copied)
