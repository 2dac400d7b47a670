"""The bridge to SymPy: round trips, assumptions, and entries at chosen sizes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import sympy

from dsfc.expr import sympy_bridge as bridge
from dsfc.expr.build import add, mul, num, power, prim, total
from dsfc.expr.declarations import Constraint
from dsfc.expr.evaluate import NamedArray, canonical
from dsfc.expr.table import TABLE
from dsfc.expr.tree import Axis, Field, Iota, LinearMap, Map, Now, Param, Ref, Series, Size, Time

N, P = Axis(0, "n"), Axis(1, "p")
SIZES = {N: 2, P: 2}


def ref(name, *axes, kind=Field.REAL):
    return Ref(name, frozenset(axes), kind, Time.TOKEN, Now())


def test_assumptions_are_fixed_by_the_declaration():
    symbols = bridge.Symbols({"a": Constraint.POSITIVE})
    a = symbols.atom(Param("a", frozenset({N})))
    x = symbols.atom(ref("x", N))
    z = symbols.atom(ref("z", N, kind=Field.COMPLEX))
    assert a.is_positive and x.is_real and x.is_positive is None and z.is_real is None
    assert symbols.atom(Param("a", frozenset({N}))) is a
    assert symbols.entry("a", (0,), Field.REAL).is_positive


def test_two_things_of_one_name_stay_two():
    symbols = bridge.Symbols()
    assert symbols.atom(ref("x", N)) != symbols.atom(ref("x", P))


class Written:
    """Symbols with indices for every leaf."""

    def __init__(self):
        self.symbols = bridge.Symbols()

    def size(self, axis):
        return SIZES[axis]

    def _array(self, name, axes, kind):
        shape = [SIZES[a] for a in axes]
        return bridge.symbol_array(self.symbols, name, shape, kind)

    def ref(self, e):
        axes = canonical(e.over)
        return NamedArray(axes, self._array(e.name, axes, e.kind))

    def matrix(self, map):
        return self._array(map.name, (*map.each, *map.target, *map.source), map.field)


def test_entries_are_written_out_exactly():
    q, s = ref("q", N), ref("S", N, P)
    w = LinearMap("W", (), (N,), (N,))
    scope = Written()

    def sym(label):
        return sympy.Symbol(label, real=True)

    out = bridge.entries(total((N,), mul(q, s)), scope)
    assert out.axes == (P,)
    q0, q1 = sym("q_{0}"), sym("q_{1}")
    assert out.data[0] == q0 * sym("S_{0,0}") + q1 * sym("S_{1,0}")
    mapped = bridge.entries(Map(w, q), scope).data
    assert mapped[1] == sym("W_{1,0}") * q0 + sym("W_{1,1}") * q1
    third = bridge.entries(power(num(3), mul(num(-1), Size(N))), scope).data
    assert third[()] == sympy.Rational(1, 9)
    assert list(bridge.entries(add(Iota(N), num(1)), scope).data) == [1, 2]
    assert bridge.entries(Series(2, q), scope).data[0] == (q0 / 2 + 1) * q0 + 1
    unit = bridge.entries(prim("l2norm", q, axis=N), scope).data
    assert unit[0] == q0 / sympy.sqrt(q0**2 + q1**2)


def test_the_rest_of_the_compiler_does_not_load_sympy(tmp_path):
    import subprocess

    code = "import dsfc.expr.build, dsfc.system.ir, sys; assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


@pytest.mark.parametrize("name", [r.name for r in TABLE.values() if r.arity == 1])
def test_numbers_and_derivatives_come_from_the_definition(name):
    row = TABLE[name]
    if row.along_axis or row.fields.result(True) is not Field.REAL:
        return
    x = sympy.Symbol("x", real=True)
    f = bridge.apply_row(name, x)
    at = 0.7
    assert float(f.subs(x, at)) == pytest.approx(float(row.value(np.float64(at))), rel=1e-12)
    if name not in ("step", "sign", "abs", "re", "im", "conj", "stop_gradient"):
        h = 1e-6
        slope = (row.value(np.float64(at + h)) - row.value(np.float64(at - h))) / (2 * h)
        assert float(f.diff(x).subs(x, at)) == pytest.approx(float(slope), rel=1e-7)
