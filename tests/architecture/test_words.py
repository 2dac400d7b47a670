"""Tracked files speak of the project only: no path of one machine, no tracker number."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

# Spelt in pieces, so that this file does not contain what it forbids.
FORBIDDEN = {
    "a folder of one machine": re.compile(
        "/(?:" + "|".join(["work", "tmp", "root", "home"]) + ")/"
    ),
    "a tracker number": re.compile(r"\b[Ii]ss" + r"ue #?\d"),
    "how the text came about": re.compile(r"\bsess" + r"ions?\b"),
    "a package registry": re.compile("|".join(["py" + "pi", "python" + "hosted"]), re.IGNORECASE),
}
EXCUSED = re.compile(
    r"(?:scope=.)?[s]ession(?:: pytest\.Session|\.items|.\))|\"integrity\": \"sha512-[\w+/=]+\""
)
"""pytest's name of a run: of fixtures that live through it, and of what its hooks are given; and
the hash of a locked package, in which any letters may stand."""


def tracked(root: Path) -> list[Path]:
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    return [root / name for name in names.split("\0") if name and (root / name).is_file()]


@pytest.mark.ci
def test_tracked_files_speak_of_the_project_only(root: Path) -> None:
    found = []
    for path in tracked(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for what, pattern in FORBIDDEN.items():
                if pattern.search(EXCUSED.sub("", line)):
                    found.append(f"{path.relative_to(root)}:{number} {what}: {line.strip()}")
    assert found == []
