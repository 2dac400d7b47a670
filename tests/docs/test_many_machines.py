"""The programs of the page about many machines run as they stand, the loop on a whole mesh too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.full
def test_the_programs_of_the_page_run_and_the_loop_on_four_processes(
    root: Path, tmp_path: Path
) -> None:
    page = (root / "docs/how_to/train_on_many_machines.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\} python3\n(.*?)^```$", page, re.M | re.S)
    assert len(cells) == page.count("```") // 2  # every program of the page is one
    program = "\n".join((*cells, 'torchrun("loop.py", 4)'))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = "{} replicas of 2 processes: the gradients are those of one process"
    assert said.format(1) in done.stdout and said.format(2) in done.stdout
    assert "step 1  loss" in done.stdout
    assert "W_Q: [16, 16], of which [8, 16] are here" in done.stdout
