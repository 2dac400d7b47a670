"""Functions of values: exponentials, logarithms, powers by law; all others as atoms.

An atom of a function goes by the function and the keys of its arguments, so that two are one where
all arguments are equal. Exponentials are powers of the atoms e^(m / r), m a monomial over the
denominator of the exponent and r a root; where a finer root comes up, all starts again with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

from flint import fmpz_mpoly

from second_checker.arithmetic import Beyond, Ring, Value, atoms_of


class Finer(Exception):
    """A finer root of an exponential is needed: start again with it."""

    def __init__(self, label: str, root: int) -> None:
        super().__init__(label)
        self.label, self.root = label, root


@dataclass
class Fact:
    """What is known of an atom.

    Attributes:
        real: whether it is its own conjugate.
        positive: whether it is positive.
        unit: whether it lies in (0, 1).
        above_one: whether it is above 1.
        exponent: what it is the exponential of.
        argument: what it is the logarithm of.
        made: the function and the arguments that it is the value of.
        bar: its conjugate.
        state: whether states stand in it.
    """

    real: bool = True
    positive: bool = False
    unit: bool = False
    above_one: bool = False
    exponent: Value | None = None
    argument: Value | None = None
    made: tuple[str, tuple[Value, ...]] | None = None
    bar: Callable[[], Value] | None = None
    state: bool = False


@dataclass
class Called:
    """Functions of values of states, in the order of their calls at one token."""

    token: int
    made: list[tuple[str, tuple[Value, ...], Value]] = field(default_factory=list)


class Functions:
    """All functions over one ring."""

    def __init__(self, ring: Ring, roots: Mapping[str, int]) -> None:
        self.ring, self.roots = ring, roots
        self.facts: dict[int, Fact] = {0: Fact(real=False, bar=lambda: -ring.i)}
        self._labels: dict[int, str] = {0: "i"}
        self._exponentials: dict[str, tuple[Value, int]] = {}
        self.called: Called | None = None
        self.replaced: Callable[[int, str, Value], Value] = lambda _k, _head, value: value

    # --- atoms ------------------------------------------------------------------------------------

    def atom(self, name: str, **known: bool) -> Value:
        """An atom of its own; a complex one has a twin."""
        place = self.ring.place(name)
        value = self.ring.value(self.ring.atoms[place])
        if place not in self.facts:
            fact = self.facts[place] = Fact(**known)
            if not fact.real:
                twin = self.ring.place(f"~{name}")
                bar = self.ring.value(self.ring.atoms[twin])
                self.facts[twin] = Fact(real=False, bar=lambda: value, state=fact.state)
                fact.bar = lambda: bar
        return value

    def holds_state(self, value: Value) -> bool:
        return any(self.facts[k].state for k in value.places)

    def is_real(self, value: Value) -> bool:
        return all(self.facts[k].real for k in value.places)

    def bar(self, value: Value) -> Value:
        """The complex conjugate."""
        twins = {}
        for k in value.places:
            bar = self.facts[k].bar
            if not self.facts[k].real and bar is not None:
                twins[k] = bar()
        return value.put(twins)

    # --- signs ------------------------------------------------------------------------------------

    def positive(self, value: Value) -> bool:
        """Whether both parts are positive, or both negative, term by term."""
        signs = [self._sign(p) for p in (value.top, value.below)]
        return 0 not in signs and signs[0] == signs[1]

    def _sign(self, p: fmpz_mpoly) -> int:
        return _sign_by_terms(p, self._positive) or self._sign_from_one(p)

    def _positive(self, place: int) -> bool:
        return self.facts[place].positive

    def _sign_from_one(self, p: fmpz_mpoly) -> int:
        """The sign with t + 1 for what is above 1, and 1 / (t + 1) for what is in (0, 1)."""
        ring, values = self.ring, {}
        for k in atoms_of(p):
            fact, t = self.facts[k], ring.value(ring.atoms[k])
            above = fact.exponent is not None and self.positive(fact.exponent)
            if above or fact.above_one:
                values[k] = ring.one + t
            elif fact.unit:
                values[k] = ring.one / (ring.one + t)
        if not values or max(p.degrees()) > 16:
            return 0
        return _sign_by_terms(ring.value(p).put(values).top, self._positive)

    # --- functions without a law ------------------------------------------------------------------

    def opaque(self, head: str, args: tuple[Value, ...], real: bool, positive: bool) -> Value:
        """An atom: the function of these arguments, or the next call if these hold states."""
        if any(map(self.holds_state, args)):
            return self._call(head, args, real, positive)
        name = f"{head}({','.join(a.key for a in args)})"
        known = self.ring.place(name) in self.facts
        value = self.atom(name, real=real, positive=real and positive)
        fact = self.facts[self.ring.place(name)]
        if not known:
            fact.made = (head, args)
            # The twin is made by the conjugate of the function, of the conjugates.
        return value

    def _call(self, head: str, args: tuple[Value, ...], real: bool, positive: bool) -> Value:
        if not real or not all(map(self.is_real, args)):
            raise Beyond(f"{head} of a complex value of a state")
        if self.called is None:
            raise Beyond(f"{head} of a state in the name of a function")
        keys = [(h, [a.key for a in known]) for h, known, _ in self.called.made]
        key = (head, [a.key for a in args])
        if key not in keys:
            k = len(keys)
            name = f"call {k} {head} {self.called.token}"
            value = self.atom(name, real=True, positive=positive, state=True)
            self.called.made.append((head, args, self.replaced(k, head, value)))
            return self.called.made[-1][2]
        return self.called.made[keys.index(key)][2]

    # --- exponentials and logarithms --------------------------------------------------------------

    def exp(self, value: Value) -> Value:
        if self.holds_state(value):
            return self.opaque("exp", (value,), self.is_real(value), True)
        out = self.ring.one
        for exponents, c in sorted(value.top.to_dict().items()):
            term = self.ring.context.from_dict({exponents: c})
            out = out * self._exponential(self.ring.value(term, value.below))
        return out

    def _exponential(self, term: Value) -> Value:
        """e to one term over a denominator."""
        content = Fraction(int(term.top.leading_coefficient()), int(_content(term.below)))
        monomial = term / self.ring.number(content)
        if len(monomial.places) == 1 and content.denominator == 1:
            (place,) = monomial.places
            argument = self.facts[place].argument
            if argument is not None and monomial.key == self.ring.value(self.ring.atoms[place]).key:
                return argument.power(int(content))
        label = self._label(monomial)
        root = self.roots.get(label, 1)
        if root % content.denominator:
            raise Finer(label, lcm(root, content.denominator))
        if label not in self._exponentials:
            exponent = monomial / self.ring.number(root)
            real = self.is_real(exponent)
            name = f"exp({exponent.key})"
            place = self.ring.place(name)
            bar = None if real else (lambda: self.exp(self.bar(exponent)))
            self.facts[place] = Fact(real, real, exponent=exponent, made=("exp", (exponent,)),
                                     bar=bar)  # fmt: skip
            self._exponentials[label] = self.ring.value(self.ring.atoms[place]), root
        atom, root = self._exponentials[label]
        return atom.power(int(content * root))

    def _label(self, value: Value) -> str:
        """A text that is the same after another start."""
        held = sorted(self.ring.names[k] for k in value.places)
        return f"{_spelled(value.top, self.label)}/{_spelled(value.below, self.label)} {held!r:.20}"

    def label(self, place: int) -> str:
        if place not in self._labels:
            made = self.facts[place].made
            self._labels[place] = self.ring.names[place] if made is None else (
                f"{made[0]}({','.join(self._label(a) for a in made[1])})")  # fmt: skip
        return self._labels[place]

    def log(self, value: Value) -> Value:
        if self.holds_state(value) or not self.positive(value):
            return self.opaque("log", (value,), self.is_real(value), False)
        out = self.ring.zero
        for p, sign in ((value.top, 1), (value.below, -1)):
            content, factors = p.factor()
            out = out + self.ring.number(sign) * self._log_of_number(abs(int(content)))
            kept = [(f if self._sign(f) >= 0 else -f, e) for f, e in factors]
            if not all(self._sign(f) for f, _ in kept):
                rest = p.primitive()[1]
                kept = [(rest if self._sign(rest) > 0 else -rest, 1)]
            for f, e in kept:
                out = out + self._log_of(self.ring.value(f)) * self.ring.number(sign * int(e))
        return out

    def _log_of_number(self, value: int) -> Value:
        out, prime = self.ring.zero, 2
        while value > 1:
            if prime * prime > value or prime > 1000:
                prime = value
            while value % prime == 0:
                out = out + self._log_of(self.ring.number(prime))
                value //= prime
            prime += 1
        return out

    def _log_of(self, value: Value) -> Value:
        if len(value.places) == 1:
            (place,) = value.places
            exponent = self.facts[place].exponent
            if exponent is not None and value.key == self.ring.value(self.ring.atoms[place]).key:
                return exponent
        name = f"log({value.key})"
        place = self.ring.place(name)
        if place not in self.facts:
            above = self.positive(value - self.ring.one) if value.number is None else True
            self.facts[place] = Fact(True, above, argument=value, made=("log", (value,)))
        return self.ring.value(self.ring.atoms[place])

    def pow(self, base: Value, exponent: Value) -> Value:
        whole = exponent.number
        if whole is not None and whole.denominator == 1:
            return base.power(int(whole))
        states = self.holds_state(base) or self.holds_state(exponent)
        if not states and self.positive(base) and self.is_real(exponent):
            return self.exp(exponent * self.log(base))
        real = self.is_real(base) and self.is_real(exponent)
        return self.opaque("pow", (base, exponent), real, False)

    # --- primitives -------------------------------------------------------------------------------

    def primitive(self, name: str, args: tuple[Value, ...], real: bool) -> Value:
        """A primitive of its arguments; `real` is what its declaration says of it."""
        one, two, i = self.ring.one, self.ring.number(2), self.ring.i
        if not real and name in ("log", "log1p", "sqrt", "pow") and all(map(self.is_real, args)):
            if not self.positive(args[0] + one if name == "log1p" else args[0]):
                raise Beyond(f"{name} of what is complex, real by a law, and perhaps negative")
        x = args[0] if args else one
        match name:
            case "exp":
                return self.exp(x)
            case "log":
                return self.log(x)
            case "log1p":
                return self.log(one + x)
            case "expm1":
                return self.exp(x) - one
            case "exprel":
                return (self.exp(x) - one) / x
            case "sigmoid":
                return one / (one + self.exp(-x))
            case "softplus":
                return self.log(one + self.exp(x))
            case "logsigmoid":
                return -self.log(one + self.exp(-x))
            case "silu":
                return x / (one + self.exp(-x))
            case "tanh":
                return two / (one + self.exp(-(x + x))) - one
            case "sin":
                return (self.exp(i * x) - self.exp(-(i * x))) / (two * i)
            case "cos":
                return (self.exp(i * x) + self.exp(-(i * x))) / two
            case "cis":
                return self.exp(i * x)
            case "cplx":
                return x + i * args[1]
            case "conj":
                return self.bar(x)
            case "re":
                return (x + self.bar(x)) / two
            case "im":
                return (x - self.bar(x)) / (two * i)
        if name in ("sqrt", "abs", "relu") and self.positive(x):
            return self.pow(x, self.ring.number(Fraction(1, 2))) if name == "sqrt" else x
        if name == "relu" and x.number is not None:
            return self.ring.zero
        return self.opaque(name, args, real, name == "pi")

    def along(self, name: str, vector: tuple[Value, ...], at: int, axis: str) -> Value:
        """One entry of a primitive along an axis."""
        if name == "softmax":
            parts = [self.exp(x) for x in vector]
            return parts[at] / self.ring.total(parts)
        if not all(map(self.is_real, vector)):
            raise Beyond(f"{name} of complex values")
        head = name if any(map(self.holds_state, vector)) else f"{name}.{axis}"
        return self.opaque(f"{head}[{at}]", vector, True, False)


def _content(p: fmpz_mpoly) -> int:
    return abs(int(p.content()))


def _spelled(p: fmpz_mpoly, label: Callable[[int], str]) -> str:
    terms = []
    for exponents, c in p.to_dict().items():
        factors = sorted((label(k), e) for k, e in enumerate(exponents) if e)
        terms.append(f"{factors} {c}")
    return ";".join(sorted(terms))


def _sign_by_terms(p: fmpz_mpoly, positive: Callable[[int], bool]) -> int:
    if p.is_zero() or not all(map(positive, atoms_of(p))):
        return 0
    signs = {1 if c > 0 else -1 for c in p.coeffs()}
    return signs.pop() if len(signs) == 1 else 0
