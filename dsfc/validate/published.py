"""The weights of a published layer moved into an emitted module by a layout map, and back.

Numbers that a row only moves are copied bit for bit, in the precision that they have. Functions of
numbers are computed in float64 and rounded once, to float32 at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dsfc.layouts.addresses import Moved, by_source
from dsfc.layouts.ir import Layout
from dsfc.layouts.operations import ZERO, Function, shaped
from dsfc.validate.compare import relative_error
from dsfc.validate.reference import Running
from dsfc.validate.weights import CLOSE, LENGTHS, Unfit, Weights

_FUNCTIONS = {Function.NEG: torch.neg, Function.EXP: torch.exp, Function.LOG: torch.log}

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Compared:
    """How far a module is from the published layer, both in float64 on random inputs.

    Attributes:
        output: largest relative difference of the outputs.
        gradient: of the gradients of the input.
    """

    output: float
    gradient: float


def check_shapes(layout: Layout, weights: Weights, shapes: Shapes) -> None:
    """Checks that weights of the right names have the shapes of the published layer of a map.

    Args:
        layout: the map.
        weights: the published tensors.
        shapes: that they should have.

    Raises:
        Unfit: one has another shape.
    """
    for tensor in layout.published:
        actual, wanted = tuple(weights[tensor.name].shape), shapes[tensor.name]
        if actual != wanted:
            written = ", ".join(map(str, tensor.shape))
            raise Unfit(
                f"`{tensor.name}` is {shaped(actual)}, and {shaped(wanted)} by the layout, which "
                f"says [{written}]"
            )


def forward(moved: Sequence[Moved], weights: Weights) -> dict[str, Tensor]:
    """Returns the entries of the module, in the order of the map.

    Args:
        moved: the rows.
        weights: the published tensors.

    Raises:
        Unfit: an entry that is left out is not 0, or a function has no value.
    """
    out = {}
    for m in moved:
        flat = _flat(weights[source] for source in m.row.sources)
        if m.dropped.size and bool((flat[torch.from_numpy(m.dropped)] != 0).any()):
            raise Unfit(f"{' and '.join(m.row.sources)} beside the blocks is not 0")
        for function in m.row.functions:
            flat = _applied(function, flat)
        value = flat[torch.from_numpy(m.addresses.clip(0))]
        if m.zeros:
            value[torch.from_numpy(m.addresses == ZERO)] = 0
        if not bool(torch.isfinite(value).all()):
            raise Unfit(f"{m.row.entry} is not finite: {_chain(m)} has no value")
        out[m.row.entry] = value.reshape(m.shape)
    return out


def backward(moved: Sequence[Moved], entries: Weights, shapes: Shapes) -> dict[str, Tensor]:
    """Returns the published tensors that give the entries of a module.

    Args:
        moved: the rows.
        entries: the `state_dict` of the module.
        shapes: of the published tensors.

    Raises:
        Unfit: a number would have to be two at once, or is nowhere in the module.
    """
    out: dict[str, Tensor] = {}
    known = {
        name: torch.zeros(shape, dtype=torch.bool).reshape(-1) for name, shape in shapes.items()
    }
    for m in moved:
        value = entries[m.row.entry].reshape(-1)
        addresses = torch.from_numpy(m.addresses)
        if bool((value[addresses == ZERO] != 0).any()):
            raise Unfit(f"{m.row.entry} beside the blocks is not 0")
        value, addresses = value[addresses != ZERO], addresses[addresses != ZERO]
        for function in reversed(m.row.functions):
            value = _applied(function.inverse, value)
        if not bool(torch.isfinite(value).all()):
            raise Unfit(f"{m.row.entry} has values that {_chain(m)} does not give")
        flat = value.new_zeros(sum(_count(shapes[source]) for source in m.row.sources))
        flat[addresses] = value
        if not torch.equal(flat[addresses], value):
            raise Unfit(f"{m.row.entry} repeats numbers {m.copies} times, and they are not equal")
        start = 0
        for source, used in by_source(m, shapes):
            count = _count(shapes[source])
            places = torch.from_numpy(used)
            whole = out.setdefault(source, flat.new_zeros(count))
            whole[places] = flat[start : start + count][places].to(whole.dtype)
            known[source][places] = True
            start += count
    absent = [name for name, mask in known.items() if not bool(mask.all())]
    if absent:
        raise Unfit(f"the module holds nothing of {', '.join(absent)}")
    return {name: out[name].reshape(shape) for name, shape in shapes.items()}


def compare(reference: Running, module: nn.Module, width: int) -> Compared:
    """Returns how far a module is from the published layer.

    Args:
        reference: the published layer, with the published weights, in float64.
        module: from `[B, L, d]` to `[B, L, d]`, in float64.
        width: d.

    Raises:
        Unfit: the difference is larger than rounding.
    """
    output = gradient = 0.0
    for length in LENGTHS:
        generator = torch.Generator().manual_seed(length)
        u, w = torch.randn(2, 2, length, width, generator=generator, dtype=torch.float64)
        theirs, ours = (_run(f, u, w) for f in (reference, module))
        for what, got, want in zip(("outputs", "gradients"), ours, theirs, strict=True):
            error = relative_error(got, want)
            if not error <= CLOSE:
                raise Unfit(f"the {what} differ by {error:.1e} on {length} tokens")
        output = max(output, relative_error(ours[0], theirs[0]))
        gradient = max(gradient, relative_error(ours[1], theirs[1]))
    return Compared(output, gradient)


def _run(layer: nn.Module | Running, u: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Output of a layer, and the gradient of its input behind a random linear map."""
    leaf = u.clone().requires_grad_()
    y: Tensor = layer(leaf)
    (du,) = torch.autograd.grad((y * w).sum(), leaf)
    return y.detach(), du


def _applied(function: Function, x: Tensor) -> Tensor:
    """A function of entries, in float64, rounded to the type of its argument or float32."""
    kind = torch.promote_types(x.dtype, torch.float32)
    return _FUNCTIONS[function](x.double()).to(kind)


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors one behind the other, in their common type."""
    return torch.cat([x.reshape(-1) for x in tensors])


def _count(shape: Sequence[int]) -> int:
    return int(torch.Size(shape).numel())


def _chain(m: Moved) -> str:
    return ", then ".join(m.row.functions) or "a move"
