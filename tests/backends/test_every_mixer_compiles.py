"""Every mixer has a module for each target with kernels: the unusual ones, and those shipped.

Kernels in C of a few are run, beside the definition that the module carries along.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from emitted import SPECS, compiled
from ratios import SPECS as RATIOS
from unusual_specs import COMPILED

import dsfc
from dsfc.api.pipeline import Compilation
from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, deterministic_torch, run
from dsfc.validate.surface import surface

BACKENDS = ("c", "triton", "all")

ODD = (
    "selective_before",
    "mean_of_a_selective_state",
    "selective_read_of_one_axis_of_two",
    "nothing_but_scalars",
)
"""Mixers that the compiler ended in an internal error for: reads before the update beside kernels
of two targets, two axes of keys, and a layer that takes no size."""

RUN = (*ODD, "one_query_for_all_heads_and_one_each")
"""Mixers whose kernels are run: those, and two scans that differ in whether heads share a key."""

BODIES = COMPILED | {f"ratio_{name}": body for name, body in RATIOS.items()}
LATER = [n for n in (*BODIES, *(f"shipped_{n}" for n in compiled())) if n not in ODD]


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Compilation]:
    """Loads a mixer of a name, once."""
    folder = tmp_path_factory.mktemp("every_mixer")

    @cache
    def make(name: str) -> Compilation:
        if name not in BODIES:
            return dsfc.load(SPECS / f"{name.removeprefix('shipped_')}.dsf")
        path = folder / f"{name}.dsf"
        path.write_text(f"mixer {name} {{\n{BODIES[name]}\n}}\n", encoding="utf-8")
        return dsfc.load(path)

    return make


@pytest.mark.share(3, ci=127)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [*ODD, *(pytest.param(n, marks=pytest.mark.ci) for n in LATER)])
def test_a_mixer_has_a_module(name: str, backend: str, load: Callable[[str], Compilation]) -> None:
    assert load(name).module(backend).mixer == load(name).name


@pytest.mark.share(12, ci=0)
@pytest.mark.parametrize(("name", "backend"), [(n, b) for b in ("all", "c") for n in RUN])
def test_kernels_are_the_definition(
    name: str,
    backend: str,
    load: Callable[[str], Compilation],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Triton's interpreter runs kernels on CPUs, in front of those in C.
    monkeypatch.setattr(pytest.importorskip("triton").knobs.runtime, "interpret", False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / f"{name}_{backend}.py"
    path.write_text(load(name).module(backend).text, encoding="utf-8")
    module = dsfc.import_module(path)
    if reason := module._NATIVE.why_never():
        pytest.skip(reason)  # a machine without a C compiler runs torch, which other tests compare
    with deterministic_torch():
        rows = [run(c, surface(module)) for c in CHECKS if c.name in ("definition", "segments")]
    assert [r.figure for r in rows if r.outcome is not Outcome.KEPT] == []
    assert module._NATIVE._functions, "no kernel ran"
