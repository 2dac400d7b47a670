"""Runs a module on enclosures: a rule for each of PyTorch's operators that it calls."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from dsfc.rounding.arithmetic import Fresh
from dsfc.rounding.enclosure import Enclosure, UnknownError, computed, exact
from dsfc.rounding.operators import COMPUTE
from dsfc.rounding.rules import Rule
from dsfc.rounding.selections import SELECT, cast
from dsfc.rounding.units import largest, wide
from dsfc.rounding.whole import WHOLE

Args = tuple[Any, ...]
RULES: dict[str, Rule] = COMPUTE | SELECT


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a module.

    Attributes:
        function: the name of the function that the line is in.
        line: its number.
        text: what it says.
    """

    function: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Hazard:
    """What may give infinity or NaN.

    Attributes:
        place: where.
        kind: what, in words.
        size: the largest value that is not ruled out there.
    """

    place: Place
    kind: str
    size: float


class Interpreter(TorchDispatchMode):
    """Runs operators on enclosures.

    Args:
        module: the emitted module.
        only: the one place whose rounding counts; None for all.

    Attributes:
        hazards: what may go wrong, by place and kind.
        places: where something is rounded, in the order of the program.
    """

    def __init__(self, module: ModuleType, only: Place | None = None) -> None:
        """Notes nothing yet."""
        super().__init__()  # type: ignore[no-untyped-call]  # PyTorch leaves it untyped
        self.hazards: dict[tuple[Place, str], Hazard] = {}
        self.places: dict[Place, None] = {}
        self._module, self._only = module, only

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an operator or a function
        types: Iterable[type],
        args: Args = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - what it returns
        """Runs one operator by its rule."""
        kwargs = kwargs or {}
        space, _, name = func._schema.name.partition("::")
        if space == self._module.NAMESPACE:
            with self:
                return getattr(self._module, f"_{name}")(*args, **kwargs)
        base = name if name.startswith("_") or not func._schema.is_mutable else name.rstrip("_")
        rule = RULES.get(base)
        if rule is not None:
            result = rule(self, func, args, kwargs)
            return self._written(func, args, result)
        if not any(isinstance(x, Enclosure) for x in _tensors((args, kwargs))):
            return _wrapped(func(*args, **kwargs), name)
        if func._can_decompose():
            with self:
                return func.decompose(*args, **kwargs)
        raise UnknownError(f"no rule for {name} (in {self.place().text})")

    def _written(self, func: Any, args: Args, result: Any) -> Any:  # noqa: ANN401 - as above
        """The result, written where the operator writes it."""
        if not func._schema.is_mutable or not isinstance(result, Enclosure):
            return result
        target = args[0]
        if not isinstance(target, Enclosure):
            raise UnknownError(f"{func} writes into a tensor that is no enclosure")
        if target is not result:
            kept = result if result.dtype == target.dtype else cast(self, result, target.dtype)
            write(target, kept)
        return target

    def place(self) -> Place:
        """The line of the module that runs."""
        frame: FrameType | None = sys._getframe(1)
        file = self._module.__file__
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        if frame is None:
            return Place("", 0, "")
        text = linecache.getline(str(file), frame.f_lineno).strip()
        return Place(frame.f_code.co_name, frame.f_lineno, text)

    def rounds(self, result: tuple[Enclosure, Fresh], inside: Tensor | None = None) -> Enclosure:
        """Adds the rounding of an operator to its result, and looks at its range.

        Args:
            result: the result without its rounding, and the rounding.
            inside: how large partial results may be, which are in float32 at least.
        """
        out, fresh = result
        here = self.place()
        self.places[here] = None
        if self._only is None or self._only == here:
            a, b, error = out.parts
            out = Enclosure((a, b, error + fresh), out.dtype, out.copied)
        self._in_range(computed(out), out.dtype, here)
        if inside is not None:
            self._in_range(inside, wide(out.dtype), here)
        return out

    def _in_range(self, size: Tensor, dtype: torch.dtype, here: Place) -> None:
        """Notes where a computed number may be beyond the range of its dtype."""
        if size.numel() and not bool((size <= largest(dtype)).all()):
            what = f"overflow of {str(dtype).removeprefix('torch.')} is not ruled out"
            self.hazard(what, float(size.max()), here)

    def hazard(self, kind: str, size: float, here: Place | None = None) -> None:
        """Notes what may go wrong at the line that runs."""
        place = here or self.place()
        known = self.hazards.get((place, kind))
        if known is None or size > known.size:
            self.hazards[place, kind] = Hazard(place, kind, size)


def write(target: Enclosure, value: Enclosure) -> None:
    """Writes an enclosure into another, and so into what that is a view of."""
    if target.copied:
        raise UnknownError("what is written into was copied where PyTorch has a view")
    if target.dtype.is_complex != value.dtype.is_complex:
        raise UnknownError("a complex number is written into a real one, or a real one into it")
    for part, new in zip(target.parts, value.parts, strict=True):
        part.copy_(new)


def _tensors(value: Any) -> Iterator[Tensor]:  # noqa: ANN401 - arguments of any kind
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for x in value.values():
            yield from _tensors(x)
    elif isinstance(value, list | tuple):
        for x in value:
            yield from _tensors(x)


_MADE = frozenset(
    "zeros ones zeros_like ones_like new_zeros new_ones eye "
    "lift_fresh lift_fresh_copy arange _to_copy alias detach empty new_empty empty_like".split()
)
"""Operators that make constants; any other that computes with numbers needs a rule."""


def _wrapped(result: Any, name: str) -> Any:  # noqa: ANN401 - results of any kind
    """Constants as enclosures; whole numbers and truth values as they are."""
    if not isinstance(result, Tensor) or not (result.is_floating_point() or result.is_complex()):
        return result
    if name not in _MADE:
        raise UnknownError(f"no rule for {name} of constants")
    narrow = result.dtype not in (torch.float32, torch.float64)
    if name == "arange" and (narrow or not bool((result == result.round()).all())):
        raise UnknownError("no rule for arange of fractions, or in two bytes")
    if name in ("empty", "new_empty", "empty_like"):
        result = torch.zeros_like(result)
    return exact(result)


class _Whole(TorchFunctionMode):
    """Takes functions that PyTorch may run in several ways as one operator."""

    def __init__(self, rules: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        super().__init__()
        self._rules = rules

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401 - an operator or a function
        types: Iterable[type],
        args: Args = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - what it returns
        rule = self._rules.get(func)
        if rule is None:
            return func(*args, **(kwargs or {}))
        with _disable_current_modes():
            return rule(*args, **(kwargs or {}))


def run(
    module: ModuleType,
    function: Callable[..., Any],
    arguments: Sequence[Enclosure | None],
    options: Mapping[str, Any],
    only: Place | None = None,
) -> tuple[Any, Interpreter]:
    """Runs a function of a module on enclosures.

    Args:
        module: the module.
        function: its functional form.
        arguments: its tensors.
        options: of the function.
        only: the one line whose rounding counts; None for all.

    Returns:
        what the function returns, and what was noted.

    Raises:
        UnknownError: an operator has no rule.
    """
    seen = Interpreter(module, only)
    rules = {f: partial(rule, seen) for f, rule in WHOLE.items()}
    with torch.no_grad(), _Whole(rules), seen:
        return function(*arguments, **options), seen
