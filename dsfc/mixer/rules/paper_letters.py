"""Letters of papers are given to names that there are."""

from __future__ import annotations

from collections.abc import Collection

from dsfc.diagnostics.catalogue import UnknownName
from dsfc.diagnostics.report import Reporter, nearest
from dsfc.expr.reserved_names import TIME
from dsfc.syntax import ast


def check_letters(unit: ast.Unit, names: Collection[str], reporter: Reporter) -> None:
    """Reports letters that a unit gives to what is neither a name, an axis nor the token.

    Args:
        unit: whose papers to look at.
        names: that there are in it, those of its bases too.
        reporter: takes `E-UNKNOWN-NAME`.
    """
    for item in unit.items:
        for named in item.named if isinstance(item, ast.Citation) else ():
            if named.text not in names and named.text != TIME:
                written, close = named.span.text, nearest(named.text, tuple(names))
                way = "; a letter of a paper is given to a name of the mixer, an axis or `i`"
                reporter.add(UnknownName(named.span, name=written, instead=way, nearest=close))
