"""The meaning of a plan's derived gradients in float64: its adjoints, run as literal loops."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dsfc.expr.evaluate import NamedArray
from dsfc.expr.tree import Axis
from dsfc.plan.adjoint import LOG_DECAY_BAR
from dsfc.plan.evaluate import Array, Run, Runner, Scope, contracted, tile_of
from dsfc.plan.ir import Plan, Role
from dsfc.plan.pairs_ir import AllPairs
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import (
    Adjoint,
    DeltaRule,
    Factor,
    Group,
    LowRank,
    Moment,
    RoleProduct,
    RoleScan,
    Scan,
    ScanDirection,
    Transition,
)


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
    r = Runner(plan, {"": np.zeros(len(next(iter(cotangent.values()))))}, {}, sizes)
    r.arrays = dict(run.arrays)
    out: dict[str | Factor, Array] = {}

    def put(name: str | Factor, value: Array) -> None:
        out[name] = out[name] + value if name in out else value

    leaf_bars: dict[str, Array] = {}
    for c in scan.columns:
        channels = c.channels
        tile = tile_of(scan, channels)
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
        decayed = [r.decay(scan, i, tile) * h for i, h in enumerate(past)]
        moments = {Moment.BEFORE: past, Moment.DECAYED: decayed}
        crossing = traces[ScanDirection.REVERSE][0]
        if scan.delta is not None:
            factors |= _delta_terms(r, scan, scan.delta, decayed, crossing, factors, tile, channels)
            crossing = [r.rewritten(scan, scan.delta, i, tile, h) for i, h in enumerate(crossing)]
        if scan.low_rank is not None:
            back = traces[ScanDirection.REVERSE][0]
            factors |= _wy_terms(r, scan, scan.low_rank, past, back, tile, channels)
        for s in adjoint.scans:
            name = c.value if s.result is Factor.VALUE else s.result
            if name is None:
                continue
            states = moments.get(s.moment, traces[s.direction][0])
            result = _role_result(r, scan, s, states, factors, tile, channels)
            if scan.real and s.result is Factor.VALUE:
                result = result.real  # dL = Re(v̄ dv), and dv is real
            if scan.before and s.result is Factor.READ and r.length:
                before = _role_result(r, scan, s, [initial[c.state]], first, tile, channels)
                result = np.concatenate((before, result[:-1]))
            put(name, result)
        for p in adjoint.products:
            put(p.result, _product(r, scan, p, factors, channels))
        out[c.state] = traces[ScanDirection.REVERSE][1]
        if scan.before and r.length:
            read, out_bar = (first[f][0].over(tile) for f in (Factor.READ, Factor.COTANGENT))
            out[c.state] = out[c.state] + read * out_bar
        if scan.transition is not None:
            put(scan.transition.matrix, _outer(r, scan.transition, traces, past, tile))
        if adjoint.pairing is not None and scan.decay is not None:
            bars = []
            keep = [a for a in tile if a not in adjoint.pairing.summed]
            drop = tuple(k for k, a in enumerate(tile) if a not in keep)
            for after, before in zip(crossing, decayed, strict=True):
                bars.append((after * before).sum(axis=drop))
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
    r = Runner(plan, {"": np.zeros(len(next(iter(cotangent.values()))))}, {}, sizes)
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
    r = Runner(plan, {"": np.zeros(len(cotangent))}, {}, sizes)
    r.arrays = dict(run.arrays)
    return r.all_pairs_adjoint(kernel, cotangent)


def _zero(x: NamedArray) -> NamedArray:
    return NamedArray(x.axes, np.zeros_like(x.data))


def _factors(
    r: Runner, scan: Scan, value: str | None, cotangent: Array, channels: tuple[Axis, ...]
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
    r: Runner,
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


def _wy_terms(
    r: Runner,
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
    out: dict[Factor, list[NamedArray]] = {Factor.WY: [], Factor.WY_BAR: []}
    for i in range(r.length):
        left, right = r.low_rank_sides(low_rank, i)
        for factor, side, state in (
            (Factor.WY, right, past[i]),
            (Factor.WY_BAR, left, back[i]),
        ):
            wy = contracted(scan, tile, side, state).squeeze(keys)
            out[factor].append(NamedArray(axes, wy))
    return out


def _delta_terms(
    r: Runner,
    scan: Scan,
    rule: DeltaRule,
    decayed: list[Array],
    back: list[Array],
    factors: Mapping[Factor, list[NamedArray]],
    tile: tuple[Axis, ...],
    channels: tuple[Axis, ...],
) -> dict[Factor, list[NamedArray]]:
    """Returns the roles that the key of a delta rule finds in both recurrences, by token."""
    axes = tuple(sorted((*scan.heads, *channels)))
    gone = tuple(k for k, a in enumerate(tile) if a in scan.keys)
    roles = Factor.RETRIEVED, Factor.WRITTEN, Factor.VALUE_BAR, Factor.RETRIEVED_BAR
    out: dict[Factor, list[NamedArray]] = {role: [] for role in roles}
    for i in range(r.length):
        strength = r.named(rule.strength, i).over(axes)
        retrieved, bar = (
            contracted(scan, tile, factors[Factor.KEY][i], h[i]).squeeze(gone)
            for h in (decayed, back)
        )
        written = factors[Factor.VALUE][i].over(axes) + strength * retrieved
        for role, x in zip(roles, (retrieved, written, bar, strength * bar), strict=True):
            out[role].append(NamedArray(axes, x))
    return out


def _product(
    r: Runner,
    scan: Scan,
    p: RoleProduct,
    factors: Mapping[Factor, list[NamedArray]],
    channels: tuple[Axis, ...],
) -> Array:
    axes = tuple(sorted((*scan.heads, *channels)))
    drop = tuple(k for k, a in enumerate(axes) if a in channels)
    both = zip(factors[p.left], factors[p.right], strict=True)
    rows = [(x.over(axes) * y.over(axes)).sum(axis=drop) for x, y in both]
    return np.stack(rows) if rows else np.zeros((0, *(Scope(r, None).size(a) for a in scan.heads)))


def _outer(
    r: Runner,
    dense: Transition,
    traces: Mapping[ScanDirection, tuple[list[Array], Array]],
    past: list[Array],
    tile: tuple[Axis, ...],
) -> Array:
    """The gradient of a dense Λ: Σ_i h̃_i ⊗ h_{i-1}, over its own axes."""
    axes = r.buffers[dense.matrix].axes
    wide = (*tile, *dense.columns)
    there = [tile.index(a) for a in dense.rows]
    out = np.zeros(tuple(Scope(r, None).size(a) for a in axes))
    gone = tuple(k for k, a in enumerate(wide) if a not in axes)
    for after, before in zip(traces[ScanDirection.REVERSE][0], past, strict=True):
        moved = np.moveaxis(before, there, range(-len(there), 0))
        for at in there:
            moved = np.expand_dims(moved, at)
        out = out + (after.reshape(*after.shape, *(1,) * len(there)) * moved).sum(axis=gone)
    return out


def _role_result(
    r: Runner,
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
    size = Scope(r, None).size
    return np.stack(rows) if rows else np.zeros((0, *(size(a) for a in kept)))
