"""A claim written out computes what the System does, for every shipped spec."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.table import TABLE
from dsfc.mixer import sample, sizes
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.evaluate import evaluate
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Invariant
from dsfc.trusted.comparable import comparable
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import lags
from dsfc.trusted.polynomial import Polynomial, Quotient
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import state, written
from dsfc.trusted.symbols import Symbols

SPECS = sorted(p.stem for p in (Path(dsfc.__file__).parent.parent / "specs").glob("*.dsf"))
UNFINISHED = {
    "dlr_bidirectional": "a state runs backwards in time",
    "softmax": "no finite state",
}
SLOW = {"s4", "s4d", "dss_exp", "mega_ema", "gsa", "mamba3"}
LEAF = re.compile(r"(~?)(\w+)\[([\d,]*)\](?:@(\d))?")


def feature(x: np.ndarray) -> np.ndarray:
    """What abstract maps stand for here: two features of vectors `[..., n]`."""
    return np.stack([np.sum(x, axis=-1), np.prod(x, axis=-1)], axis=-1)


class Numbers:
    """The value of every generator at a token, in double precision."""

    def __init__(self, symbols: Symbols, drawn, size: dict[str, int]) -> None:
        self.defined = dict(symbols.defined)
        self.drawn, self.size, self.token = drawn, size, 0
        self.cells: dict[str, complex] = {}

    def of(self, q: Quotient) -> complex:
        out = self._polynomial(q.num)
        for base, exponent in q.den.items():
            out = out / self._polynomial(base) ** exponent
        return out

    def _polynomial(self, p: Polynomial) -> complex:
        out = 0j
        for m, c in p.terms.items():
            term = complex(c)
            for name, exponent in m:
                term *= self.generator(name) ** exponent
            out += term
        return out

    def generator(self, name: str) -> complex:
        if name == "i":
            return 1j
        if name in self.cells:
            return self.cells[name]
        if name in self.defined:
            head, args = self.defined[name]
            return self.function(head, [self.of(a) for a in args])
        if name.startswith("size["):
            return self.size[name[5:-1]]
        twin, stem, where, lag = LEAF.fullmatch(name).groups()
        index = tuple(map(int, where.split(","))) if where else ()
        if lag is None:
            value = complex(self.drawn.params[stem][index])
        else:
            value = complex(self.drawn.inputs[stem][(self.token - int(lag), *index)])
        return value.conjugate() if twin else value

    def function(self, head: str, args: list[complex]) -> complex:
        if head.startswith("~"):
            return self.function(head[1:], [a.conjugate() for a in args]).conjugate()
        name, _, where = head.partition("[")
        values = np.asarray(args)
        values = values if np.iscomplex(values).any() else values.real
        if ";" in where:
            each, target = where[:-1].split(";")
            index = tuple(int(k) for k in (each + "," + target).split(",") if k)
            return complex(self.drawn.params[name][index].reshape(-1) @ values)
        if where:
            primitive = TABLE[name.partition(".")[0]]
            return complex(primitive.value(values, axis=-1)[int(where[:-1])])
        if name.endswith(">"):
            return complex(feature(values)[int(name[:-1].partition("<")[2])])
        if name == "pow":
            return complex(values[0] ** values[1])
        return complex(TABLE[name].value(*values))


def tiered(name: str, entries: bool) -> tuple[pytest.MarkDecorator, ...]:
    """Entry by entry later; matrices inside matrices have a thousand entries, pairs long ones."""
    if entries and name in ("gla_block", "mamba3"):
        return (pytest.mark.full,)
    return (pytest.mark.ci,) if entries or name in SLOW else ()


@pytest.mark.share(9, ci=13)
@pytest.mark.parametrize(
    ("name", "entries"),
    [
        pytest.param(name, entries, marks=tiered(name, entries))
        for name in SPECS
        for entries in (False, True)
    ],
)
def test_the_statement_is_the_system(name: str, entries: bool) -> None:
    try:
        it = dsfc.load(name)
        system = it.system
    except DiagnosticError:
        pytest.skip("a base, a modifier, or outside the language")
    size = dict(sizes(it.mixer, {d.axis.name: 2 for d in it.mixer.axes}))
    for d in system.axes:
        size.setdefault(d.axis.name, size[d.axis.copy_of or d.axis.name])
    claim = Claim(system, system, (), tuple(size.items()))
    symbols = Symbols()
    try:
        steady = written(claim, symbols, entries, None)
    except Obstacle as e:
        assert UNFINISHED.get(name, "nothing") in str(e), f"{name}: {e}"
        return
    assert name not in UNFINISHED
    length = 6
    drawn = sample(it.mixer, size, seed=1, length=length)
    maps = {a.name: feature for a in system.abstracts}
    values = evaluate(system, drawn.inputs, drawn.params, size, abstracts=maps)
    expected = values.outputs["y"]
    quotients = (*steady.step.values(), *itertools.chain(*steady.outputs))
    window = max(1, *(lags(frozenset().union(*(q.names for q in quotients)))))
    later = Numbers(symbols, drawn, size)
    cells: dict[str, complex] = {}
    entries_out = expected[0].size
    for token in range(length):
        moment = written(claim, symbols, entries, token) if token < window else steady
        at = Numbers(symbols, drawn, size) if token < window else later
        at.cells, at.token = cells, token
        found = [at.of(left) for left, _ in moment.outputs[:entries_out]]
        np.testing.assert_allclose(found, expected[token].reshape(-1), rtol=1e-9, atol=1e-11)
        # Conjugates of complex entries are entries of their own.
        cells = {cell: at.of(q) for cell, q in moment.step.items()}


def load(text: str, *names: str):
    from dsfc.api.locate import Place
    from dsfc.api.pipeline import SpecText

    spec = SpecText(Place(Path("mine.dsf")), parse(Source("mine.dsf", text)))
    return [spec.compilation(name).system for name in names]


PAIR = """
mixer a { dims n
  input u : n
  param w : n
  state h : n
  h = w * h[i-1] + u
  y = h
}
mixer b { dims n
  input u : n
  param w : {kind}
  state g : n
  g = {update} * g[i-1] + u
  y = g
}
"""


def test_a_name_is_one_array_only_where_it_has_one_shape() -> None:
    a, b = load(PAIR.replace("{kind}", "n complex").replace("{update}", "Re(w)"), "a", "b")
    with pytest.raises(ValueError, match="same axes"):
        comparable(Claim(a, b, (), (("n", 2),)))


@pytest.mark.parametrize(
    "names", [(("w", "u"),), (("w", "q"),), (("q", "w"),), (("w", "w"), ("u", "w"))]
)
def test_names_are_identified_one_to_one_and_like_with_like(names) -> None:
    a, b = load(PAIR.replace("{kind}", "n").replace("{update}", "w"), "a", "b")
    comparable(Claim(a, b, (), (("n", 2),)))
    with pytest.raises(ValueError):
        comparable(Claim(a, b, names, (("n", 2),)))


@pytest.mark.parametrize("size", [(), (("n", 0),), (("n", 257),), (("n", True),)])
def test_sizes_are_small_positive_integers(size) -> None:
    a, b = load(PAIR.replace("{kind}", "n").replace("{update}", "w"), "a", "b")
    with pytest.raises(ValueError):
        comparable(Claim(a, b, (), size))


def test_a_value_of_an_earlier_token_starts_as_zero() -> None:
    text = """
mixer a { dims n
  input u : n
  param b : n
  x = exp(u + b)
  y = x + x[i-2]
}
"""
    (a,) = load(text, "a")
    statement = state(Claim(a, a, (), (("n", 1),)), False)
    assert statement.window == 2
    assert len(statement.first[0].outputs[0][0].num.terms) == 1
    assert len(statement.steady.outputs[0][0].num.terms) == 2


@pytest.mark.parametrize("kind", ["w", "input"])
def test_axes_have_names_and_an_order(kind: str) -> None:
    """Sizes that happen to be equal do not make one array of n × p and p × n."""
    text = """
mixer a {{ dims n, p
  input u : n
  param w : n × p
  y = u * w
}}
mixer b {{ dims {dims}
  input u : {input}
  param w : n × p
  y = u * w
}}
"""
    dims = "n, p" if kind == "input" else "p, n"
    a, b = load(text.format(dims=dims, input="p" if kind == "input" else "n"), "a", "b")
    with pytest.raises(ValueError, match="axes"):
        comparable(Claim(a, b, (), (("n", 2), ("p", 2))))


@pytest.mark.parametrize(
    "divisor, known",
    [
        ("c", True),
        ("(c + c[i-1])", True),
        ("(c * c + 1)", True),
        ("c[i-1]", False),
        ("(c - 2)", False),
        ("s", False),
        ("(s + 1)", False),
        ("never", False),
    ],
)
def test_updates_divide_by_what_is_positive(divisor: str, known: bool) -> None:
    text = f"""
mixer divided {{ dims n
  input u, v : n;  η : n positive
  state c, s, never, S : n
  c = c[i-1] + η
  s = s[i-1] + v
  never = 2 * never[i-1]
  S = (S[i-1] + u) / {divisor}
  y = S
}}
"""
    (system,) = load(text, "divided")
    claim = Claim(system, system, (), (("n", 1),))
    if known:
        state(claim, False)
        # Where something is assumed of u, nothing is known of what takes its values.
        terms = (((("u[0]@0", 1),), 1), ((("v[0]@0", 1),), 1))
        assumed = replace(claim, conditions=(Condition(terms, "u[0]@0"),))
        with pytest.raises(Obstacle, match="may be 0"):
            state(assumed, False)
        return
    with pytest.raises((Obstacle, ZeroDivisionError), match=r"may be 0|denominator is 0"):
        state(claim, False)


@pytest.mark.parametrize(
    "value, window",
    [("u", 2), ("first * w", 3), ("first[i-2] * w", 5), ("exp(u) * exp(-u) * w", 2)],
)
def test_tokens_are_alike_from_the_first_that_reads_all_it_reads(value: str, window: int) -> None:
    text = f"""
mixer a {{ dims n
  input u : n
  param w : n
  f = {value}
  y = u + f[i-2] * u
}}
"""
    (a,) = load(text, "a")
    claim = Claim(a, a, (), (("n", 1),))
    assert state(claim, False).window == window
    # No rows are needed: the outputs are equal. They are not those of the same with one lag more.
    (b,) = load(text.replace("f[i-2]", "f[i-3]"), "a")
    proof = Invariant((), False)
    check(write(Certificate(claim, proof)))
    with pytest.raises(Rejected):
        check(write(Certificate(Claim(a, b, (), (("n", 1),)), proof)))
