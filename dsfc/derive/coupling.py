"""The coupling of a drive to its decay: which function of λ the key holds as a factor.

    √(1 − λ²)      RG-LRU                     (λ − 1)/a     zero-order hold; 1 − λ = p·a with key p
    1 − λ          HGRN2, minimal GRU         (1 + λ)Δ/2    bilinear
    −log λ / a     Euler with exact decay: the factors of log λ that vary in time

Factors are compared after normalisation (`dsfc.expr.normal`), not as written:
(1 − a)(1 + a) under a root is 1 − a².
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

from dsfc.expr.build import ONE, add, mul, num, power, sub
from dsfc.expr.declarations import FlowRule
from dsfc.expr.normal import Factors, factors, normalise, push_renames
from dsfc.expr.polynomial import Polynomial, content, to_expr
from dsfc.expr.tree import Add, Expr, Prim, Time
from dsfc.system.ir import FREE, Coupling, CouplingKind, Decay, KeptFlow

_SPLIT_LIMIT = 6
"""Keys with more sums than this among their factors are compared factor by factor only."""


def coupling_of(key: Expr, decay: Decay | None, lefts: Iterable[Expr] = ()) -> Coupling:
    """Returns how the key of a drive depends on the decay.

    Args:
        key: the drive's key, its definitions inlined.
        decay: the diagonal decay of the same block, its definitions inlined; None when the
            transition has no diagonal.
        lefts: left vectors of the low-rank terms of the same factor, definitions inlined.

    Returns:
        The coupling. With kind EULER the key holds −log λ / scale, with ZOH (λ − 1) / scale, with
        BILINEAR (1 + λ) · scale / 2; the other kinds have no scale.
    """
    held = factors(key)
    if any(_same_up_to_number(held, factors(left)) for left in lefts):
        return Coupling(CouplingKind.LOW_RANK)
    if decay is None or normalise(decay.value).constant is not None:
        return FREE
    coupling = (
        _sqrt_one_minus_square(held, decay.value)
        or _bilinear(held, decay.value)
        or _one_minus(held, decay)
        or _euler(held, decay)
    )
    return coupling or FREE


def coupling_of_flow(flow: KeptFlow) -> Coupling:
    """Returns the coupling of a discretised flow: it is known from the rule, also with low rank.

    With a low-rank part the statement is about the whole transition: a bilinear step has
    B = (1 + Λ) Δ/2 · b as matrices.
    """
    match flow.rule:
        case FlowRule.ZOH:
            return Coupling(CouplingKind.ZOH, flow.diagonal)
        case FlowRule.EULER:
            return Coupling(CouplingKind.EULER, mul(num(-1), flow.diagonal))
        case FlowRule.BILINEAR:
            return Coupling(CouplingKind.BILINEAR, flow.step)


def _same_up_to_number(a: Factors, b: Factors) -> bool:
    return bool(a.powers) and a.powers == b.powers


def _covers(held: Factors, wanted: Factors) -> bool:
    """Whether each base of `wanted` stands in `held`, whole or as a product of several bases."""
    return bool(wanted.powers) and all(
        _holds(held, b, e) or (e == 1 and _is_product(b, held)) for b, e in wanted.powers
    )


def _is_product(base: Expr, held: Factors) -> bool:
    """Whether the base is a product of bases of `held`: (1 − a)(1 − b) written multiplied out."""
    sums = [b for b, e in held.powers if e >= 1 and isinstance(b, Add)]
    if not isinstance(base, Add) or len(sums) > _SPLIT_LIMIT:
        return False
    target = content(normalise(base))[2]
    return any(
        content(normalise(mul(*chosen)))[2] == target
        for count in range(2, len(sums) + 1)
        for chosen in combinations(sums, count)
    )


def _holds(held: Factors, base: Expr, exponent: Fraction) -> bool:
    have = held.exponent(base)
    return have * exponent > 0 and abs(have) >= abs(exponent)


def _sqrt_one_minus_square(held: Factors, value: Expr) -> Coupling | None:
    inside = sub(ONE, mul(value, value))
    wanted = factors(Prim("sqrt", (inside,), inside.field))
    return Coupling(CouplingKind.SQRT_ONE_MINUS_SQ) if _covers(held, wanted) else None


def _one_minus(held: Factors, decay: Decay) -> Coupling | None:
    """1 − λ whole, (λ − 1)/a with a below it, or the time-varying part of a product 1 − λ = p·a."""
    wanted = factors(sub(ONE, decay.value))
    if _covers(held, wanted):
        # Under zero-order hold log λ = Δ·a and the key is (λ − 1)/a.
        logarithm = _log_factors(decay)
        below = [(b, -e) for b, e in held.powers if e < 0 and logarithm.exponent(b) > 0]
        if not below:
            return Coupling(CouplingKind.ONE_MINUS)
        # a has the sign of log λ, so that the step Δ = log λ / a is positive.
        sign = Fraction(-1 if logarithm.coefficient < 0 else 1)
        return Coupling(CouplingKind.ZOH, Factors(sign, tuple(below)).expr())
    matched = [(b, e) for b, e in wanted.powers if _holds(held, b, e)]
    rest = [(b, e) for b, e in wanted.powers if (b, e) not in matched]
    if not matched or any(b.time is not Time.CONST for b, _ in rest):
        return None
    # key ∋ p with 1 − λ = c·p·a, that is p = (λ − 1) / (−c·a)
    return Coupling(CouplingKind.ZOH, Factors(-wanted.coefficient, tuple(rest)).expr())


def _bilinear(held: Factors, value: Expr) -> Coupling | None:
    """λ = (1 + Δa/2)/(1 − Δa/2): 1 + λ = 2/(1 − Δa/2), and the key holds Δ/(1 − Δa/2)."""
    pole = factors(_over_one_denominator(add(ONE, value)))
    below = [(b, e) for b, e in pole.powers if e < 0]
    if not below or not _covers(held, pole):
        return None
    steps = [factors(_without_constant(b)) for b, _ in below]
    common = tuple(
        (b, Fraction(1)) for b, e in held.powers if e > 0 and all(s.exponent(b) > 0 for s in steps)
    )
    return Coupling(CouplingKind.BILINEAR, Factors(Fraction(1), common).expr()) if common else None


def _without_constant(e: Expr) -> Expr:
    return to_expr(Polynomial(tuple(t for t in normalise(e).terms if t[0])))


def _over_one_denominator(e: Expr) -> Expr:
    """Σ terms as one fraction: each term's denominators are multiplied into the others."""
    parts = [factors(t) for t in (e.args if isinstance(e, Add) else (e,))]
    bottom: dict[Expr, Fraction] = {}
    for p in parts:
        for b, x in p.powers:
            if x < 0:
                bottom[b] = max(bottom.get(b, Fraction(0)), -x)
    denominator = mul(*(power(b, num(x)) for b, x in bottom.items()))
    numerators = []
    for p in parts:
        powers = dict(p.powers)
        for b, x in bottom.items():
            powers[b] = powers.get(b, Fraction(0)) + x
        numerators.append(Factors(p.coefficient, tuple(powers.items())).expr())
    return mul(add(*numerators), power(denominator, num(-1)))


def _log_factors(decay: Decay) -> Factors:
    """The logarithm of λ as a product; the complex logarithm where λ is written e^z."""
    value = push_renames(decay.value)
    if isinstance(value, Prim) and value.name == "exp":
        return factors(value.args[0])
    if decay.phase is None:
        return factors(decay.log)
    logarithm, phase = factors(decay.log), factors(decay.phase)
    shared = tuple((b, e) for b, e in logarithm.powers if phase.exponent(b) == e)
    return Factors(logarithm.coefficient, shared)


def _euler(held: Factors, decay: Decay) -> Coupling | None:
    """The time-varying factors of log λ = −Δ·a, all held by the key; what stays is −a."""
    if decay.value.time is Time.CONST:
        return None
    value = push_renames(decay.value)
    if decay.phase is not None and not (isinstance(value, Prim) and value.name == "exp"):
        return None
    logarithm = _log_factors(decay)
    varying = [(b, e) for b, e in logarithm.powers if b.time is not Time.CONST]
    if not varying or not all(_holds(held, b, e) for b, e in varying):
        return None
    rest = tuple(f for f in logarithm.powers if f not in varying)
    return Coupling(CouplingKind.EULER, Factors(-logarithm.coefficient, rest).expr())
