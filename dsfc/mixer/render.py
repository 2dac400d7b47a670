"""A typed mixer as text: each name with its axes, field and dependence on time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsfc.expr.declarations import Constraint, Dimension, Init, MapTensor, Provenance, Tensor
from dsfc.expr.text import text
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Time
from dsfc.mixer.ir import Definition, Mixer, StateDecl

_TIMES = {
    Time.CONST: "constant",
    Time.TOKEN: "per token",
    Time.PAIR: "per pair",
    Time.STATE: "from the past",
}


def render(mixer: Mixer, ascii_only: bool = False) -> str:
    """Returns the mixer as text, with a newline at its end; equal mixers give equal texts.

    Args:
        mixer: what to print.
        ascii_only: spell × ⊗ · ≤ ≥ → in ASCII.
    """
    out = "\n".join(_lines(mixer)) + "\n"
    table: dict[str, str | int | None] = {
        "⊗": "(*)",
        "·": ".",
        "≤": "<=",
        "≥": ">=",
        "×": "*",
        "→": "->",
    }
    return out.translate(str.maketrans(table)) if ascii_only else out


def _lines(mixer: Mixer) -> Iterator[str]:
    yield f"mixer {mixer.name}" + (f' "{mixer.doc}"' if mixer.doc else "")
    for rewrite in mixer.rewrites:
        yield f"  {_rewritten(rewrite.kind, rewrite.target, rewrite.by)}"
    yield from _section("papers", map(str, mixer.papers))
    yield from _section("layer", map(str, mixer.layer.words))
    yield from _section("axes", (_dimension(d) for d in mixer.axes))
    yield from _section("inputs", (_tensor(t) for t in mixer.inputs))
    yield from _section("parameters", (_held(t) for t in mixer.params))
    yield from _section("buffers", (_held(t) for t in mixer.buffers))
    maps = (f"{a.name} : {shape(a.source)} -> {shape(a.target)}" for a in mixer.abstracts)
    yield from _section("abstract maps", maps)
    yield from _section("states", (line for s in mixer.states for line in _state(s)))
    yield from _section("definitions", (line for d in mixer.definitions for line in _defined(d)))
    yield from _section("claims", (claim.text for claim in mixer.claims))


def _rewritten(kind: str, target: str, by: str) -> str:
    match kind:
        case "extends":
            return f"{by} extends {target}"
        case "use":
            return f"{by} applied to {target}"
        case _:
            return f"{target} given anew by {by}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    indented = [f"    {line}" for line in lines]
    if indented:
        yield f"  {title}"
        yield from indented


def shape(axes: Iterable[Axis]) -> str:
    """Returns axes as specs write a shape: `h × n`; `1` for none."""
    return " × ".join(a.name for a in sorted(axes)) or "1"


def _dimension(dim: Dimension) -> str:
    size = "" if dim.size is None else f" = {text(dim.size)}"
    return ("heads " if dim.axis.heads else "") + dim.axis.name + size


def _flags(field: Field, constraint: Constraint = Constraint.NONE) -> str:
    complex_ = " complex" if field is Field.COMPLEX else ""
    return complex_ + (f" {constraint.value}" if constraint is not Constraint.NONE else "")


def _tensor(tensor: Tensor) -> str:
    flags = _flags(tensor.field, tensor.constraint)
    return f"{tensor.name} : {shape(tensor.axes)}{flags}{_init(tensor.init)}"


def _held(tensor: Tensor | MapTensor) -> str:
    if isinstance(tensor, Tensor):
        return _tensor(tensor)
    return f"{tensor.name} : {_map(tensor.map)}{_flags(tensor.map.field)}{_init(tensor.init)}"


def _map(linear: LinearMap) -> str:
    each = f"each {shape(linear.each)} : " if linear.each else ""
    return f"{each}{shape(linear.source)} -> {shape(linear.target)}"


def _init(init: Init | None) -> str:
    return "" if init is None else f" {'~' if init.drawn else '='} {text(init.value)}"


def described(value: Expr) -> str:
    """Returns the axes, field and dependence on time of a value: `h × n, per token`."""
    return f"{shape(value.axes)}{_flags(value.field)}, {_TIMES[value.time]}"


def _quoted(provenance: Provenance | None) -> str:
    return f'  "{provenance.text}"' if provenance is not None else ""


def _defined(definition: Definition) -> Iterator[str]:
    yield f"{definition.name} : {described(definition.value)}{_quoted(definition.provenance)}"
    yield f"  = {text(definition.value)}"


def _state(state: StateDecl) -> Iterator[str]:
    backward = " backward" if state.backward else ""
    maximum = ", a running maximum" if state.maximum else ""
    head = f"{state.name} : {shape(state.axes)}{_flags(state.field)}{backward}{maximum}"
    yield head + _quoted(state.provenance)
    if state.flow is not None:
        flow = state.flow
        yield f"  ' = {text(flow.drift)} by {flow.rule.value}({text(flow.step)})"
    elif state.update is not None:
        yield f"  = {text(state.update)}"
