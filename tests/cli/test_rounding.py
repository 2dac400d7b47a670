"""`dsfc rounding`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

SPEC = """
mixer faded { dims d
  input u : d
  param w : d
  state x : d
  x = 0.5 * x[i-1] + u
  y = w * x
}
"""

DIVIDED = """
mixer divided { dims d
  input u, w : d
  y = u / (1 + w)
}
"""

FEW = ("--size", "d=2", "--mode", "recurrent", "--dtype", "float32")


def test_a_bound_stands_beside_what_was_seen(run: Callable, spec: Callable) -> None:
    where = ("--for", "abs(u) <= 1, abs(w) <= 1, L == 6")
    found = run("rounding", str(spec(SPEC)), *where, *FEW, "--format", "json")
    assert found.exit_code == 0
    (row,) = json.loads(found.output)["rows"]
    assert 0 < row["seen"] <= row["bound"] < 1e-5
    assert row["seen"] * (1 - 1e-9) <= row["as run"] <= row["here"] <= row["bound"]
    assert row["sources"][0]["alone"] <= row["bound"]
    assert not row["warnings"]
    said = run("rounding", str(spec(SPEC)), *where, *FEW)
    assert said.output.startswith("faded: no output is off by more than ")
    assert "where the bound comes from" in said.output


def test_a_division_by_0_is_warned_of_with_a_domain_that_rules_it_out(
    run: Callable, spec: Callable
) -> None:
    where = ("--for", "abs(u) <= 1, abs(w) <= 2, L == 3")
    found = run("rounding", str(spec(DIVIDED)), *where, *FEW)
    assert found.exit_code == 5
    assert "division by 0 is not ruled out" in found.output
    assert "ruled out with bounds of inputs times 0.375" in found.output
    near = ("--for", "abs(u) <= 1, abs(w) <= 0.74, L == 3")
    assert run("rounding", str(spec(DIVIDED)), *near, *FEW).exit_code == 0


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        ("abs(u) <= 1", "give one length"),
        ("abs(u) <= 1, L <= 8", "for one length"),
        ("L == 8", "`u` has no bounds on both sides"),
        ("abs(v) <= 1, L == 8", "v"),
        ("norm[d](u) <= 1, L == 8", "entry by entry"),
    ],
)
def test_a_mistake_in_the_domain_has_its_place(
    run: Callable, spec: Callable, domain: str, said: str
) -> None:
    found = run("rounding", str(spec(SPEC)), "--for", domain, *FEW)
    assert found.exit_code == 1
    assert "--for:1:" in found.output
    assert said in found.output
