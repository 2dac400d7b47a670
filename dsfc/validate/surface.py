"""The public surface of an emitted module, read without knowing its mixer.

Everything the checks use comes from here: names from signatures, sizes of inputs from what the
module itself says it expects, parameter values from the call of its functional form. A class may
store a constrained parameter as its logarithm, for example; the functional form and the reference
take its value, so the values are taken where the class hands them over.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from dsfc.expr.declarations import Constraint
from dsfc.expr.declarations import Tensor as Declared
from dsfc.validate.dispatch import Call, Narrow, OperatorSpy

SIZES = (6, 2, 4, 3, 5, 7)
"""Sizes of axes in the order of the constructor: all different, so that no two are mixed up."""

_CONSTANTS = ("__all__", "SPEC", "NAMESPACE", "MODES", "State", "reference")

_PREFIX = 3
"""Tokens that lie before a state that is drawn."""


class SurfaceError(Exception):
    """This is no emitted module, or it cannot be made with these sizes."""


class Layer(nn.Module):
    """What every emitted class has, for types; nothing is an instance of it."""

    def step(self, *args: Any) -> tuple[Tensor, Any]:  # noqa: ANN401 - inputs, then the state
        """Mixes one token."""
        raise NotImplementedError

    def initial_state(
        self, batch: int, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Any:  # noqa: ANN401 - a class of the module
        """Returns the state before the first token."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sample:
    """What one call is made with.

    Attributes:
        layer: the module's class, with parameters drawn.
        inputs: `[B, L, *axes]` each, by name.
        state: what came before, or None for nothing.
    """

    layer: Layer
    inputs: Mapping[str, Tensor]
    state: Any = None


@dataclass(frozen=True)
class Surface:
    """An emitted module and the sizes it is run with.

    Attributes:
        module: the Python module.
        sizes: arguments of the constructor.
        inputs: shape of each input without batch and length, by name.
        unit: inputs that are drawn from (0, 1): those that are declared in a range; all of them
            where the mixer is not defined elsewhere.
    """

    module: ModuleType
    sizes: Mapping[str, int]
    inputs: Mapping[str, tuple[int, ...]]
    unit: frozenset[str] = frozenset()

    # --- names -----------------------------------------------------------------------------------

    @property
    def mixer(self) -> str:
        """Name of the functional form."""
        return _exports(self.module)[1]

    @property
    def namespace(self) -> str:
        """Namespace of the operators."""
        return str(self.module.NAMESPACE)

    @property
    def modes(self) -> tuple[str, ...]:
        """Legal modes."""
        return tuple(self.module.MODES)

    @property
    def causal(self) -> bool:
        """Whether outputs need earlier tokens only; otherwise it goes on from no state."""
        return bool(getattr(self.module, "CAUSAL", True))

    @property
    def growing(self) -> tuple[str, ...]:
        """Names of the state's tensors that keep every token, `[B, T, ...]`; none of most."""
        return tuple(getattr(self.module, "GROWING", ()))

    @property
    def maxima(self) -> tuple[str, ...]:
        """Names of the state's tensors that are running maxima; none of most."""
        return tuple(getattr(self.module, "MAXIMA", ()))

    @property
    def smooth(self) -> tuple[str, ...]:
        """Modes that have derivatives of any order; fused kernels may have the first alone."""
        return tuple(m for m in self.modes if not self.growing or m == "parallel")

    @property
    def carried(self) -> dict[str, bool]:
        """Arguments that ask the layer for its last state, where it has one to give."""
        return {"return_state": True} if self.causal else {}

    @property
    def cls(self) -> type[Layer]:
        """The `nn.Module`."""
        layer: type[Layer] = getattr(self.module, _exports(self.module)[0])
        return layer

    @property
    def layer_cls(self) -> type[nn.Module] | None:
        """The layer around the mixer; None where the module has none."""
        return self._layer(0)

    @property
    def fla_layer_cls(self) -> type[nn.Module] | None:
        """The layer that flash-linear-attention calls; None where the module has none."""
        return self._layer(1)

    def _layer(self, number: int) -> type[nn.Module] | None:
        around = _classes(self.module)[1:]
        known = number < len(around)
        layer: type[nn.Module] | None = getattr(self.module, around[number]) if known else None
        return layer

    @property
    def functional(self) -> Callable[..., tuple[Tensor, ...]]:
        """The mixer as a function of inputs, parameter values and states; sizes are given."""
        function: Callable[..., tuple[Tensor, ...]] = getattr(self.module, self.mixer)
        declared = inspect.signature(function).parameters
        sizes = {n: size for n, size in self.sizes.items() if n in declared}
        return partial(function, **sizes) if sizes else function

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the state's tensors."""
        return tuple(f.name for f in dataclasses.fields(self.module.State))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the functional form's tensors: inputs, parameters and buffers, states."""
        declared = inspect.signature(self.functional).parameters.values()
        return tuple(p.name for p in declared if p.kind is not p.KEYWORD_ONLY)

    # --- material --------------------------------------------------------------------------------

    def layer(
        self, dtype: torch.dtype = torch.float64, seed: int = 0, device: str | None = None
    ) -> Layer:
        """Returns the class with parameters large enough to see every gradient.

        Args:
            dtype: of the parameters.
            seed: of all draws; two layers of one seed and dtype are equal.
            device: where to make it; `meta` leaves the parameters undrawn.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layer = self.cls(**self.sizes, dtype=dtype, device=device)
        generator = torch.Generator().manual_seed(seed + 1)
        with torch.no_grad():
            for p in layer.parameters():
                if not p.is_meta:
                    p.add_(_normal(tuple(p.shape), p.dtype, generator), alpha=0.4)
        return layer

    def draw(
        self, length: int, batch: int = 2, dtype: torch.dtype = torch.float64, seed: int = 0
    ) -> dict[str, Tensor]:
        """Returns random inputs, away from 0, where a mixer may have a pole or a kink.

        Args:
            length: L.
            batch: B.
            dtype: of the inputs.
            seed: of the draw.
        """
        generator = torch.Generator().manual_seed(1000 + seed)
        drawn = {}
        for name, axes in self.inputs.items():
            x = _normal((batch, length, *axes), dtype, generator)
            unit = name in self.unit
            drawn[name] = 0.1 + 0.8 * torch.sigmoid(x) if unit else x + 0.25 * x.sgn()
        return drawn

    def sample(
        self,
        length: int,
        batch: int = 2,
        dtype: torch.dtype = torch.float64,
        state: bool = True,
        seed: int = 0,
    ) -> Sample:
        """Returns a layer, inputs and, if wanted, the state after a few random tokens.

        A state is reached, not drawn: a denominator's state is a sum of positive numbers, and a
        register of the first token knows whether there was one.
        """
        layer = self.layer(dtype, seed)
        inputs = self.draw(length, batch, dtype, seed)
        before = None
        if state and self.causal:
            prefix = self.draw(_PREFIX, batch, dtype, seed + 1)
            with torch.no_grad():
                _, before = layer(**prefix, return_state=True)
        return Sample(layer, inputs, before)

    def tensors(self, state: Any) -> dict[str, Tensor]:  # noqa: ANN401 - a class of the module
        """Returns the tensors of a state by name; none of None."""
        return {} if state is None else {name: getattr(state, name) for name in self.states}

    def values(self, sample: Sample) -> dict[str, Tensor]:
        """Returns the functional form's tensors by name, parameters as the class computes them.

        They carry their graph: gradients with respect to what the layer stores flow through them.
        """
        seen: list[dict[str, Any]] = []
        inner, signature = self.functional, inspect.signature(self.functional)

        def spied(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on as they come
            seen.append(dict(signature.bind(*args, **kwargs).arguments))
            return inner(*args, **kwargs)

        setattr(self.module, self.mixer, spied)
        try:
            sample.layer(**sample.inputs, state=sample.state)
        finally:
            setattr(self.module, self.mixer, inner)
        if len(seen) != 1:
            raise SurfaceError(f"{self.cls.__name__} does not call {self.mixer} once")
        return {name: seen[0][name] for name in self.arguments}

    def reference(self, values: Mapping[str, Tensor], dtype: torch.dtype = torch.float64) -> Tensor:
        """Returns y `[B, L, *axes]` of the module's own definition, from nothing before.

        Args:
            values: tensors of the functional form, by name; states are not read.
            dtype: run in another one than float64: the plain form in low precision.
        """
        names = inspect.signature(self.module.reference).parameters
        arguments = {name: values[name] if name in values else self.sizes[name] for name in names}
        with nullcontext() if dtype == torch.float64 else Narrow(dtype):
            y: Tensor = self.module.reference(**arguments)
        return y

    def calls(self, sample: Sample, **how: Any) -> tuple[Call, ...]:  # noqa: ANN401 - passed on
        """Returns every call of the module's operators in a forward and a backward pass."""
        inputs = {k: v.detach().clone().requires_grad_() for k, v in sample.inputs.items()}
        with OperatorSpy(self.namespace) as spy:
            y, after = ends(sample.layer(**inputs, state=sample.state, **self.carried, **how))
            pull_back(loss(y, *self.tensors(after).values()))
        sample.layer.zero_grad()
        return tuple(spy.calls)


def ends(result: Any) -> tuple[Tensor, Any]:  # noqa: ANN401 - y, or y and a state
    """Returns what a layer gave as y and its last state, None where it gave none."""
    return result if isinstance(result, tuple) else (result, None)


def loss(*outs: Tensor) -> Tensor:
    """Returns a scalar in which every entry of every tensor has a gradient of its own."""
    terms = [torch.sin(x.abs() if x.is_complex() else x).sum() for x in outs]
    return torch.stack([t.double() for t in terms]).sum()


def gradients(
    scalar: Tensor, wrt: Sequence[Tensor], create_graph: bool = False
) -> tuple[Tensor, ...]:
    """Returns the gradients of a scalar in tensors: zeros in those that it does not depend on."""
    if not scalar.requires_grad:
        return tuple(torch.zeros_like(x) for x in wrt)
    return torch.autograd.grad(scalar, wrt, create_graph=create_graph, materialize_grads=True)


def pull_back(scalar: Tensor) -> None:
    """Adds the gradients of a scalar to the leaves that it depends on, if there are any."""
    if scalar.requires_grad:
        scalar.backward()


def surface(
    module: ModuleType,
    sizes: Mapping[str, int] | None = None,
    unit: frozenset[str] = frozenset(),
) -> Surface:
    """Reads the public surface of an emitted module.

    Args:
        module: the Python module.
        sizes: of the axes; by default small ones, all different.
        unit: inputs to draw from (0, 1), see `unit_inputs`.

    Raises:
        SurfaceError: this is no emitted module, or its class refuses the sizes.
    """
    missing = [name for name in _CONSTANTS if not hasattr(module, name)]
    if missing:
        lacks = ", ".join(missing)
        raise SurfaceError(f"{module.__name__} is not a module that dsfc wrote: it lacks {lacks}")
    cls = getattr(module, _exports(module)[0])
    chosen = _sizes(cls, sizes)
    described = Surface(module, chosen, _inputs(cls, chosen), unit)
    return (
        described
        if _defined(described)
        else dataclasses.replace(described, unit=frozenset(described.inputs))
    )


def unit_inputs(inputs: Iterable[Declared]) -> frozenset[str]:
    """Returns the names of inputs that are declared in a range; (0, 1) lies in every range."""
    return frozenset(
        t.name for t in inputs if t.constraint not in (Constraint.NONE, Constraint.NONZERO)
    )


def _exports(module: ModuleType) -> tuple[str, str]:
    """Names of the class and of the functional form."""
    classes = _classes(module)
    functions = [n for n in module.__all__ if n not in (*classes, "State", "reference")]
    if len(classes) not in (1, 2, 3) or len(functions) != 1:  # the mixer, then its layers
        raise SurfaceError(f"{module.__name__} does not export one mixer and one function")
    return classes[0], functions[0]


def _classes(module: ModuleType) -> list[str]:
    """Names of the mixer, of its layer and of the one that fla calls, as far as there are."""
    return [n for n in module.__all__ if n != "State" and isinstance(getattr(module, n), type)]


def _sizes(cls: type[nn.Module], sizes: Mapping[str, int] | None) -> dict[str, int]:
    """Sizes of all axes; where the class refuses them, of those that must be given."""
    parameters = inspect.signature(cls).parameters
    axes = [name for name in parameters if name not in ("device", "dtype")]
    if sizes is not None:
        unknown = sorted(set(sizes) - set(axes))
        if unknown:
            raise SurfaceError(f"{cls.__name__} has no axis {', '.join(unknown)}")
        needed = [n for n in axes if parameters[n].default is inspect.Parameter.empty]
        absent = [n for n in needed if n not in sizes]
        if absent:
            raise SurfaceError(f"{cls.__name__} needs a size of {', '.join(absent)}")
        problem = _refusal(cls, sizes)
        if problem is not None:
            raise SurfaceError(f"{cls.__name__} refuses these sizes: {problem}") from problem
        return dict(sizes)
    small = dict(zip(axes, (*SIZES, *range(8, 8 + len(axes))), strict=False))
    needed = [n for n in axes if parameters[n].default is inspect.Parameter.empty]
    round_ones = dict.fromkeys(needed, 16)
    for candidate in (small, round_ones):
        problem = _refusal(cls, candidate)
        if problem is None:
            return candidate
    raise SurfaceError(f"{cls.__name__} refuses small sizes: {problem}") from problem


def _refusal(cls: type[nn.Module], sizes: Mapping[str, int]) -> Exception | None:
    try:
        cls(**sizes, device="meta")
    except (ValueError, TypeError, RuntimeError) as e:
        return e
    return None


def _inputs(cls: type[nn.Module], sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the inputs, from what the layer says when it is given something else."""
    layer = cls(**sizes)
    names = []
    for name in inspect.signature(layer.forward).parameters:
        if name == "state":
            break
        names.append(name)
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        values = {n: torch.zeros(1, 1, *shapes.get(n, ())) for n in names}
        values[name] = torch.zeros(())
        try:
            layer(**values)
        except ValueError as e:
            shapes[name] = _expected(name, str(e))
        else:
            raise SurfaceError(f"{cls.__name__} takes a number for {name} and does not complain")
    return shapes


def _expected(name: str, message: str) -> tuple[int, ...]:
    """`u must be [B, L, d] = [B, L, 6], got []` → `(6,)`."""
    lists = re.findall(r"\[B, L((?:, \d+)*)\]", message.split("got")[0])
    if not message.startswith(f"{name} must be") or not lists:
        raise SurfaceError(f"no shape of {name} in the message: {message}")
    return tuple(int(size) for size in re.findall(r"\d+", lists[-1]))


def _defined(described: Surface) -> bool:
    """Whether the definition gives numbers, with finite gradients, for inputs of either sign."""
    sample = described.sample(7, state=False)
    inputs = {k: v.requires_grad_() for k, v in sample.inputs.items()}
    try:
        y = described.reference(described.values(dataclasses.replace(sample, inputs=inputs)))
    except Exception:
        return True  # a module that does not run is for the checks to show
    wrt = [*inputs.values(), *(p for p in sample.layer.parameters() if p.requires_grad)]
    return all(bool(torch.isfinite(x).all()) for x in (y, *gradients(loss(y), wrt)))


def _normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(shape, generator=generator, dtype=wide).to(dtype)
