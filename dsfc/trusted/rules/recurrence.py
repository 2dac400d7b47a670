"""Increments that are no sum of powers: the part of rule "constant-sequence" for coupled states.

Let the states of a be affine in those before, N of them, with coefficients that are functions of
the last few tokens. On a constant sequence, from token w on, that is z_i = Λ z_{i-1} + f with
numbers, and the increments s_l = y_l - y_{l-1} = o (z_{l-1} - z_{l-2}) obey one linear recurrence:
χ(E) s = 0 for l ≥ w + 1, with E the shift by a token and χ of degree N. So E^k χ(E) s = 0 for
l ≥ w + 1 - k. The increments of b are sums of powers of numbers other than 0 from a token on
(`dsfc.trusted.rules.steady`), however many states it has. Checked are, in fractions, at a point of
a and one token:

1. the states of a at the point give the outputs that its definition, executed, gives;
2. μ(E) s = 0 at N + k tokens one after the other, for a polynomial μ. As μ(E) s obeys what s does,
   it is 0 from there on;
3. ρ(E) s is not 0 at a later token, with ρ the product of x - λ over the *different* roots λ of μ
   other than 0.

Were s a sum of powers Σ w λ^l, each λ with w other than 0 would be a root of μ by 2, hence of ρ,
and ρ(E) s were 0. So no parameters of b give the outputs of a: neither those of a Jordan block,
where μ has a root twice, nor those of a filter that ends, where 0 is its only root. If 0 is no root
of μ, the recurrence runs back in time too, so ρ(E) s is not 0 at infinitely many tokens, and it
does not matter from which on the increments of b are sums of powers. If it is one, b must have no
slots, and no filter that has more taps at other sizes that are spoken of: they may do at the first
tokens what they like.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from dsfc.expr.tree import Expr, Fir, children
from dsfc.trusted.claim import Claim, ConstantSequence, Number
from dsfc.trusted.comparable import slots
from dsfc.trusted.definition import Execution
from dsfc.trusted.generalize_inputs import expressions
from dsfc.trusted.generator_names import CALL, STATE
from dsfc.trusted.legal import facts
from dsfc.trusted.polynomial import ZERO, Quotient
from dsfc.trusted.polynomial import number as quotient
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.markov import affine
from dsfc.trusted.rules.steady import steady
from dsfc.trusted.statement import Moment, state
from dsfc.trusted.witness import (
    LENGTH_LIMIT,
    arrays,
    check_token,
    constants_of,
    place_of,
    stored_axes,
)

Coefficients = tuple[Fraction, ...]
"""A polynomial over the rationals, the coefficient of x^k at position k, the last one not 0."""


def check_recurrence(claim: Claim, proof: ConstantSequence) -> None:
    """Checks that increments of a are no sum of powers.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError, ZeroDivisionError: the claim has no meaning here.
    """
    if proof.always:
        raise Rejected("a recurrence is one of a point, and other parameters are spoken of")
    mu = trimmed(tuple(Fraction(p, q) for p, q in proof.recurrence))
    if not mu:
        raise Rejected("the recurrence is 0")
    if not mu[0] and (slots(claim) or longer(claim, proof.larger)):
        raise Rejected("the second may go on for as many tokens as the first")
    rolled = Rolled(claim, proof.values)
    place = place_of(claim, proof.index)
    last = max(rolled.first + rolled.order, proof.token + 1) + len(mu)
    if proof.token < rolled.first or last > LENGTH_LIMIT:
        raise Rejected("the token is none at which increments obey a recurrence")
    s = [row[place] for row in rolled.increments(last)]
    if any(applied(mu, s, rolled.first + k) for k in range(rolled.order)):
        raise Rejected("the increments do not obey the recurrence")
    if not applied(distinct(mu), s, proof.token):
        raise Rejected("the increments may be a sum of powers")


class Rolled:
    """System a at a point, one token repeated, its states rolled out in fractions.

    Args:
        claim: whose a it is.
        values: name → entries, of inputs one token.

    Attributes:
        order: degree of a recurrence that its increments obey from `first` on.
        first: the first token at which increments of b are sums of powers.

    Raises:
        Rejected: the values are none of a, or a state is not rational and affine there.
        Obstacle: one of the systems cannot be written out, or b has no bases.
    """

    def __init__(self, claim: Claim, values: tuple[tuple[str, tuple[Number, ...]], ...]) -> None:
        """Writes a out."""
        self.claim, self.values = claim, dict(values)
        if len(self.values) != len(values):
            raise Rejected("a name has two values")
        check_token(claim, self.values)
        theirs = steady(claim.b, dict(claim.sizes))
        axes = {d.axis.name for d in claim.a.axes}
        sizes = tuple((name, size) for name, size in claim.sizes if name in axes)
        self.statement = state(Claim(claim.a, claim.a, (), sizes), True)
        steady_step = self.statement.steady
        for q in (*steady_step.step.values(), *(a for a, _ in steady_step.outputs)):
            if any(CALL in name for name in q.names):
                raise Rejected("a function of states stands in the first system")
            affine(q)
        entries = sum(f"{STATE}A." in name for name in steady_step.step)
        self.first = theirs.window + 2
        # Until its own increments obey χ, a is one that forgets what it did.
        self.order = entries + max(self.statement.window + 1 - self.first, 0)

    def increments(self, length: int) -> list[list[Fraction]]:
        """Returns s at tokens 0 … length − 1, entry by entry; at token 0 it is the output.

        Raises:
            Rejected: the definition does not go on as the states do, or not in fractions.
        """
        known = self._leaves()
        states = dict.fromkeys(self.statement.steady.step, ZERO)
        outputs: list[list[Fraction]] = []
        for token in range(length):
            early = token < len(self.statement.first)
            moment = self.statement.first[token] if early else self.statement.steady
            outputs.append(_numbers(moment, known | states))
            states = {name: q.substituted(known | states) for name, q in moment.step.items()}
        if outputs != self._executed(length):
            raise Rejected("the definition of a does not go on as its states do")
        before = [[Fraction(0)] * len(outputs[0]), *outputs]
        return [[x - y for x, y in zip(now, old, strict=True)]
                for now, old in zip(outputs, before, strict=False)]  # fmt: skip

    def _leaves(self) -> dict[str, Quotient]:
        """Generator of an input or parameter → its value, the same at all tokens."""
        a, sizes = self.claim.a, dict(self.claim.sizes)
        inputs = {t.name for t in a.inputs}
        out = {f"size[{name}]": quotient(size) for name, size in sizes.items()}
        for t in (*a.inputs, *a.params, *a.buffers):
            if t.name not in self.values:
                continue
            shape = [range(sizes[axis.name]) for axis in stored_axes(t)]
            times = [f"@{k}" for k in range(len(self.statement.first) + 1)]
            for at, entry in zip(product(*shape), self.values[t.name], strict=True):
                name = f"{t.name}[{','.join(map(str, at))}]"
                for when in times if t.name in inputs else [""]:
                    out[name + when] = quotient(Fraction(entry[0], entry[1]))
        return out

    def _executed(self, length: int) -> list[list[Fraction]]:
        a, claim = self.claim.a, self.claim
        inputs = {t.name for t in a.inputs}
        repeated = {name: v * length if name in inputs else v for name, v in self.values.items()}
        arguments = arrays(claim, a, {}, length, repeated, constants_of(claim, a, {}))
        if self.values.keys() - arguments.keys():
            raise Rejected("a value is given of nothing that a has")
        outputs = Execution(a, dict(claim.sizes), length, arguments).output()
        if not all(x.is_real and x.re.exact for row in outputs for x in row):
            raise Rejected("the definition of a has no rational values at the point")
        return [[x.re.low for x in row] for row in outputs]


def _numbers(moment: Moment, known: dict[str, Quotient]) -> list[Fraction]:
    numbers = [a.substituted(known).number for a, _ in moment.outputs]
    if None in numbers:
        raise Rejected("the states of a are not rational at the point")
    return [x for x in numbers if x is not None]


def longer(claim: Claim, larger: tuple[str, ...]) -> bool:
    """Returns whether a filter of b may have more taps at other sizes that are spoken of.

    Args:
        claim: the two systems, and b's own axes of any size.
        larger: axes of a that are spoken of at larger sizes; all of a's are then.
    """
    axes = {*claim.every, *(d.axis.name for d in claim.a.axes if larger)}
    together = [{f.name, *f.names} for f in facts(claim.a, claim.b)]
    taps = _filtered(claim)
    while more := {name for names in together if names & taps for name in names} - taps:
        taps |= more
    return bool(taps & axes)


def _filtered(claim: Claim) -> set[str]:
    """The axes of b that count taps."""
    out: set[str] = set()
    stack: list[Expr] = list(expressions((claim.b.streams, claim.b.stages, claim.b.outputs)))
    seen: set[Expr] = set()
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            out |= {e.axis.name} if isinstance(e, Fir) else set()
            stack += children(e)
    return out


# --- polynomials ----------------------------------------------------------------------------------


def trimmed(p: Coefficients) -> Coefficients:
    """Returns a polynomial without leading coefficients of 0."""
    while p and not p[-1]:
        p = p[:-1]
    return p


def applied(p: Coefficients, s: list[Fraction], at: int) -> Fraction:
    """Returns p(E) s at a token, E being the shift by one."""
    return sum((c * s[at + k] for k, c in enumerate(p)), Fraction(0))


def distinct(p: Coefficients) -> Coefficients:
    """Returns the product of x - λ over the different roots λ of p other than 0, up to a factor."""
    while not p[0]:
        p = p[1:]
    slope = trimmed(tuple(k * c for k, c in enumerate(p))[1:])
    return _divided(p, _common(p, slope))[0]


def _common(p: Coefficients, q: Coefficients) -> Coefficients:
    while q:
        p, q = q, _divided(p, q)[1]
    return p


def _divided(p: Coefficients, q: Coefficients) -> tuple[Coefficients, Coefficients]:
    """Quotient and rest."""
    rest, out = list(p), [Fraction(0)] * max(len(p) - len(q) + 1, 0)
    for k in reversed(range(len(out))):
        out[k] = rest[k + len(q) - 1] / q[-1]
        for j, c in enumerate(q):
            rest[k + j] -= out[k] * c
    return trimmed(tuple(out)), trimmed(tuple(rest))
