"""Changes of gauge: other bases for a state, the same map from input to output.

With g_i = h_i / f_i (f the gauge's factor, nowhere zero) a transition Λ_i becomes
f_i⁻¹ Λ_i f_{i-1}, a drive b_i / f_i, and a read of h_i a read of f_i g_i. Eq. 15 of Sieber et al.
2024 is the gauge f = η of an attention whose Λ is the identity; exp of a running maximum is another
(`dsfc.transform.running_max`).

The initial state is h_{-1} and f_{-1} = 1, unless f is constant: then it is h_{-1} / f.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from dsfc.expr.build import ONE, add, div, is_one, is_zero, mul, neg, prim
from dsfc.expr.reserved_names import first
from dsfc.expr.tree import Div, Expr, Field, LinearMap, Mul, Now, Prim, Ref, Time
from dsfc.system.dependency_order import ordered, reached_from, stage_key
from dsfc.system.formulas import guarded
from dsfc.system.ir import (
    Block,
    Decay,
    Direction,
    Drive,
    Factor,
    Gate,
    Gauge,
    GaugeKind,
    Guard,
    LogForm,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Step,
    Stream,
    System,
    Term,
)
from dsfc.system.traverse import map_blocks, map_trees, names_in
from dsfc.transform.flatten import read_out_type
from dsfc.transform.record import Record
from dsfc.transform.terms import Names


class GaugeError(ValueError):
    """A change of gauge that does not exist."""


def change_gauge(
    system: System, state: str, factor: Expr, kind: GaugeKind = GaugeKind.ETA
) -> tuple[System, Record]:
    """Returns the System with a state stored as g_i = h_i / factor_i.

    Args:
        system: the System.
        state: the state.
        factor: f, token-wise or constant, nowhere zero, with axes of the state.
        kind: what the gauge is called.

    Returns:
        The System and a record. A factor that varies in time is given a name, so that its value of
        the token before can be read. A final value of the state is that of h over f.

    Raises:
        GaugeError: there is no such state, the factor has other axes than the state or mixes with
            a matrix, or varies in time while the state runs backwards.
    """
    return _Change(system, state, factor, kind).build()


def eta_gauge(system: System) -> tuple[System, Record]:
    """Returns the System in the paper's gauge: post-scales 1/η of reads go into the transition.

    A read-out r / η, with η token-wise or a read of a denominator's states (Sieber et al. 2024
    §3.2), has its states stored as h / η; then Λ_i = η_{i-1}/η_i and the read-out is r alone.
    Read-outs that are not of that form, states that run backwards and states that η itself reads
    are left alone.
    """
    names = Names.of(system)
    streams: list[Stream] = []
    steps: list[Step] = []
    factors: dict[str, Expr] = {}

    def named(below: ReadOut, guard: Guard) -> Expr:
        axes, kind = read_out_type(below, system)
        name = names.fresh("eta")
        streams.append(Stream(name, below, axes, kind))
        return guarded(Ref(name, frozenset(axes), kind, Time.TOKEN, Now(0)), guard)

    def note(top: Read, bottom: Expr) -> None:
        grown = replace(system, streams=system.streams + tuple(streams))
        needed = reached_from(grown, names_in((bottom,)))
        for t in top.terms:
            stage = _stage(system, t.source)
            fits = bottom.axes <= frozenset(_block(system, t.source).axes)
            forward = stage.direction is Direction.FORWARD
            # A denominator that reads the state itself cannot be part of its basis.
            if fits and forward and stage_key(stage) not in needed:
                factors.setdefault(t.source, bottom)

    def denominator(tree: ReadOut) -> ReadOut:
        match tree:
            case Ratio(Read() as top, below, guard):
                value = named(below, guard)
                note(top, value)
                return Gate(div(ONE, value), top)
            case Gate(Div(_, bottom), Read() as top):
                note(top, bottom)
        return tree

    trees = map_trees(system, denominator)
    changed = replace(trees, streams=trees.streams + tuple(streams))
    for state, factor in factors.items():
        changed, record = change_gauge(changed, state, factor)
        steps.extend(record.steps)
    return ordered(map_trees(changed, _absorbed)), Record("gauge", tuple(steps))


def diagonal_of(block: Block) -> Expr | None:
    """Returns λ of a transition that is one diagonal factor, None for others."""
    if len(block.chain) != 1 or len(block.chain[0].terms) != 1:
        return None
    (term,) = block.chain[0].terms
    plain = term.matrix is None and term.after is None and not term.over
    return mul(term.left, term.right) if plain and term.source == block.state else None


def cancelled(expr: Expr) -> Expr:
    """Returns a product with the factors that stand above and below taken out.

    Real exponentials become one, exp(a) / exp(b) = exp(a - b): each may be beyond all numbers.
    """
    above: list[Expr] = []
    below: list[Expr] = []
    _split(expr, above, below)
    powers = [e.args[0] for e in above if _is_real_exp(e)]
    roots = [e.args[0] for e in below if _is_real_exp(e)]
    if len(powers) + len(roots) > 1:
        above = [e for e in above if not _is_real_exp(e)]
        below = [e for e in below if not _is_real_exp(e)]
        exponent = add(*powers, *map(neg, roots))
        above += [] if is_zero(exponent) else [prim("exp", exponent)]
    for factor in list(below):
        if factor in above:
            above.remove(factor)
            below.remove(factor)
    top = mul(*above)
    return div(top, mul(*below)) if below else top


def _is_real_exp(expr: Expr) -> TypeGuard[Prim]:
    return isinstance(expr, Prim) and expr.name == "exp" and expr.field is Field.REAL


def _split(expr: Expr, above: list[Expr], below: list[Expr]) -> None:
    match expr:
        case Mul(args):
            for a in args:
                _split(a, above, below)
        case Div(numerator, denominator):
            _split(numerator, above, below)
            _split(denominator, below, above)
        case _:
            above.append(expr)


# --- the change -----------------------------------------------------------------------------------


class _Change:
    def __init__(self, system: System, state: str, factor: Expr, kind: GaugeKind) -> None:
        self.system = system
        self.block = _block(system, state)
        self.stage = _stage(system, state)
        self.state = state
        self.kind = kind
        self.streams: tuple[Stream, ...] = ()
        if not factor.axes <= frozenset(self.block.axes):
            raise GaugeError(f"the factor has axes that {state} lacks")
        self.now, self.before = self._values(factor)

    def _values(self, factor: Expr) -> tuple[Expr, Expr]:
        """f_i and f_{i-1}."""
        if factor.time is Time.CONST:
            return factor, factor
        if self.stage.direction is Direction.BACKWARD:
            raise GaugeError(f"{self.state} runs backwards; its gauge must be constant")
        return factor, self._delayed(factor)

    def _delayed(self, factor: Expr) -> Expr:
        """f_{i-1}, 1 before the sequence: products and quotients are delayed factor by factor."""
        match factor:
            case Div(numerator, denominator):
                return div(self._delayed(numerator), self._delayed(denominator))
            case Mul(args):
                return mul(*(self._delayed(a) for a in args))
            case Prim("exp", (Ref(at=Now(0)) as log,)):
                # exp(0) = 1 before the sequence, and a running maximum is handed on.
                return prim("exp", Ref(log.name, log.over, log.kind, log.when, Now(1)))
        if factor.time is Time.CONST:
            # f_{-1} = 1 all the same
            return add(factor, mul(first(), add(ONE, neg(factor))))
        if isinstance(factor, Ref) and factor.at == Now(0):
            ref = factor
        else:
            name = Names.of(self.system).fresh(f"{self.state}_gauge")
            axes = tuple(sorted(factor.axes))
            self.streams += (Stream(name, factor, axes, factor.field),)
            ref = Ref(name, factor.axes, factor.field, Time.TOKEN, Now(0))
        return add(Ref(ref.name, ref.over, ref.kind, ref.when, Now(1)), first())

    def build(self) -> tuple[System, Record]:
        changed = replace(self.system, streams=self.system.streams + self.streams)
        changed = map_blocks(changed, self._block)
        changed = map_trees(changed, self._tree)
        step = Step("gauge", f"{self.state} is stored over {self.kind.value}")
        return ordered(changed), Record("gauge", (step,), ((self.state, self.state),))

    def _tree(self, tree: ReadOut) -> ReadOut:
        if isinstance(tree, Read):
            return Read(tuple(self._read_term(t) for t in tree.terms), tree.direct)
        return tree

    def _read_term(self, t: Term) -> Term:
        if t.source != self.state:
            return t
        return self._scaled(t, self.now if t.lag == 0 else self.before)

    def _scaled(self, t: Term, factor: Expr) -> Term:
        """The term on factor · source."""
        _commutes(factor, t.matrix)
        if factor.axes & t.over:
            return replace(t, right=cancelled(mul(t.right, factor)))
        return replace(t, left=cancelled(mul(t.left, factor)))

    def _block(self, b: Block) -> Block:
        chain = []
        inside = b.state in {x.state for x in self.stage.blocks}
        for level, f in enumerate(b.chain):
            terms = tuple(self._chain_term(t, level) for t in f.terms) if inside else f.terms
            drives = f.drives
            if b.state == self.state and level == len(b.chain) - 1:
                terms = tuple(self._over(t) for t in terms)
                drives = tuple(Drive(cancelled(div(d.key, self.now)), d.stream) for d in drives)
            chain.append(Factor(terms, drives))
        block = replace(b, chain=tuple(chain))
        if b.state != self.state:
            return block
        return replace(block, gauge=self._gauge(b), decay=self._decay(b.decay), flow=None)

    def _chain_term(self, t: Term, level: int) -> Term:
        if t.source != self.state:
            return t
        if level == 0:
            return self._scaled(t, self.before)
        return self._scaled(t, self.now) if level >= len(self.block.chain) else t

    def _over(self, t: Term) -> Term:
        _commutes(self.now, t.after)
        return replace(t, left=cancelled(div(t.left, self.now)))

    def _gauge(self, b: Block) -> Gauge:
        held = b.gauge.factor
        factor = self.now if held is None else cancelled(mul(held, self.now))
        return Gauge(self.kind, factor, b.gauge.shared_with)

    def _decay(self, decay: Decay | None) -> Decay | None:
        if decay is None or self.now.time is Time.CONST:
            return decay
        value = cancelled(div(mul(decay.value, self.before), self.now))
        if _is_real_exp(self.now) and _is_real_exp(self.before):
            # log |λ| has no rounded quotient in it, and stays closed.
            log = add(decay.log, self.before.args[0], neg(self.now.args[0]))
            return replace(decay, value=value, log=log)
        kind = Field.COMPLEX if value.field is Field.COMPLEX else Field.REAL
        if kind is Field.COMPLEX:
            return Decay(value, prim("log", value), None, LogForm.LOG_OF)
        ratio = div(self.before, self.now)
        return Decay(value, add(decay.log, prim("log", prim("abs", ratio))), None, LogForm.LOG_OF)


def _commutes(factor: Expr, map: LinearMap | None) -> None:
    if map is not None and factor.axes & frozenset((*map.source, *map.target)):
        raise GaugeError(f"the factor does not commute with `{map.name}`")


def _absorbed(tree: ReadOut) -> ReadOut:
    """A gate in front of a read, where it cancels a factor of every term."""
    match tree:
        case Gate(factor, Read(terms, direct)):
            new = []
            for t in terms:
                if t.after is not None:
                    return tree
                new.append(replace(t, left=cancelled(mul(factor, t.left))))
            if any(_size(n.left) > _size(t.left) for n, t in zip(new, terms, strict=True)):
                return tree
            return Read(tuple(new), None if direct is None else mul(factor, direct))
    return tree


def _size(expr: Expr) -> int:
    above: list[Expr] = []
    below: list[Expr] = []
    _split(expr, above, below)
    return len([e for e in above if not is_one(e)]) + len(below)


# --- parts of Systems -----------------------------------------------------------------------------


def _block(system: System, state: str) -> Block:
    for b in system.blocks:
        if b.state == state:
            return b
    raise GaugeError(f"there is no state {state}")


def _stage(system: System, state: str) -> Stage:
    return next(s for s in system.stages if any(b.state == state for b in s.blocks))
