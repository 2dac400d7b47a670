"""Tokens of a mixer from a file of NumPy; nothing in it is executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc import files
from dsfc.expr.declarations import Tensor
from dsfc.expr.tree import Field
from dsfc.mixer.ir import Mixer

Array = NDArray[Any]


class WrongData(ValueError):
    """A file does not hold tokens of a mixer; the text says why, as a clause."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of one sequence.

    Attributes:
        inputs: `[L, *axes]` by name.
        sizes: of the axes that the inputs have, by name.
    """

    inputs: Mapping[str, Array]
    sizes: Mapping[str, int]


def read_tokens(path: Path, mixer: Mixer) -> Tokens:
    """Returns the tokens that a file holds.

    Args:
        path: a `.npy` with the only input of a mixer, or a `.npz` with each by its name, as
            `[L, *axes]`, or `[B, L, *axes]`, of which the first sequence is taken.
        mixer: the mixer.

    Raises:
        WrongData: the file cannot be read, or holds anything else.
    """
    try:
        with files.opened(path) as file:
            kept = np.load(file, allow_pickle=False)
            arrays = {n: kept[n] for n in kept.files} if hasattr(kept, "files") else kept
    except OSError as e:
        raise WrongData(f"{path} cannot be read: {e.strerror or e}") from None
    except Exception:  # whatever a damaged file makes NumPy raise
        raise WrongData(f"{path} is no file of NumPy, or it is damaged") from None
    if not isinstance(arrays, dict):
        if len(mixer.inputs) != 1:
            names = ", ".join(t.name for t in mixer.inputs)
            raise WrongData(f"{path} holds one array, and the inputs are {names}: give a .npz")
        arrays = {mixer.inputs[0].name: arrays}
    inputs: dict[str, Array] = {}
    sizes: dict[str, int] = {}
    for t in mixer.inputs:
        inputs[t.name] = _tokens(t, arrays, path)
        for axis, size in zip(t.axes, inputs[t.name].shape[1:], strict=True):
            if sizes.setdefault(axis.name, size) != size:
                raise WrongData(f"the axis {axis.name} has the sizes {sizes[axis.name]} and {size}")
    lengths = {len(x) for x in inputs.values()}
    if len(lengths) != 1 or min(lengths) < 2:
        raise WrongData(f"{path} has {sorted(lengths)} tokens; all inputs have as many, 2 or more")
    return Tokens(inputs, sizes)


def _tokens(t: Tensor, arrays: Mapping[str, Array], path: Path) -> Array:
    if t.name not in arrays:
        raise WrongData(f"{path} lacks the input `{t.name}`")
    value = arrays[t.name]
    if value.dtype.kind not in "fiuc" or not np.isfinite(value).all():
        raise WrongData(f"`{t.name}` in {path} is no array of finite numbers")
    if value.dtype.kind == "c" and t.field is Field.REAL:
        raise WrongData(f"`{t.name}` in {path} is complex, and the input is real")
    if value.ndim == len(t.axes) + 2 and len(value):
        value = value[0]
    if value.ndim != len(t.axes) + 1:
        axes = ", ".join(("L", *(a.name for a in t.axes)))
        raise WrongData(f"`{t.name}` in {path} has the shape {value.shape}, and not [{axes}]")
    return value.astype(complex if t.field is Field.COMPLEX else float)
