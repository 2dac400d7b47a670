"""Random interleavings of what is done with states, beside whole sequences.

A batch of requests is prefilled in some mode, stepped, drafted and rolled back, forked, sent away,
joined by others, masked, packed, kept and restored, in random order. Every output is then what the
definition, `reference`, gives at that token of the request's own sequence; in mode `exact`, bit for
bit what a call for the whole sequence gives.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dsfc.validate.surface import Sample, Surface, surface

ROWS = 4
"""Requests of a batch, at most, where nothing is forked."""
BAR = 1e-8
"""Largest error of an output relative to the largest of its sequence, in float64: a mixer that
divides by a sum loses some digits."""


@dataclass
class Request:
    """One sequence so far.

    Attributes:
        tokens: their numbers among those that were drawn.
        outputs: one each.
    """

    tokens: list[int] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    def fork(self, count: int | None = None) -> Request:
        """Returns the same sequence, or so many tokens of its start."""
        return Request(self.tokens[:count], self.outputs[:count])


@cache
def _surface(module: ModuleType) -> Surface:
    return surface(module)


@cache
def _layer(module: ModuleType, dtype: torch.dtype, seed: int) -> tuple[Any, dict[str, Tensor]]:
    """A layer, and the values of its parameters as the definition takes them."""
    found = _surface(module)
    layer = found.layer(dtype, seed)
    with torch.no_grad():
        values = found.values(Sample(layer, found.draw(1, 1, dtype)))
    return layer, values


class Interleaving:
    """A layer, its state, and the requests in the rows of that.

    Args:
        module: the emitted module.
        seed: of all draws.
        exact: whether all runs in mode `exact`, in a random dtype.
    """

    def __init__(self, module: ModuleType, seed: int, exact: bool) -> None:
        self.found = _surface(module)
        self.random = Random(seed)
        self.exact = exact
        narrow = (torch.float32, torch.float32, torch.bfloat16, torch.float64)
        self.dtype = self.random.choice(narrow) if exact else torch.float64
        self.layer, self.values = _layer(module, self.dtype, seed % 7)
        self.drawn = self.found.draw(256, 1, self.dtype, seed)
        self.used = 0
        self.done: list[Request] = []
        self.requests = [Request() for _ in range(self.random.randint(1, 3))]
        self.state = self.layer.initial_state(len(self.requests), dtype=self.dtype)
        self.did: list[str] = []

    # --- material ---------------------------------------------------------------------------------

    def numbers(self, count: int) -> list[int]:
        """Numbers of tokens that were not used before."""
        self.used += count
        return [k % 256 for k in range(self.used - count, self.used)]

    def inputs(self, rows: list[list[int]]) -> list[Tensor]:
        """The tokens of those numbers, `[B, L, ...]`."""
        at = torch.tensor(rows, dtype=torch.long).reshape(len(rows), -1)
        return [x[0][at] for x in self.drawn.values()]

    def options(self, whole: bool = True) -> dict[str, Any]:
        """A mode, and how many tokens its chunks have.

        Args:
            whole: whether rows are sequences, and all of their tokens count.
        """
        if self.exact:
            return {"mode": "exact"}
        modes = [m for m in self.found.modes if whole or m != "fft"]
        chunk = self.random.randint(1, 5)
        return {"mode": self.random.choice(["auto", *modes]), "chunk": chunk}

    @property
    def step_mode(self) -> str:
        return "exact" if self.exact else "recurrent"

    def gave(self, rows: list[Request], numbers: list[list[int]], y: Tensor) -> None:
        """Writes down the outputs `[B, L, ...]` of tokens of those numbers."""
        for request, row, outs in zip(rows, numbers, y, strict=True):
            request.tokens += row
            request.outputs += outs.unbind(0)[: len(row)]

    # --- what is done -----------------------------------------------------------------------------

    def prefill(self) -> None:
        length = self.random.randint(0, 6)
        numbers = [self.numbers(length) for _ in self.requests]
        y, self.state = self.layer(
            *self.inputs(numbers), self.state, return_state=True, **self.options()
        )
        self.gave(self.requests, numbers, y)

    def masked(self) -> None:
        length = self.random.randint(1, 6)
        numbers = [self.numbers(length) for _ in self.requests]
        keeps = [[self.random.random() < 0.6 for _ in row] for row in numbers]
        mask = torch.tensor(keeps)
        y, self.state = self.layer(
            *self.inputs(numbers), self.state, mask=mask, return_state=True, **self.options(False)
        )
        for request, row, keep, outs in zip(self.requests, numbers, keeps, y, strict=True):
            assert not outs[~torch.tensor(keep)].any(), "the output of a masked token is 0"
            request.tokens += [k for k, kept in zip(row, keep, strict=True) if kept]
            request.outputs += [x for x, kept in zip(outs, keep, strict=True) if kept]

    def packed(self) -> None:
        numbers = [self.numbers(self.random.randint(0, 5)) for _ in self.requests]
        ends = torch.tensor([0, *(len(row) for row in numbers)]).cumsum(0)
        flat = [k for row in numbers for k in row]
        y, self.state = self.layer(
            *self.inputs([flat]),
            self.state,
            cu_seqlens=ends,
            return_state=True,
            **self.options(False),
        )
        for request, row, stop in zip(self.requests, numbers, ends[1:].tolist(), strict=True):
            self.gave([request], [row], y[:, stop - len(row) : stop])

    def stepped(self) -> None:
        count = self.random.randint(1, 3)
        place = self.random.random() < 0.5 and not (self.exact and self.found.growing)
        if place:
            room = self.random.randint(count, count + 2)
            self.state = self.state.clone().reserve(room)
        for _ in range(count):
            numbers = [self.numbers(1) for _ in self.requests]
            tokens = (x[:, 0] for x in self.inputs(numbers))
            y, self.state = self.layer.step(
                *tokens, self.state, in_place=place, mode=self.step_mode
            )
            self.gave(self.requests, numbers, y[:, None])

    def drafted(self) -> None:
        count = self.random.randint(1, 4)
        numbers = [self.numbers(count) for _ in self.requests]
        y, states = self.layer.step_k(*self.inputs(numbers), self.state, mode=self.step_mode)
        same = self.random.random() < 0.3
        kept = [self.random.randint(0, count) for _ in self.requests]
        kept = kept[:1] * len(kept) if same else kept
        self.state = states.at(kept[0]) if same else states.select(torch.tensor(kept))
        self.rolled_back(numbers, y, kept)

    def checkpointed(self) -> None:
        length, every = self.random.randint(1, 8), self.random.randint(1, 4)
        numbers = [self.numbers(length) for _ in self.requests]
        y, states = self.layer.checkpoints(
            *self.inputs(numbers), self.state, every=every, **self.options()
        )
        assert len(states) == -(-length // every)
        number = self.random.randrange(len(states))
        self.state = states[number]
        kept = min((number + 1) * every, length)
        self.rolled_back(numbers, y, [kept] * len(self.requests))

    def rolled_back(self, numbers: list[list[int]], y: Tensor, kept: list[int]) -> None:
        """Writes down all outputs, and goes on behind those tokens that are kept."""
        whole = [r.fork() for r in self.requests]
        self.gave(whole, numbers, y)
        self.done += whole
        lengths = [len(r.tokens) + k for r, k in zip(self.requests, kept, strict=True)]
        self.requests = [r.fork(k) for r, k in zip(whole, lengths, strict=True)]

    def indexed(self) -> None:
        count = self.random.randint(1, ROWS)
        numbers = [self.random.randrange(len(self.requests)) for _ in range(count)]
        chosen = [k in numbers for k in range(len(self.requests))]
        start = self.random.randrange(len(self.requests))
        rows, numbers = self.random.choice(
            [
                (numbers, numbers),
                (torch.tensor(numbers), numbers),
                (torch.tensor(chosen), [k for k, some in enumerate(chosen) if some]),
                (slice(start, None), [*range(start, len(self.requests))]),
            ]
        )
        self.done += self.requests
        self.state = self.state.index(rows)
        self.requests = [self.requests[k].fork() for k in numbers]

    def repeated(self) -> None:
        times = self.random.randint(1, 2)
        if len(self.requests) * times <= ROWS:
            self.state = self.state.repeat(times)
            self.requests = [r.fork() for r in self.requests for _ in range(times)]

    def joined(self) -> None:
        if len(self.requests) < ROWS:
            request, state = Request(), self.layer.initial_state(1, dtype=self.dtype)
            numbers = [self.numbers(self.random.randint(0, 5))]
            y, state = self.layer(*self.inputs(numbers), state, return_state=True, **self.options())
            self.gave([request], numbers, y)
            first = self.random.random() < 0.5
            pair = (state, self.state) if first else (self.state, state)
            self.state = self.layer_module.State.cat(pair)
            self.requests = [request, *self.requests] if first else [*self.requests, request]

    def kept(self) -> None:
        restored = self.layer_module.State.from_dict
        self.state = self.random.choice(
            [
                lambda: restored(self.state.to_dict()),
                lambda: pickle.loads(pickle.dumps(self.state)),
                lambda: self.state.to(dtype=self.dtype),
                lambda: self.state.reserve(3),
            ]
        )()

    @property
    def layer_module(self) -> ModuleType:
        return self.found.module

    # --- the end ----------------------------------------------------------------------------------

    def run(self, count: int) -> None:
        """Does so many things, then steps once, and holds all outputs to those that are wanted."""
        doings = [
            self.prefill, self.prefill, self.masked, self.packed, self.stepped, self.drafted,
            self.checkpointed, self.indexed, self.repeated, self.joined, self.kept,
        ]  # fmt: skip
        with torch.no_grad():
            for doing in [*self.random.choices(doings, k=count), self.stepped]:
                self.did.append(doing.__name__)
                doing()
                assert all(len(x) == len(self.requests) for x in self._tensors())
            self.judge()

    def _tensors(self) -> list[Tensor]:
        return [*self.found.tensors(self.state).values()]

    def judge(self) -> None:
        """Holds the outputs of all requests that ever were to whole sequences."""
        some = [r for r in (*self.done, *self.requests) if r.tokens]
        requests = [*{(*r.tokens, *map(id, r.outputs)): r for r in some}.values()]
        if self.exact:
            self.hold_to_bits(requests)
        if self.dtype == torch.float64:
            self.hold_to_definition(requests)

    def hold_to_bits(self, requests: list[Request]) -> None:
        """Holds outputs to those of calls for whole sequences, one for all of a length.

        Their order in a batch has nothing to do with that of before, and nothing stands behind
        them: that a token does not see later ones is not taken for granted.
        """
        by_length: dict[int, list[Request]] = {}
        for request in requests:
            by_length.setdefault(len(request.tokens), []).append(request)
        for some in by_length.values():
            got = torch.stack([torch.stack(r.outputs) for r in some])
            wanted = self.layer(*self.inputs([r.tokens for r in some]), mode="exact")
            assert torch.equal(got, wanted), f"bits differ by {float((got - wanted).abs().max())}"

    def hold_to_definition(self, requests: list[Request]) -> None:
        """Holds outputs to those of the definition, which one call gives of all requests.

        Behind shorter ones stand other tokens: the definition of a causal mixer gives the same
        before them. An error is relative to the largest output of its own sequence.
        """
        lengths = torch.tensor([len(r.tokens) for r in requests])
        longest = int(lengths.max())
        padded = [r.tokens + [0] * (longest - len(r.tokens)) for r in requests]
        named = dict(zip(self.drawn, self.inputs(padded), strict=True))
        counts = torch.arange(longest) < lengths[:, None]
        wanted = self.found.reference(self.values | named)[counts].flatten(1)
        got = torch.stack([y for r in requests for y in r.outputs]).flatten(1)
        sizes = [float(x.abs().max()) for x in wanted.split(lengths.tolist())]
        size = torch.tensor(sizes, dtype=torch.float64).repeat_interleave(lengths)
        off = (got - wanted).abs().amax(1)
        wrong = ~(off <= BAR * size.clamp(min=1e-30))
        assert not wrong.any(), f"off by {off[wrong].tolist()} of {size[wrong].tolist()}"


def interleave(
    module: ModuleType, seed: int, exact: bool = False, count: int = 8
) -> tuple[str, ...]:
    """Runs one interleaving, and returns what was done.

    Args:
        module: the emitted module of a causal mixer.
        seed: of all draws.
        exact: whether all runs in mode `exact`.
        count: things that are done.

    Raises:
        AssertionError: an output is not what it is in the whole sequence.
    """
    one = Interleaving(module, seed, exact)
    try:
        one.run(count)
    except Exception as e:
        doing = ", ".join(one.did)
        raise AssertionError(
            f"{one.found.mixer}, seed {seed}, exact {exact}, {one.dtype}: {doing}: {e!r}"
        ) from e
    return tuple(one.did)
