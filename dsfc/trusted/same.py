"""Rule "same-definition": two definitions that are one text, up to the names of what they define.

Both are walked side by side from the output. Inputs and parameters must be those that the claim
identifies, axes must have one name, everything else must be the same node; a name defined in one
stands for one name in the other throughout. Then both mean the same at every size, whatever the
definitions hold: sums over the past without a finite state, states that run backwards, functions
without a law. The derived forms are held to the same, so that neither can say something else than
the definition next to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Axis, Expr, LinearMap, Param, Ref, argument_names
from dsfc.system.ir import Block, Definition, Output, Stream, System, Term
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import comparable, unlike
from dsfc.trusted.rejected import Rejected

Defined = Mapping[tuple[str, bool], Definition]
"""(name, whether it is the update of a state) → definition."""


def check_same(claim: Claim) -> None:
    """Checks that two mixers have one definition.

    Raises:
        Rejected: they have not, or something else is claimed.
        ValueError: the two cannot be put side by side.
    """
    if not claim.equal or claim.conditions or claim.free or claim.case:
        raise Rejected("one definition shows equality, and something else is claimed")
    if not set(claim.every) <= {name for name, _ in claim.sizes}:
        raise Rejected("there is no axis of this name")
    comparable(claim)
    a, b = (system.outputs[0].name for system in (claim.a, claim.b))
    walk = _Walk(claim)
    walk.definitions(a, b)
    walk.derived()


_SAID_TWICE = ("provenance", "span", "decay", "flow", "gauge", "coupling", "declared", "why")
"""Parts of a derived form that say where it comes from, or again what its other parts say."""


class _Walk:
    """Which names have been found to stand for each other, and what is left to compare."""

    def __init__(self, claim: Claim) -> None:
        self.names = dict(claim.names)
        self.own = unlike(claim)
        self.defined = (_definitions(claim.a), _definitions(claim.b))
        self.given = (_given(claim.a), _given(claim.b))
        self.systems = (claim.a, claim.b)
        self.deriving = False
        self.there: dict[str, str] = {}
        self.back: dict[str, str] = {}
        self.left: list[tuple[object, object]] = []

    def definitions(self, a: str, b: str) -> None:
        """Compares what two outputs are defined as."""
        self._paired(a, b)
        self._all()

    def derived(self) -> None:
        """Compares the derived forms."""
        self.deriving = True
        a, b = self.systems
        self.left += [(a.streams, b.streams), (a.stages, b.stages), (a.outputs, b.outputs)]
        self._all()

    def _all(self) -> None:
        seen = set[tuple[Expr, Expr]]()
        while self.left:
            x, y = self.left.pop()
            if isinstance(x, Expr) and isinstance(y, Expr):
                if (x, y) in seen:
                    continue
                seen.add((x, y))
            self._compared(x, y)

    def _compared(self, x: Any, y: Any) -> None:  # noqa: ANN401 - parts of systems
        if type(x) is not type(y):
            raise Rejected("the definitions are not the same")
        if isinstance(x, Axis):
            self._equal((x.name, x.copy_of), (y.name, y.copy_of))
        elif isinstance(x, frozenset):
            self._equal(sorted((a.name, a.copy_of or "") for a in x),
                        sorted((a.name, a.copy_of or "") for a in y))  # fmt: skip
        elif isinstance(x, tuple):
            self._equal(len(x), len(y))
            self.left += zip(x, y, strict=True)
        elif isinstance(x, Ref):
            self._named(x.name, y.name)
            self._parts(x, y)
        elif isinstance(x, Param | LinearMap):
            self._array(x.name, y.name)
            self._parts(x, y)
        elif isinstance(x, Term | Block | Stream | Output):
            name = {Term: "source", Block: "state"}.get(type(x), "name")
            self._named(getattr(x, name), getattr(y, name))
            self._parts(x, y, but=(name, *_SAID_TWICE))
        elif isinstance(x, Expr) or (is_dataclass(x) and not isinstance(x, type)):
            self._parts(x, y, but=_SAID_TWICE)
        else:
            self._equal(x, y)

    def _parts(
        self,
        x: Any,  # noqa: ANN401 - parts of systems
        y: Any,  # noqa: ANN401 - as x
        but: tuple[str, ...] = ("name",),
    ) -> None:
        names = argument_names(type(x)) if isinstance(x, Expr) else [f.name for f in fields(x)]
        self.left += [(getattr(x, n), getattr(y, n)) for n in names if n not in but]

    def _named(self, x: str, y: str) -> None:
        if FIRST in (x, y):
            self._equal(x, y)
        elif x in self.given[0] or y in self.given[1]:
            self._array(x, y)
        else:
            self._paired(x, y)

    def _array(self, x: str, y: str) -> None:
        if x not in self.given[0] or y not in self.given[1] or y in self.own:
            raise Rejected("the definitions read different arrays")
        self._equal(x, self.names.get(y, y))

    def _paired(self, x: str, y: str) -> None:
        """A name of a stands for one of b: their definitions are compared, once."""
        if x in self.there or y in self.back:
            self._equal((self.there.get(x), self.back.get(y)), (y, x))
            return
        self.there[x], self.back[y] = y, x
        if self.deriving:
            return  # a name that the derivation made
        paired = 0
        for update in (False, True):
            one, other = self.defined[0].get((x, update)), self.defined[1].get((y, update))
            if one is None or other is None:
                self._equal(one, other)
                continue
            paired += 1
            self._equal((one.field, one.backward), (other.field, other.backward))
            self.left += [(one.axes, other.axes), (one.value, other.value)]
        if not paired:
            raise Rejected(f"`{x}` has no definition")

    def _equal(self, x: object, y: object) -> None:
        if x != y:
            raise Rejected("the definitions are not the same")


def _definitions(system: System) -> Defined:
    out = {(d.name, d.update): d for d in system.definition}
    if len(out) != len(system.definition):
        raise Rejected("a name has two definitions")
    return out


def _given(system: System) -> frozenset[str]:
    return frozenset(t.name for t in (*system.inputs, *system.params, *system.buffers))
