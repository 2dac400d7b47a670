"""Rule "test-sequences": no parameters of b make a a case of it, by its outputs on short sequences.

Letters are tokens of a, sequences are made of letters. At a point of a's parameters the outputs of
a on the sequences are numbers, by executing its definition. Those of b are written out with
unknowns: an entry of each parameter is one, and so is the value of each slot after the same last
letters, as a function of the last tokens has one value there. Functions that are not rational are
generators, equal for equal arguments. So if some parameters and functions made b give what a does,
all

    e = numerator of output of b - output of a     (a sequence, a token of it, an entry of it)

were 0 at once. The certificate holds polynomials c with Σ c e = R, and checked are:

1. this identity, the sum being multiplied out here, so R is nothing that is stored;
2. that R is not 0: it is a product of generators that are positive or that b divides by, of
   denominators of b, of g - 1 for generators g that lie on one side of 1, and of a polynomial that
   is positive or negative term by term, or a number that is shown by its bounds not to be 0.

Then not all e are 0 where b has outputs (Hilbert's Nullstellensatz says that there are such c
wherever there is no solution, complex ones included). Outputs of a that are rational numbers stand
in e as what they are, and so do exponentials and logarithms of such, where what its system gives at
the point has the bounds of what its definition gives; others are symbols with bounds.

All is said at the sizes of the claim; those of b's axes are those of a's or follow from them. It is
said for all sizes of axes that b has beside these: what its maps sum over these are values of their
own after each beginning of a sequence, and nothing else may read them. Slots are functions of the
token and the `locality` tokens before it. Sequences that are no longer than that are told apart by
all of their past, so there it is said of functions of the whole history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import prod

from dsfc.expr.declarations import Constraint, MapTensor
from dsfc.expr.tree import Axis, Expr, Field, LinearMap
from dsfc.system.ir import System
from dsfc.system.known import promises
from dsfc.trusted.balls import Complex, NotDefined, log, real
from dsfc.trusted.claim import Claim, Number, OutputDifference, SeparatingSequences
from dsfc.trusted.comparable import comparable, slots
from dsfc.trusted.conditions import read
from dsfc.trusted.definition import Execution, exponential, norm
from dsfc.trusted.elementary import IMAGINARY_UNIT
from dsfc.trusted.entries import Index, Obstacle
from dsfc.trusted.legal import facts
from dsfc.trusted.one_token_semantics import OneTokenSemantics
from dsfc.trusted.polynomial import (
    IMAGINARY,
    POLYNOMIAL_ONE,
    POLYNOMIAL_ZERO,
    ZERO,
    Polynomial,
    Quotient,
    TooLarge,
    divided,
    generator,
    number,
)
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.symbols import GeneratorIndices, Symbols
from dsfc.trusted.witness import arrays, check_token, constants_of, place_of

SEQUENCE_LIMIT, LENGTH_LIMIT = 64, 8
"""Sequences of one certificate, and tokens of one of them."""

NORM = re.compile(r"(l2norm|rmsnorm)\.\w+\[(\d+)\]")
"""An entry of a norm along an axis, as generators are named."""

COMPLEX_ZERO = Complex(real(0), real(0))
POSITIVE = (Constraint.POSITIVE, Constraint.UNIT)

Word = tuple[int, ...]
"""Positions of letters."""


def check_sequences(claim: Claim, proof: SeparatingSequences) -> None:
    """Checks a certificate that a is no case of b.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError, ZeroDivisionError: the claim has no meaning here.
    """
    if claim.equal or not claim.case:
        raise Rejected("it is shown that a is no case of b, and something else is claimed")
    if claim.conditions or claim.free:
        raise Rejected('rule "test-sequences" has no conditions')
    comparable(claim)
    if set(claim.every) != set(unshared_axes(claim)):
        raise Rejected("all sizes are claimed of b's own axes, and one of each other")
    if (claim.locality is None) != (not slots(claim)):
        raise Rejected("how far back slots read is said where there are slots, and nowhere else")
    combination = POLYNOMIAL_ZERO
    equations = Equations(claim, proof)
    for part in proof.parts:
        combination = combination + read(part.cofactor) * equations.of(part).num
    equations.check_nonzero(combination)


def unshared_axes(claim: Claim) -> tuple[str, ...]:
    """Returns the axes of b that may have other sizes where those of a have theirs.

    They are none of a's, no copies of such, and their sizes are not derived from those of a's.
    """
    theirs = {d.axis.name for d in claim.a.axes}
    known = theirs | {fact.name for fact in facts(claim.a, claim.b) if fact.names <= theirs}
    return tuple(d.axis.name for d in claim.b.axes if (d.axis.copy_of or d.axis.name) not in known)


class Unknowns(Symbols):
    """Generators of b at unknown parameters: a law must hold wherever its function is defined."""

    def primitive(self, name: str, args: tuple[Quotient, ...], kind: Field) -> Quotient:
        """Returns an elementwise primitive."""
        if name == "exprel":
            twice = args[0] + self.conjugate(args[0])
            if not (self.positive(twice) or self.positive(-twice)):
                # Its law divides by what may be 0, where it has a value all the same.
                return self.opaque(name, args, kind is Field.REAL, positive=False)
        return super().primitive(name, args, kind)


class Equations:
    """The differences of the outputs, as quotients in what is unknown of b.

    Args:
        claim: the two systems.
        proof: the point of a, its letters and the sequences.

    Attributes:
        symbols: what the generators stand for.
        bounds: the symbol of an output of a that is no rational number → where it lies.

    Raises:
        Rejected: the values are none of a, or the sequences none of the letters.
    """

    def __init__(self, claim: Claim, proof: SeparatingSequences) -> None:
        """Takes the point."""
        self.claim, self.sequences, self.entries = claim, proof.sequences, proof.entries
        if len(proof.sequences) > SEQUENCE_LIMIT:
            raise Rejected(f"there are more than {SEQUENCE_LIMIT} sequences")
        self.params = _once(proof.values)
        self.letters = [_once(letter) for letter in proof.letters]
        sizes = dict(claim.sizes)
        entries = {t.name: prod(sizes[axis.name] for axis in t.axes) for t in claim.a.inputs}
        for letter in self.letters:
            # A sequence is its letters one after the other: those of other lengths would be others.
            if {name: len(values) for name, values in letter.items()} != entries:
                raise Rejected("a letter is not one token of each input")
            check_token(claim, letter)
        self.symbols = Unknowns()
        self.bounds: dict[str, Complex] = {}
        self.buffers, self.known = self._fixed(claim.b), self._fixed(claim.a) | self.params
        self._sure: set[str] = set()
        self._numbers_known: dict[str, Complex] = {}
        self._bases: set[Polynomial] = set()
        self.sums: dict[tuple[LinearMap, Expr], int] = {}
        self._outputs: dict[int, list[list[Quotient]]] = {}

    def _fixed(self, system: System) -> dict[str, tuple[Number, ...]]:
        """The entries of buffers that have a value, where these are rational numbers."""
        return {
            name: tuple((v.re.low.numerator, v.re.low.denominator, 0, 1) for v in entries)
            for name, entries in constants_of(self.claim, system, {}).items()
            if all(v.is_real and v.re.exact for v in entries)
        }

    def of(self, part: OutputDifference) -> Quotient:
        """Returns b's output less a's at a token of a sequence.

        Raises:
            Rejected: there is no such output.
        """
        if not 0 <= part.sequence < len(self.sequences):
            raise Rejected("there is no such sequence")
        if part.sequence not in self._outputs:
            self._outputs[part.sequence] = self._written(part.sequence)
        outputs = self._outputs[part.sequence]
        if not 0 <= part.token < len(outputs):
            raise Rejected("the token is none of the sequence")
        return outputs[part.token][place_of(self.claim, part.index)]

    def _written(self, position: int) -> list[list[Quotient]]:
        sequence = self.sequences[position]
        if not 1 <= len(sequence) <= LENGTH_LIMIT:
            raise Rejected(f"a sequence has from 1 to {LENGTH_LIMIT} tokens")
        if not all(0 <= letter < len(self.letters) for letter in sequence):
            raise Rejected("a sequence has a token that is no letter")
        out = []
        theirs = self._outputs_of(sequence, True)
        ours = self._numbers(sequence, position)
        for known, unknown in zip(ours, theirs, strict=True):
            row = []
            for value, q in zip(known, unknown, strict=True):
                e = q - value
                self._bases |= e.den.keys()
                self._sure |= {g for m in e.num.terms for g, exponent in m if exponent < 0}
                row.append(e)
            out.append(row)
        return out

    def _numbers(self, sequence: Word, position: int) -> list[list[Quotient]]:
        """The outputs of a: numbers, or functions of numbers, or symbols with bounds."""
        executed = self._executed(sequence)
        if all(value.is_real and value.re.exact for row in executed for value in row):
            return [[number(value.re.low) for value in row] for row in executed]
        try:
            written = self._outputs_of(sequence, False)
        except (Obstacle, TooLarge, ZeroDivisionError):
            written = [[ZERO] * len(row) for row in executed]
        out = []
        for token, (values, quotients) in enumerate(zip(executed, written, strict=True)):
            row = []
            for place, (value, q) in enumerate(zip(values, quotients, strict=True)):
                name = f"value<{position},{token},{place}>[]"
                row.append(self._known(value, q, name))
            out.append(row)
        return out

    def _known(self, value: Complex, written: Quotient, name: str) -> Quotient:
        """An output of a: as it is written out where that has its value, or a symbol."""
        if not value.is_real:
            raise Obstacle("an output is complex")
        if value.re.exact:
            return number(value.re.low)
        try:
            same = self.bound(written).meets(value)
        except (Obstacle, NotDefined):
            same = False
        if same and written:
            return written
        self.bounds[name] = value
        return self.symbols.leaf(name, real=True)

    def _executed(self, sequence: Word) -> list[list[Complex]]:
        """The outputs of a's definition."""
        a = self.claim.a
        values = dict(self.params)
        for name in (t.name for t in a.inputs):
            values[name] = tuple(v for letter in sequence for v in self.letters[letter][name])
        arguments = arrays(
            self.claim, a, {}, len(sequence), values, constants_of(self.claim, a, {})
        )
        if values.keys() - arguments.keys():
            raise Rejected("a value is given of nothing that a has")
        try:
            return Execution(a, dict(self.claim.sizes), len(sequence), arguments).output()
        except NotDefined as e:
            raise Rejected(f"the output has no value here: {e}") from None

    def _outputs_of(self, sequence: Word, second: bool) -> list[list[Quotient]]:
        """The outputs of b, or of a at its values, token by token."""
        out: list[list[Quotient]] = []
        states: Mapping[str, Quotient] = {}
        for token in range(len(sequence)):
            spelled = Spelling(self, second, sequence[: token + 1], states)
            out.append(spelled.outputs())
            states = spelled.step()
        return out

    def constant(self, g: str) -> bool:
        """Returns whether a generator is a number: a symbol with bounds, or a function of numbers.

        Real exponentials, logarithms and norms are, and the exponentials of imaginary numbers.
        """
        head, args = self.symbols.defined.get(g, ("", ()))
        function = head in ("exp", "log") or NORM.fullmatch(head) is not None
        inside = frozenset[str]().union(*(a.names for a in args))
        return (function and all(map(self.constant, inside))) or g in self.bounds or g == IMAGINARY

    def bound(self, q: Quotient) -> Complex:
        """Returns where a number lies.

        Raises:
            Obstacle: it is none.
            NotDefined: it is divided by what may be 0.
        """
        out = self._value(q.num)
        for base, exponent in q.den.items():
            for _ in range(exponent):
                out = out / self._value(base)
        return out

    def check_nonzero(self, value: Polynomial) -> None:
        """Checks that a sum over equations is not 0, wherever b has outputs.

        Raises:
            Rejected: it may be 0.
        """
        if not value:
            raise Rejected("the sum is 0")
        if not self.nonzero(value):
            raise Rejected(f"the sum may be 0: {value.text[:80]}")

    def nonzero(self, p: Polynomial) -> bool:
        """Returns whether a polynomial is known to be other than 0 wherever b has outputs."""
        simple, rest = p.split()
        ((common, _),) = simple.terms.items()
        for g, exponent in common:
            if exponent > 0 and g not in self._sure and not self._is_number(generator(g)):
                return False
        for base in sorted(self._bases | self._apart_from_one(rest), key=lambda b: b.text):
            while (smaller := divided(rest, base)) is not None:
                rest = smaller
        return self._is_number(rest)

    def _apart_from_one(self, p: Polynomial) -> set[Polynomial]:
        """What is positive or negative as a generator lies on one side of 1."""
        lessened = (generator(g) + -POLYNOMIAL_ONE for g in p.names)
        return {q for q in lessened if self._has_sign(q)}

    def _has_sign(self, p: Polynomial) -> bool:
        return self.symbols.is_positive(p) or self.symbols.is_positive(-p)

    def _is_number(self, p: Polynomial) -> bool:
        """Whether a polynomial is other than 0: by its terms' signs, or as a number."""
        if self._has_sign(p):
            return True
        try:
            return not self._value(p).meets(COMPLEX_ZERO)
        except (Obstacle, NotDefined):
            return False

    def _value(self, p: Polynomial) -> Complex:
        """Where a polynomial in numbers lies."""
        out = COMPLEX_ZERO
        for m, c in p.terms.items():
            part = Complex(real(c), real(0))
            for g, exponent in m:
                value = self._number(g)
                for _ in range(abs(exponent)):
                    part = part * value if exponent > 0 else part / value
            out = out + part
        return out

    def _number(self, g: str) -> Complex:
        if g in self.bounds:
            return self.bounds[g]
        if g == IMAGINARY:
            return Complex(real(0), real(1))
        head, args = self.symbols.defined.get(g, ("", ()))
        along = NORM.fullmatch(head)
        if head not in ("exp", "log") and along is None:
            raise Obstacle(f"{g} is no number")
        if g not in self._numbers_known:
            inside, *others = map(self.bound, args)
            if head == "log" and not inside.is_real:
                raise Obstacle(f"{g} is a logarithm of a complex number")
            if along is not None:
                value = norm(along[1], (inside, *others), int(along[2]))
            else:
                value = exponential(inside) if head == "exp" else Complex(log(inside.re), real(0))
            self._numbers_known[g] = value
        return self._numbers_known[g]


class _Sizes(dict[str, int]):
    """The sizes of a claim; others there are not."""

    def __missing__(self, name: str) -> int:
        raise Obstacle(f"the axis {name} of the second may have any size")


class Spelling(OneTokenSemantics):
    """A system at the last token of a sequence: b, its parameters and slots unknown, or a.

    Args:
        equations: whose systems, point and symbols they are.
        second: whether it is b.
        sequence: up to the token.
        states: entries of the states before the token.
    """

    def __init__(
        self, equations: Equations, second: bool, sequence: Word, states: Mapping[str, Quotient]
    ) -> None:
        """Starts with nothing written out."""
        claim, token = equations.claim, len(sequence) - 1
        entries = equations.entries or not second
        super().__init__(claim, second, equations.symbols, entries, token)
        self.letters, self.sequence, self.locality = equations.letters, sequence, claim.locality
        self.promised = promises(self.system)
        self.states = states
        self.arrays = equations.buffers if second else equations.known
        self.equations = equations
        if second:
            unshared = unshared_axes(claim)
            self.sizes = _Sizes({n: k for n, k in self.sizes.items() if n not in unshared})

    def size(self, axis: Axis) -> Quotient:
        """Returns the size of an axis."""
        return number(self.sizes[axis.name])

    def mapped(self, map: LinearMap, arg: Expr, at: Index) -> Quotient:
        """Returns an entry of a map: a value of its own where it sums over an axis of any size."""
        if all(a.name in self.sizes for a in map.source):
            return super().mapped(map, arg, at)
        axes = sorted((arg.axes - frozenset(map.source)) | {*map.each, *map.target})
        where = ",".join(str(at[a]) for a in axes)
        # What is summed is a function of the tokens so far, and the same after the same ones.
        start = max(len(self.sequence) - self.lag, 0)
        past = ".".join(str(k) for k in self.sequence[:start])
        real = map.field is Field.REAL and arg.field is Field.REAL
        which = self.equations.sums.setdefault((map, arg), len(self.equations.sums))
        return self.symbols.leaf(f"{map.name}:{which}<{past}>[{where}]", real)

    def _before(self, name: str, kind: Field, spelled: GeneratorIndices) -> Quotient:
        """An entry of a state before the token."""
        if self.token and name not in self.states:
            raise Obstacle(f"{name} has no value before the token")
        return self.states[name] if self.token else ZERO

    def _entry(self, name: str, axes: tuple[Axis, ...], at: tuple[int, ...], when: str) -> Quotient:
        """An entry of an input, a number, or of a slot or parameter, unknown."""
        declared = self.inputs.get(name) or self.stored_as[name]
        where, after = ",".join(map(str, at)), ""
        entries = self.arrays.get(name)
        if name in self.inputs:
            token = len(self.sequence) - 1 - int(when.removeprefix("@"))
            entries = self.letters[self.sequence[token]].get(self.names.get(name, name))
            last = self.sequence[max(0, token - (self.locality or 0)) : token + 1]
            after = f"<{'.'.join(map(str, last))}>"
        if entries is not None:
            place = 0
            for axis, k in zip(axes, at, strict=True):
                place = place * self.sizes[axis.name] + k
            re, im = Fraction(*entries[place][:2]), Fraction(*entries[place][2:])
            return number(re) + IMAGINARY_UNIT * number(im)
        if not self.second:
            raise Obstacle(f"`{name}` is no rational number")
        kind = declared.map.field if isinstance(declared, MapTensor) else declared.field
        promised = self.promised[name]
        return self.symbols.leaf(
            f"{name}{after}[{where}]",
            kind is Field.REAL,
            promised in POSITIVE,
            unit=promised is Constraint.UNIT,
        )


def _once(values: tuple[tuple[str, tuple[Number, ...]], ...]) -> dict[str, tuple[Number, ...]]:
    out = dict(values)
    if len(out) != len(values):
        raise Rejected("a name has two values")
    return out
