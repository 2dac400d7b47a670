"""Padding and sequence starts as algebra: a padded step is Λ = I, B = 0; a start is Λ = 0."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dsfc.expr.build import ONE, add, mul, num, ones, rewrite, sub
from dsfc.expr.declarations import Tensor
from dsfc.expr.max_plus import LOWEST
from dsfc.expr.tree import Expr, Field, Fir, Now, Past, Ref, Time
from dsfc.expr.words import FIRST
from dsfc.system.ir import (
    Block,
    Cache,
    Drive,
    Factor,
    MaxPlus,
    Read,
    ReadOut,
    Stage,
    Step,
    Stream,
    System,
    Term,
)
from dsfc.system.traverse import map_blocks, map_expressions, map_trees
from dsfc.transform.compose import CompositionError
from dsfc.transform.record import Record
from dsfc.transform.terms import Names

_NOTHING = num(Fraction(LOWEST))
"""The logarithm of a weight that counts for nothing."""


def masked(system: System, name: str = "mask") -> tuple[System, Record]:
    """Returns the System with padded tokens: where the mask is 0, Λ = I and B = 0.

    Args:
        system: the System.
        name: name of the new input, 1 at tokens that count and 0 at padding.
    """
    name = Names.of(system).fresh(name)
    keep = Ref(name, frozenset(), Field.REAL, Time.TOKEN, Now(0))

    def factor(b: Block, f: Factor) -> Factor:
        lag = f.terms[0].lag if f.terms else 0
        terms: list[Term] = []
        own = False
        for t in f.terms:
            left = mul(keep, t.left)
            if t.source == b.state and not t.over and t.matrix is None and t.after is None:
                own = True
                left = add(left, mul(sub(ONE, keep), ones(t.left.axes)))
            terms.append(replace(t, left=left))
        if not own:
            terms.append(Term(b.state, lag, sub(ONE, keep), frozenset(), ONE))
        return Factor(tuple(terms), tuple(Drive(mul(keep, d.key), d.stream) for d in f.drives))

    def stage(s: Stage) -> Stage:
        blocks = []
        for b in s.blocks:
            chain = []
            for level, f in enumerate(b.chain):
                lag = int(s.direction) if level == 0 else 0
                made = factor(b, f)
                terms = tuple(replace(t, lag=lag) for t in made.terms)
                chain.append(Factor(terms, made.drives))
            blocks.append(replace(b, chain=tuple(chain), decay=None, flow=None))
        return replace(s, blocks=tuple(blocks))

    def stream(s: Stream) -> Stream:
        if not isinstance(s.value, MaxPlus):
            return s
        weight = add(mul(keep, s.value.log_weight), mul(_NOTHING, sub(ONE, keep)))
        decay = mul(keep, s.value.log_decay)
        return replace(s, value=replace(s.value, log_decay=decay, log_weight=weight))

    made = replace(
        system,
        inputs=(*system.inputs, Tensor(name, ())),
        streams=tuple(stream(s) for s in system.streams),
        stages=tuple(stage(s) for s in system.stages),
    )
    return made, Record("mask", (Step("mask", "Λ = I and B = 0 where it is 0"),), (("mask", name),))


def with_starts(system: System, name: str = "start") -> tuple[System, Record]:
    """Returns the System with sequence starts inside the row: Λ = 0 where a sequence starts.

    Several sequences stand one after the other, and each is computed as if it stood alone from a
    zero state. Values of earlier tokens are 0 beyond the start, and `first` is 1 at each start.

    Args:
        system: the System; none of its stages runs backwards.
        name: name of the new input, 1 at the first token of a sequence and 0 elsewhere.

    Raises:
        CompositionError: the System runs backwards, reads ahead, filters, or sums over the past
            without a finite state.
    """
    if any(s.direction < 0 for s in system.stages):
        raise CompositionError("a state that runs backwards ends at ends, not at starts")
    name = Names.of(system).fresh(name)
    start = Ref(name, frozenset(), Field.REAL, Time.TOKEN, Now(0))
    going = sub(ONE, start)

    maxima = {s.name for s in system.streams if isinstance(s.value, MaxPlus) and s.value.declared}

    def lagged(e: Expr) -> Expr | None:
        match e:
            case Ref(at=Now(1)) if e.name in maxima:
                return add(mul(going, e), mul(_NOTHING, start))
            case Ref() if e.name == FIRST:
                return Ref(name, e.over, e.kind, e.when, e.at)
            case Ref(at=Now(lag)) if lag > 0:
                inside = [
                    sub(ONE, Ref(name, frozenset(), Field.REAL, Time.TOKEN, Now(k)))
                    for k in range(lag)
                ]
                return mul(*inside, e)
            case Ref(at=Now(lag)) if lag < 0:
                raise CompositionError("a value of a later token is read")
            case Fir() | Past():
                raise CompositionError("a filter or a sum reaches over the start of a sequence")
        return None

    def stopped(t: Term) -> Term:
        return replace(t, left=mul(going, t.left)) if t.lag == 1 else t

    def block(b: Block) -> Block:
        chain = []
        for f in b.chain:
            drives = tuple(Drive(d.key, d.stream) for d in f.drives)
            chain.append(Factor(tuple(map(stopped, f.terms)), drives))
        return replace(b, chain=tuple(chain), decay=None, flow=None)

    def tree(r: ReadOut) -> ReadOut:
        if isinstance(r, Cache):
            raise CompositionError("a sum over the past reaches over the start of a sequence")
        if isinstance(r, MaxPlus):
            # At a start the past weighs nothing.
            return replace(r, log_decay=add(r.log_decay, mul(_NOTHING, start)))
        return replace(r, terms=tuple(map(stopped, r.terms))) if isinstance(r, Read) else r

    made = map_expressions(map_trees(system, tree), lambda e: rewrite(e, lagged))
    made = replace(map_blocks(made, block), inputs=(*system.inputs, Tensor(name, ())))
    step = Step("starts", "Λ = 0 where a sequence starts")
    return made, Record("starts", (step,), (("start", name),))
