"""A witness as a program that needs Python and nothing else.

The two definitions are printed entry by entry, as the specs say them: a sum over the past is a sum.
Where a function is not rational the arithmetic of `dsfc.check_proof.balls` comes along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib.resources import files

from dsfc.check_proof.entries import Obstacle
from dsfc.check_proof.statement import fixed
from dsfc.primitives.declarations import MapTensor, Tensor
from dsfc.primitives.expr import (
    Add,
    Axis,
    Bound,
    Div,
    Expr,
    Field,
    Fir,
    Iota,
    Lag,
    LinearMap,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Past,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Relation,
    Rename,
    Run,
    Series,
    Size,
    children,
)
from dsfc.primitives.text import text
from dsfc.primitives.words import FIRST
from dsfc.proof.verdict import Refuted
from dsfc.system.ir import Definition, System

_HEAD = '''"""{title}

{claim} The point below refutes it: both definitions are run as their specs
say them, with exact fractions{bounds}. Exit code 0: the refutation stands.
"""
'''

_FRACTIONS = """
from fractions import Fraction


def num(p, q=1):
    return Fraction(p, q)


def apart(a, b):
    return a != b


def shown(x):
    return str(x)
"""

_BALLS = """

def num(p, q=1):
    return real(Fraction(p, q))


def apart(a, b):
    return not a.meets(b)


def shown(x):
    return str(x.low) if x.exact else f"{float(x.low)} (error below {float(x.high - x.low)})"
"""

_COMPLEX = """

def num(p, q=1, r=0, s=1):
    return Complex(real(Fraction(p, q)), real(Fraction(r, s)))


def apart(a, b):
    return not a.meets(b)


def shown(x):
    parts = (x.re,) if x.is_real else (x.re, x.im)
    return " + i ".join(
        str(p.low) if p.exact else f"{float(p.low)} (error below {float(p.high - p.low)})"
        for p in parts
    )


def only(x):
    assert x.is_real
    return x.re


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

_TOOLS = '''

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

_NEEDED: Mapping[str, str] = {
    "silu": "def silu(x):\n    return x * sigmoid(x)\n",
    "relu": "def relu(x):\n    return maximum(x, num(0))\n",
    "elu": "def elu(x):\n    return maximum(x, num(0)) + exp(-maximum(-x, num(0))) - num(1)\n",
    "expm1": "def expm1(x):\n    return exp(x) - num(1)\n",
    "exprel": "def exprel(x):\n    return num(1) if x == num(0) else (exp(x) - num(1)) / x\n",
    "log1p": "def log1p(x):\n    return log(num(1) + x)\n",
    "logsigmoid": "def logsigmoid(x):\n    return -softplus(-x)\n",
    "minimum": "def minimum(x, y):\n    return -maximum(-x, -y)\n",
    "l2norm": (
        "def l2norm(xs, k):\n"
        "    size = sqrt(total(absolute(x) * absolute(x) for x in xs))\n"
        "    return xs[k] / maximum(size, num(*(1e-12).as_integer_ratio()))\n"
    ),
    "rmsnorm": (
        "def rmsnorm(xs, k):\n"
        "    size = sqrt(total(absolute(x) * absolute(x) for x in xs))\n"
        "    return sqrt(num(len(xs))) * xs[k] / maximum(size, num(*(1e-12).as_integer_ratio()))\n"
    ),
    "softmax": (
        "def softmax(xs, k):\n"
        "    parts = [exp(x - xs[0]) for x in xs]\n"
        "    return parts[k] / total(parts)\n"
    ),
}
"""Functions that `balls` does not have by themselves."""

_BALL_NAMES = {"abs": "absolute", "max": "maximum", "min": "minimum"} | {
    n: n for n in ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "softplus", "sign", "pi")
}


_PARTS = {"re", "im", "conj", "cplx", "cis"}
"""Functions of complex arithmetic alone."""


def script(refuted: Refuted, a: str, b: str) -> str:
    """Returns the program.

    Args:
        refuted: the refutation.
        a: what to call the first mixer.
        b: what to call the second.

    Raises:
        Obstacle: a definition has a node that is not printed.
    """
    claim, witness = refuted.certificate.claim, refuted.witness
    sizes = dict(claim.sizes)
    sides = [
        _Side("a", claim.a, {}, sizes),
        _Side("b", claim.b, dict(claim.names), sizes),
    ]
    first, second = sides
    first.identify(second)
    second.identify(first)
    bodies = [side.definitions() for side in sides]
    functions = set().union(*(side.functions for side in sides))
    imaginary = any(side.is_complex() for side in sides)
    for side in sides:
        side.mark = "c_" if imaginary else ""
    bodies = [side.definitions() for side in sides] if imaginary else bodies
    parts = [
        _HEAD.format(
            title=f"{a} and {b} are not the same function.",
            claim="The statement: equal outputs for equal inputs and parameters of equal names.",
            bounds=" and proven bounds" if functions or imaginary else "",
        )
    ]
    if functions or imaginary:
        source = files("dsfc.check_proof").joinpath("balls.py").read_text(encoding="utf-8")
        parts += [_without_docstring(source), _COMPLEX if imaginary else _BALLS]
    else:
        parts.append(_FRACTIONS)
    parts.append(_TOOLS)
    parts += [f"\n\n{_helper(name, imaginary)}" for name in sorted(functions & _NEEDED.keys())]
    parts.append(f"\n\nLENGTH = {witness.length}\nSIZE = {sizes!r}\nGIVEN = {{\n")
    declared = {name: (t, timed) for side in sides for name, t, timed in side.given()}
    for name, entries in witness.values:
        t, timed = declared[name]
        axes = _stored(t)
        lengths = [witness.length] * timed + [sizes[x.name] for x in axes]
        parts.append(f"    {name!r}: {{\n")
        for position, (p, q, r, s) in enumerate(entries):
            index = _unflattened(position, lengths)
            number = f"{p}, {q}, {r}, {s}" if r else f"{p}, {q}"
            parts.append(f"        {index!r}: num({number}),\n")
        parts.append("    },\n")
    parts.append("}\n")
    parts += bodies
    at = ", ".join(map(str, (witness.token, *witness.index)))
    other = ", ".join(map(str, (witness.token, *_same_place(refuted))))
    parts.append(
        f"\n\nleft = a_{claim.a.outputs[0].name}({at})\n"
        f"right = b_{claim.b.outputs[0].name}({other})\n"
        f'print("token {witness.token}, entry {list(witness.index)}")\n'
        f'print("a:", shown(left))\nprint("b:", shown(right))\n'
        "assert apart(left, right)\n"
    )
    return "".join(parts)


def _helper(name: str, imaginary: bool) -> str:
    """The text of a function that `balls` does not have; in complex arithmetic all have a mark."""
    if not imaginary:
        return _NEEDED[name]
    known = "|".join({*_BALL_NAMES.values(), *_NEEDED})
    return re.sub(rf"\b({known})\(", r"c_\1(", _NEEDED[name])


def _without_docstring(source: str) -> str:
    """The text of a module after its docstring."""
    return source[source.index('"""', 3) + 3 :]


def _unflattened(position: int, lengths: list[int]) -> tuple[int, ...]:
    out: list[int] = []
    for size in reversed(lengths):
        position, k = divmod(position, size)
        out.insert(0, k)
    return tuple(out)


def _same_place(refuted: Refuted) -> tuple[int, ...]:
    claim, place = refuted.certificate.claim, 0
    sizes = dict(claim.sizes)
    for axis, k in zip(claim.a.outputs[0].axes, refuted.witness.index, strict=True):
        place = place * sizes[axis.name] + k
    return _unflattened(place, [sizes[axis.name] for axis in claim.b.outputs[0].axes])


def _stored(t: Tensor | MapTensor) -> tuple[Axis, ...]:
    return t.axes if isinstance(t, Tensor) else (*t.map.each, *t.map.target, *t.map.source)


class _Side:
    """One mixer as functions of the token and an index."""

    def __init__(
        self, prefix: str, system: System, names: Mapping[str, str], sizes: Mapping[str, int]
    ) -> None:
        self.prefix = prefix
        self.system = system
        self.names = names
        self.sizes = sizes
        self.mark = ""
        self.functions: set[str] = set()
        self.axes: dict[str, tuple[Axis, ...]] = {d.name: d.axes for d in system.definition}
        self.inputs = {t.name: t.axes for t in system.inputs}
        axes = {t.name: t.axes for t in system.buffers if isinstance(t, Tensor)}
        self.fixed = {name: (axes[name], value) for name, value in fixed(system).items()}

    def given(self) -> list[tuple[str, Tensor | MapTensor, bool]]:
        """Every array: its name in a, its declaration, whether it has a time."""
        stored = (*self.system.inputs, *self.system.params, *self.system.buffers)
        return [(self.names.get(t.name, t.name), t, t.name in self.inputs) for t in stored]

    def identify(self, other: _Side) -> None:
        """Takes the fixed values of the other's buffers for arrays of its own of that name."""
        back = {self.names.get(t.name, t.name): t.name for _, t, _ in self.given()}
        for name, value in other.fixed.items():
            own = back.get(other.names.get(name, name))
            if own is not None:
                self.fixed.setdefault(own, value)

    def is_complex(self) -> bool:
        """Whether anything is complex, or asks for a part of what could be."""
        fields = [d.value.field for d in self.system.definition]
        fields += [t.field if isinstance(t, Tensor) else t.map.field for _, t, _ in self.given()]
        return Field.COMPLEX in fields or bool(self.functions & _PARTS)

    def definitions(self) -> str:
        """The text of all definitions that the output needs."""
        updates = {d.name: d for d in self.system.definition if d.update}
        plain = {d.name: d for d in self.system.definition if not d.update}
        every = {**plain, **updates}
        needed, stack = set[str](), [self.system.outputs[0].name]
        while stack:
            name = stack.pop()
            if name in needed or name not in every:
                continue
            needed.add(name)
            stack += _reads(every[name].value)
        return "".join(self._definition(d) for d in every.values() if d.name in needed)

    def _definition(self, d: Definition) -> str:
        where = {a: f"_{a.name}" for a in d.axes}
        arguments = ", ".join(["t", *where.values()])
        said = text(d.value).replace("\n", " ")
        return (
            f"\n\n@over_time\ndef {self.prefix}_{d.name}({arguments}):\n"
            f"    # {d.name} = {said}\n    return {self.code(d.value, where, 't')}\n"
        )

    # --- expressions ------------------------------------------------------------------------------

    def code(self, e: Expr, at: Mapping[Axis, str], now: str) -> str:
        """The text of one entry."""

        def sub(x: Expr) -> str:
            return self.code(x, at, now)

        match e:
            case Num(value):
                return _number(value)
            case Ones():
                return "num(1)"
            case Size(axis):
                return f"num(SIZE[{axis.name!r}])"
            case Iota(axis):
                return f"num({at[axis]})"
            case Param(name=name):
                return self._stored(name, tuple(at[a] for a in sorted(e.axes)))
            case Ref():
                return self._ref(e, at, now)
            case Add(args):
                return "(" + " + ".join(map(sub, args)) + ")"
            case Mul(args):
                return " * ".join(map(sub, args))
            case Div(num, den):
                return f"({sub(num)}) / ({sub(den)})"
            case Pow(base, exponent):
                return self._power(base, exponent, sub, now)
            case Reduce():
                return self._reduce(e, at, now)
            case Map(map_, arg):
                return self._mapped(map_, arg, at, now)
            case Fir():
                return self._filter(e, at, now)
            case Rename(old, new, arg):
                rest = {a: k for a, k in at.items() if a != new}
                return self.code(arg, {**rest, old: at[new]} if old in arg.axes else rest, now)
            case Prim(axis=None):
                return self._call(e, [sub(a) for a in e.args])
            case Prim(args=(arg,), axis=Axis() as axis):
                inner = self.code(arg, {**at, axis: "_k"}, now)
                vector = f"[{inner} for _k in range({self.sizes[axis.name]})]"
                self.functions |= {e.name}
                if e.name not in _NEEDED:
                    raise Obstacle(f"`{e.name}` is not printed")
                return f"{self.mark}{e.name}({vector}, {at[axis]})"
            case Series(order, arg):
                return f"series({sub(arg)}, {order})"
            case Past():
                body = self.code(e.body, at, now)
                return f"total({body} for t_{e.var} in {self._tokens(e, now)})"
            case Run(var, low, high, arg):
                ends = f"{self._instant(low, now)} + 1, {self._instant(high, now)} + 1"
                return f"product({self.code(arg, at, now)} for t_{var} in range({ends}))"
            case Lag():
                return f"num({self._lag(e, now)})"
        raise Obstacle(f"`{type(e).__name__}` is not printed")

    def _stored(self, name: str, index: tuple[str, ...]) -> str:
        if name in self.fixed:
            axes, value = self.fixed[name]
            return f"({self.code(value, dict(zip(axes, index, strict=True)), '0')})"
        where = ", ".join(index) + ("," if len(index) == 1 else "")
        return f"GIVEN[{self.names.get(name, name)!r}][({where})]"

    def _instant(self, at: Now | Bound, now: str) -> str:
        base = now if isinstance(at, Now) else f"t_{at.var}"
        return f"{base} - {at.lag}" if at.lag else base

    def _ref(self, ref: Ref, at: Mapping[Axis, str], now: str) -> str:
        token = "0" if ref.at is None else self._instant(ref.at, now)
        if ref.name == FIRST:
            return f"num(int({token} == 0))"
        if ref.name in self.inputs:
            index = [at[a] for a in self.inputs[ref.name]]
            return f"given({', '.join([repr(self.names.get(ref.name, ref.name)), token, *index])})"
        index = [at[a] for a in self.axes[ref.name]]
        return f"{self.prefix}_{ref.name}({', '.join([token, *index])})"

    def _power(self, base: Expr, exponent: Expr, sub: Callable[[Expr], str], now: str) -> str:
        match exponent:
            case Num(value) if value.denominator == 1:
                return f"power({sub(base)}, {value})"
            case Num(value) if value == Fraction(1, 2):
                self.functions |= {"sqrt"}
                return f"{self.mark}sqrt({sub(base)})"
            case Lag():
                return f"power({sub(base)}, {self._lag(exponent, now)})"
        self.functions |= {"exp", "log"}
        return f"{self.mark}exp(({sub(exponent)}) * {self.mark}log({sub(base)}))"

    def _lag(self, e: Lag, now: str) -> str:
        names = {"i": now}
        terms = [f"{c} * {names.get(v, f't_{v}')}" for v, c in e.terms]
        return " + ".join([*terms, str(e.constant)])

    def _reduce(self, e: Reduce, at: Mapping[Axis, str], now: str) -> str:
        if e.how is Reduction.MAX:
            raise Obstacle("a maximum over an axis is not printed")
        size = self.sizes[e.axis.name]
        inner = self.code(e.arg, {**at, e.axis: f"_{e.axis.name}"}, now)
        out = f"total({inner} for _{e.axis.name} in range({size}))"
        return f"{out} / num({size})" if e.how is Reduction.MEAN else out

    def _mapped(self, m: LinearMap, arg: Expr, at: Mapping[Axis, str], now: str) -> str:
        rest = {a: k for a, k in at.items() if a not in m.target}
        source = {a: f"s_{a.name}" for a in m.source}
        index = [at[a] for a in (*m.each, *m.target)] + list(source.values())
        entry = self._stored(m.name, tuple(index))
        loops = " ".join(f"for s_{a.name} in range({self.sizes[a.name]})" for a in m.source)
        return f"total({entry} * {self.code(arg, {**rest, **source}, now)} {loops})"

    def _filter(self, e: Fir, at: Mapping[Axis, str], now: str) -> str:
        if not isinstance(e.arg, Ref) or not isinstance(e.arg.at, Now):
            raise Obstacle("a filter of something other than a name is not printed")
        parts = []
        for r in range(self.sizes[e.axis.name]):
            lag = Now(e.arg.at.lag + (-r if e.reverse else r))
            tap = Ref(e.arg.name, e.arg.over, e.arg.kind, e.arg.when, lag)
            weight = self.code(e.weight, {**at, e.axis: str(r)}, now)
            parts.append(f"{weight} * {self.code(tap, at, now)}")
        return "(" + " + ".join(parts) + ")"

    def _tokens(self, e: Past, now: str) -> str:
        outer = now if e.outer is None else f"t_{e.outer}"
        outer = f"{outer} - {e.lag}" if e.lag else outer
        match e.relation:
            case Relation.UP_TO:
                return f"range(min({outer} + 1, LENGTH))"
            case Relation.BEFORE:
                return f"range(min({outer}, LENGTH))"
            case Relation.FROM:
                return f"range(max({outer}, 0), LENGTH)"
        return f"range(max({outer} + 1, 0), LENGTH)"

    def _call(self, e: Prim, args: list[str]) -> str:
        name = _BALL_NAMES.get(e.name, e.name)
        if name not in _PARTS and name not in _BALL_NAMES.values() and name not in _NEEDED:
            raise Obstacle(f"`{e.name}` is not printed")
        self.functions |= {name}
        return f"{self.mark}{name}({', '.join(args)})"


def _reads(e: Expr) -> set[str]:
    out, stack = set(), [e]
    while stack:
        top = stack.pop()
        if isinstance(top, Ref):
            out.add(top.name)
        stack += children(top)
    return out


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return f"num({value.numerator})"
    return f"num({value.numerator}, {value.denominator})"
