"""L3, updates: each state's update as an ordered chain of affine factors.

    S = F + β * k ⊗ (v − k · F),  F = α * S[i-1]     →     [diag α] then [1 − βk kᵀ; βk·v]

When a definition F with the state's axes is the only thing an update reads of its stage, F is the
unknown of a factor of its own, and so on down. Products of such factors stay readable, and kernels
for products of low-rank updates need them. Factors that are only diagonal are multiplied in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dsfc.derive.affine import Affine, Analysis, NotAffine, broadcast, merged, scaled
from dsfc.derive.flow import FlowProblem, discretised, kept_flow
from dsfc.derive.model import Equation, Model
from dsfc.derive.refusal import flow_refused, refused
from dsfc.diagnostics.report import Diagnostic
from dsfc.expr.build import add, is_one, mul, walk
from dsfc.expr.tree import Axis, Expr, Now, Ref
from dsfc.system.ir import KeptFlow, Term


@dataclass(frozen=True, slots=True)
class Update:
    """The update of one state, its drives not yet split and its coefficients over the model.

    Attributes:
        state: the equation it comes from.
        chain: affine factors in order of application.
        flow: continuous form.
    """

    state: Equation
    chain: tuple[Affine, ...]
    flow: KeptFlow | None = None


def updates_of(model: Model, stage: Iterable[str]) -> tuple[list[Update], list[Diagnostic]]:
    """Returns the updates of a stage, or why they have none."""
    names = tuple(stage)
    out: list[Update] = []
    problems: list[Diagnostic] = []
    for name in names:
        s = model.states[name]
        try:
            out.append(_flow(model, names, s) if s.flow else _chain(model, names, s))
        except NotAffine as problem:
            problems.append(refused(model, names, s, problem))
        except FlowProblem as problem:
            problems.append(flow_refused(model, s, str(problem)))
    return out, problems


def _flow(model: Model, stage: tuple[str, ...], s: Equation) -> Update:
    assert s.flow is not None
    axes = frozenset(s.axes)
    if model.reach(s.flow.step) & set(stage):
        raise FlowProblem("its step depends on the state itself")
    drift = Analysis(model, stage, shifts=False).of(s.flow.drift)
    before = set() if drift.rest is None else model.reach(drift.rest) & set(stage)
    if before:
        raise FlowProblem(
            f"its drift reads the state `{min(before)}` through a name at another token; only its "
            "own present value may be read"
        )
    flow = kept_flow(s.name, drift, s.flow.rule, s.flow.step)
    return Update(s, (discretised(s.name, axes, s.step, flow),), flow)


def _chain(model: Model, stage: tuple[str, ...], s: Equation) -> Update:
    assert s.update is not None
    chain: list[Affine] = []
    value: Expr = s.update
    while True:
        below = _inner(model, stage, s, value)
        inner = None if below is None else (below, s.name)
        form = Analysis(model, stage, shifts=True, present=False, inner=inner).of(value)
        chain.insert(0, _with_axes(form, frozenset(s.axes), model))
        if below is None:
            return Update(s, tuple(_joined(chain, s, model)))
        value = model.definitions[below].value


def _inner(model: Model, stage: tuple[str, ...], s: Equation, value: Expr) -> str | None:
    """The definition that is all a value reads of its stage, when it can be a factor's unknown."""
    own = frozenset(stage)
    leaves = {e for e in walk(value) if isinstance(e, Ref) and model.reach(e) & own}
    if len(leaves) != 1:
        return None
    (leaf,) = leaves
    d = model.definitions.get(leaf.name)
    if d is None or leaf.at != Now(0) or d.value.axes != frozenset(s.axes):
        return None
    return leaf.name if d.value.field is s.field else None


def _with_axes(form: Affine, axes: frozenset[Axis], model: Model) -> Affine:
    """The form with exactly the axes of the state: a number in an update stands for a tensor."""
    return broadcast(form, axes, lambda t: frozenset(model.states[t.source].axes))


def _joined(chain: list[Affine], s: Equation, model: Model) -> list[Affine]:
    """Multiplies factors that are only diagonal into the one before them."""
    out = chain[:1]
    for f in chain[1:]:
        if len(f.terms) == 1 and _is_diagonal(f.terms[0], s):
            out[-1] = _scaled(out[-1], f.terms[0].left, f.rest, model)
        elif not out[-1].rest and _is_identity(out[-1], s):
            terms = tuple(replace(t, lag=s.step) for t in f.terms)
            out[-1] = replace(f, terms=terms)
        else:
            out.append(f)
    return out


def _is_diagonal(t: Term, s: Equation) -> bool:
    return t.source == s.name and not t.over and t.matrix is None


def _is_identity(f: Affine, s: Equation) -> bool:
    return len(f.terms) == 1 and _is_diagonal(f.terms[0], s) and is_one(f.terms[0].left)


def _scaled(form: Affine, factor: Expr, rest: Expr | None, model: Model) -> Affine:
    terms = tuple(scaled(t, factor, frozenset(model.states[t.source].axes)) for t in form.terms)
    parts = [] if form.rest is None else [mul(factor, form.rest)]
    parts += [] if rest is None else [rest]
    return Affine(merged(terms), add(*parts) if parts else None)
