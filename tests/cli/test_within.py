"""`dsfc equiv --within`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

PAIR = """
mixer a { dims d
  input u : d
  state x : d
  x = 0.5 * x[i-1] + u
  y = x
}
mixer b { dims d, w = 8
  input u : d
  y = fir[w](ones[d] ⊗ 0.5^iota[w], u)
}
"""


@pytest.fixture
def pair(spec: Callable) -> tuple[str, str]:
    path = spec(PAIR)
    return f"{path}:a", f"{path}:b"


def test_a_bound_is_proved_and_its_certificate_checked(
    run: Callable, pair: tuple[str, str], folder: Path
) -> None:
    found = run(
        "equiv", *pair, "--within", "0.01", "--for", "abs(u) <= 1", "--certificate", "c.json"
    )
    assert found.exit_code == 0
    assert "a = b within 0.01: proved" in found.output
    assert "bound      7.82e-3" in found.output
    assert "sums: Sums over the past differ by the gap of their summands" in found.output
    checked = run("check-proof", "c.json", *pair)
    assert checked.exit_code == 0
    assert "accepted: a and b, outputs that differ by no more than 7.82e-3" in checked.output
    assert "abs(u) <= 1" in checked.output
    assert run("check-proof", "c.json", *pair[::-1]).exit_code == 1
    text = Path("c.json").read_text(encoding="utf-8")
    Path("d.json").write_text(text.replace('"high":"1"', '"high":"2"'), encoding="utf-8")
    assert "rejected" in run("check-proof", "d.json").output


def test_a_bound_is_refuted_at_a_point(run: Callable, pair: tuple[str, str], folder: Path) -> None:
    found = run("equiv", *pair, "--within", "1e-3", "--for", "abs(u) <= 1", "--format", "json")
    assert found.exit_code == 4
    assert json.loads(found.output)["verdict"] == "refuted"


def test_unknown_has_a_code_of_its_own(run: Callable, pair: tuple[str, str]) -> None:
    found = run("equiv", *pair, "--within", "7.8e-3", "--for", "abs(u) <= 1", "--format", "json")
    assert found.exit_code == 5
    assert "the bound that is proved is larger" in json.loads(found.output)["obstacle"]


def test_a_mistake_in_the_domain_has_its_place(run: Callable, pair: tuple[str, str]) -> None:
    found = run("equiv", *pair, "--within", "0.01", "--for", "abs(uu) <= 1")
    assert found.exit_code == 1
    assert "--for:1:1" in found.output
    assert "did you mean `u`?" in found.output


@pytest.mark.parametrize(
    "options",
    [
        ("--for", "abs(u) <= 1"),
        ("--within", "-1"),
        ("--within", "1e999999999"),
        ("--within", "small"),
        ("--within", "1e-3", "--conditions"),
    ],
)
def test_what_does_not_go_together_is_a_wrong_command_line(
    run: Callable, pair: tuple[str, str], options: tuple[str, ...]
) -> None:
    assert run("equiv", *pair, *options).exit_code == 2


def test_inputs_of_other_names_may_be_identified(run: Callable, spec: Callable) -> None:
    text = PAIR.replace("w = 8\n  input u", "t = 8\n  input w")
    other = spec(
        text.replace("fir[w](ones[d] ⊗ 0.5^iota[w], u)", "fir[t](ones[d] ⊗ 0.5^iota[t], w)")
    )
    options = ("--within", "0.01", "--for", "abs(u) <= 1")
    assert run("equiv", f"{other}:a", f"{other}:b", *options).exit_code == 4
    found = run("equiv", f"{other}:a", f"{other}:b", *options, "--map", "w=u")
    assert found.exit_code == 0
    assert "names      the second reads u for w" in found.output


COMPLEX = """
mixer a { dims d
  input u : d
  param B : d complex
  z = B * u
  y = Re(z)
}
mixer b { dims d
  input u : d
  param B : d complex
  z = B * u
  y = Re(1.001 * z)
}
"""


@pytest.mark.parametrize("name", ["B", "z"])
def test_complex_values_have_no_order(run: Callable, spec: Callable, name: str) -> None:
    path = spec(COMPLEX)
    asked = ("equiv", f"{path}:a", f"{path}:b", "--size", "d=1", "--within", "0.01", "--for")
    found = run(*asked, f"abs(u) <= 1, 0 <= {name} <= 1")
    assert found.exit_code == 1
    assert "--for:1:14" in found.output
    assert f"bound its modulus, `abs({name})`" in found.output
    assert run(*asked, f"abs(u) <= 1, abs({name}) <= 1").exit_code == 0


ROLES = """
mixer a { dims d
  input u, x : d
  param v, w : d
  y = v * u + w * x
}
mixer b { dims d
  input u, x : d
  param r, w : d
  v = 100 * r
  y = 0.01 * v * u + 1.001 * w * x
}
mixer c { dims d
  input x : d
  param w : d
  y = w * x
}
mixer e { dims d
  input r : d
  param x : d
  y = r * (1.001 * x)
}
"""


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("abs(v)", "`v` is a definition of the second mixer"),
        ("abs(r)", "`r` of the second mixer is called `v`"),
    ],
)
def test_a_name_that_means_two_values_is_no_bound(
    run: Callable, spec: Callable, bound: str, said: str
) -> None:
    path = spec(ROLES)
    where = f"abs(u) <= 1, abs(x) <= 1, {bound} <= 1, abs(w) <= 1"
    asked = ("--size", "d=1", "--within", "0.01", "--for", where, "--map", "r=v")
    found = run("equiv", f"{path}:a", f"{path}:b", *asked)
    assert found.exit_code == 1
    assert "--for:1:27" in found.output
    assert said in found.output


def test_a_name_that_two_mixers_exchange_is_that_of_the_first(
    run: Callable, spec: Callable
) -> None:
    path = spec(ROLES)
    maps = ("--map", "r=x", "--map", "x=w")
    domain = ("--size", "d=1", "--for", "abs(x) <= 1, abs(w) <= 1")
    asked = ("equiv", f"{path}:c", f"{path}:e", *maps, *domain, "--within")
    assert run(*asked, "2.1").exit_code == 0
    assert run(*asked, "1e-4").exit_code == 4
