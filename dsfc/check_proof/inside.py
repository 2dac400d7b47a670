"""Values of b's own parameters that stand inside functions, where a is claimed to be a case of b.

That r = 0 makes exp(-Δ r) 1 is no law of generators: a value is put in place of the generator r,
and exp(-Δ r) is another one. So b is written out with the value in place of the parameter, and the
laws of functions see it. The same is done for maps, whose values are generators of their own, and
for complex parameters, whose conjugates are.

What holds a value that is put in must be defined there. So a divisor is positive or negative term
by term, and a function is one of `TOTAL`, or one of `OF_POSITIVE` of what is positive so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from dsfc.check_proof.claim import Claim
from dsfc.check_proof.comparable import array_names, own_parameters, real_arrays
from dsfc.check_proof.conditions import Conditions
from dsfc.check_proof.free import common_names, side
from dsfc.check_proof.polynomial import Quotient, generator, number
from dsfc.check_proof.symbols import LEAF, Symbols
from dsfc.primitives.declarations import MapTensor
from dsfc.primitives.expr import Div, Expr, Mul, Num, Ones
from dsfc.system.known import fixed

TOTAL = frozenset(
    "exp expm1 sigmoid softplus logsigmoid silu gelu tanh erf sin cos cis cplx conj re im abs sign "
    "step relu elu max min softmax".split()
)
"""Functions that every number has a value of."""

OF_POSITIVE = frozenset({"log", "log1p", "sqrt", "exprel"})
"""Functions that every positive number has a value of."""

_LOGARITHM = re.compile(r"log\((.+)\)")
_LARGEST = 1000
"""The largest prime whose logarithm is split off: see `Symbols.log`."""


def mention(conditions: Conditions, symbols: Symbols) -> None:
    """Makes generators of the logarithms that conditions speak of, of what is positive.

    They are log p for a prime p and log x for a positive generator x; others stay unknown.
    """
    for p in conditions.polynomials:
        for name in sorted(p.names):
            found = _LOGARITHM.fullmatch(name)
            if found is None or symbols.knows(name):
                continue
            inner = found[1]
            if re.fullmatch(r"[1-9]\d{0,2}", inner) and int(inner) < _LARGEST:
                symbols.log(number(int(inner)))
            elif symbols.knows(inner) and symbols.is_positive(generator(inner)):
                symbols.log(Quotient(generator(inner)))


def values_inside(
    claim: Claim, conditions: Conditions, symbols: Symbols, names: frozenset[str]
) -> Mapping[str, Quotient]:
    """Returns entry of a parameter of b → the value that is put in its place.

    Args:
        claim: that a is a case of b.
        conditions: what it assumes.
        symbols: after the claim was written out.
        names: the generators that it was written out in.
    """
    own, reals = own_parameters(claim), real_arrays(claim)
    names_of_maps = common_names(claim, True)
    maps = {names_of_maps.get(t.name, t.name) for t in side(claim, True).params
            if isinstance(t, MapTensor)}  # fmt: skip
    out = {}
    for name, value in conditions.values(conditions.window).items():
        entry = LEAF.fullmatch(name)
        if entry is None or entry[1] not in own or entry[3] is not None:
            continue
        inside = any(name in g and g != name for g in names)
        if (inside or entry[1] in maps or entry[1] not in reals) and all(
            map(symbols.knows, value.names)
        ):
            out[name] = value
    return out


def literals(claim: Claim, second: bool) -> Mapping[str, Fraction]:
    """Returns the buffers of one system whose value is one number, in claims of cases.

    What they are identified with has that value too.
    """
    if not claim.case:
        return {}
    names, system = array_names(claim, second), side(claim, second)
    other = side(claim, not second)
    theirs, same = array_names(claim, not second), fixed(other)
    free = {
        theirs.get(t.name, t.name)
        for t in (*other.inputs, *other.params, *other.buffers)
        if t.name not in same
    }
    found = {name: _literal(value) for name, value in fixed(system).items()}
    return {n: q for n, q in found.items() if q is not None and names.get(n, n) not in free}


def _literal(e: Expr) -> Fraction | None:
    match e:
        case Num(value):
            return value
        case Div(Num(above), Num(below)) if below:
            return above / below
        case Mul((Num(factor), Ones())):
            return factor
    return None
