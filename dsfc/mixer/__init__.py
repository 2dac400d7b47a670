"""The typed mixer: what a spec means, with its verification, evaluation and rendering."""

from __future__ import annotations

from dsfc.mixer.axes import sizes
from dsfc.mixer.evaluate import evaluate
from dsfc.mixer.library import Library
from dsfc.mixer.render import render
from dsfc.mixer.resolve import resolve
from dsfc.mixer.sample import Sample, sample
from dsfc.mixer.verify import MixerError, verify

__all__ = [
    "Library",
    "MixerError",
    "Sample",
    "evaluate",
    "render",
    "resolve",
    "sample",
    "sizes",
    "verify",
]
