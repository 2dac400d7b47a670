"""Emitted modules in float16 err no more than plain torch does, by the rule of `dsfc verify`."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from dsfc.validate import precision
from dsfc.validate.surface import surface


@pytest.mark.share(8, ci=13)
def test_float16_errs_no_more_than_plain_torch(name: str, module: ModuleType) -> None:
    precision.low_precision(surface(module), (torch.float16,))
