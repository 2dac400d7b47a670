"""A layer as a program: a function of named tensors, traced, with no operator of its module."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx.experimental import _config as shapes

from dsfc.programs.token_loop import NoProgram, Replaced, decompositions
from dsfc.validate.surface import Layer, Surface, SurfaceError, ends, surface

_BATCH, _LENGTH, _EARLIER = 3, 5, 4
"""Sizes of the example: B, L, and tokens before, all different and none of them 0 or 1."""


@dataclass(frozen=True)
class Program:
    """A layer as a program.

    Attributes:
        layer: the layer.
        surface: what its module says of itself.
        step: whether the program takes one token; a whole sequence otherwise.
        exported: the traced program, of named tensors `inputs` to the tuple `outputs`.
        inputs: names of inputs, `[B, L, ...]` or `[B, ...]` of a token, then of the states before.
        outputs: `y`, then `S_next` of a state `S`: names of the results in order.
        parts: of those, the complex ones that have a last axis of 2, the real and imaginary parts.
    """

    layer: Layer
    surface: Surface
    step: bool
    exported: ExportedProgram
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parts: tuple[str, ...] = ()

    def example(self, batch: int, length: int, earlier: int, seed: int = 0) -> dict[str, Tensor]:
        """Returns inputs and the state after earlier tokens, by name.

        Args:
            batch: B.
            length: L; 1 for a step.
            earlier: how many tokens lie before; with 0 the state is that before the first token.
            seed: of the draw.
        """
        example = _example(self.layer, self.surface, self.step, batch, length, earlier, seed)
        return self._as_parts(example)

    def eager(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Returns what the layer itself gives, in the order of `outputs`."""
        whole = {n: torch.view_as_complex(x) if n in self.parts else x for n, x in tensors.items()}
        outs = _Wrapper(self.layer, self.surface, self.step)(**whole)
        return tuple(self._as_parts(dict(zip(self.outputs, outs, strict=True))).values())

    def _as_parts(self, named: dict[str, Tensor]) -> dict[str, Tensor]:
        return {n: torch.view_as_real(x) if n in self.parts else x for n, x in named.items()}


def program(layer: nn.Module, step: bool = False, replaced: Replaced = decompositions) -> Program:
    """Traces a layer of an emitted module with open batch and length.

    Args:
        layer: the layer, with the parameters that the program is to have.
        step: whether the program takes one token and the state before it.
        replaced: gives what takes the place of each operator of a module that a graph calls.

    Raises:
        NoProgram: the layer is of no emitted module, or cannot be traced so.
    """
    module = sys.modules.get(type(layer).__module__)
    sizes = {n: getattr(layer, n) for n in inspect.signature(type(layer)).parameters
             if isinstance(getattr(layer, n, None), int)}  # fmt: skip
    try:
        if module is None:
            raise SurfaceError(f"the module of {type(layer).__name__} is not imported")
        known = surface(module, sizes)
    except SurfaceError as e:
        raise NoProgram(str(e)) from None
    layer = cast(Layer, layer)
    if step and not known.causal:
        raise NoProgram("it reads later tokens, so that there is no step from token to token")
    example = _example(layer, known, step, _BATCH, 1 if step else _LENGTH, _EARLIER, 0)
    states = known.states if known.causal else ()
    outputs = ("y", *(f"{name}_next" for name in states))
    with _refusing():
        with _quietly():
            traced = _trace(_Wrapper(layer, known, step), known, step, example)
        table = replaced(known.module, traced.graph)
        with _quietly():
            traced = _without_ones(traced.run_decompositions(table) if table else traced)
    return Program(layer, known, step, traced, tuple(example), outputs)


def again(program: Program, form: Callable[[ExportedProgram], nn.Module]) -> Program:
    """Traces a program once more, in another form.

    Args:
        program: the program; its `parts` are those of the form.
        form: makes the same function of named tensors of what was traced, which calls PyTorch's
            core operators.

    Raises:
        NoProgram: it cannot be traced so.
    """
    example = program.example(_BATCH, 1 if program.step else _LENGTH, _EARLIER)
    with _refusing(), _quietly():
        core = form(program.exported.run_decompositions())
        traced = _trace(core, program.surface, program.step, example)
    return replace(program, exported=_without_ones(traced))


def named_function(names: tuple[str, ...], run: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of named tensors of one that takes them in a dictionary."""
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    signature = inspect.Signature(parameters)

    def forward(*tensors: Tensor, **named: Tensor) -> Any:  # noqa: ANN401 - what is run gives
        return run(signature.bind(*tensors, **named).arguments)

    # torch.export names the inputs of a program by the signature of `forward`. Python lets any
    # function have a `__signature__`; its type does not say so.
    forward.__signature__ = signature  # type: ignore[attr-defined]
    return forward


def _trace(
    form: nn.Module, known: Surface, step: bool, example: dict[str, Tensor]
) -> ExportedProgram:
    """Traces a function of named tensors with open batch and length."""
    open_sizes = {name: _open(known, name, step) for name in example}
    return torch.export.export(form, (), example, dynamic_shapes=open_sizes, strict=False)


def _open(known: Surface, name: str, step: bool) -> dict[int, Any]:
    """The sizes of a tensor that are open: B of all, L of inputs, T of states that keep tokens."""
    if name in known.states:
        return {0: _dim("B"), 1: _dim("T")} if name in known.growing else {0: _dim("B")}
    return {0: _dim("B")} if step else {0: _dim("B"), 1: _dim("L")}


def _dim(name: str) -> Dim:
    """An open size. PyTorch traces no size of 0 or 1; it does not check that a size is another."""
    return Dim(name, min=2)


def _without_ones(traced: ExportedProgram) -> ExportedProgram:
    """Lets a program run sizes of 1 too.

    PyTorch writes down that a size is not 1 where it chose a formula that broadcasts such a size at
    no cost; the formula that it took is right for 1 as well. Programs are run at sizes of 1 before
    they are written.
    """
    traced._guards_code = [g for g in traced._guards_code if " != " not in g]
    return traced


@contextmanager
def _refusing() -> Iterator[None]:
    """Tells what PyTorch says of what cannot be traced as a reason why there is no program."""
    try:
        yield
    except torch._dynamo.exc.UserError as e:
        raise NoProgram(str(e).splitlines()[0]) from e


@contextmanager
def _quietly() -> Iterator[None]:
    """Traces sizes of 0 and 1 as any others, without gradients and without PyTorch's warnings."""
    # PyTorch gives its modules of options `patch` when they are imported, which mypy does not see.
    oblivious = shapes.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
    with torch.no_grad(), oblivious, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Wrapper(nn.Module):
    """A layer as a function of named tensors: inputs and the state before."""

    layer: Layer  # said here, as mypy takes any attribute of a module for a tensor or a module

    def __init__(self, layer: Layer, known: Surface, step: bool) -> None:
        super().__init__()
        self.layer = layer
        self._known, self._step = known, step
        # Attention chooses among PyTorch's functions by sizes; one formula serves all of them.
        self._mode = "parallel" if known.growing else "auto"
        self._states = known.states if known.causal else ()
        self.forward = named_function((*known.inputs, *self._states), self._run)

    def _run(self, named: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Returns y and the states after."""
        known = self._known
        inputs, states = [named[n] for n in known.inputs], [named[n] for n in self._states]
        before = known.module.State(*states) if states else None
        if self._step:
            y, after = self.layer.step(*inputs, before)
        else:
            y, after = ends(self.layer(*inputs, before, mode=self._mode, **known.carried)
                            if known.causal else self.layer(*inputs, mode=self._mode))  # fmt: skip
        return y, *(known.tensors(after).values())


@torch.no_grad()
def _example(
    layer: Layer, known: Surface, step: bool, batch: int, length: int, earlier: int, seed: int
) -> dict[str, Tensor]:
    """Inputs and a state that is reached, not drawn: a denominator is a sum of positive numbers."""
    like = _like(layer)
    drawn = known.draw(length, batch, like.dtype, seed)
    inputs = {name: x.to(like.device) for name, x in drawn.items()}
    if step:
        inputs = {name: x[:, 0] for name, x in inputs.items()}
    if not known.causal:
        return inputs
    state = layer.initial_state(batch, like.device, like.dtype)
    if earlier:
        before = known.draw(earlier, batch, like.dtype, seed + 1)
        _, state = layer(**{n: x.to(like.device) for n, x in before.items()}, return_state=True)
    return inputs | known.tensors(state)


def _like(layer: nn.Module) -> Tensor:
    """A tensor of the dtype and on the device of inputs."""
    kept = getattr(layer, "float32_parameters", ())
    tensors = dict((*layer.named_buffers(), *layer.named_parameters()))
    plain = [x for name, x in tensors.items() if name not in kept]
    return plain[-1] if plain else torch.empty(0)
