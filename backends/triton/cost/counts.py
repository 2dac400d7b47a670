"""The counts of a kernel, and the functions that make the counts of all forms."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from dsfc.expr.build import ZERO, add, div, mul, num, walk
from dsfc.expr.table import row
from dsfc.expr.tree import Add, Div, Expr, Mul, Num, Param, Prim, Size, Time
from dsfc.fused.ir import halves, is_paired
from dsfc.plan.scan_ir import Form, Scan
from dsfc.plan.sizes import LENGTH

WIDTH = Param("width", frozenset())
"""Bytes of a number of the inputs; what is computed in float32 has 4."""

SEGMENT = Param("segment", frozenset())
"""Tokens of a segment."""

TILE = Param("tile", frozenset())
"""Channels of one program."""

FLOAT = 4

BEHIND = div(add(div(LENGTH, SEGMENT), num(-3)), mul(num(2), SEGMENT))
"""How often what a segment makes of a state is read besides once: by all segments behind it. The
n segments read n (n - 1) / 2 parts; of three, each one is read once."""

INSTRUCTIONS = {
    (Form.ELEMENTWISE, "forward"): 24.0,
    (Form.ELEMENTWISE, "backward"): 36.0,
    (Form.SELECTIVE, "forward"): 13.9,
    (Form.SELECTIVE, "backward"): 34.5,
}
"""Per element of the state and token, as compiled for sm_90; products bind before they do."""

_SPECIAL = {
    **dict.fromkeys(("tl.exp", "tl.log", "tl.sqrt", "tl.erf", "_expm1"), 1),
    **dict.fromkeys(("tl.sigmoid", "_tanh", "_log1p", "_exp_quotient"), 2),
}
"""What functions that kernels call ask of the units of special functions: powers of two,
logarithms, roots and reciprocals, one each."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One direction.

    Attributes:
        name: `forward` or `backward`.
        bytes: read and written, each place once.
        redundant_reads: read again, by programs side by side or soon after; see the module.
        operations: in products, a multiply-add as 2.
        exponentials: powers of two and what the same units do: logarithms, roots, reciprocals.
        instructions: of threads, where they bind; 0 where products do.
        launches: of kernels.
        programs: that run side by side, all in all.
        steps: of one program, one after another.
    """

    name: str
    bytes: Expr
    redundant_reads: Expr
    operations: Expr
    exponentials: Expr
    instructions: Expr
    launches: int
    programs: Expr
    steps: Expr


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One way to compute a scan by kernels.

    Attributes:
        scan: its name.
        way: `fused` or `split`.
        passes: forward, backward.
        compulsory_bytes: bytes of each pass if every input is read, and every output written, once.
    """

    scan: str
    way: str
    passes: tuple[Pass, Pass]
    compulsory_bytes: tuple[Expr, Expr]


Sizes = tuple[Expr, Expr, Expr]
"""Heads, keys and channels of a scan; channels of its columns together."""

Way = tuple[tuple[Pass, Pass], tuple[Expr, Expr]]


def counted(*roots: Expr, fixed: bool = False) -> int:
    """Exponentials and their like of one token: each expression is computed once.

    Args:
        roots: what is computed.
        fixed: whether to count what is the same at all tokens instead, which has no part in that.
    """
    found = {e for root in roots for e in walk(root)}
    return sum(_special(e) for e in found if (e.time is Time.CONST) == fixed)


def _special(e: Expr) -> int:
    """Those of an expression's last step."""
    if isinstance(e, Prim) and "triton" in row(e.name).printers:
        called = re.findall(r"[\w.]+(?=\()", row(e.name).printers["triton"])
        return sum(_SPECIAL.get(name, 0) for name in called)
    return int(isinstance(e, Div))


def over_heads(
    passes: tuple[Pass, Pass], compulsory_bytes: tuple[Expr, Expr], heads: Expr
) -> tuple[tuple[Pass, Pass], tuple[Expr, Expr]]:
    """Returns the counts of all heads, from those of one."""
    first, second = (
        replace(
            p,
            bytes=mul(heads, p.bytes),
            redundant_reads=mul(heads, p.redundant_reads),
            operations=mul(heads, p.operations),
            exponentials=mul(heads, p.exponentials),
            instructions=mul(heads, p.instructions),
        )
        for p in passes
    )
    return (first, second), (mul(heads, compulsory_bytes[0]), mul(heads, compulsory_bytes[1]))


def sizes_of(scan: Scan) -> Sizes:
    """Heads, keys, channels: of columns with channels together; of pairs, those of one plane."""
    scan = halves(scan)[0] if is_paired(scan) else scan
    wide = [c for c in scan.columns if c.channels] or list(scan.columns)
    channels = add(*(mul(*(Size(a) for a in c.channels)) for c in wide))
    return mul(*(Size(a) for a in scan.heads)), mul(*(Size(a) for a in scan.keys)), channels


def bytes_of(count: int, *sizes: Expr) -> Expr:
    """Returns the bytes of numbers as wide as the inputs."""
    return mul(num(count), WIDTH, *sizes)


def segment_bytes(part: Expr, start: Expr, slices: Expr = ZERO) -> tuple[Expr, Expr]:
    """Bytes of a token that segments cost, each place once, and those that are read again.

    Args:
        part: bytes of what a segment makes of a state: written, and read by all behind it.
        start: bytes that each segment reads at its start.
        slices: bytes of gradients of constants, which come in a part from each segment and are
            added up.
    """
    once = joined(part, slices, part, slices)  # written, and read
    return div(once, SEGMENT), add(mul(part, BEHIND), div(start, SEGMENT))


def joined(*counts: Expr) -> Expr:
    """Returns the sum of counts, with like terms joined."""
    found: dict[Expr, Fraction] = {}
    for term in (t for e in counts for t in (e.args if isinstance(e, Add) else (e,))):
        factors = term.args if isinstance(term, Mul) else (term,)
        number = math.prod((f.value for f in factors if isinstance(f, Num)), start=Fraction(1))
        rest = mul(*(f for f in factors if not isinstance(f, Num)))
        found[rest] = found.get(rest, Fraction(0)) + number
    return add(*(mul(num(number), rest) for rest, number in found.items()))


def scaled(factor: float, *factors: Expr) -> Expr:
    """Returns a number times expressions."""
    whole = int(factor)
    return mul(num(whole) if whole == factor else div(num(round(10 * factor)), num(10)), *factors)
