"""A triangular system in each chunk, of keys scaled by levels of blocks."""

from __future__ import annotations

from ..counts import Rewriting
from ..low_rank import KeyedLowRankSkeleton
from .row import Layout, TorchForm

_COUNTS = Rewriting(
    calls=130, chunk_calls=7, pairs=7, pair_words=30, words=12, level_calls=28, level_words=16
)
ROW = TorchForm(Layout.GROUPED, KeyedLowRankSkeleton, _COUNTS, chunk=32, block=17)
