"""A checker of the part of Lean that `dsfc check-proof --lean` writes, by a grammar of its own.

It reads the text and nothing else. Terms are trees and must be the same trees where Lean asks for
one type, up to the arithmetic of token numbers; `linear_combination` is checked as an identity of
polynomials with fractions. A theorem must use each of its hypotheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

Tree = tuple
"""("num", k), ("var", name), ("at", name, has_m, k), or an operator with its arguments."""

Prop = tuple
"""("=", left, right), ("≠", left, right)."""

TOKEN = re.compile(r"\s+|--[^\n]*|[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)*|[0-9]+"
                   r"|\.[a-z_]+"
                   r"|:=|[-+*/^():,{}\[\]=≠∧⟨⟩∀→ℕ|]|=>")  # fmt: skip
IMPORTS = ("LinearCombination", "Ring", "FieldSimp")


SQUARE = ("=", ("*", ("var", "I"), ("var", "I")), ("neg", ("num", 1)))
"""What is supposed of the imaginary unit."""


class Wrong(Exception):
    """The text is not a proof of what it states, or is not of this part of Lean."""


def tokens(text: str) -> list[str]:
    out, at = [], 0
    text = re.sub(r"/-.*?-/", " ", text, flags=re.DOTALL)
    while at < len(text):
        found = re.compile(r"=>").match(text, at) or TOKEN.match(text, at)
        if found is None:
            raise Wrong(f"not a token: {text[at : at + 20]!r}")
        if found[0].strip() and not found[0].startswith("--"):
            out.append(found[0])
        at = found.end()
    return out


@dataclass
class Lemma:
    """A theorem about numbers."""

    variables: list[str] = field(default_factory=list)
    hypotheses: dict[str, Prop] = field(default_factory=dict)
    goal: Prop = ()


class Reader:
    """One file, read from its beginning."""

    def __init__(self, text: str) -> None:
        self.left = tokens(text)
        self.at = 0
        self.fields: dict[str, tuple[bool, Prop]] = {}
        self.sequences: dict[str, bool] = {}
        self.lemmas: dict[str, Lemma] = {}
        self.theorems: dict[str, list[Prop]] = {}
        self.run = ""

    # --- tokens -----------------------------------------------------------------------------------

    @property
    def next(self) -> str:
        return self.left[self.at] if self.at < len(self.left) else ""

    def take(self) -> str:
        self.at += 1
        return self.left[self.at - 1] if self.at <= len(self.left) else ""

    def need(self, *words: str) -> None:
        for word in words:
            found = self.take()
            if found != word:
                raise Wrong(f"{word!r} is wanted, not {found!r}")

    def took(self, word: str) -> bool:
        if self.next == word:
            self.at += 1
            return True
        return False

    def name(self) -> str:
        found = self.take()
        if not re.fullmatch(r"[A-Za-z_]\w*", found):
            raise Wrong(f"{found!r} is no name")
        return found

    # --- terms ------------------------------------------------------------------------------------

    def sum(self) -> Tree:
        out = ("neg", self.product()) if self.took("-") else self.product()
        while self.next in ("+", "-"):
            out = (self.take(), out, self.product())
        return out

    def product(self) -> Tree:
        out = self.power()
        while self.next in ("*", "/"):
            out = (self.take(), out, self.power())
        return out

    def power(self) -> Tree:
        out = self.atom()
        return ("^", out, int(self.take())) if self.took("^") else out

    def atom(self) -> Tree:
        if self.took("("):
            out = self.sum()
            self.need(")")
            return out
        word = self.take()
        if word.isdecimal():
            return ("num", int(word))
        bare = word.removeprefix(self.run) if self.run else word
        if self.run and not word.startswith(self.run):
            raise Wrong(f"{word!r} is no field of the run")
        if not re.fullmatch(r"[A-Za-z_]\w*", bare):
            raise Wrong(f"{word!r} is no variable")
        if self.sequences.get(bare) and (self.run or self.inside):
            return ("at", bare, *self.index())
        return ("var", bare)

    inside = False
    """Whether the structure is read, where sequences have an index."""

    def index(self) -> tuple[bool, int]:
        """`m`, a number, or `(m + number)`."""
        if self.took("("):
            out = self.index()
            while self.took("+"):
                out = out[0], out[1] + int(self.take())
            self.need(")")
            return out
        word = self.take()
        return (True, 0) if word == "m" else (False, int(word))

    def prop(self) -> Prop:
        left = self.sum()
        sign = self.take()
        if sign not in ("=", "≠"):
            raise Wrong(f"{sign!r} where a statement is wanted")
        return (sign, left, self.sum())

    # --- the file ---------------------------------------------------------------------------------

    def file(self) -> None:
        for name in IMPORTS:
            self.need("import", f"Mathlib.Tactic.{name}")
        self.need("namespace", "Dsfc")
        self.structure()
        self.need("variable", "{", "K", ":", "Type", "*", "}", "[", "Field", "K", "]",
                  "[", "CharZero", "K", "]")  # fmt: skip
        while not self.took("end"):
            self.need("theorem")
            name = self.name()
            if name in self.lemmas or name in self.theorems:
                raise Wrong(f"{name} is stated twice")
            if self.left[self.at : self.at + 5] == ["(", "R", ":", "Run", "K"]:
                self.about_runs(name)
            else:
                self.lemma(name)
        self.need("Dsfc")
        if self.at != len(self.left):
            raise Wrong("something follows")
        for name in ("first_outputs", "outputs"):
            if name not in self.theorems:
                raise Wrong(f"there is no theorem {name}")

    def structure(self) -> None:
        self.need("structure", "Run", "(", "K", ":", "Type", "*", ")", "[", "Field", "K", "]",
                  "where")  # fmt: skip
        self.inside = True
        while self.next != "variable":
            name = self.name()
            if name in self.sequences or name in self.fields:
                raise Wrong(f"{name} stands twice in the structure")
            self.need(":")
            if self.next == "K" or self.next == "ℕ":
                self.sequences[name] = self.take() == "ℕ"
                if self.sequences[name]:
                    self.need("→", "K")
                continue
            every = self.took("∀")
            if every:
                self.need("m", ":", "ℕ", ",")
            self.fields[name] = every, self.prop()
        self.inside = False
        self.inhabited()

    def inhabited(self) -> None:
        """Checks that there are runs: values are defined one by one, by earlier and free ones."""
        equations = [p for _, p in self.fields.values() if p[0] == "="]
        values = [left for _, left, _ in equations if left != SQUARE[1]]
        if len(set(values)) != len(values) or any(v[0] != "at" for v in values):
            raise Wrong("a value is defined twice, or is no value at a token")
        defined = {v[1] for v in values}
        for sign, left, right in (p for _, p in self.fields.values()):
            if sign == "≠":
                if not polynomial(left):
                    raise Wrong("what is supposed not to be 0 is 0")
            elif left == SQUARE[1]:
                if (sign, left, right) != SQUARE:
                    raise Wrong("the square of I is -1")
            elif any(t[1] in defined and not (t[2] == left[2] and t[3] < left[3])
                     for t in entries(right)):  # fmt: skip
                raise Wrong("a value is defined by a later one")

    def lemma(self, name: str) -> None:
        it = Lemma()
        while self.took("("):
            label = self.name()
            self.need(":")
            if label in it.variables or label in it.hypotheses:
                raise Wrong(f"{label} stands twice")
            if self.took("K"):
                it.variables.append(label)
            else:
                it.hypotheses[label] = self.prop()
            self.need(")")
        self.need(":")
        it.goal = self.prop()
        self.need(":=", "by")
        held = set().union(*(variables(p) for p in (it.goal, *it.hypotheses.values())))
        if held != set(it.variables):
            raise Wrong(f"{name}: the variables are not those that occur")
        self.proof(name, it)
        self.lemmas[name] = it

    def proof(self, name: str, it: Lemma) -> None:
        """Checks the proof of a lemma."""
        sign, left, right = it.goal
        if sign != "=":
            raise Wrong(f"{name} does not state an equality")
        used, scale = set[str](), ("num", 1)
        difference = ("-", left, right)
        if self.took("have"):
            self.need("d", ":")
            stated = self.prop()
            self.need(":=")
            shown = self.not_zero(it.hypotheses, used)
            if stated != ("≠", shown, ("num", 0)):
                raise Wrong(f"{name}: what is not 0 is another product")
            self.need("have", "e", ":")
            zero = self.prop()
            if zero != ("=", ("*", shown, difference), ("num", 0)):
                raise Wrong(f"{name}: the identity is not D times the goal")
            self.need(":=", "by")
            scale = shown
        self.need("linear_combination")
        known = self.combined(it.hypotheses, used)
        if add(polynomial(("*", scale, difference)), known, -1):
            raise Wrong(f"{name}: the identity does not hold")
        if scale != ("num", 1):
            self.closing()
        if used != set(it.hypotheses):
            raise Wrong(f"{name}: a hypothesis is not used")

    def closing(self) -> None:
        self.need("exact", "sub_eq_zero.mp", "(", "(", "mul_eq_zero.mp", "e", ")")
        self.need(".resolve_left", "d", ")")

    def not_zero(self, known: Mapping[str, Prop], used: set[str]) -> Tree:
        """What a proof shows to be other than 0."""
        if not self.took("("):
            name = self.name()
            sign, value, zero = known[name]
            if sign != "≠" or zero != ("num", 0):
                raise Wrong(f"{name} does not say that something is not 0")
            used.add(name)
            return value
        head = self.name()
        if head == "pow_ne_zero":
            exponent = int(self.take())
            out = ("^", self.not_zero(known, used), exponent)
        elif head == "mul_ne_zero":
            left = self.not_zero(known, used)
            out = ("*", left, self.not_zero(known, used))
        else:
            raise Wrong(f"{head} is no rule of what is not 0")
        self.need(")")
        return out

    def combined(self, known: Mapping[str, Prop], used: set[str]) -> dict:
        """Σ (multiplier) * hypothesis, as left sides minus right sides."""
        if self.took("0"):
            return {}
        total: dict = {}
        while True:
            self.need("(")
            multiplier = polynomial(self.sum())
            self.need(")", "*")
            name = self.name()
            sign, left, right = known[name]
            if sign != "=" or not multiplier or name in used:
                raise Wrong(f"{name} is not used once, with a multiplier other than 0")
            used.add(name)
            total = add(total, times(multiplier, add(polynomial(left), polynomial(right), -1)))
            if not self.took("+"):
                return total

    # --- theorems about runs ----------------------------------------------------------------------

    def about_runs(self, name: str) -> None:
        self.need("(", "R", ":", "Run", "K", ")")
        if name != "first_outputs":
            self.need("(", "m", ":", "ℕ", ")")
        self.need(":")
        goals = self.goals()
        self.need(":=", "by")
        if name == "rows":
            self.need("induction", "m", "with", "|", "zero", "=>")
            self.exact([moved(g, False, 0) for g in goals], {})
            self.need("|", "succ", "m", "ih", "=>", "obtain")
            labels = self.pattern()
            self.need(":=", "ih")
            self.check_labels(labels, goals)
            self.exact([moved(g, True, 1) for g in goals], dict(zip(labels, goals, strict=True)))
        else:
            context: dict[str, Prop] = {}
            if self.took("obtain"):
                labels = self.pattern()
                self.need(":=", "rows", "R", "m")
                self.check_labels(labels, self.theorems["rows"])
                context = dict(zip(labels, self.theorems["rows"], strict=True))
            self.exact(goals, context)
        self.theorems[name] = goals

    def check_labels(self, labels: list[str], goals: list[Prop]) -> None:
        if len(set(labels)) != len(labels) or len(labels) != len(goals):
            raise Wrong("the rows are not named one by one")

    def goals(self) -> list[Prop]:
        self.run = "R."
        out = []
        while True:
            self.need("(")
            out.append(self.prop())
            self.need(")")
            if not self.took("∧"):
                break
        self.run = ""
        return out

    def pattern(self) -> list[str]:
        if not self.took("⟨"):
            return [self.name()]
        out = [self.name()]
        while self.took(","):
            out.append(self.name())
        self.need("⟩")
        return out

    def exact(self, goals: list[Prop], context: Mapping[str, Prop]) -> None:
        self.need("exact")
        many = self.took("⟨")
        for k, goal in enumerate(goals):
            if self.applied(context) != goal:
                raise Wrong("a lemma is used for what it does not say")
            if many and k < len(goals) - 1:
                self.need(",")
        if many:
            self.need("⟩")

    def applied(self, context: Mapping[str, Prop]) -> Prop:
        """What a lemma says of a run, its hypotheses shown."""
        lemma = self.lemmas[self.name()]
        values: dict[str, Tree] = {}
        self.run = "R."
        for name in lemma.variables:
            self.need("(")
            values[name] = self.sum()
            self.need(")")
        self.run = ""
        for name, wanted in lemma.hypotheses.items():
            shown = self.term(context)
            if shown != put(wanted, values):
                raise Wrong(f"{name} is not what is shown")
        return put(lemma.goal, values)

    def term(self, context: Mapping[str, Prop]) -> Prop:
        """The statement that a term proves."""
        if self.next in context:
            return context[self.take()]
        if self.left[self.at : self.at + 2] == ["(", "("]:
            self.need("(", "(", "eq_div_iff")
            below = self.term(context)
            self.need(")", ".mp")
            equation = self.term(context)
            self.need(")")
            sign, value, quotient = equation
            if sign != "=" or quotient[0] != "/" or below != ("≠", quotient[2], ("num", 0)):
                raise Wrong("eq_div_iff is used for another quotient")
            return ("=", ("*", value, quotient[2]), quotient[1])
        if self.took("("):
            every, known = self.field()
            shift = self.index()
            self.need(")")
            if not every:
                raise Wrong("a field is used at a token and has none")
            return moved(known, *shift)
        every, known = self.field()
        if every:
            raise Wrong("a field is used without its token")
        return known

    def field(self) -> tuple[bool, Prop]:
        word = self.take()
        if not word.startswith("R."):
            raise Wrong(f"{word!r} is no field of the run")
        return self.fields[word.removeprefix("R.")]


# --- trees ----------------------------------------------------------------------------------------


def mapped(tree: Tree, leaf: Callable[[Tree], Tree]) -> Tree:
    if tree[0] in ("num", "var", "at"):
        return leaf(tree)
    return tuple(mapped(t, leaf) if isinstance(t, tuple) else t for t in tree)


def variables(tree: Tree) -> set[str]:
    found = set()

    def leaf(t: Tree) -> Tree:
        if t[0] != "num":
            found.add(t[1])
        return t

    mapped(tree, leaf)
    return found


def entries(tree: Tree) -> list[Tree]:
    found: list[Tree] = []

    def leaf(t: Tree) -> Tree:
        found.extend([t] if t[0] == "at" else [])
        return t

    mapped(tree, leaf)
    return found


def put(tree: Tree, values: Mapping[str, Tree]) -> Tree:
    return mapped(tree, lambda t: values[t[1]] if t[0] == "var" else t)


def moved(tree: Tree, has_m: bool, by: int) -> Tree:
    """A statement for all m at m + by, or at the number `by`."""

    def leaf(t: Tree) -> Tree:
        return ("at", t[1], has_m, t[3] + by) if t[0] == "at" and t[2] else t

    return mapped(tree, leaf)


def polynomial(tree: Tree) -> dict:
    """Monomial → coefficient; only numbers divide."""
    match tree:
        case ("num", k):
            return {(): Fraction(k)} if k else {}
        case ("var", name):
            return {((name, 1),): Fraction(1)}
        case ("at", name, has_m, k):
            return {((f"{name} {has_m} {k}", 1),): Fraction(1)}
        case ("neg", a):
            return add({}, polynomial(a), -1)
        case ("+", a, b):
            return add(polynomial(a), polynomial(b))
        case ("-", a, b):
            return add(polynomial(a), polynomial(b), -1)
        case ("*", a, b):
            return times(polynomial(a), polynomial(b))
        case ("^", a, int(k)):
            out = {(): Fraction(1)}
            for _ in range(k):
                out = times(out, polynomial(a))
            return out
        case ("/", a, ("num", k)) if k:
            return times(polynomial(a), {(): Fraction(1, k)})
    raise Wrong(f"no polynomial: {tree!r:.60}")


def add(a: dict, b: dict, sign: int = 1) -> dict:
    out = dict(a)
    for m, c in b.items():
        out[m] = out.get(m, Fraction(0)) + sign * c
    return {m: c for m, c in out.items() if c}


def times(a: dict, b: dict) -> dict:
    out: dict = {}
    for m, c in a.items():
        for n, d in b.items():
            powers = dict(m)
            for name, e in n:
                powers[name] = powers.get(name, 0) + e
            key = tuple(sorted(powers.items()))
            out[key] = out.get(key, Fraction(0)) + c * d
    return {m: c for m, c in out.items() if c}


def check(text: str) -> Reader:
    """Reads a file and checks every proof in it.

    Raises:
        Wrong: one does not hold.
    """
    reader = Reader(text)
    try:
        reader.file()
    except (KeyError, ValueError, IndexError, RecursionError) as e:
        raise Wrong(f"{type(e).__name__}: {e}") from None
    return reader
