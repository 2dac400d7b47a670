"""Prints the calls of operators that compute what is around a recurrence: a class for a form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from dsfc.expr.tree import Axis
from dsfc.fused.ir import halves
from dsfc.plan.ir import Role
from dsfc.plan.scan_ir import Column

from ..torch.calls import ScanCall
from ..torch.code import uncast
from ..torch.grouping import Size
from ..torch.layout import tuple_text, wrapped
from ..torch.skeletons import Skeleton
from .convolution import ConvolutionKernels
from .elementwise import ElementwiseKernels
from .matrix import MatrixKernels
from .phases import PhasedKernels
from .printed_scan import PrintedScan
from .selective import SelectiveKernels


def kernel_call(
    skeleton: Any,  # noqa: ANN401 - a Skeleton, or what stands for one
    names: Callable[[str], str],
    size: Size,
    like: str,
    fresh: Callable[[str], str],
) -> ScanCall:
    """Returns what prints the call of a scan; see `ScanCall`."""
    of = next((call for kernels, call in _CALLS if isinstance(skeleton, kernels)), ScanCall)
    skeleton = skeleton.plain if isinstance(skeleton, PrintedScan) else skeleton
    return of(skeleton, names, size, like, fresh)


class LengthsCall(ScanCall):
    """The call of an operator that is told how many tokens of each row count."""

    def _behind(self, state: str) -> list[str]:
        return ["lengths", *super()._behind(state)]


class GatedCall(LengthsCall):
    """The call of an operator that takes what its gates read."""

    def _tokens(
        self, names: tuple[str, ...], wide: frozenset[str], tile: tuple[Axis, ...]
    ) -> list[str]:
        """Leaves of the gates that vary over time, as `[B, L, *tile]`."""
        kinds = [(name, "wide" if name in wide else "dtype") for name in names]
        return [f"{self._expanded(name, tile)}.to({kind})" for name, kind in kinds]

    def _by_batch(self, name: str, tile: tuple[Axis, ...]) -> str:
        """A constant as `[B, *tile]`."""
        sizes = ", ".join([f"{self._like}.shape[0]", *map(self._size, tile)])
        return f"{self._along(name, tile)}.expand({sizes})"

    def _along(self, name: str, tile: tuple[Axis, ...]) -> str:
        """A constant with places for the axes that it lacks."""
        axes = self._arrays(name).axes
        assert self._arrays(name).role is Role.CONSTANT
        text = f"{self._ident(name)}.to(wide)"
        if axes and axes != tile:
            text += f"[{', '.join(':' if a in axes else 'None' for a in tile)}]"
        return text


class ElementwiseCall(GatedCall):
    """Of a scan without keys. Each plane of a complex state's output is bound by itself."""

    _s: ElementwiseKernels

    def _token_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        column, *_ = self._scan.columns
        tile, gates = self._tile(column), self._s.gates
        arguments = self._tokens(gates.tokens, self._s.wide, tile)
        arguments += [self._by_batch(name, tile) for name in gates.constants]
        state = self._states(before)
        return [*arguments, f"{state}.to({self._wide})"], state, None

    def _summary(self, tokens: str) -> tuple[str, list[str]]:
        return "_decayed", [self._log(tokens, 1)]

    def _log(self, tokens: str, at: int) -> str:
        """Log λ, as the torch form of the gates gives it at a place of its results."""
        return f"log=lambda: _gates{self._s.suffix}(*{tokens}, lengths)[0][{at}]"

    def _call(self, arguments: list[str], out: str, last: str) -> list[str]:
        if self._s.complex:
            out = ", ".join(self._ident(c.output) for c in self._scan.columns)
        return super()._call(arguments, out, last)

    def _outputs(self, out: str) -> list[str]:
        return [] if self._s.complex else super()._outputs(out)

    def _next(self, last: str, next_states: dict[str, str]) -> list[str]:
        if not self._s.complex:
            return super()._next(last, next_states)
        column, *_ = self._scan.columns
        next_states[column.state] = self._fresh(f"{self._ident(column.state)}_next")
        return [f"    {next_states[column.state]} = {last}"]

    def _shifted(self, out: str, state: str, read: str | None) -> list[str]:
        if not self._s.complex:
            return super()._shifted(out, state, read)
        lines = []
        for column, part in zip(self._scan.columns, ("real", "imag"), strict=True):
            name = self._ident(column.output)
            lines += super()._shifted(name, f"torch.{part}({state})", read)
        return lines


class ConvolutionCall(ElementwiseCall):
    """Of a convolution without keys: heads are one axis, and constants have no batch."""

    _s: ConvolutionKernels

    def _fixed_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        column, *_ = self._scan.columns
        tile, groups, gates = self._tile(column), (self._scan.heads, ()), self._s.gates
        arguments = []
        for name in gates.tokens:
            kind = "wide" if name in self._s.wide else "dtype"
            text = self._regrouped(self._expanded(name, tile), tile, groups[:1], lead=2)
            arguments.append(f"{text}.to({kind})")
        for name in gates.constants:
            text = self._regrouped(self._over(name, tile), tile, groups, lead=0)
            arguments.append(f"{text}.unsqueeze(0)")
        state = self._regrouped(self._ident(column.state), tile, groups, lead=1)
        return [*arguments, f"{state}.to({self._wide})"], state, None

    def _summary(self, tokens: str) -> tuple[str, list[str]]:
        return "_stopping", [self._log(tokens, 3), "lengths=lengths"]

    def _over(self, name: str, tile: tuple[Axis, ...]) -> str:
        """A constant as `[*tile]`."""
        text = self._along(name, tile)
        if self._arrays(name).axes == tile:
            return text
        return f"{text}.expand({', '.join(map(self._size, tile))})"

    def _call(self, arguments: list[str], out: str, last: str) -> list[str]:
        if self._s.complex:
            out = ", ".join(self._ident(c.output) for c in self._scan.columns)
        head = f"{out}, {last} = _recurrence{self._s.suffix}"
        return [wrapped(head, [*arguments, *self._behind(arguments[-1])], "", "    ")]

    def _outputs(self, out: str) -> list[str]:
        if not self._s.complex:
            return super()._outputs(out)
        heads = self._scan.heads
        names = [self._ident(c.output) for c in self._scan.columns]
        laid = [(x, self._ungrouped(x, heads, (heads,), lead=2)) for x in names]
        return [f"    {x} = {text}" for x, text in laid if text != x]

    def _next(self, last: str, next_states: dict[str, str]) -> list[str]:
        if self._s.complex:
            column, *_ = self._scan.columns
            groups = (self._scan.heads, ())
            last = self._ungrouped(last, self._tile(column), groups, lead=1)
        return super()._next(last, next_states)

    def _first(self, state: str, read: str | None) -> str:
        return f"{state}.mT"


class SelectiveCall(GatedCall):
    """Of a selective scan, which also gives the states that its gradient starts from."""

    _s: SelectiveKernels

    def _token_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        (query, *_), state, looked = super()._token_arguments(before)
        (column,) = self._scan.columns
        s, tile = self._s, self._side(column)
        tokens = self._vector(s.queries, uncast(query))
        tokens += self._vector(s.keys, self._keyed(self._scan.key or ""))
        tokens += self._tokens(s.gates.tokens, s.wide, tile)
        tokens += [f"{self._ident(x.name)}.to(wide)" for x in s.others if not x.constant]
        constants = [self._by_batch(name, tile) for name in s.gates.constants]
        constants += [self._by_batch(x.name, x.axes) for x in s.others if x.constant]
        state = f"{state}.to({self._wide})"
        return [*tokens, *constants, state], state, looked

    def _behind(self, state: str) -> list[str]:
        s, why = self._s, ""
        if s.complex:
            count = " * ".join(self._size(a) for a in s.scan.keys)
            why = f", _too_many({count}, {s.most_pairs})"
        lengths, *options = super()._behind(state)
        return [lengths, f"_room({state}, {self._like}.shape[1], dtype, mode{why})", *options]

    def _summary(self, tokens: str) -> tuple[str, list[str]]:
        """The operator, run on ones without keys, gives Λ̄: all log λ would take much memory."""
        first, count = len(self._s.queries), len(self._s.keys)
        keys = [str(at) for at in range(first, first + count)]
        return "_driven_by_none", [f"drive={tuple_text(keys)}"]

    @staticmethod
    def _vector(names: list[str], text: str) -> list[str]:
        """The planes of a key or query."""
        parts = [f"torch.real({text})", f"torch.imag({text})"] if len(names) == 2 else [text]
        return [f"{x}.to(dtype)" for x in parts]

    def _call(self, arguments: list[str], out: str, last: str) -> list[str]:
        return super()._call(arguments, out, f"{last}, _")

    def _shifted(self, out: str, state: str, read: str | None) -> list[str]:
        plain = ScanCall(self._s.plain, self._ident, self._size, self._like, self._fresh)
        return plain._shifted(out, state, read)


class MatrixCall(LengthsCall):
    """Of a matrix scan, whose operator also takes what its features read.

    The value and output of a column of one channel stand apart; of a running normaliser, nothing
    behind the scan reads the output.
    """

    _s: MatrixKernels

    def _kept(self, text: str) -> str:
        return text

    def _token_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        (q, k, v, *rest), state, looked = super()._token_arguments(before)
        names = self._s.features.numbers
        numbers = [f"{self._grouped(n, (self._scan.heads,))}.to(wide)" for n in names]
        w = [f"{self._alone()}.to(wide)"] if self._s.narrow else []
        return [q, k, v, *w, *numbers, *rest], state, looked

    def _summary(self, tokens: str) -> tuple[str, list[str]]:
        log = self._log(tokens)
        return "_decayed", [f"log=lambda: _kept({log}, counts)" if log else "log=None"]

    def _log(self, tokens: str) -> str:
        """Log λ of every token; empty for λ = 1."""
        return f"{tokens}[-1]" if self._s.decay else ""

    @property
    def _columns(self) -> tuple[Column, ...]:
        return self._scan.columns[:-1] if self._s.narrow else self._scan.columns

    @cached_property
    def _other(self) -> str:
        """Variable of the output of the column of one channel."""
        return "_" if self._s.running else self._fresh(f"{self._scan.name}_other")

    def _alone(self) -> str:
        """The value of that column, `[B, L, h, 1]`."""
        last = self._scan.columns[-1]
        if last.value is None:
            return self._ones()
        return self._grouped(last.value, (self._scan.heads, last.channels))

    def _call(self, arguments: list[str], out: str, last: str) -> list[str]:
        both = f"{out}, {self._other}" if self._s.narrow else out
        return super()._call(arguments, both, last)

    def _outputs(self, out: str) -> list[str]:
        lines = super()._outputs(out)
        if self._s.narrow and not self._s.running:
            last, heads = self._scan.columns[-1], self._scan.heads
            other = f"{self._other}.to(dtype)"
            text = self._ungrouped(other, tuple(sorted(heads)), (heads, ()), lead=2)
            lines.append(f"    {self._ident(last.output)} = {text}")
        return lines

    def _shifted(self, out: str, state: str, read: str | None) -> list[str]:
        if not self._s.narrow:
            return super()._shifted(out, state, read)
        first = self._fresh(f"{self._scan.name}_first")
        parts = (out, f"{first}[..., :-1]"), (self._other, f"{first}[..., -1:]")
        return [
            f"    {first} = {self._first(state, read)}",
            *(f"    {o} = torch.cat(({x}.to({o}.dtype), {o}), 1)[:, :-1]" for o, x in parts),
        ]


class PhasedCall(MatrixCall):
    """Of a complex matrix scan, with the planes of its value and output apart."""

    _s: PhasedKernels

    def _token_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        first, second = self._halves
        (q, k, v, *rest), state, looked = ScanCall._token_arguments(first, before)
        more = [f"{second._values(before)}.to(dtype)"] if self._s.values[1:] else []
        return [q, k, v, *more, *rest], state, looked

    def _log(self, tokens: str) -> str:
        return f"torch.complex(*{tokens}[-2:])"

    @property
    def _halves(self) -> tuple[PhasedCall, PhasedCall]:
        """The same of the columns of one plane."""
        rest = self._ident, self._size, self._like, self._fresh
        first, second = (PhasedCall(replace(self._s, scan=h), *rest) for h in halves(self._scan))
        return first, second

    @property
    def _narrow(self) -> str:
        return "dtype"

    @property
    def _precise(self) -> str:
        return "wide"

    @cached_property
    def _bound(self) -> list[str]:
        """What the planes that are read are bound to."""
        named = list(zip(self._s.planes, self._halves, strict=False))
        if len(self._halves[0]._scan.columns) == 1:
            return [self._ident(half._scan.columns[0].output) for _, half in named]
        return [self._fresh(f"{self._scan.name}_out{suffix}") for suffix, _ in named]

    def _call(self, arguments: list[str], out: str, last: str) -> list[str]:
        return super()._call(arguments, ", ".join(self._bound), last)

    def _outputs(self, out: str) -> list[str]:
        pairs = zip(self._bound, self._halves, strict=False)
        lines = [line for x, half in pairs for line in ScanCall._outputs(half, x)]
        return [line for line in lines if len(set(line.strip().split(" = "))) > 1]

    def _next(self, last: str, next_states: dict[str, str]) -> list[str]:
        return ScanCall._next(self._halves[0], last, next_states)

    def _shifted(self, out: str, state: str, read: str | None) -> list[str]:
        first = self._fresh(f"{self._scan.name}_first")
        lines = [f"    {first} = {self._first(state, read)}"]
        for x, part in zip(self._bound, ("real", "imag"), strict=False):
            ahead = f"torch.{part}({first}).to({x}.dtype)"
            lines.append(f"    {x} = torch.cat(({ahead}, {x}), 1)[:, :-1]")
        return lines


_CALLS: tuple[tuple[type[Skeleton], type[ScanCall]], ...] = (
    (ConvolutionKernels, ConvolutionCall),
    (SelectiveKernels, SelectiveCall),
    (ElementwiseKernels, ElementwiseCall),
    (PhasedKernels, PhasedCall),
    (MatrixKernels, MatrixCall),
)
"""Of each form of kernels, what prints its call: the narrower one first."""
