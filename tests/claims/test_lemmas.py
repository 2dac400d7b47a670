"""Lemmas: their hypotheses are decided, their pages run, and their steps are valid by z3."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.decide import lemma
from dsfc.api.pipeline import read
from dsfc.claims.lemmas import LEMMAS, Applies, Open

PAGES = Path(__file__).parents[2] / "docs" / "theory" / "lemmas"


def test_every_lemma_has_a_page_and_every_page_a_lemma() -> None:
    names = {path.stem for path in PAGES.glob("*.md")}
    assert names == {it.page for it in LEMMAS.values()} | {"index"}
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    for it in LEMMAS.values():
        title = (PAGES / f"{it.page}.md").read_text(encoding="utf-8").split("\n# ")[1]
        assert title.startswith(f"{it.name}: {it.title}\n")
        assert f"[{it.name}]({it.page}.md)" in index
        for part in ("**Statement.**", "**Proof.**", "∎"):
            assert part in title


@pytest.mark.parametrize("page", sorted(it.page for it in LEMMAS.values()))
def test_the_examples_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    cells = re.findall(r"```\{code-cell\} python3\n(.*?)```", text, re.S)
    space: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in cells:
            exec(compile(cell, page, "exec"), space)
    assert any("assert" in cell for cell in cells)
    if "found" in space:
        assert isinstance(space["found"], Applies)


GATED = """
mixer gated {{ dims n
  input u : n
  param w : n -> n
  {gate}
  state S : n
  S = f * S[i-1] + {drive}
  y = {read}
  {claims}
}}
"""
BOUND = "claim abs(decay(S)) <= 7/8\n  claim 0 <= 7/8 < 1"
LOCAL = "f = 7/8 * sigmoid(w u)"


@pytest.fixture
def said(tmp_path: Path) -> Callable[..., Applies | Open]:
    def say(name: str, names: dict[str, str], **parts: str) -> Applies | Open:
        file = tmp_path / "gated.dsf"
        filled = {"gate": LOCAL, "drive": "u", "read": "S", "claims": BOUND} | parts
        file.write_text(GATED.format(**filled), encoding="utf-8")
        return lemma(read(file).compilation("gated"), name, names)

    return say


RECENT = {"S": "S", "a": "7/8"}


def test_a_lemma_applies_where_all_hypotheses_are_proved(said: Callable) -> None:
    found = said("T32", RECENT)
    assert isinstance(found, Applies) and len(found.by) == 4 and "7/8^(t-s)" in found.says


@pytest.mark.parametrize(
    "parts, missing",
    [
        ({"claims": ""}, "not claimed"),
        ({"gate": "f = 2 * sigmoid(w u)"}, "not proved"),
        ({"claims": BOUND.replace("S)) <= 7/8", "S)) <= 7/8 when u > 0")}, "not claimed"),
        ({"gate": "f = 7/8 * sigmoid(w u[i-1])"}, "reads `u` at another token"),
        ({"gate": "state z : n\n  z = u + z[i-1] / 2\n  f = 7/8 * sigmoid(w z)"}, "Λ, B, C and D"),
        ({"drive": "u * u[i-2]"}, "reads `u` at another token"),
        ({"read": "S * u[i-1]"}, "reads `u` at another token"),
        ({"read": "u / (S + 1)"}, "y is not"),
        ({"read": "l2norm[n](S)"}, "y is not"),
    ],
)
def test_no_lemma_without_its_hypotheses(said: Callable, parts, missing: str) -> None:
    found = said("T32", RECENT, **parts)
    assert isinstance(found, Open) and missing in "; ".join(found.missing)


CHAIN = """
mixer chain {{ dims n
  input u : n
  state s, t : n
  t = t[i-1] / 2 + u
  s = s[i-1] / 2 + {drive}
  y = s
  claim time_invariant
  claim decay(s) >= 0
  claim 1 >= 0
}}
"""


@pytest.mark.parametrize("drive, found", [("u", Applies), ("t[i-1]", Open)])
def test_the_kernel_of_a_chain_is_no_sum_of_powers(tmp_path: Path, drive: str, found) -> None:
    """s of t of u has the kernel j (1/2)^j, and T34 speaks of Σ c λ^j b."""
    file = tmp_path / "chain.dsf"
    file.write_text(CHAIN.format(drive=drive), encoding="utf-8")
    said = lemma(read(file).compilation("chain"), "T34", {"S": "s", "b": "1", "c": "1"})
    assert isinstance(said, found), said
    assert found is Applies or "`s` is driven by `t`" in "; ".join(said.missing)


def test_the_roles_of_a_lemma_are_named(said: Callable) -> None:
    with pytest.raises(ValueError, match="S, a"):
        said("T32", {"S": "S"})
    with pytest.raises(KeyError):
        said("T99", {})


# --- the steps of proofs, decided by z3 -----------------------------------------------------------


@pytest.mark.ci
def test_the_steps_of_over_smoothing_are_valid() -> None:
    z3 = pytest.importorskip("z3")
    A, D, h, b, m, M, P, r = z3.Reals("A D h b m M P r")
    gates = [A >= 0, A <= 1, D >= 0, A + D <= 1]
    range_of = [m <= 0, M >= 0, m <= b, b <= M]

    def valid(hypotheses: list, goal) -> bool:
        solver = z3.SolverFor("QF_NRA")
        solver.add(*hypotheses, z3.Not(goal))
        return str(solver.check()) == "unsat"

    new = A * h + D * b
    assert valid([*gates, *range_of, m <= h, h <= M], z3.And(m <= new, new <= M))
    rest = [0 <= P, P <= 1, (1 - P) * m <= r, r <= (1 - P) * M]
    # One more token: P becomes A P, r becomes A r + Δ b.
    longer = A * r + D * b
    assert valid([*gates, *range_of, *rest],
                 z3.And((1 - A * P) * m <= longer, longer <= (1 - A * P) * M))  # fmt: skip
    gap = P * h + r - h
    assert valid([*rest, m <= h, h <= M, m <= 0, M >= 0],
                 z3.And(gap <= (1 - P) * (M - m), gap >= -(1 - P) * (M - m)))  # fmt: skip
    # As printed, without Δ ≥ 0, the first step is not.
    assert not valid([*gates[:2], A + D <= 1, *range_of, m <= h, h <= M],
                     z3.And(m <= new, new <= M))  # fmt: skip


@pytest.mark.ci
def test_the_steps_of_recency_are_valid() -> None:
    z3 = pytest.importorskip("z3")
    A, a, h, f, c = z3.Reals("A a h f c")
    solver = z3.SolverFor("QF_NRA")
    size = z3.And(h * (1 - a) <= c, -h * (1 - a) <= c)
    new = A * h + f
    solver.add(0 <= a, a < 1, -a <= A, A <= a, -c <= f, f <= c, size)
    solver.add(z3.Not(z3.And(new * (1 - a) <= c, -new * (1 - a) <= c)))
    assert str(solver.check()) == "unsat"
