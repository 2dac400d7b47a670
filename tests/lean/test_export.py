"""Proofs as Lean text: every theorem is checked by a reader of its own, and no changed one passes.

Lean is not run. The reader knows the rules that the text uses and computes in fractions.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from lean_reader import Reader, Wrong, check

from dsfc.lean import NotWritten, lean_text
from dsfc.trusted.claim import Certificate, Invariant
from dsfc.trusted.definition import Execution, exact

LABELS = tomllib.loads(
    (Path(__file__).parent.parent / "prover" / "labels.toml").read_text(encoding="utf-8")
)
EQUAL = [(f, a, b) for f, table in LABELS.items() for a, b, _ in table.get("equal", ())]
FAST = [
    ("linear", "one_mode", "one_mode_scaled"),
    ("linear", "taps_three", "taps_three_states"),
    ("attention", "ratio", "ratio_gauged"),
    ("linear", "rotated_keys", "rotated_back"),
]
SHARE = EQUAL[5::29]
CHANGED = 30


def written(certificate: Certificate) -> str:
    return lean_text(certificate)


@pytest.mark.parametrize(
    "pair", [FAST[0], *(pytest.param(p, marks=pytest.mark.ci) for p in FAST[1:])], ids="-".join
)
def test_every_theorem_is_checked(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    reader = check(written(made))
    assert len(reader.theorems["rows"]) == len(made.proof.rows)
    assert {"first_outputs", "outputs"} <= reader.theorems.keys()
    kept = [name for name in reader.lemmas if name.startswith("kept_")]
    assert len(kept) == len(made.proof.rows)


@pytest.mark.parametrize(
    "pair",
    [pytest.param(p, marks=pytest.mark.ci if p in SHARE else pytest.mark.full) for p in EQUAL],
    ids="-".join,
)
def test_all_proofs_by_rows(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    if not isinstance(made.proof, Invariant):
        with pytest.raises(NotWritten):
            lean_text(made)
        return
    reader = check(written(made))
    assert len(reader.theorems.get("rows", ())) == len(made.proof.rows)


def changed(text: str, rng: random.Random) -> str:
    """One sign, number or name of what is stated or proved, changed."""
    start = text.index("structure Run")
    places = [m for m in re.finditer(r"(?<= )[-+](?= )|\^ \d+|(?<=[ (])\d+(?=[ )])|\w+_\d+_\w+",
                                     text) if m.start() > start]  # fmt: skip
    at = rng.choice(places)
    old = at[0]
    if old in "+-":
        new = "-" if old == "+" else "+"
    elif old.startswith("^"):
        new = f"^ {int(old[2:]) + 1}"
    elif old.isdecimal():
        new = str(int(old) + 1)
    else:
        new = rng.choice([m[0] for m in places if m[0][0].isalpha() and m[0] != old])
    return text[: at.start()] + new + text[at.end() :]


def states_the_same(text: str, bad: str) -> bool:
    """Whether a changed text states what it did: another fact of one polynomial proves it too.

    An equation of a state that no theorem speaks of may be any other.
    """
    one, other = check(text), check(bad)
    theorems = text[text.index("variable {K") :]
    fields = [name for name in one.fields if one.fields[name] != other.fields.get(name)]
    return (
        one.theorems == other.theorems
        and one.lemmas == other.lemmas
        and not any(f"R.{name}" in theorems for name in fields)
    )


@pytest.mark.parametrize(
    "pair",
    [FAST[0], pytest.param(FAST[1], marks=pytest.mark.ci),
     pytest.param(FAST[2], marks=pytest.mark.full)],
    ids="-".join,
)  # fmt: skip
def test_what_is_changed_is_refused(certificate: Callable, pair, tier: str) -> None:
    text = written(certificate(*pair))
    rng = random.Random("-".join(pair))
    refused = 0
    for _ in range(CHANGED * (10 if tier == "full" else 1)):
        bad = changed(text, rng)
        try:
            check(bad)
        except Wrong:
            refused += 1
            continue
        assert states_the_same(text, bad)
    assert refused >= 0.8 * CHANGED


@pytest.mark.parametrize(
    "old, new",
    [
        ("(row_0_ne : g_0 ≠ 0)\n", "\n"),
        ("(row_0 : ", "(row_0 : 0 * "),
        ("have d : (g_0) ≠ 0", "have d : (a_0) ≠ 0"),
        ("induction m with", "skip"),
        (":= ih", ":= rows R m"),
        ("theorem outputs", "theorem other"),
        ("    linear_combination", "    sorry --"),
        ("import Mathlib.Tactic.Ring", "import Mathlib.Tactic.Ring\naxiom no : False"),
        ("end Dsfc", "end Dsfc\naxiom no : False"),
        ("rows R m", "rows R (m + 1)"),
        ("row_0_ne : ∀ m : ℕ, g_0 ≠ 0", "row_0_ne : ∀ m : ℕ, g_0 - g_0 ≠ 0"),
        ("  row_0_ne : ", "  more : ∀ m : ℕ, y_A_0 (m + 1) = 0\n  row_0_ne : "),
        ("  row_0_ne : ", "  more : ∀ m : ℕ, g_0 = 0\n  row_0_ne : "),
        ("y_A_0 (m + 1) = (A_x_0 m)", "y_A_0 (m + 1) = (A_x_0 (m + 2))"),
    ],
)
def test_forgeries_are_refused(certificate: Callable, old: str, new: str) -> None:
    text = written(certificate(*FAST[0]))
    assert old in text
    with pytest.raises(Wrong):
        check(text.replace(old, new, 1))


def test_a_hypothesis_that_is_not_used_is_refused(certificate: Callable) -> None:
    text = written(certificate(*FAST[0]))
    extra = text.replace("    (row_0 : ", "    (more : g_0 = 0)\n    (row_0 : ", 1)
    with pytest.raises(Wrong, match="a hypothesis is not used"):
        check(extra)


@pytest.mark.parametrize(
    "pair",
    [FAST[0], pytest.param(FAST[1], marks=pytest.mark.ci),
     pytest.param(("attention", "as_state", "transposed"), marks=pytest.mark.ci),
     pytest.param(("linear", "delta_rule", "delta_gauged"), marks=pytest.mark.ci)],
    ids="-".join,
)  # fmt: skip
def test_a_run_is_what_both_definitions_give(certificate: Callable, pair) -> None:
    """The equations, run on numbers, give the outputs of the definitions run on them."""
    made = certificate(*pair)
    reader = check(written(made))
    text, claim, length = written(made), made.claim, 4
    named = dict(re.findall(r"  /-- (\S+) -/\n  (\w+) :", text))
    rng = random.Random(3)
    sizes = dict(claim.sizes)
    values: dict[str, tuple] = {}
    run: dict[tuple[str, int | None], Fraction] = {}
    for t in (*claim.a.inputs, *claim.a.params, *claim.b.params):
        steps = length if t in claim.a.inputs else 1
        axes = t.axes if hasattr(t, "axes") else (*t.map.each, *t.map.target, *t.map.source)
        count = 1
        for axis in axes:
            count *= sizes[axis.name]
        drawn = [Fraction(rng.randint(1, 9), rng.randint(1, 9)) for _ in range(steps * count)]
        values[t.name] = tuple(map(exact, drawn))
        for k, value in enumerate(drawn):
            where, place = [], k % count
            for axis in reversed(axes):
                where.insert(0, place % sizes[axis.name])
                place //= sizes[axis.name]
            name = f"{t.name}[{','.join(map(str, where))}]"
            name += "@0" if t in claim.a.inputs else ""
            if name in named:
                run[named[name], k // count if t in claim.a.inputs else None] = value
    for token in range(length):
        _advance(reader, run, token)
    for label, system in (("A", claim.a), ("B", claim.b)):
        given = {t.name: values[t.name] for t in (*system.inputs, *system.params)}
        wanted = Execution(system, sizes, length, given).output()
        for token, entries in enumerate(wanted):
            for k, entry in enumerate(entries):
                assert run[f"y_{label}_{k}", token] == entry.re.low


def _advance(reader: Reader, run: dict, token: int) -> None:
    """Computes everything at a token by its equations."""
    window = 1 + max(t[3] for name, (every, p) in reader.fields.items() if not every
                     for t in [p[1]] if t[0] == "at")  # fmt: skip
    for every, (sign, value, right) in reader.fields.values():
        if sign != "=" or value[0] != "at" or every != (token >= window):
            continue
        at = value[3] + (token - window if every else 0)
        if at == token:
            run[value[1], token] = _number(right, run, token - window)


def _number(tree: tuple, run: dict, m: int) -> Fraction:
    match tree:
        case ("num", k):
            return Fraction(k)
        case ("var", name):
            return run[name, None]
        case ("at", name, has_m, k):
            return run[name, k + (m if has_m else 0)]
        case ("neg", a):
            return -_number(a, run, m)
        case ("^", a, k):
            return _number(a, run, m) ** k
    a, b = (_number(t, run, m) for t in tree[1:])
    return {"+": a + b, "-": a - b, "*": a * b}[tree[0]] if tree[0] != "/" else a / b
