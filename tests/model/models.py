"""Models that are written, loaded by transformers, and run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dsfc
from dsfc.api.model import causal_module, write_folder
from dsfc.model.build import folder, part
from dsfc.model.ir import Model

VOCABULARY = 23
WIDTH = 16
SIZES = {"n": 4, "r": 4}

QUICK = ("gla",)
OTHERS = (
    "mlstm",
    "deltanet",
    "gated_deltanet",
    "kda",
    "linear_attn",
    "lru",
    "normalized_attn",
    "retnet",
    "rg_lru",
    "rwkv7",
    "s6",
    "softmax",
    "ssd",
)
HYBRID = "gla,gla,softmax"


def written(path: Path, pattern: Sequence[str], blocks: int = 2) -> Path:
    """Writes a small model with blocks in this order, and returns its folder."""
    names = list(dict.fromkeys(pattern))
    parts = tuple(part(causal_module(dsfc.load(name)), SIZES) for name in names)
    write_folder(folder(Model(parts, tuple(pattern), WIDTH, blocks, VOCABULARY)), path)
    return path


def made(path: Path, seed: int = 0, tied: bool = False) -> Any:
    """Makes a model in float64 whose next tokens are far from alike.

    With tied weights and no training the next token is mostly the last one.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(path, trust_remote_code=True, initializer_range=0.3)
    config.tie_word_embeddings = tied
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, trust_remote_code=True)
    return model.double().eval()
