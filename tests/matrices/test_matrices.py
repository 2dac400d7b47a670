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
from rational import equal

from dsfc.derive.derive import derive
from dsfc.expr import sympy_bridge as bridge
from dsfc.expr.evaluate import NamedArray, canonical
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.tree import Bound, Expr, Field, LinearMap, Map, Now, Ref, Time
from dsfc.matrices.kronecker import Shape
from dsfc.matrices.kronecker_matrices import plain
from dsfc.matrices.kronecker_part import kronecker_part
from dsfc.matrices.matrices import matrices
from dsfc.matrices.symbolic import Setting, SymbolScope, column
from dsfc.mixer.library import Library
from dsfc.mixer.resolve import resolve
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source
from dsfc.system.formulas import read_out_formula, states
from dsfc.system.ir import Direct, Gate, Post, Product, SumOver

LENGTH = 4
SPECS = Path(next(iter(dsfc.specs.__path__)))
FINITE = sorted(
    {p.stem for p in SPECS.glob("*.dsf")}
    - {"qkv", "gate", "out_norm", "qk_norm", "short_conv", "token_shift"}  # bases and modifiers
    - {"softmax", "lstm", "slstm"}  # no finite state; outside the framework
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
    out = m.system.outputs[m.output]
    value = run.name(Ref("y", frozenset(out.axes), Field.REAL, Time.STATE, Now(0)), i)
    return list(value.data.flat)


# --- the output, put together from the matrices ---------------------------------------------------


def system_output(m, i):
    """Entries of y_i with every linear part computed as Σ_j Φ_ij u_j."""
    given = {}

    def opened(r):
        for p in m.explicit_parts.values():
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

    out = m.system.outputs[m.output]
    formula = read_out_formula(opened(out.value), states(m.system))
    entries = column(SymbolScope(m.setting, i, given), formula, out.axes)
    return list(m.explicit(bridge.matrix([entries], len(entries)), LENGTH))


@pytest.mark.share(12)
@pytest.mark.parametrize("gauge", ["lowered", pytest.param("paper", marks=pytest.mark.ci)])
@pytest.mark.parametrize(
    "name", [n for n in FINITE if n != "gsa"]
)  # one Φ holds what another gives
def test_the_kernel_multiplied_out_is_that_of_the_definition(derived, name, gauge):
    m = matrices(derived(name), gauge, {}, LENGTH)
    for i in range(LENGTH):
        got, want = system_output(m, i), defined_output(m, i)
        assert len(got) == len(want)
        assert all(equal(g, w) for g, w in zip(got, want, strict=True))


# --- the paper's equation 15 ----------------------------------------------------------------------

ATTENTION = [n for n in FINITE if "normalized_attn" in n or n in ("generalized_attn", "separable")]


@pytest.mark.parametrize("name", ATTENTION)
def test_in_the_paper_s_gauge_the_transition_is_a_ratio_of_normalisers(derived, name):
    m = matrices(derived(name), "paper", {})
    eta = [m.setting.symbols.entry("eta", (i, 0), Field.REAL) for i in range(3)]
    size = m.Lambda(2).rows
    assert m.Lambda(2) == bridge.diagonal([eta[1] / eta[2]] * size)
    lowered = matrices(derived(name), "lowered", {})
    assert lowered.Lambda(2) == bridge.diagonal([1] * size)
    assert m.B(2) == lowered.B(2) / eta[2]
    assert m.C(2) == (lowered.C(2) * eta[2])


@pytest.mark.parametrize("name", ATTENTION)
def test_equation_15_as_printed_is_another_map(derived, name):
    """Sieber et al. 2024 eq. 15 prints η_{i-1} in B_i; its kernel is not that of the definition."""
    m = matrices(derived(name), "paper", {}, LENGTH)
    lowered = matrices(derived(name), "lowered", {})
    eta = [m.setting.symbols.entry("eta", (i, 0), Field.REAL) for i in range(LENGTH)]

    def output(i, shift):
        """y_i of the matrices with η_{j-shift} in B_j; the first token has no other η."""
        out = m.C(i) * 0 * m.B(0) * m.first.u(0)
        for j in range(i + 1):
            h = lowered.B(j) / eta[max(j - shift, 0)]
            for k in range(j + 1, i + 1):
                h = m.Lambda(k) * h
            out = out + m.C(i) * h * m.first.u(j)
        return list(out)

    for i in range(LENGTH):
        want = defined_output(m, i)
        assert all(equal(a, b) for a, b in zip(output(i, 0), want, strict=True))
    assert not all(equal(a, b) for a, b in zip(output(2, 1), defined_output(m, 2), strict=True))


# --- the two forms agree --------------------------------------------------------------------------


class Dense:
    """Kronecker products written out at the sizes of explicit matrices, one head."""

    def __init__(self, setting, token):
        self.scope = SymbolScope(setting, token)
        self.setting = setting

    def entries(self, e, axes):
        heads = tuple(a for a in sorted(e.axes) if a.heads)
        return np.array(column(self.scope, e, (*heads, *axes)), dtype=object)

    def factor(self, f):
        shape = [self.setting.sizes[a] for a in f.axes]
        value = self.entries(f.value, f.axes)
        kept = [a for a in f.axes if a in f.kept]
        match f.shape:
            case Shape.DIAGONAL:
                return np.diag(value)
            case Shape.COLUMN:
                return value[:, None]
            case Shape.ROW:
                return value[None, :]
            case Shape.OUTER if not kept:
                return np.outer(value, self.entries(f.right, f.axes))
        # Kept axes tie the index of argument and result together.
        places = list(np.ndindex(*shape))
        small = list(np.ndindex(*(self.setting.sizes[a] for a in kept)))
        at = {p: tuple(p[f.axes.index(a)] for a in kept) for p in places}
        if f.shape is Shape.OUTER:
            right = self.entries(f.right, f.axes)
            return np.array(
                [[value[r] * right[c] * int(at[p] == at[o]) for c, o in enumerate(places)]
                 for r, p in enumerate(places)], dtype=object,
            )  # fmt: skip
        wide = np.array(
            [[value[r] * int(at[p] == o) for o in small] for r, p in enumerate(places)],
            dtype=object,
        )
        return wide if f.shape is Shape.COLUMNS else wide.T

    def map(self, m):
        ends = [*m.each, *(m.source if m.adjoint else m.target)]
        rows = int(np.prod([self.setting.sizes[a] for a in ends], dtype=int))
        out = self.scope.matrix(m).reshape(rows, -1)
        return out.T if m.adjoint else out

    def kron(self, k):
        out = np.array([[bridge.number(1)]], dtype=object)
        for f in k.factors:
            out = np.kron(out, self.factor(f))
        for m in k.before:
            out = out @ self.map(m)
        for a in reversed(k.after):
            if isinstance(a, LinearMap):
                out = self.map(a) @ out
            else:
                out = (
                    np.diag(self.entries(a, tuple(sorted(x for x in a.axes if not x.heads)))) @ out
                )
        for e in k.above:
            out = out * self.entries(e, ())[0]
        for e in k.below:
            out = out / self.entries(e, ())[0]
        return out

    def product(self, operators):
        out = self.operator(operators[0])
        for o in operators[1:]:
            out = out @ self.operator(o)
        return out

    def operator(self, o):
        return sum(self.kron(k) for k in o)


@pytest.mark.share(6)
@pytest.mark.parametrize("gauge", ["lowered", "paper"])
@pytest.mark.parametrize("name", FINITE)
def test_the_kronecker_form_written_out_is_the_explicit_one(derived, name, gauge):
    forms_agree(matrices(derived(name), gauge, {}, LENGTH))


@pytest.mark.parametrize("gauge", ["lowered", "paper"])
@pytest.mark.parametrize("name", ["normalized", "ratio", "delta", "before", "both_ways", "early"])
def test_the_forms_agree_on_small_systems(systems, name, gauge):
    """`early` drives its state before the last factor of the chain."""
    system = systems["delta" if name == "early" else name]
    if name == "early":
        (stage,) = system.stages
        first, second = stage.blocks[0].chain
        chain = (replace(first, drives=second.drives), replace(second, drives=()))
        block = replace(stage.blocks[0], chain=chain)
        system = replace(system, stages=(replace(stage, blocks=(block,)),))
    forms_agree(matrices(system, gauge, {"h": 1}, LENGTH))


def forms_agree(m):
    gauge = m.gauge
    for explicit in m.explicit_parts.values():
        form = kronecker_part(m.system, explicit.part, gauge == "paper")
        dense = Dense(m.setting, 2)
        start = 0
        for b in form.blocks:
            size = m.setting.count(b.axes)
            rows = slice(start, start + size)
            _same(explicit.Lambda(2)[rows, rows], dense.product(b.chain))
            _same(
                (explicit.B(2) * explicit.u(2))[rows, :],
                sum(
                    dense.product(d.product) @ dense.entries(d.input, plain(d.input.axes))
                    for d in b.drives
                ),
                opened(m, 2),
            )
            for r in form.reads:
                if r.state == b.block.state:
                    _same(explicit.C(2, r.lag)[:, rows], dense.operator(r.operator))
            start += size
        direct = sum(
            dense.operator(d.operator) @ dense.entries(d.input, plain(d.input.axes))
            for d in form.direct
        )
        if form.direct and not is_filter(m.system):
            _same(explicit.D(2) * explicit.u(2), direct, opened(m, 2))


def is_filter(system):
    """Whether the output is a filter of the input: then D is not all of its direct part."""
    return not system.stages


def opened(m, token):
    """Streams that are maps of an input, as their values: the Kronecker form shows the maps."""
    out = {}
    for s in m.system.streams:
        if isinstance(s.value, Map):
            ref = Ref(s.name, frozenset(s.axes), s.field, Time.TOKEN, Now(0))
            scope = SymbolScope(m.setting, token)
            names = column(scope, ref, s.axes)
            out.update(zip(names, column(scope, s.value, s.axes), strict=True))
    return out


def _same(left, right, values=None):
    right = np.asarray(right, dtype=object).reshape(left.shape)
    for index in np.ndindex(*left.shape):
        a, b = left[index], right[index] + bridge.number(0)
        if values:
            a, b = a.xreplace(values).xreplace(values), b.xreplace(values).xreplace(values)
        assert equal(a, b), (index, a, b)


def test_without_sizes_the_matrices_are_kronecker_products(derived):
    m = matrices(derived("normalized_attn"), "paper")
    n, p, d = (bridge.size_symbol(x) for x in "npd")
    assert str(m.Lambda(2)) == "(eta_1/eta_2)*I"
    assert m.Lambda(2).shape == (n * p, n * p)
    assert str(m.B(2)) == "1/eta_2*(KroneckerProduct(I, k_2))*W_V"
    assert m.B(2).shape == (n * p, d)
    assert str(m.C(2)) == "KroneckerProduct(I, q_2.T)"
    assert m.Phi(3, 1).shape == (p, d)
    assert m.Phi(0, 2).is_ZeroMatrix


# --- what a caller can get wrong ------------------------------------------------------------------


def test_bad_requests_are_refused(systems):
    with pytest.raises(ValueError, match="no gauge"):
        matrices(systems["normalized"], "mine")
    with pytest.raises(ValueError, match="no axis"):
        matrices(systems["normalized"], sizes={"x": 2})
    with pytest.raises(ValueError, match="at least 1"):
        matrices(systems["normalized"], sizes={"n": 0})
    with pytest.raises(ValueError, match="lags"):
        matrices(systems["both_ways"], sizes={}, length=4).C(1)


def test_the_state_stands_head_by_head_with_the_key_fastest(systems):
    m = matrices(systems["normalized"], sizes={"h": 2, "n": 2, "p": 2})
    b = m.B(0)
    assert b.shape == (8, 4)
    assert [str(v) for v in b[:, 0]] == ["k_{0,0,0}", "k_{0,0,1}", *"000000"]
    assert [str(v) for v in b[:, 3]] == [*"000000", "k_{0,1,0}", "k_{0,1,1}"]


def test_a_backward_stage_reads_the_future(systems):
    m = matrices(systems["both_ways"], sizes={"p": 1}, length=3)
    assert not m.Phi(0, 2).is_zero_matrix and not m.Phi(2, 0).is_zero_matrix
    outside = matrices(systems["normalized"], sizes={"p": 1}).Phi(0, 2)
    assert outside.is_zero_matrix
