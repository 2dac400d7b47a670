"""Rule "constant-sequence": what it rests on, what it must not accept."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText, read
from dsfc.expr.declarations import Constraint, Init
from dsfc.expr.tree import Num
from dsfc.prover.constant_sequence import no_case
from dsfc.prover.sizes import chosen
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted.balls import Complex, NotDefined, real
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, ConstantSequence, Witness
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.constant_sequence import (
    COMPLEX_ZERO,
    RepeatedToken,
    check_constant_sequence,
    growing_axes,
    regions,
)
from dsfc.trusted.rules.steady import steady
from dsfc.trusted.witness import LENGTH_LIMIT, stored_axes

PAIRS = Path(__file__).parents[2] / "prover" / "pairs" / "cases.dsf"
LABELS = tomllib.loads((PAIRS.parent.parent / "labels.toml").read_text(encoding="utf-8"))["cases"]
TEXT = read(PAIRS)
SYSTEMS: dict[str, dsfc.system.ir.System] = {}


def system(name: str):
    return SYSTEMS.setdefault(name, TEXT.compilation(name).system)


def claim(a: str, b: str) -> Claim:
    left, right = system(a), system(b)
    return Claim(left, right, (), chosen(left, right, 1), equal=False, case=True)


@cache
def made(a: str, b: str) -> Certificate:
    found = no_case(claim(a, b))
    assert isinstance(found, Certificate), found
    return found


def rejected(certificate: Certificate) -> str:
    # Obstacles and malformed systems are what `check` makes a rejection of; the text is not written
    # and read here, which takes longer than the rule.
    with pytest.raises((Rejected, Obstacle, ValueError, LookupError)) as caught:
        check_constant_sequence(certificate.claim, certificate.proof)
    return str(caught.value)


# --- what it rests on -----------------------------------------------------------------------------

LINEAR = ["normalised_window", "selective", "decayed_by_tanh", "gated_by_sigmoid", "fixed_half",
          "rotated", "rotated_damped", "both", "cancelled_plain", "two_taps", "own_weighted",
          "vanishing"]  # fmt: skip
NUMBERS = st.integers(-3, 3).map(lambda k: (k, 2, 0, 1))


@st.composite
def points(draw: st.DrawFn, name: str) -> tuple:
    at = claim(name, name)
    sizes, tensors = dict(at.sizes), system(name)
    fixed = {t.name for t in tensors.buffers}
    out = []
    for t in (*tensors.inputs, *tensors.params):
        positive = getattr(t, "constraint", None) is Constraint.POSITIVE
        count = 1
        for axis in t.axes if hasattr(t, "axes") else (*t.map.target, *t.map.source):
            count *= sizes[axis.name]
        entries = tuple(draw(NUMBERS) for _ in range(count))
        out.append((t.name, tuple((abs(p) + 1, q, *r) for p, q, *r in entries) if positive
                    else entries))  # fmt: skip
    assert not fixed & {n for n, _ in out}
    return at, tuple(out)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", LINEAR)
@settings(max_examples=3)
@given(data=st.data())
def test_increments_of_a_definition_are_sums_of_powers_of_its_bases(name: str, data) -> None:
    at, values = data.draw(points(name))
    word = RepeatedToken(at, values)
    # A mixer's own bases lie in its own ranges, and nothing is left of the increments without them.
    assert not word.foreign
    for token in (word.first, word.first + 1):
        assert all(part.meets(COMPLEX_ZERO) for part in word.parts(token))


def test_a_base_of_two_entries_is_taken_once() -> None:
    """The real part of an output has the conjugate of each base that is not real."""
    real_base = "param a : n\n state s : n\n s = a * s[i-1] + u\n y = s"
    turned = "param a : n complex\n state s : n complex\n s = a * s[i-1] + u\n y = Re(s)"
    half, zero, two, turn = ((1, 2, 0, 1), (0, 1, 0, 1), (2, 1, 0, 1), (1, 2, 1, 1))

    def word(a: str, b: str, *values: tuple[int, int, int, int]) -> RepeatedToken:
        left, right = (
            SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", f"""mixer m {{ dims n
 input u : n
 {body}
}}"""))).compilation("m").system for body in (a, b)
        )  # fmt: skip
        at = Claim(left, right, (), (("n", 3),), equal=False, case=True)
        return RepeatedToken(at, (("a", values), ("u", (two,) * 3)))

    def exact(p: int, q: int, r: int = 0) -> Complex:
        return Complex(real(Fraction(p, q)), real(r))

    own = word(real_base, real_base, half, half, zero)
    assert own.others == (exact(1, 2),) and own.foreign == ()
    assert word(real_base, real_base, half, two, half).others == (exact(1, 2), exact(2, 1))
    both = word(turned, turned, turn, turn, half)
    assert both.others == (exact(1, 2, 1), exact(1, 2, -1), exact(1, 2)) and not both.foreign
    apart = word(turned, real_base, turn, half, turn)
    assert apart.foreign == (exact(1, 2, 1), exact(1, 2, -1)) and apart.others == (exact(1, 2),)


def test_the_window_is_that_of_the_longest_path_back() -> None:
    assert steady(system("plain"), {}).window == 0
    assert steady(system("normalised_window"), {}).window == 1
    convolved = dsfc.load("short_convolution").system
    sizes = {d.axis.name: 3 for d in convolved.axes}
    assert steady(convolved, sizes).window == 2


@pytest.mark.parametrize("name", ["normalised", "selective", "decayed_by_tanh", "rotated_damped"])
def test_ranges_do_not_depend_on_sizes(name: str) -> None:
    found = {regions(replace(claim(name, name), sizes=tuple((n, k) for n, _ in
                                                             claim(name, name).sizes)))
             for k in (1, 2, 5)}  # fmt: skip
    assert len(found) == 1


# --- what is accepted and what is not -------------------------------------------------------------


def test_constant_sequences_have_no_locality() -> None:
    c = made("plain", "decayed")
    local = replace(c, claim=replace(c.claim, locality=0))
    assert "all functions of the last tokens" in rejected(local)


@pytest.mark.ci
@pytest.mark.share(1, ci=4)
@pytest.mark.parametrize("a, b, _", LABELS["case"])
def test_no_point_shows_that_a_case_is_none(a: str, b: str, _) -> None:
    at = claim(a, b)
    names = {t.name for t in (*at.a.inputs, *at.a.params)}
    for source in (made("plain", "decayed"), made("both", "decayed"), made("rotated", "plain")):
        for token in (2, 5):
            values = tuple((n, v) for n, v in source.proof.values if n in names)
            values += tuple((n, ((1, 2, 0, 1),)) for n in sorted(names - dict(values).keys()))
            proof = replace(source.proof, values=values, token=token)
            rejected(Certificate(at, proof))


ATTACKS: dict[str, Callable[[Certificate], Certificate]] = {
    "equality": lambda c: on_claim(c, equal=True),
    "mere difference": lambda c: on_claim(c, case=False),
    "conditions": lambda c: on_claim(c, conditions=(Condition((((), 1),), "κ[0]"),)),
    "free values": lambda c: on_claim(c, free=True),
    "all sizes of an input": lambda c: on_claim(c, every=("d",)),
    "all sizes of nothing": lambda c: on_claim(c, every=("x",)),
    "larger sizes of nothing": lambda c: on_proof(c, larger=("x",)),
    "no sizes": lambda c: on_claim(c, sizes=()),
    "the sides exchanged": lambda c: on_claim(c, a=c.claim.b, b=c.claim.a),
    "a token before powers are all": lambda c: on_proof(c, token=c.proof.token - 1),
    "a token before the first": lambda c: on_proof(c, token=-1),
    "a token without end": lambda c: on_proof(c, token=LENGTH_LIMIT),
    "another entry": lambda c: on_proof(c, index=(0, 1)),
    "no entry": lambda c: on_proof(c, index=()),
    "no values": lambda c: on_proof(c, values=()),
    "a value missing": lambda c: on_proof(c, values=c.proof.values[1:]),
    "a value twice": lambda c: on_proof(c, values=(*c.proof.values, c.proof.values[0])),
    "a value too many": lambda c: on_proof(c, values=(*c.proof.values, ("x", ((1, 1, 0, 1),)))),
    "two tokens": lambda c: with_value(c, "u", ((1, 1, 0, 1),) * 2),
    "a denominator of 0": lambda c: with_value(c, "u", ((1, 0, 0, 1),)),
    "an imaginary part": lambda c: with_value(c, "u", ((1, 1, 1, 1),)),
    "a query of 0": lambda c: with_value(c, "W_Q", ((0, 1, 0, 1),)),
    "names of nothing": lambda c: on_claim(c, names=(("x", "y"),)),
}


def on_claim(c: Certificate, **changed) -> Certificate:
    return replace(c, claim=replace(c.claim, **changed))


def on_proof(c: Certificate, **changed) -> Certificate:
    return replace(c, proof=replace(c.proof, **changed))


def with_value(c: Certificate, name: str, entries: tuple) -> Certificate:
    values = ((n, entries if n == name else v) for n, v in c.proof.values)
    return on_proof(c, values=tuple(values))


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("pair", [("plain", "decayed"), ("both", "gated_by_sigmoid")])
def test_no_attack_is_accepted(pair: tuple[str, str], attack: str) -> None:
    certificate = made(*pair)
    assert rejected(ATTACKS[attack](certificate))


def test_what_holds_at_one_point_is_not_claimed_of_all() -> None:
    certificate = made("both", "decayed")
    assert not certificate.proof.always
    assert "other parameters" in rejected(on_proof(certificate, always=True))
    # A buffer has values of its own at larger sizes.
    certificate = made("fixed_half", "plain")
    assert not certificate.proof.larger
    assert "larger sizes" in rejected(on_proof(certificate, larger=("h",)))


def test_a_parameter_outside_its_range() -> None:
    certificate = made("decayed", "plain")
    assert "positive" in rejected(with_value(certificate, "s", ((-1, 1, 0, 1),)))


def test_a_word_on_which_there_is_no_output() -> None:
    """e^(10^12) is a number that no one writes out."""
    at, sizes = claim("normalised", "plain"), dict(claim("normalised", "plain").sizes)
    tensors = (*at.a.inputs, *at.a.params)
    counts = {t.name: prod(sizes[x.name] for x in stored_axes(t)) for t in tensors}
    values = tuple((name, ((10**6, 1, 0, 1),) * count) for name, count in counts.items())
    assert "no value" in rejected(Certificate(at, ConstantSequence(values, 2, (0, 0), False, ())))


def test_ranges_are_those_of_the_second() -> None:
    """The same point shows nothing where the second's decay may be 1, whatever it declares."""
    certificate = made("plain", "decayed")
    b = certificate.claim.b
    free = tuple(replace(t, constraint=Constraint.NONE) if t.name == "s" else t for t in b.params)
    assert "every base" in rejected(on_claim(certificate, b=replace(b, params=free)))
    half = made("plain", "fixed_half")
    b = half.claim.b
    (gamma,) = b.buffers
    one = replace(gamma, init=Init(Num(Fraction(1)), False), constraint=Constraint.UNIT)
    assert "every base" in rejected(on_claim(half, b=replace(b, buffers=(one,))))


def test_the_token_must_be_one_of_the_second_too() -> None:
    certificate = made("plain", "decayed")
    b = certificate.claim.b
    inputs = tuple(replace(t, constraint=Constraint.POSITIVE) for t in b.inputs)
    bounded = on_claim(certificate, b=replace(b, inputs=inputs))
    # What a does at other tokens is not seen: nothing is claimed of its other parameters.
    assert "other parameters" in rejected(bounded)
    bounded = on_proof(bounded, always=False)
    check(write(bounded))
    assert "positive" in rejected(with_value(bounded, "u", ((-1, 1, 0, 1),)))


@pytest.mark.parametrize(
    "b, why",
    [
        ("ratio", "divided by a value of states"),
        ("delta", "coupled"),
        ("history", "multiplied"),
    ],
)
def test_what_has_no_bases_is_not_spoken_of(b: str, why: str) -> None:
    certificate = made("plain", "decayed")
    assert why in rejected(on_claim(certificate, b=system(b), every=()))


def forged(name: str, value: Num, **fields):
    """A system whose one state is carried on by another number than the definition says."""
    known = system(name)
    (stage,) = known.stages
    (block,) = stage.blocks
    ((term,), (factor,)) = block.chain[0].terms, block.chain
    other = replace(block, chain=(replace(factor, terms=(replace(term, left=value),)),), **fields)
    return replace(known, stages=(replace(stage, blocks=(other,)),))


def test_states_that_are_not_those_of_the_definition() -> None:
    certificate = made("decayed", "plain")
    values = certificate.proof.values
    other = Claim(forged("decayed", Num(Fraction(1))), system("decayed"), (),
                  certificate.claim.sizes, equal=False, case=True)  # fmt: skip
    proof = ConstantSequence(values, 2, (0, 0), False, ())
    assert "does not go on" in rejected(Certificate(other, proof))


def test_the_decay_that_a_system_notes_is_not_believed() -> None:
    certificate = made("plain", "decayed")
    noted = certificate.claim.b.stages[0].blocks[0].decay
    plain = forged("plain", Num(Fraction(1)), decay=noted)
    declared = {t.name for t in plain.params}
    more = tuple(t for t in certificate.claim.b.params if t.name not in declared)
    plain = replace(plain, params=(*plain.params, *more))
    assert "every base" in rejected(on_claim(certificate, b=plain))


def test_a_witness_says_nothing_of_other_parameters() -> None:
    at = claim("plain", "decayed")
    values = (*((n, v) for n, v in made("plain", "decayed").proof.values), ("s", ((1, 1, 0, 1),)))
    length = tuple((n, v * 2 if n == "u" else v) for n, v in values)
    witness = Witness(2, length, 1, (0, 0))
    check(write(Certificate(replace(at, case=False), witness)))
    with pytest.raises(Rejected, match="other values"):
        check(write(Certificate(at, witness)))


def test_parameters_of_one_name_need_not_be_alike(tmp_path: Path) -> None:
    """They are the second's to choose: `W_x` is a matrix in one and a vector in the other."""
    path = tmp_path / "b.dsf"
    path.write_text(
        "mixer b extends normalized_attn { param W_x : h = 0; η = exp(w_η u + W_x) }\n",
        encoding="utf-8",
    )
    a, both = dsfc.load("ssd").system, dsfc.load(path).system
    found = no_case(Claim(a, both, (), chosen(a, both, 1)))
    assert isinstance(found, Certificate)
    with pytest.raises((Rejected, NotDefined, ValueError)):
        check(write(on_claim(found, case=False, equal=True)))


@pytest.mark.parametrize(
    "declared, value, grows",
    [
        ("", "w", True),
        ("nonneg", "w", True),
        ("", "silu(w)", True),
        ("positive", "w", False),
        ("nonzero", "w", False),
        ("", "exp(w)", False),
        ("", "(elu(w) + 1)", False),
        ("", "l2norm[n](w)", False),
    ],
)
def test_larger_sizes_have_entries_that_numbers_make_0(
    declared: str, value: str, grows: bool
) -> None:
    text = f"""
mixer summed {{ dims n
  input u : n positive
  param w : n {declared}
  y = sum[j ≤ i](sum[n](u[j] * {value}))
}}
"""
    spec = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    made = spec.compilation("summed").system
    assert growing_axes(Claim(made, made, (), (("n", 1),))) == (("n",) if grows else ())


@pytest.mark.parametrize(("value", "grows"), [("l2norm[n](w * w + 1)", False), ("w", True)])
def test_a_norm_is_another_at_larger_sizes(value: str, grows: bool) -> None:
    """The norm of one entry is 1; those of two positive ones are below 1, which `c` can be too."""
    text = f"""
mixer normed {{ dims n
  input u
  param w, q : n
  state S : n
  S = {value} * S[i-1] + u
  y = q · S
}}
mixer decayed {{ dims n
  input u
  param c : n unit;  q : n
  state S : n
  S = c * S[i-1] + u
  y = q · S
}}
"""
    spec = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    a, b = (spec.compilation(name).system for name in ("normed", "decayed"))
    found = no_case(Claim(a, b, (), (("n", 1),), equal=False, case=True))
    assert isinstance(found, Certificate)
    assert found.proof.larger == (("n",) if grows else ())
    if not grows:
        assert "larger sizes" in rejected(on_proof(found, larger=("n",)))
