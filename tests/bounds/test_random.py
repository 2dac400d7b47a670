"""No point of a domain is farther apart than the bound: of named pairs, and of mutated mixers."""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction

import pytest

from dsfc.bounds.chain import Chain, check
from dsfc.bounds.decide import question_of
from dsfc.bounds.domain import Domain, Limits
from dsfc.bounds.pair import Question
from dsfc.bounds.search import search
from dsfc.bounds.witness import Draws, observe
from dsfc.expr.build import mul, rewrite, walk
from dsfc.expr.tree import Expr, Num, Pow
from dsfc.system.ir import System
from dsfc.trusted.balls import NotDefined
from dsfc.trusted.claim import Witness
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.legal import kept
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.witness import arrays, constants_of

QKV = "abs(q) <= 1, abs(k) <= 1, abs(v) <= 1"
ONE = {"d": 2, "h": 1}
NAMED = {
    "window": ("decay", "windowed", QKV, ONE, 12, 10),
    "near decays": ("decay", "decay_near", QKV, ONE, 24, 10),
    "near decays of states": ("decay_state", "decay_near", QKV, ONE, 24, 10),
    "near gates": ("gated", "gated_near", f"{QKV}, abs(u) <= 1, abs(w) <= 1", ONE, 24, 10),
    "near gates, bounded length": ("gated", "gated_near", f"{QKV}, L <= 4", ONE, 4, 10),
    "start": ("average", "average_started", "abs(u) <= 2, λ <= 0.9, abs(s) <= 1", {"d": 2}, 6, 10),
    "factor": ("average", "average_near", "abs(u) <= 2, λ <= 0.9", {"d": 2}, 12, 40),
    "taps": ("recurrent", "taps", "abs(u) <= 1", {"d": 1}, 16, 10),
    "floor": ("root_mean_6", "root_mean_5", "abs(u) <= 1, m >= 0.25", {"d": 2}, 1, 10),
    "added floor": ("linear", "linear_added", QKV, ONE, 3, 10),
    "Taylor": ("softmax", "taylor_softmax", QKV.replace("k) <= 1", "k) <= 0.5"), ONE, 3, 10),
}  # fmt: skip
"""Name → two mixers, domain, sizes, tokens, and how far the bound may be above what is seen."""


@pytest.mark.ci
@pytest.mark.share(1, ci=12)
@pytest.mark.parametrize("name", NAMED)
def test_the_worst_point_seen_is_near_the_bound_and_never_above(ask, name: str) -> None:
    a, b, domain, sizes, tokens, factor = NAMED[name]
    question = ask(a, b, domain, **sizes)
    chain = search(question)
    assert isinstance(chain, Chain), chain
    check(chain)
    seen = observe(Draws(question, 7), tokens, 30, 90)
    assert seen.points
    assert seen.worst <= float(chain.bound) * (1 + 1e-9)
    assert float(chain.bound) <= factor * seen.worst


MUTATED = (
    "decay_state gated average recurrent root_mean_5 linear unit_length_6 taps decay linear_attn "
    "retnet softmax rg_lru mega_ema hgrn s6 gla deltanet gated_deltanet mlstm rwkv4 rwkv6 "
    "rwkv5 lru s4d dlr_real qlstm gsa ssd mamba2_pseudo_lti short_convolution lnssm"
).split()
"""Mixers that random mutations are compared with."""


def mutated(system: System, rng: random.Random) -> System:
    """A mixer with some numbers of its definitions moved a little: only its definitions change."""
    moved = {
        e: Num(e.value * (1 + Fraction(rng.randrange(-40, 41), 400)))
        for d in system.definition
        for e in walk(d.value)
        if isinstance(e, Num) and e.value not in (0, -1)
    }
    exponents = {e.exponent for d in system.definition for e in walk(d.value) if isinstance(e, Pow)}

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Num) and e in moved and e not in exponents:
            return moved[e]
        return None

    scaled = rng.choice([d.name for d in system.definition])
    factor = Num(1 + Fraction(rng.randrange(-20, 6), 100))
    definitions = []
    for d in system.definition:
        value = rewrite(d.value, change)
        if d.name == scaled and value.axes == frozenset(d.axes):
            value = mul(factor, value)
        definitions.append(dataclasses.replace(d, value=value))
    return dataclasses.replace(system, definition=tuple(definitions))


def worst(question: Question, draws: Draws, point: Witness) -> Fraction:
    """The largest difference of two outputs at a point, from below: the definitions executed."""
    outputs = []
    for second in (False, True):
        side = draws.pair.side(second)
        constants = constants_of(draws.claim, side.system, dict(side.called))
        given = arrays(draws.claim, side.system, dict(side.called), point.length,
                       dict(point.values), constants)  # fmt: skip
        outputs.append(Execution(side.system, draws.sizes, point.length, given).output())
    out = Fraction(0)
    for x, y in zip(*outputs, strict=True):
        for a, b in zip(x, y, strict=True):
            d = a - b
            for part in (d.re, d.im):
                out = max(out, part.low, -part.high)
    return out


def compared(system: System, seed: int, tokens: int = 3) -> bool:
    """Compares a mixer with a mutation of it; returns whether there is a bound."""
    rng = random.Random(seed)
    other = mutated(system, rng)
    size = rng.choice((Fraction(1, 4), Fraction(1), Fraction(2)))
    names = [t.name for t in (*system.inputs, *system.params)]
    limits = tuple(Limits(name, None, size, "", True) for name in names)
    sizes = kept(system, other, {}, 2)
    question = question_of(system, other, Fraction(0), Domain(limits, 1, tokens), (), sizes)
    chain = search(question)
    if not isinstance(chain, Chain):
        return False
    draws = Draws(question, seed)
    for _ in range(6):
        point = draws.point(rng.randrange(1, tokens + 1))
        assert point is not None
        try:
            assert worst(question, draws, point) <= chain.bound
        except (NotDefined, Rejected, Obstacle):
            continue
    return True


@pytest.mark.share(33)
@pytest.mark.parametrize("name", MUTATED)
def test_a_mutation_is_never_farther_away_than_its_bound(system, name: str) -> None:
    for seed in range(4):
        compared(system(name), seed)


@pytest.mark.full
def test_most_mutations_have_a_bound(system) -> None:
    bounded = [any(compared(system(name), seed) for seed in range(2)) for name in MUTATED]
    assert sum(bounded) >= len(MUTATED) // 2
