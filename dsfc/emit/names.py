"""Identifiers of emitted text.

A spec may name anything; the module's language has words of its own. A name that, with trailing
underscores taken off, is such a word gets one more underscore: `lambda` → `lambda_`,
`lambda_` → `lambda__`. Where a word itself ends in underscores, it gets that many more. The mapping
is injective, so two names never meet.
"""

from __future__ import annotations

import builtins
import keyword
import sys
from functools import cache

PYTHON = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))
# A file of one of these names, in either case, would stand before the real module on its folder's
# import path; the last four are devices on Windows.
MODULES = (
    frozenset(name.lower() for name in sys.stdlib_module_names)
    | {"dsfc", "jax", "numpy", "scipy", "torch", "triton"}
    | {"aux", "con", "nul", "prn"}
)


def identifier(name: str, reserved: frozenset[str]) -> str:
    """Returns the emitted identifier of a spec's name.

    Args:
        name: ASCII name.
        reserved: words of the backend and of the module's own text, besides Python's.
    """
    bare = name.rstrip("_")
    tail = max(_tails(PYTHON).get(bare, -1), _tails(reserved).get(bare, -1))
    return name + "_" * (tail + 1)


def class_name(mixer: str, reserved: frozenset[str]) -> str:
    """Returns the class name of a mixer: `normalized_attn` → `NormalizedAttn`, `s6` → `S6`.

    Args:
        mixer: its name.
        reserved: words of the backend, besides Python's.
    """
    parts = (part for part in mixer.split("_") if part)
    return identifier("".join(part[:1].upper() + part[1:] for part in parts) or "Mixer", reserved)


def file_name(mixer: str) -> str:
    """Returns the name of a mixer's file: `s6` → `s6.py`, but `torch` → `torch_.py`."""
    bare = mixer.rstrip("_")
    taken = bare.lower() in MODULES or bare in keyword.kwlist
    return f"{mixer}_.py" if taken else f"{mixer}.py"


@cache
def _tails(words: frozenset[str]) -> dict[str, int]:
    """Words without trailing underscores → the most underscores that one of them ends in."""
    out: dict[str, int] = {}
    for word in words:
        bare = word.rstrip("_")
        out[bare] = max(out.get(bare, 0), len(word) - len(bare))
    return out
