"""Pairs that normal forms, cases of signs and longer sequences decide, and near misses of each.

The label is what mathematics says; the verdict is what comes out, and is never against the label.
"""

from __future__ import annotations

from dataclasses import dataclass
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

SAME, BOTH, APART = "equal", "equal where both have values, which is not everywhere", "different"
PERMITTED = {
    SAME: (Proved, AtSizes, Unknown),
    BOTH: (ProvedWhereDefined, Unknown),
    APART: (Refuted, Unknown),
}


@dataclass(frozen=True)
class Pair:
    """Two mixers of one declaration.

    Attributes:
        declared: parameters, and inputs beside `u`.
        a, b: the equations; an expression alone is that of y.
        truth: the label.
        verdict: what comes out; where it is not `Unknown`, the first that the label permits.
        dims: of both.
    """

    declared: str
    a: str
    b: str
    truth: str
    verdict: type | None = None
    dims: str = "n"


def a_(constraint: str) -> str:
    return f"param a {constraint}"


def ab(constraint: str) -> str:
    return f"param a, b {constraint}"


Z, V = "param z complex", "input v"
QKV = "input q, k, v"
P, F = "exp(g) * (P[i-1] + first)", "state c\n  c = c[i-1] + g\n  y = "
PLAIN = "state S\n  S = exp(g) * S[i-1] + v\n  y = S"
BACK, AHEAD = "sum[j ≤ i](q * k[j] * v[j])", "sum[j > i](q * k[j] * v[j])"
WINDOW = "state s\n  s = s[i-1] + u - u[i-{}]\n  y = s"
FIVE = "u + u[i-1] + u[i-2] + u[i-3] + u[i-4]"

PAIRS = [
    # Rational exponents.
    Pair("", "exp(u / 2)^2", "exp(u)", SAME),
    Pair("", "exp(u / 2)^2", "exp(u / 3)^2", APART),
    Pair("", "exp(u / 6)^3", "exp(u / 2)", SAME, Unknown),
    Pair(a_("positive"), "sqrt(a) * sqrt(a) * u", "a * u", SAME),
    Pair(a_("nonneg"), "sqrt(a)^3 * u", "a * sqrt(a) * u", SAME),
    Pair(a_(""), "sqrt(a) * sqrt(a) * u", "a * u", BOTH),
    Pair("", "sqrt(u^2)", "abs(u)", SAME),
    Pair("", "sqrt(u^2 + u^4)", "abs(u) * sqrt(1 + u^2)", SAME),
    Pair("", "sqrt(u^2 + u^4)", "u * sqrt(1 + u^2)", APART),
    Pair("", "1 / (sqrt(1 + u^2) - u)", "sqrt(1 + u^2) + u", SAME),
    Pair("", "n^(-1/4) * n^(-1/4) * u", "u / sqrt(n)", SAME),
    Pair("", "n^(-1/4) * u", "n^(-1/2) * u", APART, dims="n = 16"),
    Pair(ab("nonneg"), "sqrt(a * b) * u", "sqrt(a) * sqrt(b) * u", SAME),
    Pair(ab(""), "sqrt(a * b) * u", "sqrt(a) * sqrt(b) * u", BOTH, Unknown),
    Pair(Z, "Re(sqrt(z) * sqrt(z)) * u", "Re(z) * u", SAME),
    Pair(f"{Z}\n  param w complex", "Re(sqrt(z * w)) * u", "Re(sqrt(z) * sqrt(w)) * u", APART,
         Unknown),
    Pair(Z, "Re(sqrt(z^2)) * u", "Re(z) * u", APART, Unknown),
    Pair("", "u / sqrt(2)", "u * sqrt(2) / 2", SAME),
    Pair(a_("positive"), "a^(1/3) * a^(2/3) * u", "a * u", SAME),
    Pair(a_("nonneg"), "a^(1/3) * a^(2/3) * u", "a * u", SAME),
    Pair(a_("nonneg"), "u / (1 + sqrt(a))", "u * (1 - sqrt(a)) / (1 - a)", BOTH),
    # Sizes and signs.
    Pair(Z, "abs(z)^2 * u", "Re(z * conj(z)) * u", SAME),
    Pair(Z, "abs(z)^2 * u", "Re(z * z) * u", APART),
    Pair(Z, "abs(z) * u", "sqrt(Re(z)^2 + Im(z)^2) * u", SAME),
    Pair(Z, "abs(conj(z)) * u", "abs(z) * u", SAME),
    Pair(Z, "abs(exp(z)) * u", "exp(Re(z)) * u", SAME),
    Pair(f"{Z}\n  param w complex", "abs(z * w) * u", "abs(z) * abs(w) * u", SAME),
    Pair("", "abs(u)^2", "u^2", SAME),
    Pair("", "relu(u) - relu(-u)", "u", SAME),
    Pair("", "relu(u) + relu(-u)", "abs(u)", SAME),
    Pair("", "relu(u) + relu(-u)", "u", APART),
    Pair("", "abs(u)", "max(u, -u)", SAME),
    Pair("", "abs(u)", "max(u, 0)", APART),
    Pair("", "relu(u) * relu(-u) + u", "u", SAME),
    Pair("", "relu(relu(u))", "relu(u)", SAME),
    Pair("", "relu(u)^2", "u * relu(u)", SAME),
    Pair(V, "max(u, v) + min(u, v)", "u + v", SAME),
    Pair(V, "max(u, v) * min(u, v)", "u * v", SAME),
    Pair(V, "max(u, v)", "v + relu(u - v)", SAME),
    Pair(V, "min(u, v)", "-max(-u, -v)", SAME),
    Pair(V, "min(u, v)", "max(-u, -v)", APART),
    Pair(V, "abs(u * v)", "abs(u) * abs(v)", SAME),
    Pair(V, "abs(u * v)", "u * abs(v)", APART),
    Pair(a_("nonneg"), "abs(a) * relu(a) * u", "a^2 * u", SAME),
    Pair(a_("unit"), "max(a, 1) * min(a, 1) * u", "a * u", SAME),
    Pair(a_("positive"), "sign(a) * u", "u", SAME),
    Pair(a_("nonneg"), "sign(a) * u", "u", APART, Unknown),
    Pair("", "sign(u) * abs(u)", "u", SAME, Unknown),
    Pair("", "sign(u) * sign(u) * u + abs(u) * sign(-u)", "0 * u", SAME, Unknown),
    Pair("", "sign(-u)", "-sign(u)", SAME),
    Pair(Z, "Re(sign(z^2)) * u", "Re(sign(z)^2) * u", SAME),
    Pair(Z, "Re(sign(z^2)) * u", "Re(sign(z))^2 * u", APART, Unknown),
    Pair(a_("positive"), "max(a * u, 0)", "a * relu(u)", SAME),
    Pair(a_(""), "max(a * u, 0)", "a * relu(u)", APART),
    Pair("", "elu(u)", "max(u, 0) + exp(min(u, 0)) - 1", SAME, Unknown),
    Pair("", "elu(u)", "max(u, 0) + exp(u) - 1", APART),
    Pair("", "elu(u)", "exp(u) - 1", APART),
    Pair(a_("positive"), "elu(a) * u", "a * u", SAME, Unknown),
    Pair(a_("positive"), "elu(-a) * u", "-a * u", APART),
    # Signs that ranges know.
    Pair(a_("positive"), "(relu(-a) + relu(a)) * u", "a * u", SAME),
    Pair(a_(""), "(relu(-a) + relu(a)) * u", "a * u", APART),
    Pair(a_("unit"), "max(a, 2) * u", "2 * u", SAME),
    Pair(a_("unit"), "max(a, 1/2) * u", "a * u", APART),
    Pair("", "max(sigmoid(u), 1) * u", "u", SAME),
    Pair("", "max(sigmoid(u), 1/2) * u", "u", APART),
    Pair("", "sign(exp(u)) * u", "u", SAME),
    Pair("", "sign(exp(u) - 1) * u", "u", APART),
    Pair("", "abs(-exp(u))", "exp(u)", SAME),
    Pair(a_(""), "log(a^2) * u", "2 * log(abs(a)) * u", SAME),
    Pair(a_(""), "log(a^2) * u", "2 * log(a) * u", BOTH, Unknown),
    Pair(ab("positive"), "log(a * b) * u", "(log(a) + log(b)) * u", SAME),
    Pair(ab(""), "log(a * b) * u", "(log(a) + log(b)) * u", BOTH, Unknown),
    Pair("", "log(exp(u))", "u", SAME),
    Pair(Z, "Im(log(exp(z))) * u", "Im(z) * u", APART, Unknown),
    Pair(a_(""), "exp(log(a)) * u", "a * u", BOTH),
    Pair("", "softplus(u)", "relu(u) + log1p(exp(-abs(u)))", SAME, Unknown),
    Pair("", "exp(relu(u))", "max(exp(u), 1)", SAME, Unknown),
    # Signs beside states, and in what an update multiplies them by.
    Pair("", "state s\n  s = relu(u) * s[i-1] + u\n  y = s",
         "state s\n  s = max(u, 0) * s[i-1] + relu(u) - relu(-u)\n  y = s", SAME),
    Pair("", "state s\n  s = relu(u) * s[i-1] + relu(-u)\n  y = relu(u[i-1]) * s",
         "state s\n  s = abs(u) * s[i-1] + relu(-u)\n  y = relu(u[i-1]) * s", APART),
    # Sums over all tokens.
    Pair(QKV, f"{BACK} - sum[j < i](q * k[j] * v[j])", "q * k * v", SAME),
    Pair(QKV, f"{BACK} + {AHEAD}", f"sum[j < i](q * k[j] * v[j]) + {AHEAD}", APART),
    Pair(QKV, f"{BACK} + {AHEAD}", f"{AHEAD} + {BACK}", SAME),
    Pair(QKV, f"{BACK} - {AHEAD}", f"{AHEAD} - {BACK}", APART),
    Pair(QKV, AHEAD, "state s backward\n  s = s[i+1] + k * v\n  y = q * s[i+1]", SAME),
    Pair(QKV, AHEAD, "state s backward\n  s = s[i+1] + k * v\n  y = q * s", APART),
    # Scans in log space.
    Pair("input g, v", PLAIN, f"{F}sum[j ≤ i](exp(c - c[j]) * v[j])", SAME),
    Pair("input g, v", PLAIN, f"{F}sum[j ≤ i](exp(c - c[j] + g[j]) * v[j])", APART),
    Pair("input g", f"state P\n  P = {P}\n  y = P + u", "exp(sum[j ≤ i](g[j])) + u", SAME),
    Pair("input g", f"state P\n  P = {P}\n  y = P + u", "exp(sum[j < i](g[j])) + u", APART),
    Pair("input g positive", "state P\n  P = g * (P[i-1] + first)\n  y = P + u",
         "exp(sum[j ≤ i](log(g[j]))) + u", SAME),
    Pair("input g, v", f"state P, S\n  P = {P}\n  S = S[i-1] + v / P\n  y = P * S", PLAIN, SAME,
         Unknown),
    # Norms with floors.
    Pair("input x : n", "l2norm[n](x) * u", "x / max(sqrt(sum[n](x * x)), 1e-12) * u", SAME,
         Unknown),
    Pair("input x : n", "x / sqrt(sum[n](x * x) + 1e-6) * u", "x * (sum[n](x^2) + 1e-6)^(-1/2) * u",
         SAME),
    Pair("input x : n", "l2norm[n](x) * u", "x / sqrt(sum[n](x * x) + 1e-6) * u", APART),
    Pair("input x : n", "l2norm[n](2 * x) * u", "l2norm[n](x) * u", APART, Unknown),
    Pair("input x : n", "rmsnorm[n](x) * u", "sqrt(n) * l2norm[n](x) * u", SAME, Unknown),
    # What differs at the longest window.
    Pair("", "u[i-7]", "u[i-6]", APART),
    Pair("", "r = u[i-4]\n  y = r[i-4]", "u[i-8]", SAME),
    Pair("", "r = u[i-4]\n  y = r[i-4]", "u[i-9]", APART),
    Pair("", WINDOW.format(5), FIVE, SAME),
    Pair("", WINDOW.format(6), FIVE, APART),
    Pair(a_("unit"), "state s\n  s = a * s[i-1] + u - a^16 * u[i-16]\n  y = s",
         "state s\n  s = a * s[i-1] + u\n  y = s", APART),
    Pair("", "fir[t](ones[t], u)", "fir[r](ones[r], u)", APART, dims="t = 5, r = 6"),
]  # fmt: skip


def mixer(pair: Pair, equations: str) -> System:
    body = equations if "y = " in equations else f"y = {equations}"
    text = f"mixer m {{ dims {pair.dims}\n  input u\n  {pair.declared}\n  {body}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


@pytest.mark.share(8, ci=8)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.a} = {pair.b}"[:60])
def test_a_verdict_is_what_the_label_permits(pair: Pair) -> None:
    found = equivalent(mixer(pair, pair.a), mixer(pair, pair.b))
    assert type(found) in PERMITTED[pair.truth], found
    expected = PERMITTED[pair.truth][:-1] if pair.verdict is None else (pair.verdict,)
    assert type(found) in expected, found
    if not isinstance(found, Unknown):
        check(write(found.certificate))


def test_most_pairs_are_decided() -> None:
    unknown = [pair for pair in PAIRS if pair.verdict is Unknown]
    assert len(PAIRS) >= 80 and len(unknown) / len(PAIRS) <= 1 / 4
    assert {pair.truth for pair in PAIRS} == set(PERMITTED)
