"""A triangular system in each chunk, of its keys alone, scaled by levels of blocks."""

from __future__ import annotations

from ..counts import Rewriting
from ..delta import KeyedDeltaSkeleton
from .row import Layout, TorchForm

_COUNTS = Rewriting(
    calls=95, chunk_calls=7, pairs=4, pair_words=17, words=9, level_calls=20, level_words=8
)
ROW = TorchForm(Layout.GROUPED, KeyedDeltaSkeleton, _COUNTS, chunk=32, block=17)
