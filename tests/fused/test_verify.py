"""A fused plan that is damaged, in any way, is refused with words that say where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dsfc.api.pipeline import Compilation
from dsfc.expr.build import ZERO, add, mul, prim
from dsfc.expr.tree import Expr, Field, Now, Ref, Time
from dsfc.fused.ir import FusedPlan
from dsfc.fused.verify import verify
from dsfc.plan.flow import PlanError, written_by
from dsfc.plan.scan_ir import Form, Scan

Damage = Callable[[FusedPlan], FusedPlan]


def other(name: str = "stranger") -> Ref:
    """A number of a token that is no leaf."""
    return Ref(name, frozenset(), Field.REAL, Time.TOKEN, Now(0))


def prologue(change: Callable[[Any], dict[str, Any]]) -> Damage:
    """Changes fields of the prologue, of what they are."""

    def damage(fused: FusedPlan) -> FusedPlan:
        (p,) = fused.prologues
        return replace(fused, prologues=(replace(p, **change(p)),))

    return damage


def matrix(change: Callable[[Any], dict[str, Any]]) -> Damage:
    """Changes fields of the prologue and epilogue of a matrix scan, of what they are."""

    def damage(fused: FusedPlan) -> FusedPlan:
        (m,) = fused.matrices
        return replace(fused, matrices=(replace(m, **change(m)),))

    return damage


def scan(**fields: Any) -> Damage:
    """Changes fields of the scan."""

    def damage(fused: FusedPlan) -> FusedPlan:
        kernels = (replace(k, **fields) if isinstance(k, Scan) else k for k in fused.plan.kernels)
        return replace(fused, plan=replace(fused.plan, kernels=tuple(kernels)))

    return damage


def without(buffer: str) -> Damage:
    """Takes the kernel away that writes a buffer."""

    def damage(fused: FusedPlan) -> FusedPlan:
        kernels = tuple(k for k in fused.plan.kernels if buffer not in written_by(k))
        return replace(fused, plan=replace(fused.plan, kernels=kernels))

    return damage


def plus(e: Expr) -> Expr:
    """The value and a number that is no leaf."""
    return add(e, other())


def cis(e: Expr) -> Expr:
    return mul(prim("cis", e), e)


def first(gradients: tuple[Expr, ...], e: Expr) -> tuple[Expr, ...]:
    return e, *gradients[1:]


STRANGER = "the prologue of S reads stranger, which is no leaf of it"
OF_MATRIX = "the prologue and epilogue of S_z"
DAMAGED: dict[str, tuple[str, Damage, str]] = {
    "a scan that is fused twice": (
        "s6",
        lambda f: replace(f, prologues=f.prologues * 2),
        "a scan is fused twice",
    ),
    "what is no scan": (
        "s6",
        prologue(lambda p: {"scan": "y"}),
        "y is fused and is no scan",
    ),
    "a prologue of a matrix scan": (
        "s6",
        scan(form=Form.MATRIX),
        "the prologue of S: a scan of form matrix has none",
    ),
    "a prologue of a scan without a decay": (
        "s6",
        scan(decay=None),
        "the prologue of S: a scan of form selective has none",
    ),
    "a leaf that nothing writes": (
        "s6",
        without("W_Delta_W_u_u"),
        "the prologue of S reads W_Delta_W_u_u, which is never written",
    ),
    "a leaf of a token among the constants": (
        "s6",
        prologue(lambda p: {"tokens": p.tokens[:1], "constants": (*p.tokens[1:], *p.constants)}),
        "the prologue of S: a leaf of a token has no time, or a constant has one",
    ),
    "a constant among the leaves of tokens": (
        "s6",
        prologue(lambda p: {"tokens": (*p.tokens, *p.constants[:1]), "constants": p.constants[1:]}),
        "the prologue of S: a leaf of a token has no time, or a constant has one",
    ),
    "rates of an elementwise scan": (
        "rg_lru",
        prologue(lambda p: {"rates": (("h_log_decay", p.log_decay),)}),
        "the prologue of h: rates and a sum go with a selective scan",
    ),
    "a sum of an elementwise scan": (
        "rg_lru",
        prologue(lambda p: {"added": p.value}),
        "the prologue of h: rates and a sum go with a selective scan",
    ),
    "a value of no leaf": ("s6", prologue(lambda p: {"value": plus(p.value)}), STRANGER),
    "a sum of no leaf": ("s6", prologue(lambda p: {"added": plus(p.added)}), STRANGER),
    "a rate of no leaf": (
        "s6",
        prologue(lambda p: {"rates": ((p.rates[0][0], other()),)}),
        STRANGER,
    ),
    "a name of no leaf": (
        "s6",
        prologue(lambda p: {"named": (*p.named, ("a", other()))}),
        STRANGER,
    ),
    "a decay of no leaf": (
        "rg_lru",
        prologue(lambda p: {"decay": plus(p.decay)}),
        "stranger, which is no leaf of it",
    ),
    "a log decay of no leaf": (
        "rg_lru",
        prologue(lambda p: {"log_decay": plus(p.log_decay)}),
        "stranger, which is no leaf of it",
    ),
    "a complex value": (
        "s6",
        prologue(lambda p: {"value": cis(p.value)}),
        "the prologue of S computes a complex number",
    ),
    "another decay than that of the scan": (
        "s6",
        prologue(lambda p: {"log_decay": p.value}),
        "the prologue of S: the decay of its scan has other leaves",
    ),
    "a leaf without a gradient": (
        "s6",
        prologue(lambda p: {"gradients": p.gradients[1:]}),
        "the prologue of S has 3 gradients of 4 leaves",
    ),
    "a gradient of 0": (
        "s6",
        prologue(lambda p: {"gradients": first(p.gradients, ZERO)}),
        "the prologue of S: the gradient of W_Delta_W_u_u is not that of what is computed",
    ),
    "a gradient of what nothing reads": (
        "s6",
        prologue(lambda p: {"added": ZERO}),
        "the prologue of S: the gradient of D is not that of what is computed",
    ),
    "a gradient of no leaf": (
        "s6",
        prologue(lambda p: {"gradients": first(p.gradients, other())}),
        STRANGER,
    ),
    "a prologue and epilogue of a selective scan": (
        "linear_attn",
        scan(form=Form.SELECTIVE),
        f"{OF_MATRIX}: a scan of form selective has none",
    ),
    "other queries": (
        "linear_attn",
        matrix(lambda m: {"read": m.key}),
        f"{OF_MATRIX}: its scan has other queries or keys",
    ),
    "other keys": (
        "linear_attn",
        matrix(lambda m: {"key": m.read}),
        f"{OF_MATRIX}: its scan has other queries or keys",
    ),
    "a factor that has entries": (
        "linear_attn",
        matrix(lambda m: {"factor": m.read.value}),
        f"{OF_MATRIX}: its factor is no number",
    ),
    "a normaliser of no column": (
        "linear_attn",
        matrix(lambda m: {"normaliser": m.read}),
        f"{OF_MATRIX}: its normaliser is not computed of a column",
    ),
    "a weight that nothing writes": (
        "mlstm",
        without("C_log_weight"),
        "the prologue and epilogue of C_z reads C_log_weight, which is never written",
    ),
    "a key of no leaf": (
        "linear_attn",
        matrix(lambda m: {"key": replace(m.key, value=plus(m.key.value))}),
        f"{OF_MATRIX} reads stranger, which is no leaf of it",
    ),
    "a key without its gradient": (
        "linear_attn",
        matrix(lambda m: {"key": replace(m.key, gradients=(ZERO,))}),
        f"{OF_MATRIX}: the gradient of k is not that of what is computed",
    ),
    "a plan that is none": ("s6", without("b"), "b"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_fused_plan_is_refused(what: str, shipped: Callable[[str], Compilation]) -> None:
    spec, damage, message = DAMAGED[what]
    fused = shipped(spec).fused()
    verify(fused)
    with pytest.raises(PlanError) as error:
        verify(damage(fused))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "what", ["name", "inputs", "params", "buffers", "states", "registers", "adjoints", "output"]
)
def test_a_fused_plan_has_what_its_original_has(
    what: str, shipped: Callable[[str], Compilation]
) -> None:
    fused = shipped("s6").fused()
    changed = replace(fused, original=replace(fused.original, **{what: "another"}))
    with pytest.raises(PlanError, match=f"the fused plan has other {what} than its original"):
        verify(changed)
