"""How long commands take to start, as ratios of whole processes, and what they never import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

HELP_IN_BARE_STARTS = 14
COMPILE_IN_SYMPY_IMPORTS = 4
ROUNDS = 5


def seconds(*command: str, cwd: Path) -> float:
    plain = {name: value for name, value in os.environ.items() if name != "DSFC_CHECK"}
    began = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, env=plain)
    return time.perf_counter() - began


def ratio(of: list[str], to: list[str], cwd: Path) -> float:
    """Best time of one command over the best of another, taken in turns on a machine in use."""
    times = [
        (seconds(sys.executable, *of, cwd=cwd), seconds(sys.executable, *to, cwd=cwd))
        for _ in range(ROUNDS)
    ]
    return min(a for a, _ in times) / min(b for _, b in times)


def test_help_is_fast(folder: Path) -> None:
    assert ratio(["-m", "dsfc", "--help"], ["-c", "pass"], folder) <= HELP_IN_BARE_STARTS


@pytest.mark.full
def test_compiling_is_fast(folder: Path, root: Path) -> None:
    spec = str(root / "specs" / "normalized_attn.dsf")
    compiling = ["-m", "dsfc", "compile", spec]
    assert ratio(compiling, ["-c", "import sympy"], folder) <= COMPILE_IN_SYMPY_IMPORTS


LOADED = """\
import json, sys
from dsfc.cli import main
sys.argv = ["dsfc", *sys.argv[1:]]
try:
    main()
except SystemExit as e:
    code = e.code
print("\\n" + json.dumps([code, sorted({m.split(".")[0] for m in sys.modules})]))
"""


@pytest.mark.share(8)
@pytest.mark.parametrize(
    "args, without",
    [
        (["--help"], {"torch", "sympy", "numpy", "lark", "networkx", "jinja2", "rich"}),
        (["--version"], {"torch", "sympy", "numpy", "lark", "networkx", "jinja2", "rich"}),
        (["check", "s6"], {"torch", "sympy", "networkx", "jinja2", "rich"}),
        (["show", "s6"], {"torch", "sympy", "networkx", "jinja2", "rich"}),
        (["show", "s6", "--stage", "plan"], {"torch", "sympy", "networkx", "jinja2", "rich"}),
        (["compile", "s6"], {"torch", "sympy", "networkx", "rich"}),
        (["equiv", "retnet", "retnet"], {"torch", "sympy", "networkx", "jinja2", "rich"}),
        (["explain", "E-SYNTAX"], {"torch", "sympy", "numpy", "lark", "networkx", "jinja2"}),
    ],
)
def test_commands_import_what_they_need(
    start: Callable, args: list[str], without: set[str]
) -> None:
    done = start(*args, code=LOADED)
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert without & set(loaded) == set()
