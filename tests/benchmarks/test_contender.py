"""Layouts, gradients and names of one implementation."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.contender import Contender, Tensors


def scaled(x: Tensors) -> Tensor:
    """Time last: `u` `[B, d, L]`, `w` `[d]`."""
    assert x["u"].shape[1] == len(x["w"])
    return x["u"] * x["w"][:, None]


def arguments() -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(0)
    return {"u": torch.randn(2, 5, 3, generator=draw), "w": torch.randn(3, generator=draw)}


def test_results_come_back_with_time_second_whatever_the_layout() -> None:
    plain = Contender("plain", "", lambda x: x["u"] * x["w"])
    turned = Contender("turned", "", scaled, time_last=frozenset({"u", "y"}))
    given, cotangent = arguments(), torch.randn(2, 5, 3)
    want, got = (c.results(given, cotangent) for c in (plain, turned))
    assert set(want) == set(got) == {"y", "du", "dw"}
    for name, value in want.items():
        torch.testing.assert_close(got[name], value)


def test_forward_makes_no_graph_and_arguments_are_copies() -> None:
    contender = Contender("plain", "", lambda x: x["u"] * x["w"])
    given = arguments()
    laid = contender.lay_out(given)
    assert not contender.forward(laid).requires_grad
    assert all(laid[name].data_ptr() != given[name].data_ptr() for name in given)


def test_a_contender_differentiates_what_it_takes_only() -> None:
    contender = Contender("one", "", lambda x: 2 * x["u"], arguments=("u",))
    assert set(contender.results(arguments(), torch.ones(2, 5, 3))) == {"y", "du"}
