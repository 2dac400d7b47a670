"""Equality where something is assumed: definitions are made simpler by it, and then compared.

What is assumed holds at every token of a sequence. So, at each of its tokens,

1. what is assumed to be equal may be put one in the place of the other;
2. |x|, relu x, max and min are what they are where the sign of their argument is known: d ≥ 0
   is assumed, and the argument, or its negative, is d and a number that is not negative;
3. let o_i Σ_A κ_i κ'_j = 0 be assumed for all j < i, and let S be a state of which each term of the
   update is r S_{i-l} with l ≥ 1, or r κ', where r has no axis of A. Then o_i Σ_A κ_i S_j = 0 for
   all j < i. Proof, by induction over j: a term r S_{j-l} of S_j gives r o_i Σ_A κ_i S_{j-l}, which
   is 0, as states are 0 before the first token; a term r κ' gives r o_i Σ_A κ_i κ'_j = 0. Hence
   o_i Σ_A κ_i S_{i-l} = 0, and o_i Σ_A κ_i S_i is o_i Σ_A κ_i times the terms r κ' of S_i.

No size is used: what follows holds at all sizes, for every length. Sums and products are rearranged
(`product_terms`), and values that are put in have one where what is assumed holds, so both outputs
have the values that they had, wherever they had some.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import TypeGuard

from dsfc.expr.build import ONE, ZERO, add, mul, neg, rewrite, sub, walk
from dsfc.expr.inline import Inliner
from dsfc.expr.reserved_names import first
from dsfc.expr.tree import (
    Axis,
    Expr,
    Field,
    Fir,
    Mul,
    Now,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Time,
)
from dsfc.system.ir import Definition, System
from dsfc.trusted.claim import Assumption, Claim
from dsfc.trusted.derived import derived_form
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rules.assumed_facts import (
    Equal,
    Fact,
    NotNegative,
    Orthogonal,
    check_order,
    common_names,
    facts,
    inliner,
    made_of_names,
    of_all_axes,
)
from dsfc.trusted.rules.product_terms import (
    NOTHING,
    Factors,
    Summed,
    Terms,
    axes_of,
    expression,
    parts_of,
    plus,
    scaled,
    single,
    terms_of,
    times,
    with_all,
    without,
)

ROUNDS = 4
"""Rounds in which definitions that became simpler are looked at again."""


def simplified(claim: Claim) -> Claim:
    """Returns a claim of simpler mixers: equality of these is equality where it is assumed.

    Raises:
        Obstacle: a simpler definition is no mixer's.
    """
    whole, common = facts(claim.assumed, inliner(claim.a)), common_names(claim.a, claim.b)
    shared = tuple(f for f in whole if all(made_of_names(e, common) for e in f.made_of))
    first = _simpler(claim.a, facts(claim.assumed, inliner(claim.a, states=True)), states=True)
    return dataclasses.replace(
        claim, a=_simpler(first, whole), b=_simpler(claim.b, shared), assumed=()
    )


def of_use(system: System, what: Assumption) -> bool:
    """Returns whether definitions may be made simpler by an assumption."""
    return any(facts((what,), inliner(system, states)) for states in (True, False))


def _simpler(system: System, known: tuple[Fact, ...], states: bool = False) -> System:
    """A mixer with every definition made simpler.

    Args:
        system: the mixer.
        known: what is known of its values.
        states: whether names stay in these, but for values of states.
    """
    for _ in range(ROUNDS):
        rules = _Rules(system, known, inliner(system, states))
        definition = tuple(map(rules.simpler, system.definition))
        if definition == system.definition:
            return system
        # An equality may put a name into its own definition.
        check_order(definition)
        again = derived_form(dataclasses.replace(system, definition=definition))
        if again is None:
            raise Obstacle("what is left of a definition where something is assumed is no mixer's")
        system = again
    return system


def of_each_token(value: Expr) -> Expr:
    """Returns a value as one of each token, as definitions that read it before the first say.

    What is constant has no token, and is read as it is before the first one, where other values
    are 0.
    """
    if value.time is not Time.CONST:
        return value
    if not terms_of(value):
        return add(first(0), neg(first(0)))  # a product with 0 would be the number 0
    return mul(value, add(first(0), sub(ONE, first(0))))


# --- what becomes of definitions ------------------------------------------------------------------


class _Rules:
    """The rules, of one mixer.

    Args:
        system: the mixer.
        facts: what is known of its values.
        inline: puts into them what was put into the facts.
    """

    def __init__(self, system: System, facts: tuple[Fact, ...], inline: Inliner) -> None:
        """Finds the states that are orthogonal to something of the present token."""
        self._inline = inline
        self._equal = [f for f in facts if isinstance(f, Equal)]
        self._signs = [f for f in facts if isinstance(f, NotNegative)]
        self._updates = dict[str, Terms]()
        self._values = dict[str, Expr]()
        for d in system.definition:
            if d.update and not d.backward and not d.maximum:
                with suppress(Obstacle):
                    self._values[d.name] = inline.of(of_all_axes(d.value, d.axes))
                    self._updates[d.name] = terms_of(self._values[d.name])
        self._orthogonal = [
            (f, state)
            for f in facts
            if isinstance(f, Orthogonal)
            for state, update in self._updates.items()
            if all(_old(f, state, t) or _new(f, t) for t in update)
        ]

    def simpler(self, d: Definition) -> Definition:
        """Returns a definition with all rules applied, inner values first.

        Raises:
            Obstacle: a filter reads what is no name, before the first token too.
        """
        if any(isinstance(x, Fir) and not isinstance(x.arg, Ref) for x in walk(d.value)):
            raise Obstacle("a filter is applied to what has no name")
        value = rewrite(d.value, self._rule)
        timed = d.value.time is not Time.CONST
        return dataclasses.replace(d, value=of_each_token(value) if timed else value)

    def _rule(self, e: Expr) -> Expr | None:
        out: Expr | None = None
        with suppress(Obstacle):
            match e:
                case Prim(name=name, args=args, axis=None) if name in _BY_SIGN:
                    if all(arg.field is Field.REAL for arg in args):
                        out = _BY_SIGN[name](self._at_least_0, *args)
                case Mul() | Reduce(how=Reduction.SUM):
                    out = self._products(e)
        return None if out is None else of_all_axes(out, e.axes)

    # --- signs ------------------------------------------------------------------------------------

    def _at_least_0(self, e: Expr) -> bool:
        """Whether a value is known to be at least 0: a number, or one more than what is."""
        terms = terms_of(self._inline.of(e))
        known = [{}, *(f.terms for f in self._signs)]
        return any(_more(terms, other) for other in known)

    # --- products ---------------------------------------------------------------------------------

    def _products(self, e: Expr) -> Expr | None:
        whole = self._inline.of(e)
        terms = terms_of(whole)
        parts, made_of, changed = list[Terms](), [whole], not terms
        for product, c in terms.items():
            instead = self._instead(product)
            if instead is None:
                parts.append({product: c})
                continue
            changed = True
            value, more = instead
            parts.append(scaled(value, c))
            made_of += more
        return expression(plus(*parts), made_of) if changed else None

    def _instead(self, product: Factors) -> tuple[Terms, tuple[Expr, ...]] | None:
        """What a product is, and what that is made of; None where nothing is known."""
        for f in self._equal:
            rest = without(product, f.product)
            if rest is not None:
                return times({rest: Fraction(1)}, f.value), f.made_of
        for g, state in self._orthogonal:
            for item, read in _contracted(product, g, state):
                rest = product - {item}
                if without(rest, g.outside) is None:
                    continue
                if read.at != Now(0):
                    return {}, ()
                own = {t: c for t, c in self._updates[state].items() if not _old(g, state, t)}
                made_of = (*g.made_of, self._values[state])
                inner = times({g.later: Fraction(1)}, own)
                return times({rest: Fraction(1)}, _over(g.axes, inner, made_of)), made_of
        for item in product:
            whole, k = item
            inside = self._instead(whole.inside) if isinstance(whole, Summed) and k == 1 else None
            if isinstance(whole, Summed) and inside is not None:
                value, more = inside
                made_of = (*more, *parts_of(whole.inside))
                summed = _over(whole.axes, value, made_of)
                return times({product - {item}: Fraction(1)}, summed), made_of
        return None


def _over(axes: frozenset[Axis], terms: Terms, made_of: tuple[Expr, ...]) -> Terms:
    """Terms summed over axes."""
    value = expression(terms, made_of)
    for axis in sorted(axes):
        value = Reduce(Reduction.SUM, axis, of_all_axes(value, (axis,)))
    return terms_of(value)


def _more(terms: Terms, known: Terms) -> bool:
    """Whether terms are a positive multiple of others, and a number that is not negative."""
    shared = [f for f in known if f and f in terms]
    scale = terms[shared[0]] / known[shared[0]] if shared else Fraction(0)
    left = plus(terms, scaled(known, -scale))
    return scale >= 0 and left.keys() <= {NOTHING} and left.get(NOTHING, Fraction(0)) >= 0


def _old(f: Orthogonal, state: str, term: Factors) -> bool:
    """Whether a term of an update is one of the state, an axis that is summed left as it is."""
    for factor, k in term:
        match factor:
            case Ref(name=name, at=Now(lag)) if name == state and lag >= 1 and k == 1:
                if not axes_of(term - {(factor, k)}) & f.axes:
                    return True
    return False


def _new(f: Orthogonal, term: Factors) -> bool:
    """Whether a term of an update holds what is orthogonal to later tokens."""
    rest = without(term, f.earlier)
    return rest is not None and not axes_of(rest) & f.axes


def _contracted(
    product: Factors, f: Orthogonal, state: str
) -> Iterator[tuple[tuple[Expr | Summed, int], Ref]]:
    """The factors of a product that are a state summed with κ, and where they read the state."""
    for item in product:
        whole, k = item
        if not f.axes and k == 1 and _reads_state(whole, state):
            yield item, whole
        if isinstance(whole, Summed) and whole.axes == f.axes and k == 1:
            for factor, count in whole.inside - f.later:
                if count == 1 and _reads_state(factor, state):
                    if whole.inside == with_all(f.later, single(factor)):
                        yield item, factor


def _reads_state(factor: Expr | Summed, state: str) -> TypeGuard[Ref]:
    """Whether a factor is a state, now or earlier."""
    match factor:
        case Ref(name=name, at=Now(lag)):
            return name == state and lag >= 0
    return False


Known = Callable[[Expr], bool]
"""Says of a value whether it is known to be at least 0."""


def _abs(known: Known, x: Expr) -> Expr | None:
    if known(x):
        return x
    return neg(x) if known(neg(x)) else None


def _max(known: Known, x: Expr, y: Expr = ZERO) -> Expr | None:
    if known(sub(x, y)):
        return x
    return y if known(sub(y, x)) else None


def _min(known: Known, x: Expr, y: Expr) -> Expr | None:
    if known(sub(y, x)):
        return x
    return y if known(sub(x, y)) else None


_BY_SIGN: Mapping[str, Callable[..., Expr | None]] = {
    "abs": _abs,
    "relu": _max,
    "max": _max,
    "min": _min,
}
"""Functions that look at signs → what they are, where these are known."""
