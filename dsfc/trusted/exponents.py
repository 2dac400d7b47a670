"""Exponentials of what only adds up: e^c is a state of its own where c is a sum over the past.

Let c be an entry of a state with c_i = c_{i-1} + d, where d holds no states. Then e^c and e^{-c}
are multiplied by e^d and e^{-d} at each token. Kept is what they are beyond 1, as a state starts at
0. So a scan in log space and a plain product are polynomials in states, and rows relate them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsfc.system.ir import Post, System
from dsfc.system.traverse import parts, trees
from dsfc.trusted.generator_names import CALL, STATE
from dsfc.trusted.polynomial import ONE, Quotient, generator, number
from dsfc.trusted.symbols import Symbols

MOST = 8
"""No larger multiple of an entry is written as a power."""


def has_exponentials(system: System) -> bool:
    """Returns whether a system applies `exp` to values of states."""
    read = (part for tree in trees(system) for part in parts(tree))
    return any(isinstance(part, Post) and part.name == "exp" for part in read)


def has_states(q: Quotient) -> bool:
    """Returns whether a value holds entries of states, or functions of them."""
    return any(STATE in name or CALL in name for name in q.names)


class Exponentials:
    """What is kept of the exponentials of entries of one system, at one token."""

    def __init__(
        self,
        symbols: Symbols,
        added: Callable[[str], Quotient | None],
        before: Callable[[str, str], Quotient],
    ) -> None:
        """Takes what is to be known of entries.

        Args:
            symbols: where generators come from.
            added: entry → what the token adds to it, None where it does not only add up.
            before: entry, and the name of what is kept of it → that, before the token.
        """
        self.symbols, self.added, self.before = symbols, added, before

    def of(self, q: Quotient) -> Quotient:
        """Returns e^q, by what is kept if q is a sum of entries that add up and of a free value."""
        out, rest = ONE, q
        for cell in sorted(name for name in q.names if STATE in name):
            multiple = q.num.terms.get(((cell, 1),))
            if q.den or multiple is None or multiple.denominator != 1 or abs(multiple) > MOST:
                return self.symbols.exp(q)
            if self.added(cell) is None:
                return self.symbols.exp(q)
            before = self.before(cell, _name(cell, 1 if multiple > 0 else -1))
            out = out * (ONE + before).power(abs(int(multiple)))
            rest = rest - Quotient(generator(cell)) * number(multiple)
        return self.symbols.exp(q) if has_states(rest) else out * self.symbols.exp(rest)

    def after(self, cell: str) -> Iterator[tuple[str, Quotient]]:
        """Yields what is kept of e^c and e^{-c} after the token, by name."""
        added = self.added(cell)
        if added is None:
            return
        for sign in (1, -1):
            name, power = _name(cell, sign), self.symbols.exp(added * number(sign))
            yield name, (ONE + self.before(cell, name)) * power - ONE


def _name(cell: str, sign: int) -> str:
    head, bracket, where = cell.partition("[")
    return f"{head}.exp{'+' if sign > 0 else '-'}{bracket}{where}"
