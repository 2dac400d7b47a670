"""What the checker accepts, and everything it must not accept."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterator

import pytest

from dsfc.check_proof.check import SIZE_LIMIT, check, read, write
from dsfc.check_proof.claim import Certificate, Invariant, Row, Witness
from dsfc.check_proof.invariant import Rejected

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


@pytest.mark.parametrize("pair", EQUAL)
def test_no_spoiled_row_is_accepted(certificate: Callable, pair, tier: str) -> None:
    made = certificate(*pair)
    every = list(spoiled(made))
    assert len(every) >= 20
    if tier == "fast":
        every = random.Random(3).sample(every, 20)
    for bad in every:
        rejected(bad)


@pytest.mark.parametrize("pair", EQUAL)
def test_no_row_is_superfluous(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    rejected(with_rows(made, ()))
    # What the prover stores spans what follows from the difference; some row is needed for it.
    kept = [with_rows(made, made.proof.rows[:k] + made.proof.rows[k + 1 :])
            for k in range(len(made.proof.rows))]  # fmt: skip
    assert all(rejected(c) for c in kept)


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
    "a key twice": lambda c: write(c).replace('{"format"', '{"format":"dsfc-proof/1","format"', 1),
    "not a number": lambda c: write(c).replace('"equal":true', '"equal":NaN', 1),
    "nested without end": lambda c: "[" * 100_000,
    "too long": lambda c: " " * (SIZE_LIMIT + 1),
    "a huge fraction": lambda c: write(c).replace('["Num","1"]', '["Num","1e999999999"]', 1),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attack(certificate: Callable, name: str) -> None:
    made = certificate("attention", "as_state", "eta_gauge")
    assert isinstance(made.proof, Invariant)
    assert rejected(ATTACKS[name](made))


# --- witnesses ------------------------------------------------------------------------------------


def spoil(c: Certificate, **changed) -> Certificate:
    return dataclasses.replace(c, proof=dataclasses.replace(c.proof, **changed))


@pytest.mark.parametrize("pair", DIFFERENT)
def test_spoiled_witnesses(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    point = made.proof
    assert isinstance(point, Witness)
    claimed_equal = dataclasses.replace(made.claim, equal=True)
    zero = tuple((n, tuple((0, 1, 0, 1) for _ in v)) for n, v in point.values)
    name, entries = point.values[0]
    for bad in (
        dataclasses.replace(made, claim=claimed_equal),
        dataclasses.replace(made, claim=dataclasses.replace(made.claim, b=made.claim.a)),
        spoil(made, values=zero),
        spoil(made, values=point.values[1:]),
        spoil(made, values=(*point.values, point.values[0])),
        spoil(made, values=((name, entries[1:]), *point.values[1:])),
        spoil(made, values=((name, ((1, 0, 0, 1), *entries[1:])), *point.values[1:])),
        spoil(made, values=((name, ((1, 1, 0, -1), *entries[1:])), *point.values[1:])),
        spoil(made, values=((name, ((1, 1, 1, 1), *entries[1:])), *point.values[1:])),
        spoil(made, length=0),
        spoil(made, length=65),
        spoil(made, token=point.length),
        spoil(made, token=-1),
        spoil(made, index=(*point.index, 0)),
        spoil(made, index=tuple(99 for _ in point.index)),
    ):
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
