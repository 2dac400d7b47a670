"""A System as LaTeX: its streams, and Λ, B, C, D of every linear part in Kronecker form."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.expr import latex as tex
from dsfc.expr.build import is_one
from dsfc.expr.tree import Expr
from dsfc.matrices.kronecker_form import GAUGES, summed_heads
from dsfc.matrices.kronecker_part import Drive, KronBlock, KronPart, kronecker_part
from dsfc.matrices.linear import linear_parts
from dsfc.matrices.notation import Latex, chain, chain_in_product, in_product, instant, operator
from dsfc.system.formulas import guarded, read_out_formula, states, stream_formula
from dsfc.system.ir import ReadOut, System

_NOTATION = Latex()


def latex_form(system: System, gauge: str = "lowered") -> str:
    r"""Returns one `align*` environment, ending in a newline; it needs amsmath.

    Args:
        system: the System.
        gauge: "lowered" or "paper".

    Raises:
        ValueError: no such gauge.
    """
    body = equations(system, gauge)
    comment = f"% {system.name}, {gauge} gauge{_heads(system)}\n"
    return f"{comment}\\begin{{align*}}\n{body}\n\\end{{align*}}\n"


def display(system: System) -> str:
    r"""Returns the streams and Λ, B, C, D of a System as one display of LaTeX for a notebook.

    It is `split` inside `$$`, which MathJax, KaTeX and the documentation can all show.
    """
    return f"$$\n\\begin{{split}}\n{equations(system)}\n\\end{{split}}\n$$"


def equations(system: System, gauge: str = "lowered") -> str:
    r"""Returns the lines of an aligned environment: the streams, then Λ, B, C, D and the outputs.

    Args:
        system: the System.
        gauge: "lowered" or "paper".

    Raises:
        ValueError: no such gauge.
    """
    if gauge not in GAUGES:
        raise ValueError(f"no gauge {gauge!r}; there are {', '.join(GAUGES)}")
    rows = [
        (_name(s.name, s.constant), _NOTATION.expr(stream_formula(s, states(system))))
        for s in system.streams
    ]
    for output in range(len(system.outputs)):
        parts = linear_parts(system, output)
        for part in parts:
            kronecker = kronecker_part(system, part, gauge == "paper")
            rows += _part(system, kronecker, is_first=part is parts[0])
        out = system.outputs[output]
        if not parts or parts[0].root is not out.value:
            rows.append((_name(out.name), _value(system, out.value)))
    return " \\\\\n".join(f"  {left} &= {right}" for left, right in rows)


def _heads(system: System) -> str:
    heads = [d.axis.name for d in system.axes if d.axis.heads]
    return f", for each {' and '.join(heads)}" if heads else ""


def _name(name: str, constant: bool = False) -> str:
    return tex.name(name) if constant else tex.name(name, "i")


def _value(system: System, value: Expr | ReadOut) -> str:
    expr = value if isinstance(value, Expr) else read_out_formula(value, states(system))
    return _NOTATION.expr(expr)


def _part(system: System, p: KronPart, is_first: bool) -> list[tuple[str, str]]:
    def mark(state: str) -> str:
        """Tells apart the matrices of several parts, and of several states of one."""
        names = [] if is_first else [tex.name(p.part.name)]
        names += [tex.name(state)] if len(p.blocks) > 1 else []
        return f"^{{({', '.join(names)})}}" if names else ""

    rows = [row for b in p.blocks for row in _block(b, mark(b.block.state))]
    terms = []
    for r in p.reads:
        on = mark(r.state)
        rows.append((f"C_i{on}", operator(r.operator, _NOTATION)))
        term = f"C_i{on} h{on}_{{{instant('i', r.lag)}}}"
        terms.append(rf"\operatorname{{Re}}({term})" if r.real else term)
    for d in p.direct:
        shown = in_product(d.operator, _NOTATION)
        terms.append(shown if is_one(d.input) else f"{shown}\\, {_input(d)}")
    over = "".join(rf"\sum_{{{tex.name(h)}}} " for h in summed_heads(p))
    rows.append((_name(p.part.name), over + (" + ".join(terms) or "0")))
    for n in p.names:
        value = guarded(read_out_formula(n.ratio.den, states(system)), n.ratio.guard)
        rows.append((_NOTATION.expr(n.ref), _NOTATION.expr(value)))
    return rows


def _block(b: KronBlock, mark: str) -> Iterator[tuple[str, str]]:
    yield rf"\Lambda_i{mark}", chain(b.chain, _NOTATION)
    for name, o in b.coupled:
        yield (
            rf"\Lambda_i^{{({tex.name(b.block.state)}, {tex.name(name)})}}",
            operator(o, _NOTATION),
        )
    for d in b.drives:
        shown = chain_in_product(d.product, _NOTATION)
        if is_one(d.input):
            yield f"B_i{mark}", shown
        else:
            yield f"B_i{mark} {_input(d)}", f"{shown}\\, {_input(d)}"


def _input(d: Drive) -> str:
    return _NOTATION.expr(d.input)
