"""Systems on constant sequences: from which token on increments are sums of powers, and of what."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.text import text
from dsfc.expr.tree import Axis, LinearMap, Num
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import (
    Cast,
    ComplexPart,
    Direct,
    Gate,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Sum,
    SumOver,
    System,
    Term,
)
from dsfc.trusted.balls import Complex, real
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rules.steady import _affine, steady

SIZES = {"n": 2, "t": 3}
POINT = {
    "u": (1, Fraction(1, 2)), "v": (Fraction(-2, 3), 3), "a": (Fraction(1, 3), Fraction(-1, 4)),
    "b": (2, Fraction(1, 5)), "w": (1, -1, Fraction(1, 2)),
}  # fmt: skip


def system(body: str) -> System:
    declared = "dims n, t\n input u, v : n\n param a, b : n; w : t"
    source = f"mixer m {{ {declared}\n {body}\n}}"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", source))).compilation("m").system


def run(of: System, length: int) -> Execution:
    inputs = {t.name for t in of.inputs}
    given = {
        name: tuple(Complex(real(x), real(0)) for x in values * (length if name in inputs else 1))
        for name, values in POINT.items()
    }
    return Execution(of, SIZES, length, given)


STATES = {
    "a number": ("state s : n\n s = s[i-1] / 2 + u;  y = s", 0, [[Fraction(1, 2)] * 2]),
    "what is read before the update":
        ("state s : n\n s = s[i-1] / 2 + u;  y = s[i-1] - 3 * s", 0, [[Fraction(1, 2)] * 2]),
    "a parameter": ("state s : n\n s = a * s[i-1] + u;  y = b * s + u", 0,
                    [[Fraction(1, 3), Fraction(-1, 4)]]),
    "an input": ("state s : n\n s = u * s[i-1] + v;  y = s", 0, [[1, Fraction(1, 2)]]),
    "an earlier input": ("state s : n\n s = u[i-1] * s[i-1] + v;  y = s", 1,
                         [[1, Fraction(1, 2)]]),
    "two terms": ("state s : n\n s = a * s[i-1] + b * s[i-1] + u;  y = s", 0,
                  [[Fraction(7, 3), Fraction(-1, 20)]]),
    "two factors": ("state s : n\n s = a * (b * s[i-1] + u) + v;  y = s", 0,
                    [[Fraction(2, 3), Fraction(-1, 20)]]),
    "a quotient": ("state s : n\n s = a / b * s[i-1] + u;  y = s", 0,
                   [[Fraction(1, 6), Fraction(-5, 4)]]),
    "a sum over an axis": ("state s : n\n s = sum[n](a) * s[i-1] + u;  y = s", 0,
                           [[Fraction(1, 12)] * 2]),
    "a difference": ("state s : n\n s = (1 - a) * s[i-1] + a * u;  y = s", 0,
                     [[Fraction(2, 3), Fraction(5, 4)]]),
    "two states": ("state s, r : n\n s = a * s[i-1] + u;  r = b * r[i-1] + v\n"
                   " y = s * u + sum[n](r)", 0, None),
    "an earlier drive": ("state s : n\n s = a * s[i-1] + u[i-2];  y = s", 2, None),
    "an earlier value of an earlier one":
        ("state s : n\n x = u[i-1] * v;  s = a * s[i-1] + x[i-2];  y = s", 3, None),
    "a filter": ("state s : n\n s = a * s[i-1] + fir[t](w, u);  y = s", 2, None),
    "a filter of what is earlier":
        ("state s : n\n x = u[i-1];  s = a * s[i-1] + fir[t](w, x[i-1]);  y = s", 4, None),
    "a filter in the decay": ("state s : n\n s = fir[t](w, u) * s[i-1] + v;  y = s", 2,
                              [[Fraction(1, 2), Fraction(1, 4)]]),
    "the first token": ("state s : n\n s = a * s[i-1] + u + first * v;  y = s", 1, None),
    "the first token some tokens ago":
        ("state s : n\n s = a * s[i-1] + u + first[i-2] * v;  y = s", 3, None),
    "a decay that begins late":
        ("state s : n\n s = (1 - first) * a * s[i-1] + u;  y = s", 1,
         [[Fraction(1, 3), Fraction(-1, 4)]]),
    "a read of an earlier input": ("state s : n\n s = a * s[i-1] + u;  y = s * v[i-2]", 2, None),
    "an output without states": ("y = u * v + v[i-1]", 1, []),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_increments_are_sums_of_powers_of_the_bases_from_a_token_on(name: str) -> None:
    body, window, bases = STATES[name]
    of = system(body)
    found = steady(of, SIZES)
    assert found.window == window
    at = run(of, 1)
    values = [[at.value(base.value, place).re.low for place in at.places(base.axes)]
              for base in found.bases]  # fmt: skip
    if bases is not None:
        assert values == bases
    for base, row in zip(found.bases, values, strict=True):
        assert not any(base.region.excludes(Complex(real(x), real(0))) for x in row)
    roots = sorted({x for row in values for x in row if x})
    length = window + 2 + len(roots) + 4
    outputs = run(of, length).output()
    for entry in range(2):
        y = [row[entry].re.low for row in outputs]
        s = [now - before for now, before in zip(y, [Fraction(0), *y], strict=False)]
        for root in roots:
            s = [later - root * now for later, now in zip(s[1:], s, strict=False)]
        assert not any(s[window + 2 :])


REFUSED = {
    "a state of another": ("state s, r : n\n s = a * s[i-1] + u;  r = r[i-1] + s[i-1];  y = r",
                           "reads states"),
    "entries of one another": ("state s : n\n s = sum[n](b * s[i-1]) * a + u;  y = s", "coupled"),
    "a product of states": ("state s : n\n s = a * s[i-1] + u;  y = s * s", "multiplied"),
    "a quotient of states": ("state s : n\n s = a * s[i-1] + u;  y = u / s", "divided"),
    "a function of states": ("state s : n\n s = a * s[i-1] + u;  y = tanh(s)", "`tanh`"),
    "a state that runs backwards": ("state s : n backward\n s = a * s[i+1] + u;  y = s",
                                    "backwards"),
    "a sum over the past": ("y = sum[j ≤ i](exp(u · u[j]) * v[j])", "no finite state"),
    "what is made of states in a decay":
        ("state s, r : n\n s = a * s[i-1] + u;  x = 2 * s;  r = x * r[i-1] + u;  y = r",
         "reads states"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_affine_or_not_its_own_has_no_bases(name: str) -> None:
    body, why = REFUSED[name]
    with pytest.raises(Obstacle, match=why):
        steady(system(body), SIZES)


ACCEPTED = {
    "a quotient by a value of the token": "state s : n\n s = a * s[i-1] + u;  y = s / (v * v + 1)",
    "a product with a function": "state s : n\n s = a * s[i-1] + u;  y = s * tanh(v) + exp(u)",
    "a sum of states": "state s, r : n\n s = a * s[i-1] + u;  r = b * r[i-1] + v;  y = s - 2 * r",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_coefficients_of_states_may_be_any_function_of_tokens(name: str) -> None:
    assert steady(system(ACCEPTED[name]), SIZES).window == 0


@pytest.mark.parametrize(
    "decay, base",
    [
        ("a", "a"),
        ("(a + first)", "a"),
        ("(a * (1 - first) + b * first)", "a"),
        ("(a + first / b)", "a"),
        ("(first * u)", "0"),
        ("(first[i-1] + first)", "0"),
        ("tanh(u[i-2])", "tanh(u)"),
        ("exp(first * a)", "exp(0)"),
        ("(u * x[i-1])", "u * v"),
        ("c", "2 * a"),
    ],
)
def test_a_base_is_what_a_decay_is_after_the_first_tokens(decay: str, base: str) -> None:
    body = f"x = v + 0 * u\n c = 2 * a\n state s : n\n s = {decay} * s[i-1] + u\n y = s * b"
    (found,) = steady(system(body), SIZES).bases
    assert text(found.value) == base and found.state == "s"


VALUE = Num(Fraction(2))


def state_at(lag: int) -> Read:
    return Read((Term("s", lag, VALUE, frozenset(), VALUE),))


STATE, PLAIN = state_at(0), Direct(VALUE)
BENT = Post("tanh", (STATE,))
AROUND: dict[str, Callable[[ReadOut], ReadOut]] = {
    "a factor": lambda r: Gate(VALUE, r),
    "a real part": lambda r: Cast(ComplexPart.RE, r),
    "a map": lambda r: MapOut(LinearMap("W", (), (), ()), r),
    "a sum over an axis": lambda r: SumOver(Axis(0, "n"), r),
    "a sum": lambda r: Sum((PLAIN, r)),
    "a product": lambda r: Product((PLAIN, r)),
    "a quotient": lambda r: Ratio(r, PLAIN),
}


@pytest.mark.parametrize("name", AROUND)
def test_what_is_around_a_value_does_not_hide_what_it_is(name: str) -> None:
    around = AROUND[name]
    _affine(around(STATE))
    _affine(around(Post("tanh", (PLAIN,))))
    with pytest.raises(Obstacle, match="`tanh` is applied"):
        _affine(around(BENT))
    # A divisor, an argument and a second factor hold no state, whatever is around it.
    _affine(Ratio(STATE, around(PLAIN)))
    _affine(Product((STATE, around(PLAIN))))
    for bad in (
        Ratio(PLAIN, around(STATE)),
        Ratio(PLAIN, Ratio(PLAIN, around(STATE))),
        Post("tanh", (PLAIN, around(STATE))),
        Product((STATE, around(STATE))),
    ):
        with pytest.raises(Obstacle):
            _affine(bad)
    for lag in (2, -1):
        with pytest.raises(Obstacle, match="another token"):
            _affine(around(state_at(lag)))
