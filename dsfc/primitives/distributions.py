"""Random distributions that initialisers may draw from, with their torch printers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Distribution:
    """One row.

    Attributes:
        name: the name in specs.
        arity: number of arguments (numbers, or expressions over sizes).
        torch: text that gives a tensor: `{shape}` is its shape, `{0}`, `{1}` the arguments.
        meaning: one line.
    """

    name: str
    arity: int
    torch: str
    meaning: str


_ROWS = (
    Distribution(
        "uniform",
        2,
        "torch.empty({shape}).uniform_({0}, {1})",
        "uniform on [a, b)",
    ),
    Distribution(
        "normal",
        2,
        "torch.empty({shape}).normal_({0}, {1})",
        "normal with mean and standard deviation",
    ),
    Distribution(
        "log_uniform",
        2,
        "torch.exp(torch.empty({shape}).uniform_(math.log({0}), math.log({1})))",
        "exp of a uniform draw on [log a, log b)",
    ),
    Distribution(
        "orthogonal_chi",
        1,
        "({0}) * torch.nn.init.orthogonal_(torch.empty({shape}))"
        " * torch.randn({shape}).norm(dim=-1, keepdim=True)",
        "rows orthogonal with the lengths of Gaussian vectors, times a scale (random features)",
    ),
)

DISTRIBUTIONS: Mapping[str, Distribution] = MappingProxyType({r.name: r for r in _ROWS})


def distribution(name: str) -> Distribution:
    """Returns the row of a distribution.

    Raises:
        KeyError: there is none.
    """
    return DISTRIBUTIONS[name]
