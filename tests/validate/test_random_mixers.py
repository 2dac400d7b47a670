"""Programs nobody wrote: the System of a random mixer is the mixer run literally."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from spec_writer import random_mixer

from dsfc.derive.derive import derive
from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import Library, resolve, sample, sizes
from dsfc.mixer import evaluate as evaluate_mixer
from dsfc.plan.accounting import settle
from dsfc.plan.build import plan
from dsfc.source import Source
from dsfc.structure.classify import classify
from dsfc.syntax.parse import parse
from dsfc.system.evaluate import evaluate
from dsfc.system.traverse import parts, trees
from dsfc.system.verify import verify

SEEDS = {"fast": 20, "ci": 80, "full": 500}
TOLERANCE = 1e-12


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(SEEDS[metafunc.config.getoption("--tier")]))


def mixer(seed: int):
    text = random_mixer(seed)
    return resolve(parse(Source(f"<seed {seed}>", text)), f"random_{seed}", Library())


def system_of(m):
    try:
        return derive(m)
    except DiagnosticError as e:
        pytest.skip(f"there is no System: {e.diagnostics[0].message}")


def near(got: np.ndarray, want: np.ndarray) -> bool:
    assert got.shape == want.shape
    assert np.isfinite(want).all()
    return not got.size or np.abs(got - want).max() <= TOLERANCE * max(1.0, np.abs(want).max())


@pytest.mark.share(2, ci=87)
def test_the_system_is_the_mixer_run_literally(seed: int) -> None:
    m = mixer(seed)
    system = system_of(m)
    verify(system)
    given = {d.axis.name: 4 for d in m.axes if d.size is None}
    known = sizes(m, given)
    for length in (1, 4):
        drawn = sample(m, known, seed, length)
        for initial in (None, drawn.initial):
            want = evaluate_mixer(m, drawn.inputs, drawn.params, known, initial=initial)
            got = evaluate(system, drawn.inputs, drawn.params, known, initial)
            assert near(got.outputs["y"], want["y"])
            for s in m.states:
                if s.name in got.states:
                    assert near(got.states[s.name], want[s.name])


REFUSED = ("declares no input", "has no finite state", "is an abstract map", "output is complex")
"""What has no plan: all else runs, token by token at least."""


@pytest.mark.share(2, ci=87)
def test_what_has_a_finite_state_and_declares_an_input_has_a_plan(seed: int) -> None:
    system = system_of(mixer(seed))
    try:
        made = plan(system, classify(system))
    except DiagnosticError as e:
        (problem,) = e.diagnostics
        assert any(words in problem.message for words in REFUSED), problem.message
        return
    settle(made, system)
    assert any(m.name == "recurrent" and m.legal for m in made.modes)


@pytest.mark.full
def test_every_kind_of_node_occurs() -> None:
    nodes: Counter[str] = Counter()
    features: Counter[str] = Counter()
    for seed in range(150):
        try:
            system = derive(mixer(seed))
        except DiagnosticError:
            continue
        nodes.update(type(n).__name__ for t in trees(system) for n in parts(t))
        for stage in system.stages:
            features["backward stage"] += stage.direction < 0
            features["several states"] += len(stage.blocks) > 1
            for b in stage.blocks:
                features["chain"] += len(b.chain) > 1
                features["flow"] += b.flow is not None
                features["complex state"] += bool(b.field)
                terms = [t for f in b.chain for t in f.terms]
                features["low rank"] += any(t.over for t in terms)
                features["cross term"] += any(t.source != b.state for t in terms)
        features["fresh axis"] += any(d.axis.copy_of for d in system.axes)
        features["denominator"] += any(b.gauge.shared_with for b in system.blocks)
        features["pre-read"] += any(
            t.lag for tree in trees(system) for n in parts(tree) for t in getattr(n, "terms", ())
        )
    kinds = "Read Direct Cache Gate Product Ratio Cast Sum MapOut Post SumOver"
    assert set(kinds.split()) <= set(nodes)
    assert min(features.values()) > 0, features


def test_a_seed_gives_one_text() -> None:
    assert random_mixer(7) == random_mixer(7)
    assert random_mixer(7) != random_mixer(8)
