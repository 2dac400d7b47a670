"""Promises about masks and packs: what is together in a batch is as if it stood alone.

The judge is the module itself, called with one sequence at a time; that those calls are right is
for `dsfc.validate.values`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from dsfc.validate.cases import CHUNK
from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, worst_of
from dsfc.validate.surface import Sample, Surface, ends
from dsfc.validate.values import leaves_of, state_of, with_gradients

PACKS = (
    (0, 1, CHUNK + 1, 0, CHUNK + 3, 2 * CHUNK, 0),
    (0, 0),
    (3,),
)
"""Lengths of the sequences of a pack: empty ones first, in the middle and last, like ones; one."""

Run = Callable[[Mapping[str, Tensor], Any], tuple[Tensor, Any]]


def masks(surface: Surface) -> str:
    """A masked token is as if it were not there: y, last state, gradients, in every legal mode."""
    worst = 0.0
    for mode in _legal(surface):
        for name, mask in _masks(2 * CHUNK + 1):
            has_mask = name == "inner"
            sample = surface.sample(mask.shape[1], len(mask), state=has_mask)
            filled = _spoilt(sample, mask)
            got = _outcome(surface, filled, _whole(surface, sample, mode, mask=mask))
            want = _outcome(surface, sample, _each(surface, sample, mode, _rows_of(mask)))
            worst = max(worst, agree(got, want, EXACT, f"{mode}, {name}, state {has_mask}"))
    return worst_of(worst)


def packs(surface: Surface) -> str:
    """Sequences packed are the sequences alone, and go on in a second pack: everything agrees."""
    worst = 0.0
    for mode in _legal(surface):
        for lengths in PACKS:
            has_lengths = lengths is PACKS[0]
            sample = _pack(surface, lengths, has_lengths)
            want = _outcome(surface, sample, _each(surface, sample, mode, _sequences(lengths)))
            runs = {"pack": _whole(surface, sample, mode, cu_seqlens=_ends(lengths))}
            if surface.causal:
                runs["two packs"] = _halves(surface, sample, mode, lengths)
            for name, run in runs.items():
                where = f"{mode}, {name} of {lengths}, state {has_lengths}"
                worst = max(worst, agree(_outcome(surface, sample, run), want, EXACT, where))
    return worst_of(worst)


# --- cases ----------------------------------------------------------------------------------------


def _legal(surface: Surface) -> list[str]:
    """Modes to try; a Fourier transform has no way to leave a token out, and must say so."""
    if "fft" in surface.modes:
        sample = surface.sample(CHUNK)
        first = next(iter(sample.inputs.values()))
        mask = torch.ones(first.shape[:2], dtype=torch.bool)
        try:
            sample.layer(**sample.inputs, mask=mask, mode="fft")
        except ValueError:
            pass
        else:
            raise BrokenPromiseError("mode fft takes a mask")
    return [mode for mode in (*surface.modes, "auto") if mode != "fft"]


def _masks(length: int) -> Iterator[tuple[str, Tensor]]:
    """Masks by name; one row of the last has no token at all."""
    places = torch.arange(length)
    yield "none", torch.ones(1, length, dtype=torch.bool)
    yield "inner", torch.stack((places % 3 != 1, (places < 2) | (places > 6)))
    yield "padding", torch.stack((places < 0, places < 4, places >= length - 2))


def _spoilt(sample: Sample, mask: Tensor) -> Sample:
    """The same with NaN and infinity where the mask says that nothing is."""
    strange = torch.tensor((torch.nan, torch.inf, -torch.inf))
    fill = strange[torch.arange(mask.shape[1]) % 3].expand(mask.shape)
    inputs = {
        name: torch.where(_over(mask, x), x, _over(fill, x)) for name, x in sample.inputs.items()
    }
    return dataclasses.replace(sample, inputs=inputs)


def _over(values: Tensor, x: Tensor) -> Tensor:
    """Values per token with axes for all that a token has."""
    return values.reshape(*values.shape, *(1,) * (x.ndim - 2)).to(
        values.dtype if values.dtype == torch.bool else x.dtype
    )


def _rows_of(mask: Tensor) -> list[tuple[int, Tensor]]:
    """Returns row and tokens of each sequence of a batch."""
    return [(b, row.nonzero().flatten()) for b, row in enumerate(mask)]


def _sequences(lengths: Sequence[int]) -> list[tuple[int, Tensor]]:
    """Returns row and tokens of each sequence of a pack, whose batch has one row."""
    return [(0, torch.arange(a, b)) for a, b in pairwise(accumulate(lengths, initial=0))]


def _ends(lengths: Sequence[int]) -> Tensor:
    return torch.tensor(list(accumulate(lengths, initial=0)))


def _pack(surface: Surface, lengths: Sequence[int], has_lengths: bool) -> Sample:
    """A batch of one row, and a state per sequence."""
    sample = surface.sample(1, len(lengths), state=has_lengths)
    return dataclasses.replace(sample, inputs=surface.draw(sum(lengths), 1))


# --- ways to run ----------------------------------------------------------------------------------


def _whole(surface: Surface, sample: Sample, mode: str, **how: Tensor) -> Run:
    """All at once."""

    def run(inputs: Mapping[str, Tensor], state: Any) -> tuple[Tensor, Any]:  # noqa: ANN401 - State
        how_run: dict[str, Any] = {"mode": mode, "chunk": CHUNK, **surface.carried, **how}
        return ends(sample.layer(**inputs, state=state, **how_run))

    return run


def _each(surface: Surface, sample: Sample, mode: str, where: list[tuple[int, Tensor]]) -> Run:
    """One sequence after the other; outputs where its tokens stood, 0 elsewhere."""

    def run(inputs: Mapping[str, Tensor], state: Any) -> tuple[Tensor, Any]:  # noqa: ANN401 - State
        lead = next(iter(inputs.values())).shape[:2]
        flat: Tensor | None = None
        after = []
        for n, (row, tokens) in enumerate(where):
            part = {k: x[row : row + 1, tokens] for k, x in inputs.items()}
            before = None
            if state is not None:
                tensors = {k: x[n : n + 1] for k, x in surface.tensors(state).items()}
                before = surface.module.State(**tensors)
            y, last = _whole(surface, sample, mode)(part, before)
            flat = y.new_zeros(lead.numel(), *y.shape[2:]) if flat is None else flat
            flat = flat.index_put((row * lead[1] + tokens,), y[0])
            after.append(surface.tensors(last))
        assert flat is not None
        y = flat.unflatten(0, lead)
        if not surface.causal:
            return y, None
        joined = {k: _joined([tensors[k] for tensors in after]) for k in surface.states}
        return y, surface.module.State(**joined)

    return run


def _halves(surface: Surface, sample: Sample, mode: str, lengths: Sequence[int]) -> Run:
    """The first halves of all sequences as one pack, the second ones as the next."""
    firsts = [n // 2 for n in lengths]
    seconds = [n - first for n, first in zip(lengths, firsts, strict=True)]
    inside = torch.cat([torch.arange(n) < a for n, a in zip(lengths, firsts, strict=True)])

    def run(inputs: Mapping[str, Tensor], state: Any) -> tuple[Tensor, Any]:  # noqa: ANN401 - State
        ys = []
        for here, parts in ((inside, firsts), (~inside, seconds)):
            taken = {k: x[:, here] for k, x in inputs.items()}
            y, state = _whole(surface, sample, mode, cu_seqlens=_ends(parts))(taken, state)
            ys.append(y)
        joined = torch.cat(ys, 1)
        order = torch.cat((inside.nonzero(), (~inside).nonzero())).flatten().argsort()
        return joined[:, order], state

    return run


def _outcome(surface: Surface, sample: Sample, run: Run) -> dict[str, Tensor]:
    """Y, the last state and the gradients of everything, by name."""
    leaves = leaves_of(surface, sample)
    state = state_of(surface, sample, leaves)
    y, last = run({k: leaves[k] for k in sample.inputs}, state)
    return with_gradients(surface, sample, leaves, y, _kept(surface, surface.tensors(last)))


def _joined(rows: Sequence[Tensor]) -> Tensor:
    """Rows of states below one another; those that keep fewer tokens get 0 in front."""
    if len({x.shape[1:] for x in rows}) == 1:
        return torch.cat(list(rows))
    longest = max(x.shape[1] for x in rows)
    ends = [(0, 0) * (x.ndim - 2) + (longest - x.shape[1], 0) for x in rows]
    return torch.cat([pad(x, end) for x, end in zip(rows, ends, strict=True)])


def _kept(surface: Surface, last: dict[str, Tensor]) -> dict[str, Tensor]:
    """The last state without the tokens in front that no row has: all is 0 there."""
    grown = [last[name] for name in surface.growing if name in last]
    if not grown:
        return last
    some = [x.detach().flatten(2).ne(0).any(-1) if x.ndim > 2 else x.detach() != 0 for x in grown]
    rows = torch.stack(some).any(0).any(0).nonzero()
    first = int(rows[0]) if len(rows) else grown[0].shape[1]
    return {k: x[:, first:] if k in surface.growing else x for k, x in last.items()}
