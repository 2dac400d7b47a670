"""Sizes that kernels are printed with and their costs are counted with."""

from __future__ import annotations

SPAN = 384
"""Tokens from one state that the backward pass of a matrix scan keeps for the gradient of a decay
to the next: a multiple of all chunks, over which rounding errors of that gradient are summed."""

STEP = 4
"""Tokens from one state that the forward pass of a selective scan keeps to the next; the backward
pass takes as many at once. All states and decays of that many tokens are in registers, so that no
more fit."""

PAIRS = 2
"""Most complex states that a program of the backward pass of a selective scan has: registers hold
no more."""
