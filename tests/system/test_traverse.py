"""Every pass visits all that every kind of node holds; what it holds is read off its fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from dsfc.expr.build import ONE, mul
from dsfc.expr.declarations import FlowRule, MapTensor, Tensor
from dsfc.expr.over_time import Past, Relation
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Now, Param, Ref, Time
from dsfc.system import ir
from dsfc.system.dependency_order import needs_of, ordered, reached_from
from dsfc.system.ir import (
    Block,
    Direct,
    Drive,
    Factor,
    Output,
    ReadOut,
    Stage,
    Stream,
    System,
    Term,
)
from dsfc.system.traverse import (
    READ_OUTS,
    arguments,
    expressions,
    held,
    map_trees,
    names_in,
    own_expressions,
    parts,
    stage_expressions,
    system_expressions,
)
from dsfc.system.verify import SystemInvariantError, verify

AXIS = Axis(0, "d")
MAP = LinearMap("W", (), (AXIS,), (AXIS,))


class Filler:
    """Makes a node of any kind, a name of its own in each place for an expression."""

    def __init__(self, lag: int = 0) -> None:
        self.lag = lag
        self.names: list[str] = []

    def marker(self) -> Ref:
        self.names.append(f"m{len(self.names)}")
        return Ref(self.names[-1], frozenset(), Field.REAL, Time.TOKEN, Now(self.lag))

    def node(self, kind: type) -> Any:
        hints = get_type_hints(kind)
        return kind(**{f.name: self.value(hints[f.name]) for f in fields(kind) if f.init})

    def value(self, hint: Any) -> Any:
        if hint is Expr:
            return self.marker()
        if hint == ReadOut:
            return Direct(self.marker())
        if hint is Past:
            return Past("j", Relation.UP_TO, self.marker())
        if get_origin(hint) is tuple:
            kind, *rest = get_args(hint)
            if rest == [...]:
                return () if kind is str else tuple(self.value(kind) for _ in range(2))
            return tuple(map(self.value, (kind, *rest)))
        options = [o for o in get_args(hint) if o is not NoneType]
        if options and get_origin(hint) is not frozenset:
            return self.value(options[0])
        if is_dataclass(hint) and hint not in SAMPLES:
            return self.node(hint)
        return SAMPLES[get_origin(hint) or hint]


SAMPLES: dict[Any, Any] = {
    str: "S",
    int: 0,
    bool: False,
    frozenset: frozenset(),
    Axis: AXIS,
    LinearMap: MAP,
    Field: Field.REAL,
    FlowRule: next(iter(FlowRule)),
    ir.Provenance: None,
    ir.Span: None,
    **{k: next(iter(k)) for k in (ir.ComplexPart, ir.CouplingKind, ir.LogForm, ir.GaugeKind)},
    ir.GuardKind: ir.GuardKind.ADD,
    ir.Direction: ir.Direction.FORWARD,
}
KINDS = pytest.mark.parametrize("kind", READ_OUTS, ids=lambda k: k.__name__)


def system_of(tree: ReadOut, names: list[str], stages: tuple[Stage, ...] = ()) -> System:
    """y = the tree, each name that it reads a stream of its own, a parameter times the input."""
    u = Ref("u", frozenset(), Field.REAL, Time.TOKEN, Now(0))
    streams = (Stream(n, mul(Param(f"p_{n}", frozenset()), u), (), Field.REAL) for n in names)
    return System(
        name="one_node",
        doc=None,
        axes=(),
        inputs=(Tensor("u", ()),),
        params=(*(Tensor(f"p_{n}", ()) for n in names), MapTensor(MAP)),
        buffers=(),
        abstracts=(),
        streams=tuple(streams),
        stages=stages,
        outputs=(Output("y", tree, (), Field.REAL),),
        definition=(),
        claims=(),
        derivation=(),
    )


UPDATE = Factor((Term("S", 1, ONE, frozenset(), ONE),), (Drive(ONE, ONE),))
STATE = Block("S", (), Field.REAL, (UPDATE,), None)
STAGE = Stage(ir.Direction.FORWARD, (STATE,))


@KINDS
def test_what_a_node_holds_is_all_that_stands_in_its_fields(kind: type) -> None:
    fill = Filler()
    tree = fill.node(kind)
    own = names_in(own_expressions(tree))
    below = [names_in(expressions(a)) for a in arguments(tree)]
    sides = names_in(x for t in getattr(tree, "terms", ()) for x in (t.left, t.right))
    assert own | sides | set().union(*below) == set(fill.names)
    assert len(list(parts(tree))) == 1 + len(arguments(tree))


@KINDS
def test_order_and_reach_see_every_name(kind: type) -> None:
    fill = Filler()
    tree = fill.node(kind)
    names = set(fill.names)
    home = {"S": "stage S"}
    reads = {"stage S"} if getattr(tree, "terms", ()) else set()
    assert needs_of(tree, home) == names | reads
    system = system_of(tree, fill.names, (STAGE,))
    assert {s.name for s in ordered(system, reached_only=True).streams} == names
    grown = replace(system, streams=(*system.streams, Stream("x", tree, (), Field.REAL)))
    assert names <= reached_from(grown, ["x"])
    assert names <= names_in(system_expressions(system))


@KINDS
def test_mapping_trees_to_themselves_changes_nothing(kind: type) -> None:
    fill = Filler()
    system = system_of(fill.node(kind), fill.names, (STAGE,))
    assert map_trees(system, lambda t: t) == system


@KINDS
def test_verification_misses_every_name_that_nothing_defines(kind: type) -> None:
    fill = Filler()
    tree = fill.node(kind)
    stages = (STAGE,) if getattr(tree, "terms", ()) else ()
    whole = system_of(tree, fill.names, stages)
    for name in fill.names:
        rest = tuple(s for s in whole.streams if s.name != name)
        with pytest.raises(SystemInvariantError, match=f"no input or stream `{name}`"):
            verify(replace(whole, streams=rest))


def test_a_chain_is_walked_and_its_notes_are_passed_over() -> None:
    fill = Filler()
    stage = fill.node(Stage)
    noted = {n for b in stage.blocks for note in notes(b) for n in names_in(held(note))}
    walked = names_in(stage_expressions(stage))
    assert walked | noted == set(fill.names) and not walked & noted
    assert needs_of(stage, {}) == walked


def notes(block: Block) -> Iterator[Any]:
    """The notes of a block and of its drives."""
    yield from (v for v in (block.decay, block.flow, block.gauge) if v is not None)
    yield from (d.coupling for f in block.chain for d in f.drives)
