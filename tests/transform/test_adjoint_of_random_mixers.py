"""The adjoint of the System of a random mixer computes its float64 derivative."""

from __future__ import annotations

import pytest
from draws import by_definition
from gradients import check

from dsfc.derive.derive import derive
from dsfc.mixer import resolve, sizes
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.validate.random_mixers import random_mixer

SEEDS = {"fast": 25, "ci": 100, "full": 500}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(SEEDS[metafunc.config.getoption("--tier")]))


def test_the_adjoint_is_the_derivative(seed: int) -> None:
    mixer = resolve(parse(Source(f"<seed {seed}>", random_mixer(seed))))
    system = derive(mixer)
    known = sizes(mixer, {d.axis.name: 3 for d in mixer.axes if d.size is None})
    copies = {d.axis.name: known[d.axis.copy_of] for d in system.axes if d.axis.copy_of}
    check(system, 3, known | copies, seed, evaluate=by_definition)
