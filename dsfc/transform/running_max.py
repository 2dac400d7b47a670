r"""The running maximum: ratios of states with unbounded exponential weights, kept finite.

    h_i = λ_i h_{i-1} + e^{x_i} b_i      y_i = (c_i · h_i) / (c_i · h'_i)

overflows as soon as x does, although y is a mean. Stored as h̃ = e^{-m} h with the running maximum
m_i = max(m_{i-1} + log λ_i, x_i), all weights are at most 1:

    h̃_i = e^{log λ_i + m_{i-1} - m_i} h̃_{i-1} + e^{x_i - m_i} b_i

A read with an exponential of its own, e^q, is scaled by e^{q + m - R}, where R is the largest of
those exponents; e^R divides numerator and denominator. A guard max(|d|, c) becomes
max(|d̃|, c e^{-R}) with R ≥ 0, so that neither side overflows. The outputs are the same for every m
and every R: no gradient passes through them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from dsfc.expr.build import ONE, ZERO, add, div, is_zero, mul, neg, num, power, prim
from dsfc.expr.declarations import Tensor
from dsfc.expr.tree import Axis, Div, Expr, Field, Mul, Now, Pow, Prim, Reduce, Reduction, Ref, Time
from dsfc.system.dependency_order import ordered
from dsfc.system.inline import inliner_of
from dsfc.system.ir import (
    Block,
    Direction,
    Drive,
    Factor,
    Gate,
    Gauge,
    GaugeKind,
    Guard,
    GuardKind,
    LogForm,
    MaxPlus,
    Ratio,
    Read,
    ReadOut,
    Step,
    Stream,
    System,
    Term,
)
from dsfc.system.traverse import map_blocks, map_trees, parts, trees
from dsfc.transform.flatten import read_out_type
from dsfc.transform.gauge import diagonal_of
from dsfc.transform.record import Record
from dsfc.transform.terms import Names


class Bounds(Protocol):
    """What is known of the values of expressions, definitions inlined."""

    def unbounded(self, exponent: Expr) -> bool:
        """Returns whether an exponent varies with the tokens and has no upper bound."""

    def positive(self, decay: Expr) -> bool:
        """Returns whether a decay is above 0 at all tokens, so that it has a finite logarithm."""


def running_max_gauge(system: System, bounds: Bounds, free: bool = False) -> tuple[System, Record]:
    """Returns the System with the states of ratios stored over e^m, m their running maximum.

    A ratio takes part where all states that it reads have one decay, which is positive, and one
    exponential weight, and are read by such ratios only.

    Args:
        system: the System.
        bounds: which exponents have no upper bound, and which decays are positive.
        free: let each m and R be any value at all, an input of its name: the outputs do not depend
            on it, which is what proves the gauge.

    Returns:
        The System, the same object where no ratio takes part, and a record whose names map each
        state to its running maximum.
    """
    return _Gauging(system, bounds, free).build()


@dataclass(frozen=True, slots=True)
class _Weight:
    """The drive of a state as e^x · key · stream, and the logarithm of its decay.

    Attributes:
        same: log λ and x with definitions inlined: states with the same share a maximum.
        closed: whether log λ is a form of its own; else it is the logarithm of a computed value.
    """

    log_decay: Expr
    exponent: Expr
    drive: Drive
    same: tuple[Expr, Expr]
    closed: bool

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes of the running maximum."""
        return tuple(sorted(self.log_decay.axes | self.exponent.axes))


class _Gauging:
    def __init__(self, system: System, bounds: Bounds, free: bool) -> None:
        self.system = system
        self.bounds = bounds
        self.free = free
        self.names = Names.of(system)
        self.inliner = inliner_of(system)
        self.values = {
            s.name: s.value for s in system.streams if isinstance(s.value, Expr) and not s.constant
        }
        alone = (s for s in system.stages if s.direction is Direction.FORWARD)
        blocks = (s.blocks[0] for s in alone if len(s.blocks) == 1)
        self.weights = {b.state: w for b in blocks if (w := self.weight(b)) is not None}
        self.maxima: dict[tuple[Expr, Expr], Ref] = {}
        self.changes: dict[str, Ref] = {}
        self.log_weights: dict[str, Expr] = {}
        self.references: set[str] = set()
        self.new: list[tuple[str, Expr | MaxPlus, tuple[Axis, ...]]] = []

    def build(self) -> tuple[System, Record]:
        ratios = self.ratios()
        if not ratios:
            return self.system, Record("running maximum")
        states = dict.fromkeys(t.source for r in ratios for t in _terms(r))
        for state in states:
            self.maximum(state)
        weights = {r: self.ratio(r) for r in ratios}

        def tree(t: ReadOut) -> ReadOut:
            return weights.get(t, t) if isinstance(t, Ratio) else t

        shared = {s: tuple(o for o in states if o != s and self.same(o, s)) for s in states}
        system = map_trees(self.system, tree)
        system = map_blocks(
            system, lambda b: self.block(b, shared[b.state]) if b.state in states else b
        )
        names = tuple((s, self.maximum(s).name) for s in states)
        steps = tuple(Step("gauge", f"{s} is stored over exp({m})") for s, m in names)
        system = replace(system, derivation=(*system.derivation, *steps))
        return ordered(self.named(system)), Record("running maximum", steps, names)

    def same(self, a: str, b: str) -> bool:
        return self.weights[a].same == self.weights[b].same

    def named(self, system: System) -> System:
        """The System with the maxima and references: streams, or inputs where they are free."""
        freed = {name for name in self.references if self.free}
        inputs = (Tensor(name, axes) for name, _, axes in self.new if name in freed)
        streams = (
            Stream(name, value, axes, Field.REAL)
            for name, value, axes in self.new
            if name not in freed
        )
        return replace(
            system,
            inputs=(*system.inputs, *inputs),
            streams=(*system.streams, *streams),
            # The text of the mixer knows no such input.
            definition=() if self.free else system.definition,
        )

    # --- what takes part --------------------------------------------------------------------------

    def weight(self, b: Block) -> _Weight | None:
        decay = b.decay
        if decay is None or decay.phase is not None or b.field is not Field.REAL:
            return None
        if diagonal_of(b) is None or len(b.chain[0].drives) != 1:
            return None
        (drive,) = b.chain[0].drives
        (x, key), (y, stream) = self.split(drive.key), self.split(drive.stream)
        exponent = add(x, y)
        weight_found = _Weight(
            decay.log,
            exponent,
            Drive(key, stream),
            (self.inliner.of(decay.log), self.inliner.of(exponent)),
            decay.form is LogForm.EXACT,
        )
        fits = frozenset(weight_found.axes) <= frozenset(b.axes) and decay.log.field is Field.REAL
        if not (fits and self.bounds.unbounded(weight_found.same[1])):
            return None
        # log λ is added to the maximum; of a λ that may be 0 or negative it is no number.
        return (
            weight_found
            if weight_found.closed or self.bounds.positive(self.inliner.of(decay.value))
            else None
        )

    def ratios(self) -> tuple[Ratio, ...]:
        """The ratios that take part, each once."""
        every = [p for t in trees(self.system) for p in parts(t) if isinstance(p, Ratio)]
        reads = Counter(
            t.source
            for tree in trees(self.system)
            for p in parts(tree)
            if isinstance(p, Read)
            for t in p.terms
        )
        taken = [r for r in every if self.takes_part(r)]
        while True:
            inside = Counter(t.source for r in taken for t in _terms(r))
            kept = [r for r in taken if all(inside[t.source] == reads[t.source] for t in _terms(r))]
            if len(kept) == len(taken):
                return tuple(dict.fromkeys(kept))
            taken = kept

    def takes_part(self, r: Ratio) -> bool:
        if not (_is_read(r.num) and _is_read(r.den)):
            return False
        held = list(_terms(r))
        if not held or any(t.source not in self.weights for t in held):
            return False
        if any(t.matrix is not None or t.after is not None for t in held):
            return False
        if any(not self.same(t.source, held[0].source) for t in held):
            return False
        below = frozenset(read_out_type(r.den, self.system)[0])
        sides = (self.split_term(t) for t in held)
        if any(s.within and not s.exponent.axes <= s.room for s in sides):
            return False
        return all(e.axes <= below for e in self.largest(r))

    # --- the gauge --------------------------------------------------------------------------------

    def maximum(self, state: str) -> Ref:
        """The running maximum m of a state, at the present token."""
        w = self.weights[state]
        if w.same not in self.maxima:
            name = self.names.fresh(f"{state}_max")
            # Plans bound the logarithm of a computed value where they see that it is one.
            log_decay = self.stream(f"{state}_log_decay", w.log_decay) if w.closed else w.log_decay
            exponent = self.stream(f"{state}_exponent", w.exponent)
            for s, other in self.weights.items():
                if other.same == w.same:
                    shared = replace(other, log_decay=log_decay, exponent=exponent)
                    self.weights[s] = shared
            self.new.append((name, MaxPlus(log_decay, exponent), w.axes))
            self.references.add(name)
            now = self.maxima[w.same] = _reference(name, w.axes)
            # Two large numbers: their difference has all digits, their sum with log λ has not.
            change = self.names.fresh(f"{state}_change")
            self.new.append((change, add(_before(now), neg(now)), w.axes))
            self.changes[name] = _reference(change, w.axes)
            self.log_weights[name] = self.stream(f"{state}_log_weight", add(exponent, neg(now)))
        return self.maxima[w.same]

    def stream(self, wish: str, value: Expr) -> Expr:
        """A value that is read several times, by a name of its own."""
        if isinstance(value, Ref) or value.time is Time.CONST:
            return value
        name, axes = self.names.fresh(wish), tuple(sorted(value.axes))
        self.new.append((name, value, axes))
        return _reference(name, axes)

    def block(self, b: Block, shared: tuple[str, ...]) -> Block:
        w, now = self.weights[b.state], self.maximum(b.state)
        change = self.changes[now.name]
        assert b.decay is not None
        log = add(w.log_decay, change)
        value = _exp(log)
        if b.decay.form is not LogForm.EXACT:
            value = mul(b.decay.value, _exp(change))
        drive = Drive(mul(_exp(self.log_weights[now.name]), w.drive.key), w.drive.stream)
        return replace(
            b,
            chain=(Factor((Term(b.state, 1, value, frozenset(), ONE),), (drive,)),),
            decay=replace(b.decay, value=value, log=log),
            flow=None,
            gauge=Gauge(GaugeKind.RUNNING_MAX, _exp(now), shared),
        )

    def ratio(self, r: Ratio) -> Ratio:
        largest = list(self.largest(r))
        if r.guard.kind is not GuardKind.NONE:
            largest.append(ZERO)
        value = largest[0]
        for other in largest[1:]:
            value = value if other == value else prim("max", value, other)
        scale = value
        if not isinstance(value, Ref):
            name = self.names.fresh(f"{next(_terms(r)).source}_scale")
            axes = tuple(sorted(value.axes))
            self.new.append((name, prim("stop_gradient", value), axes))
            self.references.add(name)
            scale = _reference(name, axes)
        guard = r.guard
        if guard.constant is not None:
            guard = Guard(guard.kind, mul(guard.constant, _exp(neg(scale))))
        return Ratio(self.scaled(r.num, scale), self.scaled(r.den, scale), guard)

    def largest(self, r: Ratio) -> Iterator[Expr]:
        """The exponents of a denominator, each the largest over what its term sums over."""
        read = _read(r.den)
        for t in read.terms:
            s = self.split_term(t)
            value = add(s.exponent, self.at(t))
            for axis in sorted(value.axes & t.over):
                value = Reduce(Reduction.MAX, axis, value)
            yield value
        if read.direct is not None:
            yield self.split(read.direct)[0]

    def at(self, t: Term) -> Ref:
        """The maximum that a read sees, that of the token before for a read before the update."""
        w = self.weights[t.source]
        now = self.maxima.get(w.same) or _reference("", w.axes)
        return now if t.lag == 0 else _before(now)

    def scaled(self, tree: ReadOut, scale: Expr) -> ReadOut:
        match tree:
            case Gate(factor, arg):
                return Gate(factor, self.scaled(arg, scale))
            case Read(held, direct):
                if direct is not None:
                    exponent, rest = self.split(direct)
                    direct = mul(_exp(_less(exponent, scale)), rest)
                return Read(tuple(self.term(t, scale) for t in held), direct)
        raise TypeError(type(tree).__name__)

    def term(self, t: Term, scale: Expr) -> Term:
        s = self.split_term(t)
        weight = _exp(_less(add(s.exponent, self.at(t)), scale))
        if s.within:
            return replace(t, left=s.left, right=mul(weight, s.right))
        return replace(t, left=mul(weight, s.left), right=s.right)

    # --- exponents --------------------------------------------------------------------------------

    def split_term(self, t: Term) -> _Sides:
        (x, left), (y, right) = self.split(t.left), self.split(t.right)
        room = frozenset(next(b.axes for b in self.system.blocks if b.state == t.source))
        within = bool((y.axes | self.at(t).axes) & t.over)
        return _Sides(add(x, y), left, right, within, room | t.right.axes)

    def split(self, e: Expr) -> tuple[Expr, Expr]:
        """An expression as e^x · rest, x over tokens; definitions are looked into for that."""
        match e:
            case Mul(args):
                parts = [self.split(a) for a in args]
                return add(*(x for x, _ in parts)), mul(*(rest for _, rest in parts))
            case Div(above, below):
                (x, top), (y, bottom) = self.split(above), self.split(below)
                return add(x, neg(y)), div(top, bottom)
            case Pow(base, exponent) if exponent.time is Time.CONST:
                x, rest = self.split(base)
                return (ZERO, e) if is_zero(x) else (mul(exponent, x), power(rest, exponent))
            case Prim("sqrt", (arg,)):
                x, rest = self.split(arg)
                return (ZERO, e) if is_zero(x) else (div(x, num(2)), prim("sqrt", rest))
            case Prim("exp", (x,)) if e.field is Field.REAL and e.time is not Time.CONST:
                return x, ONE
            case Ref(at=Now(0)) if e.name in self.values:
                x, rest = self.split(self.values[e.name])
                return (ZERO, e) if is_zero(x) else (x, rest)
        return ZERO, e


@dataclass(frozen=True, slots=True)
class _Sides:
    """A term's sides without their exponentials, and those.

    Attributes:
        within: whether the exponential stands inside the sum.
        room: axes that it may have there.
    """

    exponent: Expr
    left: Expr
    right: Expr
    within: bool
    room: frozenset[Axis]


def _reference(name: str, axes: Iterable[Axis]) -> Ref:
    return Ref(name, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))


def _before(now: Ref) -> Ref:
    return Ref(now.name, now.over, now.kind, now.when, Now(1))


def _exp(e: Expr) -> Expr:
    return ONE if is_zero(e) else prim("exp", e)


def _less(exponent: Expr, scale: Expr) -> Expr:
    return ZERO if exponent == scale else add(exponent, neg(scale))


def _is_read(tree: ReadOut) -> bool:
    while isinstance(tree, Gate):
        tree = tree.arg
    return isinstance(tree, Read)


def _read(tree: ReadOut) -> Read:
    while isinstance(tree, Gate):
        tree = tree.arg
    assert isinstance(tree, Read)
    return tree


def _terms(r: Ratio) -> Iterator[Term]:
    yield from _read(r.num).terms
    yield from _read(r.den).terms
