"""One of the processes of `test_context`: its segments beside the same mixers without a group.

Run as `python context_process.py STORE RANK CASES`; the cases are JSON: path of a module and what
to check of it. What fails is printed and ends the process with 1.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn

import dsfc
from dsfc.validate.surface import Sample, Surface, ends, surface

COUNT = 4
BOUND = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-2}
"""Largest error, as a share of the largest entry: rounding of sums in another order, and of what is
stored in bfloat16, whose numbers are 0.8 % apart."""
WIDE = (torch.float64, torch.float32)
# Segments of unlike lengths, one of them empty, one of a token. The last two are of two processes.
SEGMENTS = {4: ((5, 1, 0, 7), (3, 4, 2, 4)), 2: ((6, 7), (1, 12))}
HOW = ("plain", "mask", "pack")
PACK = (0, 2, 2, 9, 10, 13)
"""Sequences that end inside of segments and between them, an empty one, one in all segments."""


FAILED: list[str] = []
"""Differences so far. None is raised: the others wait for this process."""


@dataclass(frozen=True)
class Results:
    """What one call gives.

    Attributes:
        y: `[B, L, ...]`.
        last: tensors of the last state by name.
        inputs: gradients of the inputs by name.
        rest: gradients of parameters and of the state given, by name.
    """

    y: Tensor
    last: dict[str, Tensor]
    inputs: dict[str, Tensor]
    rest: dict[str, Tensor]


def leaves(tensors: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Copies that take gradients, at least as precise as a dtype."""
    cast = {n: x.to(torch.promote_types(x.dtype, dtype)) for n, x in tensors.items()}
    return {n: x.detach().clone().requires_grad_() for n, x in cast.items()}


def weighed(x: Tensor, seed: int, like: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
    """The sum of a part of all entries, each with a weight of its own, the same in any part."""
    generator = torch.Generator().manual_seed(seed)
    shape = (*like.shape, 2) if like.is_complex() else like.shape
    weights = torch.randn(shape, generator=generator, dtype=torch.float64)
    real = torch.view_as_real(x) if x.is_complex() else x
    return (real.double() * part(weights)).sum()


def mixed(
    about: Surface,
    layer: nn.Module,
    inputs: dict[str, Tensor],
    state: Any,
    segment: tuple[slice, int],
    ended: Tensor,
    **given: Any,
) -> Results:
    """Mixes a segment and pulls back its share of one loss over the whole sequence.

    Args:
        about: the module.
        layer: with parameters.
        inputs: of the segment.
        state: given.
        segment: where the segment stands, and the length of the whole sequence.
        ended: rows whose last state counts here.
        given: to the layer.
    """
    dtype = next(iter(inputs.values())).dtype
    layer, mine = copy.deepcopy(layer).to(dtype), leaves(inputs, dtype)
    before = leaves(about.tensors(state), dtype)
    start = dataclasses.replace(state, **before)
    y, last = ends(layer(**mine, state=start, return_state=True, **given))
    at, length = segment
    whole = y.new_empty((y.shape[0], length, *y.shape[2:]))
    total = weighed(y, 1, whole, lambda w: w[:, at])
    after = {n: getattr(last, n) for n in about.states}
    for x in after.values():
        total = total + weighed(x[ended], 2, x, lambda w: w[ended])
    if total.requires_grad:
        total.backward()
    rest = {n: p for n, p in layer.named_parameters()} | before

    def bars(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {n: torch.zeros_like(x) if x.grad is None else x.grad for n, x in tensors.items()}

    kept = {n: x.detach() for n, x in after.items()}
    return Results(y.detach(), kept, bars(mine), bars(rest))


def compare(found: Tensor, wanted: Tensor, exact: Tensor, where: str) -> None:
    """Notes where two tensors differ by more than rounding.

    Args:
        found: of several processes.
        wanted: of one.
        exact: of one in float64.
        where: for the message.
    """
    if found.shape != wanted.shape:
        FAILED.append(f"{where}: {tuple(found.shape)} instead of {tuple(wanted.shape)}")
    elif found.numel():
        error = float((found - wanted).abs().max())
        # Where the sum itself is ill-conditioned, one process errs as much.
        own = float((wanted - exact).abs().max())
        bound = BOUND[found.real.dtype] * max(float(exact.abs().max()), 1e-3) + 8 * own
        if not error <= bound:
            FAILED.append(f"{where}: off by {error:.2e}, more than {bound:.2e}")


def given_with(how: str, lengths: tuple[int, ...], rank: int) -> tuple[dict[str, Any], ...]:
    """What one process is given besides tokens, and what this one is."""
    if how == "pack":
        pack = {"cu_seqlens": torch.tensor(PACK)}
        return pack, pack
    if how == "plain":
        return {}, {}
    mask = torch.rand(3, sum(lengths), generator=torch.Generator().manual_seed(7)) < 0.6
    mask[0, : lengths[0]] = False
    mask[1] = False
    return {"mask": mask}, {"mask": mask.split(lengths, 1)[rank]}


def drawn(about: Surface, length: int, how: str, dtype: torch.dtype) -> Sample:
    """A layer, a state for each sequence, and inputs, of a pack in one row."""
    sample = about.sample(length, len(PACK) - 1 if how == "pack" else 3, dtype=dtype)
    inputs = {n: x[:1] if how == "pack" else x for n, x in sample.inputs.items()}
    return dataclasses.replace(sample, inputs=inputs)


def alone(
    about: Surface, sample: Sample, lengths: tuple[int, ...], how: str
) -> tuple[Results, Results]:
    """The results of one process for the whole sequence, in its dtype and in float64."""
    given, _ = given_with(how, lengths, 0)
    everywhere = slice(None), sum(lengths)
    every = torch.ones(len(PACK) - 1 if how == "pack" else 3, dtype=torch.bool)
    one = mixed(about, sample.layer, sample.inputs, sample.state, everywhere, every, **given)
    wide = {n: x.double() for n, x in sample.inputs.items()}
    return one, mixed(about, sample.layer, wide, sample.state, everywhere, every, **given)


def check(
    about: Surface,
    group: Any,
    sample: Sample,
    lengths: tuple[int, ...],
    how: str,
    where: str,
    wanted: tuple[Results, Results],
) -> None:
    """Compares outputs, the last states and all gradients with those of one process."""
    rank, length = distributed.get_rank(group), sum(lengths)
    starts = [0, *itertools.accumulate(lengths)]
    rows = len(PACK) - 1 if how == "pack" else 3
    one, exact = wanted
    _, given_here = given_with(how, lengths, rank)
    # A sequence's last state is where its last token is; of an empty one it is that given.
    ended = torch.full((rows,), rank == len(lengths) - 1)
    if how == "pack":
        last = torch.tensor([max(end - 1, 0) for end in PACK[1:]])
        ended = (starts[rank] <= last) & (last < starts[rank + 1])
    at = slice(starts[rank], starts[rank + 1])
    share = {n: x[:, at] for n, x in sample.inputs.items()}
    here = mixed(
        about, sample.layer, share, sample.state, (at, length), ended, group=group, **given_here
    )
    compare(here.y, one.y[:, at], exact.y[:, at], f"{where}, y")
    for n, x in here.last.items():
        compare(x[ended], one.last[n][ended], exact.last[n][ended], f"{where}, last {n}")
    for n, x in here.inputs.items():
        compare(x, one.inputs[n][:, at], exact.inputs[n][:, at], f"{where}, gradient of {n}")
    for n, x in here.rest.items():
        distributed.all_reduce(torch.view_as_real(x) if x.is_complex() else x, group=group)
        compare(x, one.rest[n], exact.rest[n], f"{where}, gradient of {n}")


@contextmanager
def traffic() -> Iterator[dict[str, int]]:
    """Counts the bytes that a process gives away or takes, by collective."""
    counted: dict[str, int] = {}
    kept = {n: getattr(distributed, n) for n in ("all_gather", "reduce_scatter", "send", "recv")}

    def counting(name: str, at: int) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            x = args[at]
            tensors = x if isinstance(x, list) else [x]
            size = sum(t.numel() * t.element_size() for t in tensors)
            counted[name] = counted.get(name, 0) + size
            return kept[name](*args, **kwargs)

        return call

    places = {"all_gather": 1, "reduce_scatter": 1, "send": 0, "recv": 0}
    try:
        for name, at in places.items():
            setattr(distributed, name, counting(name, at))
        yield counted
    finally:
        for name, call in kept.items():
            setattr(distributed, name, call)


def product_of(formula: str, sizes: Mapping[str, int]) -> int:
    """The value of a sum of products of sizes."""
    terms = (term.split(" * ") for term in formula.split(" + "))
    return sum(math.prod(sizes[x] if x in sizes else int(x) for x in term) for term in terms)


def check_traffic(about: Surface, group: Any, numbers: str | None, where: str) -> None:
    """What crosses does not depend on the length, and is what the mathematics says."""
    seen = []
    for length in (4, 64):
        sample = about.sample(length, 3, state=False)
        inputs = leaves(dict(sample.inputs), torch.float64)
        with traffic() as counted:
            y = sample.layer(**inputs, group=group)
            forward = dict(counted)
            y.sum().backward()
        seen.append((forward, counted))
    if seen[0] != seen[1]:
        FAILED.append(f"{where}: traffic depends on the length: {seen}")
    # Of three sequences in float64, forwards what each process gives, backwards four such parts.
    if numbers is not None:
        size = 8 * 3 * product_of(numbers, about.sizes)
        if seen[0][1] != {"all_gather": size, "reduce_scatter": 4 * size}:
            FAILED.append(f"{where}: {seen[0][1]} bytes cross, not {size}")


def main() -> None:
    store, rank, cases = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    # A process that does not take part in what the others do is an error soon, not a hang.
    patience = timedelta(seconds=120)
    distributed.init_process_group(
        "gloo", f"file://{store}", rank=rank, world_size=COUNT, timeout=patience
    )
    groups = {4: distributed.group.WORLD, 2: distributed.new_group([0, 1])}
    for path, numbers in cases:
        print(path, file=sys.stderr, flush=True)
        about = surface(dsfc.import_module(path))
        for count, group in groups.items():
            if rank >= count:
                continue
            for lengths, how in itertools.product(SEGMENTS[count], HOW):
                for dtype in WIDE if (count, how) == (4, "plain") else WIDE[:1]:
                    where = f"{path}, rank {rank} of {lengths}, {how}, {dtype}"
                    sample = drawn(about, sum(lengths), how, dtype)
                    one = alone(about, sample, lengths, how)
                    check(about, group, sample, lengths, how, where, one)
        check_traffic(about, groups[4], numbers, path)
    distributed.destroy_process_group()
    print("\n".join(FAILED[:20]))
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
