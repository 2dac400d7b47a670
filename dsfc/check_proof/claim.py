"""What a certificate claims, and the data that shows it, as values.

{"format": "dsfc-proof/1", "claim": {…}, "proof": {"rule": "linear-invariant", "rows": […]}}
{"format": "dsfc-proof/1", "claim": {…}, "proof": {"rule": "witness", …}}
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.check_proof.polynomial import Monomial
from dsfc.system.ir import System

FORMAT = "dsfc-proof/1"


@dataclass(frozen=True, slots=True)
class Claim:
    """Two systems and how they are put side by side.

    "Equal" means: the outputs are equal for every length, all inputs and all values of the
    parameters (in their declared ranges, where both outputs are defined), at these sizes; inputs
    and parameters of one name are one. "Different" means that this is not so.

    Attributes:
        a: one system.
        b: the other.
        names: name of an input, parameter or buffer of b → name in a that it is identified with;
            names that are left out stand for themselves.
        sizes: size of every axis of both, by name.
        equal: whether equality is claimed, or difference.
    """

    a: System
    b: System
    names: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, int], ...]
    equal: bool = True


CellMonomial = tuple[str, ...]
"""Names of state entries, sorted; () is the constant column."""

Coefficient = tuple[tuple[Monomial, int], ...]
"""A polynomial over generators of one moment: its terms, sorted by monomial."""


@dataclass(frozen=True, slots=True)
class Row:
    """Σ coefficient · product of state entries = 0, an invariant.

    Attributes:
        pivot: one of the products; no other row has it.
        terms: pairs (product of state entries, coefficient), each product once.
    """

    pivot: CellMonomial
    terms: tuple[tuple[CellMonomial, Coefficient], ...]


@dataclass(frozen=True, slots=True)
class Invariant:
    """A linear invariant: what rule "linear-invariant" stores.

    Attributes:
        rows: in reduced echelon form.
        entries: whether linear maps of tokens are written out in the entries of their matrices;
            else each entry of the result is a generator.
    """

    rows: tuple[Row, ...]
    entries: bool


Number = tuple[int, int, int, int]
"""A complex rational number (p, q, r, s): p / q + i r / s with positive q and s."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A point where the outputs differ: what rule "witness" stores.

    Attributes:
        length: number of tokens.
        values: (name in a, entries) of parameters and inputs; entries are in the order of the
            stored array, inputs one token after the other.
        token: where the outputs differ.
        index: which entry of the output, by position of each of a's output axes.
    """

    length: int
    values: tuple[tuple[str, tuple[Number, ...]], ...]
    token: int
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A claim with what shows it."""

    claim: Claim
    proof: Invariant | Witness
