"""The kernel Φ of a System as text: y_i = Σ_j Φ_{ij} u_j.

For every state the kernel is C_i times the product of the transitions between the tokens times
B_j. Where the transition is diagonal it is also written in index form, as the sum over tokens that
a spec would say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsfc.expr.build import ONE, add, is_one, mul, power, rewrite, walk
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.text import text
from dsfc.expr.tree import Bound, Expr, Now, Ref, Time
from dsfc.matrices.kronecker import is_identity
from dsfc.matrices.kronecker_form import summed_heads, title
from dsfc.matrices.kronecker_part import KronBlock, KronPart, kronecker_part
from dsfc.matrices.linear import linear_parts, stages_read
from dsfc.matrices.notation import Text, chain, chain_in_product, in_product, instant, operator
from dsfc.system.formulas import read_out_formula, states
from dsfc.system.ir import Block, Direction, Stage, System


def convolution_form(system: System, gauge: str = "lowered", others: Iterable[str] = ()) -> str:
    """Returns the kernel of every linear part of the outputs, ending in a newline.

    Args:
        system: the System.
        gauge: basis that Λ, B and C are written in, "lowered" or "paper"; Φ is the same in both.
        others: lines about the parts of the outputs that are not linear in a state.

    Raises:
        ValueError: no such gauge.
    """
    lines = [title(system, "kernel Φ", gauge)]
    for output in range(len(system.outputs)):
        for part in linear_parts(system, output):
            kronecker = kronecker_part(system, part, gauge == "paper")
            lines += ["", part.name, *(f"  {line}" for line in _part(system, kronecker))]
        sums = index_sums(system, output)
        if sums is not None:
            lines += ["", f"{system.outputs[output].name} = {text(sums)}"]
    more = list(others)
    if more:
        lines += ["", *more]
    if len(lines) == 1:
        lines += ["", "Nothing in the output is linear in a state: there is no Φ."]
    return "\n".join(lines) + "\n"


def _part(system: System, p: KronPart) -> list[str]:
    lines = [line for s in stages_read(system, p.part) for line in _stage(p, s)]
    for d in p.direct:
        lines.append(f"Φ_ii: + {operator(d.operator, Text())}{_on(d.input, 'i')}")
    return lines


def _on(source: Expr, token: str) -> str:
    return "" if is_one(source) else f"   on {Text(token).expr(source)}"


def _stage(p: KronPart, stage: Stage) -> Iterator[str]:
    names = {b.state for b in stage.blocks}
    blocks = [b for b in p.blocks if b.block.state in names]
    if len(blocks) > 1 or any(b.coupled for b in blocks):
        joint = ", ".join(b.block.state for b in blocks)
        yield f"Φ_ij = C_i {_range(stage, 0)} Λ_l B_j with Λ of ({joint}) together"
        return
    over = "".join(f"Σ_{h} " for h in summed_heads(p))
    for r in p.reads:
        for b in blocks:
            for d in b.drives if r.state == b.block.state else ():
                first, last = in_product(r.operator, Text()), chain_in_product(d.product, Text("j"))
                kernel = " · ".join((first, *_transitions(b, stage, r.lag), last))
                shown = over + (f"Re({kernel})" if r.real else kernel)
                yield f"Φ_ij = {shown}{_on(d.input, 'j')}   for {_relation(stage, r.lag)}"


def _transitions(b: KronBlock, stage: Stage, lag: int) -> list[str]:
    """Π Λ_l over the tokens between; nothing for the identity."""
    if all(is_identity(o) for o in b.chain):
        return []
    shown = chain(b.chain, Text("l"))
    return [f"{_range(stage, lag)} [{shown}]"]


def _range(stage: Stage, lag: int) -> str:
    high = instant("i", lag)
    if stage.direction is Direction.FORWARD:
        return f"Π_{{j < l ≤ {high}}}"
    return f"Π_{{{high} ≤ l < j}}"


def _relation(stage: Stage, lag: int) -> str:
    if stage.direction is Direction.FORWARD:
        return "j < i" if lag else "j ≤ i"
    return "j > i" if lag else "j ≥ i"


# --- index form -----------------------------------------------------------------------------------


def index_sums(system: System, output: int = 0) -> Expr | None:
    """Returns an output with its states written as sums over tokens, as a spec would say it.

    None where a transition is not diagonal, or a stage has several states.
    """
    sums: dict[str, tuple[Block, Stage]] = {}
    for stage in system.stages:
        for b in stage.blocks:
            if len(stage.blocks) == 1 and _diagonal(b) is not None:
                sums[b.state] = (b, stage)
    formula = read_out_formula(system.outputs[output].value, states(system))
    read = {e.name for e in walk(formula) if isinstance(e, Ref)} & set(states(system))
    if not read or not read <= set(sums):
        return None

    def summed(e: Expr) -> Expr | None:
        if isinstance(e, Ref) and e.name in sums and isinstance(e.at, Now):
            return _sum(*sums[e.name], e.at.lag)
        return None

    return rewrite(formula, summed)


def _diagonal(b: Block) -> Expr | None:
    """λ of a block whose transition is one diagonal term; None for any other."""
    if len(b.chain) != 1 or len(b.chain[0].terms) != 1:
        return None
    (t,) = b.chain[0].terms
    plain = t.source == b.state and not t.over and t.matrix is None and t.after is None
    return mul(t.left, t.right) if plain else None


def _sum(b: Block, stage: Stage, lag: int) -> Expr:
    """Σ_j (product of λ between the tokens) · key_j · stream_j."""
    forward = stage.direction is Direction.FORWARD
    decay = _diagonal(b)
    assert decay is not None
    drives = (_at(mul(d.key, d.stream), "j") for d in b.chain[0].drives)
    body = mul(_product(decay, forward, lag), add(*drives))
    if forward:
        relation = Relation.BEFORE if lag else Relation.UP_TO
    else:
        relation = Relation.AFTER if lag else Relation.FROM
    return Past("j", relation, body)


def _product(decay: Expr, forward: bool, lag: int) -> Expr:
    if is_one(decay):
        return ONE
    if decay.time is Time.CONST:
        sign = 1 if forward else -1
        return power(decay, Lag((("i", sign), ("j", -sign)), -abs(lag)))
    factor = _at(decay, "l")
    if forward:
        return Run("l", Bound("j"), Now(lag), factor)
    return Run("l", Now(lag + 1), Bound("j", 1), factor)


def _at(e: Expr, var: str) -> Expr:
    def moved(n: Expr) -> Expr | None:
        if isinstance(n, Ref) and isinstance(n.at, Now):
            return Ref(n.name, n.over, n.kind, n.when, Bound(var, n.at.lag))
        return None

    return rewrite(e, moved)
