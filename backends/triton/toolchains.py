"""What is known of versions of Triton, with sources: data that modules print."""

from __future__ import annotations

HANDLES = ("3.6", "3.7", "3.8", "3.9")
"""Versions in which `compiled[grid](*arguments)` takes all arguments in order, constants too.

Read off `triton/compiler/compiler.py` of 3.6.0, 3.7.1, 3.8.0 and 3.9.0: nobody promises it.
"""
