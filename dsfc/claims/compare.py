"""Comparisons of derived values: by ranges and normal forms, or executed at a point.

`a < b` holds at every token and index, for all inputs and parameters in their declared ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dsfc.claims.points import Failed, Running, place, search, shown
from dsfc.claims.verdict import Proved, Refuted, Unknown, Verdict
from dsfc.expr.build import rewrite, sub, walk
from dsfc.expr.inline import Inliner
from dsfc.expr.interval import INF, POSITIVE, Interval
from dsfc.expr.normal import normalise
from dsfc.expr.statements import Comparison, Relation
from dsfc.expr.tree import Div, Expr, Field, Num, Pow, Prim, Ref
from dsfc.structure.bounds import Ranges, constraints_of, interval_text, modulus_of, nonzero_of
from dsfc.structure.ir import Structure
from dsfc.system.inline import inliner_of
from dsfc.system.ir import LogForm, System
from dsfc.trusted.balls import Undefined
from dsfc.trusted.rules.assumed import certainly

MIRRORED = {Relation.ABOVE: Relation.BELOW, Relation.AT_LEAST: Relation.AT_MOST}
"""a > b is b < a."""


LOW = ((0, -1), (0, -1, 1, 2))
"""Numbers at which divisions, roots and logarithms have no value, among others."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a system's values: declared ranges, decays, and the conditions of a claim.

    Attributes:
        inline: puts definitions in.
        equal: expression → what a condition says it is.
        ranges: of expressions with both put in.
        definitions: name → its value as defined, updates of states among them.
    """

    inline: Inliner
    equal: Mapping[Expr, Expr]
    ranges: Ranges
    definitions: Mapping[str, Expr]

    def value(self, e: Expr) -> Expr:
        """Returns an expression over inputs and parameters, with what conditions say put in."""
        whole = self.inline.of(e)
        if not self.equal:
            return whole
        return rewrite(whole, lambda part: self.equal.get(part))


def facts(system: System, structure: Structure, when: tuple[Comparison, ...] = ()) -> Facts:
    """Returns what is known under some conditions."""
    inline = inliner_of(system)
    equal: dict[Expr, Expr] = {}
    # What is said of earlier tokens is no fact of one token.
    when = tuple(c for c in when if c.earlier is None)
    for left, relation, right in pairs(when):
        if relation is Relation.EQUAL:
            one, other = inline.of(left), inline.of(right)
            if one not in walk(other):
                equal[one] = other
    bounds: dict[Expr, Interval] = {}
    plain = Ranges(constraints_of(system), nonzero_of(system))
    for block in structure.blocks:
        decay = block.decay
        if decay is not None and decay.value.field is Field.REAL and decay.form is LogForm.EXACT:
            _learn(bounds, decay.value, modulus_of(decay, plain))
    for left, relation, right in pairs(when):
        one, other = inline.of(left), inline.of(right)
        strict = relation is Relation.BELOW
        if relation in (Relation.BELOW, Relation.AT_MOST):
            high, low = plain.of(other).high, plain.of(one).low
            _learn(bounds, one, Interval(-INF, high, open_high=strict))
            _learn(bounds, other, Interval(low, INF, open_low=strict))
    known = Ranges(constraints_of(system), nonzero_of(system), bounds)
    return Facts(inline, equal, known, {d.name: d.value for d in system.definition})


def _learn(bounds: dict[Expr, Interval], e: Expr, interval: Interval) -> None:
    bounds[e] = bounds[e].meet(interval) if e in bounds else interval


def pairs(comparisons: tuple[Comparison, ...]) -> Iterator[tuple[Expr, Relation, Expr]]:
    """Yields neighbouring operands, with `<`, `<=`, `==` or `!=` between."""
    for c in comparisons:
        for k, relation in enumerate(c.relations):
            left, right = c.operands[k], c.operands[k + 1]
            if relation in MIRRORED:
                yield right, MIRRORED[relation], left
            else:
                yield left, relation, right


# --- proofs ---------------------------------------------------------------------------------------


def compare(
    system: System, structure: Structure, what: Comparison, when: tuple[Comparison, ...]
) -> Verdict:
    """Decides a comparison."""
    known = facts(system, structure, when)
    lacking = next((e for e in what.operands if not has_value(known, e)), None)
    if all(_holds(known, *pair) for pair in pairs((what,))):
        if lacking is None:
            return Proved(_reason(known, what))
        nowhere = search(system, lambda run: _without_value(run, what, when), heights=LOW)
        if isinstance(nowhere, Failed):
            return Refuted(nowhere.how, nowhere.point.text)
        text = what.texts[what.operands.index(lacking)]
        return Unknown(f"{text} is not known to have a value everywhere; {nowhere}")
    failure = search(system, lambda run: _failure(run, what, when))
    if isinstance(failure, Failed):
        return Refuted(failure.how, failure.point.text)
    return Unknown(f"{_reason(known, what)} by its range; {failure}")


def _holds(known: Facts, left: Expr, relation: Relation, right: Expr) -> bool:
    """Whether a comparison of two values is proved."""
    one, other = known.value(left), known.value(right)
    gap = sub(other, one)
    form = normalise(gap)
    if relation is Relation.EQUAL:
        return form.is_zero
    if relation is Relation.DIFFERENT:
        return (form.constant or 0) != 0 or not _may_be_zero(known.ranges.modulus(gap))
    if form.constant is not None:
        return form.constant > 0 or (relation is Relation.AT_MOST and form.constant == 0)
    a, b, between = (known.ranges.of(e) for e in (one, other, gap))
    return _ordered(a, b, relation) or _ordered(Interval(0.0, 0.0), between, relation)


_DEFINED: Mapping[str, Callable[[Interval], bool]] = {
    "log": lambda x: x.within(POSITIVE),
    "log1p": lambda x: x.within(Interval(-1.0, INF, open_low=True)),
    "sqrt": lambda x: x.low >= 0,
}
"""Functions that have no value somewhere → whether they have one in a range."""


def has_value(known: Facts, e: Expr) -> bool:
    """Returns whether an expression has a value everywhere, by ranges of what it is made of.

    That is all it reads: names at other tokens, and states, have one where their definitions do.
    """
    waiting, seen = [e], set[str]()
    while waiting:
        for part in walk(known.value(waiting.pop())):
            if not _has_own_value(known, part):
                return False
            if isinstance(part, Ref) and part.name in known.definitions and part.name not in seen:
                seen.add(part.name)
                waiting.append(known.definitions[part.name])
    return True


def _has_own_value(known: Facts, part: Expr) -> bool:
    """Whether an expression has a value where its arguments have."""
    match part:
        case Div(_, below):
            return not _may_be_zero(known.ranges.modulus(below))
        case Prim(name=name, args=(arg,)) if name in _DEFINED:
            return arg.field is Field.REAL and _DEFINED[name](known.ranges.of(arg))
        case Prim(name="tanh", args=(arg,)):
            return arg.field is Field.REAL  # of complex numbers it has poles
        case Pow(base, exponent):
            return _has_power(known, base, exponent)
    return True


def _has_power(known: Facts, base: Expr, exponent: Expr) -> bool:
    if isinstance(exponent, Num) and exponent.value.denominator == 1:
        return exponent.value >= 0 or not _may_be_zero(known.ranges.modulus(base))
    return base.field is Field.REAL and known.ranges.of(base).within(POSITIVE)


def impossible(system: System, structure: Structure, when: tuple[Comparison, ...]) -> str | None:
    """Returns a condition that no point can satisfy, by ranges; None where none is known."""
    known = facts(system, structure)
    for c in when:
        if c.earlier is not None:
            continue
        for left, relation, right in pairs((c,)):
            negated = _NEGATED[relation]
            if negated in MIRRORED:
                left, negated, right = right, MIRRORED[negated], left
            if _holds(known, left, negated, right):
                return c.text()
    return None


def _may_be_zero(size: Interval) -> bool:
    return size.low < 0 or (size.low == 0 and not size.open_low)


def _ordered(a: Interval, b: Interval, relation: Relation) -> bool:
    """Whether every value of a is below every value of b."""
    if relation is Relation.AT_MOST:
        return a.high <= b.low
    return a.high < b.low or (a.high == b.low < INF and (a.open_high or b.open_low))


def _reason(known: Facts, what: Comparison) -> str:
    """The ranges of what is compared, or that both sides have one normal form."""
    if set(what.relations) == {Relation.EQUAL} and all(
        _holds(known, *pair) for pair in pairs((what,))
    ):
        return "both sides have one normal form"
    parts = []
    for e, text in zip(what.operands, what.texts, strict=True):
        if isinstance(e, Num):
            continue
        value = known.value(e)
        if value.field is Field.REAL:
            parts.append(f"{text} lies in {interval_text(known.ranges.of(value))}")
        else:
            parts.append(f"|{text}| lies in {interval_text(known.ranges.modulus(value))}")
    return ", ".join(parts) or "numbers are compared"


# --- points ---------------------------------------------------------------------------------------


def _failure(run: Running, what: Comparison, when: tuple[Comparison, ...]) -> str | None:
    """How a comparison fails where its conditions hold; None where it does not."""
    if not satisfied(run, when):
        return None
    for k, relation in enumerate(what.relations):
        left, right = what.operands[k], what.operands[k + 1]
        for token, at in run.everywhere(left, right):
            a, b = run.entry(left, token, at), run.entry(right, token, at)
            if certainly(a, _NEGATED[relation], b):
                values = [
                    f"{what.texts[k + side]} is {shown(v)}"
                    for side, (e, v) in enumerate(((left, a), (right, b)))
                    if not isinstance(e, Num)
                ]
                said = " and ".join(values) or f"{what.texts[k]} is not {relation} the next"
                return f"{said} at {place(token, at)}"
    return None


def _without_value(run: Running, what: Comparison, when: tuple[Comparison, ...]) -> str | None:
    """A side of a comparison that has no value where its conditions hold."""
    if not satisfied(run, when):
        return None
    for e, text in zip(what.operands, what.texts, strict=True):
        for token, at in run.everywhere(e):
            try:
                run.entry(e, token, at)
            except Undefined as why:
                return f"{text} has no value at {place(token, at)}: {why}"
    return None


def satisfied(run: Running, when: tuple[Comparison, ...]) -> bool:
    """Returns whether conditions are known to hold at every token and index of a point."""
    return all(
        certainly(run.entry(left, token, at, bound), relation, run.entry(right, token, at, bound))
        for c in when
        for left, relation, right in pairs((c,))
        for token, at in run.everywhere(left, right)
        for bound in _bindings(c, token)
    )


def _bindings(c: Comparison, token: int) -> Iterator[Mapping[str, int]]:
    """The tokens that the index of a comparison stands for at a token."""
    if c.earlier is None:
        yield {}
        return
    for j in range(token + c.earlier.own):
        yield {c.earlier.var: j}


_NEGATED = {
    Relation.BELOW: Relation.AT_LEAST,
    Relation.AT_MOST: Relation.ABOVE,
    Relation.ABOVE: Relation.AT_MOST,
    Relation.AT_LEAST: Relation.BELOW,
    Relation.EQUAL: Relation.DIFFERENT,
    Relation.DIFFERENT: Relation.EQUAL,
}
