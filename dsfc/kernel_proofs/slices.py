"""Why a proof for one and for two keys is one for any number of them.

A kernel is additive along an axis where it does the same to each entry of it, its slice, and adds
slices up: every tile is then one of

    free       no slice is in it
    local      along the axis; entry n is a function of slice n and of what is free
    additive   c + Σ_n f(slice n), with c and f of what is free

and a product has at most one additive factor, which meets no local one. Names of what a triangular
system is solved for are free. The recurrence is additive too, if each of its sums over keys is a
name and what is free: h is local and y is additive. Let a kernel and the recurrence have c, f and
c', f'. They agree for one and for two entries, so that f - f' is c' - c at every slice, and so is
its double: both are 0, and they agree for any number of entries. The same holds of what names
stand for, one after another, if names are given alike for one and for two entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dsfc.kernel_ir.ir import (
    Along,
    Axis,
    Between,
    Cumulate,
    Dot,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Part,
    Reduce,
    Statement,
    Store,
    Triangle,
)
from dsfc.kernel_ir.types import TileType, types_of
from dsfc.kernel_ir.uses import operands
from dsfc.kernel_proofs.exact import Undecided
from dsfc.kernel_proofs.uniform import axes_named


class _Kind(Enum):
    FREE = "free"
    LOCAL = "local"
    ADDITIVE = "additive"
    INVERSE = "inverse"


_LINEAR = ("add", "sub", "neg", "where")
"""Functions that are additive of additive operands."""


def check_additive(kernel: Kernel, axis: Axis) -> None:
    """Checks that a kernel is additive along an axis.

    Raises:
        Undecided: it is not; the text says where.
    """
    _Check(kernel, axis).run(kernel.body)


class _Check:
    """The kinds of the tiles of a kernel."""

    def __init__(self, kernel: Kernel, axis: Axis) -> None:
        self._axis = axis
        self._types: Mapping[str, TileType] = types_of(kernel)
        self._kinds: dict[str, _Kind] = {}
        self._inverses: dict[str, InverseUnit] = {}

    def run(self, body: tuple[Statement, ...]) -> None:
        """Finds the kinds of what statements bind."""
        for s in body:
            match s:
                case Let():
                    kind = self._kind(s.operation)
                    if (self._axis in self._types[s.name]) != (kind is _Kind.LOCAL):
                        raise Undecided(f"{s.name} mixes what keys have with sums over keys")
                    self._kinds[s.name] = kind
                    if isinstance(s.operation, InverseUnit):
                        self._inverses[s.name] = s.operation
                case Loop():
                    self._loop(s)
                case Store(value=value) if self._kinds[value] is _Kind.INVERSE:
                    raise Undecided("it stores an inverse")
                case Store():
                    pass

    def _loop(self, loop: Loop) -> None:
        for c in loop.carries:
            self._kinds[c.name] = self._kinds[c.last] = self._kinds[c.first]
        self.run(loop.body)
        if any(self._kinds[c.next] is not self._kinds[c.first] for c in loop.carries):
            raise Undecided("its loop carries sums over keys")

    def _kind(self, operation: Operation) -> _Kind:
        match operation:
            case Load(at=at):
                along = any(isinstance(p, Along) and p.axis == self._axis for p in at)
                return _Kind.LOCAL if along else _Kind.FREE
            case Reduce(axis=axis, function=function) if axis == self._axis:
                if function != "sum" or self._kinds[operation.operand] is not _Kind.LOCAL:
                    raise Undecided("it multiplies over keys")
                return _Kind.ADDITIVE
            case Dot(left=left) if left in self._inverses:
                return self._solved(operation, self._inverses[left])
            case Dot(over=over) if over == self._axis:
                kinds = {self._kinds[n] for n in operands(operation)}
                if kinds != {_Kind.LOCAL} or self._axis in axes_named(operation)[1:]:
                    raise Undecided("it contracts keys with something else")
                return _Kind.ADDITIVE
        if self._axis in axes_named(operation):
            raise Undecided("it tells keys apart")
        if isinstance(operation, InverseUnit):
            if self._kinds[operation.operand] is _Kind.LOCAL:
                raise Undecided("it solves a system for each key")
            return _Kind.INVERSE
        return self._joined(operation)

    def _joined(self, operation: Operation) -> _Kind:
        """The kind of what an operation makes of each slice, or of sums."""
        kinds = [self._kinds[n] for n in operands(operation)]
        if _Kind.INVERSE in kinds:
            raise Undecided("it reads an inverse that it does not multiply with")
        if _Kind.ADDITIVE not in kinds:
            return _Kind.LOCAL if _Kind.LOCAL in kinds else _Kind.FREE
        if _Kind.LOCAL in kinds:
            raise Undecided("it multiplies keys with sums over keys")
        if kinds.count(_Kind.ADDITIVE) > 1 and not _is_linear(operation):
            raise Undecided("it multiplies sums over keys")
        if not _is_linear(operation) and not _is_product(operation):
            raise Undecided("it takes a function of sums over keys")
        return _Kind.ADDITIVE

    def _solved(self, dot: Dot, inverse: InverseUnit) -> _Kind:
        """The kind of a product with an inverse: what is solved for has names."""
        row, column = inverse.row, inverse.column
        whole = dot.left_part in (None, Triangle(row, column, Part.LOWER))
        right = self._types[dot.right]
        if not whole or dot.over != column or row in right or self._axis in right:
            raise Undecided("it reads an inverse that it does not multiply with")
        return _Kind.FREE


def _is_linear(operation: Operation) -> bool:
    """Whether an operation is a linear map of all its operands together."""
    match operation:
        case Map(function=function):
            return function in _LINEAR
        case Reduce(function=function) | Cumulate(function=function):
            return function == "sum"
        case Dot() | Between():
            return False
        case _:
            return True


def _is_product(operation: Operation) -> bool:
    return isinstance(operation, Dot) or (
        isinstance(operation, Map) and operation.function == "mul"
    )
