"""Words of the text of a module with kernels, besides those of a torch module."""

from __future__ import annotations

from ..torch.words import RESERVED as TORCH

RESERVED = TORCH | {"TILES", "tl", "triton"}
