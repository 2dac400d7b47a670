"""The typed mixer: what a spec means, with its verification, evaluation and rendering."""

from __future__ import annotations

from dsfc.mixer.axes import sizes
from dsfc.mixer.evaluate import evaluate
from dsfc.mixer.library import Library
from dsfc.mixer.resolve import resolve
from dsfc.mixer.sample import Sample, sample

__all__ = ["Library", "Sample", "evaluate", "resolve", "sample", "sizes"]
