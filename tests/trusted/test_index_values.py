"""What is not read as sums of terms with indices says why: one mixer for each reason."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.build import prim, walk
from dsfc.expr.over_time import Lag
from dsfc.expr.tree import (
    Abstract,
    Add,
    Expr,
    LinearMap,
    Map,
    Now,
    Num,
    Reduce,
    Reduction,
    Ref,
    Rename,
)
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import Direct, Guard, GuardKind, Ratio, System
from dsfc.trusted.claim import Claim
from dsfc.trusted.generalize_inputs import expressions
from dsfc.trusted.index_form import Form, NoCount, single
from dsfc.trusted.index_values import OTHERWISE
from dsfc.trusted.indices import Indices
from dsfc.trusted.small_model_bound import small_model_bound

AXES = ("n", "p", "d", "t")


def mixer(declared: str, output: str) -> System:
    text = f"""
mixer m {{ dims n, p, d, t
  input q, k : n;  v : p;  u : d
  {declared}
  y = {output}
}}
"""
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    return read.compilation("m").system


def claim(a: System, b: System | None = None) -> Claim:
    return Claim(a, a if b is None else b, (), tuple((name, 2) for name in AXES))


REASONS = [
    ("n", "", "exp(sum[j ≤ i](k[j])) · q * v", "`exp` is applied to values of states"),
    ("n", "", "sum[n](sum[j ≤ i](q * k[j]) / sum[j ≤ i](k[j])) * v", "quotients of states"),
    ("n", "", "max[n](q * k) * v", "a maximum runs over it"),
    ("n", "", "max[p](v * sum[n](q)) * v", "a maximum holds a sum over it"),
    ("n", "", "v * sum[j ≤ i](k[j] · q) / max(abs(sum[j ≤ i](k[j] · q)), 1)",
     "`max` is applied to values of states"),
    ("n", "state S, R : n\n  S = S[i-1] + exp(k)\n  R = (R[i-1] + q) / S", "sum[n](R) * v",
     "an update divides by a value of the state"),
    ("n", "", "sum[n](q * q)^(1/2) * v", "a power holds a sum over it"),
    ("n", "", "sum[n](q * q)^8 * v", "a power holds a sum over it"),
    ("n", "", "sum[n](q * q)^(-1) * v", "a power holds a sum over it"),
    ("t", "param w : t", "v * sum[n](fir[t](w, q))", "it counts the taps of a filter"),
    ("n", "", "sum[j ≤ i](exp(q · k[j]) * v[j])", "a sum over the past has no finite state"),
]  # fmt: skip


@pytest.mark.parametrize("axis, declared, output, reason", REASONS)
def test_what_has_no_count_says_why(axis: str, declared: str, output: str, reason: str) -> None:
    found = small_model_bound(claim(mixer(declared, output)), False)[axis]
    assert isinstance(found, str) and reason in found


@pytest.mark.parametrize(
    "function",
    [
        "1 / {}", "1 / (1 + {})", "{}^(-2)", "{}^(1/2)", "2^{}", "tanh({})", "exp({}) * exp(-{})",
        "exp({} * {})", "exp(tanh({}))", "silu({}) * exp({})", "elu({})", "(elu({}) + {})",
        "max({}, s)", "abs({} + s)", "1 / exp({})", "max[p]({} ⊗ v)",
    ],
)  # fmt: skip
def test_what_stands_in_a_function_is_never_put_to_0(function: str) -> None:
    """Σ q is carried by q, unless q stands where it may be no 0."""
    base = "(sum[n](q) + sum[n](k * {})) * v"
    both = "param z, r : n\n  param s\n  c = 2 * z"
    for name in ("q", "c"):
        text = base.replace("sum[n](q)", f"sum[n]({'q' if name == 'q' else 'z'})")
        found = small_model_bound(
            claim(mixer(both, text.format(function.replace("{}", name)))), False
        )
        assert "factor of every term" in str(found["n"]), found["n"]
        other = text.format(function.replace("{}", "r"))
        assert small_model_bound(claim(mixer(both, other)), False)["n"] == 1


def test_a_natural_power_has_its_indices_as_often() -> None:
    for power in (1, 2, 7):
        assert (
            small_model_bound(claim(mixer("", f"sum[n](q * q)^{power} * v")), False)["n"] == power
        )


def test_how_many_indices_a_state_has_is_bounded() -> None:
    """Eight of one term are counted, and more are said to grow."""
    for power, count in ((6, 7), (7, 8), (8, None)):
        product = f"sum[n](q * q)^{min(power, 7)} * (q · k)" + " * sum[n](k)" * (power - 7)
        found = small_model_bound(claim(mixer("", f"sum[j ≤ i]({spread(product)} * v[j])")), False)[
            "n"
        ]
        assert found == count if count else "couples its entries" in str(found)


def spread(product: str) -> str:
    """A value at the token that is summed over."""
    return product.replace("q", "q[j]").replace("k", "k[j]")


def test_an_axis_is_one_of_both() -> None:
    a = mixer("", "v")
    assert (
        small_model_bound(Claim(a, a, (), (("r", 1),)), False)["r"]
        == "no axis of the two has this name"
    )
    a = mixer("", "sum[n](q) * v")
    copies = tuple(
        dataclasses.replace(d, axis=dataclasses.replace(d.axis, copy_of="p"))
        if d.axis.name == "n" else d
        for d in a.axes
    )  # fmt: skip
    found = small_model_bound(claim(a, dataclasses.replace(a, axes=copies)), False)
    assert found["n"] == "it is a copy of another axis in one of the two"


def along_n(system: System) -> Indices:
    return Indices(claim(system), False, False, {"n": "n"}, "n")


def why_not(system: System, value: object) -> str:
    """Why a value of a system, which no text gives, has no count along n."""
    with pytest.raises(NoCount) as caught:
        along_n(system).value(value)
    return str(caught.value)


def test_values_that_no_text_gives_have_no_count() -> None:
    base = mixer("param W : n -> p", "W q + v")
    (n, p) = (d.axis for d in base.axes if d.axis.name in ("n", "p"))
    (ref,) = [e for e in _refs(base) if e.name == "q"]
    assert "`S` is read inside a definition" in why_not(base, replace_name(ref, "S"))
    assert "n is renamed to p" in why_not(base, Rename(n, p, ref))
    assert "beside another index" in why_not(base, Abstract("f", (n,), (p,), Num(Fraction(1))))
    assert "`Lag` stands in a definition" in why_not(base, Lag((), 1))


def test_a_map_of_an_axis_and_its_copy_has_no_count() -> None:
    base = mixer("", "q ⊗ v")
    both = next(e for e in _walked(base) if {a.name for a in e.axes} == {"n", "p"})
    copies = Indices(claim(base), False, False, {"n": "n", "p": "n"}, "n")
    with pytest.raises(NoCount, match="beside another index"):
        copies.value(Abstract("f", tuple(both.axes), (), both))


def delayed() -> tuple[System, Ref]:
    """A mixer that reads a stream r with axes n and p, and r at the token."""
    base = mixer("state S : n × p\n  S = S[i-1] + q ⊗ v\n  r = q * S", "sum[n](r[i-1]) * v")
    (read,) = {e for e in _refs(base) if e.name == "r"}
    return base, Ref("r", read.over, read.kind, read.when, Now(0))


def with_value(system: System, value: object) -> System:
    streams = tuple(
        dataclasses.replace(s, value=value) if s.name == "r" else s for s in system.streams
    )
    return dataclasses.replace(system, streams=streams)


def test_functions_of_values_of_states_have_no_count() -> None:
    base, r = delayed()
    (n,) = (d.axis for d in base.axes if d.axis.name == "n")
    called = prim("exp", r)
    assert "`exp` holds values of states" in why_not(base, called)
    assert "a linear map inside" in why_not(base, Map(LinearMap("W", (), (n,), ()), r))
    assert "`r` is made of itself" in why_not(with_value(base, r), r)
    direct = Direct(next(e for e in _refs(base) if e.name == "q"))
    assert "a function holds values" in why_not(with_value(base, direct), called)
    quotient = with_value(base, Ratio(direct, direct))
    assert "`exp` holds values of states" in why_not(quotient, called)


def test_what_is_0_somewhere_is_no_array() -> None:
    """exp(W q) is a generator of its own at every token; exp(W q[i-1]) is 1 at the first."""
    base = mixer("param W : n -> p", "W q + v")
    (map,) = [e for e in _walked(base) if isinstance(e, Map)]
    at = {name: next(e for e in _refs(base) if e.name == name) for name in "qv"}
    before = dataclasses.replace(
        map.map, source=map.map.target, target=map.map.source, adjoint=True
    )
    for value, ways in (
        (map, {"exp"}),
        (Map(map.map, Ref("q", at["q"].over, at["q"].kind, at["q"].when, Now(1))), {OTHERWISE}),
        (Map(before, at["v"]), {OTHERWISE}),
    ):
        found = Indices(claim(base), False, False, {"d": "d"}, "d")
        found.value(prim("exp", value))
        assert found.ways["W"] == ways


def test_elu_and_a_number_are_one_value_and_no_more() -> None:
    base = mixer("", "(elu(q) + 1) * sum[p](v)")
    (one,) = [e for e in _walked(base) if isinstance(e, Add)]
    (n,) = one.axes
    (other,) = [e for e in _refs(base) if e.name == "q"]
    carried = along_n(base).value(one)
    assert carried.hits(n) == single("elu+1 q")
    for args in ((*one.args, other), (one.args[0], one.args[0]), (*one.args, one.args[1])):
        assert along_n(base).value(Add(args)).hits(n) != carried.hits(n)


def test_a_guard_that_adds_nothing_is_none() -> None:
    base, _ = delayed()
    (read,) = [s.value for s in base.streams if s.name == "r"]
    (n,) = (d.axis for d in base.axes if d.axis.name == "n")
    constant = Reduce(Reduction.SUM, n, next(e for e in _refs(base) if e.name == "q"))

    def guarded(*guard: object) -> Form:
        return along_n(base)._read(Ratio(read, read, Guard(*guard)))

    assert guarded(GuardKind.NONE, constant) == guarded(GuardKind.ADD, None) == guarded()
    assert guarded(GuardKind.ADD, constant) != guarded()


def replace_name(ref: Ref, name: str) -> Ref:
    return Ref(name, ref.over, ref.kind, ref.when, ref.at)


def _refs(system: System) -> list[Ref]:
    return [e for e in _walked(system) if isinstance(e, Ref)]


def _walked(system: System) -> list[Expr]:
    found = expressions((system.streams, system.stages, system.outputs))
    return list({e: None for x in found for e in walk(x)})
