"""Kernels of single tokens, and of a few, of scans of any form: what decoding runs.

    h_i = λ_i h_{i-1} + key_i ⊗ value_i        y_i = Σ_keys read_i · h_i

A chunk pays where it is full, and one token is one pass over the state. `tokens` builds that pass;
here a scan gets the axes that the tensors of its operators have. Where heads, keys and channels are
one axis each, they are h, n and p; a convolution has its responses instead of heads, and no
channels. No gradient is built: where gradients are asked for, torch runs a token.

Of a few tokens, the states after all of them are kept, so that a decoder may go back to any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dsfc.expr.tree import Axis, Field, Now, Ref, Time
from dsfc.kernel_ir.ir import Kernel
from dsfc.kernels import chunkwise, convolution, tokens
from dsfc.kernels.operands import decays_by_keys
from dsfc.plan.ir import Buffer, Role
from dsfc.plan.scan_ir import Column, DeltaRule, LogDecay, LowRank, Scan

HEADS, KEYS, CHANNELS = Axis(0, "h", heads=True), Axis(1, "n"), Axis(2, "p")
"""The axes of grouped tensors: heads or responses, keys, channels."""


def has_step(scan: Scan) -> bool:
    """Whether a scan has this kernel; one whose kernels go token by token anyway needs none."""
    grouped = scan.form in chunkwise.CHUNK and not scan.powers
    return grouped or has_constants(scan)


def has_constants(scan: Scan) -> bool:
    """Whether a scan's decay, key and read are constants, each a row of the batch."""
    return convolution.has_convolution(scan)


def step(scan: Scan, shared: bool, name: str = "step") -> Kernel:
    """Returns the kernel that computes the output of one token and the state after it.

    Args:
        scan: a scan that has it.
        shared: whether read and key are the same for all heads.
        name: of the kernel.
    """
    return tokens.step(*_grouped(scan, shared), name)


def steps(scan: Scan, shared: bool, name: str = "steps") -> Kernel:
    """Returns the kernel that computes the outputs of some tokens and the state after each.

    Args:
        scan: a scan that has it.
        shared: whether read and key are the same for all heads.
        name: of the kernel.
    """
    return tokens.steps(*_grouped(scan, shared), name)


def _grouped(scan: Scan, shared: bool) -> tuple[Scan, dict[str, Buffer], dict[str, str]]:
    """A scan of the axes that the operator's tensors have, its arrays and its leaf of log λ."""
    is_fixed = has_constants(scan)
    own, grouped = (HEADS,), (HEADS, KEYS)
    of_keys = (KEYS,) if shared else grouped
    decay = grouped if is_fixed or decays_by_keys(scan) else own
    axes = {"q": of_keys, "k": of_keys, "g": decay, "a": grouped, "b": grouped, "r": own}
    as_grouped = replace(
        scan,
        heads=own,
        keys=(KEYS,),
        channels=() if is_fixed else (CHANNELS,),
        decay=scan.decay and _log_decay(decay, scan.field),
        key="k",
        read="q",
        columns=(Column("v", "o", "S", () if is_fixed else (CHANNELS,)),),
        low_rank=scan.low_rank and LowRank("a", "b"),
        delta=scan.delta and DeltaRule("r"),
    )
    leaves = {"g": "g"} if scan.decay is not None else {}
    arrays = {n: _array(n, a, scan, is_fixed) for n, a in axes.items()}
    return as_grouped, arrays, leaves


def _log_decay(axes: Iterable[Axis], field: Field) -> LogDecay:
    """The decay of which the logarithm is the one leaf g."""
    return LogDecay(Ref("g", frozenset(axes), field, Time.TOKEN, Now()), ("g",))


def _array(name: str, axes: tuple[Axis, ...], scan: Scan, is_fixed: bool) -> Buffer:
    role = Role.CONSTANT if is_fixed else Role.STREAM
    return Buffer(name, axes, scan.field, role)
