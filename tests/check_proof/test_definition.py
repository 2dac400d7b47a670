"""Definitions with proven bounds are the language's meaning, for every shipped spec."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dsfc
from dsfc.check_proof.balls import Complex, Real
from dsfc.check_proof.definition import Execution
from dsfc.check_proof.entries import Obstacle
from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import evaluate, sample, sizes

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
    length = 3
    drawn = sample(it.mixer, size, seed=4, length=length)
    inputs, params, given = {}, {}, {}
    for name_, values in drawn.inputs.items():
        inputs[name_], given[name_] = rounded(values)
    for name_, values in drawn.params.items():
        params[name_], given[name_] = rounded(values)
    expected = evaluate(it.mixer, inputs, params, size)[it.mixer.output]
    try:
        found = Execution(system, size, length, given).output()
    except Obstacle as e:
        assert "proven bounds" in str(e)
        return
    for token in range(length):
        for ball, value in zip(found[token], expected[token].reshape(-1), strict=True):
            middle = complex(float(ball.re.low), float(ball.im.low))
            assert abs(middle - value) <= 1e-9 * max(1, abs(value))
            assert ball.re.high - ball.re.low < Fraction(1, 2**60)
