"""Triton's interpreter, nearer to a GPU: it rounds as one, and patches its language once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    import triton.language as tl
    from triton.runtime.interpreter import ReduceOps, ReduceScanOpInterface, ScanOps


def as_a_gpu(setattr: Callable[[Any, str, Any], None] = setattr) -> None:
    """Changes the interpreter of this process.

    Float32 is rounded to the nearest bfloat16, where the interpreter cuts, so that all errors go
    one way. And it patches `triton.language` for every call inside a kernel, again each time.

    Args:
        setattr: sets what is changed, as `setattr` does; a test's `monkeypatch.setattr` undoes it.
    """
    from triton.runtime import interpreter

    setattr(interpreter, "_convert_float", _rounding(interpreter._convert_float))
    setattr(interpreter, "_patch_lang", _once(interpreter._patch_lang))
    setattr(interpreter.ScanOps, "generic_scan", _scanned)
    setattr(interpreter.ReduceOps, "generic_reduce", _reduced)


def _scanned(scan: ScanOps, tiles: Sequence[Any]) -> list[Any]:
    """The results of an associative scan, row by row along its axis."""
    return _packed(scan, tiles, list(_combined(scan, tiles)))


def _reduced(reduction: ReduceOps, tiles: Sequence[Any]) -> list[Any]:
    """The results of a reduction along an axis, likewise."""
    *_, last = _combined(reduction, tiles)
    if reduction.keep_dims:
        return _packed(reduction, tiles, [last])
    return list(last)


def _combined(of: ReduceScanOpInterface, tiles: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yields what the rows up to each one are combined to."""
    rows = [np.moveaxis(x.handle.data, of.axis, 0) for x in tiles]
    total: tuple[Any, ...] = ()
    for row in zip(*rows, strict=True):
        held = tuple(of.to_tensor(x, t.dtype) for x, t in zip(row, tiles, strict=True))
        after = of.combine_fn.fn(*total, *held) if total else held
        total = after if isinstance(after, tuple) else (after,)
        yield total


def _packed(
    of: ReduceScanOpInterface, tiles: Sequence[Any], rows: list[tuple[Any, ...]]
) -> list[Any]:
    shapes = [np.moveaxis(x.handle.data, of.axis, 0).shape[1:] for x in tiles]
    columns = zip(*rows, strict=True)
    return [
        of.to_tensor(np.stack([x.handle.data.reshape(s) for x in c], of.axis), t.dtype)
        for c, s, t in zip(columns, shapes, tiles, strict=True)
    ]


def _rounding(convert: Callable[..., Any]) -> Callable[..., Any]:
    import triton.language as tl

    kinds = {tl.float32: torch.float32, tl.bfloat16: torch.bfloat16}
    bits = {tl.float32: np.int32, tl.bfloat16: np.int16}

    def converted(x: NDArray[Any], given: tl.dtype, wanted: tl.dtype, mode: object) -> NDArray[Any]:
        if {given, wanted} != set(kinds):
            return np.asarray(convert(x, given, wanted, mode))
        held = torch.from_numpy(np.array(x).view(bits[given])).view(kinds[given])
        out = held.to(kinds[wanted]).view(getattr(torch, bits[wanted].__name__))
        return np.asarray(out.numpy().view(f"uint{wanted.primitive_bitwidth}"))

    return converted


def _once(patch: Callable[[FunctionType], object]) -> Callable[[FunctionType], object]:
    import triton.language as tl

    def patched(function: FunctionType) -> object:
        known = [x for x in function.__globals__.values() if x is tl or x is tl.core]
        if all(getattr(x.static_range, "__name__", "") == "_new_range" for x in known):
            return SimpleNamespace(restore=lambda: None)
        return patch(function)

    return patched
