"""A group of processes as threads of one: they meet at a barrier for each collective.

Threads see what starts in them, so that a test can watch kernels; they share one interpreter of
Triton. Only the functions of `torch.distributed` that emitted modules and their checks call exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue
from typing import Any

import pytest
from torch import Tensor, distributed

PATIENCE = 600.0
"""Seconds after which a thread that nobody meets gives up."""


class ThreadGroup:
    """The collectives of a group of threads.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._barrier = threading.Barrier(count, timeout=PATIENCE)
        self._given: list[Any] = [None] * count
        self._sent = {(a, b): Queue[Tensor]() for a in range(count) for b in range(count)}
        self._own = threading.local()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts the functions of this group into `torch.distributed`."""
        names = "get_rank get_world_size get_global_rank all_gather reduce_scatter all_reduce"
        for name in (*names.split(), "send", "recv"):
            monkeypatch.setattr(distributed, name, getattr(self, name))

    def run(self, act: Callable[[int], None]) -> None:
        """Runs a function of a rank in every thread; raises what the first of them raises."""
        raised: list[BaseException] = []

        def one(rank: int) -> None:
            self._own.rank = rank
            try:
                act(rank)
            except BaseException as e:
                raised.append(e)
                self._barrier.abort()

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self._count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if raised:
            raise raised[0]

    # --- as torch.distributed has them ------------------------------------------------------------

    def get_rank(self, group: object = None) -> int:
        """Number of this thread."""
        rank: int = self._own.rank
        return rank

    def get_world_size(self, group: object = None) -> int:
        """How many threads there are."""
        return self._count

    def get_global_rank(self, group: object, rank: int) -> int:
        """The number of a thread of the group among all."""
        return rank

    def _exchanged(self, name: str, given: Any) -> list[Any]:
        """The arguments of every thread to the same collective."""
        self._given[self.get_rank()] = name, given
        self._barrier.wait()
        every = list(self._given)
        self._barrier.wait()
        assert [n for n, _ in every] == [name] * self._count, every
        return [x for _, x in every]

    def all_gather(self, parts: list[Tensor], part: Tensor, group: object = None) -> None:
        """Gives each thread what each one has."""
        for out, x in zip(parts, self._exchanged("all_gather", part.detach().clone()), strict=True):
            out.copy_(x)

    def reduce_scatter(self, out: Tensor, parts: list[Tensor], group: object = None) -> None:
        """Gives each thread the sum of what all have for it."""
        every = self._exchanged("reduce_scatter", [x.detach().clone() for x in parts])
        out.copy_(sum(x[self.get_rank()] for x in every))

    def all_reduce(self, x: Tensor, group: object = None) -> None:
        """Gives each thread the sum of what all have."""
        x.copy_(sum(self._exchanged("all_reduce", x.detach().clone())))

    def send(self, x: Tensor, to: int, group: object = None) -> None:
        """Gives a thread a tensor."""
        self._sent[self.get_rank(), to].put(x.detach().clone())

    def recv(self, x: Tensor, source: int, group: object = None) -> None:
        """Takes a tensor of a thread."""
        x.copy_(self._sent[source, self.get_rank()].get(timeout=PATIENCE))
