"""Which form of scan has kernels, and what a plan with kernels prints.

A form without a row here keeps the torch form of its operators, whatever the device.
"""

from __future__ import annotations

from collections.abc import Callable

from dsfc.plan.gates import Gates, absorb
from dsfc.plan.ir import Buffer, Form, Plan, Scan

from ..torch.operators import skeletons as torch_skeletons
from ..torch.skeletons import Skeleton
from . import elementwise, matrix, selective
from .nodes import knows

_FORMS: dict[Form, Callable[[Skeleton, Scan, Gates, dict[str, Buffer]], Skeleton]] = {
    Form.ELEMENTWISE: elementwise.kernels,
    Form.SELECTIVE: selective.kernels,
}
_UNGATED: dict[Form, tuple[Callable[[Scan], bool], Callable[[Skeleton], Skeleton]]] = {
    Form.MATRIX: (matrix.has_kernels, matrix.kernels),
}
"""Forms whose kernels take what the torch form takes: which scans have some, what fills them."""


def printed(plan: Plan) -> Plan:
    """Returns the plan without what the kernels of its scans compute."""
    return absorb(plan, knows).plan


def skeletons(plan: Plan) -> tuple[Skeleton, ...]:
    """Returns what the templates of each scan are filled with, in the order of the plan."""
    if _has_powers(plan):
        return torch_skeletons(plan)
    absorbed = absorb(plan, knows)
    gates = {g.scan: g for g in absorbed.gates}
    scans = {k.name: k for k in absorbed.plan.kernels if isinstance(k, Scan)}
    arrays = {b.name: b for b in absorbed.plan.arrays}
    out = []
    for s in torch_skeletons(plan):
        made = _FORMS.get(s.scan.form)
        known = gates.get(s.scan.name)
        if made is not None and known is not None:
            s = made(s, scans[s.scan.name], known, arrays)
        elif _is_ungated(s.scan):
            s = _UNGATED[s.scan.form][1](s)
        out.append(s)
    return tuple(out)


def scans_with_kernels(plan: Plan) -> tuple[str, ...]:
    """Returns the names of the scans that have kernels, in the order of the plan."""
    scans = [k for k in plan.kernels if isinstance(k, Scan)]
    if _has_powers(plan):
        return ()
    gated = {g.scan for g in absorb(plan, knows).gates}
    return tuple(s.name for s in scans if s.name in gated or _is_ungated(s))


def _has_powers(plan: Plan) -> bool:
    """Whether a scan sums products of keys, which no kernel does in double precision."""
    return any(isinstance(k, Scan) and k.powers for k in plan.kernels)


def _is_ungated(scan: Scan) -> bool:
    return scan.form in _UNGATED and _UNGATED[scan.form][0](scan)
