"""An atlas as a page: Markdown, a table for each family, or HTML, with one that can be sorted."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from dsfc.atlas.ir import Atlas, Family, Pair
from dsfc.atlas.report import SIGN, alone

LISTED = (Family.EQUAL, Family.AT_SIZES, Family.CONDITIONAL, Family.CASE)
"""Families with a row for each pair; of the others Markdown counts the reasons."""

HEADS = ("first", "", "second", "family", "statement", "conditions", "what it rests on")

STYLE = """\
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}
img{max-width:100%}table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:left;vertical-align:top;padding:.25rem .6rem;border-bottom:1px solid #8884}
th{cursor:pointer;position:sticky;top:0;background:Canvas}input{width:100%;padding:.4rem}
"""

SCRIPT = """\
const body = document.querySelector("tbody"), rows = [...body.rows];
const text = (row, k) => row.cells[k].textContent;
document.querySelectorAll("th").forEach((head, k) => {
  let up = false;
  head.onclick = () => {
    up = !up;
    rows.sort((a, b) => (up ? 1 : -1) * text(a, k).localeCompare(text(b, k)));
    body.append(...rows);
  };
});
document.querySelector("input").oninput = (e) => {
  const wanted = e.target.value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
};
"""


def markdown(atlas: Atlas) -> str:
    """Returns an atlas as Markdown: counts, tables of proofs by family, reasons of all else."""
    return "\n".join(_markdown(atlas)) + "\n"


def _markdown(atlas: Atlas) -> Iterator[str]:
    yield f"{_title(atlas)}\n"
    yield "| pairs | |\n|---:|---|"
    yield from (f"| {n:,} | {family} |" for family, n in counts(atlas).items())
    yield "\n| structure class | mixers |\n|---|---|"
    kinds: dict[str, list[str]] = {}
    for node in atlas.nodes:
        kinds.setdefault(node.kind, []).append(node.name)
    yield from (f"| {kind} | {', '.join(names)} |" for kind, names in sorted(kinds.items()))
    for family in Family:
        pairs = [p for p in _shown(atlas) if p.family is family]
        if not pairs:
            continue
        yield f"\n## {family.value.capitalize()}\n"
        if family not in LISTED:
            yield "| pairs | reason |\n|---:|---|"
            yield from (f"| {n:,} | {_cell(reason)} |" for reason, n in _reasons(pairs))
            continue
        yield "| statement | conditions | sizes |\n|---|---|---|"
        for p in pairs:
            said = f"{p.a} {_sign(p)} {p.b}{_kind(p)}"
            where = "<br>".join(_cell(c) for c in p.conditions)
            yield f"| {_cell(said)} | {where} | {_cell(_sizes(p))} |"


def html(atlas: Atlas, picture: str = "") -> str:
    """Returns an atlas as an HTML page that needs no other file.

    Args:
        atlas: what was found.
        picture: the picture as SVG; empty for none.
    """
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _row(p)) + "</tr>"
        for p in _shown(atlas)
    )
    counted = "".join(f"<li>{n:,} {escape(family)}" for family, n in counts(atlas).items())
    heads = "".join(f"<th>{head}" for head in HEADS)
    drawn = picture[picture.find("<svg") :] if picture else ""
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Atlas of mixers</title>\n'
        f"<style>{STYLE}</style>\n<h1>Atlas of mixers</h1>\n<p>{escape(_title(atlas))}</p>\n"
        f"<ul>{counted}</ul>\n{drawn}\n"
        '<p><input type="search" placeholder="Show rows with …" aria-label="Show rows with"></p>\n'
        f"<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n"
        f"<script>{SCRIPT}</script>\n</html>\n"
    )


def counts(atlas: Atlas) -> dict[str, int]:
    """Returns how many statements are in each family, in the order of the families."""
    shown = [p.family for p in _shown(atlas)]
    return {family.value: shown.count(family) for family in Family if family in shown}


def _shown(atlas: Atlas) -> list[Pair]:
    """The statements family by family, without equalities that a case says more closely."""
    edges = set(atlas.edges)
    pairs = (p for p in atlas.pairs if p in edges or not p.conditions)
    order = list(Family)
    return sorted(pairs, key=lambda p: (order.index(p.family), p.a, p.b))


def _title(atlas: Atlas) -> str:
    left = "".join(f"; {name} has no system" for name, _ in atlas.left_out)
    cut = "" if atlas.complete else "; the run was interrupted"
    return f"{len(atlas.nodes)} mixers, {len(atlas.pairs):,} statements about pairs{left}{cut}."


def _row(p: Pair) -> tuple[str, ...]:
    where = "; ".join(p.conditions)
    return p.a, _sign(p), p.b, p.family.value, p.statement, where, _sizes(p) or p.reason


def _sign(p: Pair) -> str:
    head = p.statement.partition("(")[0]
    if p.family in LISTED:
        return SIGN.get(head, p.statement)
    return {Family.DIFFERENT: "≠", Family.NO_CASE: "⊈"}.get(p.family, "?")


def _kind(p: Pair) -> str:
    return f" {p.statement}" if p.statement.startswith("SLOT") else ""


def _sizes(p: Pair) -> str:
    return alone(p).strip() or ("for all sizes" if p.family is Family.EQUAL else "")


def _reasons(pairs: list[Pair]) -> list[tuple[str, int]]:
    """Why pairs are in a family, the most frequent reasons first; points are one reason."""
    frequency: dict[str, int] = {}
    for p in pairs:
        reason = p.reason
        if p.family is Family.DIFFERENT:
            reason = "a point at which both were executed"
        if p.family is Family.NO_CASE:
            reason = "sequences that the other cannot give"
        frequency[reason] = frequency.get(reason, 0) + 1
    return sorted(frequency.items(), key=lambda item: (-item[1], item[0]))


def _cell(words: str) -> str:
    """A text in a cell of a Markdown table."""
    for special in "\\|*_`<[":
        words = words.replace(special, f"\\{special}")
    return words
