"""What `check` says of a mixer is what `compile` does with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsfc.api.check import checked
from dsfc.api.locate import shipped_names
from dsfc.api.pipeline import read
from dsfc.diagnostics.report import DiagnosticError

sys.path.insert(0, str(Path(__file__).parents[1] / "backends" / "torch"))
sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))

from spec_writer import random_mixer
from unusual_specs import REFUSED

SEEDS = {"fast": 8, "ci": 80, "full": 1000}


def agree(path: str | Path) -> list[bool]:
    """For each mixer of a text, whether it compiles; `check` says the same, and why it does not."""
    text = read(path)
    found = checked(text, str(path))
    said = {m.name: m.refusal for m in found.mixers}
    out = []
    for name in text.mixers:
        try:
            text.compilation(name).module()
        except DiagnosticError as e:
            out.append(False)
            if name not in said:
                assert set(map(str, e.diagnostics)) <= set(map(str, found.diagnostics))
            elif any(d.code == "E-NO-OUTPUT" for d in e.diagnostics):
                assert (
                    said[name] == "it has no output: define `y = …`, or extend it in another mixer"
                )
            else:
                assert said[name] == "; ".join(d.message for d in e.diagnostics)
        else:
            out.append(True)
            assert said[name] is None
    return out


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(SEEDS[metafunc.config.getoption("--tier")]))


@pytest.mark.share(16, ci=36)
def test_check_says_of_random_mixers_what_compile_does(seed: int, tmp_path: Path) -> None:
    path = tmp_path / f"random_{seed}.dsf"
    path.write_text(random_mixer(seed), encoding="utf-8")
    agree(path)


@pytest.mark.share(12, ci=9)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.ci] * bool(k % 12)) for k, n in enumerate(shipped_names())],
)
def test_check_says_of_shipped_specs_what_compile_does(name: str) -> None:
    agree(name)


@pytest.mark.parametrize("name", REFUSED)
def test_check_refuses_what_compile_refuses(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.dsf"
    path.write_text(f"mixer {name} {{\n{REFUSED[name][0]}\n}}\n", encoding="utf-8")
    assert agree(path) == [False]
