"""Identifiers of emitted text.

A spec may name anything; the module's language has words of its own. A name that, with trailing
underscores taken off, is such a word gets one more underscore: `lambda` → `lambda_`,
`lambda_` → `lambda__`. The mapping is injective, so two names never meet.
"""

from __future__ import annotations

import builtins
import keyword

PYTHON = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))


def identifier(name: str, reserved: frozenset[str]) -> str:
    """Returns the emitted identifier of a spec's name.

    Args:
        name: ASCII name.
        reserved: words of the backend and of the module's own text, besides Python's.
    """
    bare = name.rstrip("_")
    return f"{name}_" if bare in PYTHON or bare in reserved else name


def class_name(mixer: str) -> str:
    """Returns the class name of a mixer: `normalized_attn` → `NormalizedAttn`, `s6` → `S6`."""
    return "".join(part[:1].upper() + part[1:] for part in mixer.split("_") if part) or "Mixer"
