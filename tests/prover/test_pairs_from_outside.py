"""Pairs written to break the prover from outside: sizes, values that are not there, maxima, cases.

Each pair has a label, which was compared with an interpreter of the texts that shares nothing with
dsfc, and the reason why a prover may go wrong there. "Unknown" is an answer that no label excludes;
the one that comes out is written down, so that a change of it is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import (
    AtSizes,
    Conditionally,
    Instance,
    NotAnInstance,
    Proved,
    ProvedWhereDefined,
    Refuted,
    Unknown,
)
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write


class Truth(Enum):
    """What holds of two mixers, decided by hand."""

    SAME = "equal at all sizes, with values at the same points"
    BOTH = "equal where both have values, and somewhere one alone has one"
    NOWHERE = "no point at which both have values"
    SIZES = "equal at some sizes and not at others"
    APART = "different at every size"


PERMITTED = {
    Truth.SAME: (Proved, AtSizes, Unknown),
    Truth.BOTH: (ProvedWhereDefined, Unknown),
    Truth.NOWHERE: (Unknown,),
    Truth.SIZES: (AtSizes, Refuted, Unknown),
    Truth.APART: (Refuted, Unknown),
}
"""Verdicts that are not wrong."""


@dataclass(frozen=True)
class Pair:
    """Two mixers of the same dims and declarations.

    Attributes:
        dims: of both.
        declared: inputs and parameters of both.
        a, b: the equations; a single expression is that of y.
        truth: by hand.
        verdict: what comes out.
        why: what may go wrong.
        at: sizes that a proof at sizes speaks of alone.
    """

    dims: str
    declared: str
    a: str
    b: str
    truth: Truth
    verdict: type
    why: str
    at: Mapping[str, int] | None = None


def falling(axis: str, count: int) -> str:
    """A polynomial in the index that is 0 at the first `count` ones."""
    return " * ".join(f"(iota[{axis}] - {k})" for k in range(count))


E2 = "(sum[n]({0})^2 - sum[n]({0}^2))"
E3 = "(sum[n]({0})^3 - 3 * sum[n]({0}) * sum[n]({0}^2) + 2 * sum[n]({0}^3))"
"""Elementary symmetric polynomials, up to a factor: 0 at fewer entries than their degree."""
E4 = (
    "(sum[n](u)^4 - 6 * sum[n](u)^2 * sum[n](u^2) + 3 * sum[n](u^2)^2"
    " + 8 * sum[n](u) * sum[n](u^3) - 6 * sum[n](u^4))"
)
GRAM = "((q · q) * (k · k) - (q · k)^2)"
GRAM_OF_THREE = (
    "(q · q) * (k · k) * (v · v) + 2 * (q · k) * (k · v) * (q · v)"
    " - (q · q) * (k · v)^2 - (k · k) * (q · v)^2 - (v · v) * (q · k)^2"
)
N, QK = "input u : n", "input q, k : n"
U, A, Z = "input u", "input u\n  param a", "input u\n  param z complex"
KV = "input k, v, m, l"
WEIGHTED = "sum[j ≤ i](exp(k[j]) * v[j]) / sum[j ≤ i](exp(k[j]))"
PLAIN = "state S, z\n  S = S[i-1] + exp(k) * v\n  z = z[i-1] + exp(k)\n  "
STORED = (
    "state S, z\n  S = exp(m[i-1] - m) * S[i-1] + exp(k - m) * v\n"
    "  z = exp(m[i-1] - m) * z[i-1] + exp(k - m)\n  "
)
DELTA = "state S : n × p\n  S = S[i-1] - ({} * k) ⊗ (k · S[i-1]) + k ⊗ v\n  y = q · S"
DECAY = "state s : h\n  s = {} * s[i-1] + u\n  y = s"
ONE = "state s\n  s = {} * s[i-1] + u\n  y = s"
S, B, X, W, D = Truth.SAME, Truth.BOTH, Truth.NOWHERE, Truth.SIZES, Truth.APART

PAIRS = [
    # Sizes.
    Pair("heads h = 5", "input u : h", f"{falling('h', 5)} * u + u", "u", W, AtSizes,
         "equal at the declared size and below", {"h": 5}),
    Pair("heads h = 6", "input u : h", f"{falling('h', 5)} * u + u", "u", W, Refuted,
         "equal below the declared size, 3 and 5 included"),
    Pair("n", N, f"{falling('n', 6)} * u + u", "u", W, AtSizes,
         "equal at all sizes that are tried, none declared", {"n": 2}),
    Pair("t = 4", U, f"fir[t]({falling('t', 4)}, u) + u", "u", W, Refuted, "taps beyond those"),
    Pair("t = 6", U, f"fir[t]({falling('t', 5)}, u) + u", "u", W, Refuted, "the last tap differs"),
    Pair("t = 4, r = 2", U, "fir[t](ones[t], u)", "fir[r](ones[r], u)", W, Refuted,
         "two filters of all ones"),
    Pair("t = 4, r = 4", U, "fir[t](ones[t], u)", "fir[r](ones[r], u)", W, AtSizes,
         "equal while the numbers of taps are", {"r": 4, "t": 4}),
    Pair("n = 2", N, "n^2 * u", "2 * n * u", W, Refuted, "an accident of the size 2"),
    Pair("n = 2", U, "u^n", "u^2", W, Refuted, "a size as an exponent"),
    Pair("n = 2", U, "(-1)^n * u", "u", W, Refuted, "equal at even sizes"),
    Pair("n", N, "relu(n - 4) * u + u", "u", W, Unknown, "a size in a function"),
    Pair("n", N, "max(n, 1) * u", "n * u", S, Unknown, "no size is below 1"),
    Pair("n = 3, m = 3", "input u : n; v : m", "(n - m) * u + u + sum[m](v)", "u + sum[m](v)",
         W, Refuted, "the declared sizes are equal"),
    Pair("n", N, "mean[n](u)", "sum[n](u) / n", S, Proved, "a mean divides by its size"),
    Pair("n", N, "sum[n](softmax[n](u)) + sum[n](u)", "1 + sum[n](u)", S, AtSizes,
         "a softmax sums to 1", {"n": 2}),
    Pair("n = 7", N, "sum[n](iota[n]) * u + u", "n * (n - 1) / 2 * u + u", S, Unknown,
         "true at each size by arithmetic"),
    Pair("n = 1", N, "sum[n](ones[n]) * u", "u", W, Refuted, "a sum that nothing carries"),
    Pair("n = 1", QK, "n * (q · k)", "sum[n](q) * sum[n](k)", W, Refuted,
         "a product of sums has two indices"),
    Pair("n = 1", QK, f"{GRAM} + q · k", "q · k", W, Refuted, "one vector has no Gram determinant"),
    Pair("n = 2", "input q, k, v : n", f"{GRAM_OF_THREE} + q · k", "q · k", W, Refuted,
         "three vectors of two entries are dependent"),
    Pair("n = 2", N, f"{E3.format('u')} + sum[n](u)", "sum[n](u)", W, Refuted, "three indices"),
    Pair("n = 3", N, f"{E4} + sum[n](u)", "sum[n](u)", W, Refuted, "four indices"),
    Pair("n", N, f"{E2.format('exp(u)')} + sum[n](u)", "sum[n](u)", W, Refuted,
         "exponentials carry an index"),
    Pair("n = 2", N, f"{E3.format('silu(u)')} + sum[n](u)", "sum[n](u)", W, Refuted,
         "silu carries an index"),
    Pair("n = 2", N, f"{E3.format('cos(u)')} + sum[n](u)", "sum[n](u)", W, Refuted,
         "a cosine carries none"),
    Pair("n = 1, p", "input q, k : n; v : p", DELTA.format("1"), DELTA.format(f"(1 + {GRAM})"),
         W, Refuted, "the delta rule couples entries"),
    Pair("d = 1", "input u : d\n  param W, V : d -> d", "W V u", "V W u", W, Refuted,
         "maps of one entry commute"),
    Pair("d, n", "input u : d\n  param W : d -> n; V : n -> d", "sum[n](W u * W V W u)",
         "sum[n](W V W u * W u)", S, Proved, "contracted indices have no size in a term"),
    Pair("d = 2, n", "input u : d\n  param W : d -> n",
         "x = W u\n  y = sum[n](x)^2 - sum[n](x^2) + sum[n](x)", "sum[n](W u)", W, Refuted,
         "values of maps carry an index"),
    Pair("heads h = 4", "input u : h", DECAY.format("2^(-iota[h])"),
         DECAY.format("(1 - iota[h] / 2 + iota[h] * (iota[h] - 1) / 8)"), W, Refuted,
         "decays of three heads agree, those of the declared four do not"),
    # Derived sizes.
    Pair("d, r = d / 16", "input u : d\n  param W : d -> r",
         "x = W u\n  y = relu(16 - d) * sum[r](x) + sum[r](x)", "x = W u\n  y = sum[r](x)",
         S, Unknown, "they differ at d = 1, which no module has"),
    Pair("d, n = d - 1", "input u : n; z : d", "u * (d - n) + sum[d](z)", "u + sum[d](z)",
         S, Unknown, "n = d is excluded"),
    Pair("d, n = 3 * d", "input u : n; z : d", f"{E3.format('u')} * sum[d](z) + sum[n](u)",
         "sum[n](u)", D, Refuted, "equal below the least size there is"),
    Pair("d, n = d + 2", "input u : n; z : d", f"{E4} * sum[d](z) + sum[n](u)", "sum[n](u)",
         W, Refuted, "equal at the least size alone"),
    Pair("d = 2, n = d^2", "input u : n; z : d", f"{falling('n', 4)} * u + u + sum[d](z)",
         "u + sum[d](z)", W, AtSizes, "the size after 4 is 9", {"n": 4}),
    # Where there are values.
    Pair("n", A, "sqrt(a) * sqrt(a) * u", "a * u", B, ProvedWhereDefined,
         "roots of negative numbers"),
    Pair("n", A, "a / a * u", "u", B, ProvedWhereDefined, "0 / 0"),
    Pair("n", A, "1 / (1 / a) * u", "a * u", B, ProvedWhereDefined, "1 / 0, twice"),
    Pair("n", A, "0 / a + u", "u", B, ProvedWhereDefined, "0 over what may be 0"),
    Pair("n", A, "u + log(a) - log(a)", "u", B, ProvedWhereDefined, "what cancels has no value"),
    Pair("n", A, "u * exp(log(a) - log(a))", "u", B, ProvedWhereDefined, "the same, inside"),
    Pair("n", A, "(a^2 - 1) / (a - 1) * u", "(a + 1) * u", B, ProvedWhereDefined,
         "a common factor"),
    Pair("n", A, "exp(log(a)) * u", "a * u", B, ProvedWhereDefined, "a logarithm undone"),
    Pair("n", A, "log(a * a) * u", "2 * log(a) * u", B, Unknown, "a rule of logarithms"),
    Pair("n", "input u\n  param a positive", "log(a) / log(a) * u", "u", B, ProvedWhereDefined,
         "log 1 is 0"),
    Pair("n", "input u\n  param a unit", "log(a) / log(a) * u", "u", S, Proved, "it is never 0"),
    Pair("n", "input u\n  param a unit", "log(1 - a) * u", "log1p(-a) * u", S, Proved, "in range"),
    Pair("n", A, ONE.format("a / a"), ONE.format("1"), B, ProvedWhereDefined, "in an update"),
    Pair("n", U, "state s\n  s = s[i-1] + u^2\n  y = u / s * s", "u", B, ProvedWhereDefined,
         "a state in a denominator"),
    Pair("n", U, "u * exp(u) / exp(u)", "u", S, Proved, "an exponential is never 0"),
    Pair("n", U, "expm1(u) / u", "exprel(u)", B, ProvedWhereDefined, "the limit is a value of one"),
    Pair("n", U, "exprel(u) * u", "expm1(u)", S, Proved, "at 0 too"),
    Pair("n", U, "log(-exp(u))", "2 * log(-exp(u))", X, Unknown, "no value at any point"),
    Pair("n", U, "sqrt(-1 - u^2)", "sqrt(-1 - u^2) + 1", X, Unknown, "no value at any point"),
    Pair("n", U, "1 / (u - u)", "2 / (u - u)", X, Unknown, "always 1 / 0"),
    Pair("n", U, "u + log(-exp(u)) - log(-exp(u))", "u", X, Unknown, "none of one of them"),
    Pair("n", "input u\n  param a unit", "sqrt(a - 1) * u", "sqrt(a - 1) * u", X, Unknown,
         "one text without a value"),
    Pair("n", "input u\n  buffer a = 0", "u / a", "2 * u / a", X, Unknown, "a buffer that is 0"),
    Pair("n", U, "state s\n  s = s[i-1] + u\n  y = u * s[i-1] / s[i-1]", "u", X, Unknown,
         "none at the first token, which every sequence has"),
    Pair("n", U, "sqrt(u^2)", "u", D, Refuted, "a root is not negative"),
    Pair("n", Z, "Re(sqrt(z^2)) * u", "Re(z) * u", D, Unknown, "a branch of the complex root"),
    Pair("n", Z, "Im(log(exp(z))) * u", "Im(z) * u", D, Unknown, "a branch of the logarithm"),
    Pair("n", Z, "Im(exp(conj(z))) * u", "-Im(exp(z)) * u", S, Proved, "an exponential has none"),
    # What is multiplied by the number 0, or has it for an exponent, is not read.
    Pair("n", A, "0 * log(a) + u", "u", S, Proved, "folded when the text is read"),
    Pair("n", A, "log(a)^0 * u", "u", S, Proved, "folded when the text is read"),
    # Running maxima: any m, if numerator and denominator are scaled alike.
    Pair("n", KV, f"y = {WEIGHTED}", f"{STORED}y = S / z", S, Proved, "stabilised"),
    Pair("n", KV, f"y = {WEIGHTED}", STORED.replace("z = exp(m[i-1] - m) *", "z =") + "y = S / z",
         D, Refuted, "the denominator is not scaled"),
    Pair("n", KV, f"y = {WEIGHTED}", STORED.replace("m[i-1] - m", "m - m[i-1]") + "y = S / z",
         D, Refuted, "the sign of the scale"),
    Pair("n", KV, f"{PLAIN}y = S / max(z, 1)", f"{STORED}y = S / max(z, exp(-m))", S, Proved,
         "the guard is scaled too"),
    Pair("n", KV, f"{PLAIN}y = S / max(z, 1)", f"{STORED}y = S / max(z, 1)", D, Refuted,
         "the guard is not scaled"),
    Pair("n", KV, f"{PLAIN}y = S / max(abs(z), 1)", f"{STORED}y = S / max(abs(z), exp(m))",
         D, Refuted, "the sign of the guard's scale"),
]  # fmt: skip


def mixer(dims: str, declared: str, equations: str) -> System:
    body = equations if "y = " in equations else f"y = {equations}"
    text = f"mixer m {{ dims {dims}\n  {declared}\n  {body}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


def test_there_are_sixty_pairs_of_all_kinds() -> None:
    assert len(PAIRS) + len(CASES) >= 60 and {p.truth for p in PAIRS} == set(Truth)


@pytest.mark.share(9)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.a} = {pair.b}"[:60])
def test_a_verdict_is_what_the_label_permits(pair: Pair) -> None:
    a, b = (mixer(pair.dims, pair.declared, text) for text in (pair.a, pair.b))
    found = equivalent(a, b)
    assert type(found) in PERMITTED[pair.truth], (found, pair.why)
    assert type(found) is pair.verdict, (found, pair.why)
    if isinstance(found, AtSizes):
        assert dict(found.fixed) == pair.at
    if not isinstance(found, Unknown):
        check(write(found.certificate))


@dataclass(frozen=True)
class Inside:
    """Whether one mixer is a case of another.

    Attributes:
        dims: of both.
        inputs: of both.
        a, b: parameters and equations.
        found: what comes out.
        at: for which sizes.
        why: what may go wrong.
    """

    dims: str
    inputs: str
    a: tuple[str, str]
    b: tuple[str, str]
    found: type
    at: Mapping[str, int]
    why: str


HEADS = "input u : h"
RETAINED = ("", DECAY.format("(1 - 2^(-5 - iota[h]))"))
LINE = ("param c, e", "(c + e * iota[h]) * u")
CASES = [
    Inside("heads h = 4", HEADS, RETAINED, ("param g : h unit", DECAY.format("g")), Instance,
           {"h": 4}, "decays by the index, at the declared size"),
    Inside("heads h = 4", HEADS, RETAINED,
           ("param g", DECAY.format("(31/32 + g * iota[h])")), NotAnInstance, {"h": 4},
           "two decays are on a line, the declared four are not"),
    Inside("heads h = 2", HEADS, RETAINED,
           ("param g", DECAY.format("(31/32 + g * iota[h])")), Instance, {"h": 2},
           "the same, two declared"),
    Inside("heads h = 4", HEADS, ("param a : h", "a * u"), LINE, NotAnInstance, {"h": 4},
           "two numbers are on a line, four are not"),
    Inside("heads h = 4", HEADS, LINE, ("param a : h", "a * u"), Instance, {"h": 4},
           "the way back"),
    Inside("n = 4", N, ("param c, e", "(c * iota[n] * (iota[n] - 1) + e) * u"),
           ("param a", "a * u"), NotAnInstance, {"n": 4}, "what tells entries apart is 0 at two"),
    Inside("t = 4", U, ("param w : t", "fir[t](w, u)"), ("param a, c", "a * u + c * u[i-1]"),
           NotAnInstance, {"t": 4}, "a filter of two taps has two weights"),
    Inside("t = 4", U, ("param a, c", "a * u + c * u[i-1]"), ("param w : t", "fir[t](w, u)"),
           Instance, {"t": 4}, "further weights are 0"),
    Inside("n", U, ("", "u * log(-exp(u))"), ("param c", "c * u * log(-exp(u))"), Unknown, {},
           "the first has no output at any point"),
    Inside("n", U, ("param a unit", "u * log(a - 1)"),
           ("param a unit\n  param c", "c * u * log(a - 1)"), Unknown, {},
           "the first has no output in its range"),
    Inside("n", U, ("param a nonneg", "a * u"), ("param c positive", "c * u"), NotAnInstance, {},
           "a smaller range without its end"),
    Inside("n", U, ("param a", "sqrt(a) * u"), ("param c", "c * u"), Instance, {"n": 2},
           "wherever the first has an output"),
]  # fmt: skip


@pytest.mark.share(6)
@pytest.mark.parametrize("pair", CASES, ids=lambda pair: pair.why)
def test_a_case_is_one_at_the_declared_sizes(pair: Inside) -> None:
    a, b = (mixer(pair.dims, f"{pair.inputs}\n  {side[0]}", side[1]) for side in (pair.a, pair.b))
    found = subsumes(a, b, (), True)
    assert type(found) is pair.found, found
    if isinstance(found, Instance | NotAnInstance):
        sizes = dict(found.certificate.claim.sizes)
        assert {name: sizes[name] for name in pair.at if name in sizes} == {
            name: k for name, k in pair.at.items() if name in sizes
        }
    if isinstance(found, Instance):
        assert found.certificate.defined is not None
        check(write(found.certificate))


def test_conditions_are_looked_for_at_the_declared_sizes() -> None:
    a, b = (mixer("heads h = 4", f"{HEADS}\n  {side[0]}", side[1])
            for side in (RETAINED, ("param g", DECAY.format("(31/32 + g * iota[h])"))))  # fmt: skip
    assert isinstance(equivalent(a, b, (), True), Refuted)
    two = equivalent(a, b, (), True, {"h": 2})
    assert isinstance(two, Conditionally) and dict(two.certificate.claim.sizes) == {"h": 2}
