"""The renderings of small Systems: index form, Kronecker form, kernel, LaTeX, JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import pytest

from dsfc.api.pipeline import load
from dsfc.expr.json import decode
from dsfc.matrices.convolution import convolution_form
from dsfc.matrices.kronecker_form import kronecker_form
from dsfc.matrices.latex import latex_form
from dsfc.system.index_form import index_form
from dsfc.system.ir import System
from dsfc.system.json import FORMAT, to_json

NAMES = ["normalized", "ratio", "delta", "before", "both_ways", "dense"]


def block(text):
    return textwrap.dedent(text).lstrip("\n")


def test_the_index_form_says_everything(systems):
    assert index_form(systems["normalized"]) == block("""
        system normalized

        axes
          d
          heads h = 2
          n
          p

        inputs
          u : d

        parameters
          W_Q : d -> h × n
          W_K : d -> h × n
          W_V : d -> h × p
          w_eta : d -> h

        streams
          q : h × n = W_Q u
          k : h × n = W_K u
          v : h × p = W_V u
          eta : h = exp(w_eta u)

        stage 1, forward
          S : h × n × p  (found)  "Sieber et al. 2024 eq. 22"
            S = S[i-1] + k ⊗ v
            decay: none (λ = 1)
            drive: key k, stream v

        output
          y : h × p = q · S / eta
    """)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("ratio", "y : h × p = q · S / max(abs(q · z), 1)"),
        ("ratio", "drive: key k, stream 1"),
        ("ratio", "decay: log λ = -softplus(w)"),
        ("delta", "S(1) = alpha * S[i-1]"),
        ("delta", "S = S(1) - beta * k ⊗ k · S(1) + beta * k ⊗ v"),
        ("delta", "drive 2: key beta * k, stream v"),
        ("before", "y : h × p = q · S[i-1] + q · k * v"),
        ("before", "drive: key (1 - alpha) * k, stream v, coupling 1 − λ"),
        ("before", "decay: log λ = log(alpha)  (no closed logarithm)"),
        ("both_ways", "stage 2, backward"),
        ("both_ways", "R = alpha * R[i+1] + k ⊗ v"),
        ("dense", "x = A x[i-1] + B u"),
        ("dense", "y : d = C x"),
    ],
)
def test_index_lines(systems, name, line):
    assert line in [x.strip() for x in index_form(systems[name]).splitlines()]


def test_the_kronecker_form_is_the_paper_s(systems):
    assert kronecker_form(systems["normalized"]) == block("""
        normalized: Kronecker form, lowered gauge, for each h

        y
          state S: h_i over p ⊗ n
            Λ_i = I_{p n}
            B_i = (I_p ⊗ k_i) W_V   on u_i
          C_i = (1 / eta_i) (I_p ⊗ q_iᵀ)
          D_i = 0
          y_i = C_i h_i
    """)
    paper = kronecker_form(systems["normalized"], "paper")
    assert "paper gauge" in paper
    assert "Λ_i = (eta_{i-1} / eta_i) I_{p n}" in paper
    assert "B_i = (1 / eta_i) (I_p ⊗ k_i) W_V" in paper
    assert "C_i = I_p ⊗ q_iᵀ\n" in paper


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("delta", "Λ_i = (I_{p n} - beta_i (I_p ⊗ k_i k_iᵀ)) · alpha_i I_{p n}"),
        ("ratio", "Λ_i = I_p ⊗ diag(exp(-softplus(w_i)))"),
        ("ratio", "where eta_i = max(abs(q_i · z_i), 1)"),
        ("before", "y_i = C_i h_{i-1} + D_i u_i"),
        ("both_ways", "y_i = C_i[S] h_i[S] + C_i[R] h_{i+1}[R]"),
        ("dense", "Λ_i = A"),
    ],
)
def test_kronecker_lines(systems, name, line):
    assert line in [x.strip() for x in kronecker_form(systems[name]).splitlines()]


def test_the_kernel_is_written_as_products_and_as_a_sum(systems):
    text = convolution_form(systems["before"])
    assert "Φ_ij = (I_p ⊗ q_iᵀ) · Π_{j < l ≤ i-1} [alpha_l I_{p n}]" in text
    assert "for j < i" in text
    assert (
        "y = q · sum[j < i](prod[j < l ≤ i-1](alpha[l]) * (1 - alpha[j]) * k[j] ⊗ v[j])"
        " + q · k * v" in text
    )
    backward = convolution_form(systems["both_ways"])
    assert "Π_{i+1 ≤ l < j}" in backward and "for j > i" in backward
    assert "y = " not in convolution_form(systems["delta"])


@pytest.mark.parametrize("gauge", ["lowered", "paper"])
@pytest.mark.parametrize("name", NAMES)
def test_latex_is_balanced(systems, name, gauge):
    text = latex_form(systems[name], gauge)
    for opening, closing in ("{}", "()", "[]"):
        plain = re.sub(r"\\[{}]", "", text)
        assert plain.count(opening) == plain.count(closing)
    assert text.count(r"\left") == text.count(r"\right")
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") == 1
    assert text.isascii()


def test_latex_of_normalised_attention(systems):
    text = latex_form(systems["normalized"], "paper")
    assert r"\Lambda_i &= \frac{\eta_{i-1}}{\eta_{i}} I_{p n}" in text
    assert r"C_i &= I_{p} \otimes {q_{i}}^{\top}" in text


@pytest.mark.parametrize("form", [kronecker_form, convolution_form, latex_form])
def test_an_unknown_gauge_is_refused(systems, form):
    with pytest.raises(ValueError, match="no gauge"):
        form(systems["normalized"], "mine")


@pytest.mark.parametrize("name", NAMES)
def test_json_gives_the_system_back(systems, name):
    document = json.loads(to_json(systems[name]))
    assert document.pop("format") == FORMAT
    assert decode(document, System) == systems[name]


def test_the_text_forms_do_not_load_sympy(tmp_path):
    forms = ("kronecker_form", "latex", "convolution")
    modules = ", ".join(f"dsfc.matrices.{m}" for m in forms)
    code = (
        f"import sys, dsfc.system.index_form, dsfc.system.json, {modules}\n"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_matrices_print_as_their_form_and_explicit_ones_as_their_shapes() -> None:
    gla = load("gla")
    assert str(gla.matrices()) + "\n" == kronecker_form(gla.system)
    assert str(gla.matrices("paper")) + "\n" == kronecker_form(gla.system, "paper")
    explicit = str(gla.matrices(sizes={"d": 3, "n": 2, "p": 2}))
    assert "d = 3, h = 1, n = 2, p = 2" in explicit
    assert "Lambda(i): 4 × 4" in explicit and "C(i): 2 × 4" in explicit
    assert "C(i)" not in str(load("short_convolution").matrices(sizes={}))
    assert "there are no Λ, B, C, D" in str(load("softmax").matrices(sizes={}))
