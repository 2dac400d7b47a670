"""For which sizes a proof holds: the counts, the carriers, and claims of more than there is."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.build import walk
from dsfc.expr.tree import Reduce, Reduction, Ref
from dsfc.prover.closure import Differs, close
from dsfc.prover.equivalent import Unknown, equivalent
from dsfc.prover.sizes import chosen
from dsfc.prover.verdict import AtSizes
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import Direct, System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.small_model_bound import small_model_bound
from dsfc.trusted.statement import state

SPECS = """
mixer raw { dims n, p
  input q, k : n;  v : p
}
mixer scored extends raw {
  y = sum[j ≤ i](q · k[j] * v[j]) / sum[j ≤ i](q · k[j])
}
mixer unscored extends raw {
  y = sum[j ≤ i](sum[n](k[j]) * v[j]) / sum[j ≤ i](sum[n](k[j]))
}
mixer plain extends raw {
  y = sum[j ≤ i](q · k[j] * v[j])
}
mixer squared extends raw {
  y = sum[j ≤ i]((q · k[j])^2 * v[j])
}
mixer once extends raw {
  y = v
}
mixer counted extends raw {
  y = sum[n](ones[n]) * v
}
mixer numbered extends raw {
  y = sum[n](iota[n] * q) * v
}
mixer numbered_not_here extends raw {
  y = sum[n](0 * q) * v
}
mixer inverse_key extends raw {
  y = sum[j ≤ i](sum[n](1 / k[j]) * v[j])
}
mixer inverse_and_key extends raw {
  y = sum[j ≤ i](sum[n](k[j] / k[j]) * v[j])
}
mixer in_a_function extends raw {
  y = exp(q · k) * v
}
mixer below_the_sum extends raw {
  y = v / (q · k)
}
mixer weighted extends raw {
  y = softmax[n](q) · k * v
}
mixer by_size extends raw {
  y = sum[j ≤ i](q · k[j] * v[j]) / sqrt(n)
}
mixer by_size_otherwise extends raw {
  y = sum[j ≤ i]((q / sqrt(n)) · k[j] * v[j])
}
mixer coupled extends raw {
  state S : n × p
  S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ v
  y = q · S
}
mixer mapped { dims d, n
  input u : d
  param w_k, w_q : d -> n
  state S : n
  S = S[i-1] + w_k u
  y = (w_q u) * S
}
mixer mapped_ones { dims d, n, p
  input u : d
  param w : d -> p
  y = sum[n](w (ones[n] ⊗ u))
}
mixer mapped_once { dims d, n, p
  input u : d
  param w : d -> p
  y = w u
}
mixer mapped_quotient { dims d, n, p
  input u : d;  q : n
  param w : d -> p
  y = sum[n](w ((q / (2 * q)) ⊗ u))
}
mixer mapped_half { dims d, n, p
  input u : d;  q : n
  param w : d -> p
  y = w (u / 2)
}
mixer features extends raw {
  y = sum[j ≤ i](exp(q) · (elu(k[j]) + 1) * v[j])
}
mixer features_of_two extends raw {
  y = sum[j ≤ i](sum[n](elu(k[j]) + 1) * v[j]) + sum[n](elu(k) + 2) * v
}
mixer features_inverse extends raw {
  y = sum[j ≤ i](sum[n](exp(k[j]) / exp(k[j])) * v[j])
}
mixer features_negative extends raw {
  y = sum[n](exp(q) * exp(-q)) * v
}
mixer features_nested extends raw {
  y = sum[n](exp(q) * exp(exp(q))) * v
}
mixer features_before extends raw {
  y = first * sum[n](exp(k[i-1])) * v
}
mixer features_of_nothing extends raw {
  y = sum[n](exp(0 * k)) * v
}
mixer features_first extends raw {
  y = first * v
}
mixer summed_values extends raw {
  y = sum[j ≤ i](v[j])
}
mixer features_bare extends raw {
  y = sum[n](elu(k)) * v
}
mixer gated_by_silu extends raw {
  y = sum[j ≤ i](silu(q) · k[j] * v[j])
}
mixer gated_and_more extends raw {
  y = sum[n](silu(q) / q) * v
}
mixer rotated extends raw {
  input x : n
  y = Re(sum[j ≤ i](sum[n](cplx(q, x) * conj(cplx(k[j], x[j]))) * v[j]))
}
mixer mapped_sum { dims d, n
  input u : d
  param w_k, w_q : d -> n
  y = sum[j ≤ i]((w_q u) * (w_k u[j]))
}
"""


@pytest.fixture(scope="module")
def of() -> Callable[[str], System]:
    text = SpecText(Place(Path("sizes.dsf")), parse(Source("sizes.dsf", SPECS)))
    return lambda name: text.compilation(name).system


def claim_of(a: System, b: System, every: tuple[str, ...] = (), **sizes: int) -> Claim:
    copies = {d.axis.name: d.axis.copy_of for s in (a, b) for d in s.axes if d.axis.copy_of}
    sizes |= {name: sizes[of] for name, of in copies.items()}
    return Claim(a, b, (), tuple(sorted(sizes.items())), every=every)


def accepted(claim: Claim) -> bool:
    """Whether the rows that the prover finds show the claim."""
    rows = close(state(claim, False))
    if isinstance(rows, Differs):
        return False
    try:
        check(write(Certificate(claim, Invariant(rows, False))))
    except Rejected:
        return False
    return True


@pytest.mark.parametrize(
    "a, b, n",
    [
        ("plain", "plain", 1),
        ("plain", "scored", 2),
        ("scored", "scored", 2),
        ("squared", "squared", 2),
        ("squared", "scored", 3),
        ("plain", "once", 1),
        ("by_size", "by_size_otherwise", 1),
        ("features", "features", 1),
        ("gated_by_silu", "gated_by_silu", 1),
        ("rotated", "rotated", 1),
    ],
)
def test_indices_of_a_term_are_counted(of: Callable, a: str, b: str, n: int) -> None:
    found = small_model_bound(claim_of(of(a), of(b), n=2, p=2), False)
    assert found.pop("p") == 1 and set(found.values()) == {n}


@pytest.mark.parametrize(
    "name, reason",
    [
        ("counted", "factor of every term"),
        ("numbered", "iota"),
        ("inverse_key", "factor of every term"),
        ("inverse_and_key", "factor of every term"),
        ("in_a_function", "`exp` holds a sum"),
        ("below_the_sum", "a denominator holds a sum"),
        ("weighted", "`softmax` runs over it"),
        ("coupled", "couples its entries"),
        ("features_of_two", "factor of every term"),
        ("features_inverse", "factor of every term"),
        ("features_negative", "factor of every term"),
        ("features_nested", "factor of every term"),
        ("features_before", "factor of every term"),
        ("features_of_nothing", "factor of every term"),
        ("features_bare", "factor of every term"),
        ("gated_and_more", "factor of every term"),
    ],
)
def test_what_has_no_count_says_why(of: Callable, name: str, reason: str) -> None:
    found = small_model_bound(claim_of(of(name), of(name), n=2, p=2), False)
    assert reason in str(found["n"]) and found["p"] == 1


def test_what_maps_of_tokens_contract_has_no_index(of: Callable) -> None:
    claim = claim_of(of("mapped"), of("mapped_sum"), d=1, n=1)
    assert small_model_bound(claim, False) == {"d": 1, "n": 1}
    # Written out, each of the two maps brings one index.
    assert small_model_bound(claim, True) == {"d": 2, "n": 1}
    assert accepted(dataclasses.replace(claim, every=("d", "n")))


# --- claims of more than there is -----------------------------------------------------------------


def test_a_ratio_that_is_equal_at_one_size_alone(of: Callable) -> None:
    """T25: with one index the score cancels; the count of a ratio is two, and there it fails."""
    at_one = claim_of(of("scored"), of("unscored"), n=1, p=1)
    assert accepted(at_one)
    assert not accepted(dataclasses.replace(at_one, every=("n",)))
    assert not accepted(dataclasses.replace(at_one, sizes=(("n", 2), ("p", 1))))


@pytest.mark.parametrize(
    "a, b",
    [
        ("numbered", "numbered_not_here"),
        ("counted", "once"),
        ("coupled", "coupled"),
        ("features_inverse", "summed_values"),
        ("features_negative", "once"),
        ("features_before", "features_first"),
        ("features_of_nothing", "once"),
    ],
)
def test_equality_at_one_size_is_not_claimed_of_all(of: Callable, a: str, b: str) -> None:
    at_one = claim_of(of(a), of(b), n=1, p=1)
    assert accepted(at_one) and accepted(dataclasses.replace(at_one, every=("p",)))
    assert not accepted(dataclasses.replace(at_one, every=("n",)))


def test_an_index_that_a_value_does_not_have_is_not_carried(of: Callable) -> None:
    at_one = claim_of(of("mapped_ones"), of("mapped_once"), d=1, n=1, p=1)
    assert accepted(dataclasses.replace(at_one, every=("d", "p")))
    assert not accepted(dataclasses.replace(at_one, every=("n",)))


def test_an_index_that_cancels_is_not_carried(of: Callable) -> None:
    at_one = claim_of(of("mapped_quotient"), of("mapped_half"), d=1, n=1, p=1)
    assert accepted(dataclasses.replace(at_one, every=("d", "p")))
    assert not accepted(dataclasses.replace(at_one, every=("n",)))


def test_what_functions_carry_holds_at_other_sizes(of: Callable) -> None:
    for name in ("features", "gated_by_silu", "rotated"):
        for n in (1, 3):
            assert accepted(claim_of(of(name), of(name), ("n", "p"), n=n, p=1))


@pytest.mark.parametrize("name", ["linear_attn", "lln", "lnssm", "hgrn2", "retnet_rope"])
def test_axes_of_features_are_counted(name: str) -> None:
    system = dsfc.load(name).system
    found = small_model_bound(Claim(system, system, (), chosen(system, system, 1)), False)
    assert all(isinstance(k, int) for k in found.values()), found


def test_a_name_that_is_read_with_other_axes_is_no_index_form(of: Callable) -> None:
    """Forged: `v` said to have the axis n, so that a sum over n would be carried by it."""
    a, b = of("counted"), of("once")
    ones = next(e for s in a.outputs for e in walk(s.value.value) if isinstance(e, Reduce)).axis
    v = next(e for e in walk(b.outputs[0].value.value) if isinstance(e, Ref))
    wrong = Ref(v.name, v.over | {ones}, v.kind, v.when, v.at)
    out = dataclasses.replace(a.outputs[0], value=Direct(Reduce(Reduction.SUM, ones, wrong)))
    at_one = claim_of(dataclasses.replace(a, outputs=(out,)), b, n=1, p=1)
    assert "other axes" in str(small_model_bound(at_one, False)["n"])
    with pytest.raises(ValueError, match="otherwise than declared"):
        accepted(at_one)


@pytest.mark.parametrize("name", ["scored", "squared"])
def test_no_claim_below_the_count(of: Callable, name: str) -> None:
    sizes = {"n": 1, "p": 1}
    assert not accepted(claim_of(of(name), of(name), ("n",), **sizes))
    assert accepted(claim_of(of(name), of(name), ("n", "p"), **sizes | {"n": 2}))


@pytest.mark.parametrize("a, b", [("plain", "by_size"), ("plain", "squared"), ("once", "plain")])
def test_a_witness_shows_nothing_of_all_sizes(of: Callable, a: str, b: str) -> None:
    from dsfc.prover.equivalent import equivalent

    made = equivalent(of(a), of(b)).certificate
    with pytest.raises(Rejected, match="one size"):
        check(write(dataclasses.replace(made, claim=dataclasses.replace(made.claim, every=("n",)))))


# --- what is read off agrees with what is --------------------------------------------------------


@pytest.mark.parametrize("name", ["taylor_softmax", "linear_attn", "retnet", "gla", "s6", "h3"])
def test_a_count_never_depends_on_the_sizes(name: str) -> None:
    system = dsfc.load(name).system
    found = [
        small_model_bound(Claim(system, system, (), chosen(system, system, k)), False)
        for k in (1, 2)
    ]
    assert found[0] == found[1]


def test_outputs_along_other_axes_are_no_index_form(of: Callable) -> None:
    flat = SpecText(Place(Path("flat.dsf")), parse(Source("flat.dsf", """
mixer along { dims n, p
  input u : n × p
  y = 2 * u
}
mixer flat { dims n, p, d, h
  input w : d; v, z : h
  y = w * (v · z)
}
"""))).compilation  # fmt: skip
    claim = claim_of(flat("along").system, flat("flat").system, n=2, p=2, d=4, h=2)
    found = small_model_bound(claim, False)
    assert all("other axes" in str(found[axis]) for axis in ("n", "p", "d")) and found["h"] == 1


# --- terms at random -----------------------------------------------------------------------------

FACTORS = (
    "q", "k", "a", "ones[n]", "q[i-1]", "1 / q", "(q / q)", "(q + k)",
    "exp(q)", "exp(k)", "exp(a)", "exp(-q)", "exp(k[i-1])", "exp(0 * q)", "exp(q - q)",
    "exp(q[i-1] * q)", "exp(exp(q))", "(exp(q) / exp(q))",
    "(elu(k) + 1)", "(elu(q) + 1)", "(elu(k[i-1]) + 1)", "(elu(0 * k) + 1)", "(elu(k) + 2)",
    "silu(q)", "silu(k)", "silu(q[i-1])", "silu(q) / q",
)  # fmt: skip
FRAMES = (
    "sum[n]({}) * v",
    "first * sum[n]({}) * v",
    "sum[j ≤ i](sum[n]({}) * v[j])",
    "sum[n]({} - ones[n]) * v + v",
    "sum[n]({}) * v / sum[n]({})",
)
PLAIN = ("v", "first * v", "sum[j ≤ i](v[j])", "0 * v")


def drawn(rng: random.Random) -> tuple[str, str]:
    """A sum over n, and the same or something without n."""
    product = " * ".join(rng.choices(FACTORS, k=rng.randint(1, 2)))
    text = rng.choice(FRAMES).replace("{}", product)
    return text, rng.choice((text, *PLAIN))


@pytest.mark.full
def test_what_is_claimed_of_all_sizes_holds_at_three() -> None:
    head = "mixer m {{ dims n, p\n input q, k : n; v : p\n param a : n unit\n y = {}\n}}"
    rng, claimed, equal = random.Random(7), 0, 0
    for _ in range(400):
        systems = [
            SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", head.format(y))))
            .compilation("m")
            .system
            for y in drawn(rng)
        ]
        if not all(s.inputs for s in systems):
            continue
        for n in (1, 2):
            at = claim_of(*systems, every=("n",), n=n, p=1)
            if isinstance(small_model_bound(at, False)["n"], int) and accepted(at):
                claimed += 1
                equal += accepted(dataclasses.replace(at, sizes=(("n", 3), ("p", 1)), every=()))
    assert claimed == equal >= 40


ZEROS = """
mixer raw { dims n, p, r
  input k : n;  v : p;  z : r
  param c
  abstract f : p -> r
}
mixer cancelled extends raw {
  x = k * (c + 1) - k * c - k
  y = z * sum[n](f(x ⊗ v))
}
mixer twice extends raw { y = 2 * z * f(0 * v) }
mixer earlier extends raw { y = sum[n](f(k[i-1] ⊗ v[i-1])) }
mixer twice_first extends raw {
  y = sum[n](f(k[i-1] ⊗ v[i-1])) * (1 - first) + 2 * first * f(0 * v)
}
mixer by_p extends raw { y = z * f(c * ones[p]) }
mixer by_n { dims n, p, r
  input k : n;  v : p;  z : r
  param c
  abstract f : n -> r
  y = z * f(c * ones[n])
}
"""


@pytest.mark.parametrize("pair", [("cancelled", "twice"), ("earlier", "twice_first")])
def test_an_abstract_map_of_0_is_no_0(pair: tuple[str, str]) -> None:
    """Σ_n f(0) is n f(0): what f takes has no index where it is 0."""
    text = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", ZEROS)))
    a, b = (text.compilation(name).system for name in pair)
    verdict = equivalent(a, b)
    assert isinstance(verdict, AtSizes) and verdict.fixed == (("n", 2),)


def test_abstract_maps_of_one_name_take_the_same_axes() -> None:
    text = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", ZEROS)))
    verdict = equivalent(text.compilation("by_p").system, text.compilation("by_n").system)
    assert isinstance(verdict, Unknown) and "does not take and give the same axes" in str(verdict)
