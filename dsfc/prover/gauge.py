"""Conditions made more general by a change of basis, and those that equal outputs force.

Where conditions set two arrays of the first mixer equal to two of the second, q to c and k to b, a
matrix G may stand between them: q = G^T c and k = G^{-1} b leave all products c · b as they are.
Nothing here is trusted: the kernel checks what comes out, or refuses it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from dsfc.prover.condition_polynomials import condition, polynomial
from dsfc.trusted.claim import Claim, Condition, Conditional, Invariant
from dsfc.trusted.comparable import array_names
from dsfc.trusted.conditions import NOT_ZERO, Conditions, reach
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generalize_inputs import LABELS, system_of
from dsfc.trusted.generator_names import LEAF
from dsfc.trusted.polynomial import Polynomial, generator
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.necessary import check_necessary
from dsfc.trusted.witness import stored_axes

NO_ROWS = Invariant((), False)
"""What does not matter to what is forced."""

SIDE = 2
"""Rows and columns of a change of basis."""

Index = tuple[int, ...]


def of_identity(name: str) -> Fraction:
    """Returns the entry of the identity that a number `γ[…]` is, as an entry of a matrix."""
    k = int(name.partition("[")[2].removesuffix("]")) % (SIDE * SIDE)
    return Fraction(int(k % (SIDE + 1) == 0))


def with_gauge(claim: Claim) -> Claim | None:
    """Returns the claim with a matrix between what is set equal, or None where there is no place.

    Args:
        claim: with conditions on values inside.
    """
    if not claim.free:
        return None
    equal: dict[tuple[str, str], dict[Index, Index]] = {}
    for c in claim.conditions:
        place = _set_equal(c)
        if place is not None:
            solved, index, other, at = place
            equal.setdefault((solved, other), {})[index] = at
    shapes = _shapes(claim)
    seen = {axis.name for s in (claim.a, claim.b) for axis in s.outputs[0].axes}
    for first, second in combinations(equal, 2):
        if equal[first] != equal[second] or first[1] == second[1]:
            continue
        axes, theirs = shapes[first[0]], shapes[first[1]]
        inner = [n for n in axes if n in theirs and n not in seen]
        if axes == shapes[second[0]] and len(inner) == 1 and dict(claim.sizes)[inner[0]] == SIDE:
            where = axes.index(inner[0]), theirs.index(inner[0])
            return _changed(claim, (first, second), where)
    return None


def _set_equal(c: Condition) -> tuple[str, Index, str, Index] | None:
    """Which entry of an array of the first mixer is set equal to which of the second's."""
    p = polynomial(c.polynomial)
    sides = [LEAF.fullmatch(m[0][0]) for m in p.terms if len(m) == 1 and m[0][1] == 1]
    if len(p.terms) != 2 or len(sides) != 2 or sum(p.terms.values(), Fraction(0)) or reach(p):
        return None
    names = {entry[1]: _index(entry[2]) for entry in sides if entry is not None and entry[3]}
    solved = c.solved.partition("[")[0]
    others = [n for n in names if n != solved]
    if len(names) != 2 or solved not in names or not solved.startswith(LABELS):
        return None
    return solved, names[solved], others[0], names[others[0]]


def _index(text: str) -> Index:
    return tuple(int(k) for k in text.split(",") if k)


def _shapes(claim: Claim) -> dict[str, tuple[str, ...]]:
    """Common name of an input → the names of its axes."""
    return {
        array_names(claim, second).get(t.name, t.name): tuple(a.name for a in stored_axes(t))
        for second in (False, True)
        for t in system_of(claim, second).inputs
    }


def _changed(claim: Claim, pairs: tuple[tuple[str, str], ...], where: tuple[int, int]) -> Claim:
    """The claim with G between the arrays of both pairs; entries of G are numbers `γ[…]`."""
    outer: dict[Index, int] = {}
    out = []
    for c in claim.conditions:
        place = _set_equal(c)
        if place is None or (place[0], place[2]) not in pairs:
            out.append(c)
            continue
        _, index, other, at = place
        key = index[: where[0]] + index[where[0] + 1 :]
        start = SIDE * SIDE * outer.setdefault(key, len(outer))
        g = [[generator(f"γ[{start + SIDE * m + n}]") for n in range(SIDE)] for m in range(SIDE)]
        n = index[where[0]]
        values = [
            generator(f"{other}[{','.join(map(str, (*at[: where[1]], m, *at[where[1] + 1 :])))}]@0")
            for m in range(SIDE)
        ]
        if (place[0], other) == pairs[0]:
            right = g[0][n] * values[0] + g[1][n] * values[1]
            left = generator(c.solved)
        else:
            right = g[1 - n][1 - n] * values[n] + -(g[n][1 - n] * values[1 - n])
            left = (g[0][0] * g[1][1] + -(g[0][1] * g[1][0])) * generator(c.solved)
        out.append(condition(left + -right, c.solved))
    return replace(claim, conditions=tuple(out))


def forced(claim: Claim) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns conditions, by position, that equal outputs force, and the inputs varied for that.

    Those that say which values of the two go together are assumed, the others forced, or none is.

    Args:
        claim: with conditions.
    """
    if claim.case or not claim.free:
        return (), ()
    polynomials = [polynomial(c.polynomial) for c in claim.conditions]
    functions = " ".join(g for p in polynomials for g in p.names if not LEAF.fullmatch(g))
    assumed = {
        k for k, c in enumerate(claim.conditions)
        if _assumed(c, polynomials[k])
        if not any(f"{g.partition('[')[0]}[" in functions for g in polynomials[k].names)
    }  # fmt: skip
    values = Conditions(claim.conditions).values(0)
    varied = {
        entry[1]
        for k in assumed
        for name in values[claim.conditions[k].solved].names
        if (entry := LEAF.fullmatch(name)) is not None and entry[3]
    }
    order = [k for k in range(len(polynomials)) if k not in assumed]
    spoken = functions + " ".join(g for k in order for g in polynomials[k].names)
    ours, theirs = ({array_names(claim, k).get(t.name, t.name) for t in system_of(claim, k).inputs}
                    for k in (False, True))  # fmt: skip
    solved = {c.solved.partition("[")[0] for c in claim.conditions}
    shared = {name for name in (ours & theirs) - solved if f"{name}[" not in spoken}
    for inputs in dict.fromkeys(
        (frozenset(varied - solved), frozenset((varied - solved) | shared))
    ):
        proof = tuple(order), tuple(sorted(inputs))
        with suppress(Rejected, Obstacle, ValueError, ZeroDivisionError):
            if order and inputs:
                check_necessary(claim, Conditional(NO_ROWS, None, (), *proof))
                return proof
    return (), ()


def _assumed(c: Condition, p: Polynomial) -> bool:
    """Whether a condition says of which inputs a value inside is a linear combination."""
    if not c.solved.startswith(LABELS) or reach(p):
        return False
    for m in p.terms:
        timed = [g for g, _ in m if not NOT_ZERO.fullmatch(g) and not g.startswith("γ[")]
        if len(timed) != 1 or LEAF.fullmatch(timed[0]) is None or dict(m)[timed[0]] != 1:
            return False
    return len(p.terms) > 1
