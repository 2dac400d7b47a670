"""The recurrence of a scan, token by token: what a kernel is proved to compute.

    f_i = λ_i h_{i-1} + left_i (Σ_keys right_i h_{i-1})
    h_i = f_i + key_i (value_i + strength_i Σ_keys key_i f_i)
    y_i = Σ_keys read_i h_i

λ is 1 where the scan has no decay, key and read are 1 where it has no keys, and a term is 0 whose
factors it lacks. Entries are whatever `Numbers` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.build import walk
from dsfc.expr.evaluate import NamedArray, canonical, evaluate
from dsfc.expr.table import row
from dsfc.expr.tree import Axis, Expr, LinearMap, Now, Ref
from dsfc.kernel_ir.interpret import value_of
from dsfc.kernel_ir.ir import Access, Argument, Kernel, Symbol
from dsfc.kernel_ir.numbers import Numbers
from dsfc.kernel_proofs.exact import Undecided, symbols
from dsfc.plan.scan_ir import Scan

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The recurrence of one scan, of arguments as a kernel has them.

    Attributes:
        scan: what is computed.
        labels: argument → names of the sizes of its dimensions.
        rows: name of the size of the batch.
        time: name of the size of the sequence.
        leaves: leaf of log λ → its argument.
        inputs: arguments of the recurrence.
    """

    scan: Scan
    labels: Mapping[str, tuple[str, ...]]
    rows: str
    time: str
    leaves: Mapping[str, str]
    inputs: tuple[str, ...]

    def run(
        self, arguments: Mapping[str, Array], length: int, numbers: Numbers
    ) -> dict[str, Array]:
        """Returns outputs and last states, as `o` and `S_last`.

        Args:
            arguments: what the kernel reads, by name.
            length: tokens.
            numbers: what the entries are.
        """
        batch = range(len(arguments["S"]))
        rows = [_Row(self, arguments, b, numbers).run(length) for b in batch]
        return {
            "o": np.stack([np.stack(out) for out, _ in rows]) if length else np.zeros((0,)),
            "S_last": np.stack([last for _, last in rows]),
        }


class _Row:
    """The recurrence of one row of the batch; tiles have the dimensions of the state."""

    def __init__(
        self, of: Recurrence, arguments: Mapping[str, Array], row: int, numbers: Numbers
    ) -> None:
        self._of, self._arguments, self._row, self._numbers = of, arguments, row, numbers
        self._tile = tuple(n for n in of.labels["S"] if n != of.rows)
        kept = {n for n in of.labels["o"] if n not in (of.rows, of.time)}
        self._keys = tuple(k for k, n in enumerate(self._tile) if n not in kept)
        order = [n for n in self._tile if n in kept]
        self._order = [order.index(n) for n in of.labels["o"] if n in kept]

    def run(self, length: int) -> tuple[list[Array], Array]:
        """Returns the outputs of all tokens, and the last state."""
        state, outputs = self._array("S", 0)[1], []
        for i in range(length):
            state = self._after(state, i)
            look = self._summed(state if self._of.scan.read is None else self._at("q", i) * state)
            outputs.append(look.transpose(self._order))
        return outputs, state

    def _after(self, h: Array, i: int) -> Array:
        scan = self._of.scan
        f = h if scan.decay is None else self._decay(scan.decay.expr, i) * h
        if scan.low_rank is not None:
            retrieved = self._numbers.solved(self._summed(self._at("b", i) * h))
            f = f + self._at("a", i) * self._spread(retrieved)
        drive = self._at("v", i)
        key = None if scan.key is None else self._at("k", i)
        if scan.delta is not None:
            assert key is not None
            retrieved = self._at("r", i) * self._spread(self._summed(key * f))
            drive = drive + self._numbers.solved(retrieved)
        return f + (drive if key is None else key * drive)

    def _decay(self, log: Expr, i: int) -> Array:
        if any(isinstance(e, Ref) and e.at not in (None, Now(0)) for e in walk(log)):
            raise Undecided("its decay reads other tokens")
        if isinstance(log, Ref):
            value = self._at(self._of.leaves[log.name], i)
        else:
            leaves = {n: self._array(a, i) for n, a in self._of.leaves.items()}
            known = evaluate(log, _Leaves(self._of.scan, leaves), algebra=self._numbers)
            value = self._tiled((tuple(map(label_of, known.axes)), known.data))
        return self._numbers.apply(row("exp"), (value,), None)

    def _summed(self, x: Array) -> Array:
        """Σ_keys, without the dimensions of keys."""
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self._array("S", 0)[1].shape))
        return np.asarray(x.sum(axis=self._keys)) if self._keys else x

    def _spread(self, x: Array) -> Array:
        """What lacks the dimensions of keys, with those of size 1."""
        return np.expand_dims(x, self._keys)

    def _array(self, name: str, i: int) -> tuple[tuple[str, ...], Array]:
        """An argument at a token of the row, and its dimensions."""
        labels, data = self._of.labels[name], self._arguments[name]
        place = tuple(
            self._row if n == self._of.rows else i if n == self._of.time else slice(None)
            for n in labels
        )
        rest = tuple(n for n in labels if n not in (self._of.rows, self._of.time))
        return rest, np.asarray(data[place], data.dtype)

    def _at(self, name: str, i: int) -> Array:
        return self._tiled(self._array(name, i))

    def _tiled(self, value: tuple[tuple[str, ...], Array]) -> Array:
        labels, data = value
        if not set(labels) <= set(self._tile):
            raise Undecided("an argument has dimensions that the state lacks")
        order = [labels.index(n) for n in self._tile if n in labels]
        spread = tuple(slice(None) if n in labels else None for n in self._tile)
        return data.transpose(order)[spread]


class _Leaves:
    """Values of the leaves of log λ at a token, for the evaluator of expressions."""

    def __init__(self, scan: Scan, leaves: Mapping[str, tuple[tuple[str, ...], Array]]) -> None:
        self._leaves = leaves
        self._axes = {label_of(a): a for a in (*scan.heads, *scan.keys, *scan.channels)}

    def size(self, axis: Axis) -> int:
        """Raises: a log decay is a formula of leaves."""
        raise Undecided(f"its decay reads the size of {axis.name}")

    def ref(self, ref: Ref) -> NamedArray:
        """Returns a leaf."""
        labels, data = self._leaves[ref.name]
        axes = tuple(self._axes[n] for n in labels)
        order = [axes.index(a) for a in canonical(axes)]
        return NamedArray(canonical(axes), data.transpose(order))

    def param(self, name: str) -> NamedArray:
        """Raises: a log decay reads leaves alone."""
        raise Undecided(f"its decay reads {name}")

    def matrix(self, map: LinearMap) -> Array:
        """Raises: a log decay reads leaves alone."""
        raise Undecided(f"its decay multiplies with {map.name}")

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        """Raises: a log decay reads leaves alone."""
        raise Undecided(f"its decay applies {name}")

    def node(self, expr: Expr) -> NamedArray:
        """Raises: a log decay reads leaves alone."""
        raise Undecided(f"its decay has a {type(expr).__name__}")


def label_of(axis: Axis) -> str:
    """Returns the name of an axis's size in kernels that go token by token."""
    return f"SIZE_{axis.name}"


def labels_of(arguments: Iterable[Argument]) -> dict[str, tuple[str, ...]]:
    """Returns the names of the sizes of the dimensions of arguments.

    Raises:
        Undecided: a size is computed.
    """
    out = {}
    for a in arguments:
        names = tuple(s.name for s in a.shape if isinstance(s, Symbol))
        if len(names) < len(a.shape):
            raise Undecided(f"a size of {a.name} is computed")
        out[a.name] = names
    return out


def symbolic_arguments(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Returns symbols for all that a kernel reads.

    Args:
        kernel: the kernel.
        sizes: static and dynamic sizes.
    """
    return {
        a.name: symbols(a.name, tuple(value_of(s, sizes) for s in a.shape))
        for a in kernel.arguments
        if a.access is Access.READ
    }
