"""Arrays of both mixers, and the expressions of one of them at one token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from math import factorial
from typing import Any

from second_checker.arithmetic import Beyond, Value
from second_checker.document import At, Document, Side
from second_checker.functions import Functions


class Arrays:
    """The entries of inputs, parameters and buffers, for both mixers."""

    def __init__(self, functions: Functions, sides: tuple[Side, Side]) -> None:
        self.functions = functions
        a, b = sides
        theirs = {n: (a.shape(n), n in a.inputs) for n in (*a.inputs, *a.stored)}
        self.names = ({n: n for n in theirs}, dict[str, str]())
        for n in (*b.inputs, *b.stored):
            same = b.common.get(n, n)
            if same in theirs and theirs[same] != (b.shape(n), n in b.inputs):
                raise Beyond(f"{same} is another kind of array in the two")
            if same not in theirs and same != n:
                raise Beyond(f"{same} is no array of the first")
            other = same in theirs and a.fixed.get(same) != b.fixed.get(n)
            self.names[1][n] = f"b:{same}" if other else same
        if len(set(self.names[1].values())) != len(self.names[1]):
            raise Beyond("two arrays go by one name")
        self.known: dict[str, tuple[bool, set[str]]] = {}
        for side, names in zip(sides, self.names, strict=True):
            for own, same in names.items():
                real = not side.shape(own)[1]
                self.known.setdefault(same, (real, set()))[1].add(side.promise(own))

    def entry(self, same: str, at: tuple[int, ...], token: int | None) -> Value:
        real, promises = self.known[same]
        unit = "UNIT" in promises
        where = f"{same}[{','.join(map(str, at))}]" + ("" if token is None else f"@{token}")
        positive = unit or "POSITIVE" in promises
        return self.functions.atom(where, real=real, positive=positive, unit=unit)


class Walk(ABC):
    """Expressions of one mixer at one token.

    Attributes:
        token: its number.
        reach: how many tokens back anything was read, one more for `first`.
    """

    def __init__(
        self, side: Side, arrays: Arrays, document: Document, token: int, written: bool
    ) -> None:
        self.side, self.arrays, self.document = side, arrays, document
        self.functions = arrays.functions
        self.ring = self.functions.ring
        self.token, self.written = token, written
        self.names = arrays.names[side.label == "B"]
        self.reach = 0
        self.bound: dict[str, int] = {}
        self._known: dict[tuple[Any, ...], Value] = {}

    def value(self, it: Any, at: At, token: int) -> Value:
        """An expression at an index and at a token, this one or an earlier one."""
        k, e = self.document.of(it)
        own = {a: at[a] for a in self.document.axes_of(it)}
        key = (k, token, tuple(sorted(own.items())), tuple(sorted(self.bound.items())))
        if key not in self._known:
            self._known[key] = self._value(e, at, token)
        return self._known[key]

    def _value(self, e: Any, at: At, token: int) -> Value:
        d, ring = self.document, self.ring

        def of(part: Any, there: At = at) -> Value:
            return self.value(part, there, token)

        match e["kind"]:
            case "Num":
                return ring.number(Fraction(e["value"]))
            case "Ones":
                return ring.one
            case "Size":
                return self.size(d.axis(e["axis"]))
            case "Iota":
                return ring.number(at[d.axis(e["axis"])])
            case "Param":
                axes = d.sorted(e["over"])
                return self.array(e["name"], axes, tuple(at[a] for a in axes))
            case "Ref":
                return self.ref(e, at, token)
            case "Add":
                return ring.total(map(of, e["args"]))
            case "Mul":
                out = ring.one
                for part in e["args"]:
                    out = out * of(part)
                return out
            case "Div":
                return of(e["num"]) / of(e["den"])
            case "Pow":
                return self._power(e, of)
            case "Reduce":
                return self._reduced(e, at, token)
            case "Map":
                return self.mapped(e["map"], e["arg"], at, token)
            case "Fir":
                return self._filtered(e, at, token)
            case "Rename":
                old, new = d.axis(e["old"]), d.axis(e["new"])
                rest = {a: p for a, p in at.items() if a != new}
                return of(e["arg"], {**rest, old: at[new]} if old in d.axes_of(e["arg"]) else rest)
            case "Prim" if e["axis"] is None:
                args = tuple(map(of, e["args"]))
                return self.functions.primitive(e["name"], args, e["field"] == "REAL")
            case "Prim":
                axis = d.axis(e["axis"])
                vector = tuple(of(e["args"][0], {**at, axis: p}) for p in range(d.sizes[axis]))
                return self.functions.along(e["name"], vector, at[axis], axis)
            case "Series":
                x, power, out = of(e["arg"]), ring.one, ring.one
                for r in range(1, e["order"] + 1):
                    power = power * x
                    out = out + power * ring.number(Fraction(1, factorial(r)))
                return out
            case "Abstract":
                source, target = d.names(e["source"]), d.names(e["target"])
                rest = {a: p for a, p in at.items() if a not in target}
                args = tuple(of(e["arg"], {**rest, **s}) for s in d.places(source))
                where = ",".join(str(at[a]) for a in target)
                return self.functions.opaque(f"{e['name']}<{where}>", args, True, False)
        return self.over_time(e, at, token)

    def over_time(self, e: Any, at: At, token: int) -> Value:
        raise Beyond(f"{e['kind']} stands in a system")

    def size(self, axis: str) -> Value:
        name = f"size[{self.document.copies[axis]}]"
        return self.functions.atom(name, real=True, positive=True)

    def array(self, name: str, axes: tuple[str, ...], at: tuple[int, ...],
              token: int | None = None) -> Value:  # fmt: skip
        if axes != self.side.shape(name)[0]:
            raise Beyond(f"{name} is used with other axes than it has")
        return self.arrays.entry(self.names[name], at, token)

    def _power(self, e: Any, of: Callable[[Any], Value]) -> Value:
        base, exponent = of(e["base"]), of(e["exponent"])
        n = exponent.number
        complexes = self.document.is_complex(e["base"]) or self.document.is_complex(e["exponent"])
        whole = n is not None and n.denominator == 1
        if complexes and not whole and all(map(self.functions.is_real, (base, exponent))):
            if not self.functions.positive(base):
                raise Beyond("a power of what is complex, real by a law, and perhaps negative")
        return self.functions.pow(base, exponent)

    def _reduced(self, e: Any, at: At, token: int) -> Value:
        axis, how = self.document.axis(e["axis"]), e["how"]
        if axis not in self.document.axes_of(e["arg"]):
            value = self.value(e["arg"], at, token)
            return value * self.size(axis) if how == "SUM" else value
        parts = [self.value(e["arg"], {**at, axis: p}, token)
                 for p in range(self.document.sizes[axis])]  # fmt: skip
        if how == "MAX":
            return self.functions.opaque("largest", tuple(parts), True, False)
        total = self.ring.total(parts)
        return total / self.size(axis) if how == "MEAN" else total

    # --- linear maps ------------------------------------------------------------------------------

    def mapped(self, m: Any, arg: Any, at: At, token: int) -> Value:
        """A map of a value: an atom of its arguments, unless it is written out."""
        d = self.document
        source, target = d.names(m["source"]), d.names(m["target"])
        rest = {a: p for a, p in at.items() if a not in target}
        args = [self.value(arg, {**rest, **s}, token) for s in d.places(source)]
        if self.written or m["adjoint"] or any(map(self.functions.holds_state, args)):
            return self.applied(m, lambda there: self.value(arg, there, token), at)
        if not any(args):
            return self.ring.zero
        if (*d.names(m["each"]), *target, *source) != self.side.shape(m["name"])[0]:
            raise Beyond(f"{m['name']} is used with other axes than it has")
        each, there = (",".join(str(at[a]) for a in axes) for axes in (d.names(m["each"]), target))
        real = m["field"] == "REAL" and all(map(self.functions.is_real, args))
        head = f"{self.names[m['name']]}[{each};{there}]"
        return self.functions.opaque(head, tuple(args), real, False)

    def applied(self, m: Any, value: Callable[[At], Value], at: At) -> Value:
        """Σ over the source of the matrix times a value."""
        d = self.document
        each, source, target = (d.names(m[part]) for part in ("each", "source", "target"))
        rest = {a: p for a, p in at.items() if a not in target}
        parts = []
        for there in d.places(source):
            here = tuple(at[a] for a in target)
            first, second = here, tuple(there.values())
            axes = (*each, *target, *source)
            if m["adjoint"]:
                first, second, axes = second, first, (*each, *source, *target)
            entry = self.array(m["name"], axes, (*(at[a] for a in each), *first, *second))
            parts.append((self.functions.bar(entry) if m["adjoint"] else entry)
                         * value({**rest, **there}))  # fmt: skip
        return self.ring.total(parts)

    def _filtered(self, e: Any, at: At, token: int) -> Value:
        axis, (_, ref) = self.document.axis(e["axis"]), self.document.of(e["arg"])
        if ref["kind"] != "Ref" or ref["at"] is None or ref["at"]["type"] != "Now":
            raise Beyond("a filter of what is no name")
        parts = []
        for r in range(self.document.sizes[axis]):
            lag = ref["at"]["lag"] + (-r if e["reverse"] else r)
            tap = {**ref, "at": {"type": "Now", "lag": lag}}
            parts.append(self.value(e["weight"], {**at, axis: r}, token)
                         * self.ref(tap, at, token))  # fmt: skip
        return self.ring.total(parts)

    # --- names ------------------------------------------------------------------------------------

    def instant(self, at: Any, token: int) -> int:
        return int((token if at["type"] == "Now" else self.bound[at["var"]]) - at["lag"])

    def ref(self, e: Any, at: At, token: int) -> Value:
        """A name at a token: 0 before the first."""
        name = e["name"]
        if e["at"] is None:
            return self.constant(name, at, token)
        there = self.instant(e["at"], token)
        self.reach = max(self.reach, self.token - there + (name == "first"))
        if there > self.token:
            raise Beyond(f"{name} is read at a later token")
        if name == "first":
            return self.ring.one if there == 0 else self.ring.zero
        if name in self.side.inputs:
            axes = self.side.shape(name)[0]
            at_ = tuple(at[a] for a in axes)
            return self.ring.zero if there < 0 else self.array(name, axes, at_, there)
        return self.defined(name, at, there)

    def constant(self, name: str, at: At, token: int) -> Value:
        stream = self.side.streams[name]
        if not stream["constant"]:
            raise Beyond(f"{name} is read without a time")
        return self.value(stream["value"], self._own(stream, at), token)

    def _own(self, it: Any, at: At) -> At:
        return {a: at[a] for a in self.document.names(it["axes"])}

    @abstractmethod
    def defined(self, name: str, at: At, token: int) -> Value:
        """The value of what is neither an input nor a stream that is the same at all tokens."""
