"""Where the picture of an atlas has its boxes: bands of one structure class, general on the left.

Positions follow from the names and the proofs alone, so a picture changes only where they do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import networkx

from dsfc.atlas.ir import Atlas, Pair

COLUMNS = 5
"""Columns that a band has at least."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A statement between two boxes.

    Attributes:
        general: the box that the arrow leaves.
        special: the box that it points to: a case of the other, or equal under conditions.
        pair: the proof.
        both: whether each is a case of the other.
    """

    general: str
    special: str
    pair: Pair
    both: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes in cells of a grid.

    Attributes:
        boxes: text of a box, "a = b" for equal mixers → (column, row), counted from the top left.
        bands: (structure class, first row, number of rows), from the top.
        columns: how many there are.
        arrows: what is drawn; of cases that others imply there is none.
    """

    boxes: Mapping[str, tuple[int, int]]
    bands: tuple[tuple[str, int, int], ...]
    columns: int
    arrows: tuple[Arrow, ...]

    @property
    def related(self) -> frozenset[str]:
        """The boxes that arrows touch, or that hold several mixers."""
        touched = {box for a in self.arrows for box in (a.general, a.special)}
        return frozenset(touched | {box for box in self.boxes if " = " in box})


def layout(atlas: Atlas) -> Layout:
    """Returns where the picture of an atlas has its boxes, and its arrows."""
    box_of = _boxes(atlas)
    arrows = _arrows(atlas, box_of)
    depth = _depths(set(box_of.values()), arrows)
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    for node in sorted(atlas.nodes, key=lambda n: n.name):
        kinds[node.kind][box_of[node.name]] = None
    placed: set[str] = set()
    touched = {box for a in arrows for box in (a.general, a.special)}
    columns = max((COLUMNS, *(d + 1 for d in depth.values())))
    cells: dict[str, tuple[int, int]] = {}
    bands, row = [], 0
    for kind, names in sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0])):
        own = [name for name in names if name not in placed]  # equal mixers may differ in class
        placed.update(own)
        if not own:
            continue
        height = _fill(cells, own, {n: depth[n] for n in own if n in touched}, columns, row)
        bands.append((kind, row, height))
        row += height
    return Layout(MappingProxyType(cells), tuple(bands), columns, arrows)


def _fill(
    cells: dict[str, tuple[int, int]],
    names: list[str],
    depth: Mapping[str, int],
    columns: int,
    top: int,
) -> int:
    """Puts the boxes of a band into cells, those of no arrow where there is room; the rows used."""
    heights = [0] * columns
    for name in sorted(depth):
        cells[name] = (depth[name], top + heights[depth[name]])
        heights[depth[name]] += 1
    for name in names:
        if name not in depth:
            column = min(range(columns), key=lambda c: (heights[c], c))
            cells[name] = (column, top + heights[column])
            heights[column] += 1
    return max(heights)


def _boxes(atlas: Atlas) -> dict[str, str]:
    """The box of each mixer: one for mixers of which every two are proved equal for all sizes."""
    equal = networkx.Graph()
    equal.add_nodes_from(node.name for node in atlas.nodes)
    equal.add_edges_from((p.a, p.b) for p in atlas.edges if not p.directed and not p.conditions)
    out: dict[str, str] = {}
    for family in networkx.connected_components(equal):
        # That a = b and b = c is no proof of a = c where b has no value.
        whole = all(equal.has_edge(a, b) for a, b in combinations(sorted(family), 2))
        for name in family:
            out[name] = " = ".join(sorted(family)) if whole else name
    return out


def _arrows(atlas: Atlas, box_of: Mapping[str, str]) -> tuple[Arrow, ...]:
    """The statements between boxes, once each, less the cases that others imply."""
    cases: dict[tuple[str, str], Pair] = {}
    equal: dict[tuple[str, str], Pair] = {}
    for p in atlas.edges:
        special, general = box_of[p.a], box_of[p.b]
        if special == general:
            continue
        if p.directed:
            cases.setdefault((general, special), p)
        else:
            equal.setdefault((min(general, special), max(general, special)), p)
    out = [
        Arrow(general, special, cases[general, special], both=(special, general) in cases)
        for general, special in _reduced(cases)
        if (special, general) not in cases or general < special
    ]
    shown = {frozenset(pair) for pair in cases}
    out += [Arrow(*pair, p) for pair, p in equal.items() if frozenset(pair) not in shown]
    return tuple(sorted(out, key=lambda a: (a.pair.directed, a.general, a.special)))


def _reduced(cases: Mapping[tuple[str, str], Pair]) -> list[tuple[str, str]]:
    """The cases without those that a chain of others goes around; each of these is proved too."""
    graph = networkx.DiGraph(cases.keys())
    groups = networkx.condensation(graph)
    group = groups.graph["mapping"]
    least = networkx.transitive_reduction(groups)
    return [(a, b) for a, b in cases if group[a] == group[b] or least.has_edge(group[a], group[b])]


def _depths(boxes: set[str], arrows: tuple[Arrow, ...]) -> dict[str, int]:
    """How many arrows lead to a box at most, from what is more general."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(sorted(boxes))
    graph.add_edges_from((a.general, a.special) for a in arrows)
    groups = networkx.condensation(graph)
    out: dict[str, int] = {}
    for depth, layer in enumerate(networkx.topological_generations(groups)):
        for group in layer:
            for box in groups.nodes[group]["members"]:
                out[box] = depth
    return out
