"""Prints nodes as expressions of the language."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeGuard

from dsfc.lift.axes import Axis, axes_of
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import (
    Along,
    Apply,
    At,
    Before,
    Contract,
    Delay,
    Fir,
    First,
    Input,
    Iota,
    Lag,
    Node,
    Now,
    Num,
    Ones,
    Op,
    Param,
    Past,
    Reduce,
    Rename,
    Run,
    State,
)
from dsfc.syntax import ast


@dataclass
class Called:
    """What things are called in the spec.

    Attributes:
        axes: names of axes.
        values: names of values and states, by their identity.
        params: names of parameters and parts of them, by their keys.
        inputs: names of inputs, by their identity.
    """

    axes: dict[Axis, str] = field(default_factory=dict)
    values: dict[int, str] = field(default_factory=dict)
    params: dict[tuple[object, ...], str] = field(default_factory=dict)
    inputs: dict[int, str] = field(default_factory=dict)


class Expressions:
    """Prints the nodes of one mixer."""

    def __init__(
        self,
        called: Called,
        heads: set[Axis],
        maps: Mapping[tuple[object, ...], Apply],
        axes: Callable[[Node], tuple[Axis, ...]],
        over_time: Callable[[Node], bool],
    ) -> None:
        """Keeps what the nodes are called and have.

        Args:
            called: names.
            heads: axes that are shared by what is done per head.
            maps: parameters that are linear maps.
            axes: the axes of a node.
            over_time: whether a node depends on the token.
        """
        self.called, self.heads, self.maps = called, heads, maps
        self.axes, self.over_time = axes, over_time

    def value(self, node: Node, token: str = "i", defining: bool = False) -> ast.Expr:
        """The text of a value at a token; `defining` where it is what gives the value its name."""
        if not defining and id(node) in self.called.values:
            return self._read(self.called.values[id(node)], token, self.over_time(node))
        match node:
            case Num(value=value, root_of=over):
                if len(axes_of(over)) == 1:
                    root = ast.Mul((ast.Num(Fraction(1)), ast.Num(Fraction(2))), (ast.MulOp.OVER,))
                    return ast.Pow(ast.Name(self.called.axes[axes_of(over)[0]]), ast.Neg(root))
                return self.widened(number(value), (), self.axes(node))
            case Param():
                return ast.Name(self.called.params[node.key])
            case Input():
                return self._read(self.called.inputs[id(node)], token, True)
            case Now(state=state):
                return self._read(self.called.values[id(state)], token, True)
            case Before(state=state):
                return self._before(state)
            case First():
                return ast.Name("first")
            case Lag():
                return _minus(ast.Name("i"), ast.Name("j"))
            case Ones(axes=own):
                return self._ones(axes_of(own))
            case Iota(axis=axis):
                return self._along("iota", axes_of((axis,))[0])
            case Op():
                return self._operation(node, token)
            case Reduce(kind=kind, axes=over, arg=arg):
                return ast.Call(ast.Ident(kind), self._brackets(over), (self.value(arg, token),))
            case Along(name=name, axis=over, arg=arg):
                return ast.Call(ast.Ident(name), self._brackets(over), (self.value(arg, token),))
            case Contract(left=left, right=right, axes=over):
                return self._contraction(left, right, axes_of(over), token)
            case Apply():
                return self._applied(node, token)
            case Rename(arg=arg, old=old, new=new):
                (one,), (two,) = axes_of((old,)), axes_of((new,))
                names = tuple(ast.Name(self.called.axes[a]) for a in (one, two))
                return ast.Call(ast.Ident("rename"), names, (self.value(arg, token),))
            case Delay(arg=arg, lag=lag):
                name = self._named_stream(arg)
                return ast.Index(ast.Ident(name), (_minus(ast.Name(token), _number(lag)),))
            case Fir(weight=weight, arg=arg, taps=taps):
                args = (self.value(weight), self.value(arg, token))
                return ast.Call(ast.Ident("fir"), self._brackets((taps,)), args)
            case At(arg=arg, variable=variable):
                return self.value(arg, "ij"[variable])
            case Run(arg=arg):
                order = ast.Relation(tuple(map(ast.Name, "jli")), (ast.CmpOp.LT, ast.CmpOp.LE))
                known = self.called.values.get(id(arg))
                factor = self.value(arg) if known is None else self._read(known, "l", True)
                return ast.Call(ast.Ident("prod"), (order,), (factor,))
            case Past(arg=arg, relation=relation):
                return self._past(arg, relation)
        hint = (
            "a table of pairs has to be summed over its tokens, with 0 or -inf where it is masked"
        )
        raise CannotLift("a value of pairs of tokens is used as it is", node.where, hint)

    def _named_stream(self, node: Node) -> str:
        if isinstance(node, Input):
            return self.called.inputs[id(node)]
        if isinstance(node, Now):
            return self.called.values[id(node.state)]
        return self.called.values[id(node)]

    @staticmethod
    def _read(name: str, token: str, timed: bool) -> ast.Expr:
        if token == "i" or not timed:
            return ast.Name(name)
        return ast.Index(ast.Ident(name), (ast.Name(token),))

    def _before(self, state: State) -> ast.Expr:
        read = ast.Index(
            ast.Ident(self.called.values[id(state)]), (_minus(ast.Name("i"), _number(1)),)
        )
        if state.start is None:
            return read
        start = self._product(
            ast.Name("first"), (), self.value(state.start), self.axes(state.start), "*"
        )
        start = self.widened(start, self.axes(state.start), axes_of(state.axes))
        return _chain_add(read, start, ast.AddOp.PLUS)

    def _past(self, arg: Node, relation: str | None) -> ast.Expr:
        body = self.value(arg)
        signs = {"le": ast.CmpOp.LE, "lt": ast.CmpOp.LT, "gt": ast.CmpOp.GT, "ge": ast.CmpOp.GE}

        def summed(word: str) -> ast.Expr:
            order = ast.Relation((ast.Name("j"), ast.Name("i")), (signs[word],))
            return ast.Call(ast.Ident("sum"), (order,), (body,))

        if relation is None:
            return _chain_add(summed("le"), summed("gt"), ast.AddOp.PLUS)
        return summed(relation)

    def _along(self, name: str, axis: Axis) -> ast.Expr:
        return ast.Index(ast.Ident(name), (ast.Name(self.called.axes[axis]),))

    def _ones(self, own: Sequence[Axis]) -> ast.Expr:
        parts = tuple(self._along("ones", a) for a in own)
        return parts[0] if len(parts) == 1 else ast.Outer(parts)

    def _brackets(self, over: Sequence[Axis]) -> tuple[ast.Condition, ...]:
        return tuple(ast.Name(self.called.axes[a]) for a in axes_of(over))

    def _operation(self, node: Op, token: str) -> ast.Expr:
        args = [self.value(a, token) for a in node.args]
        own = [self.axes(a) for a in node.args]
        if node.name == "neg":
            return ast.Neg(args[0])
        if node.name in ("+", "-"):
            every = tuple(dict.fromkeys(a for o in own for a in o))
            wide = [
                self.widened(e, o, every) if o or not every else e
                for e, o in zip(args, own, strict=True)
            ]
            sign = ast.AddOp.PLUS if node.name == "+" else ast.AddOp.MINUS
            return _chain_add(wide[0], wide[1], sign)
        if node.name == "*" and isinstance(node.args[1], Num) and not own[1] + node.args[1].root_of:
            value = node.args[1].value
            if (
                value.numerator == 1
                and value.denominator > 1
                and isinstance(number(value), ast.Mul)
            ):
                return _chain_mul(args[0], ast.Num(Fraction(value.denominator)), ast.MulOp.OVER)
        if node.name in ("*", "/"):
            return self._product(args[0], own[0], args[1], own[1], node.name)
        if node.name == "^":
            is_constant = isinstance(node.args[0], Num) and not self.over_time(node.args[1])
            if own[1] and not is_constant:
                log = ast.Call(ast.Ident("log"), (), (args[0],))
                inner = self._product(args[1], own[1], log, own[0], "*")
                return ast.Call(ast.Ident("exp"), (), (inner,))
            return ast.Pow(args[0], args[1])
        if len(args) == 2:
            every = tuple(dict.fromkeys(a for o in own for a in o))
            args = [self.widened(e, o, every) if o else e for e, o in zip(args, own, strict=True)]
            if node.name == "cplx":
                args = [self.widened(e, o, every) for e, o in zip(args, own, strict=True)]
        return ast.Call(ast.Ident(node.name), (), tuple(args))

    def widened(self, expr: ast.Expr, own: Sequence[Axis], every: Sequence[Axis]) -> ast.Expr:
        """A value that is constant along the axes that it has not."""
        missing = [a for a in every if a not in own]
        if not missing:
            return expr
        ones = tuple(self._along("ones", a) for a in missing)
        if not own:
            return _chain_mul(expr, self._ones(missing), ast.MulOp.TIMES)
        return ast.Outer((expr, *ones))

    def _product(
        self, a: ast.Expr, own: Sequence[Axis], b: ast.Expr, other: Sequence[Axis], sign: str
    ) -> ast.Expr:
        left, right = set(own), set(other)
        operator = ast.MulOp.TIMES if sign == "*" else ast.MulOp.OVER
        if left <= right or right <= left:
            return _chain_mul(a, b, operator)
        if sign == "/":
            return _chain_mul(self.widened(a, own, [*own, *other]), b, operator)
        if (left & right) <= self.heads:
            return ast.Outer((a, b))
        return _chain_mul(self.widened(a, own, [*own, *other]), b, operator)

    def _contraction(self, left: Node, right: Node, over: Sequence[Axis], token: str) -> ast.Expr:
        a, b = self.value(left, token), self.value(right, token)
        own, other = self.axes(left), self.axes(right)
        shared = set(own) & set(other)
        if len(over) == 1 and over[0] not in self.heads and shared - {over[0]} <= self.heads:
            return ast.Dot((a, b))
        inner = self._product(a, own, b, other, "*")
        return ast.Call(ast.Ident("sum"), self._brackets(over), (inner,))

    def _applied(self, node: Apply, token: str) -> ast.Expr:
        operand = self.value(node.arg, token)
        if node.map.key not in self.maps:
            own = self.axes(node.map)
            inner = self._product(
                ast.Name(self.called.params[node.map.key]), own, operand, self.axes(node.arg), "*"
            )
            return ast.Call(ast.Ident("sum"), self._brackets(node.source), (inner,))
        name = ast.Ident(self.called.params[node.map.key])
        if isinstance(operand, ast.Name | ast.Call | ast.Index | ast.Apply):
            return ast.Apply(name, operand)
        return ast.Call(name, (), (operand,))


def number(value: Fraction) -> ast.Expr:
    """Returns a number; a root of a whole number as such, a fraction as a quotient."""
    if value < 0:
        return ast.Neg(number(-value))
    if value.denominator == 1:
        return ast.Num(value)
    squared = float(value) ** 2
    for base, sign in ((1 / squared, -1), (squared, 1)):
        whole = round(base)
        if 1 < whole < 1 << 20 and math.isclose(float(value), whole ** (sign / 2), rel_tol=1e-15):
            if math.isqrt(whole) ** 2 != whole:
                half = ast.Mul((ast.Num(Fraction(1)), ast.Num(Fraction(2))), (ast.MulOp.OVER,))
                return ast.Pow(ast.Num(Fraction(whole)), half if sign > 0 else ast.Neg(half))
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    small = value.denominator <= 4096 and value.numerator <= 4096
    if rest == 1 and not (small and value.denominator in (2, 4, 8, 16, 32, 64)):
        return ast.Num(value)
    parts = ast.Num(Fraction(value.numerator)), ast.Num(Fraction(value.denominator))
    return ast.Mul(parts, (ast.MulOp.OVER,))


def at_a_token(node: ast.Condition) -> TypeGuard[ast.Index]:
    """Whether a value is read at j, rather than at an earlier token."""
    return isinstance(node, ast.Index) and isinstance(node.brackets[0], ast.Name)


def _number(value: int) -> ast.Num:
    return ast.Num(Fraction(value))


def _minus(a: ast.Expr, b: ast.Expr) -> ast.Expr:
    return ast.Add((a, b), (ast.AddOp.MINUS,))


def _chain_add(a: ast.Expr, b: ast.Expr, sign: ast.AddOp) -> ast.Expr:
    if isinstance(b, ast.Neg):
        flipped = ast.AddOp.MINUS if sign is ast.AddOp.PLUS else ast.AddOp.PLUS
        return _chain_add(a, b.operand, flipped)
    if isinstance(a, ast.Add):
        return ast.Add((*a.operands, b), (*a.operators, sign))
    return ast.Add((a, b), (sign,))


def _chain_mul(a: ast.Expr, b: ast.Expr, sign: ast.MulOp) -> ast.Expr:
    if isinstance(a, ast.Mul):
        return ast.Mul((*a.operands, b), (*a.operators, sign))
    return ast.Mul((a, b), (sign,))
