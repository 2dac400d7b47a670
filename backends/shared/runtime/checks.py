"""Checks of arguments."""

from __future__ import annotations

from torch import Tensor

from .numbers import _accumulator, _autocast


def _tensors(**given: Tensor | None) -> None:
    """Raises a TypeError for an argument that is neither a tensor nor None."""
    for name, x in given.items():
        if not (x is None or isinstance(x, Tensor)):
            raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")


def _fits(
    name: str, x: Tensor, axes: str, sizes: tuple[int, ...], like: Tensor, wide: bool = False
) -> None:
    """Checks the shape, dtype and device of an input against a parameter.

    Args:
        name: of the input.
        x: the input.
        axes: its axes, as the documentation of the layer has them.
        sizes: of the axes behind batch and length.
        like: the parameter.
        wide: whether the parameter stays in float32 where the layer is cast to a narrower dtype.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
    if x.ndim != 2 + len(sizes) or x.shape[2:] != sizes:
        want = ", ".join(["B", "L", *map(str, sizes)])
        raise ValueError(f"{name} must be {axes} = [{want}], got {list(x.shape)}")
    dtype = _accumulator(x.dtype) if wide else x.dtype
    if not x.is_floating_point() or not (dtype == like.dtype or _autocast(x)):
        raise TypeError(f"{name} is {x.dtype}, want {like.dtype}: cast one of them")
    if x.device != like.device:
        raise ValueError(f"{name} is on {x.device}, want {like.device}")


def _some(x: Tensor) -> None:
    """Raises a ValueError for `[B, L, ...]` of no token."""
    if x.shape[1] == 0:
        raise ValueError("no token: give one at least")


def _legal(mode: str, modes: tuple[str, ...]) -> None:
    """Raises a ValueError for a mode that a mixer has not."""
    if mode not in ("auto", *modes):
        raise ValueError(f"mode must be auto or one of {', '.join(modes)}, got {mode!r}")


def _options(mode: str, modes: tuple[str, ...], chunk: int) -> None:
    """Raises a ValueError for a mode that a mixer has not, or a chunk of no tokens."""
    _legal(mode, modes)
    if not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f"chunk must be a whole number from 1 on, got {chunk}")


def _predicted(mode: str, times: dict[str, tuple[float, ...]]) -> str:
    """Says how long each mode should take, and what the mode that runs spends most of its time on.

    Args:
        mode: the one that runs.
        times: seconds of calls, operations and words, by mode.
    """
    each = ", ".join(f"{m} {1e3 * sum(t):.3g} ms" for m, t in times.items())
    most = max(zip(times[mode], ("calls", "operations", "words"), strict=True))[1]
    return f"predicted {each}; mostly {most}"
