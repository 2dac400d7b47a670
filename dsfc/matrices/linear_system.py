"""One linear part of a System as matrices over a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr import sympy_bridge as bridge
from dsfc.expr.build import ONE, add, mul, rewrite, walk
from dsfc.expr.evaluate import NamedArray, canonical
from dsfc.expr.sympy_bridge import Symbolic
from dsfc.expr.tree import Axis, Expr, Field, Now, Ref, Time
from dsfc.matrices.entry_order import roles
from dsfc.matrices.inputs import Inputs, inputs_of
from dsfc.matrices.linear import (
    LinearPart,
    Normaliser,
    linear_formula,
    normalisers,
    scales,
    stages_read,
)
from dsfc.matrices.symbolic import BASIS, Setting, SymbolScope, column
from dsfc.system.formulas import States, apply_term, guarded, states
from dsfc.system.ir import Block, Guard, Stage


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a tensor stands in a vector.

    Attributes:
        axes: in the order of its entries, the fastest last.
        start: first entry.
        size: number of entries.
    """

    axes: tuple[Axis, ...]
    start: int
    size: int

    @property
    def range(self) -> slice:
        """The entries."""
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Λ_i, B_i, C_i, D_i and Φ_{ij} of one linear part, in one gauge.

        h_i = Λ_i h_{i-1} + B_i u_i,     y_i = Re(C_i h_i + D_i u_i)

    The state h is made of all blocks of the stages read, u of the inputs. Blocks that run backwards
    read h_{i+1} instead of h_{i-1}. Where a part reads its state before the update, C_i multiplies
    h_{i-1}. The real part is that of a complex system; a real one has none to take.

    Attributes:
        setting: the System and its sizes.
        part: the part.
        in_paper: whether in the paper's gauge.
    """

    setting: Setting
    part: LinearPart
    in_paper: bool
    _cache: dict[tuple[Any, ...], Symbolic] = field(init=False, repr=False, default_factory=dict)

    # --- what it is made of -----------------------------------------------------------------------

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages it reads."""
        return stages_read(self.setting.system, self.part)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Their blocks: the parts of h, in order."""
        return tuple(b for s in self.stages for b in s.blocks)

    @cached_property
    def inputs(self) -> tuple[Expr, ...]:
        """What u is made of, in order: names, expressions, or the number 1."""
        return self._inputs.sources

    @cached_property
    def normalisers(self) -> tuple[Normaliser, ...]:
        """Denominators that count as given numbers."""
        return normalisers(self.setting.system, self.part)

    @cached_property
    def lags(self) -> tuple[int, ...]:
        """Lags at which the state is read: 0 after the update, 1 before (-1 backwards)."""
        delays = {
            (r.at.lag if isinstance(r.at, Now) else 0)
            for r in walk(self._read_out)
            if isinstance(r, Ref) and r.name in self._slots
        }
        return tuple(sorted(delays))

    @property
    def output_axes(self) -> tuple[Axis, ...]:
        """The axes of y in the order of its entries: heads first, then canonical order."""
        return tuple(sorted(self._read_out.axes, key=lambda a: (not a.heads, a)))

    @cached_property
    def _inputs(self) -> Inputs:
        return inputs_of(self.setting.system, self.part)

    @cached_property
    def _states(self) -> States:
        return states(self.setting.system)

    @cached_property
    def _slots(self) -> Mapping[str, Slot]:
        orders = {b.state: roles(self.setting.system, b).order for b in self.blocks}
        return _slots(self.setting, orders)

    @cached_property
    def _input_slots(self) -> Mapping[str, Slot]:
        sources = {self._inputs.stand_in(s).name: canonical(s.axes) for s in self.inputs}
        return _slots(self.setting, sources)

    @cached_property
    def _read_out(self) -> Expr:
        driven = tuple(s for s in self.inputs if s is not ONE)
        return linear_formula(
            self.part.root,
            self._states,
            self.normalisers,
            lambda e: self._inputs.marked(e, driven),
        )

    @cached_property
    def _scales(self) -> Mapping[str, Expr]:
        return scales(self.part, self.normalisers) if self.in_paper else {}

    @cached_property
    def is_complex(self) -> bool:
        """Whether there is a real part to take."""
        return self._read_out.field is Field.COMPLEX

    @cached_property
    def _has_complex_inputs(self) -> bool:
        """Whether the real part of Φ u is not that of Φ times u."""
        return any(s.field is Field.COMPLEX for s in self.inputs)

    # --- the matrices -----------------------------------------------------------------------------

    def Lambda(self, i: int) -> Symbolic:
        """Returns Λ_i, block diagonal over stages."""
        return self._kept(("Λ", i), lambda: self._transition(i))

    def B(self, i: int) -> Symbolic:
        """Returns B_i."""
        return self._kept(("B", i), lambda: self._drive(i, i))

    def C(self, i: int, lag: int | None = None) -> Symbolic:
        """Returns C_i.

        Args:
            i: the token.
            lag: which read, where a part reads its state at several lags (see `lags`).

        Raises:
            ValueError: there are several lags and none is given.
        """
        if lag is None:
            if len(self.lags) != 1:
                raise ValueError(f"`{self.part.name}` reads its state at lags {self.lags}")
            (lag,) = self.lags
        return self._kept(("C", i, lag), lambda: self._read(i, lag))

    def D(self, i: int) -> Symbolic:
        """Returns D_i."""
        return self._direct(i, i)

    def Phi(self, i: int, j: int) -> Symbolic:
        """Returns Φ_{ij}, multiplied out: y_i = Σ_j Φ_{ij} u_j.

        Of a complex u it is complex, and y_i the real part of that sum.
        """
        return self._kept(("Φ", i, j), lambda: self._kernel(i, j))

    def scale(self, i: int) -> Symbolic:
        """Returns the diagonal T_i of the gauge: the lowered state is T_i times this one."""
        return self._kept(("T", i), lambda: bridge.diagonal(self._scale(i)))

    def u(self, j: int) -> Symbolic:
        """Returns the inputs at a token, as a column."""
        scope = SymbolScope(self.setting, j)
        entries = [v for s in self.inputs for v in column(scope, s, canonical(s.axes))]
        return bridge.matrix([[v] for v in entries], 1)

    def y(self, i: int) -> Symbolic:
        """Returns y_i as a column, over the tokens up to i, or all of a sequence."""
        end = i + 1 if self.setting.length is None else self.setting.length
        out = bridge.zeros(self.setting.count(self.output_axes), 1)
        for j in range(end):
            out = out + self.Phi(i, j) * self.u(j)
        return bridge.real_part(out) if self.is_complex and self._has_complex_inputs else out

    def guarded(self, i: int, guard: Guard) -> tuple[Symbolic, ...]:
        """Returns the entries of y_i behind a guard."""
        axes = canonical(self.output_axes)
        ref = Ref(self.part.name, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))
        shape = [self.setting.sizes[a] for a in self.output_axes]
        data = np.array(list(self.y(i)), dtype=object).reshape(shape)
        order = [self.output_axes.index(a) for a in axes]
        known = {(ref.name, i): NamedArray(axes, np.transpose(data, order))}
        scope = SymbolScope(self.setting, i, known)
        return tuple(column(scope, guarded(ref, guard), self.output_axes))

    # --- how they are found -----------------------------------------------------------------------

    def _kept(self, key: tuple[Any, ...], make: Any) -> Symbolic:  # noqa: ANN401
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @property
    def _state_size(self) -> int:
        return sum(s.size for s in self._slots.values())

    @property
    def _input_size(self) -> int:
        return sum(s.size for s in self._input_slots.values())

    def _transition(self, i: int) -> Symbolic:
        rows = []
        for stage in self.stages:
            units = self._units(self._slots, self._state_size, i - int(stage.direction))
            for block in stage.blocks:
                rows += self._updated(block, i, units, self._state_size)
        out = bridge.matrix(rows, self._state_size)
        if not self._scales:
            return out
        return self._inverse_scale(i) * out * bridge.diagonal(self._scale(i, before=True))

    def _drive(self, i: int, j: int) -> Symbolic:
        units = self._units(self._input_slots, self._input_size, j)
        rows = [r for b in self.blocks for r in self._updated(b, i, units, self._input_size)]
        out = bridge.matrix(rows, self._input_size)
        return self._inverse_scale(i) * out if self._scales else out

    def _updated(
        self, block: Block, i: int, values: dict[tuple[str, int], NamedArray], columns: int
    ) -> list[list[Symbolic]]:
        """The rows of a block: its chain applied to unit vectors."""
        slot = self._slots[block.state]
        value: NamedArray | None = None
        for factor in block.chain:
            before = dict(values)
            if value is not None:
                before[block.state, i] = value
            terms = [apply_term(t, self._state_ref(t.source, t.lag)) for t in factor.terms]
            drives = [mul(d.key, self._inputs.marked(d.stream)) for d in factor.drives]
            value = self._linear(add(*terms, *drives), i, before, slot.axes, columns)
        assert value is not None
        return _rows(value, slot.axes)

    def _read(self, i: int, lag: int) -> Symbolic:
        units = self._units(self._slots, self._state_size, i - lag)
        out = self._output_rows(i, units, self._state_size)
        return out * self.scale(i - lag) if self._scales else out

    def _direct(self, i: int, j: int) -> Symbolic:
        units = self._units(self._input_slots, self._input_size, j)
        return self._output_rows(i, units, self._input_size)

    def _output_rows(
        self, i: int, values: dict[tuple[str, int], NamedArray], columns: int
    ) -> Symbolic:
        axes = self.output_axes
        rows = _rows(self._linear(self._read_out, i, values, axes, columns), axes)
        return bridge.matrix(rows, columns)

    def _kernel(self, i: int, j: int) -> Symbolic:
        out = self._direct(i, j)
        for lag in self.lags:
            out = out + self.C(i, lag) * self._reached(i - lag, j)
        return bridge.real_part(out) if self.is_complex and not self._has_complex_inputs else out

    def _reached(self, i: int, j: int) -> Symbolic:
        """∂h_i / ∂u_j: Λ_i ⋯ Λ_{j+1} B_j for stages that run forward, mirrored backwards."""
        return self._kept(("H", i, j), lambda: self._chained(i, j))

    def _chained(self, i: int, j: int) -> Symbolic:
        size = self._state_size
        out = bridge.zeros(size, self._input_size)
        if not self.setting.is_inside(i):
            return out
        for stage in self.stages:
            step = int(stage.direction)
            keep = self._selector(stage)
            for lag in self._drive_lags:
                start = j + lag
                if (i - start) * step < 0 or not self.setting.is_inside(start):
                    continue
                moved = keep * (self.B(j) if lag == 0 else self._drive(start, j))
                for m in range(start + step, i + step, step):
                    moved = self.Lambda(m) * moved
                out = out + moved
        return out

    @cached_property
    def _drive_lags(self) -> tuple[int, ...]:
        delays = {0}
        for b in self.blocks:
            for d in (d for f in b.chain for d in f.drives):
                for r in walk(self._inputs.marked(d.stream)):
                    if isinstance(r, Ref) and isinstance(r.at, Now):
                        if self._inputs.of_stand_in(r) is not None:
                            delays.add(r.at.lag)
        return tuple(sorted(delays))

    def _selector(self, stage: Stage) -> Symbolic:
        inside = {b.state for b in stage.blocks}
        ones = [int(n in inside) for n, slot in self._slots.items() for _ in range(slot.size)]
        return bridge.diagonal([_number(v) for v in ones])

    def _scale(self, i: int, before: bool = False) -> list[Symbolic]:
        """The diagonal of T_i; with `before` that of the token each block reads in its update."""
        out: list[Symbolic] = []
        for stage in self.stages:
            # Before the first token the scale has no meaning and no effect: take the first one.
            token = max(i - int(stage.direction) if before else i, 0)
            scope = SymbolScope(self.setting, token)
            for b in stage.blocks:
                out += column(scope, self._scales.get(b.state, ONE), self._slots[b.state].axes)
        return out

    def _inverse_scale(self, i: int) -> Symbolic:
        return bridge.diagonal([1 / v for v in self._scale(i)])

    # --- unit vectors -----------------------------------------------------------------------------

    def _state_ref(self, state: str, lag: int) -> Ref:
        block = self._states[state]
        return Ref(state, frozenset(block.axes), block.field, Time.STATE, Now(lag))

    def _units(
        self, slots: Mapping[str, Slot], total: int, token: int
    ) -> dict[tuple[str, int], NamedArray]:
        """The unit vectors as values of the tensors that stand in a vector, at one token."""
        identity = np.full((total, total), _number(0), dtype=object)
        np.fill_diagonal(identity, _number(1))
        out = {}
        for name, slot in slots.items():
            shape = [self.setting.sizes[a] for a in slot.axes]
            data = identity[slot.range].reshape(*shape, total)
            order = sorted(range(len(slot.axes)), key=lambda k: slot.axes[k])
            axes = (*(slot.axes[k] for k in order), BASIS)
            out[name, token] = NamedArray(axes, np.transpose(data, (*order, len(order))))
        return out

    def _linear(
        self,
        e: Expr,
        i: int,
        values: dict[tuple[str, int], NamedArray],
        axes: tuple[Axis, ...],
        columns: int,
    ) -> NamedArray:
        """The value of a linear expression on unit vectors, over `axes` and the basis."""
        unit_names = {*self._slots, *self._input_slots}

        def widened(n: Expr) -> Expr | None:
            if isinstance(n, Ref) and n.name in unit_names:
                return Ref(n.name, n.over | {BASIS}, n.kind, n.when, n.at)
            return None

        scope = SymbolScope(self.setting, i, values, columns)
        value = bridge.entries(rewrite(e, widened), scope)
        full = canonical((*axes, BASIS))
        if BASIS not in value.axes:
            zero = np.full([scope.size(a) for a in full], _number(0), dtype=object)
            return NamedArray(full, zero)
        return value.expand(full, scope.size)


def _number(value: int) -> Symbolic:
    return bridge.EXACT.number(Fraction(value))


def _slots(setting: Setting, orders: Mapping[str, tuple[Axis, ...]]) -> dict[str, Slot]:
    out: dict[str, Slot] = {}
    start = 0
    for name, axes in orders.items():
        size = setting.count(axes)
        out[name] = Slot(axes, start, size)
        start += size
    return out


def _rows(value: NamedArray, order: tuple[Axis, ...]) -> list[list[Symbolic]]:
    """The value over (axes, basis) as rows, in the order of the axes given."""
    places = [value.axes.index(a) for a in order]
    data: NDArray[Any] = np.transpose(value.data, (*places, len(places)))
    return [list(row) for row in data.reshape(-1, data.shape[-1])]
