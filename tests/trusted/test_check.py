"""What the kernel accepts, and everything it must not accept."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import random
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted import check as kernel
from dsfc.trusted import invariant, witness
from dsfc.trusted.check import SIZE_LIMIT, check, read, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Invariant, Row, Somewhere, Witness
from dsfc.trusted.rejected import Rejected

EQUAL = [
    ("attention", "post", "eta_gauge"),
    ("attention", "ratio_of_states", "ratio_gauged"),
    ("attention", "normed", "normed_state"),
    ("gates", "softplus_gate", "sigmoid_gate"),
    ("linear", "sum_of_modes", "chain_delayed"),
    ("linear", "taps_three", "taps_three_states"),
    ("linear", "delta_rule", "delta_gauged"),
    ("linear", "rotated_keys", "rotated_conjugate"),
]
DIFFERENT = [
    ("attention", "post", "eta_late"),
    ("gates", "euler", "zoh"),
    ("linear", "taps_two", "taps_three"),
    ("linear", "rotated_keys", "rotated_wrong"),
]


def rejected(certificate: Certificate | str) -> str:
    text = certificate if isinstance(certificate, str) else write(certificate)
    with pytest.raises(Rejected) as caught:
        check(text)
    return str(caught.value)


@pytest.mark.share(6)
@pytest.mark.parametrize("pair", EQUAL + DIFFERENT)
def test_what_the_prover_shows_is_accepted(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    accepted = check(write(made))
    assert accepted.claim == made.claim and read(write(made)) == made
    assert (accepted.gap is None) == made.claim.equal == (pair in EQUAL)


# --- spoiled invariants ---------------------------------------------------------------------------


def with_rows(c: Certificate, rows: tuple[Row, ...]) -> Certificate:
    return dataclasses.replace(c, proof=dataclasses.replace(c.proof, rows=rows))


def spoiled(c: Certificate) -> Iterator[Certificate]:
    """One number, name or pivot changed in one row of two terms or more."""
    for k, row in enumerate(c.proof.rows):
        if len(row.terms) < 2:
            continue
        for new in changes(row):
            yield with_rows(c, (*c.proof.rows[:k], new, *c.proof.rows[k + 1 :]))


def changes(row: Row) -> Iterator[Row]:
    for t, (cells, coefficient) in enumerate(row.terms):
        for m, (monomial, number) in enumerate(coefficient):
            for other in (number + 1, -number, number * 7):
                changed = (*coefficient[:m], (monomial, other), *coefficient[m + 1 :])
                yield dataclasses.replace(
                    row, terms=(*row.terms[:t], (cells, changed), *row.terms[t + 1 :])
                )
        other_cells = ((*cells, "$A.nothing[0]"), changed_side(cells))
        for new in (c for c in other_cells if c != cells):
            yield dataclasses.replace(
                row, terms=(*row.terms[:t], (new, coefficient), *row.terms[t + 1 :])
            )
    for pivot in ((), ("$A.nothing[0]",)):
        yield dataclasses.replace(row, pivot=pivot)


def changed_side(cells: tuple[str, ...]) -> tuple[str, ...]:
    swapped = {"A": "B", "B": "A"}
    return tuple(c.replace("$A", "$?").replace("$B", f"${swapped['B']}").replace("$?", "$B")
                 for c in cells)  # fmt: skip


@pytest.mark.share(6, ci=23)
@pytest.mark.parametrize("pair", EQUAL)
def test_no_spoiled_row_is_accepted(certificate: Callable, pair, tier: str) -> None:
    made = certificate(*pair)
    every = list(spoiled(made))
    assert len(every) >= 20
    if tier != "full":
        count = {"fast": 20, "ci": 60}[tier]
        every = random.Random(3).sample(every, min(count, len(every)))
    for bad in every:
        rejected(bad)


@pytest.mark.share(8)
@pytest.mark.parametrize("pair", EQUAL)
def test_no_row_is_superfluous(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    rejected(with_rows(made, ()))
    # What the prover stores spans what follows from the difference; some row is needed for it.
    kept = [with_rows(made, made.proof.rows[:k] + made.proof.rows[k + 1 :])
            for k in range(len(made.proof.rows))]  # fmt: skip
    assert all(rejected(c) for c in kept)


@pytest.mark.share(45)
@pytest.mark.parametrize("file, a, b", DIFFERENT)
@pytest.mark.parametrize("source", EQUAL)
def test_no_forgery_for_a_false_claim(
    certificate: Callable, system: Callable, source, file: str, a: str, b: str
) -> None:
    false = dataclasses.replace(
        certificate(file, a, b).claim, equal=True, sizes=certificate(*source).claim.sizes
    )
    rejected(Certificate(false, certificate(*source).proof))
    own = certificate(file, a, b).claim
    rejected(Certificate(dataclasses.replace(own, equal=True), certificate(*source).proof))


def test_the_rows_of_a_true_pair_do_not_show_its_near_miss(
    certificate: Callable, system: Callable
) -> None:
    made = certificate("attention", "post", "eta_gauge")
    near = dataclasses.replace(made.claim, b=system("attention", "eta_late"))
    rejected(dataclasses.replace(made, claim=near))


# --- attacks --------------------------------------------------------------------------------------


def attack(make: Callable[[Certificate], Certificate | str]):
    ATTACKS[make.__name__] = make
    return make


ATTACKS: dict[str, Callable[[Certificate], Certificate | str]] = {}


def first(c: Certificate, **changed) -> Certificate:
    rows = c.proof.rows
    return with_rows(c, (dataclasses.replace(rows[0], **changed), *rows[1:]))


@attack
def claims_difference(c):
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, equal=False))


@attack
def a_pivot_not_in_its_row(c):
    return first(c, pivot=("$A.S[9]",))


@attack
def a_constant_pivot(c):
    terms = (((), (((), 1),)), *c.proof.rows[0].terms)
    return with_rows(c, (*c.proof.rows, Row((), terms)))


@attack
def a_row_that_is_one(c):
    # From 1 = 0 everything would follow.
    return with_rows(c, (Row((), (((), (((), 1),)),)),))


@attack
def an_unknown_state(c):
    row = Row(("$A.nothing[0]",), ((("$A.nothing[0]",), (((), 1),)),))
    return with_rows(c, (*c.proof.rows, row))


@attack
def an_input_as_a_state(c):
    row = Row(("η[0]@0",), ((("η[0]@0",), (((), 1),)),))
    return with_rows(c, (*c.proof.rows, row))


@attack
def a_state_as_a_coefficient(c):
    row = c.proof.rows[0]
    cells, _ = row.terms[0]
    other = Row(cells, ((cells, (((("$B.S[0,0,0]", 1),), 1),)),))
    return with_rows(c, (other,))


@attack
def a_row_that_looks_too_far_back(c):
    row = c.proof.rows[0]
    terms = tuple((cells, (((("η[0]@1", 1),), n),)) for cells, ((_, n), *_) in row.terms)
    return first(c, terms=terms)


@attack
def aliased_pivots(c):
    return with_rows(c, (*c.proof.rows, c.proof.rows[0]))


@attack
def a_column_twice(c):
    row = c.proof.rows[0]
    return first(c, terms=(*row.terms, row.terms[0]))


@attack
def an_empty_coefficient(c):
    row = c.proof.rows[0]
    return first(c, terms=(*row.terms[:1], (row.terms[1][0], ())))


@attack
def a_zero_coefficient(c):
    row = c.proof.rows[0]
    zero = tuple((cells, tuple((m, 0) for m, _ in p)) for cells, p in row.terms)
    return first(c, terms=zero)


@attack
def a_product_of_states_out_of_order(c):
    cells = ("$B.S[0,0,0]", "$A.S[0,0,0]")
    return with_rows(c, (*c.proof.rows, Row(cells, ((cells, (((), 1),)),))))


@attack
def a_negative_exponent(c):
    return first(c, terms=((c.proof.rows[0].terms[0][0], (((("η[0]@0", -1),), 1),)),))


@attack
def a_huge_exponent(c):
    return first(c, terms=((c.proof.rows[0].terms[0][0], (((("η[0]@0", 10**9),), 1),)),))


@attack
def a_term_twice(c):
    return first(c, terms=((c.proof.rows[0].terms[0][0], (((), 1), ((), 1))),))


@attack
def a_generator_twice(c):
    twice = (("η[0]@0", 1), ("η[0]@0", 1))
    return first(c, terms=((c.proof.rows[0].terms[0][0], ((twice, 1),)),))


@attack
def no_rows(c):
    return with_rows(c, ())


@attack
def sizes_of_nothing(c):
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, sizes=()))


@attack
def sizes_of_zero(c):
    zero = tuple((name, 0) for name, _ in c.claim.sizes)
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, sizes=zero))


@attack
def all_sizes_of_nothing(c):
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, every=("x",)))


@attack
def all_sizes_of_values_that_are_free(c):
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, free=True))


NOTHING_ASSUMED = Condition((((("q[0,0]@0", 1),), 1), ((("v[0,0]@0", 1),), -1)), "q[0,0]@0")


@attack
def conditions_of_no_use(c):
    claim = dataclasses.replace(c.claim, conditions=(NOTHING_ASSUMED,), every=())
    return dataclasses.replace(c, claim=claim)


@attack
def a_state_named_like_a_parameter(c):
    inputs = tuple(dataclasses.replace(t, name="S" if t.name == "v" else t.name)
                   for t in c.claim.b.inputs)  # fmt: skip
    b = dataclasses.replace(c.claim.b, inputs=inputs)
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, b=b))


@attack
def a_name_that_spells_a_generator(c):
    inputs = tuple(dataclasses.replace(t, name="k[0,0]@0" if t.name == "v" else t.name)
                   for t in c.claim.b.inputs)  # fmt: skip
    b = dataclasses.replace(c.claim.b, inputs=inputs)
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, b=b))


@attack
def a_system_without_outputs(c):
    b = dataclasses.replace(c.claim.b, outputs=())
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, b=b))


@attack
def a_stage_missing(c):
    b = dataclasses.replace(c.claim.b, stages=())
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, b=b))


@attack
def names_that_do_not_exist(c):
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, names=(("x", "y"),)))


@attack
def two_names_for_one(c):
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, names=(("k", "q"),)))


def text_of(change: Callable[[dict], None]) -> Callable[[Certificate], str]:
    def make(c: Certificate) -> str:
        document = json.loads(write(c))
        change(document)
        return json.dumps(document)

    return make


ATTACKS |= {
    "another format": text_of(lambda d: d.update(format="dsfc-proof/2")),
    "a further key": text_of(lambda d: d.update(more=1)),
    "no claim": text_of(lambda d: d["value"].pop("claim")),
    "a float": text_of(lambda d: d["value"]["claim"]["sizes"][0].__setitem__(1, 2.0)),
    "a boolean": text_of(lambda d: d["value"]["claim"]["sizes"][0].__setitem__(1, True)),
    "a number as a text": text_of(lambda d: d["value"]["claim"]["sizes"][0].__setitem__(1, "2")),
    "a node that comes later": text_of(
        lambda d: d["nodes"].insert(0, ["Add", [{"node": 3}, {"node": 4}]])
    ),
    "an unknown node": text_of(lambda d: d["nodes"].insert(0, ["Eval", "1"])),
    "no JSON": lambda c: "certainly",
    "a list": lambda c: "[]",
    "a key twice": lambda c: write(c).replace('{"format"', '{"format":"","format"', 1),
    "not a number": lambda c: write(c).replace('"equal":true', '"equal":NaN', 1),
    "nested without end": lambda c: "[" * 100_000,
    "too long": lambda c: " " * (SIZE_LIMIT + 1),
    "a huge fraction": lambda c: write(c).replace('["Num","1"]', '["Num","1e999999999"]', 1),
}


STARTS = """
mixer from_one { dims n
  input u : n
  state c : n
  c = c[i-1] + first * ones[n]
  y = c[i-1] * u
}
mixer grows { dims n
  input u : n
  state c : n
  c = c[i-1] + u - first * u
  y = c[i-1]
}
mixer runs { dims n
  input u : n
  state c : n
  c = c[i-1] + u
  y = c[i-1]
}
mixer rests { dims n
  input u : n
  state r : n
  r = 2 * r[i-1] + (u - u)
  y = r
}
mixer nothing { dims n
  input u : n
  y = u - u
}
mixer first_doubled { dims n
  input u : n
  y = u + first * u
}
mixer same { dims n
  input u : n
  y = u
}
"""


def false_at_the_start(a: str, b: str, rows: tuple[Row, ...]) -> Certificate:
    """Claims that a steady token would bear out, and the first one does not."""
    text = SpecText(Place(Path("starts.dsf")), parse(Source("starts.dsf", STARTS)))
    systems = [text.compilation(name).system for name in (a, b)]
    return Certificate(Claim(*systems, (), (("n", 1),)), Invariant(rows, False))


C, R = "$A.c[0]", "$B.r[0]"
ONE = (((), 1),)
ZERO_STATE = Row((C,), (((C,), ONE),))
# c · r = 0 and r = 0 hold; that c = 0 follows from the first only where r is not 0.
DIVIDES_BY_ZERO = (
    Row((C,), (((C,), ((((R, 1),), 1),)),)),
    Row((R,), (((R,), ONE),)),
    Row((C, R), (((C, R), ONE),)),
)
ATTACKS |= {
    "a state that does not start at 0": lambda c: false_at_the_start(
        "from_one", "nothing", (ZERO_STATE,)
    ),
    "a state that does not stay 0": lambda c: false_at_the_start("grows", "nothing", (ZERO_STATE,)),
    "a division by a state that is 0": lambda c: false_at_the_start(
        "runs", "rests", DIVIDES_BY_ZERO
    ),
    "another first output": lambda c: false_at_the_start("first_doubled", "same", ()),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attack(certificate: Callable, name: str) -> None:
    made = certificate("attention", "as_state", "eta_gauge")
    assert isinstance(made.proof, Invariant)
    assert rejected(ATTACKS[name](made))


# --- witnesses ------------------------------------------------------------------------------------


def spoil(c: Certificate, **changed) -> Certificate:
    return dataclasses.replace(c, proof=dataclasses.replace(c.proof, **changed))


def bad_witnesses(made: Certificate) -> Iterator[Certificate]:
    point = made.proof
    assert isinstance(point, Witness)
    zero = tuple((n, tuple((0, 1, 0, 1) for _ in v)) for n, v in point.values)
    name, entries = point.values[0]
    yield dataclasses.replace(made, claim=dataclasses.replace(made.claim, equal=True))
    yield dataclasses.replace(made, claim=dataclasses.replace(made.claim, b=made.claim.a))
    yield dataclasses.replace(made, claim=dataclasses.replace(made.claim, every=("n",)))
    yield spoil(made, values=zero)
    yield spoil(made, values=point.values[1:])
    yield spoil(made, values=(*point.values, point.values[0]))
    yield spoil(made, values=((name, entries[1:]), *point.values[1:]))
    yield spoil(made, values=((name, (*entries, entries[0])), *point.values[1:]))
    for number in ((1, 0, 0, 1), (1, -1, 0, 1), (1, 1, 0, -1), (1, 1, 1, 1)):
        yield spoil(made, values=((name, (number, *entries[1:])), *point.values[1:]))
    yield spoil(made, length=0)
    yield spoil(made, length=65)
    yield spoil(made, token=point.length)
    yield spoil(made, token=point.token - point.length)
    yield spoil(made, index=(*point.index, 0))
    yield spoil(made, index=tuple(99 for _ in point.index))
    yield spoil(made, index=tuple(-1 for _ in point.index))
    if any(n == "a" and t.constraint is Constraint.POSITIVE
           for t in made.claim.a.params for n in (t.name,)):  # fmt: skip
        minus = tuple((n, tuple((-1, 1, 0, 1) for _ in v) if n == "a" else v)
                      for n, v in point.values)  # fmt: skip
        yield spoil(made, values=minus)


@pytest.mark.share(2)
@pytest.mark.parametrize("pair", DIFFERENT)
def test_spoiled_witnesses(certificate: Callable, pair) -> None:
    for bad in bad_witnesses(certificate(*pair)):
        rejected(bad)


def test_a_witness_keeps_the_declared_ranges(certificate: Callable) -> None:
    made = certificate("gates", "euler", "zoh")
    values = tuple(
        (n, tuple((-1, 1, 0, 1) for _ in v) if n == "a" else v) for n, v in made.proof.values
    )
    assert "positive" in rejected(spoil(made, values=values))


def test_a_witness_of_equal_mixers_does_not_exist(certificate: Callable, system: Callable) -> None:
    made = certificate("attention", "post", "eta_late")
    equal = dataclasses.replace(made.claim, b=system("attention", "eta_gauge"))
    assert "may be equal" in rejected(dataclasses.replace(made, claim=equal))


# --- the kernel's own checks ----------------------------------------------------------------------


def rejections(module: types.ModuleType) -> list[int]:
    """Lines of a module that raise `Rejected` themselves."""
    tree = ast.parse(inspect.getsource(module))
    return [n.lineno for n in ast.walk(tree) if _rejects(n)]


def _rejects(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and getattr(node.exc.func, "id", "") == "Rejected"
        and node.cause is None
    )


def without(module: types.ModuleType, line: int) -> types.ModuleType:
    """The module with the rejection on one line taken out."""

    class Remove(ast.NodeTransformer):
        def visit_Raise(self, node: ast.Raise) -> ast.AST:
            if node.lineno != line:
                return node
            return ast.copy_location(ast.Pass(), node)

    tree = ast.fix_missing_locations(Remove().visit(ast.parse(inspect.getsource(module))))
    made = types.ModuleType(module.__name__)
    sys.modules[made.__name__] = made
    try:
        exec(compile(tree, module.__file__, "exec"), made.__dict__)
    finally:
        sys.modules[made.__name__] = module
    return made


def everything_bad(certificate: Callable) -> Iterator[Certificate | str]:
    made = certificate("attention", "as_state", "eta_gauge")
    yield dataclasses.replace(made, claim=dataclasses.replace(made.claim, case=True))
    for make in ATTACKS.values():
        yield make(made)
    for pair in (("linear", "taps_three", "taps_three_states"), EQUAL[0]):
        yield from list(spoiled(certificate(*pair)))[:8]
    for pair in DIFFERENT:
        shown = certificate(*pair)
        yield dataclasses.replace(shown, claim=dataclasses.replace(shown.claim, equal=True))
        forged = dataclasses.replace(shown.claim, equal=True, sizes=made.claim.sizes)
        yield Certificate(forged, made.proof)
        yield dataclasses.replace(shown, claim=dataclasses.replace(shown.claim, case=True))
        point = shown.proof
        somewhere = Somewhere(point.length, point.values)
        yield dataclasses.replace(shown, defined=somewhere)
        yield from bad_witnesses(shown)


REDUNDANT = (
    # One way to write a row, and bounds on the work.
    "the terms of a coefficient are not in order",
    "a term is not in order, or 0",
    "an exponent is out of range",
    "a product of states is not in order",
    "a witness has from 1 to",
    # Asked for other rules, whose tests miss them; see `test_removal.py`.
    "is not {t.constraint.value}",
    "says nothing of cases",
    "is not {constraint.value}",
    "a state stands in a denominator",
    # Caught later, in words that say less.
    "a row does not have its pivot",
    "a row has no state in its pivot",
    "a row names a state that does not exist",
    "a row reads further back than its moment",
    "the index does not fit the output",
    "has no value",
    # Of claims with conditions, which are spoiled in their own tests.
    "conditions make the pivot of a row 0",
    "the pivot of a row holds what a condition gives a value",
    # The value would not be read.
    "has a fixed value",
)
"""Rejections without which everything bad is still rejected, with the reason."""


@pytest.mark.full
def test_every_check_is_needed(certificate: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [text for c in everything_bad(certificate) for text in by_itself(c)]
    needless = []
    checks = {invariant: ["check_invariant"], witness: ["check_witness", "check_somewhere"]}
    for module, functions in checks.items():
        lines = inspect.getsource(module).splitlines()
        for line in rejections(module):
            spoilt = without(module, line)
            spoilt.Rejected = Rejected
            for function in functions:
                monkeypatch.setattr(kernel, function, getattr(spoilt, function))
            if not any(gets_through(text) for text in bad):
                needless.append(lines[line - 1].strip())
            monkeypatch.undo()
    assert [n for n in needless if not any(r in n for r in REDUNDANT)] == []


def by_itself(bad: Certificate | str) -> Iterator[str]:
    """A bad certificate, and without its point of values, whose own checks reject some too."""
    if isinstance(bad, str):
        yield bad
        return
    yield write(bad)
    if bad.defined is not None:
        yield write(dataclasses.replace(bad, defined=None))


def gets_through(text: str) -> bool:
    """Whether a certificate is accepted, or does more than be rejected."""
    try:
        check(text)
    except Rejected:
        return False
    except Exception:
        return True
    return True
