"""Builds nodes; what is masked, and what depends on the lag, is kept where a sum can see it."""

from __future__ import annotations

import math
from fractions import Fraction

from dsfc.lift.axes import Axis, axes_of
from dsfc.lift.ir import (
    MIRRORED,
    Along,
    At,
    Before,
    Contract,
    First,
    Lag,
    Masked,
    Node,
    Now,
    Num,
    Op,
    Past,
    Reduce,
    Run,
    State,
    axes,
    rebuilt,
    walk,
)


def num(value: float | Fraction) -> Num:
    """Returns a number, as its shortest decimal, or as a fraction with a small denominator."""
    if isinstance(value, Fraction | int):
        return Num(Fraction(value))
    exact = Fraction(value)
    for candidate in (Fraction(repr(value)), exact.limit_denominator(4096)):
        if candidate.denominator <= 4096 and float(candidate) == value:
            return Num(candidate)
    return Num(Fraction(repr(value)))


_FOLDED = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def op(name: str, *args: Node) -> Node:
    """Returns an elementwise operation."""
    if all(isinstance(a, Num) and not a.axes for a in args):
        values = [a.value for a in args if isinstance(a, Num)]
        if name in _FOLDED:
            return Num(_FOLDED[name](*values))
        if name == "neg":
            return Num(-values[0])
        if name == "/" and values[1]:
            return Num(values[0] / values[1])
    if any(isinstance(a, Masked) for a in args):
        return _masked(name, args)
    for one, other in (args, args[::-1]) if len(args) == 2 else ():
        if isinstance(other, Num) and not other.axes:
            value = other.value
            if (name == "*" and value == 1) or (name == "+" and value == 0):
                return one
            if name == "*" and value == -1:
                return op("neg", one)
            if name in ("/", "-") and other is args[1] and value == (1 if name == "/" else 0):
                return one
            if name == "*" or (name == "/" and other is args[1] and value > 0):
                root = _root_beside(one, float(value) if name == "*" else 1 / float(value))
                if root is not None and not other.root_of:
                    return Op("*", (one, root))
    if name == "exp":
        return _exp(args[0])
    if name == "/" and (unit := _unit_length(*args)) is not None:
        return unit
    return Op(name, args)


def _unit_length(value: Node, divisor: Node) -> Node | None:
    """Returns l2norm where a value is divided by its length, at least 1e-12; None elsewhere."""
    match divisor:
        case Op(
            name="max",
            args=(
                Op(
                    name="sqrt",
                    args=(Reduce(kind="sum", axes=over, arg=Op(name="*", args=(a, b))),),
                ),
                Num(value=least),
            ),
        ) if a is value and b is value and least == Fraction(1, 10**12) and len(axes_of(over)) == 1:
            return Along("l2norm", over, value)
    return None


def inverse_root(over: tuple[Axis, ...], size: int) -> Num:
    """Returns 1 over the root of the size of axes."""
    return Num(num(size**-0.5).value, root_of=over)


def _root_beside(node: Node, value: float) -> Num | None:
    """What 1 over the root of a size is, beside a sum over an axis of that size."""
    if isinstance(node, Contract):
        size = math.prod(a.size for a in node.axes)
        if size > 1 and math.isclose(value, size**-0.5, rel_tol=1e-14):
            return inverse_root(node.axes, size)
    return None


def _masked(name: str, args: tuple[Node, ...]) -> Node:
    """Moves a mask to the outside of an operation, where that is what the operation does."""
    first = args[0]
    other = args[1] if len(args) > 1 else None
    if isinstance(other, Masked) and not isinstance(first, Masked) and name in ("*", "+"):
        first, other, args = other, first, (other, first)
    if not isinstance(first, Masked):
        return Op(name, args)
    lowest = first.fill == -math.inf
    if name == "exp" and lowest:
        return Masked(op("exp", first.arg), first.relation, 0.0)
    if isinstance(other, Masked):
        if other.relation == first.relation and other.fill == first.fill:
            if (name == "*" and not lowest) or (name == "+" and lowest) or name == "+":
                return Masked(op(name, first.arg, other.arg), first.relation, first.fill)
        return Op(name, args)
    positive = isinstance(other, Num) and other.value > 0
    keeps = {
        "neg": not lowest,
        "*": not lowest or positive,
        "/": not lowest or positive,
        "+": lowest,
        "-": lowest,
    }
    if keeps.get(name):
        inner = (first.arg,) if other is None else (first.arg, other)
        return Masked(op(name, *inner), first.relation, first.fill)
    return Op(name, args)


def _exp(arg: Node) -> Node:
    """An exponential; what is linear in the lag becomes a power, a difference of sums a product."""
    match arg:
        case Op(
            name="-",
            args=(At(arg=Now(state=a), variable=0), At(arg=Now(state=b), variable=1)),
        ) if a is b and a.added is not None:
            return Run(op("exp", a.added))
    scale = lag_scale(arg)
    if scale is not None:
        return Op("^", (op("exp", scale), Lag()))
    return Op("exp", (arg,))


def lag_scale(node: Node) -> Node | None:
    """Returns s where a node is s times the lag, None where it is not."""
    match node:
        case Lag():
            return Num(Fraction(1))
        case Op(name="neg", args=(arg,)):
            scale = lag_scale(arg)
            return None if scale is None else op("neg", scale)
        case Op(name="*", args=(left, right)):
            for one, other in ((left, right), (right, left)):
                scale = lag_scale(one)
                if scale is not None and not over_pairs(other):
                    return op("*", scale, other)
        case Op(name="/", args=(left, right)):
            scale = lag_scale(left)
            if scale is not None and not over_pairs(right):
                return op("/", scale, right)
    return None


def over_pairs(node: Node) -> bool:
    """Returns whether a value depends on a token of a pair."""
    return any(isinstance(n, Lag | At | Run | Masked) for n in walk(node))


def power(base: Node, exponent: Node) -> Node:
    """Returns a power; a negative or scaled lag goes to the base."""
    if isinstance(exponent, Masked):
        inner = power(base, exponent.arg)
        return Masked(inner, exponent.relation, 0.0)
    scale = lag_scale(exponent)
    if scale is not None:
        if isinstance(scale, Num) and scale.value == 1:
            return Op("^", (base, Lag()))
        return Op("^", (op("^", base, scale), Lag()))
    return op("^", base, exponent)


def cumulative(arg: Node) -> State:
    """Returns the state that sums a value over the past."""
    state = State((), added=arg)
    state.update = Op("+", (Before(state), arg))
    return state


def position() -> Node:
    """Returns the number of the present token, from 0, as a state that counts."""
    state = State((), hint="position")
    state.update = Op("-", (Op("+", (Before(state), Num(Fraction(1)))), First()))
    return Now(state)


def swapped(node: Node) -> Node:
    """Returns a value of pairs with its two tokens exchanged."""
    match node:
        case At(arg=arg, variable=variable):
            return At(arg, 1 - variable, where=node.where)
        case Lag():
            return Op("neg", (Lag(),))
        case Masked(arg=arg, relation=relation, fill=fill):
            return Masked(swapped(arg), MIRRORED[relation], fill, where=node.where)
        case Run():
            raise ValueError("the product between two tokens has an order")
    return rebuilt(node, swapped)


def summed(node: Node) -> Node:
    """Returns the sum of a value of pairs over token 1; what divides it at token 0 stays outside.

    Raises:
        ValueError: two different masks are laid over each other.
    """
    relation = None
    while isinstance(node, Masked) and node.fill == 0.0:
        if relation not in (None, node.relation):
            raise ValueError("two masks are laid over each other")
        relation, node = node.relation, node.arg
    body, divisors = _undivided(node)
    out: Node = Past(body, relation)
    for divisor in divisors:
        out = Op("/", (out, divisor))
    return out


def _undivided(node: Node) -> tuple[Node, list[Node]]:
    """A product without the divisors that depend on token 0 alone, and these."""
    match node:
        case Op(name="/", args=(left, At(arg=divisor, variable=0))):
            body, more = _undivided(left)
            return body, [*more, divisor]
        case Op(name="*", args=(left, right)):
            (one, first), (two, second) = _undivided(left), _undivided(right)
            if first or second:
                return op("*", one, two), [*first, *second]
        case Contract(left=left, right=right, axes=over):
            one, first = _undivided(left)
            if first and not set(over) & {a for d in first for a in axes(d, {})}:
                return Contract(one, right, over), first
    return node, []
