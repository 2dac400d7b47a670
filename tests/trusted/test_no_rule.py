"""Systems that the kernel has no rule for, or that make no sense: each refused by its reason.

No text gives most of them. A certificate may hold them, and what is not looked at there is taken
for something else: a value at another token for one at this token, an input for a parameter.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.over_time import Lag, Past, Relation
from dsfc.expr.tree import (
    Bound,
    Expr,
    Field,
    Fir,
    LinearMap,
    Mul,
    Now,
    Num,
    Param,
    Pow,
    Prim,
    Ref,
    Time,
    children,
    rebuild,
)
from dsfc.source import Source, Span
from dsfc.syntax.parse import parse
from dsfc.system.ir import (
    Cache,
    Direct,
    Direction,
    Factor,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stream,
    Sum,
    System,
)
from dsfc.trusted.balls import Complex, Real, real
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Condition,
    Conditional,
    Invariant,
    MarkovParameters,
    Point,
    Row,
    Witness,
)
from dsfc.trusted.definition import ZERO, Execution, exact
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import CALL
from dsfc.trusted.invariant import columns
from dsfc.trusted.polynomial import number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.point import Evaluated
from dsfc.trusted.rules.steady import steady
from dsfc.trusted.statement import state
from dsfc.trusted.symbols import Symbols

TEXT = """
mixer gated { dims n, p
  input u : n
  param w : n
  x = w * u
  y = x
}
mixer scaled { dims n, p
  input u : n
  param w : n
  c = exp(w)
  y = c * u
}
mixer kept { dims n, p
  input u : n
  param w : n
  state S : n
  S = S[i-1] + u
  y = S
}
mixer wide { dims n, p
  input u : n × p
  state S : n × p
  S = S[i-1] + u
  y = S
}
mixer table { dims n, p
  input u : n
  param w : n × p
  y = sum[p](w) * u
}
mixer far { dims n
  input u : n
  y = u + u[i-10]
}
mixer near { dims n
  input u : n
  y = u + u[i-9]
}
mixer decayed { dims n, p
  input u : n
  param w : n unit
  state S : n
  S = w * S[i-1] + u
  y = S
}
mixer bent { dims n, p
  input u : n
  state S : n
  S = S[i-1] / 2 + u
  y = tanh(S)
}
mixer filtered { dims n, p, k
  input u : n
  param w : n × k
  y = fir[k](w, u)
}
mixer root { dims n
  input u : n
  param c : n complex
  y = abs(c^(1/2)) * u
}
mixer third { dims n
  input u : n
  param c : n complex
  y = abs(c^(1/3)) * u
}
mixer logarithm { dims n
  input u : n
  param c : n complex
  y = abs(log(c)) * u
}
mixer squared { dims n
  input u : n
  param c : n complex
  y = abs(c^2) * u
}
mixer shaped { dims n
  input u : n
  y = gelu(u)
}
mixer same { dims n
  input u : n
  y = u
}
"""


def spec(text: str) -> SpecText:
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))


SPEC = spec(TEXT)


def system(name: str) -> System:
    return SPEC.compilation(name).system


def put(value: Any, new: dict[object, object]) -> Any:
    """The value with other expressions and read-outs in it."""
    if isinstance(value, Expr | ReadOut) and value in new:
        return new[value]
    if isinstance(value, Expr):
        return rebuild(value, tuple(put(e, new) for e in children(value)))
    if isinstance(value, tuple):
        return tuple(put(v, new) for v in value)
    if isinstance(value, Span) or not dataclasses.is_dataclass(value):
        return value
    return replace(value, **{f.name: put(getattr(value, f.name), new)
                             for f in dataclasses.fields(value) if f.init})  # fmt: skip


GATED, SCALED, KEPT = system("gated"), system("scaled"), system("kept")
DECAYED, FILTERED, SQUARED = system("decayed"), system("filtered"), system("squared")
N, P = (d.axis for d in system("wide").axes)
OVER = frozenset({N})
W, TURN = Param("w", OVER), Param("c", OVER, Field.COMPLEX)


def read(name: str, at: Now | Bound | None, when: Time = Time.TOKEN) -> Ref:
    return Ref(name, OVER, Field.REAL, when, at)


U, X, C, S = read("u", Now(0)), read("x", Now(0)), read("c", None, Time.CONST), read("S", Now(0))
FIR = FILTERED.outputs[0].value.value
REVERSED = Fir(FIR.axis, FIR.weight, FIR.arg, reverse=True)


def with_output(made: System, value: ReadOut) -> System:
    return replace(made, outputs=(replace(made.outputs[0], value=value),))


def with_block(made: System, **changed) -> System:
    ((block,),) = (stage.blocks for stage in made.stages)
    return replace(made, stages=(replace(made.stages[0], blocks=(replace(block, **changed),)),))


def with_term(made: System, **changed) -> System:
    (term,) = made.outputs[0].value.terms
    return with_output(made, Read((replace(term, **changed),)))


# --- systems written out --------------------------------------------------------------------------


def of_itself(made: System, *larger: tuple[str, int]) -> str:
    """What is said of the claim that a system is itself, by rows that say that states are equal."""
    sizes = {d.axis.name: 2 for d in made.axes} | dict(larger)
    cells = [f"S[{k}]" for k in range(2)] if made.blocks else []
    rows = tuple(
        Row((f"$A.{s}",), (((f"$A.{s}",), (((), 1),)), ((f"$B.{s}",), (((), -1),)))) for s in cells
    )
    claim = Claim(made, made, (), tuple(sizes.items()))
    try:
        check(write(Certificate(claim, Invariant(rows, False))))
    except Rejected as e:
        return str(e)
    return ""


def test_they_are_themselves_as_they_were() -> None:
    for name in ("gated", "scaled", "kept", "filtered", "table", "near"):
        assert not of_itself(system(name)), name


ENTRIES = Post("rmsnorm", (Direct(U), Direct(U)), N)
PAST = Past("j", Relation.UP_TO, read("u", Bound("j", 0)))
MALFORMED: dict[str, System] = {
    "a read-out is malformed": with_output(GATED, ENTRIES),
    "a sum over the past has no finite state: it is so": with_output(
        GATED, Cache(PAST, "it is so")
    ),
    "`u` is no parameter or buffer": put(GATED, {W: Param("u", OVER)}),
    "`w` is used with other axes than it is declared with": replace(
        system("table"),
        params=(replace((t := system("table").params[0]), axes=tuple(reversed(t.axes))),),
    ),
    "`x` is read without a time and has one": put(GATED, {X: read("x", None)}),
    "`c` is read without a time and has one": replace(
        SCALED, streams=(replace(SCALED.streams[0], value=Direct(SCALED.streams[0].value)),)
    ),
    "`c` has no time and is read at one": put(SCALED, {C: read("c", Now(0), Time.CONST)}),
    "a sum over the past has no finite state": put(GATED, {U: read("u", Bound("j", 0))}),
    "`u` is read at a later token": put(GATED, {U: read("u", Now(-1))}),
    "`u` is read 10 tokens back, more than 9": system("far"),
    "the state `S` is read inside a definition": with_output(KEPT, Direct(S)),
    "the state `S` is read with a lag of 2": with_term(KEPT, lag=2),
    "`Lag` stands in a definition": put(GATED, {U: Mul((U, Lag((("i", 1),), 0)))}),
    "`rmsnorm` is applied to complex values": with_output(
        SQUARED, Post("rmsnorm", (Direct(TURN),), N)
    ),
    "a filter is applied to something other than a name": put(FILTERED, {U: Mul((U, U))}),
    "a filter is applied to something other than a name ": put(
        FILTERED, {U: read("u", Bound("j", 0))}
    ),
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_systems_that_cannot_be_written_out(reason: str) -> None:
    assert of_itself(MALFORMED[reason]).endswith(reason.strip())


def test_states_have_few_entries() -> None:
    reason = "there are more than 64 entries of states"
    assert reason in of_itself(system("wide"), ("n", 13), ("p", 5))
    assert reason not in of_itself(system("wide"), ("n", 32), ("p", 2))


# --- systems on a constant sequence ---------------------------------------------------------------

STATE, TOKEN = KEPT.outputs[0].value, Direct(U)


def bases_of(made: System) -> str:
    """What is said of the bases of a system."""
    try:
        steady(made, {d.axis.name: 2 for d in made.axes})
    except Obstacle as e:
        return str(e)
    return ""


def test_they_have_bases_as_they_were() -> None:
    for name in ("gated", "scaled", "kept", "decayed", "filtered"):
        assert not bases_of(system(name)), name
    linear = (
        Ratio(STATE, TOKEN),
        Product((STATE, TOKEN, TOKEN)),
        Sum((STATE, TOKEN)),
        Post("tanh", (Ratio(TOKEN, TOKEN),)),
    )
    for value in linear:
        assert not bases_of(with_output(KEPT, value))


(TERM,) = DECAYED.stages[0].blocks[0].chain[0].terms
WIDE = Param("r", OVER | {P})
MAP = LinearMap("W", (N,), (N,), ())


def with_own(**changed) -> System:
    return with_block(DECAYED, chain=(Factor((replace(TERM, **changed),), ()),))


BASELESS: dict[str, System] = {
    "a state runs backwards in time": replace(
        DECAYED, stages=(replace(DECAYED.stages[0], direction=Direction.BACKWARD),)
    ),
    "the state `S` has no update": with_block(DECAYED, chain=()),
    "entries of the state `S` are coupled": with_own(left=Mul((W, WIDE))),
    "entries of the state `S` are coupled ": with_own(right=WIDE),
    "entries of the state `S` are coupled  ": with_own(over=OVER),
    "entries of the state `S` are coupled   ": with_own(matrix=MAP),
    "entries of the state `S` are coupled    ": with_own(after=MAP),
    "entries of the state `S` are coupled     ": with_own(source="R"),
    "`z` reads states": replace(KEPT, streams=(Stream("z", STATE, (N,), Field.REAL),)),
    "`Lag` stands in a definition": put(GATED, {U: Mul((U, Lag((("i", 1),), 0)))}),
    "a later token is read": put(FILTERED, {FIR: REVERSED}),
    "`u` is read at another token than one of the last few": put(
        GATED, {U: read("u", Bound("j", 0))}
    ),
    "`u` is read at another token than one of the last few ": put(GATED, {U: read("u", Now(-1))}),
    "the state `S` is read inside a definition": with_output(KEPT, Direct(S)),
    "a state is read at another token": with_term(KEPT, lag=2),
    "a sum over the past has no finite state": with_output(KEPT, Cache(PAST, "it is so")),
    "`tanh` is applied to values of states": system("bent"),
    "`tanh` is applied to values of states ": with_output(
        KEPT, Post("tanh", (Ratio(STATE, TOKEN),))
    ),
    "`tanh` is applied to values of states  ": with_output(
        KEPT, Post("tanh", (Ratio(TOKEN, STATE),))
    ),
    "the output is divided by a value of states": with_output(KEPT, Ratio(TOKEN, STATE)),
    "values of states are multiplied": with_output(KEPT, Product((STATE, Ratio(STATE, TOKEN)))),
}


@pytest.mark.parametrize("reason", BASELESS)
def test_systems_without_bases(reason: str) -> None:
    assert bases_of(BASELESS[reason]) == reason.strip()


# --- definitions executed -------------------------------------------------------------------------


def executed(made: System, **values: tuple[tuple[int, int, int, int], ...]) -> str:
    """What is said of a point at which a system, or what it was, differs from `same`."""
    size = {d.axis.name: 1 for d in made.axes}
    point = Witness(1, tuple(({"u": TWO} | values).items()), 0, (0,))
    claim = Claim(made, system("same"), (), tuple(size.items()), equal=False)
    try:
        check(write(Certificate(claim, point)))
    except Rejected as e:
        return str(e)
    return ""


TWO, TURNED = ((2, 1, 0, 1),), ((0, 1, 4, 1),)


def test_they_are_executed_as_they_were() -> None:
    assert not executed(GATED, w=TWO) and not executed(SQUARED, c=TURNED)
    for name in ("root", "third", "logarithm"):
        assert not executed(system(name), c=TWO), name


def of_u(value: Expr) -> System:
    """The system whose output is that, as it says and as is derived."""
    return put(system("same"), {U: value})


EXECUTED: dict[str, tuple[System, dict]] = {
    "the output `y` has no definition of its own": (replace(GATED, definition=()), {"w": TWO}),
    "the output `y` has no definition of its own ": (
        replace(GATED, definition=tuple(replace(d, axes=()) for d in GATED.definition)),
        {"w": TWO},
    ),
    "a complex number has a power that is not an integer": (system("third"), {"c": TURNED}),
    "a function of real numbers is applied to a complex one": (system("root"), {"c": TURNED}),
    "a function of real numbers is applied to a complex one ": (
        system("logarithm"),
        {"c": TURNED},
    ),
    "`w` is used with other axes than it is declared with": (
        replace(
            system("table"),
            params=(replace((t := system("table").params[0]), axes=tuple(reversed(t.axes))),),
        ),
        {"w": TWO},
    ),
    "`gelu` has no proven bounds": (system("shaped"), {}),
    "the outputs have no value here: an exponent is too large": (
        of_u(Pow(U, Num(Fraction(257)))),
        {},
    ),
}


@pytest.mark.parametrize("reason", EXECUTED)
def test_definitions_that_cannot_be_executed(reason: str) -> None:
    made, values = EXECUTED[reason]
    assert executed(made, **values).endswith(reason.strip())


def test_powers_have_values_where_their_exponents_do() -> None:
    four, made = exact(4), Execution(GATED, {"n": 1}, 1, {})
    with pytest.raises(Obstacle, match="has a power that is not an integer"):
        made.power(four, Complex(real(2), real(1)))
    wide = made.power(four, Complex(Real(Fraction(2), Fraction(3)), real(0)))
    assert wide.re.low <= 16 and wide.re.high >= 64


def test_a_primitive_along_an_axis_without_bounds() -> None:
    made = Execution(GATED, {"n": 1}, 1, {})
    with pytest.raises(Obstacle, match="`median` has no proven bounds"):
        made.along(Prim("median", (U,), Field.REAL, N), (ZERO,), 0)


# --- values of states -----------------------------------------------------------------------------


def test_what_is_divided_by_a_state_is_no_combination_of_states() -> None:
    cell = Symbols().leaf("$A.S[0]", real=True)
    one = number(1)
    with pytest.raises(Obstacle, match=r"the reciprocal of .* stands alone"):
        columns(one / cell)
    with pytest.raises(Rejected, match="a state stands in a denominator"):
        columns(one / (cell + one))


def test_values_of_states_go_through_the_same_functions() -> None:
    bent = system("bent")
    other = put(bent, {(post := bent.outputs[0].value): replace(post, name="relu")})
    claim = Claim(bent, other, (), (("n", 1),))
    rejected = "values of states go through different functions: exp against relu"
    with pytest.raises(Rejected, match=rejected):
        check(write(Certificate(claim, Invariant((), False))))


MAXIMUM = """mixer m { dims h
  input u, w : h
  state a : h;  s : h
  a = max(a[i-1], w)
  s = exp(a[i-1] - a) * s[i-1] + exp(w - a) * u
  y = s
}
"""


LATE_MAXIMUM = """mixer m { dims h
  input w : h
  state a : h
  a = max(a[i-1], w)
  y = a[i-1]
}
"""


def compiled(text: str) -> System:
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


def test_a_running_maximum_is_whatever_it_is_in_an_invariant_alone() -> None:
    made = compiled(MAXIMUM)
    claim = Claim(made, made, (), (("h", 1),))
    # Before the first token it is a number that nothing is known of, and not 0.
    late = compiled(LATE_MAXIMUM)
    (start,) = state(Claim(late, late, (), (("h", 1),)), False).first
    assert [side.text for side in start.outputs[0]] == ["A:a[0]@1", "B:a[0]@1"]
    with pytest.raises(Rejected, match="the outputs differ at one of the first tokens"):
        check(write(Certificate(claim, Invariant((), False))))
    for proof in (MarkovParameters(1, False), Conditional(Invariant((), False), None, ())):
        with pytest.raises(Rejected, match="a state is a running maximum, of which this rule says"):
            check(write(Certificate(claim, proof)))
    with pytest.raises(Obstacle, match="a running maximum has a rule only where both have it"):
        state(replace(claim, free=True), False)
    with pytest.raises(Rejected, match="beyond this kernel"):
        check(write(Certificate(replace(claim, free=True), Invariant((), False))))


def test_no_condition_is_one_on_a_function_of_states() -> None:
    bent = system("bent")
    claim = Claim(bent, bent, (), (("n", 1),))
    (call,) = (name for name in state(claim, False).symbols.defined if name.startswith(CALL))
    assumed = Condition((((), 1), (((call, 1),), 1)), call)
    with pytest.raises(Rejected, match="a condition speaks of call"):
        state(replace(claim, conditions=(assumed,)), False)


# --- points of conditions -------------------------------------------------------------------------


def evaluated(made: System, **values: tuple[int, ...]) -> Evaluated:
    """A point of one token at which a system is compared with itself."""
    claim = Claim(made, made, (), tuple((d.axis.name, 1) for d in made.axes))
    entries = tuple((name, (v,)) for name, v in values.items())
    return Evaluated(claim, Symbols(), Point(1, entries, 0, (0,)))


ONE, LOG_2, LOG_HALF = (1, 1, 2, 1, 0), (1, 1, 2, 1, 1), (1, 1, 1, 2, 1)
FIXED = """
mixer fixed {{ dims n
  input u : n
  buffer c : n{kind} = {value}
  y = abs(c) * u
}}
"""


@pytest.mark.parametrize("kind, value", [("", "exp(1)"), (" complex", "cplx(0, 1)")])
def test_points_have_rational_numbers_for_buffers(kind: str, value: str) -> None:
    evaluated(spec(FIXED.format(kind="", value="2")).compilation("fixed").system, u=ONE)
    made = spec(FIXED.format(kind=kind, value=value)).compilation("fixed").system
    with pytest.raises(Obstacle, match="a fixed value that is no rational number"):
        evaluated(made, u=ONE)


def test_points_are_real() -> None:
    with pytest.raises(Obstacle, match="points with complex values are not evaluated"):
        evaluated(SQUARED, u=ONE, c=ONE)


def test_a_number_between_0_and_1_is_rational() -> None:
    evaluated(DECAYED, u=LOG_2, w=(1, 2, 2, 1, 0))
    for number_ in (LOG_2, LOG_HALF):
        with pytest.raises(Obstacle, match="a logarithm stands where a number between 0 and 1"):
            evaluated(DECAYED, u=ONE, w=number_)


def test_points_evaluate_what_they_have_values_of() -> None:
    point = evaluated(GATED, u=ONE, w=ONE)
    assert point.place("u[0]@0", 0) == ("u", 0)
    for name in ("u", "v[0]@0"):
        with pytest.raises(Obstacle, match=re.escape(f"{name} is not evaluated")):
            point.place(name, 0)
    symbols = point.symbols
    unknown = symbols.opaque("φ<0>", (symbols.leaf("u[0]@0", real=True),), True, False)
    with pytest.raises(Obstacle, match="`φ<0>` is not evaluated"):
        point.value_of(unknown, 0)
