"""Witnesses: executed, simple, shortest, and replayed by a program of their own."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.refute import refute
from dsfc.prover.replay import script
from dsfc.prover.report import as_json, report
from dsfc.prover.sizes import chosen
from dsfc.prover.verdict import Refuted
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted.claim import Claim

LABELS = tomllib.loads((Path(__file__).parent / "labels.toml").read_text(encoding="utf-8"))
TIERS = {"laws": pytest.mark.full}
DIFFERENT = [
    pytest.param(f, a, b, marks=() if f == "linear" else TIERS.get(f, pytest.mark.ci))
    for f, table in LABELS.items()
    for a, b, _ in table.get("different", ())
]
LEAST = {
    ("product_of_parts", "squares_of_modes"): 2,
    ("headed", "summed"): 2,
    ("rule", "with_gram"): 3,
    ("weights_plain", "weights_scaled"): 2,
}
"""Pairs that are equal at smaller sizes: one mode, one head or weight, vectors of two entries."""


def refuted(a, b, least: int = 1) -> Refuted:
    found = refute(Claim(a, b, (), chosen(a, b, least)))
    assert found is not None
    return found


def replay(text: str, path: Path) -> subprocess.CompletedProcess[str]:
    path.write_text(text, encoding="utf-8")
    return subprocess.run([sys.executable, "-I", "-S", path], capture_output=True, text=True)


@pytest.mark.share(6, ci=24)
@pytest.mark.parametrize("file, a, b", DIFFERENT)
def test_a_program_without_dsfc_says_the_same(
    system: Callable, tmp_path: Path, file: str, a: str, b: str
) -> None:
    found = refuted(system(file, a), system(file, b), LEAST.get((a, b), 1))
    text = script(found, a, b)
    run = replay(text, tmp_path / "replay.py")
    assert run.returncode == 0, run.stderr
    spoiled = text.replace("assert apart(left, right)", "assert not apart(left, right)")
    assert replay(spoiled, tmp_path / "spoiled.py").returncode == 1
    assert "dsfc" not in "".join(x for x in text.splitlines() if x.startswith(("import", "from")))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "pair",
    [
        ("retnet", "linear_attn"),
        ("rwkv5", "rwkv6"),
        ("deltanet", "gated_deltanet"),
        ("dlr", "gla_block"),
    ],
)
def test_a_program_for_shipped_specs(pair: tuple[str, str], tmp_path: Path) -> None:
    systems = [dsfc.load(name).system for name in pair]
    run = replay(script(refuted(*systems), *pair), tmp_path / "replay.py")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "file, a, b, length",
    [
        ("attention", "post", "double", 1),
        ("attention", "post", "normaliser_inside", 2),
        ("linear", "taps_two", "taps_three", 3),
        ("linear", "taps_three", "taps_far", 3),
        ("linear", "delta_rule", "delta_as_linear", 2),
    ],
)
def test_the_sequence_is_as_short_as_can_be(
    system: Callable, file: str, a: str, b: str, length: int
) -> None:
    found = refuted(system(file, a), system(file, b))
    assert found.witness.length == length and found.shortest


def test_numbers_are_simple(system: Callable) -> None:
    found = refuted(system("attention", "post"), system("attention", "double"))
    entries = [v for _, values in found.witness.values for v in values]
    assert set(entries) <= {(0, 1, 0, 1), (1, 1, 0, 1)}
    assert dict(found.certificate.claim.sizes) == {"h": 1, "n": 1, "p": 1}


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "file, a, b",
    [
        ("modes", "product_of_parts", "squares_of_modes"),
        ("members", "headed", "summed"),
        ("delta", "rule", "with_gram"),
    ],
)
def test_below_the_least_sizes_there_is_no_witness(
    system: Callable, file: str, a: str, b: str
) -> None:
    left, right = system(file, a), system(file, b)
    assert refute(Claim(left, right, (), chosen(left, right, LEAST[a, b] - 1))) is None


def test_equal_mixers_have_no_witness(system: Callable) -> None:
    a, b = system("attention", "post"), system("attention", "eta_gauge")
    assert refute(Claim(a, b, (), chosen(a, b, 2))) is None


def test_what_differs_at_two_entries_only_is_refuted_there() -> None:
    """softmax and linear attention need no state for a witness: definitions are executed."""
    verdict = equivalent(dsfc.load("softmax").system, dsfc.load("linear_attn").system)
    assert isinstance(verdict, Refuted)


@pytest.mark.parametrize("pair", ["ab", "ba"])
def test_a_parameter_is_no_buffer_of_the_other(tmp_path: Path, pair: str) -> None:
    text = """
mixer a { dims n
  input u : n
  param g : n
  y = g * u
}
mixer b { dims n
  input u : n
  buffer g : n = 1 / 3
  y = g * u
}
"""
    spec = SpecText(Place(Path("mine.dsf")), parse(Source("mine.dsf", text)))
    found = refuted(*(spec.compilation(name).system for name in pair))
    name = {"ab": "g", "ba": "b:g"}[pair]
    assert dict(found.witness.values)[name] == ((0, 1, 0, 1),)
    run = replay(script(found, "a", "b"), tmp_path / "replay.py")
    assert run.returncode == 0, run.stderr


NEGATIVE_BASES = """
mixer one { dims n
  input u : n
  param a : n positive
  y = tanh(-exp(u))^a
}
mixer other { dims n
  input u : n
  param a : n positive
  y = 2 * tanh(-exp(u))^a
}
mixer one_complex { dims n
  input u : n
  param a : n positive
  param w : n complex
  y = Re(w * tanh(-exp(u))^a)
}
mixer other_complex { dims n
  input u : n
  param a : n positive
  param w : n complex
  y = Re(w * w * tanh(-exp(u))^a)
}
"""


@pytest.mark.parametrize("kind", ["", "_complex"])
def test_a_power_of_a_negative_number_is_replayed(tmp_path: Path, kind: str) -> None:
    """It exists where the exponent is an integer, and is no exponential of a logarithm."""
    text = SpecText(Place(Path("bases.dsf")), parse(Source("bases.dsf", NEGATIVE_BASES)))
    a, b = (text.compilation(name + kind).system for name in ("one", "other"))
    run = replay(script(refuted(a, b), "one", "other"), tmp_path / "replay.py")
    assert run.returncode == 0, run.stderr


POWERS_OF_ZERO = """
mixer one { dims n
  input u : n
  param a : n positive
  y = exp(u) + relu(-exp(u))^a
}
mixer other { dims n
  input u : n
  param a : n positive
  y = 2 * exp(u) + relu(-exp(u))^a
}
mixer one_complex { dims n
  input u : n
  param a : n positive
  param w : n complex
  y = Re(w * exp(u) + relu(-exp(u))^a)
}
mixer other_complex { dims n
  input u : n
  param a : n positive
  param w : n complex
  y = Re(2 * w * exp(u) + relu(-exp(u))^a)
}
"""


@pytest.mark.parametrize("kind", ["", "_complex"])
def test_a_positive_power_of_0_is_replayed_as_0(tmp_path: Path, kind: str) -> None:
    text = SpecText(Place(Path("powers.dsf")), parse(Source("powers.dsf", POWERS_OF_ZERO)))
    a, b = (text.compilation(name + kind).system for name in ("one", "other"))
    run = replay(script(refuted(a, b), "one", "other"), tmp_path / "replay.py")
    assert run.returncode == 0, run.stderr


NESTED = """
mixer one { dims n, m
  input u : n
  param M : n × m
  y = sum[m](M * rename[n, m](u))
}
mixer other { dims n, m
  input u : n
  param M : n × m
  y = sum[m](M * rename[n, m](sum[m](M * rename[n, m](u))))
}
mixer one_map { dims n
  input u : n
  param M : n -> n
  y = M u
}
mixer other_map { dims n
  input u : n
  param M : n -> n
  y = M (M u)
}
"""


@pytest.mark.parametrize("kind", ["", "_map"])
def test_indices_of_loops_inside_loops_are_their_own(tmp_path: Path, kind: str) -> None:
    text = SpecText(Place(Path("nested.dsf")), parse(Source("nested.dsf", NESTED)))
    found = refuted(*(text.compilation(name + kind).system for name in ("one", "other")), least=2)
    values = {"u": (1, 0), "M": (1, 2, 3, 4)}
    point = tuple((n, tuple((x, 1, 0, 1) for x in v)) for n, v in values.items())
    witness = replace(found.witness, length=1, values=point, token=0, index=(0,))
    found = replace(found, certificate=replace(found.certificate, proof=witness))
    run = replay(script(found, "one", "other"), tmp_path / "replay.py")
    assert "a: 1\nb: 7\n" in run.stdout, run.stderr


FAR = "mixer near { input u; y = u }\nmixer far { input u; y = u + %s }\n"


@pytest.mark.parametrize(
    "number", ["exp(exp(7))", " * ".join(["exp(exp(8))"] * 4), " * ".join(["7^60"] * 7)]
)
def test_numbers_that_no_double_holds_are_shown(tmp_path: Path, number: str) -> None:
    """e^e^7 has 477 digits, and Python's integers write no more than 4,300."""
    text = SpecText(Place(Path("far.dsf")), parse(Source("far.dsf", FAR % number)))
    found = refuted(*(text.compilation(name).system for name in ("near", "far")))
    assert re.search(r"far: \d\.\d+e\+\d{3,4} \(error below", report(found, "near", "far"))
    assert len(as_json(found)["b"]["re"][0]) > 350
    run = replay(script(found, "near", "far"), tmp_path / "replay.py")
    assert run.returncode == 0, run.stderr
