"""Convolutions with keys that have printed kernels, and how their operators start these."""

from __future__ import annotations

from dsfc.kernel_ir.ir import Access, Argument
from dsfc.kernels import toeplitz
from dsfc.kernels.convolution import constants, has_convolution
from dsfc.kernels.operands import NAMES
from dsfc.plan.scan_ir import Scan

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import integer
from .printed_scan import PrintedScan, names_of_sizes, variable
from .tiles import TOEPLITZ_KEYS


class PrintedConvolution(PrintedScan):
    """A convolution, each of whose passes is one kernel."""

    @property
    def tiles(self) -> frozenset[str]:
        """Static sizes that are powers of two."""
        return frozenset({"BT", "T"})

    @property
    def unfit(self) -> str:
        """The expression of why no kernel runs; an empty text where kernels run."""
        return f"_unfit_convolution(v, S, mode, {self.most_keys})"

    @property
    def most_keys(self) -> int:
        """Numbers of a state, beyond which torch runs."""
        return TOEPLITZ_KEYS[has_complex_values(self.plain)]

    def launch(self, direction: str) -> list[str]:
        """Statements that start a kernel and return what it writes."""
        back = direction == "backward"
        (kernel,) = self.backward if back else self.forward
        printed = self.printed[kernel]
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
        tensors = [variable(a) for a in kernel.arguments]
        lines += wrapped("given = ", [*tensors, *printed.dynamic], "", "    ").split("\n")
        used = names_of_sizes(printed)
        lines.append(f"    _start({printed.name}, programs, given, fixed, ({used}))")
        return [*lines, *self._returned(back)]

    def _room(self, a: Argument) -> str:
        """A statement that makes room for what a kernel writes."""
        like = {"o": "v", "S_last": "S", "dv": "v", "dS": "S"}.get(a.name)
        if like is not None:
            return f"    {variable(a)} = torch.empty_like({like})"
        if a.access is Access.SCRATCH:
            shape = ", ".join(["programs", *(integer(n).text for n in a.shape)])
        else:
            shape = ", ".join(["G", "parts", "C", "N", *(["2"] if self.plain.complex else [])])
        return f"    {variable(a)} = S.new_empty({shape})"

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
    return PrintedConvolution(s, (forward,), (toeplitz.backward(s.scan, s.adjoint, is_wide),))
