"""From equality at one size of an axis to equality at every size: the cut-off.

Fix an axis. With everything written out, the difference of two outputs, its denominators multiplied
out, is a sum over indices of that axis, of terms that each hold few of them. Two things are read
off the systems here, for the axis and its copies:

    the count      how many indices one term has at most, those of the output included
    the carriers   arrays such that a term with a summed index has, as a factor, an entry of one of
                   them with this index, and that stand in no denominator and in no function

Where each summed index is carried, equality at the count (or at any larger size) is equality at
every size: entries of carriers with further indices can be set to 0, which leaves the difference at
a smaller size; see docs/theory/proofs.md. An axis that linear maps of tokens contract has no index
in any term, as long as the values of the maps are generators.

Whatever is not read as such a sum is named as the reason why not. Sizes as numbers do no harm: they
are symbols in a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dsfc.check_proof.claim import Claim
from dsfc.check_proof.comparable import unlike
from dsfc.check_proof.free import common_names, side
from dsfc.primitives.expr import (
    Abstract,
    Add,
    Axis,
    Div,
    Expr,
    Fir,
    Iota,
    LinearMap,
    Map,
    Mul,
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
from dsfc.primitives.words import FIRST
from dsfc.system.ir import (
    Block,
    Cast,
    Direct,
    Drive,
    Gate,
    GuardKind,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Sum,
    SumOver,
    System,
    Term,
)

GROWTH = 8
"""Indices of one term from which on its number is said to grow with time."""

_LINEAR = frozenset({"re", "im", "conj", "cplx"})
"""Primitives that are linear in the parts of their arguments."""


class _NoCount(Exception):
    """Terms have no bounded number of indices; the text says why."""


@dataclass(frozen=True, slots=True)
class _Form:
    """A value as a sum of terms over one denominator, for one axis.

    Attributes:
        summed: summed indices of one term, at most.
        below: the same of the denominator; of denominators that hold states only: others are parts
            of the terms.
        carriers: axis of the value → arrays of which every term has an entry with its index.
        divided: whether there is a denominator.
        stateful: whether states are read.
    """

    summed: int = 0
    below: int = 0
    carriers: Mapping[Axis, frozenset[str]] = field(default_factory=dict)
    divided: bool = False
    stateful: bool = False


_PLAIN = _Form()


def _times(*forms: _Form) -> _Form:
    carriers: dict[Axis, frozenset[str]] = {}
    for f in forms:
        for axis, names in f.carriers.items():
            carriers[axis] = carriers.get(axis, frozenset()) | names
    return _Form(
        sum(f.summed for f in forms),
        sum(f.below for f in forms),
        carriers,
        any(f.divided for f in forms),
        any(f.stateful for f in forms),
    )


def _plus(*forms: _Form) -> _Form:
    if not forms:
        return _PLAIN
    below = sum(f.below for f in forms)
    shared = set(forms[0].carriers).intersection(*(f.carriers for f in forms))
    return _Form(
        max(f.summed + below - f.below for f in forms),
        below,
        {a: frozenset.intersection(*(f.carriers[a] for f in forms)) for a in shared},
        any(f.divided for f in forms),
        any(f.stateful for f in forms),
    )


def cutoff(claim: Claim, entries: bool) -> dict[str, int | str]:
    """Returns the least size of each axis whose proof is one for all, or why there is none.

    Args:
        claim: the two systems.
        entries: whether the proof writes linear maps out; see `dsfc.check_proof.claim.Invariant`.
    """
    kinds = _kinds(claim)
    return {name: _count(claim, entries, kinds, name) for name, _ in claim.sizes}


def unproved(claim: Claim, entries: bool) -> dict[str, str]:
    """Returns the axes that a claim speaks of at one size only, with the reasons.

    A reason is what `cutoff` gives, or that the size is below the count.
    """
    out = {}
    sizes = dict(claim.sizes)
    for name, found in cutoff(claim, entries).items():
        if isinstance(found, str):
            out[name] = found
        elif sizes[name] < found:
            out[name] = f"a term has {found} of its indices, more than {sizes[name]}"
    return out


def _kinds(claim: Claim) -> dict[str, str]:
    """Name of an axis → the axis that it is a copy of, or itself; "" where the two disagree."""
    kinds: dict[str, str] = {}
    for system in (claim.a, claim.b):
        for d in system.axes:
            kind = d.axis.copy_of or d.axis.name
            if kinds.setdefault(d.axis.name, kind) != kind:
                kinds[d.axis.name] = ""
    return kinds


def _count(claim: Claim, entries: bool, kinds: Mapping[str, str], name: str) -> int | str:
    if name not in kinds:
        return "no axis of the two has this name"
    kind = kinds[name]
    if not kind:
        return "it is a copy of another axis in one of the two"
    outputs = [system.outputs[0].axes for system in (claim.a, claim.b)]
    if [a.name for a in outputs[0]] != [a.name for a in outputs[1]]:
        if any(kinds.get(a.name) in ("", kind) for axes in outputs for a in axes):
            return "the outputs are put side by side along other axes"
    sides = [_Side(claim, second, entries, kinds, kind) for second in (False, True)]
    try:
        a, b = (s.output() for s in sides)
    except _NoCount as e:
        return str(e)
    functions = sides[0].inside | sides[1].inside
    for s in sides:
        for axis, names in s.needs:
            if not names - functions:
                return (
                    f"no array that is a factor of every term has the summed index of {axis.name}"
                )
    free = sum(kinds.get(axis.name) == kind for axis in outputs[0])
    return max(1, free + max(a.summed + b.below, b.summed + a.below))


class _Side:
    """One system's terms along one axis and its copies.

    Attributes:
        needs: the summed indices: axis and the arrays that carry it.
        inside: arrays that stand in a denominator without states, or in a function.
    """

    def __init__(
        self, claim: Claim, second: bool, entries: bool, kinds: Mapping[str, str], kind: str
    ) -> None:
        self.system: System = side(claim, second)
        self.names = common_names(claim, second)
        self.own = unlike(claim) if second else frozenset[str]()
        self.entries = entries
        self.kinds = kinds
        self.kind = kind
        self.needs: list[tuple[Axis, frozenset[str]]] = []
        self.inside: set[str] = set()
        self.inputs = {t.name: t for t in self.system.inputs}
        self.streams = {s.name: s for s in self.system.streams}
        self.blocks = {b.state: b for b in self.system.blocks}
        self._states: dict[str, _Form] = {}
        self._streams: dict[str, _Form] = {}
        self._known: dict[Expr, _Form] = {}
        self._open: set[str] = set()
        self._walked: set[Expr] = set()

    def output(self) -> _Form:
        """Returns the terms of the output."""
        return self._read(self.system.outputs[0].value)

    # --- parts ------------------------------------------------------------------------------------

    def _along(self, axes: Iterable[Axis]) -> list[Axis]:
        """Those of some axes that are the one looked at, or copies of it."""
        return [a for a in axes if self.kinds.get(a.name) == self.kind]

    def _common(self, name: str) -> str:
        same = self.names.get(name, name)
        return f"B:{same}" if name in self.own else same

    def _array(self, name: str, axes: Iterable[Axis], stateful: bool = False) -> _Form:
        names = frozenset({self._common(name)})
        return _Form(carriers=dict.fromkeys(axes, names), stateful=stateful)

    def _summed(self, form: _Form, axes: Iterable[Axis], carrier: frozenset[str]) -> _Form:
        """Σ over indices of a value, each carried by what carries the value or by `carrier`."""
        axes = tuple(axes)
        if form.divided and axes:
            raise _NoCount("quotients of states are summed")
        here = self._along(axes)
        self.needs += [(a, form.carriers.get(a, frozenset()) | carrier) for a in here]
        carriers = {a: names for a, names in form.carriers.items() if a not in axes}
        return replace(form, summed=form.summed + len(here), carriers=carriers)

    def _applied(self, map: LinearMap, form: _Form) -> _Form:
        """Σ over the source of entries of a matrix times a value."""
        names = frozenset({self._common(map.name)})
        out = self._summed(form, map.source, names)
        carriers = dict(out.carriers)
        carriers |= {a: carriers.get(a, frozenset()) | names for a in map.each}
        carriers |= dict.fromkeys(map.target, names)
        return replace(out, carriers=carriers)

    def _local(self, form: _Form, where: str) -> None:
        """Refuses what is no function of one entry each."""
        if form.stateful or form.divided:
            raise _NoCount(f"{where} holds values of states")
        if form.summed:
            raise _NoCount(f"{where} holds a sum over it")

    # --- expressions ------------------------------------------------------------------------------

    def value(self, e: Expr) -> _Form:
        """Returns the terms of an expression."""
        if e not in self._known:
            self._known[e] = self._value(e)
        return self._known[e]

    def _value(self, e: Expr) -> _Form:
        match e:
            case Num() | Ones() | Size():
                return _PLAIN
            case Iota(axis):
                if self._along((axis,)):
                    raise _NoCount("values are tied to its index (iota)")
                return _PLAIN
            case Param(name=name):
                return self._array(name, e.axes)
            case Ref():
                return self._ref(e)
            case Add(args):
                return _plus(*(self.value(a) for a in args))
            case Mul(args):
                return _times(*(self.value(a) for a in args))
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
                    raise _NoCount("it counts the taps of a filter")
                form = _times(self.value(weight), self.value(arg))
                return self._summed(form, (axis,), frozenset())
            case Rename(old, new, arg):
                return self._renamed(old, new, self.value(arg))
            case Prim():
                return self._primitive(e)
            case Series(order, arg):
                return _plus(_PLAIN, *[_times(*[self.value(arg)] * k) for k in range(1, order + 1)])
            case Abstract(name, source, target, arg):
                return self._opaque(name, source, target, arg)
        raise _NoCount(f"`{type(e).__name__}` stands in a definition")

    def _ref(self, e: Ref) -> _Form:
        if e.name == FIRST:
            return _PLAIN
        declared = self.inputs.get(e.name) or self.streams.get(e.name)
        if declared is None:
            raise _NoCount(f"`{e.name}` is read inside a definition")
        if frozenset(declared.axes) != e.axes:
            raise _NoCount(f"`{e.name}` is read with other axes than it has")
        if e.name in self.inputs:
            return self._array(e.name, declared.axes)
        if e.name not in self._streams:
            value = self.streams[e.name].value
            if e.name in self._open:
                raise _NoCount(f"`{e.name}` is made of itself")
            self._open.add(e.name)
            self._streams[e.name] = (
                self.value(value) if isinstance(value, Expr) else self._read(value)
            )
        return self._streams[e.name]

    def _quotient(self, num: _Form, den: _Form, what: Expr | None) -> _Form:
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

    def _power(self, base: Expr, exponent: Expr) -> _Form:
        form = self.value(base)
        if isinstance(exponent, Num) and exponent.value in range(1, GROWTH):
            return _times(*[form] * int(exponent.value))
        for part in (base, exponent):
            self._local(self.value(part), "a power")
            self._functions(part)
        return _PLAIN

    def _reduced(self, e: Reduce) -> _Form:
        form = self.value(e.arg)
        if e.how is Reduction.MAX:
            if self._along((e.axis,)):
                raise _NoCount("a maximum runs over it")
            self._local(form, "a maximum")
            self._functions(e.arg)
            return _PLAIN
        return self._summed(form, (e.axis,), frozenset()) if e.axis in e.arg.axes else form

    def _renamed(self, old: Axis, new: Axis, form: _Form) -> _Form:
        if bool(self._along((old,))) != bool(self._along((new,))):
            raise _NoCount(f"{old.name} is renamed to {new.name}")
        carriers = {(new if a == old else a): names for a, names in form.carriers.items()}
        return replace(form, carriers=carriers)

    def _primitive(self, e: Prim) -> _Form:
        forms = [self.value(a) for a in e.args]
        if e.axis is not None and self._along((e.axis,)):
            raise _NoCount(f"`{e.name}` runs over it")
        if e.axis is None and e.name in _LINEAR:
            return self._linear(e.name, forms)
        for form, arg in zip(forms, e.args, strict=True):
            self._local(form, f"`{e.name}`")
            self._functions(arg)
        return _PLAIN

    def _linear(self, name: str, forms: list[_Form]) -> _Form:
        if any(f.divided for f in forms):
            # The denominator and its conjugate.
            forms = [replace(f, summed=f.summed + f.below, below=2 * f.below) for f in forms]
        if name == "cplx":
            return _plus(*forms)
        (form,) = forms
        return form

    def _mapped(self, map: LinearMap, arg: Expr) -> _Form:
        form = self.value(arg)
        if form.stateful:
            raise _NoCount("a linear map inside a definition is applied to values of states")
        if self.entries or map.adjoint:
            return self._applied(map, form)
        return self._opaque(map.name, map.source, (*map.each, *map.target), arg)

    def _opaque(
        self, name: str, source: tuple[Axis, ...], axes: Iterable[Axis], arg: Expr
    ) -> _Form:
        """A value that is a generator of its own, named by indices along `axes` and its argument.

        What else the argument has as an index is one of the generator only where all terms of the
        argument have it: W (1 u) is the same for all indices of 1.
        """
        form = self.value(arg)
        self._local(form, "the argument of a map")
        inner = {a for a, names in form.carriers.items() if names and a not in source}
        hidden = self._along(source)
        if len(hidden) > 1 or (hidden and self._along(arg.axes) != hidden):
            raise _NoCount("a map contracts it beside another index of it")
        return self._array(name, inner.union(axes))

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
                    self.inside.add(self._common(name))
                case Ref(name=name):
                    value = self.streams[name].value
                    if not isinstance(value, Expr):
                        raise _NoCount("a function holds values of states")
                    stack.append(value)
                case Map(map, _):
                    self.inside.add(self._common(map.name))
                case Abstract(name=name):
                    self.inside.add(self._common(name))
            stack.extend(children(top))

    # --- states -----------------------------------------------------------------------------------

    def _state(self, name: str) -> _Form:
        if name not in self._states:
            stage = next(s for s in self.system.stages if any(b.state == name for b in s.blocks))
            self._stage(stage)
        return self._states[name]

    def _stage(self, stage: Stage) -> None:
        """The terms of states at any token: nothing before the first, then what the update adds."""
        every = frozenset(
            self._common(t.name)
            for t in (*self.system.inputs, *self.system.params, *self.system.buffers,
                      *self.system.abstracts)
        )  # fmt: skip
        forms = {
            b.state: _Form(carriers=dict.fromkeys(b.axes, every), stateful=True)
            for b in stage.blocks
        }
        while True:
            # What earlier rounds need is needed of more carriers than there are: no less is true.
            after = self._updated(stage, forms)
            joined = {
                name: _Form(
                    max(forms[name].summed, after[name].summed),
                    carriers={
                        a: names & after[name].carriers.get(a, frozenset())
                        for a, names in forms[name].carriers.items()
                    },
                    stateful=True,
                )
                for name in forms
            }
            if any(f.divided for f in after.values()):
                raise _NoCount("an update divides by a value of the state")
            if any(f.summed > GROWTH for f in joined.values()):
                raise _NoCount("the update of a state couples its entries")
            if joined == forms:
                break
            forms = joined
        self._states.update(forms)

    def _updated(self, stage: Stage, forms: Mapping[str, _Form]) -> dict[str, _Form]:
        current = dict(forms)
        for position in range(max(len(b.chain) for b in stage.blocks)):
            current = {
                b.state: self._factor(b, position, current)
                if position < len(b.chain)
                else current[b.state]
                for b in stage.blocks
            }
        return current

    def _factor(self, block: Block, position: int, current: Mapping[str, _Form]) -> _Form:
        factor = block.chain[position]
        parts = [self._term(t, current[t.source]) for t in factor.terms]
        parts += [self._drive(d) for d in factor.drives]
        return _plus(*parts) if parts else _Form(carriers=current[block.state].carriers)

    def _drive(self, d: Drive) -> _Form:
        return _times(self.value(d.key), self.value(d.stream))

    def _term(self, t: Term, source: _Form) -> _Form:
        """The terms of after(left · Σ_over(right · matrix(state)))."""
        form = self._applied(t.matrix, source) if t.matrix else source
        form = _times(self.value(t.right), form)
        form = self._summed(form, t.over, frozenset())
        form = _times(self.value(t.left), form)
        return self._applied(t.after, form) if t.after else form

    # --- read-outs --------------------------------------------------------------------------------

    def _read(self, r: ReadOut) -> _Form:
        match r:
            case Read(terms, direct):
                parts = [self._term(t, self._state(t.source)) for t in terms]
                if direct is not None:
                    parts.append(self.value(direct))
                return _plus(*parts)
            case Direct(value):
                return self.value(value)
            case Gate(factor, arg):
                return _times(self.value(factor), self._read(arg))
            case Product(args):
                return _times(*(self._read(a) for a in args))
            case Sum(args):
                return _plus(*(self._read(a) for a in args))
            case Ratio():
                return self._ratio(r)
            case Cast(arg=arg):
                return self._linear("re", [self._read(arg)])
            case MapOut(by, arg):
                return self._applied(by, self._read(arg))
            case SumOver(axis, arg):
                return self._summed(self._read(arg), (axis,), frozenset())
            case Post(name=name):
                raise _NoCount(f"`{name}` is applied to values of states")
        raise _NoCount("a sum over the past has no finite state")

    def _ratio(self, r: Ratio) -> _Form:
        den = self._read(r.den)
        if r.guard.kind is GuardKind.MAX_ABS:
            raise _NoCount("`max` is applied to values of states")
        if r.guard.kind is GuardKind.ADD and r.guard.constant is not None:
            den = _plus(den, self.value(r.guard.constant))
        return self._quotient(self._read(r.num), den, None)
