"""The definition of a mixer run at a point, as the spec says it: sums over the past as sums.

This is no part of the derived form: a witness is executed on what was written, so it also judges
the derivation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from dsfc.expr.declarations import MapTensor
from dsfc.expr.max_plus import LOWEST
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.tree import Axis, Bound, Expr, Field, Now, Pow, Prim, Ref
from dsfc.system.ir import Definition, System
from dsfc.trusted import balls
from dsfc.trusted.balls import Complex, NotDefined, Real, Undefined, real
from dsfc.trusted.entries import Entries, Index, Obstacle
from dsfc.trusted.symbols import BRANCHED

Values = Mapping[str, tuple[Complex, ...]]
"""Name → entries in the order of the stored array; inputs one token after the other."""

POWER_LIMIT = 256
ZERO = Complex(real(0), real(0))


def exact(value: Fraction | int) -> Complex:
    """Returns an exact real number."""
    return Complex(real(value), real(0))


class Execution(Entries[Complex]):
    """All values of one mixer over one sequence.

    Args:
        system: whose definitions are run.
        sizes: size of every axis.
        length: number of tokens.
        values: parameters, buffers and inputs.
    """

    def __init__(
        self, system: System, sizes: Mapping[str, int], length: int, values: Values
    ) -> None:
        """Starts without known values."""
        super().__init__(sizes)
        self.system = system
        self.length = length
        self.given = values
        self.definitions = {d.name: d for d in system.definition if not d.update}
        self.updates = {d.name: d for d in system.definition if d.update}
        self.inputs = {t.name: t for t in system.inputs}
        self.stored_as = {t.name: t for t in (*system.params, *system.buffers)}
        self._token = 0
        self._bound: Mapping[str, int] = {}
        self._values: dict[tuple[str, int, tuple[int, ...]], Complex] = {}

    def output(self) -> list[list[Complex]]:
        """Returns the entries of the output, the last axis running fastest, token by token."""
        out = self.system.outputs[0]
        definition = self.definitions.get(out.name)
        if definition is None or frozenset(definition.axes) != frozenset(out.axes):
            raise Obstacle(f"the output `{out.name}` has no definition of its own")
        return [
            [self.at(definition, token, at) for at in self.places(out.axes)]
            for token in range(self.length)
        ]

    def at(self, d: Definition, token: int, at: Index) -> Complex:
        """Returns an entry of a definition or state at a token of the sequence."""
        key = (d.name, token, tuple(at[a] for a in d.axes))
        if key not in self._values:
            before, self._token = self._token, token
            outer, self._bound = self._bound, {}
            self._values[key] = self.value(d.value, {a: at[a] for a in d.axes})
            self._token, self._bound = before, outer
        return self._values[key]

    # --- the domain -------------------------------------------------------------------------------

    def _value(self, e: Expr, at: Index) -> Complex:
        """The entry of an expression; a complex function has another domain than the real one."""
        try:
            return super()._value(e, at)
        except Undefined as why:
            branched = isinstance(e, Pow) or (isinstance(e, Prim) and e.name in BRANCHED)
            if e.field is Field.COMPLEX and branched:
                raise NotDefined(f"{why}, unless as a complex number") from None
            raise

    def memo_key(self) -> object:
        """Returns the token, and those of the enclosing sums."""
        return self._token, tuple(sorted(self._bound.items()))

    def number(self, value: Fraction) -> Complex:
        """Returns an exact number."""
        return exact(value)

    def size(self, axis: Axis) -> Complex:
        """Returns the size of an axis."""
        return exact(self.sizes[axis.name])

    def parameter(self, name: str, axes: tuple[Axis, ...], at: tuple[int, ...]) -> Complex:
        """Returns an entry of a given array."""
        declared = self.stored_as[name]
        if isinstance(declared, MapTensor):
            m = declared.map
            stored: tuple[Axis, ...] = (*m.each, *m.target, *m.source)
        else:
            stored = declared.axes
        if axes != stored:
            raise ValueError(f"`{name}` is used with other axes than it is declared with")
        return self.given[name][self._place(axes, at)]

    def _place(self, axes: tuple[Axis, ...], at: tuple[int, ...]) -> int:
        out = 0
        for a, k in zip(axes, at, strict=True):
            out = out * self.sizes[a.name] + k
        return out

    def ref(self, ref: Ref, at: Index) -> Complex:
        """Returns the value at a token, 0 outside the sequence; a maximum is `LOWEST` before it."""
        if ref.at is None:
            return self.at(self.definitions[ref.name], 0, at)
        token = self._instant(ref.at)
        inside = 0 <= token < self.length
        if ref.name == FIRST:
            return exact(1) if token == 0 and inside else ZERO
        if not inside:
            state = self.updates.get(ref.name)
            return exact(Fraction(LOWEST)) if state and state.maximum and token < 0 else ZERO
        if ref.name in self.inputs:
            axes = self.inputs[ref.name].axes
            each = len(self.given[ref.name]) // self.length
            place = self._place(axes, tuple(at[a] for a in axes))
            return self.given[ref.name][token * each + place]
        definition = self.updates.get(ref.name) or self.definitions[ref.name]
        return self.at(definition, token, at)

    def _instant(self, at: Now | Bound) -> int:
        return (self._token if isinstance(at, Now) else self._bound[at.var]) - at.lag

    def conjugate(self, value: Complex) -> Complex:
        """Returns the complex conjugate."""
        return Complex(value.re, -value.im)

    def largest(self, values: list[Complex]) -> Complex:
        """Returns the maximum."""
        out = _only(values[0])
        for v in values[1:]:
            out = balls.maximum(out, _only(v))
        return Complex(out, real(0))

    def power(self, base: Complex, exponent: Complex) -> Complex:
        """Returns a power: exact for integers."""
        whole = exponent.re.low
        if exponent.is_real and exponent.re.exact and whole.denominator == 1:
            if abs(whole) > POWER_LIMIT:
                raise NotDefined("an exponent is too large")
            out = exact(1)
            for _ in range(abs(int(whole))):
                out = out * base
            return out if whole >= 0 else exact(1) / out
        if base == ZERO and exponent.is_real and exponent.re.low > 0:
            return ZERO
        if exponent == exact(Fraction(1, 2)):
            return Complex(balls.sqrt(_only(base)), real(0))
        if base.is_real and exponent.is_real:
            return Complex(balls.exp(exponent.re * balls.log(base.re)), real(0))
        raise Obstacle("a complex number has a power that is not an integer")

    def primitive(self, e: Prim, args: tuple[Complex, ...]) -> Complex:
        """Returns a primitive with proven bounds."""
        of_complex = _COMPLEX.get(e.name)
        if of_complex is not None:
            return of_complex(*args)
        of_real = _REAL.get(e.name)
        if of_real is None:
            raise Obstacle(f"`{e.name}` has no proven bounds")
        return Complex(of_real(*(_only(a) for a in args)), real(0))

    def along(self, e: Prim, vector: tuple[Complex, ...], at: int) -> Complex:
        """Returns one entry of a norm or of softmax."""
        if e.name != "softmax":
            return norm(e.name, vector, at)
        parts = [balls.exp(_only(v) - _only(vector[0])) for v in vector]
        below = real(0)
        for part in parts:
            below = below + part
        return Complex(parts[at] / below, real(0))

    # --- time -------------------------------------------------------------------------------------

    def node(self, e: Expr, at: Index) -> Complex:
        """Returns a sum over time, a running product or a lag."""
        match e:
            case Past():
                outer = self._token if e.outer is None else self._bound[e.outer]
                tokens = _tokens(e.relation, outer - e.lag, self.length)
                return self.total([self._within(e.var, t, e.body, at) for t in tokens])
            case Run(var, low, high, arg):
                out = exact(1)
                for token in range(self._instant(low) + 1, self._instant(high) + 1):
                    out = out * self._within(var, token, arg, at)
                return out
            case Lag(terms, constant):
                clock = {TIME: self._token, **self._bound}
                return exact(sum(c * clock[v] for v, c in terms) + constant)
        return super().node(e, at)

    def _within(self, var: str, token: int, e: Expr, at: Index) -> Complex:
        outer, self._bound = self._bound, {**self._bound, var: token}
        try:
            return self.value(e, at)
        finally:
            self._bound = outer


def _tokens(relation: Relation, outer: int, length: int) -> range:
    """Tokens of the sequence that stand in a relation to `outer`."""
    match relation:
        case Relation.UP_TO:
            return range(min(outer + 1, length))
        case Relation.BEFORE:
            return range(min(outer, length))
        case Relation.FROM:
            return range(max(outer, 0), length)
        case Relation.AFTER:
            return range(max(outer + 1, 0), length)


def _only(value: Complex) -> Real:
    """The value of what is real."""
    if not value.is_real:
        raise Obstacle("a function of real numbers is applied to a complex one")
    return value.re


def norm(name: str, vector: tuple[Complex, ...], at: int) -> Complex:
    """Returns one entry of `l2norm` or `rmsnorm`."""
    if name not in ("l2norm", "rmsnorm"):
        raise Obstacle(f"`{name}` has no proven bounds")
    values = [_only(v) for v in vector]
    square = real(0)
    for v in values:
        square = square + balls.absolute(v) * balls.absolute(v)
    size = balls.maximum(balls.sqrt(square), real(Fraction(1, 10**12)))
    scale = balls.sqrt(real(len(values))) if name == "rmsnorm" else real(1)
    return Complex(scale * values[at] / size, real(0))


def exponential(x: Complex) -> Complex:
    """Returns e^x."""
    size = balls.exp(x.re)
    return Complex(size, real(0)) if x.is_real else _cis(x.im) * Complex(size, real(0))


def _cis(x: Real) -> Complex:
    return Complex(balls.cos(x), balls.sin(x))


def _exprel(x: Complex) -> Complex:
    return exact(1) if x == ZERO else (exponential(x) - exact(1)) / x


def _abs(x: Complex) -> Complex:
    if x.is_real:
        return Complex(balls.absolute(x.re), real(0))
    square = [balls.absolute(p) * balls.absolute(p) for p in (x.re, x.im)]
    return Complex(balls.sqrt(square[0] + square[1]), real(0))


_COMPLEX: Mapping[str, Callable[..., Complex]] = {
    "exp": exponential,
    "expm1": lambda x: exponential(x) - exact(1),
    "exprel": _exprel,
    "abs": _abs,
    "re": lambda x: Complex(x.re, real(0)),
    "im": lambda x: Complex(x.im, real(0)),
    "conj": lambda x: Complex(x.re, -x.im),
    "cplx": lambda a, b: Complex(_only(a), _only(b)),
    "cis": lambda x: _cis(_only(x)),
}

_REAL: Mapping[str, Callable[..., Real]] = {
    "log": balls.log,
    "log1p": lambda x: balls.log(real(1) + x),
    "sqrt": balls.sqrt,
    "sin": balls.sin,
    "cos": balls.cos,
    "tanh": balls.tanh,
    "sigmoid": balls.sigmoid,
    "softplus": balls.softplus,
    "logsigmoid": lambda x: -balls.softplus(-x),
    "sign": balls.sign,
    "silu": lambda x: x * balls.sigmoid(x),
    "relu": lambda x: balls.maximum(x, real(0)),
    "elu": lambda x: balls.maximum(x, real(0)) + balls.exp(-balls.maximum(-x, real(0))) - real(1),
    "max": balls.maximum,
    "min": lambda x, y: -balls.maximum(-x, -y),
    "pi": balls.pi,
}
