"""Floors are the work that is counted, at the rates that are measured."""

from __future__ import annotations

import json

import pytest

from benchmarks import floors, tables
from benchmarks.contender import Work
from benchmarks.table import ROWS
from dsfc.plan.scan_ir import Form

BY_NAME = {row.name: row for row in ROWS}


def test_the_products_of_a_chunk_are_counted_one_by_one() -> None:
    """Of a chunk of 32 tokens with 128 keys and channels, as a program would run them."""
    row, chunk, size = BY_NAME["scalar_c"], 32, 128
    triangle = chunk * chunk // 2
    pairs = triangle * size  # q · k
    mixed = triangle * size  # pairs · v
    state = chunk * size * size  # q · S, and k ⊗ v
    chunks = row.sizes["L"] // chunk * row.sizes["H"]
    assert floors.products(row, Form.MATRIX) == 2 * chunks * (pairs + mixed + 2 * state)


def test_a_delta_rule_reads_along_its_keys_besides() -> None:
    row = BY_NAME["delta_c"]
    plain, delta = (floors.products(row, form) for form in (Form.MATRIX, Form.LOW_RANK))
    assert 1.5 < delta / plain < 2


@pytest.mark.parametrize(("work", "arrays"), [(Work.FORWARD, 3), (Work.TRAINING, 8)])
def test_each_array_is_moved_once(work: Work, arrays: int) -> None:
    assert floors.moved(BY_NAME["elementwise_c"], work) == arrays * 4 * 2 * 2048 * 1024


def test_the_committed_floors_are_of_the_committed_rows() -> None:
    document = json.loads(tables.FLOORS.read_text(encoding="utf-8"))
    at = {name: rate["median"] for name, rate in document["rates"].items()}
    for line in document["floors"]:
        row, work = BY_NAME[line["row"]], Work(line["work"])
        match line["rate"]:
            case "sgemm":
                amount = floors.products(row, floors.PRODUCTS[row.name])
            case "copy":
                amount = floors.moved(row, work)
            case _:
                amount = floors.exponentials(row)
        assert line["floor"] == pytest.approx(amount / at[line["rate"]])
        assert line["times"] == pytest.approx(line["seconds"] / line["floor"])
