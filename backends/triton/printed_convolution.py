"""Convolutions with keys: their kernels, printed from the kernel IR, and how operators start them.

The operators of such a scan are those of its torch form; what they call looks at its arguments, and
starts a kernel or runs the torch form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.kernel_ir.ir import Access, Argument, Kernel
from dsfc.kernels import toeplitz
from dsfc.kernels.convolution import constants, has_convolution
from dsfc.kernels.operands import NAMES
from dsfc.plan.scan_ir import Scan

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import PrintedKernel, integer
from .printer import print_kernel
from .tiles import TOEPLITZ_KEYS

_TILES = frozenset({"BT", "T"})


@dataclass(frozen=True)
class PrintedConvolution:
    """A convolution with printed kernels; for the rest, the scan as torch runs it.

    Attributes:
        plain: the scan as torch runs it.
        forward: kernel of outputs and last state.
        backward: kernel of all gradients.
    """

    plain: Skeleton
    forward: Kernel
    backward: Kernel

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever templates ask for
        """Returns what the torch form has of that name."""
        return getattr(self.plain, name)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Both of them."""
        return self.forward, self.backward

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "printed_convolution.py.j2"

    @cached_property
    def printed(self) -> tuple[PrintedKernel, PrintedKernel]:
        """The texts of both kernels."""
        first, second = (
            print_kernel(k, f"_{direction}_kernel{self.plain.suffix}", tiles=_TILES)
            for direction, k in (("forward", self.forward), ("backward", self.backward))
        )
        return first, second

    @property
    def code(self) -> list[str]:
        """Whatever its kernels print."""
        return [k.text for k in self.printed]

    @property
    def most_keys(self) -> int:
        """Numbers of a state, beyond which torch runs."""
        return TOEPLITZ_KEYS[has_complex_values(self.plain)]

    # --- launches ---------------------------------------------------------------------------------

    def define_launch(self, direction: str) -> str:
        """The `def` line of the function that starts a kernel."""
        params = [f"{a}: Tensor" for a in self._given(direction)]
        name = f"_{direction}_launch{self.plain.suffix}"
        return wrapped(f"def {name}", params, " -> tuple[Tensor, ...]:", "")

    def start(self, direction: str) -> str:
        """A statement that starts a kernel where one runs."""
        call = f"return _{direction}_launch{self.plain.suffix}"
        return wrapped(call, self._given(direction), "", " " * 8)

    def run_torch(self, direction: str) -> str:
        """A statement that runs the torch form."""
        args = [*self._given(direction), *self.plain.option_names]
        return wrapped(f"return _{direction}_torch{self.plain.suffix}", args, "", "    ")

    def _given(self, direction: str) -> list[str]:
        return [*self.plain.leaves, *(["do", "dS"] if direction == "backward" else [])]

    def launch(self, direction: str) -> list[str]:
        """Statements that start a kernel and return what it writes."""
        back = direction == "backward"
        kernel, printed = (self.forward, self.backward)[back], self.printed[back]
        values, states = (["v", "do"], ["S", "dS"]) if back else (["v"], ["S"])
        log = [a.name for a in kernel.arguments if a.name in ("size", "turn", "turn_rest")]
        lines = []
        if back and self.plain.complex:
            names = ", ".join(self.plain.leaves)
            lines += [
                "    # PyTorch's gradient is the adjoint at the conjugates.",
                f"    {names} = _conjugates({names})",
            ]
        lines += [
            "    G, L, C, N = g.shape[0], v.shape[1], v.shape[2], S.shape[2]",
            f'    T, BT, fixed = _convolution_tile("{direction}", v, N)',
            "    B = v.shape[0] // G",
            "    CHUNKS, PAD, parts = -(-L // T), -L % T, -(-B // BT)",
            "    programs = G * parts * C",
        ]
        if back:
            lines.append("    SPANS, SPAN = _convolution_spans(CHUNKS)")
            shapes = ", ".join(f"{x}.shape" for x in ("q", "k", "g"))
            lines.append(f"    q_shape, k_shape, g_shape = {shapes}")
        lines.append("    q, k = (_by_parts(x.expand(-1, C, -1)) for x in (q, k))")
        names = ", ".join(log) if len(log) > 1 else f"({log[0]},)"
        lines.append(f"    {names} = _logarithm(g, C)")
        lines.append("    ramp = _ramp(T, S)")
        lines += [f"    {x} = _in_chunks({x}, G, T)" for x in values]
        lines += [f"    {x} = _states({x}, G)" for x in states]
        lines += [self._room(a) for a in kernel.arguments if a.access is not Access.READ]
        tensors = [_variable(a) for a in kernel.arguments]
        lines += wrapped("given = ", [*tensors, *printed.dynamic], "", "    ").split("\n")
        kept = ", ".join(f'"{n}"' for n in (*printed.static, *(f"{n}_ALL" for n in printed.padded)))
        lines.append(f"    _start_convolution({printed.name}, programs, given, fixed, ({kept}))")
        return [*lines, *self._returned(back)]

    def _room(self, a: Argument) -> str:
        """A statement that makes room for what a kernel writes."""
        like = {"o": "v", "S_last": "S", "dv": "v", "dS": "S"}.get(a.name)
        if like is not None:
            return f"    {_variable(a)} = torch.empty_like({like})"
        if a.access is Access.SCRATCH:
            shape = ", ".join(["programs", *(integer(n).text for n in a.shape)])
        else:
            shape = ", ".join(["G", "parts", "C", "N", *(["2"] if self.plain.complex else [])])
        return f"    {_variable(a)} = S.new_empty({shape})"

    def _returned(self, back: bool) -> list[str]:
        if not back:
            return [f"    return _in_order(o, L), _states_by_row(S_last{self._complex})"]
        known = {f"d{NAMES[f]}" for f in constants(self.plain.adjoint)} | {"dg"}
        lines, out = [], []
        for d, x in zip(self.plain.grads, self.plain.inputs, strict=True):
            if d == "dv":
                out.append("_in_order(dv, L)")
                continue
            if d in known:
                text = f"{self._number(f'{d}.sum(1)')}"
            else:
                text = self._number("torch.zeros_like(dg[:, 0])")
            lines.append(f"    {d} = _shared_gradient({text}, {x}_shape)")
            out.append(d)
        last = f"_states_by_row(dS_first{self._complex})"
        return [*lines, wrapped("return ", [*out, last], "", "    ")]

    @property
    def _complex(self) -> str:
        return ", True" if self.plain.complex else ""

    def _number(self, text: str) -> str:
        """Views the parts that a kernel wrote as complex numbers, if the scan is complex."""
        return f"torch.view_as_complex({text})" if self.plain.complex else text


def _variable(a: Argument) -> str:
    """The variable of a tensor: what the operators call otherwise than the kernels."""
    return {"dS_last": "dS", "dS": "dS_first"}.get(a.name, a.name)


def has_printed_convolution(scan: Scan) -> bool:
    """Whether a scan has these kernels; without keys its recurrence is better."""
    return has_convolution(scan) and bool(scan.keys)


def has_complex_values(s: Skeleton) -> bool:
    """Whether values are complex, and outputs with them."""
    return s.complex and not s.scan.real


def printed_convolution(s: Skeleton) -> PrintedConvolution:
    """Returns a scan with its kernels."""
    is_wide = has_complex_values(s)
    forward = toeplitz.forward(s.scan, is_wide)
    backward = toeplitz.backward(s.scan, s.adjoint, is_wide)
    return PrintedConvolution(s, forward, backward)
