"""Λ, B, C, D and Φ as SymPy matrices, and the kernel of every finite mixer against its definition.

The definition is run literally on symbols: recursion over time and double loops, with token-wise
values as free symbols. Equality is exact, of rational functions over atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import dsfc.specs
import numpy as np
import pytest

from dsfc.derive.derive import derive
from dsfc.mixer.library import Library
from dsfc.mixer.resolve import resolve
from dsfc.primitives import sympy_bridge as bridge
from dsfc.primitives.evaluate import NamedArray, canonical
from dsfc.primitives.expr import Bound, Expr, Field, Lag, Now, Past, Ref, Relation, Run, Time
from dsfc.primitives.rational import equal
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source
from dsfc.system.formulas import read_out_formula, states
from dsfc.system.ir import Direct, Gate, Post, Product, SumOver
from dsfc.system.matrices import matrices
from dsfc.system.symbolic import Setting, SymbolScope, column

LENGTH = 4
SPECS = Path(next(iter(dsfc.specs.__path__)))
FINITE = sorted(
    {p.stem for p in SPECS.glob("*.dsf")}
    - {"qkv", "gate", "out_norm", "qk_norm", "short_conv", "token_shift"}  # bases and modifiers
    - {"softmax", "lstm"}  # no finite state; outside the framework
)


@pytest.fixture(scope="module")
def derived():
    """A function name of a spec → System, derived once."""
    known = {}

    def get(name):
        if name not in known:
            spec = parse(read_source(SPECS / f"{name}.dsf"))
            known[name] = derive(resolve(spec, name, Library()))
        return known[name]

    return get


# --- the definition, run literally ----------------------------------------------------------------


@dataclass(eq=False)
class Literal:
    """The definition of a mixer on symbols: a loop over tokens, sums over the past as loops."""

    setting: Setting
    length: int
    known: dict = field(default_factory=dict)

    def __post_init__(self):
        s = self.setting.system
        self.symbols = {x.name for x in s.streams if isinstance(x.value, Expr)}
        self.symbols |= {x.name for x in s.inputs} | {"first"}
        self.definitions = {d.name: d for d in s.definition}

    def name(self, ref, token):
        axes = canonical(ref.over)
        if ref.name in self.symbols:
            at = None if ref.at is None else Now(0)
            return (
                SymbolScope(self.setting, token or 0).ref(replace_at(ref, at))
                if (token is None or 0 <= token < self.length)
                else zeros(self.setting, axes)
            )
        if token is not None and not 0 <= token < self.length:
            return zeros(self.setting, axes)
        key = ref.name, token
        if key not in self.known:
            d = self.definitions[ref.name]
            value = bridge.entries(d.value, At(self, token or 0, {}))
            self.known[key] = value.expand(d.axes, self.setting.sizes.__getitem__)
        return self.known[key]


def replace_at(ref, at):
    return Ref(ref.name, ref.over, ref.kind, ref.when, at)


def zeros(setting, axes):
    shape = [setting.sizes[a] for a in axes]
    return NamedArray(axes, np.full(shape, bridge.number(0), dtype=object))


class At(SymbolScope):
    """The scope of one token of a literal run, with the summed tokens bound."""

    def __init__(self, run, token, bound):
        super().__init__(run.setting, token)
        object.__setattr__(self, "run", run)
        object.__setattr__(self, "bound", bound)

    def when(self, at):
        if isinstance(at, Bound):
            return self.bound[at.var] - at.lag
        return self.token - at.lag

    def ref(self, ref):
        return self.run.name(ref, None if ref.at is None else self.when(ref.at))

    def node(self, e):
        if isinstance(e, Lag):
            times = {"i": self.token, **self.bound}
            value = sum(c * times[v] for v, c in e.terms) + e.constant
            return NamedArray((), np.asarray(bridge.number(value)))
        inner, axes = (e.body, e.axes) if isinstance(e, Past) else (e.arg, e.axes)
        out = None
        for t in self.tokens(e):
            scope = At(self.run, self.token, {**self.bound, e.var: t})
            value = bridge.entries(inner, scope).data
            if out is None:
                out = value
            else:
                out = out + value if isinstance(e, Past) else out * value
        full = canonical(axes)
        if out is None:
            empty = zeros(self.setting, full)
            return empty if isinstance(e, Past) else NamedArray(full, empty.data + 1)
        return NamedArray(full, np.asarray(out))

    def tokens(self, e):
        if isinstance(e, Run):
            return range(self.when(e.low) + 1, self.when(e.high) + 1)
        outer = (self.token if e.outer is None else self.bound[e.outer]) - e.lag
        return {
            Relation.UP_TO: range(outer + 1),
            Relation.BEFORE: range(outer),
            Relation.FROM: range(outer, self.run.length),
            Relation.AFTER: range(outer + 1, self.run.length),
        }[e.relation]


def defined_output(m, i):
    """Entries of y_i of the definition, in the order of the read-out's axes."""
    run = Literal(m.setting, LENGTH)
    out = m.setting.system.outputs[m.output]
    value = run.name(Ref("y", frozenset(out.axes), Field.REAL, Time.STATE, Now(0)), i)
    return list(value.data.flat)


# --- the output, put together from the matrices ---------------------------------------------------


def system_output(m, i):
    """Entries of y_i with every linear part computed as Σ_j Φ_ij u_j."""
    given = {}

    def opened(r):
        for p in m.parts.values():
            if p.part.root is r:
                name = f"{p.part.name}·"
                axes = canonical(p.output_axes)
                shape = [m.setting.sizes[a] for a in p.output_axes]
                data = np.array(list(p.y(i)), dtype=object).reshape(shape)
                data = np.transpose(data, [p.output_axes.index(a) for a in axes])
                given[name, i] = NamedArray(axes, data)
                return Direct(Ref(name, frozenset(axes), Field.REAL, Time.TOKEN, Now(0)))
        if isinstance(r, Gate | SumOver):
            return replace(r, arg=opened(r.arg))
        if isinstance(r, Product | Post):
            return replace(r, args=tuple(opened(a) for a in r.args))
        return r

    out = m.setting.system.outputs[m.output]
    formula = read_out_formula(opened(out.value), states(m.setting.system))
    entries = column(SymbolScope(m.setting, i, given), formula, out.axes)
    return list(m.explicit(bridge.matrix([entries], len(entries)), LENGTH))


@pytest.mark.parametrize("gauge", ["lowered", "paper"])
@pytest.mark.parametrize("name", FINITE)
def test_the_kernel_multiplied_out_is_that_of_the_definition(derived, name, gauge):
    m = matrices(derived(name), gauge, length=LENGTH)
    for i in range(LENGTH):
        got, want = system_output(m, i), defined_output(m, i)
        assert len(got) == len(want)
        assert all(equal(g, w) for g, w in zip(got, want, strict=True))
