"""Values of b's own parameters, where a is claimed to be a case of b.

That r = 0 makes exp(-Δ r) 1 is no law of generators: a value is put in place of the generator r,
and exp(-Δ r) is another one. So b is written out with the value in place of the parameter, and the
laws of functions see it; so do conjugates of complex parameters, and values of maps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from dsfc.expr.tree import Expr, Mul, Num, Ones
from dsfc.system.known import fixed
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import own_parameters
from dsfc.trusted.conditions import LIMIT, Conditions, read
from dsfc.trusted.generalize_inputs import system_of
from dsfc.trusted.generator_names import CALL, LEAF, STATE
from dsfc.trusted.polynomial import ONE, Quotient, generator, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.symbols import Symbols
from dsfc.trusted.witness import stored_axes

_LOGARITHM_OF_NUMBER = re.compile(r"log\(([1-9]\d{0,2})\)")
"""The logarithm of a number below the largest prime that is split off: see `Symbols.log`."""


def mention(conditions: Conditions, symbols: Symbols) -> None:
    """Makes generators of the logarithms that conditions speak of, of what is positive.

    They are log p for a prime p, and log x, log(x + 1) and log(x - 1) for a generator x; others
    stay unknown.
    """
    unknown = {g for p in conditions.polynomials for g in p.names if not symbols.knows(g)}
    for name in sorted(unknown):
        match = _LOGARITHM_OF_NUMBER.fullmatch(name)
        if match is not None:
            symbols.log(number(int(match[1])))
        for x in (Quotient(generator(g)) for g in symbols.positive_names):
            for q in (x, x + ONE, x - ONE):
                if name == f"log({q.text})":
                    symbols.log(q)


def define(claim: Claim, symbols: Symbols) -> None:
    """Makes generators of the functions that a claim lists, by the laws that make all others.

    Raises:
        Rejected: the claim is no case, or a function is of what is not there, or has no value.
    """
    if len(claim.functions) > LIMIT:
        raise Rejected(f"there are more than {LIMIT} functions")
    for head, above, below in claim.functions:
        q = Quotient(read(above)) / Quotient(read(below))
        known = all(symbols.knows(g) and STATE not in g and CALL not in g for g in q.names)
        if not (claim.case and claim.equal and known):
            raise Rejected(f"`{head}` is one of what the claim does not have")
        if head == "log" and symbols.positive(q):
            symbols.log(q)
        elif head == "exp":
            symbols.refine(q)
            symbols.exp(q)
        else:
            raise Rejected(f"`{head}` has no value there, or is no function of a claim")


def substitute_parameters(
    claim: Claim, conditions: Conditions, symbols: Symbols
) -> Mapping[str, Quotient]:
    """Returns entry of a parameter of b → the value that is put in its place.

    Args:
        claim: whether a is a case of b, or nothing is put in.
        conditions: what it assumes.
        symbols: after the claim was written out.
    """
    define(claim, symbols)
    if not (claim.case and claim.equal):
        return {}
    mention(conditions, symbols)
    own = own_parameters(claim)
    out = {}
    for name, value in conditions.values(conditions.window).items():
        entry = LEAF.fullmatch(name)
        if entry is None or entry[1] not in own or entry[3] is not None:
            continue
        if all(map(symbols.knows, value.names)):
            out[name] = value
    return out


def literals(claim: Claim, second: bool) -> Mapping[str, Fraction]:
    """Returns the buffers of one system whose value is one number, which stands in their place.

    Sizes are counted on entries of arrays, so where no case or condition is claimed only those
    without axes are numbers, and none that is 0; others are symbols of their own.
    """
    system = system_of(claim, second)
    axes = {t.name: stored_axes(t) for t in system.buffers}
    values = {name: _literal(value) for name, value in fixed(system).items()}
    one_size = claim.case or bool(claim.conditions)
    return {n: q for n, q in values.items()
            if q is not None and (one_size or (q and not axes[n]))}  # fmt: skip


def _literal(e: Expr) -> Fraction | None:
    match e:
        case Num(value):
            return value
        case Mul((Num(factor), Ones())):
            return factor
    return None
