"""Softmax attention, which PyTorch runs."""

from __future__ import annotations

from .row import Layout, TorchForm

ROW = TorchForm(Layout.GROUPED)
