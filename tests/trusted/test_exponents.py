"""Exponentials of sums over the past: proofs of what is equal, and none of what is not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import AtSizes, Proved, ProvedWhereDefined, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Invariant
from dsfc.trusted.exponents import has_exponentials
from dsfc.trusted.rejected import Rejected


def system(body: str, dims: str = "n", declared: str = "input g, v") -> System:
    text = f"mixer m {{ dims {dims}\n  {declared}\n  {body}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


SUM = "state c\n  c = c[i-1] + g"
TWICE = "state c\n  c = c[i-1] + 2 * g"
STILL = "state c\n  c = c[i-1]"
PLAIN = "state S\n  S = exp(g) * S[i-1] + v\n  y = S"
PRODUCT = "state P\n  P = exp(g) * (P[i-1] + first)\n  y = P + v"
LOGS = f"{SUM}\n  y = sum[j ≤ i](exp({{}}) * v[j])"


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "a, b, found",
    [
        (PLAIN, LOGS.format("c - c[j]"), Proved),
        (PLAIN, LOGS.format("c[j] - c"), Refuted),
        (PLAIN, LOGS.format("c - c[j] + g[j]"), Refuted),
        (PLAIN, LOGS.format("c - c[j-1]"), Refuted),
        (PRODUCT, f"{SUM}\n  y = exp(c) + v", Proved),
        (PRODUCT, f"{SUM}\n  y = exp(c + g) + v", Refuted),
        (PRODUCT, f"{SUM}\n  y = exp(c) * exp(0) + v", Proved),
        (PRODUCT, f"{SUM}\n  y = 1 / exp(-c) + v", Proved),
        (f"{SUM}\n  y = exp(c) * exp(-c) + v", "y = 1 + v", Proved),
        (f"{SUM}\n  y = exp(2 * c) + v", f"{TWICE}\n  y = exp(c) + v", Proved),
        (f"{SUM}\n  y = exp(3 * c) + v", f"{TWICE}\n  y = exp(c) + v", Refuted),
        (f"{SUM}\n  y = exp(c)^2 + v", f"{SUM}\n  y = exp(2 * c) + v", Proved),
        (f"{STILL}\n  y = exp(c) + v", "y = 1 + v", Proved),
        (f"{STILL}\n  y = exp(c + g) + v", "y = exp(g) + v", Proved),
        (f"{STILL}\n  y = exp(c) + v", "y = v", Refuted),
        # What does not only add up has no law: a decay, or a factor of the token.
        ("state c\n  c = c[i-1] / 2 + g\n  y = exp(c) + v",
         "state c\n  c = c[i-1] / 2 + g\n  y = exp(c / 2)^2 + v", Unknown),
        (f"{SUM}\n  y = exp(g * c) + v", f"{SUM}\n  y = exp(c)^g + v", Unknown),
    ],
)  # fmt: skip
def test_pairs_of_scans_in_log_space(a: str, b: str, found: type) -> None:
    verdict = equivalent(system(a), system(b))
    assert type(verdict) is found, verdict
    if not isinstance(verdict, Unknown):
        check(write(verdict.certificate))


def test_an_axis_of_exponentials_is_not_lifted() -> None:
    declared = "input g, v : n"
    a, b = (system(body, declared=declared) for body in (
        "state S : n\n  S = exp(g) * S[i-1] + v\n  y = S",
        "state c : n\n  c = c[i-1] + g\n  y = sum[j ≤ i](exp(c - c[j]) * v[j])",
    ))  # fmt: skip
    assert isinstance(equivalent(a, b), AtSizes)


def test_a_complex_sum_has_none() -> None:
    declared = "input g, v\n  param a complex"
    body = "state c complex\n  c = c[i-1] + a * g\n  y = Re(exp({})) + v"
    found = equivalent(*(system(body.format(x), declared=declared) for x in ("c", "c + 0 * g")))
    assert isinstance(found, Proved | ProvedWhereDefined | Unknown)
    found = equivalent(*(system(body.format(x), declared=declared) for x in ("c", "-c")))
    assert isinstance(found, Refuted | Unknown)


def test_what_is_kept_starts_at_0() -> None:
    """A row that holds of e^c from some token on does not hold at the first."""
    proved = equivalent(system(PRODUCT), system(f"{SUM}\n  y = exp(c) + v"))
    assert isinstance(proved, Proved) and isinstance(proved.certificate.proof, Invariant)
    rows = proved.certificate.proof.rows
    assert any("exp+" in cell for row in rows for cells, _ in row.terms for cell in cells)
    for k, row in enumerate(rows):
        for j, (cells, coefficient) in enumerate(row.terms):
            changed = tuple((m, c + 1) for m, c in coefficient)
            terms = (*row.terms[:j], (cells, changed), *row.terms[j + 1 :])
            other = (*rows[:k], dataclasses.replace(row, terms=terms), *rows[k + 1 :])
            proof = dataclasses.replace(proved.certificate.proof, rows=other)
            with pytest.raises(Rejected):
                check(write(Certificate(proved.certificate.claim, proof)))


def test_other_systems_keep_nothing() -> None:
    assert not has_exponentials(system(PLAIN))
    assert has_exponentials(system(f"{SUM}\n  y = exp(c) + v"))
