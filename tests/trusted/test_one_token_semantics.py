"""One system at one token: what it reads before the first, what it keeps, and what has no rule."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.tree import Field, Now, Num, Ref, Time
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import Factor, Guard, GuardKind, Ratio, System, Term
from dsfc.trusted.claim import Claim
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.defined import Defined
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.one_token_semantics import CELL_LIMIT, OneTokenSemantics
from dsfc.trusted.polynomial import Quotient, generator, number
from dsfc.trusted.symbols import Symbols


@cache
def mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{ dims n, d, p\n input u, v : n;  x : d\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def claim(of: System, n: int = 1) -> Claim:
    return Claim(of, of, (), (("d", 2), ("n", n), ("p", 1)))


def side(
    body: str, token: int | None = None, entries: bool = False, second: bool = False, **more: object
) -> OneTokenSemantics:
    return OneTokenSemantics(claim(mixer(body)), second, Symbols(), entries, token, **more)


def g(name: str) -> Quotient:
    return Quotient(generator(name))


def text(q: Quotient) -> str:
    """A value as the kernel writes it."""
    return q.text


U, V, S = g("u[0]@0"), g("v[0]@0"), g("$A.s[0]")
SUM = "state s : n\n s = s[i-1] + u\n"


def test_states_and_outputs_at_a_token() -> None:
    for second, label in ((False, "A"), (True, "B")):
        it = side(f"{SUM} y = v * s - s[i-1]", second=second)
        old = g("$B.s[0]") if second else S
        assert [text(q) for q in it.outputs()] == [text(V * (old + U) - old)]
        assert {n: text(q) for n, q in it.step().items()} == {f"${label}.s[0]": text(old + U)}
    it = side(f"{SUM} y = v * s", token=0)
    assert text(it.outputs()[0]) == text(V * U)
    assert text(side(f"{SUM} y = s", token=0, held=True).outputs()[0]) == text(S + U)
    assert text(side(f"{SUM} y = s", token=1).outputs()[0]) == text(S + U)


@pytest.mark.parametrize(
    "output, values",
    [
        ("u[i-2]", ["0", "0", "u[0]@2", "u[0]@2"]),
        ("first * u", ["u[0]@0", "0", "0", "0"]),
        ("first[i-2] * u", ["0", "0", "u[0]@0", "0"]),
        ("(u * v)[i-1]", ["0", "u[0]@1*v[0]@1", "u[0]@1*v[0]@1", "u[0]@1*v[0]@1"]),
    ],
)
def test_what_is_before_the_first_token_is_0(output: str, values: list[str]) -> None:
    body = f"y = {output}" if "(" not in output else "z = u * v + 0 * u\n y = z[i-1]"
    for token, value in (*enumerate(values[:3]), (None, values[3])):
        it = side(body, token=token)
        assert text(it.outputs()[0]) == value
    reach = {"u[i-2]": 2, "first * u": 1, "first[i-2] * u": 3}
    assert it.symbols.reach == reach.get(output, 1)


def test_a_state_of_fewer_factors_stays_while_others_go_on() -> None:
    of = mixer("state s, r : n\n s = r[i-1] + u\n r = u * r[i-1] + s[i-1]\n y = s * r * v")
    (stage,) = of.stages
    one, two = stage.blocks
    (n,) = two.axes
    v = Ref("v", frozenset({n}), Field.REAL, Time.TOKEN, Now(0))
    again = Factor((Term("r", 0, v, frozenset(), Num(Fraction(1))),), ())
    longer = replace(two, chain=(*two.chain, again))
    r = g("$A.r[0]")
    for blocks in ((one, longer), (longer, one)):
        joined = replace(of, stages=(replace(stage, blocks=blocks),))
        step = OneTokenSemantics(claim(joined), False, Symbols(), False, None).step()
        assert {name: text(q) for name, q in step.items()} == {
            "$A.s[0]": text(r + U),
            "$A.r[0]": text(V * (U * r + S)),
        }


class Counted(OneTokenSemantics):
    """Counts updates: each of a stage, and of a register."""

    updates = 0

    def _update(self) -> AbstractContextManager[None]:
        self.updates += 1
        assert self.updates < 9, "an update is written out without end"
        return super()._update()


def test_what_is_made_of_states_is_kept_in_registers() -> None:
    body = f"{SUM} r = v * s\n y = r[i-2] + r"
    it = Counted(claim(mixer(body)), False, Symbols(), False, None)
    two = g("$A.r.2[0]")
    assert text(it.outputs()[0]) == text(two + V * (S + U))
    assert {n: text(q) for n, q in it.step().items()} == {
        "$A.s[0]": text(S + U),
        "$A.r.1[0]": text(V * (S + U)),
        "$A.r.2[0]": text(g("$A.r.1[0]")),
    }
    assert it.updates == 3
    assert text(side(body, token=0).outputs()[0]) == text(V * U)


def test_a_complex_state_has_a_conjugate() -> None:
    body = "param z : n complex\n state s : n complex\n s = z * s[i-1] + u\n y = Re(s)"
    step = side(body).step()
    z, low = g("z[0]"), g("~z[0]")
    assert {n: text(q) for n, q in step.items()} == {
        "$A.s[0]": text(z * S + U),
        "~$A.s[0]": text(low * g("~$A.s[0]") + U),
    }
    (block,) = mixer(body).blocks
    (stage,) = mixer(body).stages
    real = replace(stage, blocks=(replace(block, field=Field.REAL),))
    it = OneTokenSemantics(
        claim(replace(mixer(body), stages=(real,))), False, Symbols(), False, None
    )
    with pytest.raises(Obstacle, match="declared real and takes complex values"):
        it.step()


def test_a_map_of_tokens_is_a_generator_and_one_of_states_is_written_out() -> None:
    body = "param W : d -> p\n state s : p\n s = s[i-1] + W x\n y = s"
    (value,) = side(body).step().values()
    assert text(value) == text(S + g("W[;0](x[0]@0,x[1]@0)"))
    (value,) = side(body, entries=True).step().values()
    assert text(value) == text(S + g("W[0,0]") * g("x[0]@0") + g("W[0,1]") * g("x[1]@0"))
    values = {"W[0,1]": number(5)}
    (value,) = side(body, values=values).step().values()
    assert text(value) == text(S + g("W[0,0]") * g("x[0]@0") + number(5) * g("x[1]@0"))
    # Of 0 a map is 0, and before the first token all is.
    late = "param W : d -> p\n y = W x[i-1]"
    assert [text(side(late, token=k).outputs()[0]) for k in (0, 1)] == ["0", "W[;0](x[0]@1,x[1]@1)"]


def test_a_map_for_each_index_is_one_generator_for_each() -> None:
    body = "param W : each n : d -> p\n y = W (u ⊗ x)"
    it = OneTokenSemantics(claim(mixer(body), 2), False, Symbols(), False, None)
    for k, found in enumerate(it.outputs()):
        (name,) = found.names
        head, args = it.symbols.defined[name]
        assert head == f"W[{k};0]" and [text(a) for a in args] == [
            text(g(f"u[{k}]@0") * g(f"x[{j}]@0")) for j in range(2)
        ]
    undeclared = replace(mixer(body), params=())
    with pytest.raises(ValueError, match="`W` is no parameter or buffer"):
        OneTokenSemantics(claim(undeclared, 2), False, Symbols(), False, None).outputs()


def test_a_size_is_a_positive_symbol() -> None:
    it = side("y = u * n")
    assert text(it.outputs()[0]) == "size[n]*u[0]@0" and it.symbols.positive(g("size[n]"))


def test_how_many_entries_and_how_far_back() -> None:
    at = claim(mixer(f"{SUM} y = s"), CELL_LIMIT)
    OneTokenSemantics(at, False, Symbols(), False, None)
    more = replace(at, sizes=(("d", 2), ("n", CELL_LIMIT + 1), ("p", 1)))
    with pytest.raises(Obstacle, match="more than 64 entries"):
        OneTokenSemantics(more, False, Symbols(), False, None)
    assert text(side("y = u[i-9]").outputs()[0]) == "u[0]@9"
    with pytest.raises(Obstacle, match="read 10 tokens back"):
        side("y = u[i-10]").outputs()


@pytest.mark.parametrize(
    "body, why",
    [
        ("state s : n backward\n s = s[i+1] + u\n y = s", "runs backwards"),
        ("y = sum[j ≤ i](exp(u * u[j]) * v[j])", "no finite state"),
    ],
)
def test_what_has_no_rule_is_named(body: str, why: str) -> None:
    with pytest.raises(Obstacle, match=why):
        side(body).outputs()


def test_a_guard_is_a_part_of_the_denominator() -> None:
    body = f"{SUM} y = v / s"
    whole = mixer(body)
    (out,) = whole.outputs
    assert isinstance(out.value, Ratio)
    one = mixer("param w positive\n y = w * u").outputs[0].value
    constant = next(iter(one.value.args))
    param = mixer("param w positive\n y = w * u").params

    def guarded(guard: Guard) -> tuple[OneTokenSemantics, Quotient]:
        changed = replace(out, value=replace(out.value, guard=guard))
        of = replace(whole, outputs=(changed,), params=param)
        it = OneTokenSemantics(claim(of), False, Symbols(), False, None)
        with it.symbols.recorded():
            return it, it.outputs()[0]

    w = g("w[]")
    assert text(guarded(Guard(GuardKind.ADD, constant))[1]) == text(V / (S + U + w))
    for none in (Guard(), Guard(GuardKind.NONE, constant), Guard(GuardKind.ADD, None)):
        assert text(guarded(none)[1]) == text(V / (S + U))
    it, found = guarded(Guard(GuardKind.MAX_ABS, constant))
    (name,) = found.names - V.names
    head, args = it.symbols.defined[name]
    assert head == "max" and text(args[1]) == "w[]"
    (size,) = args[0].names
    assert it.symbols.defined[size][0] == "abs" and text(it.symbols.defined[size][1][0]) == text(
        S + U
    )


def defined(symbols: Symbols) -> Defined:
    return Defined(symbols, frozenset(), Conditions(()).values(0))


@pytest.mark.parametrize("output, divides", [("v / s", True), ("log(s)", False)])
def test_functions_of_states_may_have_no_value(output: str, divides: bool) -> None:
    """Where it is asked whether b has values wherever a has: its divisors are kept for a check."""
    body = f"{SUM} y = {output}"
    for second in (False, True):
        symbols = Symbols()
        at = claim(mixer(body))
        plain = OneTokenSemantics(at, second, symbols, False, None)
        asked = OneTokenSemantics(at, second, symbols, False, None, defined=defined(symbols))
        with symbols.recorded():
            plain.outputs()
        assert not symbols.divisors
        if divides:
            asked.outputs()
            assert bool(symbols.divisors) is second
        else:
            with pytest.raises(Obstacle, match="without a value"):
                asked.outputs()


def test_what_the_first_is_undefined_with_the_second_may_be() -> None:
    def run(a: str, b: str) -> None:
        symbols = Symbols()
        known = defined(symbols)
        at = Claim(mixer(a), mixer(b), (), claim(mixer(a)).sizes)
        for second in (False, True):
            it = OneTokenSemantics(at, second, symbols, False, None, defined=known)
            it.outputs()
            it.step()

    for value in ("u / v", "u * v^(-2)", "log(u)", "sqrt(u)", "v^(1/3)"):
        run(f"y = {value} + u", f"y = u + {value}")
        with pytest.raises(Obstacle, match="b may have no value"):
            run("y = u", f"y = u + {value}")
    for value in ("u / 2", "u * v^2", "exp(u)", "abs(u)"):
        run("y = u", f"y = u + {value}")
