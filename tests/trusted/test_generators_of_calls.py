"""Calls of functions of states are named by their position at one moment, which is no fact of it.

Nothing that is known of a generator by its name may be learnt of a call, and what is kept of an
exponential must be kept at all tokens.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import Equal
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant, Relation, Row
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected

ONE, TWO, HALF = (((), 1),), (((), 2),), ((), (((), 1),))


def mixer(body: str, inputs: str = "u, v") -> System:
    text = Source("m.dsf", f"mixer m {{\n input {inputs}\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation().system


def same(name: str) -> Row:
    """The entries of a state of this name are equal in both."""
    return Row((f"$A.{name}[]",), (((f"$A.{name}[]",), ONE), ((f"$B.{name}[]",), (((), -1),))))


def refused(a: System, b: System, proof: Invariant) -> None:
    with pytest.raises((Rejected, Obstacle)):
        check(write(Certificate(Claim(a, b, (), ()), proof)))


STATE = "state s\n s = s[i-1] + u\n y = "


def test_a_root_of_a_call_is_not_known_by_the_call_of_the_other() -> None:
    """The first is 4 x², x = max(s, v) + v, and the second x²: a law says that one is half."""
    x = "(max(s, v) + v)"
    a = mixer(f"{STATE}abs(2 * max(s, v) + 2 * v)^2")
    b = mixer(f"{STATE}log((1 / {x})^2) - log((1 / {x})^2) + {x}^2")
    laws = (Relation((ONE, ONE), HALF), Relation((ONE, TWO), HALF))
    refused(a, b, Invariant((same("s"),), False, laws))


@pytest.mark.parametrize("first", ["4 * x", "2 * x^2"])
def test_an_exponential_of_a_logarithm_of_a_call_is_not_known_by_the_call(first: str) -> None:
    """The second is 2 x, x = max(s, v) + v."""
    x = "(max(s, v) + v)"
    a = mixer(f"{STATE}log{x} - log{x} + {first.replace('x', x)}")
    b = mixer(f"{STATE}exp(log(2 * max(s, v) + 2 * v))")
    laws = (Relation((ONE, ONE), HALF), Relation((TWO, ONE), HALF))
    refused(a, b, Invariant((same("s"),), False, laws))


KEPT = """state c, S
 c = (1 - first[i-1] - first[i-3]) * c[i-1] + first[i-1] * x + first[i-3] * z
 S = S[i-1] + first[i-2] * exp(c[i-1])
 """
LATE = "(1 - first - first[i-1] - first[i-2] - first[i-3])"


@pytest.mark.ci
def test_what_is_kept_of_an_exponential_is_kept_at_all_tokens() -> None:
    """Two tokens set c anew; from token 4 on the first is v + exp(x) - exp(z), of these tokens."""
    a = mixer(f"{KEPT}y = v + {LATE} * (S - exp(c))", "v, x, z")
    b = mixer(f"{KEPT}y = v + first * S", "v, x, z")
    minus = (((), -1),)
    row = Row(("$A.S[]",), (((), minus), (("$A.S[]",), ONE), (("$A.c.exp+[]",), minus)))
    refused(a, b, Invariant((row,), False))
    assert not isinstance(equivalent(a, b), Equal)
