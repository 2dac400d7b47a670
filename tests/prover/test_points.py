"""Points where conditions hold: held against float arithmetic of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import exp, log

import pytest

from dsfc.prover.closure import close
from dsfc.prover.conditions import candidates
from dsfc.prover.points import families, with_points
from dsfc.prover.sizes import chosen
from dsfc.trusted.claim import Claim, Exact, Invariant, Point
from dsfc.trusted.statement import state


def number(value: Exact) -> float:
    p, q, r, s, k = value
    return p / q * log(r / s) ** k


def entries(point: Point, name: str) -> list[float]:
    return [number(v) for v in dict(point.values)[name]]


@pytest.fixture
def claim(system: Callable) -> Claim:
    a, b = system("normalised", "normalised"), system("normalised", "euler_gate")
    bare = Claim(a, b, (), chosen(a, b, 2), free=True)
    return dataclasses.replace(bare, conditions=next(candidates(bare)))


def test_all_conditions_hold_at_the_first_and_all_but_some_at_the_others(claim: Claim) -> None:
    """Δ η = 1 at every token, exp(a Δ) η[i-1] = η after the first; two heads."""
    found = with_points(claim, Invariant(close(state(claim, False)), False))
    kinds = [claim.conditions[f[0]].solved.partition("[")[0] for f in families(claim)]
    assert sorted(kinds) == ["Delta", "exp(Delta"]
    assert {n.without for n in found.needed} == set(families(claim))
    for point, left_out in [(found.holds, None), *((n.point, n.without) for n in found.needed)]:
        eta, step, a = (entries(point, name) for name in ("eta", "Delta", "a"))
        broken = set()
        for t in range(point.length):
            for h in range(2):
                now = 2 * t + h
                if abs(step[now] * eta[now] - 1) > 1e-12:
                    broken.add("Delta")
                if t and abs(exp(a[h] * step[now]) * eta[now - 2] - eta[now]) > 1e-12:
                    broken.add("exp(Delta")
        allowed = (
            set() if left_out is None else {claim.conditions[left_out[0]].solved.partition("[")[0]}
        )
        assert broken == allowed


def test_there_is_no_point_where_ranges_exclude_the_conditions(system: Callable) -> None:
    """exp(a Δ) = 1 has no positive a and Δ."""
    a, b = system("normalised", "normalised"), system("normalised", "exp_decay_alone")
    bare = Claim(a, b, (), chosen(a, b, 2), free=True)
    for conditions in candidates(bare):
        claim = dataclasses.replace(bare, conditions=conditions)
        assert with_points(claim, Invariant((), False)) is None
