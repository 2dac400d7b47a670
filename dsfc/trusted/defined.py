"""Where outputs have values, where a is claimed to be a case of b: b has one wherever a has.

Equal quotients say nothing of points where one of them is none: r / r is 1 and has no value at
r = 0. So all that b divides by, and all that stands in a function that has no value of some
numbers, is looked at, whether it cancels or not, with the values of conditions put in. It is

- positive or negative term by term, or has such a real part, or a product of what is never 0; or
- what a divides by too, or what stands in the same function there: a has no value either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dsfc.expr.tree import Div, Expr, Field, Num, Pow, Prim
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import LEAF, lags
from dsfc.trusted.polynomial import HALF, IMAGINARY, ONE, Quotient, generator
from dsfc.trusted.symbols import Symbols

TOTAL = frozenset(
    "exp expm1 exprel exprel_slope sin cos cis cplx conj re im abs sign pi sigmoid softplus"
    " logsigmoid silu gelu erf step relu elu max min softmax l2norm rmsnorm".split()
)
"""Functions that have a value of all that may stand in them."""


def partial_functions(e: Expr, value: Callable[[Expr], Quotient]) -> Iterator[tuple[str, Quotient]]:
    """Yields the functions that may leave an expression without a value, with their arguments.

    A function of real numbers may lack values that the one of complex numbers has.
    """

    def of_field(head: str, kind: Field) -> str:
        return head if kind is Field.REAL else f"complex {head}"

    match e:
        case Div(_, below):
            yield "/", value(below)
        case Pow(base, Num(power)) if power.denominator == 1:
            if power < 0:
                yield "/", value(base)
        case Pow(base, exponent):
            yield of_field(f"power {value(exponent).text}", e.field), value(base)
        case Prim(name=name, args=args) if name not in TOTAL:
            for a in args:
                yield of_field(name, a.field), value(a)


class Defined:
    """What both systems divide by, and apply functions to, at one token.

    Args:
        symbols: what the generators stand for.
        never: common names of arrays that are never 0, or need not be.
        values: generator → the value that a condition gives it at this token.
    """

    def __init__(
        self, symbols: Symbols, never: frozenset[str], values: Mapping[str, Quotient]
    ) -> None:
        """Starts with nothing known of a."""
        self.symbols, self.never, self.values = symbols, never, values
        self._now: set[tuple[str, str]] = set()
        self._from_now_on: set[tuple[str, str]] = set()

    def note(self, head: str, value: Quotient, update: bool) -> None:
        """Takes what stands in a function that the output of a needs, "/" for a divisor.

        Where it has no value, nor has the output at this token; nor at later ones, if it stands in
        the update of a state that the output reads, or is the same at all tokens.
        """
        self._now.add((head, value.text))
        if update or not lags(value.names):
            self._from_now_on.add((head, value.text))

    def check(self, head: str, value: Quotient, update: bool) -> None:
        """Checks what stands in a function of b, "/" for a divisor.

        Args:
            head: the function.
            value: what stands in it.
            update: whether a state of b is made of it, which is read at later tokens too.

        Raises:
            Obstacle: the function may have no value there, and a may have one.
        """
        q = value.substituted(self.values)
        if (head, q.text) in (self._from_now_on if update else self._now):
            return
        match head:
            case "/":
                sure = never_zero(self.symbols, q, self.never)
            case "log1p":
                sure = self.symbols.positive(ONE + q)
            case "tanh":
                sure = self.symbols.is_real(q)
            case _:
                sure = self.symbols.positive(q)
        if not sure:
            raise Obstacle(f"b may have no value where a has one: at {q.text} in `{head}`")


def never_zero(symbols: Symbols, q: Quotient, arrays: frozenset[str]) -> bool:
    """Returns whether a value is never 0: by its sign or that of its real part, or as a product.

    Args:
        symbols: what the generators stand for.
        q: the value.
        arrays: common names of arrays whose entries are other than 0.
    """
    real = q if symbols.is_real(q) else (q + symbols.conjugate(q)) * HALF
    if symbols.positive(real) or symbols.positive(-real):
        return True
    return len(q.num.terms) == 1 and all(_never_zero(symbols, g, arrays) for g in q.num.names)


def _never_zero(symbols: Symbols, name: str, arrays: frozenset[str]) -> bool:
    entry = LEAF.fullmatch(name.removeprefix("~"))
    if entry is not None and entry[1] in arrays:
        return True
    exponential = symbols.defined.get(name, ("", ()))[0] == "exp"
    return name == IMAGINARY or exponential or symbols.is_positive(generator(name))
