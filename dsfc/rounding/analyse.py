"""Bounds the rounding errors of one call of a module, on enclosures of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dsfc.rounding.enclosure import Enclosure, UnknownError, exact
from dsfc.rounding.interpret import Hazard, Place, run

Argument = Tensor | Enclosure | None

PLACES = 40
"""Lines whose share of a bound is calculated, at most."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an emitted module's functional form.

    Attributes:
        module: the module.
        function: its functional form.
        arguments: its tensors by name, in order: those that vary as enclosures, others as they are.
        options: of the function: its mode, and tokens of a chunk where it has any.
    """

    module: ModuleType
    function: Callable[..., Any]
    arguments: Mapping[str, Argument]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bound:
    """The certified bound of a call.

    Attributes:
        error: by how much each entry of the output may be off, float64.
        low: exact entries are nowhere below (a complex output: the middle of a disc).
        high: exact entries are nowhere above (a complex output: the radius).
        hazards: what may give infinity or NaN.
        places: lines that round.
    """

    error: Tensor
    low: Tensor
    high: Tensor
    hazards: tuple[Hazard, ...]
    places: tuple[Place, ...]

    @property
    def worst(self) -> float:
        """The largest error of any entry."""
        return float(self.error.max()) if self.error.numel() else 0.0

    @property
    def size(self) -> float:
        """The largest absolute value of an exact entry."""
        if not self.low.numel():
            return 0.0
        if self.low.is_complex():
            return float((self.low.abs() + self.high).max())
        return float(torch.maximum(self.low.abs(), self.high.abs()).max())

    def holds(self, error: Tensor, share: float = 1.0) -> bool:
        """Whether errors that were seen are within a share of the bound, entry by entry."""
        return bool((error <= self.error * share).all())


def bound(call: Call, only: Place | None = None) -> Bound:
    """Returns what is certified of a call.

    Args:
        call: the call.
        only: the one line whose rounding counts; None for all.

    Raises:
        UnknownError: an operator of the call has no rule.
    """
    arguments = [_argument(x) for x in call.arguments.values()]
    try:
        result, seen = run(call.module, call.function, arguments, call.options, only)
    except UnknownError:
        raise
    except (RuntimeError, TypeError, ValueError, AttributeError, LookupError) as e:
        raise UnknownError(f"the module does not run on enclosures: {str(e)[:120]}") from e
    y = result[0] if isinstance(result, tuple) else result
    if not isinstance(y, Enclosure):
        raise UnknownError("the output does not depend on what varies")
    low, high, error = y.parts
    return Bound(error, low, high, tuple(seen.hazards.values()), tuple(seen.places))


def as_run(call: Call, output: Tensor) -> float:
    """Returns a certified bound on the error of an output that the call gave on this machine.

    Args:
        call: the call, none of whose arguments vary.
        output: what the module computed.

    Raises:
        UnknownError: an operator of the call has no rule.
    """
    known = bound(call)
    got = output.detach().to(known.low.dtype)
    if known.low.is_complex():
        off = (got - known.low).abs() + known.high
    else:
        off = torch.maximum((got - known.low).abs(), (got - known.high).abs())
    return float(off.max()) if off.numel() else 0.0


def sources(call: Call, whole: Bound) -> tuple[tuple[Place, float], ...]:
    """Returns the lines that round, each with the bound that it would give alone, largest first.

    Raises:
        UnknownError: an operator of the call has no rule.
    """
    alone = [(place, bound(call, place).worst) for place in whole.places[:PLACES]]
    return tuple(sorted(alone, key=lambda x: -x[1]))


def _argument(x: Argument) -> Enclosure | None:
    if x is None:
        return None
    if isinstance(x, Enclosure):
        # A call may write into its arguments, and each call starts from them.
        a, b, error = (part.clone() for part in x.parts)
        return Enclosure((a, b, error), x.dtype)
    return exact(x.detach())
