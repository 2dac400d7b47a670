"""Corners of the language: each compiles and is its definition, or is refused where it stands."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from unusual_specs import COMPILED, REFUSED, thirds

from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import evaluate as evaluate_mixer
from dsfc.mixer import sizes as sizes_of
from dsfc.mixer.ir import Mixer
from dsfc.validate import rows, values
from dsfc.validate.compare import EXACT, agree
from dsfc.validate.run import deterministic_torch
from dsfc.validate.surface import Surface, surface

torch.set_num_threads(1)
LENGTH, CUT, CHUNK = 7, 3, 3


THIRD = pytest.mark.parametrize("built", thirds(pytest.mark.ci, pytest.mark.full), indirect=True)
"""Before the last tier, where a test takes long."""


@pytest.fixture(scope="module", params=thirds((), pytest.mark.ci))
def built(request: pytest.FixtureRequest, build):
    return build(request.param, COMPILED[request.param])


@pytest.fixture(scope="module")
def found(built) -> Surface:
    return surface(built.module)


def literal(built, found: Surface, layer: torch.nn.Module, tensors, row: int) -> np.ndarray:
    """y of one row of a batch, by the meaning of the language, at each token."""
    mixer: Mixer = built.spec.mixer
    known = {
        d.axis.name: getattr(layer, built.ident(d.axis.name))
        for d in mixer.axes
        if built.ident(d.axis.name) in found.sizes
    }
    open_ones = {d.axis.name: 2 for d in mixer.axes if d.size is None}
    arrays = {name: x.detach().numpy() for name, x in tensors.items()}
    inputs = {t.name: arrays[built.ident(t.name)][row] for t in mixer.inputs}
    params = {t.name: arrays[built.ident(t.name)] for t in (*mixer.params, *mixer.buffers)}
    y = evaluate_mixer(mixer, inputs, params, sizes_of(mixer, open_ones | known))["y"]
    axes = built.spec.system.outputs[0].axes
    length = len(next(iter(inputs.values())))
    return y if y.ndim > len(axes) else np.broadcast_to(y, (length, *y.shape))


@pytest.mark.share(24, ci=71)
@pytest.mark.parametrize(
    "length", [LENGTH, *(pytest.param(n, marks=pytest.mark.ci) for n in (0, 1, 2))]
)
def test_values_are_those_of_the_spec_run_literally(built, found: Surface, length: int) -> None:
    sample = found.sample(length, state=False)
    tensors = found.values(sample)
    rows = range(len(next(iter(sample.inputs.values()))))
    wanted = [literal(built, found, sample.layer, tensors, row) for row in rows]
    for mode in found.modes:
        y = sample.layer(**sample.inputs, mode=mode, chunk=CHUNK).detach().numpy()
        assert len(y) == len(wanted)
        for row, want in enumerate(wanted):
            assert y[row].shape == want.shape
            np.testing.assert_allclose(
                y[row], want, rtol=0, atol=1e-11 * np.abs(want).max(initial=0)
            )


@pytest.mark.share(16, ci=52)
def test_gradients_are_those_of_the_definition(found: Surface) -> None:
    sample = found.sample(LENGTH, state=False)
    want = values.defined(found, sample)
    for mode in found.modes:
        got = values.outcome(found, sample, mode, CHUNK, output_only=True)
        agree(got, want, EXACT, mode)


@pytest.mark.ci
@pytest.mark.share(1, ci=29)
def test_two_segments_are_the_whole(found: Surface) -> None:
    if not found.causal:
        assert "E-STEP" in values.segments(found)
        return
    sample = found.sample(LENGTH)
    want = values.outcome(found, sample, "recurrent", CHUNK)
    for mode in found.modes:
        for cuts in ((), (CUT,), (0, 1, LENGTH)):
            got = values.outcome(found, sample, mode, CHUNK, cuts=cuts)
            agree(got, want, EXACT, f"{mode}, cut at {cuts}")


@pytest.mark.share(9, ci=52)
def test_the_layer_takes_back_the_state_it_gives(found: Surface) -> None:
    if not found.causal:
        pytest.skip("it goes on from no state")
    sample = found.sample(LENGTH, state=False)
    whole = sample.layer(**sample.inputs)
    parts, state = [], None
    for k in range(LENGTH):
        row = {n: x[:, k : k + 1] for n, x in sample.inputs.items()}
        y, state = sample.layer(**row, state=state, return_state=True)
        parts.append(y)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-10, atol=1e-10)


@pytest.mark.share(1, ci=29)
@THIRD
def test_masked_tokens_are_not_there_and_packed_sequences_are_alone(found: Surface) -> None:
    rows.masks(found)
    rows.packs(found)


@pytest.mark.share(1, ci=29)
@THIRD
def test_every_cut_and_every_step(found: Surface) -> None:
    values.segments(found)
    values.steps(found)
    values.memory_of_the_past(found)
    values.layouts(found)
    values.rows(found)


@pytest.mark.share(9, ci=41)
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, pytest.param(torch.float32, marks=pytest.mark.ci)]
)
def test_every_dtype_runs(found: Surface, dtype: torch.dtype) -> None:
    sample = found.sample(LENGTH, dtype=dtype)
    for mode in found.modes:
        got = values.outcome(found, sample, mode, CHUNK)
        assert got["y"].dtype == dtype


def test_a_decay_that_is_a_number_keeps_its_digits_in_a_narrow_dtype(build) -> None:
    """log 0.999 is 0 in bfloat16."""
    found = surface(build("literal_decay", COMPILED["literal_decay"]).module)
    layer = found.cls(**found.sizes)
    u = torch.zeros(1, 200, found.sizes["d"], dtype=torch.bfloat16)
    u[:, 0] = 1
    for mode in found.modes:
        last = layer(u, mode=mode)[:, -1].double()
        torch.testing.assert_close(last, torch.full_like(last, 0.999**199), rtol=0.01, atol=0)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["one_array_in_two_roles", "rewrite_without_heads"])
def test_one_array_in_two_roles_is_compiled(name: str, build) -> None:
    found = surface(build(name, COMPILED[name]).module)
    sample = found.sample(LENGTH)
    layer = torch.compile(sample.layer, fullgraph=True, backend="aot_eager")
    with deterministic_torch():
        y = layer(**sample.inputs)
    torch.testing.assert_close(y, sample.layer(**sample.inputs))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compiled_is_said_where_it_stands(name: str, load) -> None:
    body, words, place = REFUSED[name]
    spec = load(name, body)
    with pytest.raises(DiagnosticError) as raised:
        _ = spec.plan
    (problem,) = raised.value.diagnostics
    assert problem.code == "E-UNSUPPORTED" and words in str(problem)
    text, at = problem.span.source.text, problem.span.start
    line = text[text.rindex("\n", 0, at) + 1 : text.find("\n", at)]
    assert place in line
