"""A system on a constant sequence: from some token on, one affine map takes states to states.

Read off a System here, or refused: that every coefficient is a function of the last few tokens,
that each state entry is carried by a number of its own, its *base* λ, and that the output is affine
in the states. On a constant sequence whatever reads nothing from before the first token is the same
at all tokens. Let that be so from token w on. With h_i = λ h_{i-1} + b entry by entry, and
y_i = c h_i + c' h_{i-1} + d, the increments are

    s_l = y_l - y_{l-1} = Σ_entries w λ^l      for l ≥ w + 2, with numbers w,

and an entry of base 0 has no part in them. Nothing depends on how many entries there are: the range
of λ is that of its expression, at every index and every size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Fir,
    Iota,
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
    rebuild,
)
from dsfc.system.ir import (
    Block,
    Cast,
    Direct,
    Direction,
    Gate,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Sum,
    SumOver,
    System,
    Term,
)
from dsfc.system.known import ranges as ranges_of
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generalize_inputs import expressions
from dsfc.trusted.rules.regions import Region, region_of

_TOKENWISE = (
    Num, Size, Ones, Iota, Param, Ref, Add, Mul, Div, Pow, Reduce, Map, Fir, Rename, Prim, Series,
)  # fmt: skip
"""Nodes that read time through `Ref` alone."""

_ZERO, _ONE = Num(Fraction(0)), Num(Fraction(1))


@dataclass(frozen=True, slots=True)
class Base:
    """What carries the entries of one state on a constant sequence.

    Attributes:
        state: the name of the state.
        axes: those of its entries.
        value: λ, an expression of inputs at one token and parameters.
        region: where λ lies, for all inputs, parameters and sizes.
    """

    state: str
    axes: tuple[Axis, ...]
    value: Expr
    region: Region


@dataclass(frozen=True, slots=True)
class Steady:
    """A system on constant sequences.

    Attributes:
        bases: one for each state.
        window: w, the token from which on coefficients are the same, at the sizes asked for.
    """

    bases: tuple[Base, ...]
    window: int


def steady(system: System, sizes: Mapping[str, int]) -> Steady:
    """Returns what a system is on constant sequences.

    Args:
        system: which one.
        sizes: of its axes; only the window depends on them.

    Raises:
        Obstacle: it is not token-local, not diagonal, or not affine in its states.
    """
    _affine(system.outputs[0].value)
    walk = _Walk(system, sizes)
    window = max((walk.reach(e) for e in expressions((system.stages, system.outputs))), default=0)
    ranges = ranges_of(system)
    bases = []
    for stage in system.stages:
        if stage.direction is not Direction.FORWARD:
            raise Obstacle("a state runs backwards in time")
        for block in stage.blocks:
            value = _base(block, walk)
            bases.append(Base(block.state, block.axes, value, region_of(value, ranges)))
    return Steady(tuple(bases), window)


def _base(block: Block, walk: _Walk) -> Expr:
    """The number that carries an entry of a state on, its factors multiplied."""
    if not block.chain:
        raise Obstacle(f"the state `{block.state}` has no update")
    parts = []
    for factor in block.chain:
        for t in factor.terms:
            if not _own(t, block):
                raise Obstacle(f"entries of the state `{block.state}` are coupled")
        parts.append(Add(tuple(Mul((t.left, t.right)) for t in factor.terms)))
    return walk.inlined(Mul(tuple(parts)))


def _own(t: Term, block: Block) -> bool:
    """Whether a term takes each entry to itself."""
    plain = t.source == block.state and not t.over and t.matrix is None and t.after is None
    return plain and t.left.axes | t.right.axes <= frozenset(block.axes)


def _affine(r: ReadOut) -> None:
    """Raises an Obstacle unless a read-out is affine in the states, its coefficients token-wise."""
    match r:
        case Read(terms, _):
            if any(t.lag not in (0, 1) for t in terms):
                raise Obstacle("a state is read at another token")
        case Direct():
            pass
        case Gate(_, arg) | Cast(_, arg) | MapOut(_, arg) | SumOver(_, arg):
            _affine(arg)
        case Sum(args):
            for a in args:
                _affine(a)
        case Product(args):
            read = [a for a in args if not _stateless(a)]
            if len(read) > 1:
                raise Obstacle("values of states are multiplied")
            for a in read:
                _affine(a)
        case Ratio(num, den) if _stateless(den):
            _affine(num)
        case Post(_, args) if all(map(_stateless, args)):
            pass
        case Ratio():
            raise Obstacle("the output is divided by a value of states")
        case Post(name):
            raise Obstacle(f"`{name}` is applied to values of states")
        case _:
            raise Obstacle("a sum over the past has no finite state")


def _stateless(r: ReadOut) -> bool:
    """Whether a read-out reads no state."""
    match r:
        case Read(terms, _):
            return not terms
        case Direct():
            return True
        case Gate(_, arg) | Cast(_, arg) | MapOut(_, arg) | SumOver(_, arg):
            return _stateless(arg)
        case Sum(args) | Product(args) | Post(_, args):
            return all(map(_stateless, args))
        case Ratio(num, den):
            return _stateless(num) and _stateless(den)
    return False


class _Walk:
    """Expressions of one system on constant sequences."""

    def __init__(self, system: System, sizes: Mapping[str, int]) -> None:
        self.inputs = {t.name for t in system.inputs}
        self.sizes = sizes
        self.streams: dict[str, Expr] = {}
        for s in system.streams:
            if not isinstance(s.value, Expr):
                raise Obstacle(f"`{s.name}` reads states")
            self.streams[s.name] = s.value
        self._reach: dict[Expr, int] = {}
        self._inlined: dict[Expr, Expr] = {}

    def reach(self, e: Expr) -> int:
        """How many tokens at the start may have another value than later ones.

        Raises:
            Obstacle: the expression is not a function of the last few tokens.
        """
        if e not in self._reach:
            self._reach[e] = self._reach_of(e)
        return self._reach[e]

    def _reach_of(self, e: Expr) -> int:
        if not isinstance(e, _TOKENWISE):
            raise Obstacle(f"`{type(e).__name__}` stands in a definition")
        if not isinstance(e, Ref):
            inside = max((self.reach(c) for c in children(e)), default=0)
            if isinstance(e, Fir):
                if e.reverse:
                    raise Obstacle("a later token is read")
                inside += self.sizes[e.axis.name] - 1
            return inside
        if e.at is None:
            return self.reach(self._stream(e.name))
        if not isinstance(e.at, Now) or e.at.lag < 0:
            raise Obstacle(f"`{e.name}` is read at another token than one of the last few")
        if e.name == FIRST:
            return e.at.lag + 1
        return e.at.lag + (0 if e.name in self.inputs else self.reach(self._stream(e.name)))

    def _stream(self, name: str) -> Expr:
        if name not in self.streams:
            raise Obstacle(f"the state `{name}` is read inside a definition")
        return self.streams[name]

    def inlined(self, e: Expr) -> Expr:
        """The value on a constant sequence, after the first tokens, of inputs at one token."""
        if e not in self._inlined:
            self.reach(e)
            self._inlined[e] = self._inline(e)
        return self._inlined[e]

    def _inline(self, e: Expr) -> Expr:
        if isinstance(e, Ref):
            if e.name == FIRST:
                return _ZERO
            if e.name in self.inputs:
                return dataclasses.replace(e, at=Now(0))
            return self.inlined(self._stream(e.name))
        if isinstance(e, Fir):
            weighted = Mul((self.inlined(e.weight), self.inlined(e.arg)))
            return Reduce(Reduction.SUM, e.axis, weighted)
        new = tuple(self.inlined(c) for c in children(e))
        match e:
            case Add():
                kept = tuple(a for a in new if a is not _ZERO)
                return Add(kept) if len(kept) > 1 else kept[0] if kept else _ZERO
            case Mul():
                if any(a is _ZERO for a in new):
                    return _ZERO
                kept = tuple(a for a in new if a is not _ONE)
                return Mul(kept) if len(kept) > 1 else kept[0] if kept else _ONE
            case Div():
                # Where the quotient exists at all, its denominator is not 0.
                if new[0] is new[1]:
                    return _ONE
                return _ZERO if new[0] is _ZERO else rebuild(e, new)
        return rebuild(e, new)
