"""The parameters that a module makes of trained weights, as arrays by their names in the spec."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dsfc.system.ir import System
from dsfc.system.traverse import stored_axes
from dsfc.validate.surface import Sample, SurfaceError, surface
from dsfc.validate.weights import Called, Unfit, Weights, sizes_of


@dataclass(frozen=True)
class Trained:
    """A mixer with trained weights.

    Attributes:
        sizes: of the axes that they have, by name.
        params: parameters and buffers by name, as they are stored.
    """

    sizes: Mapping[str, int]
    params: Mapping[str, NDArray[Any]]


def trained(module: ModuleType, system: System, weights: Weights, called: Called) -> Trained:
    """Returns the parameters and buffers of a module with weights.

    Args:
        module: the emitted module of the mixer.
        system: the System.
        weights: the `state_dict` of its class.
        called: name in the spec → its name in the module.

    Raises:
        Unfit: the weights are not those of the module, or the module is none of the mixer.
    """
    stored = (*system.params, *system.buffers)
    axes = {called(t.name): tuple(a.name for a in stored_axes(t)) for t in stored}
    sizes = sizes_of(module, weights, axes)
    try:
        plain = surface(module)
        known = inspect.signature(plain.cls).parameters
        described = surface(module, {called(n): k for n, k in sizes.items() if called(n) in known})
        layer = described.layer(torch.float64)
        _check_names(set(weights), set(layer.state_dict()))
        try:
            layer.load_state_dict({n: w.double() for n, w in weights.items()})
        except RuntimeError as e:
            raise Unfit(str(e).splitlines()[-1].strip()) from None
        inputs = {n: torch.zeros(1, 1, *shape).double() for n, shape in described.inputs.items()}
        with torch.no_grad():
            values = described.values(Sample(layer, inputs))
    except SurfaceError as e:
        raise Unfit(str(e)) from None
    missing = [t.name for t in stored if called(t.name) not in values]
    if missing:
        raise Unfit(f"the module is of another mixer: it has no {', '.join(missing)}")
    arrays = {t.name: np.asarray(values[called(t.name)].detach().numpy()) for t in stored}
    return Trained(sizes, arrays)


def _check_names(have: set[str], want: set[str]) -> None:
    """The weights have the names of the entries of the module."""
    lacks, extra = sorted(want - have), sorted(have - want)
    said = [f"lack {', '.join(lacks)}"] * bool(lacks) + [f"have {', '.join(extra)}"] * bool(extra)
    if said:
        raise Unfit(f"the weights are not those of the module: they {' and '.join(said)}")
