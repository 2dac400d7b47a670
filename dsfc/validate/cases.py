"""Shapes chosen to hurt.

Faults of chunked kernels sit at borders: no token, one token, a chunk not quite full, just full,
one token over, several chunks with a rest, a length that shares no factor with anything.
"""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 4
"""Tokens per chunk in the checks: small, so that a few tokens cross several borders."""

BATCHES = (0, 1, 2)
"""Batch sizes."""

CHUNKS = (1, 3, CHUNK, 64)
"""Chunk sizes that must give one answer: none, odd, the usual one, longer than the sequence."""

LONG = 150
"""Tokens of a sequence long enough that every computation in rounds takes several."""


def lengths(chunk: int = CHUNK) -> tuple[int, ...]:
    """Returns the lengths to try with a chunk size, ascending."""
    around = {0, 1, 2, chunk - 1, chunk, chunk + 1, 2 * chunk + 1}
    return tuple(sorted(around | {prime_after(2 * chunk + 1)}))


def prime_after(length: int) -> int:
    """Returns the smallest prime above a length."""
    candidate = length + 1
    while any(candidate % k == 0 for k in range(2, candidate)):
        candidate += 1
    return candidate


def strided(x: Tensor) -> Tensor:
    """Returns the same numbers with the first and last axis swapped in memory."""
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def spaced(x: Tensor) -> Tensor:
    """Returns the same numbers as every second entry along the last axis of a larger array."""
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1]), float("nan"), dtype=x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


LAYOUTS = (strided, spaced)
"""Ways to lay out a tensor that are not contiguous."""
