"""Promises about values: every mode, every length, every cut is the definition.

The judge is the module's own float64 reference, which is printed from the definition and knows
nothing of the derived system, and autograd through it. Each check takes a `Surface` and returns
what it measured, or raises `BrokenPromiseError`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import torch
from torch import Tensor

from dsfc.validate.cases import BATCHES, CHUNK, CHUNKS, LAYOUTS, LONG, lengths
from dsfc.validate.compare import EXACT, ROUNDING, BrokenPromiseError, agree, same, worst_of
from dsfc.validate.surface import Sample, Surface, ends


def definition(surface: Surface) -> str:
    """Y of every mode, and its gradient in every input and parameter, are the definition's."""
    worst = 0.0
    for length, batch in _shapes():
        sample = surface.sample(length, batch, state=False)
        want = defined(surface, sample)
        for mode in surface.modes:
            got = outcome(surface, sample, mode, CHUNK, output_only=True)
            worst = max(worst, agree(got, want, EXACT, _where(mode, length, batch)))
    return worst_of(worst)


def modes(surface: Surface) -> str:
    """All modes and chunk sizes give one answer: y, last state, gradients of everything."""
    worst = 0.0
    for length, batch in (*_shapes(), (LONG, 3)):
        sample = surface.sample(length, batch)
        want = outcome(surface, sample, "recurrent", CHUNK)
        for mode in (*surface.modes, "auto"):
            # Rows of a batch do not meet: every size of chunk with one batch is enough.
            for chunk in CHUNKS if batch == max(BATCHES) else (CHUNK,):
                got = outcome(surface, sample, mode, chunk)
                where = f"{_where(mode, length, batch)}, chunk {chunk}"
                worst = max(worst, agree(got, want, EXACT, where))
    return worst_of(worst)


def segments(surface: Surface) -> str:
    """Two segments, the state handed over, are the whole, at every cut, with all gradients."""
    if not surface.causal:
        return refused(surface)
    worst, length = 0.0, 2 * CHUNK + 1
    sample = surface.sample(length)
    for mode in surface.modes:
        want = outcome(surface, sample, mode, CHUNK)
        for cut in range(length + 1):
            got = outcome(surface, sample, mode, CHUNK, cuts=(cut,))
            worst = max(worst, agree(got, want, EXACT, f"{mode}, cut at {cut}"))
        got = outcome(surface, sample, mode, CHUNK, cuts=tuple(range(1, length)))
        worst = max(worst, agree(got, want, EXACT, f"{mode}, every token a segment"))
    return worst_of(worst)


def memory_of_the_past(surface: Surface) -> str:
    """The gradient that flows into the past through a state is the definition's."""
    if not surface.causal:
        return refused(surface)
    worst, length = 0.0, 2 * CHUNK + 1
    sample = surface.sample(length, state=False)
    for cut in range(1, length):
        want = defined(surface, sample, first=cut)
        for mode in surface.modes:
            got = outcome(surface, sample, mode, CHUNK, cuts=(cut,), output_only=True, first=cut)
            worst = max(worst, agree(got, want, EXACT, f"{mode}, cut at {cut}"))
    return worst_of(worst)


def steps(surface: Surface) -> str:
    """Token by token through `step` is the whole, with all gradients."""
    if not surface.causal:
        return refused(surface)
    worst = 0.0
    sample = surface.sample(2 * CHUNK + 1)
    want = outcome(surface, sample, "recurrent", CHUNK)
    leaves, layer = leaves_of(surface, sample), sample.layer
    rows, state = [], state_of(surface, sample, leaves)
    for i in range(2 * CHUNK + 1):
        row, state = layer.step(*(leaves[n][:, i] for n in surface.inputs), state)
        rows.append(row)
    got = with_gradients(
        surface, sample, leaves, torch.stack(rows, 1), surface.tensors(state), first=0
    )
    worst = agree(got, want, EXACT, "step")
    return worst_of(worst)


def causality(surface: Surface) -> str:
    """What comes later changes no bit of what came before; under FFT it does by rounding only.

    It is finite, in all modes but `recurrent`: they multiply with zeros what is not to be read, and
    0 · NaN is NaN. In `recurrent` NaN and infinity in later tokens change no bit either.
    A convolution by FFT of n points errs by O(log n) roundings of the largest value of the whole
    sequence (Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2), so what comes
    later shows in what comes before, by that much. A module that says it is not causal does not
    promise this; then what comes later must show.
    """
    if not surface.causal:
        return _looks_ahead(surface)
    length, count, worst = 2 * CHUNK + 1, 0, 0.0
    dtypes = (torch.float64, torch.float32, torch.bfloat16)
    # Attention from nothing is another kernel than attention behind tokens that are kept.
    starts = (True, False) if surface.growing else (True,)
    for dtype, state in product(dtypes, starts):
        sample = surface.sample(length, dtype=dtype, state=state)
        other = surface.draw(length, dtype=dtype, seed=99)
        for mode in surface.modes:
            with torch.no_grad():
                y = _call(sample, sample.inputs, mode)
                same(_call(sample, sample.inputs, mode), y, f"{mode}, {dtype}, run twice")
                for t in range(length):
                    changed = {
                        k: torch.cat((v[:, : t + 1], other[k][:, t + 1 :]), 1)
                        for k, v in sample.inputs.items()
                    }
                    got, where = _call(sample, changed, mode), f"{mode}, {dtype}, after {t}"
                    if mode == "fft":
                        worst = max(worst, _near(got, y, t, where))
                    else:
                        same(got[:, : t + 1], y[:, : t + 1], f"{where} changed")
                    count += 1
    count += _poisoned(surface)
    fft = f"; under FFT {worst:.2f} times what rounding may" * (worst > 0)
    return f"{count} changes of later tokens changed no bit of an earlier output{fft}"


def _poisoned(surface: Surface) -> int:
    """Checks that what is not finite reaches nothing before it, token by token; counts changes."""
    length, count = 5, 0
    sample = surface.sample(length)
    with torch.no_grad():
        y = _call(sample, sample.inputs, "recurrent")
        for value, t in product((math.nan, math.inf, -math.inf), range(length - 1)):
            changed = {
                k: torch.cat((x[:, : t + 1], torch.full_like(x[:, t + 1 :], value)), 1)
                for k, x in sample.inputs.items()
            }
            got = _call(sample, changed, "recurrent")
            same(got[:, : t + 1], y[:, : t + 1], f"recurrent, {value} after {t} changed")
            count += 1
    return count


def _looks_ahead(surface: Surface) -> str:
    """Checks that the first output depends on the last token, in every mode."""
    sample = surface.sample(CHUNK + 1, batch=1)
    for mode in surface.modes:
        with torch.no_grad():
            before = _call(sample, sample.inputs, mode)
            changed = {
                k: torch.cat((x[:, :-1], 1 + x[:, -1:]), 1) for k, x in sample.inputs.items()
            }
            after = _call(sample, changed, mode)
        if torch.equal(before, after):
            return "no output depends on a token"
        if torch.equal(before[:, 0], after[:, 0]):
            raise BrokenPromiseError(f"{mode}: no output looks ahead, and it says that one does")
    return "not promised: it reads tokens to come, and says so"


def refused(surface: Surface) -> str:
    """Checks that a module that reads tokens to come refuses states and steps, by their code."""
    sample = surface.sample(1, batch=1)
    layer, state = sample.layer, sample.layer.initial_state(1)
    token = {k: x[:, 0] for k, x in sample.inputs.items()}
    tries: dict[str, Callable[[], object]] = {
        "a state": lambda: layer(**sample.inputs, state=state),
        "to return a state": lambda: layer(**sample.inputs, return_state=True),
        "a step": lambda: layer.step(*token.values(), state),
    }
    for what, run in tries.items():
        try:
            run()
        except ValueError as e:
            if not str(e).startswith("E-STEP: "):
                raise BrokenPromiseError(f"{what} is refused with: {e}") from e
        else:
            raise BrokenPromiseError(f"it says that it is not causal, and takes {what}")
    return "no state to go on from: refused with E-STEP"


_ROUNDINGS = 8
"""Roundings per doubling of a Fourier transform's length that causality allows."""


def _near(got: Tensor, want: Tensor, t: int, where: str) -> float:
    """Checks outputs through token t within the bound of an FFT; returns the share of it."""
    wide = torch.promote_types(want.dtype, torch.float32)
    points = 2 * want.shape[1]
    narrow = torch.finfo(want.dtype).eps if want.dtype != wide else 0.0
    roundings = _ROUNDINGS * math.log2(points) * torch.finfo(wide).eps + narrow
    bound = roundings * max(got.abs().max().item(), want.abs().max().item())
    off = (got[:, : t + 1].double() - want[:, : t + 1].double()).abs().max().item()
    if not off <= bound:
        raise BrokenPromiseError(f"{where}: off by {off:.1e}, more than {bound:.1e}")
    return off / bound if bound else 0.0


def layouts(surface: Surface) -> str:
    """Inputs and states may lie in memory in any order."""
    worst = 0.0
    sample = surface.sample(2 * CHUNK + 1)
    for mode in surface.modes:
        want = outcome(surface, sample, mode, CHUNK)
        for layout in LAYOUTS:
            state = {k: layout(v) for k, v in surface.tensors(sample.state).items()}
            moved = dataclasses.replace(
                sample,
                inputs={k: layout(v) for k, v in sample.inputs.items()},
                state=surface.module.State(**state) if surface.causal else None,
            )
            got = outcome(surface, moved, mode, CHUNK)
            worst = max(worst, agree(got, want, ROUNDING, f"{mode}, {layout.__name__}"))
    return worst_of(worst)


def rows(surface: Surface) -> str:
    """Each entry of a batch is mixed by itself."""
    worst = 0.0
    sample = surface.sample(CHUNK + 1, batch=3)
    for mode in surface.modes:
        with torch.no_grad():
            y = _call(sample, sample.inputs, mode)
            for b in range(3):
                state = {k: v[b : b + 1] for k, v in surface.tensors(sample.state).items()}
                started = surface.module.State(**state) if surface.causal else None
                alone = dataclasses.replace(sample, state=started)
                got = _call(alone, {k: v[b : b + 1] for k, v in sample.inputs.items()}, mode)
                error = agree({"y": got}, {"y": y[b : b + 1]}, EXACT, f"{mode}, row {b} alone")
                worst = max(worst, error)
    return worst_of(worst)


# --- what is compared -----------------------------------------------------------------------------


def outcome(
    surface: Surface,
    sample: Sample,
    mode: str,
    chunk: int,
    cuts: tuple[int, ...] = (),
    output_only: bool = False,
    first: int = 0,
) -> dict[str, Tensor]:
    """Returns y, the last state and the gradients of everything, by name.

    The scalar that is differentiated weighs every entry of y and of the last state by a number
    drawn for it.

    Args:
        surface: the module.
        sample: layer, inputs, state.
        mode: how to run.
        chunk: tokens per chunk.
        cuts: where to stop and hand over the state.
        output_only: leave the last state, and gradients of the first, out.
        first: the scalar weighs y from this token on.
    """
    leaves, layer = leaves_of(surface, sample), sample.layer
    state = state_of(surface, sample, leaves)
    length = next(iter(sample.inputs.values())).shape[1]
    ys = []
    for a, b in zip((0, *cuts), (*cuts, length), strict=True):
        part = {k: leaves[k][:, a:b] for k in sample.inputs}
        y, state = ends(layer(**part, state=state, mode=mode, chunk=chunk, **surface.carried))
        ys.append(y)
    last = {} if output_only else surface.tensors(state)
    return with_gradients(surface, sample, leaves, torch.cat(ys, 1), last, first)


def defined(
    surface: Surface, sample: Sample, first: int = 0, dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    """Returns what `outcome(…, output_only=True)` must be, by autograd through the reference.

    Args:
        surface: the module.
        sample: layer and inputs.
        first: the scalar weighs y from this token on.
        dtype: what the reference runs in.
    """
    leaves = leaves_of(surface, sample)
    inputs = {k: leaves[k] for k in sample.inputs}
    values = surface.values(dataclasses.replace(sample, inputs=inputs))
    return with_gradients(surface, sample, leaves, surface.reference(values, dtype), {}, first)


def with_gradients(
    surface: Surface,
    sample: Sample,
    leaves: Mapping[str, Tensor],
    y: Tensor,
    last: Mapping[str, Tensor],
    first: int = 0,
) -> dict[str, Tensor]:
    """Returns y, the last state and the gradients of leaves and parameters, by name.

    Args:
        surface: the module.
        sample: the layer.
        leaves: as `leaves_of` returns them.
        y: outputs.
        last: tensors of the last state.
        first: the scalar that is differentiated weighs y from this token on.
    """
    outs = {"y": y, **{f"last {k}": v for k, v in last.items()}}
    scalar = torch.zeros((), dtype=torch.float64)
    for name, weight in _weights(outs):
        part = (outs[name] * weight)[:, first:] if name == "y" else outs[name] * weight
        scalar = scalar + part.sum().real.double()
    stored = {n: p for n, p in sample.layer.named_parameters() if p.requires_grad}
    wrt = {**leaves, **stored}
    if not scalar.requires_grad:  # no token, no graph
        scalar = scalar + 0 * sum(x.sum().real.double() for x in wrt.values())
    grads = torch.autograd.grad(scalar, list(wrt.values()), materialize_grads=True)
    named = {f"gradient of {k}": g for k, g in zip(wrt, grads, strict=True)}
    return {k: v.detach() for k, v in {**outs, **named}.items()}


def _weights(outs: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """A random number for every entry; the same ones for the same shapes."""
    generator = torch.Generator().manual_seed(7)
    for name, x in outs.items():
        wide = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        yield name, wide.to(x.dtype)


def leaves_of(surface: Surface, sample: Sample) -> dict[str, Tensor]:
    """Inputs and tensors of the first state, each to be differentiated; layouts are kept."""
    leaves = dict(sample.inputs)
    if sample.state is not None:
        leaves |= {f"state {k}": v for k, v in surface.tensors(sample.state).items()}
    return {k: v.detach().requires_grad_() for k, v in leaves.items()}


def state_of(surface: Surface, sample: Sample, leaves: Mapping[str, Tensor]) -> Any:  # noqa: ANN401 - a class of the module
    """Returns the first state, made of leaves; None where the sample has none."""
    if sample.state is None:
        return None
    return surface.module.State(**{k: leaves[f"state {k}"] for k in surface.states})


def _call(sample: Sample, inputs: Mapping[str, Tensor], mode: str) -> Tensor:
    y: Tensor = sample.layer(**inputs, state=sample.state, mode=mode, chunk=CHUNK)
    return y


def _shapes() -> Iterator[tuple[int, int]]:
    for length in lengths():
        for batch in BATCHES:
            yield length, batch


def _where(mode: str, length: int, batch: int) -> str:
    return f"{mode}, L = {length}, B = {batch}"
