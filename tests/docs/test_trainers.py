"""The programs of the page about trainers and JAX run as they stand, where those are installed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = {"Accelerate": "accelerate", "Lightning": "pytorch_lightning", "JAX": "jax"}


def programs(page: str, section: str) -> str:
    """The programs of a section of the page, one after another."""
    _, _, rest = page.partition(f"\n## {section}\n")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", rest.split("\n## ")[0], re.M | re.S))


@pytest.mark.ci
@pytest.mark.parametrize("section", PACKAGES)
def test_the_programs_of_a_section_run(section: str, root: Path, tmp_path: Path) -> None:
    # Looked for, not imported: what others warn of when they are is no fault of the page. Skipped
    # where the extra `trainers` is not installed: no tier needs it otherwise, and JAX is large.
    if importlib.util.find_spec(PACKAGES[section]) is None:
        pytest.skip(f"{PACKAGES[section]} is not installed")
    page = (root / "docs/how_to/use_a_trainer.md").read_text(encoding="utf-8")
    program = programs(page, "A model") + programs(page, section)
    assert program.count("import") > 3
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    assert line.startswith(f"{section}: ")
    if "loss" in line:
        first, last = map(float, re.findall(r"\d+\.\d+", line))
        assert last < first / 2
