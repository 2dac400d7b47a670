"""No attribute that a layer has anyway is free for a spec's names."""

from __future__ import annotations

import torch
from dsfc.backends.torch.reserved_names import RESERVED


def test_attributes_of_every_layer_are_reserved() -> None:
    assert {name for name in dir(torch.nn.Module()) if not name.startswith("_")} <= RESERVED
