"""Prints the call of an operator that computes its gates."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from dsfc.plan.ir import Column, Role
from dsfc.plan.planes import halves
from dsfc.primitives.expr import Axis

from ..torch.calls import ScanCall
from ..torch.layout import wrapped
from .convolution import ConvolutionKernels
from .elementwise import ElementwiseKernels
from .matrix import MatrixKernels
from .phases import PhasedKernels
from .selective import SelectiveKernels


class KernelCall(ScanCall):
    """Prints the statements of one call; see `ElementwiseKernels` for what it takes."""

    def _token_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        s = self._s
        if isinstance(s, SelectiveKernels):
            return self._selective_arguments(s, before)
        if isinstance(s, PhasedKernels):
            return self._phased_arguments(before)
        if isinstance(s, MatrixKernels):
            return self._matrix_arguments(s, before)
        if not isinstance(s, ElementwiseKernels):
            return super()._token_arguments(before)
        column, *_ = s.scan.columns
        tile = self._tile(column)
        arguments = []
        for name in s.gates.tokens:
            dtype = "wide" if name in s.wide else "dtype"
            arguments.append(f"{self._expanded(name, tile)}.to({dtype})")
        arguments += [self._by_batch(name, tile) for name in s.gates.constants]
        state = self._states(before)
        return [*arguments, f"{state}.to({self._wide})", "lengths"], state, None

    def _fixed_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        s = self._s
        if not isinstance(s, ConvolutionKernels):
            return super()._fixed_arguments(before)
        column, *_ = s.scan.columns
        tile, groups = self._tile(column), (s.scan.heads, ())
        arguments = []
        for name in s.gates.tokens:
            dtype = "wide" if name in s.wide else "dtype"
            text = self._regrouped(self._expanded(name, tile), tile, groups[:1], lead=2)
            arguments.append(f"{text}.to({dtype})")
        for name in s.gates.constants:
            text = self._regrouped(self._over(name, tile), tile, groups, lead=0)
            arguments.append(f"{text}.unsqueeze(0)")
        state = self._regrouped(self._ident(column.state), tile, groups, lead=1)
        return [*arguments, f"{state}.to({self._wide})", "lengths"], state, None

    @cached_property
    def _other(self) -> str:
        """Variable of the output of the column of one channel."""
        return self._fresh(f"{self._scan.name}_other")

    def _matrix_arguments(
        self, s: MatrixKernels, before: list[str]
    ) -> tuple[list[str], str, str | None]:
        (q, k, v, *rest), state, looked = super()._token_arguments(before)
        numbers = [f"{self._grouped(n, (s.scan.heads,))}.to(wide)" for n in s.features.numbers]
        w = [f"{self._alone()}.to(wide)"] if s.narrow else []
        return [q, k, v, *w, *numbers, *rest, "lengths"], state, looked

    @property
    def _columns(self) -> tuple[Column, ...]:
        return self._scan.columns[:-1] if self._parted else self._scan.columns

    @property
    def _parted(self) -> bool:
        """Whether the value and output of a column of one channel stand apart."""
        return isinstance(self._s, MatrixKernels) and self._s.narrow

    @property
    def _running(self) -> bool:
        """Whether nothing but the kernels of that scan reads that output."""
        return isinstance(self._s, MatrixKernels) and self._s.running

    def _alone(self) -> str:
        """The value of the column of one channel, `[B, L, h, 1]`."""
        last = self._scan.columns[-1]
        if last.value is None:
            return self._ones()
        return self._grouped(last.value, (self._scan.heads, last.channels))

    def _phased_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        """As of a matrix scan, of a complex state: the value's planes apart."""
        assert isinstance(self._s, PhasedKernels)
        first, second = self._halves
        (q, k, v, *rest), state, looked = super(KernelCall, first)._token_arguments(before)
        more = [f"{second._values(before)}.to(dtype)"] if self._s.values[1:] else []
        return [q, k, v, *more, *rest, "lengths"], state, looked

    @property
    def _halves(self) -> tuple[KernelCall, KernelCall]:
        """The same of the columns of one plane."""
        first, second = (
            KernelCall(
                replace(self._s, scan=half), self._ident, self._size, self._like, self._fresh
            )
            for half in halves(self._s.scan)
        )
        return first, second

    @property
    def _narrow(self) -> str:
        return "dtype" if isinstance(self._s, PhasedKernels) else super()._narrow

    @property
    def _precise(self) -> str:
        return "wide" if isinstance(self._s, PhasedKernels) else super()._precise

    def _kept(self, text: str) -> str:
        return text if isinstance(self._s, MatrixKernels) else super()._kept(text)

    def _selective_arguments(
        self, s: SelectiveKernels, before: list[str]
    ) -> tuple[list[str], str, str | None]:
        (query, *_), state, looked = super()._token_arguments(before)
        (column,) = s.scan.columns
        tile, like = self._side(column), self._like
        tokens = [*self._vector(s.queries, query.rsplit(".to(", 1)[0]),
                  *self._vector(s.keys, self._keyed(s.scan.key or ""))]  # fmt: skip
        for name in s.gates.tokens:
            dtype = "wide" if name in s.wide else "dtype"
            tokens.append(f"{self._expanded(name, tile)}.to({dtype})")
        tokens += [f"{self._ident(x.name)}.to(wide)" for x in s.others if not x.constant]
        constants = [self._by_batch(name, tile) for name in s.gates.constants]
        constants += [self._by_batch(x.name, x.axes) for x in s.others if x.constant]
        state = f"{state}.to({self._wide})"
        why = ""
        if s.complex:
            why = f", _too_many({' * '.join(self._size(a) for a in s.scan.keys)})"
        room = f"_room({state}, {like}.shape[1], dtype, mode{why})"
        return [*tokens, *constants, state, "lengths", room], state, looked

    @staticmethod
    def _vector(names: list[str], text: str) -> list[str]:
        """The planes of a key or query."""
        parts = [f"torch.real({text})", f"torch.imag({text})"] if len(names) == 2 else [text]
        return [f"{x}.to(dtype)" for x in parts]

    def _call(self, arguments: list[str], out: str, last: str) -> list[str]:
        kept = f"{last}, _" if isinstance(self._s, SelectiveKernels) else last
        if self._paired:
            out = ", ".join(self._ident(c.output) for c in self._scan.columns)
        elif self._parted:
            out = f"{out}, {'_' if self._running else self._other}"
        elif isinstance(self._s, PhasedKernels):
            out = ", ".join(self._bound)
        if not self._s.stops:
            return super()._call(arguments, out, kept)
        head = f"{out}, {kept} = _recurrence{self._s.suffix}().apply"
        return [wrapped(head, [*arguments, *self._s.option_names], "", "    ")]

    @property
    def _paired(self) -> bool:
        s = self._s
        return isinstance(s, ElementwiseKernels) and s.complex and len(s.planes) == 2

    @cached_property
    def _bound(self) -> list[str]:
        """What the planes that are read are bound to."""
        assert isinstance(self._s, PhasedKernels)
        named = list(zip(self._s.planes, self._halves, strict=False))
        if len(self._halves[0]._scan.columns) == 1:
            return [self._ident(half._scan.columns[0].output) for _, half in named]
        return [self._fresh(f"{self._scan.name}_out{suffix}") for suffix, _ in named]

    def _outputs(self, out: str) -> list[str]:
        if self._parted:
            last, heads = self._scan.columns[-1], self._scan.heads
            if self._running:
                return super()._outputs(out)
            other = f"{self._other}.to(dtype)"
            text = self._ungrouped(other, tuple(sorted(heads)), (heads, ()), lead=2)
            return [*super()._outputs(out), f"    {self._ident(last.output)} = {text}"]
        if isinstance(self._s, PhasedKernels):
            pairs = zip(self._bound, self._halves, strict=False)
            lines = [line for x, half in pairs for line in super(KernelCall, half)._outputs(x)]
            return [line for line in lines if len(set(line.strip().split(" = "))) > 1]
        if not self._paired:
            return super()._outputs(out)
        # Each plane is bound by the call; that of a convolution is flat.
        if not isinstance(self._s, ConvolutionKernels):
            return []
        heads = self._scan.heads
        names = [self._ident(c.output) for c in self._scan.columns]
        laid = [(x, self._ungrouped(x, heads, (heads,), lead=2)) for x in names]
        return [f"    {x} = {text}" for x, text in laid if text != x]

    def _next(self, last: str, next_states: dict[str, str]) -> list[str]:
        if isinstance(self._s, PhasedKernels):
            return super(KernelCall, self._halves[0])._next(last, next_states)
        column, *_ = self._scan.columns
        if not self._paired:
            return super()._next(last, next_states)
        next_states[column.state] = self._fresh(f"{self._ident(column.state)}_next")
        if isinstance(self._s, ConvolutionKernels):
            groups = (self._scan.heads, ())
            last = self._ungrouped(last, self._tile(column), groups, lead=1)
        return [f"    {next_states[column.state]} = {last}"]

    def _shifted(self, out: str, state: str, read: str | None) -> list[str]:
        s = self._s
        if isinstance(s, PhasedKernels):
            first = self._fresh(f"{self._scan.name}_first")
            lines = [f"    {first} = {self._first(state, read)}"]
            for x, part in zip(self._bound, ("real", "imag"), strict=False):
                ahead = f"torch.{part}({first}).to({x}.dtype)"
                lines.append(f"    {x} = torch.cat(({ahead}, {x}), 1)[:, :-1]")
            return lines
        if self._paired:
            outs = [self._ident(c.output) for c in self._scan.columns]
            parts = (f"torch.{part}({state})" for part in ("real", "imag"))
            both = zip(outs, parts, strict=True)
            return [
                line for o, part in both for line in super(type(self), self)._shifted(o, part, read)
            ]
        if self._parted:
            first = self._fresh(f"{s.scan.name}_first")
            whole = (out, f"{first}[..., :-1]"), (self._other, f"{first}[..., -1:]")
            return [
                f"    {first} = {self._first(state, read)}",
                *(f"    {o} = torch.cat(({x}.to({o}.dtype), {o}), 1)[:, :-1]" for o, x in whole),
            ]
        if isinstance(s, SelectiveKernels):
            plain = KernelCall(s.plain, self._ident, self._size, self._like, self._fresh)
            return plain._shifted(out, state, read)
        return super()._shifted(out, state, read)

    def _first(self, state: str, read: str | None) -> str:
        if isinstance(self._s, ConvolutionKernels):
            return f"{state}.mT"
        return super()._first(state, read)

    def _by_batch(self, name: str, tile: tuple[Axis, ...]) -> str:
        """A constant as `[B, *tile]`."""
        sizes = ", ".join([f"{self._like}.shape[0]", *map(self._size, tile)])
        return f"{self._along(name, tile)}.expand({sizes})"

    def _over(self, name: str, tile: tuple[Axis, ...]) -> str:
        """A constant as `[*tile]`."""
        text = self._along(name, tile)
        if self._arrays(name).axes == tile:
            return text
        return f"{text}.expand({', '.join(map(self._size, tile))})"

    def _along(self, name: str, tile: tuple[Axis, ...]) -> str:
        """A constant with places for the axes that it lacks."""
        axes = self._arrays(name).axes
        assert self._arrays(name).role is Role.CONSTANT
        text = f"{self._ident(name)}.to(wide)"
        if axes and axes != tile:
            text += f"[{', '.join(':' if a in axes else 'None' for a in tile)}]"
        return text
