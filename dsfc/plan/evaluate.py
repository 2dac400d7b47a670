"""The meaning of a plan in float64: its kernels, run as literal loops over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.declarations import Tensor
from dsfc.expr.evaluate import NamedArray
from dsfc.expr.evaluate import evaluate as value_of
from dsfc.expr.max_plus import LOWEST
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Now, Ref
from dsfc.plan.ir import Plan, Pointwise, Reverse, Role, RunningMax, Unit
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import (
    DeltaRule,
    LowRank,
    Scan,
    Transition,
)

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What a plan computed.

    Attributes:
        arrays: every buffer, `[L, *axes]` (`[*axes]` for constants).
        finals: the final state of each state tensor, and the last value of each running maximum.
    """

    arrays: Mapping[str, Array]
    finals: Mapping[str, Array]


class Scope:
    """Values of leaves at one token."""

    def __init__(self, run: Runner, i: int | None) -> None:
        self._run = run
        self._i = i

    def size(self, axis: Axis) -> int:
        """Returns the size of an axis."""
        return self._run.sizes[axis.copy_of or axis.name]

    def param(self, name: str) -> NamedArray:
        """Returns a parameter or buffer."""
        axes, data = self._run.tensors[name]
        return NamedArray(axes, data)

    def matrix(self, map: LinearMap) -> Array:
        """Returns the matrix of a linear map, as stored."""
        return self._run.matrices[map.name]

    def ref(self, ref: Ref) -> NamedArray:
        """Returns a buffer at the token, or an earlier one; 0 outside of the sequence."""
        data = self._run.arrays[ref.name]
        axes = tuple(sorted(ref.over))
        if ref.at is None:
            return NamedArray(axes, data)
        assert isinstance(ref.at, Now) and self._i is not None
        i = self._i - ref.at.lag
        inside = 0 <= i < len(data)
        if i == -1 and ref.name in self._run.before:
            return NamedArray(axes, self._run.before[ref.name])
        outside = LOWEST if i < 0 and ref.name in self._run.before else 0.0
        return NamedArray(axes, data[i] if inside else np.full(data.shape[1:], outside, data.dtype))

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        """Raises: a plan has no abstract maps."""
        raise TypeError(f"`{name}` has no values in a plan")

    def node(self, expr: Expr) -> NamedArray:
        """Raises: a plan has no other nodes."""
        raise TypeError(f"{type(expr).__name__} does not stand in a plan")


class _Inside(Scope):
    """Values of the names of a recurrence at one token."""

    def __init__(self, run: Runner, names: Mapping[str, NamedArray]) -> None:
        super().__init__(run, None)
        self._names = names

    def ref(self, ref: Ref) -> NamedArray:
        """Returns the value of a name."""
        return self._names[ref.name]


class Runner:
    """Buffers of a plan that is run, by name, and what its kernels need to compute theirs."""

    def __init__(
        self,
        plan: Plan,
        inputs: Mapping[str, Array],
        tensors: Mapping[str, Array],
        sizes: Mapping[str, int],
    ) -> None:
        self.sizes = sizes
        self.length = len(next(iter(inputs.values())))
        self.before: dict[str, Array] = {}
        self.arrays: dict[str, Array] = dict(inputs)
        self.buffers = {b.name: b for b in plan.arrays}
        self.matrices = dict(tensors)
        self.tensors = {
            t.name: (t.axes, np.asarray(tensors[t.name]))
            for t in (*plan.params, *plan.buffers)
            if isinstance(t, Tensor) and t.name in tensors
        }

    def at(self, expr: Expr, i: int | None, axes: tuple[Axis, ...]) -> Array:
        """Returns an expression at token i, over axes."""
        scope = Scope(self, i)
        out = value_of(expr, scope)
        return np.array(out.expand(axes, scope.size).data)

    def pointwise(self, k: Pointwise) -> None:
        """Computes a buffer token by token."""
        b = self.buffers[k.output]
        if b.role is Role.CONSTANT:
            self.arrays[k.output] = self.at(k.value, None, b.axes)
            return
        shape = tuple(Scope(self, None).size(a) for a in b.axes)
        rows = [self.at(k.value, i, b.axes) for i in range(self.length)]
        self.arrays[k.output] = np.stack(rows) if rows else np.zeros((0, *shape))

    def running_max(
        self, k: RunningMax, initial: Mapping[str, Array], finals: dict[str, Array]
    ) -> None:
        """Computes a running maximum; `finals` learns its last value."""
        axes = self.buffers[k.output].axes
        held = self.before[k.output] = np.array(initial[k.output], dtype=np.float64)
        rows = []
        for i in range(self.length):
            decay = 0.0 if k.decay is None else self.named(k.decay, i).over(axes)
            held = np.maximum(held + decay, self.named(k.weight, i).over(axes))
            rows.append(held)
        self.arrays[k.output] = np.stack(rows) if rows else np.zeros((0, *held.shape))
        finals[k.output] = held

    def named(self, name: str | None, i: int) -> NamedArray:
        """A buffer at token i; the number 1 for None."""
        if name is None:
            return NamedArray((), np.asarray(1.0))
        b = self.buffers[name]
        data = self.arrays[name]
        return NamedArray(b.axes, data if b.role is Role.CONSTANT else data[i])

    def decay(self, scan: Scan, i: int, tile: tuple[Axis, ...]) -> Array:
        """Returns λ of a scan at token i."""
        if scan.decay is None:
            return np.ones(())
        scope = Scope(self, i)
        return np.exp(value_of(scan.decay.expr, scope).over(tile))

    def moved(self, scan: Scan, i: int, tile: tuple[Axis, ...], h: Array) -> Array:
        """Λ_i h."""
        if scan.transition is not None:
            return self.mixed(scan.transition, tile, h)
        out = self.decay(scan, i, tile) * h
        if scan.low_rank is not None:
            left, right = self.low_rank_sides(scan.low_rank, i)
            out = out + left.over(tile) * contracted(scan, tile, right, h)
        if scan.delta is not None:
            out = self.rewritten(scan, scan.delta, i, tile, out)
        return out

    def moved_back(self, scan: Scan, i: int, tile: tuple[Axis, ...], h: Array) -> Array:
        """Λ_iᵀ h."""
        if scan.transition is not None:
            return self.mixed(scan.transition, tile, h, transposed=True)
        if scan.delta is not None:
            h = self.rewritten(scan, scan.delta, i, tile, h)
        out = self.decay(scan, i, tile) * h
        if scan.low_rank is not None:
            left, right = self.low_rank_sides(scan.low_rank, i)
            out = out + right.over(tile) * contracted(scan, tile, left, h)
        return out

    def rewritten(
        self, scan: Scan, rule: DeltaRule, i: int, tile: tuple[Axis, ...], h: Array
    ) -> Array:
        """(1 + strength · key ⊗ key) h, of a decayed state or of a gradient."""
        key, strength = self.named(scan.key, i), self.named(rule.strength, i)
        retrieved = strength.over(tile) * contracted(scan, tile, key, h)
        return np.asarray(h + key.over(tile) * retrieved)

    def mixed(
        self, dense: Transition, tile: tuple[Axis, ...], h: Array, transposed: bool = False
    ) -> Array:
        """Λ h or Λᵀ h, of a dense transition. Columns stand behind all other axes."""
        wide = (*tile, *dense.columns)
        matrix = self.named(dense.matrix, 0).over(wide)
        there = [tile.index(a) for a in dense.rows]
        behind = range(len(tile), len(wide))
        if transposed:
            out = (matrix * h.reshape(*h.shape, *(1,) * len(there))).sum(axis=tuple(there))
            return np.moveaxis(out, range(len(tile) - len(there), len(tile)), there)
        moved = np.moveaxis(h, there, range(-len(there), 0))
        for at in there:
            moved = np.expand_dims(moved, at)
        return np.asarray((matrix * moved).sum(axis=tuple(behind)))

    def low_rank_sides(self, low_rank: LowRank, i: int) -> tuple[NamedArray, NamedArray]:
        """Both sides of a low-rank part at token i."""
        return self.named(low_rank.left, i), self.named(low_rank.right, i)

    def attention(self, k: Attention) -> None:
        """Σ_j w_j value_j / Σ_j w_j, w_j = exp(score_j - the largest score), from no past."""
        out_axes = self.buffers[k.output].axes
        pair = (*k.heads, *k.keys)
        drop = tuple(range(len(k.heads), len(pair)))
        scale = float(value_of(k.scale, Scope(self, None)).data)
        rows = []
        for i in range(self.length):
            query = self.named(k.query, i).over(pair)
            keys = (self.named(k.key, j).over(pair) for j in range(i + 1))
            scores = np.stack([scale * (query * key).sum(axis=drop) for key in keys])
            weights = np.exp(scores - scores.max(axis=0))
            weights = weights / weights.sum(axis=0)
            values = (self.named(k.value, j).over(out_axes) for j in range(i + 1))
            weighed = (
                NamedArray(k.heads, w).over(out_axes) * v
                for w, v in zip(weights, values, strict=True)
            )
            rows.append(np.array(sum(weighed)))
        shape = tuple(Scope(self, None).size(a) for a in out_axes)
        rows = [np.broadcast_to(row, shape) for row in rows]
        self.arrays[k.output] = np.stack(rows) if rows else np.zeros((0, *shape))

    def all_pairs(self, k: AllPairs) -> None:
        """Adds up the summand over the pairs that count, from no past."""
        shape = tuple(Scope(self, None).size(a) for a in k.axes)
        dtype = DTYPES[self.buffers[k.output].field]
        out: Array = np.zeros((self.length, *shape), dtype)
        for i, j in self._counted(k):
            out[i] += self._inside(k.body, self._pair(k, i, j), k.axes)
        self.arrays[k.output] = out

    def all_pairs_adjoint(self, k: AllPairs, cotangent: Array) -> dict[str, Array]:
        """The gradients of the leaves of a sum over pairs, by name of the leaf."""
        buffers = {x.name: self.buffers[x.buffer] for x in k.leaves}
        out: dict[str, Array] = {
            g.leaf: np.zeros_like(self.arrays[buffers[g.leaf].name]) for g in k.gradients
        }
        queries, keys = ({x.name for x in side} for side in (k.queries, k.keys))
        for i, j in self._counted(k):
            here = self._pair(k, i, j) | {k.bar: NamedArray(k.axes, cotangent[i])}
            for g in k.gradients:
                at: Any = i if g.leaf in queries else j if g.leaf in keys else ...
                out[g.leaf][at] += self._inside(g.value, here, buffers[g.leaf].axes)
        return out

    def _counted(self, k: AllPairs) -> Iterator[tuple[int, int]]:
        for i, j in product(range(self.length), repeat=2):
            if i - j <= k.bound if k.later else i - j >= k.bound:
                yield i, j

    def _pair(self, k: AllPairs, i: int, j: int) -> dict[str, NamedArray]:
        """All values of a pair of tokens."""
        here = {x.name: self.named(x.buffer, i) for x in k.queries + k.fixed}
        here |= {x.name: self.named(x.buffer, j) for x in k.keys}
        if k.lag is not None:
            here[k.lag] = NamedArray((), np.asarray(float(i - j)))
        return here

    def recurrence(
        self, k: Recurrence, initial: Mapping[str, Array], finals: dict[str, Array]
    ) -> None:
        """Steps all states of a recurrence together."""
        states: dict[str, Array] = {
            s.before: np.array(initial[s.state], dtype=DTYPES[s.field]) for s in k.states
        }
        rows: dict[str, list[Array]] = {r.output: [] for r in k.reads}
        for i in range(self.length):
            here = self._stepped(k, i, states)
            for r in k.reads:
                axes = self.buffers[r.output].axes
                rows[r.output].append(self._inside(r.value, here, axes))
            states = {s.before: here[s.after].data for s in k.states}
        for r in k.reads:
            shape = tuple(Scope(self, None).size(a) for a in self.buffers[r.output].axes)
            tokens = rows[r.output]
            self.arrays[r.output] = np.stack(tokens) if tokens else np.zeros((0, *shape))
        for s in k.states:
            finals.setdefault(s.state, states[s.before])

    def _stepped(self, k: Recurrence, i: int, states: Mapping[str, Array]) -> dict[str, NamedArray]:
        """All values of a recurrence at token i, from those of its states before it."""
        here = {name: self.named(name, i) for name in k.coefficients}
        here |= {s.before: NamedArray(s.axes, states[s.before]) for s in k.states}
        for level in k.levels:
            for a in level:
                here[a.name] = NamedArray(a.axes, self._inside(a.value, here, a.axes))
        return here

    def _inside(
        self, value: Expr, names: Mapping[str, NamedArray], axes: tuple[Axis, ...]
    ) -> Array:
        scope = _Inside(self, names)
        return np.array(value_of(value, scope).expand(axes, scope.size).data)

    def recurrence_adjoint(
        self,
        k: Recurrence,
        cotangent: Mapping[str, Array],
        initial: Mapping[str, Array],
        final_bar: Mapping[str, Array],
    ) -> dict[str, Array]:
        """The gradients of a recurrence's coefficients and initial states, by name."""
        states: dict[str, Array] = {
            s.before: np.array(initial[s.state], dtype=DTYPES[s.field]) for s in k.states
        }
        forward: list[dict[str, NamedArray]] = []
        for i in range(self.length):
            forward.append(self._stepped(k, i, states))
            states = {s.before: forward[-1][s.after].data for s in k.states}
        back = {
            s.bar: NamedArray(s.axes, np.array(final_bar[s.state], dtype=DTYPES[s.bar_field]))
            for s in k.states
        }
        rows: dict[str, list[Array]] = {g.coefficient: [] for g in k.adjoint.gradients}
        for i in reversed(range(self.length)):
            bars = {
                r.bar: NamedArray(self.buffers[r.output].axes, cotangent[r.output][i])
                for r in k.reads
            }
            here = forward[i] | bars | back
            arrays = dict(here)
            for a in (*k.adjoint.steps, *k.adjoint.values):
                arrays[a.name] = NamedArray(a.axes, self._inside(a.value, arrays, a.axes))
            for g in k.adjoint.gradients:
                axes = self.buffers[g.coefficient].axes
                rows[g.coefficient].append(self._inside(g.value, arrays, axes))
            back = {s.bar: arrays[s.bar_before] for s in k.states}
        out = {}
        for name, values in rows.items():
            constant = self.buffers[name].role is Role.CONSTANT
            stacked = np.stack(values[::-1]) if values else np.zeros((0,))
            out[name] = stacked.sum(axis=0) if constant else stacked
        for s in k.states:
            data = back[s.bar].data
            out[s.state] = data.real if s.field is Field.REAL else data
        return out

    def scan(self, scan: Scan, initial: Mapping[str, Array], finals: dict[str, Array]) -> None:
        """Runs the recurrence of each column; `finals` learns its last state."""
        for c in scan.columns:
            tile = tile_of(scan, c.channels)
            h: Array = np.array(initial[c.state], dtype=DTYPES[scan.field])
            out_axes = self.buffers[c.output].axes
            rows = []
            for i in range(self.length):
                before = h
                key, value = self.named(scan.key, i), self.named(c.value, i)
                h = self.moved(scan, i, tile, h) + key.over(tile) * value.over(tile)
                state = before if scan.before else h
                read = self.named(scan.read, i).over(tile) * state
                drop = tuple(k for k, a in enumerate(tile) if a not in out_axes)
                row = read.sum(axis=drop)
                rows.append(row.real if scan.real else row)
            shape = tuple(Scope(self, None).size(a) for a in out_axes)
            self.arrays[c.output] = np.stack(rows) if rows else np.zeros((0, *shape))
            finals.setdefault(c.state, h)


DTYPES = {Field.REAL: np.float64, Field.COMPLEX: np.complex128}


def contracted(scan: Scan, tile: tuple[Axis, ...], side: NamedArray, state: Array) -> Array:
    """Σ_keys side · state, over the axes of the state."""
    keys = tuple(k for k, a in enumerate(tile) if a in scan.keys)
    return np.asarray((side.over(tile) * state).sum(axis=keys, keepdims=True))


def tile_of(scan: Scan, channels: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Returns the axes of the state of a column."""
    return tuple(sorted((*scan.heads, *scan.keys, *channels)))


def evaluate(
    plan: Plan,
    inputs: Mapping[str, Array],
    tensors: Mapping[str, Array],
    sizes: Mapping[str, int],
    initial: Mapping[str, Array] | None = None,
) -> Run:
    """Runs the forward kernels.

    Args:
        plan: the plan.
        inputs: `[L, *axes]` by name.
        tensors: parameters and buffers by name, as stored.
        sizes: of every axis, by name.
        initial: initial state tensors; zeros where missing. Running maxima by the names of their
            buffers; where missing, below all numbers, but 0 beside a state that is given if the
            spec does not declare them.
    """
    r = Runner(plan, inputs, tensors, sizes)
    scope = Scope(r, None)
    start = {s.name: np.zeros(tuple(scope.size(a) for a in s.axes)) for s in plan.states}
    lowest = 0.0 if initial else LOWEST
    for m in (k for k in plan.kernels if isinstance(k, RunningMax)):
        shape = tuple(scope.size(a) for a in r.buffers[m.output].axes)
        start[m.output] = np.full(shape, LOWEST if m.declared else lowest)
    start |= dict(initial or {})
    finals: dict[str, Array] = {}
    for k in plan.kernels:
        if isinstance(k, Pointwise):
            r.pointwise(k)
        elif isinstance(k, RunningMax):
            r.running_max(k, start, finals)
        elif isinstance(k, Unit):
            r.arrays[k.output] = np.eye(scope.size(k.row))
        elif isinstance(k, Reverse):
            r.arrays[k.output] = r.arrays[k.source][::-1].copy()
        elif isinstance(k, Attention):
            r.attention(k)
        elif isinstance(k, AllPairs):
            r.all_pairs(k)
        elif isinstance(k, Recurrence):
            r.recurrence(k, start, finals)
        else:
            r.scan(k, start, finals)
    return Run(r.arrays, finals)
