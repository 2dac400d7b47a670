"""Draws the diagrams of these pages: `python docs/diagrams.py`.

Each is one SVG file of a few boxes and arrows that follows a dark page. Sizes are in its own units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

PICTURES = Path(__file__).parent / "pictures"

STYLE = """<style>
svg { color: #222; font: 15px sans-serif; }
text { fill: currentColor; text-anchor: middle; dominant-baseline: central; }
.box { fill: #0072b218; stroke: #0072b2; }
.state { fill: #d55e0018; stroke: #d55e00; }
.near { fill: #0072b2; } .far { fill: #d55e00; } .none { fill: #8882; }
.arrow { stroke: currentColor; fill: none; marker-end: url(#head); }
.direct { stroke-dasharray: 4 4; opacity: 0.6; }
.small { font-size: 12px; opacity: 0.8; }
@media (prefers-color-scheme: dark) { svg { color: #ddd; } }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
orient="auto"><path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words around a point."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def box(x: float, y: float, width: float, words: str, kind: str = "box") -> str:
    """Words in a box of height 34 around a point."""
    corner = f'x="{x - width / 2:g}" y="{y - 17:g}" width="{width:g}" height="34" rx="6"'
    return f'<rect {corner} class="{kind}"/>{text(x, y, words)}'


def arrow(x: float, y: float, to_x: float, to_y: float, kind: str = "") -> str:
    """A straight arrow."""
    return f'<path class="arrow {kind}" d="M{x:g} {y:g}L{to_x:g} {to_y:g}"/>'


def sub(letter: str, index: str) -> str:
    """A letter with an index."""
    return f'{letter}<tspan dy="4" font-size="11">{index}</tspan>'


def recurrence() -> Iterator[str]:
    """The form, unrolled over four tokens: inputs below, states in the middle, outputs above."""
    for k, index in enumerate(("0", "1", "2", "3")):
        x = 90 + 150 * k
        yield box(x, 230, 60, sub("u", index))
        yield box(x, 130, 60, sub("h", index), "state")
        yield box(x, 30, 60, sub("y", index))
        yield arrow(x, 212, x, 149)
        yield text(x - 16, 181, sub("B", index))
        yield arrow(x, 112, x, 49)
        yield text(x - 16, 81, sub("C", index))
        yield f'<path class="arrow direct" d="M{x + 31} 222C{x + 62} 180 {x + 62} 80 {x + 31} 38"/>'
        yield text(x + 66, 60, sub("D", index), "small")
        yield arrow(x - 120, 130, x - 32, 130)
        yield text(x - 74, 116, sub("Λ", index))
    yield arrow(572, 130, 630, 130)


def chunks() -> Iterator[str]:
    """The kernel Φ of 16 tokens in chunks of 4: what each part of it is computed by."""
    side, size, left, top = 16, 17, 40, 34
    for i in range(side):
        for j in range(side):
            kind = "none" if j > i else "near" if i // 4 == j // 4 else "far"
            corner = f'x="{left + j * size}" y="{top + i * size}"'
            fade = 1 if kind == "none" else max(0.15, 0.93 ** (i - j))
            area = f'width="{size - 1}" height="{size - 1}" opacity="{fade:.2f}"'
            yield f'<rect {corner} {area} class="{kind}"/>'
    yield text(left + side * size / 2, 16, "token j, which is read", "small")
    yield f'<g transform="rotate(-90 18 170)">{text(18, 170, "token i, which reads", "small")}</g>'
    for y, kind, lines in (
        (90, "near", ("inside a chunk:", "a product of small matrices")),
        (190, "far", ("from earlier chunks:", "through the state that they left")),
        (270, "none", ("the future:", "not computed")),
    ):
        yield f'<rect x="350" y="{y - 18}" width="36" height="36" class="{kind}"/>'
        for n, line in enumerate(lines):
            yield start(400, y - 10 + 20 * n, line)


def start(x: float, y: float, words: str) -> str:
    """Words that begin at a point."""
    return f'<text x="{x:g}" y="{y:g}" style="text-anchor: start">{words}</text>'


STAGES = (
    ("spec", "text"),
    ("syntax", "tree"),
    ("mixer", "typed"),
    ("system", "Λ, B, C, D"),
    ("structure", "class"),
    ("plan", "scans"),
    ("kernels", "loops, tiles"),
    ("module", "PyTorch"),
)
"""The values that the compiler makes one of the other, and what each is."""


def stages() -> Iterator[str]:
    """The stages of the compiler in two rows, and what stands beside them."""
    for k, (name, kind) in enumerate(STAGES):
        x, y = 85 + 155 * (k % 4), 40 + 130 * (k // 4)
        yield box(x, y, 100, name, "state" if name == "system" else "box")
        yield text(x, y + 30, kind, "small")
        if k % 4 < 3:
            yield arrow(x + 51, y, x + 103, y)
    yield '<path class="arrow" d="M550 86C550 126 85 96 85 152"/>'
    yield text(
        330, 232, "equal to another? proved from two Systems, refuted by running both", "small"
    )


DIAGRAMS: dict[str, tuple[int, int, Callable[[], Iterator[str]]]] = {
    "recurrence": (640, 262, recurrence),
    "chunks": (640, 320, chunks),
    "stages": (640, 250, stages),
}
"""File name → width, height, and what is drawn."""


def drawn(name: str) -> str:
    """Returns the file of one diagram."""
    width, height, parts = DIAGRAMS[name]
    size = f'viewBox="0 0 {width} {height}" width="{width}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join((head, STYLE, *parts(), "</svg>\n"))


def main() -> None:
    """Writes every diagram."""
    for name in DIAGRAMS:
        (PICTURES / f"{name}.svg").write_text(drawn(name), encoding="utf-8")
        print(f"wrote pictures/{name}.svg")


if __name__ == "__main__":
    main()
