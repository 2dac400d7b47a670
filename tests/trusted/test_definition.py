"""Definitions with proven bounds are the language's meaning, for every shipped spec."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import evaluate, sample, sizes
from dsfc.mixer.ir import Mixer
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.balls import Complex, NotDefined, Real, Undefined
from dsfc.trusted.definition import POWER_LIMIT, Execution
from dsfc.trusted.entries import Obstacle

ZERO = Fraction(0)
SPECS = sorted(p.stem for p in (Path(dsfc.__file__).parent.parent / "specs").glob("*.dsf"))


def exact(x: complex) -> Complex:
    parts = (Fraction(float(p)).limit_denominator(64) for p in (x.real, x.imag))
    return Complex(*(Real(p, p) for p in parts))


def rounded(values: np.ndarray) -> tuple[np.ndarray, tuple[Complex, ...]]:
    """Numbers near the given ones that both sides can have exactly."""
    found = tuple(exact(complex(v)) for v in values.reshape(-1))
    flat = [complex(float(c.re.low), float(c.im.low)) for c in found]
    back = np.asarray(flat).reshape(values.shape)
    return (back if np.iscomplexobj(values) else back.real), found


def check_meaning(mixer: Mixer, system: System, size: dict[str, int], length: int) -> None:
    """Asserts that a definition with proven bounds is the mixer run in floating point."""
    drawn = sample(mixer, size, seed=4, length=length)
    inputs, params, given = {}, {}, {}
    for name, values in drawn.inputs.items():
        inputs[name], given[name] = rounded(values)
    for name, values in drawn.params.items():
        params[name], given[name] = rounded(values)
    expected = evaluate(mixer, inputs, params, size)[mixer.output]
    found = Execution(system, size, length, given).output()
    assert len(found) == length
    for token in range(length):
        for ball, value in zip(found[token], expected[token].reshape(-1), strict=True):
            middle = complex(float(ball.re.low), float(ball.im.low))
            assert abs(middle - value) <= 1e-9 * max(1, abs(value))
            assert ball.re.high - ball.re.low < Fraction(1, 2**60)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SPECS)
def test_a_definition_is_what_the_mixer_means(name: str) -> None:
    try:
        it = dsfc.load(name)
        system = it.system
    except DiagnosticError:
        pytest.skip("a base, a modifier, or outside the language")
    if system.abstracts:
        pytest.skip("feature maps that are not given")
    size = dict(sizes(it.mixer, {d.axis.name: 2 for d in it.mixer.axes}))
    for d in system.axes:
        size.setdefault(d.axis.name, size[d.axis.copy_of or d.axis.name])
    try:
        check_meaning(it.mixer, system, size, 3)
    except Obstacle as e:
        assert "proven bounds" in str(e)


BODIES = {
    "a sum up to now": "y = sum[j ≤ i](q[j] * q)",
    "a sum before now": "y = sum[j < i](q[j] * q)",
    "a sum from now on": "y = sum[j ≥ i](q[j] * q)",
    "a sum after now": "y = sum[j > i](q[j] * q)",
    "a product of gates": "a = sigmoid(q);  y = sum[j ≤ i](prod[j < l ≤ i](a[l]) * q[j])",
    "a product of gates to come": "a = sigmoid(q);  y = sum[j ≥ i](prod[i < l ≤ j](a[l]) * q[j])",
    "a power of a lag": "y = sum[j ≤ i](w^(i - j) * q[j])",
    "a power of a lag to come": "y = sum[j > i](w^(j - i - 1) * q[j])",
    "a sum inside of a sum": "y = sum[j ≤ i](q[j] * sum[l ≤ j](q[l] * q))",
    "a sum of another token": "x = sum[j ≤ i](q[j] * q);  y = x + 2 * x[i-1] - x[i-2]",
    "earlier tokens": "y = q[i-1] - 3 * q[i-2] + q[i-1] * q",
    "the first token": "y = first * q + 2 * first[i-1] * q",
    "a state": "state s : n × p\n s = sigmoid(q) * s[i-1] + q ⊗ v;  y = q · s",
    "a state before the update": "state s : n\n s = sigmoid(q) * s[i-1] + q;  y = q * s[i-1]",
    "states that read each other":
        "state s, r : n\n s = s[i-1] / 2 + r[i-1] + q;  r = r[i-1] / 3 - s[i-1];  y = s + r",
    "a state that runs backwards":
        "state s : n backward\n s = sigmoid(q) * s[i+1] + q;  y = s * q",
    "a filter": "param k : n × t\n y = fir[t](k, q)",
    "a filter of the past": "param k : t\n x = tanh(q);  y = fir[t](k, x[i-1])",
    "maps": "param A : n -> p;  B : p -> n;  C : each n : p -> p\n y = B (A q) + sum[p](C (q ⊗ v))",
    "reductions": "y = sum[p](v) * q + mean[p](v * v) * q - max[p](v) * max[n](q) * q",
    "norms": "y = softmax[n](q) + l2norm[n](q) * rmsnorm[n](q)",
    "powers": "y = (q + 3)^2 - q^3 + (2 + q * q)^(-2) + (1 + q * q)^(1/2) + exp(q)^0.3",
    "sizes and positions": "y = (iota[n] + n * p) * q / (p + 1)",
    "functions": "y = log(1 + q * q) + log1p(abs(q)) + expm1(q) + sqrt(abs(q)) + sign(q) * elu(q)",
    "bounds": "y = max(q, 1/2) - min(q, 1/3) + relu(q) + silu(q) + softplus(q) + logsigmoid(q)",
    "complex numbers":
        "param z : n complex\n y = Re(z * z / (z + 2)) + Im(exp(z)) * q + abs(z * cis(q))",
    "powers and conjugates": "param z : n complex\n y = Im(conj(z)^3 + (z + 2)^(-2)) * q",
    "numbers": "y = (0.1 + 1/3 - 2) * q + pi * q",
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_every_form_means_what_the_language_says(name: str) -> None:
    declared = "dims n = 2, p = 3, t = 3\n input q : n; v : p\n param w : n unit"
    text = f"mixer m {{ {declared}\n {BODIES[name]}\n}}"
    it = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m")
    size = dict(sizes(it.mixer, {d.axis.name: 2 for d in it.mixer.axes}))
    for d in it.system.axes:
        size.setdefault(d.axis.name, size[d.axis.copy_of or d.axis.name])
    check_meaning(it.mixer, it.system, size, 4)


def test_a_norm_of_zero_is_zero() -> None:
    text = "mixer m { dims n = 2\n input q : n\n y = l2norm[n](q) + rmsnorm[n](q) }"
    system = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system
    small = (Fraction(3, 10**13), Fraction(4, 10**13))  # of norm 5e-13, which is below 1e-12
    given = {"q": tuple(Complex(Real(x, x), Real(ZERO, ZERO)) for x in (ZERO, ZERO, *small))}
    zero, (first, _) = Execution(system, {"n": 2}, 2, given).output()
    assert all(x.re == Real(ZERO, ZERO) for x in zero)
    assert abs(float(first.re.low) - 0.3 * (1 + 2**0.5)) < 1e-9


def test_a_power_is_exact_up_to_a_bound() -> None:
    at = Execution(dsfc.load("linear_attn").system, {}, 1, {})
    two, half = exact(2), exact(0.5)
    for exponent in (POWER_LIMIT, -POWER_LIMIT):
        found = at.power(two, exact(exponent))
        assert found.re.exact and found.re.low == Fraction(2) ** exponent
        with pytest.raises(NotDefined, match="too large"):
            at.power(two, exact(exponent + (1 if exponent > 0 else -1)))
    assert at.power(exact(9), half) == exact(3)
    assert at.power(exact(0), exact(0.3)) == at.power(exact(0), half) == exact(0)
    with pytest.raises(Undefined):
        at.power(exact(0), exact(-0.3))
    for base, exponent in ((exact(1j), half), (two, exact(1j)), (exact(1j), exact(0.3))):
        with pytest.raises(Obstacle):
            at.power(base, exponent)


@pytest.mark.parametrize("function", ["sqrt", "log", "log1p", "power"])
def test_a_complex_function_may_have_a_value_where_a_real_one_has_none(function: str) -> None:
    """√-2 is i √2 where the argument is declared complex."""
    for number, error in (("cplx(q, 0)", "unless as a complex"), ("q", "negative|positive")):
        applied = f"{number}^0.5" if function == "power" else f"{function}({number})"
        text = f"mixer m {{ input q\n y = abs({applied}) }}"
        system = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system
        with pytest.raises(NotDefined, match=error) as raised:
            Execution(system, {}, 1, {"q": (exact(-2),)}).output()
        assert isinstance(raised.value, Undefined) == (number == "q")
