"""What the second checker says of a certificate: that its rows show equality, or why not.

It speaks of claims of equality at the sizes of the claim, without conditions, shown by rows, by
Markov parameters, or by one definition; and of whether system and definition agree at the first
tokens. It says nothing of other claims, of all sizes, of points where outputs have values, nor of
whether a system is that of its definition at later tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from second_checker.arithmetic import Beyond, Ring, TooLarge, TooMany, Value
from second_checker.document import Document, Side
from second_checker.expressions import Arrays
from second_checker.functions import Called, Finer, Functions
from second_checker.moments import Moment, Unrolled
from second_checker.names import Names, Unreadable
from second_checker.same import one_definition
from second_checker.span import Span, Vector

STEADY, OTHER = 1_000, 2_000
"""Numbers of tokens with nothing before them but other such tokens."""

SHARE = {"abs": (1, 1), "relu": (1, 1), "max": (1, 1), "min": (1, 1), "sqrt": (2, 1),
         "sign": (1, 0), "log": (1, 0), "exp": (1, 0)}  # fmt: skip
"""Function → powers of the factor in its arguments and in its value."""


class Refused(Exception):
    """The certificate does not show its claim, as far as this checker can tell."""


class Silent(Exception):
    """A kind of certificate that this checker says nothing of."""


def second_check(text: str) -> str:
    """Returns the kind of proof that holds.

    Raises:
        Refused: it does not show its claim.
        Silent: its kind is none of those that are looked at.
    """
    try:
        document = Document(text)
        claim, proof = document.claim, document.value["proof"]
        if not claim["equal"] or claim["conditions"] or claim["case"] or claim["free"]:
            raise Silent("another claim than equality")
        if claim["assumed"]:
            raise Silent("equality where something is assumed")
        if claim["apart"] or claim["functions"] or claim["locality"] is not None:
            raise Refused("parts of another claim")
        if proof["type"] not in ("Invariant", "MarkovParameters", "Same"):
            raise Silent(proof["type"])
        if proof["type"] == "Same":
            if not one_definition(document, Side(document, False), Side(document, True)):
                raise Refused("the definitions are not one text")
            return "Same"
        _rooted(document)
        return str(proof["type"])
    except TooLarge as e:
        raise Silent(str(e)) from None
    except (Beyond, Unreadable, ZeroDivisionError, RecursionError) as e:
        raise Refused(f"{type(e).__name__}: {e}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as e:
        raise Refused(f"malformed: {type(e).__name__}: {e}") from None


def _rooted(document: Document) -> None:
    """Checks with as many atoms, and as fine roots, as it takes."""
    room, roots = 64, dict[str, int]()
    for _ in range(24):
        try:
            _Check(document, room, roots).run()
            return
        except TooMany:
            room *= 2
        except Finer as e:
            roots[e.label] = e.root
    raise Refused("there is no end of roots")


@dataclass(frozen=True)
class At:
    """Both systems at one token: updates, and what must be equal."""

    step: Mapping[str, Value]
    pairs: tuple[tuple[Value, Value], ...]
    heads: tuple[str, ...]
    reach: int


@dataclass(frozen=True)
class Law:
    """A factor and a summand between the arguments of two calls."""

    scale: Value
    shift: Value

    @property
    def trivial(self) -> bool:
        return self.scale.number == 1 and not self.shift


class _Check:
    def __init__(self, document: Document, room: int, roots: Mapping[str, int]) -> None:
        self.document = document
        self.proof = document.value["proof"]
        self.ring = Ring(room)
        self.functions = Functions(self.ring, roots)
        self.sides = Side(document, False), Side(document, True)
        self.arrays = Arrays(self.functions, self.sides)
        self.names = Names(self.functions, self.arrays)
        self._beside()

    def _beside(self) -> None:
        """Whether the outputs can be put side by side."""
        outputs = [side.system["outputs"] for side in self.sides]
        if any(len(o) != 1 or o[0]["over_time"] for o in outputs):
            raise Refused("a mixer has not one output per token")
        a, b = (self.document.names(o[0]["axes"]) for o in outputs)
        if outputs[0][0]["field"] != outputs[1][0]["field"] or (
            a != b and 1 not in map(len, (a, b))
        ):
            raise Refused("the outputs cannot be put side by side")

    def run(self) -> None:
        """Checks the proof, then definitions beside systems."""
        laws = [self._law(r) for r in self.proof.get("relations", ())]
        steady = self._at(STEADY, laws, held=True)
        window = max(1, steady.reach)
        first = [self._at(t, laws, bool(laws) or t > 0) for t in range(window)]
        self._divisors([m.step for m in (*first, steady)])
        if len(laws) > len(steady.heads):
            raise Refused("there are more laws than calls")
        kept = self._never_negative([m.step for m in (*first, steady)])
        for m in (*first, steady):
            for law, head in zip(laws, m.heads, strict=False):
                self._sign(law, head, kept)
        start = self._start(first, steady)
        if self.proof["type"] == "Invariant":
            self._rows(start, steady, window)
        else:
            self._krylov(start, steady)
        self._definitions(window)

    # --- both systems -----------------------------------------------------------------------------

    def _at(self, token: int, laws: list[Law], held: bool) -> At:
        steps: dict[str, Value] = {}
        outputs, calls, reach = [], [], 0
        for side in self.sides:
            self.functions.called = Called(token)
            second = side.label == "B"
            self.functions.replaced = self._replaced(laws if second else [])
            moment = Moment(
                side, self.arrays, self.document, token, self.proof["entries"],
                before=self._atom if held else lambda _name, _complex: self.ring.zero,
            )  # fmt: skip
            outputs.append(moment.outputs())
            steps |= moment.step()
            calls.append(self.functions.called.made)
            reach = max(reach, moment.reach)
        if len(outputs[0]) != len(outputs[1]):
            raise Refused("the outputs have different sizes")
        heads = [tuple(head for head, _, _ in made) for made in calls]
        if heads[0] != heads[1]:
            raise Refused("values of states go through different functions")
        pairs = list(zip(*outputs, strict=True))
        for k, ((head, left, _), (_, right, _)) in enumerate(zip(*calls, strict=True)):
            law = laws[k] if k < len(laws) else None
            for x, y in zip(left, right, strict=True):
                pairs.append((self._argument(law, head, x), y))
        return At(steps, tuple(pairs), heads[0], reach)

    def _atom(self, name: str, is_complex: bool) -> Value:
        return self.functions.atom(name, real=not is_complex, state=True)

    # --- laws -------------------------------------------------------------------------------------

    def _law(self, relation: Any) -> Law:
        parts = [self._polynomial(above, STEADY) / self._polynomial(below, STEADY)
                 for above, below in (relation["scale"], relation["shift"])]  # fmt: skip
        law = Law(*parts)
        if self.names.lags - {0} or any("$" in n for n in law.shift.names):
            raise Refused("a law reads another token, or adds states")
        if not self.functions.is_real(law.shift):
            raise Refused("a law adds what is not real")
        return law

    def _polynomial(self, terms: Any, token: int) -> Value:
        out = self.ring.zero
        for factors, c in terms:
            part = self.ring.number(_whole(c))
            for name, exponent in factors:
                cell = name.lstrip("~").startswith("$")
                part = part * (self._cell(name) if cell else self.names.value(name, token)).power(
                    _whole(exponent)
                )
            out = out + part
        return out

    def _cell(self, name: str) -> Value:
        bare = name.lstrip("~")
        label, _, rest = bare.partition("[")[0].lstrip("$").partition(".")
        side = self.sides[label == "B"]
        state = rest.partition(".")[0]
        it = side.blocks.get(state) or side.streams[state]
        value = self._atom(bare, it["field"] == "COMPLEX")
        return self.functions.bar(value) if name.startswith("~") else value

    def _moved(self, law: Law, token: int) -> Law:
        """A law at another token: it reads its own token only."""
        if token == STEADY:
            return law
        places = {}
        for k in law.scale.places | law.shift.places:
            places[k] = self._at_token(k, token)
        return Law(law.scale.put(places), law.shift.put(places))

    def _at_token(self, place: int, token: int) -> Value:
        fact, name = self.functions.facts[place], self.ring.names[place]
        if fact.made is not None:
            head, args = fact.made
            values = tuple(a.put({k: self._at_token(k, token) for k in a.places}) for a in args)
            return self.names.made(head, values)
        array, at, there = name.partition("@")
        if at and int(there) == STEADY:
            moved = f"{array}@{token}"
            value = self.functions.atom(moved, **_kept(fact))
            return self.functions.bar(value) if name.startswith("~") else value
        return self.ring.value(self.ring.atoms[place])

    def _replaced(self, laws: list[Law]) -> Any:
        def value(k: int, head: str, known: Value) -> Value:
            if k >= len(laws) or laws[k].trivial:
                return known
            assert self.functions.called is not None
            law = self._moved(laws[k], self.functions.called.token)
            if head == "exp":
                n = law.scale.number
                if n is None or n.denominator != 1 or not 1 <= abs(n) <= 8:
                    raise Refused("a factor in an exponent is no small integer")
                return known.power(int(n)) * self.functions.exp(law.shift)
            if head == "log":
                return known + self.functions.log(law.scale)
            scale = -law.scale if head == "abs" and self._minus(law.scale) else law.scale
            return scale.power(self._share(law, head)[1]) * known + law.shift

        return value

    def _argument(self, law: Law | None, head: str, value: Value) -> Value:
        if law is None or law.trivial:
            return value
        assert self.functions.called is not None
        law = self._moved(law, self.functions.called.token)
        return law.scale.power(self._share(law, head)[0]) * value + law.shift

    def _share(self, law: Law, head: str) -> tuple[int, int]:
        if head not in SHARE or (law.shift and head not in ("max", "min", "exp")):
            raise Refused(f"{head} has no such law")
        return SHARE[head]

    def _minus(self, value: Value) -> bool:
        return all(c < 0 for c in value.top.coeffs())

    def _sign(self, law: Law, head: str, kept: frozenset[int]) -> None:
        if law.trivial or head == "exp":
            return
        if head == "log" and any("$" in n for n in law.scale.names):
            raise Refused("a logarithm of states stands in a law")
        scale = -law.scale if head == "abs" and self._minus(law.scale) else law.scale
        signs = [self._sign_with(p, kept, True) for p in (scale.top, scale.below)]
        if 0 in signs or signs[0] != signs[1]:
            raise Refused("a factor is not positive")

    # --- signs of states --------------------------------------------------------------------------

    def _sign_with(self, p: Any, kept: frozenset[int], strict: bool) -> int:
        """The sign of a polynomial where some entries of states are never negative; 0 if unknown.

        Terms without states are added up by the states in them, and each sum has one sign.
        """
        signs, some = set(), False
        for cells, part in self._split(p).items():
            sign = self.functions._sign(part)
            if sign == 0 or any(k not in kept for k, _ in cells):
                return 0
            signs.add(sign)
            some = some or not cells
        return signs.pop() if len(signs) == 1 and (some or not strict) else 0

    def _split(self, p: Any) -> dict[tuple[tuple[int, int], ...], Any]:
        parts: dict[tuple[tuple[int, int], ...], dict[tuple[int, ...], int]] = {}
        cells = [k for k, n in enumerate(self.ring.names) if n.lstrip("~").startswith("$")]
        for exponents, c in p.to_dict().items():
            held = tuple((k, exponents[k]) for k in cells if exponents[k])
            rest = list(exponents)
            for k, _ in held:
                rest[k] = 0
            parts.setdefault(held, {})[tuple(rest)] = c
        return {held: self.ring.context.from_dict(terms) for held, terms in parts.items()}

    def _never_negative(self, steps: list[Mapping[str, Value]]) -> frozenset[int]:
        kept = {name for name in steps[0] if all(name in step for step in steps)}
        while True:
            places = frozenset(self.ring.place(name) for name in kept)
            left = {n for n in kept if all(self._not_negative(s[n], places) for s in steps)}
            if left == kept:
                return places
            kept = left

    def _not_negative(self, value: Value, kept: frozenset[int]) -> bool:
        if not value:
            return True
        signs = self._sign_with(value.top, kept, False), self._sign_with(value.below, kept, True)
        return 0 not in signs and signs[0] == signs[1]

    def _divisors(self, steps: list[Mapping[str, Value]]) -> None:
        held = [
            v.below
            for s in steps
            for v in s.values()
            if any(cells for cells in self._split(v.below))
        ]
        kept = self._never_negative(steps) if held else frozenset[int]()
        if not all(self._sign_with(p, kept, True) for p in held):
            raise Refused("an update divides by a value of the state that may be 0")

    # --- the first tokens -------------------------------------------------------------------------

    def _start(self, first: list[At], steady: At) -> dict[int, Value]:
        """The states after the first tokens, where the outputs are equal."""
        values = {self.ring.place(name): self.ring.zero for name in steady.step}
        for m in first:
            for left, right in m.pairs:
                if (left - right).put(values):
                    raise Refused("the outputs differ at one of the first tokens")
            after = {self.ring.place(name): v.put(values) for name, v in m.step.items()}
            values = values | after
        return values

    # --- rows -------------------------------------------------------------------------------------

    def _rows(self, start: dict[int, Value], steady: At, window: int) -> None:
        stored = self.proof["rows"]
        self._form(stored, steady)
        self.names.lags = set()
        last = [self._row(row, window - 1) for row in stored]
        if any(lag >= window for lag in self.names.lags):
            raise Refused("a row reads further back than its moment")
        for vector in last:
            if self._joined(vector).put(start):
                raise Refused("a row does not vanish at the start")
        span = Span(self.ring, [self._row(row, STEADY - 1) for row in stored])
        after = {self.ring.place(name): v for name, v in steady.step.items()}
        for row in stored:
            if not span.holds(self._vector(self._joined(self._row(row, STEADY)).put(after))):
                raise Refused("a row is not kept by the update")
        for left, right in steady.pairs:
            if not span.holds(self._vector(left - right)):
                raise Refused("the outputs differ where the rows vanish")

    def _form(self, stored: Any, steady: At) -> None:
        columns = [[tuple(cells) for cells, _ in row["terms"]] for row in stored]
        for k, row in enumerate(stored):
            pivot = tuple(row["pivot"])
            here = [n for n, of in enumerate(columns) if pivot in of]
            if not pivot or here != [k] or len(set(columns[k])) != len(columns[k]):
                raise Refused("a row has no pivot of its own")
            if any(cell not in steady.step for cells in columns[k] for cell in cells):
                raise Refused("a row names a state that does not exist")
            if any(cells != tuple(sorted(cells)) for cells in columns[k]):
                raise Refused("a product of states is not in order")
            for _, coefficient in row["terms"]:
                monomials = [json.dumps(factors) for factors, _ in coefficient]
                if not coefficient or len(set(monomials)) != len(monomials):
                    raise Refused("a coefficient has a term twice, or none")
                if any(c == 0 for _, c in coefficient):
                    raise Refused("a coefficient has a term with 0")

    def _row(self, row: Any, token: int) -> Vector:
        out: Vector = {}
        for cells, coefficient in row["terms"]:
            counts: dict[int, int] = {}
            for cell in cells:
                self._cell(cell)
                place = self.ring.place(cell)
                counts[place] = counts.get(place, 0) + 1
            value = self._polynomial(coefficient, token)
            if any("$" in n for n in value.names):
                raise Refused("a coefficient holds a state")
            out[tuple(sorted(counts.items()))] = value
        return out

    def _joined(self, vector: Vector) -> Value:
        out = self.ring.zero
        for cells, coefficient in vector.items():
            for place, exponent in cells:
                coefficient = coefficient * self.ring.value(self.ring.atoms[place]).power(exponent)
            out = out + coefficient
        return out

    def _vector(self, value: Value) -> Vector:
        """The numerator by products of states: the denominator is not 0."""
        return {cells: self.ring.value(p) for cells, p in self._split(value.top).items()}

    # --- systems that stay the same ---------------------------------------------------------------

    def _krylov(self, start: dict[int, Value], steady: At) -> None:
        """Every power of the transition, until no new combination of states comes."""
        other = self._at(OTHER, [], held=True)
        matrix, free = self._affine(steady.step), self._affine(other.step)
        if any("@" in n for row in matrix.values() for c, v in row.items() if c for n in v.names):
            raise Refused("a transition is not the same at all tokens")
        for left, right in steady.pairs:
            row = self._linear(left - right)
            if row.pop((), self.ring.zero):
                raise Refused("the outputs differ in what the token brings")
            span = Span(self.ring, [])
            while span.grows(row):
                pulled = self._pulled(row, free)
                now = self.ring.total(
                    v * start.get(cells[0][0], self.ring.zero) for cells, v in row.items()
                )
                if pulled.pop((), self.ring.zero) or now:
                    raise Refused("a Markov parameter is not 0")
                row = self._pulled(row, matrix)
                row.pop((), None)

    def _affine(self, step: Mapping[str, Value]) -> dict[int, Vector]:
        return {self.ring.place(name): self._linear(v) for name, v in step.items()}

    def _linear(self, value: Value) -> Vector:
        if any(self._split(value.below).keys() - {()}):
            raise Refused("a state stands in a denominator")
        below = self.ring.value(value.below)
        out = {cells: v / below for cells, v in self._vector(value).items()}
        if any(sum(e for _, e in cells) > 1 for cells in out):
            raise Refused("an update is not affine in the states")
        if any(n.startswith("call ") for v in out.values() for n in v.names):
            raise Refused("a function of states stands in a system of this kind")
        return out

    def _pulled(self, row: Vector, matrix: Mapping[int, Vector]) -> Vector:
        out: Vector = {}
        for cells, v in row.items():
            ((place, _),) = cells
            for there, c in matrix[place].items():
                out[there] = out.get(there, self.ring.zero) + v * c
        return {cells: v for cells, v in out.items() if v}

    # --- definitions ------------------------------------------------------------------------------

    def _definitions(self, window: int) -> None:
        """Whether systems and definitions give the same outputs at the first tokens."""
        self.functions.called = None
        self.functions.replaced = lambda _k, _head, value: value
        for side in self.sides:
            # The first token at least; of later ones as many as are not too large.
            with suppress(TooLarge):
                self._unrolled(side, window)

    def _unrolled(self, side: Side, window: int) -> None:
        values: Mapping[str, Value] = {}
        for token in range(min(window + 1, 4)):

            def before(name: str, _complex: bool, at: Mapping[str, Value] = values) -> Value:
                return at.get(name, self.ring.zero)

            arguments = side, self.arrays, self.document, token, True
            moment = Moment(*arguments, before=before)
            for x, y in zip(moment.outputs(), Unrolled(*arguments).outputs(), strict=True):
                if x - y:
                    raise Refused("a system is not that of its definition")
            values = moment.step()


def _kept(fact: Any) -> dict[str, bool]:
    return {"real": fact.real, "positive": fact.positive, "unit": fact.unit}


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise Refused("a number is no integer")
    return value
