"""What kernels take of a GPU: within the limits of each, and as the repository's table says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from kernel_specs import BEYOND, DECODED, EVERY, MATRIX, PRINTED, ROTATING, SPILLED, TOEPLITZ

triton = pytest.importorskip("triton")

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "resources.json").read_text(encoding="utf-8"))
SHARED = {"sm_80": 82_000, "sm_90": 113_000, "sm_100": 232_448, "gfx942": 65_536}
"""Bytes of a program; on sm_80 and sm_90 half of what an SM has, so that two fit.

On sm_100 and gfx942 with that it launches: 227 and 64 KiB.
"""
STACK: dict[bool, dict[str, int]] = {False: {}, True: {"sm_80": 64, "sm_90": 64}}
"""Bytes of a thread: addresses that do not change in a loop, and are read again there."""

REGISTERS = {"sm_80": 255, "sm_90": 255, "sm_100": 255, "gfx942": 512}
FEWEST = 200
"""Instructions: a kernel that does not fit still compiles, to a dozen of them."""


@cache
def ran(program: str, *what: str) -> Any:
    """What a program of this folder prints; Triton's interpreter must be off where it runs."""
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / program), *what],
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def found(spec: str, dtype: str, target: str) -> dict[str, dict[str, int]]:
    rows: dict[str, dict[str, int]] = {}
    for row in ran("resources.py", f"{spec}/{dtype}/{target}"):
        rows |= row
    return rows


def fits(name: str, row: dict[str, int]) -> None:
    target = name.split()[-1]
    # Memory first: what does not fit compiles to nothing, which passes everything else.
    assert row["shared"] <= SHARED[target], name
    assert row["instructions"] >= FEWEST, name
    assert row["stack"] <= max(STACK[is_full(name)].get(target, 0), BEYOND.get(of(name), 0)), name
    assert row["stack"] == 0 or row["registers"] >= 64, f"{name}: the assembler gave up"
    most = SPILLED.get(of(name), 0)
    assert row.get("spilled", 0) <= most, f"{name}: its loop stores to the stack"
    assert row["registers"] <= REGISTERS[target], name
    if name.split()[0].endswith(DECODED):
        # The planes of a complex state lie side by side, and are loaded one by one.
        planes = name.startswith(("s4d", "dlr_prod"))
        assert planes or (row["loads"] and row["stores"]), name
        return
    if name.split()[0].partition(":")[0] in TOEPLITZ:
        # A thread has four values of a chunk.
        assert row["products"], name
        return
    if is_matrix(name):
        # Of a chunk of 32 tokens and 16 keys, a thread of gfx942 has two; of 16 keys in float16,
        # whose factors are as wide as those of float32, one of eight warps has four.
        few = of(name) == ("rwkv7", "bf16", "gfx942") or (is_printed(name) and "fp16" in name)
        assert row["loads"] or few, name
        assert row.get("products") or "fp32" in name, name
        return
    assert row["loads"] or is_narrow(name), name
    # A summary stores one number for each channel.
    assert row["stores"] or "summary" in name or is_narrow(name), name


def of(name: str) -> tuple[str, str, str]:
    """Spec, dtype and target of a row."""
    spec, _, dtype, target = name.split()
    return spec, dtype, target


def is_matrix(name: str) -> bool:
    return name.split()[0].partition(":")[0] in (*MATRIX, *PRINTED, *ROTATING)


def is_printed(name: str) -> bool:
    return name.split()[0].partition(":")[0] in (*PRINTED, *ROTATING)


def is_full(name: str) -> bool:
    """Whether what a kernel keeps from token to token fills the registers."""
    return is_matrix(name) or name.startswith(("s6:64 _forward", "selective_"))


def is_narrow(name: str) -> bool:
    """Whether a thread has 4 numbers of 2 bytes of a tile: see docs/theory/kernels.md."""
    backward = name.startswith("s6") and " _backward" in name
    return (backward or name.startswith("selective_")) and " fp32 " not in name


def test_the_table_has_every_kernel_and_each_fits() -> None:
    kernels = TABLE["kernels"]
    assert {of(n) for n in kernels} == set(EVERY)
    assert {n.split()[1] for n in TABLE["peers"]} == {"chunk_fwd_kernel_h", "chunk_fwd_kernel_o"}
    for name, row in kernels.items():
        fits(name, row)


def test_what_is_beyond_the_limits_is_still_so() -> None:
    for known, what in ((BEYOND, "stack"), (SPILLED, "spilled")):
        rows = TABLE["kernels"].items()
        assert known == {k: max(r.get(what, 0) for n, r in rows if of(n) == k) for k in known}


def test_the_limits_tell() -> None:
    name, row = next(iter(TABLE["kernels"].items()))
    for change in ({"shared": 1 << 18}, {"stack": 8}, {"instructions": 12}, {"loads": 0}):
        with pytest.raises(AssertionError):
            fits(name, row | change)


def holds(spec: str, dtype: str, target: str) -> None:
    """Compiles again; with the Triton of the table, to the same."""
    rows = found(spec, dtype, target)
    few = (
        spec.startswith("s6") or spec in (*PRINTED, *ROTATING, *TOEPLITZ) or spec.endswith(DECODED)
    )
    assert len(rows) >= (2 if few else 4)
    for name, row in rows.items():
        fits(name, row)
        if triton.__version__ == TABLE["triton"]:
            assert row == TABLE["kernels"][name], f"{name}: see resources.py"


CI = [
    ("lru", "bf16", "sm_90"),
    ("deltanet", "bf16", "sm_90"),
    ("mega_ema", "bf16", "sm_90"),
    ("rg_lru", "bf16", "gfx942"),
    ("retnet", "bf16", "sm_90"),
    (f"rwkv7{DECODED}", "bf16", "sm_90"),
]
"""One of each kind: the others take long, and are of the last tier."""


@pytest.mark.ci
@pytest.mark.share(1, ci=6)
@pytest.mark.parametrize(("spec", "dtype", "target"), list(dict.fromkeys(CI)))
def test_kernels_are_as_the_table_says(spec: str, dtype: str, target: str) -> None:
    holds(spec, dtype, target)


@pytest.mark.full
@pytest.mark.parametrize(
    ("spec", "dtype", "target"),
    sorted(set(EVERY) - set(CI)),
)
def test_the_other_kernels_are_as_the_table_says(spec: str, dtype: str, target: str) -> None:
    holds(spec, dtype, target)


@pytest.mark.full
def test_kernels_of_a_peer_are_as_the_table_says() -> None:
    try:
        installed = version("fla-core")
    except PackageNotFoundError:
        pytest.skip("fla-core is not installed")
    rows = {name: row for line in ran("peers.py") for name, row in line.items()}
    peers = {name: row for name, row in rows.items() if name.startswith("fla ")}
    assert peers.keys() == TABLE["peers"].keys() and len(rows) == len(peers) + 2
    for name, row in peers.items():
        assert row["instructions"] >= FEWEST, name
        if (installed, triton.__version__) == (TABLE["fla-core"], TABLE["triton"]):
            assert row == TABLE["peers"][name], f"{name}: see peers.py"
