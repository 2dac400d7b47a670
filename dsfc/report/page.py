"""A report as one HTML file: it loads nothing, and can be read on a telephone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dsfc.report.sections import Section, sections
from dsfc.report.subject import Subject

STYLE = """\
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --ok: #00785a; --no: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ok: #3fc79d; --no: #ff8a80; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 0 1rem 4rem;
  max-width: 72rem; }
h1 { font-size: 1.6rem; margin: 1.2rem 0 .2rem; }
h2 { font-size: 1.25rem; border-top: 1px solid var(--line); margin: 2rem 0 .5rem;
  padding-top: .8rem; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
nav { font-size: .9rem; display: flex; flex-wrap: wrap; gap: .1rem .9rem; }
.definition { border-left: 3px solid var(--line); padding-left: .8rem; font-size: .92rem; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font-size: .82rem; margin: 0; }
code { font-size: .9em; overflow-wrap: anywhere; }
.scroll, .formula { overflow-x: auto; }
.formula { padding: .25rem 0; } .formula math { margin: 0; display: inline-block; }
math { font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math",
  "DejaVu Math TeX Gyre", math; }
/* Where no font has the measures of formulas, browsers set subscripts on the line of their base. */
math msub > :nth-child(2), math msubsup > :nth-child(2) { padding-top: .15em; }
table { border-collapse: collapse; font-size: .9rem; margin: .6rem 0; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .7rem .25rem 0; text-align: left;
  vertical-align: top; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.figures { display: flex; flex-wrap: wrap; gap: .8rem 1.2rem; }
figure { margin: .6rem 0; flex: 1 1 20rem; max-width: 27rem; min-width: 0; }
figcaption { font-size: .85rem; }
.beside, .columns { display: grid; gap: 0 1.5rem; }
.beside { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.beside > *, .columns > * { min-width: 0; }
.columns h3 { border-bottom: 2px solid var(--line); }
.proved { color: var(--ok); } .refuted { color: var(--no); }
@media (min-width: 50rem) { .columns { grid-template-columns: repeat(var(--count), 1fr); } }
"""


def report(subject: Subject) -> str:
    """Returns the report of one mixer.

    Args:
        subject: the mixer and all that is said of it.
    """
    return _page(
        f"{subject.name}: {subject.compilation.mixer.doc or 'a sequence mixer'}",
        [_section(anchor, s, s.body(subject)) for anchor, s in sections().items()],
    )


def comparison(subjects: Sequence[Subject]) -> str:
    """Returns several mixers side by side.

    Args:
        subjects: the mixers and all that is said of them.
    """
    parts = []
    for anchor, s in sections().items():
        columns = "".join(f"<div><h3>{escape(x.name)}</h3>{s.body(x)}</div>" for x in subjects)
        body = f'<div class="columns" style="--count: {len(subjects)}">{columns}</div>'
        parts.append(_section(anchor, s, s.together(subjects) + body))
    return _page(" and ".join(s.name for s in subjects), parts, wide=len(subjects) > 2)


def _section(anchor: str, s: Section, body: str) -> str:
    told = f'<p class="definition">{s.definition}</p>' if s.definition else ""
    return f'<section id="{anchor}"><h2>{escape(s.title)}</h2>{told}{body}</section>'


def _page(title: str, parts: Iterable[str], wide: bool = False) -> str:
    links = "".join(f'<a href="#{a}">{escape(s.title)}</a>' for a, s in sections().items())
    style = STYLE.replace("max-width: 72rem", "max-width: 110rem") if wide else STYLE
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>\n{style}</style></head>",
            f"<body><h1>{escape(title)}</h1><nav>{links}</nav>",
            *parts,
            "</body></html>\n",
        )
    )
