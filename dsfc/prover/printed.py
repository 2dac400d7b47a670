"""The definition of a mixer as text of Python: one function of the token and an index per name.

A sum over the past is printed as a sum; nothing of the derived form is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from dsfc.expr.build import walk
from dsfc.expr.declarations import MapTensor, Tensor
from dsfc.expr.max_plus import LOWEST
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.text import text
from dsfc.expr.tree import (
    Add,
    Axis,
    Bound,
    Div,
    Expr,
    Field,
    Fir,
    Iota,
    LinearMap,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Size,
)
from dsfc.prover.prelude import NEEDED
from dsfc.system.ir import Definition, System
from dsfc.system.known import fixed
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.witness import stored_axes

BALL_NAMES = {"abs": "absolute", "max": "maximum", "min": "minimum"} | {
    n: n for n in ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "softplus", "sign", "pi")
}


_PARTS = {"re", "im", "conj", "cplx", "cis"}
"""Functions of complex arithmetic alone."""


class Printed:
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
        self.maxima = {d.name for d in system.definition if d.maximum}
        self.inputs = {t.name: t.axes for t in system.inputs}
        axes = {t.name: stored_axes(t) for t in system.buffers}
        self.fixed = {name: (axes[name], value) for name, value in fixed(system).items()}

    def given(self) -> list[tuple[str, Tensor | MapTensor, bool]]:
        """Every array: its name in a, its declaration, whether it has a time."""
        stored = (*self.system.inputs, *self.system.params, *self.system.buffers)
        return [(self.names.get(t.name, t.name), t, t.name in self.inputs) for t in stored]

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
            stack += {e.name for e in walk(every[name].value) if isinstance(e, Ref)}
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
                each = _fresh("_k", at)
                inner = self.code(arg, {**at, axis: each}, now)
                vector = f"[{inner} for {each} in range({self.sizes[axis.name]})]"
                self.functions |= {e.name}
                if e.name not in NEEDED:
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
        value = f"{self.prefix}_{ref.name}({', '.join([token, *index])})"
        if ref.name in self.maxima:
            return f"({value} if {token} >= 0 else num({int(LOWEST)}))"
        return value

    def _power(self, base: Expr, exponent: Expr, sub: Callable[[Expr], str], now: str) -> str:
        match exponent:
            case Num(value) if value.denominator == 1:
                return f"power({sub(base)}, {value})"
            case Num(value) if value == Fraction(1, 2):
                self.functions |= {"sqrt"}
                return f"{self.mark}sqrt({sub(base)})"
            case Lag():
                return f"power({sub(base)}, {self._lag(exponent, now)})"
        self.functions |= {"raised"}
        return f"{self.mark}raised({sub(base)}, {sub(exponent)})"

    def _lag(self, e: Lag, now: str) -> str:
        names = {"i": now}
        terms = [f"{c} * {names.get(v, f't_{v}')}" for v, c in e.terms]
        return " + ".join([*terms, str(e.constant)])

    def _reduce(self, e: Reduce, at: Mapping[Axis, str], now: str) -> str:
        if e.how is Reduction.MAX:
            raise Obstacle("a maximum over an axis is not printed")
        size = self.sizes[e.axis.name]
        each = _fresh(f"_{e.axis.name}", at)
        inner = self.code(e.arg, {**at, e.axis: each}, now)
        out = f"total({inner} for {each} in range({size}))"
        return f"{out} / num({size})" if e.how is Reduction.MEAN else out

    def _mapped(self, m: LinearMap, arg: Expr, at: Mapping[Axis, str], now: str) -> str:
        rest = {a: k for a, k in at.items() if a not in m.target}
        source = {a: _fresh(f"s_{a.name}", at) for a in m.source}
        index = [at[a] for a in (*m.each, *m.target)] + list(source.values())
        entry = self._stored(m.name, tuple(index))
        loops = " ".join(f"for {k} in range({self.sizes[a.name]})" for a, k in source.items())
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
        name = BALL_NAMES.get(e.name, e.name)
        if name not in _PARTS and name not in BALL_NAMES.values() and name not in NEEDED:
            raise Obstacle(f"`{e.name}` is not printed")
        self.functions |= {name}
        return f"{self.mark}{name}({', '.join(args)})"


def _fresh(name: str, at: Mapping[Axis, str]) -> str:
    """A name of a loop's index that no other index in sight has."""
    while name in at.values():
        name += "_"
    return name


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return f"num({value.numerator})"
    return f"num({value.numerator}, {value.denominator})"
