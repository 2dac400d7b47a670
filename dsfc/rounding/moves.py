"""Rules of operators that move entries and compute nothing: views, copies, selections."""

from __future__ import annotations

ALIASES = frozenset(
    """
    alias as_strided detach diagonal expand flatten mT movedim narrow permute select
    slice squeeze t transpose unflatten unfold unsqueeze view lift_fresh _unsafe_view
    reshape _reshape_alias
    """.split()
)
"""Operators whose result has the entries of their first argument, in views of its parts."""

COPIES = frozenset(
    "clone contiguous flip gather index index_select repeat_interleave tril triu repeat".split()
)
"""Operators whose result has entries of their first argument, or zeros, in new tensors."""

PARTED = frozenset("chunk split split_with_sizes tensor_split unbind".split())
"""Operators that give several views of their first argument."""
