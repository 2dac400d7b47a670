"""One definition up to names: what is, what is not, and certificates that lie."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.tree import Axis, Field, LinearMap, Param
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import report
from dsfc.prover.sizes import chosen
from dsfc.prover.verdict import Proved
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Same
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.same import _Walk, check_same

SPECS = """
mixer raw { dims n, p
  input q, k : n;  v : p
  param a : n unit
}
mixer scored extends raw {
  s = exp(q · k)
  y = sum[j ≤ i](exp(q · k[j]) * v[j]) / s
}
mixer scored_by_another_name extends raw {
  other = exp(q · k)
  y = sum[j ≤ i](exp(q · k[j]) * v[j]) / other
}
mixer swapped extends raw {
  s = exp(q · k)
  y = sum[j ≤ i](exp(k · q[j]) * v[j]) / s
}
mixer late extends raw {
  s = exp(q · k)
  y = sum[j ≤ i](exp(q · k[j]) * v[j]) / s[i-1]
}
mixer strict extends raw {
  s = exp(q · k)
  y = sum[j < i](exp(q · k[j]) * v[j]) / s
}
mixer other_function extends raw {
  s = sigmoid(q · k)
  y = sum[j ≤ i](exp(q · k[j]) * v[j]) / s
}
mixer two_names extends raw {
  s = exp(q · k);  t = q · k
  y = s * t * v
}
mixer one_name_twice extends raw {
  s = exp(q · k);  t = q · k
  y = s * s * v
}
mixer kept extends raw {
  state S : n × p
  S = a * S[i-1] + k ⊗ v
  y = q · S
}
mixer kept_doubled extends raw {
  state S : n × p
  S = a * S[i-1] + 2 * k ⊗ v
  y = q · S
}
mixer state_by_another_name extends raw {
  state T : n × p
  T = a * T[i-1] + k ⊗ v
  y = q · T
}
mixer state_of_another_step extends raw {
  state T : n × p
  T = a * T[i-1] + 2 * k ⊗ v
  y = q · T
}
mixer state_read_before extends raw {
  state T : n × p
  T = a * T[i-1] + k ⊗ v
  y = q · T[i-1]
}
mixer relu_of_sum extends raw {
  s = q · k;  t = q · q
  y = relu(s + t) * v
}
mixer relu_of_product extends raw {
  s = q · k;  t = q · q
  y = relu(s * t) * v
}
mixer backwards extends raw {
  y = sum[j ≥ i](q · k[j] * v[j])
}
mixer forwards extends raw {
  y = sum[j ≤ i](q · k[j] * v[j])
}
mixer first_token extends raw {
  s = q · k
  y = s * first * v
}
mixer twice extends raw {
  s = q · k
  y = s * s * v
}
"""


@pytest.fixture(scope="module")
def of() -> Callable[[str], System]:
    text = SpecText(Place(Path("same.dsf")), parse(Source("same.dsf", SPECS)))
    return lambda name: text.compilation(name).system


def claim_of(a: System, b: System, **changed) -> Claim:
    sizes = chosen(a, b, 1)
    made = Claim(a, b, (), sizes, every=tuple(name for name, _ in sizes))
    return dataclasses.replace(made, **changed)


def rejected(claim: Claim) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(Certificate(claim, Same())))
    return str(caught.value)


@pytest.mark.parametrize(
    "a, b",
    [
        ("scored", "scored"),
        ("scored", "scored_by_another_name"),
        ("kept", "state_by_another_name"),
        ("backwards", "backwards"),
        ("first_token", "first_token"),
    ],
)
def test_names_of_definitions_do_not_matter(of: Callable, a: str, b: str) -> None:
    for first, second in ((a, b), (b, a)):
        verdict = equivalent(of(first), of(second))
        assert isinstance(verdict, Proved) and verdict.same
        assert set(verdict.certificate.claim.every) == {"n", "p"}
        assert "one definition up to names" in report(verdict, a, b, explain=True)


@pytest.mark.parametrize("name", ["softmax", "s4", "dlr_bidirectional", "gla_block"])
def test_a_shipped_spec_is_itself_at_all_sizes(name: str) -> None:
    system = dsfc.load(name).system
    assert check(write(Certificate(claim_of(system, system), Same())))


@pytest.mark.parametrize(
    "a, b",
    [
        ("scored", "swapped"),
        ("scored", "late"),
        ("scored", "strict"),
        ("scored", "other_function"),
        ("two_names", "one_name_twice"),
        ("one_name_twice", "two_names"),
        ("kept", "state_of_another_step"),
        ("kept", "state_read_before"),
        ("forwards", "backwards"),
        ("relu_of_sum", "relu_of_product"),
        ("first_token", "twice"),
        ("twice", "first_token"),
    ],
)
def test_anything_else_matters(of: Callable, a: str, b: str) -> None:
    for first, second in ((a, b), (b, a)):
        rejected(claim_of(of(first), of(second)))


def test_parameters_are_those_that_the_claim_identifies(of: Callable) -> None:
    a = of("forwards")
    assert check(write(Certificate(claim_of(a, a), Same())))
    rejected(claim_of(a, a, names=(("q", "k"), ("k", "q"))))


def test_what_one_defines_is_no_array_of_the_other() -> None:
    """One has an input of the name that the other gives 2 u."""
    made = []
    for head in ("input u\n r = 2 * u", "input u, r"):
        source = Source("m.dsf", f"mixer m {{\n {head}\n y = r * r\n}}")
        made.append(SpecText(Place(Path("m.dsf")), parse(source)).compilation("m").system)
    for a, b in (made, made[::-1]):
        assert "different arrays" in rejected(claim_of(a, b))


def test_a_fixed_buffer_of_another_value_is_another_array() -> None:
    text = "mixer m {{ dims n\n input u : n\n buffer c = {c}\n y = c * u\n }}"
    made = []
    for c in ("1/2", "1/3"):
        source = Source("m.dsf", text.format(c=c))
        made.append(SpecText(Place(Path("m.dsf")), parse(source)).compilation("m"))
    rejected(claim_of(made[0].system, made[1].system))


def test_definition_and_derived_form_must_both_be_the_same(of: Callable) -> None:
    a, b = of("kept"), of("state_of_another_step")
    for forged in (
        dataclasses.replace(a, stages=b.stages, streams=b.streams, outputs=b.outputs),
        dataclasses.replace(a, definition=b.definition),
        dataclasses.replace(a, stages=()),
        dataclasses.replace(a, definition=()),
        dataclasses.replace(a, definition=(*a.definition, *a.definition)),
    ):
        rejected(claim_of(a, forged))
        rejected(claim_of(forged, a))


@pytest.mark.parametrize("name, other", [("kept", "kept_doubled"), ("scored", "other_function")])
def test_what_a_definition_reads_is_the_same_too(of: Callable, name: str, other: str) -> None:
    """All names are the same, and so is the derived form."""
    a = of(name)
    forged = dataclasses.replace(a, definition=of(other).definition)
    check_same(claim_of(a, a))
    for claim in (claim_of(a, forged), claim_of(forged, a)):
        with pytest.raises(Rejected, match="the definitions are not the same"):
            check_same(claim)


def test_an_array_is_read_in_the_same_way() -> None:
    text = "mixer m {\n dims n\n input u : n\n param a : n; W : n -> n\n y = a * (W u)\n}"
    system = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system
    walk, n = _Walk(claim_of(system, system)), Axis(0, "n")
    a, w = Param("a", frozenset({n})), LinearMap("W", (), (n,), (n,))
    others: list[tuple[object, object]] = [
        (a, Param("a", frozenset())),
        (a, Param("a", frozenset({n}), Field.COMPLEX)),
        (w, dataclasses.replace(w, adjoint=True)),
        (w, dataclasses.replace(w, each=(n,))),
    ]
    for one, other in others:
        walk.left = [(one, one)]
        walk._all()
        for pair in ((one, other), (other, one)):
            walk.left = [pair]
            with pytest.raises(Rejected, match="the definitions are not the same"):
                walk._all()


def test_a_name_has_one_definition(of: Callable) -> None:
    a = of("kept")
    twice = dataclasses.replace(a, definition=(*a.definition, *a.definition))
    with pytest.raises(Rejected, match="a name has two definitions"):
        check_same(claim_of(a, twice))


def test_two_mixers_without_definitions_are_not_the_same(of: Callable) -> None:
    bare = dataclasses.replace(of("kept"), definition=())
    assert "has no definition" in rejected(claim_of(bare, bare))


def test_outputs_of_other_axes_are_not_the_same() -> None:
    """Entry by entry they would be, at the sizes where both are one number."""
    made = []
    for own, other in ("np", "pn"):
        text = f"mixer m {{ dims {own}, {other}\n input u : {own}\n y = u }}"
        made.append(SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m"))
    rejected(claim_of(made[0].system, made[1].system))


def test_nothing_else_is_claimed_by_it(of: Callable) -> None:
    a = of("kept")
    nothing = Condition((((("q[0]@0", 1),), 1),), "q[0]@0")
    for changed in (
        {"equal": False},
        {"free": True},
        {"case": True},
        {"conditions": (nothing,)},
        {"every": ("x",)},
        {"sizes": ()},
    ):
        rejected(claim_of(a, a, **changed))


def test_an_axis_is_a_copy_of_the_same_one_in_both() -> None:
    text = SpecText(
        Place(Path("m.dsf")), parse(Source("m.dsf", "mixer m {\n input u\n y = u\n}\n"))
    )
    plain = text.compilation("m").system
    walk = _Walk(claim_of(plain, plain))
    axes = [Axis(0, "m"), Axis(0, "m", copy_of="n"), Axis(0, "m", copy_of="p"), Axis(0, "r")]
    for x in axes:
        for y in axes:
            for one, other in ((x, y), (frozenset({x}), frozenset({y})), ((x,), (y,))):
                walk.left = [(one, other)]
                if x == y:
                    walk._all()
                    continue
                with pytest.raises(Rejected, match="not the same"):
                    walk._all()
