"""Two mixers side by side on a domain, and what a bound may be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dsfc.bounds.domain import Domain
from dsfc.bounds.form import Form
from dsfc.expr.build import walk
from dsfc.expr.declarations import Tensor
from dsfc.expr.interval import Interval
from dsfc.expr.ranges import PROMISED
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Axis, Expr, Ref
from dsfc.system.ir import Definition, System
from dsfc.system.known import fixed
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import unlike
from dsfc.trusted.entries import Obstacle


@dataclass(frozen=True, slots=True)
class Question:
    """Whether the outputs of two mixers differ by no more than a bound, on a domain, at sizes.

    Attributes:
        a: one mixer.
        b: the other.
        names: name of an input or parameter of b → name in a that it is identified with.
        sizes: of axes, by name; a bound that needs the size of another axis is not found.
        domain: inputs, parameters and lengths in question.
        within: the largest difference allowed, of any entry of the output at any token.
    """

    a: System
    b: System
    names: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, int], ...]
    domain: Domain
    within: Fraction


@dataclass(frozen=True, slots=True)
class Range:
    """Asks where the entries of an expression lie: of a complex one, their moduli.

    Attributes:
        second: whether the expression is b's.
        e: the expression, at any token.
        nonneg: states that are assumed to have been at least 0 one token earlier.
    """

    second: bool
    e: Expr
    nonneg: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Magnitude:
    """Asks how large the entries of an expression are, as a form: see `dsfc.bounds.form`.

    Attributes:
        second: whether the expression is b's.
        e: the expression.
        open: states whose largest absolute value is an unknown of the form.
    """

    second: bool
    e: Expr
    open: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Gap:
    """Asks how far apart two expressions are, entry by entry at each token, as a form.

    Attributes:
        a: an expression of a.
        b: an expression of b.
        open: pairs of states whose largest difference is an unknown of the form.
    """

    a: Expr
    b: Expr
    open: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Ratio:
    """Asks where b / a lies, entry by entry at each token, for two positive expressions."""

    a: Expr
    b: Expr


Subject = Range | Magnitude | Gap | Ratio
Bound = Interval | Form
Get = Callable[[Subject], Bound]
"""Gives what is known of a premise."""


@dataclass(frozen=True, slots=True)
class OneMixer:
    """One of the two mixers.

    Attributes:
        system: the mixer.
        definitions: name → definition.
        updates: name of a state → its update.
        called: name of an input, parameter or buffer → what a point calls it.
        constants: name → value, of buffers that have one.
        promised: name → where the declaration and the domain say the entries lie.
        moduli: name → where the domain says that absolute values of entries lie.
    """

    system: System
    definitions: Mapping[str, Definition]
    updates: Mapping[str, Definition]
    called: Mapping[str, str]
    constants: Mapping[str, Expr]
    promised: Mapping[str, Interval]
    moduli: Mapping[str, Interval]
    _reads: dict[str, frozenset[str]] = field(default_factory=dict, compare=False)

    def body(self, name: str) -> Definition:
        """Returns the definition of a name: of a state its update.

        Raises:
            Obstacle: it has none.
        """
        out = self.updates.get(name) or self.definitions.get(name)
        if out is None:
            raise Obstacle(f"`{name}` has no definition")
        return out

    def reads(self, e: Expr) -> frozenset[str]:
        """Returns all names that the value of an expression depends on, however indirectly."""
        out, left = set[str](), [e]
        while left:
            for x in walk(left.pop()):
                if isinstance(x, Ref) and x.name not in out:
                    out.add(x.name)
                    if x.name not in self.called and x.name != FIRST:
                        left.append(self.body(x.name).value)
        return frozenset(out)


class Pair:
    """The two mixers of a question, with what is known of their arrays.

    Args:
        question: what is asked.
    """

    def __init__(self, question: Question) -> None:
        """Reads off the declarations."""
        self.question = question
        self.sizes = dict(question.sizes)
        self.missing = set[str]()
        self.domain = question.domain
        renamed = dict(question.names)
        claim = Claim(question.a, question.b, question.names, question.sizes)
        self.own = unlike(claim)
        self.sides = (
            self._side(question.a, {}, frozenset()),
            self._side(question.b, renamed, self.own),
        )

    def _side(self, system: System, names: Mapping[str, str], own: frozenset[str]) -> OneMixer:
        called, promised, moduli = dict[str, str](), dict[str, Interval](), dict[str, Interval]()
        constants = fixed(system)
        for t in (*system.inputs, *system.params, *system.buffers):
            same = names.get(t.name, t.name)
            called[t.name] = f"b:{same}" if t.name in own else same
            if t.name in constants:
                continue
            entries, sizes = self.domain.entries(same), self.domain.moduli(same)
            if isinstance(t, Tensor):
                promise = PROMISED[t.constraint]
                if max(entries.low, promise.low) > min(entries.high, promise.high):
                    raise ValueError(f"`{t.name}` is never in its bounds")
                entries = entries.meet(promise)
            promised[t.name], moduli[t.name] = entries, sizes
        for d in system.definition:
            promised[d.name] = self.domain.entries(d.name)
            moduli[d.name] = self.domain.moduli(d.name)
        definitions = {d.name: d for d in system.definition if not d.update}
        updates = {d.name: d for d in system.definition if d.update}
        return OneMixer(system, definitions, updates, called, constants, promised, moduli)

    def side(self, second: bool) -> OneMixer:
        """Returns one of the two."""
        return self.sides[second]

    def size(self, axis: Axis) -> int:
        """Returns the size of an axis.

        Raises:
            Obstacle: none is given.
        """
        if axis.name not in self.sizes:
            self.missing.add(axis.name)
            raise Obstacle(f"the bound needs the size of `{axis.name}`")
        return self.sizes[axis.name]

    def count(self, axes: tuple[Axis, ...]) -> int:
        """Returns the number of entries over some axes."""
        out = 1
        for axis in axes:
            out *= self.size(axis)
        return out
