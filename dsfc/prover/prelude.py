"""Texts of Python that every program of `dsfc.prover.replay` starts with: arithmetic and tools."""

from __future__ import annotations

from collections.abc import Mapping

FRACTIONS = """
from fractions import Fraction


def num(p, q=1):
    return Fraction(p, q)


def apart(a, b):
    return a != b


def shown(x):
    return str(x)
"""

BALLS = """
from decimal import Decimal

def num(p, q=1):
    return real(Fraction(p, q))


def apart(a, b):
    return not a.meets(b)


def whole(x):
    return int(x.low) if x.exact and x.low.denominator == 1 else None


def positive(x):
    return x.low > 0


def near(x):
    return f"{Decimal(x.numerator) / x.denominator:.15g}"


def shown(x):
    return str(x.low) if x.exact else f"{near(x.low)} (error below {near(x.high - x.low)})"
"""

COMPLEX = """
from decimal import Decimal

def num(p, q=1, r=0, s=1):
    return Complex(real(Fraction(p, q)), real(Fraction(r, s)))


def apart(a, b):
    return not a.meets(b)


def near(x):
    return f"{Decimal(x.numerator) / x.denominator:.15g}"


def shown(x):
    parts = (x.re,) if x.is_real else (x.re, x.im)
    return " + i ".join(
        str(p.low) if p.exact else f"{near(p.low)} (error below {near(p.high - p.low)})"
        for p in parts
    )


def only(x):
    assert x.is_real
    return x.re


def whole(x):
    exact = x.is_real and x.re.exact and x.re.low.denominator == 1
    return int(x.re.low) if exact else None


def positive(x):
    return x.is_real and x.re.low > 0


def lifted(function):
    return lambda *args: Complex(function(*map(only, args)), real(0))


c_log, c_sqrt, c_cos, c_sin, c_tanh, c_sign, c_maximum, c_pi = map(
    lifted, (log, sqrt, cos, sin, tanh, sign, maximum, pi)
)
c_sigmoid, c_softplus = lifted(sigmoid), lifted(softplus)


def c_cplx(a, b):
    return Complex(only(a), only(b))


def c_cis(x):
    return Complex(cos(only(x)), sin(only(x)))


def c_exp(x):
    size = Complex(exp(x.re), real(0))
    return size if x.is_real else c_cis(Complex(x.im, real(0))) * size


def c_absolute(x):
    if x.is_real:
        return Complex(absolute(x.re), real(0))
    return Complex(sqrt(x.re * x.re + x.im * x.im), real(0))


def c_re(x):
    return Complex(x.re, real(0))


def c_im(x):
    return Complex(x.im, real(0))


def c_conj(x):
    return Complex(x.re, -x.im)
"""

TOOLS = '''

def total(parts):
    out = num(0)
    for part in parts:
        out = out + part
    return out


def product(parts):
    out = num(1)
    for part in parts:
        out = out * part
    return out


def power(x, k):
    return product([x] * k) if k >= 0 else num(1) / product([x] * -k)


def series(x, order):
    out, term = num(1), num(1)
    for r in range(1, order + 1):
        term = term * x / num(r)
        out = out + term
    return out


def over_time(function):
    """The value at a token: remembered, and 0 outside the sequence."""
    known = {}

    def at(t, *index):
        if not 0 <= t < LENGTH:
            return num(0)
        if (t, *index) not in known:
            known[(t, *index)] = function(t, *index)
        return known[(t, *index)]

    return at


def given(name, t, *index):
    return GIVEN[name][(t, *index)] if 0 <= t < LENGTH else num(0)
'''

NEEDED: Mapping[str, str] = {
    "silu": "def silu(x):\n    return x * sigmoid(x)\n",
    "relu": "def relu(x):\n    return maximum(x, num(0))\n",
    "elu": "def elu(x):\n    return maximum(x, num(0)) + exp(-maximum(-x, num(0))) - num(1)\n",
    "expm1": "def expm1(x):\n    return exp(x) - num(1)\n",
    "exprel": "def exprel(x):\n    return num(1) if x == num(0) else (exp(x) - num(1)) / x\n",
    "log1p": "def log1p(x):\n    return log(num(1) + x)\n",
    "logsigmoid": "def logsigmoid(x):\n    return -softplus(-x)\n",
    "raised": (
        "def raised(x, k):\n"
        "    if k == num(1, 2):\n"
        "        return sqrt(x)\n"
        "    if x == num(0) and positive(k):\n"
        "        return x\n"
        "    return exp(k * log(x)) if whole(k) is None else power(x, whole(k))\n"
    ),
    "minimum": "def minimum(x, y):\n    return -maximum(-x, -y)\n",
    "l2norm": (
        "def l2norm(xs, k):\n"
        "    size = sqrt(total(absolute(x) * absolute(x) for x in xs))\n"
        "    return xs[k] / maximum(size, num(1, 10**12))\n"
    ),
    "rmsnorm": (
        "def rmsnorm(xs, k):\n"
        "    size = sqrt(total(absolute(x) * absolute(x) for x in xs))\n"
        "    return sqrt(num(len(xs))) * xs[k] / maximum(size, num(1, 10**12))\n"
    ),
    "softmax": (
        "def softmax(xs, k):\n"
        "    parts = [exp(x - xs[0]) for x in xs]\n"
        "    return parts[k] / total(parts)\n"
    ),
}
"""Functions that `balls` does not have by themselves."""
