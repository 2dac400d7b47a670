"""The inclusions of the textbooks, and near misses of the rules that decide them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Equal, Instance, NotAnInstance, Refuted
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.polynomial import ONE, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.substitute_parameters import define
from dsfc.trusted.symbols import Symbols


def _table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("textbook", Path(__file__).parent / "textbook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLE = _table()
QUICK = {
    ("mingru", "hgrn_real"),
    ("one_lnssm", "one_rwkv"),
    ("token_map", "linear_rnn"),
    ("ema", "real_lru"),
}
"""Edges of the fast tier."""
LATER = {
    ("mingru", "qlstm"),
    ("coupled_lstm", "qlstm"),
    ("ssd_sixteenth", "ssd_core"),
    ("dlr_log_one", "dlr_one"),
    ("deltanet", "gated_deltanet_closed"),
    ("deltanet", "gated_deltanet"),
    ("mlstm", "mlstm_stable"),
    ("gated_delta_any", "general_delta"),
    ("hgrn2_gates", "gla_unit_gates"),
    ("retnet_unit", "gla_full"),
    ("scaled_attn", "retnet_unit"),
    ("rg_lru", "rg_lru_power"),
    ("minlstm", "mingru"),
    ("hgrn2", "gla"),
    ("rwkv6", "rwkv5"),
    ("delta", "gated_delta"),
    ("dlr", "dss_exp"),
    ("gla_gates", "general_delta"),
    ("keyed_delta", "general_delta"),
    ("qlstm", "qlstm_s6gate"),
    ("constant_lru", "rg_lru"),
    ("dss_one", "dlr_one"),
    ("rg_lru", "constant_lru"),
    ("rwkv6", "rwkv7"),
    ("delta", "gla_gates"),
    ("gated_deltanet", "kda_linear"),
    ("s4d_one", "s4d_unit_step"),
}
"""Edges of the tier `ci`; the others are in `full`."""


def _marks(edge: object) -> list[pytest.MarkDecorator]:
    pair = (edge.a, edge.b)
    return [] if pair in QUICK else [pytest.mark.ci if pair in LATER else pytest.mark.full]


def test_there_are_sixty_edges_of_all_kinds() -> None:
    assert len(TABLE.EDGES) >= 60 and {e.label for e in TABLE.EDGES} == set(TABLE.EXPECTED)
    assert len({(e.a, e.b, e.label) for e in TABLE.EDGES}) == len(TABLE.EDGES)
    assert all(e.values for e in TABLE.EDGES if e.label == "case")


def test_the_page_is_the_table() -> None:
    assert TABLE.PAGE.read_text(encoding="utf-8") == TABLE.page()


@pytest.mark.share(1, ci=28)
@pytest.mark.parametrize(
    "edge", [pytest.param(e, marks=_marks(e), id=f"{e.a}-{e.b}-{e.label}") for e in TABLE.EDGES]
)
def test_no_edge_is_contradicted(edge) -> None:
    found = TABLE.limited(edge)
    assert not isinstance(found, TABLE.OPPOSITE[edge.label]), (found, edge.why)
    if (edge.a, edge.b) in QUICK | LATER:
        assert isinstance(found, TABLE.EXPECTED[edge.label]), found
    if isinstance(found, Equal | Refuted | Instance | NotAnInstance):
        check(write(found.certificate))


def systems(text: str) -> tuple[System, ...]:
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    return tuple(read.compilation(name).system for name in read.mixers)


GATE = """
mixer first {{ dims d
  input u : d
  param {}
  state h : d
  h = {} * h[i-1] + u
  y = h
}}
mixer second {{ dims d
  input u : d
  param {}
  state h : d
  h = {} * h[i-1] + u
  y = h
}}
"""
MISSES = [
    ("W_z : d -> d", "(1 - sigmoid(W_z u) / 2)", "W_f : d -> d", "sigmoid(W_f u)", "half a gate"),
    ("W_z : d -> d", "sigmoid(2 * W_z u[i-1])", "W_f : d -> d", "sigmoid(W_f u)", "a token late"),
    ("W_z : d -> d", "sigmoid(W_z u)^2", "W_f : d -> d", "sigmoid(W_f u)", "a power"),
    ("W_z : d -> d; b_z : d", "sigmoid(W_z u + b_z)", "W_f : d -> d", "sigmoid(W_f u)", "a bias"),
    ("γ : d", "γ", "b : d", "sigmoid(b)", "a range that is smaller"),
    ("γ : d positive", "γ", "b : d", "sigmoid(b)", "one side of a range"),
    ("γ : d nonneg", "γ^2", "g : d unit", "g", "the ends of a range"),
    ("γ : d unit", "(2 * γ)", "b : d", "sigmoid(b)", "above 1"),
    ("γ : d unit", "(1 - γ - γ)", "b : d", "sigmoid(b)", "below 0"),
    ("a : d positive", "exp(-a)", "c : d", "exp(-c^2) * exp(-1)", "a shift in an exponent"),
    ("a : d nonneg", "exp(-a)", "c : d", "exp(-exp(c))", "1 is no decay of it"),
    ("a : d", "exp(-a)", "c : d", "exp(-c^2)", "a negative root"),
    ("a : d", "a", "c : d", "relu(c)", "what is cut off"),
    ("a : d", "exp(-a)", "c : d", "exp(-relu(c))", "a decay above 1"),
    ("a : d", "a", "c : d", "abs(c)", "a negative number"),
    ("a : d", "-exp(a)", "c : d", "max(c, -1)", "a number below -1"),
]  # fmt: skip


@pytest.mark.share(16)
@pytest.mark.parametrize("first, left, second, right, why", MISSES, ids=lambda v: None)
def test_near_misses_are_no_cases(first, left, second, right, why) -> None:
    first, second = (p.replace("; ", "\n        ") for p in (first, second))
    a, b = systems(GATE.format(first, left, second, right))
    assert not isinstance(subsumes(a, b, (), True), Instance), why


@pytest.mark.ci
def test_a_sum_of_states_that_may_be_0_is_no_divisor() -> None:
    """The second has no value where b is 0."""
    text = """
mixer first {{ dims d
  input k, u : d
  state b : d
  b = b[i-1] + {0}
  y = u + 0 * b
}}
mixer second {{ dims d
  input k, u : d
  param c : d
  state b : d
  b = b[i-1] + {0}
  y = (u + c) * b / b
}}
"""
    for added, good in (("k", False), ("exp(k)", True), ("relu(k)", False), ("k^2", False)):
        a, b = systems(text.format(added))
        found = subsumes(a, b, (), True)
        assert not isinstance(found, Instance) or good, added


def test_what_is_below_1_is_not_below_a_half() -> None:
    s = Symbols()
    unit, positive = s.leaf("g[0]", True, True, unit=True), s.leaf("p[0]", True, True)
    assert s.positive(ONE - unit) and s.positive(ONE - unit.power(16))
    assert s.positive(unit.power(-16) - ONE) and s.positive(ONE - unit * unit)
    for q in (ONE - positive, ONE - unit - unit, unit - ONE, ONE - unit * positive, unit - unit):
        assert not s.positive(q)


def test_a_root_of_an_exponential_is_one_generator() -> None:
    s = Symbols()
    a = s.leaf("a[]", True)
    s.refine(a * number(1) / number(2))
    half = s.exp(a / number(2))
    assert not half * half - s.exp(a) and not half.power(-2) - s.exp(-a)
    assert half - s.exp(a) and half * half * half - s.exp(a + a)


X = ((((("a[]", 1),), 1),), (((), 1),))
"""a[] / 1, as certificates have it."""


@pytest.mark.parametrize(
    "head, function", [("log", X), ("tan", X), ("exp", ((((("b[]", 1),), 1),), X[1]))]
)
def test_functions_without_a_value_are_rejected(system: Callable, head, function) -> None:
    """A logarithm of what may be negative, no function, and one of what is not there."""
    found = subsumes(system("cases", "fixed_half"), system("cases", "decayed"), conditions=True)
    assert isinstance(found, Instance)
    claim, symbols = found.certificate.claim, Symbols()
    symbols.leaf("a[]", True)
    define(replace(claim, functions=(("exp", *X),)), symbols)
    for wrong in (replace(claim, functions=((head, *function),)),
                  replace(claim, case=False, functions=(("exp", *X),))):  # fmt: skip
        with pytest.raises((Rejected, Obstacle)):
            define(wrong, symbols)


def test_a_certificate_with_other_functions_is_rejected() -> None:
    """The functions that its values are made of are left out."""
    (a, b) = systems(GATE.format("γ : d unit", "γ", "b : d", "sigmoid(b)"))
    found = subsumes(a, b, (), True)
    assert isinstance(found, Instance) and found.certificate.claim.functions
    check(write(found.certificate))
    with pytest.raises(Rejected):
        check(
            write(replace(found.certificate, claim=replace(found.certificate.claim, functions=())))
        )


STATE = "state h : d\n h = {} * h[i-1] + u\n y = h + {} * u"


@pytest.mark.ci
@pytest.mark.share(1, ci=3)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            f"param a, c : d\n {STATE.format('exp(-c)', 'a')}",
            f"param a : d\n param p : d positive\n {STATE.format('p^a', 'a')}",
        ),
        (
            "param a, c : d\n y = exp(c) * exp(a) * u",
            "param a : d\n param p : d positive\n y = p^a * exp(a) * u",
        ),
        (
            f"param t : d nonneg\n param g : d unit\n {STATE.format('g', 't')}",
            f"param t : d nonneg\n param p : d positive\n {STATE.format('p^t', 't')}",
        ),
    ],
)
def test_no_value_divides_by_0_inside_a_function(first: str, second: str) -> None:
    """p = exp(c / a) gives p^a = e^c but where a is 0: there no p does."""
    text = "mixer {} {{ dims d\n input u : d\n {}\n}}\n"
    a, b = systems(text.format("first", first) + text.format("second", second))
    assert not isinstance(subsumes(a, b, (), True), Instance)


GUARDED = """
mixer first {{ dims d
  input u : d
  param g : d {}
  state S, z : d
  S = S[i-1] + u
  z = z[i-1] - u
  y = S / max(abs(z), {})
}}
mixer second extends first {{
  param c : d
  y = c * S / max(abs(z), {})
}}
"""


@pytest.mark.parametrize(
    ("declared", "ours", "theirs", "shown"),
    [
        ("", "1", "1", True),
        ("positive", "g", "g", True),
        ("nonneg", "g", "g", False),
        ("", "0", "0", False),
        ("", "1", "2", False),
    ],
)
def test_a_ratio_guarded_by_what_is_positive_has_a_value(
    declared: str, ours: str, theirs: str, shown: bool
) -> None:
    """c = 1; where the guard may be 0 so may what is divided by, and 2 is no guard of 1."""
    found = subsumes(*systems(GUARDED.format(declared, ours, theirs)), conditions=True)
    assert isinstance(found, Instance) == shown, found
