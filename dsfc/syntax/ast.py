"""The syntax tree: what a spec text says, before any name is looked up.

Nodes follow the grammar one to one. Names are folded to ASCII (`η` is `eta`); the spelling used
stands at `node.span.text`. Spans take no part in equality, so a tree is equal to the tree of any
other spelling of the same program. Parentheses leave no node: `(a + b) + c` is an `Add` in an
`Add`, `(a)` is `a`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from dsfc.layer_parts import NO_PARTS, LayerParts
from dsfc.papers import Paper
from dsfc.source import NOWHERE, Span


class AddOp(StrEnum):
    """Operator between two summands."""

    PLUS = "+"
    MINUS = "-"


class MulOp(StrEnum):
    """Operator between two factors of an elementwise product."""

    TIMES = "*"
    OVER = "/"


class CmpOp(StrEnum):
    """Comparison; the value is the ASCII spelling."""

    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="


class DeclKind(StrEnum):
    """What a declaration declares."""

    INPUT = "input"
    PARAM = "param"
    BUFFER = "buffer"
    STATE = "state"
    ABSTRACT = "abstract"


class Flag(StrEnum):
    """Constraint or property of a declared name."""

    COMPLEX = "complex"
    POSITIVE = "positive"
    NONNEG = "nonneg"
    UNIT = "unit"
    NONZERO = "nonzero"
    BACKWARD = "backward"


class InitKind(StrEnum):
    """How a declared name gets its first value."""

    VALUE = "="
    DRAW = "~"


@dataclass(frozen=True, slots=True)
class Ident:
    """A name where one is introduced or referred to outside an expression; `text` is ASCII."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        """The ASCII name."""
        return self.text


@dataclass(frozen=True, slots=True)
class Provenance:
    """Paper and equation, the string after a header or a definition, without its quotes."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# Expressions


@dataclass(frozen=True, slots=True)
class Num:
    """A number literal, exactly: `0.02` is 1/50."""

    value: Fraction
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A name used as a value; `id` is ASCII."""

    id: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index:
    """`x[i-1]`, `k[j]`, `ones[n]`: a name with brackets and no arguments."""

    name: Ident
    brackets: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`f(x)`, `W(x)`, `sum[n](x)`, `sum[j <= i](x)`: arguments, brackets before them or not."""

    name: Ident
    brackets: tuple[Condition, ...]
    args: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """Juxtaposition `W x`: a map and its operand (`Name`, `Call`, `Index` or another `Apply`)."""

    name: Ident
    operand: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pow:
    """`base ^ exponent`; `a^b^c` is `a^(b^c)`."""

    base: Expr
    exponent: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Neg:
    """Unary minus; `-x^2` is `-(x^2)`."""

    operand: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Dot:
    """Contraction `a · b · c`; at least two operands. Binds tighter than `*`."""

    operands: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mul:
    """Elementwise chain `a * b / c`, from the left; `operators[k]` is before `operands[k + 1]`."""

    operands: tuple[Expr, ...]
    operators: tuple[MulOp, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Outer:
    """Outer product `a ⊗ b ⊗ c`; at least two operands. Binds looser than `*`, tighter than `+`."""

    operands: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Add:
    """Sum `a + b - c`; `operators[k]` stands before `operands[k + 1]`."""

    operands: tuple[Expr, ...]
    operators: tuple[AddOp, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """`a < b <= c`: one comparison or more; `operators[k]` is between operands k and k + 1.

    In a condition of a claim it may hold `over` several tokens: `k · k[j] == 0 for j < i`.
    """

    operands: tuple[Expr, ...]
    operators: tuple[CmpOp, ...]
    over: Relation | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Expr = Num | Name | Index | Call | Apply | Pow | Neg | Dot | Mul | Outer | Add
Condition = Expr | Relation
"""What stands in brackets and in claims: a `Relation` if it compares, else an expression."""


# Declarations


@dataclass(frozen=True, slots=True)
class TensorType:
    """`h × n`: a set of axes, in the order written."""

    axes: tuple[Ident, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MapType:
    """`each b : c -> d`: one linear map per `each` (empty when not written)."""

    each: tuple[Ident, ...]
    source: tuple[Ident, ...]
    target: tuple[Ident, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Type = TensorType | MapType


@dataclass(frozen=True, slots=True)
class Dim:
    """One axis; `size` is None for an axis whose size the user of the module gives."""

    name: Ident
    heads: bool = False
    size: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Init:
    """`= expr` or `~ expr`."""

    kind: InitKind
    expr: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Dims:
    """`dims d, heads h = 4`."""

    dims: tuple[Dim, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Decl:
    """A declaration; a continuation line has the keyword of the one above it filled in.

    Attributes:
        type: None where none is written, for a declaration without axes.
        flags: in the order written, as written (a repeated flag is not an error of syntax).
    """

    kind: DeclKind
    names: tuple[Ident, ...]
    type: Type | None = None
    flags: tuple[Flag, ...] = ()
    init: Init | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const:
    """`const P = 2`."""

    name: Ident
    expr: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Def:
    """`y = expr "paper, equation"`."""

    name: Ident
    expr: Expr
    provenance: Provenance | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunDef:
    """`score(a, b) = expr`."""

    name: Ident
    params: tuple[Ident, ...]
    expr: Expr
    provenance: Provenance | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Flow:
    """`x' = drift by rule(step)`."""

    name: Ident
    drift: Expr
    rule: Ident
    step: Expr
    provenance: Provenance | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Use:
    """`use short_conv on q, k`."""

    modifier: Ident
    targets: tuple[Ident, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """`claim 0 < decay(S) < 1 when a == b and c > 0`; `when` is empty if not written."""

    relation: Condition
    when: tuple[Condition, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Citation:
    """`paper "authors", year, "title", arXiv "number"  "equation", letters S "h", alpha "A"`.

    Attributes:
        paper: what it says.
        words: where it names who keeps the paper, and the word `letters`.
        named: the names that it gives letters to, where they stand.
    """

    paper: Paper
    words: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    named: tuple[Ident, ...] = field(default=(), compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Layer:
    """`layer norm rms, gate silu`.

    Attributes:
        parts: what it says.
        words: where its names stand; the word `layer` is none.
    """

    parts: LayerParts
    words: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Item = Dims | Decl | Const | Def | FunDef | Flow | Use | Claim | Citation | Layer


# Units


@dataclass(frozen=True, slots=True)
class MixerUnit:
    """`mixer name "provenance" extends base { items }`."""

    name: Ident
    provenance: Provenance | None
    base: Ident | None
    items: tuple[Item, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ModifierUnit:
    """`modifier name on target "provenance" { items }`; `target` stands for what it is used on."""

    name: Ident
    target: Ident
    provenance: Provenance | None
    items: tuple[Item, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Unit = MixerUnit | ModifierUnit


def papers(unit: Unit) -> tuple[Paper, ...]:
    """Returns the papers that a unit names, in the order of the text."""
    return tuple(item.paper for item in unit.items if isinstance(item, Citation))


def layer_parts(unit: Unit) -> LayerParts:
    """Returns norm and gate of the layer of a unit; none of one that does not say."""
    return next((item.parts for item in unit.items if isinstance(item, Layer)), NO_PARTS)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its `#`, for the formatter; `own_line` if nothing stands before it."""

    text: str
    own_line: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spec:
    """All units of a text, in order. Comments take no part in equality."""

    units: tuple[Unit, ...]
    comments: tuple[Comment, ...] = field(default=(), compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


def children(node: Condition) -> tuple[Expr | Relation, ...]:
    """The expressions directly inside `node`, from left to right."""
    match node:
        case Num() | Name():
            return ()
        case Index():
            return node.brackets
        case Call():
            return (*node.brackets, *node.args)
        case Apply() | Neg():
            return (node.operand,)
        case Pow():
            return (node.base, node.exponent)
        case Dot() | Mul() | Outer() | Add() | Relation():
            return node.operands


def walk(node: Condition) -> Iterator[Condition]:
    """`node` and everything inside it, a parent before its children, from left to right."""
    stack: list[Condition] = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))
