"""What all rules share: their arguments, operands as enclosures, dtypes of results.

A rule takes the interpreter, the operator and its arguments, and returns the result. What writes in
place has the rule of what does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._ops import OpOverload

from dsfc.rounding.enclosure import Enclosure, computed, exact, scalar
from dsfc.rounding.units import real, unit

Rule = Callable[..., Any]
Args = tuple[Any, ...]
Options = dict[str, Any]


class Place(Protocol):
    """A line of a module."""

    @property
    def text(self) -> str:
        """What the line says."""


class Seen(Protocol):
    """What a rule needs of the interpreter."""

    def rounds(self, result: tuple[Enclosure, Tensor], inside: Tensor | None = None) -> Enclosure:
        """Adds the rounding of an operator to its result, and looks at its range."""

    def hazard(self, kind: str, size: float) -> None:
        """Notes what may go wrong at the line that runs."""

    def place(self) -> Place:
        """The line of the module that runs."""


def no_floats(*values: Any) -> bool:  # noqa: ANN401 - arguments of any kind
    """Whether an operator computes with whole numbers and truth values alone."""
    return not any(
        isinstance(x, Enclosure | float | complex)
        or (isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()))
        for x in values
    )


def dtype_of(*values: Any) -> torch.dtype:  # noqa: ANN401 - numbers and tensors
    """The dtype of a result: tensors with axes first, then those without, then numbers."""
    tensors = [x for x in values if isinstance(x, Tensor)]
    ranked = [x for x in tensors if x.ndim] or tensors
    out = ranked[0].dtype
    for x in ranked[1:]:
        out = torch.promote_types(out, x.dtype)
    kinds = [x.dtype for x in tensors] + [torch.complex64 for x in values if isinstance(x, complex)]
    if any(k.is_complex for k in kinds) and not out.is_complex:
        out = torch.promote_types(out, torch.complex64)
    if not (out.is_floating_point or out.is_complex):
        for k in kinds:
            out = torch.promote_types(out, k)
        if not (out.is_floating_point or out.is_complex):
            out = torch.get_default_dtype()
    return out


def known(x: Any, dtype: torch.dtype) -> Enclosure:  # noqa: ANN401 - a tensor or a number
    """Returns an operand as an enclosure.

    A number of the program, and a tensor without axes, may be rounded to the dtype of the result
    before an operator takes it: PyTorch does so in some operators on some devices.
    """
    if isinstance(x, Tensor) and not (x.is_floating_point() or x.is_complex()):
        return _counted(x, real(dtype))
    out = x if isinstance(x, Enclosure) else exact(x) if isinstance(x, Tensor) else None
    if out is None:
        out = scalar(x, dtype)
    elif out.ndim or unit(dtype) <= unit(out.dtype):
        return out
    if unit(dtype) <= unit(torch.float32):
        return out
    a, b, error = out.parts
    return Enclosure((a, b, error + computed(out) * 2 * unit(dtype)), out.dtype)


def made(func: OpOverload, args: Args, kwargs: Options) -> object:
    """Returns what an operator gives that rounds nothing."""
    return func(*args, **kwargs)


def _counted(x: Tensor, dtype: torch.dtype) -> Enclosure:
    """Whole numbers, which an operator rounds where its dtype does not have them."""
    value = x.double()
    kept = value.to(dtype).double() == value
    error = torch.where(kept, torch.zeros_like(value), value.abs() * 2 * unit(dtype))
    return Enclosure((value, value.clone(), error), dtype)
