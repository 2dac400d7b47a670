"""Each refusal of a claim, a row and a point, by the reason that it gives.

That something bad is refused somewhere does not say which check did it; here each check has a claim
that passes all the others before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint
from dsfc.expr.tree import Field
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Invariant, Row, Witness
from dsfc.trusted.comparable import comparable
from dsfc.trusted.rejected import Rejected

TEXT = """
mixer plain { dims n, p
  input u : n
  input x : p
  param w : n
  state S : n
  S = S[i-1] + w * u
  y = S + sum[p](x)
}
mixer other { dims n, p
  input u : n
  input x : p
  param w : n
  state S : n
  S = S[i-1] + u * w
  y = sum[p](x) + S
}
mixer more { dims n, p
  input u : n
  input x : p
  param w, z : n
  param r : p
  y = w * u + z * sum[p](x * r)
}
mixer late { dims n
  input u : n
  state S : n
  S = S[i-1] + u - first * u
  y = S[i-1]
}
mixer nothing { dims n
  input u : n
  y = u - u
}
mixer early { dims n
  input u : n
  y = u + first * u
}
mixer same { dims n
  input u : n
  y = u
}
mixer divided { dims n
  input u : n
  y = 1 / u
}
mixer divided_twice { dims n
  input u : n
  y = 2 / u
}
mixer fixed { dims n
  input u : n
  buffer c : n = 2
  y = c * u
}
mixer fixed_twice { dims n
  input u : n
  buffer c : n = 2
  y = 2 * c * u
}
mixer wide { dims n, p
  input u : n
  input x : p
  y = u ⊗ x
}
mixer wide_q { dims n, q
  input u : n
  input t : q
  y = u ⊗ t
}
mixer summed { dims n, p
  input u : n
  input x : p
  y = sum[n](u) * sum[p](x)
}
mixer param_u { dims n, p
  input x : p
  param u : n
  y = u * sum[p](x)
}
mixer doubled { dims n, p
  input u : n
  input x : p
  param w : n
  y = 2 * w * u + sum[p](x)
}
mixer bounded { dims n, p
  input u : n
  input x : p
  param w : n unit
  param z : n nonneg
  param r : n nonzero
  param s : n positive
  y = w * z * r * s * u + sum[p](x)
}
mixer bounded_doubled { dims n, p
  input u : n
  input x : p
  param w : n unit
  param z : n nonneg
  param r : n nonzero
  param s : n positive
  y = 2 * w * z * r * s * u + sum[p](x)
}
"""

SIZES = (("n", 2), ("p", 2))


def system(name: str) -> System:
    text = SpecText(Place(Path("reasons.dsf")), parse(Source("reasons.dsf", TEXT)))
    return text.compilation(name).system


def claim(a: str = "plain", b: str = "other", **changed) -> Claim:
    return replace(Claim(system(a), system(b), (), SIZES), **changed)


def with_b(change: Callable[[System], System]) -> Claim:
    made = claim()
    return replace(made, b=change(made.b))


def copied(made: Claim) -> Claim:
    """The axis p of b called a copy of n."""
    (n, p) = made.b.axes
    axes = (n, replace(p, axis=replace(p.axis, copy_of="n")))
    return replace(made, b=replace(made.b, axes=axes), sizes=(("n", 2), ("p", 3)))


def with_output(**changed) -> Claim:
    return with_b(lambda s: replace(s, outputs=(replace(s.outputs[0], **changed),)))


CLAIMS = {
    "a size is not an integer from 1 to 256": lambda: claim(sizes=(("n", 257), ("p", 2))),
    "two names are identified with one": lambda: claim(b="more", names=(("w", "u"), ("z", "u"))),
    "`q` is no input or parameter of the second mixer": lambda: claim(names=(("q", "u"),)),
    "two names are identified with one ": lambda: claim(b="more", names=(("z", "w"),)),
    "two names are identified with one  ": lambda: claim(b="more", names=(("z", "z"), ("z", "z"))),
    "does not have the same axes": lambda: claim("more", "more", names=(("r", "w"), ("w", "r"))),
    "`u` is an input of one and none of the other": lambda: claim(b="param_u"),
    "`u` is an input of one and none of the other ": lambda: claim(
        "param_u", "plain", equal=False, case=True
    ),
    "`q` is no input or parameter of the first mixer": lambda: claim(b="more", names=(("z", "q"),)),
    "the outputs have axes": lambda: claim("wide", "wide_q", sizes=(*SIZES, ("q", 2))),
    "the outputs have shapes": lambda: claim(b="summed"),
    "one output is complex": lambda: with_output(field=Field.COMPLEX),
    "two values of a system have one name": lambda: with_b(
        lambda s: replace(s, params=(*s.params, s.params[0]))
    ),
    "`first` is not a name": lambda: with_b(
        lambda s: replace(s, params=(*s.params, replace(s.params[0], name="first")))
    ),
    "is not a name": lambda: with_b(
        lambda s: replace(s, params=(*s.params, replace(s.params[0], name="w[0]")))
    ),
    "\n` is not a name": lambda: with_b(lambda s: replace(s, name="m, and of all others\n")),
    "how far back slots read is said": lambda: claim(locality=0),
    "how far back slots read is said ": lambda: claim(case=True, locality=0),
    "how far back slots read is said  ": lambda: claim(equal=False, locality=0),
    "how far back slots read is said   ": lambda: claim(equal=False, case=True, locality=64),
    "how far back slots read is said    ": lambda: claim(equal=False, case=True, locality=-1),
    "no size is given for `p`": lambda: claim(sizes=(("n", 2),)),
    "`p` has another size than what it is a copy of": lambda: copied(claim()),
    "two axes have one name": lambda: with_b(lambda s: replace(s, axes=(*s.axes, s.axes[0]))),
    "a system has no input": lambda: with_b(lambda s: replace(s, inputs=())),
    "a system has not one output per token": lambda: with_b(lambda s: replace(s, outputs=())),
    "a system has not one output per token ": lambda: with_output(over_time=True),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("reason", CLAIMS)
def test_claims_that_put_nothing_side_by_side(reason: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        comparable(CLAIMS[reason]())
    assert reason.strip() in str(caught.value)


def test_what_they_change_is_fine_as_it_was() -> None:
    comparable(claim())
    comparable(claim(equal=False, case=True, locality=63))
    for name in ("wide", "summed", "param_u", "bounded", "more"):
        comparable(claim(name, name))


# --- rows -----------------------------------------------------------------------------------------

A, B, ONE = "$A.S[0]", "$B.S[0]", (((), 1),)
MINUS = (((), -1),)
EQUAL_STATES = tuple(
    Row((f"$A.S[{k}]",), (((f"$A.S[{k}]",), ONE), ((f"$B.S[{k}]",), MINUS))) for k in range(2)
)


def reason_of(stated: Claim, *rows: Row) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(Certificate(stated, Invariant(rows, False))))
    return str(caught.value)


def row(pivot: tuple[str, ...], *terms) -> Row:
    return Row(pivot, terms)


def test_the_rows_are_a_proof_as_they_were() -> None:
    assert check(write(Certificate(claim(), Invariant(EQUAL_STATES, False)))).claim.equal


ROWS = {
    "a row has a column twice": row((A,), ((A,), ONE), ((A,), MINUS)),
    "a row has a column twice, or an empty one": row((A,), ((A,), ONE), ((B,), ())),
    "the terms of a coefficient are not in order": row(
        (A,), ((A,), (((("u[1]@0", 1),), 1), ((("u[0]@0", 1),), 1)))
    ),
    "a term is not in order, or 0": row((A,), ((A,), (((), 0),))),
    "a term is not in order, or 0 ": row((A,), ((A,), ((((("u[1]@0", 1), ("u[0]@0", 1))), 1),))),
    "a term is not in order, or 0  ": row((A,), ((A,), ((((("u[0]@0", 1), ("u[0]@0", 1))), 1),))),
    "an exponent is out of range ": row((A,), ((A,), (((("i", 2),), 1),))),
    "an exponent is out of range  ": row((A,), ((A,), (((("u[0]@0", 0),), 1),))),
    "an exponent is out of range": row((A,), ((A,), (((("u[0]@0", 65),), 1),))),
    "a row does not have its pivot": row(("$A.S[1]",), ((A,), ONE), ((B,), MINUS)),
    "a row has no state in its pivot": row((), ((), ONE)),
    "a row names a state that does not exist": row(("$A.S[7]",), (("$A.S[7]",), ONE)),
    "a product of states is not in order": row((B, A), ((B, A), ONE)),
    "a coefficient holds a state": row((A,), ((A,), ((((B, 1),), 1),))),
    "a row reads further back than its moment": row((A,), ((A,), (((("u[0]@5", 1),), 1),))),
    "a row does not vanish at the start": row((A,), ((A,), ONE)),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("reason", ROWS)
def test_rows_that_are_none(reason: str) -> None:
    others = () if ROWS[reason].pivot in {r.pivot for r in EQUAL_STATES} else EQUAL_STATES
    assert reason.strip() in reason_of(claim(), ROWS[reason], *others)


def test_rows_hold_after_the_first_token_too() -> None:
    """S is 0 after the first token, and the outputs agree there."""
    stated = claim("late", "nothing", sizes=(("n", 1),))
    assert "a row is not kept by the update" in reason_of(stated, row((A,), ((A,), ONE)))


def test_outputs_agree_at_the_first_token_too() -> None:
    stated = claim("early", "same", sizes=(("n", 1),))
    assert "the outputs differ at one of the first tokens" in reason_of(stated)


def test_pivots_stand_in_one_row() -> None:
    assert "a pivot is in two rows" in reason_of(claim(), *EQUAL_STATES, EQUAL_STATES[0])


def test_what_an_invariant_does_not_show() -> None:
    assumed = Condition((((("u[0]@0", 1),), 1),), "u[0]@0")
    for reason, stated in (
        ('rule "linear-invariant" shows equality', claim(equal=False)),
        ('rule "linear-invariant" has no conditions', claim(conditions=(assumed,))),
        ("sizes are not counted where values are inputs", claim(free=True, every=("n",))),
        ("no proof for all sizes of q: there is no such axis", claim(every=("q",))),
    ):
        assert reason in reason_of(stated, *EQUAL_STATES)


def test_the_outputs_differ_where_no_row_says_otherwise() -> None:
    assert "the outputs differ where the rows vanish" in reason_of(claim())
    assert "the outputs differ where the rows vanish" in reason_of(claim(), EQUAL_STATES[0])


# --- points ---------------------------------------------------------------------------------------


def point(**changed) -> Witness:
    used = {n: ((1, 1, 0, 1), (2, 1, 0, 1)) for n in ("u", "x", "w")}
    used |= changed.pop("put", {})
    return replace(Witness(1, tuple(used.items()), 0, (0,)), **changed)


def pair(a: str, b: str) -> Claim:
    return claim(a, b, equal=False)


def refusal(stated: Claim, proof: Witness) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(Certificate(stated, proof)))
    return str(caught.value)


def test_the_point_is_a_witness_as_it_was() -> None:
    assert check(write(Certificate(pair("plain", "doubled"), point()))).gap is not None


ONES = ((1, 1, 0, 1), (1, 1, 0, 1))
POINTS = {
    "a witness has from 1 to 64 tokens": point(length=0),
    "a witness has from 1 to 64 tokens ": point(
        length=65, put={n: ONES * 65 for n in ("u", "x")}, token=0
    ),
    "a name has two values": point(values=(*point().values, point().values[0])),
    "`w` has no value": point(values=point().values[:2]),
    "`u` has 4 entries, not 2": point(put={"u": ONES * 2}),
    "a denominator is not positive": point(put={"u": ((1, 0, 0, 1), (1, 1, 0, 1))}),
    "a denominator is not positive ": point(put={"u": ((1, 1, 0, -1), (1, 1, 0, 1))}),
    "`u` is real": point(put={"u": ((1, 1, 1, 1), (1, 1, 0, 1))}),
    "the token is not one of the sequence": point(token=1),
    "the token is not one of the sequence ": point(token=-1),
    "the index does not fit the output": point(index=(0, 0)),
    "the index does not fit the output ": point(index=(2,)),
    "the index does not fit the output  ": point(index=(-1,)),
    "the outputs may be equal here": point(put={"u": ((0, 1, 0, 1), (0, 1, 0, 1))}),
}


@pytest.mark.parametrize("reason", POINTS)
def test_points_that_are_none(reason: str) -> None:
    assert reason.strip() in refusal(pair("plain", "doubled"), POINTS[reason])


def test_a_point_where_there_are_no_outputs() -> None:
    stated = claim("divided", "divided_twice", sizes=(("n", 1),), equal=False)
    zero, one = (Witness(1, (("u", ((x, 1, 0, 1),)),), 0, (0,)) for x in (0, 1))
    assert check(write(Certificate(stated, one))).gap is not None
    assert "the outputs have no value here" in refusal(stated, zero)


def test_a_point_gives_no_value_to_what_has_one() -> None:
    stated = claim("fixed", "fixed_twice", sizes=(("n", 1),), equal=False)
    one = (("u", ((1, 1, 0, 1),)),)
    assert check(write(Certificate(stated, Witness(1, one, 0, (0,))))).gap is not None
    both = (*one, ("c", ((3, 1, 0, 1),)))
    assert "`c` has a fixed value" in refusal(stated, Witness(1, both, 0, (0,)))


def test_what_a_witness_does_not_show() -> None:
    stated = pair("plain", "doubled")
    assert "equality is claimed" in refusal(replace(stated, equal=True), point())
    assert "one size of each axis" in refusal(replace(stated, every=("n",)), point())
    assert "one size of each axis" in refusal(replace(stated, free=True), point())
    assumed = Condition((((("u[0]@0", 1),), 1),), "u[0]@0")
    assert "has no conditions" in refusal(replace(stated, conditions=(assumed,)), point())


@pytest.mark.parametrize(
    "name, value, kind",
    [
        ("w", 0, Constraint.UNIT), ("w", 1, Constraint.UNIT), ("z", -1, Constraint.NONNEG),
        ("r", 0, Constraint.NONZERO), ("s", 0, Constraint.POSITIVE),
    ],
)  # fmt: skip
def test_values_keep_their_ranges(name: str, value: int, kind: Constraint) -> None:
    half = ((1, 2, 0, 1), (1, 2, 0, 1))
    values = {n: half for n in ("u", "x", "w", "z", "r", "s")}
    good = Witness(1, tuple(values.items()), 0, (0,))
    stated = pair("bounded", "bounded_doubled")
    assert check(write(Certificate(stated, good))).gap is not None
    bad = tuple((values | {name: ((value, 1, 0, 1), half[0])}).items())
    assert f"a value of `{name}` is not {kind.value}" in refusal(stated, replace(good, values=bad))
