"""Two layers around a mixer: as little as can answer the task, so that the mixer has to."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.mixers import mixer_class

STANDARD_DEVIATION = 0.02
"""Of every initial weight but the convolution's: N(0, 0.02²)."""

CONVOLUTION_DEVIATION = 3.0
"""Of the convolution's. Its output goes through three maps that start at 0.02 and are multiplied:
with a deviation of 1 most seeds stay on the plateau at 1 / pairs for all of 1,000 steps."""


class Softmax(nn.Module):
    """The baseline: softmax attention of one head, by the platform's own kernel.

    Args:
        d: width of the input.
        h: number of heads.
        n: width of queries and keys.
        p: width of values.
    """

    def __init__(self, d: int, h: int, n: int, p: int) -> None:
        super().__init__()
        self.heads = h
        self.query = nn.Linear(d, h * n, bias=False)
        self.key = nn.Linear(d, h * n, bias=False)
        self.value = nn.Linear(d, h * p, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        """Mixes `[B, L, d]` to `[B, L, h, p]`."""
        q, k, v = (
            project(u).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


class Convolution(nn.Module):
    """Causal depthwise convolution of width 2: x_i and x_{i-1}, weighted per channel.

    It is not in the paper. Each token must see its left neighbour for a value to meet its key;
    without it the two layers have to learn that step from positions, which takes far longer.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, width) * CONVOLUTION_DEVIATION)

    def forward(self, x: Tensor) -> Tensor:
        """Convolves `[B, L, d]` along L."""
        previous = F.pad(x, (0, 0, 1, -1))
        return self.weight[0] * previous + self.weight[1] * x


class Layer(nn.Module):
    """x + mixer(convolution(norm(x)))."""

    def __init__(self, mixer: nn.Module, width: int, *, convolution: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.convolution = Convolution(width) if convolution else nn.Identity()
        self.mixer = mixer

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[B, L, d]` to `[B, L, d]`."""
        return x + self.mixer(self.convolution(self.norm(x))).flatten(2)


class Model(nn.Module):
    """Tokens to logits: embedding and learned positions, two layers, the embedding again.

    Args:
        mixer: `normalized_attn`, `linear_attn` (emitted by dsfc) or `softmax` (torch).
        vocabulary: V.
        length: L.
        width: d, of the residual stream and of the values.
        keys: n, of queries and keys; the state of a mixer has n × d numbers.
        convolution: whether tokens see their left neighbour before the mixer.
    """

    def __init__(
        self, mixer: str, vocabulary: int, length: int, width: int, keys: int, *, convolution: bool
    ) -> None:
        super().__init__()
        make = Softmax if mixer == "softmax" else mixer_class("mqar", mixer)
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(length, width))
        self.layers = nn.Sequential(
            *(
                Layer(make(d=width, h=1, n=keys, p=width), width, convolution=convolution)
                for _ in range(2)
            )
        )
        self.apply(_initialise)
        nn.init.normal_(self.positions, std=STANDARD_DEVIATION)

    def forward(self, tokens: Tensor, asked: Tensor) -> Tensor:
        """Returns the logits where something is asked.

        Args:
            tokens: `[B, L]`.
            asked: `[B, L]`, true at the Q questions.

        Returns:
            `[Q, V]`, in the order of `tokens[asked]`.
        """
        x = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        return self.layers(x)[asked] @ self.embedding.weight.T


def _initialise(module: nn.Module) -> None:
    """Draws linear maps and embeddings from N(0, 0.02²); emitted modules do so themselves."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=STANDARD_DEVIATION)
