"""Kernels and their scans, and kernels with all operations changed by a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import dsfc
from dsfc.emit.backend import load_backend
from dsfc.kernel_ir.ir import Kernel, Let, Loop, Operation, Statement
from dsfc.kernels import chunkwise
from dsfc.plan.scan_ir import Scan


@cache
def scan_of(mixer: str) -> Scan:
    (scan,) = (k for k in dsfc.load(mixer).plan.kernels if isinstance(k, Scan))
    return scan


def in_chunks(mixer: str, chunk: int, shared: bool = False) -> tuple[Kernel, Scan]:
    return chunkwise.forward(scan_of(mixer), shared, chunk=chunk), scan_of(mixer)


def gradient_in_chunks(mixer: str, chunk: int) -> tuple[Kernel, Scan]:
    (adjoint,) = dsfc.load(mixer).plan.adjoints
    return chunkwise.backward(scan_of(mixer), adjoint, False, chunk=chunk), scan_of(mixer)


@cache
def of_backend(mixer: str, number: int) -> tuple[Kernel, Scan]:
    return load_backend("c").kernels(dsfc.load(mixer).fused("c"))[number], scan_of(mixer)


def by_tokens(mixer: str) -> tuple[Kernel, Scan]:
    return of_backend(mixer, 0)


def gradient_by_tokens(mixer: str) -> tuple[Kernel, Scan]:
    return of_backend(mixer, 1)


def changed(kernel: Kernel, function: Callable[[Operation], Operation]) -> Kernel:
    """A kernel with each operation replaced; nothing checks that it is one of the IR."""

    def of(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            replace(s, operation=function(s.operation))
            if isinstance(s, Let)
            else replace(s, body=of(s.body))
            if isinstance(s, Loop)
            else s
            for s in body
        )

    return replace(kernel, body=of(kernel.body))
