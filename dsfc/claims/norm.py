"""`stable`: ‖Λ_i‖ ≤ 1 at every token, by ranges and two lemmas, or refuted by an executed step.

The norm is the operator norm for the Euclidean length of the state, in the gauge the state is
stored in. The state is that of all stages that run one way: where one of them drives another, as in
s = s[i-1] + t[i-1], t = t[i-1], Λ has an entry beside its diagonal blocks, and may lengthen what no
block lengthens. Where none does, Λ is made of blocks and its norm is the largest of theirs. Λ must
have a value: a decay of a / a has none at a = 0. A
transition is a chain of factors, and the norm of a product is at most the product of
the norms, so each factor is looked at on its own:

- *diagonal*: the norm is the largest |λ|;
- *symmetric diagonal plus rank one*, D + κ r r*, with real D and κ, κ the same along the axis that
  r contracts: it is self-adjoint, and its eigenvalues lie between the least of D and D + κ ‖r‖²
  and the largest (Weyl). Where both lie in [−1, 1] the norm is at most 1. With D = 1, κ = −β and
  r = k this is 0 ≤ β ‖k‖² ≤ 2, the delta rule's condition;
- *bilinear flow* of x' = A x with A = diag + Σ κ r r*, Re diag ≤ 0, κ ≤ 0 and a step ≥ 0 that is
  the same along the contracted axis: A + A* ≤ 0, so ‖(1 − ΔA/2) x‖² − ‖(1 + ΔA/2) x‖²
  = −Δ ⟨x, (A + A*) x⟩ ≥ 0 for all x, and Λ = (1 − ΔA/2)⁻¹ (1 + ΔA/2) is a contraction (Cayley).
"""

from __future__ import annotations

from dsfc.claims.compare import Facts, facts, has_value, satisfied
from dsfc.claims.execute import after, units
from dsfc.claims.feeding import Streams, driven_by
from dsfc.claims.points import Failed, Running, changed_at, search, shown
from dsfc.claims.verdict import Proved, Refuted, Unknown, Verdict
from dsfc.expr.build import ZERO, add, mul, num, power, prim, walk
from dsfc.expr.declarations import FlowRule
from dsfc.expr.interval import Interval
from dsfc.expr.normal import normalise
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.statements import Comparison
from dsfc.expr.tree import Axis, Expr, Field, Fir, Now, Reduce, Reduction, Ref
from dsfc.structure.bounds import diagonal_bound, interval_text
from dsfc.structure.ir import Structure
from dsfc.system.ir import Block, Cache, Direction, Factor, KeptFlow, Stage, System, Term
from dsfc.system.traverse import parts, trees
from dsfc.trusted.balls import Complex, Real, absolute, real

ONE_OR_LESS = Interval(-1.0, 1.0)


def stable(system: System, structure: Structure, when: tuple[Comparison, ...]) -> Verdict:
    """Decides whether no transition lengthens a state."""
    known = facts(system, structure, when)
    reasons: list[str] = []
    obstacles: list[str] = []
    fed = driven_by(system)
    for stage in system.stages:
        for block in stage.blocks:
            said, proved = _block(known, stage, block, structure)
            if proved and not _exists(known, block):
                said, proved = "Λ is not known to have a value everywhere", False
            if proved and fed[block.state]:
                others = ", ".join(sorted(fed[block.state]))
                said = f"it is driven by {others}, and the norm of all together is not known"
                proved = False
            (reasons if proved else obstacles).append(f"{block.state}: {said}")
    if any(isinstance(p, Cache) for t in trees(system) for p in parts(t)):
        obstacles.append("a sum over the past has no finite state, so there is no Λ")
    if not obstacles:
        return Proved("; ".join(reasons) or "there is no state")
    failure = search(system, lambda run: _lengthened(run, system, when))
    if isinstance(failure, str) and any(fed.values()) and _is_linear(system):
        failure = search(system, lambda run: _parted(run, system, when), shortest=2)
    if isinstance(failure, Failed):
        return Refuted(failure.how, failure.point.text)
    return Unknown(f"{'; '.join(obstacles)}; {failure}")


# --- proofs ---------------------------------------------------------------------------------------


def _block(known: Facts, stage: Stage, block: Block, structure: Structure) -> tuple[str, bool]:
    """What is known of ‖Λ‖ for one block, and whether that is a proof."""
    others = {t.source for f in block.chain for t in f.terms} - {block.state}
    fed = {t.source for b in stage.blocks for f in b.chain for t in f.terms if b is not block}
    if others or block.state in fed:
        return "its transition mixes several states", False
    simple = len(block.chain) == 1 and not any(_mixes(t) for t in block.chain[0].terms)
    flow = None if block.flow is None else _put_in(known, block.flow)
    if simple:
        decay = structure.block(block.state).decay
        if decay is not None:
            bound = diagonal_bound(decay, flow, known.ranges)
            if bound.kind.at_most_one:
                return bound.reason, True
    if flow is not None and flow.low_rank:
        return _cayley(known, flow)
    said = []
    for factor in block.chain:
        reason, proved = _factor(known, factor)
        if not proved:
            return reason, False
        said.append(reason)
    return " and ".join(dict.fromkeys(said)) or "Λ = 0", True


def _exists(known: Facts, block: Block) -> bool:
    """Whether Λ is known to have a value everywhere: nothing is short of what is not there.

    What a flow with Re A ≤ 0 is discretised to exists where A and the step do.
    """
    if block.flow is not None:
        flow = block.flow
        values = [flow.step, flow.diagonal, *(e for a, _, b in flow.low_rank for e in (a, b))]
    else:
        values = [e for f in block.chain for t in f.terms for e in (t.left, t.right)]
    return all(has_value(known, e) for e in values)


def _mixes(t: Term) -> bool:
    return bool(t.over) or t.matrix is not None or t.after is not None


def _factor(known: Facts, factor: Factor) -> tuple[str, bool]:
    """‖F‖ ≤ 1 for one factor, or what stands in the way."""
    diagonal: Expr = ZERO
    low_rank: list[Term] = []
    for t in factor.terms:
        if t.matrix is not None or t.after is not None:
            return "Λ holds a matrix, whose norm is not known", False
        if t.over:
            low_rank.append(t)
        else:
            diagonal = add(diagonal, known.value(mul(t.left, t.right)))
    if not low_rank:
        size = known.ranges.modulus(diagonal)
        return f"|λ| lies in {interval_text(size)}", size.high <= 1
    if len(low_rank) > 1:
        return "Λ holds several low-rank terms", False
    (term,) = low_rank
    left, right = known.value(term.left), known.value(term.right)
    kappa = _ratio(left, right, term.over)
    if kappa is None or diagonal.field is Field.COMPLEX:
        return "the low-rank term is not symmetric by its form", False
    moved = add(diagonal, mul(kappa, _square_length(right, term.over)))
    ranges = [known.ranges.of(e) for e in (diagonal, moved)]
    said = " and ".join(interval_text(r) for r in ranges)
    if all(r.within(ONE_OR_LESS) for r in ranges):
        return f"Λ is self-adjoint, its eigenvalues lie between the ends of {said}", True
    return (
        f"Λ is self-adjoint, and its eigenvalues are only known between the ends of {said}",
        False,
    )


def _ratio(left: Expr, right: Expr, over: frozenset[Axis]) -> Expr | None:
    """κ with left = κ · conj(right), real and the same along the contracted axes; None if none."""
    for axis in over:
        if axis not in left.axes or axis not in right.axes:
            return None
    mirrored = prim("conj", right) if right.field is Field.COMPLEX else right
    above, below = normalise(left).single, normalise(mirrored).single
    if above is None or below is None:
        return None
    powers = dict(above[0])
    for atom, exponent in below[0]:
        powers[atom] = powers.get(atom, 0) - exponent
    coefficient = above[1] / below[1]
    kappa: Expr = num(coefficient)
    for atom, exponent in powers.items():
        if not exponent:
            continue
        if atom.axes & over or atom.field is Field.COMPLEX:
            return None
        kappa = mul(kappa, power(atom, num(exponent)))
    return kappa


def _square_length(r: Expr, over: frozenset[Axis]) -> Expr:
    """‖r‖² over the contracted axes."""
    size = prim("abs", r) if r.field is Field.COMPLEX else r
    out = mul(size, size)
    for axis in sorted(over):
        out = Reduce(Reduction.SUM, axis, out)
    return out


def _put_in(known: Facts, flow: KeptFlow) -> KeptFlow:
    low_rank = tuple((known.value(a), over, known.value(b)) for a, over, b in flow.low_rank)
    step, diagonal, drive = (known.value(x) for x in (flow.step, flow.diagonal, flow.drive))
    return KeptFlow(flow.rule, step, diagonal, low_rank, drive)


def _cayley(known: Facts, flow: KeptFlow) -> tuple[str, bool]:
    """A bilinear flow with A + A* ≤ 0."""
    if flow.rule is not FlowRule.BILINEAR:
        return "the flow has a low-rank part and is not discretised bilinearly", False
    real_part = known.ranges.real_part(flow.diagonal)
    if real_part.high > 0:
        return f"the diagonal of A has a real part in {interval_text(real_part)}", False
    for left, over, right in flow.low_rank:
        kappa = _ratio(left, right, over)
        if kappa is None or known.ranges.of(kappa).high > 0:
            return "the low-rank part of A is not −r r* by its form", False
        if flow.step.axes & over:
            return "the step differs along the axis that A contracts", False
    step = known.ranges.of(flow.step)
    if step.low < 0:
        return f"the step lies in {interval_text(step)}", False
    return "A + A* ≤ 0 and Δ ≥ 0, so the bilinear Λ is a contraction", True


# --- points ---------------------------------------------------------------------------------------


def _lengthened(run: Running, system: System, when: tuple[Comparison, ...]) -> str | None:
    """A state that a transition makes longer, executed."""
    if not satisfied(run, when):
        return None
    for stage in system.stages:
        for what, start in units(run, stage):
            for token in range(run.length):
                size = real(0)
                for entries in after(run, stage, start, token, driven=False).values():
                    for v in entries.values():
                        size = size + _square(v)
                if size.low > 1:
                    return (
                        f"Λ at token {token} takes the unit vector of {what} to a vector of "
                        f"squared length {shown(Complex(size, real(0)))}"
                    )
    return None


def _is_linear(system: System) -> bool:
    """Whether the states after a token are Λ times those before it, and a value of the token.

    That is read off definitions: all states are declared and run forward, nothing else is read at
    another token, and what one stage reads of another goes into drives alone, by a linear read-out.
    """
    declared = {d.name for d in system.definition if d.update}
    if any(s.direction is not Direction.FORWARD for s in system.stages):
        return False
    if not all(b.state in declared for b in system.blocks):
        return False
    for d in system.definition:
        for e in walk(d.value):
            at = e.at if isinstance(e, Ref) and e.name not in declared else None
            if isinstance(e, Past | Run | Lag | Fir) or (at is not None and at != Now(0)):
                return False
    streams = Streams(system)
    for block in system.blocks:
        for factor in block.chain:
            if any(streams.states(e) for t in factor.terms for e in (t.left, t.right)):
                return False
            for drive in factor.drives:
                if streams.states(drive.key) and streams.states(drive.stream):
                    return False
                if not (streams.affine(drive.key) and streams.affine(drive.stream)):
                    return False
    return True


def _parted(run: Running, system: System, when: tuple[Comparison, ...]) -> str | None:
    """Two sequences of one future, of which a token moves the states further apart."""
    last = run.length - 1
    other = Running(system, changed_at(run.point, system, range(last)))
    if not (satisfied(run, when) and satisfied(other, when)):
        return None
    before, then = (_distance(run, other, system, token) for token in (last - 1, last))
    if then.low <= before.high:
        return None
    return (
        f"Λ at token {last} takes the difference of two states, of squared length "
        f"{shown(Complex(before, real(0)))}, to one of {shown(Complex(then, real(0)))}: those of "
        "this sequence, and with other inputs before this token"
    )


def _distance(run: Running, other: Running, system: System, token: int) -> Real:
    """The squared distance of two states after a token."""
    out = real(0)
    for block in system.blocks:
        for at in run.places(block.axes):
            a, b = (r.at(r.updates[block.state], token, at) for r in (run, other))
            out = out + _square(a - b)
    return out


def _square(v: Complex) -> Real:
    """|v|²."""
    out = real(0)
    for part in (v.re, v.im):
        size = absolute(part)
        out = out + size * size
    return out
