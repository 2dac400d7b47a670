"""What a model does when transformers runs it, beside what it does without states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from models import VOCABULARY, made
from torch import Tensor

PLAIN = {"eos_token_id": None, "pad_token_id": 0, "max_new_tokens": 6}


def prompts(rows: int, length: int) -> Tensor:
    """Returns random tokens without 0, the `pad_token_id`, which transformers takes for padding."""
    return torch.randint(1, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(3))


def logits(model: Any, tokens: Tensor, **given: Any) -> Tensor:
    """Returns what the model gives without states."""
    with torch.no_grad():
        found: Tensor = model(tokens, use_cache=False, **given).logits
    return found


def greedy_tokens_are_those_of_the_largest_logits(model: Any, tokens: Tensor) -> None:
    wanted = tokens
    for _ in range(PLAIN["max_new_tokens"]):
        following = logits(model, wanted)[:, -1].argmax(-1, keepdim=True)
        wanted = torch.cat((wanted, following), 1)
    assert torch.equal(model.generate(tokens, do_sample=False, **PLAIN), wanted)
    assert len(wanted[:, tokens.shape[1] :].unique()) > 3  # not one token for ever


def beams_are_those_without_a_cache(model: Any, tokens: Tensor, **way: int) -> None:
    whole = model.generate(tokens, use_cache=False, do_sample=False, **way, **PLAIN)
    assert torch.equal(model.generate(tokens, do_sample=False, **way, **PLAIN), whole)


def the_loss_falls(path: Path, tokens: Tensor) -> None:
    """By a fifth in ten steps on the same rows, of two batches each, under autocast to bfloat16."""
    model = made(path).float().train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(10):
        total = 0.0
        for rows in tokens.chunk(2):
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(rows, labels=rows).loss / 2
            loss.backward()
            total += loss.item()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(total)
    assert losses[-1] < 0.8 * losses[0], losses
