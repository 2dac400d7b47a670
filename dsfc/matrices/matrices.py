"""Λ_i, B_i, C_i, D_i and the kernel Φ_{ij} of a System, as SymPy objects to calculate with.

    h_i = Λ_i h_{i-1} + B_i u_i,   y_i = Re(C_i h_i + D_i u_i),   Φ_{ij} = C_i Λ_i ⋯ Λ_{j+1} B_j

Without sizes they are matrix expressions in Kronecker form (`kronecker_matrices`), with sizes
explicit matrices (`linear_system`), whose entries are exact: token-wise values are symbols with the
token as first index (k_{2,0,1} is head 0, key 1 of k at token 2), parameters and constants are
symbols without. The vector of a state has the order (head, channel, key fastest). Nothing is
expanded or simplified.

Gauges. "lowered" is the System as stored: for attention Λ = I and 1/η in C. "paper" is that of
Sieber et al. 2024 eq. 15 with the index corrected: the states divided by what their reads are
divided by, so that Λ_i = η_{i-1}/η_i, B_i = ψ_i/η_i (not ψ_i/η_{i-1}) and C_i = φ_iᵀ. Both have the
same Φ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from dsfc.expr.sympy_bridge import Symbolic
from dsfc.expr.tree import Axis
from dsfc.matrices.kronecker_form import kronecker_form
from dsfc.matrices.kronecker_matrices import KroneckerSystem
from dsfc.matrices.linear import linear_parts
from dsfc.matrices.linear_system import LinearSystem
from dsfc.matrices.symbolic import Setting, SymbolScope, column
from dsfc.system.ir import System

GAUGES = ("lowered", "paper")


def matrices(
    system: System,
    gauge: str = "lowered",
    sizes: Mapping[str, int] | None = None,
    length: int | None = None,
    output: int = 0,
) -> Matrices:
    """Returns the matrices of a System, in Kronecker form or at chosen sizes.

    Args:
        system: the System.
        gauge: "lowered" or "paper", see the module docstring.
        sizes: None for Kronecker form of symbolic size; else size of each axis by name, left out
            1 for heads and 2 for all others.
        length: number of tokens; only for explicit matrices of systems that read the future, else
            tokens do not end.
        output: which output of the System.

    Raises:
        ValueError: no such gauge or axis, or a size below 1.
    """
    if gauge not in GAUGES:
        raise ValueError(f"no gauge {gauge!r}; there are {', '.join(GAUGES)}")
    setting = None if sizes is None else Setting(system, _sizes(system, sizes), length)
    return Matrices(system, gauge, setting, output)


class MatrixPart(Protocol):
    """What the matrices of a part offer in either form."""

    def Lambda(self, i: int) -> Symbolic:
        """Returns Λ_i."""

    def B(self, i: int) -> Symbolic:
        """Returns B_i."""

    def C(self, i: int) -> Symbolic:
        """Returns C_i."""

    def D(self, i: int) -> Symbolic:
        """Returns D_i."""

    def Phi(self, i: int, j: int) -> Symbolic:
        """Returns Φ_{ij}."""


def _sizes(system: System, chosen: Mapping[str, int]) -> dict[Axis, int]:
    unknown = set(chosen) - {d.axis.name for d in system.axes}
    if unknown or any(v < 1 for v in chosen.values()):
        raise ValueError(f"no axis {sorted(unknown)}" if unknown else "sizes are at least 1")
    out: dict[Axis, int] = {}
    for d in system.axes:
        root = next((a for a in out if a.name == d.axis.copy_of), None)
        if d.axis.name in chosen:
            out[d.axis] = chosen[d.axis.name]
        elif root is not None:
            out[d.axis] = out[root]
        else:
            out[d.axis] = 1 if d.axis.heads else 2
    return out


@dataclass(frozen=True, eq=False)
class Matrices:
    """The matrices of a System in one gauge, at fixed sizes.

    `Lambda`, `B`, `C`, `D` and `Phi` are those of the first part, the one nearest to the output.
    A ratio has the parts "num" and "den" besides, each with the same methods; in the first part its
    denominator is the symbol η, which `explicit` writes out.

    Attributes:
        system: the System.
        gauge: "lowered" or "paper".
        setting: sizes and symbols of explicit matrices; None in Kronecker form.
        output: which output.
    """

    system: System
    gauge: str
    setting: Setting | None = None
    output: int = 0

    @cached_property
    def parts(self) -> Mapping[str, MatrixPart]:
        """The linear parts of the output by name."""
        return self.explicit_parts if self.setting else self._kronecker_parts

    @cached_property
    def explicit_parts(self) -> Mapping[str, LinearSystem]:
        """The parts as explicit matrices.

        Raises:
            ValueError: no sizes were given.
        """
        if self.setting is None:
            raise ValueError("explicit matrices need sizes")
        parts = linear_parts(self.system, self.output)
        in_paper = self.gauge == "paper"
        return {p.name: LinearSystem(self.setting, p, in_paper) for p in parts}

    @cached_property
    def _kronecker_parts(self) -> Mapping[str, KroneckerSystem]:
        parts = linear_parts(self.system, self.output)
        in_paper = self.gauge == "paper"
        return {p.name: KroneckerSystem(self.system, p, in_paper) for p in parts}

    @property
    def first(self) -> MatrixPart:
        """The part nearest to the output.

        Raises:
            ValueError: nothing in the output is linear in states or inputs.
        """
        if not self.parts:
            raise ValueError(f"`{self.system.name}` has no linear part: no Λ, B, C, D")
        return next(iter(self.parts.values()))

    def Lambda(self, i: int) -> Symbolic:
        """Returns Λ_i of the first part: N × N for a state of N numbers.

        Args:
            i: number of the token, from 0 on.
        """
        return self.first.Lambda(i)

    def B(self, i: int) -> Symbolic:
        """Returns B_i of the first part: N × d for d inputs.

        Args:
            i: number of the token, from 0 on.
        """
        return self.first.B(i)

    def C(self, i: int) -> Symbolic:
        """Returns C_i of the first part: p × N for p outputs.

        `parts` has it per lag where there are several.

        Args:
            i: number of the token, from 0 on.
        """
        return self.first.C(i)

    def D(self, i: int) -> Symbolic:
        """Returns D_i of the first part: p × d.

        Args:
            i: number of the token, from 0 on.
        """
        return self.first.D(i)

    def Phi(self, i: int, j: int) -> Symbolic:
        """Returns Φ_{ij} of the first part, p × d: what the input of token j gives at token i.

        Args:
            i: number of the token of the output, from 0 on.
            j: number of the token of the input.
        """
        return self.first.Phi(i, j)

    def explicit(self, value: Symbolic, tokens: int) -> Symbolic:
        """Returns an expression or matrix with the symbols of denominators written out.

        Args:
            value: what holds them.
            tokens: the denominators of the tokens before this one are written out.
        """
        parts = self.explicit_parts.values()
        known: dict[Symbolic, Symbolic] = {}
        for part in parts:
            for name in part.normalisers:
                den = next(p for p in parts if p.part.root is name.ratio.den)
                for i in range(tokens):
                    symbols = column(SymbolScope(part.setting, i), name.ref, den.output_axes)
                    known.update(zip(symbols, den.guarded(i, name.ratio.guard), strict=True))
        return value.xreplace(known)

    def __str__(self) -> str:
        """Returns Λ, B, C, D in Kronecker form, or the shapes of explicit ones."""
        if self.setting is None:
            return kronecker_form(self.system, self.gauge).rstrip("\n")
        from dsfc.matrices.html import shapes

        return shapes(self)

    def __repr__(self) -> str:
        """Returns one line for a terminal; `print` shows the matrices."""
        form = "Kronecker form" if self.setting is None else "explicit"
        return f"<Matrices Λ, B, C, D of {self.system.name}: {form}, {self.gauge} gauge>"

    def _repr_markdown_(self) -> str:
        """Returns what a notebook shows: Λ, B, C, D in Kronecker form, or small explicit ones."""
        from dsfc.matrices.html import markdown

        return markdown(self)
