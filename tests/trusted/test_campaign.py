"""10,000 corrupted certificates, and forgeries from near misses: nothing false is accepted.

A corruption of a row is one number, name or exponent of a row of two columns or more, or its pivot
put out of it: a row that is only scaled, or read by another of its columns, would still be a proof.
A corruption of a claim is one leaf of its systems, names or sizes. That may leave the claim true (a
doc string, a hint for the compiler), so what is accepted is computed in float64, both sides.

Certificates of equality under conditions are corrupted in the same way, and in their conditions and
points. What is accepted is computed at points where all conditions hold.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dsfc.expr.declarations import Constraint, Tensor
from dsfc.expr.tree import Field
from dsfc.prover.closure import _Closure
from dsfc.prover.points import NUMBERS, _arrays, _Draw
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import System
from dsfc.trusted.check import check, read, write
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Conditional,
    Invariant,
    MarkovParameters,
    Point,
)
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generalize_inputs import common_names, system_of
from dsfc.trusted.invariant import _joined, _read
from dsfc.trusted.polynomial import Quotient, TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.point import Evaluated
from dsfc.trusted.statement import WrittenClaim, state
from dsfc.trusted.witness import stored_axes

LABELS = tomllib.loads(
    (Path(__file__).parent.parent / "prover" / "labels.toml").read_text(encoding="utf-8")
)
EQUAL = [(f, a, b) for f in ("attention", "gates", "linear") for a, b, _ in LABELS[f]["equal"]]
DIFFERENT = [
    (f, a, b) for f in ("attention", "gates", "linear") for a, b, _ in LABELS[f]["different"]
]
CORRUPTED = 10_000
EACH = -(-CORRUPTED // len(EQUAL))

Path_ = tuple[str | int, ...]


def leaves(value: Any, at: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*at, key))
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from leaves(inner, (*at, k))
    else:
        yield at, value


def put(document: Any, at: Path_, value: Any) -> None:
    for step in at[:-1]:
        document = document[step]
    document[at[-1]] = value


def other(leaf: Any, pool: list[Any], rng: random.Random) -> Any:
    """Another value of the kind of a leaf."""
    if type(leaf) is bool:
        return not leaf
    if type(leaf) is int:
        return rng.choice((leaf + 1, leaf - 1, -leaf, 7 * leaf, 0, 2))
    if leaf is None:
        return rng.choice((0, "n", True))
    return rng.choice(pool)


def part(document: Any, at: Path_) -> Any:
    for step in at:
        document = document[step]
    return document


def corrupted_rows(
    document: Any, count: int, rng: random.Random, base: Path_ = ("value", "proof", "rows")
) -> Iterator[Any]:
    """One leaf of one row changed."""
    stored = part(document, base)
    rows = [k for k, r in enumerate(stored) if len(r["terms"]) > 1]
    every = [(k, at, leaf) for k in rows for at, leaf in leaves(stored[k]["terms"])]
    names = sorted({leaf for _, _, leaf in every if isinstance(leaf, str)})
    for _ in range(count if every else 0):
        bad = json.loads(json.dumps(document))
        k, at, leaf = rng.choice(every)
        if rng.random() < 0.1:
            put(bad, (*base, k, "pivot"), rng.choice(([], ["$A.nothing[0]"], ["q[0]@0"])))
        else:
            new = leaf
            while new == leaf:
                new = other(leaf, [*names, "$A.nothing[0]", "i"], rng)
            put(bad, (*base, k, "terms", *at), new)
        yield bad


def corrupted_at(document: Any, base: Path_, count: int, rng: random.Random) -> Iterator[Any]:
    """One leaf of a part changed."""
    every = list(leaves(part(document, base)))
    names = sorted({leaf for _, leaf in every if isinstance(leaf, str)})
    for _ in range(count if every else 0):
        bad = json.loads(json.dumps(document))
        at, leaf = rng.choice(every)
        new = leaf
        while new == leaf:
            new = other(leaf, [*names, "$A.nothing[0]"], rng)
        put(bad, (*base, *at), new)
        yield bad


def corrupted_claims(document: Any, count: int, rng: random.Random) -> Iterator[Any]:
    """One leaf of the claim, its expressions or its axes changed."""
    parts = {k: document[k] for k in ("axes", "nodes")} | {"value": document["value"]["claim"]}
    every = [(("value", "claim", *at[1:]) if at[0] == "value" else at, leaf)
             for at, leaf in leaves(parts)]  # fmt: skip
    names = sorted({leaf for _, leaf in every if isinstance(leaf, str)})
    for _ in range(count):
        bad = json.loads(json.dumps(document))
        at, leaf = rng.choice(every)
        new = leaf
        while new == leaf:
            new = other(leaf, names, rng)
        put(bad, at, new)
        yield bad


def accepted(document: Any) -> Claim | None:
    try:
        return check(json.dumps(document)).claim
    except Rejected:
        return None


def value(system: System, claim: Claim, second: bool, seed: int) -> np.ndarray:
    """The output on numbers that belong to the common names."""
    names = dict(claim.names) if second else {}
    size = dict(claim.sizes)
    drawn: dict[str, np.ndarray] = {}
    inputs = {t.name for t in system.inputs}
    for t in (*system.inputs, *system.params, *system.buffers):
        same = names.get(t.name, t.name)
        rng = np.random.default_rng([seed, *same.encode()])
        shape = [5] * (t.name in inputs) + [size[a.name] for a in stored_axes(t)]
        number = rng.uniform(0.2, 0.9, shape)
        if (t.field if isinstance(t, Tensor) else t.map.field) is Field.COMPLEX:
            number = number + 1j * rng.uniform(0.2, 0.9, shape)
        elif isinstance(t, Tensor) and same not in narrowed(claim):
            number = number * rng.choice((-1, 1), shape)
        drawn[t.name] = number
    given = {n: drawn[n] for n in inputs}
    params = {n: x for n, x in drawn.items() if n not in inputs}
    with np.errstate(all="ignore"):
        out = evaluate(system, given, params, size).outputs[system.outputs[0].name]
    return np.asarray(out).reshape(5, -1)


def narrowed(claim: Claim) -> set[str]:
    """Common names of tensors with a declared constraint on either side: both get one number."""
    names = dict(claim.names)
    every = ((names.get(t.name, t.name) if system is claim.b else t.name, t)
             for system in (claim.a, claim.b)
             for t in (*system.inputs, *system.params, *system.buffers))  # fmt: skip
    return {
        name for name, t in every if isinstance(t, Tensor) and t.constraint is not Constraint.NONE
    }


def true(claim: Claim) -> bool:
    """Whether both sides of a claim are equal on numbers."""
    for seed in range(3):
        a, b = (value(s, claim, k, seed) for k, s in enumerate((claim.a, claim.b)))
        if not np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True):
            return False
    return True


SHARE = {EQUAL[1], EQUAL[24], EQUAL[40]}


@pytest.mark.parametrize(
    "pair", [pytest.param(p, marks=pytest.mark.ci if p in SHARE else pytest.mark.full)
             for p in EQUAL], ids="-".join
)  # fmt: skip
def test_corrupted(certificate: Callable, pair, tier: str) -> None:
    document = json.loads(write(certificate(*pair)))
    rng = random.Random("-".join(pair))
    count = EACH if tier == "full" else 40
    # Without states, or with one definition up to names, there are no rows: all is of the claim.
    stored = "rows" in document["value"]["proof"]
    rows = list(corrupted_rows(document, count // 2, rng)) if stored else []
    assert not any(accepted(bad) for bad in rows)
    counts: Counter[str] = Counter()
    for bad in corrupted_claims(document, count - len(rows), rng):
        claim = accepted(bad)
        counts["rejected" if claim is None else "accepted and true"] += 1
        assert claim is None or not claim.equal or true(claim)
    print("-".join(pair), len(rows), "rows", dict(counts))
    assert counts.total() + len(rows) == count
    assert counts["rejected"] >= 0.3 * counts.total()


@pytest.mark.ci
def test_corrupted_with_markov_parameters(system: Callable, tier: str) -> None:
    """Nothing is stored but their number, so it is the claim that is changed."""
    one, other = system("dense", "rotation_block"), system("dense", "rotation_mode")
    made = Certificate(Claim(one, other, (), ()), MarkovParameters(4, False))
    count = 1_000 if tier == "full" else 60
    found = [accepted(bad) for bad in corrupted_claims(json.loads(write(made)), count,
                                                       random.Random(9))]  # fmt: skip
    assert all(true(claim) for claim in found if claim is not None)
    assert sum(claim is None for claim in found) >= 0.3 * count


@pytest.mark.parametrize(
    "file, a, b", [pytest.param(*p, marks=pytest.mark.ci if k % 12 == 0 else pytest.mark.full)
                   for k, p in enumerate(DIFFERENT)]
)  # fmt: skip
def test_forged(certificate: Callable, system: Callable, file: str, a: str, b: str) -> None:
    """A false claim with the rows of true pairs of these mixers, and with the prover's own."""
    refuted = certificate(file, a, b)
    proofs = [certificate(*p).proof for p in EQUAL if p[0] == file and {a, b} & set(p[1:])]
    claim = replace(refuted.claim, equal=True)
    for sizes in (claim.sizes, tuple((n, 2) for n, _ in claim.sizes)):
        false = replace(claim, sizes=sizes)
        for proof in (*proofs, own_rows(false)):
            with pytest.raises(Rejected):
                check(write(Certificate(false, proof)))


def own_rows(claim: Claim) -> Invariant:
    """What the search has when it finds that there is no proof."""
    try:
        closure = _Closure(state(claim, False))
        closure.run()
    except (Obstacle, TooLarge, ValueError, ZeroDivisionError):
        return Invariant((), False)
    return Invariant(tuple(closure._stored(p, r) for p, r in closure.rows), False)


# --- under conditions -----------------------------------------------------------------------------

CONDITIONAL = [(f, a, b) for f, t in LABELS.items() for a, b, _ in t.get("conditional", ())]
SLOTS = [("lattice", a, b) for a, b, *_ in LABELS["lattice"]["slots"]]
CONDITIONS_EACH = 72
SHARE_UNDER = {("normalised", "normalised", "euler_gate"), ("parameters", "mode", "mode_shifted")}


def floats(claim: Claim, it: Evaluated, second: bool) -> np.ndarray:
    """The output of one side at a point, in float64: token, entry."""
    system, names = system_of(claim, second), common_names(claim, second)
    size, inputs = dict(claim.sizes), {t.name for t in system.inputs}
    drawn: dict[str, np.ndarray] = {}
    for t in (*system.inputs, *system.params, *system.buffers):
        entries = it.stored[names.get(t.name, t.name)]
        shape = [it.point.length] * (t.name in inputs) + [size[a.name] for a in stored_axes(t)]
        numbers = [p / q * (log(r / s) ** k if k else 1) for p, q, r, s, k in entries]
        drawn[t.name] = np.array(numbers, dtype=np.float64).reshape(shape)
    given = {n: drawn[n] for n in inputs}
    params = {n: x for n, x in drawn.items() if n not in inputs}
    with np.errstate(all="ignore"):
        out = evaluate(system, given, params, size).outputs[system.outputs[0].name]
    return np.asarray(out).reshape(it.point.length, -1)


def drawn(claim: Claim, statement: WrittenClaim, draw: int) -> Point:
    """A point at which the conditions of a claim hold."""
    names, rng = tuple(c.solved for c in claim.conditions), random.Random(draw)
    known = statement.conditions, _arrays(statement)
    return _Draw(claim, statement, names, *known, rng, NUMBERS, False, draw % 3).point()


def borne_out(c: Certificate, own: bool) -> int:
    """At how many points the conditions hold, where the two outputs are seen to be equal.

    With `own`, what the certificate says of its own points must be so too. These are executed on
    definitions, of which a corrupted claim may have another than its derived form: that one alone
    is what is proved, and that it is the spec's is checked against the spec.
    """
    assert isinstance(c.proof, Conditional)
    statement = state(c.claim, c.proof.invariant.entries)
    every = range(len(c.claim.conditions))
    points = [] if c.proof.holds is None else [c.proof.holds]
    for draw in range(12):
        with suppress(Rejected, Obstacle, ZeroDivisionError, ValueError):
            points.append(drawn(c.claim, statement, draw))
    seen = 0
    for point in points:
        # A drawn point with a value that a declaration rules out is none of the claim.
        refused = () if point is c.proof.holds else (Rejected,)
        with suppress(Obstacle, *refused):
            it = Evaluated(c.claim, statement.symbols, point)
            if not all(it.holds(statement.conditions, k) for k in every):
                assert point is not c.proof.holds
                continue
            a, b = (floats(c.claim, it, second) for second in (False, True))
            known = np.isfinite(a) & np.isfinite(b)
            assert np.allclose(a[known], b[known], rtol=1e-9, atol=1e-9)
            assert not own or point is not c.proof.holds or np.any(a[known] != 0)
            seen += 1
    for needed in c.proof.needed if own else ():
        it = Evaluated(c.claim, statement.symbols, needed.point)
        a, b = (floats(c.claim, it, second) for second in (False, True))
        assert not np.array_equal(a[needed.point.token], b[needed.point.token])
    return seen


def rows_under(c: Certificate) -> list[Quotient]:
    """The rows with what conditions give a value replaced: these are what a row says."""
    statement = state(c.claim, c.proof.invariant.entries)
    known = statement.conditions.values(statement.window)
    return [_joined(_read(row)).substituted(known) for row in c.proof.invariant.rows]


@pytest.mark.parametrize(
    "pair",
    [pytest.param(p, marks=pytest.mark.ci if p in SHARE_UNDER else pytest.mark.full)
     for p in (*CONDITIONAL, *SLOTS)],
    ids="-".join,
)  # fmt: skip
def test_corrupted_under_conditions(
    conditional: Callable, filled: Callable, pair, tier: str
) -> None:
    made = filled(*pair[1:]) if pair in SLOTS else conditional(*pair)
    document = json.loads(write(made))
    rng = random.Random("-".join(pair))
    each = (CONDITIONS_EACH if tier == "full" else 16) // 4
    original = rows_under(made)
    assert borne_out(made, True) or made.claim.case
    rows = ("value", "proof", "invariant", "rows")
    parts = {
        "rows": corrupted_rows(document, each, rng, rows),
        "conditions": corrupted_at(document, ("value", "claim", "conditions"), each, rng),
        "points": corrupted_points(document, each, rng),
        "claim": corrupted_claims(document, each, rng),
    }
    counts: Counter[str] = Counter()
    for name, bads in parts.items():
        for bad in bads:
            if accepted(bad) is None:
                counts[f"{name} rejected"] += 1
                continue
            found = read(json.dumps(bad))
            counts[f"{name} accepted and true"] += 1
            if name == "rows":
                # Written in another generator that a condition makes equal, it is the row it was.
                assert all(not (x - y) for x, y in zip(rows_under(found), original, strict=True))
            borne_out(found, name != "claim")
    print("-".join(pair), dict(counts))
    assert counts.total() >= 2 * each
    assert counts["conditions rejected"] >= 0.5 * each


def corrupted_points(document: Any, count: int, rng: random.Random) -> Iterator[Any]:
    """One leaf of a point changed."""
    proof = ("value", "proof")
    for base in ((*proof, "holds"), (*proof, "needed")):
        if part(document, base):
            yield from corrupted_at(document, base, count // 2, rng)


def test_a_corrupted_certificate_is_another_one(certificate: Callable) -> None:
    """The campaign changes what it says: no corruption gives the certificate back."""
    text = write(certificate(*EQUAL[1]))
    document = json.loads(text)
    for bad in corrupted_rows(document, 30, random.Random(1)):
        assert bad != document
    assert write(read(text)) == text and true(read(text).claim)
