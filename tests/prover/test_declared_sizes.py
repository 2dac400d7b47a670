"""For which sizes a verdict holds: declared, given, derived and larger ones are examined."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import as_json, report
from dsfc.prover.verdict import AtSizes, Equal, Proved, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write

DECAY = """
mixer {name} {{ dims {dims}
  input u : h × n
  state s : h × n
  s = ({decay}) * s[i-1] + u
  y = s
}}
"""
POWERS, LINE = "1 - 2^(-5 - iota[h])", "31/32 + iota[h] / 64"
PARABOLA = "31/32 + iota[h] / 64 - iota[h] * (iota[h] - 1) / 256"
"""Decays of heads: the second is the first at two heads, the third at three."""


def system(text: str) -> System:
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


def decays(dims: str, a: str, b: str, other: str = "") -> tuple[System, System]:
    first = system(DECAY.format(name="first", dims=dims, decay=a))
    return first, system(DECAY.format(name="second", dims=other or dims, decay=b))


def sizes(verdict: Equal | Refuted) -> dict[str, int]:
    return dict(verdict.certificate.claim.sizes)


@pytest.mark.parametrize("heads", [2, 4])
def test_what_holds_at_two_heads_is_refuted_at_more(heads: int) -> None:
    verdict = equivalent(*decays(f"heads h = {heads}, n", POWERS, LINE))
    assert isinstance(verdict, Refuted)
    assert sizes(verdict) == {"h": 4 if heads == 4 else 3, "n": 2 if heads == 4 else 1}


def test_a_proof_at_some_sizes_says_for_which() -> None:
    pair = decays("heads h = 4, n", POWERS, LINE)
    verdict = equivalent(*pair, sizes={"h": 2})
    assert isinstance(verdict, AtSizes) and verdict.fixed == (("h", 2),)
    assert check(write(verdict.certificate)).claim == verdict.certificate.claim
    assert as_json(verdict)["verdict"] == "proved at sizes"
    assert report(verdict, "a", "b").startswith("a = b: proved for h = 2 alone\n")
    refuted = equivalent(*pair, sizes={"h": 3})
    assert isinstance(refuted, Refuted) and sizes(refuted)["h"] == 3


def test_a_proof_is_at_the_sizes_declared() -> None:
    """One decay written in two ways, by a formula of its index."""
    verdict = equivalent(*decays("heads h = 4, n", POWERS, "1 - 1 / 2^(iota[h] + 5)"))
    assert isinstance(verdict, AtSizes) and verdict.fixed == (("h", 4),)


@pytest.mark.ci
def test_declarations_of_both_are_examined() -> None:
    """At three heads, as the first declares, the two are one; at five, as the second does, not."""
    verdict = equivalent(*decays("heads h = 3, n", POWERS, PARABOLA, "heads h = 5, n"))
    assert isinstance(verdict, Refuted) and sizes(verdict)["h"] == 5
    given = equivalent(*decays("heads h = 5, n", POWERS, PARABOLA), sizes={"h": 3})
    assert isinstance(given, AtSizes) and given.fixed == (("h", 3),)


def test_derived_sizes_are_facts() -> None:
    """Of d = 16 channels and more; a sum over r of ones would tell 1 from 2 at d = 1."""
    text = """
mixer {name} {{ dims d, r = d / 16
  input u : d
  y = u * sum[r]({own} * ones[r])
}}
"""
    a, b = (system(text.format(name=n, own=own)) for n, own in (("first", 1), ("second", 2)))
    verdict = equivalent(a, b)
    assert isinstance(verdict, Refuted) and sizes(verdict) == {"d": 16, "r": 1}
    with pytest.raises(ValueError, match="no sizes keep"):
        equivalent(a, b, sizes={"d": 8})
    with pytest.raises(ValueError, match="neither of the two has an axis q"):
        equivalent(a, b, sizes={"q": 8})
    with pytest.raises(ValueError, match="is not an integer from 1"):
        equivalent(a, b, sizes={"d": 0})


def test_mixers_whose_sizes_do_not_go_together_are_not_compared() -> None:
    a, b = decays("n, heads h = n", "1", "1", "n, heads h = 2 * n")
    verdict = equivalent(a, b)
    assert isinstance(verdict, Unknown) and "no sizes keep h = n and h = 2 * n" in verdict.obstacle


def test_what_is_proved_of_all_sizes_needs_none_declared() -> None:
    a, b = decays("heads h = 4, n", "1/2", "1/3 + 1/6")
    assert isinstance(equivalent(a, b), Proved)
    assert isinstance(equivalent(a, b, sizes={"h": 3, "n": 64}), Proved)
