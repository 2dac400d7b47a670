"""What initialisers may start from after `~`: distributions, and sequences that papers start from.

The sequences are those of HiPPO-LegS (Gu et al. 2020), from which S4 starts (Gu et al. 2022). With
a_k = k + 1/2 its matrix A has -2 √(a_j a_k) below the diagonal and -(k + 1) on it. A + P Pᵀ with
P = √a is normal: -1/2 + S for a skew S with -√(a_j a_k) below its diagonal. In the eigenvectors V
of S, A is diag(-1/2 + iω) - P P^* with P = V^* √a, and its input weight √(2 k + 1) is √2 P. The
phases of V are free, and those that make P positive are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Distribution:
    """One row.

    Attributes:
        name: the name in specs.
        arity: number of arguments (numbers, or expressions over sizes).
        torch: text that gives a tensor: `{shape}` is its shape, `{0}`, `{1}` the arguments; of a
            sequence, `{size}` is its length and `{like}` has its dtype and device.
        meaning: one line.
        ends: the two ends of what is drawn, from the arguments; raises a ValueError that says what
            is wrong with them. None for a sequence.
        sequence: its values, from the arguments. It stands along one axis, `name[n](…)`, which has
            the last of them. None for a distribution.
        draw: an array of a shape, from a generator, the shape and the arguments. None for a
            sequence.
    """

    name: str
    arity: int
    torch: str
    meaning: str
    ends: Callable[..., tuple[float, float]] | None = None
    sequence: Callable[..., Array] | None = None
    draw: Callable[..., Array] | None = None


_DEVIATIONS = 3.0
"""A tensor of hundreds of normal draws has one beyond."""


def _uniform(low: float, high: float) -> tuple[float, float]:
    if not low <= high:
        raise ValueError("low end must not be above its high end")
    return low, high


def _log_uniform(low: float, high: float) -> tuple[float, float]:
    if not low > 0:
        raise ValueError("low end must be above 0")
    return _uniform(low, high)


def _normal(mean: float, deviation: float) -> tuple[float, float]:
    if not deviation >= 0:
        raise ValueError("deviation must not be negative")
    return mean - _DEVIATIONS * deviation, mean + _DEVIATIONS * deviation


def _scaled(scale: float) -> tuple[float, float]:
    return -scale, scale


def _orthogonal_chi(generator: np.random.Generator, shape: tuple[int, ...], scale: float) -> Array:
    """Orthonormal rows of a matrix (columns, where there are more rows), with Gaussian lengths."""
    rows, columns = shape[0], int(np.prod(shape[1:], dtype=int))
    q, r = np.linalg.qr(generator.standard_normal((max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diagonal(r))
    basis = (q.T if rows < columns else q).reshape(shape)
    lengths = np.linalg.norm(generator.standard_normal(shape), axis=-1, keepdims=True)
    return np.asarray(scale * basis * lengths)


def _legs(size: float) -> tuple[Array, NDArray[np.complex128], Array]:
    """ω, V and √a of HiPPO-LegS of a size."""
    a = np.arange(0.5, size)
    return (*np.linalg.eigh(1j * np.tril(np.sqrt(np.outer(a, a)), -1)), np.sqrt(a))


def _legs_frequency(size: float) -> Array:
    return _legs(size)[0]


def _legs_low_rank(size: float) -> Array:
    _, basis, root = _legs(size)
    return np.asarray(np.abs(basis.conj().T @ root))


_ROWS = (
    Distribution(
        "uniform",
        2,
        "torch.empty({shape}).uniform_({0}, {1})",
        "uniform on [a, b)",
        _uniform,
        draw=lambda generator, shape, low, high: generator.uniform(low, high, shape),
    ),
    Distribution(
        "normal",
        2,
        "torch.empty({shape}).normal_({0}, {1})",
        "normal with mean and standard deviation",
        _normal,
        draw=lambda generator, shape, mean, width: generator.normal(mean, width, shape),
    ),
    Distribution(
        "log_uniform",
        2,
        "torch.exp(torch.empty({shape}).uniform_(math.log({0}), math.log({1})))",
        "exp of a uniform draw on [log a, log b)",
        _log_uniform,
        draw=lambda generator, shape, low, high: np.exp(
            generator.uniform(np.log(low), np.log(high), shape)
        ),
    ),
    Distribution(
        "orthogonal_chi",
        1,
        "({0}) * torch.nn.init.orthogonal_(torch.empty({shape}))"
        " * torch.randn({shape}).norm(dim=-1, keepdim=True)",
        "rows orthogonal with the lengths of Gaussian vectors, times a scale (random features)",
        _scaled,
        draw=_orthogonal_chi,
    ),
    Distribution(
        "legs_frequency",
        1,
        "_legs_frequency({0}, {size}, {like})",
        "the last frequencies of HiPPO-LegS of a size, ascending: -1/2 + iω is its normal part",
        sequence=_legs_frequency,
    ),
    Distribution(
        "legs_low_rank",
        1,
        "_legs_low_rank({0}, {size}, {like})",
        "the low-rank part of HiPPO-LegS, at `legs_frequency`; √2 times it is its input weight",
        sequence=_legs_low_rank,
    ),
)

DISTRIBUTIONS: Mapping[str, Distribution] = MappingProxyType({r.name: r for r in _ROWS})


def distribution(name: str) -> Distribution:
    """Returns the row of a distribution or sequence.

    Raises:
        KeyError: there is none.
    """
    return DISTRIBUTIONS[name]
