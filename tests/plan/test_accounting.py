"""Every term of a System stands in its plan: what is dropped from either is missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from shipped_specs import PLANNED
from unusual_specs import COMPILED, GATES, STEPPED, thirds

from dsfc.expr.build import add, mul, num, walk
from dsfc.expr.tree import Expr, Ref
from dsfc.plan.accounting import settle
from dsfc.plan.build import plan as plan_of
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Plan, Pointwise
from dsfc.plan.pairs_ir import Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan
from dsfc.plan.verify import verify
from dsfc.structure.classify import classify
from dsfc.system.ir import Block, Direction, System
from dsfc.system.traverse import map_blocks

PARTS = {
    "decay": "diagonal",
    "low_rank": "low-rank part",
    "delta": "low-rank part",
    "transition": "linear map",
}
BROKEN = {
    "decay": "retnet",
    "low_rank": "rwkv7",
    "delta": "deltanet",
    "transition": "linear_rnn",
}


def without(plan: Plan, at: int, *instead: object) -> Plan:
    return replace(plan, kernels=(*plan.kernels[:at], *instead, *plan.kernels[at + 1 :]))


def damaged_plans(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """The plan with one part of a scan dropped, or with a whole scan dropped."""
    for at, k in enumerate(plan.kernels):
        if isinstance(k, Scan | Attention):
            yield "kernel", without(plan, at)
        if isinstance(k, Scan):
            for part in PARTS:
                if getattr(k, part) is not None:
                    yield part, without(plan, at, replace(k, **{part: None}))
            for c in k.columns:
                rest = tuple(other for other in k.columns if other is not c)
                yield "column", without(plan, at, replace(k, columns=rest))


def refs(e: Expr) -> Iterator[Ref]:
    return (part for part in walk(e) if isinstance(part, Ref))


def caught(plan: Plan, system: System) -> bool:
    try:
        verify(plan)
        settle(plan, system)
    except PlanError:
        return True
    return False


@pytest.mark.share(5)
@pytest.mark.parametrize("name", PLANNED)
def test_nothing_of_a_right_plan_is_missing_and_all_that_is_dropped_is(name: str, shipped) -> None:
    spec = shipped(name)
    settle(spec.plan, spec.computed)
    for part, damaged in damaged_plans(spec.plan):
        assert caught(damaged, spec.computed), part


@pytest.mark.share(5, ci=20)
@pytest.mark.parametrize("name", thirds((), pytest.mark.ci))
def test_unusual_plans_settle_and_their_damaged_ones_do_not(name: str, load) -> None:
    spec = load(name, COMPILED[name])
    settle(spec.plan, spec.computed)
    for part, damaged in damaged_plans(spec.plan):
        assert caught(damaged, spec.computed), part


@pytest.mark.parametrize("part", PARTS)
def test_accounting_alone_names_the_part_that_is_missing(part: str, shipped) -> None:
    name = BROKEN[part]
    spec = shipped(name)
    (damaged,) = (plan for what, plan in damaged_plans(spec.plan) if what == part)
    with pytest.raises(PlanError, match=f"{PARTS[part]} is not in the plan"):
        settle(damaged, spec.computed)


def richer_systems(system: System) -> Iterator[System]:
    """The System with one more term or drive in the chain of one of its blocks."""
    states = [b.state for b in system.blocks]
    for block in system.blocks:
        last = block.chain[-1]
        drive = next(d for f in block.chain for d in f.drives)
        term = next(t for f in block.chain for t in f.terms)
        for more in (
            replace(last, drives=(*last.drives, drive)),
            *(
                replace(last, terms=(*last.terms, replace(term, source=s)))
                for s in states
                if s != block.state
            ),
            replace(last, terms=(*last.terms, replace(term, over=frozenset(block.axes[:1])))),
        ):
            richer = replace(block, chain=(*block.chain[:-1], more))
            yield map_blocks(system, lambda b, old=block, new=richer: new if b is old else b)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["retnet", "s6", "gla", "rwkv4", "deltanet", "mlstm", "hgrn"])
def test_a_term_that_the_planner_did_not_see_is_missed(name: str, shipped) -> None:
    spec = shipped(name)
    found = list(richer_systems(spec.computed))
    assert len(found) >= 2
    for system in found:
        with pytest.raises(PlanError, match="is not in the plan"):
            settle(spec.plan, system)


@pytest.mark.parametrize("name", [n for n in STEPPED if n.startswith("feedback_of_")])
def test_a_plan_of_states_that_do_not_meet_does_not_settle_states_that_do(name: str, load) -> None:
    system = load(name, STEPPED[name]).system

    def alone(block: Block) -> Block:
        chain = (
            replace(f, terms=tuple(t for t in f.terms if t.source == block.state))
            for f in block.chain
        )
        return replace(block, chain=tuple(chain))

    apart = map_blocks(system, alone)
    stages = tuple(replace(s, blocks=(b,)) for s in apart.stages for b in s.blocks)
    apart = replace(apart, stages=stages)
    plan = plan_of(apart, classify(apart))
    settle(plan, apart)
    with pytest.raises(PlanError, match=r"state \w: .*term of state \w is not in the plan"):
        settle(plan, system)


@pytest.mark.parametrize("name", [n for n in STEPPED if n.startswith("feedback_of_")])
def test_a_recurrence_runs_no_part_that_the_system_lacks(name: str, load) -> None:
    spec = load(name, STEPPED[name])
    at, kernel = next(
        (k, kernel) for k, kernel in enumerate(spec.plan.kernels) if isinstance(kernel, Recurrence)
    )
    (first, *others), *levels = kernel.levels
    read = {name for state in kernel.states for name in (state.before, state.after)}
    drive = next(a for a in first.value.args if not read & {e.name for e in refs(a)})

    def with_more(more: Expr) -> Plan:
        value = replace(first, value=add(first.value, more))
        return without(spec.plan, at, replace(kernel, levels=((value, *others), *levels)))

    settle(with_more(mul(num(2), drive)), spec.computed)  # any number of one kind
    with pytest.raises(PlanError, match=r"state \w: drive is not in the system"):
        settle(with_more(mul(drive, drive)), spec.computed)


def test_reads_and_directions_are_those_of_the_system(load) -> None:
    spec = load("two_reads", GATES + "s = a * s[i-1] + u; t = s; y = s + c * s[i-1]")
    settle(spec.plan, spec.computed)
    for at, k in enumerate(spec.plan.kernels):
        if isinstance(k, Scan):
            exchanged = without(spec.plan, at, replace(k, before=not k.before))
            with pytest.raises(PlanError, match=r"its read (before|after) its update is not in"):
                settle(exchanged, spec.computed)
    (stage,) = spec.computed.stages
    backward = replace(spec.computed, stages=(replace(stage, direction=Direction.BACKWARD),))
    with pytest.raises(PlanError, match="runs the other way"):
        settle(spec.plan, backward)


def test_a_state_whose_outputs_are_numbers_is_missed(shipped) -> None:
    """Accounting alone sees it: each buffer is written once."""
    spec = shipped("retnet")
    at = next(k for k, kernel in enumerate(spec.plan.kernels) if isinstance(kernel, Scan))
    zeros = (Pointwise(c.output, num(0)) for c in spec.plan.kernels[at].columns)
    with pytest.raises(PlanError, match=r"state \w+ is read and is not in the plan"):
        settle(without(spec.plan, at, *zeros), spec.computed)


def test_a_read_that_cancels_owes_nothing(load) -> None:
    """The System keeps a term of weight 0, which the planner does not run."""
    body = """dims d, heads h = 2, n = 3, p = 2
  input u : d
  param W : d -> h × n × p
  param V : d -> p × h
  state S : h × p × n
  S = 1/2 * S[i-1] + W u
  o = sum[n](S[i-1])
  y = V u * sigmoid(o - o)"""
    spec = load("reads_cancel", body)
    assert not any(k.before for k in spec.plan.kernels if isinstance(k, Scan))
    settle(spec.plan, spec.computed)


def test_a_decay_of_one_owes_nothing_and_any_other_owes_a_diagonal(load) -> None:
    body = "dims d\n input u : d\n state s : d\n s = {} * s[i-1] + u; y = s"
    steady, decays = (load(f"by_{n}", body.format(v)) for n, v in (("one", "1"), ("half", "1/2")))
    settle(steady.plan, steady.system)
    settle(decays.plan, steady.system)  # a decay that is 1, if nobody saw that it is
    with pytest.raises(PlanError, match="state s: diagonal is not in the plan"):
        settle(steady.plan, decays.system)
