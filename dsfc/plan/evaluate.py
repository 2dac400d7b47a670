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
from dsfc.plan.adjoint import LOG_DECAY_BAR
from dsfc.plan.ir import (
    Adjoint,
    AllPairs,
    Attention,
    Factor,
    Group,
    LowRank,
    Plan,
    Pointwise,
    Recurrence,
    Role,
    RoleScan,
    RunningMax,
    Scan,
    ScanDirection,
    Transition,
    Turn,
    Unit,
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


class _Scope:
    """Values of leaves at one token."""

    def __init__(self, run: _Runner, i: int | None) -> None:
        self._run = run
        self._i = i

    def size(self, axis: Axis) -> int:
        return self._run.sizes[axis.copy_of or axis.name]

    def param(self, name: str) -> NamedArray:
        axes, data = self._run.tensors[name]
        return NamedArray(axes, data)

    def matrix(self, map: LinearMap) -> Array:
        return self._run.matrices[map.name]

    def ref(self, ref: Ref) -> NamedArray:
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
        raise TypeError(f"`{name}` has no values in a plan")

    def node(self, expr: Expr) -> NamedArray:
        raise TypeError(f"{type(expr).__name__} does not stand in a plan")


class _Inside(_Scope):
    """Values of the names of a recurrence at one token."""

    def __init__(self, run: _Runner, names: Mapping[str, NamedArray]) -> None:
        super().__init__(run, None)
        self._names = names

    def ref(self, ref: Ref) -> NamedArray:
        return self._names[ref.name]


class _Runner:
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
        scope = _Scope(self, i)
        out = value_of(expr, scope)
        return np.array(out.expand(axes, scope.size).data)

    def pointwise(self, k: Pointwise) -> None:
        b = self.buffers[k.output]
        if b.role is Role.CONSTANT:
            self.arrays[k.output] = self.at(k.value, None, b.axes)
            return
        shape = tuple(_Scope(self, None).size(a) for a in b.axes)
        rows = [self.at(k.value, i, b.axes) for i in range(self.length)]
        self.arrays[k.output] = np.stack(rows) if rows else np.zeros((0, *shape))

    def running_max(
        self, k: RunningMax, initial: Mapping[str, Array], finals: dict[str, Array]
    ) -> None:
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
        if scan.decay is None:
            return np.ones(())
        scope = _Scope(self, i)
        return np.exp(value_of(scan.decay.expr, scope).over(tile))

    def moved(self, scan: Scan, i: int, tile: tuple[Axis, ...], h: Array) -> Array:
        """Λ_i h."""
        if scan.transition is not None:
            return self.mixed(scan.transition, tile, h)
        out = self.decay(scan, i, tile) * h
        if scan.low_rank is not None:
            left, right = self.sides(scan.low_rank, i)
            out = out + left.over(tile) * _echo(scan, tile, right, h)
        return out

    def moved_back(self, scan: Scan, i: int, tile: tuple[Axis, ...], h: Array) -> Array:
        """Λ_iᵀ h."""
        if scan.transition is not None:
            return self.mixed(scan.transition, tile, h, transposed=True)
        out = self.decay(scan, i, tile) * h
        if scan.low_rank is not None:
            left, right = self.sides(scan.low_rank, i)
            out = out + right.over(tile) * _echo(scan, tile, left, h)
        return out

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

    def sides(self, low_rank: LowRank, i: int) -> tuple[NamedArray, NamedArray]:
        """Both sides of a low-rank part at token i."""
        return self.named(low_rank.left, i), self.named(low_rank.right, i)

    def attention(self, k: Attention) -> None:
        """Σ_j w_j value_j / Σ_j w_j, w_j = exp(score_j - the largest score), from no past."""
        out_axes = self.buffers[k.output].axes
        pair = (*k.heads, *k.keys)
        drop = tuple(range(len(k.heads), len(pair)))
        scale = float(value_of(k.scale, _Scope(self, None)).data)
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
        shape = tuple(_Scope(self, None).size(a) for a in out_axes)
        rows = [np.broadcast_to(row, shape) for row in rows]
        self.arrays[k.output] = np.stack(rows) if rows else np.zeros((0, *shape))

    def all_pairs(self, k: AllPairs) -> None:
        """Adds up the summand over the pairs that count, from no past."""
        shape = tuple(_Scope(self, None).size(a) for a in k.axes)
        dtype = _DTYPES[self.buffers[k.output].field]
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
            s.before: np.array(initial[s.state], dtype=_DTYPES[s.field]) for s in k.states
        }
        rows: dict[str, list[Array]] = {r.output: [] for r in k.reads}
        for i in range(self.length):
            here = self._stepped(k, i, states)
            for r in k.reads:
                axes = self.buffers[r.output].axes
                rows[r.output].append(self._inside(r.value, here, axes))
            states = {s.before: here[s.after].data for s in k.states}
        for r in k.reads:
            shape = tuple(_Scope(self, None).size(a) for a in self.buffers[r.output].axes)
            found = rows[r.output]
            self.arrays[r.output] = np.stack(found) if found else np.zeros((0, *shape))
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
            s.before: np.array(initial[s.state], dtype=_DTYPES[s.field]) for s in k.states
        }
        forward: list[dict[str, NamedArray]] = []
        for i in range(self.length):
            forward.append(self._stepped(k, i, states))
            states = {s.before: forward[-1][s.after].data for s in k.states}
        back = {
            s.bar: NamedArray(s.axes, np.array(final_bar[s.state], dtype=_DTYPES[s.bar_field]))
            for s in k.states
        }
        rows: dict[str, list[Array]] = {g.coefficient: [] for g in k.adjoint.gradients}
        for i in reversed(range(self.length)):
            bars = {
                r.bar: NamedArray(self.buffers[r.output].axes, cotangent[r.output][i])
                for r in k.reads
            }
            here = forward[i] | bars | back
            found = dict(here)
            for a in (*k.adjoint.steps, *k.adjoint.values):
                found[a.name] = NamedArray(a.axes, self._inside(a.value, found, a.axes))
            for g in k.adjoint.gradients:
                axes = self.buffers[g.coefficient].axes
                rows[g.coefficient].append(self._inside(g.value, found, axes))
            back = {s.bar: found[s.bar_before] for s in k.states}
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
        for c in scan.columns:
            tile = _tile(scan, c.channels)
            h: Array = np.array(initial[c.state], dtype=_DTYPES[scan.field])
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
            shape = tuple(_Scope(self, None).size(a) for a in out_axes)
            self.arrays[c.output] = np.stack(rows) if rows else np.zeros((0, *shape))
            finals.setdefault(c.state, h)


_DTYPES = {Field.REAL: np.float64, Field.COMPLEX: np.complex128}


def _echo(scan: Scan, tile: tuple[Axis, ...], side: NamedArray, state: Array) -> Array:
    """Σ_keys side · state, over the axes of the state."""
    keys = tuple(k for k, a in enumerate(tile) if a in scan.keys)
    return np.asarray((side.over(tile) * state).sum(axis=keys, keepdims=True))


def _tile(scan: Scan, channels: tuple[Axis, ...]) -> tuple[Axis, ...]:
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
    r = _Runner(plan, inputs, tensors, sizes)
    scope = _Scope(r, None)
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
        elif isinstance(k, Turn):
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


def evaluate_adjoint(
    plan: Plan,
    scan: Scan,
    adjoint: Adjoint,
    run: Run,
    sizes: Mapping[str, int],
    cotangent: Mapping[str, Array],
    initial: Mapping[str, Array],
    final_bar: Mapping[str, Array],
) -> dict[str | Factor, Array]:
    """Runs the adjoint of one scan.

    Args:
        plan: the plan.
        scan: the forward scan.
        adjoint: its adjoint.
        run: what the forward kernels computed.
        sizes: of every axis, by name.
        cotangent: gradient of each column's output, by buffer name.
        initial: initial state by state name.
        final_bar: gradient of the final state, by state name.

    Returns:
        gradients: of `Factor.KEY` and `Factor.READ` (over heads ∪ keys, and over time where these
        are constants too); by name of each value buffer (over heads ∪ channels), each decay leaf,
        each state's initial value.
    """
    # All a gradient reads was computed on the way forward: no parameter is needed again.
    r = _Runner(plan, {"": np.zeros(len(next(iter(cotangent.values()))))}, {}, sizes)
    r.arrays = dict(run.arrays)
    out: dict[str | Factor, Array] = {}

    def put(name: str | Factor, value: Array) -> None:
        out[name] = out[name] + value if name in out else value

    leaf_bars: dict[str, Array] = {}
    for c in scan.columns:
        channels = c.channels
        tile = _tile(scan, channels)
        factors = _factors(r, scan, c.value, cotangent[c.output], channels)
        first = {f: rows[:1] for f, rows in factors.items()}
        if scan.before:
            # What reads h_{i-1} at token i reads the state of token i-1 after its update.
            for f in (Factor.READ, Factor.COTANGENT):
                factors[f] = [*factors[f][1:], *(_zero(x) for x in factors[f][-1:])]
        traces = {}
        for direction in ScanDirection:
            traces[direction] = _trace(
                r, scan, direction, factors, tile, initial[c.state], final_bar[c.state]
            )
        past = [initial[c.state], *traces[ScanDirection.FORWARD][0]][: r.length]
        if scan.low_rank is not None:
            back = traces[ScanDirection.REVERSE][0]
            factors |= _echoes(r, scan, scan.low_rank, past, back, tile, channels)
        for s in adjoint.scans:
            name = c.value if s.result is Factor.VALUE else s.result
            if name is None:
                continue
            states = past if s.before else traces[s.direction][0]
            result = _role_result(r, scan, s, states, factors, tile, channels)
            if scan.real and s.result is Factor.VALUE:
                result = result.real  # dL = Re(v̄ dv), and dv is real
            if scan.before and s.result is Factor.READ and r.length:
                before = _role_result(r, scan, s, [initial[c.state]], first, tile, channels)
                result = np.concatenate((before, result[:-1]))
            put(name, result)
        out[c.state] = traces[ScanDirection.REVERSE][1]
        if scan.before and r.length:
            read, out_bar = (first[f][0].over(tile) for f in (Factor.READ, Factor.COTANGENT))
            out[c.state] = out[c.state] + read * out_bar
        if scan.transition is not None:
            put(scan.transition.matrix, _outer(r, scan.transition, traces, past, tile))
        if adjoint.pairing is not None and scan.decay is not None:
            h, hb = traces[ScanDirection.FORWARD][0], traces[ScanDirection.REVERSE][0]
            bars = []
            keep = [a for a in tile if a not in adjoint.pairing.summed]
            for i in range(r.length):
                prev = initial[c.state] if i == 0 else h[i - 1]
                pair = hb[i] * r.decay(scan, i, tile) * prev
                drop = tuple(k for k, a in enumerate(tile) if a not in keep)
                bars.append(pair.sum(axis=drop))
            leaf_bars[c.output] = np.stack(bars) if bars else np.zeros(0)
    if adjoint.pairing is not None and leaf_bars:
        # There is a leaf, so it is no int 0.
        r.arrays[LOG_DECAY_BAR] = sum(leaf_bars.values())  # type: ignore[assignment]
        for leaf in adjoint.pairing.leaves:
            b = r.buffers[leaf.leaf]
            rows = [r.at(leaf.value, i, b.axes) for i in range(r.length)]
            whole = np.stack(rows) if rows else np.zeros((0,))
            put(leaf.leaf, whole.sum(axis=0) if b.role is Role.CONSTANT else whole)
    return out


def evaluate_recurrence_adjoint(
    plan: Plan,
    kernel: Recurrence,
    run: Run,
    sizes: Mapping[str, int],
    cotangent: Mapping[str, Array],
    initial: Mapping[str, Array],
    final_bar: Mapping[str, Array],
) -> dict[str, Array]:
    """Runs the adjoint of one recurrence.

    Args:
        plan: the plan.
        kernel: the recurrence.
        run: what the forward kernels computed.
        sizes: of every axis, by name.
        cotangent: gradient of each read, by buffer name.
        initial: initial state by state name.
        final_bar: gradient of the final state, by state name.

    Returns:
        gradients, by name of coefficient (over time where it has one) and of state.
    """
    r = _Runner(plan, {"": np.zeros(len(next(iter(cotangent.values()))))}, {}, sizes)
    r.arrays = dict(run.arrays)
    return r.recurrence_adjoint(kernel, cotangent, initial, final_bar)


def evaluate_pairs_adjoint(
    plan: Plan, kernel: AllPairs, run: Run, sizes: Mapping[str, int], cotangent: Array
) -> dict[str, Array]:
    """Runs the adjoint of one sum over pairs.

    Args:
        plan: the plan.
        kernel: the sum.
        run: what the forward kernels computed.
        sizes: of every axis, by name.
        cotangent: gradient of its output, `[L, *axes]`.

    Returns:
        gradients, by name of leaf (over time where it has one).
    """
    r = _Runner(plan, {"": np.zeros(len(cotangent))}, {}, sizes)
    r.arrays = dict(run.arrays)
    return r.all_pairs_adjoint(kernel, cotangent)


def _zero(x: NamedArray) -> NamedArray:
    return NamedArray(x.axes, np.zeros_like(x.data))


def _factors(
    r: _Runner, scan: Scan, value: str | None, cotangent: Array, channels: tuple[Axis, ...]
) -> dict[Factor, list[NamedArray]]:
    out_axes = tuple(sorted((*scan.heads, *channels)))
    return {
        Factor.READ: [r.named(scan.read, i) for i in range(r.length)],
        Factor.KEY: [r.named(scan.key, i) for i in range(r.length)],
        Factor.VALUE: [r.named(value, i) for i in range(r.length)],
        Factor.COTANGENT: [NamedArray(out_axes, cotangent[i]) for i in range(r.length)],
        Factor.ONE: [NamedArray((), np.asarray(1.0))] * r.length,
    }


def _trace(
    r: _Runner,
    scan: Scan,
    direction: ScanDirection,
    factors: Mapping[Factor, list[NamedArray]],
    tile: tuple[Axis, ...],
    initial: Array,
    final_bar: Array,
) -> tuple[list[Array], Array]:
    """All states of the forward or the reversed recurrence, and what it leaves at its end."""
    states: list[Array] = [np.zeros(0)] * r.length
    if direction is ScanDirection.FORWARD:
        h = initial
        for i in range(r.length):
            drive = factors[Factor.KEY][i].over(tile) * factors[Factor.VALUE][i].over(tile)
            h = states[i] = r.moved(scan, i, tile, h) + drive
        return states, h
    h = final_bar
    for i in reversed(range(r.length)):
        drive = factors[Factor.READ][i].over(tile) * factors[Factor.COTANGENT][i].over(tile)
        states[i] = h + drive
        h = r.moved_back(scan, i, tile, states[i])
    return states, h


def _echoes(
    r: _Runner,
    scan: Scan,
    low_rank: LowRank,
    past: list[Array],
    back: list[Array],
    tile: tuple[Axis, ...],
    channels: tuple[Axis, ...],
) -> dict[Factor, list[NamedArray]]:
    """What both recurrences of a low-rank part give back, token by token, over heads ∪ channels."""
    axes = tuple(sorted((*scan.heads, *channels)))
    keys = tuple(k for k, a in enumerate(tile) if a in scan.keys)
    out: dict[Factor, list[NamedArray]] = {Factor.ECHO: [], Factor.ECHO_BAR: []}
    for i in range(r.length):
        left, right = r.sides(low_rank, i)
        for factor, side, state in (
            (Factor.ECHO, right, past[i]),
            (Factor.ECHO_BAR, left, back[i]),
        ):
            echo = _echo(scan, tile, side, state).squeeze(keys)
            out[factor].append(NamedArray(axes, echo))
    return out


def _outer(
    r: _Runner,
    dense: Transition,
    traces: Mapping[ScanDirection, tuple[list[Array], Array]],
    past: list[Array],
    tile: tuple[Axis, ...],
) -> Array:
    """The gradient of a dense Λ: Σ_i h̃_i ⊗ h_{i-1}, over its own axes."""
    axes = r.buffers[dense.matrix].axes
    wide = (*tile, *dense.columns)
    there = [tile.index(a) for a in dense.rows]
    out = np.zeros(tuple(_Scope(r, None).size(a) for a in axes))
    gone = tuple(k for k, a in enumerate(wide) if a not in axes)
    for after, before in zip(traces[ScanDirection.REVERSE][0], past, strict=True):
        moved = np.moveaxis(before, there, range(-len(there), 0))
        for at in there:
            moved = np.expand_dims(moved, at)
        out = out + (after.reshape(*after.shape, *(1,) * len(there)) * moved).sum(axis=gone)
    return out


def _role_result(
    r: _Runner,
    scan: Scan,
    s: RoleScan,
    states: list[Array],
    factors: Mapping[Factor, list[NamedArray]],
    tile: tuple[Axis, ...],
    channels: tuple[Axis, ...],
) -> Array:
    gone = {Group.KEYS: scan.keys, Group.CHANNELS: channels, Group.NONE: ()}[s.contracted]
    drop = tuple(k for k, a in enumerate(tile) if a in gone)
    read = factors[s.read]
    rows = [(x.over(tile) * h).sum(axis=drop) for x, h in zip(read, states, strict=True)]
    kept = [a for a in tile if a not in gone]
    size = _Scope(r, None).size
    return np.stack(rows) if rows else np.zeros((0, *(size(a) for a in kept)))
