"""Rule "two-ways": equality of mixers with states that run from the end to the start.

Two steps show it, each by rows (`invariant`):

1. A state that runs backwards is the output of a mixer of its own, on the sequence in reversed
   order, where the state runs forwards. So it is shown of pairs of such states, one of each mixer,
   that one is a constant factor times the other at every token.
2. What a backward state was one token later is taken for an input, but for those that are a factor
   times another by step 1, which are the factor times the input of that. The value of a state at
   the token is what its update makes of this. The outputs are shown to be equal whatever the inputs
   are.

Theorem. Then the outputs are equal at every token. Proof. Let L tokens be given. Read from the last
to the first they are a sequence too, on which a backward state h_i = F(a_i, h_{i+1}), h_L = 0, is
the forward state of the same F: names read one token later are read one token earlier, and are 0
outside of the sequence either way. By 1 the states of a pair are x and f x, at every token, with a
factor f that always has a value. Then each mixer's output is what step 2 makes of these tokens with
x_{i+1} as the input beside token i, and the two are equal for all values of inputs, hence for
these. Sizes stay what they are in both steps. ∎

Reversed, a mixer may not say `first`, and a filter, a sum over the past or a forward state would
run the other way: a backward state that is made of these is not handled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dsfc.expr.arithmetic import ONE, mul, ones
from dsfc.expr.build import rewrite, walk
from dsfc.expr.declarations import Tensor
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Expr, Field, Fir, Mul, Now, Num, Ones, Param, Pow, Ref, Size, Time
from dsfc.system.ir import (
    Block,
    Direction,
    Drive,
    Factor,
    Gate,
    Output,
    Read,
    ReadOut,
    Stage,
    System,
    Term,
)
from dsfc.system.traverse import (
    map_expressions,
    map_trees,
    names_in,
    stage_expressions,
    terms,
    trees,
    value_expressions,
)
from dsfc.trusted.claim import Claim, ProportionalStates, TwoWays
from dsfc.trusted.comparable import array_names, comparable, positive
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.invariant import check_invariant, check_plain
from dsfc.trusted.rejected import Rejected

HIGHEST = 64
"""Exponents in a factor have smaller numerators: a power is multiplied out."""


def check_two_ways(claim: Claim, proof: TwoWays) -> None:
    """Checks a certificate of equality of mixers with states that run backwards.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here.
    """
    check_plain(claim, "two-ways")
    if claim.free:
        raise Rejected('rule "two-ways" says nothing of values that are inputs of their own')
    comparable(claim)
    for one in proof.pairs:
        check_invariant(reversed_claim(claim, one), one.rows)
    check_invariant(without_backward(claim, proof.pairs), proof.rows)


def backward_states(system: System) -> tuple[Block, ...]:
    """Returns the states that run from the end to the start."""
    return tuple(b for s in system.stages if s.direction is Direction.BACKWARD for b in s.blocks)


# --- step 1 ---------------------------------------------------------------------------------------


def reversed_claim(claim: Claim, pair: ProportionalStates) -> Claim:
    """Returns the claim that two backward states are proportional at every token.

    Args:
        claim: of the two mixers.
        pair: the states, and the factor; its rows are not read.

    Raises:
        Rejected: there is no such state, or the factor is none.
        Obstacle: a mixer that gives a state cannot be reversed.
    """
    _check_factor(claim, pair.factor)
    a, b = _reversed(claim.a, pair.a), _reversed(claim.b, pair.b)
    if pair.of_first:
        return replace(claim, a=a, b=_scaled(b, pair.factor))
    return replace(claim, a=_scaled(a, pair.factor), b=b)


def _scaled(system: System, factor: Expr) -> System:
    """A mixer with its output multiplied by a factor."""
    (out,) = system.outputs
    if not factor.axes <= frozenset(out.axes):
        raise Rejected("a factor has an axis that its state has not")
    return replace(system, outputs=(replace(out, value=Gate(factor, out.value)),))


def _check_factor(claim: Claim, factor: Expr) -> None:
    """Checks that a factor is one and the same in both mixers, real, and always has a value."""
    theirs, ours = (array_names(claim, second) for second in (False, True))
    above_0 = positive(claim)
    for e in walk(factor):
        if isinstance(e, Pow) and isinstance(e.exponent, Num):
            if abs(e.exponent.value.numerator) >= HIGHEST:
                raise Rejected("a factor has an exponent that is too large")
        match e:
            case Num() | Size() | Ones() | Mul() | Pow(Size(), Num()):
                continue
            case Param(name=name, kind=Field.REAL):
                if theirs.get(name, name) == ours.get(name, name):
                    continue
            case Pow(Param(name=name), Num(exponent)):
                if exponent in range(HIGHEST) or theirs.get(name, name) in above_0:
                    continue
        raise Rejected("a factor is no product of numbers, sizes and parameters of both")


def _reversed(system: System, state: str) -> System:
    """The mixer whose output is a backward state, on the sequence in reversed order."""
    block = next((b for b in backward_states(system) if b.state == state), None)
    if block is None:
        raise Rejected(f"`{state}` is no state that runs backwards")
    needed = _needed(system, state)
    stages = tuple(s for s in system.stages if any(b.state in needed for b in s.blocks))
    if any(s.direction is Direction.FORWARD for s in stages):
        raise Obstacle("a state that runs forwards is read")
    out = Output(state, Read((Term(state, 0, ONE, frozenset(), ONE),)), block.axes, block.field)
    alone = replace(
        system,
        streams=tuple(s for s in system.streams if s.name in needed),
        stages=tuple(Stage(Direction.FORWARD, tuple(map(_turned, s.blocks))) for s in stages),
        outputs=(out,),
        definition=(),
    )
    return map_expressions(map_trees(alone, _turned_read), lambda e: rewrite(e, _turned_name))


def _needed(system: System, state: str) -> set[str]:
    """The names of streams and states that a state is made of, itself among them."""
    out, left = set[str](), [state]
    while left:
        name = left.pop()
        if name in out:
            continue
        out.add(name)
        for stage in system.stages:
            if any(b.state == name for b in stage.blocks):
                left += names_in(stage_expressions(stage))
                left += (t.source for b in stage.blocks for f in b.chain for t in f.terms)
                left += (b.state for b in stage.blocks)
        for stream in system.streams:
            if stream.name == name:
                left += names_in(value_expressions(stream.value))
                left += () if isinstance(stream.value, Expr) else _sources(stream.value)
    return out


def _sources(tree: ReadOut) -> set[str]:
    return {t.source for t in terms(tree)}


def _turned(block: Block) -> Block:
    """A state that runs the other way; what is noted of it is left out."""
    chain = tuple(replace(f, terms=tuple(map(_turned_term, f.terms))) for f in block.chain)
    return Block(block.state, block.axes, block.field, chain, None)


def _turned_term(t: Term) -> Term:
    return replace(t, lag=-t.lag)


def _turned_read(tree: ReadOut) -> ReadOut:
    if isinstance(tree, Read):
        return replace(tree, terms=tuple(map(_turned_term, tree.terms)))
    return tree


def _turned_name(e: Expr) -> Expr | None:
    match e:
        case Fir() | Past() | Run() | Lag():
            raise Obstacle("a filter or a sum over the past is read")
        case Ref(name=name) if name == FIRST:
            raise Obstacle("which token is the first is read")
        case Ref(name=name, at=Now(lag)):
            return Ref(name, e.over, e.kind, e.when, Now(-lag))
    return None


# --- step 2 ---------------------------------------------------------------------------------------


def without_backward(claim: Claim, pairs: tuple[ProportionalStates, ...]) -> Claim:
    """Returns the claim of both mixers with what backward states were one token later as inputs.

    Args:
        claim: of the two mixers.
        pairs: backward states that are proportional at every token; their rows are not read.

    Raises:
        Rejected: a state stands in two pairs.
    """
    taken = _names(claim.a) | _names(claim.b) | {same for _, same in claim.names}
    own, theirs = (
        {b.state: _Input(_fresh(f"later_{b.state}", taken), ONE) for b in backward_states(system)}
        for system in (claim.a, claim.b)
    )
    for states in ([p.a for p in pairs], [p.b for p in pairs]):
        if len(set(states)) < len(states):
            raise Rejected("a backward state stands in two pairs")
    for pair in pairs:
        if pair.of_first:
            own[pair.a] = _Input(theirs[pair.b].name, pair.factor)
        else:
            theirs[pair.b] = _Input(own[pair.a].name, pair.factor)
    return replace(claim, a=_fed(claim.a, own, taken), b=_fed(claim.b, theirs, taken))


@dataclass(frozen=True, slots=True)
class _Input:
    """The input that a backward state is made of, and what it is multiplied by."""

    name: str
    factor: Expr


def _names(system: System) -> set[str]:
    tensors = (*system.inputs, *system.params, *system.buffers, *system.outputs)
    named = (*tensors, *system.streams, *system.abstracts, *system.definition)
    return {x.name for x in named} | {b.state for b in system.blocks}


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _fed(system: System, later: Mapping[str, _Input], taken: set[str]) -> System:
    """A mixer whose backward states are made of inputs at each token.

    Terms read states and no inputs, so a state that each token sets anew holds the input.

    Args:
        system: the mixer.
        later: backward state → what it was one token later.
        taken: names that both mixers have; those of the states that hold inputs join them.
    """
    blocks = backward_states(system)
    inputs = tuple(Tensor(later[b.state].name, b.axes, b.field) for b in blocks)
    holding = {b.state: _fresh(f"held_{b.state}", taken) for b in blocks}
    read_now = {t.source for tree in trees(system) for t in terms(tree) if t.lag == 0}

    def stage(s: Stage) -> Stage:
        if s.direction is Direction.FORWARD:
            return s
        set_anew = [_set_to(b, later[b.state], holding[b.state]) for b in s.blocks]
        needed = any(b.state in read_now for b in s.blocks)
        at_token = [_made_of(b, holding[b.state]) for b in s.blocks] if needed else []
        return Stage(Direction.FORWARD, (*set_anew, *at_token))

    def read(r: ReadOut) -> ReadOut:
        if not isinstance(r, Read):
            return r
        return replace(r, terms=tuple(_read_from(t, holding) for t in r.terms))

    fed = replace(
        system,
        inputs=(*system.inputs, *inputs),
        stages=tuple(map(stage, system.stages)),
        definition=(),
    )
    return map_trees(fed, read)


def _read_from(t: Term, holding: Mapping[str, str]) -> Term:
    """A term that reads what holds a backward state of one token later, where it reads that."""
    if t.source not in holding or t.lag == 0:
        return t
    if t.lag != Direction.BACKWARD:
        raise Obstacle(f"`{t.source}`, which runs backwards, is read with a lag of {t.lag}")
    return replace(t, source=holding[t.source], lag=0)


def _set_to(block: Block, read: _Input, name: str) -> Block:
    """The state that holds an input with the axes of a backward state, times a factor."""
    value = Ref(read.name, frozenset(block.axes), block.field, Time.TOKEN, Now(0))
    factor = Factor((), (Drive(mul(read.factor, value), ones(frozenset(block.axes))),))
    return Block(name, block.axes, block.field, (factor,), None)


def _made_of(block: Block, holder: str) -> Block:
    """A backward state at the token: its update, of what another state of the stage holds.

    The holder is set by the first factors of the stage, and read by the second ones.
    """
    copied = Factor((Term(holder, 0, ONE, frozenset(), ONE),), ())
    chain = (Factor((), ()), copied, *block.chain)
    return Block(block.state, block.axes, block.field, chain, None)
