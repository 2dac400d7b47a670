"""The generators that scalars are made of, and the laws that turn primitives into them.

    e^{Σ c m}    Π (e^m)^c, a generator per monomial m and denominator of c: see `roots`
    e^{c log p}  p^c for an integer c
    log p        a generator, where p is positive term by term; other logarithms are opaque
    σ, softplus, silu, tanh, expm1, log1p, exprel, sin, cos, cis    by their definitions from these
    x^a          e^{a log x} where x is positive term by term
    |x|, relu, max, min, sign, √x    see `signs`
    anything else   opaque: one generator per argument

Each law is an identity of functions wherever both sides are defined, so equal quotients are equal
functions. The converse does not hold and is not needed: what is not equal here is not thereby
different. A function of states is a generator too, the k-th call of its system at this token: it
stands for the same value in both systems when its arguments are proved equal, call by call.

The name of a generator says all that it is a function of; `@k` in a name is the token i − k, and a
name that starts with `$` is an entry of a state before the token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.interval import POSITIVE, REALS
from dsfc.expr.table import row
from dsfc.expr.tree import Field
from dsfc.trusted import elementary, signs
from dsfc.trusted.elementary import IMAGINARY_UNIT
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import CALL, STATE
from dsfc.trusted.polynomial import (
    IMAGINARY,
    ONE,
    POLYNOMIAL_ONE,
    ZERO,
    Monomial,
    Polynomial,
    Quotient,
    constant,
    generator,
    number,
)
from dsfc.trusted.roots import Roots

HIGHEST = 16
"""Powers that are written in what is left to 1: see `Symbols.is_positive`."""

BRANCHED = frozenset({"log", "log1p", "sqrt", "pow"})
"""Functions that complex numbers on the negative axis have another value of than real ones."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that is not rational, applied to values of states."""

    head: str
    args: tuple[Quotient, ...]


@dataclass(frozen=True, slots=True)
class GeneratorIndices:
    """The indices that the name of a generator spells itself, before those of its arguments.

    Attributes:
        at: axis and position, in the order of the name.
        over: axes that its arguments run over: they are held in the name and are no index of it.
    """

    at: tuple[tuple[str, int], ...] = ()
    over: frozenset[str] = frozenset()


NO_INDEX = GeneratorIndices()
"""A function of its arguments alone."""

Related = Mapping[int, Callable[[str, Quotient], Quotient]]
"""Position of a call → its value, given the function and the generator of the other's value."""


def _with_states(args: tuple[Quotient, ...]) -> bool:
    return any(STATE in name for a in args for name in a.names)


class Symbols:
    """All generators of a claim: which are real and positive, and what their conjugates are.

    Attributes:
        defined: generator → the function and the arguments that its name spells; leaves have none.
            `~f` is the conjugate of f of the conjugates.
        spelled: generator → the indices that it has, and those of its arguments that it has not.
        reach: the first token that is like all later ones: how far back one reads. The names of
            generators do not say it of `first`, nor of what is the same at all tokens but 0 before.
        roots: generators of which a power is known.
        divisors: values of states that the second divides its output by, where it is claimed to
            have one.
    """

    def __init__(self) -> None:
        """Starts with the imaginary unit."""
        self._real: dict[str, bool] = {IMAGINARY: False}
        self._positive: dict[str, bool] = {IMAGINARY: False}
        self._conjugate: dict[str, Callable[[], Quotient]] = {IMAGINARY: lambda: -IMAGINARY_UNIT}
        self._units: set[str] = set()
        self._nonneg: set[str] = set()
        self._parts: dict[str, int] = {}
        self._logarithms: dict[str, Quotient] = {}
        self._exponents: dict[str, Quotient] = {}
        self.defined: dict[str, tuple[str, tuple[Quotient, ...]]] = {}
        self.spelled: dict[str, GeneratorIndices] = {}
        self.reach = 0
        self.roots = Roots()
        self.divisors: list[Quotient] = []
        self._calls: list[Call] = []
        self._places: dict[tuple[str, tuple[str, ...]], int] = {}
        self._related: Related = {}

    def leaf(
        self,
        name: str,
        real: bool,
        positive: bool = False,
        spelled: GeneratorIndices = NO_INDEX,
        unit: bool = False,
        nonneg: bool = False,
    ) -> Quotient:
        """Returns an independent generator; a complex one has a twin, its conjugate."""
        self._add(name, real, positive)
        self._units |= {name} if unit else set()
        self._nonneg |= {name} if nonneg else set()
        self.spelled[name] = self.spelled[f"~{name}"] = spelled
        if not real:
            twin = f"~{name}"
            self._add(twin, False, False)
            self._conjugate.setdefault(name, lambda: Quotient(generator(twin)))
            self._conjugate.setdefault(twin, lambda: Quotient(generator(name)))
        return Quotient(generator(name))

    def _add(self, name: str, real: bool, positive: bool) -> None:
        if self._real.setdefault(name, real) is not real:
            raise Obstacle(f"{name} is real in one place and complex in another")
        self._positive[name] = self._positive.get(name, False) or positive

    def opaque(
        self,
        head: str,
        args: tuple[Quotient, ...],
        real: bool,
        positive: bool,
        spelled: GeneratorIndices = NO_INDEX,
    ) -> Quotient:
        """Returns a function that nothing is known of but its arguments.

        Raises:
            Obstacle: an argument holds a state and the value is complex.
        """
        if self._is_call(args, real):
            return self._call(head, args, real, positive)
        args = tuple(map(self.roots.reduced, args))
        name = f"{head}({','.join(a.text for a in args)})"
        self._add(name, real, positive)
        self.defined[name], self.spelled[name] = (head, args), spelled
        if not real:
            bars = tuple(self.conjugate(a) for a in args)
            twin = f"~{head}({','.join(a.text for a in bars)})"
            self.defined[twin], self.spelled[twin] = (f"~{head}", bars), spelled
            self._add(twin, False, False)
            self._conjugate.setdefault(name, lambda: Quotient(generator(twin)))
            self._conjugate.setdefault(twin, lambda: Quotient(generator(name)))
        return Quotient(generator(name))

    def root(
        self, head: str, args: tuple[Quotient, ...], degree: int, power: Quotient, real: bool
    ) -> Quotient:
        """Returns a function of what holds no states of which a power is known.

        Args:
            head: `abs`, `sqrt` or `pow`.
            args: of the function.
            degree: the exponent.
            power: what it is to the power of this exponent.
            real: whether it is real; then it is never negative.
        """
        out = self.opaque(head, args, real, positive=False)
        if self._is_call(args, real=True):
            return out  # its generator is another value at another token
        (name,) = out.names
        self.roots.add(name, degree, power)
        if real:
            self._nonneg.add(name)
        else:
            (twin,) = self.conjugate(out).names
            self.roots.add(twin, degree, self.conjugate(power))
        return out

    def exponent(self, name: str) -> Quotient | None:
        """Returns what a generator is the exponential of, None where it is none."""
        return self._exponents.get(name)

    def _is_call(self, args: tuple[Quotient, ...], real: bool) -> bool:
        """Whether arguments hold states, or what is a function of them."""
        return _with_states(args) or (real and any(CALL in name for a in args for name in a.names))

    def _call(self, head: str, args: tuple[Quotient, ...], real: bool, positive: bool) -> Quotient:
        if not real:
            raise Obstacle(f"`{head}` is applied to a complex value of the state")
        key = (head, tuple(a.text for a in args))
        place = self._places.setdefault(key, len(self._places))
        if place == len(self._calls):
            self._calls.append(Call(head, args))
        name = f"{CALL}{place},{head}>[]@0"
        self.defined[name] = head, args
        self._add(name, True, positive)
        value = Quotient(generator(name))
        return self._related[place](head, value) if place in self._related else value

    @contextmanager
    def recorded(self, related: Related | None = None) -> Iterator[list[Call]]:
        """Collects the calls of one system at one token.

        Args:
            related: position of a call → its value, given the function and the generator.
        """
        self._calls, self._places, self._related = [], {}, related or {}
        yield self._calls

    # --- facts ------------------------------------------------------------------------------------

    def knows(self, name: str) -> bool:
        """Returns whether a generator of this name has come up."""
        return name in self._real

    @property
    def positive_names(self) -> tuple[str, ...]:
        """The generators that are positive, sorted."""
        return tuple(sorted(name for name, positive in self._positive.items() if positive))

    def is_real(self, q: Quotient) -> bool:
        """Returns whether a value is real because all its generators are."""
        return all(self._real.get(name, False) for name in q.names)

    def is_positive(self, p: Polynomial) -> bool:
        """Returns whether a polynomial is positive because every term is.

        Where not all are, it is written in t = x - 1 for each exponential x of what is positive,
        and in t = 1 / x - 1 for each x in (0, 1).
        """
        return self._has_positive_terms(p) or self._has_positive_terms(self._from_one(p))

    def _has_positive_terms(self, p: Polynomial) -> bool:
        return bool(p) and all(
            c > 0 and all(self._positive.get(g, False) for g, _ in m) for m, c in p.terms.items()
        )

    def _from_one(self, p: Polynomial) -> Polynomial:
        """A polynomial that is positive where p is, t going by the name of x."""
        large = {g for g in p.names if g in self._exponents and self.positive(self._exponents[g])}
        small = self._units & p.names
        powers = {g: [dict(m).get(g, 0) for m in p.terms] for g in sorted(large | small)}
        if any(max(of) - min(of) > HIGHEST for of in powers.values()):
            return p
        out = Polynomial({})
        for m, c in p.terms.items():
            part = Polynomial({tuple(f for f in m if f[0] not in powers): c})
            for g, of in powers.items():
                e = dict(m).get(g, 0)
                power = max(of) - e if g in small else e - min(of)
                part = part * (POLYNOMIAL_ONE + generator(g)).power(power)
            out = out + part
        return out

    def positive(self, q: Quotient) -> bool:
        """Returns whether a value is positive: all its parts are or, term by term, negative."""
        negative = 0
        for part, exponent in ((q.num, 1), *q.den.items()):
            if not self.is_positive(part):
                if not self.is_positive(-part):
                    return False
                negative += exponent
        return negative % 2 == 0

    def never_negative(self, q: Quotient) -> bool:
        """Returns whether a value is real and at least 0: by its terms, or as |x| + x is."""
        if not self.is_real(q):
            return False
        if self.positive(q):
            return True
        odd = [base for base, exponent in q.den.items() if exponent % 2]
        return self._has_no_negative_terms(q.num) and all(map(self.is_positive, odd))

    def _has_no_negative_terms(self, p: Polynomial) -> bool:
        for name in sorted(p.names):
            head, args = ("", ()) if CALL in name else self.defined.get(name, ("", ()))
            size = p.terms.get(((name, 1),), Fraction(0))
            if head == "abs" and size > 0 and not args[0].den and self.is_real(args[0]):
                rest = p + -(generator(name) * constant(size))
                for turned in (args[0].num, -args[0].num):
                    left = rest + -(turned * constant(size))
                    if name not in left.names and self._no_term_is_negative(left):
                        return True
        return self._no_term_is_negative(p)

    def _no_term_is_negative(self, p: Polynomial) -> bool:
        def kept(name: str, exponent: int) -> bool:
            even = exponent % 2 == 0 and self._real.get(name, False)
            return even or self._positive.get(name, False) or name in self._nonneg

        return all(c > 0 and all(kept(*f) for f in m) for m, c in p.terms.items())

    def _absolute(self, p: Polynomial) -> Quotient:
        """A polynomial that is positive or negative without its sign."""
        return Quotient(p if self.is_positive(p) else -p)

    def conjugate(self, q: Quotient) -> Quotient:
        """Returns the complex conjugate."""
        twins = {g: self._conjugate[g]() for g in q.names if not self._real[g]}
        return q.substituted(twins) if twins else q

    # --- laws -------------------------------------------------------------------------------------

    def refine(self, q: Quotient) -> None:
        """Makes exponentials of multiples of each term of q powers of that term's, from now on."""
        for m, c in q.num.ordered:
            root = Quotient(Polynomial({m: Fraction(1)}), q.den)
            self._parts[root.text] = c.denominator

    def exp(self, q: Quotient) -> Quotient:
        """Returns e^q as a product of generators."""
        if _with_states((q,)):
            return self.opaque("exp", (q,), self.is_real(q), positive=True)
        q, out = self.roots.reduced(q), ONE
        for m, c in q.num.ordered:
            monomial = Quotient(Polynomial({m: Fraction(1)}), q.den)
            out = out * self._exponential(monomial, m, c)
        return out

    def _exponential(self, monomial: Quotient, m: Monomial, c: Fraction) -> Quotient:
        if not monomial.den and len(m) == 1 and m[0][1] == 1 and c.denominator == 1:
            argument = self._logarithms.get(m[0][0])
            if argument is not None:
                return argument.power(int(c))
        parts = self._parts.get(monomial.text, c.denominator)
        parts = parts if parts % c.denominator == 0 else c.denominator
        root = monomial * number(Fraction(1, parts))
        name = f"exp({root.text})"
        if name not in self._real:
            real = self.is_real(root)
            self._add(name, real, real)
            self._exponents[name] = root
            self.defined[name], self.spelled[name] = ("exp", (root,)), NO_INDEX
            if not real:
                self._conjugate[name] = lambda: self.exp(self.conjugate(root))
            if parts > 1 and monomial.text not in self._parts:
                # (e^{x/4})² is e^{x/2}: one prime after the other.
                prime = next(k for k in range(2, parts + 1) if parts % k == 0)
                self.roots.add(name, prime, self.exp(root * number(prime)))
        return Quotient(generator(name)).power(int(c * parts))

    def log(self, q: Quotient) -> Quotient:
        """Returns the logarithm, split where every part is positive."""
        if self._is_call((q,), real=True):
            # The generator of a call is no name of what it is called with.
            if _with_states((q,)) or not self.positive(q):
                return self.opaque("log", (q,), self.is_real(q), False)
        else:
            q = self._of_sizes(self.roots.reduced(q))
            if not (self.positive(q) or self._splits(q)):
                out = self.opaque("log", (q,), self.is_real(q), False)
                self._logarithms[next(iter(out.names))] = q
                return out
        simple, rest = q.num.split()
        ((m, c),) = simple.terms.items()
        c = abs(c)
        out = self._log_of_number(c.numerator) - self._log_of_number(c.denominator)
        for name, exponent in m:
            out = out + self._log_of_generator(name) * number(exponent)
        if rest.names:
            out = out + self._logarithm(self._absolute(rest))
        for base, exponent in q.den.items():
            out = out - self._logarithm(self._absolute(base)) * number(exponent)
        return out

    def _of_sizes(self, q: Quotient) -> Quotient:
        """A value with |g| for g in even powers, if logarithms of all its factors then add up."""
        if not q.num or self.positive(q):
            return q
        c, parts = signs.factors(q)
        out = number(c)
        for p, exponent in parts:
            part = Quotient(p)
            real = exponent % 2 == 0 and self.is_real(part)
            out = out * (signs.absolute(self, part) if real else part).power(exponent)
        return out if self._splits(out) else q

    def _splits(self, q: Quotient) -> bool:
        """Whether a logarithm is that of each factor, as none is negative."""
        if not q.num:
            return False
        c, parts = signs.factors(q)
        return c > 0 and all(
            self.is_positive(p) or (len(p.terms) == 1 and self.never_negative(Quotient(p)))
            for p, _ in parts
        )

    def _log_of_number(self, value: int) -> Quotient:
        out, prime = ZERO, 2
        while value > 1:
            if prime * prime > value or prime > 1000:
                prime = value
            if value % prime == 0:
                out = out + self._logarithm(number(prime))
                value //= prime
            else:
                prime += 1
        return out

    def _log_of_generator(self, name: str) -> Quotient:
        known = self._exponents.get(name)
        return self._logarithm(Quotient(generator(name))) if known is None else known

    def _logarithm(self, q: Quotient) -> Quotient:
        """The logarithm of a positive polynomial; it is positive where that is more than 1."""
        name = f"log({q.text})"
        self._add(name, True, self.is_positive(q.num + -POLYNOMIAL_ONE))
        self._logarithms[name] = q
        self.defined[name], self.spelled[name] = ("log", (q,)), NO_INDEX
        return Quotient(generator(name))

    def power(self, base: Quotient, exponent: Quotient) -> Quotient:
        """Returns base^exponent."""
        value = exponent.number
        if value is not None and value.denominator == 1 and abs(value) <= 64:
            return base.power(int(value))
        states = self._is_call((base, exponent), real=True)
        if not states and self.positive(base) and self.is_real(exponent):
            return self.exp(exponent * self.log(base))
        if value is not None and not states and 1 < value.denominator <= HIGHEST:
            return signs.root(self, base, value.denominator).power(value.numerator)
        real = self.is_real(base) and self.is_real(exponent)
        return self.opaque("pow", (base, exponent), real, False)

    def check_branch(self, name: str, args: tuple[Quotient, ...], kind: Field) -> None:
        """Checks that a function has the value that real numbers have of it, if they stand in it.

        A complex -1 has the logarithm iπ and a root, a real one has none. What is real may be so
        by known powers of roots alone.

        Raises:
            Obstacle: its arguments are complex, and real by a law, and may be negative.
        """
        if name not in BRANCHED or kind is Field.REAL:
            return
        first, *others = args
        value = self.roots.reduced(first + ONE if name == "log1p" else first)
        if not all(map(self.is_real, (value, *map(self.roots.reduced, others)))):
            return
        if not self.positive(value):
            raise Obstacle(f"`{name}` of a complex value that is real may have another branch")

    def primitive(self, name: str, args: tuple[Quotient, ...], kind: Field) -> Quotient:
        """Returns an elementwise primitive: by its law, else as an opaque generator."""
        self.check_branch(name, args, kind)
        law = elementary.LAWS.get(name)
        if law is not None:
            return law(self, *args)
        if not self._is_call(args, real=True):
            values = tuple(map(self.roots.reduced, args))
            if name == "sqrt":
                return signs.square_root(self, values[0], kind is Field.REAL)
            if name in signs.LAWS:
                return signs.LAWS[name](self, *values)
        r = row(name)
        real = kind is Field.REAL
        positive = real and r.range(*(REALS for _ in args)).within(POSITIVE)
        return self.opaque(name, args, real, positive)

    def along(self, name: str, vector: tuple[Quotient, ...], at: int, axis: str) -> Quotient:
        """Returns one entry of a primitive along an axis."""
        if name == "softmax":
            parts = [self.exp(x) for x in vector]
            below = ZERO
            for part in parts:
                below = below + part
            return parts[at] / below
        if not any(vector):
            return ZERO
        if not all(self.is_real(q) for q in vector):
            raise Obstacle(f"`{name}` is applied to complex values")
        # Two axes of one size here may have different ones elsewhere: they are in the name. What
        # holds states is said of no other sizes, and may be laid out along another axis.
        head = name if self._is_call(vector, real=True) else f"{name}.{axis}"
        spelled = GeneratorIndices(((axis, at),), frozenset({axis}))
        return self.opaque(f"{head}[{at}]", vector, True, False, spelled)
