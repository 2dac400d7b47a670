"""A maximum of a state's own past has one form; anything else is told at its place."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.derive.derive import derive
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.max_plus import LOWEST
from dsfc.mixer.evaluate import evaluate
from dsfc.mixer.ir import Mixer
from dsfc.mixer.resolve import resolve
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.evaluate import evaluate as evaluate_system
from dsfc.system.ir import MaxPlus
from dsfc.transform.adjoint import adjoint


def mixer(body: str) -> Mixer:
    state = "m, s : d" if "s = " in body else "m : d"
    text = f"mixer x {{\n dims d\n input u, a : d\n state {state}\n {body}\n}}"
    return resolve(parse(Source("x.dsf", text)))


WRONG = {
    "m = max(2 * m[i-1], u)\n y = m": "`m[i-1]` is multiplied in `2 * m[i-1]`",
    "m = max(exp(m[i-1]), u)\n y = m": "`exp(m[i-1])` is not `m[i-1]` plus a value",
    "m = max(m[i-1] + a, m[i-1])\n y = m": "nothing but its own past enters",
    "m = max(m[i-1] + tanh(m[i-1]), u)\n y = m": "stands in several terms",
    "s = s[i-1] + m\n m = max(m[i-1], s[i-1])\n y = m": "it reads what depends on it",
    "m = max(m[i-1], u)\n y = m[i-2]": "it is read at another token",
    "m = max(m[i-1], u)\n y = sum[j ≤ i](m[j-1] * u[j])": "beside a summed token",
}


@pytest.mark.parametrize("body", WRONG)
def test_what_has_another_form_is_refused(body: str) -> None:
    with pytest.raises(DiagnosticError) as found:
        mixer(body)
    (problem,) = found.value.diagnostics
    assert problem.code == "E-MAX-PLUS" and WRONG[body] in problem.message
    assert problem.span.start > 0


def test_a_backward_maximum_is_refused() -> None:
    text = "mixer x { dims d\n input u : d\n state m : d backward\n m = max(m[i+1], u)\n y = m }"
    with pytest.raises(DiagnosticError) as found:
        derive(resolve(parse(Source("x.dsf", text))))
    assert [d.code for d in found.value.diagnostics] == ["E-MAX-PLUS"]


RIGHT = (
    "m = max(m[i-1] + a, u)\n y = m",
    "m = max(u, m[i-1])\n y = u - m",
    "m = max(max(a, m[i-1] - 1), max(u, m[i-1] + a))\n y = exp(m[i-1]) * u",
    "r = m[i-1] + a\n w = max(r, u)\n m = w\n y = w + m",
    "m = max(m[i-1], u)\n s = exp(m[i-1] - m) * s[i-1] + exp(u - m)\n y = s * exp(m)",
    "s = 1/2 * s[i-1] + u\n m = max(m[i-1] - a^2, s)\n y = m + s[i-1]",
    "m = max(m[i-1], u)\n F = s / 2 + m\n s = F[i-1] / 2 + u\n y = s",
    "m = max(m[i-1], u)\n y = sum[j ≤ i](exp(m[j] - 4) * u[j])",
)


@pytest.mark.parametrize("body", RIGHT)
def test_the_system_is_the_spec_run_literally(body: str) -> None:
    spec = mixer(body)
    system = derive(spec)
    assert any(isinstance(s.value, MaxPlus) and s.value.declared for s in system.streams)
    g = np.random.default_rng(0)
    inputs = {t.name: g.standard_normal((5, 2)) for t in spec.inputs}
    want = evaluate(spec, inputs, {}, {"d": 2})["y"]
    got = evaluate_system(system, inputs, {}, {"d": 2}).outputs["y"]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)  # rounding of five steps


def test_before_the_first_token_it_is_below_all_numbers() -> None:
    y = evaluate(mixer("m = max(m[i-1], u)\n y = m[i-1]"), {"u": np.zeros((2, 1))}, {}, {"d": 1})
    assert y["y"][:, 0].tolist() == [LOWEST, 0.0]


@pytest.mark.parametrize("body", RIGHT)
def test_the_adjoint_is_the_derivative(body: str) -> None:
    system = derive(mixer(body))
    made, record = adjoint(system)
    g = np.random.default_rng(1)
    inputs = {t.name: g.standard_normal((4, 2)) for t in system.inputs}
    bar = g.standard_normal((4, 2))
    names = dict(record.names)
    got = evaluate_system(made, {**inputs, names["y"]: bar}, {}, {"d": 2}).outputs
    step = 1e-6
    for name, value in inputs.items():
        for at in np.ndindex(*value.shape):
            ends = []
            for sign in (1, -1):
                moved = value.copy()
                moved[at] += sign * step
                given = {**inputs, name: moved}
                ends.append(np.sum(evaluate_system(system, given, {}, {"d": 2}).outputs["y"] * bar))
            want = (ends[0] - ends[1]) / (2 * step)
            # A central difference errs by the square of its step, and by rounding over it.
            assert abs(want - got[names[name]][at]) < 1e-6 * max(1.0, abs(want))
