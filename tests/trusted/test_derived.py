"""Certificates whose derived forms are not those of the definitions beside them: none is accepted.

A rule reads the derived form, or the definition, and what it shows is said of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText, read
from dsfc.derive.again import derived_again
from dsfc.expr.build import ONE, ZERO, mul, ones, rewrite
from dsfc.expr.tree import Expr, Ref, Time
from dsfc.prover.equivalent import equivalent
from dsfc.prover.sizes import chosen
from dsfc.prover.subsumes import subsumes
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import Definition, Direct, System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import (
    Assumed,
    Assumption,
    Certificate,
    Claim,
    Conditional,
    ConstantSequence,
    Invariant,
    MarkovParameters,
    Same,
    SeparatingSequences,
    TwoWays,
    Witness,
)
from dsfc.trusted.derived import check_derived
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.markov import Markov
from dsfc.trusted.statement import state

SPECS = Path(__file__).parent.parent.parent / "specs"
NO_FORM = ("lstm", "slstm", "qkv")
"""Mixers that have no derived form."""
SHIPPED = sorted(
    p.stem
    for p in SPECS.glob("*.dsf")
    if p.stem not in NO_FORM and f"mixer {p.stem}" in p.read_text(encoding="utf-8")
)


def shipped(name: str) -> System:
    return read(SPECS / f"{name}.dsf").compilation(name).system


def hollow(system: System) -> System:
    """The definition of a mixer beside a derived form whose output is 1."""
    out = system.outputs[0]
    one = Direct(ones(frozenset(out.axes)))
    return replace(system, streams=(), stages=(), outputs=(replace(out, value=one),))


def renounced(system: System) -> System:
    """The derived form of a mixer beside a definition whose output is 1."""
    out = system.outputs[0]
    one = Definition(out.name, ones(frozenset(out.axes)), out.axes, out.field)
    return replace(system, definition=(one,))


def reason(claim: Claim, proof: object) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(Certificate(claim, proof)))
    return str(caught.value)


def shipped_pairs() -> list:
    """Each shipped mixer with the next one; in the full tier with every other."""
    return [
        pytest.param(a, b, marks=[] if (k - j) % len(SHIPPED) == 1 else pytest.mark.full)
        for j, a in enumerate(SHIPPED)
        for k, b in enumerate(SHIPPED)
        if j != k
    ]


@pytest.mark.share(8)
@pytest.mark.parametrize("a, b", shipped_pairs())
def test_no_two_shipped_mixers_are_equal_by_hollow_systems(a: str, b: str) -> None:
    left, right = hollow(shipped(a)), hollow(shipped(b))
    stated = Claim(left, right, (), chosen(left, right, 1))
    why = reason(stated, Invariant((), False))
    # Others cannot be put side by side, whatever their definitions are.
    assert why.endswith("is not that of its definition") or "malformed: " in why or "sizes" in why


def test_softmax_is_not_linear_attention() -> None:
    left, right = hollow(shipped("softmax")), hollow(shipped("linear_attn"))
    sizes = tuple((name, 1) for name in ("d", "h", "n", "p"))
    stated = Claim(left, right, (), sizes, every=("d", "h", "n", "p"))
    why = reason(stated, Invariant((), False))
    assert why == "the derived form of softmax is not that of its definition"


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_mixer_is_derived_again_from_its_definition(name: str) -> None:
    system = shipped(name)
    again = derived_again(system)
    assert again is not None and again.definition == system.definition
    assert derived_again(again) == again
    check(write(Certificate(Claim(system, system, (), chosen(system, system, 1)), Same())))


def test_a_definition_that_no_spec_can_mean_has_no_system() -> None:
    """A state is read at some token; a document may say otherwise."""
    system = shipped("s6")
    updates = {d.name for d in system.definition if d.update}

    def timeless(e: Expr) -> Expr | None:
        if not (isinstance(e, Ref) and e.name in updates):
            return None
        return Ref(e.name, e.over, e.kind, Time.CONST, None)

    definition = tuple(replace(d, value=rewrite(d.value, timeless)) for d in system.definition)
    assert definition != system.definition
    assert derived_again(replace(system, definition=definition)) is None


# --- every rule -----------------------------------------------------------------------------------


PAIRS = SPECS.parent / "tests" / "prover" / "pairs"


def pair(file: str, a: str, b: str) -> tuple[System, System]:
    text = read(PAIRS / f"{file}.dsf")
    return text.compilation(a).system, text.compilation(b).system


def equal(file: str, a: str, b: str, conditions: bool = False) -> Certificate:
    return equivalent(*pair(file, a, b), conditions=conditions).certificate


def markov(file: str, a: str, b: str) -> Certificate:
    left, right = pair(file, a, b)
    claim = Claim(left, right, (), chosen(left, right, 1))
    return Certificate(claim, MarkovParameters(Markov(state(claim, False)).count, False))


def no_case(file: str, a: str, b: str) -> Certificate:
    return subsumes(*pair(file, a, b)).certificate


def assumed(file: str, a: str, b: str) -> Certificate:
    """A proof of equality under what holds anyway."""
    made = equal(file, a, b)
    claim = replace(made.claim, assumed=(Assumption(ONE, ">", ZERO),))
    return Certificate(claim, Assumed(made.proof, made.defined), made.defined)


def two_ways() -> Certificate:
    """A sum over later tokens, and a state that runs backwards."""
    head = "mixer m { dims p\n  input k : p\n  "
    texts = "y = sum[j ≥ i](k[j])", "state T : p backward\n  T = T[i+1] + k\n  y = T"
    systems = (
        SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", f"{head}{text}\n}}\n")))
        .compilation("m").system for text in texts
    )  # fmt: skip
    return equivalent(*systems).certificate


BY_RULE: dict[type, Callable[[], Certificate]] = {
    Invariant: lambda: equal("attention", "post", "eta_gauge"),
    MarkovParameters: lambda: markov("linear", "sum_of_modes", "chain_delayed"),
    Witness: lambda: equal("attention", "post", "eta_late"),
    Same: lambda: equal("attention", "post", "post"),
    Conditional: lambda: equal("lattice", "linear", "template", conditions=True),
    ConstantSequence: lambda: no_case("cases", "plain", "decayed"),
    SeparatingSequences: lambda: no_case("cases", "two_taps", "plain"),
    Assumed: lambda: assumed("attention", "post", "eta_gauge"),
    TwoWays: two_ways,
}


def test_every_rule_is_here() -> None:
    assert {t.__name__ for t in BY_RULE} == {
        t.__name__ for t in get_args(get_type_hints(Certificate)["proof"])
    }


@pytest.mark.share(4)
@pytest.mark.parametrize("rule", BY_RULE, ids=lambda t: t.__name__)
def test_every_rule_speaks_of_definitions(rule: type) -> None:
    made = BY_RULE[rule]()
    claim = made.claim
    assert isinstance(made.proof, rule)
    check(write(made))
    for forged in (
        replace(claim, a=hollow(claim.a)),
        replace(claim, b=hollow(claim.b)),
        replace(claim, a=hollow(claim.a), b=hollow(claim.b)),
        replace(claim, a=renounced(claim.a)),
        replace(claim, b=renounced(claim.b)),
        replace(claim, a=renounced(claim.a), b=renounced(claim.b)),
    ):
        reason(forged, made.proof)
        with pytest.raises(Rejected, match="is not that of its definition"):
            check_derived(forged)


# --- what a derived form says twice ---------------------------------------------------------------


def test_a_decay_is_that_of_its_chain() -> None:
    """A decay repeats the diagonal of the chain, and no rule reads it."""
    gla = shipped("gla")
    stage = gla.stages[0]
    block = stage.blocks[0]
    slow = replace(block.decay, value=ones(block.decay.value.axes))
    forged = replace(gla, stages=(replace(stage, blocks=(replace(block, decay=slow),)),))
    sizes = tuple(sorted({d.axis.name: 1 for d in gla.axes}.items()))
    why = reason(Claim(forged, forged, (), sizes), Same())
    assert why == "the derived form of gla is not that of its definition"


def test_a_definition_without_a_derived_form_proves_nothing() -> None:
    """s = s[i-1] s[i-1] + u is linear in nothing."""
    post, _ = pair("attention", "as_state", "post")
    update = next(d for d in post.definition if d.update)
    squared = replace(update, value=mul(update.value, update.value))
    forged = replace(post, definition=tuple(squared if d is update else d for d in post.definition))
    sizes = tuple(sorted({d.axis.name: 1 for d in post.axes}.items()))
    assert derived_again(forged) is None
    assert "is not that of its definition" in reason(Claim(forged, forged, (), sizes), Same())
