"""A claim written out: state entries, their update and the outputs, as quotients.

Both systems run side by side on generators. Inputs are free generators of their token, parameters
of none; token-wise definitions are expanded into them. What is read before the first token is 0,
as the language says, so the first tokens are written out apart from the steady step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.check_proof.claim import Claim
from dsfc.check_proof.comparable import comparable, side_names
from dsfc.check_proof.conditions import Conditions
from dsfc.check_proof.entries import Obstacle
from dsfc.check_proof.polynomial import Quotient
from dsfc.check_proof.side import Side
from dsfc.check_proof.symbols import Call, Symbols, lags, shifted


@dataclass(frozen=True, slots=True)
class Moment:
    """The update and the outputs at one token.

    Attributes:
        step: entry of a state → its value after the token, of state entries before it.
        outputs: pairs (a's, b's) that must be equal: the outputs, and the arguments of what is
            not rational in states, of state entries before the token.
    """

    step: Mapping[str, Quotient]
    outputs: tuple[tuple[Quotient, Quotient], ...]


@dataclass(frozen=True, slots=True)
class Statement:
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


def state(claim: Claim, entries: bool) -> Statement:
    """Returns a claim written out.

    Args:
        claim: which systems.
        entries: whether linear maps of tokens are written out in the entries of their matrices.

    Raises:
        Obstacle: a construct that has no rule.
        ValueError: a system is malformed, or the two cannot be put side by side.
    """
    comparable(claim)
    symbols = Symbols()
    steady = written(claim, symbols, entries, None)
    read: set[int] = set()
    for q in (*steady.step.values(), *(q for pair in steady.outputs for q in pair)):
        read |= lags(q.names)
    conditions = Conditions(claim.conditions)
    window = max(1, conditions.window, *read)
    first = tuple(written(claim, symbols, entries, token) for token in range(window))
    conditions.check(symbols, side_names(claim))
    known = conditions.values(window)
    steady = Moment(
        {name: q.substituted(known) for name, q in steady.step.items()},
        tuple((a.substituted(known), b.substituted(known)) for a, b in steady.outputs),
    )
    return Statement(first, steady, symbols, conditions)


def agree(claim: Claim, tokens: int) -> bool:
    """Returns whether the outputs at the first tokens are equal as quotients.

    Raises:
        Obstacle, ValueError, ZeroDivisionError: the claim cannot be written out.
    """
    comparable(claim)
    symbols = Symbols()
    values: dict[str, Quotient] = {}
    for token in range(tokens):
        moment = written(claim, symbols, False, token)
        earlier = {name: q.renamed(_older) for name, q in values.items()}
        if any((a - b).substituted(earlier) for a, b in moment.outputs):
            return False
        values = {name: q.substituted(earlier) for name, q in moment.step.items()}
    return True


def _older(name: str) -> str:
    return shifted(name, 1)


def written(claim: Claim, symbols: Symbols, entries: bool, token: int | None) -> Moment:
    """Returns one token written out, of generators of `symbols`.

    Args:
        claim: which systems.
        symbols: where generators come from.
        entries: whether linear maps of tokens are written out in the entries of their matrices.
        token: which of the first tokens; None for all that follow.
    """
    step: dict[str, Quotient] = {}
    outputs: list[list[Quotient]] = []
    calls: list[list[Call]] = []
    for second in (False, True):
        with symbols.recorded() as called:
            side = Side(claim, second, symbols, entries, token)
            outputs.append(side.outputs())
            step |= side.step()
        calls.append(called)
    pairs = list(zip(*outputs, strict=True))
    if [c.head for c in calls[0]] != [c.head for c in calls[1]]:
        heads = (", ".join(dict.fromkeys(c.head for c in called)) or "none" for called in calls)
        raise Obstacle(
            "values of states go through different functions: " + " against ".join(heads)
        )
    for left, right in zip(*calls, strict=True):
        pairs += zip(left.args, right.args, strict=True)
    return Moment(step, tuple(pairs))
