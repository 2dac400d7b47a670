"""Definitions made simpler by what is assumed: at points at which it holds they are what they were.

Mixers are put together of parts that the rules look at, conditions are drawn of the same names, and
points are drawn such that conditions may hold: rows of one orthogonal matrix for several inputs.
"""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest

from dsfc.api.pipeline import read
from dsfc.claims.assuming import assumptions
from dsfc.mixer.resolve import resolve_claims
from dsfc.prover.refute import arrays, drawn
from dsfc.trusted.claim import Claim, Number, Somewhere, Witness
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.assumed import check_holds
from dsfc.trusted.rules.simplified import simplified
from dsfc.trusted.witness import execute_one

TEXT = """
mixer drawn {{ dims n, p
  input q, k, g : n;  v : p
  input b
  state S : n × p
  state z : n
  F = {decay} * S[i-1]
  z = {decay} * z[i-1] + {key}
  S = F + {written}
  y = {read} + (b + sum[n](g * q * k * z)) * v + sum[n](g * S)
  claim equivalent drawn when {condition}
}}
"""
DECAYS = ("b", "g", "(k · k)", "1", "b[i-1]")
KEYS = ("k", "b * k", "k * k", "q", "k[i-1]", "g * k", "(q · k) * k")
WRITTEN = (
    "k ⊗ (v - k · F)",
    "(b * k) ⊗ (v - k · F)",
    "k ⊗ v - q ⊗ (k · F)",
    "q ⊗ v - k ⊗ (q · F)",
    "(g * k) ⊗ (v - k · F)",
    "k ⊗ v + (k · z[i-1]) * k ⊗ v",
    "k ⊗ v + ones[n] ⊗ (k · S[i-1])",
    "k[i-1] ⊗ v - k ⊗ (k[i-1] · S[i-1])",
)
READ = (
    "q · S",
    "k · S",
    "k · S[i-1] + b * v",
    "(k * g) · S",
    "(k · S) * (k · z) + v",
    "max(k · z, b) * v",
    "relu(q · z) * v + k · S",
    "sum[j ≤ i](k · k[j] * v[j])",
    "b * (k · z[i-1]) * v + k[i-1] · S",
)
CONDITIONS = (
    "k · k[j] == 0 for j < i",
    "q · k[j] == 0 for j < i",
    "k · q[j] == 0 for j < i",
    "k * k[j] == 0 for j < i",
    "b * (k · k[j]) == 0 for j < i",
    "k · k[j-1] == 0 for j < i",
    "(g * k) · k[j] == 0 for j < i",
    "q · q[j] == 0 for j < i and k · k == 1",
    "k · k[j] == 0 for j < i and k · k == 1",
    "k · k[j] == 0 for j < i and k · z >= b",
    "k · k[j] == b for j < i",
    "k · S[j] == 0 for j < i",
    "k · z[j] == 0 for j <= i",
    "k · k[j] * b[j] == 0 for j < i",
    "q · (k * exp(g[j])) == 0 for j < i",
    "b == k · k",
    "q · z >= 0",
    "k · z <= b",
)


def _mixer(rng: random.Random) -> str:
    parts = {"decay": DECAYS, "key": KEYS, "written": WRITTEN, "read": READ}
    chosen = {name: rng.choice(values) for name, values in parts.items()}
    return TEXT.format(**chosen, condition=rng.choice(CONDITIONS))


def _claim(text: str, file: Path) -> Claim:
    file.write_text(text, encoding="utf-8")
    compilation = read(file).compilation("drawn")
    system = compilation.system
    (statement,) = resolve_claims(compilation.spec, compilation.name, compilation.library, {})
    sizes = (("n", 3), ("p", 1))
    return Claim(system, system, (), sizes, assumed=assumptions(statement.when))


def _points(claim: Claim, rng: random.Random) -> list[Somewhere]:
    out = []
    for _ in range(24):
        length = rng.choice((2, 3, 4))
        point = drawn(claim, arrays(claim), length, (0, 1, 1, 2, -1), rng)
        rows = _rows(rng)
        values = []
        for name, entries in point.values:
            shift = rng.choice((0, 0, 1, 2))
            size = len(entries) // length
            if size == 3 and rng.random() < 0.8:
                entries = tuple(x for t in range(length) for x in _row(rows, t, shift))
            values.append((name, entries))
        out.append(Somewhere(length, tuple(values)))
    return out


def _rows(rng: random.Random) -> list[list[Fraction]]:
    """Three orthonormal rows, and one of zeros."""
    v = [Fraction(rng.choice((0, 1, 2, -1))) for _ in range(3)]
    square = sum(x * x for x in v) or Fraction(1)
    rows = [[Fraction(i == j) - 2 * v[i] * v[j] / square for j in range(3)] for i in range(3)]
    return [*rows, [Fraction(0)] * 3]


def _row(rows: list[list[Fraction]], token: int, shift: int) -> tuple[Number, ...]:
    row = rows[token] if token == 3 else rows[(token + shift) % 3]
    return tuple((x.numerator, x.denominator, 0, 1) for x in row)


def _tried(seed: int, file: Path) -> tuple[bool, int]:
    """Whether a mixer became simpler, and at how many points what is assumed holds."""
    rng = random.Random(seed)
    claim = _claim(_mixer(rng), file)
    try:
        plain = simplified(claim)
    except Obstacle:
        return False, 0
    if plain.a == claim.a:
        return False, 0
    held = 0
    for point in _points(claim, rng):
        try:
            check_holds(claim, Witness(point.length, point.values, 0, ()))
        except Rejected:
            continue
        held += 1
        assert execute_one(claim, point, False) == execute_one(plain, point, False), seed
    return True, held


@pytest.mark.ci
@pytest.mark.parametrize("start", [0, pytest.param(1, marks=pytest.mark.full)])
def test_what_is_left_is_equal_where_it_is_assumed(start: int, tmp_path: Path) -> None:
    count = 20 if start == 0 else 3000
    tries = [_tried(10_000 * start + k, tmp_path / "drawn.dsf") for k in range(count)]
    assert sum(simpler for simpler, _ in tries) > count // 10
    assert sum(held > 0 for _, held in tries) > count // 20
