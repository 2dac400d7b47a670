"""What is known of versions of Triton, with sources: data that modules print."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dsfc.plan.scan_ir import LOW_RANK, Form

HANDLES = ("3.6", "3.7", "3.8", "3.9")
"""Versions in which `compiled[grid](*arguments)` takes all arguments in order, constants too.

Read off `triton/compiler/compiler.py` of 3.6.0, 3.7.1, 3.8.0 and 3.9.0: nobody promises it.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Kernels that come out wrong, or do not come out.

    Attributes:
        first: version of Triton that has it; there may be older ones.
        fixed: the first version that is known to be free of it; empty where none is.
        platform: `cuda` or `hip`.
        architectures: those that it was seen on.
        forms: forms with kernels of that kind.
        what: what happens, as a clause that a warning can end with.
        source: who found it.
        dated: when that was written down; a year where no day is given.
    """

    first: str
    fixed: str
    platform: str
    architectures: tuple[int, ...]
    forms: frozenset[Form]
    what: str
    source: str
    dated: str


_PRODUCTS = frozenset({Form.MATRIX, Form.KEYED, *LOW_RANK})
"""Forms whose state is carried from product to product of matrices."""

_FLA = "github.com/fla-org/flash-linear-attention/issues"
_TRITON = "github.com/triton-lang/triton/issues"

FAULTS = (
    Fault(
        *("3.4", "3.7.1", "cuda", (90,), _PRODUCTS),
        "gradients of keys and decays are wrong: the transpose of a product is multiplied wrongly",
        f"{_FLA}/640",
        "2026-04-12",
    ),
    Fault(
        *("3.4", "3.6", "cuda", (100, 103), _PRODUCTS),
        "the compiler aborts: it fails to hoist tmem_store",
        f"{_TRITON}/8459",
        "2025-10-16",
    ),
    Fault(
        *("3.6", "3.9", "cuda", (100, 103), _PRODUCTS),
        "the compiler aborts in TritonNvidiaGPUOptimizeTMemLayouts, for 64 keys and values",
        "found when compiling ahead of time: 3.6.0 aborts, 3.9.0 does not",
        "2026-11-21",
    ),
    Fault(
        *("3.6", "3.7", "cuda", (100,), _PRODUCTS),
        "products that follow one another race with four warps or more",
        f"{_TRITON}/9871",
        "2026-03-30",
    ),
    Fault(
        *("3.6", "3.8", "cuda", (103,), _PRODUCTS),
        "products that follow one another race with four or eight warps",
        f"{_TRITON}/10590",
        "2026",
    ),
    # Kernels invert triangles of 16 tokens, with eight warps: no form has this one.
    Fault(
        *("3.4", "", "cuda", (90,), frozenset()),
        "gradients through the inverse of a triangle of 64 tokens are wrong with four warps",
        f"{_FLA}/984",
        "2026-06-27",
    ),
    Fault(
        *("3.7", "", "cuda", (100,), frozenset(LOW_RANK)),
        "the inverse of a triangle is NaN in launches of 1,024 programs or more",
        f"{_FLA}/913",
        "2026-06-08",
    ),
)
"""What was found; versions from `first` on, without `fixed`."""


def faults(forms: Collection[Form]) -> tuple[Fault, ...]:
    """Returns the faults that kernels of some forms have."""
    return tuple(f for f in FAULTS if f.forms & set(forms))
