"""The laws of generators: identities that must be seen, and none that are false."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

from dsfc.expr.tree import Field
from dsfc.trusted.elementary import IMAGINARY_UNIT
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import lags, shifted
from dsfc.trusted.polynomial import Quotient, constant, generator, number
from dsfc.trusted.symbols import GeneratorIndices, Symbols

Function = Callable[..., Quotient]


def of(s: Symbols) -> tuple[Function, Quotient, Quotient, Quotient, Quotient]:
    def f(name: str, *args: Quotient) -> Quotient:
        return s.primitive(name, args, Field.REAL)

    x, z = s.leaf("x[]", real=True), s.leaf("z[]", real=True)
    a = s.leaf("a[]", real=True, positive=True)
    return f, x, z, a, number(1)


TRUE = {
    "a gate to a power is the exponential of a softplus": lambda s, f, x, z, a, one: (
        f("exp", -(a * f("softplus", z))),
        s.power(f("sigmoid", -z), a),
    ),
    "softplus is odd up to x": lambda s, f, x, z, a, one: (
        f("softplus", x) - f("softplus", -x),
        x,
    ),
    "tanh by sigmoid": lambda s, f, x, z, a, one: (
        f("tanh", x),
        f("sigmoid", x + x) + f("sigmoid", x + x) - one,
    ),
    "log sigmoid": lambda s, f, x, z, a, one: (f("log", f("sigmoid", z)), -f("softplus", -z)),
    "reversed gate": lambda s, f, x, z, a, one: (f("sigmoid", x) + f("sigmoid", -x), one),
    "a gated decay": lambda s, f, x, z, a, one: (
        f("exp", -(a * f("softplus", x) * f("sigmoid", z))),
        s.power(f("sigmoid", -x), a * f("sigmoid", z)),
    ),
    "a root of a gate": lambda s, f, x, z, a, one: (
        s.power(f("sigmoid", z), number(Fraction(1, 4))),
        f("exp", -(f("softplus", -z) * number(Fraction(1, 4)))),
    ),
    "exponentials multiply": lambda s, f, x, z, a, one: (
        f("exp", x + z + z),
        f("exp", x) * f("exp", z) * f("exp", z),
    ),
    "logarithms of positive factors add": lambda s, f, x, z, a, one: (
        f("log", a * f("exp", x) * number(6)),
        f("log", a) + x + f("log", number(2)) + f("log", number(3)),
    ),
    "waves": lambda s, f, x, z, a, one: (
        f("cos", x) * f("cos", x) + f("sin", x) * f("sin", x),
        one,
    ),
    "exprel": lambda s, f, x, z, a, one: (f("exprel", x) * x + one, f("exp", x)),
}
FALSE = {
    "the wrong sign": lambda s, f, x, z, a, one: (
        f("exp", -(a * f("softplus", z))),
        s.power(f("sigmoid", z), a),
    ),
    "exponentials do not add": lambda s, f, x, z, a, one: (
        f("exp", x + z),
        f("exp", x) + f("exp", z),
    ),
    "a logarithm is not split where a factor may be negative": lambda s, f, x, z, a, one: (
        f("log", x * z),
        f("log", x) + f("log", z),
    ),
    "an even power has no sign": lambda s, f, x, z, a, one: (
        f("log", x * x),
        f("log", x) * number(2),
    ),
    "the size of a number is not the number": lambda s, f, x, z, a, one: (f("abs", x), x),
    "e to a part of a logarithm is no power": lambda s, f, x, z, a, one: (
        f("exp", f("log", a) / (x + one)),
        a,
    ),
    "nor to a product with one": lambda s, f, x, z, a, one: (f("exp", f("log", a) * x), a),
    "nor to its square": lambda s, f, x, z, a, one: (f("exp", f("log", a) * f("log", a)), a),
    "nor is the exponent of one rounded": lambda s, f, x, z, a, one: (
        f("exp", f("log", a) / number(2)),
        one,
    ),
    "a power of what may be negative is no exponential": lambda s, f, x, z, a, one: (
        s.power(x, a),
        f("exp", a * f("log", x)),
    ),
    "a maximum is not the first because that is positive": lambda s, f, x, z, a, one: (
        f("max", a, x),
        a,
    ),
    "a quotient has the sign of its denominator": lambda s, f, x, z, a, one: (
        f("abs", a / (x + one)),
        a / (x + one),
    ),
    "nor is a sum positive of which one term is": lambda s, f, x, z, a, one: (
        f("relu", a + x),
        a + x,
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_is_seen_to_be_equal(name: str) -> None:
    s = Symbols()
    left, right = TRUE[name](s, *of(s))
    assert not (left - right), (left.text, right.text)


@pytest.mark.parametrize("name", FALSE)
def test_is_not_taken_for_equal(name: str) -> None:
    s = Symbols()
    left, right = FALSE[name](s, *of(s))
    assert left - right


def test_what_is_0_is_not_positive() -> None:
    s = Symbols()
    assert not s.positive(number(0)) and s.positive(number(1))
    assert s.log(number(0)).names == {"log(0)"}


def test_a_logarithm_is_positive_of_what_is_more_than_1() -> None:
    s = Symbols()
    f, x, _, a, one = of(s)
    assert s.positive(f("softplus", x)) and s.positive(f("log", a + number(2)))
    # Its square is as near to 0 as a is.
    above = f("exp", a) - one
    for q in (a, a + number(Fraction(1, 2)), above * above):
        assert not s.positive(f("log", q))


UNARY = (
    "exp", "sigmoid", "softplus", "silu", "tanh", "cos", "sin", "expm1", "relu", "abs", "elu",
    "sign", "sqrt", "abs", "relu", "sqrt",
)  # fmt: skip
_MP = {
    "exp": mpmath.exp,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log(1 + mpmath.exp(x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "cos": mpmath.cos,
    "sin": mpmath.sin,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "relu": lambda x: max(x, mpmath.mpf(0)),
    "abs": abs,
    "elu": lambda x: x if x > 0 else mpmath.expm1(x),
    "sign": mpmath.sign,
    "sqrt": mpmath.sqrt,
    "max": max,
    "min": min,
    "third": lambda x: mpmath.root(x, 3),
}


def tree(rng: random.Random, depth: int) -> tuple:
    kind = rng.random()
    if depth == 0 or kind < 0.15:
        return (rng.choice(["x", "z", "a", "1", "-1", "2"]),)
    if kind < 0.5:
        return (rng.choice(UNARY), tree(rng, depth - 1))
    if kind < 0.56:
        return ("log", ("softplus", tree(rng, depth - 1)))
    if kind < 0.6:
        return ("third", tree(rng, depth - 1))
    if kind < 0.72:
        return (rng.choice(["max", "min"]), tree(rng, depth - 1), tree(rng, depth - 1))
    return (rng.choice("+*-"), tree(rng, depth - 1), tree(rng, depth - 1))


def symbolic(s: Symbols, t: tuple) -> Quotient:
    f, x, z, a, _ = of(s)
    if len(t) == 1:
        return {"x": x, "z": z, "a": a}[t[0]] if t[0] in "xza" else number(int(t[0]))
    args = [symbolic(s, part) for part in t[1:]]
    if t[0] in ("+", "-", "*"):
        left, right = args
        return {"+": left + right, "-": left - right, "*": left * right}[t[0]]
    if t[0] == "third":
        return s.power(args[0], number(Fraction(1, 3)))
    return f(t[0], *args)


class NoValue(Exception):
    """Real numbers have none."""


def numeric(t: tuple, at: dict[str, mpmath.mpf]) -> mpmath.mpf:
    if len(t) == 1:
        return at[t[0]] if t[0] in at else mpmath.mpf(int(t[0]))
    args = [numeric(part, at) for part in t[1:]]
    if t[0] in ("+", "-", "*"):
        left, right = args
        return {"+": left + right, "-": left - right, "*": left * right}[t[0]]
    if t[0] in ("sqrt", "third", "log") and args[0] < 0:
        raise NoValue
    return _MP[t[0]](*args)


def value(t: tuple, at: dict[str, mpmath.mpf]) -> mpmath.mpf | None:
    try:
        return numeric(t, at)
    except NoValue:
        return None


@pytest.mark.ci
def test_expressions_of_one_normal_form_have_one_value(tier: str) -> None:
    rng = random.Random(5)
    s = Symbols()
    points = [
        {"x": mpmath.mpf(p) / 7, "z": mpmath.mpf(q) / 5, "a": mpmath.mpf(r) / 3}
        for p, q, r in ((3, -4, 2), (-5, 2, 1), (1, 6, 4), (-3, -3, 3), (0, 0, 1))
    ]
    met: dict[str, list[mpmath.mpf | None]] = {}
    shared = 0
    for _ in range({"fast": 1_500, "ci": 4_000, "full": 40_000}[tier]):
        t = tree(rng, rng.choice([1, 2, 2, 3]))
        normal = s.roots.reduced(symbolic(s, t)).text
        values = [value(t, at) for at in points]
        known = met.setdefault(normal, values)
        shared += known is not values
        for left, right in zip(known, values, strict=True):
            both = left is not None and right is not None
            assert not both or mpmath.almosteq(left, right, 1e-9, 1e-9), (t, normal)
    assert shared > 200


def test_a_function_of_a_state_is_a_call_with_its_place() -> None:
    s = Symbols()
    state, x = s.leaf("$A.S[0]", real=True), s.leaf("x[]@0", real=True)
    with s.recorded() as calls:
        first, again = (s.primitive("tanh", (state * x,), Field.REAL) for _ in range(2))
        other = s.primitive("relu", (state,), Field.REAL)
    assert not (first - again) and first - other
    assert [c.head for c in calls] == ["exp", "relu"]


def test_a_complex_function_of_a_state_is_an_obstacle() -> None:
    s = Symbols()
    state = s.leaf("$A.S[0]", real=False)
    with s.recorded(), pytest.raises(Obstacle):
        s.primitive("exp", (state,), Field.COMPLEX)


def test_a_complex_function_of_a_call_is_one_of_its_value() -> None:
    s = Symbols()
    state = s.leaf("$A.S[0]", real=True)
    with s.recorded() as calls:
        size = s.primitive("abs", (state,), Field.REAL)
        turned = s.opaque("sqrt", (size * IMAGINARY_UNIT,), real=False, positive=False)
    assert len(calls) == 1 and turned.names.isdisjoint(size.names)


def test_powers_that_are_not_multiplied_out_are_functions() -> None:
    s = Symbols()
    x, a, c = s.leaf("x[]", True), s.leaf("a[]", True, True), s.leaf("c[]", False)
    assert not (s.power(x, number(64)) - x.power(64))
    for base, exponent in ((x, number(65)), (a, c)):
        (name,) = s.power(base, exponent).names
        assert s.defined[name] == ("pow", (base, exponent))
    state = s.leaf("$A.S[0]", real=True)
    with s.recorded() as calls:
        s.power(a, state)
    assert [c.head for c in calls] == ["pow"]


def test_conjugation_is_an_automorphism() -> None:
    s = Symbols()
    z, w = s.leaf("z[]", real=False), s.leaf("w[]", real=False)
    for q in (z * w, z + w, z / w, s.exp(z * w), s.exp(z).power(-1)):
        assert not (s.conjugate(s.conjugate(q)) - q)
    assert not (s.conjugate(z * w) - s.conjugate(z) * s.conjugate(w))
    assert not (s.conjugate(s.exp(z)) - s.exp(s.conjugate(z)))
    assert s.conjugate(z) - z


def test_lags_move_together() -> None:
    assert shifted("exp(u[0]@0*k[1]@2)", 1) == "exp(u[0]@1*k[1]@3)"
    assert lags(frozenset({"u[0]@1", "W[0]", "f(v[]@3)"})) == {1, 3}
    with pytest.raises(Obstacle):
        shifted("u[]@0", -1)
    with pytest.raises(Obstacle):
        shifted("u[]@9", 1)


def test_exponentials_of_what_is_positive_are_more_than_one() -> None:
    """Signs by x - 1: exact ones, and none that holds at some points alone."""
    s = Symbols()
    f, _, z, a, one = of(s)
    large, any_ = f("exp", a), f("exp", z)
    for positive in (large - one, large.power(2) - large, one - f("exp", -a), large + any_ - one,
                     (large - one).power(2)):  # fmt: skip
        assert s.positive(positive), positive.text
    for other in (any_ - one, large - number(2), one - large, large - any_, large - one - any_,
                  large.power(20) - large.power(2), large - one + z):  # fmt: skip
        assert not s.positive(other), other.text
    assert not f("log", one - f("exp", -a)) - f("log", large - one) + a
    # (x - 1)^2 is positive and may be below 1, so its logarithm has any sign.
    assert not s.positive(f("log", (large - one).power(2)))
    assert s.positive(f("log", large + one))


def test_exponentials_are_compared_with_one_up_to_a_power() -> None:
    s = Symbols()
    f, _, _, a, one = of(s)
    large = f("exp", a)
    for low, high in ((0, 16), (2, 18), (-3, 13)):
        assert s.positive(large.power(high) - large.power(low))
        assert not s.positive(large.power(high + 1) - large.power(low))
    # Each of two is less one.
    more = f("exp", a * a)
    assert s.positive(large * more - one) and s.positive(large.power(8) * more.power(8) - one)
    assert not s.positive(large - more) and not s.positive(large * more - large - more)


@pytest.mark.parametrize(
    "value, primes",
    [
        (Fraction(1), {}),
        (Fraction(12), {2: 2, 3: 1}),
        (Fraction(9, 8), {3: 2, 2: -3}),
        (Fraction(49, 997), {7: 2, 997: -1}),
        (Fraction(2 * 1009), {2: 1, 1009: 1}),
        (Fraction(1009 * 1013), {1009 * 1013: 1}),
    ],
)
def test_the_logarithm_of_a_number_is_made_of_those_of_primes(value, primes) -> None:
    s = Symbols()
    found = s.log(number(value))
    assert found.num.terms == {((f"log({p})", 1),): Fraction(k) for p, k in primes.items()}
    assert not s.exp(found) - number(value)
    assert s.defined == {f"log({p})": ("log", (s.defined[f"log({p})"][1][0],)) for p in primes}


def test_of_a_name_that_was_never_written_nothing_is_known() -> None:
    """Values of one branch of a search may name a logarithm that another never writes."""
    assert not Symbols().is_positive(constant(1) + generator("log(1+exp(s[])*v[])"))


def test_the_sign_of_a_complex_value_is_complex() -> None:
    s = Symbols()
    z = s.leaf("z[]", real=False)
    sign = s.primitive("sign", (z,), Field.COMPLEX)
    assert sign - s.conjugate(sign)
    for power in (2, 3, -1):
        assert not s.primitive("sign", (z.power(power),), Field.COMPLEX) - sign.power(power)
    real = s.primitive("sign", (z + s.conjugate(z),), Field.REAL)
    assert not real - s.conjugate(real)


def test_what_is_real_has_no_conjugate_of_its_own() -> None:
    s = Symbols()
    _, x, _, _, _ = of(s)
    z, f = s.leaf("c[]", False), s.opaque("f", (x,), True, False)
    assert s.knows("~c[]") and not s.knows("~x[]") and not s.knows("~f(x[])")
    for q in (x, f, x * f):
        assert s.conjugate(q) is q and s.is_real(q)
    assert s.conjugate(z).text == "~c[]" and not s.is_real(z) and not s.is_real(z + x)


def test_softmax_is_made_of_exponentials_that_add_up() -> None:
    s = Symbols()
    _, x, z, a, one = of(s)
    parts = [s.along("softmax", (x, z, a), k, "n") for k in range(3)]
    assert not parts[0] + parts[1] + parts[2] - one
    assert not parts[1] / parts[0] - s.exp(z - x)
    assert all(map(s.positive, parts))


def test_a_norm_says_its_axis_and_its_entry() -> None:
    s = Symbols()
    _, x, z, _, _ = of(s)
    (name,) = s.along("l2norm", (x, z), 1, "n").names
    assert name == "l2norm.n[1](x[],z[])" and s.spelled[name] == GeneratorIndices(
        (("n", 1),), {"n"}
    )
    assert s.defined[name][1] == (x, z) and s.is_real(s.along("rmsnorm", (x, z), 0, "n"))
    state = s.leaf("$A.S[0]", True)
    with s.recorded() as calls:
        s.along("l2norm", (state, x), 1, "n")
    assert [c.head for c in calls] == ["l2norm[1]"]
    with pytest.raises(Obstacle, match="applied to complex values"):
        s.along("l2norm", (s.leaf("c[]", False), x), 0, "n")


def test_a_range_is_one_of_real_numbers() -> None:
    """What is positive of real numbers is no number in a range of complex ones."""
    s = Symbols()
    x, z = s.leaf("x[]", True), s.leaf("z[]", False)
    for name, args, positive in (
        ("exprel_slope", (x,), True),
        ("pi", (), True),
        ("relu", (x,), False),
        ("sqrt", (x,), False),
        ("max", (x, x), False),
    ):
        found = s.primitive(name, args, Field.REAL)
        assert s.is_real(found) and s.positive(found) is positive
    turned = s.primitive("exprel_slope", (z,), Field.COMPLEX)
    assert not s.is_real(turned) and not s.positive(turned)
    assert not s.positive(s.primitive("exp", (z,), Field.COMPLEX))


@pytest.mark.parametrize("name", ["log", "log1p", "sqrt"])
def test_a_complex_function_of_what_is_real_has_another_branch(name: str) -> None:
    """Log(-1) is iπ where -1 is complex."""
    s = Symbols()
    _, x, _, a, _ = of(s)
    assert not s.primitive(name, (a,), Field.COMPLEX) - s.primitive(name, (a,), Field.REAL)
    with pytest.raises(Obstacle, match="another branch"):
        s.primitive(name, (x,), Field.COMPLEX)


def test_a_function_is_not_real_in_one_place_and_complex_in_another() -> None:
    s = Symbols()
    z = s.leaf("z[]", real=False)
    part = s.primitive("re", (z,), Field.REAL)
    s.primitive("sqrt", (part,), Field.COMPLEX)
    with pytest.raises(Obstacle, match="real in one place"):
        s.primitive("sqrt", (part,), Field.REAL)
