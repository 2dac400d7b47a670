"""Roots: known powers put in, and what may be divided by where there are zero divisors."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.tree import Field
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant, Row
from dsfc.trusted.polynomial import IMAGINARY, Polynomial, Quotient, generator, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.roots import NO_ROOTS, Roots
from dsfc.trusted.symbols import Symbols

X, Z = "x[]@0", "z[]@0"


def made() -> tuple[Symbols, dict[str, Quotient]]:
    """Symbols, and by name: two real inputs, their sizes, a root and halves of an exponent."""
    s = Symbols()
    x, z = s.leaf(X, real=True), s.leaf(Z, real=True)
    c = s.leaf("c[]", real=False)

    def f(name: str, *args: Quotient) -> Quotient:
        return s.primitive(name, args, Field.REAL)

    return s, {
        "x": x, "z": z, "one": number(1), "|x|": f("abs", x), "|z|": f("abs", z),
        "root": f("sqrt", x * x + number(1)), "half": s.exp(x * number(Fraction(1, 2))),
        "quarter": s.exp(x * number(Fraction(1, 4))), "third": s.exp(x * number(Fraction(1, 3))),
        "whole": s.exp(x), "|c|": f("abs", c), "c": c,
    }  # fmt: skip


def test_known_powers_are_put_in() -> None:
    s, v = made()
    for left, right in (
        (v["|x|"] * v["|x|"], v["x"] * v["x"]),
        (v["|x|"].power(-1), v["|x|"] / (v["x"] * v["x"])),
        (v["root"].power(3), v["root"] * (v["x"] * v["x"] + v["one"])),
        (v["half"] * v["half"], v["whole"]),
        (v["quarter"].power(2), v["half"]),
        (v["quarter"].power(7), v["whole"] * v["half"] * v["quarter"]),
        (v["third"].power(3), v["whole"]),
        (v["|c|"] * v["|c|"], v["c"] * s.conjugate(v["c"])),
        (v["one"] / (v["root"] - v["x"]), v["root"] + v["x"]),
    ):
        assert not s.roots.reduced(left - right)
    for left, right in (
        (v["|x|"], v["x"]),
        (v["|x|"].power(3), v["x"].power(3)),
        (v["half"], v["third"]),
        (v["third"].power(2), v["half"]),
        (v["|c|"] * v["|c|"], v["c"] * v["c"]),
    ):
        assert s.roots.reduced(left - right)


def test_a_root_is_known_at_other_tokens() -> None:
    s, v = made()

    def later(name: str) -> str:
        return name.replace("@0", "@2")

    moved = (v["|x|"] * v["root"]).renamed(later)
    expected = (v["x"] * v["x"] * (v["x"] * v["x"] + v["one"])).renamed(later)
    assert not s.roots.reduced(moved * moved - expected)
    assert s.roots.of("abs(x[]@3)") is not None and s.roots.of("abs(y[]@3)") is None
    only_later = Roots()
    only_later.add("abs(x[]@2)", 2, v["x"].renamed(later).power(2))
    assert not only_later.reduced(v["|x|"] * v["|x|"] - v["x"] * v["x"])


def test_a_power_that_is_no_polynomial_over_integers_is_not_taken() -> None:
    _, v = made()
    for power in (v["x"] * number(Fraction(1, 2)), v["one"] / v["x"], v["one"] - v["one"],
                  v["one"] / (v["x"] + v["one"])):  # fmt: skip
        roots = Roots()
        roots.add("abs(x[]@0)", 2, power)
        assert roots.of("abs(x[]@0)") is None


def test_what_may_divide_0_is_not_regular() -> None:
    s, v = made()

    def regular(q: Quotient) -> bool:
        assert not q.den
        return s.roots.regular(q.num)

    zero = v["one"] - v["one"]
    for fine in ("x", "|x|", "root", "half", "quarter", "whole", "|c|", "one"):
        assert regular(v[fine]) and regular(v[fine] + v["one"])
    for fine in (v["|x|"] - v["z"], v["|x|"] - v["|z|"], v["root"] - v["x"], v["|c|"] - v["c"],
                 v["quarter"] - v["half"], v["|x|"] + v["x"] + v["one"]):  # fmt: skip
        assert regular(fine)
    for divisor in (v["|x|"] - v["x"], v["|x|"] + v["x"], (v["|x|"] - v["x"]) * v["z"],
                    (v["|x|"] + v["x"]) * (v["root"] - v["x"]), zero,
                    v["|x|"] * v["x"] - v["x"] * v["x"], v["|x|"] * v["|x|"] - v["x"] * v["x"],
                    v["half"] * v["half"] - v["whole"]):  # fmt: skip
        assert not regular(divisor)
    # Two roots of one generator: e^{x/2} cubed is not e^{x/3} to the sixth as texts.
    assert not regular(v["half"].power(3) - v["third"].power(4))
    assert NO_ROOTS.regular((v["|x|"] - v["x"]).num) and not NO_ROOTS.regular(zero.num)


def test_a_root_of_a_size_is_none_of_a_free_generator() -> None:
    """√|x| to the fourth is x², which x and -x divide."""
    s, v = made()
    outer = s.primitive("sqrt", (v["|x|"],), Field.REAL)
    assert not s.roots.regular((outer * v["|x|"] - outer * v["x"]).num)
    assert s.roots.regular((outer - v["x"]).num)


def test_what_is_0_by_roots_of_numbers_is_not_regular() -> None:
    """|3 + 4i| is 5, |1 + 7i| is 5 √2, √i √2 is 1 + i, and i^(1/3) solves x² - i x - 1 = 0."""
    s, i, half = Symbols(), Quotient(generator(IMAGINARY)), number(Fraction(1, 2))

    def size(re: int, im: int) -> Quotient:
        return s.primitive("abs", (number(re) + i * number(im),), Field.REAL)

    root_of_2, root_of_i = s.power(number(2), half), s.power(i, half)
    third = s.power(i, number(Fraction(1, 3)))
    for zero in (
        size(3, 4) - number(5),
        size(1, 7) - number(5) * root_of_2,
        root_of_i * root_of_2 - number(1) - i,
        third * third - i * third - number(1),
    ):
        assert zero.num and not s.roots.regular(zero.num)
    assert s.roots.regular((size(3, 4) - number(6)).num)


TERMS = st.lists(
    st.tuples(st.integers(-2, 2), *(st.integers(0, k) for k in (2, 2, 1, 1))), max_size=5
)


@given(TERMS)
def test_what_is_regular_is_0_for_no_signs(terms: list[tuple[int, ...]]) -> None:
    s, v = made()
    p = number(0)
    for c, *powers in terms:
        part = number(c)
        for name, e in zip(("x", "z", "|x|", "|z|"), powers, strict=True):
            part = part * v[name].power(e)
        p = p + part
    (x, z), (a, b) = ([next(iter(v[n].names)) for n in names] for names in (("x", "z"),
                      ("|x|", "|z|")))  # fmt: skip
    signed = [
        p.substituted({a: v["x"] * number(k), b: v["z"] * number(m)})
        for k in (1, -1) for m in (1, -1)
    ]  # fmt: skip
    assert s.roots.regular(p.num) is all(map(bool, signed)), (x, z)


def system(update: str) -> System:
    head = "mixer m {\n  input v, z\n  param a\n  state s\n"
    text = f"{head}  s = s[i-1] + {update}\n  y = s[i-1]\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


def forged() -> Certificate:
    """Σ v = Σ (v + (|a| + a) z), as (|a| - a) (s - t) = 0, which says nothing of a > 0."""
    a, b = system("v"), system("(v + (abs(a) + a) * z)")
    size, entry = ((("abs(a[])", 1),), 1), ((("a[]", 1),), 1)
    minus = [((m, -c)) for m, c in (size, entry)]
    pivot, other = ("$A.s[]",), ("$B.s[]",)
    # Sorted as the kernel sorts monomials: a before abs(a).
    terms = (
        (pivot, ((entry[0], -1), size)),
        (other, ((entry[0], 1), minus[0])),
    )
    rows = (Row(pivot, terms),)
    return Certificate(Claim(a, b, (), ()), Invariant(rows, False))


def test_a_row_whose_pivot_divides_0_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Rejected, match="the pivot of a row may divide 0"):
        check(write(forged()))
    # Nothing else in the kernel sees that this is false.
    monkeypatch.setattr(Roots, "regular", lambda roots, p: bool(p))
    assert check(write(forged())).claim.equal


def test_a_polynomial_without_roots_is_left_alone() -> None:
    s, v = made()
    q = (v["x"] + v["z"]).power(3) / (v["z"] + v["one"])
    assert s.roots.reduced(q) is q and NO_ROOTS.reduced(v["|x|"].power(2)).text == "abs(x[]@0)^2"
    assert isinstance(q.num, Polynomial)
