"""L4: splitting a drive into key · stream.

The stream is the value that a state collects, the key says where and how strongly. Only proofs and
renderings need the split; the product is what counts. For each summand, let V be the factors that
vary in time and have a channel axis. The stream is the last factor of V that is linear in the raw
input, else the last whose argument is (a nonlinear input map), else ΠV. A drive inside a
denominator has stream 1.
"""

from __future__ import annotations

from enum import IntEnum

from dsfc.derive.affine import factors_of
from dsfc.derive.flow import input_map
from dsfc.derive.model import Model
from dsfc.expr.build import ONE, add, mul, ones
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Fir,
    Map,
    Mul,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Time,
)
from dsfc.system.ir import Drive, KeptFlow


class Degree(IntEnum):
    """How a value depends on the raw input."""

    CONSTANT = 0
    LINEAR = 1
    OTHER = 2


class Splitter:
    """Splits drives; remembers the degrees of expressions."""

    def __init__(self, model: Model) -> None:
        """Takes the model after separation."""
        self.model = model
        self._inputs = {t.name for t in model.mixer.inputs}
        self._degrees: dict[Expr, Degree] = {}
        for d in model.definitions.values():
            self.degree(d.value)

    def split(
        self,
        rest: Expr,
        axes: frozenset[Axis],
        channels: frozenset[Axis],
        below: bool,
        flow: KeptFlow | None = None,
    ) -> tuple[Drive, ...]:
        """Returns the drives of an input term.

        Args:
            rest: the term.
            axes: axes of the state.
            channels: those that nothing contracts and that are not heads.
            below: whether the state is read in a denominator only.
            flow: for a discretised flow, its continuous form: then its own drive is split and the
                rule is applied to the key.
        """
        source = rest if flow is None else flow.drive
        pairs: dict[Expr, Expr] = {}
        for e in source.args if isinstance(source, Add) else (source,):
            key, stream = self._pair(e, channels, below)
            if flow is not None:
                if any(stream.axes & over for _, over, _ in flow.low_rank):
                    key, stream = mul(key, stream), ONE
                key = input_map(flow, key)
            pairs[stream] = key if stream not in pairs else _plus(pairs[stream], key)
        return tuple(
            Drive(mul(key, ones(axes - key.axes - stream.axes)), stream)
            for stream, key in pairs.items()
        )

    def _pair(self, e: Expr, channels: frozenset[Axis], below: bool) -> tuple[Expr, Expr]:
        factors = factors_of(e)
        varying = [f for f in factors if f.axes & channels and f.time is not Time.CONST]
        if below or not varying:
            return e, ONE
        linear = [f for f in varying if self.degree(f) is Degree.LINEAR]
        mapped = [f for f in varying if self._maps_linear(f)]
        chosen = linear[-1:] or mapped[-1:] or varying
        rest = list(factors)
        for f in chosen:
            rest.remove(f)
        return mul(*rest), mul(*chosen)

    def _maps_linear(self, e: Expr) -> bool:
        while isinstance(e, Ref) and e.name in self.model.definitions:
            e = self.model.definitions[e.name].value
        return isinstance(e, Prim) and all(self.degree(a) <= Degree.LINEAR for a in e.args)

    def degree(self, e: Expr) -> Degree:
        """Returns whether a value is linear in the inputs, up to constants."""
        if e not in self._degrees:
            self._degrees[e] = Degree.CONSTANT if e.time is Time.CONST else self._find(e)
        return self._degrees[e]

    def _find(self, e: Expr) -> Degree:
        match e:
            case Ref(name=name):
                value = self.model.value(name)
                if name in self._inputs:
                    return Degree.LINEAR
                if value is None:
                    return Degree.OTHER
                # What an earlier stage has read out is the input of the next.
                return Degree.LINEAR if self.model.reach(value) else self.degree(value)
            case Add(args):
                return max(self.degree(a) for a in args)
            case Mul(args):
                varying = [d for d in map(self.degree, args) if d is not Degree.CONSTANT]
                return varying[0] if len(varying) == 1 else Degree.OTHER
            case Div(numerator, denominator) if denominator.time is Time.CONST:
                return self.degree(numerator)
            case Reduce(how, _, arg) if how is not Reduction.MAX:
                return self.degree(arg)
            case Map(arg=arg) | Rename(arg=arg):
                return self.degree(arg)
            case Fir(weight=weight, arg=arg) if weight.time is Time.CONST:
                return self.degree(arg)
            case Prim(name="re" | "im" | "conj", args=args):
                return self.degree(args[0])
            case Prim(name="cplx", args=args):
                return max(self.degree(a) for a in args)
        return Degree.OTHER


def _plus(a: Expr, b: Expr) -> Expr:
    axes = a.axes | b.axes
    return add(*(x if x.axes == axes else mul(x, ones(axes - x.axes)) for x in (a, b)))
