"""Conditions of `equivalent` that are assumed: of earlier tokens, of states, of sums."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from dsfc.claims.verdict import Proved, Refuted, Unknown, Verdict
from dsfc.diagnostics.report import DiagnosticError
from dsfc.prover.refute import arrays, drawn
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Somewhere
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.assumed import check_holds
from dsfc.trusted.witness import execute

Decide = Callable[[str, str], Verdict]

KINDS = {"proved": Proved, "refuted": Refuted, "unknown": Unknown}

MEMORIES = """
mixer layer { dims heads h, n, p
  input q, k : h × n;  v : h × p;  α, β : h;  γ : h × n
  state S : h × n × p
}
mixer additive extends layer {
  S = α * S[i-1] + (β * k) ⊗ v
  y = q · S
}
mixer per_key extends layer {
  S = γ * S[i-1] + (β * k) ⊗ v
  y = q · S
}
mixer own_token extends layer {
  S = 0 * S[i-1] + k ⊗ v
  y = β * (k · k) * v
}
mixer unit_keys extends layer {
  S = 0 * S[i-1] + k ⊗ v
  y = β * v
}
mixer nothing_old extends layer {
  S = α * S[i-1] + (β * k) ⊗ v
  y = 0 * v
}
"""

DELTA = """
mixer delta extends layer {
  F = α * S[i-1]
  S = F + (β * k) ⊗ (v - k · F)
  y = q · S
}
"""
PER_KEY = DELTA.replace("α * S", "γ * S")
READ = DELTA.replace("y = q · S", "y = k · S")
OLD = DELTA.replace("y = q · S", "y = k · S[i-1]")
BESIDE = DELTA.replace("v - k · F)", "v - k · F) + ones[n] ⊗ v")
"""What it adds is orthogonal to nothing."""
ORTHOGONAL = "k · k[j] == 0 for j < i"

HISTORY = [
    (DELTA, f"additive when {ORTHOGONAL}", "proved"),
    (DELTA, "additive when k[j] · k == 0 for i > j", "proved"),
    (DELTA, "additive when 0 == -3 * (k · k[j]) for j < i", "proved"),
    (DELTA, f"additive when {ORTHOGONAL} and k · k == 1", "proved"),
    (DELTA, f"additive when α == 0 and {ORTHOGONAL}", "proved"),
    (DELTA, "additive", "refuted"),
    (DELTA, "additive when k · k == 1", "refuted"),
    (DELTA, "additive when k · k[j] == 1 for j < i", "refuted"),
    (DELTA, "additive when k · k[j] <= 0 for j < i", "refuted"),
    (DELTA, "additive when k · k[i-1] == 0", "refuted"),  # the token before alone
    (DELTA, "additive when q · k[j] == 0 for j < i", "refuted"),
    (DELTA, "additive when k * k[j] == 0 for j < i", "proved"),
    # Every key is 0, and so is the output: it would be about nothing.
    (DELTA, "additive when k · k[j] == 0 for j <= i", "unknown"),
    (DELTA, f"additive when {ORTHOGONAL} and k · k[j] == 1 for j < i", "unknown"),
    (DELTA, "additive when k · S[j] == 0 for j < i", "proved"),
    (DELTA, "additive when k · S[i-1] == 0", "proved"),
    (DELTA, "additive when q · S[j] == 0 for j < i", "refuted"),
    (DELTA, "unit_keys when k · k[j] == 0 for j < i", "refuted"),
    (PER_KEY, f"per_key when {ORTHOGONAL}", "refuted"),  # decays turn the keys
    (PER_KEY, "per_key when k * k[j] == 0 for j < i", "proved"),
    (READ, f"own_token when {ORTHOGONAL}", "proved"),
    (READ, f"unit_keys when {ORTHOGONAL} and k · k == 1", "proved"),
    (READ, f"unit_keys when {ORTHOGONAL}", "refuted"),
    (READ, f"unit_keys when {ORTHOGONAL} and k · k == 4", "refuted"),
    (READ, f"unit_keys when {ORTHOGONAL} and k · k == 0", "refuted"),
    (OLD, "nothing_old when k · k == 1", "refuted"),
    (BESIDE, f"additive when {ORTHOGONAL}", "refuted"),
]


@pytest.mark.share(28, ci=9)
@pytest.mark.parametrize(("mixer", "claim", "kind"), HISTORY)
def test_what_holds_of_earlier_tokens(verdict: Decide, mixer: str, claim: str, kind: str) -> None:
    answer = verdict(MEMORIES + mixer, f"equivalent {claim}")
    assert isinstance(answer, KINDS[kind]), answer
    if isinstance(answer, Proved):
        assert answer.certificate is not None
        assert check(write(answer.certificate)).claim.assumed
        assert "for all h, n, p" in answer.by
        assert "they hold at a point of" in answer.by
    if isinstance(answer, Refuted) and "when" in claim:
        assert answer.certificate is not None
        assert check(write(answer.certificate)).gap is not None


GUARDED = """
mixer layer { dims n, p
  input q, k : n;  v : p
  input f unit
  param w, c
  state C : n × p
  state z : n
  C = f * C[i-1] + k ⊗ v
  z = f * z[i-1] + k
}
mixer ratio extends layer {
  y = (q · C) / (q · z)
}
mixer size extends layer { y = (q · C) / abs(q · z) }
mixer one extends layer { y = q · C }
mixer linear extends layer { y = w * (q · C) }
mixer negative extends layer { y = -w * (q · C) }
"""
RATIO = """
mixer guarded extends layer { y = (q · C) / max(abs(q · z), 1) }
mixer other_guard extends guarded { z = 2 * f * z[i-1] + k }
mixer same_ratio extends ratio { }
"""
GUARD = "mixer guarded extends layer { y = (q · C) / max(abs(q · z), 1) }"
RELU = "mixer half extends layer { y = relu(w) * (q · C) }"
SIZE = "mixer sized extends layer { y = abs(w) * (q · C) }"
LEAST = "mixer least extends layer { y = min(w, c) * (q · C) }"

SIGNS = [
    (GUARD, "ratio when q · z >= 1", "proved"),
    (GUARD, "ratio when 1 <= z · q", "proved"),
    (GUARD, "ratio when 2 * (q · z) > 2", "proved"),
    (GUARD, "ratio when q · z > 5/2", "proved"),
    (GUARD, "size when abs(q · z) >= 1", "proved"),
    (GUARD, "size when q · z >= 1", "proved"),
    (GUARD, "ratio when q · z > -1", "refuted"),
    (GUARD, "ratio when q · z >= 1/2", "refuted"),
    (GUARD, "ratio when q · z <= 1", "refuted"),
    (GUARD, "ratio when -1 * (q · z) >= 1", "refuted"),
    (GUARD, "ratio when abs(q · z) >= 1", "refuted"),
    (GUARD, "size when abs(q · z) >= 1/2", "refuted"),
    (RATIO, "guarded when q · z >= 1", "proved"),  # z is one in both
    (RATIO, "other_guard when q · z >= 1", "refuted"),
    (GUARD, "one when abs(q · z) <= 1", "proved"),
    (GUARD, "one when abs(q · z) <= 2", "refuted"),
    (GUARD, "ratio when q · z >= 1 and q · z <= 0", "unknown"),  # nowhere
    (GUARD, "ratio when q · z[i-1] >= 1", "unknown"),  # not at the first token
    (RELU, "linear when w >= 0", "proved"),
    (RELU, "linear when w >= -1", "refuted"),
    (SIZE, "negative when w <= 0", "proved"),
    (SIZE, "negative when w >= 0", "refuted"),
    (LEAST, "linear when w <= c", "proved"),
    (LEAST, "linear when w >= c", "refuted"),
]


@pytest.mark.share(28, ci=3)
@pytest.mark.parametrize(("mixer", "claim", "kind"), SIGNS)
def test_what_is_known_of_signs(verdict: Decide, mixer: str, claim: str, kind: str) -> None:
    answer = verdict(GUARDED + mixer, f"equivalent {claim}")
    assert isinstance(answer, KINDS[kind]), answer
    if isinstance(answer, Proved):
        assert answer.certificate is not None
        assert check(write(answer.certificate)).claim.assumed
        assert "for all n, p" in answer.by


COMPLEX = """
mixer layer { dims n, p
  input a, b : n;  v : p
  k = cplx(a, b)
  y = Re(k · k) * v
}
mixer norms extends layer { y = Re(conj(k) · k * v) }
mixer squares extends layer { y = Re(k · k * v) }
mixer delta extends layer {
  state S : n × p complex
  S = S[i-1] - k ⊗ (conj(k) · S[i-1]) + k ⊗ v
  y = Re(conj(k) · S)
}
"""


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("norms when conj(k) · k[j] == 0 for j < i", Proved),
        ("norms when k · k[j] == 0 for j < i", Unknown),
        ("squares when conj(k) · k[j] == 0 for j < i", Refuted),
    ],
)
def test_complex_numbers_are_orthogonal_with_a_conjugate(
    verdict: Decide, claim: str, kind: type
) -> None:
    assert isinstance(verdict(COMPLEX, f"equivalent {claim}"), kind)


NAMED = """
mixer layer {{ dims n
  input u, w, x : n
  state S : n
  g = w * x
  S = g * S[i-1] + u
  y = S + {added} * u
}}
mixer named extends layer {{ y = S + g * u }}
mixer plain extends layer {{ y = S + u }}
mixer asked extends layer {{ }}
"""


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("named when w * x == g", Proved),
        ("plain when 2 * w * x == 2", Proved),
        ("plain when w * x == S", Refuted),  # it would put S into its own update
        ("plain when w * x == w * x * x", Refuted),
        ("named when w * x == w * x + 1", Unknown),  # nowhere
    ],
)
def test_products_that_are_other_values(verdict: Decide, claim: str, kind: type) -> None:
    mixer = NAMED.format(added="w * x").rstrip()
    answer = verdict(mixer, f"equivalent {claim}")
    assert isinstance(answer, kind), answer


NO_MORE = """
mixer layer { dims n, p
  input q, k : n;  v : p
  input x, g
  param λ
  state S : n × p
  S = S[i-1] + k ⊗ v
  y = v
}
mixer plain extends layer { y = v }
mixer more extends layer {
  y = v + BODY
}
"""

OF_PAIRS = [
    # The value depends on both tokens by more than the names that are read at j.
    ("sum[j < i]((i-j-1) * (q · S[i-1]))", "(i-j-1) * (q · k[j]) == 0 for j < i"),
    ("sum[j < i](λ^(i-j-1) * (q · S[i-1]))", "λ^(i-j-1) * (q · k[j]) == 0 for j < i"),
    (
        "sum[j < i](prod[j < l ≤ i](g[l]) * (q · S[i-1]) * v[j])",
        "prod[j < l ≤ i](g[l]) * (q · k[j]) == 0 for j < i",
    ),
    ("sum[j < i](sum[l ≤ j](g[l]) * (q · S[i-1]))", "sum[l ≤ j](g[l]) * (q · k[j]) == 0 for j < i"),
    # At the first token nothing is said.
    ("x * (k · k)", "x == 0 * (k · k[j]) for j < i"),
    ("x * v - 3 * v", "x == 3 * g[j]^0 for j < i"),
    ("x * v", "x == (i-j) * 0 for j < i"),
    ("sum[j ≤ i]((q · k[j]) * v[j])", "q == k[j] for j < i"),
    # The index of k[j] outside is another one than that of the sum.
    ("(q · (k[i-1] * k[i-1])) * v", "k[j] * (q · k[j]) == 0 for j < i"),
    # These would make a definition of itself at another token.
    ("(x * v - 2 * x * v[i-1])", "x * v == 2 * (x[i-1] * v[i-1])"),
]


@pytest.mark.share(4)
@pytest.mark.parametrize(("more", "condition"), OF_PAIRS)
def test_what_is_said_of_pairs_of_tokens_is_not_said_of_one(
    verdict: Decide, more: str, condition: str
) -> None:
    mixer = NO_MORE.replace("BODY", more)
    assert not isinstance(verdict(mixer, f"equivalent plain when {condition}"), Proved)


def test_a_definition_that_a_condition_makes_of_itself_is_left_open(verdict: Decide) -> None:
    mixer = NO_MORE.replace("y = v + BODY", "h = x * v; y = v + h")
    found = verdict(mixer, "equivalent plain when x * v == 2 * h[i-1]")
    assert isinstance(found, Unknown) and "made of itself" in found.obstacle


def test_it_is_not_said_that_a_definition_can_be_what_a_condition_says(verdict: Decide) -> None:
    mixer = NO_MORE.replace("y = v + BODY", "h = x * x + x + 1; y = v + h * v + (q · k[i-1]) * v")
    found = verdict(mixer, "equivalent plain when h == 0 and q · k[j] == 0 for j < i")
    assert isinstance(found, Proved)
    assert "`q · k[j] == 0 for j < i` holds at a point" in found.by
    assert "not asked is where `h == 0` can hold" in found.by


PUT = """
mixer layer { dims n
  input x, z, u : n
  h = x * x + x + 1
}
mixer once extends layer { y = u }
mixer twice extends layer { y = 2 * u }
mixer given extends layer { y = x * u }
mixer made extends layer { y = h * u }
"""


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("twice when x == 1 and x == 2", Unknown),
        ("twice when x == 2 and x == 2", Proved),
        ("twice when x == 3 and x == u and x == 2", Unknown),
        ("twice when x == 2 and x <= 1", Unknown),
        ("twice when x == 2 and x >= 1", Proved),
    ],
)
def test_a_name_is_what_all_conditions_say(verdict: Decide, claim: str, kind: type) -> None:
    answer = verdict(PUT[: PUT.index("mixer made")], f"equivalent {claim}")
    assert isinstance(answer, kind), answer
    if isinstance(answer, Proved):
        assert "they hold at a point of 1 token" in answer.by


def test_it_is_said_where_a_definition_alone_is_replaced(verdict: Decide) -> None:
    found = verdict(PUT, "equivalent twice when h == 2")
    assert isinstance(found, Proved)
    assert found.by.endswith("not asked is where `h == 2` can hold")
    assert isinstance(verdict(PUT, "equivalent twice when h == 3 and h == 2"), Unknown)


@pytest.mark.ci
def test_a_claim_on_a_long_chain_of_definitions_is_true_or_left_open(verdict: Decide) -> None:
    chain = "; ".join(f"a{k + 1} = (a{k} * z) / (1 + x * x)" for k in range(150))
    mixer = PUT.replace("y = x * u", f"a0 = x; {chain}; y = u + a150")
    mixer = mixer[: mixer.index("mixer made")]
    found = verdict(mixer, "equivalent once when x * z == 0")
    # Each link is 0, so the claim is true. How deep a chain is followed depends on how deep the
    # caller is, and on what SymPy remembers.
    assert isinstance(found, Proved) or "too deeply" in getattr(found, "obstacle", "")
    # A point at which the chain is not 0 may be executed all the same.
    assert isinstance(verdict(mixer, "equivalent once"), Unknown | Refuted)


def test_lengths_are_said_of_what_is_orthogonal_to_itself(verdict: Decide) -> None:
    answer = verdict(MEMORIES + DELTA, f"equivalent additive when {ORTHOGONAL}")
    assert isinstance(answer, Proved)
    assert "each vector of k along n is other than 0 at n tokens at most" in answer.by


def test_no_length_is_said_where_the_last_token_may_be_anything(verdict: Decide) -> None:
    mixer = NO_MORE.replace("BODY", "(k[i-1] · k[i-2]) * v")
    answer = verdict(mixer, "equivalent plain when k[i-1] · k[j-1] == 0 for j < i")
    assert isinstance(answer, Proved)
    assert "at most" not in answer.by


@pytest.mark.ci
def test_keys_that_are_not_0_bound_the_length(verdict: Decide) -> None:
    answer = verdict(MEMORIES + DELTA, f"equivalent additive when {ORTHOGONAL} and k · k == 1")
    assert isinstance(answer, Proved)
    assert "no sequence on which they do has more than n tokens" in answer.by
    answer = verdict(MEMORIES + DELTA, "equivalent additive when k * k[j] == 0 for j < i")
    assert isinstance(answer, Proved)
    assert "than n tokens" not in answer.by and "at most" not in answer.by


@pytest.mark.ci
def test_a_condition_that_no_proof_can_use_is_named(verdict: Decide) -> None:
    answer = verdict(MEMORIES + DELTA, "equivalent additive when exp(k · k[j]) == 2 for j < i")
    assert isinstance(answer, Unknown)
    assert "`exp(k · k[j]) == 2 for j < i` is none that a proof can use" in answer.obstacle


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("k · k[j] == 0 for j > i", "says of no token before"),
        ("k · k[j] == 0 for j < n", "says of no token before"),
        ("k · k[j] == 0 for j < i - 1", "says of no token before"),
        ("k · k == 0 for j < i", "nothing in the condition is read at `j`"),
        ("stable for j < i", "compares nothing"),
    ],
)
def test_what_is_no_condition_is_said(verdict: Decide, condition: str, text: str) -> None:
    with pytest.raises(DiagnosticError) as error:
        verdict(MEMORIES + DELTA, f"equivalent additive when {condition}")
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "E-CLAIM-FORM"
    assert text in diagnostic.message
    assert diagnostic.span is not None


@pytest.mark.ci
def test_other_claims_keep_conditions_of_earlier_tokens(verdict: Decide) -> None:
    holds = "β * β[i-1] <= 1 when β * β[j] == 1 for j < i"
    assert isinstance(verdict(MEMORIES + DELTA, holds), Unknown)
    fails = "β * β[i-1] <= 0 when β * β[j] == 1 for j < i"
    assert isinstance(verdict(MEMORIES + DELTA, fails), Refuted)


# --- what is proved holds -------------------------------------------------------------------------


def _certificate(verdict: Decide, text: str, claim: str) -> Certificate:
    answer = verdict(text, f"equivalent {claim}")
    assert isinstance(answer, Proved)
    assert answer.certificate is not None
    return answer.certificate


def _turned(size: int, rng: random.Random) -> list[list[Fraction]]:
    """Orthonormal rows of fractions: reflections, one after the other."""
    rows = [[Fraction(i == j) for j in range(size)] for i in range(size)]
    for _ in range(2):
        v = [Fraction(rng.randint(-3, 3)) for _ in range(size)]
        square = sum(x * x for x in v) or Fraction(1)
        for row in rows:
            part = 2 * sum(x * y for x, y in zip(row, v, strict=True)) / square
            row[:] = [x - part * y for x, y in zip(row, v, strict=True)]
    return rows


@pytest.mark.ci
@pytest.mark.parametrize(
    ("mixer", "claim"),
    [
        (DELTA, f"additive when {ORTHOGONAL}"),
        (READ, f"own_token when {ORTHOGONAL}"),
        (READ, f"unit_keys when {ORTHOGONAL} and k · k == 1"),
    ],
)
def test_outputs_are_equal_where_keys_are_orthogonal(
    verdict: Decide, mixer: str, claim: str
) -> None:
    certificate = _certificate(verdict, MEMORIES + mixer, claim)
    sizes = tuple((name, {"n": 4}.get(name, 2)) for name, _ in certificate.claim.sizes)
    at = replace(certificate.claim, sizes=sizes, every=())
    rng = random.Random(7)
    apart = 0
    for _ in range(4):
        point = _with_keys(at, rng)
        check_holds(at, point)
        a, b = execute(at, point)
        assert a == b
        turned = replace(point, values=tuple((n, _moved(n, x)) for n, x in point.values))
        with pytest.raises(Rejected):
            check_holds(at, turned)
        a, b = execute(at, turned)
        apart += a != b
    assert apart


def _with_keys(claim: Claim, rng: random.Random) -> Somewhere:
    """A point of four tokens whose keys are orthonormal in each of two heads."""
    point = drawn(claim, arrays(claim), 4, (1, 2, 3, -1, -2), rng)
    heads = [_turned(4, rng) for _ in range(2)]
    keys = tuple(
        (x.numerator, x.denominator, 0, 1) for t in range(4) for rows in heads for x in rows[t]
    )
    return Somewhere(4, tuple((n, keys if n == "k" else x) for n, x in point.values))


def _moved(name: str, entries: tuple) -> tuple:
    """The entries, those of keys one entry further."""
    return (*entries[1:], entries[0]) if name == "k" else entries


@pytest.mark.ci
def test_outputs_are_equal_where_a_guard_does_nothing(verdict: Decide) -> None:
    certificate = _certificate(verdict, GUARDED + GUARD, "ratio when q · z >= 1")
    at = replace(certificate.claim, every=())
    rng = random.Random(3)
    held = apart = 0
    for _ in range(200):
        point = drawn(at, arrays(at), 3, (1, 2, 3, Fraction(1, 2), Fraction(-1, 3)), rng)
        try:
            a, b = execute(at, point)
            check_holds(at, Somewhere(point.length, point.values))
        except Rejected:
            apart += a != b
            continue
        held += 1
        assert a == b
    assert held > 10
    assert apart > 10
