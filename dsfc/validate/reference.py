"""A published layer run beside an emitted module, in float64 throughout.

Published programs turn to float32 here and there, for kernels that know nothing wider. Under
`_InFloat64` such a turn is one to float64, so that what remains between two right layers is the
rounding of float64. The kernels themselves stay away: they want a GPU, and round.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dsfc.layouts.ir import Reference
from dsfc.validate.weights import Unfit, Weights

_KERNELS = ("causal_conv1d", "fla", "mamba_ssm")
"""Packages of kernels that published programs call where they are installed."""


class AbsentError(Exception):
    """A published layer cannot be imported here; the text says why, as a clause."""


@dataclass(frozen=True)
class Running:
    """A published layer with weights, from `[B, L, d]` to `[B, L, d]`.

    Attributes:
        name: of its class.
        package: and its version.
        layer: the layer, in float64.
        call: arguments of the call behind the input.
        positions: the argument that takes the numbers of the tokens, if any.
    """

    name: str
    package: str
    layer: nn.Module
    call: Mapping[str, Any]
    positions: str | None

    def __call__(self, u: Tensor) -> Tensor:
        """Returns y `[B, L, d]`.

        Args:
            u: `[B, L, d]`, in float64.

        Raises:
            Unfit: the layer does not run, or gives something else.
        """
        call = dict(self.call)
        if self.positions is not None:
            call[self.positions] = torch.arange(u.shape[1]).expand(u.shape[:2])
        try:
            with _InFloat64():
                result = self.layer(u, **call)
        except Exception as e:  # whatever another program raises
            raise Unfit(f"{self.name} does not run: {_line(e)}") from None
        y = result[0] if isinstance(result, tuple) else result
        if not isinstance(y, Tensor) or y.shape != u.shape:
            raise Unfit(f"{self.name} gives no `[B, L, d]` of `[B, L, d]`")
        return y


def running(reference: Reference, sizes: Mapping[str, int], weights: Weights) -> Running:
    """Returns a published layer that holds weights. Importing it runs its program.

    Args:
        reference: which.
        sizes: by name.
        weights: all its tensors, by name.

    Raises:
        AbsentError: it cannot be imported.
        Unfit: it cannot be made with these settings, or does not take the weights.
    """
    cls = _imported(*reference.of)
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise Unfit(f"{reference.of[1]} of {reference.of[0]} is no class of layers")
    values = {name: dim.value(sizes) for name, dim in reference.sizes.items()}
    settings = {**values, **reference.settings}
    try:
        with torch.random.fork_rng(devices=[]):
            if reference.config is None:
                layer = cls(**settings, **reference.arguments)
            else:
                layer = cls(_imported(*reference.config)(**settings), **reference.arguments)
        layer = layer.to(torch.float64).eval()
        layer.load_state_dict({name: value.double() for name, value in weights.items()})
    except AbsentError:
        raise
    except Exception as e:  # whatever another program raises
        raise Unfit(f"{reference.of[1]} is not made with these weights: {_line(e)}") from None
    return Running(reference.of[1], _package(reference.of[0]), layer,
                   _call(layer.forward, reference), reference.positions)  # fmt: skip


def _call(forward: Callable[..., Any], reference: Reference) -> dict[str, Any]:
    """Arguments of the call: those named, and None for others without a default."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    needed = [p.name for p in parameters if p.default is p.empty
              and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]  # fmt: skip
    return {**dict.fromkeys(needed), **reference.call}


def _imported(module: str, name: str) -> Any:  # noqa: ANN401 - a class of another program
    try:
        with without_kernels(module):
            return getattr(importlib.import_module(module), name)
    except ImportError as e:
        raise AbsentError(f"{module} cannot be imported: {_line(e)}") from None
    except AttributeError:
        raise AbsentError(f"{module} has no {name}") from None


@contextmanager
def without_kernels(module: str) -> Iterator[None]:
    """Makes an import of a module one that finds no package of kernels, even if it came before.

    Args:
        module: its dotted name. The package of the module is not hidden.
    """
    away = [name for name in _KERNELS if name != module.partition(".")[0]]
    aside = {name: sys.modules[name] for name in (module, *away) if name in sys.modules}
    sys.modules.pop(module, None)
    # An import of what is None fails, and the program falls back to its own torch code. That
    # `sys.modules` may hold None is documented by Python; its type does not say so.
    sys.modules.update(dict.fromkeys(away))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in away:
            sys.modules.pop(name, None)
        sys.modules.update(aside)


def _package(module: str) -> str:
    package = module.partition(".")[0]
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def _line(e: Exception) -> str:
    return (str(e).splitlines() or [type(e).__name__])[0]


class _InFloat64(TorchFunctionMode):
    """Makes float64 of every float32 that a program asks for."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - passed on
        if func is Tensor.float:
            func = Tensor.double
        wide = tuple(map(_wide, args))
        return func(*wide, **{name: _wide(value) for name, value in (kwargs or {}).items()})


def _wide(value: Any) -> Any:  # noqa: ANN401 - passed on
    return torch.float64 if value is torch.float32 else value
