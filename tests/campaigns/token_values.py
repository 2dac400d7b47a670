"""Random well-typed token-wise expressions: every level of the grammar, every primitive.

An expression is drawn for the axes it must have. It is written with the parentheses that the
grammar needs at its place and, now and then, with more. Values stay moderate over a handful of
tokens when inputs and parameters are drawn with a scale of about one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

Axes = frozenset[str]
Make = Callable[[], "Text"]
HEADS = "h"
ORDER = "dhnpm"
ADD, OUTER, MUL, DOT, UNARY, POWER, APPLIED = range(7)
"""How tightly an expression binds, from loose to tight."""

_SMOOTH = ("sigmoid", "tanh", "silu", "gelu", "softplus", "elu", "sin", "cos", "erf", "logsigmoid",
           "exprel", "relu", "abs")  # fmt: skip
NO_AXES: Axes = frozenset()


@dataclass(frozen=True)
class Text:
    """An expression as it is written, and how tightly it binds."""

    text: str
    level: int = APPLIED

    def at(self, level: int) -> str:
        """Returns the text for a place that takes expressions of this level or tighter ones."""
        return self.text if self.level >= level else f"({self.text})"

    def __str__(self) -> str:
        return self.at(APPLIED)


def over(names: str) -> Axes:
    """Returns axes from their letters."""
    return frozenset(names)


def shape(axes: Axes, random: Random | None = None) -> str:
    """Returns axes as a shape is written; their order means nothing."""
    names = sorted(axes, key=ORDER.index)
    if random is not None:
        random.shuffle(names)
        return random.choice((" × ", " × ", " * ")).join(names)
    return " × ".join(names)


@dataclass
class Scope:
    """Declarations and definitions of one mixer, which grow while expressions are drawn.

    Attributes:
        streams: names that depend on the token, each with its axes; only these have a past.
        names: every name made up, for those who rename.
    """

    random: Random
    declarations: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    streams: list[tuple[str, Axes]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    # --- small things -----------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def pick(self, *makes: Make) -> Text:
        """Draws one of some expressions; only the chosen one is written."""
        return self.random.choice(makes)()

    def fresh(self, wish: str) -> str:
        name = f"{wish}{len(self.names) + 1}"
        self.names.append(name)
        return name

    def param(self, kind: str, wish: str = "w", flags: str = "") -> str:
        name = self.fresh(wish)
        typed = f" : {kind}" if kind else ""
        self.declarations.append(f"param {name}{typed}{flags}{self._start(flags)}")
        return name

    def _start(self, flags: str) -> str:
        """How a parameter starts; the campaign draws its own values."""
        if flags:
            fits = flags.strip() in ("unit", "positive", "nonneg")
            return self.random.choice(("", "", " = 1/2", " ~ uniform(1/4, 3/4)")) if fits else ""
        starts = ("", "", "", " ~ normal(0, 0.02)", " ~ uniform(-1/2, 1/2)", " = 1/2")
        return self.random.choice(starts)

    def define(self, value: Text, axes: Axes, wish: str = "x") -> Text:
        name = self.fresh(wish)
        self.body.append(f"{name} = {value.text}{self.provenance()}")
        if self.moves(value.text):
            self.streams.append((name, axes))
        return Text(name)

    def provenance(self) -> str:
        return self.random.choice(("", "", "", '  "eq. 3"'))

    def function(self, head: str, value: str) -> None:
        self.functions.append(f"{head} = {value}{self.provenance()}")

    def moves(self, text: str) -> bool:
        """Whether an expression depends on the token."""
        known = {"u", "first", "i", *(n for n, _ in self.streams)}
        return not known.isdisjoint(re.findall(r"[^\W\d_]\w*", text))

    def number(self) -> Text:
        text = self.random.choice(("1/2", "1/3", "2/3", "1/4", "0.75", "2e-1", "1", "0.5"))
        return Text(text, MUL if "/" in text else APPLIED)

    def subset(self, axes: Axes) -> Axes:
        return frozenset(a for a in sorted(axes) if self.chance(0.6))

    # --- leaves -----------------------------------------------------------------------------------

    def leaf(self, axes: Axes) -> Text:
        """A name, a number or a linear map of an input, with exactly these axes."""
        made: list[Make] = []
        known = [n for n, a in self.streams if a == axes]
        if known:
            made += [lambda: Text(self.random.choice(known))] * 4
            made += [lambda: self.delayed(self.random.choice(known))]
        if axes:
            made += [
                lambda: self.projection(axes),
                lambda: Text(self.param(shape(axes, self.random))),
                lambda: self.filled(axes),
                lambda: Text(self.buffer(axes)),
            ]
        else:
            flag = self.random.choice((" unit", " positive", " nonneg", ""))
            made += [
                self.number,
                lambda: Text("first"),
                lambda: Text("n^(-1/2)", POWER),
                lambda: Text(self.constant()),
                lambda: Text(self.param("", "c", flag)),
            ]
        return self.pick(*made)

    def delayed(self, name: str) -> Text:
        return Text(f"{name}[i-{self.random.choice((1, 1, 1, 2, 3))}]")

    def filled(self, axes: Axes) -> Text:
        names = sorted(axes, key=ORDER.index)
        if len(names) == 1 and self.chance(0.5):
            return Text(f"iota[{names[0]}] / 4", MUL)
        return Text(f"{self.number()} * ones[{', '.join(names)}]", MUL)

    def buffer(self, axes: Axes) -> str:
        name = self.fresh("γ")
        one = sorted(axes, key=ORDER.index)
        if len(one) == 1:
            value = f"1 - 2^(-1 - iota[{one[0]}])"
        else:
            value = f"{self.number()} * ones[{', '.join(one)}]"
        self.declarations.append(f"buffer {name} : {shape(axes, self.random)} = {value}")
        return name

    def constant(self) -> str:
        name = self.fresh("ε")
        self.declarations.append(
            f"const {name} = {self.random.choice(('1/8', 'n^(-1/2)', '0.25'))}"
        )
        return name

    def projection(self, axes: Axes) -> Text:
        """A named linear map of the input."""
        if self.chance(0.12) and len(axes) > 1 and HEADS in axes:
            return self.within_heads(axes)
        w = self.param(f"d -> {shape(axes, self.random)}", "W")
        if self.chance(0.15):
            v = self.param("d -> d", "W")
            return self.define(Text(f"{w} {v} u", UNARY), axes)
        if self.chance(0.2):
            return Text(f"{w}(u)")
        if self.chance(0.1):
            return Text(f"{w} {self.random.choice(('tanh', 'silu', 'sigmoid'))}(u)")
        if self.chance(0.3):
            return Text(f"{w} u")
        return self.define(Text(f"{w} u"), axes)

    def within_heads(self, axes: Axes) -> Text:
        """A map for each head."""
        rest = axes - {HEADS}
        source = over(self.random.choice("np"))
        if source & rest and source != rest:
            source = rest
        w = self.param(f"each h : {shape(source)} -> {shape(rest, self.random)}", "W")
        inner = self.define(self.value(source | {HEADS}, 0), source | {HEADS})
        return self.define(Text(f"{w} {inner}"), axes)

    # --- expressions ------------------------------------------------------------------------------

    def value(self, axes: Axes, depth: int) -> Text:
        """A real token-wise value with exactly these axes."""
        if depth <= 0:
            return self.leaf(axes)
        made = self.random.choice(_KINDS)(self, axes, depth - 1)
        return Text(f"({made.text})") if self.chance(0.05) else made

    def bounded(self, axes: Axes, depth: int = 1) -> Text:
        """A value in [-1, 1]."""
        x = self.value(axes, depth)
        return Text(f"{self.random.choice(('sigmoid', 'tanh', 'sin'))}({x.text})")

    def unit(self, axes: Axes, depth: int = 1) -> Text:
        """A value in (0, 1)."""
        x = self.value(axes, depth)
        text = self.random.choice(("sigmoid({})", "exp(-softplus({}))", "(1 - 1/2 * sigmoid({}))"))
        return Text(text.format(x.text))

    def complex(self, axes: Axes, depth: int = 1) -> Text:
        """A complex value with exactly these axes."""
        real = lambda: self.value(axes, depth - 1)  # noqa: E731 - a short name for a short thing
        return self.pick(
            lambda: Text(f"cplx({real().text}, {real().text})"),
            lambda: Text(f"cis({real().text})"),
            lambda: Text(f"conj(cplx({real().text}, {real().text}))"),
            lambda: Text(f"{self.leaf(axes).at(DOT)} * cis({real().text})", MUL),
            lambda: (
                Text(self.param(shape(axes, self.random), "z", " complex"))
                if axes
                else Text("cplx(1/2, 1/3)")
            ),
            lambda: Text(f"exp(cplx(-abs({real().text}), {real().text}))"),
        )


def _plain(s: Scope, axes: Axes, depth: int) -> Text:
    return s.leaf(axes)


def _sum(s: Scope, axes: Axes, depth: int) -> Text:
    out = s.value(axes, depth).at(ADD + 1)
    for _ in range(s.random.choice((1, 1, 2))):
        part = s.value(axes, depth) if s.chance(0.7) or not axes else s.number()
        out += f" {s.random.choice('+-')} {part.at(ADD + 1)}"
    return Text(out, ADD)


def _product(s: Scope, axes: Axes, depth: int) -> Text:
    parts = [s.value(axes, depth), s.value(s.subset(axes), depth)]
    s.random.shuffle(parts)
    return Text(f"{parts[0].at(MUL)} * {parts[1].at(MUL + 1)}", MUL)


def _quotient(s: Scope, axes: Axes, depth: int) -> Text:
    below = s.value(s.subset(axes), depth)
    guard = s.random.choice(("(1 + abs({}))", "max(abs({}), 1)", "(1 + exp({}))"))
    if guard.startswith("(1 + exp"):
        below = Text(f"tanh({below.text})")
    return Text(f"{s.value(axes, depth).at(MUL)} / {guard.format(below.text)}", MUL)


def _outer(s: Scope, axes: Axes, depth: int) -> Text:
    rest = sorted(axes - {HEADS})
    if len(rest) < 1 or len(axes) < 2:
        return s.leaf(axes)
    left = frozenset(s.random.sample(rest, s.random.randint(1, len(rest))))
    right = axes - left
    if HEADS in axes and s.chance(0.5):
        left |= {HEADS}
        right = right if s.chance(0.5) else right - {HEADS}
    if not right:
        return s.leaf(axes)
    sign = s.random.choice(("⊗", "⊗", "(*)"))
    a, b = s.value(left, depth), s.value(right, depth)
    return Text(f"{a.at(OUTER + 1)} {sign} {b.at(OUTER + 1)}", OUTER)


def _dot(s: Scope, axes: Axes, depth: int) -> Text:
    free = [a for a in "np" if a not in axes]
    if not free:
        return s.leaf(axes)
    axis = s.random.choice(free)
    rest = axes - {HEADS}
    left = frozenset(a for a in sorted(rest) if s.chance(0.5))
    right = rest - left
    if HEADS in axes:
        left, right = s.random.choice(((left | {HEADS}, right), (left, right | {HEADS}),
                                       (left | {HEADS}, right | {HEADS})))  # fmt: skip
    a, b = s.value(left | {axis}, depth), s.value(right | {axis}, depth)
    return Text(f"{a.at(DOT + 1)} {s.random.choice('··.')} {b.at(DOT + 1)}", DOT)


def _negative(s: Scope, axes: Axes, depth: int) -> Text:
    return Text(f"-{s.value(axes, depth).at(UNARY)}", UNARY)


def _power(s: Scope, axes: Axes, depth: int) -> Text:
    base = s.value(axes, depth)
    kind = s.random.choice((0, 0, 1, 2))
    if kind == 0:
        return Text(f"tanh({base.text})^{s.random.choice('23')}", POWER)
    exponent = s.random.choice(("(1/2)", "(-1)", "-1", "(-1/2)", "-2"))
    return Text(f"(1 + softplus({base.text}))^{exponent}", POWER)


def _function(s: Scope, axes: Axes, depth: int) -> Text:
    return Text(f"{s.random.choice(_SMOOTH)}({s.value(axes, depth).text})")


def _careful(s: Scope, axes: Axes, depth: int) -> Text:
    form = s.random.choice((
        "exp(tanh({}))", "expm1(sin({}))", "log(1 + abs({}))", "log1p(exp(tanh({})))", "sign({})",
        "sqrt(1 + ({})^2)", "max({}, 1/3)", "min({}, 1/2)", "taylor[2](tanh({}))",
        "Re(cis({}))", "Im(cis({}))", "abs(cis({}))", "-sin(π * ({}))",
    ))  # fmt: skip
    return Text(form.format(s.value(axes, depth).text), UNARY if form[0] == "-" else APPLIED)


def _two(s: Scope, axes: Axes, depth: int) -> Text:
    a, b = s.value(axes, depth), s.value(axes, depth)
    return Text(f"{s.random.choice(('max', 'min'))}({a.text}, {b.text})")


def _reduced(s: Scope, axes: Axes, depth: int) -> Text:
    free = [a for a in "hnp" if a not in axes]
    if not free:
        return s.leaf(axes)
    gone = s.random.sample(free, s.random.choice((1, 1, len(free))))
    how = s.random.choice(("sum", "mean", "max", "sum"))
    return Text(f"{how}[{', '.join(gone)}]({s.value(axes | set(gone), depth).text})")


def _along(s: Scope, axes: Axes, depth: int) -> Text:
    if not axes:
        return s.leaf(axes)
    axis = s.random.choice(sorted(axes))
    how = s.random.choice(("l2norm", "rmsnorm", "softmax"))
    inner = s.value(axes, depth)
    # A norm has no derivative to speak of at 0, which a delayed stream begins with.
    return Text(f"{how}[{axis}](3/2 + sin({inner.text}))")


def _filtered(s: Scope, axes: Axes, depth: int) -> Text:
    known = [n for n, a in s.streams if a == axes]
    if not known:
        return s.leaf(axes)
    w = s.param(shape(axes, s.random) + " × t" if axes else "t")
    return Text(f"fir[t]({w}, {s.random.choice(known)})")


def _renamed(s: Scope, axes: Axes, depth: int) -> Text:
    if "m" in axes or "n" not in axes:
        return s.leaf(axes)
    inner = s.value(axes - {"n"} | {"m"}, 0)
    return Text(f"rename[m, n]({inner.text})")


def _called(s: Scope, axes: Axes, depth: int) -> Text:
    """A function of the text: a macro over its arguments, parameters and constants."""
    name = s.fresh("f")
    a, b = s.fresh("a"), s.fresh("b")
    c = s.constant()
    if s.chance(0.5):
        s.function(f"{name}({a})", f"{c} * tanh({a}) + {a} / (1 + abs({a}))")
        return Text(f"{name}({s.value(axes, depth).text})")
    s.function(f"{name}({a}, {b})", f"tanh({a}) * {b} - {c} * {a}")
    return Text(f"{name}({s.value(axes, depth).text}, {s.value(axes, depth).text})")


def _mapped(s: Scope, axes: Axes, depth: int) -> Text:
    if not axes:
        return s.leaf(axes)
    source = over(s.random.choice(("n", "p", "hp", "hn")))
    if source & axes:
        source = axes
    inner = s.define(s.value(source, depth), source)
    w = s.param(f"{shape(source)} -> {shape(axes)}", "W")
    return Text(f"{w} {inner}")


def _named(s: Scope, axes: Axes, depth: int) -> Text:
    return s.define(s.value(axes, depth), axes)


_KINDS = (_plain, _plain, _sum, _product, _quotient, _outer, _outer, _dot, _dot, _negative, _power,
          _function, _careful, _two, _reduced, _along, _filtered, _renamed, _called, _mapped,
          _named)  # fmt: skip
