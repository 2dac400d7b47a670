"""Arguments at which a kernel computes something other than the recurrence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.kernel_ir.interpret import KernelError, interpret
from dsfc.kernel_ir.ir import Access, Along, Kernel, Let, Load, Loop, Statement, Store, Symbol
from dsfc.kernel_ir.numbers import DOUBLES
from dsfc.kernel_proofs.recurrence import Recurrence

Array = NDArray[Any]

_SEEDS = 2
_APART = 1e-6
"""Relative to the largest entry; rounding of doubles leaves some 1e-13 over these lengths."""

_NUDGE = 1e-12
"""A relative change of all arguments, thousands of roundings."""

_AMPLIFIED = 1e3
"""How many times more than by the nudge a kernel must be apart, where rounding is amplified."""


def witness(kernel: Kernel, recurrence: Recurrence) -> str | None:
    """Returns where a kernel differs from the recurrence, as text; None if nowhere that is tried.

    Args:
        kernel: the kernel.
        recurrence: what it is to compute.
    """
    longest = max((a.size for a in _axes(kernel.body) if isinstance(a.size, int)), default=1)
    lengths = (1, longest + 1) if any(isinstance(s, Loop) for s in kernel.body) else (1,)
    for length in lengths:
        for seed in range(_SEEDS):
            difference = _at(kernel, recurrence, length, seed)
            if difference is not None:
                return f"{difference}, at L = {length} and the numbers of seed {seed}"
    return None


def _at(kernel: Kernel, recurrence: Recurrence, length: int, seed: int) -> str | None:
    sizes = _sizes(kernel, recurrence, length)
    arguments = _arguments(kernel, sizes, seed)
    nudged = {n: x * (1 + _NUDGE) for n, x in arguments.items()}
    try:
        got, moved = (interpret(kernel, x, sizes) for x in (arguments, nudged))
    except KernelError as e:
        return f"it does not run: {e}"
    want, aside = (recurrence.run(x, length, DOUBLES) for x in (arguments, nudged))
    for name, expected in want.items():
        apart = np.abs(got[name] - expected)
        # What rounding is amplified to is seen by rounding the arguments.
        shaky = np.abs(moved[name] - got[name]) + np.abs(aside[name] - expected)
        scale = max(1.0, float(np.abs(expected).max()))
        # What is no number is apart from all numbers.
        wrong = ~(apart <= np.maximum(_APART * scale, _AMPLIFIED * shaky))
        if np.isfinite(expected).all() and wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            values = f"{got[name][place]:.6g} instead of {expected[place]:.6g}"
            return f"{name}{list(place)} is {values}"
    return None


def _arguments(kernel: Kernel, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Small numbers; logarithms of decays are not positive, as callers promise."""
    draw = np.random.default_rng(seed)
    out = {}
    for a in kernel.arguments:
        if a.access is Access.READ:
            shape = tuple(sizes[s.name] for s in a.shape if isinstance(s, Symbol))
            values = draw.integers(1, 9, size=shape) / 8.0
            signs = draw.choice([-1.0, 1.0], size=shape)
            out[a.name] = -values / 4 if a.name == "g" else values * signs
            if a.name.startswith("g") and a.name != "g":
                out[a.name] = values / 4
    return out


def _sizes(kernel: Kernel, recurrence: Recurrence, length: int) -> dict[str, int]:
    """Two of all, three of what comes in parts."""
    sizes = {n: 2 for n in (*kernel.static, *kernel.dynamic)}
    sizes[recurrence.time] = length
    for a in _alongs(kernel.body):
        if isinstance(a.bound, Symbol) and isinstance(a.axis.size, str):
            if a.axis.size != a.bound.name:
                sizes[a.bound.name] = 3
    return sizes


def _alongs(body: tuple[Statement, ...]) -> list[Along]:
    out: list[Along] = []
    for s in body:
        match s:
            case Loop():
                out += _alongs(s.body)
            case Let(operation=Load() as access) | (Store() as access):
                out += [p for p in access.at if isinstance(p, Along)]
            case _:
                pass
    return out


def _axes(body: tuple[Statement, ...]) -> list[Any]:
    return [a.axis for a in _alongs(body)]
