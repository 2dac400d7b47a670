"""The weights of one emitted module put into another that is the same function, and both run.

Nothing is known of how a module stores a parameter: which argument of its functional form an entry
of its `state_dict` belongs to is found by moving the entry and looking what changes. Entries are
copied bit for bit, and only where both modules make the same value of them.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dsfc import files
from dsfc.validate.compare import relative_error
from dsfc.validate.surface import Layer, Sample, Surface, SurfaceError, surface

LENGTHS = (1, 2, 7, 33)
"""Tokens of the sequences that both modules are run on."""

CLOSE = 1e-9
"""Largest relative difference in float64: one function by two formulas, whose rounding differs."""

LISTED = 3
"""Names that a message lists before it counts the others."""

SAFETENSORS = ".safetensors"
"""How the name of a file ends that safetensors writes; all others are `torch.save`'s."""

Weights = Mapping[str, Tensor]

Called = Callable[[str], str]
"""Name in a spec → its name in the spec's module."""


class Unfit(Exception):
    """The weights do not fit, or cannot be carried over; the text says why, as a clause."""


@dataclass(frozen=True)
class Carried:
    """Weights carried over.

    Attributes:
        weights: the `state_dict` of the second module.
        sizes: of the axes, by name.
        moved: (entry of the first, entry of the second).
        free: entries of the second that no entry of the first gives; any values would do.
        left: entries of the first that the second has no use for.
        error: largest relative difference of the outputs in float64.
    """

    weights: Weights
    sizes: Mapping[str, int]
    moved: tuple[tuple[str, str], ...]
    free: tuple[str, ...]
    left: tuple[str, ...]
    error: float


def read(path: Path, prefix: str = "") -> Weights:
    """Returns the tensors of a file that `torch.save` or safetensors wrote; nothing is executed.

    Args:
        path: the file; safetensors wrote it where it ends in `.safetensors`.
        prefix: what the names of the wanted tensors begin with; it is taken off.

    Raises:
        Unfit: the file cannot be read, holds no such tensor, or anything but finite numbers.
    """
    try:
        tensors = _safetensors(path, prefix) if path.suffix == SAFETENSORS else _saved(path)
    except OSError as e:
        raise Unfit(f"{path} cannot be read: {e.strerror or e}") from None
    for name, value in tensors.items():
        if isinstance(value, Mapping):
            raise Unfit(
                f"{path} is a checkpoint and no state_dict: save checkpoint[{name!r}] by itself"
            )
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise Unfit(f"`{name}` in {path} is no tensor with a name")
    wanted = {n.removeprefix(prefix): x for n, x in tensors.items() if n.startswith(prefix)}
    if prefix and not wanted:
        raise Unfit(f"no name in {path} begins with `{prefix}`")
    for name, value in wanted.items():
        problem = _problem(value)
        if problem is not None:
            raise Unfit(f"`{prefix}{name}` in {path} {problem}")
    return wanted


def demand_names(weights: Weights, names: Collection[str], owner: str, hint: str = "") -> None:
    """Checks that weights have certain names and no others.

    Args:
        weights: the tensors.
        names: the wanted names.
        owner: the module or map that has them, for the message.
        hint: the end of the message about a name that is not wanted.

    Raises:
        Unfit: a name is missing, or not wanted.
    """
    missing = sorted(set(names) - weights.keys())
    if missing:
        raise Unfit(f"the weights lack {', '.join(missing)}")
    extra = sorted(weights.keys() - set(names))
    if extra:
        more = f" and {len(extra) - LISTED} more" if len(extra) > LISTED else ""
        raise Unfit(f"{owner} has no {', '.join(extra[:LISTED])}{more}{hint}")


def demand_entries(weights: Weights, shapes: Mapping[str, tuple[int, ...]], owner: str) -> None:
    """Checks that weights are those of a module.

    Args:
        weights: the tensors.
        shapes: the shape of each entry of the module's `state_dict`.
        owner: the module, for the message.

    Raises:
        Unfit: an entry is missing, not wanted, or has another shape.
    """
    demand_names(weights, shapes, owner)
    for entry, shape in shapes.items():
        if weights[entry].shape != shape:
            actual = tuple(weights[entry].shape)
            raise Unfit(f"`{entry}` has the shape {actual}, and {owner} needs {shape}")


def _saved(path: Path) -> Mapping[Any, Any]:
    """The mapping that `torch.save` wrote."""
    try:
        with files.opened(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they speak to programs that save files
            state_dict = torch.load(file, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception:  # whatever a damaged file makes torch raise; it tells how to execute the file
        raise Unfit(
            f"{path} is no file of weights: it holds things other than tensors, or is damaged"
        ) from None
    if not isinstance(state_dict, Mapping):
        raise Unfit(f"{path} holds a {type(state_dict).__name__}, not a state_dict")
    return state_dict


def _safetensors(path: Path, prefix: str) -> dict[str, Tensor]:
    """The tensors of a file of safetensors whose names begin with a prefix."""
    safetensors = _library(path)
    with files.opened(path):  # a regular file
        pass
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys() if name.startswith(prefix)}
    except safetensors.SafetensorError as e:
        raise Unfit(f"{path} is no file of safetensors: {e}") from None


def _library(path: Path) -> ModuleType:
    """The library of safetensors."""
    try:
        import safetensors.torch
    except ImportError:
        raise Unfit(f"{path} needs safetensors: pip install safetensors") from None
    library: ModuleType = safetensors
    return library


def _problem(value: Tensor) -> str | None:
    """The reason why no module stores a tensor, None where one does."""
    if value.layout is not torch.strided or value.is_meta or value.is_quantized:
        return "is no dense tensor of numbers"
    if not value.is_floating_point():
        return f"holds {str(value.dtype).removeprefix('torch.')}, not floating-point numbers"
    if not bool(torch.isfinite(value.double()).all()):
        return "is not finite"
    return None


def write(weights: Weights, path: Path) -> None:
    """Writes weights into a new file, whole or not at all; by safetensors if it is called so.

    Raises:
        Unfit: there is such a file, or it cannot be written.
    """
    try:
        with files.draft(path) as part:
            with part.open("wb") as f:
                if path.suffix == SAFETENSORS:
                    dense = {name: x.contiguous().clone() for name, x in weights.items()}
                    f.write(_library(path).torch.save(dense))
                else:
                    torch.save(dict(weights), f)
            os.link(part, path)  # unlike a rename this does not replace what is there
    except FileExistsError:
        raise Unfit(f"{path} exists already") from None
    except OSError as e:
        raise Unfit(f"{path} cannot be written: {e.strerror or e}") from None


def carry(
    first: ModuleType,
    second: ModuleType,
    weights: Weights,
    axes: Mapping[str, tuple[str, ...]],
    names: Mapping[str, str],
    called: tuple[Called, Called],
    unit: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset()),
) -> Carried:
    """Returns the weights of the second module that make it the first with the weights given.

    Args:
        first: an emitted module.
        second: one that is the same function of equal inputs and parameters.
        weights: the `state_dict` of the first.
        axes: names of the axes of each parameter and buffer of the first, as they are stored.
        names: argument of the second module → what of the first is the same.
        called: how the first and the second module call an axis.
        unit: inputs of the first and of the second to draw from (0, 1).

    Raises:
        Unfit: the weights are not those of the first module, a parameter is stored in two ways, or
            the outputs are not equal.
    """
    try:
        ours, theirs = _entries(surface(first)), _entries(surface(second))
        sizes = _sizes(weights, ours, axes)
        a, b = map(_made, (first, second), (sizes, sizes), called, unit)
    except SurfaceError as e:
        raise Unfit(str(e)) from None
    expected = a.layer(device="meta").state_dict()
    demand_entries(weights, {n: tuple(x.shape) for n, x in expected.items()}, "the first mixer")
    by_argument = {argument: entry for entry, argument in ours.items()}
    start = b.layer(torch.float64).state_dict()
    out: dict[str, Tensor] = {}
    moved: list[tuple[str, str]] = []
    free: list[str] = []
    kind = next((w.dtype for w in weights.values() if w.is_floating_point()), torch.float32)
    for entry, value in start.items():
        argument = theirs[entry]
        source = by_argument.get(names.get(argument, ""))
        if source is None:
            free.append(entry)
            out[entry] = value.to(kind) if value.is_floating_point() else value
            continue
        if weights[source].shape != value.shape:
            raise Unfit(
                f"`{source}` has the shape {tuple(weights[source].shape)}, and `{entry}` "
                f"{tuple(value.shape)}"
            )
        moved.append((source, entry))
        out[entry] = weights[source].clone()
    left = tuple(entry for entry in weights if entry not in {source for source, _ in moved})
    error = _compared(a, b, weights, out, theirs, names)
    return Carried(out, sizes, tuple(moved), tuple(free), left, error)


def sizes_of(
    module: ModuleType, weights: Weights, axes: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """Returns the sizes of the axes that the shapes of a module's weights tell.

    Args:
        module: an emitted module.
        weights: its `state_dict`.
        axes: as for `carry`.

    Raises:
        Unfit: an axis has two sizes, or the weights are not those of the module.
    """
    try:
        return _sizes(weights, _entries(surface(module)), axes)
    except SurfaceError as e:
        raise Unfit(str(e)) from None


def _made(
    module: ModuleType, sizes: Mapping[str, int], called: Called, unit: frozenset[str]
) -> Surface:
    """The module at those of the sizes that it has."""
    known = inspect.signature(surface(module).cls).parameters
    return surface(module, {called(n): k for n, k in sizes.items() if called(n) in known}, unit)


def _entries(described: Surface) -> dict[str, str]:
    """Entry of the state_dict → argument of the functional form that it decides."""
    layer = described.layer()
    sample = described.sample(1)
    base = _values(described, layer, sample.inputs)
    out: dict[str, str] = {}
    for entry, value in layer.state_dict().items():
        before = value.clone()
        with torch.no_grad():
            value.add_(0.125)
        now = _values(described, layer, sample.inputs)
        with torch.no_grad():
            value.copy_(before)
        changed = [n for n, v in now.items() if not torch.equal(v, base[n])]
        if len(changed) != 1:
            raise SurfaceError(f"the entry `{entry}` does not decide one parameter")
        out[entry] = changed[0]
    return out


def _values(described: Surface, layer: Layer, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Values of parameters and buffers as the functional form takes them."""
    values = described.values(Sample(layer, inputs))
    return {n: v.detach().clone() for n, v in values.items() if n not in described.inputs
            and n not in described.states}  # fmt: skip


def _sizes(
    weights: Weights, entries: Mapping[str, str], axes: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """Sizes of the axes, from the shapes of the weights."""
    out: dict[str, int] = {}
    for entry, argument in entries.items():
        if entry not in weights or argument not in axes:
            continue
        shape = weights[entry].shape
        if len(shape) < len(axes[argument]):
            raise Unfit(f"`{entry}` has the shape {tuple(shape)}, axes are {axes[argument]}")
        for axis, size in zip(axes[argument], shape, strict=False):
            if out.setdefault(axis, int(size)) != size:
                raise Unfit(f"the axis {axis} has the sizes {out[axis]} and {size} in the weights")
    return out


def _compared(
    a: Surface,
    b: Surface,
    weights: Weights,
    written: Weights,
    theirs: Mapping[str, str],
    names: Mapping[str, str],
) -> float:
    """The largest relative difference of the outputs of both, in float64."""
    layers = []
    for output, state in ((a, weights), (b, written)):
        layer = output.layer(torch.float64)
        layer.load_state_dict({n: v.double() if v.is_floating_point() else v
                               for n, v in state.items()})  # fmt: skip
        layers.append(layer)
    before, after = (_values(s, layer, s.draw(1)) for s, layer in zip((a, b), layers, strict=True))
    for entry, argument in theirs.items():
        same = names.get(argument)
        if same in before and not torch.equal(before[same], after[argument]):
            raise Unfit(f"`{entry}` is stored in another way than `{same}` of the first mixer")
    worst = 0.0
    for length in LENGTHS:
        inputs = a.draw(length, seed=length)
        own = b.draw(length, seed=length)
        arguments = {n: inputs[names[n]] if n in names else own[n] for n in b.inputs}
        with torch.no_grad():
            left, right = layers[0](**inputs), layers[1](**arguments)
        error = relative_error(right.reshape(left.shape), left)
        worst = max(worst, error)
        if not error <= CLOSE:
            raise Unfit(f"the outputs differ by {error:.1e} on {length} tokens")
    return worst
