"""The gradient of a scan, as scans.

The transpose of a term (left, over, right) is (right, axes(dst) minus kept, left). For a scan

    h_i = λ_i h_{i-1} + key_i ⊗ value_i        out_i = Σ_keys read_i · h_i

it gives the system that runs the other way, h̃_i = λ_{i+1} h̃_{i+1} + read_i ⊗ out̄_i, in which

    valuē_i = Σ_keys key_i · h̃_i          keȳ_i = Σ_channels value_i · h̃_i
    read̄_i  = Σ_channels out̄_i · h_i      (log λ)̄_i = ⟨h̃_i, λ_i h_{i-1}⟩

(see `dsfc.transform.adjoint`, whose evaluation the tests compare with this graph's). Every line is
again a scan with roles exchanged, or a pairing of two.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.plan.ir import (
    Adjoint,
    Buffer,
    Factor,
    Form,
    Group,
    LeafGradient,
    LogDecay,
    Pairing,
    RoleScan,
    Scan,
    ScanDirection,
)
from dsfc.primitives.build import total
from dsfc.primitives.derivative import pull
from dsfc.primitives.expr import Axis, Expr, Field, Now, Ref, Time

LOG_DECAY_BAR = "log_decay_bar"


def adjoint_of(scan: Scan, arrays: Mapping[str, Buffer]) -> Adjoint:
    """Returns the derived gradient of a scan with respect to all it reads."""
    reverse, forward = ScanDirection.REVERSE, ScanDirection.FORWARD
    if scan.form is Form.ELEMENTWISE:
        # No key: h̃ is the gradient of the value itself.
        scans: tuple[RoleScan, ...] = (
            RoleScan(
                Factor.VALUE, reverse, Factor.ONE, Factor.COTANGENT, Factor.ONE, Group.NONE, True
            ),
        )
    else:
        scans = (
            RoleScan(
                Factor.VALUE, reverse, Factor.READ, Factor.COTANGENT, Factor.KEY, Group.KEYS, True
            ),
            RoleScan(
                Factor.KEY,
                reverse,
                Factor.READ,
                Factor.COTANGENT,
                Factor.VALUE,
                Group.CHANNELS,
                False,
            ),
            RoleScan(
                Factor.READ,
                forward,
                Factor.KEY,
                Factor.VALUE,
                Factor.COTANGENT,
                Group.CHANNELS,
                False,
            ),
        )
    return Adjoint(scan.name, scans, None if scan.decay is None else _pairing(scan, arrays))


def _pairing(scan: Scan, arrays: Mapping[str, Buffer]) -> Pairing:
    decay = scan.decay
    assert decay is not None
    tile = (*scan.heads, *scan.keys, *scan.channels)
    axes = tile if scan.form is not Form.MATRIX else scan.heads
    summed = tuple(a for a in tile if a not in axes)
    leaves = tuple(
        LeafGradient(leaf, _leaf_gradient(decay, arrays[leaf], tuple(sorted(axes))))
        for leaf in decay.leaves
    )
    return Pairing(summed, leaves)


def _leaf_gradient(decay: LogDecay, leaf: Buffer, axes: tuple[Axis, ...]) -> Expr:
    """The gradient of a leaf, summed onto its axes, from that of log λ over `axes`."""
    bar = Ref(LOG_DECAY_BAR, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))
    gradients = pull([(decay.expr, bar)]).refs
    (value,) = (g for ref, g in gradients.items() if ref.name == leaf.name)
    return total(value.axes - frozenset(leaf.axes), value)
