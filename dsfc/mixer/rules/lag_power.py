"""W9: what is raised to a power over time is raised to a lag, the distance of two tokens."""

from __future__ import annotations

from dsfc.diagnostics.catalogue import LagPower
from dsfc.diagnostics.report import Reporter
from dsfc.expr.build import walk
from dsfc.expr.over_time import Lag
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Expr
from dsfc.mixer.times import is_lag
from dsfc.syntax import ast


def check_lags(value: Expr, node: ast.Expr, reporter: Reporter) -> bool:
    """Returns whether every time scalar in a value is a lag; reports one that is a position."""
    wrong = next((n for n in walk(value) if isinstance(n, Lag) and not is_lag(n)), None)
    if wrong is not None:
        here = wrong.terms == ((TIME, 1),) and not wrong.constant
        way = "; `i` is the present token, and a complex number is `cplx(a, b)`" if here else ""
        reporter.add(LagPower(node.span, exponent=shown(wrong), instead=way))
    return wrong is None


def shown(lag: Lag) -> str:
    """Returns a time scalar as text: `i - j - 1`."""
    out = ""
    ordered = sorted(lag.terms, key=lambda t: (t[1] < 0, t[0] != TIME, t[0]))
    for var, coefficient in ordered:
        size = "" if abs(coefficient) == 1 else f"{abs(coefficient)} "
        sign = "-" if coefficient < 0 else "+"
        out += f" {sign} {size}{var}" if out else f"{sign.strip('+')}{size}{var}"
    if lag.constant:
        out += f" {'-' if lag.constant < 0 else '+'} {abs(lag.constant)}"
    return out
