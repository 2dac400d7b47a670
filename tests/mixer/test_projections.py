"""Linear maps of a mixer's input become inputs, where nothing else uses them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dsfc
from dsfc.mixer.evaluate import evaluate
from dsfc.mixer.ir import Mixer
from dsfc.mixer.projections import projected
from dsfc.mixer.sample import sample, small_sizes
from dsfc.mixer.verify import verify

# V is a map of an earlier token too, P of a definition, C of complex numbers, E of blocks.
BODY = """
  dims d, heads h, n
  input u : d
  param W, V, W_u : d -> n
        C         : d -> n complex
        P         : n -> n
        E         : each h : n -> n
  state s : n
  x = W u
  s = sigmoid(V u) * s[i-1] + x + V u[i-1]
  y = P x * s + W_u u + Re(C u) + sum[h](E (ones[h] ⊗ x))
"""


def written(folder: Path, body: str) -> Mixer:
    path = folder / "m.dsf"
    path.write_text(f"mixer m {{\n{body}\n}}\n", encoding="utf-8")
    return dsfc.load(path).mixer


def test_maps_of_the_input_alone_are_inputs_and_the_mixer_is_the_same(tmp_path: Path) -> None:
    mixer = written(tmp_path, BODY)
    core, maps = projected(mixer)
    verify(core)
    assert [(p.input, p.map.name) for p in maps] == [("W_u_2", "W"), ("W_u_u", "W_u")]
    assert [t.name for t in core.inputs] == ["u", "W_u_2", "W_u_u"]
    assert [t.name for t in core.params] == ["V", "C", "P", "E"]
    sizes = small_sizes(mixer)
    drawn = sample(mixer, sizes, 0, 5)
    streams = {p.input: drawn.inputs["u"] @ drawn.params[p.map.name].T for p in maps}
    wanted = evaluate(mixer, drawn.inputs, drawn.params, sizes)["y"]
    found = evaluate(core, {**drawn.inputs, **streams}, drawn.params, sizes)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_an_input_that_nothing_reads_any_more_is_left_out(tmp_path: Path) -> None:
    core, _ = projected(written(tmp_path, "dims d, n\ninput u : d\nparam W : d -> n\ny = W u"))
    assert [t.name for t in core.inputs] == ["W_u"]


def test_a_mixer_without_such_maps_is_the_same_value(tmp_path: Path) -> None:
    for body in (
        "dims d\ninput u : d\ny = u",
        "dims d\ninput u, v : d\nparam W : d -> d\ny = W u * v",
    ):
        mixer = written(tmp_path, body)
        assert projected(mixer) == (mixer, ())
