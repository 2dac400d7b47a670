"""Random well-typed mixers, as spec text, over the whole language.

A seed gives a text. Token-wise values come from `token_values`, sums over time from
`time_sums`; here are states, coupled or in series, forward or backward, real or complex, with
chains, flows, low rank and several drives; what is read of them; bases, modifiers and names.
"""

from __future__ import annotations

import re
from random import Random

from time_sums import Trio, random_sum
from token_values import (
    ADD,
    APPLIED,
    DOT,
    HEADS,
    MUL,
    NO_AXES,
    OUTER,
    Axes,
    Scope,
    Text,
    over,
    shape,
)

_SHAPES = ("hnp", "hnp", "hnp", "hn", "hp", "h", "n", "p", "np", "d")
_CLAIMS = (
    "claim causal", "claim finite", "claim finite when u > 0", "claim finite when u > 0 and u < 1",
)  # fmt: skip
_HEIRS = ("{}", "{\n}", "{ % }", "{ %; % }", "{ %\n}", "{ %\n%\n}", "{\n% }", "{\n%\n% }",
          "{\n%\n}", "{\n%\n%\n}")  # fmt: skip
"""Bodies of a mixer that has all from its base, `%` for an item: each way to lay out a body."""
_WORDS = (
    "lambda", "class", "def", "self", "torch", "forward", "mode", "chunk", "S_log_decay", "Tensor",
    "dtype", "None", "print", "len", "B", "L", "nn", "lengths", "reference", "counts", "wide",
    "η", "Δ", "λ_2", "Ω", "φ", "Γ_1", "x_before", "a_name_of_a_state_that_is_rather_long_for_one",
    "log_a", "logit_b", "parts_c", "W_Δ", "S_read", "S_next", "q_past", "h_1", "F", "math", "e",
)  # fmt: skip


def random_mixer(seed: int) -> str:
    """Returns the text of a random mixer `random_<seed>` with one output `y`.

    Its open dimension is `d`; all others have sizes. The same seed gives the same text.

    Args:
        seed: a whole number from 0 on.
    """
    return _Writer(Random(seed), f"random_{seed}").text()


class _Writer:
    """Writes one mixer: declarations and definitions grow while expressions are drawn."""

    def __init__(self, random: Random, name: str) -> None:
        self.random = random
        self.name = name
        self.scope = Scope(random)
        self.chance = self.scope.chance
        self.pick = self.scope.pick
        self.sizes = {
            "h": random.choice((1, 2, 2)),
            "n": random.choice((1, 2, 3)),
            "p": random.choice((1, 2, 2)),
            "t": random.choice((1, 2, 3)),
        }
        self.qkv = random.random() < 0.1
        self.inputs: list[str] = []
        self._streams()

    def _streams(self) -> None:
        s = self.scope
        self.inputs.append("input u : d")
        s.streams.append(("u", over("d")))
        if self.qkv:
            s.streams += [("q", over("hn")), ("k", over("hn")), ("v", over("hp"))]
            self.q, self.k, self.v = "q", "k", "v"
            return
        if self.chance(0.25):
            axes = over(self.random.choice(("h", "hn", "hp", "n", "p")))
            name = s.fresh("x")
            flag = self.random.choice(("", "", "", " positive", " unit", " nonneg", " nonzero"))
            self.inputs.append(f"input {name} : {shape(axes, self.random)}{flag}")
            s.streams.append((name, axes))
        self.q, self.k, self.v = (self._projected(axes) for axes in ("hn", "hn", "hp"))

    def _projected(self, axes: str) -> str:
        s, given = self.scope, over(axes)
        w = s.param(f"d -> {shape(given, self.random)}", "W")
        out = s.define(Text(f"{w} u"), given)
        if self.chance(0.3):
            # silu is at least -0.28: a norm of 0 has no derivative to compare.
            out = s.define(self.pick(
                lambda: Text(f"l2norm[{axes[1]}](silu({out}) + 1/3)"),
                lambda: Text(f"1/3 * {out} + (1 - 1/3) * {out}[i-1]", ADD),
                lambda: Text(f"fir[t]({s.param(f'{shape(given)} × t')}, {out})"),
                lambda: Text(f"{s.value(given, 2).at(MUL)} * {out}", MUL),
            ), given)  # fmt: skip
        return out.text

    @property
    def trio(self) -> Trio:
        return Trio(self.scope, self.q, self.k, self.v)

    # --- the text ---------------------------------------------------------------------------------

    def text(self) -> str:
        """Returns the whole text."""
        outputs = [self._read_out() for _ in range(self.random.choice((1, 1, 2)))]
        value = outputs[0] if len(outputs) == 1 else self._joined(*outputs)
        self._output(value)
        uses = self._uses()
        base = self._base()
        self.scope.random.shuffle(self.scope.functions)
        own = self._modifier(uses)
        claims = [self.random.choice(_CLAIMS)] if self.chance(0.05) else []
        lines = [
            self._dims(),
            *(self._laid_out([] if self.qkv else self.inputs)),
            *self._laid_out(self.scope.declarations),
            *(f"  {line}" for line in (*self.scope.functions, *self._shuffled(), *uses, *claims)),
        ]
        heir = self._heir()
        head = self._head("whole" if heir else self.name, bool(base))
        if self.chance(0.05):
            body = "; ".join(line.strip() for line in lines)
            whole = [*own, *base, f"{head} {body}{self.random.choice((' ', ';', '; ; '))}}}"]
        elif self.chance(0.05):
            whole = [*own, *base, head, *lines[:-1], f"{lines[-1]} }}"]
        else:
            whole = [*own, *base, head, *lines, "}"]
        start = self.random.choice(("", "", "", "", "\n", "\n; \n"))
        return self._renamed(start + "\n".join((*whole, *heir)) + "\n")

    def _heir(self) -> list[str]:
        """A mixer that is this one by another name, with a claim or a size more; or nothing."""
        if not self.chance(0.06):
            return []
        items = [*_CLAIMS] if self.qkv else [*_CLAIMS, "dims d", f"dims t = {self.sizes['t']}"]
        self.random.shuffle(items)  # each stands there once: an axis has one size
        body = re.sub("%", lambda _: items.pop(), self.random.choice(_HEIRS))
        return [f"mixer {self.name} extends whole {body}"]

    def _modifier(self, uses: list[str]) -> list[str]:
        """A modifier of this text, and its use; or nothing."""
        known = [n for n, _ in self.scope.streams if not n.startswith("base")]
        if not self.chance(0.1):
            return []
        name = self.scope.fresh("soft")
        targets = self.random.sample(known, min(len(known), self.random.choice((1, 1, 2))))
        uses.append(f"use {name} on {', '.join(targets)}")
        doc = self.random.choice(("", ' "a random modifier"'))
        after = self.random.choice(("x + a * x[i-1]", "tanh(a * x) + x / 4", "soft_of(x, a)"))
        lines = [f"modifier {name} on x{doc} {{", "  param a : x unit = 1/2"]
        if "soft_of" in after:
            lines.append("  soft_of(b, c) = c * tanh(b)")
        return [*lines, f"  x = {after}", "}"]

    def _head(self, name: str, based: bool) -> str:
        doc = self.random.choice(("", ' "a random mixer"'))
        base = " extends base" if based else " extends qkv" if self.qkv else ""
        return f"mixer {name}{doc}{base} {{"

    def _dims(self) -> str:
        h, n, p, t = (self.sizes[a] for a in "hnpt")
        if self.qkv:
            return f"  dims d = 4, heads h = 2, t = {t}, m = n"
        m = self.random.choice(("n", str(n), "n / 1", "2 * n - n"))
        heads = "heads h" if self.chance(0.05) else f"heads h = {h}"
        first = self.random.choice(("  dims d, ",) * 9 + ("  dims d\n  dims ",))
        return f"{first}{heads}, n = {n}, p = {p}, t = {t}, m = {m}"

    def _shuffled(self) -> list[str]:
        """Definitions in any order; their order means nothing."""
        body = list(self.scope.body)
        if self.chance(0.3):
            self.random.shuffle(body)
        return body

    def _laid_out(self, declarations: list[str]) -> list[str]:
        """Declarations on lines of their own, or one continued by the next."""
        out: list[str] = []
        for line in declarations:
            kind, _, rest = line.partition(" ")
            if ":" not in rest:  # without axes, it goes on with no other
                out.append(f"  {line}")
            elif out and out[-1].lstrip().startswith(kind + " ") and self.chance(0.3):
                out[-1] += f"; {rest}"
            elif out and kind == self._kind_of(out) and self.chance(0.2):
                out.append(f"        {rest}")
            else:
                out.append(f"  {line}")
        return out

    @staticmethod
    def _kind_of(lines: list[str]) -> str:
        named = [x.split()[0] for x in lines if not x.startswith("    ")]
        return named[-1] if named else ""

    def _base(self) -> list[str]:
        """A base whose definitions this mixer goes on from, or nothing."""
        if self.qkv or not self.chance(0.12):
            return []
        replaced = self.scope.define(Text("1/2"), NO_AXES, "b")
        kept = [line for line in self.scope.body if line.partition(" ")[0] != replaced.text]
        self.scope.body = kept
        return [
            "mixer base {",
            "  dims d, heads h = 3, n = 2, p = 2",
            "  input u : d",
            f"  const {replaced} = 1/4",
            "  param base_w : d -> h",
            "  base_a = sigmoid(base_w u)",
            "  state base_s : h",
            f"  base_s = base_a * base_s[i-1] + {replaced} * base_a",
            "  y = base_s",
            "}",
        ]

    def _uses(self) -> list[str]:
        """Modifiers of the library, applied to what has the axes they take."""
        out = []
        taken = {name for name, _ in self.scope.streams}
        for modifier, names in (
            ("short_conv", (self.q, self.k, self.v)),
            ("token_shift", (self.q, self.v, "u")),
            ("qk_norm", (self.q, self.k)),
        ):
            if self.chance(0.05):
                chosen = [n for n in names if n in taken and self.chance(0.6)]
                if chosen:
                    out.append(f"use {modifier} on {', '.join(chosen)}")
        if self.y_axes == over("hp"):
            chosen = [m for m in ("gate", "out_norm") if self.chance(0.04)]
            out += [f"use {m} on y" for m in chosen]
            if "out_norm" in chosen:
                # A norm of what is 0 but for rounding has no value to compare.
                last = self.scope.body.pop()
                self.scope.body.append(last.replace("y = ", "y = 1/3 + ", 1))
        return out

    def _renamed(self, text: str) -> str:
        """Some names become words that Python, torch or the module has, or Greek letters."""
        words = list(_WORDS)
        self.random.shuffle(words)
        new = {n: words.pop() for n in self.scope.names if words and self.chance(0.12)}
        return re.sub(r"[^\W\d_]\w*", lambda m: new.get(m.group(), m.group()), text)

    # --- states -----------------------------------------------------------------------------------

    def group(self) -> tuple[list[tuple[str, Axes, bool]], str]:
        """Writes one to three states, alone, coupled or in series; returns them and the lag."""
        backward = self.chance(0.1)
        lag = "i+1" if backward else "i-1"
        count = self.random.choice((1, 1, 1, 1, 2, 2, 3))
        shapes = [over(self.random.choice(_SHAPES)) for _ in range(count)]
        if self.chance(0.4):
            shapes = shapes[:1] * count
        complex_ = self.chance(0.2)
        states = [(self._state(a, complex_, backward), a, complex_) for a in shapes]
        coupled = count > 1 and self.chance(0.6)
        for k, state in enumerate(states):
            earlier = states[:k]
            others = [s for s in states if s is not state] if coupled else earlier
            self._update(state, others, earlier, lag)
        return states, lag

    def _state(self, axes: Axes, complex_: bool, backward: bool) -> str:
        name = self.scope.fresh("S")
        flags = [f for f, on in (("complex", complex_), ("backward", backward)) if on]
        self.random.shuffle(flags)
        line = " ".join((f"state {name} : {shape(axes, self.random)}", *flags))
        self.scope.declarations.append(line)
        return name

    def _update(
        self,
        state: tuple[str, Axes, bool],
        others: list[tuple[str, Axes, bool]],
        earlier: list[tuple[str, Axes, bool]],
        lag: str,
    ) -> None:
        name, axes, complex_ = state
        past = f"{name}[{lag}]"
        if not others and lag == "i-1" and self.chance(0.15):
            self._flow(name, axes, complex_)
            return
        if axes == over("hnp") and not complex_ and self.chance(0.2):
            past = self._chain(past)
        terms = [self._decayed(past, axes, complex_)]
        terms += [self._drive(axes, complex_) for _ in range(self.random.choice((1, 1, 1, 2, 0)))]
        if not complex_:
            terms += [
                self._low_rank(past, axes) for _ in range(self.random.choice((0, 0, 0, 1, 2)))
            ]
        for other in others:
            now = other in earlier and self.chance(0.4)
            terms.append(self._link(other[0] if now else f"{other[0]}[{lag}]", other[1], axes))
        terms = [t for t in terms if t is not None]
        out = terms[0].at(ADD + 1)
        for t in terms[1:]:
            out += f" {self.random.choice('++-')} {t.at(ADD + 1)}"
        if self.chance(0.1):
            out = self._factor(out)
        self.scope.body.append(f"{name} = {out}")

    def _decayed(self, past: str, axes: Axes, complex_: bool) -> Text:
        decay = self.decay(axes, complex_)
        if decay is None:
            return Text(past)
        if self.chance(0.1):
            return Text(f"{past} * {decay.at(MUL + 1)}", MUL)
        return Text(f"{decay.at(MUL)} * {past}", MUL)

    def decay(self, axes: Axes, complex_: bool) -> Text | None:
        """A decay over some of a state's axes, in time or constant; at most about 1 in size."""
        s = self.scope
        inner = s.subset(axes)
        made = self.pick(
            s.number,
            lambda: s.unit(inner, 1),
            lambda: s.unit(inner, 2),
            lambda: s.define(s.unit(inner, 1), inner, "a"),
            lambda: Text(f"exp(-exp({s.param(shape(inner))}))") if inner else s.number(),
            lambda: Text(s.param(shape(inner), "c", " unit")) if inner else s.number(),
            lambda: Text(s.buffer(inner)) if inner else s.number(),
            lambda: s.bounded(inner, 1),
            lambda: Text(f"(1 - first) * {s.unit(inner, 1)}", MUL),
            lambda: Text(f"sigmoid({s.value(inner, 1).at(MUL)} * {s.value(inner, 1).at(MUL + 1)})"),
            lambda: Text(""),
        )
        if not complex_:
            return made if made.text else None
        angle = s.value(s.subset(inner), 1)
        return Text(f"{made.at(MUL) if made.text else '1'} * cis({angle.text})", MUL)

    def _drive(self, axes: Axes, complex_: bool) -> Text:
        s = self.scope
        if complex_ and self.chance(0.6):
            return s.complex(axes)
        if axes == over("hnp") and self.chance(0.6):
            k, v = self.k, self.v
            return self.pick(
                lambda: Text(f"{k} ⊗ {v}", OUTER),
                lambda: Text(f"({s.bounded(over('h'))} * {k}) ⊗ {v}", OUTER),
                lambda: Text(f"exp({k}) ⊗ {v}", OUTER),
                lambda: Text(f"{k} ⊗ {s.bounded(over('hp')).at(MUL)} * {v}", OUTER),
                lambda: Text(f"{k} ⊗ ({v} + {v}[i-1])", OUTER),
            )
        if not axes - {HEADS} and self.chance(0.2):
            return Text("1") if not axes else s.leaf(axes)
        return s.value(axes, self.random.choice((0, 1, 2)))

    def _low_rank(self, past: str, axes: Axes) -> Text | None:
        """A term that mixes the entries of a state."""
        s = self.scope
        mixed = [a for a in sorted(axes) if a != HEADS]
        if not mixed:
            return None
        axis = self.random.choice(mixed)
        side = frozenset({axis} | ({HEADS} & axes if self.chance(0.7) else NO_AXES))
        left = s.define(s.bounded(side, 1), side, "r").text
        right = left if self.chance(0.5) else s.define(s.bounded(side, 1), side, "r").text
        scale = s.number().at(MUL)
        sign, level = ("*", MUL) if axes - {axis} <= side else ("⊗", OUTER)
        return self.pick(
            lambda: Text(f"{scale} * {left} {sign} sum[{axis}]({right} * {past})", level),
            lambda: Text(f"{scale} * {left} {sign} mean[{axis}]({past})", level),
            lambda: Text(f"{scale} * {left} {sign} ({right} · {past})", level),
            lambda: self._matrix(axis, past),
        )

    def _matrix(self, axis: str, past: str) -> Text:
        w = self.scope.param(f"{axis} -> {axis}", "A")
        return Text(f"1/3 * {w} {past}", MUL)

    def _chain(self, past: str) -> str:
        """A chain of factors over h × n × p: the delta rule, once or more."""
        s = self.scope
        inner = past
        for _ in range(self.random.choice((1, 1, 2))):
            decay = self.decay(over("hnp"), False)
            if decay is not None and self.chance(0.7):
                inner = self._factor(f"{decay.at(MUL)} * {inner}")
            key = self.random.choice((self.k, s.projection(over("hn")).text))
            value = f"{inner} + {s.number().at(MUL)} * ({key}) ⊗ ({self.v} - ({key}) · {inner})"
            if self.chance(0.3):
                value = f"{s.bounded(over('h'))} * ({value})"
            inner = self._factor(value)
        return inner

    def _factor(self, value: str) -> str:
        name = self.scope.fresh("F")
        self.scope.body.append(f"{name} = {value}")
        return name

    def _flow(self, name: str, axes: Axes, complex_: bool) -> None:
        s = self.scope
        inner = s.subset(axes)
        rate = f"exp({s.param(shape(inner))})" if inner else "1/2"
        rate = f"cplx(-{rate}, {s.value(inner, 0).text})" if complex_ else f"-{rate}"
        rule = self.random.choice(("zoh", "euler", "bilinear"))
        step = self.pick(
            lambda: Text(f"1/2 * softplus({s.value(s.subset(axes), 0).text})"), lambda: Text("1/3")
        )
        low = ""
        if rule == "bilinear" and "n" in axes and not complex_ and self.chance(0.4):
            side = {"n"} | ({HEADS} & axes)
            p = s.param(shape(frozenset(side)), "P")
            sign = "⊗" if axes - side else "*"
            low = f" - {p} {sign} sum[n]({p} * {name})"
        drive = self._drive(axes, complex_)
        s.body.append(
            f"{name}' = {rate} * {name}{low} + {drive.at(ADD + 1)} by {rule}({step.text})"
            f"{s.provenance()}"
        )

    def _link(self, source: str, have: Axes, want: Axes) -> Text:
        """A term of one state in another's update, with small coefficients."""
        scale = self.scope.number().at(MUL)
        return Text(f"{scale} * {self.fitted(source, have, want, linear=True).at(MUL + 1)}", MUL)

    # --- reads ------------------------------------------------------------------------------------

    def fitted(self, e: str, have: Axes, want: Axes, linear: bool = False) -> Text:
        """An expression with other axes: those it lacks by `⊗`, those too many contracted."""
        s = self.scope
        out, axes = Text(e), have
        for axis in sorted(have - want):
            rest = axes - {axis}
            weight = frozenset({axis} | ({HEADS} & axes - {axis} if self.chance(0.6) else NO_AXES))
            hows = ["sum[{a}]({e})", "mean[{a}]({e})", "sum[{a}]({w} * {e})"]
            if axis != HEADS:
                hows += ["{w} · {e}"] * 3
            if not linear:
                hows += ["sum[{a}](tanh({e}))"]
            how = self.random.choice(hows)
            w = s.define(s.value(weight, 1), weight).text if "{w}" in how else ""
            if axis == "n" and weight == over("hn") and w and self.chance(0.5):
                w = self.q
            level = DOT if "·" in how else APPLIED
            inner = out.at(DOT + 1) if level == DOT else out.at(MUL + 1) if w else out.text
            out, axes = Text(how.format(a=axis, e=inner, w=w), level), rest
        missing = want - axes
        if missing:
            side = s.value(missing, 1)
            out = Text(f"{out.at(OUTER + 1)} ⊗ {side.at(OUTER + 1)}", OUTER)
        return out

    def read(self, state: tuple[str, Axes, bool], lag: str, want: Axes) -> Text:
        """A real value of a state, with the axes that are wanted."""
        name, axes, complex_ = state
        e = self.pick(
            lambda: Text(name),
            lambda: Text(name),
            lambda: Text(name),
            lambda: Text(f"{name}[{lag}]"),
            lambda: Text(f"({name} + 1/2 * {name}[{lag}])"),
            lambda: Text(f"({name}[{lag}] + {self.scope.value(axes, 1).at(ADD + 1)})"),
        )
        if not complex_:
            return self.fitted(e.text, axes, want, linear=self.chance(0.8))
        part = self.random.choice(
            ("Re({})", "Im({})", "2 * Re({})", "abs({})", "Re({0} * conj({0}))")
        )
        z = self.scope.complex(axes)
        inner = self.pick(lambda: e, lambda: Text(f"{z.at(MUL)} * {e}", MUL))
        level = MUL if part.startswith("2") else APPLIED
        whole = Text(part.format(inner.at(MUL + 1) if "0}" in part else inner.text), level)
        return self.fitted(whole.at(APPLIED), axes, want, linear=True)

    def _read_out(self) -> Text:
        """A value with the axes h × p that depends on the past."""
        want = over("hp")
        value = self.pick(
            lambda: random_sum(self.trio),
            lambda: self._of_group(want),
            lambda: self._of_group(want),
            lambda: self._of_group(want),
            self._ratio,
            self._cascade,
            self._maximum,
        )
        return self._adorned(value)

    def _of_group(self, want: Axes) -> Text:
        states, lag = self.group()
        chosen = [s for s in states if self.chance(0.6)] or states[-1:]
        parts = [self.read(s, lag, want) for s in chosen]
        out = parts[0]
        for part in parts[1:]:
            sign, level = self.random.choice((("+", ADD), ("-", ADD), ("*", MUL)))
            out = Text(f"{out.at(level)} {sign} {part.at(level + 1)}", level)
        return out

    def _ratio(self) -> Text:
        s = self.scope
        axes = over(self.random.choice(("h", "hn")))
        decay = s.define(s.unit(axes, 1), axes, "a").text
        top, below = self._state(over("hnp"), False, False), self._state(over("hn"), False, False)
        s.body.append(f"{top} = {decay} * {top}[i-1] + exp({self.k}) ⊗ {self.v}")
        s.body.append(f"{below} = {decay} * {below}[i-1] + exp({self.k})")
        a, b = f"(exp({self.q}) · {top})", f"exp({self.q}) · {below}"
        return Text(self.random.choice((
            f"{a} / max(abs({b}), 1)",
            f"{a} / ({b} + 1/10)",
            f"{a} / ({b})",
            f"({self.q} · {top}) / (1 + abs({self.q} · {below}))",
        )), MUL)  # fmt: skip

    def _maximum(self) -> Text:
        """A running maximum: read as a value, or as the gauge of a ratio of states."""
        s = self.scope
        gauge = self.chance(0.5)
        axes = over("h" if gauge else self.random.choice(("h", "hn", "hp", "p", "d")))
        name = self._state(axes, False, False)
        fall = self.pick(
            lambda: Text(""),
            lambda: Text("- 1/4"),
            lambda: Text(f"- {s.define(s.unit(axes, 1), axes, 'a')}"),
            lambda: Text(f"+ {s.value(axes, 1).at(ADD + 1)}"),
        ).text
        weight = s.define(s.value(axes, 1), axes, "a").text
        terms = [f"{name}[i-1] {fall}".rstrip(), weight]
        if self.chance(0.3):
            terms.reverse()
        s.body.append(f"{name} = max({', '.join(terms)})")
        if not gauge:
            read = self.random.choice(("{0}", "{0} - {1}", "exp({1} - {0})", "{0} - {0}[i-1]"))
            return self.fitted(f"({read.format(name, weight)})", axes, over("hp"))
        decay = f"exp({name}[i-1] {fall} - {name})"
        top, below = self._state(over("hnp"), False, False), self._state(over("hn"), False, False)
        s.body.append(
            f"{top} = {decay} * {top}[i-1] + (exp({weight} - {name}) * {self.k}) ⊗ {self.v}"
        )
        s.body.append(f"{below} = {decay} * {below}[i-1] + exp({weight} - {name}) * {self.k}")
        a, b = f"({self.q} · {top})", f"abs({self.q} · {below})"
        guard = self.random.choice((f"max({b}, exp(-{name}))", f"max({b}, 1)", f"(1 + {b})"))
        return Text(f"{a} / {guard}", MUL)

    def _cascade(self) -> Text:
        """A stage that reads what an earlier one has given."""
        given = over("hp")
        value = self.pick(lambda: self._of_group(given), lambda: random_sum(self.trio))
        first = self.scope.define(value, given, "o")
        self.v = first.text
        return self._of_group(given)

    def _adorned(self, value: Text) -> Text:
        """Gates, norms, functions and delays around a value over h × p."""
        s, given = self.scope, over("hp")
        if self.chance(0.25):
            value = Text(f"{s.bounded(given).at(MUL)} * {value.at(MUL + 1)}", MUL)
        if self.chance(0.15):
            value = Text(f"{self.random.choice(('tanh', 'silu', 'sigmoid'))}({value.text})")
        if self.chance(0.12):
            value = Text(f"rmsnorm[p](1/3 + {value.at(ADD)})")
        if self.chance(0.15):
            o = s.define(value, given, "o").text
            value = self.pick(
                lambda: Text(f"{o}[i-1] + {o}", ADD),
                lambda: Text(f"{o} * silu({o})", MUL),
                lambda: Text(f"fir[t]({s.param('h × p × t')}, {o})"),
                lambda: Text(f"max({o}, {self.v})"),
                lambda: Text(f"{o}[i-2] - {o}", ADD),
                lambda: Text(f"softmax[p]({o})"),
                lambda: Text(f"mean[p]({o}) * ones[h, p]", MUL),
            )
        return value

    def _joined(self, a: Text, b: Text) -> Text:
        return self.pick(
            lambda: Text(f"{a.at(ADD)} + {b.at(ADD + 1)}", ADD),
            lambda: Text(f"{a.at(MUL)} * {b.at(MUL + 1)}", MUL),
            lambda: Text(f"{a.at(MUL)} / (1 + abs({b.text}))", MUL),
        )

    def _output(self, value: Text) -> None:
        s = self.scope
        self.y_axes = over("hp")
        if not self.chance(0.3):
            s.body.append(f"y = {value.text}")
            return
        target = over(self.random.choice(("d", "d", "n", "hn", "m")))
        self.y_axes = target
        w = s.param(f"h × p -> {shape(target)}", "W")
        if HEADS in target:
            s.body.append(f"o = {value.text}")
            s.body.append(f"y = {w} o" if HEADS not in target else "y = o")
            self.y_axes = over("hp")
            return
        s.body.append(f"o = {value.text}")
        tail = f" + {s.param('d')} * u" if target == over("d") and self.chance(0.5) else ""
        s.body.append(f"y = {w} o{tail}")
