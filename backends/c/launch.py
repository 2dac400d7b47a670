"""How the operators of a scan start its kernels in C: the statements of one launch.

A launch reads sizes off the tensors, says how the work is divided, makes what the kernel writes,
starts it, and gives the results the axes that the operator has. Each family of kernels has its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

from dsfc.expr.tree import Axis
from dsfc.kernel_ir.ir import Access, Argument, Kernel, Storage, Symbol
from dsfc.kernels import chunkwise, convolution
from dsfc.kernels.layout import layout
from dsfc.kernels.operands import NAMES
from dsfc.kernels.step import has_constants

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .expressions import python_integer

_AFTER_EACH = "S_each.flatten(0, 1)"
"""The states after all tokens as operators give them: the rows after the first token first."""


class Launch(ABC):
    """The statements that start a kernel of one scan.

    Args:
        s: the scan, as torch runs it.
        kernel: which reads all that the scan's other kernels do: that of all gradients, if any.
    """

    steps: ClassVar[bool] = False
    """Its forward kernel runs single tokens too, and reads a state before it writes it."""

    def __init__(self, s: Skeleton, kernel: Kernel) -> None:
        self._s = s
        self._arguments = {a.name: a for a in kernel.arguments}

    def lines(self, kernel: Kernel, back: bool) -> list[str]:
        """Returns the statements that start a kernel and return what it writes."""
        reads = [a for a in kernel.arguments if a.access is Access.READ]
        writes = [a for a in kernel.arguments if a.access is Access.WRITE]
        lines = [f"    {line}" for line in self._prepared(back)]
        lines.append(self._sizes(kernel, reads))
        lines += [f"    {line}" for line in self._division(kernel)]
        lines += [_empty(a) for a in writes if a.name != "S_last"]
        for last in (a for a in writes if a.name == "S_last"):
            keeps = "in_place and S.is_contiguous()"
            lines.append(
                f"    S_last = S if {keeps} else {_new(last)}" if self.steps else _empty(last)
            )
        lines.append(_bound("static", [f'("{n}", {n})' for n in kernel.static]))
        lines.append(_bound("reads", [_parameter(a.name) for a in reads]))
        lines.append(_bound("writes", [_variable(a.name) for a in writes]))
        sizes = ", ".join(kernel.dynamic)
        call = f'"{kernel.name}", v.dtype, S.dtype, static, reads, writes, ({sizes})'
        lines.append(wrapped("ran = _NATIVE.run", [*call.split(", ", 5), "work"], "", "    "))
        lines += ["    if not ran:", "        return None"]
        each = any(a.name == "S_each" for a in writes)
        results = list(self._returned(back, _AFTER_EACH if each else "S_last"))
        lines += [f"    {name} = {text}" for name, text in results if name != text]
        lines.append(wrapped("return ", [name for name, _ in results], "", "    "))
        return lines

    # --- what families say ------------------------------------------------------------------------

    @property
    def worth(self) -> str:
        """Python condition, over the operator's parameters, of what is faster than torch."""
        return ""

    def too_much(self, size: Callable[[Axis], str]) -> tuple[str, str] | None:
        """Returns the condition, over sizes of a layer, of what is not, and a clause that says so.

        Args:
            size: gives the variable of an axis' size.
        """
        return None

    def _prepared(self, back: bool) -> Iterator[str]:
        """Yields statements that bring the operator's tensors into the layout of the kernels."""
        yield from ()

    @abstractmethod
    def _division(self, kernel: Kernel) -> Iterator[str]:
        """Yields statements that say how the work is divided among programs."""

    @abstractmethod
    def _returned(self, back: bool, after: str) -> Iterator[tuple[str, str]]:
        """Yields the variable of each result, and its value by what the kernel wrote.

        Args:
            back: whether the results are gradients.
            after: text of the state that a forward kernel wrote, or of those after all tokens.
        """

    # --- for all ----------------------------------------------------------------------------------

    def _number(self, text: str, is_complex: bool = True) -> str:
        """Views the parts that a kernel wrote as complex numbers, if the scan is complex."""
        return f"torch.view_as_complex({text})" if self._s.complex and is_complex else text

    def _conjugated(self) -> Iterator[str]:
        """Statements that conjugate what the forward operator took."""
        names = ", ".join(self._s.leaves)
        yield "# PyTorch's gradient is the adjoint at the conjugates."
        yield f"{names} = _conjugates({names})"

    @staticmethod
    def _sizes(kernel: Kernel, reads: list[Argument]) -> str:
        """A statement that reads sizes off the tensors."""
        known: dict[str, str] = {}
        for a in reads:
            for k, size in enumerate(a.shape):
                if isinstance(size, Symbol):
                    known.setdefault(size.name, f"{_parameter(a.name)}.shape[{k}]")
        names = [n for n in (*kernel.dynamic, *kernel.static) if n in known]
        return f"    {', '.join(names)} = {', '.join(known[n] for n in names)}"


class ChunkLaunch(Launch):
    """Starts kernels that go chunk by chunk; a program has some channels of one head."""

    def _division(self, kernel: Kernel) -> Iterator[str]:
        yield "work = 4 * L * S.numel()"
        if "PT" in kernel.static:
            yield "PT = _part(P, B * H)"
        if "SPAN" in kernel.dynamic:
            yield f"SPANS, SPAN = _kept_spans(-(-L // {chunkwise.CHUNK[self._s.scan.form]}), N * P)"

    def _returned(self, back: bool, after: str) -> Iterator[tuple[str, str]]:
        if not back:
            yield from (("o", "o"), ("S_last", after))
            return
        shared = ("dq", "dk") if self._s.shared else ()
        for g in self._s.grads:
            yield g, f"{g}.sum(2)" if g in shared else g
        yield "dS_first", "dS_first"


class TokenLaunch(Launch):
    """Starts kernels that go token by token; a program has some channels of one row."""

    steps = True

    def _division(self, kernel: Kernel) -> Iterator[str]:
        yield "work = 4 * L * S.numel()"
        where = layout(self._s.scan)
        keys = [f"SIZE_{a.name}" for a in where.keys]
        outer = " * ".join(["B", *(f"SIZE_{a.name}" for a in where.outer)])
        assert where.block is not None
        yield f"BLOCK = _part(SIZE_{where.block.name}, {outer}, {' * '.join(keys)})"
        if "SPAN" in kernel.dynamic:
            yield f"SPANS, SPAN = _kept_spans(L, {' * '.join(['BLOCK', *keys])})"

    def _returned(self, back: bool, after: str) -> Iterator[tuple[str, str]]:
        if not back:
            yield from (("o", "o"), ("S_last", after))
            return
        for g, x in zip(self._s.grads, self._s.inputs, strict=True):
            lead = 2 if x in self._s.timed else 1
            own = len(self._arguments[x].shape) - lead
            apart = len(self._arguments[g].shape) - lead - own
            dims = ", ".join(str(lead + k) for k in range(apart))
            yield g, f"{g}.sum(({dims}{',' * (apart == 1)})).to({x}.dtype)" if apart else g
        yield "dS_first", "dS_first"


class StepLaunch(TokenLaunch):
    """Starts kernels of single tokens; the constants of a convolution get the rows of the batch.

    Those of complex numbers take pairs of real ones.
    """

    def _prepared(self, back: bool) -> Iterator[str]:
        if not has_constants(self._s.scan):
            if self._s.complex:
                yield from (f"{x} = _as_pairs({x})" for x in self._s.leaves)
            return
        for x in ("q", "k", "g"):
            yield f"{x} = _pairs_of_rows({x}, v)"
        yield "S = _as_pairs(S)"
        if not self._s.scan.real:
            yield "v = _as_pairs(v)"

    def _division(self, kernel: Kernel) -> Iterator[str]:
        yield "work = 4 * L * S.numel()"
        # Sums over keys go on for all channels of a block at once: the more, the better.
        work = "SIZE_p, B * SIZE_h" if "SIZE_p" in kernel.static else "SIZE_h, B"
        yield f"BLOCK = _part({work})"

    def _returned(self, back: bool, after: str) -> Iterator[tuple[str, str]]:
        yield "o", self._number("o", not self._s.scan.real)
        yield "S_last", self._number(after)


class RowLaunch(Launch):
    """Starts kernels that take all axes of a token as one row of channels."""

    steps = True

    def _prepared(self, back: bool) -> Iterator[str]:
        kept = ["v", "S", *(self._s.decays if back else [])]
        yield from (f"{n}_shape = {n}.shape" for n in kept)
        names = [*self._s.inputs, *(["do"] if back else []), "S", *(["dS"] if back else [])]
        if back and self._s.complex:
            yield from self._conjugated()
        flat = [f"_flat({x}, {1 if x in ('S', 'dS') else 2})" for x in names]
        if self._s.complex:
            yield from (f"{x} = _as_pairs({text})" for x, text in zip(names, flat, strict=True))
        else:
            yield f"{', '.join(names)} = {', '.join(flat)}"

    def _division(self, kernel: Kernel) -> Iterator[str]:
        yield "work = 4 * L * S.numel()"
        yield "BLOCK = _part(CHANNELS, B)"
        if "SPAN" in kernel.dynamic:
            yield "SPANS, SPAN = _kept_spans(L, BLOCK)"

    def _returned(self, back: bool, after: str) -> Iterator[tuple[str, str]]:
        if not back:
            yield "o", f"{self._number('o')}.view(v_shape)"
            shape = "(L * B, *S_shape[1:])" if after == _AFTER_EACH else "S_shape"
            yield "S_last", f"{self._number(after)}.view({shape})"
            return
        for g, x in zip(self._s.grads, self._s.inputs, strict=True):
            yield g, f"{self._number(g)}.view({x}_shape)"
        yield "dS_first", f"{self._number('dS_first')}.view(S_shape)"


class ConvolutionLaunch(Launch):
    """Starts kernels of convolutions; a program has some channels and some rows of the batch."""

    @property
    def worth(self) -> str:
        """Whether states have few enough numbers: a spectrum costs the same for any."""
        return 'mode != "auto" or g.shape[-1] <= NATIVE_KEYS'

    def too_much(self, size: Callable[[Axis], str]) -> tuple[str, str] | None:
        """Whether the states of a layer have more numbers; without keys there is one."""
        keys = " * ".join(size(a) for a in self._s.scan.keys)
        if not keys:
            return None
        why = "states of more than {NATIVE_KEYS} numbers: the spectrum is faster"
        condition = f'mode == "auto" and not (packed or masked) and {keys} > NATIVE_KEYS'
        return condition, why

    def _prepared(self, back: bool) -> Iterator[str]:
        values = ["v", *(["do"] if back else [])]
        states = ["S", *(["dS"] if back else [])]
        if back and self._s.complex:
            yield from self._conjugated()
        yield "channels, count = v.shape[-1], v.shape[0] * v.shape[1]"
        yield f"T = {convolution.CHUNK} if count >= 2048 else 8  # few tokens, short tables"
        yield "q_shape, k_shape, g_shape = q.shape, k.shape, g.shape"
        yield "q, k = _as_pairs(q.expand(-1, channels, -1)), _as_pairs(k.expand(-1, channels, -1))"
        yield "powers = _power(g.expand(-1, channels, -1).unsqueeze(-1), torch.arange(T + 1))"
        yield "past = powers.flip(-1)"
        yield f"look = _dense({'past' if back else 'powers'})"
        yield (
            "past, powers = _dense(past, keys=True), _dense(powers, keys=True)"
            if back
            else ("past = _dense(past, keys=True)")
        )
        for x in (*values, *states):
            yield f"{x} = _as_pairs({x}.unflatten(0, (g.shape[0], -1)))"
        if back:
            yield "steps = torch.arange(T + 1, dtype=S.dtype)"
            yield "lags = steps.flip(0)"

    def _division(self, kernel: Kernel) -> Iterator[str]:
        yield "work = 4 * L * S.numel()"
        yield "BT = min(1 << (B - 1).bit_length(), 8)"
        yield f"SPAN, CT = {convolution.ROWS} // BT, 16"
        yield "R = SPAN * BT"

    def _returned(self, back: bool, after: str) -> Iterator[tuple[str, str]]:
        if not back:
            yield "o", self._number("o.flatten(0, 1)", not self._s.scan.real)
            yield "S_last", self._number(f"{after}.flatten(0, 1)")
            return
        known = {f"d{NAMES[f]}" for f in convolution.constants(self._s.adjoint)} | {"dg"}
        for g, x in zip(self._s.grads, self._s.inputs, strict=True):
            if g == "dv":
                yield g, self._number("dv.flatten(0, 1)", not self._s.scan.real)
            elif g in known:
                text = self._number(f"{g}.sum(1)")
                yield g, f"_shared_gradient({text}, {x}_shape)"
            else:
                zeros = (
                    f"S.new_zeros((*{x}_shape, 2))"
                    if self._s.complex
                    else f"S.new_zeros({x}_shape)"
                )
                yield g, self._number(zeros)
        yield "dS_first", self._number("dS_first.flatten(0, 1)")


def as_tuple(items: list[str]) -> str:
    """Returns the text of a tuple, on one line."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _bound(name: str, items: list[str]) -> str:
    """A statement that binds a tuple."""
    if len(items) == 1:
        return f"    {name} = {as_tuple(items)}"
    return wrapped(f"{name} = ", items, "", "    ")


def _empty(a: Argument) -> str:
    return f"    {_variable(a.name)} = {_new(a)}"


def _new(a: Argument) -> str:
    like = "v" if a.storage is Storage.GIVEN else "S"
    shape = ", ".join(python_integer(n) for n in a.shape)
    return f"{like}.new_empty(({shape}))"


def _parameter(name: str) -> str:
    """The parameter of the operator for an argument of the kernel."""
    return {"dS_last": "dS"}.get(name, name)


def _variable(name: str) -> str:
    """The variable of a tensor that a kernel writes."""
    return {"dS": "dS_first"}.get(name, name)
