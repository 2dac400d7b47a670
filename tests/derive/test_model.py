"""Running maxima that no text gives: a model takes none whose update has another form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsfc.derive.model import Model
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import add, mul, num, prim
from dsfc.expr.declarations import FlowRule
from dsfc.expr.tree import Expr, Field, Now, Ref, Time
from dsfc.mixer import Library, resolve
from dsfc.mixer.ir import Definition, Flow, Mixer, StateDecl
from dsfc.source import Source
from dsfc.syntax.parse import parse

TEXT = """mixer m { dims p = 2
  input u : p
  state m : p
  state s : p
  a = u / 2
  m = max(m[i-1] + a, u)
  s = exp(m[i-1] - m) * s[i-1] + u
  y = s }
"""


def mixer() -> Mixer:
    return resolve(parse(Source("<text>", TEXT)), None, Library())


def ref(name: str, lag: int = 0) -> Expr:
    (axis,) = (d.axis for d in mixer().axes)
    return Ref(name, frozenset({axis}), Field.REAL, Time.STATE, Now(lag))


def with_state(made: Mixer, name: str, **changed: object) -> Mixer:
    return replace(
        made, states=tuple(replace(s, **changed) if s.name == name else s for s in made.states)
    )


def with_value(made: Mixer, name: str, value: Expr) -> Mixer:
    return replace(
        made,
        definitions=tuple(
            Definition(name, value) if d.name == name else d for d in made.definitions
        ),
    )


def maximum(decay: Expr, weight: Expr) -> Expr:
    return prim("max", add(ref("m", 1), decay), weight)


def test_a_running_maximum_is_a_value_of_each_token() -> None:
    model = Model.of(mixer())
    assert (set(model.maxima), set(model.states)) == ({"m"}, {"s"})
    (update,) = model.states["s"].body
    assert not model.reach(ref("m")) and model.reach(update) == {"s"}
    assert model.sources(ref("m")) == frozenset()


DAMAGED = {
    "no maximum": lambda m: with_state(m, "m", update=ref("u")),
    "no update": lambda m: with_state(m, "m", update=None),
    "backward": lambda m: with_state(m, "m", backward=True),
    "nothing but its past": lambda m: with_state(
        m, "m", update=prim("max", add(ref("m", 1), ref("u")), add(ref("m", 1), ref("a")))
    ),
    "a weight that reads it": lambda m: with_state(
        m, "m", update=maximum(ref("a"), mul(num(2), ref("s")))
    ),
    "a decay through a name": lambda m: with_value(m, "a", mul(ref("s"), ref("u"))),
    "a name of a name": lambda m: with_value(
        replace(m, definitions=(*m.definitions, Definition("b", ref("s", 1)))), "a", ref("b")
    ),
    "a drift": lambda m: with_state(
        with_value(m, "a", ref("s")),
        "s", update=None, flow=Flow(mul(ref("m"), ref("s")), FlowRule.EULER, num(1)),
    ),
    "a step": lambda m: with_state(
        with_value(m, "a", ref("s")),
        "s", update=None, flow=Flow(ref("u"), FlowRule.EULER, prim("exp", ref("m"))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_maximum_of_another_form_is_refused(name: str) -> None:
    made = DAMAGED[name](mixer())
    with pytest.raises(DiagnosticError) as caught:
        Model.of(made)
    (found,) = caught.value.diagnostics
    (state,) = (s for s in made.states if s.name == "m")
    assert (found.code, found.state, found.span) == ("E-MAX-PLUS", "m", state.span)
    assert found.why == "its update has another form"
    assert found.repair == "write `m = max(m[i-1] + …, …)`"


def test_a_state_is_no_maximum_because_it_is_called_one() -> None:
    made: StateDecl = with_state(mixer(), "s", maximum=True).states[1]
    with pytest.raises(DiagnosticError):
        Model.of(with_state(mixer(), "s", maximum=made.maximum))


NAMES = """mixer mix { dims d, n = 2
  input u : d
  param W : d -> n;  c : n
  buffer b : n = 1/2
  abstract φ : n -> n
  state s : n
  state m : n
  a = W u
  s = c * s[i-1] + b * a
  m = max(m[i-1] + a, a)
  y = φ(s) * m }
"""


def test_names_that_are_taken_get_a_number() -> None:
    model = Model.of(resolve(parse(Source("<text>", NAMES)), None, Library()))
    for name in ("mix", "d", "n", "u", "W", "c", "b", "phi", "s", "m", "a", "y", "i", "first"):
        assert model.fresh(name) == f"{name}_2"
        assert model.fresh(name) == f"{name}_3"
    assert model.fresh("free") == "free"
