"""How the tests of this folder get a typed mixer, and how they compare a System with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dsfc.derive.derive import derive
from dsfc.mixer import Library, resolve, sample, sizes
from dsfc.mixer import evaluate as evaluate_mixer
from dsfc.mixer.ir import Mixer
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import System
from dsfc.system.verify import verify

sys.path.insert(0, str(Path(__file__).parent))

SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture(scope="session")
def mixer_of() -> Callable[[str], Mixer]:
    """Resolves a text."""
    return lambda text: resolve(parse(Source("<text>", text)), None, Library(SPECS))


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Mixer]:
    """Resolves a shipped spec by its name."""
    library = Library(SPECS)
    return lambda name: resolve(parse(read_source(SPECS / f"{name}.dsf")), name, library)


@pytest.fixture(scope="session")
def system_of(mixer_of: Callable[[str], Mixer]) -> Callable[[str], System]:
    """Derives a text, and verifies what comes out."""

    def make(text: str) -> System:
        system = derive(mixer_of(text))
        verify(system)
        return system

    return make


@pytest.fixture(scope="session")
def error_of() -> Callable[[Mixer, System], float]:
    """The worst difference between a System and its mixer run literally, relative to max(1, |y|).

    Over several lengths, from zero and from given initial states; declared states are compared too.
    """

    def worst(mixer: Mixer, system: System, given: dict[str, int] | None = None) -> float:
        default = {d.axis.name: 4 for d in mixer.axes if d.size is None}
        known = sizes(mixer, given or default)
        out = 0.0
        for length in (0, 1, 2, 6):
            drawn = sample(mixer, known, seed=length, length=length)
            for initial in (None, drawn.initial):
                want = evaluate_mixer(mixer, drawn.inputs, drawn.params, known, initial=initial)
                got = evaluate(system, drawn.inputs, drawn.params, known, initial)
                out = max(out, _error(got.outputs["y"], want["y"]))
                for name in {s.name for s in mixer.states} & set(got.states):
                    out = max(out, _error(got.states[name], want[name]))
        return out

    return worst


def _error(got: np.ndarray, want: np.ndarray) -> float:
    assert got.shape == want.shape
    if not got.size:
        return 0.0
    assert np.isfinite(want).all()
    return float(np.abs(got - want).max() / max(1.0, np.abs(want).max()))
