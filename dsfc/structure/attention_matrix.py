"""The matrix of a softmax attention as text: its weights take the place of the kernel Φ."""

from __future__ import annotations

from dsfc.expr.build import is_one, mul
from dsfc.expr.text import text
from dsfc.expr.tree import Expr, Reduce, Reduction
from dsfc.matrices.notation import subscripted
from dsfc.structure.ir import Attention


def attention_matrix(attention: Attention) -> tuple[str, ...]:
    """Returns the lines of Φ, whose sum Σ_j Φ_ij value_j the attention is, and of its scores.

    Args:
        attention: what `classify` found.
    """
    score: Expr = mul(subscripted(attention.query, "i"), subscripted(attention.key, "j"))
    for axis in attention.keys:
        score = Reduce(Reduction.SUM, axis, score)
    gate = "" if is_one(attention.gate) else f"{text(subscripted(attention.gate, 'i'))} * "
    weights = f"{gate}exp(s_ij) / Σ_{{l ≤ i}} exp(s_il)"
    value = text(subscripted(attention.value, "j"))
    return (
        "attention",
        f"  Φ_ij = {weights}   on {value}   for j ≤ i, the attention matrix",
        f"  s_ij = {text(mul(attention.scale, score))}",
    )
