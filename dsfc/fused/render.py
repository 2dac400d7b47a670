"""Stable text of a fused plan."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.expr.build import ZERO, is_one
from dsfc.expr.text import text
from dsfc.expr.tree import Expr
from dsfc.fused.ir import Entrywise, FusedPlan, Prologue, PrologueEpilogue
from dsfc.plan.render import kernel_lines


def render(fused: FusedPlan) -> str:
    """Returns the fused plan as text: the kernels that are left, and what each scan computes.

    Args:
        fused: the fused plan.
    """
    return "\n".join(_lines(fused)) + "\n"


def _lines(fused: FusedPlan) -> Iterator[str]:
    yield f"fused plan {fused.plan.name}"
    yield from kernel_lines(fused.plan)
    for prologue in fused.prologues:
        yield from _prologue(prologue)
    for matrix in fused.matrices:
        yield from _prologue_epilogue(matrix)
    if not (fused.prologues or fused.matrices):
        yield "no kernel computes more than its recurrence"


def _prologue(prologue: Prologue) -> Iterator[str]:
    yield f"scan {prologue.scan} computes"
    yield f"  of tokens     {', '.join(prologue.tokens)}"
    if prologue.constants:
        yield f"  of constants  {', '.join(prologue.constants)}"
    values = [*prologue.rates, ("value", prologue.value)]
    values += [("log λ", prologue.log_decay), ("λ", prologue.decay)]
    values += [("added", prologue.added)] if prologue.added != ZERO else []
    yield from (f"  {name} = {text(e)}" for name, e in values)
    yield from _gradients(prologue.leaves, prologue.gradients)


def _prologue_epilogue(matrix: PrologueEpilogue) -> Iterator[str]:
    yield f"scan {matrix.scan} computes"
    for name, e in (
        ("query", matrix.read),
        ("key", matrix.key),
        ("weight of values", matrix.weight),
    ):
        if e is not None:
            yield from _entrywise(name, e)
    if not is_one(matrix.factor):
        yield f"  factor of outputs = {text(matrix.factor)}"
    if matrix.normaliser is not None:
        where = ", of a column" if matrix.running else ""
        yield from _entrywise(f"divisor of the output{where}", matrix.normaliser)


def _entrywise(name: str, e: Entrywise) -> Iterator[str]:
    yield f"  {name} = {text(e.value)}"
    if not e.plain:
        yield from _gradients(e.leaves, e.gradients)


def _gradients(leaves: tuple[str, ...], gradients: tuple[Expr, ...]) -> Iterator[str]:
    for leaf, gradient in zip(leaves, gradients, strict=True):
        yield f"    {leaf}_bar = {text(gradient)}"
