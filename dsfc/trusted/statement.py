"""A claim written out: state entries, their update and the outputs, as quotients.

Both systems run side by side on generators. Inputs are free generators of their token, parameters
of none; token-wise definitions are expanded into them. What is read before the first token is 0,
as the language says, so the first tokens are written out apart from the steady step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import comparable, never_zero_arrays, side_names
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.defined import Defined
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import LEAF
from dsfc.trusted.laws import (
    EQUAL,
    Law,
    check_divisors,
    check_names,
    check_positive,
    check_signs,
    never_negative,
    related,
)
from dsfc.trusted.one_token_semantics import NO_VALUES, OneTokenSemantics
from dsfc.trusted.polynomial import Quotient
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.roots import NO_ROOTS, Roots
from dsfc.trusted.substitute_parameters import substitute_parameters
from dsfc.trusted.symbols import Call, Related, Symbols


@dataclass(frozen=True, slots=True)
class Moment:
    """The update and the outputs at one token.

    Attributes:
        step: entry of a state → its value after the token, of state entries before it.
        outputs: pairs (a's, b's) that must be equal: the outputs, and the arguments of what is
            not rational in states, of state entries before the token, which before the first one
            are 0, written or not.
        heads: these functions, in the order of their calls.
    """

    step: Mapping[str, Quotient]
    outputs: tuple[tuple[Quotient, Quotient], ...]
    heads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """A claim written out.

    Attributes:
        first: tokens 0 … w − 1; w is at least 1 and no token from w on reads before token 0, nor
            does any condition that is used there.
        steady: every token from w on.
        symbols: what the generators stand for.
        conditions: what is assumed.
    """

    first: tuple[Moment, ...]
    steady: Moment
    symbols: Symbols
    conditions: Conditions

    @property
    def window(self) -> int:
        """How many tokens back from a token the steady step reads, at least 1."""
        return len(self.first)

    @property
    def roots(self) -> Roots:
        """Generators of which a power is known; under conditions all are taken for free."""
        return NO_ROOTS if self.conditions.polynomials else self.symbols.roots


def state(claim: Claim, entries: bool, laws: tuple[Law, ...] = ()) -> WrittenClaim:
    """Returns a claim written out.

    Args:
        claim: which systems.
        entries: whether linear maps of tokens are written out in the entries of their matrices.
        laws: how the second system's calls of functions of states are related to the first's.

    Raises:
        Obstacle: a construct that has no rule.
        ValueError: a system is malformed, or the two cannot be put side by side.
        Rejected: a law does not hold.
    """
    comparable(claim)
    symbols = Symbols()
    steady = written(claim, symbols, entries, None)
    if laws:
        # Only what the systems speak of may stand in a law, so they are written out before.
        check_names(symbols, laws, frozenset(steady.step))
        steady = written(claim, symbols, entries, None, laws)
    conditions = Conditions(claim.conditions)
    values = substitute_parameters(claim, conditions, symbols)
    assumed = conditions if claim.case and claim.equal else None
    if assumed is not None:
        steady = written(claim, symbols, entries, None, laws, values, assumed)
    window = max(1, conditions.window, symbols.reach)
    first = tuple(
        written(claim, symbols, entries, token, laws, values, assumed) for token in range(window)
    )
    if any(not now.step.keys() <= then.step.keys() for then, now in pairwise((*first, steady))):
        raise Obstacle("what is kept of an exponential is not kept at a token before")
    check_positive(symbols, [m.step for m in (*first, steady)], symbols.divisors)
    check_divisors(symbols, [m.step for m in (*first, steady)], bool(claim.conditions))
    if laws:
        kept = never_negative(symbols, (moment.step for moment in (*first, steady)))
        if len(laws) > len(steady.heads):
            raise Rejected("there are more laws than calls")
        for moment in (*first, steady):
            check_signs(symbols, laws, moment.heads, kept)
    conditions.check(symbols, side_names(claim))
    known = conditions.values(window)
    steady = Moment(
        {name: q.substituted(known) for name, q in steady.step.items()},
        tuple((a.substituted(known), b.substituted(known)) for a, b in steady.outputs),
        steady.heads,
    )
    return WrittenClaim(first, steady, symbols, conditions)


def written(
    claim: Claim,
    symbols: Symbols,
    entries: bool,
    token: int | None,
    laws: tuple[Law, ...] = (),
    substituted: Mapping[str, Quotient] = NO_VALUES,
    assumed: Conditions | None = None,
) -> Moment:
    """Returns one token written out, of generators of `symbols`.

    Args:
        claim: which systems.
        symbols: where generators come from.
        entries: whether linear maps of tokens are written out in the entries of their matrices.
        token: which of the first tokens; None for all that follow.
        laws: how calls are related, see `state`.
        substituted: entry of a parameter of b → the value that is put in its place, see `put_in`.
        assumed: conditions under which b must have a value wherever a has, if it must at all.

    Raises:
        Obstacle: b may have none.
    """
    defined = None
    if assumed is not None:
        values = assumed.values(max(assumed.window, symbols.reach) if token is None else token)
        defined = Defined(symbols, never_zero_arrays(claim), values)
    a, b = both_systems(claim, symbols, entries, token, laws, bool(laws), substituted, defined)
    pairs = list(zip(a.outputs, b.outputs, strict=True))
    for k, (left, right) in enumerate(zip(a.calls, b.calls, strict=True)):
        pairs += related(laws[k] if k < len(laws) else EQUAL, (left, right))
    return Moment({**a.step, **b.step}, tuple(pairs), tuple(c.head for c in a.calls))


@dataclass(frozen=True, slots=True)
class Written:
    """One system at one token.

    Attributes:
        step: entry of a state → its value after the token.
        outputs: the entries of the output.
        calls: functions of states that are not rational, as often as their arguments differ.
    """

    step: Mapping[str, Quotient]
    outputs: tuple[Quotient, ...]
    calls: tuple[Call, ...]


def both_systems(
    claim: Claim,
    symbols: Symbols,
    entries: bool,
    token: int | None,
    laws: tuple[Law, ...] = (),
    held: bool = False,
    substituted: Mapping[str, Quotient] = NO_VALUES,
    defined: Defined | None = None,
) -> tuple[Written, Written]:
    """Returns both systems at one token; see `written`.

    With `held`, states before the first token are generators too, of which the value is 0.

    Raises:
        Obstacle: they do not call the same functions of states in the same order.
    """
    written_out = []
    named = (g for c in claim.conditions if claim.case for m, _ in c.polynomial for g, _ in m)
    expanded = frozenset(entry[1] for g in named if (entry := LEAF.match(g)))
    for second in (False, True):
        with symbols.recorded(_values(symbols, laws) if second else None) as called:
            values = substituted if second else NO_VALUES
            side = OneTokenSemantics(
                claim, second, symbols, entries, token, held, values, defined, expanded
            )
            outputs = tuple(side.outputs())
            step = side.step()
        written_out.append(Written(step, outputs, tuple(called)))
    a, b = written_out
    if [c.head for c in a.calls] != [c.head for c in b.calls]:
        named = (", ".join(dict.fromkeys(c.head for c in w.calls)) or "none" for w in written_out)
        raise Obstacle(
            "values of states go through different functions: " + " against ".join(named)
        )
    return a, b


def _values(symbols: Symbols, laws: tuple[Law, ...]) -> Related:
    def related_by(law: Law) -> Callable[[str, Quotient], Quotient]:
        return lambda head, value: law.value(symbols, head, value)

    return {k: related_by(law) for k, law in enumerate(laws)}
