"""Derived sizes of a layer: whole numbers, or a refusal that says of what."""

from __future__ import annotations

import re
from types import ModuleType
from zlib import crc32

import pytest

BODY = """dims d, h, n = {size}
  input u : d
  param W : d -> n; V : n -> h
  y = u * sum[h](V (W u))"""

SIZES = {
    "d": (4, "d"),
    "2 * d": (8, "2 * d"),
    "d / 2": (2, "d / 2"),
    "1/2 * d": (2, "d / 2"),
    "(d + 2) / 3": (2, "(d + 2) / 3"),
    "d / (h + 1)": (2, "d / (h + 1)"),
    "3 * d / 2": (6, "3 * d / 2"),
    "2/3 * (d + 2)": (4, "2 * (d + 2) / 3"),
    "d - h": (3, "d - h"),
    "d / 2 + 1": (3, "(d + 2) / 2"),
    "d / 4 + d / 2": (3, "(d + 2 * d) / 4"),
    "d / h + d / 2": (6, "(2 * d + d * h) / (2 * h)"),
    "h / d + 3 * h / d": (1, "(h + 3 * h) / d"),
    "d / h * 2": (8, "2 * d / h"),
    "d / h / 2": (2, "d / (2 * h)"),
    "(d / 2)^2": (4, "d**2 / 4"),
    "d^2": (16, "d**2"),
    "d^(-1) * 8": (2, "8 / d"),
    "2^h": (2, "2**h"),
    "(d / 2)^h": (2, "d**h / 2**h"),
    "d^(1/2)": (2, "d**0.5"),
    "d^(3/2)": (8, "d**1.5"),
    "(4 * d)^(1/2) + 1": (5, "(4 * d) ** 0.5 + 1"),
    "(d / 16)^(-1/2)": (2, "(0.0625 * d) ** -0.5"),
    "d^(1/2) * (9 * h)^(1/2)": (6, None),
}


def module_of(size: str, build) -> ModuleType:
    name = f"sized_{crc32(size.encode())}"
    module: ModuleType = build(name, BODY.format(size=size)).module
    return module


@pytest.mark.share(4)
@pytest.mark.parametrize("size", SIZES)
def test_a_derived_size_is_a_whole_number(size: str, build) -> None:
    module = module_of(size, build)
    cls = getattr(module, module.__all__[0])
    want, said = SIZES[size]
    layer = cls(d=4, h=1)
    assert layer.n == want and layer.W.shape == (want, 4) and type(layer.n) is int
    assert cls(d=5, h=3, n=7).n == 7
    assert said is None or f"n: size of the axis; {said} if not given." in (cls.__doc__ or "")


@pytest.mark.parametrize(
    ("size", "d", "h", "why"),
    [
        ("d / 2", 5, 1, "n = d / 2 = 5 / 2 is not whole; give n"),
        ("1/2 * d", 5, 1, "n = d / 2 = 5 / 2 is not whole; give n"),
        ("d / h", 5, 3, "n = d / h = 5 / 3 is not whole; give n"),
        ("d / 2 + 1", 5, 1, "n = (d + 2) / 2 = 7 / 2 is not whole; give n"),
        ("d / h / 2", 6, 2, "n = d / (2 * h) = 6 / 4 is not whole; give n"),
        ("2/3 * (d + 2)", 5, 1, "n = 2 * (d + 2) / 3 = 14 / 3 is not whole; give n"),
        ("d^(1/2)", 5, 1, "d = 5 has no whole root of degree 2; give n"),
        ("(d * h)^(1/3)", 5, 5, "d * h = 25 has no whole root of degree 3; give n"),
    ],
)
def test_a_size_that_is_not_whole_is_refused(size: str, d: int, h: int, why: str, build) -> None:
    module = module_of(size, build)
    with pytest.raises(ValueError, match=re.escape(why)):
        getattr(module, module.__all__[0])(d=d, h=h)


def test_the_variable_of_a_root_is_no_size(build) -> None:
    body = """dims d, n_root = 3, n = d^(1/2) * (4 * d)^(1/2)
      input u : d
      param W : d -> n; V : n -> n_root
      y = u * sum[n_root](V (W u))"""
    layer = build("rooted", body).module.Rooted(d=9)
    assert (layer.n, layer.n_root) == (18, 3)
