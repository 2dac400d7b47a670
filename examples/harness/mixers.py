"""Classes of the modules that an example's `run.sh` had compiled."""

from __future__ import annotations

from torch import nn

import dsfc
from harness.folders import BUILD


def mixer_class(example: str, name: str) -> type[nn.Module]:
    """Returns the emitted class of a mixer, from `build/<example>/modules`."""
    module = dsfc.import_module(BUILD / example / "modules" / f"{name}.py")
    return getattr(module, "".join(word.capitalize() for word in name.split("_")))
