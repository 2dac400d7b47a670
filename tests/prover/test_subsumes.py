"""Whether one mixer is a case of another: labelled pairs, and what is never mixed up."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import Kinds, kinds, subsumes
from dsfc.prover.subsumes_report import kind, kinds_json, kinds_report
from dsfc.prover.verdict import Conditionally, Instance, NotAnInstance, Proved, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import SeparatingSequences
from dsfc.trusted.rejected import Rejected

EVERY = tomllib.loads((Path(__file__).parent / "labels.toml").read_text(encoding="utf-8"))
LABELS, LATTICE, DENSE = EVERY["cases"], EVERY["lattice"], EVERY["dense"]


@pytest.mark.parametrize(
    "a, b, _",
    [pytest.param(*row, marks=[pytest.mark.ci] * ("T8d" not in row[2]))
     for row in LABELS["no_case"]],
)  # fmt: skip
def test_what_is_no_case_is_refuted(system: Callable, a: str, b: str, _) -> None:
    found = subsumes(system("cases", a), system("cases", b))
    assert isinstance(found, NotAnInstance), found
    assert check(write(found.certificate)).claim == found.certificate.claim


@pytest.mark.share(8)
@pytest.mark.parametrize("a, b, _", [pytest.param(*row, id="-".join(row[:2]))
                                     for row in DENSE["no_case"]])  # fmt: skip
def test_what_is_no_sum_of_powers_is_refuted(system: Callable, a: str, b: str, _) -> None:
    """T14 and T18, for any number of modes."""
    found = subsumes(system("dense", a), system("dense", b))
    assert isinstance(found, NotAnInstance), found
    assert found.proof.recurrence and not found.proof.always
    assert check(write(found.certificate)).claim == found.certificate.claim
    assert "no sum of powers" in "".join(kinds_report(Kinds(found, found, found), "a", "b"))


@pytest.mark.share(4)
@pytest.mark.parametrize("a, b, _", [pytest.param(*row, id="-".join(row[:2]))
                                     for row in DENSE["case"][1:]])  # fmt: skip
def test_what_is_a_sum_of_powers_is_a_case(system: Callable, a: str, b: str, _) -> None:
    """T14 and T18: of one output and input, where the eigenvalues are quotients of parameters."""
    found = subsumes(system("dense", a), system("dense", b), conditions=True)
    assert isinstance(found, Instance), found
    assert check(write(found.certificate)).claim == found.certificate.claim


def test_parameters_of_one_name_are_told_apart(system: Callable) -> None:
    """The modes of a sum are as many as those of both summands, whatever the axes are called."""
    one, many = system("dense", "sum_of_outputs"), system("dense", "modes")
    found = subsumes(one, many, conditions=True)
    assert isinstance(found, Instance) and found.certificate.claim.apart
    assert dict(found.certificate.claim.sizes) == {"m": 2, "n": 2, "n_": 4}
    text = kinds_report(Kinds(found, found, found), "a", "b")
    assert "w_[2] = v[0]" in text and "a name with _ at the end" in text and "~" not in text


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "a, b", [("rotation_block", "real_modes"), ("jordan_series", "modes"), ("series", "modes")]
)
def test_what_no_modes_were_found_for(system: Callable, a: str, b: str) -> None:
    """Eigenvalues that are not real, one eigenvector, and two that may have one eigenvalue."""
    found = subsumes(system("dense", a), system("dense", b), conditions=True)
    assert not isinstance(found, Instance)


@pytest.mark.parametrize("row", DENSE["slots"], ids=lambda row: "-".join(row[:2]))
def test_a_filter_fills_a_slot(system: Callable, row: list[str]) -> None:
    found = subsumes(system("dense", row[0]), system("dense", row[1]), conditions=True)
    assert isinstance(found, Instance) and kind(found, ("z",)) == "SLOT(window 3)"
    assert check(write(found.certificate)).claim == found.certificate.claim


def test_a_complex_decay_fills_two_real_slots(system: Callable) -> None:
    """T20: GateLoop."""
    left, right = system("members", "looped"), system("members", "template_complex")
    found = subsumes(left, right, conditions=True)
    assert isinstance(found, Instance) and kind(found, ("alpha1", "alpha2")) == "SLOT(token)"


@pytest.mark.share(4)
@pytest.mark.parametrize("a, b, _", [pytest.param(*row, id="-".join(row[:2]))
                                     for row in LABELS["no_case_here"]])  # fmt: skip
def test_what_constant_sequences_do_not_show_short_ones_do(
    system: Callable, a: str, b: str, _
) -> None:
    found = subsumes(system("cases", a), system("cases", b))
    assert isinstance(found, NotAnInstance) and isinstance(found.proof, SeparatingSequences), found
    assert check(write(found.certificate)).claim == found.certificate.claim
    text = kinds_report(Kinds(found, found, found), "first", "second")
    assert "leaves a number other than 0" in text and "refuted, for no parameters" in text


@pytest.mark.full
@pytest.mark.parametrize("a, b, _", EVERY["members"]["no_case"])
def test_scores_of_heads_are_no_scores_of_another_kind(system: Callable, a: str, b: str, _) -> None:
    """T27: neither form contains the other."""
    assert isinstance(subsumes(system("members", a), system("members", b)), NotAnInstance)


@pytest.mark.full
@pytest.mark.parametrize("a, b, _", LABELS["case"])
def test_what_is_a_case_is_not_refuted(system: Callable, a: str, b: str, _) -> None:
    assert isinstance(subsumes(system("cases", a), system("cases", b)), Unknown)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["case", "no_case"])
def test_no_label_is_contradicted(system: Callable, kind: str) -> None:
    shown = []
    for a, b, _ in LABELS[kind]:
        found = subsumes(system("cases", a), system("cases", b), conditions=True)
        assert isinstance(found, {"case": (Instance, Unknown), "no_case": NotAnInstance}[kind]), (
            a,
            b,
        )
        shown += [(a, b)] * isinstance(found, Instance)
    if kind == "case":
        assert {tuple(row[:2]) for row in LABELS[kind]} == set(shown)


@pytest.mark.full
def test_values_inside_functions_are_found_and_named(system: Callable) -> None:
    """T20: a decay that is 1 where r is 0, and one that is 1/2 where it is made so."""
    for a, b, values in (
        ("plain", "selective_any", "r[h] = 0;"),
        ("fixed_half", "decayed", "s[h] = log(2);"),
        ("plain", "fixed_one", "parameters of one name are equal"),
        ("decayed", "decayed_by_tanh", "g[h] = -1/2 * log(-1+exp(s[h])) + 1/2 * log(1+exp(s[h]));"),
        ("decayed_by_tanh", "decayed_freely", "g_[h] = "),
    ):
        found = subsumes(system("cases", a), system("cases", b), conditions=True)
        assert isinstance(found, Instance), found
        text = kinds_report(Kinds(found, found, found), a, b)
        assert f"  values     {values}" in text


def test_a_parameter_is_given_the_value_of_a_buffer_of_its_name() -> None:
    """They are two arrays: the buffer's mixer is a case of the parameter's, and not the reverse."""
    text = """
mixer fixed { dims n
  input u : n
  buffer c : n = 2
  y = c * u
}
mixer free { dims n
  input u : n
  param c : n
  y = c * u
}
"""
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    fixed, free = (read.compilation(name).system for name in ("fixed", "free"))
    found = kinds(fixed, free, conditions=True)
    assert isinstance(found.equal, Refuted | Conditionally) and isinstance(found.forth, Instance)
    assert not isinstance(found.back, Instance)
    assert "the second's c[n] = 2" in kinds_report(found, "fixed", "free")
    assert isinstance(equivalent(fixed, free), Refuted)
    assert isinstance(equivalent(free, fixed), Refuted)


def test_an_update_may_lack_a_value_where_the_first_does() -> None:
    """log(u) in the same update of both, and r = 0 beside it."""
    text = """
mixer first { dims n
  input u : n
  state s : n
  s = s[i-1] + log(u)
  y = s
}
mixer second { dims n
  input u : n
  param r
  state s : n
  s = exp(r * u) * s[i-1] + log(u)
  y = s
}
mixer later { dims n
  input u : n
  param r
  state s, t : n
  s = s[i-1] + log(u)
  t = t[i-1] + r * log(u)
  y = s + t
}
mixer read_before { dims n
  input u : n
  param r
  state s, t : n
  s = s[i-1] + log(u)
  t = t[i-1] + r * log(u - 1)
  y = s + t[i-1]
}
"""
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    first, *others = (
        read.compilation(n).system for n in ("first", "second", "later", "read_before")
    )
    found = [subsumes(first, b, conditions=True) for b in others]
    assert [isinstance(f, Instance) for f in found] == [True, True, False]


@pytest.mark.full
def test_the_statements_are_not_mixed(system: Callable) -> None:
    """Two mixers that differ for equal parameters may still be cases of one another."""
    attention, plain = system("cases", "normalised"), system("cases", "plain")
    found = kinds(plain, attention)
    assert isinstance(found.equal, Refuted)
    assert isinstance(found.forth, Unknown) and isinstance(found.back, NotAnInstance)
    assert kinds_json(found)["ISO"] == {"verdict": "refuted"}
    found = kinds(attention, system("cases", "selective"))
    assert isinstance(found.equal, Refuted)
    assert isinstance(found.forth, NotAnInstance) and isinstance(found.back, NotAnInstance)
    assert kinds_json(found)["ISO"] == {"verdict": "refuted"}


@pytest.mark.ci
def test_what_is_equal_is_said_once(system: Callable) -> None:
    found = kinds(system("cases", "normalised"), system("cases", "normalised_window"))
    assert isinstance(found.equal, Proved) and found.forth is found.back is None
    assert kinds_report(found, "a", "b") == "" and kinds_json(found) == {}


@pytest.mark.full
def test_normalised_attention_is_no_case_of_s6() -> None:
    """T8d, for all sizes: of S6 those of its state, of attention its width, heads and keys."""
    import dsfc

    attention, s6 = dsfc.load("normalized_attn").system, dsfc.load("s6").system
    found = subsumes(attention, s6)
    assert isinstance(found, NotAnInstance)
    assert found.certificate.claim.every == ("n", "r")
    assert found.proof.larger == ("d", "h", "n", "p") and found.proof.always
    assert isinstance(subsumes(s6, attention), NotAnInstance)


@pytest.mark.share(2)
@pytest.mark.parametrize("diagonal", ["dlr", "lru"])
def test_dense_linear_rnns_are_no_case_of_diagonal_ones(diagonal: str) -> None:
    """T14: a Jordan block, of which one entry holds no mode of its own."""
    import dsfc

    found = subsumes(dsfc.load("linear_rnn").system, dsfc.load(diagonal).system)
    assert isinstance(found, NotAnInstance)
    values = dict(found.proof.values)
    assert [p for p, *_ in values["A"]] == [1, 1, 0, 1]
    assert found.proof.recurrence == ((1, 1), (-2, 1), (1, 1))
    assert found.certificate.claim.every == ("n",)


def slots_of(system: Callable, row: list[str], **options):
    found = subsumes(system("lattice", row[0]), system("lattice", row[1]), **options)
    return found, kind(found, ("alpha", "kappa"))


@pytest.mark.share(6)
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[pytest.mark.full] * (row[0] == "convex"), id="-".join(row[:2]))
     for row in LATTICE["slots"]],
)  # fmt: skip
def test_functions_that_fill_slots_are_told_apart_by_what_they_read(system: Callable, row) -> None:
    found, statement = slots_of(system, row, conditions=True)
    assert isinstance(found, Instance), found
    assert check(write(found.certificate)).claim == found.certificate.claim
    assert statement == f"SLOT({row[2]}{' 1' * (row[2] == 'window')})"


@pytest.mark.parametrize("row", LATTICE["no_slots"], ids=lambda row: "-".join(row[:2]))
def test_what_no_functions_of_the_last_tokens_do(system: Callable, row) -> None:
    found, statement = slots_of(system, row)
    assert isinstance(found, NotAnInstance) and statement == "SLOT(window)"


NO_TOKEN = [
    pytest.param(file, *row[:2], marks=[pytest.mark.ci] * (k > 0), id="-".join(row[:2]))
    for file in ("lattice", "members")
    for k, row in enumerate(EVERY[file]["no_token_slots"])
]


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize("file, a, b", NO_TOKEN)
def test_what_no_functions_of_the_token_do(system: Callable, file: str, a: str, b: str) -> None:
    """T20: what is no gated linear attention."""
    found = subsumes(system(file, a), system(file, b))
    assert isinstance(found, NotAnInstance), found
    assert check(write(found.certificate)).claim == found.certificate.claim
    assert (
        kind(found, ("alpha", "kappa")) == f"SLOT({'history' if found.reads is None else 'token'})"
    )


@pytest.mark.ci
def test_that_no_function_of_the_token_does_it_says_nothing_of_others(system: Callable) -> None:
    """ISO is one of all functions."""
    left, right = system("members", "shifted"), system("members", "gated")
    found = kinds(left, right)
    assert isinstance(found.forth, NotAnInstance) and found.forth.reads == 0
    beside = Kinds(found.equal, found.forth, Unknown("", (), ""), found.slots)
    assert kinds_json(beside)["ISO"] == {"verdict": "unknown"}
    text = kinds_report(beside, "a", "b")
    assert "no functions of the token alone and no parameters" in text


def test_a_name_is_identified_both_ways(system: Callable) -> None:
    a, b = system("cases", "plain"), system("cases", "decayed")
    found = kinds(a, b, (("W_Q", "W_K"), ("W_K", "W_Q")))
    assert isinstance(found.forth, NotAnInstance) and isinstance(found.back, NotAnInstance)
    assert found.back.certificate.claim.names == (("W_K", "W_Q"), ("W_Q", "W_K"))


WIDE = """mixer mixing {{ dims d
  input u : d
  y = u + sum[d](u) ⊗ ones[d]
}}
mixer channels {{ dims d, {r}
  input u : d
  param e : r;  c : d
  y = sum[r](e) * c * u
}}
"""


def mixing_and_channels(r: str) -> tuple[System, System]:
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", WIDE.format(r=r))))
    return read.compilation("mixing").system, read.compilation("channels").system


def test_an_axis_whose_size_follows_from_others_has_no_other() -> None:
    shown = subsumes(*mixing_and_channels("r = 2 * d"))
    assert isinstance(shown, NotAnInstance)
    certificate = shown.certificate
    sizes = dict(certificate.claim.sizes)
    assert sizes["r"] == 2 * sizes["d"]
    check(write(certificate))
    for r, sized, why in (
        ("r", sizes, "all sizes are claimed of b's own axes"),
        ("r = 2", sizes, "all sizes are claimed of b's own axes"),
        ("s, r = 2 * s", {**sizes, "s": sizes["d"]}, "all sizes are claimed of b's own axes"),
        ("r = 2 * d", {**sizes, "r": 3}, "r = 2"),
    ):
        a, b = mixing_and_channels(r)
        assert r == "r = 2 * d" or isinstance(subsumes(a, b), Unknown)
        claim = dataclasses.replace(certificate.claim, a=a, b=b, sizes=tuple(sorted(sized.items())))
        with pytest.raises(Rejected, match=why):
            check(write(dataclasses.replace(certificate, claim=claim)))
