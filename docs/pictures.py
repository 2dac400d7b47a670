"""Draws the spectra of the README from shipped specs: `python docs/pictures.py`.

They are those of the pages of mixers, side by side in one file of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from picture import svg  # noqa: E402 - an extension of these pages
from spectrum import spectra, start  # noqa: E402 - likewise

import dsfc  # noqa: E402 - behind what it stands beside

NAMES = {"s4d": "S4D", "lru": "LRU", "rg_lru": "RG-LRU of Griffin"}
"""Mixers whose spectra are drawn."""

WIDTH, HEIGHT, HEAD, GAP = 800, 252, 26, 20
"""Width and height of the picture, height of its titles, room between spectra, in its units."""


def style() -> str:
    """The rules of the pages for spectra, which follow a dark page here too."""
    lines = (HERE / "_static" / "dsfc.css").read_text(encoding="utf-8").splitlines()
    own = "\n".join(line for line in lines if line.startswith("svg.spectrum"))
    dark = "svg { color: #ddd; } svg.spectrum .dots { stroke: #56b4e9; }"
    screen = f"@media (prefers-color-scheme: dark) {{ {dark} }}"
    return f"{own}\nsvg {{ font-family: sans-serif; }}\n{screen}"


def side_by_side() -> Iterator[str]:
    """The spectra with their titles, from left to right."""
    left = 0
    for name, title in NAMES.items():
        it = dsfc.load(name)
        (values,) = (s.values for s in spectra(it, start(it)))
        drawn = svg(values, f"eigenvalues of {title}")
        width = int(drawn.split('width="')[1].split('"')[0])
        middle = left + width // 2
        yield f'<text x="{middle}" y="16" text-anchor="middle" fill="currentColor">{title}</text>'
        yield f'<g transform="translate({left} {HEAD})">\n{drawn}\n</g>'
        left += width + GAP


def picture() -> str:
    """The whole file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">'
    )
    return "\n".join((head, f"<style>\n{style()}\n</style>", *side_by_side(), "</svg>\n"))


def main() -> None:
    """Writes the picture."""
    path = HERE / "pictures" / "spectra.svg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(picture(), encoding="utf-8")
    print(f"wrote {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
