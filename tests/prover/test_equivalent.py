"""Verdicts on labelled pairs, in both orders, and what no verdict depends on."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import report
from dsfc.prover.verdict import Equal, Proved, ProvedWhereDefined, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write

LABELS = tomllib.loads((Path(__file__).parent / "labels.toml").read_text(encoding="utf-8"))
WHERE_DEFINED = {
    ("ratio", "ratio_gauged"),
    ("ratio_of_states", "ratio_gauged"),
    ("series", "series_fractions"),
    ("own_normaliser_rows", "ones_rows"),
}
"""Pairs of equal outputs of which one alone has a denominator that may be 0: η, λ - μ, a score."""
LATER = {"laws": 3, "modes": 0, "dense": 3, "delta": 3, "theorems": 3, "couplings": 1, "members": 1}
"""Tables of which the fast tier decides few pairs of each kind: how many."""


def pairs(later: pytest.MarkDecorator) -> list:
    """Every labelled pair, those that `LATER` leaves out with a mark."""
    return [
        pytest.param(
            file,
            a,
            b,
            kind is Proved,
            id=f"{file}-{a}-{b}",
            marks=[later] if k >= LATER.get(file, k + 1) else [],
        )
        for file, table in LABELS.items()
        for key, kind in (("equal", Proved), ("different", Refuted), ("conditional", Refuted))
        for k, (a, b, _) in enumerate(table.get(key, ()))
    ]


@pytest.mark.share(64, ci=29)
@pytest.mark.parametrize("file, a, b, equal", pairs(pytest.mark.ci))
def test_a_labelled_pair(system: Callable, file: str, a: str, b: str, equal: bool) -> None:
    verdict = equivalent(system(file, a), system(file, b))
    assert isinstance(verdict, kind(a, b, equal)), verdict
    assert check(write(verdict.certificate)).claim == verdict.certificate.claim


@pytest.mark.ci
@pytest.mark.share(1, ci=17)
@pytest.mark.parametrize("file, a, b, equal", pairs(pytest.mark.full))
def test_the_order_does_not_matter(
    system: Callable, file: str, a: str, b: str, equal: bool
) -> None:
    verdict = equivalent(system(file, b), system(file, a))
    assert isinstance(verdict, kind(a, b, equal)), verdict


def kind(a: str, b: str, equal: bool) -> type:
    """The verdict on a labelled pair."""
    if not equal:
        return Refuted
    return ProvedWhereDefined if (a, b) in WHERE_DEFINED else Equal


def test_every_label_has_a_reason() -> None:
    for table in LABELS.values():
        for rows in table.values():
            assert all(len(row) in (3, 4) and row[-1] for row in rows)


@pytest.mark.parametrize("a, b", [("post", "eta_gauge"), ("post", "eta_late")])
def test_no_verdict_depends_on_what_a_mixer_is_called(system: Callable, a: str, b: str) -> None:
    left, right = system("attention", a), system("attention", b)
    named = equivalent(left, right)
    renamed = equivalent(
        dataclasses.replace(left, name="x", doc=None),
        dataclasses.replace(right, name="y", doc=None),
    )
    assert type(named) is type(renamed)
    assert named.certificate.proof == renamed.certificate.proof


def test_the_same_certificate_every_time(system: Callable) -> None:
    texts = {
        write(equivalent(system("linear", a), system("linear", b)).certificate)
        for a, b in [("sum_of_modes", "chain_delayed")] * 2
    }
    assert len(texts) == 1


def test_names_can_be_identified(system: Callable) -> None:
    a, b = system("linear", "one_mode"), system("linear", "one_mode_moved")
    # In the second b and c stand for each other, which its product does not mind.
    assert isinstance(equivalent(a, b, (("b", "c"), ("c", "b"))), Proved)
    squared = system("linear", "one_mode_squared")
    assert isinstance(equivalent(a, squared, (("a", "b"), ("b", "a"))), Refuted)


BACK = "mixer m {{ dims p\n input v : p\n y = sum[j ≥ i]({}) }}"
"""A mixer that runs backwards."""
TURNED = "v[j] * (1 + v[j])", "v[j]) + sum[j ≥ i](v[j] * v[j]"


@pytest.mark.parametrize(
    "a, b, obstacle",
    [
        (*map(BACK.format, TURNED), "runs backwards"),
        ("dlr", "dlr_real", "same axes"),
    ],
)
def test_unknown_says_what_stands_in_the_way(a: str, b: str, obstacle: str) -> None:
    verdict = equivalent(*(load(name) for name in (a, b)))
    assert isinstance(verdict, Unknown)
    assert obstacle in verdict.obstacle and verdict.decides


def load(name: str) -> System:
    """The system of a shipped spec, or of a text."""
    if "mixer" not in name:
        return dsfc.load(name).system
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", name))).compilation("m").system


@pytest.mark.ci
def test_a_buffer_has_its_own_value() -> None:
    """Two buffers of one name and different values are two arrays, and no free numbers."""
    text = """
mixer {name} extends qkv {{
  buffer γ : h unit = 1 - 2^(-{power} - iota[h])
  y = sum[j ≤ i](γ^(i-j) * q · k[j] * v[j])
}}
"""

    def load(name: str, power: int) -> System:
        source = Source(f"{name}.dsf", text.format(name=name, power=power))
        return SpecText(Place(Path(f"{name}.dsf")), parse(source)).compilation(name).system

    assert isinstance(equivalent(load("a", 5), load("b", 5)), Proved)
    verdict = equivalent(load("a", 5), load("b", 4))
    assert isinstance(verdict, Refuted) and verdict.witness.length == 2 and verdict.shortest
    assert "gamma" not in dict(verdict.witness.values)


@pytest.mark.ci
def test_a_law_that_was_used_is_printed(system: Callable) -> None:
    verdict = equivalent(system("laws", "weights_plain"), system("laws", "weights_moved"))
    assert "exp in the second: argument moved by -1*w[0]" in report(verdict, "a", "b")


@pytest.mark.parametrize("late", ["first * w", "first[i-1] * w"])
def test_what_the_first_token_alone_brings_may_be_read_late(late: str) -> None:
    """`first` is no generator, yet a token that reads it k tokens back is like no later one."""
    assert_apart_from_the_third_token(late, "f[i-2]", "0 * f")


@pytest.mark.parametrize("value", ["exp(u) * exp(-u) * w", "w + u - u"])
def test_what_is_the_same_at_all_tokens_is_0_before_the_first(value: str) -> None:
    """No generator of a value says how far back it was read."""
    assert_apart_from_the_third_token(value, "f[i-3]", "f[i-2]")


def assert_apart_from_the_third_token(value: str, left: str, right: str) -> None:
    text = """
mixer {name} {{ dims n
  input u : n
  param w : n
  f = {value}
  y = u + {read} * u
}}
"""
    a, b = (load(text.format(name="m", value=value, read=read)) for read in (left, right))
    verdict = equivalent(a, b)
    assert isinstance(verdict, Refuted)
    assert verdict.witness.length >= 3
