"""A mixer's module as it starts, drawn by NumPy: for eigenvalues where PyTorch is not to be had.

The values have the distributions that the module draws from. The generator is another one, so the
numbers are not those of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from dsfc.backends.torch.parameters import initialiser, stored_axes
from numpy.typing import NDArray
from spectrum import SIZE, WIDTH, Start

from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import rewrite
from dsfc.expr.declarations import MapTensor, Tensor
from dsfc.expr.distributions import distribution
from dsfc.expr.evaluate import NamedArray, canonical, dtype_of, evaluate
from dsfc.expr.tree import Axis, Draw, Expr
from dsfc.mixer.axes import sizes
from dsfc.mixer.ir import Mixer
from dsfc.mixer.rules.initial_values import SizeScope
from dsfc.mixer.sample import small_sizes

Generator = np.random.Generator
Array = NDArray[np.float64]
Shape = tuple[int, ...]


def start(it: Compilation, tokens: int) -> Start:
    """Returns a mixer's module as it starts, with standard normal tokens.

    Args:
        it: the mixer.
        tokens: L.
    """
    known = dict(_sizes(it.mixer))
    for d in it.system.axes:
        known.setdefault(d.axis.name, known[d.axis.copy_of or d.axis.name])
    draws = np.random.default_rng(0)
    inputs = {
        t.name: draws.standard_normal((tokens, *(known[a.name] for a in t.axes)))
        for t in it.system.inputs
    }
    stored = (*it.system.params, *it.system.buffers)
    return Start(known, inputs, {t.name: _drawn(t, known, draws) for t in stored})


def _sizes(mixer: Mixer) -> Mapping[str, int]:
    """Sizes of all axes: as on the pages of the mixers, or the first others that fit together."""
    free = [d.axis.name for d in mixer.axes if d.size is None]
    for chosen in _choices(free):
        try:
            return sizes(mixer, chosen)
        except DiagnosticError:
            continue
    return small_sizes(mixer)


def _choices(free: list[str]) -> Iterator[dict[str, int]]:
    yield {a: WIDTH if a == "d" else SIZE for a in free}
    yield dict.fromkeys(free, SIZE)


def _drawn(tensor: Tensor | MapTensor, known: Mapping[str, int], draws: Generator) -> Array:
    """The array of a parameter or buffer, as it is stored."""
    axes = tuple(_distinct(stored_axes(tensor)))
    again = frozenset(a for a in axes if a.copy_of)
    scope, order = _Drawing(known, draws), canonical(axes)
    init = rewrite(initialiser(tensor).value, lambda node: _over(node, again))
    value = evaluate(init, scope).expand(order, scope.size).data
    field = tensor.map.field if isinstance(tensor, MapTensor) else tensor.field
    out: Array = np.transpose(value, [order.index(a) for a in axes]).astype(dtype_of(field))
    return out


def _distinct(axes: tuple[Axis, ...]) -> Iterator[Axis]:
    """Axes of which a map may have one twice, each with a name of its own."""
    for k, axis in enumerate(axes):
        twice = axis in axes[:k]
        yield Axis(axis.index, f"{axis.name} {k}", copy_of=axis.name) if twice else axis


def _over(node: Expr, more: frozenset[Axis]) -> Expr | None:
    """A draw that fills these axes too."""
    if not isinstance(node, Draw) or distribution(node.distribution).sequence is not None:
        return None
    return Draw(node.distribution, node.args, node.over | more, node.number)


@dataclass(frozen=True, slots=True)
class _Drawing(SizeScope):
    """The leaves of an initialiser: sizes, and draws that fill an array.

    Attributes:
        known: sizes by name.
        draws: the generator.
    """

    draws: Generator

    def size(self, axis: Axis) -> int:
        """Size of an axis."""
        return self.known[axis.name if axis.name in self.known else axis.copy_of or axis.name]

    def node(self, expr: Expr) -> NamedArray:
        """Draws, or gives the values of a sequence."""
        if not isinstance(expr, Draw) or distribution(expr.distribution).sequence is not None:
            return SizeScope.node(self, expr)
        order = canonical(expr.over)
        shape = tuple(self.size(a) for a in order)
        numbers = (float(evaluate(a, self).data) for a in expr.args)
        return NamedArray(order, _DRAWS[expr.distribution](self.draws, shape, *numbers))


def _rows(draws: Generator, shape: Shape, scale: float) -> Array:
    """Rows orthogonal as far as there is room, with the lengths of Gaussian vectors."""
    *lead, rows, width = shape
    square = draws.standard_normal((*lead, max(rows, width), max(rows, width)))
    basis = np.linalg.qr(square)[0][..., :rows, :width]
    lengths = np.linalg.norm(draws.standard_normal(shape), axis=-1, keepdims=True)
    out: Array = scale * basis * lengths
    return out


_DRAWS: Mapping[str, Callable[..., Array]] = {
    "uniform": lambda draws, shape, low, high: draws.uniform(low, high, shape),
    "normal": lambda draws, shape, mean, deviation: draws.normal(mean, deviation, shape),
    "log_uniform": lambda draws, shape, low, high: np.exp(
        draws.uniform(np.log(low), np.log(high), shape)
    ),
    "orthogonal_chi": _rows,
}
"""Distribution → how it fills an array of a shape; the sequences are no distributions."""
