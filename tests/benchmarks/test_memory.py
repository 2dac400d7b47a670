"""The peak of a process, as the system counts it."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from benchmarks import memory

SIZE = 64 * 2**20


@pytest.mark.ci
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="counted by Linux")
def test_the_peak_remembers_what_was_freed_until_it_is_reset() -> None:
    memory.reset_peak()
    before = memory.resident()
    with mmap.mmap(-1, SIZE) as block:
        block.write(b"x" * SIZE)
    assert memory.peak() - before >= SIZE
    memory.reset_peak()
    assert memory.peak() - before < SIZE
