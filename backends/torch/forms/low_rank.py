"""A triangular system in each chunk."""

from __future__ import annotations

from ..counts import Rewriting
from ..low_rank import LowRankSkeleton
from .row import Layout, TorchForm

_COUNTS = Rewriting(calls=150, chunk_calls=2, pairs=7, pair_words=20, words=12)
ROW = TorchForm(Layout.GROUPED, LowRankSkeleton, _COUNTS, chunk=64, block=17)
