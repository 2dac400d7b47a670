"""Axes of a tensor in groups: the layout that operators take, and back."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.tree import Axis

Size = Callable[[Axis], str]


def regrouped(
    text: str, axes: tuple[Axis, ...], groups: tuple[tuple[Axis, ...], ...], lead: int
) -> str:
    """Puts the groups one after the other, behind the lead, and makes one axis of each."""
    order = [a for g in groups for a in g]
    text = _permuted(text, [axes.index(a) for a in order], lead)
    place = lead
    for g in groups:
        if not g:
            text = f"{text}.unsqueeze({place})"
        elif len(g) > 1:
            text = f"{text}.flatten({place}, {place + len(g) - 1})"
        place += 1
    return text


def ungrouped(
    text: str,
    axes: tuple[Axis, ...],
    groups: tuple[tuple[Axis, ...], ...],
    lead: int,
    size: Size,
) -> str:
    """Undoes `regrouped`."""
    at = lead + len(groups) - 1
    for g in reversed(groups):
        if not g:
            text = f"{text}.squeeze({at})"
        elif len(g) > 1:
            sizes = ", ".join(size(a) for a in g)
            text = f"{text}.unflatten({at}, ({sizes}))"
        at -= 1
    order = [a for g in groups for a in g]
    return _permuted(text, [order.index(a) for a in axes], lead)


def _permuted(text: str, places: list[int], lead: int) -> str:
    """Puts the axes behind the lead into the order of their places; in order, they stay."""
    if places == sorted(places):
        return text
    order = (*range(lead), *(p + lead for p in places))
    return f"{text}.permute({', '.join(map(str, order))})"
