"""Multi-query associative recall: a list of key-value pairs, then questions about its keys.

A sequence starts with K pairs `key value key value …`. The rest of it is empty (token 0) but for K
questions: every key of the list occurs once more, and there the model must name the key's value.
Nothing is asked anywhere else. Arora et al. 2023 ("Zoology"); Sieber et al. 2024, appendix J.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

IGNORED = -100
"""The target where nothing is asked; `torch.nn.functional.cross_entropy` skips it."""

EMPTY = 0
"""The token between the questions."""

_GAP_POWER = 0.01
"""Questions gather right behind the list: slot s = 1, 2, … is drawn with weight s^(0.01 - 1)."""


@dataclass(frozen=True, slots=True)
class Task:
    """One size of the task.

    Attributes:
        vocabulary: V; keys are the tokens 1 … V/2 - 1, values V/2 … V - 1.
        length: L, tokens in a sequence.
        pairs: K, key-value pairs in a sequence, and questions.
    """

    vocabulary: int
    length: int
    pairs: int

    def __post_init__(self) -> None:
        """Refuses sizes that leave no room for the questions.

        Raises:
            ValueError: fewer than two tokens per question, or fewer keys than pairs.
        """
        if 4 * self.pairs > self.length or self.length % 2:
            raise ValueError(f"{self.pairs} pairs need an even length of at least {4 * self.pairs}")
        if self.pairs > self.vocabulary // 2 - 1:
            raise ValueError(f"{self.pairs} pairs need more than {self.vocabulary} tokens")

    @property
    def chance(self) -> float:
        """The accuracy of naming any value of the list, without knowing which."""
        return 1 / self.pairs

    def batch(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draws fresh sequences.

        Args:
            size: B, how many.
            generator: where the randomness comes from.

        Returns:
            Tokens `[B, L]` and targets `[B, L]`, which are `IGNORED` where nothing is asked.
        """
        half, pairs = self.vocabulary // 2, self.pairs
        keys = 1 + _draw(torch.ones(half - 1), size, pairs, generator)
        values = half + _draw(torch.ones(self.vocabulary - half), size, pairs, generator)
        slots = torch.arange(1, (self.length - 2 * pairs) // 2 + 1)
        where = 2 * pairs + 2 * _draw(slots ** (_GAP_POWER - 1.0), size, pairs, generator)
        tokens = torch.full((size, self.length), EMPTY)
        tokens[:, 0 : 2 * pairs : 2] = keys
        tokens[:, 1 : 2 * pairs : 2] = values
        tokens.scatter_(1, where, keys)
        targets = torch.full((size, self.length), IGNORED).scatter_(1, where, values)
        return tokens, targets


def _draw(weights: Tensor, rows: int, count: int, generator: torch.Generator) -> Tensor:
    """Draws `[rows, count]` indices by weight, none twice in a row."""
    return torch.multinomial(weights.expand(rows, -1), count, generator=generator)
