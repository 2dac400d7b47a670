"""Λ_i, B_i, C_i, D_i of a System in Kronecker form, as text: the paper's way to write it.

One head is shown. `k_i` is the value of k at token i; a name without index does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.expr.build import is_one
from dsfc.expr.tree import LinearMap
from dsfc.matrices.kronecker_part import Drive, KronBlock, KronPart, KronRead, kronecker_part
from dsfc.matrices.linear import Normaliser, linear_parts
from dsfc.matrices.notation import Text, chain, operator, subscript
from dsfc.system.formulas import guarded, read_out_formula, states
from dsfc.system.ir import Direction, System

GAUGES = ("lowered", "paper")
_TEXT = Text()


def kronecker_form(system: System, gauge: str = "lowered") -> str:
    """Returns the matrices of every linear part of the outputs, ending in a newline.

    Args:
        system: the System.
        gauge: "lowered", as stored, or "paper": states divided by what their reads divide by.

    Raises:
        ValueError: no such gauge.
    """
    lines = [title(system, "Kronecker form", gauge)]
    for output in range(len(system.outputs)):
        for part in linear_parts(system, output):
            kronecker = kronecker_part(system, part, gauge == "paper")
            lines += ["", *_part(system, kronecker)]
    if len(lines) == 1:
        lines += ["", "Nothing in the output is linear in a state: there are no Λ, B, C, D."]
    return "\n".join(lines) + "\n"


def title(system: System, form: str, gauge: str) -> str:
    """Returns the first line of a form.

    Raises:
        ValueError: no such gauge.
    """
    if gauge not in GAUGES:
        raise ValueError(f"no gauge {gauge!r}; there are {', '.join(GAUGES)}")
    heads = [d.axis.name for d in system.axes if d.axis.heads]
    per = f", for each {' and '.join(heads)}" if heads else ""
    return f"{system.name}: {form}, {gauge} gauge{per}"


def _part(system: System, p: KronPart) -> list[str]:
    lines = [p.part.name]
    backward = {
        b.state for s in system.stages if s.direction is Direction.BACKWARD for b in s.blocks
    }
    for b in p.blocks:
        first, *rest = block_lines(b)
        way = ", backward: h_i = Λ_i h_{i+1} + B_i u_i" if b.block.state in backward else ""
        lines += [f"  {line}" for line in (first + way, *rest)]
    lines += [f"  {line}" for line in _read_lines(p)]
    lines += [f"  {line}" for line in _names(system, p.names)]
    return lines


def block_lines(b: KronBlock) -> list[str]:
    """Returns the lines of one state: its vector, Λ and B."""
    order = " ⊗ ".join(a.name for a in b.axes)
    lines = [f"state {b.block.state}" + (f": h_i over {order}" if order else ": h_i a number")]
    lines.append(f"  Λ_i = {chain(b.chain, _TEXT)}")
    lines += [f"  Λ_i from {n} = {operator(o, _TEXT)}" for n, o in b.coupled]
    lines += [f"  B_i = {chain(d.product, _TEXT)}{_on(d)}" for d in b.drives]
    return lines


def _on(d: Drive) -> str:
    return "" if is_one(d.input) else f"   on {_TEXT.expr(d.input)}"


def _read_lines(p: KronPart) -> list[str]:
    several = len(p.reads) > 1
    lines = [f"C_i{_of(r, several)} = {operator(r.operator, _TEXT)}" for r in p.reads]
    driven = any(is_one(d.input) for b in p.blocks for d in b.drives)
    shown = [d for d in p.direct if driven or not is_one(d.input)]
    lines += [f"D_i = {operator(d.operator, _TEXT)}{_on(d)}" for d in shown] or ["D_i = 0"] * bool(
        p.reads
    )
    terms = [_read_term(r, several) for r in p.reads]
    terms += [f"D_i {_TEXT.expr(d.input)}" if not is_one(d.input) else "D_i" for d in shown]
    # What multiplies no input is a value of the token.
    terms += [operator(d.operator, _TEXT) for d in p.direct if d not in shown]
    over = "".join(f"Σ_{h} " for h in summed_heads(p))
    return [*lines, f"{p.part.name}_i = {over}{' + '.join(terms) or '0'}"]


def _read_term(r: KronRead, several: bool) -> str:
    term = f"C_i{_of(r, several)} h_{subscript('i', r.lag)}{_of(r, several)}"
    return f"Re({term})" if r.real else term


def summed_heads(p: KronPart) -> tuple[str, ...]:
    """Returns the heads that a map in front of the state contracts: y is a sum over them."""
    maps = [a for r in p.reads for k in r.operator for a in k.after if isinstance(a, LinearMap)]
    return tuple(dict.fromkeys(a.name for m in maps for a in m.source if a.heads))


def _of(r: KronRead, several: bool) -> str:
    return f"[{r.state}]" if several else ""


def _names(system: System, names: Iterable[Normaliser]) -> list[str]:
    out = []
    for n in names:
        value = guarded(read_out_formula(n.ratio.den, states(system)), n.ratio.guard)
        out.append(f"where {_TEXT.expr(n.ref)} = {_TEXT.expr(value)}")
    return out
