"""Where examples write: nothing of it is part of the checkout."""

from __future__ import annotations

from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"
"""A folder for each example, with its modules, results and pictures."""
