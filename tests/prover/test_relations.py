"""Which laws of functions of states are proposed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.prover.relations import laws
from dsfc.prover.sizes import chosen
from dsfc.trusted.claim import Claim
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.laws import Law
from dsfc.trusted.statement import both_systems


@pytest.fixture(scope="module")
def found(system: Callable) -> Callable[[str, str], tuple[Law, ...]]:
    """The laws for two mixers, at size 1."""

    def find(a: str, b: str) -> tuple[Law, ...]:
        systems = system("laws", a), system("laws", b)
        return laws(Claim(*systems, (), chosen(*systems, 1)), False)

    return find


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "a, b, scales, shifts",
    [
        ("root_plain", "root_exp", ["exp(w[0]@0)^-1"], ["0"]),
        ("root_plain", "root_sigmoid", ["(exp(w[0]@0))/((1+exp(w[0]@0))^1)"], ["0"]),
        ("root_plain", "root_by_past", ["(1)/(($B.z[0]+exp(w[0]@0))^1)"], ["0"]),
        ("guarded", "guarded_stabilised", ["exp(m[0]@0)^-1"] * 2, ["0"] * 2),
        ("exp_plain", "exp_moved", ["1"], ["-1*w[0]@0"]),
        ("exp_plain", "exp_inverse", ["-1"], ["0"]),
        ("max_plain", "max_moved", ["1"], ["w[0]@0"]),
    ],
)
def test_a_factor_or_a_summand_is_read_off_the_first_token(
    found: Callable, a: str, b: str, scales: list[str], shifts: list[str]
) -> None:
    assert [one.scale.text for one in found(a, b)] == scales
    assert [one.shift.text for one in found(a, b)] == shifts


@pytest.mark.parametrize(
    "a, b",
    [
        ("root_plain", "root_signed"),
        ("root_plain", "root_minus"),
        ("root_one_more", "root_one_more_exp"),
        ("max_plain", "max_moved_once"),
    ],
)
def test_no_law_is_proposed_where_none_holds(found: Callable, a: str, b: str) -> None:
    assert found(a, b) == ()


def test_a_norm_that_is_bounded_from_below_removes_no_factor(found: Callable) -> None:
    """T31 is one of the root mean square; `rmsnorm` divides by no less than 1e-12."""
    with pytest.raises(Obstacle, match="`rmsnorm` bounds its norm"):
        found("bounded_plain", "bounded_exp")


def test_laws_of_calls_that_read_no_other_are_found_at_once(
    monkeypatch: pytest.MonkeyPatch, system: Callable
) -> None:
    """|x| and a maximum of it for each head: |x| of all heads, then the maxima."""
    written: list[int] = []

    def counted(
        claim: Claim, symbols: object, entries: bool, *rest: object, **more: object
    ) -> object:
        written.append(1)
        return both_systems(claim, symbols, entries, *rest, **more)

    monkeypatch.setattr("dsfc.prover.relations.both_systems", counted)
    systems = system("laws", "guarded"), system("laws", "guarded_stabilised")
    counts = []
    for size in (1, 2):
        written.clear()
        found = laws(Claim(*systems, (), chosen(*systems, size)), False)
        counts.append((len(written), len(found)))
    (once, few), (again, many) = counts
    assert again == once == 4 and many > few == 2
