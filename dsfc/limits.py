"""Every bound on size, depth and time, in one value.

Reading, checking or compiling a spec ends within stated time and memory whatever the spec says.
Each bound is far above any mixer known (the largest shipped spec has 1 KiB, 300 tokens and nesting
5) and far below what would make the compiler slow; going over one is the diagnostic `E-LIMIT`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that a compilation respects.

    Attributes:
        bytes: size of one spec text in UTF-8.
        tokens: tokens of one spec text.
        nesting: open brackets at any place of a text.
        depth: height of an expression tree; also bounds chains without brackets, such as `- - - x`.
        name_length: characters of a name, after Greek letters are spelled out.
        integer_digits: digits of one number literal.
        exponent: absolute value of a decimal exponent, and of constant integer powers inside each
            other, multiplied. A number has at most `dsfc.expr.arithmetic.LONGEST` bits.
        axes: how many axes one array of a module may have.
        names: how many declarations and definitions one mixer uses, with those of its bases and
            modifiers.
        extends_depth: mixers in a chain of `extends`.
        cascade: how many stages of states a plan may have in series, each fed by the one before.
        expansion_nodes: expression nodes after functions, modifiers and `extends` are expanded.
        expansion_terms: terms of a separated sum or of a state update.
        diagnostics: problems reported in one run.
        seconds: processor time, in seconds, of a `check`, `show`, `compile` or `equiv` on the
            command line; from Python of one stage, one compilation or one comparison.
        elapsed: seconds by the clock on the wall, which count in place of `seconds` where they are
            given.
        memory: bytes of address space that such a command may take, where the system can tell;
            from Python by how many bytes the process may grow meanwhile (Linux).
    """

    bytes: int = 64 * 1024
    tokens: int = 20_000
    nesting: int = 64
    depth: int = 128
    name_length: int = 64
    integer_digits: int = 18
    exponent: int = 64
    axes: int = 24
    names: int = 512
    extends_depth: int = 8
    cascade: int = 32
    expansion_nodes: int = 50_000
    expansion_terms: int = 50_000
    diagnostics: int = 50
    seconds: float = 10.0
    elapsed: float | None = None
    memory: int = 4 * 1024**3


DEFAULT_LIMITS = Limits()
"""The bounds used where a caller gives none."""

PATIENCE = 6
"""How many times longer than it may work something may take by the clock on the wall."""

CAN_WATCH = sys.platform != "emscripten"
"""Whether time and memory of work are bounded: a thread watches them, and a browser starts none.

There the sizes are bounded all the same, and whoever waits for the work ends it.
"""
