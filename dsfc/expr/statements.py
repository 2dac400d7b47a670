"""What a claim states, once its names are bound: comparisons of expressions, and predicates.

A mixer's text is typed into these values, and what is derived from the mixer is held against them;
neither side knows the other's values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from dsfc.expr.tree import Expr
from dsfc.source import Span


class Relation(StrEnum):
    """How two values compare."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="
    EQUAL = "=="
    DIFFERENT = "!="


@dataclass(frozen=True, slots=True)
class Earlier:
    """Every token before the present one, and the present one too if it is to be.

    Attributes:
        var: the index that stands for such a token.
        own: whether the present token is one of them.
        text: as written, `j < i`.
    """

    var: str
    own: bool
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a < b <= c`, at every token and every index.

    Attributes:
        operands: one more than relations.
        relations: the k-th stands between operands k and k + 1.
        texts: the operands as written.
        earlier: the tokens that an index of the operands stands for, at each of which it holds.
    """

    operands: tuple[Expr, ...]
    relations: tuple[Relation, ...]
    texts: tuple[str, ...]
    earlier: Earlier | None = None

    def text(self) -> str:
        """The comparison as written."""
        out = self.texts[0]
        for relation, text in zip(self.relations, self.texts[1:], strict=True):
            out += f" {relation} {text}"
        return out if self.earlier is None else f"{out} for {self.earlier.text}"


class PredicateName(StrEnum):
    """A predicate of a derived system."""

    STABLE = "stable"
    CAUSAL = "causal"
    TIME_INVARIANT = "time_invariant"
    ROW_STOCHASTIC = "row_stochastic"
    FINITE = "finite"
    CLASS = "class"
    EQUIVALENT = "equivalent"


FOLLOWED_BY: Mapping[PredicateName, str] = MappingProxyType(
    {PredicateName.EQUIVALENT: "a mixer", PredicateName.CLASS: "a structure class"}
)
"""Predicates that a name follows, and what it is a name of."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate, with the name it is about: a class, another mixer, the values that are mixed."""

    word: PredicateName
    about: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimStatement:
    """A claim: what is stated, under which conditions.

    Attributes:
        text: the canonical text of the claim.
        what: what is stated.
        when: conditions, each holding at every token and index; none if empty.
        span: where it stands.
    """

    text: str
    what: Comparison | Predicate
    when: tuple[Comparison, ...] = ()
    span: Span | None = None
