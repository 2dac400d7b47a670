"""Classes of the modules that an example's `run.sh` had compiled."""

from __future__ import annotations

import importlib

from torch import nn


def mixer_class(example: str, name: str) -> type[nn.Module]:
    """Returns the emitted class of a mixer, from `examples/<example>/generated`."""
    module = importlib.import_module(f"{example}.generated.{name}")
    return getattr(module, "".join(word.capitalize() for word in name.split("_")))
