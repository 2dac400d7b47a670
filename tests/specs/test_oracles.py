"""Emitted modules are their oracles: every spec, every mode, awkward lengths, all gradients."""

from __future__ import annotations

import pytest
import torch
from emitted import PROMISED, REFUSED, Beside, compiled, narrow, text

from dsfc.validate.cases import BATCHES, CHUNK, lengths
from dsfc.validate.compare import EXACT, Error, agree, bar_share, errors

SHAPES = [
    (n, b) for n in lengths(CHUNK) for b in BATCHES if b == max(BATCHES) or n in (0, CHUNK + 1)
]
"""All lengths with a batch, and batches of one and of none with two of them."""


def test_the_promised_specs_compile() -> None:
    assert set(PROMISED) <= set(compiled())
    assert len(PROMISED) == 24
    assert [name for name in REFUSED if text(name) is not None] == []


@pytest.mark.share(4, ci=7)
def test_every_mode_is_the_oracle(beside: Beside) -> None:
    for length, batch in SHAPES:
        given = beside.draw(length, batch)
        want = beside.judged(given)
        for mode in (*beside.module.MODES, "auto"):
            got = beside.ran(given, mode, CHUNK)
            agree(got, want, EXACT, f"{mode}, L = {length}, B = {batch}")


@pytest.mark.share(4, ci=7)
def test_every_mode_continues_as_the_oracle_does(beside: Beside) -> None:
    if not beside.states:
        pytest.skip("the oracle has other states; test_segments_are_the_oracle holds it")
    for length, batch in SHAPES:
        given = beside.draw(length, batch)
        want = beside.judged(given, start=True)
        for mode in beside.module.MODES:
            got = beside.ran(given, mode, CHUNK, start=True)
            agree(got, want, EXACT, f"{mode}, L = {length}, B = {batch}")


@pytest.mark.share(4, ci=7)
def test_segments_are_the_oracle(beside: Beside) -> None:
    if not getattr(beside.module, "CAUSAL", True):
        pytest.skip("it reads tokens to come; the promise `segments` holds that it says so")
    length = 2 * CHUNK + 1
    given = beside.draw(length, 2)
    want = beside.judged(given)
    for mode in beside.module.MODES:
        for cut in range(length + 1):
            agree(beside.ran(given, mode, CHUNK, cuts=(cut,)), want, EXACT, f"{mode}, cut at {cut}")
        tokens = tuple(range(1, length))
        agree(beside.ran(given, mode, CHUNK, cuts=tokens), want, EXACT, f"{mode}, token by token")


@pytest.mark.share(1, ci=4)
def test_leaving_states_out_changes_no_output(beside: Beside) -> None:
    if "carry" not in beside.flags:
        pytest.skip("its operators always carry the state")
    for length, batch in SHAPES:
        given = beside.draw(length, batch)
        want = beside.judged(given)
        for mode in beside.module.MODES:
            got = beside.ran(given, mode, CHUNK, carry=False)
            agree(got, want, EXACT, f"{mode}, L = {length}, B = {batch}")


@pytest.mark.share(2, ci=16)
@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_the_chunk_size_changes_nothing(beside: Beside, chunk: int) -> None:
    given = beside.draw(13, 2)
    want = beside.judged(given)
    for mode in beside.module.MODES:
        agree(beside.ran(given, mode, chunk), want, EXACT, f"{mode}, chunk {chunk}")


@pytest.mark.share(1, ci=4)
def test_blocks_of_a_chunk_each_change_nothing(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(beside.module, "BLOCK"):
        pytest.skip("it has one chunk, or all of them, at a time")
    given = beside.draw(23, 2)
    want = beside.judged(given)
    for block in (1, 200):  # tensors this small fit into one block otherwise
        monkeypatch.setattr(beside.module, "BLOCK", block)
        agree(beside.ran(given, "chunked", 2), want, EXACT, f"blocks of at most {block} numbers")


def test_the_reference_is_the_oracle(beside: Beside) -> None:
    for length in (0, 1, 2, 13):
        given = beside.draw(length, 2)
        agree(beside.defined(given), beside.judged(given), EXACT, f"L = {length}")


@pytest.mark.share(8, ci=13)
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, pytest.param(torch.float32, marks=pytest.mark.full)]
)
def test_low_precision_errs_no_more_than_the_plain_loop(beside: Beside, dtype: torch.dtype) -> None:
    plain: list[dict[str, Error]] = []
    got: dict[str, list[dict[str, Error]]] = {mode: [] for mode in beside.module.MODES}
    for seed in range(8):
        low = {n: narrow(x, dtype) for n, x in beside.draw(23, 2, seed=seed).items()}
        truth = beside.judged({n: narrow(x, torch.float64) for n, x in low.items()})
        plain.append(errors(beside.judged(low), truth))
        for mode, found in got.items():
            found.append(errors(beside.ran(low, mode, 8), truth))
    for mode, found in got.items():
        bar_share(found, plain, dtype, f"{mode}, {dtype}")
