"""Rule "markov-parameters": what it rests on, what it must not accept."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.sizes import chosen, enough
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, MarkovParameters
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.polynomial import ZERO, Quotient, generator, number, total
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.markov import Markov, check_markov
from dsfc.trusted.statement import Moment, WrittenClaim, state
from dsfc.trusted.symbols import Symbols

LABELS = tomllib.loads(
    (Path(__file__).parents[2] / "prover" / "labels.toml").read_text(encoding="utf-8")
)
VARYING = ("shifted", "selective", "gated", "ema")
"""What is no time-invariant system, or has a function on its output that has other rules."""


DIVIDED = """
mixer divided_late {
  input u
  state t, p, q, r
  t = t[i-1] + 1
  p = u
  q = p[i-1]
  r = q[i-1] / (t[i-1] + 1)
  y = r[i-1]
}
mixer divided_early {
  input u
  state t, p, q, r
  t = t[i-1] + 1
  p = u
  q = p[i-1] / (t[i-1] + 1)
  r = q[i-1]
  y = r[i-1]
}
"""
LARGE = ("dense_series", "full3_dense", "full4_dense", "series")


def pairs(kind: str) -> list:
    """Labelled pairs of systems that stay the same; those of full matrices in the fast tier."""
    return [
        pytest.param(file, a, b, marks=[pytest.mark.ci] * (file == "modes" or a in LARGE),
                     id=f"{a}-{b}")
        for file in ("modes", "dense")
        for a, b, _ in LABELS[file][kind]
        if not a.startswith(VARYING)
    ]  # fmt: skip


def claim_of(system: Callable, file: str, a: str, b: str, least: int = 1) -> Claim:
    left, right = system(file, a), system(file, b)
    return enough(Claim(left, right, (), chosen(left, right, least)), False)[-1]


def shown(claim: Claim) -> Certificate:
    count = Markov(state(claim, False)).count
    return Certificate(claim, MarkovParameters(count, False))


def rejected(certificate: Certificate) -> str:
    with pytest.raises((Rejected, Obstacle, ValueError)) as caught:
        check_markov(certificate.claim, certificate.proof)
    return str(caught.value)


@pytest.mark.share(6, ci=6)
@pytest.mark.parametrize("file, a, b", pairs("equal"))
def test_equal_systems_are_accepted(system: Callable, file: str, a: str, b: str) -> None:
    claim = claim_of(system, file, a, b)
    assert check(write(shown(claim))).claim == claim


@pytest.mark.share(2, ci=8)
@pytest.mark.parametrize("file, a, b", pairs("different"))
def test_no_other_systems_are(system: Callable, file: str, a: str, b: str) -> None:
    assert "is not 0" in rejected(shown(claim_of(system, file, a, b)))


@pytest.mark.ci
@pytest.mark.parametrize("a, b", [("dss_state", "dss_kernel"), ("product_complex",
                                  "kronecker_complex")])  # fmt: skip
def test_what_is_claimed_of_all_sizes_holds_at_others(system: Callable, a: str, b: str) -> None:
    claim = claim_of(system, "modes", a, b)
    assert claim.every
    for more in claim.every:
        sizes = tuple((n, k + (n == more)) for n, k in claim.sizes)
        check(write(shown(replace(claim, sizes=sizes))))


# --- what it rests on -----------------------------------------------------------------------------

Numbers = tuple[list[list[Fraction]], list[Fraction], list[Fraction]]
"""A, b and c of x_i = A x_{i-1} + b u_i, y_i = c x_i."""


def compiled(body: str):
    text = f"mixer m {{\n  input u\n{body}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


def moment(systems: tuple[Numbers, Numbers], at_start: bool) -> Moment:
    u, steps, outputs = Quotient(generator("u[]@0")), {}, []
    for label, (a, b, c) in zip("AB", systems, strict=True):
        cells = [f"${label}.x[{k}]" for k in range(len(b))]
        old = [ZERO if at_start else Quotient(generator(cell)) for cell in cells]
        new = [total(number(x) * z for x, z in zip(row, old, strict=True)) + number(d) * u
               for row, d in zip(a, b, strict=True)]  # fmt: skip
        steps |= dict(zip(cells, new, strict=True))
        outputs.append(total(number(x) * z for x, z in zip(c, new, strict=True)))
    return Moment(steps, (tuple(outputs),), ())


def of_numbers(one: Numbers, other: Numbers) -> Markov:
    pair = (one, other)
    return Markov(
        WrittenClaim((moment(pair, True),), moment(pair, False), Symbols(), Conditions(()))
    )


def parameters(a, b, c, count: int) -> list[Fraction]:
    out = []
    for _ in range(count):
        out.append(sum(x * y for x, y in zip(c, b, strict=True)))
        b = [sum(x * y for x, y in zip(row, b, strict=True)) for row in a]
    return out


NUMBERS = st.integers(-2, 2).map(Fraction)
TWO = st.lists(NUMBERS, min_size=2, max_size=2)
SYSTEMS = st.tuples(st.lists(TWO, min_size=2, max_size=2), TWO, TWO)


@settings(max_examples=60)
@given(one=SYSTEMS, other=SYSTEMS, t=NUMBERS)
def test_it_decides_systems_of_numbers(one: Numbers, other: Numbers, t: Fraction) -> None:
    """Against the parameters computed as numbers, and a change of basis [[1, t], [0, 1]]."""
    a, b, c = one
    row = [a[0][0] + t * a[1][0], a[0][1] + t * a[1][1]]
    moved = ([[row[0], row[1] - t * row[0]], [a[1][0], a[1][1] - t * a[1][0]]],
             [b[0] + t * b[1], b[1]], [c[0], c[1] - t * c[0]])  # fmt: skip
    assert of_numbers(one, moved).differs_at() is None
    ours, theirs = parameters(*one, 8), parameters(*other, 8)
    first = next((k for k in range(8) if ours[k] != theirs[k]), None)
    assert of_numbers(one, other).differs_at() == first
    assert first is None or first < 4


@pytest.mark.parametrize("length", [1, 2, 5])
def test_no_parameter_less_will_do(length: int) -> None:
    """A chain that is read at its end differs from nothing at the last parameter alone."""
    n = range(length)
    one, nothing = Fraction(1), Fraction(0)
    chain = [[one if j == k - 1 else nothing for j in n] for k in n]
    ends = [one if k == 0 else nothing for k in n], [one if k == length - 1 else nothing for k in n]
    found = of_numbers((chain, *ends), ([], [], []))
    assert found.differs_at() == length - 1 and found.count == max(length - 1, 0)
    # Read before its update, it is one parameter later: the last that is looked at.
    late = compiled(_chain(length, f"u + x{length - 1}[i-1]"))
    found = Markov(state(Claim(late, compiled("  y = u"), (), ()), False))
    assert (found.count, found.differs_at()) == (length, length)


def _chain(length: int, output: str) -> str:
    names = [f"x{k}" for k in range(length)]
    steps = [f"  {n} = {m}" for n, m in zip(names, ["u", *(f"{n}[i-1]" for n in names)],
                                            strict=False)]  # fmt: skip
    return "\n".join([f"  state {', '.join(names)}", *steps, f"  y = {output}"])


# --- what is refused ------------------------------------------------------------------------------

FULL = ("dense", "rotation_block", "rotation_mode")
ATTACKS: dict[str, tuple[str, Callable[[Certificate], Certificate]]] = {
    "a parameter less": ("4 Markov parameters", lambda c: on_proof(c, count=3)),
    "a parameter more": ("4 Markov parameters", lambda c: on_proof(c, count=5)),
    "no parameter": ("4 Markov parameters", lambda c: on_proof(c, count=0)),
    "difference": ("shows equality", lambda c: on_claim(c, equal=False)),
    "a case": ("shows equality", lambda c: on_claim(c, equal=False, case=True)),
    "conditions": (
        "has no conditions",
        lambda c: on_claim(c, conditions=(Condition((((("u[]@0", 1),), 1),), "u[]@0"),)),
    ),
    "free values at all sizes": (
        "inputs of their own",
        lambda c: on_claim(c, free=True, every=("n",)),
    ),
    "all sizes of nothing": ("no such axis", lambda c: on_claim(c, every=("n",))),
}


def on_claim(c: Certificate, **changed) -> Certificate:
    return replace(c, claim=replace(c.claim, **changed))


def on_proof(c: Certificate, **changed) -> Certificate:
    return replace(c, proof=replace(c.proof, **changed))


@pytest.mark.share(6)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_is_accepted(system: Callable, attack: str) -> None:
    reason, change = ATTACKS[attack]
    assert reason in rejected(change(shown(claim_of(system, *FULL))))


@pytest.mark.ci
@pytest.mark.parametrize("other", ["rotation_conjugate", "rotation_kernel"])
def test_the_second_system_is_the_one_of_the_claim(system: Callable, other: str) -> None:
    made = on_claim(shown(claim_of(system, *FULL)), b=system("dense", other))
    if other == "rotation_kernel":
        check(write(made))  # it says the same of this one
    else:
        assert "is not 0" in rejected(made)


SUM = "state s\n  s = s[i-1] + u\n"
CALL = "state s, t\n  s = s[i-1] + {}\n  t = t[i-1] + tanh({})\n  y = t"


@pytest.mark.parametrize(
    "one, other, reason",
    [
        ("state s\n  s = u * s[i-1] + u\n  y = s", "y = u", "not the same at all tokens"),
        (f"{SUM}  y = s * s", "y = u", "values of states are multiplied"),
        (f"{SUM}  y = u / s", f"{SUM}  y = s", "values of states are multiplied"),
        (CALL.format("u", "s[i-1]"), CALL.format("2 * u", "s[i-1] / 2"), "a function of states"),
    ],
)
def test_what_is_not_affine_or_changes_is_refused(one: str, other: str, reason: str) -> None:
    claim = Claim(compiled(f"  {one}"), compiled(f"  {other}"), (), ())
    assert reason in rejected(Certificate(claim, MarkovParameters(1, False)))


def test_the_first_tokens_are_looked_at() -> None:
    """What is read before the first token is 0, so 1 + u[i-1] is no u[i-1] + 1 of a later start."""
    late = compiled("  a = exp(u)\n  y = a[i-1]")
    other = compiled("  y = exp(u[i-1])")
    claim = Claim(late, other, (), ())
    assert Markov(state(claim, False)).differs_at() == 0
    assert "is not 0" in rejected(Certificate(claim, MarkovParameters(0, False)))


def test_what_divides_by_a_state_is_not_affine() -> None:
    """1 / (t + 1) is no constant: to divide before a delay and after it are two things."""
    text = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", DIVIDED)))
    late, early = (text.compilation(name).system for name in text.mixers)
    stated = Claim(late, early, (), chosen(late, early, 1))
    for count in (5, 6, 8):
        certificate = write(Certificate(stated, MarkovParameters(count, False)))
        with pytest.raises(Rejected, match="a state stands in a denominator"):
            check(certificate)
