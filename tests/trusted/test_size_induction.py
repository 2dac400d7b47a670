"""Rows that are a family along an axis that an update couples, and what must not pass for one."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.closure import Differs, close
from dsfc.prover.equivalent import equivalent
from dsfc.prover.sizes import enough
from dsfc.prover.verdict import AtSizes, Proved
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import CellMonomial, Certificate, Claim, Invariant, Row
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import shifted
from dsfc.trusted.index_form import NoCount
from dsfc.trusted.invariant import unlifted
from dsfc.trusted.one_step import OneStep, entries
from dsfc.trusted.polynomial import POLYNOMIAL_ONE, Polynomial, Quotient, constant
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.size_induction import Names, Terms, _check_renamed, one_token
from dsfc.trusted.small_model_bound import kinds_of
from dsfc.trusted.statement import state
from dsfc.trusted.symbols import GeneratorIndices, Symbols

LABELS = tomllib.loads(
    (Path(__file__).parent.parent / "prover" / "labels.toml").read_text(encoding="utf-8")
)["delta"]

SLOWER = ("gated_deltanet", "rwkv7")
SPECS = """
mixer raw { dims n, p
  input q, k : n;  v : p;  z : p
  param c
}
mixer rule extends raw {
  state S : n × p
  S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ v
  y = q · S
}
mixer other_rule extends raw {
  state S : n × p
  S = S[i-1] - k * k * S[i-1] + k ⊗ v
  y = q · S
}
mixer mean_rule extends raw {
  state S : n × p
  S = S[i-1] - k ⊗ sum[n](S[i-1]) + k ⊗ v
  y = q · S
}
mixer swish extends raw {
  state S : n × p
  S = S[i-1] - exp(-k) ⊗ (exp(k) · S[i-1]) + k ⊗ v
  y = q · S
}
mixer by_index extends raw {
  state S : n × p
  S = S[i-1] - (iota[n] * k) ⊗ (k · S[i-1]) + k ⊗ v
  y = q · S
}
mixer no_index extends raw {
  state S : n × p
  S = S[i-1] + k ⊗ v
  y = q · S
}
mixer delayed extends raw {
  state S : n × p
  S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ v
  r = q · S
  y = r[i-1]
}
mixer as_ratio extends raw {
  state S : n × p
  state t : n
  S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ v
  t = t[i-1] - k * (k · t[i-1]) + k
  y = (q · S) / (q · t)
}
mixer divided extends raw {
  state S, R : n × p
  S = S[i-1] + k ⊗ v
  R = R[i-1] + v / (q · S) ⊗ k
  y = q · R
}
mixer normed_n extends raw {
  y = sum[n](q * l2norm[n](c * ones[n])) * v
}
mixer normed_p extends raw {
  y = sum[n](q) * l2norm[p](c * ones[p]) * v
}
mixer normed_key extends raw {
  y = sum[j ≤ i](q · l2norm[n](k[j]) * v[j])
}
mixer normed_state extends raw {
  state S : n × p
  S = S[i-1] + l2norm[n](k) ⊗ v
  y = q · S
}
mixer normed_below extends raw {
  y = sum[j ≤ i](sum[n](l2norm[n](k[j]) / l2norm[n](k[j])) * v[j])
}
mixer normed_in_exp extends raw {
  y = sum[j ≤ i](sum[n](exp(l2norm[n](k[j])) * l2norm[n](k[j])) * v[j])
}
"""


@pytest.fixture(scope="module")
def of() -> Callable[[str], System]:
    text = SpecText(Place(Path("family.dsf")), parse(Source("family.dsf", SPECS)))
    return lambda name: text.compilation(name).system


def claim_of(a: System, b: System, every: tuple[str, ...] = (), **sizes: int) -> Claim:
    return Claim(a, b, (), tuple(sorted(sizes.items())), every=every)


def rows_of(claim: Claim) -> tuple[Row, ...]:
    rows = close(state(claim, False))
    assert not isinstance(rows, Differs)
    return rows


def why_not(claim: Claim, rows: tuple[Row, ...]) -> str:
    """Why the kernel does not accept some rows; "" where it does."""
    try:
        check(write(Certificate(claim, Invariant(rows, False))))
    except Rejected as e:
        return str(e)
    return ""


def left_at(claim: Claim) -> str:
    """Why an axis n stays at its size, with the rows that the prover finds."""
    proof = Invariant(rows_of(claim), False)
    return unlifted(claim, proof, state(claim, False)).get("n", "")


# --- what the labels say --------------------------------------------------------------------------


def labelled(kind: str, first: int) -> list:
    """Labelled pairs, all but the first with a mark."""
    return [
        pytest.param(a, b, marks=[pytest.mark.ci] * (k >= first))
        for k, (a, b, _) in enumerate(LABELS[kind])
    ]


@pytest.mark.share(4)
@pytest.mark.parametrize("a, b", labelled("all_sizes", 3))
def test_what_is_equal_at_all_sizes_is_proved_of_all(system: Callable, a: str, b: str) -> None:
    verdict = equivalent(system("delta", a), system("delta", b))
    assert isinstance(verdict, Proved)
    claim = verdict.certificate.claim
    assert set(claim.every) == {name for name, _ in claim.sizes}
    # At one more the closure finds a proof of its own; one is below the count.
    n = dict(claim.sizes)["n"]
    more, one = (replace(claim, sizes=(("h", 1), ("n", k), ("p", 1))) for k in (n + 1, 1))
    assert why_not(replace(more, every=()), rows_of(more)) == ""
    assert "one token has" in why_not(one, rows_of(one))


@pytest.mark.ci
def test_what_is_equal_at_one_size_is_proved_of_that(system: Callable) -> None:
    """Three vectors of two entries are dependent; one token has four indices in a term."""
    pair = system("delta", "rule"), system("delta", "with_gram")
    verdict = equivalent(*pair, sizes={"n": 2})
    assert isinstance(verdict, AtSizes)
    claim = verdict.certificate.claim
    assert dict(claim.sizes)["n"] == 2 and set(claim.every) == {"h", "p"}
    rows = verdict.invariant.rows
    assert "4 of its indices" in why_not(replace(claim, every=("n",)), rows)
    wide, *_ = enough(claim, False)
    assert dict(wide.sizes)["n"] == 4
    small = tuple((name, 1 if name in "hp" else 4) for name, _ in wide.sizes)
    assert isinstance(close(state(replace(claim, sizes=small, every=()), False)), Differs)


@pytest.mark.ci
@pytest.mark.parametrize(
    "name", ["deltanet", *(pytest.param(n, marks=pytest.mark.ci) for n in SLOWER)]
)
def test_shipped_delta_rules_against_their_updates_multiplied_out(name: str) -> None:
    update = {
        "deltanet": "S = S[i-1] + (β * k) ⊗ (v - k · S[i-1])",
        "gated_deltanet": "S = α * S[i-1] - (α * β * k) ⊗ (k · S[i-1]) + (β * k) ⊗ v",
        "rwkv7": "S = w * S[i-1] + x ⊗ v - (a * κ) ⊗ sum[n](κ * S[i-1])",
    }[name]
    text = f"mixer written extends {name} {{\n  {update}\n}}"
    written = SpecText(Place(Path("w.dsf")), parse(Source("w.dsf", text))).compilation("written")
    verdict = equivalent(dsfc.load(name).system, written.system)
    assert isinstance(verdict, Proved)
    claim = verdict.certificate.claim
    assert set(claim.every) == {name for name, _ in claim.sizes}


# --- rows that are no family ----------------------------------------------------------------------


def with_row(rows: tuple[Row, ...], k: int, row: Row) -> tuple[Row, ...]:
    return (*rows[:k], row, *rows[k + 1 :])


def scaled(row: Row, generator: str) -> Row:
    terms = tuple(
        (cells, tuple((tuple(sorted((*m, (generator, 1)))), c) for m, c in p))
        for cells, p in row.terms
    )
    return replace(row, terms=terms)


@pytest.fixture(scope="module")
def rule(of: Callable) -> tuple[Claim, tuple[Row, ...]]:
    claim = claim_of(of("rule"), of("rule"), n=2, p=1)
    return claim, rows_of(claim)


def test_the_rows_themselves_are_a_family(rule: tuple[Claim, tuple[Row, ...]]) -> None:
    claim, rows = rule
    assert [row.pivot for row in rows] == [("$A.S[1,0]",), ("$A.S[0,0]",)]
    assert why_not(replace(claim, every=("n", "p")), rows) == ""


@pytest.mark.parametrize(
    "generators, reason",
    [
        # A factor is none of the row's business; where it carries, its entries cannot be 0.
        (("v[0]@0", "v[0]@0"), ""),
        (("v[0]@0", ""), ""),
        (("k[0]@0", "k[0]@0"), "indices of it that its pivot has not"),
        (("k[0]@0", ""), "indices of it that its pivot has not"),
        (("k[1]@0", "k[0]@0"), "factor of every term"),
        (("k[1]@0", "q[0]@0"), "factor of every term"),
        (("nothing[1]@0", "nothing[0]@0"), "in neither of the two"),
        (("exp(k[1]@0)", "exp(k[0]@0)"), "in neither of the two"),
    ],
)
def test_factors_of_rows(
    rule: tuple[Claim, tuple[Row, ...]], generators: tuple[str, str], reason: str
) -> None:
    claim, rows = rule
    for k, generator in enumerate(generators):
        rows = with_row(rows, k, scaled(rows[k], generator)) if generator else rows
    assert why_not(claim, rows) == ""
    found = why_not(replace(claim, every=("n",)), rows)
    assert reason in found and bool(found) == bool(reason)


def test_a_row_of_one_index_alone_is_no_row_of_the_other(
    rule: tuple[Claim, tuple[Row, ...]],
) -> None:
    claim, rows = rule
    other = next(cells for cells, _ in rows[0].terms if cells != rows[0].pivot)
    turned = with_row(rows, 0, replace(rows[0], pivot=other))
    assert why_not(claim, turned) == ""
    assert "none for other indices" in why_not(replace(claim, every=("n",)), turned)


@pytest.mark.parametrize(
    "a, b",
    [("rule", "other_rule"), ("rule", "mean_rule"), ("by_index", "no_index")],
)
def test_what_is_equal_at_one_alone(of: Callable, a: str, b: str) -> None:
    at_one = claim_of(of(a), of(b), n=1, p=1)
    if b == "mean_rule":
        at_one = claim_of(of(a), of(a), n=1, p=1)
    rows = rows_of(at_one)
    assert why_not(at_one, rows) == ""
    assert why_not(replace(at_one, every=("n",)), rows)


@pytest.mark.parametrize(
    "name, reason",
    [
        ("by_index", "iota"),
        ("swish", "factor of every term"),
        ("mean_rule", ""),
        ("delayed", "read at another token"),
        ("as_ratio", "divides by states"),
    ],
)
def test_what_is_no_sum_says_why(of: Callable, name: str, reason: str) -> None:
    found = left_at(claim_of(of(name), of(name), n=2, p=1))
    assert reason in found and (name == "mean_rule" or bool(found) == bool(reason))


def test_one_token_divides_by_no_state_and_has_no_state_beside(of: Callable) -> None:
    for name, state_, reason in (
        ("divided", "R", "an update divides by a value of the state"),
        ("divided", "T", "`T` is kept beside the states"),
    ):
        claim = claim_of(of(name), of(name), n=2, p=1)
        kinds = kinds_of(claim)
        side = OneStep(claim, 0, False, kinds, kinds["n"], entries(claim.a))
        assert not side.after("S").divided
        with pytest.raises(NoCount, match=reason):
            side.after(state_)


@pytest.mark.parametrize(
    "body, n",
    [
        ("t = t[i-1] - k * (k · t[i-1]) + k\n y = t[i-1]", 2),
        ("t = t[i-1] - k * (k · t[i-1]) + k\n y = q · t[i-1]", 2),
        ("t = t[i-1] - k * (k · t[i-1]) + k\n y = q · t", 2),
        ("t = t[i-1] - k * (k · t[i-1]) + k\n y = (q · t) * (k · t)", 4),
        ("t = t[i-1] + k\n y = q · k * v", 1),
        ("t = t[i-1] + k * sum[p](v)\n y = t", 1),
        ("t = t[i-1] + k\n y = 1 / (q · t)", None),
    ],
)
def test_how_many_indices_one_token_has(body: str, n: int | None) -> None:
    source = f"mixer m {{ dims n, p\n input q, k : n; v : p\n state t : n\n {body}\n}}\n"
    made = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", source))).compilation("m").system
    claim = claim_of(made, made, n=2, p=1)
    assert one_token(claim, False, "n") == n
    assert one_token(claim, False, "r") is None


def test_a_row_renamed_is_one_up_to_a_factor() -> None:
    def row(k: int, more: dict[str, Polynomial]) -> Terms:
        return {
            (f"{name}[{k}]",): p
            for name, p in ({"x": POLYNOMIAL_ONE, "y": constant(3)} | more).items()
        }

    def rows(**more: Polynomial) -> dict[CellMonomial, Terms]:
        """Of the second, the entries."""
        return {("x[0]",): row(0, {}), ("x[1]",): row(1, more)}

    def swapped(name: str) -> str:
        return name.translate(str.maketrans("01", "10"))

    first = ("x[0]",)
    _check_renamed(first, rows(), swapped)
    _check_renamed(first, rows(x=constant(2), y=constant(6)), swapped)
    for other in (rows(z=POLYNOMIAL_ONE), rows(y=constant(2)), {first: row(0, {})}):
        with pytest.raises(NoCount, match="none for other indices"):
            _check_renamed(first, other, swapped)
    with pytest.raises(NoCount, match="none for other indices"):
        _check_renamed(("x[1]",), rows(z=POLYNOMIAL_ONE), swapped)


def test_a_name_with_an_index_spells_it() -> None:
    symbols = Symbols()
    symbols.leaf("x[0]", real=True, spelled=GeneratorIndices((("n", 0),)))
    symbols.leaf("x", real=True, spelled=GeneratorIndices((("n", 0),)))
    names = Names(symbols, frozenset({"n"}))
    assert names.renamed("x[0]", {0: 1}) == "x[1]"
    with pytest.raises(NoCount, match="does not spell its indices"):
        names.renamed("x", {0: 1})
    with pytest.raises(NoCount, match="stands in a row of the proof and in neither of the two"):
        names.of("z[0]")


def test_a_function_has_the_indices_of_what_it_does_not_run_over() -> None:
    symbols = Symbols()
    x = [
        symbols.leaf(f"x[{n}]@1", real=True, spelled=GeneratorIndices((("n", n),))) for n in (0, 1)
    ]
    z = symbols.leaf("z[1]@1", real=True, spelled=GeneratorIndices((("p", 1),)))
    names = Names(symbols, frozenset({"n"}))
    to = {0: 1, 1: 0}

    def renamed(q: Quotient) -> tuple[frozenset[int], str]:
        (name,) = q.names
        return names.of(name), names.renamed(name, to)

    def name(q: Quotient) -> str:
        return next(iter(q.names))

    assert renamed(symbols.exp(x[0])) == ({0}, name(symbols.exp(x[1])))
    assert renamed(symbols.exp(x[0] * x[1] * z)) == ({0, 1}, name(symbols.exp(x[0] * x[1] * z)))
    assert renamed(symbols.exp(z)) == (set(), name(symbols.exp(z)))
    # Of what runs over the axis the arguments stay, and its own index is another.
    norms = [symbols.along("l2norm", tuple(x), at, "n") for at in (0, 1)]
    assert renamed(norms[0]) == ({0}, name(norms[1]))
    across = symbols.along("l2norm", (x[0], x[0] * z), 1, "p")
    assert renamed(across) == ({0}, name(symbols.along("l2norm", (x[1], x[1] * z), 1, "p")))
    # At a later token it is the same.
    later = [shifted(name(symbols.exp(v)), -1) for v in x]
    assert names.renamed(later[0], to) == later[1] and names.of(later[0]) == {0}
    assert list(names.arrays(later[0])) == ["exp", "x"]


# --- norms along the axis -------------------------------------------------------------------------


def test_norms_are_arrays_of_their_own(of: Callable) -> None:
    claim = claim_of(of("normed_key"), of("normed_state"), n=1, p=1)
    assert why_not(replace(claim, every=("n", "p")), rows_of(claim)) == ""


@pytest.mark.parametrize("name", ["normed_below", "normed_in_exp"])
def test_norms_below_or_in_functions_carry_nothing(of: Callable, name: str) -> None:
    assert "factor of every term" in left_at(claim_of(of(name), of(name), n=2, p=1))


def test_norms_along_two_axes_of_one_size_are_two(of: Callable) -> None:
    """At n = p both divide c by the same root; at other sizes they do not."""
    claim = claim_of(of("normed_n"), of("normed_p"), n=2, p=2)
    assert isinstance(close(state(claim, False)), Differs)


# --- updates at random ----------------------------------------------------------------------------

KEYS = ("k", "q", "exp(k)", "l2norm[n](k)", "(k + q)", "silu(k)", "(k * q)", "(elu(q) + 1)", "z")
GAINS = ("1", "a", "exp(-a)", "(k · q)", "(q · q) ^ 2", "sum[n](z)", "first", "(1 / (1 + q · q))")


def drawn(rng: random.Random) -> tuple[str, str]:
    """A coupled update, and the same of its state in another basis, often wrongly."""
    key, other, written = (rng.choice(KEYS) for _ in range(3))
    gain, more = rng.choice(GAINS), rng.choice(GAINS)
    left = f"""state S : n × p
  S = {gain} * S[i-1] - {more} * {key} ⊗ ({other} · S[i-1]) + {written} ⊗ v
  y = q · S"""
    scale = rng.choice(("2", "e", "e", "(1 + c^2)"))
    back = rng.choice((scale, scale, scale, "c"))
    right = f"""state S : n × p
  r = ({other} / {back}) · S[i-1]
  S = {gain} * S[i-1] - {more} * ({key} * {scale}) ⊗ r + ({written} * {scale}) ⊗ v
  y = (q / {scale}) · S"""
    return left, rng.choice((left.replace("- ", "+ -1 * "), right, right))


@pytest.mark.full
def test_families_at_random_hold_at_one_more() -> None:
    head = """mixer m {{ dims n, p
  input q, k, z : n;  v : p
  param e : n positive
  param a, c
  {}
}}"""
    rng, claimed, equal = random.Random(11), 0, 0
    for _ in range(200):
        a, b = (
            SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", head.format(text))))
            .compilation("m")
            .system
            for text in drawn(rng)
        )
        for n in (1, 2):
            claim = claim_of(a, b, n=n, p=1)
            try:
                rows = close(state(claim, False))
            except (Obstacle, ValueError):
                continue
            if isinstance(rows, Differs) or why_not(replace(claim, every=("n",)), rows):
                continue
            claimed += 1
            more = replace(claim, sizes=(("n", n + 1), ("p", 1)))
            found = close(state(more, False))
            equal += not isinstance(found, Differs) and why_not(more, found) == ""
    assert claimed == equal >= 40
