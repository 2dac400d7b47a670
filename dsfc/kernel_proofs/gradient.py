"""The gradient of a recurrence, as polynomials: what a kernel that runs backwards is held to.

With cotangents ō of outputs and S̄ of the last state, the gradient of an argument x is

    ∂/∂x ( Σ ō · y(x) + Σ S̄ · h_L(x) )

The bracket is a polynomial, which is differentiated term by term: no adjoint is written down here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Kernel, Symbol
from dsfc.kernel_proofs.exact import Exact, ExactNumbers, Undecided, polynomial_of
from dsfc.kernel_proofs.recurrence import Recurrence, symbolic_arguments
from dsfc.trusted.polynomial import POLYNOMIAL_ZERO, Monomial, Polynomial

SIZES = 2
"""Entries of each dimension but the batch and time, keys and channels all in one part."""


def check_gradient(kernel: Kernel, recurrence: Recurrence) -> tuple[int, ...]:
    """Returns the lengths at which a kernel is shown to compute all gradients.

    Args:
        kernel: reads what the recurrence does and both cotangents, writes each gradient.
        recurrence: what it is the gradient of.

    Raises:
        Undecided: a gradient is another one, or cannot be told.
    """
    chunk = max((a.size for a in kernel.order if isinstance(a.size, int)), default=1)
    scan = recurrence.scan
    # What a triangular system is solved for has no name here, and grows by each token.
    grows = scan.low_rank is not None or scan.delta is not None
    lengths = (1, 2, 3) if chunk == 1 or grows else (1, chunk + 1)
    sizes = {n: SIZES for n in (*kernel.static, *kernel.dynamic)} | {recurrence.rows: 1}
    sizes |= {g.count.name: 1 for g in kernel.grid if isinstance(g.count, Symbol)}
    for length in lengths:
        chunks = -(-length // chunk)
        of = _Gradients(kernel, recurrence, {**sizes, recurrence.time: length})
        for span in {1, chunks}:
            of.check({"SPAN": span, "SPANS": chunks // span})
    return lengths


class _Gradients:
    """The gradients of a recurrence at some sizes, by symbols."""

    def __init__(self, kernel: Kernel, recurrence: Recurrence, sizes: Mapping[str, int]) -> None:
        self._kernel, self._recurrence, self._sizes = kernel, recurrence, sizes
        self._arguments = symbolic_arguments(kernel, sizes)
        numbers = ExactNumbers().beside()
        of = recurrence.run(self._arguments, sizes[recurrence.time], numbers)
        cotangents = {"o": self._arguments["do"], "S_last": self._arguments["dS_last"]}
        total = sum(((of[n] * cotangents[n]).sum() for n in cotangents), Exact(POLYNOMIAL_ZERO))
        self._wanted = derivatives(polynomial_of(total), numbers.exponents)

    def check(self, spans: Mapping[str, int]) -> None:
        """Checks what the kernel writes, with chunks in some spans.

        Raises:
            Undecided: a gradient is another one.
        """
        numbers = ExactNumbers().beside()
        got = interpret(self._kernel, self._arguments, {**self._sizes, **spans}, numbers)
        for name in self._recurrence.inputs:
            entries, result = self._arguments[name], got[f"d{name}"]
            if result.size != entries.size:
                raise Undecided(f"d{name} has another shape than {name}")
            for place, entry in zip(np.ndindex(*entries.shape), result.ravel(), strict=True):
                (symbol,) = polynomial_of(entries[place]).names
                if polynomial_of(entry) != self._wanted.get(symbol, POLYNOMIAL_ZERO):
                    at = ", ".join(map(str, place))
                    raise Undecided(f"entry ({at}) of d{name} is not the derivative")


def derivatives(p: Polynomial, exponents: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """Returns the derivatives of a polynomial by its symbols, those other than 0.

    Args:
        p: the polynomial.
        exponents: what each generator that is an exponential is one of.
    """
    out: dict[str, dict[Monomial, Any]] = defaultdict(lambda: defaultdict(int))
    for monomial, c in p.terms.items():
        for name, rest, factor in _parts(monomial, exponents):
            for m, d in rest.terms.items():
                out[name][m] += c * factor * d
    return {name: Polynomial(terms) for name, terms in out.items()}


def _parts(
    monomial: Monomial, exponents: Mapping[str, Polynomial]
) -> Iterator[tuple[str, Polynomial, int]]:
    """Yields (symbol, cofactor, factor) of the derivatives of a monomial, by the product rule."""
    for i, (name, power) in enumerate(monomial):
        if name in exponents:
            # (exp m)ᵉ has the derivative e · (exp m)ᵉ · ∂m.
            whole = Polynomial({monomial: Fraction(1)})
            for symbol, inner in derivatives(exponents[name], exponents).items():
                yield symbol, whole * inner, power
        else:
            left = ((name, power - 1),) if power != 1 else ()
            others = (*monomial[:i], *left, *monomial[i + 1 :])
            yield name, Polynomial({others: Fraction(1)}), power
