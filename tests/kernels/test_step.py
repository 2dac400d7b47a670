"""Kernels of one token and of some compute, in float64, what turns of the loop over tokens do."""

from __future__ import annotations

import convolutions
import numpy as np
import pytest
import torch
from by_tokens import FORMS, UNDECAYED, agree, by_tokens, drawn, scan_of
from dsfc.backends.torch.operators import skeletons

import dsfc
from dsfc.expr.tree import Field
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access, Kernel
from dsfc.kernels.chunkwise import has_chunks
from dsfc.kernels.convolution import has_convolution
from dsfc.kernels.step import has_step, step, steps
from dsfc.kernels.tokens import has_tokens

# What a kernel computes beyond the last channel is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def sizes(keys: int, channels: int = 3, rows: int = 2, length: int = 1) -> dict[str, int]:
    """Two heads, blocks of two channels; both names of a size, the kernel's and the loop's."""
    own = {"SIZE_h": 2, "SIZE_n": keys, "SIZE_p": channels, "BLOCK": 2}
    return {"B": rows, "L": length, "H": 2, "N": keys, "P": channels, **own}


def check(kernel: Kernel, at: dict[str, int], strong: bool) -> None:
    """Runs the kernel beside the loop."""
    read = drawn(kernel, at, strong)
    values = {n: torch.from_numpy(x) for n, x in read.items()}
    for name in "qk":  # what all heads share
        if values[name].ndim == 3:
            values[name] = values[name][:, :, None].expand(-1, -1, at["H"], -1)
    o, last = by_tokens(values)
    if "S_last" in {a.name for a in kernel.arguments}:
        agree(interpret(kernel, read, at), {"o": o.numpy(), "S_last": last.numpy()})
        return
    each = [by_tokens(first(values, i))[1].numpy() for i in range(1, 1 + at["L"])]
    agree(interpret(kernel, read, at), {"o": o.numpy(), "S_each": np.array(each)})


def first(values: dict[str, torch.Tensor], count: int) -> dict[str, torch.Tensor]:
    """What is read of the first tokens."""
    return {n: x if n == "S" else x[:, :count] for n, x in values.items()}


@pytest.mark.parametrize("strong", [False, True], ids=["mild", "strong"])
@pytest.mark.parametrize("keys", [1, 3, 17, 64, 128])
@pytest.mark.parametrize("spec", [*FORMS, *UNDECAYED])
def test_a_token_is_one_turn_of_the_loop(spec: str, keys: int, strong: bool) -> None:
    check(step(scan_of(spec)[0], False), sizes(keys), strong)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("spec", [*FORMS, *UNDECAYED])
def test_states_after_all_tokens_are_those_of_the_loop(spec: str, length: int) -> None:
    check(steps(scan_of(spec)[0], False), sizes(17, length=length), length == 2)


@pytest.mark.parametrize(("rows", "channels"), [(0, 2), (1, 1), (5, 5)])
def test_after_all_tokens_of_any_number_of_rows_and_channels(rows: int, channels: int) -> None:
    check(steps(scan_of("kda")[0], False), sizes(3, channels, rows, 4), strong=False)
    check(steps(scan_of("retnet")[0], True), sizes(3, channels, rows, 4), strong=False)


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_of_any_number_of_rows_and_channels(rows: int, channels: int) -> None:
    check(step(scan_of("kda")[0], False), sizes(3, channels, rows), strong=False)


def test_of_reads_and_keys_that_all_heads_share() -> None:
    check(step(scan_of("retnet")[0], True), sizes(3), strong=False)


@pytest.mark.parametrize("spec", ["s4d", "mega_ema", "dss_exp"])
def test_of_the_recurrence_of_a_convolution(spec: str) -> None:
    scan, _ = convolutions.scan_of(spec)
    kernel, wide = step(scan, False), scan.field is Field.COMPLEX and not scan.real
    x = convolutions.drawn(spec, wide, 1, True, {"G": 1, "B": 3, "C": 5, "N": 4})
    want, last = convolutions.by_tokens(x, wide)
    rows = {n: x[n].expand(3, -1, -1) for n in "qkg"} | {"v": x["v"][0], "S": x["S"][0]}
    at = {"B": 3, "L": 1, "SIZE_h": 5, "SIZE_n": 4, "BLOCK": 2}
    got = interpret(kernel, {n: convolutions.planes(t) for n, t in rows.items()}, at)
    convolutions.agree(got["o"], want[0], 1, "o")
    convolutions.agree(got["S_last"], last[0], 1, "S_last")


@pytest.mark.parametrize("spec", ["s4d", "mega_ema", "dss_exp"])
def test_after_all_tokens_of_the_recurrence_of_a_convolution(spec: str) -> None:
    scan, _ = convolutions.scan_of(spec)
    kernel, wide = steps(scan, False), scan.field is Field.COMPLEX and not scan.real
    x = convolutions.drawn(spec, wide, 4, True, {"G": 1, "B": 3, "C": 5, "N": 4})
    want, _ = convolutions.by_tokens(x, wide)
    rows = {n: x[n].expand(3, -1, -1) for n in "qkg"} | {"v": x["v"][0], "S": x["S"][0]}
    at = {"B": 3, "L": 4, "SIZE_h": 5, "SIZE_n": 4, "BLOCK": 2}
    got = interpret(kernel, {n: convolutions.planes(t) for n, t in rows.items()}, at)
    convolutions.agree(got["o"], want[0], 4, "o")
    for i in range(1, 5):
        _, last = convolutions.by_tokens(x | {"v": x["v"][:, :, :i]}, wide)
        convolutions.agree(got["S_each"][i - 1], last[0], 4, "S_each")


def test_states_that_are_not_numbers_stay_in_their_channel() -> None:
    kernel, at = step(scan_of("gla")[0], False), sizes(3)
    read = drawn(kernel, at, False)
    read["S"][0, 1, :, 2] = np.nan
    got = interpret(kernel, read, at)
    spoilt = np.zeros((2, 1, 2, 3), bool)
    spoilt[0, 0, 1, 2] = True
    assert (np.isnan(got["o"]) == spoilt).all()


@pytest.mark.ci
def test_every_scan_with_kernels_of_sequences_has_one_or_goes_token_by_token() -> None:
    for spec in (*FORMS, "s4d", "lru", "s6", "qlstm", "ssd", "mlstm", "hgrn2", "rwkv6"):
        if spec == "rewrite":
            continue
        for s in skeletons(dsfc.load(spec).plan):
            chunked = has_chunks(s.scan) or has_convolution(s.scan)
            assert has_step(s.scan) == chunked
            assert chunked or has_tokens(s.scan, s.adjoint, lambda _: True)


def test_a_kernel_of_one_token_writes_no_gradient() -> None:
    written = {a.name for a in step(scan_of("kda")[0], False).arguments if a.access is Access.WRITE}
    assert written == {"o", "S_last"}
    written = {
        a.name for a in steps(scan_of("kda")[0], False).arguments if a.access is Access.WRITE
    }
    assert written == {"o", "S_each"}
