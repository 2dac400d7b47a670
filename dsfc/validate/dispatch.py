"""Modes of PyTorch's dispatch: what is called, what it makes, and in which dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Call:
    """One call of an operator of the module, as PyTorch saw it.

    Attributes:
        op: the overload.
        args: its arguments.
        outs: its results.
    """

    op: Any
    args: tuple[Any, ...]
    outs: tuple[Tensor, ...]


class OperatorSpy(TorchDispatchMode):
    """Notes the calls of one namespace's operators.

    Attributes:
        calls: what was called, in order.
    """

    def __init__(self, namespace: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self._namespace = namespace
        self.calls: list[Call] = []

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an operator overload
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Runs a call and notes it."""
        out = func(*args, **(kwargs or {}))
        if func.namespace == self._namespace:
            outs = tuple(x for x in tree_leaves(out) if isinstance(x, Tensor))
            self.calls.append(Call(func, tuple(args), outs))
        return out


class Allocations(TorchDispatchMode):
    """Counts operations and the numbers they make, inside the operators of a namespace too.

    Attributes:
        operations: how many.
        made: numbers in all results together.
        largest: numbers in the largest tensor that an operator of the namespace takes or makes.
    """

    def __init__(self, namespace: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self._namespace = namespace
        self._inside = False
        self.operations = self.made = self.largest = 0

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an operator overload
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Runs a call and counts what it makes."""
        if func.namespace == self._namespace:
            # The kernel runs with this mode on, so that its own operations are seen.
            self.largest = max(self.largest, *(stored(x) for x in args if isinstance(x, Tensor)))
            keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
            self._inside = True
            try:
                with self:
                    return func.redispatch(keys, *args, **(kwargs or {}))
            finally:
                self._inside = False
        pointers = {x.untyped_storage().data_ptr() for x in args if isinstance(x, Tensor)}
        out = func(*args, **(kwargs or {}))
        self.operations += 1
        for x in tree_leaves(out):
            if isinstance(x, Tensor) and x.untyped_storage().data_ptr() not in pointers:
                self.made += stored(x)
                self.largest = max(self.largest, stored(x) if self._inside else 0)
        return out


def stored(x: Tensor) -> int:
    """Returns how many numbers lie behind a tensor; an expanded axis is stored once."""
    return x.untyped_storage().nbytes() // x.element_size()


class Narrow(TorchFunctionMode):
    """Inside, whatever asks for float64 gets another dtype, and for complex128 its complex one.

    Complex numbers have no narrower dtype than that of float32.

    Args:
        dtype: the other dtype.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype
        wide = torch.promote_types(dtype, torch.float32)
        self._narrow = {torch.float64: dtype, torch.complex128: wide.to_complex()}

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401 - a function of torch
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Runs a call with every mention of the wide dtypes replaced."""
        if func is torch.Tensor.double:
            return args[0].to(self._dtype)
        if func in (torch.complex, torch.polar):
            args = tuple(x.to(torch.promote_types(x.dtype, torch.float32)) for x in args)
        args = tuple(map(self._narrowed, args))
        kwargs = {k: self._narrowed(v) for k, v in (kwargs or {}).items()}
        return func(*args, **kwargs)

    def _narrowed(self, argument: Any) -> Any:  # noqa: ANN401 - an argument of a torch function
        is_dtype = isinstance(argument, torch.dtype)
        return self._narrow.get(argument, argument) if is_dtype else argument
