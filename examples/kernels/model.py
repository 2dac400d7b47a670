"""A linear map, one mixer, a linear map: what is not linear is the mixer's."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from harness.mixers import mixer_class
from kernels.task import Task

WIDTH = 32
"""H, channels of a mixer."""

SIZES = {"dlr": {"n": 256}, "s4d": {"n": 256}, "gla": {"h": 1, "n": 64, "p": WIDTH}}

TRANSITION = {
    "dlr": ("a", "b"),
    "s4d": ("a", "omega", "log_Delta"),
    "gla": ("W_1", "W_2", "b_alpha"),
}
"""The parameters that Λ is computed from."""

CONVOLUTIONS = ("dlr", "s4d")
"""Mixers whose Λ, B and C are constants: what they do is a kernel."""


def make_mixer(name: str) -> nn.Module:
    """Makes the emitted module, initialised as its spec says."""
    return mixer_class("kernels", name)(d=WIDTH, **SIZES[name])


class Model(nn.Module):
    """x and the position on a circle to H channels, one mixer, to the outputs of the task.

    Args:
        mixer: `dlr`, `s4d` or `gla`.
        task: what is to be learnt.
    """

    def __init__(self, mixer: str, task: Task) -> None:
        super().__init__()
        turn = 2 * math.pi * torch.arange(task.length) / task.length
        self.register_buffer("circle", torch.stack((turn.cos(), turn.sin()), -1))
        self.register_buffer("scale", task.scale[:, None])
        self.encoder = nn.Linear(3, WIDTH)
        self.mixer = make_mixer(mixer)
        self.decoder = nn.Linear(WIDTH, task.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[B, L]` to `[B, L, C]`."""
        return self.scale * self._read(x)

    @torch.no_grad()
    def kernel(self) -> Tensor:
        """Returns the answer to a 1 at position 0, less that to zeros: `[L, C]`.

        Where the mixer is a convolution the whole model is one (before the scale), by this kernel.
        """
        x = torch.zeros(2, len(self.circle))
        x[0, 0] = 1
        answer, silence = self._read(x)
        return answer - silence

    def _read(self, x: Tensor) -> Tensor:
        circle = self.circle.expand(len(x), -1, -1)
        u = self.encoder(torch.cat((x[..., None], circle), -1))
        return self.decoder(self.mixer(u).flatten(2))
