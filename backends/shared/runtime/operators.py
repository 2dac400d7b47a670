"""Operators of torch: their registration, their gradients, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .numbers import _autocast
from .sequences import _EACH

_Tensors = tuple[Tensor, ...]
_FLOPS: dict[Any, Callable[..., int]] = {}


def register_flops() -> None:
    """Tells `torch.utils.flop_counter` what the operators cost; call this before you count."""
    from torch.utils.flop_counter import flop_registry, register_flop_formula

    for op, formula in _FLOPS.items():
        if op not in flop_registry:
            register_flop_formula(op)(formula)


def _register(
    namespace: str,
    name: str,
    impl: Callable[..., Any],
    fake: Callable[..., Any],
    flops: Callable[..., int],
) -> None:
    """Registers an operator once a process; another module may have registered it already.

    Args:
        namespace: of the module's operators.
        name: of the operator.
        impl: what the operator computes; its annotations are the operator's signature.
        fake: gives empty results of the same shapes and dtypes.
        flops: counts operations, from shapes.
    """
    ops = getattr(torch.ops, namespace)
    if getattr(ops, name, None) is None:
        qualname = f"{namespace}::{name}"
        schema = torch.library.infer_schema(impl, mutates_args=())
        torch.library.define(qualname, schema, tags=(torch.Tag.pt2_compliant_tag,))
        torch.library.impl(qualname, "default", _shielded(impl))
        torch.library.register_fake(qualname, fake)
        op: Any = getattr(ops, name)
        single = len(op.default._schema.returns) == 1
        torch.library.register_vmap(qualname, (_fold_single if single else _fold)(op))
    _FLOPS[getattr(ops, name)] = flops


def _shielded(impl: Callable[..., Any]) -> Callable[..., Any]:
    """Runs an operator without gradients and autocast, which take longer to end than to ask for."""

    def run(*args: Any) -> Any:
        device = args[0].device.type
        if torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):
                return run(*args)
        if not torch.is_grad_enabled():
            return impl(*args)
        torch.set_grad_enabled(False)  # a third of what `no_grad` costs
        try:
            return impl(*args)
        finally:
            torch.set_grad_enabled(True)

    return run


def _alike(outputs: Iterable[int]) -> Callable[..., _Tensors]:
    """Gives empty results that are shaped like some of the arguments."""
    places = tuple(outputs)
    return lambda *x: tuple(x[i].new_empty(x[i].shape) for i in places)


def _fold(op: Callable[..., Any]) -> Callable[..., Any]:
    """The vmap rule of an operator: the mapped axis joins the batch."""

    def rule(info: Any, in_dims: Any, *args: Any) -> tuple[_Tensors, tuple[int, ...]]:
        size = info.batch_size
        args = tuple(
            (x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)).flatten(0, 1)
            if isinstance(x, Tensor)
            else x
            for x, dim in zip(args, in_dims, strict=True)
        )
        outs = tuple(x.unflatten(0, (size, x.shape[0] // size)) for x in op(*args))
        return outs, (0,) * len(outs)

    return rule


def _fold_single(op: Callable[..., Any]) -> Callable[..., Any]:
    """As `_fold`, of an operator that has one result, which is no tuple."""
    folded = _fold(lambda *args: (op(*args),))

    def rule(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
        (out,), (dim,) = folded(info, in_dims, *args)
        return out, dim

    return rule


def _own(tensors: _Tensors) -> _Tensors:
    """The outputs of an operator are contiguous, and never its inputs."""
    *outs, state = tensors
    return *(x.contiguous() for x in outs), state.clone(memory_format=torch.contiguous_format)


def _alone(tensors: Iterable[Tensor]) -> _Tensors:
    """As `_own`, where any of the outputs may be an input, and complex ones marked conjugate."""
    return tuple(x.resolve_conj().clone(memory_format=torch.contiguous_format) for x in tensors)


def _applied(function: Any) -> Callable[..., Any]:
    """Applies an autograd function, which says outside of torch.compile that it has no `jvp`.

    torch.compile refuses any `jvp`.
    """

    class Eager(function):  # type: ignore[misc]  # a class that is known at run time
        @staticmethod
        def jvp(ctx: Any, *tangents: Tensor) -> None:
            raise NotImplementedError(
                "no forward mode (jvp, jacfwd, hessian): use jacrev(jacrev(f))"
            )

    def apply(*args: Any) -> Any:
        return (function if torch.compiler.is_compiling() else Eager).apply(*args)

    return apply


@dataclass(frozen=True)
class _Kind:
    """The operators and the loop that the autograd functions of one recurrence run.

    Attributes:
        run: the operator, of tensors and options; the first two options are mode and chunk.
        pull: the operator of the gradients, of tensors, cotangents and options.
        loop: the plain loop over time, whose derivative is the gradient of `pull`.
        options: how many arguments are no tensors.
    """

    run: Callable[..., Any]
    pull: Callable[..., Any]
    loop: Callable[..., Any]
    options: int


# By number: torch.compile finds the autograd functions of a module, but none inside of a function.
_KINDS: list[_Kind] = []


class _ScanAdjoint(torch.autograd.Function):
    """The gradient of `_Scan`; its own differentiates the plain loop over time."""

    generate_vmap_rule = True

    @staticmethod
    def forward(kind: int, *args: Any) -> Any:
        return _KINDS[kind].pull(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.kind = inputs[0]
        ctx.save_for_backward(*inputs[1 : -_KINDS[ctx.kind].options])

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        kind = _KINDS[ctx.kind]

        def gradient(*tensors: Tensor) -> tuple[Tensor, ...]:
            *inputs, do, dS = tensors
            back: Any = torch.func.vjp(kind.loop, *inputs)[1]
            grads: _Tensors = back((do, dS))
            return grads

        back: Any = torch.func.vjp(gradient, *ctx.saved_tensors)[1]
        return None, *back(cotangents), *(None,) * kind.options


class _Scan(torch.autograd.Function):
    """A recurrence; its gradient is an operator as well."""

    generate_vmap_rule = True

    @staticmethod
    def forward(kind: int, *args: Any) -> Any:
        return _KINDS[kind].run(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.kind = inputs[0]
        options = _KINDS[ctx.kind].options
        ctx.options = inputs[-options:]
        ctx.save_for_backward(*inputs[1:-options])

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        args = *ctx.saved_tensors, *cotangents, *ctx.options
        # Compiled gradients have no gradients; PyTorch leaves `apply` untyped.
        if torch.compiler.is_compiling():
            grads = _KINDS[ctx.kind].pull(*args)
        else:
            grads = _ScanAdjoint.apply(ctx.kind, *args)  # type: ignore[no-untyped-call]
        return None, *grads, *(None,) * len(ctx.options)


def _differentiable(tensors: _Tensors) -> bool:
    """Whether a gradient of a tensor may be asked for."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


_IN_PLACE = "recurrent in place"
_STEP_MODES = ("auto", "auto without fft", "recurrent")
"""Modes in which an operator may run one token in a kernel."""


def _is_plain(x: Tensor) -> bool:
    """Whether a call computes at once: nothing traces, transforms or watches operators."""
    return (
        type(x) is Tensor
        and not torch.compiler.is_compiling()
        and not torch._functorch.pyfunctorch.retrieve_all_functorch_interpreters()
        and not torch.utils._python_dispatch.is_in_torch_dispatch_mode()
    )


def _recurring(
    run: Callable[..., Any],
    pull: Callable[..., Any],
    loop: Callable[..., Any],
    options: int,
    timed: tuple[int, ...],
    step: Callable[..., _Tensors | None] | None = None,
    steps: Callable[..., _Tensors | None] | None = None,
) -> Callable[..., Any]:
    """Returns a recurrence as a function of tensors and options, with gradients of any order.

    One token of the mode `recurrent` runs a kernel of single tokens, where there is one and no
    gradient is asked for, or the loop itself, without an operator.

    Args:
        run: as in `_Kind`.
        pull: as in `_Kind`.
        loop: as in `_Kind`.
        options: as in `_Kind`.
        timed: numbers of the arguments `[B, L, ...]`, that of the value first.
        step: starts the kernel of one token, of tensors and whether the state after it may lie
            where the one before did; it returns nothing if no kernel runs.
        steps: starts the kernel of some tokens that gives the state after each; likewise.
    """
    apply, kind = _applied(_Scan), len(_KINDS)
    _KINDS.append(_Kind(run, pull, loop, options))

    def recurrence(*args: Any) -> Any:
        tokens, mode = args[timed[0]], args[-options]
        if mode == _EACH:
            rest = "recurrent", *args[1 - options :]
            return _states_of_each(steps, lambda *x: recurrence(*x, *rest), args[:-options], timed)
        in_place = mode == _IN_PLACE
        if in_place:
            args = *args[:-options], "recurrent", *args[1 - options :]
        if args[-options] == "recurrent" and tokens.shape[1] == 1 and not _autocast(tokens):
            tensors = args[:-options]
            if step is not None and not _differentiable(tensors):
                if not _is_plain(tokens):
                    return run(*args)
                outs = step(*tensors, in_place)
                if outs is not None:
                    return outs
            return loop(*tensors)
        if torch.compiler.is_compiling() and not _differentiable(args[:-options]):
            return run(*args)
        return apply(kind, *args)

    return recurrence


def _states_of_each(
    steps: Callable[..., _Tensors | None] | None,
    run: Callable[..., _Tensors],
    tensors: _Tensors,
    timed: tuple[int, ...],
) -> _Tensors:
    """Returns the outputs of all tokens and the states after each, `[L · B, ...]`.

    Args:
        steps: starts the kernel that gives them; it returns nothing if none runs.
        run: of tensors of one token, the last of which is the state, as is that of what it gives.
        tensors: of all tokens.
        timed: numbers of those `[B, L, ...]`.
    """
    known = tensors[timed[0]]
    if steps is not None and not (_differentiable(tensors) or _autocast(known)):
        outs = steps(*tensors) if _is_plain(known) else None
        if outs is not None:
            return outs
    *inputs, state = tensors
    rows, states = [], []
    for i in range(inputs[timed[0]].shape[1]):
        here = (x[:, i : i + 1] if at in timed else x for at, x in enumerate(inputs))
        *seen, state = run(*here, state)
        rows.append(seen)
        states.append(state)
    return *(torch.cat(x, 1) for x in zip(*rows, strict=True)), torch.cat(states)


def _giving_each(
    run: Callable[..., Any], steps: Callable[..., _Tensors | None]
) -> Callable[..., Any]:
    """Returns a recurrence that also has the mode which gives the state after each token.

    Args:
        run: of tensors `[B, L, ...]`, a state, lengths, mode and chunk.
        steps: of the tensors and the state, starts the kernel of some tokens that gives the state
            after each; it returns nothing if no kernel runs.
    """

    def recurrence(*args: Any) -> Any:
        *tensors, lengths, mode, chunk = args
        if mode != _EACH:
            return run(*args)
        timed, rest = tuple(range(len(tensors) - 1)), (lengths, "recurrent", chunk)
        return _states_of_each(steps, lambda *x: run(*x, *rest), tuple(tensors), timed)

    return recurrence
