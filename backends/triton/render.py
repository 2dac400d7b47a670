"""Plan → text of a torch module with Triton kernels: the torch module's, with another target."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.tree import Axis
from dsfc.fused.ir import FusedPlan
from dsfc.kernels.step import has_step
from dsfc.kernels.toeplitz import TURN_BITS
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form, Scan

from ..shared.coverage import said_of_scans
from ..shared.section import section
from ..torch import render as torch
from ..torch.layout import bound_text, wrapped
from ..torch.rotating_frame import runtime_text
from ..torch.signature import Signature
from ..torch.skeletons import Skeleton
from .calls import kernel_call
from .convolution import ConvolutionKernels
from .coverage import coverage
from .elementwise import ElementwiseKernels
from .functions import functions_of
from .matrix import MatrixKernels
from .phases import PhasedKernels
from .printed import ChunksInFrame, PrintedChunks
from .printed_convolution import PrintedConvolution, has_printed_convolution
from .printed_scan import PrintedScan
from .printed_step import PrintedStep
from .selective import STATES, TOGETHER, SelectiveKernels
from .sizes import PAIRS, SPAN, STEP
from .skeletons import scans_with_kernels, skeletons
from .tiles import TOEPLITZ_ROWS, chips, rows, toeplitz_rows
from .toolchains import HANDLES, faults

_IMPORTS = """\

try:
    import triton
    import triton.language as tl
except ImportError:  # then the torch form runs on every device
    triton = None"""


_TOKENS = 70
"""Of the trial: a chunk of 64 and a part of one."""


def _shared(filled: Callable[..., str], scans: tuple[Skeleton, ...]) -> tuple[str, ...]:
    """What all kernels and launches need."""
    found = [s for s in scans if isinstance(s, ElementwiseKernels)]
    matrix = [s for s in scans if isinstance(s, MatrixKernels)]
    code = "\n".join(line for s in found for line in s.code)
    code += "\n".join(line for s in matrix for line in s.code)
    printed = [s for s in scans if isinstance(s, PrintedScan)]
    convolutions = [s for s in printed if isinstance(s, PrintedConvolution)]
    code += "\n".join(text for s in printed for text in s.code)
    code += "\n".join(
        s.plain.step_code for s in (*matrix, *printed) if isinstance(s.plain, PrintedStep)
    )
    of_chunks = [s for s in printed if isinstance(s, PrintedChunks)]
    tiles = rows({s.scan.form for s in (*found, *matrix, *of_chunks)}, {s.kind for s in matrix})
    tiles += toeplitz_rows() if convolutions else ()
    handles = ", ".join(f'"{version}."' for version in HANDLES)
    parts = [
        filled(
            "kernels_shared.py.j2",
            tiles=tiles,
            chips=chips(),
            handles=handles,
            complex=any(s.complex for s in found),
            planes=any(s.complex for s in (*found, *matrix)),
        )
    ]
    if matrix or printed:
        parts.append(filled("chunked_kernels_shared.py.j2"))
    steps = [s for s in (*matrix, *printed) if isinstance(s.plain, PrintedStep)]
    if steps:
        heading = filled("printed_heading.py.j2")
        parts.append(filled("step_shared.py.j2"))
        parts.append(f"{heading}\n{filled('printed_memory_shared.py.j2')}")
    if printed:
        parts.append(filled("printed_launch_shared.py.j2"))
        parts.append(filled("printed_kernels_shared.py.j2"))
        parts.append(filled("printed_triangles_shared.py.j2"))
    if of_chunks:
        parts.append(filled("printed_plan_shared.py.j2"))
    if convolutions:
        sizes = {"rows": TOEPLITZ_ROWS, "turn_bits": TURN_BITS}
        parts.append(filled("printed_convolution_shared.py.j2", **sizes))
    if matrix:
        decay = any(s.decay for s in matrix)
        parts.append(filled("matrix_kernels_shared.py.j2", decay=decay, span=SPAN))
    if any(isinstance(s, PhasedKernels) for s in matrix):
        parts.append(filled("phased_kernels_shared.py.j2"))
    if any(isinstance(s, ConvolutionKernels) for s in found):
        parts.append(filled("convolution_kernels_shared.py.j2"))
    if any(isinstance(s, SelectiveKernels) for s in found):
        sizes = {"step": STEP, "states": STATES, "together": TOGETHER, "of_pairs": PAIRS}
        pairs = any(s.complex for s in found if isinstance(s, SelectiveKernels))
        parts.append(filled("selective_kernels_shared.py.j2", pairs=pairs, **sizes))
    return (*parts, *functions_of(code))


def _sizes(s: MatrixKernels, names: Signature) -> tuple[str, str]:
    """How many keys and channels a state has, read off the layer."""
    wide = sum(1 for c in s.scan.columns if c.channels)
    keys = " * ".join(f"self.{names.size(a)}" for a in s.scan.keys) or "1"
    channels = " * ".join(f"self.{names.size(a)}" for a in s.scan.channels) or "1"
    behind = len(s.scan.columns) - wide - s.narrow
    channels = f"{wide} * {channels}" if wide > 1 else channels
    return keys, f"{channels} + {behind}" if behind and wide else channels


def _cuts(s: Skeleton, names: Signature) -> list[str]:
    """Statements of `explain` that say into how many segments a launch cuts time."""

    def size(axes: tuple[Axis, ...]) -> str:
        return " * ".join(f"self.{names.size(a)}" for a in axes) or "1"

    match s:
        case MatrixKernels():
            calls = s.cuts(size(s.scan.heads), *_sizes(s, names))
        case SelectiveKernels():
            calls = s.cuts_of(size(s.scan.heads), size(s.scan.keys), size(s.scan.channels))
        case ElementwiseKernels():
            calls = s.cuts(size((*s.scan.heads, *s.scan.channels)))
        case _:
            calls = {}
    out = []
    for direction, call in calls.items():
        out.append(wrapped(f"_, tokens, *_ = {call.head}", call.items, "", " " * 16))
        out.append(f'{" " * 16}what += _said("{s.scan.name} {direction}", length, tokens)')
    return out


def _tried(s: Skeleton, dtype: str) -> str:
    """Text of the dtype in which a scan's kernels are tried: no complex number is narrow."""
    return f"_accumulator({dtype})" if isinstance(s, ChunksInFrame) else dtype


def _trust(plan: Plan, filled: Callable[..., str], names: Signature) -> str:
    """Whether to trust the kernels: what is known of them, and a trial."""
    scans = [k for k in plan.kernels if isinstance(k, Scan)]
    # Without keys and channels each head is a channel, of which there are many.
    small = {names.size(a): 2 for s in scans if s.keys or s.channels for a in s.heads}
    small |= {names.size(a): 16 for s in scans if s.form is Form.SELECTIVE for a in s.keys}
    convolutions = [s for s in scans if has_printed_convolution(s)]
    for s in convolutions:
        small |= {names.size(a): 16 if len(s.keys) == 1 else 4 for a in s.keys}
    # They carry a state from product to product, as matrix scans do.
    products = {Form.MATRIX} if convolutions else set()
    sizes = {z.name: small.get(z.name, 64) for z in names.sizes}
    inputs = [
        (text.name, ", ".join(["2", str(_TOKENS), *(str(sizes[names.size(a)]) for a in i.axes)]))
        for text, i in zip(names.inputs, plan.inputs, strict=True)
    ]
    return filled(
        "trust.py.j2",
        faults=faults({s.form for s in scans} | products),
        names=names,
        arguments=", ".join((*(f"{n}={size}" for n, size in sizes.items()), "dtype=dtype")),
        inputs=inputs,
        given=", ".join(names.input_names) + ("," if len(inputs) == 1 else ""),
        length=_TOKENS,
        cut=_TOKENS // 2 + 5,
        steps=plan.causal and any(has_step(s) for s in scans),
    )


def target(fused: FusedPlan) -> torch.Target:
    """Returns what the module of a plan runs on: torch alone where no scan has kernels."""
    plan = fused.original
    scans, without = scans_with_kernels(fused), said_of_scans(coverage(fused))
    if not scans:
        return torch.torch_alone(without)

    filling = skeletons(fused)

    def shared(
        filled: Callable[..., str], names: Signature, scans: tuple[Skeleton, ...]
    ) -> tuple[str, ...]:
        return (_trust(plan, filled, names), *_shared(filled, scans))

    def explained(names: Signature) -> tuple[str, ...]:
        held = [f"self.{p.attribute}.dtype" for p in names.parameters]
        dtype = held[0] if held else "torch.get_default_dtype()"
        what = f"Triton on {{device}}: a kernel each way for {', '.join(scans)}"
        why: dict[str, None] = {}  # in order, each once
        for s in filling:
            chunked = isinstance(s.plain, PrintedStep)
            mode = "named" if chunked else getattr(s, "named_mode", "mode")
            declined = f"_declined(device, {_tried(s, dtype)}, {mode}"
            if isinstance(s, MatrixKernels):
                why |= {f"{declined}, CHUNKED)": None}
                why |= {f"_too_large({', '.join(_sizes(s, names))})": None}
            elif isinstance(s, PrintedChunks):
                keys = " * ".join(f"self.{names.size(a)}" for a in s.scan.keys) or "1"
                keys = f"2 * {keys}" if isinstance(s, ChunksInFrame) else keys
                why |= {f"{declined}, CHUNKED)": None, f"_too_many_keys({keys})": None}
            elif isinstance(s, PrintedConvolution):
                keys = " * ".join(f"self.{names.size(a)}" for a in s.scan.keys)
                plain = f"_declined(device, {dtype}, named.split()[0], CHUNKED)"
                why |= {plain: None, f"_too_many_numbers({keys}, {s.most_keys})": None}
            elif isinstance(s, ElementwiseKernels):
                why |= {f"{declined})": None}
            if isinstance(s, SelectiveKernels) and s.complex:
                count = " * ".join(f"self.{names.size(a)}" for a in s.scan.keys)
                why |= {f"_too_many({count}, {s.most_pairs})": None}
        first, *others = why
        cuts = [line for s in filling for line in _cuts(s, names)]
        if cuts:
            cuts = [
                '            if torch.device(device).type == "cpu" or torch.cuda.is_available():',
                f"                x = torch.empty((), dtype={dtype}, device=device)",
                *cuts,
            ]
        tried = _tried(filling[0], dtype)
        # One token of mode recurrent runs in a kernel too.
        named = '        named = "auto" if (mode, length) == ("recurrent", 1) else mode'
        return (
            *((named,) if any(isinstance(s.plain, PrintedStep) for s in filling) else ()),
            f"        why = {first}",
            *(f"        why = why or {text}" for text in others),
            "        if not why:",
            f'            what = f"{what}"',
            f'            tried = "" if (_indexed(device), {tried}) in _TRIED else "not "',
            '            what = f"{what}, {tried}tried beside torch"',
            *cuts,
            *(bound_text("what +=", f"; {without}", " " * 12) if without else ()),
            '            return f"{what}; gauge: {State.gauge}; spec: {SPEC}"',
            '        where = f"torch on {device} ({why})"',
        )

    rotates = any(isinstance(s, ChunksInFrame) for s in filling)
    return torch.Target(
        plan=lambda plan: fused.plan,
        skeletons=lambda plan: filling,
        call=kernel_call,
        packages=(__package__ or "", *torch.TORCH.packages),
        imports=tuple(_IMPORTS.split("\n")),
        shared=shared,
        explained=explained,
        runs="{where}",
        runtime=section((runtime_text(),) if rotates else ()),
    )
