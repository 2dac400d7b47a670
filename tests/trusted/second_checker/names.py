"""The generators that rows name, read again: by a grammar of their texts, at a token.

quotient := "(" sum ")/(" power { "*" power } ")" | sum       power := "(" sum ")^" integer
sum      := term { "+" term }         term := factor { "*" factor }
factor   := fraction | name [ "^" integer ]
name     := [ "~" ] head [ "(" quotient { "," quotient } ")" ] [ "@" digit ]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from second_checker.arithmetic import Value
from second_checker.expressions import Arrays
from second_checker.functions import Functions

NUMBER = re.compile(r"-?\d+(?:/\d+)?")
HEAD = re.compile(r"[^\W\d][\w.:]*(?:\[[^\[\]]*\]|<[^<>]*>)*")
LEAF = re.compile(r"([^\[\]]+)\[([\d,]*)\]")
CALL = re.compile(r"call<(\d+),(\w+(?:\.\w+)?(?:\[\d+\])?)>\[\]")
ELEMENTWISE = frozenset(
    "exp log log1p sqrt abs sign step relu elu max min erf gelu pi sin cos".split()
)


class Unreadable(Exception):
    """A text that is no name of a generator."""


class Names:
    """What names mean at a token.

    Args:
        functions: where values come from.
        arrays: the entries of arrays.
        maps: common name of an array → whether its entries are real.
    """

    def __init__(self, functions: Functions, arrays: Arrays) -> None:
        self.functions, self.arrays = functions, arrays
        self.ring = functions.ring
        self.lags: set[int] = set()

    def value(self, name: str, token: int) -> Value:
        """The generator of a name at a token."""
        reader = _Reader(self, name, token)
        out = reader.name()
        if reader.left:
            raise Unreadable(name)
        return out

    def made(self, head: str, args: tuple[Value, ...]) -> Value:
        """A function of values, by the name that it has in a generator."""
        if head == "pow" and len(args) == 2:
            return self.functions.pow(*args)
        if head in ELEMENTWISE:
            return self.functions.primitive(head, args, all(map(self.functions.is_real, args)))
        real = all(map(self.functions.is_real, args))
        if ";" in head:
            known = self.arrays.known.get(head.partition("[")[0])
            real = real and known is not None and known[0]
        elif "<" in head or "." in head or head == "largest":
            real = True
        return self.functions.opaque(head, args, real, False)

    def leaf(self, head: str, lag: int | None, token: int) -> Value:
        call = CALL.fullmatch(head)
        if call and lag is not None:
            known = f"call {call[1]} {call[2]} {token - lag}"
            return self.functions.atom(known, real=True, state=True)
        found = LEAF.fullmatch(head)
        if found and found[1] == "size":
            raise Unreadable(head)
        if found and found[1] in self.arrays.known:
            at = tuple(int(k) for k in found[2].split(",") if k)
            there = None if lag is None else token - lag
            return self.arrays.entry(found[1], at, there)
        if re.fullmatch(r"size\[\w+\]", head):
            return self.functions.atom(head, real=True, positive=True)
        raise Unreadable(head)


class _Reader:
    def __init__(self, names: Names, text: str, token: int) -> None:
        self.names, self.left, self.token = names, text, token

    def took(self, text: str) -> bool:
        if self.left.startswith(text):
            self.left = self.left[len(text) :]
            return True
        return False

    def need(self, text: str) -> None:
        if not self.took(text):
            raise Unreadable(self.left)

    def match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.left)
        if found is None:
            raise Unreadable(self.left)
        self.left = self.left[found.end() :]
        return found[0]

    def quotient(self) -> Value:
        if not self.took("("):
            return self.sum()
        out = self.sum()
        self.need(")/(")
        while True:
            self.need("(")
            base = self.sum()
            self.need(")^")
            out = out / base.power(int(self.match(NUMBER)))
            if not self.took("*"):
                break
        self.need(")")
        return out

    def joined(self, part: Callable[[], Value], sign: str) -> list[Value]:
        out = [part()]
        while self.took(sign):
            out.append(part())
        return out

    def sum(self) -> Value:
        return self.names.ring.total(self.joined(self.term, "+"))

    def term(self) -> Value:
        out = self.names.ring.one
        for factor in self.joined(self.factor, "*"):
            out = out * factor
        return out

    def factor(self) -> Value:
        if NUMBER.match(self.left):
            return self.names.ring.number(Fraction(self.match(NUMBER)))
        out = self.name()
        return out.power(int(self.match(NUMBER))) if self.took("^") else out

    def name(self) -> Value:
        functions = self.names.functions
        if self.took("~"):
            return functions.bar(self._twin())
        head = self.match(HEAD)
        if self.took("("):
            return self.names.made(head, self._args())
        return self._leaf(head)

    def _args(self) -> tuple[Value, ...]:
        args = () if self.left.startswith(")") else tuple(self.joined(self.quotient, ","))
        self.need(")")
        return args

    def _twin(self) -> Value:
        """What a name after ~ is the conjugate of; its arguments are conjugates already."""
        head = self.match(HEAD)
        if self.took("("):
            return self.names.made(head, tuple(map(self.names.functions.bar, self._args())))
        return self._leaf(head)

    def _leaf(self, head: str) -> Value:
        if head == "i":
            return self.names.ring.i
        lag = None
        if self.took("@"):
            lag = int(self.match(re.compile(r"\d")))
            self.names.lags.add(lag)
        return self.names.leaf(head, lag, self.token)
