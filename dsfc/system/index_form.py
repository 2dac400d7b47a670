"""The index form of a System: one readable, stable text of everything it holds.

This is the text that goldens store. Names stand for their value at token i; `S[i-1]` is the state
before the update. Axes are listed once, where a name is introduced.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.expr.build import is_one, is_zero
from dsfc.expr.declarations import AbstractMap, Constraint, Dimension, Init, MapTensor, Tensor
from dsfc.expr.text import map_name, text
from dsfc.expr.tree import Axis, Expr, Field
from dsfc.system.formulas import States, read_out_formula, states, stream_formula, update_formulas
from dsfc.system.ir import (
    Block,
    Coupling,
    CouplingKind,
    Decay,
    Direction,
    GaugeKind,
    LogForm,
    Output,
    ReadOut,
    Stage,
    Stream,
    System,
)

_INDENT = "  "


def index_form(system: System) -> str:
    """Returns the index form, ending in a newline."""
    blocks = states(system)
    parts = [
        [f"system {system.name}" + (f'  "{system.doc}"' if system.doc else "")],
        _section("axes", (_dimension(d) for d in system.axes)),
        _section("inputs", (_tensor(t) for t in system.inputs)),
        _section("parameters", (_declared(p) for p in system.params)),
        _section("buffers", (_declared(b) for b in system.buffers)),
        _section("abstract", (_abstract(a) for a in system.abstracts)),
        _section("streams", (_stream(s, blocks) for s in system.streams)),
    ]
    for k, stage in enumerate(system.stages, 1):
        parts.append(_stage(k, stage, blocks))
    parts.append(_section("output", (_output(o, blocks) for o in system.outputs)))
    parts.append(_section("claims", system.claims))
    return "\n\n".join("\n".join(p) for p in parts if p) + "\n"


def definitions(system: System) -> str:
    """Returns what the vectors of Λ, B and C are computed of, one line each; may be empty."""
    lines = _section("where", (_stream(s, states(system)) for s in system.streams))
    return "".join(f"{line}\n" for line in lines)


def equations(system: System) -> str:
    """Returns the part of the index form that computes: streams, stages and output."""
    blocks = states(system)
    parts = [_section("streams", (_stream(s, blocks) for s in system.streams))]
    parts += [_stage(k, stage, blocks) for k, stage in enumerate(system.stages, 1)]
    parts.append(_section("output", (_output(o, blocks) for o in system.outputs)))
    return "\n".join("\n".join(p) for p in parts if p) + "\n"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    body = [_INDENT + line for line in lines]
    return [title, *body] if body else []


def _dimension(d: Dimension) -> str:
    heads = "heads " if d.axis.heads else ""
    copy = f"  (copy of {d.axis.copy_of})" if d.axis.copy_of else ""
    size = "" if d.size is None else f" = {text(d.size)}"
    return heads + d.axis.name + size + copy


def shape(axes: Iterable[Axis]) -> str:
    """Returns axes as in specs: `h × n`; `1` when there are none."""
    return " × ".join(a.name for a in axes) or "1"


def _typed(name: str, axes: Iterable[Axis], field: Field) -> str:
    return f"{name} : {shape(axes)}" + (" complex" if field is Field.COMPLEX else "")


def _init(init: Init | None) -> str:
    return "" if init is None else f" {'~' if init.drawn else '='} {text(init.value)}"


def _tensor(t: Tensor) -> str:
    promise = "" if t.constraint is Constraint.NONE else f" {t.constraint.value}"
    return _typed(t.name, t.axes, t.field) + promise + _init(t.init)


def _declared(p: Tensor | MapTensor) -> str:
    if isinstance(p, Tensor):
        return _tensor(p)
    each = f"each {shape(p.map.each)} : " if p.map.each else ""
    kind = " complex" if p.map.field is Field.COMPLEX else ""
    arrow = f"{shape(p.map.source)} -> {shape(p.map.target)}"
    return f"{map_name(p.map)} : {each}{arrow}{kind}{_init(p.init)}"


def _abstract(a: AbstractMap) -> str:
    return f"{a.name} : {shape(a.source)} -> {shape(a.target)}"


def _value(value: Expr | ReadOut, blocks: States) -> str:
    return text(value if isinstance(value, Expr) else read_out_formula(value, blocks))


def _stream(s: Stream, blocks: States) -> str:
    constant = "  (constant)" if s.constant else ""
    source = f'  "{s.provenance.text}"' if s.provenance else ""
    return (
        f"{_typed(s.name, s.axes, s.field)} = {text(stream_formula(s, blocks))}{constant}{source}"
    )


def _stage(number: int, stage: Stage, blocks: States) -> list[str]:
    way = "forward" if stage.direction is Direction.FORWARD else "backward"
    lines = [line for b in stage.blocks for line in _block(b, blocks)]
    return _section(f"stage {number}, {way}", lines)


def _block(b: Block, blocks: States) -> list[str]:
    origin = "" if b.declared else "  (found)"
    source = f'  "{b.provenance.text}"' if b.provenance else ""
    lines = [_typed(b.state, b.axes, b.field) + origin + source]
    lines += [f"{_INDENT}{name} = {text(value)}" for name, value in update_formulas(b, blocks)]
    if b.decay is not None:
        lines.append(_INDENT + _decay(b.decay))
    for k, factor in enumerate(b.chain, 1):
        of = f" {k}" if len(b.chain) > 1 else ""
        for d in factor.drives:
            parts = f"key {text(d.key)}, stream {text(d.stream)}"
            lines.append(f"{_INDENT}drive{of}: {parts}{coupling(d.coupling)}")
    if b.flow is not None:
        f = b.flow
        low = f", low rank {len(f.low_rank)}" if f.low_rank else ""
        lines.append(
            f"{_INDENT}flow: diagonal {text(f.diagonal)}{low}, drive {text(f.drive)},"
            f" by {f.rule.value}({text(f.step)})"
        )
    if b.gauge.kind is not GaugeKind.IDENTITY:
        by = "" if b.gauge.factor is None else f" by {text(b.gauge.factor)}"
        lines.append(f"{_INDENT}gauge: {b.gauge.kind.value}{by}")
    return lines


def _decay(d: Decay) -> str:
    if is_zero(d.log) and d.phase is None:
        return "decay: none (λ = 1)"
    known = "" if d.form is LogForm.EXACT else "  (no closed logarithm)"
    if d.phase is None:
        return f"decay: log λ = {text(d.log)}{known}"
    return f"decay: log |λ| = {text(d.log)}, arg λ = {text(d.phase)}{known}"


def coupling(c: Coupling) -> str:
    """Returns how a key depends on the decay, after a comma; nothing when it does not."""
    if c.kind is CouplingKind.FREE:
        return ""
    scale = "" if c.scale is None or is_one(c.scale) else f" with {text(c.scale)}"
    return f", coupling {c.kind.value}{scale}"


def _output(o: Output, blocks: States) -> str:
    over = "  (summed over time)" if o.over_time else ""
    return f"{_typed(o.name, o.axes, o.field)} = {_value(o.value, blocks)}{over}"
