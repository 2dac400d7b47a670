"""What a certificate claims, and the data that shows it, as values.

Written as JSON, a certificate names the version of these types: see `dsfc.trusted.schema`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.tree import Expr
from dsfc.system.ir import System
from dsfc.trusted.polynomial import Monomial

CellMonomial = tuple[str, ...]
"""Names of state entries, sorted; () is the constant column."""

Coefficient = tuple[tuple[Monomial, int], ...]
"""A polynomial over generators of one moment: its terms, sorted by monomial."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A polynomial over generators that is 0, with its indices of time going along.

    It holds at every token from which it does not read back before the first. Generators that
    are called `κ[…]` are numbers of the claim's own, other than 0, the same at all tokens; those
    that are called `γ[…]` may be 0.

    Attributes:
        polynomial: its terms; exponents are positive.
        solved: the generator that it gives the value of: it stands in some terms, with exponent 1,
            and what multiplies it is other than 0 wherever the condition is said to hold.
        padded: whether it holds at every token, inputs from before the first being 0: said of
            slots alone, where a is claimed to be a case of b.
    """

    polynomial: Coefficient
    solved: str
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Assumption:
    """Two values of a that compare, at every token and index: see `dsfc.trusted.rules.assumed`.

    Attributes:
        left: one value.
        relation: one of `==`, `!=`, `<`, `<=`, `>`, `>=`.
        right: the other.
        earlier: an index that both may be read at, for each token before the present one; "" if
            there is none.
        own: whether the present token is one of these.
    """

    left: Expr
    relation: str
    right: Expr
    earlier: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """Two systems and how they are put side by side.

    "Equal" means: the outputs are equal for every length, all inputs and all values of the
    parameters (in their declared ranges, where both outputs are defined), at these sizes, or at
    all sizes of some axes; inputs and parameters of one name are one. "Different" means that this
    is not so. Where there are conditions, equality is claimed of those inputs and parameters for
    which they hold.

    Attributes:
        a: one system.
        b: the other.
        names: name of an input, parameter or buffer of b → name in a that it is identified with;
            names that are left out stand for themselves.
        sizes: size of every axis of both, by name.
        equal: whether equality is claimed, or difference.
        free: whether the token-wise values of both mixers that feed states and outputs are inputs
            of their own, instead of functions of the inputs: see `dsfc.trusted.generalize_inputs`.
        conditions: what is assumed, at every token where it can be read.
        every: axes for all whose sizes equality is claimed, however they go together.
        case: whether it is claimed besides that the conditions can be met by b's own parameters,
            whatever all else is: a is a case of b. Inputs that b alone has are its slots: they are
            taken for functions of the last tokens of a's inputs and of its parameters, which
            conditions may give values too (see `dsfc.trusted.rules.conditional.localities`). Where
            difference is claimed: that a is no case of b, whatever functions of the last tokens
            the slots are. There are values of a's parameters and a sequence such that no values of
            b's parameters, those that a has too included, give b the output of a on it, or on a
            longer one that goes on alike. The sizes are then a's; axes in `every` are b's own, and
            no sizes of them do it either at which the two can be put side by side.
        locality: where it is claimed that a is no case of b and b has slots: the slots are
            functions of the token and of as many tokens before it. None: of the last tokens,
            however many.
        assumed: what holds of values of a on the sequences that equality is claimed of, at all of
            their tokens; where difference is claimed, at the point that shows it.
        functions: logarithms and exponentials that values in conditions are made of: which, and the
            numerator and denominator of what stands in it, in generators that are there before.
        apart: parameters of b, and axes of it that no input or output has, that are its own though
            a has some of the same names: see `dsfc.trusted.alpha_rename`.
    """

    a: System
    b: System
    names: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, int], ...]
    equal: bool = True
    free: bool = False
    conditions: tuple[Condition, ...] = ()
    case: bool = False
    every: tuple[str, ...] = ()
    locality: int | None = None
    apart: tuple[str, ...] = ()
    functions: tuple[tuple[str, Coefficient, Coefficient], ...] = ()
    assumed: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Σ coefficient · product of state entries = 0, an invariant.

    Attributes:
        pivot: one of the products; no other row has it.
        terms: pairs (product of state entries, coefficient), each product once.
    """

    pivot: CellMonomial
    terms: tuple[tuple[CellMonomial, Coefficient], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """How the arguments of a function of states differ between the systems: see `laws`.

    Attributes:
        scale: a factor, as numerator and denominator.
        shift: what is added, as numerator and denominator.
    """

    scale: tuple[Coefficient, Coefficient]
    shift: tuple[Coefficient, Coefficient]


@dataclass(frozen=True, slots=True)
class Invariant:
    """A linear invariant: what rule "linear-invariant" stores.

    Attributes:
        rows: in reduced echelon form.
        entries: whether linear maps of tokens are written out in the entries of their matrices;
            else each entry of the result is a generator.
        relations: for the first calls of functions of states, in order, how the second system's
            arguments are related to the first's; those of further calls are equal.
    """

    rows: tuple[Row, ...]
    entries: bool
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class ProportionalStates:
    """Two states that run backwards: one is a factor times the other, at every token.

    Attributes:
        a: one of the first system.
        b: one of the second.
        factor: a product of numbers, sizes and parameters of both.
        of_first: whether a's state is the factor times b's; else b's is the factor times a's.
        rows: of the sequence in reversed order.
    """

    a: str
    b: str
    factor: Expr
    of_first: bool
    rows: Invariant


@dataclass(frozen=True, slots=True)
class TwoWays:
    """Equality of systems with states that run backwards: what rule "two-ways" stores.

    Attributes:
        pairs: states that are proportional, each in one pair.
        rows: of the outputs, what backward states were one token later being inputs.
    """

    pairs: tuple[ProportionalStates, ...]
    rows: Invariant


@dataclass(frozen=True, slots=True)
class MarkovParameters:
    """What a time-invariant system is known by: what rule "markov-parameters" stores.

    Attributes:
        count: how many of them tell the two systems apart, see `dsfc.trusted.rules.markov`.
        entries: whether linear maps of tokens are written out in the entries of their matrices.
    """

    count: int
    entries: bool


Number = tuple[int, int, int, int]
"""A complex rational number (p, q, r, s): p / q + i r / s with positive q and s."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A point where the outputs differ: what rule "witness" stores.

    Attributes:
        length: number of tokens.
        values: (name in a, entries) of parameters and inputs; entries are in the order of the
            stored array, inputs one token after the other.
        token: where the outputs differ.
        index: which entry of the output, by position of each of a's output axes.
    """

    length: int
    values: tuple[tuple[str, tuple[Number, ...]], ...]
    token: int
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConstantSequence:
    """A point of a, its token repeated for ever: what rule "constant-sequence" stores.

    Attributes:
        values: (name in a, entries) of a's parameters and inputs, of these one token.
        token: where the increment of the output is looked at.
        index: which entry of the output, by position of each of a's output axes.
        always: whether it is claimed besides that what tells the two apart does so for all values
            of a's parameters: those for which no values of b's parameters do are all but those
            that make a's output constant on constant sequences, from some token on.
        larger: axes of a at all whose larger sizes it is claimed too, however they go together.
        recurrence: coefficients p / q of a recurrence that the increments obey, that of the latest
            last: see `dsfc.trusted.rules.recurrence`. () where what tells a and b apart is read off
            the states.
    """

    values: tuple[tuple[str, tuple[Number, ...]], ...]
    token: int
    index: tuple[int, ...]
    always: bool
    larger: tuple[str, ...]
    recurrence: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """One output of both mixers, and what its difference is multiplied by.

    Attributes:
        sequence: position of the sequence.
        token: which token of it.
        index: which entry of the output, by position of each of a's output axes.
        cofactor: a polynomial over generators of b, see `dsfc.trusted.rules.test_sequences`.
    """

    sequence: int
    token: int
    index: tuple[int, ...]
    cofactor: Coefficient


@dataclass(frozen=True, slots=True)
class SeparatingSequences:
    """A point of a and sequences on which b cannot follow it: what rule "test-sequences" stores.

    Attributes:
        values: (name in a, entries) of a's parameters.
        letters: tokens of a: (name in a, entries) of its inputs.
        sequences: sequences of letters, by position.
        entries: whether linear maps of tokens are written out in the entries of their matrices;
            else each entry of the result is a generator.
        parts: the sum over them is not 0, and would be if the outputs were equal.
    """

    values: tuple[tuple[str, tuple[Number, ...]], ...]
    letters: tuple[tuple[tuple[str, tuple[Number, ...]], ...], ...]
    sequences: tuple[tuple[int, ...], ...]
    entries: bool
    parts: tuple[OutputDifference, ...]


Exact = tuple[int, int, int, int, int]
"""A real number (p, q, r, s, k): p / q · log(r / s)^k, with positive q, r and s."""


@dataclass(frozen=True, slots=True)
class Point:
    """Exact values of what a conditional claim speaks of.

    Attributes:
        length: number of tokens.
        values: (common name, entries), see `generalize_inputs.common_names`; inputs one token
            after the other. The numbers `κ[…]`, `γ[…]` go by these names, with one entry.
        token: where the outputs are looked at.
        index: which entry of the output, by position of each of a's output axes.
    """

    length: int
    values: tuple[tuple[str, tuple[Exact, ...]], ...]
    token: int
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Needed:
    """Conditions that cannot be left out together: what stays does not give equality.

    Attributes:
        without: positions of the conditions left out.
        point: where all others hold and the outputs are apart.
    """

    without: tuple[int, ...]
    point: Point


@dataclass(frozen=True, slots=True)
class Conditional:
    """An invariant under conditions: what rule "conditions" stores.

    Attributes:
        invariant: its rows vanish where the conditions hold.
        holds: a point where all conditions hold and the output is not 0. None where a is claimed
            to be a case of b, which says that they can be met: where a has an output is said by
            `Certificate.defined` then.
        needed: what was shown to be needed; need not cover all conditions.
        forced: conditions, by position, that follow from equal outputs where the others hold: see
            `dsfc.trusted.rules.necessary`.
        varied: the inputs, by common name, for all values of which outputs are equal there.
    """

    invariant: Invariant
    holds: Point | None
    needed: tuple[Needed, ...]
    forced: tuple[int, ...] = ()
    varied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Same:
    """The definitions are one text up to names: what rule "same-definition" stores, nothing."""


@dataclass(frozen=True, slots=True)
class Somewhere:
    """A point at which both outputs have values, or a's alone, at every token.

    Attributes:
        length: number of tokens.
        values: as those of a `Witness`.
    """

    length: int
    values: tuple[tuple[str, tuple[Number, ...]], ...]


@dataclass(frozen=True, slots=True)
class Assumed:
    """A proof where something is assumed: what rule "assumed" stores.

    Attributes:
        proof: of equality of what is left of both mixers, or a point at which the outputs differ
            and what is assumed holds.
        holds: where equality is shown: a point at which what is assumed holds and the output of a
            at the last token is not 0.
    """

    proof: Invariant | MarkovParameters | Same | Witness
    holds: Somewhere | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A claim with what shows it.

    Attributes:
        claim: what is shown.
        proof: what shows it, by which rule.
        defined: where both outputs have values, if equality is claimed without conditions: it is
            shown wherever they do. Where a is claimed to be a case of b, where a's has. None:
            nothing is said of where that is.
    """

    claim: Claim
    proof: (
        Invariant
        | MarkovParameters
        | Witness
        | Conditional
        | ConstantSequence
        | SeparatingSequences
        | Same
        | Assumed
        | TwoWays
    )
    defined: Somewhere | None = None
