"""Stable text of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.expr.text import text
from dsfc.expr.tree import Field
from dsfc.plan.ir import Buffer, Plan, Pointwise, Reverse, RunningMax, Unit
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Adjoint, LogDecay, Moment, RoleScan, Scan


def render(plan: Plan) -> str:
    """Returns the plan as text: buffers, kernels in order, adjoints, state, modes.

    Args:
        plan: the plan.
    """
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield f"plan {plan.name}"
    if plan.gauge:
        yield f"gauge  {plan.gauge}"
    yield from kernel_lines(plan)
    stepped = [k for k in plan.kernels if isinstance(k, Recurrence)]
    paired = [k for k in plan.kernels if isinstance(k, AllPairs)]
    if plan.adjoints or stepped or paired:
        yield "adjoint"
    for a in plan.adjoints:
        yield from _adjoint(a)
    for k in stepped:
        yield from _stepped_adjoint(k)
    for p in paired:
        for g in p.gradients:
            yield f"  {p.output}: {g.leaf}_bar = Σ {text(g.value)}"
    if plan.states or plan.registers:
        yield "state"
    for s in plan.states:
        yield f"  {s.name}[{_axes(s.axes)}]{'  starts after the last token' if s.backward else ''}"
    for r in (r for r in plan.registers if r.grows):
        yield f"  {r.name}[{_axes(r.axes)}]  every value of {r.buffer}: one more with each token"
    for r in (r for r in plan.registers if not r.grows):
        length = ", ".join(text(e) for e in r.lengths)
        length = f"max({length})" if len(r.lengths) > 1 else length
        yield f"  {r.name}[{_axes(r.axes)}]  last {length} values of {r.buffer}"
    yield "modes"
    for m in plan.modes:
        yield f"  {m.name}: {'legal' if m.legal else 'not legal'}, {m.why}"


def kernel_lines(plan: Plan) -> Iterator[str]:
    """Yields the lines of a plan's forward kernels, in order, below a heading."""
    yield "kernels"
    arrays = {b.name: b for b in plan.arrays}
    for k in plan.kernels:
        if isinstance(k, Pointwise):
            yield f"  pointwise  {_buffer(arrays[k.output])} = {text(k.value)}"
        elif isinstance(k, RunningMax):
            decay = "" if k.decay is None else f" + {k.decay}"
            value = f"max({k.output}[i-1]{decay}, {k.weight})"
            gradient = "" if k.declared else ", without a gradient"
            yield f"  maximum    {_buffer(arrays[k.output])} = {value}{gradient}"
        elif isinstance(k, Reverse):
            yield f"  reverse    {_buffer(arrays[k.output])} = {k.source}, the last token first"
        elif isinstance(k, Unit):
            yield f"  unit       {_buffer(arrays[k.output])}"
        elif isinstance(k, Attention):
            yield from _attention(k, arrays)
        elif isinstance(k, AllPairs):
            yield from _pairs(k, arrays)
        elif isinstance(k, Recurrence):
            yield from _recurrence(k, arrays)
        else:
            yield from _scan(k, arrays)


def _attention(k: Attention, arrays: dict[str, Buffer]) -> Iterator[str]:
    named = (("heads", k.heads), ("keys", k.keys), ("channels", k.channels))
    groups = ", ".join(f"{name} {_axes(axes)}" for name, axes in named if axes)
    yield f"  attention  {_buffer(arrays[k.output])} = softmax({groups})"
    yield f"    score    {text(k.scale)} · {k.query} · {k.key}"
    yield f"    value    {k.value}"


def _pairs(k: AllPairs, arrays: dict[str, Buffer]) -> Iterator[str]:
    sign, number = ("≤" if k.later else "≥"), k.bound
    yield f"  pairs      {_buffer(arrays[k.output])} = Σ over j, i - j {sign} {number}"
    for title, leaves in (("i", k.queries), ("j", k.keys), ("both", k.fixed)):
        if leaves:
            yield f"    of {title:<5} {', '.join(f'{x.name} = {x.buffer}' for x in leaves)}"
    if k.lag is not None:
        yield f"    i - j    {k.lag}"
    yield f"    summand  {text(k.body)}"
    yield f"    why      {k.why}"


def _recurrence(k: Recurrence, arrays: dict[str, Buffer]) -> Iterator[str]:
    outputs = ", ".join(_buffer(arrays[r.output]) for r in k.reads)
    yield f"  stepped    {outputs} = {k.name}, one token after another"
    for s in k.states:
        kind = " complex" if s.field is Field.COMPLEX else ""
        yield f"    state    {s.state}[{_axes(s.axes)}]{kind}, {s.before} → {s.after}"
    yield f"    reads    {', '.join(k.coefficients)}"
    for level in k.levels:
        for a in level:
            yield f"    {a.name} = {text(a.value)}"
    for r in k.reads:
        yield f"    {r.output} = {text(r.value)}"
    yield f"    why      {k.why}"


def _stepped_adjoint(k: Recurrence) -> Iterator[str]:
    for a in k.adjoint.steps:
        yield f"  {k.name}: {a.name} = {text(a.value)}"
    for a in k.adjoint.values:
        yield f"  {k.name}: {a.name} = {text(a.value)}"
    for g in k.adjoint.gradients:
        yield f"    {g.coefficient}_bar = {text(g.value)}"


def _scan(scan: Scan, arrays: dict[str, Buffer]) -> Iterator[str]:
    groups = ", ".join(
        f"{name} {_axes(axes)}"
        for name, axes in (
            ("heads", scan.heads),
            ("keys", scan.keys),
            ("channels", scan.channels),
        )
        if axes
    )
    outputs = ", ".join(_buffer(arrays[c.output]) for c in scan.columns)
    yield f"  scan       {outputs} = {scan.form.value}({groups})"
    if scan.field is Field.COMPLEX:
        yield f"    state    complex{', its real part is read' if scan.real else ''}"
    if scan.transition is not None:
        yield f"    Λ        {_buffer(arrays[scan.transition.matrix])}"
    else:
        yield f"    log λ    {'0' if scan.decay is None else _decay(scan.decay)}"
    if scan.key is not None:
        yield f"    key      {scan.key}"
    for c in scan.columns:
        yield f"    value    {c.value or '1'} → state {c.state}"
    if scan.low_rank is not None:
        yield f"    low rank {scan.low_rank.left} ⊗ ({scan.low_rank.right} · state)"
    if scan.delta is not None:
        yield f"    delta    {scan.key} ⊗ {scan.delta.strength} * ({scan.key} · λ state)"
    if scan.read is not None:
        yield f"    read     {scan.read}{' before the update' if scan.before else ''}"
    elif scan.before:
        yield "    read     before the update"


def _adjoint(adjoint: Adjoint) -> Iterator[str]:
    for s in adjoint.scans:
        yield f"  {adjoint.scan}: {_role_scan(s)}"
    for p in adjoint.products:
        yield f"  {adjoint.scan}: {p.result.value}_bar = Σ {p.left.value} {p.right.value}"
    if adjoint.transition is not None:
        yield f"  {adjoint.scan}: {adjoint.transition}_bar = Σ h̃ ⊗ h_prev"
    if adjoint.pairing is not None:
        summed = adjoint.pairing.summed
        over = f"⟨h̃, λ h_prev⟩ over {_axes(summed)}" if summed else "h̃ · λ h_prev"
        yield f"  {adjoint.scan}: log_decay_bar = {over}"
        for leaf in adjoint.pairing.leaves:
            yield f"    {leaf.leaf}_bar = {text(leaf.value)}"


_MOMENTS = {
    Moment.AFTER: "",
    Moment.DECAYED: " after the decay",
    Moment.BEFORE: " before the update",
}


def _role_scan(s: RoleScan) -> str:
    carry = ", carries the state's gradient" if s.carry else ""
    return (
        f"{s.result.value}_bar = {s.direction.value} scan of {s.key.value} ⊗ {s.value.value}, "
        f"read {s.read.value}{_MOMENTS[s.moment]} "
        f"over {s.contracted.value}{carry}"
    )


def _decay(decay: LogDecay) -> str:
    return f"{text(decay.expr)}  (leaves {', '.join(decay.leaves)})"


def _buffer(buffer: Buffer) -> str:
    return f"{buffer.name}[{_axes(buffer.axes)}]"


def _axes(axes: tuple[object, ...]) -> str:
    return ", ".join(str(a) for a in axes)
