"""Products of two tensors, summed over axes, as text that parses no string at run time."""

from __future__ import annotations

import pytest
import torch
from dsfc.backends.torch.contractions import contraction, updated

EQUATIONS = (
    "Bhn,Bhp->Bhnp",
    "Bn,Bhp->Bhnp",
    "Bhn,Bhnp->Bhp",
    "Bn,Bhnp->Bhp",
    "Bhp,Bhnp->Bhn",
    "Bhp,Bhnp->Bn",
    "Bhnp,Bhnp->Bh",
    "Bhnp,Bhnp->Bhn",
    "Bd,Bn->Bdn",
    "Bn,Bdn->Bd",
    "Bd,Bdn->Bn",
    "Bhk,Bkh->Bh",  # axes in two orders
)
SIZES = dict(zip("Bhnpdk", (2, 3, 4, 5, 3, 3), strict=True))


def operands(equation: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    a, b = equation.split("->")[0].split(",")
    draw = (torch.randn(*(SIZES[x] for x in axes), generator=generator) for axes in (a, b))
    x, y = draw
    return x.double(), y.double()


@pytest.mark.parametrize("equation", EQUATIONS)
def test_a_contraction_is_that_of_einsum(equation: str) -> None:
    x, y = operands(equation)
    found = eval(contraction(equation, "x", "y"), {"x": x, "y": y, "torch": torch})
    torch.testing.assert_close(found, torch.einsum(equation, x, y))


@pytest.mark.parametrize("equation", EQUATIONS[:-1])
def test_operands_in_one_order_need_no_einsum(equation: str) -> None:
    assert "einsum" not in contraction(equation, "x", "y")


@pytest.mark.parametrize("equation", [e for e in EQUATIONS if e.endswith(("nhp", "hnp", "dn"))])
@pytest.mark.parametrize("decay", [None, "d"])
def test_a_state_is_decayed_and_driven(equation: str, decay: str | None) -> None:
    x, y = operands(equation)
    drive = torch.einsum(equation, x, y)
    state, d = drive.cos(), drive.sin()
    given = {"k": x, "v": y, "S": state, "d": d, "torch": torch}
    found = eval(updated("S", decay, equation, "k", "v"), given)
    torch.testing.assert_close(found, (state if decay is None else d * state) + drive)
