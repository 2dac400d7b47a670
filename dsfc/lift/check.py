"""Runs a lifted spec beside the module that it was lifted from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dsfc.expr.declarations import MapTensor
from dsfc.lift.axes import Axis, Batch, Layout, Time, resolved
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import Param
from dsfc.lift.spec import Written
from dsfc.lift.trace import Trace, double_precision
from dsfc.system.ir import System

LENGTHS = (1, 2, 3, 6, 17)
"""Numbers of tokens that both are run on; none is that of the trace."""

CLOSE = 1e-10
"""Largest difference in float64, as a share of the largest entry."""

_BATCH = 2
_MOVED = 0.1
"""How far parameters are moved from where the module starts them: zeros would hide a part."""


@dataclass(frozen=True)
class Tested:
    """What running both showed; it is no proof.

    Attributes:
        lengths: numbers of tokens.
        values: largest relative difference of outputs.
        gradients: largest relative difference of gradients of inputs and parameters.
        unread: parameters of the module that the output does not depend on.
    """

    lengths: tuple[int, ...]
    values: float
    gradients: float
    unread: tuple[str, ...] = ()


class Disagrees(Exception):
    """The module and the spec are different functions; the text says where."""


def compare(
    trace: Trace,
    layouts: Mapping[str, Layout],
    output: Layout,
    written: Written,
    system: System,
    module: ModuleType,
    class_name: str,
) -> Tested:
    """Returns how far the module that a spec compiles to is from the module it was lifted from.

    Args:
        trace: the module.
        layouts: what the dimensions of each argument are.
        output: what those of the output are.
        written: the spec, with what its parameters are in the module.
        system: the system of the spec.
        module: what the spec compiles to.
        class_name: of the layer in it.

    Raises:
        Disagrees: they differ by more than rounding.
        CannotLift: the module does not run at some length.
    """
    with double_precision():
        return _Comparison(trace, layouts, output, written, system, module, class_name).run()


class _Comparison:
    def __init__(
        self,
        trace: Trace,
        layouts: Mapping[str, Layout],
        output: Layout,
        written: Written,
        system: System,
        module: ModuleType,
        class_name: str,
    ) -> None:
        self.trace, self.layouts, self.output = trace, layouts, output
        self.written, self.system = written, system
        self.names = {name: axis for axis, name in written.axes.items()}
        cls = getattr(module, class_name)
        taken = inspect.signature(cls).parameters
        sizes = {n: a.size for n, a in self.names.items() if n in taken}
        self.layer = cls(**sizes, dtype=torch.float64)

    def run(self) -> Tested:
        torch.manual_seed(0)
        own = {n: p.detach() for n, p in self.trace.module.named_parameters()}
        params = {n: (p + _MOVED * torch.randn_like(p)).requires_grad_() for n, p in own.items()}
        values, gradients = 0.0, 0.0
        unread: set[str] = set()
        for length in LENGTHS:
            inputs = {n: self._drawn(n, length).requires_grad_() for n in self.trace.inputs}
            wanted = self._theirs(params, inputs, length)
            got = self._ours(params, inputs, length, wanted.shape)
            error = _relative(got, wanted)
            if not error <= CLOSE:
                raise Disagrees(
                    f"with {length} tokens the outputs differ by {error:.1e} of the largest entry"
                )
            values = max(values, error)
            weight = torch.randn_like(wanted)
            leaves = [*inputs.values(), *params.values()]
            names = [*inputs, *params]
            pulled = [torch.autograd.grad((v * weight).sum().real, leaves, allow_unused=True)
                      for v in (wanted, got)]  # fmt: skip
            scale = max((float(g.abs().max()) for g in pulled[0] if g is not None), default=1.0)
            for name, theirs, ours in zip(names, *pulled, strict=True):
                if theirs is None and ours is None:
                    unread.add(name)
                    continue
                zero = torch.zeros(())
                a, b = (zero if g is None else g for g in (theirs, ours))
                error = float((a - b).abs().max()) / max(scale, 1e-300)
                if not error <= CLOSE:
                    raise Disagrees(
                        f"with {length} tokens the gradients of {name} differ by {error:.1e} "
                        "of the largest entry"
                    )
                gradients = max(gradients, error)
        return Tested(LENGTHS, values, gradients, tuple(sorted(unread)))

    def _drawn(self, name: str, length: int) -> Tensor:
        special = {-1: _BATCH, -2: length}
        return torch.randn([special.get(s, s) for s in self.trace.inputs[name]])

    def _theirs(
        self, params: Mapping[str, Tensor], inputs: Mapping[str, Tensor], length: int
    ) -> Tensor:
        try:
            out = torch.func.functional_call(self.trace.module, dict(params), (), dict(inputs))
        except Exception as e:
            problem = f"the module does not run on {length} tokens: {type(e).__name__}: {e}"
            raise CannotLift(problem) from e
        for tensor in _tensors(out):
            if _shape(self.output, length) == tuple(tensor.shape):
                return tensor
        raise CannotLift(f"no output of the module has the shape of the trace with {length} tokens")

    def _ours(
        self,
        params: Mapping[str, Tensor],
        inputs: Mapping[str, Tensor],
        length: int,
        shape: Sequence[int],
    ) -> Tensor:
        asked = {n: self._given(p, params) for n, p in self.written.params.items()}
        state = {}
        for tensor in (*self.system.params, *self.system.buffers):
            value = self._ordered(tensor, asked[tensor.name])
            if value.is_complex():
                state[f"parts_{tensor.name}"] = torch.view_as_real(value)
            else:
                state[tensor.name] = value
        known = {*dict(self.layer.named_parameters()), *dict(self.layer.named_buffers())}
        reserved = {n: n if n in known else f"{n}_" for n in state}
        args = [
            self._streamed(self.written.inputs[t.name], t.axes, inputs) for t in self.system.inputs
        ]
        named = {reserved[n]: v for n, v in state.items()}
        y: Any = torch.func.functional_call(self.layer, named, tuple(args))
        return self._arranged(y, length, shape)

    def _given(self, param: Param, params: Mapping[str, Tensor]) -> Tensor:
        """The array of the module that a parameter of the spec is, one dimension per axis."""
        known: dict[str, Tensor] = {**dict(self.trace.module.named_buffers()), **params}
        value = known[param.path]
        for at, first, count in param.cuts:
            value = value.narrow(at, first, count)
        for at in param.flipped:
            value = value.flip(at)
        sizes = [a.size for dim in param.dims for f in dim for a in resolved((f,))]
        return value.reshape(sizes)

    def _ordered(self, tensor: Any, value: Tensor) -> Tensor:
        """A parameter with its axes as the emitted module stores them."""
        if isinstance(tensor, MapTensor):
            wanted = [
                a.name for g in (tensor.map.each, tensor.map.target, tensor.map.source) for a in g
            ]
            parts = [len(tensor.map.each), len(tensor.map.target), len(tensor.map.source)]
        else:
            wanted = [a.name for a in tensor.axes]
            parts = [0, len(wanted), 0]
        param = self.written.params[tensor.name]
        own = [self.written.axes[a] for d in param.dims for f in d for a in _axes(f)]
        if len(set(own)) == len(own):
            return value.permute([own.index(n) for n in wanted]) if wanted else value
        return self._square(own, wanted, parts, value)

    def _square(self, own: list[str], wanted: list[str], parts: list[int], value: Tensor) -> Tensor:
        """A map whose sources and targets share axes: the dimensions of each stay together."""
        where: list[int] = []
        target = self._targets_first(own, wanted, parts)
        for name, among in target:
            places = [k for k, n in enumerate(own) if n == name and k not in where]
            where.append(places[0] if among == "target" else places[-1])
        return value.permute(where)

    @staticmethod
    def _targets_first(
        own: list[str], wanted: list[str], parts: list[int]
    ) -> list[tuple[str, str]]:
        kinds = ["target"] * (parts[0] + parts[1]) + ["source"] * parts[2]
        return list(zip(wanted, kinds, strict=True))

    def _streamed(self, name: str, axes: Sequence[Any], inputs: Mapping[str, Tensor]) -> Tensor:
        """An argument of the module as the spec takes it: batch, tokens, axes in their order."""
        layout = self.layouts[name]
        value = inputs[name]
        factors = [f for e in layout for f in resolved(e)]
        length = next(
            value.shape[k] for k, e in enumerate(layout) if any(isinstance(f, Time) for f in e)
        )
        value = value.reshape([self._size(f, length) for f in factors])
        places = [_place(factors, Batch), _place(factors, Time)]
        places += [factors.index(self.names[a.name]) for a in axes]
        if places[0] is None:
            value = value.unsqueeze(0)
            places = [0, *(p + 1 for p in places[1:] if p is not None)]
        return value.permute([p for p in places if p is not None])

    def _arranged(self, y: Tensor, length: int, shape: Sequence[int]) -> Tensor:
        """The output of the spec with the dimensions of the module's."""
        factors = [f for e in self.output for f in resolved(e)]
        canonical = [self.names[a.name] for a in _output_axes(self.system)]
        have: list[Any] = [Batch, Time, *canonical]
        order = []
        for f in factors:
            key = type(f) if isinstance(f, Batch | Time) else f
            order.append(have.index(key))
        if not any(isinstance(f, Batch) for f in factors):
            y, order = y[0], [k - 1 for k in order]
        return y.permute(order).reshape(tuple(shape))

    @staticmethod
    def _size(factor: Any, length: int) -> int:
        if isinstance(factor, Batch):
            return _BATCH
        return length if isinstance(factor, Time) else int(factor.size)


def _axes(factor: Axis) -> list[Axis]:
    return [f for f in resolved((factor,)) if isinstance(f, Axis)]


def _place(factors: Sequence[Any], kind: type) -> Any:
    return next((k for k, f in enumerate(factors) if isinstance(f, kind)), None)


def _shape(layout: Layout, length: int) -> tuple[int, ...]:
    out = []
    for entry in layout:
        size = 1
        for f in resolved(entry):
            size *= _Comparison._size(f, length)
        out.append(size)
    return tuple(out)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [t for v in value for t in _tensors(v)]
    return []


def _relative(a: Tensor, b: Tensor) -> float:
    difference = float((a - b).detach().abs().max())
    return difference / max(float(b.detach().abs().max()), 1e-300)


def _output_axes(system: System) -> Sequence[Any]:
    """The axes of the output, in canonical order."""
    return system.outputs[0].axes
