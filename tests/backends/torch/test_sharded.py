"""FSDP2's mixed precision leaves `float32_parameters` in float32, as the guide to training says."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import sharded


@pytest.mark.ci
def test_two_processes_keep_them_and_agree_on_their_gradients(build, tmp_path: Path) -> None:
    module = Path(build("lru", None).module.__file__)
    sharded(module, "Lru", {"d": 4, "n": 6}, tmp_path)
