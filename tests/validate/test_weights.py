"""Files of weights: read as tensors of finite numbers, and as nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dsfc.validate.weights import Unfit, read

WEIGHTS = torch.tensor([[1.0, 2.0]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensors_are_read_bit_for_bit(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.save({"W": WEIGHTS.to(dtype)}, tmp_path / "first.pt")
    found = read(tmp_path / "first.pt")["W"]
    assert found.dtype is dtype and torch.equal(found, WEIGHTS.to(dtype))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda w: w.to_sparse(), "is no dense tensor"),
        (lambda w: w.to("meta"), "is no dense tensor"),
        (lambda w: w.long(), "holds int64, not floating-point numbers"),
        (lambda w: w.to(torch.complex64), "holds complex64, not floating-point numbers"),
        (lambda w: w / 0, "is not finite"),
        (lambda w: w - float("nan"), "is not finite"),
    ],
)
def test_what_no_module_stores_is_refused(
    tmp_path: Path, spoil: Callable[[Tensor], Tensor], reason: str
) -> None:
    torch.save({"W": spoil(WEIGHTS)}, tmp_path / "first.pt")
    with pytest.raises(Unfit, match=reason):
        read(tmp_path / "first.pt")


def test_nobody_is_told_to_execute_a_file(tmp_path: Path) -> None:
    torch.save({"W": Path()}, tmp_path / "first.pt")
    with pytest.raises(Unfit, match="things other than tensors") as refused:
        read(tmp_path / "first.pt")
    assert "weights_only" not in str(refused.value)
