"""Which ratios of sums are softmax attention, and why others are not; no name has a say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dsfc
from dsfc.expr.text import text
from dsfc.mixer import sample, sizes
from dsfc.plan.evaluate import evaluate as evaluate_plan
from dsfc.plan.pairs_ir import AllPairs
from dsfc.structure.ir import ClassName
from dsfc.structure.render import render

PLAIN = "sum[j ≤ i](score(q, k[j]) * v[j]) / sum[j ≤ i](score(q, k[j]))"


@pytest.fixture
def loaded(tmp_path: Path):
    def load(body: str, base: str = "extends softmax"):
        file = tmp_path / "mine.dsf"
        file.write_text(f"mixer mine {base} {{\n{body}\n}}\n", encoding="utf-8")
        return dsfc.load(file)

    return load


RENAMED = """
  dims d, heads g = 2, a = d / g, b = d / g
  input x : d
  param A, B : d -> g × a; C : d -> g × b
  r = A x; s = B x; w = C x
  out = sum[t ≤ i](w[t] * exp(r · s[t] / a^(1/2))) / sum[m ≤ i](exp(s[m] · r * a^(-1/2)))
  y = out"""
ONE_KEY = """
  dims d, heads h = 2, n = d / h, p = d / h
  input u : d
  param Q : d -> h × n; K : d -> n; V : d -> p; t : h; c : d -> h
  q = Q u; k = K u; v = V u; e = c u
  y = sum[j ≤ i](exp(t * q · k[j] - e) ⊗ v[j]) / sum[j ≤ i](exp(t * q · k[j] - e))"""
PRODUCT = """
  dims d
  input q : d; k : d; v : d
  y = sum[j ≤ i](exp(q * k[j]) * v[j]) / sum[j ≤ i](exp(q * k[j]))"""


@pytest.mark.parametrize(
    ("body", "base", "axes", "scale", "query", "key", "value"),
    [
        (f"y = {PLAIN}", "extends softmax", "h / n / p", "n^(-1/2)", "q", "k", "v"),
        (f"use qk_norm on q, k\n use gate on y\n y = {PLAIN}", "extends softmax",
         "h / n / p", "n^(-1/2)", "q", "k", "v"),
        (RENAMED, "", "g / a / b", "a^(-1/2)", "r", "s", "w"),
        (ONE_KEY, "", "h / n / p", "1", "t * q", "k", "v"),
        (PRODUCT, "", "d / · / ·", "1", "q", "k", "v"),
        ("Z = sum[j ≤ i](score(k, q[j])); y = sum[j ≤ i](score(k, q[j]) * v[j]) / Z",
         "extends softmax", "h / n / p", "n^(-1/2)", "k", "q", "v"),
        ("y = sum[j ≤ i](score(q, k[j-1]) * silu(v[j])) / sum[j ≤ i](score(q, k[j-1]))",
         "extends softmax", "h / n / p", "n^(-1/2)", "q", "k[i-1]", "silu(v)"),
        ("y = sum[j ≤ i](exp(mean[n](q * k[j])) * v[j]) / sum[j ≤ i](exp(mean[n](k[j] * q)))",
         "extends softmax", "h / n / p", "1 / n", "q", "k", "v"),
    ],
)  # fmt: skip
def test_it_is_read_off_the_expression(
    loaded, body: str, base: str, axes: str, scale: str, query: str, key: str, value: str
) -> None:
    structure = loaded(body, base).structure
    (found,) = structure.attentions
    assert structure.name is ClassName.SOFTMAX
    got = [text(e) for e in (found.scale, found.query, found.key, found.value)]
    assert got == [scale, query, key, value]
    assert f"axes      {axes}  (head / key / channel)" in render(structure)


def test_its_state_is_said_to_grow() -> None:
    said = render(dsfc.load("softmax").structure)
    assert "state       h * n + h * p for each token: it grows with the sequence" in said


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("score(a, b) = sigmoid(a · b)", "its weights have the factor `sigmoid(q · k[j])`, no exp"),
        ("score(a, b) = exp(a · b)^2 + 1", "no exponential"),
        (f"y = {PLAIN.replace('sum[j ≤ i](score(q, k[j]))', '(1 + sum[j ≤ i](score(q, k[j])))')}",
         "a guard stands in its denominator"),
        (f"y = {PLAIN.replace('≤', '<')}", "its sums end before the token itself"),
        (f"y = {PLAIN.replace('≤', '≥')}", "its sums run over tokens to come"),
        (f"y = {PLAIN.replace('v[j]', 'q · k[j] * v[j]')}",
         "its sum has the factor `q · k[j]`, its normaliser has not"),
        ("y = sum[j ≤ i](score(q, k[j]) * v[j]) / sum[j ≤ i](score(k, q[j]))",
         "its normaliser has the factor `exp(n^(-1/2) * k · q[j])`, its sum has not"),
        ("score(a, b) = exp((a · b)^2)", "is no product of a query and a key"),
        ("score(a, b) = exp((a · b) * (b · a))", "its score is a product of two scores"),
        ("score(a, b) = exp(a · b) * exp(b · a)", "its score is not one product"),
        ("param m : h; s = sum[j ≤ i](exp(q · k[j] - m * (i-j)) * v[j]);"
         "y = s / sum[j ≤ i](exp(q · k[j] - m * (i-j)))", "`i-j` is no product"),
        ("y = sum[j ≤ i](score(q, k[j]) * v[j]) / (1 + abs(q · k))", ""),
    ],
)  # fmt: skip
def test_what_is_outside_runs_over_all_pairs_and_says_why(loaded, body: str, why: str) -> None:
    it = loaded(body)
    assert it.structure.attentions == ()
    pairs = [k for k in it.plan.kernels if isinstance(k, AllPairs)]
    assert pairs
    assert all(k.why.startswith("no finite state: ") for k in pairs)
    assert why in " ".join(k.why for k in pairs)


def test_beside_states_it_is_stepped_and_is_the_attention_over_their_values(loaded) -> None:
    body = "state S : h × n; S = 1/2 * S[i-1] + k; y = " + PLAIN.replace("k[j]", "S[j]")
    it = loaded(body)
    known = sizes(it.mixer, {"d": 8})
    drawn = sample(it.mixer, known, 0, 5)
    arguments = (drawn.inputs, drawn.params, known, drawn.initial)
    got = evaluate_plan(it.plan, *arguments).arrays[it.plan.output]
    (u,) = drawn.inputs.values()
    q, k, v = (np.einsum("...d,ld->l...", drawn.params[f"W_{n}"], u) for n in "QKV")
    held, keys = drawn.initial["S"], []
    for key in k:
        held = held / 2 + key
        keys.append(held)
    for i, (query, row) in enumerate(zip(q, got, strict=True)):
        weights = np.exp(np.einsum("hn,lhn->lh", query, keys[: i + 1]) / known["n"] ** 0.5)
        want = np.einsum("lh,lhp->hp", weights / weights.sum(0), v[: i + 1])
        np.testing.assert_allclose(row, want, rtol=1e-12)
    assert 'MODES = ("recurrent",)' in it.module().text
