"""`equivalent M when …`: conditions that put nothing in the place of a name are assumed.

The kernel makes both definitions simpler by what is assumed (`simplified`), and accepts a
proof that the simpler ones are equal together with a point at which what is assumed holds. Such
points are drawn, with inputs that are orthogonal over time among others; one of them at which the
outputs are apart refutes the claim.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dsfc.claims.compare import pairs
from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.statements import Comparison, Relation
from dsfc.expr.tree import Axis, Expr, Field, Mul, Now, Num, Reduce, Reduction, Ref
from dsfc.prover.equivalent import equivalent
from dsfc.prover.refute import HEIGHTS, arrays, drawn
from dsfc.prover.sizes import chosen
from dsfc.prover.verdict import AtSizes, Conditionally, ProvedWhereDefined
from dsfc.prover.verdict import Proved as ForAll
from dsfc.prover.verdict import Refuted as Different
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import (
    Assumed,
    Assumption,
    Certificate,
    Claim,
    Invariant,
    MarkovParameters,
    Number,
    Same,
    Somewhere,
    Witness,
)
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.assumed import check_holds
from dsfc.trusted.rules.assumed_facts import read_at
from dsfc.trusted.rules.simplified import of_use, simplified
from dsfc.trusted.witness import execute, place_of, stored_axes

LONGEST = 3
"""Tokens of the longest sequence that is drawn."""

NOWHERE = (
    "the outputs are equal where the conditions hold, but no point was found at which they do and "
    "the output is not 0: the claim may be about nothing"
)

DRAWS = 16
"""Points per length, sizes and height."""


def assumptions(when: tuple[Comparison, ...]) -> tuple[Assumption, ...]:
    """Returns conditions as what a claim assumes."""
    return tuple(
        Assumption(left, relation.value, right)
        if c.earlier is None
        else Assumption(left, relation.value, right, c.earlier.var, c.earlier.own)
        for c in when
        for left, relation, right in pairs((c,))
    )


def unused(system: System, when: tuple[Comparison, ...]) -> tuple[str, ...]:
    """Returns, as clauses, which conditions no definition can be made simpler by."""
    return tuple(
        f"`{c.text()}` is none that a proof can use"
        for c in when
        if not any(of_use(system, x) for x in assumptions((c,)))
    )


def assuming(
    a: System, b: System, assumed: tuple[Assumption, ...]
) -> ForAll | AtSizes | Different | str | None:
    """Decides whether two systems are one function where something is assumed of the first.

    Returns:
        A verdict with a certificate that the kernel accepted, or why there is none. None where
        nothing becomes simpler by what is assumed.
    """
    try:
        claim = Claim(a, b, (), chosen(a, b, 2), assumed=assumed)
        plain = simplified(claim)
    except Obstacle as e:
        return apart(a, b, assumed) or str(e)
    except ValueError as e:
        return str(e)
    if (plain.a, plain.b) == (a, b):
        return None
    verdict = equivalent(plain.a, plain.b)
    if isinstance(verdict, ProvedWhereDefined):
        verdict = verdict.proved  # its point may be one at which nothing holds that is assumed
    if isinstance(verdict, ForAll | AtSizes):
        return _proved(claim, verdict)
    refuted = apart(a, b, assumed)
    if refuted is not None:
        return refuted
    if isinstance(verdict, Different):
        return "what the conditions leave of both differs, but at no point tried at which they hold"
    assert not isinstance(verdict, Conditionally)  # nobody asked for conditions
    return verdict.obstacle


def _proved(claim: Claim, verdict: ForAll | AtSizes) -> ForAll | AtSizes | str:
    """A proof with a point at which what is assumed holds."""
    simpler = verdict.certificate
    whole = replace(simpler.claim, a=claim.a, b=claim.b, assumed=claim.assumed)
    for point in _points(replace(whole, every=())):
        somewhere = Somewhere(point.length, point.values)
        if _held(whole, somewhere):
            assert isinstance(simpler.proof, Invariant | MarkovParameters | Same)
            proof = Assumed(simpler.proof, somewhere)
            certificate = Certificate(whole, proof, somewhere)
            try:
                check(write(certificate))
            except Rejected:
                continue  # one output has no value there
            return replace(verdict, certificate=certificate)
    return NOWHERE


def somewhere(certificate: Certificate, assumed: tuple[Assumption, ...]) -> int | None:
    """Returns the tokens of a point at which what is assumed holds and the output is not 0.

    A proof that needs nothing of what is assumed comes without one. None where none is found.
    """
    claim = replace(certificate.claim, assumed=assumed, every=())
    if certificate.claim.assumed and certificate.defined is not None:
        return certificate.defined.length
    held = (Somewhere(p.length, p.values) for p in _points(claim))
    return next((point.length for point in held if _held(claim, point)), None)


def apart(a: System, b: System, assumed: tuple[Assumption, ...]) -> Different | None:
    """Returns a point at which what is assumed holds and the outputs are apart, if one is found."""
    for sizes in dict.fromkeys(chosen(a, b, least) for least in (1, 2, 3)):
        at = Claim(a, b, (), sizes, equal=False, assumed=assumed)
        for point in _points(at):
            if not _held(at, point):
                continue
            gap = _first_gap(at, point)
            if gap is not None:
                certificate = Certificate(at, Assumed(gap, None))
                accepted = check(write(certificate))
                assert accepted.gap is not None
                return Different(certificate, accepted.gap, False)
    return None


def stated(certificate: Certificate, assumed: tuple[Assumption, ...]) -> Certificate:
    """Returns a certificate of difference as one of what is assumed, if the kernel accepts that.

    It executes definitions, and a condition may speak of what the derivation made.
    """
    if not assumed or not isinstance(certificate.proof, Witness):
        return certificate
    proof = Assumed(certificate.proof, None)
    whole = Certificate(replace(certificate.claim, assumed=assumed), proof)
    try:
        check(write(whole))
    except Rejected:
        return certificate
    return whole


def _held(claim: Claim, point: Somewhere | Witness) -> bool:
    try:
        check_holds(claim, point)
    except (Rejected, Obstacle, ValueError, LookupError, ZeroDivisionError):
        return False
    return True


def _first_gap(claim: Claim, point: Witness) -> Witness | None:
    """The point with a token and an index where the outputs are apart."""
    try:
        a, b = execute(claim, point)
    except (Rejected, Obstacle):
        return None
    sizes = dict(claim.sizes)
    for token in range(point.length):
        for place, (one, other) in enumerate(zip(a[token], b[token], strict=True)):
            if not one.meets(other):
                index, left = list[int](), place
                for axis in reversed(claim.a.outputs[0].axes):
                    index.append(left % sizes[axis.name])
                    left //= sizes[axis.name]
                shown = replace(point, token=token, index=tuple(reversed(index)))
                assert place_of(claim, shown.index) == place
                return shown
    return None


# --- points ---------------------------------------------------------------------------------------


def _points(claim: Claim) -> Iterator[Witness]:
    """Points of a claim at its sizes, some of inputs that are orthogonal over time, or constant."""
    of = arrays(claim)
    sizes = dict(claim.sizes)
    shortest = 2 if any(x.earlier for x in claim.assumed) else 1
    for length in range(shortest, LONGEST + 1):
        for number, height in enumerate(HEIGHTS):
            rng = random.Random(100 * length + number)
            for _ in range(DRAWS):
                point = drawn(claim, of, length, height, rng)
                values = []
                for (name, declared, is_input), (_, entries) in zip(of, point.values, strict=True):
                    kind = rng.random()
                    if kind < 0.5:
                        shown = _special(declared, is_input, length, sizes, rng)
                        entries = entries if shown is None else shown
                    elif kind < 0.75:
                        entries = entries[:1] * len(entries)
                    values.append((name, entries))
                yield replace(point, values=tuple(values))


def _special(
    t: Tensor | MapTensor, is_input: bool, length: int, sizes: dict[str, int], rng: random.Random
) -> tuple[Number, ...] | None:
    """Tokens of an input that are orthogonal along one of its axes, or a map that is a matrix 1."""
    axes = [sizes[a.name] for a in stored_axes(t)]
    if isinstance(t, MapTensor):
        source = _count([sizes[a.name] for a in t.map.source])
        return tuple(_number(k // source % source == k % source) for k in range(_count(axes)))
    if not is_input or not axes or t.constraint is not Constraint.NONE:
        return None
    along = rng.randrange(len(axes))
    inner = _count(axes[along + 1 :])
    rows, scale = _orthogonal(axes[along], rng), rng.choice((1, 1, 1, 2, -1, 0))
    last = axes[along] if rng.random() < 0.75 else length  # else rows come again
    return tuple(
        _number(scale * rows[token % axes[along]][k // inner % axes[along]] * (token < last))
        for token in range(length)
        for k in range(_count(axes))
    )


def _orthogonal(size: int, rng: random.Random) -> list[list[Fraction]]:
    """Orthogonal rows in some order: pairs of one length, or those of a reflection."""
    if size % 2 == 0 and rng.random() < 0.5:
        a, b = rng.choice((1, 2, -1)), rng.choice((0, 1))
        rows = [[Fraction(0)] * size for _ in range(size)]
        for k in range(0, size, 2):
            rows[k][k : k + 2] = Fraction(a), Fraction(b)
            rows[k + 1][k : k + 2] = Fraction(-b), Fraction(a)
        rng.shuffle(rows)
        return rows
    v = [Fraction(rng.choice((0, 1, 1, 2, -1))) for _ in range(size)]
    square = sum(x * x for x in v)
    rows = [
        [Fraction(i == j) - (2 * v[i] * v[j] / square if square else 0) for j in range(size)]
        for i in range(size)
    ]
    rng.shuffle(rows)
    return rows


def _count(sizes: list[int]) -> int:
    out = 1
    for k in sizes:
        out *= k
    return out


def _number(value: Fraction | int) -> Number:
    exact = Fraction(value)
    return exact.numerator, exact.denominator, 0, 1


# --- how long sequences can be --------------------------------------------------------------------


def lengths(when: tuple[Comparison, ...]) -> tuple[str, ...]:
    """Returns what conditions say of how long sequences can be, as clauses.

    Real vectors of n entries that are orthogonal, none of them 0, are n at most.
    """
    alone = [c for c in when if c.earlier is None]
    never_0 = {x for c in alone for x, z, _, v in _products(c) if x is z and v > 0}
    for c in when:
        for one, other, axis, value in _products(c) if c.earlier else ():
            x, z = (read_at(e, c.earlier.var, 0) for e in (one, other) if c.earlier)
            if not isinstance(x, Ref) or x.at != Now(0):
                continue  # the last token is none of these
            if x is z and one is not other and value == 0:
                n = axis.name
                if x in never_0:
                    return (f"no sequence on which they do has more than {n} tokens",)
                each = f"each vector of {x.name} along {n}"
                return (f"where they do, {each} is other than 0 at {n} tokens at most",)
    return ()


def _products(c: Comparison) -> Iterator[tuple[Expr, Expr, Axis, Fraction]]:
    """The two names, the axis and the number where real names are said to have a product."""
    for one, other in (c.operands, c.operands[::-1]):
        match one, other:
            case (
                Reduce(how=Reduction.SUM, axis=axis, arg=Mul(args=(Ref() as x, Ref() as z))),
                Num(value),
            ) if c.relations == (Relation.EQUAL,) and one.field is Field.REAL:
                if axis in x.axes and axis in z.axes:
                    yield x, z, axis, value
