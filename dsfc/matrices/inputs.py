"""The inputs of a linear part: what its drives carry, and where they stand in an expression.

An input is a raw input or a stream that enters linearly with fixed coefficients, else the whole
stream expression of a drive, or 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.build import ONE, add, div, mul, remake, walk
from dsfc.expr.tree import Add, Div, Expr, Fir, Map, Mul, Now, Reduce, Reduction, Ref, Rename, Time
from dsfc.matrices.linear import LinearPart, stages_read
from dsfc.system.ir import Cast, Direct, Gate, MapOut, Ratio, Read, ReadOut, Sum, SumOver, System

MARK = "′"
"""Ends the name of the stand-in for an input; no spec can spell it."""


def inputs_of_stream(stream: Expr) -> tuple[Expr, ...]:
    """Returns the inputs that a drive's stream carries; see the module docstring."""
    if stream.time is Time.CONST:
        return (ONE,)
    inputs = _fixed(stream)
    return (stream,) if inputs is None else tuple(dict.fromkeys(inputs))


def _fixed(e: Expr) -> tuple[Expr, ...] | None:
    """The names that a fixed linear expression is linear in; None when it is not one."""
    match e:
        case Ref(at=Now()):
            return (at_present(e),)
        case Map(arg=a) | Rename(arg=a) | Reduce(how=Reduction.SUM | Reduction.MEAN, arg=a):
            return _fixed(a)
        case Fir(weight=w, arg=a) if w.time is Time.CONST:
            return _fixed(a)
        case Div(num=n, den=d) if d.time is Time.CONST:
            return _fixed(n)
        case Mul(args):
            varying = [a for a in args if a.time is not Time.CONST]
            return _fixed(varying[0]) if len(varying) == 1 else None
        case Add(args):
            parts = [_fixed(a) for a in args]
            return None if None in parts else tuple(r for p in parts if p for r in p)
    return None


def at_present(ref: Ref) -> Ref:
    """Returns the same name at the present token."""
    return Ref(ref.name, ref.over, ref.kind, ref.when, Now(0))


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a part, in the order of its columns.

    Attributes:
        sources: names at the present token, whole stream expressions, or 1.
    """

    sources: tuple[Expr, ...]

    def stand_in(self, source: Expr, lag: int = 0) -> Ref:
        """Returns the reserved name that stands for an input where it enters linearly."""
        name = f"{self.sources.index(source)}{MARK}"
        return Ref(name, source.axes, source.field, Time.TOKEN, Now(lag))

    def of_stand_in(self, ref: Ref) -> Expr | None:
        """Returns the input that a name stands for; None for any other name."""
        if not ref.name.endswith(MARK):
            return None
        return self.sources[int(ref.name.removesuffix(MARK))]

    def marked(self, e: Expr, first: tuple[Expr, ...] = ()) -> Expr:
        """Returns an expression that is linear in the stand-ins of its inputs.

        In every product the last factor that is linear in an input carries it and the rest is its
        coefficient; what holds no input is a multiple of the input 1.

        Args:
            e: a token-wise expression.
            first: inputs looked for before the others.

        Raises:
            ValueError: 1 is needed and is not among the inputs.
        """
        if isinstance(e, Add):
            return add(*(self.marked(a, first) for a in e.args))
        for known in (frozenset(first), frozenset(self.sources)):
            out = self._marked(e, known)
            if out is not None:
                return out
        return mul(e, self.stand_in(ONE))

    def _marked(self, e: Expr, known: frozenset[Expr]) -> Expr | None:
        if e in known and e is not ONE:
            return self.stand_in(e)
        match e:
            case Ref(at=Now(lag=lag)) if at_present(e) in known:
                return self.stand_in(at_present(e), lag)
            case Add(args):
                if all(self._marked(a, known) is None for a in args):
                    return None
                return add(*(self._marked(a, known) or mul(a, self.stand_in(ONE)) for a in args))
            case Mul(args):
                for k in range(len(args) - 1, -1, -1):
                    inner = self._marked(args[k], known)
                    if inner is not None:
                        return mul(*args[:k], inner, *args[k + 1 :])
                return None
            case Div(num=n, den=d):
                inner = self._marked(n, known)
                return None if inner is None else div(inner, d)
            case Map(arg=a) | Rename(arg=a) | Reduce(how=Reduction.SUM | Reduction.MEAN, arg=a):
                inner = self._marked(a, known)
                return None if inner is None else remake(e, (inner,))
            case Fir(weight=w, arg=a):
                inner = self._marked(a, known)
                return None if inner is None else remake(e, (w, inner))
        return None


def inputs_of(system: System, part: LinearPart) -> Inputs:
    """Returns the inputs of a part: what its drives carry, raw inputs it reads directly, and 1."""
    out: dict[Expr, None] = {}
    for stage in stages_read(system, part):
        for block in stage.blocks:
            for factor in block.chain:
                for drive in factor.drives:
                    out.update(dict.fromkeys(inputs_of_stream(drive.stream)))
    driven = tuple(out)
    for direct in directs(part.root):
        for name in (at_present(r) for r in walk(direct) if isinstance(r, Ref)):
            if any(name.name == t.name for t in system.inputs):
                out.setdefault(name)
    out.pop(ONE, None)
    everything = Inputs((*out, ONE))
    needs_one = ONE in driven or any(
        everything.stand_in(ONE) in walk(everything.marked(d, driven)) for d in directs(part.root)
    )
    used = {
        r.name
        for d in directs(part.root)
        for r in walk(everything.marked(d, driven))
        if isinstance(r, Ref)
    }
    kept = [s for s in out if s in driven or everything.stand_in(s).name in used]
    return Inputs((*kept, *((ONE,) if needs_one else ())))


def directs(r: ReadOut) -> tuple[Expr, ...]:
    """Returns the token-wise terms of a linear read-out."""
    match r:
        case Read(direct=d):
            return () if d is None else (d,)
        case Direct(value):
            return (value,)
        case Gate(arg=a) | MapOut(arg=a) | Cast(arg=a) | SumOver(arg=a) | Ratio(num=a):
            return directs(a)
        case Sum(args):
            return tuple(d for a in args for d in directs(a))
    return ()
