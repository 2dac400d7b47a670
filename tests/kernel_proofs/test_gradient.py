"""Gradients of kernels are derivatives of polynomials, at the lengths that are said."""

from __future__ import annotations

from fractions import Fraction

import pytest
from proved_kernels import gradient_by_tokens, gradient_in_chunks, of_backend

from dsfc.kernel_proofs.gradient import derivatives
from dsfc.kernel_proofs.prove import Status, prove
from dsfc.trusted.polynomial import constant, generator

x, y, e = generator("x[0]"), generator("y[0]"), generator("exp[x[0]*y[0]]")
EXPONENTS = {"exp[x[0]*y[0]]": x * y}


def test_a_polynomial_is_differentiated_by_each_of_its_symbols() -> None:
    p = x.power(3) * y + constant(5)
    assert derivatives(p, {}) == {"x[0]": x.power(2) * y * constant(3), "y[0]": x.power(3)}


def test_the_derivative_of_an_exponential_has_that_of_its_exponent() -> None:
    got = derivatives(e.power(2) * x, EXPONENTS)
    square = e.power(2)
    assert got["x[0]"] == square + square * x * y * constant(2)
    assert got["y[0]"] == square * x.power(2) * constant(2)


def test_a_constant_has_no_derivative() -> None:
    assert derivatives(constant(Fraction(1, 3)), {}) == {}


@pytest.mark.parametrize(("mixer", "chunk"), [("retnet", 2), ("gla", 2), ("gla", 1)])
def test_a_gradient_of_chunks_is_proved_at_some_lengths(mixer: str, chunk: int) -> None:
    verdict = prove(*gradient_in_chunks(mixer, chunk))
    assert verdict.status is Status.AT_LENGTHS
    assert dict(verdict.sizes) == {"B": 1, "H": 1, "N": 2, "P": 2}


@pytest.mark.ci
@pytest.mark.parametrize("mixer", ["gla", "s6"])
def test_the_gradient_that_c_prints_is_proved_at_some_lengths(mixer: str) -> None:
    assert prove(*of_backend(mixer, 1)).status is Status.AT_LENGTHS


def test_a_gradient_of_tokens_is_proved_at_some_lengths() -> None:
    verdict = prove(*gradient_by_tokens("rg_lru"))
    text = "proved at some lengths: L = 1, 2 and 3, with B = 1, CHANNELS = 2"
    assert verdict.sentence == text


@pytest.mark.parametrize("mixer", ["deltanet", "rwkv7"])
def test_a_gradient_of_rewritten_states_is_proved_over_three_tokens(mixer: str) -> None:
    verdict = prove(*gradient_in_chunks(mixer, 2))
    assert verdict.status is Status.AT_LENGTHS
    assert verdict.text.startswith("L = 1, 2 and 3, with ")


def test_a_gradient_is_not_that_of_another_scan() -> None:
    kernel, _ = gradient_in_chunks("gla", 2)
    _, scan = gradient_in_chunks("retnet", 2)
    assert prove(kernel, scan).status is Status.UNDECIDED
