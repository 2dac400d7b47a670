"""Prints the call of an attention: its layout is `[B, L, h, n]`, `[B, T + L, h, n]`, `[…, p]`.

Heads, keys and channels of the spec are each flattened to one axis; what lacks an axis is expanded.
Keys and values are those of all tokens: what the registers keep, and the sequence behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dsfc.expr.tree import Axis
from dsfc.plan.ir import Buffer
from dsfc.plan.pairs_ir import Attention

from .code import cast
from .grouping import regrouped, ungrouped
from .layout import wrapped

Size = Callable[[Axis], str]


def attention_lines(
    kernel: Attention,
    arrays: Mapping[str, Buffer],
    names: Callable[[str], str],
    whole: Mapping[str, str],
    size: Size,
    scale: str,
) -> list[str]:
    """Returns the statements that compute an attention.

    Args:
        kernel: the attention.
        arrays: the plan's buffers by name.
        names: identifier of each name of the plan.
        whole: variable that holds all tokens of a buffer that is kept.
        size: gives the variable that holds an axis' size.
        scale: text of the number that scores are multiplied by.
    """
    keyed, valued = (kernel.heads, kernel.keys), (kernel.heads, kernel.channels)
    sides = [
        _laid(names(kernel.query), arrays[kernel.query], keyed, size),
        _laid(whole[kernel.key], arrays[kernel.key], keyed, size),
        _laid(whole[kernel.value], arrays[kernel.value], valued, size),
    ]
    out = names(kernel.output)
    arguments = [*(cast(x, "dtype") for x in sides), whole[kernel.present], scale, "mode"]
    lines = wrapped(f"{out} = _attention", arguments, "", "    ").split("\n")
    axes = arrays[kernel.output].axes
    text = ungrouped(out, axes, valued, 2, size)
    lines = ["    if mode != _EACH:", "        _legal(mode, MODES)", *lines]
    return lines if text == out else [*lines, f"    {out} = {text}"]


def _laid(text: str, b: Buffer, groups: tuple[tuple[Axis, ...], ...], size: Size) -> str:
    """Tokens of a buffer as `[B, …, group, group]`."""
    axes = tuple(sorted(a for g in groups for a in g))
    if b.axes != axes:
        slots = ", ".join(":" if a in b.axes else "None" for a in axes)
        sizes = ", ".join(size(a) for a in axes)
        text = f"{text}[..., {slots}].expand(-1, -1, {sizes})"
    return regrouped(text, axes, groups, 2)
