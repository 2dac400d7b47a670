"""Errors are what they say, and what is not comparable is infinitely wrong."""

from __future__ import annotations

import math

import pytest
import torch

from dsfc.validate.compare import (
    EXACT,
    BrokenPromiseError,
    agree,
    bar_share,
    errors,
    relative_error,
    same,
)

NAN, INF = math.nan, math.inf


def t(*values: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    ("got", "want", "error"),
    [
        (t(1.0, 2.0), t(1.0, 2.0), 0.0),
        (t(1.0, 2.5), t(1.0, 2.0), 0.25),
        (t(0.5, 2.0), t(0.0, 2.0), 0.25),  # measured against the largest, not entry by entry
        (t(), t(), 0.0),
        (t(0.0), t(0.0), 0.0),
        (t(1e-30), t(0.0), INF),
        (t(1.0), t(1.0, 1.0), INF),
        (t(NAN, 1.0), t(NAN, 1.0), 0.0),
        (t(NAN, 1.0), t(1.0, 1.0), INF),
        (t(1.0, 1.0), t(NAN, 1.0), INF),
        (t(INF, 1.0), t(INF, 1.0), 0.0),
        (t(-INF, 1.0), t(INF, 1.0), INF),
        (t(NAN, 1.0), t(INF, 1.0), INF),
        (t(1.0, dtype=torch.bfloat16), t(2.0), 0.5),
    ],
)
def test_relative_error(got: torch.Tensor, want: torch.Tensor, error: float) -> None:
    assert relative_error(got, want) == error


def test_agreement_names_the_tensor_and_the_case() -> None:
    want = {"y": t(1.0), "gradient of u": t(2.0)}
    assert agree({"y": t(1.0), "gradient of u": t(2.0)}, want, EXACT, "L = 3") == 0.0
    with pytest.raises(BrokenPromiseError, match=r"L = 3: gradient of u is off by 5\.0e-01"):
        agree({"y": t(1.0), "gradient of u": t(3.0)}, want, EXACT, "L = 3")
    with pytest.raises(BrokenPromiseError, match=r"y has shape \[2\], not \[1\]"):
        agree({"y": t(1.0, 1.0), "gradient of u": t(2.0)}, want, EXACT, "L = 3")
    with pytest.raises(BrokenPromiseError, match="gives y, not y, gradient of u"):
        agree({"y": t(1.0)}, want, EXACT, "L = 3")


def test_a_gradient_that_vanishes_is_measured_against_its_neighbours() -> None:
    noise = {"y": t(1.0), "gradient of q": t(1e-17)}
    agree({"y": t(1.0), "gradient of q": t(0.0)}, noise, EXACT, "")
    with pytest.raises(BrokenPromiseError):
        agree({"y": t(1.0), "gradient of q": t(1e-9)}, noise, EXACT, "")


def test_nan_is_never_good() -> None:
    with pytest.raises(BrokenPromiseError):
        agree({"y": t(NAN)}, {"y": t(1.0)}, EXACT, "")


def test_same_is_bit_for_bit() -> None:
    same(t(1.0, NAN), t(1.0, NAN), "run twice")
    for other in (t(1.0 + 2e-16, NAN), t(1.0, 1.0), t(1.0, NAN, dtype=torch.float32), t(1.0)):
        with pytest.raises(BrokenPromiseError, match="run twice"):
            same(other, t(1.0, NAN), "run twice")


def low(y: float, gradient: float) -> dict[str, torch.Tensor]:
    return {"y": t(1.0 + y, 0.5), "gradient of u": t(2.0 + 2 * gradient)}


TRUTH = {"y": t(1.0, 0.5), "gradient of u": t(2.0)}


def share(got: tuple[float, float], plain: tuple[float, float]) -> float:
    found, yardstick = [errors(low(*x), TRUTH) for x in (got, plain)]
    return bar_share([found, found], [yardstick, yardstick], torch.float32, "chunked")


def test_low_precision_is_held_to_the_plain_form() -> None:
    assert share((1e-5, 1e-5), (1e-5, 1e-5)) == pytest.approx(0.5)
    assert share((2e-5, 3e-5), (1e-5, 1e-5)) == pytest.approx(1.0)
    with pytest.raises(BrokenPromiseError, match=r"y is off by 2\.1e-05, 2\.1 times plain torch"):
        share((2.1e-5, 0.0), (1e-5, 1e-5))
    with pytest.raises(BrokenPromiseError, match="gradient of u"):
        share((0.0, 3.1e-5), (1e-5, 1e-5))


def test_half_a_unit_in_the_last_place_is_granted() -> None:
    eps = torch.finfo(torch.float32).eps
    assert share((0.9 * eps, 0.0), (0.0, 0.0)) <= 1.0
    with pytest.raises(BrokenPromiseError):
        share((1.1 * eps, 0.0), (0.0, 0.0))


def test_what_is_not_finite_breaks_the_bar() -> None:
    with pytest.raises(BrokenPromiseError):
        share((NAN, 0.0), (1e-5, 1e-5))
