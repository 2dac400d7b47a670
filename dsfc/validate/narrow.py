"""Runs a definition that insists on float64 in another dtype: the plain form in low precision."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class Narrow(TorchFunctionMode):
    """Inside, whatever asks for float64 gets another dtype.

    Args:
        dtype: the other dtype.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def __torch_function__(  # type: ignore[no-untyped-def]
        self,
        func,  # noqa: ANN001 - as in torch
        types,  # noqa: ANN001
        args=(),  # noqa: ANN001
        kwargs=None,  # noqa: ANN001
    ) -> Any:  # noqa: ANN401
        """Runs a call with every mention of float64 replaced."""
        if func is torch.Tensor.double:
            return args[0].to(self._dtype)
        args = tuple(self._dtype if a is torch.float64 else a for a in args)
        kwargs = {k: self._dtype if v is torch.float64 else v for k, v in (kwargs or {}).items()}
        return func(*args, **kwargs)
