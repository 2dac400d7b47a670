"""The adjoint of the System of a random mixer computes its float64 derivative."""

from __future__ import annotations

import pytest
from draws import by_definition
from gradients import check
from spec_writer import random_mixer

from dsfc.derive.derive import derive
from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import Library, resolve, sizes
from dsfc.source import Source
from dsfc.syntax.parse import parse

SEEDS = {"fast": 10, "ci": 50, "full": 500}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(SEEDS[metafunc.config.getoption("--tier")]))


@pytest.mark.share(2, ci=36)
def test_the_adjoint_is_the_derivative(seed: int) -> None:
    text = random_mixer(seed)
    mixer = resolve(parse(Source(f"<seed {seed}>", text)), f"random_{seed}", Library())
    try:
        system = derive(mixer)
    except DiagnosticError as e:
        pytest.skip(f"there is no System: {e.diagnostics[0].message}")
    known = sizes(mixer, {d.axis.name: 3 for d in mixer.axes if d.size is None})
    copies = {d.axis.name: known[d.axis.copy_of] for d in system.axes if d.axis.copy_of}
    check(system, 3, known | copies, seed, evaluate=by_definition)
