"""The atlas as a value: mixers, and what was found of each pair of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import networkx

FORMAT = "dsfc-atlas/2"


@dataclass(frozen=True, slots=True)
class Node:
    """A mixer.

    Attributes:
        name: of the mixer.
        doc: what it calls itself.
        kind: its structure class, "ratio over scalar".
        text: the hash of its text with its bases, as far as it says what the mixer is.
    """

    name: str
    doc: str
    kind: str
    text: str = ""


class Found(StrEnum):
    """What is known of a pair; equal at some sizes alone is no edge."""

    PROVED = "proved"
    AT_SIZES = "proved at sizes"
    REFUTED = "refuted"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class Family(StrEnum):
    """The families of statements about pairs, by verdict and by the sizes they speak of."""

    EQUAL = "equal, for all sizes"
    AT_SIZES = "equal, for the sizes named; others are open"
    CONDITIONAL = "equal where conditions hold"
    CASE = "a case of the other"
    DIFFERENT = "not equal"
    NO_CASE = "no case of the other"
    UNKNOWN = "not decided"
    SKIPPED = "not comparable"


@dataclass(frozen=True, slots=True)
class Pair:
    """What was found of two mixers, for one statement about them.

    Attributes:
        a: the first mixer.
        b: the second.
        found: whether the statement was decided, and how.
        statement: its kind, as verdicts call it: "EQ", "COND", "SUB", "SLOT(token)", ...
        conditions: under which it is proved, or the values that make a a case; none if empty.
        reason: the obstacle, why the pair was skipped, or what a proof rests on.
        directed: whether it says something of a that it does not say of b.
        sizes: (axis, size) of what is proved at one size of an axis alone; none if for all sizes.
    """

    a: str
    b: str
    found: Found
    statement: str
    conditions: tuple[str, ...] = ()
    reason: str = ""
    directed: bool = False
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def family(self) -> Family:
        """What it says, by verdict and size."""
        match self.found:
            case Found.PROVED if self.directed:
                return Family.CASE
            case Found.PROVED:
                return Family.CONDITIONAL if self.conditions else Family.EQUAL
            case Found.AT_SIZES:
                return Family.AT_SIZES
            case Found.REFUTED:
                return Family.NO_CASE if self.directed else Family.DIFFERENT
            case Found.UNKNOWN:
                return Family.UNKNOWN
        return Family.SKIPPED


@dataclass(frozen=True, slots=True)
class Atlas:
    """Mixers and what was found of their pairs, in the order of the mixers.

    Attributes:
        nodes: the mixers.
        pairs: every pair that was asked about, once for each statement.
        left_out: (mixer, why) of mixers that have no system.
        complete: whether all was asked; False where the run was interrupted.
    """

    nodes: tuple[Node, ...]
    pairs: tuple[Pair, ...]
    left_out: tuple[tuple[str, str], ...]
    complete: bool = True

    @property
    def edges(self) -> tuple[Pair, ...]:
        """The pairs of which a statement is proved, less equalities that a case says more closely.

        That a is a case of b for some values of b's parameters says too that both are equal there.
        """
        proved = tuple(p for p in self.pairs if p.found is Found.PROVED)
        cases = {(frozenset((p.a, p.b)), p.conditions) for p in proved if p.directed}
        return tuple(
            p
            for p in proved
            if p.directed or not p.conditions or (frozenset((p.a, p.b)), p.conditions) not in cases
        )

    def count(self, outcome: Found) -> int:
        """Returns how many answers are of a kind."""
        return sum(p.found is outcome for p in self.pairs)

    def graph(self) -> networkx.MultiDiGraph:
        """Returns the proved statements as a graph: an edge each way where they say the same."""
        out = networkx.MultiDiGraph()
        for node in self.nodes:
            out.add_node(node.name, doc=node.doc, kind=node.kind)
        for p in self.edges:
            for a, b in ((p.a, p.b),) if p.directed else ((p.a, p.b), (p.b, p.a)):
                out.add_edge(a, b, statement=p.statement, conditions=p.conditions)
        return out
