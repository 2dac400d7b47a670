"""Polynomials in generators at a token of zeros, where maps vanish. Nothing here is trusted."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

from dsfc.trusted.generator_names import LEAF, lags
from dsfc.trusted.polynomial import ZERO, Polynomial, Quotient, generator
from dsfc.trusted.symbols import Symbols

DEPTH = 12
"""Functions inside one another that are looked into."""


def at_zero(symbols: Symbols, slots: Container[str], p: Polynomial) -> Polynomial | None:
    """Returns a polynomial where all inputs are 0; None where that is not known.

    Args:
        symbols: what the generators stand for.
        slots: inputs of which nothing is known there.
        p: the polynomial.
    """
    known: dict[str, Quotient] = {}
    for g in p.names:
        if lags(frozenset({g})):
            value = _value(symbols, slots, g, 0)
            if value is None:
                return None
            known[g] = value
    with suppress(ZeroDivisionError):
        return Quotient(p).substituted(known).num
    return None


def _value(symbols: Symbols, slots: Container[str], g: str, depth: int) -> Quotient | None:
    if not lags(frozenset({g})):
        return Quotient(generator(g))
    head, args = symbols.defined.get(g, ("", ()))
    if head == "":
        entry = LEAF.fullmatch(g)
        return ZERO if entry is not None and entry[1] not in slots else None
    if depth > DEPTH:
        return None
    inner = []
    for q in args:
        known = {n: _value(symbols, slots, n, depth + 1) for n in q.names}
        if any(v is None for v in known.values()):
            return None
        with suppress(ZeroDivisionError):
            inner.append(q.substituted({n: v for n, v in known.items() if v is not None}))
    if len(inner) != len(args):
        return None
    if ";" in head and not head.startswith("~"):
        return None if any(inner) else ZERO
    if head == "exp":
        return symbols.exp(inner[0])
    if head == "log" and symbols.positive(inner[0]):
        return symbols.log(inner[0])
    return None
