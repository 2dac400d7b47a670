"""Random mixers that have kernels: a strategy of hypothesis for each form, and for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Axes = tuple[str, ...]
Draw = Callable[[st.SearchStrategy[Any]], Any]

WORDS = tuple(
    "S h dh o out tile T D L N P BT BD n m j k row start last parts value decay made p_x b_x r_x"
    " dr_x x mode chunk range tl torch F math grads B K V C g dg i_b o_d STEP self ctx dtype W"
    " q z".split()
)
"""Names that the kernels' own text has, or Python, or torch; short ones, which all lines hold."""
MAPS = "sigmoid tanh silu gelu relu abs softplus elu erf sin cos".split()
SIZES = (1, 2, 3, 5)
"""One, less than a tile of four, and more."""


@dataclass(frozen=True)
class Mixer:
    """A mixer that was drawn.

    Attributes:
        body: what stands between its braces.
        sizes: of the axes that it leaves open.
    """

    body: str
    sizes: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """Another one for every body: a process registers the operators of a name once."""
        return f"random_{hashlib.sha256(self.body.encode()).hexdigest()[:12]}"


class Writer:
    """A body under way: asks for choices, and keeps what was declared and defined."""

    def __init__(self, draw: Draw, heads: bool, **sizes: Sequence[int]) -> None:
        self._draw = draw
        self._heads = heads
        self._sizes = {a: self.one_of(*s) for a, s in sizes.items()}
        self._words = draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=8))
        self._count = 0
        self._declared: list[str] = []
        self._defined: list[str] = []
        self._inputs: list[tuple[str, Axes]] = []
        self._params: list[tuple[str, Axes]] = []

    # --- choices ---------------------------------------------------------------------------------

    def one_of(self, *choices: Any) -> Any:
        """One of them."""
        return self._draw(st.sampled_from(choices))

    @property
    def axes(self) -> Axes:
        """The axes that the mixer leaves open."""
        return tuple(self._sizes)

    def some(self, axes: Axes) -> Axes:
        """The axes, or some of them."""
        return self.one_of(axes, axes, axes[:1], axes[-1:])

    # --- names -----------------------------------------------------------------------------------

    def fresh(self) -> str:
        """A name: a word that the text has too, or a number."""
        self._count += 1
        word = self._words.pop() if self._words else ""
        return word if word and word not in (*self._sizes, "h") else f"x{self._count}"

    def named(self, value: str) -> str:
        """The value, by a name or as it is."""
        if self.one_of(False, True):
            return value
        name = self.fresh()
        self.define(name, value)
        return name

    def define(self, name: str, value: str) -> None:
        """Adds a definition."""
        self._defined.append(f"{name} = {value}")

    def input(self, *axes: str) -> str:
        """A new input."""
        name = self.fresh()
        self._inputs.append((name, axes))
        self._declared.append(f"input {name} : {' × '.join(axes)}")
        return name

    def param(self, *axes: str) -> str:
        """A new parameter."""
        name = self.fresh()
        self._params.append((name, axes))
        how = self.one_of("", " ~ normal(0, 1)", " = 1/3")
        self._declared.append(f"param {name} : {' × '.join(axes)}{how}")
        return name

    def state(self, axes: Axes, kind: str = "") -> str:
        """A new state."""
        name = self.fresh()
        self._declared.append(f"state {name} : {' × '.join(axes)}{kind}")
        return name

    # --- values ----------------------------------------------------------------------------------

    def leaf(self, axes: Axes) -> str:
        """What is given, with these axes: of this token or an earlier one, mapped, a parameter."""
        known = [n for n, a in self._inputs if a == axes]
        narrow = [(n, a) for n, (a, *more) in self._inputs if not more]
        held = [n for n, a in self._params if a == axes]
        kind = self.one_of("input", "earlier", "mapped", "param")
        if kind == "earlier" and known:
            return f"{self.one_of(*known)}[i-{self.one_of(1, 2)}]"
        if kind == "mapped" and narrow:
            name, axis = self.one_of(*narrow)
            weight, into = self.fresh(), " × ".join(axes)
            self._declared.append(f"param {weight} : {axis} -> {into} ~ normal(0, 1/2)")
            return f"({weight} {name})"
        if kind == "param":
            return str(
                self.one_of(*held) if held and self.one_of(True, False) else self.param(*axes)
            )
        return str(self.one_of(*known) if known and self.one_of(True, False) else self.input(*axes))

    def value(self, axes: Axes, depth: int = 1) -> str:
        """An expression with so many levels of arithmetic."""
        if depth == 0:
            return self.leaf(axes)
        x = self.value(axes, depth - 1)
        kind = self.one_of("map", "map", "two", "two", "one", "part")
        if kind == "map":
            return f"{self.one_of(*MAPS)}({x})"
        if kind == "part":  # a factor alone may lack axes
            return f"({self.one_of('2', '1/3', 'π', self.leaf(self.some(axes)))} * {x})"
        if kind == "two":
            form = self.one_of(
                *("({} + {})", "({} - {})", "({} * {})", "max({}, {})", "({} / (1 + {}^2))")
            )
            return str(form.format(x, self.value(axes, depth - 1)))
        form = self.one_of("({})^2", "sqrt(1 + {}^2)", "log(1 + ({})^2)", "exp(-abs({}))")
        return str(form.format(x))

    def drive(self, axes: Axes) -> str:
        """What a state takes in: no sum, which would be several drives."""
        form = self.one_of("{}", "tanh({})", "softplus({})", "({})^2", "({0} * {0})")
        return str(form.format(self.leaf(axes) if form == "{}" else self.value(axes)))

    def gate(self, axes: Axes) -> str:
        """Something between 0 and 1, or nearly so."""
        form = self.one_of(
            *("sigmoid({})", "exp(-softplus({}))", "exp(-abs({}))", "(1 - sigmoid({}))"),
            *("(1 - 1/2 * sigmoid({}))", "sigmoid({})^(1/2)", "1 / (1 + {}^2)"),
        )
        return self.named(form.format(self.value(axes, self.one_of(0, 1))))

    def read(self, state: str) -> str:
        """The state, more often after its update than before it."""
        return f"{state}{self.one_of('', '', '[i-1]')}"

    # --- the whole -------------------------------------------------------------------------------

    def mixer(self, y: str) -> Mixer:
        """What was written, with an output."""
        self.define("y", y)
        axes = [*self._sizes, *([f"heads h = {self.one_of(1, 2)}"] if self._heads else [])]
        lines = [f"dims {', '.join(axes)}", *self._declared, *self._defined]
        return Mixer("\n".join(lines), tuple(self._sizes.items()))


@st.composite
def elementwise(draw: Draw) -> Mixer:
    """Real and complex states without keys, that may share a gate, or feed one another."""
    heads = draw(st.booleans())
    w = Writer(draw, heads, d=SIZES, **({"e": (2, 3)} if draw(st.booleans()) else {}))
    axes = (*(("h",) if heads else ()), *w.axes)
    w.input(*axes)
    gate = w.gate(axes)
    reads: list[str] = []
    for _ in range(w.one_of(1, 1, 2, 3)):
        gate = w.one_of(gate, w.gate(axes))
        value = w.drive(axes)
        if reads:
            value = w.one_of(value, f"{value} * {reads[-1]}")
        if w.one_of(False, False, True):
            state = w.state(axes, " complex")
            turned = w.one_of(gate, f"{gate} * cis({w.value(axes)})")
            value = w.one_of(value, f"cplx({value}, {w.value(axes)})")
            w.define(state, f"{turned} * {state}[i-1] + {value}")
            read = w.read(state)
            reads.append(w.one_of(f"Re({read})", f"Im({read})", f"Re({read}) * Im({read})"))
        else:
            state = w.state(axes)
            w.define(state, f"{gate} * {state}[i-1] + {value}")
            reads.append(w.read(state))
    return w.mixer(w.one_of(" + ", " * ").join(reads) + w.one_of("", f" + {w.value(axes)}"))


@st.composite
def convolution(draw: Draw) -> Mixer:
    """States without keys, with a decay that is the same at every token."""
    w = Writer(draw, False, d=SIZES)
    u, reads = w.input("d"), []
    for _ in range(w.one_of(1, 1, 2)):
        rate, kind = f"-exp({w.param('d')})", w.one_of("", " complex")
        state, value = w.state(("d",), kind), w.one_of(u, f"{u} * {w.drive(('d',))}")
        if kind:
            rate = f"cplx({rate}, {w.one_of('1', w.param('d'))})"
            value = w.one_of(value, f"cplx({value}, {w.value(('d',))})")
        w.define(state, f"exp({rate}) * {state}[i-1] + {value}")
        read = w.read(state)
        reads.append(f"{w.one_of('Re', 'Im')}({read})" if kind else read)
    return w.mixer(" + ".join(reads) + w.one_of("", f" * {w.value(('d',))}"))


def feature(w: Writer, axes: Axes) -> str:
    """A query or key: an input, or a function of one."""
    maps = ("{}", "{}", "exp({})", "(elu({}) + 1)", "relu({})^2", "silu({})", "cos({})")
    return w.named(w.one_of(*maps).format(w.input(*axes)))


@st.composite
def matrix(draw: Draw) -> Mixer:
    """Keys of all heads or each, weights, decays, columns, normalisers, a scan behind another."""
    heads = draw(st.booleans())
    w = Writer(draw, heads, n=SIZES, p=SIZES)
    of = ("h",) if heads else ()
    keyed = w.one_of((*of, "n"), ("n",))
    q, k = feature(w, keyed), feature(w, keyed)
    v = w.input(*of, "p")
    weighted = heads and keyed != ("n",)  # keys that all heads share have no weight of a head
    if weighted:
        weight = w.named(w.one_of("exp({})", "sigmoid({})", "{}").format(w.input(*of)))
        k = w.one_of(k, f"{weight} * {k}")
    a = w.one_of("", f"{w.gate(of)} * ") if heads else w.one_of("", "1/2 * ")
    reads = []
    for at in range(w.one_of(1, 1, 2)):
        if at and heads:
            a = w.one_of(a, f"{w.gate(of)} * ")
        driven = w.one_of(v, w.drive((*of, "p"))) if not reads else w.one_of(v, f"tanh({reads[0]})")
        state = w.state((*of, "n", "p"))
        w.define(state, f"{a}{state}[i-1] + ({k}) ⊗ ({driven})")
        reads.append(f"({q} · {w.read(state)})")
    y = " + ".join(reads)
    how = w.one_of("", *(["given"] if heads else []), *([] if heads > weighted else ["running"]))
    if how == "running":
        z = w.state((*of, "n"))
        w.define(z, f"{a}{z}[i-1] + {k}")
        below = w.one_of("(1 + {}^2)", "max(abs({}), 1)", "(1 + abs({}))")
        y = f"({y}) / {below.format(f'({q} · {w.read(z)})')}"
    elif how == "given":
        y = f"({y}) / {w.named(f'(1 + {w.value(of)}^2)')}"
    return w.mixer(w.one_of(y, f"{y} + {w.value((*of, 'p'))}"))


@st.composite
def rotated(draw: Draw) -> Mixer:
    """Complex decays of real keys: values of one plane or two, and none."""
    w = Writer(draw, True, n=SIZES, p=SIZES)
    q, k, v = feature(w, ("h", "n")), feature(w, ("h", "n")), w.input("h", "p")
    turned = f"{w.gate(('h',))} * cis({w.value(('h',))})"
    a = w.one_of(turned, turned, f"exp(cplx(-exp({w.param('h')}), {w.param('h')}))")
    state = w.state(("h", "n", "p"), " complex")
    value = w.one_of(v, f"cplx({v}, {w.value(('h', 'p'))})")
    w.define(state, f"{a} * {state}[i-1] + {k} ⊗ {value}")
    y = f"{w.one_of('Re', 'Im')}({q} · {w.read(state)})"
    if w.one_of(False, False, True):
        z = w.state(("h", "n"), " complex")
        w.define(z, f"{a} * {z}[i-1] + {k}")
        y = f"{y} / (1 + abs({q} · {w.read(z)})^2)"
    return w.mixer(w.one_of(y, f"{y} + {w.value(('h', 'p'))}"))


@st.composite
def selective(draw: Draw) -> Mixer:
    """Real rates of each channel and state."""
    w = Writer(draw, False, d=SIZES, n=SIZES)
    u, k, q = w.input("d"), w.named(w.drive(("n",))), w.input("n")
    t = w.named(w.one_of("softplus({})", "exp({})", "abs({})").format(w.value(("d",), 0)))
    rate = f"exp({w.param('d', 'n')})"
    gate = w.one_of(f"exp(-{t} * {rate})", f"exp(-{t} * {rate})", f"sigmoid({w.input('d', 'n')})")
    value = w.named(w.one_of("{}", f"({t} * {{}})").format(w.drive(("d",))))
    state = w.state(("d", "n"))
    w.define(state, f"{gate} * {state}[i-1] + {value} ⊗ {k}")
    return w.mixer(f"({w.read(state)} · {q})" + w.one_of("", f" + {w.param('d')} * {u}"))


@st.composite
def chunked(draw: Draw) -> Mixer:
    """Decays of keys, delta rules, and both: scans whose kernels are printed."""
    heads = draw(st.booleans())
    w = Writer(draw, heads, n=SIZES, p=SIZES)
    of = ("h",) if heads else ()
    q, k, v = feature(w, (*of, "n")), f"l2norm[n]({w.input(*of, 'n')})", w.input(*of, "p")
    how = w.one_of("keys", "delta rule", "both")
    state, kept = w.state((*of, "n", "p")), w.fresh()
    decay = w.gate((*of, "n")) if how != "delta rule" else w.one_of("", w.gate(of)) if of else ""
    w.define(kept, f"{decay} * {state}[i-1]" if decay else f"{state}[i-1]")
    key, value = w.fresh(), w.drive((*of, "p"))
    w.define(key, k)
    if how == "keys":
        w.define(state, f"{kept} + {key} ⊗ {w.one_of(v, value)}")
    else:
        rate = w.one_of("sigmoid({})", "2 * sigmoid({})").format(w.input(*of)) if of else "1/2"
        w.define(state, f"{kept} + ({rate} * {key}) ⊗ ({v} - {key} · {kept})")
    return w.mixer(f"{q} · {w.read(state)}" + w.one_of("", f" + {value}"))


FORMS = {f.__name__: f for f in (elementwise, convolution, matrix, rotated, selective, chunked)}
"""A strategy of mixers of each form, by its name."""
