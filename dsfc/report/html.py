"""Pieces of HTML: tables, figures, paragraphs; text stays text, with code between backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

_CODE = re.compile(r"`([^`]+)`")


class Markup(str):
    """HTML that a cell holds as it is."""


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Returns a table; cells are text or markup, and numbers stand to the right."""

    def cell(value: object, tag: str) -> str:
        kind = ' class="number"' if isinstance(value, int | float) else ""
        if isinstance(value, Markup):
            shown = str(value)
        else:
            shown = number(value) if isinstance(value, int | float) else inline(str(value))
        return f"<{tag}{kind}>{shown}</{tag}>"

    lines = [f"<tr>{''.join(cell(h, 'th') for h in head)}</tr>"] if head else []
    lines += [f"<tr>{''.join(cell(c, 'td') for c in row)}</tr>" for row in rows]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def inline(said: str) -> str:
    """Returns a text in which what stands between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", escape(said))


def number(value: float) -> str:
    """Returns a number for a reader: few digits, ∞ where it has no bound."""
    if np.isinf(value):
        return "∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.4g}"


def figure(svg: str, caption: str) -> str:
    """Returns a chart with its caption, which is text."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def paragraph(said: str) -> str:
    """Returns a text as a paragraph; nothing of an empty one."""
    return f"<p>{inline(said)}</p>" if said else ""


def gallery(figures: Iterable[str]) -> str:
    """Returns figures side by side, as far as there is room."""
    return f'<div class="figures">{"".join(figures)}</div>'
