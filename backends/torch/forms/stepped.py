"""States that are stepped token by token."""

from __future__ import annotations

from .row import Layout, TorchForm

ROW = TorchForm(Layout.TILE, chunk=64)
