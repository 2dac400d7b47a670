"""The structure of a System: what decides how it is computed, read off the expressions.

Nothing here is declared by a spec. Axes have roles by their use, classes follow from the axes, the
field and the time dependence of λ, and a bound on |Λ| is stated only where it is proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dsfc.expr.build import add, mul
from dsfc.expr.tree import Axis, Expr, Field, Size
from dsfc.system.ir import Coupling, Decay, Guard


class Cell(Enum):
    """The lattice of transitions Λ.

    ID ⊂ LTI-S ⊂ LTI-R ⊂ LTI-C ⊂ LTI-X; LTI-S ⊂ TV-H ⊂ TV-K ⊂ TV-CK; TV-H ⊂ TV-V ⊂ TV-CK;
    TV-1 is TV-CK without a key axis; TV-K ⊂ TV-DPLR ⊂ TV-X. The diagonal cells are closed under
    composition over time.
    """

    ID = "ID"
    LTI_S = "LTI-S"
    LTI_R = "LTI-R"
    LTI_C = "LTI-C"
    LTI_X = "LTI-X"
    NIL = "NIL"
    TV_H = "TV-H"
    TV_K = "TV-K"
    TV_V = "TV-V"
    TV_CK = "TV-CK"
    TV_1 = "TV-1"
    TV_DPLR = "TV-DPLR"
    TV_X = "TV-X"
    NONE = "NONE"

    @property
    def diagonal(self) -> bool:
        """Whether Λ is diagonal."""
        return self not in (Cell.LTI_X, Cell.TV_DPLR, Cell.TV_X, Cell.NONE)


class ClassName(Enum):
    """The structure class that decides the kernel; the name used in code, docs and `show`."""

    SCALAR = "scalar"
    PER_KEY = "per_key"
    PER_VALUE = "per_value"
    SELECTIVE = "selective"
    ELEMENTWISE = "elementwise"
    LTI = "lti"
    FIR = "fir"
    DENSE = "dense"
    LOW_RANK = "low_rank"
    SOFTMAX = "softmax"


class BoundKind(Enum):
    """What is proved of |Λ|."""

    EQUAL_ONE = "= 1"
    LESS_THAN_ONE = "< 1"
    AT_MOST_ONE = "≤ 1"
    NORM_NEEDED = "norm needed"
    UNKNOWN = "unknown"

    @property
    def at_most_one(self) -> bool:
        """Whether |Λ| ≤ 1 is proved."""
        return self in (BoundKind.EQUAL_ONE, BoundKind.LESS_THAN_ONE, BoundKind.AT_MOST_ONE)


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on |Λ| with the reason it holds.

    With NORM_NEEDED the bound on the diagonal part, which says nothing about the norm of Λ, stands
    in `diagonal`.
    """

    kind: BoundKind
    reason: str
    diagonal: BoundKind | None = None


class ReadKind(Enum):
    """Whether a state is read after its update, before it, both, or not at all."""

    POST = "post"
    PRE = "pre"
    BOTH = "pre and post"
    NONE = "not read"


@dataclass(frozen=True, slots=True)
class BlockStructure:
    """The structure of one block.

    Attributes:
        state: its name.
        heads: axes declared as heads.
        keys: axes contracted by a read, or by a term of the stage.
        channels: the rest.
        field: field of the state.
        cell: cell of the lattice of Λ.
        name: structure class.
        complex_decay: whether λ is complex.
        transition_fixed: whether Λ does not depend on the token.
        drive_fixed: whether B does not: each drive is a constant times a fixed linear function of
            inputs (or of values of earlier stages).
        read_fixed: whether C does not: no read's vectors depend on the token.
        decay: the diagonal with its definitions inlined; None for dense transitions.
        positive: whether λ > 0 is proved, so that it may be computed as e^log.
        coupling: of the drive's key to λ (from the flow where the spec gave one).
        bound: on `|Λ|`.
        read: before or after the update.
        backward: whether the block runs from the end to the start.
        numerator_of: the states of the denominators it is divided by.
        pair: the partner in a ratio (equal decay and key, stream 1 in the denominator), if any.
        size: number of entries of the state.
    """

    state: str
    heads: tuple[Axis, ...]
    keys: tuple[Axis, ...]
    channels: tuple[Axis, ...]
    field: Field
    cell: Cell
    name: ClassName
    complex_decay: bool
    transition_fixed: bool
    drive_fixed: bool
    read_fixed: bool
    decay: Decay | None
    positive: bool
    coupling: Coupling
    bound: Bound
    read: ReadKind
    backward: bool
    numerator_of: tuple[str, ...]
    pair: str | None
    size: Expr

    @property
    def label(self) -> str:
        """The cell with its flags: "TV-H complex", "LTI-C reversed"."""
        flag = self.complex_decay and self.cell not in (Cell.LTI_C, Cell.LTI_X)
        return self.cell.value + " complex" * flag + " reversed" * self.backward

    @property
    def axes_text(self) -> str:
        """Axes by role, "head / key / channel"; a dot where there are none."""
        groups = (self.heads, self.keys, self.channels)
        return " / ".join(" ".join(a.name for a in g) or "·" for g in groups)


@dataclass(frozen=True, slots=True)
class RatioStructure:
    """A ratio in the read-out.

    Attributes:
        numerators: states the numerator reads.
        denominators: states the denominator reads.
        pairs: numerator block and denominator block with equal decay and key.
        guard: what keeps the denominator away from zero.
    """

    numerators: tuple[str, ...]
    denominators: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    guard: Guard


@dataclass(frozen=True, slots=True)
class Attention:
    """A read-out that weighs the values of all tokens so far by exponentials of scores.

    gate_i · Σ_{j ≤ i} w_ij value_j / Σ_{j ≤ i} w_ij, w_ij = exp(scale Σ_keys query_i key_j). Of the
    past it keeps the keys and values of all tokens.

    Attributes:
        heads: axes that enumerate independent weights.
        keys: axes that a score sums over.
        channels: the other axes of the value.
        scale: a number, over sizes.
        query, key, value: token-wise; each may lack axes.
        gate: token-wise, 1 where there is none.
    """

    heads: tuple[Axis, ...]
    keys: tuple[Axis, ...]
    channels: tuple[Axis, ...]
    scale: Expr
    query: Expr
    key: Expr
    value: Expr
    gate: Expr

    @property
    def kept(self) -> Expr:
        """How many numbers of a token are kept: what the key and the value of a token hold."""
        sizes = (mul(*(Size(a) for a in sorted(e.axes))) for e in (self.key, self.value))
        return add(*sizes)


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a System.

    Attributes:
        system: name of the System.
        cells: distinct labels of its blocks, in order; the reason is in `why` for NONE.
        name: class that decides the kernel; of several blocks the most general one.
        blocks: one per block, in order.
        ratios: ratios of the read-out.
        sums: reasons why sums over the past have no finite state.
        attentions: ratios of such sums that are softmax attention.
        causal: whether the output at a token depends on it and earlier tokens only.
        filters: whether tokens are mixed outside the states (lags, short filters).
        state_size: number of entries of all states together.
        exact: whether every log λ is closed.
    """

    system: str
    cells: tuple[str, ...]
    name: ClassName
    blocks: tuple[BlockStructure, ...]
    ratios: tuple[RatioStructure, ...]
    sums: tuple[str, ...]
    attentions: tuple[Attention, ...]
    causal: bool
    filters: bool
    state_size: Expr
    exact: bool

    @property
    def label(self) -> str:
        """Cells joined by ⊕."""
        return " ⊕ ".join(self.cells)

    @property
    def title(self) -> str:
        """The class, "ratio over scalar" where a ratio of states is read."""
        return f"ratio over {self.name.value}" if self.ratio else self.name.value

    @property
    def ratio(self) -> bool:
        """Whether the read-out divides by a read of states."""
        return any(r.denominators for r in self.ratios)

    def block(self, state: str) -> BlockStructure:
        """Returns the structure of a block.

        Args:
            state: its name.

        Raises:
            KeyError: there is no block of that name.
        """
        for b in self.blocks:
            if b.state == state:
                return b
        raise KeyError(state)

    def __repr__(self) -> str:
        """Returns one line for a terminal; `dsfc.structure.render` writes out the whole."""
        return f"<Structure {self.system}: class {self.title} ({self.label})>"

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        from dsfc.structure.html import html

        return html(self)
