"""Prints the call of an operator that computes its gates."""

from __future__ import annotations

from dsfc.plan.ir import Role

from ..torch.calls import ScanCall
from .elementwise import ElementwiseKernels


class KernelCall(ScanCall):
    """Prints the statements of one call; see `ElementwiseKernels` for what it takes."""

    def _token_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        s = self._s
        if not isinstance(s, ElementwiseKernels):
            return super()._token_arguments(before)
        (column,) = s.scan.columns
        tile = self._tile(column)
        arguments = []
        for name in s.gates.tokens:
            dtype = "wide" if name in s.wide else "dtype"
            arguments.append(f"{self._expanded(name, tile)}.to({dtype})")
        arguments += [self._by_batch(name) for name in s.gates.constants]
        state = self._states(before)
        return [*arguments, f"{state}.to(wide)", "lengths"], state, None

    def _by_batch(self, name: str) -> str:
        """A constant as `[B, *axes]`."""
        (column,) = self._s.scan.columns
        axes, tile = self._arrays(name).axes, self._tile(column)
        assert self._arrays(name).role is Role.CONSTANT
        text = f"{self._ident(name)}.to(wide)"
        if axes and axes != tile:
            text += f"[{', '.join(':' if a in axes else 'None' for a in tile)}]"
        return f"{text}.expand({', '.join([f'{self._like}.shape[0]', *map(self._size, tile)])})"
