"""How kernels are started: compiled once for all lengths, by their handles after the first call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from kernel_specs import PRINTED

pytest.importorskip("triton")

HERE = Path(__file__).parent


@cache
def ran(what: str) -> Any:
    """What the program of this folder prints; Triton's interpreter must be off where it runs."""
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "launches.py"), what],
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.full
@pytest.mark.parametrize(
    ("spec", "short", "more"),
    [
        ("rg_lru", 2, 2),
        ("retnet", 3, 3),
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in (("qlstm", 2, 2), ("lru", 2, 2), ("gateloop", 5, 5))
        ),
    ],
)
def test_few_kernels_serve_a_hundred_lengths_and_all_batches(
    spec: str, short: int, more: int
) -> None:
    found = ran(f"lengths/{spec}")
    # Two for the passes, two for summaries where there are several segments; of a matrix scan two
    # for the backward pass, which has two summaries. Those of a complex one go backwards twice.
    kernels = 4 if short == 2 else 5
    # Those of single tokens, which no sequence here is, are not compiled.
    assert [n for n in found["compiled"] if n] == [1] * kernels
    assert found["handles"] == found["jit"] == kernels
    assert found["launches"] == 100 * short + 68 * more


OTHERS = ("retnet", "gateloop", "lru", "s6", "deltanet", "gated_deltanet", "kda", "rwkv7")
OF_EACH_FORM = [
    *(pytest.param(spec, marks=pytest.mark.ci) for spec in ("gla", "rg_lru")),
    *(pytest.param(spec, marks=pytest.mark.full) for spec in OTHERS),
]


@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("spec", OF_EACH_FORM)
def test_nothing_is_compiled_for_a_length_or_a_pack(spec: str) -> None:
    found = ran(f"keys/{spec}")
    # How many tokens of a row count is an argument of all kernels but printed ones, or none is.
    masked = 1 if spec in PRINTED else 2
    # A selective scan keeps no states of a sequence without tokens, as where no gradient is wanted.
    most = 3 if spec == "s6" else masked
    assert set(found["lengths"].values()) == {1}
    assert set(found["packs"].values()) <= {masked, most}
    assert found["handles"] == sum(found["packs"].values())


@pytest.mark.parametrize("spec", OF_EACH_FORM)
def test_every_launch_says_whether_products_and_sums_are_fused(spec: str) -> None:
    assert ran(f"keys/{spec}")["fused"]


@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("spec", OF_EACH_FORM)
def test_a_call_from_a_state_asks_nothing_of_the_device(spec: str) -> None:
    """A graph of CUDA can hold it: no number comes back, and all memory is PyTorch's."""
    found = set(ran(f"captured/{spec}"))
    assert any(name.endswith("::forward") for name in found)
    back = {"item", "_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select"}
    assert not {name for name in found if name.removeprefix("aten::") in back}


@pytest.mark.ci
def test_a_handle_starts_what_triton_starts() -> None:
    first, second, without = ran("same/rg_lru")
    assert len(first["launches"]) == 4
    assert first["launches"] == second["launches"] == without["launches"]
    assert (first["jit"], second["jit"], without["jit"]) == (4, 0, 4)


@pytest.mark.full
def test_a_plan_starts_what_triton_starts() -> None:
    """Grids, constants, and which kernel reads what another wrote: tensors go by numbers."""
    first, second, without = ran("same/gla")
    assert len(first["launches"]) == 7
    assert first["launches"] == second["launches"] == without["launches"]
    # Backwards the first kernel is that of the forward pass.
    assert (first["jit"], second["jit"], without["jit"]) == (6, 0, 7)


@pytest.mark.ci
def test_a_plan_is_for_calls_that_are_alike() -> None:
    assert ran("planned/gla") == {
        "first": 3,
        "second": 0,
        "at a multiple of 2 bytes": 1,  # the kernel that reads it
        "strided": 0,  # a copy is read
        "in float16": 1,
        "with other tiles": 3,
        "with tiles changed in place": 3,
        "watched": 3,  # by a profiler, whom Triton tells
        "at last": 0,
        "not trusted": 0,  # torch runs
    }


CALLS = {
    "gla": ((29, 38), (32, 54)),
    "gated_deltanet": ((29, 41), (34, 64)),
    "kda": ((29, 41), (33, 62)),
    "rwkv7": ((29, 44), (32, 66)),
    "retnet": ((27, 124), (34, 202)),
    "rg_lru": ((24, 144), (25, 203)),
    "s6": ((17, 105), (19, 171)),
}
"""Functions of Python and of C that a call runs on the host, forwards and backwards.

Each is 50 to 500 nanoseconds of the time that a call takes before its kernels start.
"""


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(s, marks=pytest.mark.ci if s in ("gla", "rg_lru") else pytest.mark.full)
        for s in CALLS
    ],
)
def test_a_call_runs_few_functions_before_its_kernels_start(spec: str) -> None:
    found = ran(f"calls/{spec}")
    for way, most in zip(("forward", "backward"), CALLS[spec], strict=True):
        assert all(n <= limit for n, limit in zip(found[way], most, strict=True)), found


@pytest.mark.full
def test_handles_are_for_pointers_to_multiples_of_16_bytes() -> None:
    found = ran("aligned/rg_lru")
    # Numbers of 4 bytes, from the 0th, 0th, 1st, 1st, 4th and 0th on.
    assert found["jit"] == [1, 0, 1, 1, 0, 0]
    assert found["compiled"] == 2


@pytest.mark.parametrize("length", [(1 << 31) - 1, 1 << 31])
def test_more_tokens_than_32_bits_count_are_refused(
    length: int, build: Callable[..., ModuleType]
) -> None:
    module = build("qlstm")
    x = torch.empty(1, length, 1, device="meta")
    if length < 1 << 31:
        assert module._grid("elementwise", "forward", x, 1, module._forward_work)[0][0] == 1
        return
    with pytest.raises(ValueError, match=f"kernels count tokens in 32 bits, got {length}"):
        module._grid("elementwise", "forward", x, 1, module._forward_work)
