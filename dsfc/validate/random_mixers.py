"""Random well-typed mixers, as spec text, over every kind of node a System can hold.

A seed gives a text. The texts go through the whole front end, so a generator of programs nobody
wrote tests the parser, the typing rules, the derivation and everything behind it at once. Values
stay moderate over a handful of tokens when parameters are drawn with a scale of about one half.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Make = Callable[[], str]

_PROJECTIONS = {"h": "h", "hn": "h × n", "hp": "h × p", "n": "n", "p": "p"}
_SHAPES = {"hnp": "h × n × p", "hn": "h × n", "hp": "h × p", "h": "h"}


def random_mixer(seed: int) -> str:
    """Returns the text of a random mixer with one output `y`.

    Its open dimension is `d`; all others have sizes. The same seed gives the same text.

    Args:
        seed: any integer.
    """
    return _Writer(Random(seed), f"random_{abs(seed)}").text()


class _Writer:
    """Writes one mixer: declarations and definitions grow while expressions are drawn."""

    def __init__(self, random: Random, name: str) -> None:
        self.random = random
        self.name = name
        self.declarations: list[str] = []
        self.body: list[str] = []
        self.count = 0
        # Most mixers run forward; the others have backward states and read i+1.
        self.backward = random.random() < 0.12
        self.before = "i+1" if self.backward else "i-1"
        self.q, self.k, self.v = self._projections()

    def text(self) -> str:
        """Returns the whole text."""
        read_outs = [self._read_out() for _ in range(self.random.choice((1, 1, 2)))]
        value = read_outs[0] if len(read_outs) == 1 else self._joined(*read_outs)
        self._output(value)
        lines = [
            f"mixer {self.name} {{",
            "  dims d, heads h = 2, n = 3, p = 2, t = 2, m = 3",
            "  input u : d",
            *(f"  {line}" for line in self.declarations),
            *(f"  {line}" for line in self.body),
            "}",
        ]
        return "\n".join(lines) + "\n"

    # --- small things -----------------------------------------------------------------------------

    def pick(self, *makes: Make) -> str:
        """Draws one of some expressions; only the chosen one is written."""
        return self.random.choice(makes)()

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def fresh(self, wish: str) -> str:
        self.count += 1
        return f"{wish}{self.count}"

    def param(self, kind: str, wish: str = "w", flags: str = "") -> str:
        name = self.fresh(wish)
        self.declarations.append(f"param {name} : {kind}{flags}")
        return name

    def define(self, value: str, wish: str = "x") -> str:
        name = self.fresh(wish)
        self.body.append(f"{name} = {value}")
        return name

    def number(self) -> str:
        return self.random.choice(("1/2", "1/3", "2/3", "1/4", "3/4", "1/5"))

    # --- token-wise values ------------------------------------------------------------------------

    def _projections(self) -> tuple[str, str, str]:
        q, k, v = (self.projection(axes) for axes in ("hn", "hn", "hp"))
        if self.chance(0.2):
            k = self.define(f"l2norm[n](silu({k}))", "k")
        if self.chance(0.2):
            v = self.define(f"{v} * {self.number()} + (1 - {self.number()}) * {v}[i-1]", "v")
        if self.chance(0.15):
            w = self.param("h × n × t")
            k = self.define(f"fir[t]({w}, {k})", "k")
        return q, k, v

    def projection(self, axes: str) -> str:
        """Returns a named linear map of the input."""
        w = self.param(f"d -> {_PROJECTIONS[axes]}", "W")
        return self.define(f"{w} u", "x")

    def complex(self, axes: str) -> str:
        """Returns a named complex value."""
        return self.define(f"cplx({self.projection(axes)}, {self.projection(axes)})", "z")

    def gate(self, axes: str) -> str:
        """Returns a token-wise value over axes, bounded."""
        x = self.projection(axes)
        return self.pick(
            lambda: f"sigmoid({x})",
            lambda: f"tanh({x})",
            lambda: f"silu({x})",
            lambda: f"exp(-softplus({x}))",
            lambda: f"(1 - sigmoid({x}))",
        )

    def decay(self, axes: str, complex_: bool) -> str:
        """Returns a decay over some of a state's axes, in time or constant; at most 1 in size."""
        known = [a for a in ("h", "hn", "hp", "n", "p") if set(a) <= set(axes)]
        over = self.random.choice([*known, ""])
        value = self.pick(*self._decays(over))
        if not complex_:
            return value
        angle = self.projection(over) if over and self.chance(0.5) else None
        if angle is None:
            angle = self.param(_PROJECTIONS[over]) if over else self.number()
        return f"{value} * cis({angle})"

    def _decays(self, over: str) -> list[Make]:
        if not over:
            return [self.number, lambda: "1"]
        shape = _PROJECTIONS[over]
        first = "(1 - first) * " if self.chance(0.1) else ""
        return [
            lambda: self.define(f"{first}sigmoid({self.projection(over)})", "a"),
            lambda: f"{first}exp(-softplus({self.projection(over)}))",
            lambda: f"exp(-exp({self.param(shape)}))",
            lambda: self.param(shape, "c", " unit"),
            lambda: f"(1 - {self.number()} * sigmoid({self.projection(over)}))",
            lambda: f"sigmoid({self.projection(over)})^(1/2)",
        ]

    # --- states -----------------------------------------------------------------------------------

    def state(self, shape: str, complex_: bool = False) -> str:
        name = self.fresh("S")
        flags = (" complex" if complex_ else "") + (" backward" if self.backward else "")
        self.declarations.append(f"state {name} : {_SHAPES[shape]}{flags}")
        return name

    def past(self, name: str) -> str:
        return f"{name}[{self.before}]"

    def drive(self, shape: str) -> str:
        """Returns an input term with the axes of a state."""
        k, v = self.k, self.v
        match shape:
            case "hnp":
                return self.pick(
                    lambda: f"{k} ⊗ {v}",
                    lambda: f"({self.gate('h')} * {k}) ⊗ {v}",
                    lambda: f"exp({k}) ⊗ {v}",
                    lambda: f"{k} ⊗ ({self.gate('hp')} * {v})",
                    lambda: f"(1 - sigmoid({k})) ⊗ tanh({v})",
                    lambda: f"{k} ⊗ ({v} + {v}[i-1])",
                )
            case "hn":
                return self.pick(lambda: k, lambda: f"exp({k})", lambda: f"{self.gate('h')} * {k}")
            case "hp":
                return self.pick(lambda: v, lambda: f"{self.gate('hp')} * {v}")
            case _:
                return self.pick(lambda: "1", lambda: self.gate("h"))

    def low_rank(self, s: str) -> str:
        """Returns a low-rank term in a state over h × n × p."""
        scale, key, value = self.number(), self.k, self.v
        return self.pick(
            lambda: f" - {scale} * {key} ⊗ ({key} · {s})",
            lambda: f" - {scale} * ({s} · {value}) ⊗ {value}",
            lambda: f" + {scale} * {key} ⊗ (({key} · {s}) · {value}) ⊗ {value}",
            lambda: f" - {scale} * {self.gate('h')} * {key} ⊗ sum[n]({key} * {s})",
            lambda: f" - {scale} * {key} ⊗ mean[n]({s})",
        )

    def single(self, shape: str = "hnp", complex_: bool = False) -> str:
        """Returns a state with an update of its own."""
        s = self.state(shape, complex_)
        if shape == "hnp" and not complex_ and self.chance(0.3):
            return self._chained(s)
        if not self.backward and self.chance(0.3):
            return self._flow(s, shape, complex_)
        update = f"{self.decay(shape, complex_)} * {self.past(s)} + {self.drive(shape)}"
        if shape == "hnp":
            update += "".join(self.low_rank(self.past(s)) for _ in range(self._few()))
        self.body.append(f"{s} = {update}")
        return s

    def _few(self) -> int:
        return self.random.choice((0, 0, 0, 1, 1, 2))

    def _chained(self, s: str) -> str:
        inner = self.define(f"{self.decay('hnp', False)} * {self.past(s)}", "F")
        for _ in range(self.random.choice((1, 1, 2))):
            beta, key = self.number(), self.random.choice((self.k, self.projection("hn")))
            value = f"{inner} + {beta} * {key} ⊗ ({self.v} - {key} · {inner})"
            if self.chance(0.3):
                value = f"{self.gate('h')} * ({value})"
            inner = self.define(value, "F")
        self.body.append(f"{s} = {inner}")
        return s

    def _flow(self, s: str, shape: str, complex_: bool) -> str:
        size = _SHAPES[shape]
        rate = f"exp({self.param(size)})"
        rate = f"cplx(-{rate}, {self.param(size)})" if complex_ else f"-{rate}"
        rule = self.random.choice(("zoh", "euler", "bilinear"))
        step = self.pick(
            lambda: self.define(f"softplus({self.projection('h')})", "Δ"), lambda: "1/3"
        )
        low = ""
        if rule == "bilinear" and shape in ("hnp", "hn"):
            p = self.param("h × n")
            outer = "⊗" if shape == "hnp" else "*"
            low = self.pick(lambda: "", lambda: f" - {p} {outer} sum[n]({p} * {s})")
            if not low:
                self.declarations.pop()
        self.body.append(f"{s}' = {rate} * {s}{low} + {self.drive(shape)} by {rule}({step})")
        return s

    def pair(self) -> tuple[str, str]:
        """Returns two states over h × n × p, of one stage or in series."""
        a, b = self.state("hnp"), self.state("hnp")
        self.body.append(
            f"{a} = {self.decay('hnp', False)} * {self.past(a)} + {self.drive('hnp')}"
            + self.pick(lambda: f" + {self.number()} * {self.past(b)}", lambda: "")
        )
        link = self.pick(
            lambda: f"{self.number()} * {a}",
            lambda: f"{self.number()} * {self.past(a)}",
            lambda: f"{self.k} ⊗ ({self.q} · {a})",
            lambda: f"{self.number()} * {self.k} ⊗ ({self.k} · {self.past(a)})",
        )
        self.body.append(f"{b} = {self.decay('hnp', False)} * {self.past(b)} + {link}")
        return a, b

    def mixed_pair(self) -> tuple[str, str]:
        """Returns states over h × n × p and h × n that may read each other."""
        a, z = self.state("hnp"), self.state("hn")
        back = self.pick(lambda: f" + 1/5 * {self.past(z)} ⊗ {self.v}", lambda: "")
        self.body.append(
            f"{a} = {self.decay('hnp', False)} * {self.past(a)} + {self.drive('hnp')}{back}"
        )
        self.body.append(
            f"{z} = {self.decay('hn', False)} * {self.past(z)} + {self.drive('hn')}"
            f" + 1/7 * {self.pick(lambda: f'({a} · {self.v})', lambda: f'sum[p]({self.past(a)})')}"
        )
        return a, z

    # --- sums over the past -----------------------------------------------------------------------

    def sum(self) -> str:
        """Returns a sum over time with the axes h × p."""
        return self.random.choice(_SUMS)(self)

    def run(self) -> str:
        return self.define(f"sigmoid({self.projection(self.random.choice(('h', 'hn')))})", "a")

    # --- read-outs --------------------------------------------------------------------------------

    def _read_out(self) -> str:
        """Returns a value with the axes h × p that depends on the past."""
        value = self.pick(
            lambda: self.sum(),
            lambda: self.read(self.single()),
            lambda: self.read(self.single()),
            self._complex_read,
            self._ratio,
            self._pair_read,
            self._small_read,
            self._cascade,
        )
        return f"({self._adorned(value)})"

    def read(self, s: str) -> str:
        """Returns a read of a state over h × n × p."""
        q, k, v = self.q, self.k, self.v
        return self.pick(
            lambda: f"{q} · {s}",
            lambda: f"{q} · {self.past(s)}",
            lambda: f"{q} · ({self.past(s)} + ({self.param('h × n', 'bonus')} * {k}) ⊗ {v})",
            lambda: f"sum[n]({self.param('h × n')} * {s}) + {self.param('h × p')} * {v}",
            lambda: f"n^(-1/2) * {q} · {s} + {self.gate('hp')} * {v}",
            lambda: f"{q} · ({s} + 1/2 * {self.past(s)})",
            lambda: f"sum[n](tanh({s}) * {s})",
            lambda: f"mean[n]({s}) * {v}",
            lambda: f"sum[n](silu(({q} ⊗ {v}) * {s}))",
        )

    def _complex_read(self) -> str:
        s, q = self.single("hnp", True), self.complex("hn")
        part, other = self.random.choice((("Re", "Im"), ("Im", "Re")))
        return self.pick(
            lambda: f"{part}({q} · {s})",
            lambda: f"2 * {part}({self.q} · {s}) + {self.v}",
            lambda: f"{part}({q} · {s}) * {other}({q} · {self.past(s)})",
            lambda: f"abs({q} · {s})",
            lambda: f"{part}({q} · {s} * conj({q} · {s}))",
        )

    def _ratio(self) -> str:
        a = self.decay("hn", False)
        s, z = self.state("hnp"), self.state("hn")
        self.body.append(f"{s} = {a} * {self.past(s)} + exp({self.k}) ⊗ {self.v}")
        self.body.append(f"{z} = {a} * {self.past(z)} + exp({self.k})")
        above, below = f"(exp({self.q}) · {s})", f"exp({self.q}) · {z}"
        return self.pick(
            lambda: f"{above} / max(abs({below}), 1)",
            lambda: f"{above} / ({below} + 1/10)",
            lambda: f"{self.gate('hp')} * {above} / ({below})",
            lambda: f"({self.q} · {s}) / (1 + abs({self.q} · {z}))",
        )

    def _pair_read(self) -> str:
        if self.chance(0.5):
            a, b = self.pair()
            return self.pick(
                lambda: self.read(b),
                lambda: f"({self.q} · {a}) * ({self.k} · {b})",
                lambda: f"{self.q} · ({a} + {b})",
            )
        a, z = self.mixed_pair()
        return self.pick(
            lambda: f"{self.q} · {a} + ({self.q} · {z}) * {self.v}",
            lambda: f"({z} · {a})",
            lambda: f"tanh({z}) · {a}",
        )

    def _small_read(self) -> str:
        """A read of a vector state or a scalar one."""
        shape = self.random.choice(("hn", "hp", "h"))
        s = self.single(shape)
        match shape:
            case "hn":
                return f"({self.q} · {s}) * {self.v}"
            case "hp":
                return self.pick(lambda: s, lambda: self.past(s), lambda: f"silu({s})")
            case _:
                return f"{s} * {self.v}"

    def _cascade(self) -> str:
        """A stage that reads what an earlier one has given."""
        first = self.define(self.read(self.single()), "o")
        s = self.state("hnp")
        decay = self.pick(lambda: f"sigmoid({first})", lambda: self.decay("hnp", False))
        self.body.append(f"{s} = {decay} * {self.past(s)} + {self.k} ⊗ {first}")
        return self.read(s)

    def _adorned(self, value: str) -> str:
        """Gates, norms, functions and delays around a value over h × p."""
        if self.chance(0.25):
            value = f"{self.gate('hp')} * ({value})"
        if self.chance(0.15):
            value = f"tanh({value})"
        if self.chance(0.15):
            value = f"rmsnorm[p](1/3 + {value})"
        if self.chance(0.12):
            named = self.define(value, "o")
            value = self.pick(
                lambda: f"{named}[i-1] + {named}",
                lambda: f"{named} * silu({named})",
                lambda: f"fir[t]({self.param('h × p × t')}, {named})",
                lambda: f"max({named}, {self.v})",
                lambda: f"{named}[i-2] - {named}",
            )
        return value

    def _joined(self, a: str, b: str) -> str:
        return self.pick(
            lambda: f"{a} + {b}", lambda: f"{a} * {b}", lambda: f"{a} / (1 + abs({b}))"
        )

    def _output(self, value: str) -> None:
        if self.chance(0.3):
            w = self.param("h × p -> d", "W")
            self.body.append(f"o = {value}")
            tail = self.pick(lambda: "", lambda: f" + {self.param('d')} * u")
            self.body.append(f"y = {w} o{tail}")
        else:
            self.body.append(f"y = {value}")


# Sums over time with the axes h × p. Each is one kind that the separation must know.


def _plain(w: _Writer) -> str:
    return f"sum[j ≤ i]({w.q} · {w.k}[j] * {w.v}[j])"


def _scaled(w: _Writer) -> str:
    return f"sum[j ≤ i]({w.q} · {w.k}[j] * {w.v}[j]) / (1 + exp({w.projection('h')}))"


def _strict(w: _Writer) -> str:
    c = w.param("h", "c", " unit")
    return f"sum[j < i]({c}^(i-j-1) * {w.q} · {w.k}[j] * {w.v}[j])"


def _lag_power(w: _Writer) -> str:
    c = w.param(w.random.choice(("h", "h × n", "n")), "c", " unit")
    return f"sum[j ≤ i](sum[n]({w.q} * {w.k}[j] * {c}^(i-j)) * {w.v}[j])"


def _exponential_lag(w: _Writer) -> str:
    c = w.param("h × p", "c", " positive")
    return f"sum[j ≤ i](exp(-(i-j) * {c}) * {w.v}[j])"


def _gated(w: _Writer) -> str:
    g = w.projection("h")
    return f"sum[j ≤ i](exp({g} - {g}[j] - 1/3 * (i-j)) * {w.q} · {w.k}[j] * {w.v}[j])"


def _product(w: _Writer) -> str:
    a = w.run()
    return f"sum[j ≤ i](sum[n](prod[j < l ≤ i]({a}[l]) * {w.q} * {w.k}[j]) * {w.v}[j])"


def _product_before(w: _Writer) -> str:
    a = w.run()
    high = w.random.choice(("l < i", "l ≤ i"))
    inner = f"prod[j < {high}]({a}[l]) * {w.q} * {w.k}[j]"
    return f"sum[j < i](sum[n]({inner}) * {w.v}[j])"


def _future(w: _Writer) -> str:
    relation = w.random.choice((">", "≥"))
    return f"sum[j {relation} i]({w.number()}^(j-i) * {w.q} · {w.k}[j] * {w.v}[j])"


def _product_ahead(w: _Writer) -> str:
    a = w.run()
    inner = f"prod[i < l ≤ j]({a}[l]) * {w.q} * {w.k}[j]"
    return f"sum[j ≥ i](sum[n]({inner}) * {w.v}[j])"


def _taylor(w: _Writer) -> str:
    order = w.random.choice((1, 2, 2, 3))
    return f"sum[j ≤ i](taylor[{order}](n^(-1/2) * {w.q} · {w.k}[j]) * {w.v}[j])"


def _square(w: _Writer) -> str:
    return f"sum[j ≤ i](({w.number()} + {w.q} · {w.k}[j])^2 * {w.v}[j])"


def _normalised(w: _Writer) -> str:
    score = f"exp({w.q}) · exp({w.k}[j])"
    return f"sum[j ≤ i]({score} * {w.v}[j]) / sum[j ≤ i]({score})"


def _rotary(w: _Writer) -> str:
    q, k, c = w.complex("hn"), w.complex("hn"), w.param("n")
    return f"sum[j ≤ i](Re(sum[n]({q} * conj({k}[j]) * cis({c})^(i-j))) * {w.v}[j])"


def _parts(w: _Writer) -> str:
    a, b = w.param("h"), w.param("h × p")
    first, second = w.random.choice((("Re", "Im"), ("Re", "Re"), ("Im", "Im")))
    kernel = f"{first}(cis({a} * (i-j))) * {second}(cis({b} * (i-j) + 1))"
    return f"sum[j ≤ i]({kernel} * {w.v}[j])"


def _nested(w: _Writer) -> str:
    inner = f"sum[l ≤ j]({w.number()}^(j-l) * {w.k}[j] · {w.k}[l] * {w.v}[l])"
    return f"sum[j ≤ i]({w.q} · {w.k}[j] * {inner})"


def _over_a_sum(w: _Writer) -> str:
    first = w.define(w.random.choice((_plain, _strict, _normalised))(w), "o")
    return f"sum[j < i]({w.q} · {w.k}[j] * {first}[j])"


def _keyless(w: _Writer) -> str:
    return f"sum[j ≤ i]({w.gate('h')} * {w.v}[j]) / sum[j ≤ i](1)"


def _lagged_range(w: _Writer) -> str:
    return f"sum[j ≤ i-{w.random.choice((1, 2))}]({w.number()}^(i-j) * {w.q} · {w.k}[j] * {w.v}[j])"


def _features(w: _Writer) -> str:
    phi = w.random.choice(("elu({}) + 1", "softplus({})", "relu({})"))
    left, right = phi.format(w.q), phi.format(f"{w.k}[j]")
    return f"sum[j ≤ i](({left}) · ({right}) * {w.v}[j])"


def _copied(w: _Writer) -> str:
    q, k = (f"{x} ⊗ rename[n, m]({x})" for x in (w.q, w.k))
    q, k = w.define(q, "qq"), w.define(k, "kk")
    return f"sum[j ≤ i](sum[n](sum[m]({q} * {k}[j])) * {w.v}[j])"


def _cache(w: _Writer) -> str:
    kernel = w.random.choice(
        (f"exp({w.q} · {w.k}[j])", f"sigmoid({w.q} · {w.k}[j])", f"sigmoid({w.gate('h')})^(i-j)")
    )
    return f"sum[j ≤ i]({kernel} * {w.v}[j])"


_SUMS: tuple[Callable[[_Writer], str], ...] = (
    _plain, _scaled, _strict, _lag_power, _exponential_lag, _gated, _product, _product_before,
    _future, _product_ahead, _taylor, _square, _normalised, _rotary, _parts, _nested, _over_a_sum,
    _keyless, _lagged_range, _features, _copied, _cache, _cache,
)  # fmt: skip
