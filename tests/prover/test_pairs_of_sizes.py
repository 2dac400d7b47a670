"""Pairs chosen to break sizes, labelled by hand; what a verdict says is evaluated with numpy.

Each mixer stands here twice: as a spec and as a function of arrays, written by hand. A witness is
put into the functions, and what is proved is evaluated at several sizes that the specs allow.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import AtSizes, Equal, Proved, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write

Values = SimpleNamespace
"""Inputs `[L, …]` and parameters by name, and the sizes of axes by name."""
Function = Callable[[Values], np.ndarray]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Side:
    """One mixer: its equations, its function, and its dims where the other has others."""

    text: str
    of: Function
    dims: str = ""


@dataclass(frozen=True)
class Pair:
    """Two mixers of the same inputs and parameters.

    Attributes:
        dims: of both.
        arrays: shape by name; `u`, `v`, `q` and `k` are inputs.
        a, b: the mixers.
        verdict: what is to come out.
        allowed: whether specs allow some sizes, by hand.
        where: sizes at which the two are equal; () where they differ at some.
        given: sizes asked about.
        fixed: the sizes that a proof speaks of alone.
    """

    dims: str
    arrays: Mapping[str, str]
    a: Side
    b: Side
    verdict: type
    where: tuple[Sizes, ...] = ()
    allowed: Callable[[Sizes], bool] = lambda s: True
    given: Sizes = field(default_factory=dict)
    fixed: Sizes = field(default_factory=dict)


INPUTS = "uvqk"


def decay(text: str, of: Callable[[np.ndarray], np.ndarray], dims: str = "") -> Side:
    """A state per head with a decay that is a formula of the head's index."""

    def run(v: Values) -> np.ndarray:
        rate, s, out = of(np.arange(v.h, dtype=float)[:, None]), 0.0, []
        for x in v.u:
            s = rate * s + x
            out.append(s)
        return np.array(out)

    return Side(f"state s : h × n\n  s = ({text}) * s[i-1] + u\n  y = s", run, dims)


def now(text: str, of: Function, dims: str = "") -> Side:
    """A function of the token."""
    return Side(f"y = {text}", of, dims)


def filtered(weights: Callable[[Values], np.ndarray], u: np.ndarray) -> np.ndarray:
    w = weights
    return sum(w[r] * np.concatenate([np.zeros_like(u[:r]), u[: len(u) - r]])
               for r in range(min(len(w), len(u))))  # fmt: skip


def taps(text: str, of: Callable[[Values], list], dims: str = "") -> Side:
    return now(text, lambda v: filtered(of(v), v.u), dims)


POWERS = decay("1 - 2^(-5 - iota[h])", lambda h: 1 - 2.0 ** (-5 - h))
POWERS_AGAIN = decay("1 - 1 / 2^(iota[h] + 5)", lambda h: 1 - 1 / 2.0 ** (h + 5))
LINE = decay("31/32 + iota[h] / 64", lambda h: 31 / 32 + h / 64)
PARABOLA = decay(
    "31/32 + iota[h] / 64 - iota[h] * (iota[h] - 1) / 256",
    lambda h: 31 / 32 + h / 64 - h * (h - 1) / 256,
)
FLAT = decay("31/32", lambda h: 31 / 32 + 0 * h)
HEADS = {"u": "h n"}
VECTOR = {"u": "n"}
TAPS = {"u": ""}
CHANNELS = {"u": "d"}
SCORES = {"q": "n", "k": "n", "v": ""}


def heads(*numbers: int, n: int = 3) -> tuple[Sizes, ...]:
    return tuple({"h": h, "n": n} for h in numbers)


def of_n(*numbers: int) -> tuple[Sizes, ...]:
    return tuple({"n": n} for n in numbers)


def with_dims(side: Side, dims: str) -> Side:
    return replace(side, dims=dims)


def p(v: Values, k: int) -> np.ndarray:
    """Σ u^k over n."""
    return (v.u**k).sum(-1)


def attention(score: Callable[[np.ndarray, np.ndarray], float]) -> Function:
    def run(v: Values) -> np.ndarray:
        return np.array([sum(score(v.q[i], v.k[j]) * v.v[j] for j in range(i + 1))
                         for i in range(len(v.v))])  # fmt: skip

    return run


ONES = taps("fir[t](ones[t], u)", lambda v: [1.0] * v.t)
TWO = taps("u + u[i-1]", lambda v: [1.0, 1.0])
FOUR = taps("u + u[i-1] + u[i-2] + u[i-3]", lambda v: [1.0] * 4)
WEIGHTED = taps("fir[t](w, u)", lambda v: list(v.w))

PAIRS = {
    # --- decays that are formulas of an index
    "decays, four heads": Pair("heads h = 4, n", HEADS, POWERS, LINE, Refuted),
    "decays, two heads": Pair("heads h = 2, n", HEADS, POWERS, LINE, Refuted),
    "decays, heads open": Pair("heads h, n", HEADS, POWERS, LINE, Refuted),
    "decays, asked of two heads": Pair(
        "heads h = 4, n", HEADS, POWERS, LINE, AtSizes, heads(2), given={"h": 2}, fixed={"h": 2}),
    "decays, asked of three heads": Pair(
        "heads h = 4, n", HEADS, POWERS, LINE, Refuted, given={"h": 3}),
    "decays, equal": Pair(
        "heads h = 4, n", HEADS, POWERS, POWERS_AGAIN, AtSizes, heads(1, 4, 7), fixed={"h": 4}),
    "decays, three and five heads": Pair(
        "heads h = 3, n", HEADS, POWERS, with_dims(PARABOLA, "heads h = 5, n"), Refuted),
    "decays, three heads and open": Pair(
        "heads h = 3, n", HEADS, POWERS, with_dims(PARABOLA, "heads h, n"), Refuted),
    "decays, open and four heads": Pair(
        "heads h, n", HEADS, POWERS, with_dims(LINE, "heads h = 4, n"), Refuted),
    "decays, asked of three": Pair(
        "heads h = 3, n", HEADS, POWERS, PARABOLA, AtSizes, heads(1, 2, 3), given={"h": 3},
        fixed={"h": 3}),
    "decays, one head": Pair("heads h = 1, n", HEADS, POWERS, FLAT, Refuted),
    "decays, asked of one head": Pair(
        "heads h = 1, n", HEADS, POWERS, FLAT, AtSizes, heads(1), given={"h": 1}, fixed={"h": 1}),
    "decays, heads from channels": Pair(
        "d, heads h = d / 8, n", HEADS, POWERS, LINE, Refuted,
        allowed=lambda s: s["d"] == 8 * s["h"]),
    # --- taps of filters
    "taps, four and two": Pair("t = 4", TAPS, ONES, TWO, Refuted),
    "taps, asked of two": Pair(
        "t = 4", TAPS, ONES, TWO, AtSizes, ({"t": 2},), given={"t": 2}, fixed={"t": 2}),
    "taps, four written out": Pair("t = 4", TAPS, ONES, FOUR, Refuted),
    "taps, asked of four": Pair(
        "t = 4", TAPS, ONES, FOUR, AtSizes, ({"t": 4},), given={"t": 4}, fixed={"t": 4}),
    "taps, a factor": Pair(
        "t = 4", TAPS | {"w": "t"}, taps("fir[t](2 * w, u)", lambda v: list(2 * v.w)),
        taps("2 * fir[t](w, u)", lambda v: list(2 * v.w)), AtSizes,
        ({"t": 1}, {"t": 4}, {"t": 6}), fixed={"t": 4}),
    "taps, weights by index": Pair(
        "t = 4", TAPS, taps("fir[t](1 / (1 + iota[t]), u)", lambda v: 1 / (1 + np.arange(v.t))),
        taps("fir[t](1 - iota[t] / 2, u)", lambda v: 1 - np.arange(v.t) / 2), Refuted),
    "taps, the last of seven": Pair(
        "t = 7", TAPS | {"w": "t"}, WEIGHTED,
        taps("fir[t](w * (1 + iota[t] * (iota[t] - 1) * (iota[t] - 2) * (iota[t] - 3)"
             " * (iota[t] - 4) * (iota[t] - 5)), u)",
             lambda v: v.w * np.array([1 + (r == 6) * 720 for r in range(v.t)])), Refuted),
    "taps, other numbers of one": Pair(
        "t = 3", TAPS | {"w": "t"}, WEIGHTED, with_dims(WEIGHTED, "t = 5"), Proved,
        ({"t": 1}, {"t": 3}, {"t": 5})),
    # --- sums, means and sizes
    "mean, and a sum by its size": Pair(
        "n", VECTOR, now("mean[n](u)", lambda v: v.u.mean(-1)),
        now("sum[n](u) / n", lambda v: v.u.sum(-1) / v.n), Proved, of_n(1, 2, 5)),
    "mean, and a sum by two": Pair(
        "n = 2", VECTOR, now("mean[n](u)", lambda v: v.u.mean(-1)),
        now("sum[n](u) / 2", lambda v: v.u.sum(-1) / 2), Refuted),
    "a sum of what has no index": Pair(
        "n", {"u": "", "w": "n"},
        now("sum[n](u * ones[n]) + sum[n](w)", lambda v: v.n * v.u + v.w.sum()),
        now("n * u + sum[n](w)", lambda v: v.n * v.u + v.w.sum()), Unknown, of_n(1, 2, 5)),
    "a sum of what has no index, and twice it": Pair(
        "n = 2", {"u": "", "w": "n"},
        now("sum[n](u * ones[n]) + sum[n](w)", lambda v: v.n * v.u + v.w.sum()),
        now("2 * u + sum[n](w)", lambda v: 2 * v.u + v.w.sum()), Refuted),
    "sums in turn": Pair(
        "heads h, n", HEADS, now("sum[h](sum[n](u))", lambda v: v.u.sum((1, 2))),
        now("h * mean[h](sum[n](u))", lambda v: v.h * v.u.sum(-1).mean(-1)), Proved,
        heads(1, 2, 5)),
    "two sizes": Pair(
        "n, p", {"u": "n p"}, now("n * u", lambda v: v.n * v.u), now("p * u", lambda v: v.p * v.u),
        Refuted),
    "two sizes that are one": Pair(
        "n, p = n", {"u": "n p"}, now("n * u", lambda v: v.n * v.u),
        now("p * u", lambda v: v.p * v.u), Unknown, ({"n": 1, "p": 1}, {"n": 4, "p": 4})),
    "sums of indices": Pair(
        "n", VECTOR, now("u * sum[n](iota[n])", lambda v: v.u * sum(range(v.n))),
        now("u * (n - 1)", lambda v: v.u * (v.n - 1)), Refuted),
    "sums of squares of indices": Pair(
        "n", VECTOR, now("u * sum[n](iota[n]^2)", lambda v: v.u * sum(k * k for k in range(v.n))),
        now("u * sum[n](iota[n])", lambda v: v.u * sum(range(v.n))), Refuted),
    "a sum of indices, asked of four": Pair(
        "n", VECTOR, now("u * sum[n](iota[n])", lambda v: v.u * sum(range(v.n))),
        now("u * 6", lambda v: v.u * 6), AtSizes, of_n(4), given={"n": 4}, fixed={"n": 4}),
    "Gauss's sum": Pair(
        "n", VECTOR, now("u * sum[n](iota[n])", lambda v: v.u * sum(range(v.n))),
        now("u * n * (n - 1) / 2", lambda v: v.u * v.n * (v.n - 1) / 2), Unknown, of_n(1, 2, 6)),
    # --- what holds at small sizes
    "a ratio at one": Pair(
        "n", {"q": "n", "k": "n"}, now("sum[n](q * exp(k)) / sum[n](exp(k))",
        lambda v: (v.q * np.exp(v.k)).sum(-1) / np.exp(v.k).sum(-1)),
        now("sum[n](q) + sum[n](k) - sum[n](k)", lambda v: v.q.sum(-1)), Refuted),
    "softmax of one": Pair(
        "n = 1", VECTOR, now("u * softmax[n](u)",
        lambda v: v.u * np.exp(v.u) / np.exp(v.u).sum(-1, keepdims=True)),
        now("u", lambda v: v.u), Refuted),
    "the largest of two": Pair(
        "n = 2", VECTOR, now("max[n](u) - max[n](-u)", lambda v: v.u.max(-1) + v.u.min(-1)),
        now("sum[n](u)", lambda v: v.u.sum(-1)), Refuted),
    "products of three entries": Pair(
        "n = 2", VECTOR,
        now("sum[n](u) + sum[n](u)^3 - 3 * sum[n](u) * sum[n](u^2) + 2 * sum[n](u^3)",
            lambda v: p(v, 1) + p(v, 1) ** 3 - 3 * p(v, 1) * p(v, 2) + 2 * p(v, 3)),
        now("sum[n](u)", lambda v: p(v, 1)), Refuted),
    "products of four entries": Pair(
        "n = 2", VECTOR,
        now("sum[n](u) + sum[n](u)^4 - 6 * sum[n](u)^2 * sum[n](u^2) + 3 * sum[n](u^2)^2"
            " + 8 * sum[n](u) * sum[n](u^3) - 6 * sum[n](u^4)",
            lambda v: p(v, 1) + p(v, 1) ** 4 - 6 * p(v, 1) ** 2 * p(v, 2) + 3 * p(v, 2) ** 2
            + 8 * p(v, 1) * p(v, 3) - 6 * p(v, 4)),
        now("sum[n](u)", lambda v: p(v, 1)), Refuted),
    # --- copies of axes
    "a square of a score": Pair(
        "n", SCORES, now("sum[j ≤ i]((q · k[j])^2 * v[j])", attention(lambda q, k: (q @ k) ** 2)),
        now("sum[j ≤ i]((q · k[j]) * (q · k[j]) * v[j])", attention(lambda q, k: (q @ k) ** 2)),
        Proved, of_n(1, 2, 4)),
    "a square of a score, and a score of squares": Pair(
        "n = 1", SCORES,
        now("sum[j ≤ i]((q · k[j])^2 * v[j])", attention(lambda q, k: (q @ k) ** 2)),
        now("sum[j ≤ i](sum[n](q^2 * k[j]^2) * v[j])", attention(lambda q, k: (q**2) @ k**2)),
        Refuted),
    # --- derived sizes
    "a size of 16 and more": Pair(
        "d, r = d / 16", CHANNELS | {"w": "r"},
        now("max(d, 16) * u + sum[r](w)", lambda v: v.d * v.u + v.w.sum()),
        now("d * u + sum[r](w)", lambda v: v.d * v.u + v.w.sum()), Unknown,
        ({"d": 16, "r": 1}, {"d": 32, "r": 2}), lambda s: s["d"] == 16 * s["r"]),
    "one sixteenth": Pair(
        "d, r = d / 16", CHANNELS, now("u * r", lambda v: v.u * v.r), now("u", lambda v: v.u),
        Refuted, allowed=lambda s: s["d"] == 16 * s["r"]),
    "a quotient of sizes": Pair(
        "d, heads h = 4, n = d / h", HEADS, now("u * n", lambda v: v.u * v.n),
        now("u * d / h", lambda v: v.u * v.d / v.h), Unknown,
        ({"d": 12, "h": 4, "n": 3}, {"d": 2, "h": 1, "n": 2}),
        lambda s: s["d"] == s["h"] * s["n"]),
    "a fact of one of the two": Pair(
        "m, n = 2 * m", VECTOR, now("u * n", lambda v: v.u * v.n),
        now("u * 2 * m", lambda v: v.u * 2 * v.m, "m, n"), Unknown,
        ({"m": 1, "n": 2}, {"m": 3, "n": 6}), lambda s: s["n"] == 2 * s["m"]),
    "divisors that exclude each other": Pair(
        "d, n = d / 2", VECTOR, now("u", lambda v: v.u),
        now("u", lambda v: v.u, "d, n = d / 4"), Unknown),
    "divisors of one axis and another": Pair(
        "d, n = d / 2, p = d / 4", {"u": "n p"}, now("u * n", lambda v: v.u * v.n),
        now("u * p * (n - p) * 2 / p", lambda v: v.u * 2 * (v.n - v.p)), Unknown,
        ({"d": 4, "n": 2, "p": 1}, {"d": 12, "n": 6, "p": 3}),
        lambda s: s["d"] == 2 * s["n"] == 4 * s["p"]),
    "divisors that coincide nowhere": Pair(
        "d, n = d / 2, p = d / 4", {"u": "n p"}, now("u * n", lambda v: v.u * v.n),
        now("u * p", lambda v: v.u * v.p), Refuted,
        allowed=lambda s: s["d"] == 2 * s["n"] == 4 * s["p"]),
}  # fmt: skip


def spec(pair: Pair, side: Side) -> System:
    lines = []
    for name, axes in pair.arrays.items():
        kind = "input" if name in INPUTS else "param"
        shape = f" : {' × '.join(axes.split())}" if axes else ""
        lines.append(f"{kind} {name}{shape}")
    body = "\n  ".join((*lines, side.text))
    text = f"mixer m {{ dims {side.dims or pair.dims}\n  {body}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


def values(pair: Pair, sizes: Sizes, entries: Mapping[str, np.ndarray], length: int) -> Values:
    """Arrays of shapes; what a mixer does not read has no entries."""
    found = dict(sizes)
    for name, given in entries.items():
        shape = [sizes[a] for a in pair.arrays[name].split()]
        found[name] = given.reshape([length] * (name in INPUTS) + shape)
    return Values(**found)


def drawn(pair: Pair, sizes: Sizes, length: int, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    counts = {
        name: int(np.prod([sizes[a] for a in axes.split()], initial=1)) * (length if name in INPUTS
        else 1) for name, axes in pair.arrays.items()
    }  # fmt: skip
    return values(pair, sizes, {n: rng.normal(size=k) for n, k in counts.items()}, length)


def number(v: tuple[int, int, int, int]) -> float:
    assert v[2] == 0
    return v[0] / v[1]


@pytest.mark.share(9)
@pytest.mark.parametrize("name", PAIRS)
def test_a_verdict_is_what_numpy_says(name: str) -> None:
    pair = PAIRS[name]
    verdict = equivalent(spec(pair, pair.a), spec(pair, pair.b), sizes=pair.given)
    assert isinstance(verdict, pair.verdict), verdict
    for sizes in pair.where:
        assert pair.allowed(sizes)
        v = drawn(pair, sizes, 9, zlib.crc32(name.encode()))
        np.testing.assert_allclose(pair.a.of(v), pair.b.of(v), rtol=1e-9, atol=1e-9)
    if isinstance(verdict, Unknown):
        return
    assert check(write(verdict.certificate)).claim == verdict.certificate.claim
    claimed = dict(verdict.certificate.claim.sizes)
    if isinstance(verdict, Equal):
        assert dict(verdict.fixed) == pair.fixed
        assert any(all(at[n] == k for n, k in verdict.fixed) for at in pair.where)
        assert pair.given or max(size for at in pair.where for size in at.values()) > 2
        return
    assert not pair.where and pair.allowed(claimed)
    assert all(claimed[axis] == size for axis, size in pair.given.items())
    witness = verdict.witness
    entries = {n: np.array([number(x) for x in found]) for n, found in witness.values}
    v = values(pair, claimed, entries, witness.length)
    gap = pair.a.of(v)[witness.token][witness.index] - pair.b.of(v)[witness.token][witness.index]
    assert abs(gap) > 1e-9


def test_most_pairs_have_a_label_of_their_own() -> None:
    assert len(PAIRS) >= 30
    kinds = [pair.verdict for pair in PAIRS.values()]
    assert kinds.count(Refuted) >= 20 and len(kinds) - kinds.count(Refuted) >= 15
    assert len(set(itertools.chain(*(pair.arrays for pair in PAIRS.values())))) > 4
