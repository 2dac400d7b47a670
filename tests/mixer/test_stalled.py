"""Parameters that gradient descent never moves, by what their mixers multiply."""

from __future__ import annotations

import pytest

from dsfc.mixer.resolve import resolve
from dsfc.mixer.stalled import stalled
from dsfc.source import Source
from dsfc.syntax.parse import parse


def stalled_in(body: str) -> tuple[str, ...]:
    text = f"mixer mine {{\n dims d\n input u : d\n param {body}\n}}\n"
    return stalled(resolve(parse(Source("mine.dsf", text))))


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("b, c : d\n y = b * c * u", ("b", "c")),
        ("b : d\n y = b * b * u", ("b",)),
        ("b : d\n y = b^2 * u", ("b",)),
        ("b, c : d\n y = tanh(b) * silu(c * u)", ("b", "c")),
        ("b, c : d\n y = b * c / (1 + exp(u))", ("b", "c")),
        ("b, c : d\n y = b * sum[j ≤ i](c * u[j])", ("b", "c")),
        ("b : d;  W : d -> d = 0\n y = W (b * u)", ("b", "W")),
        ("b, c, e : d\n y = e * u + b * c * u", ("b", "c")),
        ("b, c, Δ : d\n state x : d\n x' = b * u - x by zoh(Δ)\n y = c * x", ("b", "c", "Delta")),
        ("a, b, c : d\n state x : d\n x = a * x[i-1] + b * u\n y = c * x", ("b", "c")),
        ("b, c : d\n state x : d backward\n x = x[i+1] + b * u\n y = c * x", ("b", "c")),
    ],
)
def test_products_of_zeros_stall(body: str, names: tuple[str, ...]) -> None:
    assert stalled_in(body) == names


@pytest.mark.parametrize(
    "body",
    [
        "b : d;  W : d -> d\n y = W (b * u)",
        "b, c : d\n y = b * c * u + c * u",  # c moves, and with it b
        "b, c : d\n y = b * cos(c) * u",
        "b, c : d\n y = b * sigmoid(c) * u",
        "b : d;  c : d positive\n y = b * c * u",
        "b, c : d\n y = sqrt(b * c) * u",
        "b, c : d\n y = u / (b * c)",
        "b, c : d\n state m : d\n m = max(m[i-1] + b, c * u)\n y = b * m",
        "b, c : d\n y = softmax[d](b * c) * b * u",
    ],
)
def test_anything_else_trains(body: str) -> None:
    assert stalled_in(body) == ()
