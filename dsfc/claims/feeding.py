"""Which states drive which: what a stage reads of another one, by streams.

A stage is one strongly connected set of states, so a chain of states is a chain of stages. Each has
a transition of its own, and what it reads of an earlier one is an input to it; but the state of the
mixer is that of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsfc.expr.build import walk
from dsfc.expr.tree import Add, Div, Expr, Mul, Ref
from dsfc.system.ir import Cast, Direct, Gate, MapOut, Read, ReadOut, Sum, SumOver, System
from dsfc.system.traverse import parts

LINEAR = (Read, Direct, Gate, Sum, Cast, MapOut, SumOver)
"""Parts of a read-out that is linear in states and inputs."""


class Streams:
    """The states that values hold, streams looked up."""

    def __init__(self, system: System) -> None:
        """Looks every stream up, in the order in which they stand."""
        self._values = {s.name: s.value for s in system.streams}
        self._known: dict[str, frozenset[str]] = {b.state: frozenset({b.state})
                                                  for b in system.blocks}  # fmt: skip
        for s in system.streams:
            depths = self.states(s.value) if isinstance(s.value, Expr) else self._read(s.value)
            self._known[s.name] = depths

    def states(self, e: Expr) -> frozenset[str]:
        """Returns the states that a value holds."""
        names = (x.name for x in walk(e) if isinstance(x, Ref))
        return frozenset().union(*(self._known.get(n, frozenset()) for n in names))

    def affine(self, e: Expr) -> bool:
        """Returns whether a value is affine in states, read off its form."""
        if not self.states(e):
            return True
        match e:
            case Ref(name=name):
                value = self._values.get(name)
                if value is None or isinstance(value, Expr):
                    return value is None or self.affine(value)
                linear = all(isinstance(p, LINEAR) for p in parts(value))
                return linear and not any(map(self.states, coefficients_of(value)))
            case Add(args):
                return all(map(self.affine, args))
            case Mul(args):
                held = [a for a in args if self.states(a)]
                return len(held) == 1 and self.affine(held[0])
            case Div(above, below):
                return not self.states(below) and self.affine(above)
        return False

    def _read(self, tree: ReadOut) -> frozenset[str]:
        out = frozenset(t.source for p in parts(tree) if isinstance(p, Read) for t in p.terms)
        return out.union(*map(self.states, coefficients_of(tree)))


def driven_by(system: System) -> Mapping[str, frozenset[str]]:
    """Returns state → states of other stages that run the same way and that its drives hold."""
    streams = Streams(system)
    direction = {b.state: s.direction for s in system.stages for b in s.blocks}
    out = {}
    for stage in system.stages:
        own = {b.state for b in stage.blocks}
        for b in stage.blocks:
            held = frozenset().union(
                *(streams.states(e) for f in b.chain for d in f.drives for e in (d.key, d.stream))
            )
            same = {n for n in held if direction[n] is stage.direction}
            out[b.state] = frozenset(same - own)
    return out


def coefficients_of(tree: ReadOut) -> Iterator[Expr]:
    """Yields what multiplies states in a read-out, and what is added to them."""
    for part in parts(tree):
        match part:
            case Read(terms, direct):
                yield from (e for t in terms for e in (t.left, t.right))
                if direct is not None:
                    yield direct
            case Direct(e) | Gate(e):
                yield e
