"""Reverse-mode derivatives against central differences, complex values by PyTorch's convention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dsfc.expr.build import prim, total
from dsfc.expr.derivative import adjoint, filter_argument, filter_weight, pull
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.table import TABLE
from dsfc.expr.tree import Abstract, Axis, Field, Fir, LinearMap, Now, Param, Ref, Time


def loss_of(expr):
    """Re Σ of the values: a real scalar whose cotangent is 1."""
    out = total(expr.axes, expr)
    return prim("re", out)


def directional(loss, scope, key, value, direction):
    """Central difference along a direction, refined once by Richardson."""

    def at(step):
        scope.leaves[key] = value + step * direction
        return float(evaluate(loss, scope).data)

    def slope(h):
        return (at(h) - at(-h)) / (2 * h)

    out = (4 * slope(1e-4) - slope(2e-4)) / 3
    scope.leaves[key] = value
    return out


@given(seed=st.integers(0, 10**6))
def test_gradients_are_the_slopes_of_the_loss(draw, values, seed):
    expr = draw(seed, 4)
    loss = loss_of(expr)
    scope = values(seed)
    with np.errstate(all="ignore"):
        at_point = float(evaluate(loss, scope).data)
        assume(abs(at_point) < 1e3)
        # The gradient of loss² / 2, whose cotangent at the loss is the loss itself.
        _compare(pull([(loss, loss)]), loss, scope, at_point)


def _compare(gradients, loss, scope, seed_value):
    leaves = {**gradients.refs, **gradients.params}
    for leaf, g in leaves.items():
        assert g.axes == leaf.axes
        assert g.field <= leaf.field
        value = scope.array(leaf)
        rng = np.random.default_rng(7)
        direction = rng.normal(size=value.shape)
        if leaf.kind is Field.COMPLEX:
            direction = direction + 1j * rng.normal(size=value.shape)
        got = float(np.real(np.sum(np.conj(direction) * evaluate(g, scope).data)))
        _close(got, seed_value * directional(loss, scope, leaf, value, direction), seed_value)
    for m in {m.map for m in gradients.maps}:
        value = scope.matrix(m)
        direction = np.random.default_rng(8).normal(size=value.shape)
        if m.field is Field.COMPLEX:
            direction = direction * (1 + 2j)
        got = sum(_map_slope(g, scope, direction) for g in gradients.maps if g.map == m)
        _close(got, seed_value * directional(loss, scope, m, value, direction), seed_value)


def _close(got, expected, scale):
    assert got == pytest.approx(expected, rel=1e-5, abs=1e-5 * max(1.0, abs(scale)))


def _map_slope(g, scope, direction):
    """Re Σ conj(direction) · (cotangent ⊗ conj(argument))."""
    m = g.map
    axes = sorted(set(g.cotangent.axes) - set(m.target) | set(g.argument.axes) - set(m.source))
    number = {a: k for k, a in enumerate(axes)}
    t = {a: 20 + k for k, a in enumerate(m.target)}
    s = {a: 30 + k for k, a in enumerate(m.source)}
    cot, arg = evaluate(g.cotangent, scope), evaluate(g.argument, scope)
    return float(
        np.real(
            np.einsum(
                np.conj(direction),
                [*(number[a] for a in m.each), *t.values(), *s.values()],
                cot.data,
                [t[a] if a in t else number[a] for a in cot.axes],
                np.conj(arg.data),
                [s[a] if a in s else number[a] for a in arg.axes],
                [],
            )
        )
    )


class Line:
    """A scope over a short sequence: the value of a name at each token."""

    def __init__(self, i, sequences, params, sizes):
        self.i, self.sequences, self.params, self.sizes = i, sequences, params, sizes

    def size(self, axis):
        return self.sizes[axis]

    def param(self, name):
        return self.params[name]

    def ref(self, ref):
        axes, data = self.sequences[ref.name]
        j = self.i - ref.at.lag
        return NamedArray(axes, data[j] if 0 <= j < len(data) else np.zeros(data.shape[1:]))


def test_a_filter_pulls_back_through_its_named_cotangent():
    d, t, t2 = Axis(0, "d"), Axis(1, "t"), Axis(2, "t2", copy_of="t")
    sizes = {d: 2, t: 3, t2: 3}
    rng = np.random.default_rng(0)
    length = 5
    x, g, w = rng.normal(size=(length, 2)), rng.normal(size=(length, 2)), rng.normal(size=(2, 3))
    scope = [
        Line(i, {"x": ((d,), x), "g": ((d,), g)}, {"w": NamedArray((d, t), w)}, sizes)
        for i in range(length)
    ]
    over = frozenset({d})
    fir = Fir(t, Param("w", frozenset({d, t})), Ref("x", over, Field.REAL, Time.TOKEN, Now(1)))
    named = Ref("g", over, Field.REAL, Time.TOKEN, Now(0))
    (found,) = pull([(fir, named)]).filters
    assert found.filter is fir and found.cotangent is named
    back = filter_argument(fir, named)
    weight = filter_weight(fir, named, t2)

    expected_x, expected_w = np.zeros_like(x), np.zeros_like(w)
    for i in range(length):
        for r in range(3):
            if i - 1 - r >= 0:
                expected_x[i - 1 - r] += w[:, r] * g[i]
                expected_w[:, r] += g[i] * x[i - 1 - r]
    got_x = np.stack([evaluate(back, s).data for s in scope])
    got_w = sum(evaluate(weight, s).data for s in scope)
    np.testing.assert_allclose(got_x, expected_x, atol=1e-14)
    np.testing.assert_allclose(got_w, expected_w, atol=1e-14)


def test_every_row_has_a_vector_jacobian_rule_of_its_arity(values):
    x = Ref("x", frozenset({Axis(1, "n")}), Field.REAL, Time.TOKEN, Now())
    for r in TABLE.values():
        args = tuple(x for _ in range(r.arity))
        axis = Axis(1, "n") if r.along_axis else None
        out = r.vjp(args, x, x, axis)
        assert len(out) == r.arity


def test_an_uninterpreted_map_has_no_derivative():
    n = Axis(1, "n")
    x = Ref("x", frozenset({n}), Field.REAL, Time.TOKEN, Now())
    with pytest.raises(TypeError, match="uninterpreted"):
        pull([(Abstract("phi", (n,), (n,), x), x)])


def test_the_adjoint_of_a_square_map_is_its_transpose(values):
    n = Axis(1, "n")
    square = LinearMap("A", (), (n,), (n,))
    assert adjoint(adjoint(square)) == square
    assert adjoint(square).adjoint
