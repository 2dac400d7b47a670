"""The structure classes as data: one row each, from the cell of Λ to what may run it.

The first matching row of `dsfc.structure.classify` gives the cell; this table says what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dsfc.structure.ir import Cell, ClassName


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One structure class.

    Attributes:
        name: the class.
        decay: which axes λ depends on.
        examples: mixers of the literature.
        form: what is emitted for it.
    """

    name: ClassName
    decay: str
    examples: tuple[str, ...]
    form: str


_ROWS = (
    ClassRow(
        ClassName.SCALAR,
        "none, or heads: the identity or one number per head, fixed or input-dependent",
        ("linear and normalised attention", "RetNet", "SSD"),
        "chunked products of matrices",
    ),
    ClassRow(
        ClassName.PER_KEY,
        "key axes",
        ("GLA", "HGRN2", "RWKV-6"),
        "chunks with anchored sub-chunks: never exp of a large positive difference",
    ),
    ClassRow(
        ClassName.PER_VALUE,
        "channel axes, not key axes",
        ("the keys of gated slot attention",),
        "a scan with the state on chip, as a selective one",
    ),
    ClassRow(
        ClassName.SELECTIVE,
        "key and channel axes",
        ("S6",),
        "a scan with the state on chip",
    ),
    ClassRow(
        ClassName.ELEMENTWISE,
        "channel axes; the state has no key axis",
        ("qLSTM", "RG-LRU", "minimal GRU"),
        "a scan at memory bandwidth",
    ),
    ClassRow(
        ClassName.LTI,
        "fixed, and so are B and C; real or complex",
        ("S4D", "DSS", "DLR", "LRU"),
        "one kernel K: convolution, or chunks with state passing",
    ),
    ClassRow(
        ClassName.FIR,
        "no state: lags only",
        ("short convolution", "token shift"),
        "fused into its neighbour",
    ),
    ClassRow(
        ClassName.DENSE,
        "a full matrix",
        ("S4", "dense linear RNN"),
        "powers of Λ inside chunks; where B and C are fixed one kernel K, by FFT too",
    ),
    ClassRow(
        ClassName.LOW_RANK,
        "diagonal plus low rank, input-dependent",
        ("DeltaNet", "gated DeltaNet"),
        "chunks in WY form",
    ),
    ClassRow(
        ClassName.SOFTMAX,
        "not finite-dimensional",
        ("softmax attention",),
        "the platform's fused attention; its truncations as finite systems",
    ),
)

CLASSES: Mapping[ClassName, ClassRow] = MappingProxyType({r.name: r for r in _ROWS})

GENERALITY = (
    ClassName.FIR,
    ClassName.LTI,
    ClassName.SCALAR,
    ClassName.ELEMENTWISE,
    ClassName.PER_KEY,
    ClassName.PER_VALUE,
    ClassName.SELECTIVE,
    ClassName.LOW_RANK,
    ClassName.DENSE,
    ClassName.SOFTMAX,
)
"""Classes by the generality of what runs them; of several blocks the last decides."""

BY_CELL: Mapping[Cell, ClassName] = MappingProxyType(
    {
        Cell.ID: ClassName.SCALAR,
        Cell.LTI_S: ClassName.SCALAR,
        Cell.TV_H: ClassName.SCALAR,
        Cell.TV_K: ClassName.PER_KEY,
        Cell.TV_V: ClassName.PER_VALUE,
        Cell.TV_CK: ClassName.SELECTIVE,
        Cell.TV_1: ClassName.ELEMENTWISE,
        Cell.LTI_X: ClassName.DENSE,
        Cell.TV_X: ClassName.DENSE,
        Cell.TV_DPLR: ClassName.LOW_RANK,
        Cell.NIL: ClassName.FIR,
        Cell.NONE: ClassName.SOFTMAX,
    }
)
"""Class of each cell; LTI-R and LTI-C are lti where B and C are fixed too, else by their axes."""
