"""Rule "test-sequences": no parameters of b make a a case of it, by its outputs on short sequences.

Letters are tokens of a, sequences are made of letters. At a point of a's parameters the outputs of
a on the sequences are numbers, by executing its definition. Those of b are written out with
unknowns: an entry of each parameter is one, and so is the value of each slot after the same last
letters, as a function of the last tokens has one value there. Functions that are not rational are
generators, equal for equal arguments. So if some parameters and functions made b give what a does,
all

    e = output of b - output of a     (a sequence, a token of it, an entry of the output)

were 0 at once. The certificate holds polynomials c with Σ c e = R, and checked are:

1. this identity, the sum being multiplied out here, so R is nothing that is stored;
2. that R is not 0: it is a product of generators that are positive or that b divides by, of
   denominators of b, and of a polynomial in outputs of a alone, which is shown by their bounds not
   to be 0.

Then not all e are 0 where b has outputs (Hilbert's Nullstellensatz says that there are such c
wherever there is no solution, complex ones included). Outputs of a that are rational numbers stand
in e as what they are; others are symbols with bounds.

All is said at the sizes of the claim; those of b's axes follow from those of a's. Slots are
functions of the token and the `locality` tokens before it. Sequences that are no longer than that
are told apart by all of their past, so there it is said of functions of the whole history.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod

from dsfc.expr.declarations import Constraint, MapTensor
from dsfc.expr.tree import Axis, Field
from dsfc.system.known import promises
from dsfc.trusted.balls import Complex, NotDefined, real
from dsfc.trusted.claim import Claim, Number, OutputDifference, SeparatingSequences
from dsfc.trusted.comparable import comparable, slots
from dsfc.trusted.conditions import read
from dsfc.trusted.definition import Execution
from dsfc.trusted.elementary import IMAGINARY_UNIT
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import CALL
from dsfc.trusted.legal import facts
from dsfc.trusted.one_token_semantics import OneTokenSemantics
from dsfc.trusted.polynomial import ZERO, Monomial, Polynomial, Quotient, divided, generator, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.symbols import Symbols
from dsfc.trusted.witness import arrays, check_token, constants_of, place_of

SEQUENCE_LIMIT, LENGTH_LIMIT = 64, 8
"""Sequences of one certificate, and tokens of one of them."""

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
    if claim.conditions or claim.free or claim.every:
        raise Rejected('rule "test-sequences" has no conditions, and one size of each axis')
    comparable(claim)
    if own_sizes(claim):
        raise Rejected("the second has an axis of its own, which may have any size")
    if (claim.locality is None) != (not slots(claim)):
        raise Rejected("how far back slots read is said where there are slots, and nowhere else")
    combination = ZERO
    equations = Equations(claim, proof)
    for part in proof.parts:
        combination = combination + Quotient(read(part.cofactor)) * equations.of(part)
    equations.check_nonzero(combination)


def own_sizes(claim: Claim) -> bool:
    """Returns whether b has an axis that may have other sizes where those of a have theirs.

    It is none of a's, no copy of one, and its size is not derived from those of a's.
    """
    theirs = {d.axis.name for d in claim.a.axes}
    derived = {fact.name for fact in facts(claim.a, claim.b) if fact.names <= theirs}
    return any((d.axis.copy_of or d.axis.name) not in theirs | derived for d in claim.b.axes)


class Unknowns(Symbols):
    """Generators of b at unknown parameters: a law must hold wherever its function is defined."""

    def primitive(self, name: str, args: tuple[Quotient, ...], kind: Field) -> Quotient:
        """Returns an elementwise primitive."""
        if name == "exprel":
            raise Obstacle("exprel has a value at 0, where its law divides by 0")
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
        self._sure: set[str] = set()
        self._bases: set[Polynomial] = set()
        self._outputs: dict[int, list[list[Quotient]]] = {}

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
        theirs = self._unknown(sequence)
        for token, values in enumerate(self._executed(sequence)):
            row = []
            for place, (value, q) in enumerate(zip(values, theirs[token], strict=True)):
                e = q - self._known(value, f"value<{position},{token},{place}>[]")
                self._bases |= e.den.keys()
                self._sure |= {g for m in e.num.terms for g, exponent in m if exponent < 0}
                row.append(e)
            out.append(row)
        return out

    def _known(self, value: Complex, name: str) -> Quotient:
        """An output of a: a number, or a symbol with bounds."""
        if not value.is_real:
            raise Obstacle("an output is complex")
        if value.re.exact:
            return number(value.re.low)
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

    def _unknown(self, sequence: Word) -> list[list[Quotient]]:
        """The outputs of b, token by token."""
        out: list[list[Quotient]] = []
        states: Mapping[str, Quotient] = {}
        for token in range(len(sequence)):
            with self.symbols.recorded():
                spelled = Spelling(
                    self.claim, self.symbols, self.entries, self.letters, sequence[: token + 1]
                )
                outputs, step = spelled.outputs(), spelled.step()
            if any(CALL in g for q in (*outputs, *step.values()) for g in q.names):
                raise Obstacle("a function of states stands in the second system")
            out.append([q.substituted(states) for q in outputs])
            states = {name: q.substituted(states) for name, q in step.items()}
        return out

    def check_nonzero(self, value: Quotient) -> None:
        """Checks that a sum over equations is not 0, wherever b has outputs.

        Raises:
            Rejected: it may be 0.
        """
        if not value:
            raise Rejected("the sum is 0")
        simple, rest = value.num.split()
        ((common, _),) = simple.terms.items()
        for g, exponent in common:
            if exponent < 0 or g in self._sure or g in self.bounds:
                continue
            if not self.symbols.is_positive(generator(g)):
                raise Rejected(f"{g} may be 0")
        for base in sorted(self._bases, key=lambda b: b.text):
            while (smaller := divided(rest, base)) is not None:
                rest = smaller
        numbers = (rest, *(generator(g) for g, _ in common if g in self.bounds))
        if any(self._value(p).meets(COMPLEX_ZERO) for p in numbers):
            raise Rejected("the sum may be 0")

    def _value(self, p: Polynomial) -> Complex:
        """The value of a polynomial in outputs of a."""
        out = COMPLEX_ZERO
        for m, c in p.terms.items():
            out = out + Complex(real(c), real(0)) * self._monomial(m)
        return out

    def _monomial(self, m: Monomial) -> Complex:
        out = Complex(real(1), real(0))
        for g, exponent in m:
            if g not in self.bounds:
                raise Rejected(f"the sum may be 0 at some {g}")
            for _ in range(exponent):
                out = out * self.bounds[g]
        return out


class Spelling(OneTokenSemantics):
    """System b at the last token of a sequence, its parameters and slots unknown.

    Args:
        claim: whose b it is.
        symbols: where generators come from.
        entries: whether linear maps of tokens are written out in the entries of their matrices.
        letters: common name of an input of a → its entries.
        sequence: up to the token.
    """

    def __init__(
        self,
        claim: Claim,
        symbols: Symbols,
        entries: bool,
        letters: list[dict[str, tuple[Number, ...]]],
        sequence: Word,
    ) -> None:
        """Starts with nothing written out."""
        super().__init__(claim, True, symbols, entries, len(sequence) - 1)
        self.letters, self.sequence, self.locality = letters, sequence, claim.locality or 0
        self.promised = promises(self.system)

    def size(self, axis: Axis) -> Quotient:
        """Returns the size of an axis."""
        return number(self.sizes[axis.name])

    def _entry(self, name: str, axes: tuple[Axis, ...], at: tuple[int, ...], when: str) -> Quotient:
        """An entry of an input, a number, or of a slot or parameter, unknown."""
        declared = self.inputs.get(name) or self.stored_as[name]
        where, after = ",".join(map(str, at)), ""
        if name in self.inputs:
            token = len(self.sequence) - 1 - int(when.removeprefix("@"))
            entries = self.letters[self.sequence[token]].get(self.names.get(name, name))
            if entries is not None:
                place = 0
                for axis, k in zip(axes, at, strict=True):
                    place = place * self.sizes[axis.name] + k
                re, im = Fraction(*entries[place][:2]), Fraction(*entries[place][2:])
                return number(re) + IMAGINARY_UNIT * number(im)
            last = self.sequence[max(0, token - self.locality) : token + 1]
            after = f"<{'.'.join(map(str, last))}>"
        kind = declared.map.field if isinstance(declared, MapTensor) else declared.field
        positive = self.promised[name] in POSITIVE
        return self.symbols.leaf(f"{name}{after}[{where}]", kind is Field.REAL, positive)


def _once(values: tuple[tuple[str, tuple[Number, ...]], ...]) -> dict[str, tuple[Number, ...]]:
    out = dict(values)
    if len(out) != len(values):
        raise Rejected("a name has two values")
    return out
