"""Promises about the layer around a mixer: it is the definition of the spec between linear maps.

The judge is the reference of the same spec in a module without a layer, which knows nothing of
maps that are done apart, with norm, gate and output map written out behind it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from dsfc.validate.cases import CHUNK
from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, worst_of
from dsfc.validate.surface import Sample, Surface, gradients

PARTS = ((None, None), ("rms", "silu"), ("layer", "sigmoid"))
"""Norms and gates that are tried."""

_OPTIONS = ("d", "norm", "gate", "bias", "device", "dtype")
_EPS = 1e-5
_LENGTH, _BATCH, _WIDTH = 2 * CHUNK + 1, 2, 6


@dataclass(frozen=True)
class Definition:
    """The mixer of a spec, apart from any layer.

    Attributes:
        plain: the module of the spec without a layer.
        heads: places of the axes of heads among those of its output.
    """

    plain: Surface
    heads: tuple[int, ...]

    @property
    def maps_the_input(self) -> bool:
        """Whether each input of the mixer has a map; else the layer takes the mixer's input."""
        return [len(axes) for axes in self.plain.inputs.values()] != [1]

    @property
    def width(self) -> int:
        """The width of the layer."""
        (axes, *_) = self.plain.inputs.values()
        return self.plain.sizes.get("d", _WIDTH) if self.maps_the_input else axes[0]

    def sequence(self) -> Tensor:
        """Returns an input of the layer, `[B, L, d]`, that takes a gradient."""
        if self.maps_the_input:
            generator = torch.Generator().manual_seed(5)
            u = torch.randn(_BATCH, _LENGTH, self.width, generator=generator, dtype=torch.float64)
        else:
            (u,) = self.plain.draw(_LENGTH, _BATCH).values()
        return u.requires_grad_()

    def around(self, layer: Any, u: Tensor) -> Tensor:  # noqa: ANN401 - a class of the module
        """Returns what a layer should give of u, `[B, L, d]`, by the reference of the mixer.

        Gradients flow to u and to the parameters of the layer.

        Raises:
            BrokenPromiseError: `mixer_weights` does not give the parameters of the mixer.
        """
        weights = layer.mixer_weights() | dict(layer.mixer.named_parameters())
        mixer = self.plain.cls(**self.plain.sizes, dtype=u.dtype)
        if lost := set(weights) ^ set(mixer.state_dict()):
            raise BrokenPromiseError(f"mixer_weights and the mixer differ in {', '.join(lost)}")

        def call(**arguments: Any) -> Any:  # noqa: ANN401 - passed on as they come
            return functional_call(mixer, weights, (), arguments)

        inputs = dict(zip(self.plain.inputs, self._inputs(layer, u), strict=True))
        # `values` only calls the layer of a sample, so a function of the same arguments will do.
        y = self.plain.reference(self.plain.values(Sample(call, inputs)))  # type: ignore[arg-type]
        y = y.movedim([2 + at for at in self.heads], [*range(2, 2 + len(self.heads))])
        normed = [*range(2 + len(self.heads), y.ndim)] or [*range(2, y.ndim)]
        y = _normed(layer.norm, y, normed).flatten(2)
        if layer.gate_proj is not None:
            gate = functional.linear(u, layer.gate_proj.weight)
            y = y * gate.sigmoid() * (gate if layer.gate == "silu" else 1)
        return functional.linear(y, layer.out_proj.weight)

    def _inputs(self, layer: nn.Module, u: Tensor) -> Iterator[Tensor]:
        if not self.maps_the_input:
            yield u
            return
        behind = ("gate_proj", "out_proj")
        linear = (m for n, m in layer.named_children() if n not in behind)
        maps = (m for m in linear if isinstance(m, nn.Linear))
        for m, axes in zip(maps, self.plain.inputs.values(), strict=True):
            yield functional.linear(u, m.weight).reshape(*u.shape[:2], *axes)


def whole_layer(surface: Surface, definition: Definition) -> str:
    """The layer is its spec between linear maps, with norm, gate and gradients, in every mode."""
    cls = surface.layer_cls
    if cls is None:
        raise BrokenPromiseError("the module has no layer")
    sizes, worst = sizes_of(cls, definition), 0.0
    for norm, gate in PARTS:
        layer = drawn(partial(cls, definition.width, **sizes, norm=norm, gate=gate))
        u = definition.sequence()
        want = outcome(layer, u, definition.around(layer, u))
        runs = {mode: partial(layer, u, mode=mode, chunk=CHUNK) for mode in surface.modes}
        if surface.causal:
            runs["step"] = partial(_stepped, layer, u)
        for name, run in runs.items():
            where = f"{name}, norm {norm}, gate {gate}"
            worst = max(worst, agree(outcome(layer, u, run()), want, EXACT, where))
    return worst_of(worst)


def sizes_of(cls: type[nn.Module], definition: Definition) -> dict[str, int]:
    """Returns sizes for the constructor of a layer, but its width: those of the mixer."""
    known, sizes = inspect.signature(cls).parameters, definition.plain.sizes
    # An axis that is called as an option of the layer has an underscore behind its name there.
    axes = {n: n if n in sizes else n.rstrip("_") for n in known if n not in _OPTIONS}
    return {n: sizes[axis] for n, axis in axes.items() if axis in sizes}


def drawn(make: Callable[..., Any]) -> Any:  # noqa: ANN401 - a class of the module
    """Returns a layer with parameters large enough to see every gradient, the same in every run.

    Args:
        make: the class, all but its dtype given.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = make(dtype=torch.float64)
        with torch.no_grad():
            for p in layer.parameters():
                p.add_(torch.randn_like(p), alpha=0.4)
    return layer


def _normed(norm: Any, y: Tensor, axes: list[int]) -> Tensor:  # noqa: ANN401 - a norm, or None
    """Returns y behind a norm over its last axes; y itself where there is no norm."""
    if norm is None:
        return y
    if isinstance(norm, nn.LayerNorm):
        y = y - y.mean(axes, keepdim=True)
    y = y / (y.square().mean(axes, keepdim=True) + _EPS).sqrt() * norm.weight
    return y + norm.bias if isinstance(norm, nn.LayerNorm) else y


def _stepped(layer: Any, u: Tensor) -> Tensor:  # noqa: ANN401 - a class of the module
    state, rows = layer.initial_state(len(u), dtype=u.dtype), []
    for token in u.unbind(1):
        y, state = layer.step(token, state)
        rows.append(y)
    return torch.stack(rows, 1)


def outcome(layer: nn.Module, u: Tensor, y: Tensor) -> Mapping[str, Tensor]:
    """Returns y, and the gradients of all that it depends on, by name.

    Args:
        layer: whose parameters are among it.
        u: `[B, L, d]`, an input with a gradient.
        y: `[B, L, d]`, what came of it.
    """
    generator = torch.Generator().manual_seed(7)
    weights = torch.randn(y.shape, generator=generator, dtype=y.dtype)
    wrt = {"u": u, **dict(layer.named_parameters())}
    slopes = gradients((y * weights).sum(), list(wrt.values()))
    named = {f"gradient of {n}": g for n, g in zip(wrt, slopes, strict=True)}
    return {"y": y.detach(), **named}
