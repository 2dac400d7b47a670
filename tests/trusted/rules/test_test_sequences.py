"""Rule "test-sequences": what it rests on, what it must not accept."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText, read
from dsfc.expr.build import rewrite
from dsfc.expr.declarations import MapTensor
from dsfc.expr.tree import Expr, Now, Param, Ref, Time
from dsfc.prover.sequence_points import drawn_point
from dsfc.prover.sizes import chosen
from dsfc.prover.test_sequences import no_instance_by_test_sequences
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.balls import Complex, real
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, OutputDifference, SeparatingSequences
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.polynomial import ONE, POLYNOMIAL_ONE, Quotient, constant, generator
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.test_sequences import (
    LENGTH_LIMIT,
    SEQUENCE_LIMIT,
    Equations,
    check_sequences,
)

PAIRS = Path(__file__).parents[2] / "prover" / "pairs"
LABELS = tomllib.loads((PAIRS.parent / "labels.toml").read_text(encoding="utf-8"))


@cache
def system(file: str, name: str) -> System:
    return read(PAIRS / f"{file}.dsf").compilation(name).system


@cache
def made(file: str, a: str, b: str) -> Certificate:
    left, right = system(file, a), system(file, b)
    found = no_instance_by_test_sequences(Claim(left, right, (), chosen(left, right, 1)))
    assert isinstance(found, Certificate), found
    return found


TAPS = ("cases", "two_taps", "plain")
RATIO = ("cases", "plain", "ratio")
SLOTS = ("lattice", "by_channel", "template")
BOUNDS = ("members", "wkv", "gated_channel")


def rejected(certificate: Certificate) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(certificate))
    return str(caught.value)


def changed(c: Certificate, **parts) -> Certificate:
    return replace(c, proof=replace(c.proof, **parts))


def claiming(c: Certificate, **parts) -> Certificate:
    return replace(c, claim=replace(c.claim, **parts))


# --- what it rests on -----------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("name", ["plain", "decayed", "normalised_window", "selective", "ratio",
                                  "two_taps", "own_weighted", "history"])  # fmt: skip
def test_every_equation_holds_where_b_has_the_parameters_of_a(name: str, entries: bool) -> None:
    """A mixer is a case of itself: with its own numbers for the unknowns all differences are 0."""
    it = system("cases", name)
    claim = Claim(it, it, (), chosen(it, it, 1), equal=False, case=True)
    point = replace(drawn_point(claim, 2, 3, 0), entries=entries)
    equations = Equations(claim, point)
    value = evaluation(claim, equations, point)
    for sequence, token in product(range(len(point.sequences)), range(3)):
        e = equations.of(OutputDifference(sequence, token, (0, 0), ()))
        assert abs(value(e)) < 1e-9


def evaluation(
    claim: Claim, equations: Equations, point: SeparatingSequences
) -> Callable[[Quotient], float]:
    """Quotients in floats, unknowns being what the point says."""
    known = {n: [float(Fraction(p, q)) for p, q, *_ in v] for n, v in point.values}
    maps = {t.name for t in claim.b.params if isinstance(t, MapTensor)}
    functions = {"exp": math.exp, "log": math.log}

    def of(name: str) -> float:
        if name in equations.bounds:
            return float(equations.bounds[name].re.low)
        head = re.match(r"[A-Za-z_]\w*", name)[0]
        if name in equations.symbols.defined:
            head, args = equations.symbols.defined[name]
            values = [value(a) for a in args]
            array = head.partition("[")[0]
            # All sizes are 1: an entry of a map is its one weight times its one argument.
            return known[array][0] * values[0] if array in maps else functions[head](*values)
        return known[head][0]

    def value(q: Quotient) -> float:
        def total(p) -> float:
            return sum(float(c) * math.prod(of(g) ** e for g, e in m) for m, c in p.terms.items())

        return total(q.num) / math.prod(total(b) ** e for b, e in q.den.items())

    return value


def test_a_slot_has_one_value_after_the_same_last_tokens() -> None:
    c = made(*SLOTS)
    point = replace(c.proof, sequences=((0, 0, 0),), letters=(c.proof.letters[0],))
    names = {}
    for locality in (0, 1, LENGTH_LIMIT - 1):
        at = replace(c.claim, locality=locality)
        e = Equations(at, point).of(OutputDifference(0, 2, (0, 0), ()))
        names[locality] = {g for g in e.names if g.startswith("alpha")}
    assert [len(names[k]) for k in (0, 1, LENGTH_LIMIT - 1)] == [1, 1, 2]


# --- what is accepted and what is not -------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("pair", [TAPS, RATIO, SLOTS, BOUNDS])
def test_what_the_prover_shows_is_accepted(pair) -> None:
    c = made(*pair)
    assert check(write(c)).claim == c.claim


def test_an_output_that_is_not_rational_is_a_function_of_numbers_or_a_symbol() -> None:
    """e^2 - 1 is written out; the larger of two logarithms is not."""
    for value, symbols in (("exp(2 * u) - u", 0), ("max(exp(u), log(3)) + u", 1)):
        a, b = _mixer(f"input u\n y = {value}"), _mixer("input u\n param w\n y = w * u")
        equations = Equations(Claim(a, b, (), (), False, case=True), _one_letter(1))
        e = equations.of(OutputDifference(0, 0, (), ONE_TERM))
        assert len(equations.bounds) == symbols
        assert all(not v.re.exact for v in equations.bounds.values())
        constants = {g for g in e.names if g != "w[]"}
        assert len(constants) == 1 and all(map(equations.constant, constants))
        assert not equations.constant("w[]")


def test_an_entry_of_a_norm_of_numbers_is_a_number() -> None:
    """Of one entry it is 1, which bounds cannot show, and it is apart from 2; of 0 it is 0."""
    a, b = (_mixer(f"dims n\n input u : n\n {y}") for y in NORMED)
    equations = Equations(Claim(a, b, (), (("n", 1),), False, case=True), _one_letter(1))
    e = equations.of(OutputDifference(0, 0, (0,), ONE_TERM))
    (name,) = (g for g in e.num.names if g.startswith("l2norm"))
    assert not equations.bounds and equations.constant(name)
    assert equations.nonzero(generator(name) + -constant(2))
    assert not equations.nonzero(generator(name) + -constant(1))
    zero = Equations(equations.claim, _one_letter(0))
    assert not any(g.startswith("l2norm") for g in zero.of(OutputDifference(0, 0, (0,), ())).names)


NORMED = "y = l2norm[n](u * exp(u))", "param w\n y = w * u"


def test_a_norm_of_what_is_unknown_is_no_number() -> None:
    a, b = (
        _mixer(f"dims n\n input u : n\n {y}") for y in ("y = u", "param w\n y = l2norm[n](w * u)")
    )
    equations = Equations(Claim(a, b, (), (("n", 1),), False, case=True), _one_letter(1))
    (name,) = equations.of(OutputDifference(0, 0, (0,), ())).names
    assert not equations.constant(name) and not equations.nonzero(generator(name))


def test_a_parameter_of_the_first_is_no_promise_of_the_second() -> None:
    """Both call it γ, and the first's alone is positive: the second's may be 0."""
    a = _mixer("input u\n buffer γ unit = exp(-1)\n y = γ * u")
    b = _mixer("input u\n param γ\n y = γ * u")
    equations = Equations(Claim(a, b, (), (), False, case=True), _one_letter(1))
    equations.of(OutputDifference(0, 0, (), ONE_TERM))
    assert not equations.nonzero(generator("gamma[]"))


def test_a_buffer_of_the_second_has_its_value() -> None:
    """It is no unknown: 1/2 is not 1/3, and a third is one."""
    for first, same in (("1/3", False), ("1/2", True)):
        a = _mixer(f"input u\n buffer g = {first}\n y = g * u")
        b = _mixer("input u\n buffer g = 1/2\n y = g * u")
        certificate = Certificate(Claim(a, b, (), (), False, case=True), _one_letter(1))
        if same:
            assert rejected(certificate) == "the sum is 0"
        else:
            check(write(certificate))


def _one_letter(value: int) -> SeparatingSequences:
    letter = (("u", ((value, 1, 0, 1),)),)
    return SeparatingSequences(
        (), (letter,), ((0,),), False, (OutputDifference(0, 0, (), ONE_TERM),)
    )


SIGNS = [
    ("param g unit\n y = g * u", "u", True, "below 1"),
    ("param g positive\n y = g * u", "u", False, "1 is positive"),
    ("param g positive\n y = exp(-g) * u", "u", True, "an exponential below 1"),
    ("param g nonneg\n y = exp(-g) * u", "u", False, "1 where the exponent is 0"),
    ("param g\n y = exp(-g) * u", "u", False, "an exponential of any number"),
    ("param g\n y = exp(g) * u", "0 * u", True, "an exponential is not 0"),
    ("param g nonneg\n y = g * u", "0 * u", False, "what may be 0"),
    ("param g unit\n y = (2 * g - 1) * u", "0 * u", False, "on both sides of 1/2"),
    ("param g unit\n y = (g^2 - g) * u", "0 * u", True, "a product of what is not 0"),
    ("param g\n y = softplus(g) * u", "0 * u", True, "a softplus is positive"),
    ("param g\n y = exp(g) * exp(-g) * u", "2 * u", True, "a number"),
]


@pytest.mark.parametrize("second, first, holds, why", SIGNS, ids=lambda v: None)
def test_signs_and_ranges_say_what_is_not_0(second: str, first: str, holds: bool, why: str) -> None:
    """One equation, taken as it is, shows something where it has no solution in the ranges."""
    a, b = _mixer(f"input u\n y = {first}"), _mixer(f"input u\n {second}")
    certificate = Certificate(Claim(a, b, (), (), False, case=True), _one_letter(1))
    if holds:
        assert check(write(certificate)).claim == certificate.claim, why
    else:
        assert "may be 0" in rejected(certificate), why


@pytest.mark.parametrize("pair", [TAPS, SLOTS])
def test_no_part_can_be_left_out_or_multiplied_by_another_number(pair) -> None:
    c = made(*pair)
    parts = c.proof.parts
    for k, part in enumerate(parts):
        rejected(changed(c, parts=parts[:k] + parts[k + 1 :]))
        for j, (m, n) in enumerate(part.cofactor):
            cofactor = (*part.cofactor[:j], (m, 2 * n), *part.cofactor[j + 1 :])
            if len(part.cofactor) > 1 or len(parts) > 1:
                other = (*parts[:k], replace(part, cofactor=cofactor), *parts[k + 1 :])
                rejected(changed(c, parts=other))


@pytest.mark.ci
@pytest.mark.share(1, ci=4)
@pytest.mark.parametrize("a, b, _", LABELS["cases"]["case"])
def test_no_certificate_of_another_pair_shows_that_a_case_is_none(a: str, b: str, _) -> None:
    left, right = system("cases", a), system("cases", b)
    for source in (made(*TAPS), made("cases", "own_token", "plain"), made(*RATIO)):
        at = replace(source.claim, a=left, b=right, sizes=chosen(left, right, 1))
        point = drawn_point(at, len(source.proof.letters), 3, 0)
        proof = replace(source.proof, values=point.values, letters=point.letters)
        with pytest.raises((Rejected, Obstacle, ValueError, LookupError, ZeroDivisionError)):
            check_sequences(at, proof)


def test_what_a_law_divides_by_may_be_0() -> None:
    """exprel(0) = 1, so u exprel(z) may be u; where z is positive it is (e^z - 1) / z."""
    a, point = _mixer("input u\n y = u"), _one_letter(1)
    for declared, names in (("z positive", {"exp(z[])", "z[]"}), ("z", {"exprel(z[])"})):
        b = _mixer(f"input u\n param {declared}\n y = exprel(z) * u")
        equations = Equations(Claim(a, b, (), (), False, case=True), point)
        assert equations.of(point.parts[0]).names == names
    assert "may be 0" in rejected(Certificate(Claim(a, b, (), (), False, case=True), point))


@pytest.mark.parametrize("value, differs", [("abs(s)", True), ("max(s, 0)", True), ("s", False)])
def test_a_function_of_states_is_one_of_the_tokens_so_far(value: str, differs: bool) -> None:
    """What the same states give is one value: after the same tokens, and with the same weights."""
    a = _mixer("input u\n state s\n s = s[i-1] + u\n y = s")
    b = _mixer(f"input u\n param w positive\n state s\n s = s[i-1] + w * u\n y = {value}")
    letters = tuple((("u", ((k, 1, 0, 1),)),) for k in (1, 2))
    minus = (((), -1),)
    proof = SeparatingSequences(
        (), letters, ((0, 0), (1,)), False,
        (OutputDifference(0, 1, (), ONE_TERM), OutputDifference(1, 0, (), minus)),
    )  # fmt: skip
    # The sums of 1 + 1 and of 2 are one: so is whatever function of them, and nothing is left.
    assert rejected(Certificate(Claim(a, b, (), (), False, case=True), proof)) == "the sum is 0"
    single = replace(proof, sequences=((0, 0),), parts=proof.parts[:1])
    assert "may be 0" in rejected(Certificate(Claim(a, b, (), (), False, case=True), single))
    assert differs or value == "s"


def _low_rank(output: str) -> tuple[System, System]:
    a = _two("input u : d\n y = sum[d](u^2)", "d")
    b = _two(f"input u : d\n param W_1 : d -> r\n W_2 : r -> d\n y = {output}", "d, r")
    return a, b


def _two(body: str, dims: str) -> System:
    return _mixer(f"dims {dims}\n {body}")


def test_a_sum_over_an_axis_of_any_size_is_a_value_of_its_own() -> None:
    """At r = 1 a map of rank 1 is seen; what is claimed is claimed of all r."""
    a, b = _low_rank("sum[d](u * W_2 W_1 u)")
    claim = Claim(a, b, (), (("d", 1), ("r", 1)), False, case=True, every=("r",))
    letters = tuple((("u", ((k, 1, 0, 1),)),) for k in (1, 2))
    proof = SeparatingSequences((), letters, ((0, 1), (1,)), True,
                                (OutputDifference(0, 0, (), ONE_TERM),))  # fmt: skip
    equations = Equations(claim, proof)
    names = [
        equations.of(OutputDifference(w, t, (), ())).names for w, t in ((0, 0), (0, 1), (1, 0))
    ]
    assert all(len(n) == 1 for n in names) and len(frozenset().union(*names)) == 3
    assert "may be 0" in rejected(Certificate(claim, proof))
    for every in ((), ("d",), ("d", "r")):
        assert "all sizes are claimed" in rejected(Certificate(replace(claim, every=every), proof))


@pytest.mark.parametrize("output", ["sum[r](W_1 u)", "sum[d](W_2 abs(W_1 u)) * sum[r](W_1 u)"])
def test_nothing_else_is_said_of_an_axis_of_any_size(output: str) -> None:
    a, b = _low_rank(output)
    claim = Claim(a, b, (), (("d", 1), ("r", 1)), False, case=True, every=("r",))
    proof = SeparatingSequences((), ((("u", ((1, 1, 0, 1),)),),), ((0,),), True,
                                (OutputDifference(0, 0, (), ONE_TERM),))  # fmt: skip
    assert "may have any size" in rejected(Certificate(claim, proof))


A_B, A_A_B = (("a[0]", 1), ("b[0]", 1)), (("a[0]", 2), ("b[0]", 1))
ONE_MODE = (
    OutputDifference(0, 0, (), ((A_A_B, 1),)),
    OutputDifference(0, 1, (), (((), -3), (A_B, -1))),
    OutputDifference(0, 2, (), (((), 2),)),
)
"""a² b (b - 2) - (a b + 3) (a b - 3) + 2 (a² b - 5) = -1: 2, 3, 5 are no powers of one number."""


@pytest.mark.parametrize("whole", ["sum[r](x)", "sum[r](x * x) / sum[r](x)"])
def test_states_along_an_axis_of_any_size_are_not_written_out(whole: str) -> None:
    """At r = 1 there is one mode; two modes give 2, 3, 5, so nothing may be said of all r."""
    modes = "state s, t\n s = s[i-1] + u\n t = 2 * t[i-1] + u\n"
    b = _mixer(f"dims r\n input u\n param a, b : r\n state x : r\n x = a * x[i-1] + b * u\n"
               f" y = {whole}")  # fmt: skip
    letters = tuple((("u", ((k, 1, 0, 1),)),) for k in (1, 0))
    proof = SeparatingSequences((), letters, ((0, 1, 1),), True, ONE_MODE)
    a = _mixer(f"input u\n {modes} y = s + t")
    alone = Claim(a, b, (), (("r", 1),), False, case=True, every=("r",))
    assert "may have any size" in rejected(Certificate(alone, proof))
    # Where r is an axis of a too, the same combination shows what is so at r = 1.
    a = _mixer(f"dims r\n input u\n param g : r\n {modes} y = (s + t) * sum[r](g)")
    shared = Claim(a, b, (), (("r", 1),), False, case=True)
    check(write(Certificate(shared, replace(proof, values=(("g", ((1, 1, 0, 1),)),)))))


def test_the_same_name_is_another_parameter() -> None:
    """b's w need not be a's."""
    a = _mixer("input u\n param w\n y = w * u")
    b, number = a, ((2, 1, 0, 1),)
    proof = SeparatingSequences(
        (("w", number),),
        ((("u", number),),),
        ((0,),),
        False,
        (OutputDifference(0, 0, (), ONE_TERM),),
    )
    assert "may be 0" in rejected(Certificate(Claim(a, b, (), (), False, case=True), proof))


def _mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def test_letters_are_as_long_as_tokens() -> None:
    """Three values in letters of two, one and none are three tokens; the letters are others."""
    it = _mixer("input u\n y = u[i-1]")
    letters = tuple((("u", tuple((k, 1, 0, 1) for k in v)),) for v in ((5, 7), (9,), ()))
    proof = SeparatingSequences(
        (), letters, ((0, 1, 2),), False, (OutputDifference(0, 2, (), ONE_TERM),)
    )
    assert "one token of each input" in rejected(
        Certificate(Claim(it, it, (), (), False, case=True), proof)
    )


def test_a_value_of_an_input_has_its_imaginary_part() -> None:
    """No text has complex inputs; a certificate may."""
    it = complex_input(_mixer("input u\n param c complex\n y = Im(c) * u"), "c")
    letter = (("u", ((1, 1, 0, 1),)), ("c", ((0, 1, 1, 1),)))
    proof = SeparatingSequences(
        (), (letter,), ((0,),), False, (OutputDifference(0, 0, (), ONE_TERM),)
    )
    assert rejected(Certificate(Claim(it, it, (), (), False, case=True), proof)) == "the sum is 0"


def complex_input(system: System, name: str) -> System:
    """A parameter made an input: wherever it is read, it is read at the token."""
    taken = tuple(t for t in system.params if t.name == name)
    others = tuple(t for t in system.params if t.name != name)

    def at_the_token(e: Expr) -> Expr | None:
        if isinstance(e, Param) and e.name == name:
            return Ref(name, e.over, e.kind, Time.TOKEN, Now(0))
        return None

    def new(part: object) -> object:
        if isinstance(part, tuple):
            return tuple(new(p) for p in part)
        if isinstance(part, Expr):
            return rewrite(part, at_the_token)
        if is_dataclass(part):
            parts = {f.name: new(getattr(part, f.name)) for f in fields(part) if f.init}
            return replace(part, **parts)
        return part

    return new(replace(system, params=others, inputs=(*system.inputs, *taken)))


ONE_TERM = (((), 1),)


def with_part(**parts) -> Callable[[Certificate], Certificate]:
    return lambda c: changed(c, parts=(replace(c.proof.parts[0], **parts), *c.proof.parts[1:]))


def undefined(c: Certificate) -> Certificate:
    """The ratio of sums of scores at a key of 0."""
    other = made("cases", "ratio", "plain")
    values = tuple((n, ((0, 1, 0, 1),) * len(v)) for n, v in other.proof.values)
    letters = tuple(tuple((n, v) for n, v in letter) for letter in other.proof.letters)
    at = replace(other.claim, a=system("lattice", "ratio"), b=system("lattice", "retained"),
                 sizes=(("h", 1), ("n", 1), ("p", 1)))  # fmt: skip
    zero = ((0, 1, 0, 1),)
    letters = ((("q", zero), ("k", zero), ("v", zero)),)
    proof = SeparatingSequences(
        (), letters, ((0,),), False, (OutputDifference(0, 0, (0, 0), ONE_TERM),)
    )
    assert values
    return Certificate(at, proof)


def once_more(c: Certificate) -> Certificate:
    return changed(c, values=(*c.proof.values, c.proof.values[0]))


def zero(c: Certificate) -> Certificate:
    part = c.proof.parts[0]
    minus = tuple((m, -n) for m, n in part.cofactor)
    return changed(c, parts=(part, replace(part, cofactor=minus)))


REASONS: list[tuple[str, tuple[str, str, str], Callable[[Certificate], Certificate]]] = [
    ("something else is claimed", TAPS, lambda c: claiming(c, equal=True)),
    ("something else is claimed", TAPS, lambda c: claiming(c, case=False)),
    ("has no conditions", TAPS, lambda c: claiming(c, free=True)),
    ("no such sequence", TAPS, with_part(sequence=SEQUENCE_LIMIT)),
    ("the token is none of the sequence", TAPS, with_part(token=LENGTH_LIMIT)),
    ("from 1 to 8 tokens", TAPS, lambda c: changed(c, sequences=((),))),
    ("a token that is no letter", TAPS, lambda c: changed(c, sequences=((SEQUENCE_LIMIT, 0, 0),))),
    ("one of each other", TAPS, lambda c: claiming(c, every=("n",))),
    ("has no conditions", TAPS, lambda c: claiming(c, conditions=(Condition(ONE_TERM, "x"),))),
    ("all sizes are claimed of b's own", TAPS, lambda c: claiming(
        c, a=system("dense", "four_taps"), b=system("dense", "any_taps"), sizes=(("t", 1),))),
    ("where there are slots", SLOTS, lambda c: claiming(c, locality=None)),
    ("and nowhere else", TAPS, lambda c: claiming(c, locality=0)),
    ("nor negative", SLOTS, lambda c: claiming(c, locality=-1)),
    ("more than 64 sequences", TAPS,
     lambda c: changed(c, sequences=((0,),) * (SEQUENCE_LIMIT + 1))),
    ("no such sequence", TAPS, with_part(sequence=-1)),
    ("the token is none of the sequence", TAPS, with_part(token=-1)),
    ("from 1 to 8 tokens", TAPS, lambda c: changed(c, sequences=((0,) * 9,))),
    ("a token that is no letter", TAPS, lambda c: changed(c, sequences=((-1, 0, 0),))),
    ("not one token of each input", TAPS, lambda c: changed(c, letters=((),))),
    ("given of nothing", TAPS, lambda c: changed(
        c, values=(*c.proof.values, ("w", ((1, 1, 0, 1),))))),
    ("has no value here", TAPS, undefined),
    ("the sum is 0", TAPS, zero),
    ("the sum may be 0: ", TAPS, lambda c: changed(c, parts=c.proof.parts[:1])),
    ("the sum may be 0: ", TAPS, lambda c: changed(c, parts=tuple(
        replace(p, cofactor=tuple((tuple(sorted((*m, ("w[0]", 1)))), n) for m, n in p.cofactor))
        for p in c.proof.parts))),
    ("two values", TAPS, once_more),
]  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize("reason, pair, change", REASONS)
def test_a_refusal_says_why(reason: str, pair, change: Callable) -> None:
    assert reason in rejected(change(made(*pair)))


def test_as_many_sequences_as_are_allowed() -> None:
    c = made(*TAPS)
    more = ((0,),) * (SEQUENCE_LIMIT - len(c.proof.sequences))
    check_sequences(c.claim, replace(c.proof, sequences=(*c.proof.sequences, *more)))


def test_what_the_second_divides_by_is_not_0() -> None:
    """A factor of a sum may be a denominator of an equation, and none that stands in none."""
    a, b = (_mixer(f"input u\n param r\n y = {value}") for value in ("u", "u / (r + u) / r"))
    number = ((2, 1, 0, 1),)
    proof = SeparatingSequences(
        (), ((("u", number),),), ((0,),), False, (OutputDifference(0, 0, (), ONE_TERM),)
    )
    equations = Equations(Claim(a, b, (), (), False, case=True), proof)
    e = equations.of(proof.parts[0])
    assert {base.text for base in e.den} == {"2+r[]"}
    r, (base,) = generator("r[]"), e.den
    for factor in (r, base, r * r * base.power(3)):
        equations.check_nonzero(factor)
        for other in (r + POLYNOMIAL_ONE, factor * (r + POLYNOMIAL_ONE)):
            with pytest.raises(Rejected, match="may be 0"):
                equations.check_nonzero(other)


def test_an_output_of_no_real_number_has_no_equation() -> None:
    c = made(*TAPS)
    with pytest.raises(Obstacle, match="an output is complex"):
        Equations(c.claim, c.proof)._known(Complex(real(1), real(1)), ONE, "value<0,0,0>[]")


def test_what_is_other_than_0_by_its_bounds_alone_must_be() -> None:
    """An output of a less itself is a symbol less itself, and one that is 0 is no proof."""
    a, b = _mixer("input u\n y = elu(-u)"), _mixer("input u\n param w\n y = w * u")
    point = _one_letter(1)
    equations = Equations(Claim(a, b, (), (), False, case=True), point)
    equations.of(point.parts[0])
    (name,) = equations.bounds
    equations.check_nonzero(generator(name))
    equations.bounds[name] = equations.bounds[name] - equations.bounds[name]
    with pytest.raises(Rejected, match="the sum may be 0"):
        equations.check_nonzero(generator(name))


def test_an_array_has_the_axes_that_it_is_declared_with() -> None:
    c = made("cases", "own_token", "plain")
    b = system("cases", "decayed")
    declared = tuple(replace(t, axes=()) if t.name == "s" else t for t in b.params)
    with pytest.raises(ValueError, match="used otherwise than declared"):
        check_sequences(replace(c.claim, b=replace(b, params=declared)), c.proof)
