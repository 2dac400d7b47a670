"""Sums over all pairs of tokens, in blocks of queries."""

from __future__ import annotations

from .row import Layout, TorchForm

ROW = TorchForm(Layout.TILE, chunk=64)
