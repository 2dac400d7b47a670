"""Finding how the arguments of functions of states differ, for a law to relate their values.

At the first token states are 0, so both arguments are values of that token alone: their quotient,
or their difference, says what the factor or the summand is, up to denominators that hold states,
which are compared as they stand. What is found so is a guess; the kernel accepts it or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from dsfc.prover.factors import factors
from dsfc.trusted.claim import Claim, Coefficient, Invariant, Relation
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import CALL, STATE, lags
from dsfc.trusted.laws import EQUAL, MOVES, SCALES, Law, law
from dsfc.trusted.polynomial import ONE, ZERO, Polynomial, Quotient, constant, divided, unit
from dsfc.trusted.statement import Written, both_systems, state
from dsfc.trusted.symbols import Call, Symbols

CALL_LIMIT = 32
"""Calls of functions of states whose arguments are looked at."""

BOUNDED = frozenset({"rmsnorm", "l2norm"})
"""Functions that remove a factor where the norm is above a bound, and nowhere else."""

HALF = Fraction(1, 2)

Pairs = list[tuple[Quotient, Quotient]]


def laws(claim: Claim, entries: bool) -> tuple[Law, ...]:
    """Returns a law for each call of a function of states; () where all arguments look equal.

    Args:
        claim: which systems.
        entries: whether linear maps of tokens are written out.

    Raises:
        Obstacle, ValueError, ZeroDivisionError: the claim cannot be written out.
    """
    symbols = Symbols()
    known: dict[int, _Known] = {}
    while True:
        # What one call gives stands in the arguments of the next.
        established = tuple(
            known[k].law if k in known else EQUAL for k in range(max(known, default=-1) + 1)
        )
        later = both_systems(claim, symbols, entries, None, established)
        start = both_systems(claim, symbols, entries, 0, established, held=True)
        zero = dict.fromkeys((*start[0].step, *start[1].step), ZERO)
        calls = [(later[0].calls[k], later[1].calls[k]) for k in range(_count((*later, *start)))]
        changed = [k for k, of in known.items() if k >= len(calls) or of.calls != _text(calls[k])]
        if changed:  # calls became one, and those that follow have other numbers
            known = {k: of for k, of in known.items() if k < min(changed)}
            continue
        waiting: list[int] = []
        for k in range(len(calls)):
            if k == CALL_LIMIT:
                raise Obstacle(f"more than {CALL_LIMIT} functions of states are called")
            if k in known or _reads(calls[k], waiting):
                waiting += [k] * (k not in known)
                continue
            steady, first = (_paired(a.calls[k], b.calls[k]) for a, b in (later, start))
            first = [(a.substituted(zero), b.substituted(zero)) for a, b in first]
            known[k] = _Known(_law(symbols, calls[k][0].head, steady, first), _text(calls[k]))
            waiting += [k] * (not known[k].law.trivial)
        if known.keys() >= set(range(len(calls))):
            break
    out = tuple(known[k].law for k in range(len(calls)))
    return () if all(one.trivial for one in out) else out


@dataclass(frozen=True, slots=True)
class _Known:
    """The law of a call, and the text of the call of which it was found."""

    law: Law
    calls: tuple[str, ...]


def _count(systems: tuple[Written, ...]) -> int:
    return min(len(w.calls) for w in systems)


def _text(calls: tuple[Call, Call]) -> tuple[str, ...]:
    return tuple(q.text for call in calls for q in call.args)


def _reads(calls: tuple[Call, Call], others: list[int]) -> bool:
    """Whether values of other calls, by number, stand in arguments."""
    names = {name for call in calls for q in call.args for name in q.names}
    return any(f"{CALL}{k}," in name for k in others for name in names)


def relation(law: Law) -> Relation:
    """Returns a law as certificates store it."""
    return Relation(_stored(law.scale), _stored(law.shift))


def relation_lines(claim: Claim, proof: Invariant) -> list[str]:
    """Returns in words how arguments of functions of states are related, one line per kind."""
    stored = tuple(map(law, proof.relations))
    if not stored:
        return []
    heads = state(claim, proof.entries, stored).steady.heads
    out = []
    for head, known_law in zip(heads, stored, strict=False):
        if known_law.trivial:
            continue
        factor, more = (
            _plain(q) for q in (known_law.scale.power(SCALES[head][0]), known_law.shift)
        )
        parts = [f"({factor}) times the first's"] * (known_law.scale.number != 1)
        parts += [f"moved by {more}"] * bool(known_law.shift)
        out.append(f"{head} in the second: argument {', '.join(parts)}")
    return list(dict.fromkeys(out))


def _plain(q: Quotient) -> str:
    return q.text.replace("$", "").replace("@0", "")


def _paired(a: Call, b: Call) -> Pairs:
    return list(zip(a.args, b.args, strict=True))


def _law(symbols: Symbols, head: str, steady: Pairs, first: Pairs) -> Law:
    if all(not b - a for a, b in steady):
        return EQUAL
    if head.partition("[")[0] in BOUNDED and all(bool(a0) == bool(b0) for a0, b0 in first):
        name = head.partition("[")[0]
        raise Obstacle(f"`{name}` bounds its norm from below, so no law removes a factor")
    if head not in SCALES:
        return EQUAL
    scale = _scale(symbols, head, steady, first)
    if scale is not None:
        return Law(scale, ZERO)
    shifts = [b - a for a, b in first]
    if head in MOVES and all(not s - shifts[0] for s in shifts) and _of_token(shifts[0]):
        return Law(ONE, shifts[0])
    return EQUAL


def _scale(symbols: Symbols, head: str, steady: Pairs, first: Pairs) -> Quotient | None:
    """The factor r, where all pairs have the same one."""
    ratio: Quotient | None = None
    for (a, b), (a0, b0) in zip(steady, first, strict=True):
        if not a0 or not b0:
            continue
        # Denominators that hold states are no values of the first token.
        below = _denominators(b)
        for base, exponent in _denominators(a).items():
            below[base] = below.get(base, 0) - exponent
        token = b0 / a0 * _product(below, at_start=True)
        scale = _root(symbols, head, token, below) if _of_token(token) else None
        if scale is None or (ratio is not None and scale - ratio):
            return None
        ratio = scale
    if ratio is not None and head == "exp" and (ratio.number or HALF).denominator != 1:
        return None
    return ratio


def _of_token(q: Quotient) -> bool:
    return not any(STATE in name or not lags(frozenset({name})) <= {0} for name in q.names)


def _denominators(q: Quotient) -> dict[Polynomial, int]:
    """The parts of a denominator that hold states, with their exponents."""
    return {b: e for b, e in q.den.items() if any(STATE in name for name in b.names)}


def _product(powers: Mapping[Polynomial, int], at_start: bool = False) -> Quotient:
    out = ONE
    for base, exponent in powers.items():
        start = {name: ZERO for name in base.names if STATE in name and at_start}
        out = out * Quotient(base).substituted(start).power(exponent)
    return out


def _root(
    symbols: Symbols, head: str, token: Quotient, below: Mapping[Polynomial, int]
) -> Quotient | None:
    """r, given that token / below is what the arguments have as a factor."""
    if SCALES[head][0] == 1:
        return token / _product(below)
    if not symbols.positive(token) or any(e % 2 for e in below.values()):
        return None
    simple, rest = token.num.split()
    root = symbols.power(Quotient(simple), Quotient(constant(HALF)))
    for part, exponent in ((rest, 1), *((base, -e) for base, e in token.den.items())):
        for factor, times in _factors(part):
            power = Quotient(constant(Fraction(times * exponent, 2)))
            root = root * symbols.power(Quotient(factor), power)
    return root / _product({base: e // 2 for base, e in below.items()})


def _factors(p: Polynomial) -> list[tuple[Polynomial, int]]:
    """The irreducible factors of a primitive polynomial that are positive, with multiplicities."""
    out, left = [], p
    for factor in factors(p):
        times = 0
        while len(factor.terms) > 1 and (smaller := divided(left, factor)) is not None:
            left, times = smaller, times + 1
        out.append((factor, times))
    return out if left == constant(1) else [(p, 1)]


def _stored(q: Quotient) -> tuple[Coefficient, Coefficient]:
    above, below = q.num, constant(1)
    for base, exponent in q.den.items():
        below = below * base.power(exponent)
    lowest: dict[str, int] = {}
    numbers = 1
    for part in (above, below):
        for m, c in part.terms.items():
            numbers = lcm(numbers, c.denominator)
            for name, exponent in m:
                lowest[name] = min(lowest.get(name, 0), exponent)
    clearing, _ = unit(tuple(sorted((g, e) for g, e in lowest.items() if e)), -1)
    factor = Polynomial({clearing: Fraction(numbers)})
    return _terms(above * factor), _terms(below * factor)


def _terms(p: Polynomial) -> Coefficient:
    return tuple((m, c.numerator) for m, c in p.ordered)
