"""Token-wise values as sums of terms with indices, along one axis: see `small_model_bound`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import (
    Abstract,
    Add,
    Axis,
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
    children,
)
from dsfc.system.ir import ReadOut, System
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import array_names
from dsfc.trusted.generalize_inputs import system_of
from dsfc.trusted.index_form import (
    NONE,
    PLAIN,
    Form,
    Hits,
    NoCount,
    both,
    either,
    plus,
    single,
    times,
)

GROWTH = 8
"""Indices of one term from which on its number is said to grow with time."""

OTHERWISE = "otherwise"
"""Standing in a denominator, or in a function in any way that is not `way(array)`."""

PRESENT = (None, Now(0))
"""Times of a name at which it is not read before the first token."""

LINEAR = frozenset({"re", "im", "conj", "cplx"})
"""Primitives that are linear in the parts of their arguments."""


def entries_of(primitive: str) -> str:
    """Returns what the values of a primitive along an axis go by as a carrier: no array does."""
    return f"{primitive}[]"


class Values(ABC):
    """Terms of the values of one system, along one axis and its copies.

    Attributes:
        needs: the summed indices: axis and what hits it.
        ways: array → the functions that it stands in, `OTHERWISE` where it is not the one argument
            of a function that is known here, or in a denominator without states.
    """

    def __init__(
        self, claim: Claim, second: bool, entries: bool, kinds: Mapping[str, str], kind: str
    ) -> None:
        self.system: System = system_of(claim, second)
        self.names = array_names(claim, second)
        self.entries = entries
        self.kinds = kinds
        self.kind = kind
        self.needs: list[tuple[Axis, Hits]] = []
        self.ways: dict[str, set[str]] = {}
        self.inputs = {t.name: t for t in self.system.inputs}
        self.streams = {s.name: s for s in self.system.streams}
        self._streams: dict[str, Form] = {}
        self._known: dict[Expr, Form] = {}
        self._open: set[str] = set()
        self._walked: set[Expr] = set()

    @abstractmethod
    def _read(self, r: ReadOut) -> Form:
        """The terms of a value that is read off states."""

    # --- parts ------------------------------------------------------------------------------------

    def _along(self, axes: Iterable[Axis]) -> list[Axis]:
        """Those of some axes that are the one looked at, or copies of it."""
        return [a for a in axes if self.kinds.get(a.name) == self.kind]

    def _common(self, name: str) -> str:
        return self.names.get(name, name)

    def _array(self, name: str, axes: Iterable[Axis], stateful: bool = False) -> Form:
        return Form(carriers=dict.fromkeys(axes, single(self._common(name))), stateful=stateful)

    def _summed(self, form: Form, axes: Iterable[Axis], carrier: Hits) -> Form:
        """Σ over indices of a value, each carried by what carries the value or by `carrier`."""
        axes = tuple(axes)
        if form.divided and axes:
            raise NoCount("quotients of states are summed")
        here = self._along(axes)
        self.needs += [(a, either(form.hits(a), carrier)) for a in here]
        carriers = {a: names for a, names in form.carriers.items() if a not in axes}
        return replace(form, summed=form.summed + len(here), carriers=carriers)

    def _applied(self, map: LinearMap, form: Form) -> Form:
        """Σ over the source of entries of a matrix times a value."""
        names = single(self._common(map.name))
        out = self._summed(form, map.source, names)
        carriers = dict(out.carriers)
        carriers |= {a: either(out.hits(a), names) for a in map.each}
        carriers |= dict.fromkeys(map.target, names)
        return replace(out, carriers=carriers)

    def _local(self, form: Form, where: str) -> None:
        """Refuses what is no function of one entry each."""
        if form.stateful or form.divided:
            raise NoCount(f"{where} holds values of states")
        if form.summed:
            raise NoCount(f"{where} holds a sum over it")

    # --- expressions ------------------------------------------------------------------------------

    def value(self, e: Expr) -> Form:
        """Returns the terms of an expression."""
        if e not in self._known:
            self._known[e] = self._value(e)
        return self._known[e]

    def _value(self, e: Expr) -> Form:
        match e:
            case Num() | Ones() | Size():
                return PLAIN
            case Iota(axis):
                if self._along((axis,)):
                    raise NoCount("values are tied to its index (iota)")
                return PLAIN
            case Param(name=name):
                return self._array(name, e.axes)
            case Ref():
                return self._ref(e)
            case Add(args):
                return self._added(args)
            case Mul(args):
                return times(*(self.value(a) for a in args))
            case Div(num, den):
                return self._quotient(self.value(num), self.value(den), den)
            case Pow(base, exponent):
                return self._power(base, exponent)
            case Reduce():
                return self._reduced(e)
            case Map(map, arg):
                return self._mapped(map, arg)
            case Fir(axis, weight, arg):
                if self._along((axis,)):
                    raise NoCount("it counts the taps of a filter")
                form = times(self.value(weight), self.value(arg))
                return self._summed(form, (axis,), NONE)
            case Rename(old, new, arg):
                return self._renamed(old, new, self.value(arg))
            case Prim():
                return self._primitive(e)
            case Series(order, arg):
                return plus(PLAIN, *[times(*[self.value(arg)] * k) for k in range(1, order + 1)])
            case Abstract(name, source, target, arg):
                # f(0) is no 0, and has no index of what became 0.
                return self._opaque(name, source, target, arg, self._present(arg))
        raise NoCount(f"`{type(e).__name__}` stands in a definition")

    def _ref(self, e: Ref) -> Form:
        if e.name == FIRST:
            return PLAIN
        declared = self.inputs.get(e.name) or self.streams.get(e.name)
        if declared is None:
            raise NoCount(f"`{e.name}` is read inside a definition")
        if frozenset(declared.axes) != e.axes:
            raise NoCount(f"`{e.name}` is read with other axes than it has")
        if e.name in self.inputs:
            return self._array(e.name, declared.axes)
        if e.name not in self._streams:
            value = self.streams[e.name].value
            if e.name in self._open:
                raise NoCount(f"`{e.name}` is made of itself")
            self._open.add(e.name)
            self._streams[e.name] = (
                self.value(value) if isinstance(value, Expr) else self._read(value)
            )
        return self._streams[e.name]

    def _quotient(self, num: Form, den: Form, what: Expr | None) -> Form:
        """A quotient: denominators of states are multiplied out, others are parts of the terms."""
        if not den.stateful and what is not None:
            self._local(den, "a denominator")
            self._functions(what)
            return num
        # (p / q) / (r / s) = p s / (q r)
        return replace(
            num,
            summed=num.summed + den.below,
            below=num.below + den.summed,
            divided=True,
            stateful=num.stateful or den.stateful,
        )

    def _power(self, base: Expr, exponent: Expr) -> Form:
        form = self.value(base)
        if isinstance(exponent, Num) and exponent.value in range(1, GROWTH):
            return times(*[form] * int(exponent.value))
        for part in (base, exponent):
            self._local(self.value(part), "a power")
            self._functions(part)
        return PLAIN

    def _reduced(self, e: Reduce) -> Form:
        form = self.value(e.arg)
        if e.how is Reduction.MAX:
            if self._along((e.axis,)):
                raise NoCount("a maximum runs over it")
            self._local(form, "a maximum")
            self._functions(e.arg)
            return PLAIN
        return self._summed(form, (e.axis,), NONE) if e.axis in e.arg.axes else form

    def _renamed(self, old: Axis, new: Axis, form: Form) -> Form:
        if bool(self._along((old,))) != bool(self._along((new,))):
            raise NoCount(f"{old.name} is renamed to {new.name}")
        carriers = {(new if a == old else a): names for a, names in form.carriers.items()}
        return replace(form, carriers=carriers)

    def _primitive(self, e: Prim) -> Form:
        forms = [self.value(a) for a in e.args]
        # softmax is written out in exponentials; of others each entry is a generator.
        if e.axis is not None and e.name != "softmax":
            return self._opaque(entries_of(e.name), (e.axis,), (e.axis,), e.args[0])
        if e.axis is not None and self._along((e.axis,)):
            raise NoCount(f"`{e.name}` runs over it")
        if e.name in LINEAR:
            return self._linear(e.name, forms)
        for form in forms:
            self._local(form, f"`{e.name}`")
        array = self._atom(e.args[0]) if e.name in ("exp", "silu") else None
        if array is not None:
            self._note(array, e.name)
            # silu x = x / (1 + e^-x) has x as a factor.
            return forms[0] if e.name == "silu" else self._function(e.name, array, forms[0])
        for arg in e.args:
            self._functions(arg)
        return PLAIN

    def _added(self, args: tuple[Expr, ...]) -> Form:
        """A sum; elu x + c, which is one value, is put to 0 by a number for elu x."""
        calls = [a for a in args if isinstance(a, Prim) and a.name == "elu"]
        rest = [a for a in args if isinstance(a, Num)]
        if len(args) == 2 and calls and rest:
            form = self.value(calls[0].args[0])
            array = self._atom(calls[0].args[0])
            if array is not None:  # an entry: no sum, and nothing of states
                way = f"elu+{rest[0].value}"
                self._note(array, way)
                return self._function(way, array, form)
        return plus(*(self.value(a) for a in args))

    def _function(self, way: str, array: str, form: Form) -> Form:
        """A function of an array: along the axes of the array it is a carrier of its own."""
        along = [a for a, hits in form.carriers.items() if hits == single(array)]
        return Form(carriers=dict.fromkeys(along, single(f"{way} {array}")))

    def _atom(self, e: Expr) -> str | None:
        """The array that a value is an entry of, at every token and index a generator of its own.

        What is read at another token is 0 before the first one, and no generator there.
        """
        while isinstance(e, Ref) and e.name in self.streams and e.at in PRESENT:
            value = self.streams[e.name].value
            if not isinstance(value, Expr):
                return None
            e = value
        if e.field is not Field.REAL or not self._present(e):
            return None
        match e:
            case Param(name=name) | Ref(name=name):
                return self._common(name)
            case Map(map, arg) if not self.entries and arg.field is map.field is Field.REAL:
                return self._common(map.name)
        return None

    def _present(self, e: Expr | ReadOut) -> bool:
        """Whether a value is other than 0 in F, at every token and size: a product of such.

        Of what is read off states nothing is said.
        """
        match e:
            case Num(value):
                return bool(value)
            case Ones() | Size() | Param():
                return True
            case Ref(name=name, at=at) if at in PRESENT and name != FIRST:
                stream = self.streams.get(name)
                if stream is None:
                    return name in self.inputs
                return self._present(stream.value)
            case Mul(args):
                return all(self._present(a) for a in args)
            case Pow(base, Num()):
                return self._present(base)
            case Map(map, arg):
                return not map.adjoint and self._present(arg)
        return False

    def _note(self, array: str, way: str) -> None:
        self.ways.setdefault(array, set()).add(way)

    def _linear(self, name: str, forms: list[Form]) -> Form:
        if any(f.divided for f in forms):
            # The denominator and its conjugate.
            forms = [replace(f, summed=f.summed + f.below, below=2 * f.below) for f in forms]
        if name == "cplx":
            return plus(*forms)
        (form,) = forms
        return form

    def _mapped(self, map: LinearMap, arg: Expr) -> Form:
        form = self.value(arg)
        if form.stateful:
            raise NoCount("a linear map inside a definition is applied to values of states")
        if self.entries or map.adjoint:
            return self._applied(map, form)
        return self._opaque(map.name, map.source, (*map.each, *map.target), arg)

    def _opaque(
        self,
        name: str,
        source: tuple[Axis, ...],
        axes: Iterable[Axis],
        arg: Expr,
        inside: bool = True,
    ) -> Form:
        """A value that is a generator of its own, named by indices along `axes` and its argument.

        What else the argument has as an index is one of the generator only where all terms of the
        argument have it: W (1 u) is the same for all indices of 1. Whether it has it at all is
        `inside`: where the argument is 0, the value is 0 or has it not.
        """
        form = self.value(arg)
        self._local(form, "the argument of a map")
        name = self._common(name)
        # The index of an argument is one of the generator as long as what hits it does so.
        inner = {
            a: both(single(name), hits)
            for a, hits in form.carriers.items()
            if inside and hits and a not in source
        }
        hidden = self._along(source)
        if len(hidden) > 1 or (hidden and self._along(arg.axes) != hidden):
            raise NoCount("a map contracts it beside another index of it")
        return Form(carriers=inner | dict.fromkeys(axes, single(name)))

    def _functions(self, e: Expr) -> None:
        """Notes the arrays of what stands in a function or in a denominator: they carry nothing."""
        stack = [e]
        while stack:
            top = stack.pop()
            if top in self._walked:
                continue
            self._walked.add(top)
            match top:
                case Param(name=name) | Ref(name=name) if name not in self.streams:
                    self._note(self._common(name), OTHERWISE)
                case Ref(name=name):
                    value = self.streams[name].value
                    if not isinstance(value, Expr):
                        raise NoCount("a function holds values of states")
                    stack.append(value)
                case Map(map, _):
                    self._note(self._common(map.name), OTHERWISE)
                case Abstract(name=name):
                    self._note(self._common(name), OTHERWISE)
                case Prim(name=name, axis=Axis()):
                    self._note(entries_of(name), OTHERWISE)
            stack.extend(children(top))
