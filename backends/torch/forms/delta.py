"""A triangular system in each chunk, of its keys alone."""

from __future__ import annotations

from ..counts import Rewriting
from ..delta import DeltaSkeleton
from .row import Layout, TorchForm

_COUNTS = Rewriting(calls=125, chunk_calls=2, pairs=4, pair_words=12, words=9)
ROW = TorchForm(Layout.GROUPED, DeltaSkeleton, _COUNTS, chunk=64, block=17)
