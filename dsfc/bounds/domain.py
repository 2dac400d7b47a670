"""The domain of a bound: where inputs, parameters and values lie, and how long sequences are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.declarations import Tensor
from dsfc.expr.interval import INF, REALS, Interval, below
from dsfc.expr.tree import Axis, Field
from dsfc.system.ir import System
from dsfc.system.known import fixed
from dsfc.trusted.witness import stored_axes


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on every entry of a name, or on its length along an axis; both ends are taken.

    Attributes:
        name: an input, a parameter, a buffer or a definition, of either mixer or of both.
        low: lower end; None where there is none.
        high: upper end; None where there is none.
        axis: name of the axis along which the Euclidean length is bounded; "" for entries.
        modulus: whether absolute values of entries are bounded: of complex ones, moduli.
    """

    name: str
    low: Fraction | None
    high: Fraction | None
    axis: str = ""
    modulus: bool = False

    @property
    def interval(self) -> Interval:
        """The bounds, rounded outward."""
        low = -INF if self.low is None else _down(self.low)
        high = INF if self.high is None else -_down(-self.high)
        return Interval(low, high)

    @property
    def text(self) -> str:
        """The bounds as a condition."""
        term = f"norm[{self.axis}]({self.name})" if self.axis else self.name
        term = f"abs({term})" if self.modulus else term
        low = "" if self.low is None else f"{self.low} <= "
        high = "" if self.high is None else f" <= {self.high}"
        return f"{low}{term}{high}"


def _down(x: Fraction) -> float:
    """The largest double that is not above a number, or one before it."""
    try:
        nearest = float(x)
    except OverflowError:
        return -INF if x < 0 else below(INF)
    return nearest if Fraction(nearest) <= x else below(nearest)


@dataclass(frozen=True, slots=True)
class Domain:
    """All points that keep some bounds, at all lengths of a range.

    Attributes:
        limits: the bounds; several on one name hold all.
        shortest: tokens of the shortest sequence.
        longest: tokens of the longest sequence; None where there is no longest.
    """

    limits: tuple[Limits, ...] = ()
    shortest: int = 1
    longest: int | None = None

    def entries(self, name: str) -> Interval:
        """Returns where the entries of a name lie."""
        out = REALS
        for x in self.limits:
            if x.name == name and not x.axis:
                out = _meet(out, _both(x.interval) if x.modulus else x.interval)
        return out

    def moduli(self, name: str) -> Interval:
        """Returns where absolute values of the entries of a name lie."""
        out = Interval(0.0, INF)
        for x in self.limits:
            if x.name == name and not x.axis and x.modulus:
                out = _meet(out, x.interval)
        return out

    def lengths(self, name: str, axis: str) -> Interval:
        """Returns where the Euclidean lengths of a name along an axis lie."""
        out = Interval(0.0, INF)
        for x in self.limits:
            if x.name == name and x.axis == axis:
                out = _meet(out, x.interval)
        return out

    def ends(self, name: str) -> tuple[Fraction | None, Fraction | None]:
        """Returns the largest lower and the smallest upper end of a name's entries."""
        lows, highs = list[Fraction](), list[Fraction]()
        for x in self.limits:
            if x.name == name and not x.axis:
                if x.high is not None:
                    highs.append(x.high)
                    lows += [-x.high] * x.modulus
                if x.low is not None and not x.modulus:
                    lows.append(x.low)
        return max(lows, default=None), min(highs, default=None)

    @property
    def text(self) -> str:
        """The domain as conditions."""
        parts = [x.text for x in self.limits]
        if self.shortest > 1:
            parts.append(f"{self.shortest} <= L")
        if self.longest is not None:
            parts.append(f"L <= {self.longest}")
        return ", ".join(parts) or "all inputs, parameters and lengths"


def _both(moduli: Interval) -> Interval:
    return Interval(-moduli.high, moduli.high)


def _meet(a: Interval, b: Interval) -> Interval:
    """The intersection.

    Raises:
        ValueError: there is nothing in both.
    """
    if max(a.low, b.low) > min(a.high, b.high):
        raise ValueError("the bounds exclude each other")
    return a.meet(b)


def check_domain(
    domain: Domain, a: System, b: System, names: tuple[tuple[str, str], ...] = ()
) -> None:
    """Checks that a domain speaks of what two mixers have, and leaves something.

    Args:
        domain: the domain.
        a: one mixer.
        b: the other.
        names: name of an input or parameter of b → name in a that it is identified with.

    Raises:
        ValueError: it does not; the text says why.
    """
    known = [names_of(s) for s in (a, b)]
    constants = fixed(a).keys() | fixed(b).keys()
    for x in domain.limits:
        mistake = two_meanings(x.name, b, names) or order_of_complex(x, (a, b))
        if mistake:
            raise ValueError(mistake)
        axes = [names[x.name] for names in known if x.name in names]
        if not axes:
            raise ValueError(f"neither mixer has an input, parameter or definition `{x.name}`")
        if x.name in constants:
            raise ValueError(f"`{x.name}` has a fixed value, and no bounds")
        if x.axis and not any(axis.name == x.axis for some in axes for axis in some):
            raise ValueError(f"`{x.name}` has no axis `{x.axis}`")
        domain.entries(x.name)
        domain.moduli(x.name)
        if x.axis:
            domain.lengths(x.name, x.axis)
    if domain.shortest < 1 or (domain.longest or domain.shortest) < domain.shortest:
        raise ValueError("the bounds on L exclude each other")


def two_meanings(name: str, b: System, names: tuple[tuple[str, str], ...]) -> str:
    """Returns why a name is none to bound where names of two mixers are identified; "" if it is.

    An array has the name that the first mixer calls it by. What the second calls so besides is
    another value: an array that is identified with another of the first, or a definition.
    """
    called = {t.name: t.name for t in (*b.inputs, *b.params, *b.buffers)} | dict(names)
    same = called.get(name, name)
    shared = [theirs for theirs, ours in called.items() if ours == name]
    if not shared and same != name:
        return f"`{name}` of the second mixer is called `{same}`, as the first does: bound `{same}`"
    if shared and shared != [name] and any(d.name == name for d in b.definition):
        return (
            f"`{name}` is a definition of the second mixer and, for its `{shared[0]}`, the name of "
            "the first; call one otherwise"
        )
    return ""


def order_of_complex(limits: Limits, systems: tuple[System, ...]) -> str:
    """Returns why bounds have no meaning for complex values, which have no order; "" if they do."""
    name = limits.name
    if limits.modulus or limits.axis:
        return ""
    for system in systems:
        if name in _complex_names(system):
            return (
                f"`{name}` is complex in {system.name}, and complex numbers have no order: bound "
                f"its modulus, `abs({name})`"
            )
    return ""


def _complex_names(system: System) -> set[str]:
    fields = {d.name: d.field for d in system.definition}
    for t in (*system.inputs, *system.params, *system.buffers):
        fields[t.name] = t.field if isinstance(t, Tensor) else t.map.field
    return {name for name, kind in fields.items() if kind is Field.COMPLEX}


def names_of(system: System) -> dict[str, tuple[Axis, ...]]:
    """Returns the axes of all that a mixer names: inputs, parameters, buffers, definitions."""
    out = {d.name: d.axes for d in system.definition}
    for t in (*system.inputs, *system.params, *system.buffers):
        out[t.name] = stored_axes(t)
    return out
