"""Mixers against small changes of themselves: no verdict is wrong by a float64 judge.

A change of the text says nothing about the label: some change nothing. The judge runs both specs
literally on random numbers; what it calls equal must not be refuted, what it calls different must
not be proved, and nearly all of that must be refuted with a witness.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import replace
from fractions import Fraction
from functools import cache
from io import StringIO
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import Compilation, SpecText
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.evaluate import evaluate as evaluate_expr
from dsfc.limits import Limits
from dsfc.mixer import evaluate, sample, sizes
from dsfc.prover.equivalent import equivalent
from dsfc.prover.replay import script
from dsfc.prover.sizes import chosen
from dsfc.prover.verdict import Refuted
from dsfc.resource_limits import bounded
from dsfc.source import Source
from dsfc.syntax.ast import Spec
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.system.known import fixed
from dsfc.trusted.claim import Claim, Witness
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.witness import execute, stored_axes

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
PLACE = Place(Path("mine.dsf"))
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
                # A base that does not stand in the file is a shipped one.
                out.append((heads.get(first[first.index("extends") + 1], "") + unit, first[1]))
    return out


@cache
def read(text: str) -> Spec:
    return parse(Source("mine.dsf", text))


def loaded(text: str, name: str) -> Compilation:
    """A mixer at the end of a text; what stands before it is read once for all its changes."""
    start = text.index(f"mixer {name} ")
    own = parse(Source("mine.dsf", text[start:]))
    before = read(text[:start]).units if start else ()
    it = SpecText(PLACE, replace(own, units=(*before, *own.units))).compilation(name)
    assert it.system
    return it


def changed(text: str, name: str, rng: random.Random, changes=CHANGES) -> str | None:
    """The text with one place of the mixer's own lines changed."""
    body_at = text.index("\n", text.index(f"mixer {name} "))
    body = text[body_at:]
    places = [(m.start(), m.end(), new) for old, new in changes if literal(old) in body
              for m in re.finditer(old, body)
              if "state" not in body[body.rfind("\n", 0, m.start()) + 1 : m.start()]]  # fmt: skip
    if not places:
        return None
    start, end, new = rng.choice(places)
    return text[:body_at] + body[:start] + new + body[end:]


@cache
def literal(pattern: str) -> str:
    """What a text must hold for the pattern to be found in it: a filter that takes no time."""
    return re.sub(r"\\(.)", r"\1", re.split(r"(?<!\\)[\[(]", pattern.replace(r"\b", ""))[0])


class Sizes:
    """Where the value of a buffer is computed: it has no other leaves."""

    def __init__(self, size: dict[str, int]) -> None:
        self.size = lambda axis: size[axis.name]


def own(it: Compilation, size: dict[str, int]) -> dict[str, np.ndarray]:
    """The buffers whose value the text gives: what they are is a part of the mixer."""
    at, values = Sizes(size), fixed(it.system)
    return {
        t.name: evaluate_expr(values[t.name], at).expand(t.axes, at.size).data
        for t in it.system.buffers
        if t.name in values
    }


WRONG = {("equal", "Refuted"), ("different", "Proved"), ("of other axes", "Proved")}


class Judge:
    """Says of mixers whether they are a given one, by float64; that one's numbers are kept."""

    def __init__(self, it: Compilation) -> None:
        self.it = it

    @cache  # noqa: B019 - as many as there are bases
    def point(self, seed: int, count: int) -> tuple[dict, dict, dict, np.ndarray]:
        """Returns sizes with `count` numbers an axis, inputs, parameters and the output on them."""
        size = sizes(self.it.mixer, {d.axis.name: count for d in self.it.mixer.axes})
        drawn = sample(self.it.mixer, size, 2 * seed + 1, length=7)
        params = drawn.params | own(self.it, size)
        out = evaluate(self.it.mixer, drawn.inputs, params, size)["y"]
        return size, drawn.inputs, drawn.params, out

    def __call__(self, other: Compilation) -> str:
        label = self.at(other, 2)
        # Three vectors of two numbers are dependent: g of the base `with_gram` is 0 there.
        return self.at(other, 4) if label == "equal" else label

    def at(self, other: Compilation, count: int) -> str:
        """Labels another mixer at axes of `count` numbers each."""
        worst = 0.0
        for seed in range(3):
            with np.errstate(all="ignore"):
                size, inputs, params, left = self.point(seed, count)
                # A change may leave an axis that only it has.
                size = {d.axis.name: count for d in other.mixer.axes} | size
                theirs = own(other, size)
                # What only the other uses, this does not have; its numbers must be its own.
                drawn = sample(other.mixer, size, 2 * seed, length=7)
                given = drawn.inputs | inputs, drawn.params | params | theirs
                right = evaluate(other.mixer, *given, size)["y"]
            if left.shape != right.shape:
                return "of other axes"
            if not (np.isfinite(left).all() and np.isfinite(right).all()):
                return "undefined"
            apart = float(np.max(np.abs(left - right)) / (np.max(np.abs(left)) + 1e-300))
            worst = max(worst, apart)
            if worst > APART:
                return "different"
        return "equal" if worst < SAME else "doubtful"


@cache
def base(text: str, name: str) -> tuple[Compilation, Judge]:
    """A mixer that is changed, read once, and its judge."""
    it = loaded(text, name)
    return it, Judge(it)


@pytest.mark.ci
@pytest.mark.share(1, ci=30)
@pytest.mark.parametrize("seed", range(30))
def test_no_verdict_on_a_change_is_wrong(seed: int) -> None:
    rng = random.Random(seed)
    counts: Counter[tuple[str, str]] = Counter()
    for text, name in rng.sample(bases(), 30):
        mutant = changed(text, name, rng)
        if mutant is None:
            continue
        it, judge = base(text, name)
        try:
            other = loaded(mutant, name)
        except DiagnosticError:
            continue
        verdict = type(equivalent(it.system, other.system)).__name__
        label = judge(other)
        counts[label, verdict] += 1
        assert (label, verdict) not in WRONG, mutant
    assert counts.total() >= 10
    different = sum(n for (label, _), n in counts.items() if label == "different")
    assert counts["different", "Refuted"] >= 0.97 * different, counts


# --- the campaign: 20,000 mutants, no two alike ---------------------------------------------------

WIDER = (
    *CHANGES,
    (r"Re\(", "Im("), (r"\bfirst\b", "0"), (r" \+ [\w\[\]()-]+(?=$|\))", ""), (r"⊗", "*"),
    (r"\* q", "* k"), (r"\[j\]", ""), (r"\bq\b", "(q + k)"), (r"\bv\b", "(v / 2)"),
    (r"\(", "2 * ("), (r"= ", "= -1 * "), (r"tanh\(", "relu("), (r"\bS\[i-1\]", "(S[i-1] / 3)"),
    # These change nothing.
    (r"\bv\b", "(v + η - η)"), (r"\bu\b", "(u + u) / 2"), (r"exp\(", "1 / exp(-1 * "),
)  # fmt: skip
CAMPAIGN, SHARDS = 20_000, 80
LIMIT = Limits(seconds=5.0)
"""Of one verdict. Of a hundred mutants about one takes as long as it may and stays unknown."""


@cache
def mutants() -> tuple[tuple[str, str, str], ...]:
    """(text, mixer, changed text): one to three changes of a base, no changed text twice."""
    rng, seen, every = random.Random(20_000), set[str](), bases()
    out = []
    while len(out) < 11 * CAMPAIGN // 4:  # more than half of the texts are no mixers
        text, name = rng.choice(every)
        mutant: str | None = text
        for _ in range(rng.choice((1, 2, 2, 3))):
            mutant = changed(mutant, name, rng, WIDER) if mutant else None
        if mutant and mutant != text and mutant not in seen:
            seen.add(mutant)
            out.append((text, name, mutant))
    return tuple(out)


def exactly(a: System, b: System, seed: int) -> str:
    """What both definitions say at three points in fractions, or in intervals that are proven."""
    rng, label = random.Random(seed), "undefined"
    claim = Claim(a, b, (), chosen(a, b, 2))
    sizes_of = dict(claim.sizes)
    for _ in range(3):
        values = {}
        for system in (a, b):
            for t in (*system.inputs, *system.params, *system.buffers):
                count = 4 if t in system.inputs else 1
                for axis in stored_axes(t):
                    count *= sizes_of[axis.name]
                entry = [Fraction(rng.randint(1, 9), rng.choice((10, 7))) for _ in range(count)]
                values[t.name] = tuple((x.numerator, x.denominator, 0, 1) for x in entry)
        try:
            left, right = execute(claim, Witness(4, tuple(values.items()), 0, ()))
        except (Rejected, Obstacle, ValueError, KeyError):
            continue
        pairs = [
            (x, y) for p, q in zip(left, right, strict=True) for x, y in zip(p, q, strict=True)
        ]
        if any(not x.meets(y) for x, y in pairs):
            return "different"
        label = (
            "equal" if all(x == y and x.is_real and x.re.exact for x, y in pairs) else "doubtful"
        )
    return label


def limited(a: System, b: System) -> object:
    """What the prover says within the limit, and the diagnostic of the limit otherwise."""
    try:
        with bounded("a mutant", LIMIT):
            return equivalent(a, b)
    except DiagnosticError as error:
        return error.diagnostics[0]


def stands(found: Refuted) -> bool:
    """Whether the program of a refutation, which knows nothing of dsfc, ends well."""
    program = ModuleType("replayed")
    sys.modules["replayed"] = program  # dataclasses look for the module that they are made in
    try:
        with redirect_stdout(StringIO()):
            exec(compile(script(found, "a", "b"), "replayed.py", "exec"), program.__dict__)
    except AssertionError:
        return False
    finally:
        del sys.modules["replayed"]
    return True


@pytest.mark.full
@pytest.mark.parametrize("shard", range(SHARDS))
def test_campaign(shard: int) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for position, (text, name, mutant) in enumerate(mutants()[shard::SHARDS]):
        if counts.total() == CAMPAIGN // SHARDS:
            break
        it, judge = base(text, name)
        try:
            other = loaded(mutant, name)
        except DiagnosticError:
            continue
        a, b = it.system, other.system
        found = limited(a, b)
        label = judge(other)
        if label in ("doubtful", "undefined"):
            label = exactly(a, b, position)
        verdict = type(found).__name__
        assert (label, verdict) not in WRONG, mutant
        if isinstance(found, Refuted):
            assert stands(found), mutant
        counts[label, verdict] += 1
    print(shard, *(f"{label} {verdict} {n}" for (label, verdict), n in sorted(counts.items())))
    assert counts.total() == CAMPAIGN // SHARDS
    different = sum(n for (label, _), n in counts.items() if label == "different")
    assert different >= 0.2 * counts.total() and counts["equal", "Proved"] >= 10, counts
    assert counts["different", "Refuted"] >= 0.97 * different, counts
