"""Which form of scan has kernels, and what a plan with kernels prints.

A form without a row here keeps the torch form of its operators, whatever the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsfc.plan.features import Features, take_features
from dsfc.plan.gates import Gates, absorb
from dsfc.plan.ir import Buffer, Form, Plan, Scan

from ..torch.operators import skeletons as torch_skeletons
from ..torch.skeletons import Skeleton
from . import convolution, elementwise, matrix, selective
from .nodes import knows

_FORMS: dict[Form, Callable[[Skeleton, Scan, Gates, dict[str, Buffer]], Skeleton]] = {
    Form.ELEMENTWISE: elementwise.kernels,
    Form.CONVOLUTION: convolution.kernels,
    Form.SELECTIVE: selective.kernels,
}


@dataclass(frozen=True, slots=True)
class _Inside:
    """A plan without what the kernels of its scans compute, and that, by scan."""

    plan: Plan
    gates: dict[str, Gates]
    features: dict[str, Features]

    @property
    def scans(self) -> dict[str, Scan]:
        """The scans, with the leaves of what their kernels compute."""
        return {k.name: k for k in self.plan.kernels if isinstance(k, Scan)}


def _inside(plan: Plan) -> _Inside:
    """What the kernels of a plan's scans compute.

    No kernel sums products of keys in double precision: where one scan does, none has any.
    """
    if any(isinstance(k, Scan) and k.powers for k in plan.kernels):
        return _Inside(plan, {}, {})
    absorbed = absorb(plan, knows)
    held = [n for g in absorbed.gates for n in (*g.tokens, *g.constants)]
    taken = take_features(absorbed.plan, knows, held)
    gates = {g.scan: g for g in absorbed.gates}
    return _Inside(taken.plan, gates, {f.scan: f for f in taken.features})


def printed(plan: Plan) -> Plan:
    """Returns the plan without what the kernels of its scans compute."""
    return _inside(plan).plan


def skeletons(plan: Plan) -> tuple[Skeleton, ...]:
    """Returns what the templates of each scan are filled with, in the order of the plan."""
    inside = _inside(plan)
    scans = inside.scans
    arrays = {b.name: b for b in inside.plan.arrays}
    out = []
    for s in torch_skeletons(plan):
        name = s.scan.name
        if name in inside.features:
            s = matrix.kernels(s, scans[name], inside.features[name], arrays)
        elif name in inside.gates:
            s = _FORMS[s.scan.form](s, scans[name], inside.gates[name], arrays)
        out.append(s)
    return tuple(out)


def scans_with_kernels(plan: Plan) -> tuple[str, ...]:
    """Returns the names of the scans that have kernels, in the order of the plan."""
    inside = _inside(plan)
    return tuple(n for n in inside.scans if n in inside.gates or n in inside.features)
