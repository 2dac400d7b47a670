"""Mixers against small changes of themselves: no verdict is wrong by a float64 judge.

A change of the text says nothing about the label: some change nothing. The judge runs both specs
literally on random numbers; what it calls equal must not be refuted, what it calls different must
not be proved, and nearly all of that must be refuted with a witness.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.locate import Place
from dsfc.mixer import evaluate, sample, sizes
from dsfc.pipeline import Compilation, SpecText
from dsfc.proof.equivalent import equivalent
from dsfc.source import Source
from dsfc.syntax.parse import parse

CHANGES = (
    (r"\bq\b", "k"), (r"\bk\b", "q"), (r" \+ ", " - "), (r" - ", " + "), (r"i-1", "i-2"),
    (r"\bη\b", "(η * η)"), (r"\ba\b", "b"), (r"\bb\b", "a"), (r"\bz\b", "(-z)"), (r"≤", "<"),
    (r"sigmoid\(", "tanh("), (r"softplus\(", "exp("), (r"exp\(", "sigmoid("), (r"\bu\b", "(2 * u)"),
    (r"\bc\b", "(c + b)"), (r" / ", " * "), (r"\[i-1\]", ""), (r"\bw\b", "conj(w)"),
    (r"\b2\b", "3"), (r"\b1\b", "2"), (r"\* v", "* (v + v)"), (r"\bβ\b", "1"), (r"conj\(", "("),
    # These change nothing.
    (r" \+ ", " + 0 + "), (r"\bη\b", "(3 * η / 3)"), (r"\ba\b", "(a + b - b)"),
    (r"sigmoid\(", "1 - sigmoid(-1 * "), (r"\bk\b", "(k / 2 + k / 2)"), (r"\bu\b", "(u * a / a)"),
)  # fmt: skip
APART, SAME = 1e-6, 1e-11
"""Relative differences that the judge calls different and equal; between them it says nothing."""


def bases() -> list[tuple[str, str]]:
    """(text of the base with the mixer, its name), of every labelled mixer that has an output."""
    out = []
    for path in sorted((Path(__file__).parent / "pairs").glob("*.dsf")):
        units = re.split(r"(?m)^(?=mixer )", path.read_text(encoding="utf-8"))[1:]
        heads = {u.split()[1]: u for u in units if "extends" not in u.splitlines()[0]}
        for unit in units:
            first = unit.splitlines()[0].split()
            if "extends" in first:
                out.append((heads[first[first.index("extends") + 1]] + unit, first[1]))
    return out


def loaded(text: str, name: str) -> Compilation:
    spec = SpecText(Place(Path("mine.dsf")), parse(Source("mine.dsf", text)))
    it = spec.compilation(name)
    assert it.system
    return it


def changed(text: str, name: str, rng: random.Random) -> str | None:
    """The text with one place of the mixer's own lines changed."""
    start = text.index(f"mixer {name} ")
    body_at = text.index("\n", start)
    places = [(m, new) for old, new in CHANGES for m in re.finditer(old, text[body_at:])
              if "state" not in text[: body_at + m.start()].rsplit("\n", 1)[-1]]  # fmt: skip
    if not places:
        return None
    found, new = rng.choice(places)
    return text[: body_at + found.start()] + new + text[body_at + found.end() :]


def judge(a: Compilation, b: Compilation) -> str:
    worst = 0.0
    for seed in range(3):
        size = sizes(a.mixer, {d.axis.name: 2 for d in a.mixer.axes})
        # What only one of them uses, the other does not have; its numbers must be its own.
        both = [sample(x.mixer, size, 2 * seed + k, length=7) for k, x in enumerate((b, a))]
        inputs, params = both[0].inputs | both[1].inputs, both[0].params | both[1].params
        with np.errstate(all="ignore"):
            left, right = (evaluate(x.mixer, inputs, params, size)["y"] for x in (a, b))
        if not (np.isfinite(left).all() and np.isfinite(right).all()):
            return "undefined"
        worst = max(worst, float(np.max(np.abs(left - right)) / (np.max(np.abs(left)) + 1e-300)))
    return "different" if worst > APART else "equal" if worst < SAME else "doubtful"


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.ci) for k in range(1, 30))]
)
def test_no_verdict_on_a_change_is_wrong(seed: int) -> None:
    rng = random.Random(seed)
    counts: Counter[tuple[str, str]] = Counter()
    for text, name in rng.sample(bases(), 30):
        mutant = changed(text, name, rng)
        if mutant is None:
            continue
        try:
            pair = loaded(text, name), loaded(mutant, name)
        except DiagnosticError:
            continue
        verdict = type(equivalent(pair[0].system, pair[1].system)).__name__
        label = judge(*pair)
        counts[label, verdict] += 1
        assert (label, verdict) not in {("equal", "Refuted"), ("different", "Proved")}, mutant
    assert counts.total() >= 15
    different = sum(n for (label, _), n in counts.items() if label == "different")
    assert counts["different", "Refuted"] >= 0.97 * different, counts
