"""The gradient of a scan, as scans: the adjoint of its stage, matched to the scan's roles.

`dsfc.transform.stage_adjoint` derives the reversed recurrence and one contraction per role. For

    h_i = λ_i h_{i-1} + key_i ⊗ value_i        out_i = Σ_keys read_i · h_i

each contraction is again a scan of the forward or the reversed recurrence with roles exchanged, and
the decay's gradient is a pairing of the two. Of a low-rank part, left ⊗ (right · h_{i-1}), both
sides' gradients are contractions of one recurrence with the WY term of the other. Of a delta rule,
the key's gradient is two contractions, and that of its strength a product. A dense Λ takes
the place of λ in both recurrences and changes no role; its gradient is the pairing of both,
h̃_i ⊗ h_{i-1}, with nothing summed but time. This module reads those roles off the derived
contractions; it writes down no gradient itself.

Complex numbers are treated as real ones are: x̄ is the gradient for which dL = Re Σ x̄ dx. PyTorch's
gradient is its conjugate, which is this adjoint at the conjugates of all that the scan reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dsfc.expr.build import ONE, is_one, mul, prim, rewrite, total
from dsfc.expr.derivative import pull
from dsfc.expr.tree import Axis, Expr, Field, Now, Ref, Time
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import (
    Adjoint,
    Factor,
    Group,
    LeafGradient,
    LogDecay,
    Moment,
    Pairing,
    RoleProduct,
    RoleScan,
    Scan,
    ScanDirection,
)
from dsfc.system.ir import Block, Decay, Direction, Drive, LogForm, Read, Stage, Term
from dsfc.system.ir import Factor as ChainFactor
from dsfc.transform.stage_adjoint import Gradient, Role, StageAdjoint, adjoint_stage

LOG_DECAY_BAR = "log_decay_bar"
_GROUPS = (Axis(0, "h", heads=True), Axis(1, "n"), Axis(2, "p"))
_STATE = "state"
_LOG_DECAY = "log_decay"


class AdjointError(Exception):
    """A derived contraction that is not a scan of the roles: a fault of the planner."""


def derived(scan: Scan, arrays: Mapping[str, Buffer], decay: frozenset[Group]) -> Adjoint:
    """Returns the derived gradient of a scan with respect to all it reads.

    Args:
        scan: the scan.
        arrays: the plan's buffers by name.
        decay: groups of axes that log λ may have besides its heads.
    """
    stage, read, cotangent = _canonical(scan, decay)
    adjoint = adjoint_stage(stage, [(read, cotangent)])
    scans = tuple(_role_scans(scan, adjoint))
    products: tuple[RoleProduct, ...] = ()
    if scan.delta is not None:
        scans, products = _with_rewriting(scans, adjoint)
    pairing = None
    if any(g.role is Role.DECAY for g in adjoint.gradients):
        pairing = _pairing(scan, arrays, decay)
    dense = None if scan.transition is None else scan.transition.matrix
    return Adjoint(scan.name, scans, pairing, dense, products)


def _canonical(scan: Scan, groups: frozenset[Group]) -> tuple[Stage, Read, Ref]:
    """The scan as a stage whose vectors are named by their roles."""
    # One axis per group: an empty group is a group of size 1, and its contraction is one too.
    heads, keys, channels = (frozenset({a}) for a in _GROUPS)
    if scan.read is None:
        keys = frozenset()
    tile = heads | keys | channels
    value = _ref(Factor.VALUE.value, heads | channels)
    cotangent = _ref(Factor.COTANGENT.value, heads | channels)
    key: Expr = ONE
    read: Expr = ONE
    if scan.read is not None:
        key, read = (_ref(f.value, heads | keys) for f in (Factor.KEY, Factor.READ))
    left: Expr = ONE
    decay = None
    if scan.decay is not None:
        along = {Group.KEYS: keys, Group.CHANNELS: channels}
        log = _ref(_LOG_DECAY, heads.union(*(along[g] for g in groups)))
        left = prim("exp", log)
        decay = Decay(left, log, None, LogForm.EXACT)
    terms = [Term(_STATE, 1, left, frozenset(), ONE)]
    if scan.low_rank is not None:
        sides = (_ref(f.value, heads | keys) for f in (Factor.LEFT, Factor.RIGHT))
        terms.append(Term(_STATE, 1, next(sides), keys, next(sides)))
    factors = [ChainFactor(tuple(terms), ())]
    if scan.delta is not None:
        strength = _ref(Factor.STRENGTH.value, heads)
        same = Term(_STATE, 0, ONE, frozenset(), ONE)
        factors.append(ChainFactor((same, Term(_STATE, 0, mul(strength, key), keys, key)), ()))
    factors[-1] = replace(factors[-1], drives=(Drive(key, value),))
    block = Block(_STATE, tuple(sorted(tile)), Field.REAL, tuple(factors), decay)
    reads = Read((Term(_STATE, 0, ONE, keys, read),))
    return Stage(Direction.FORWARD, (block,)), reads, cotangent


def _ref(name: str, axes: frozenset[Axis]) -> Ref:
    return Ref(name, axes, Field.REAL, Time.TOKEN, Now(0))


_RESULTS = {
    Role.DRIVE_STREAM: Factor.VALUE,
    Role.DRIVE_KEY: Factor.KEY,
    Role.READ_RIGHT: Factor.READ,
}


def _role_scans(scan: Scan, derived: StageAdjoint) -> Iterable[RoleScan]:
    """One scan per role with a gradient; the first of the reversed ones carries the state's."""
    role_scans = {_RESULTS[g.role]: g for g in derived.gradients if g.role in _RESULTS}
    carried = False
    for result in (Factor.VALUE, Factor.KEY, Factor.READ):
        if result in role_scans:
            role_scan = _role_scan(scan, result, role_scans[result], derived, carry=not carried)
            carried = carried or role_scan.carry
            yield role_scan
    if scan.low_rank is not None:
        yield from _side_scans(derived)


def _role_scan(
    scan: Scan, result: Factor, gradient: Gradient, derived: StageAdjoint, carry: bool
) -> RoleScan:
    read = gradient.read
    if read is None:
        raise AdjointError(f"the gradient of {result.value} is not a read of one state")
    (state,) = (v for v in derived.values if v.name == read.source)
    groups = {
        frozenset[Axis](): Group.NONE,
        frozenset({_GROUPS[1]}): Group.KEYS,
        frozenset({_GROUPS[2]}): Group.CHANNELS,
    }
    backwards = state.cotangent
    block = derived.stage.blocks[0] if backwards else None
    key, value = (Factor.KEY, Factor.VALUE) if scan.key is not None else (Factor.ONE, Factor.VALUE)
    if block is not None:
        (drive,) = (d for f in block.chain for d in f.drives)
        key, value = _factor(drive.key), _factor(drive.stream)
    return RoleScan(
        result,
        ScanDirection.REVERSE if backwards else ScanDirection.FORWARD,
        key,
        value,
        _factor(read.right),
        groups[read.over],
        carry=carry and backwards,
    )


def _side_scans(derived: StageAdjoint) -> Iterable[RoleScan]:
    """The scans that give the gradients of both sides of a low-rank part."""
    after, before = derived.value(_STATE, 1, True).ref, derived.value(_STATE, 0, False).ref
    keys, channels = (frozenset({a}) for a in _GROUPS[1:])
    (left,) = (g for g in derived.gradients if g.role is Role.TERM_LEFT)
    (right,) = (g for g in derived.gradients if g.role is Role.TERM_RIGHT)
    wy = total(keys, mul(right.leaf, before))
    wy_bar = total(keys, mul(left.leaf, after))
    if left.value != total(channels, mul(after, wy)):
        raise AdjointError("the gradient of a left side is not a read of the WY term")
    if right.value != total(channels, mul(wy_bar, before)):
        raise AdjointError("the gradient of a right side is not a read of the WY term's gradient")
    group = Group.CHANNELS
    yield RoleScan(
        Factor.LEFT,
        ScanDirection.REVERSE,
        Factor.READ,
        Factor.COTANGENT,
        Factor.WY,
        group,
        carry=False,
    )
    yield RoleScan(
        Factor.RIGHT,
        ScanDirection.FORWARD,
        Factor.KEY,
        Factor.VALUE,
        Factor.WY_BAR,
        group,
        carry=False,
        moment=Moment.BEFORE,
    )


def _with_rewriting(
    scans: tuple[RoleScan, ...], derived: StageAdjoint
) -> tuple[tuple[RoleScan, ...], tuple[RoleProduct, ...]]:
    """The scans and products that give the gradients of a delta rule.

    The key stands in the term on both sides and in the drive: what it gets on the left and from the
    drive are two reads of one state, and thus one read with the sum of both.
    """
    after, mid = derived.value(_STATE, 2, True).ref, derived.value(_STATE, 1, False).ref
    keys, channels = (frozenset({a}) for a in _GROUPS[1:])
    (left,) = (g for g in derived.gradients if g.role is Role.TERM_LEFT)
    (right,) = (g for g in derived.gradients if g.role is Role.TERM_RIGHT)
    (value,) = (g for g in derived.gradients if g.role is Role.DRIVE_STREAM)
    key = right.leaf
    retrieved = total(keys, mul(key, mid))
    retrieved_bar = total(keys, mul(left.leaf, after))
    if left.value != total(channels, mul(after, retrieved)):
        raise AdjointError("the gradient of what is rewritten is not a read of what is retrieved")
    if right.value != total(channels, mul(retrieved_bar, mid)):
        raise AdjointError("the gradient of what finds is not a read of the decayed state")
    if value.value != total(keys, mul(key, after)) or left.leaf.axes != key.axes:
        raise AdjointError("the gradient of what is retrieved is not that of the value")
    written = (replace(s, read=Factor.WRITTEN) if s.result is Factor.KEY else s for s in scans)
    finding = RoleScan(
        Factor.KEY,
        ScanDirection.FORWARD,
        Factor.KEY,
        Factor.VALUE,
        Factor.RETRIEVED_BAR,
        Group.CHANNELS,
        carry=False,
        moment=Moment.DECAYED,
    )
    return (*written, finding), (RoleProduct(Factor.STRENGTH, Factor.RETRIEVED, Factor.VALUE_BAR),)


def _factor(expr: Expr) -> Factor:
    if is_one(expr):
        return Factor.ONE
    if not isinstance(expr, Ref):
        raise AdjointError(f"{expr} is not one of the scan's roles")
    return Factor(expr.name)


def _pairing(scan: Scan, arrays: Mapping[str, Buffer], groups: frozenset[Group]) -> Pairing:
    decay = scan.decay
    assert decay is not None
    tile = sorted((*scan.heads, *scan.keys, *scan.channels))
    along = {Group.KEYS: scan.keys, Group.CHANNELS: scan.channels}
    axes = frozenset(scan.heads).union(*(along[g] for g in groups))
    leaves = tuple(
        LeafGradient(leaf, _leaf_gradient(decay, arrays[leaf], axes)) for leaf in decay.leaves
    )
    return Pairing(tuple(a for a in tile if a not in axes), leaves)


def _leaf_gradient(decay: LogDecay, leaf: Buffer, axes: frozenset[Axis]) -> Expr:
    """The gradient of a leaf, summed onto its axes, from that of log λ over `axes`."""
    bar = _ref(LOG_DECAY_BAR, axes)
    gradients = pull([(rewrite(decay.expr, _as_real), bar)]).refs
    (value,) = (g for ref, g in gradients.items() if ref.name == leaf.name)
    return total(value.axes - frozenset(leaf.axes), value)


def _as_real(e: Expr) -> Expr | None:
    """A leaf as a real one: for dL = Re Σ x̄ dx a complex product's gradient is a real one's."""
    if isinstance(e, Ref) and e.field is Field.COMPLEX:
        return Ref(e.name, e.over, Field.REAL, e.when, e.at)
    return None
