"""Single tokens without gradients run kernels, on both targets, and are the oracle's tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import ModuleType

import pytest
import torch
from emitted import Beside
from stepping import FIRST, FORMS, LENGTH, off, same_parameters, sample_of, with_kernels
from torch import Tensor

from dsfc.validate.surface import Sample, Surface, ends, surface

pytestmark = pytest.mark.usefixtures("own_cache", "without_gradients")

TORCH_AS_WELL = ("softmax", "gsa", "mlstm", "rwkv4", "linear_rnn", "h3", "rg_lru", "s6")
"""Specs of other forms, and some of which torch runs a part."""


def stepped(found: Surface, sample: Sample, dtype: torch.dtype, **options: bool) -> list[Tensor]:
    """Outputs, then the tensors of the last state."""
    state = sample.layer.initial_state(next(iter(sample.inputs.values())).shape[0], dtype=dtype)
    ys = []
    for i in range(LENGTH):
        y, state = sample.layer.step(*(x[:, i] for x in sample.inputs.values()), state, **options)
        ys.append(y)
    return [torch.stack(ys, 1), *found.tensors(state).values()]


def by_steps(beside: Beside, given: Mapping[str, Tensor]) -> Tensor:
    """All outputs of the functional form, called with one token at a time."""
    leaves = {n: x for n, x in given.items() if n not in beside.states}
    fresh = beside.layer.initial_state(2, dtype=torch.float64)
    names = [f.name for f in fields(beside.module.State)]
    states, ys = {n: getattr(fresh, n) for n in names}, []
    for i in range(LENGTH):
        here = leaves | {n: leaves[n][:, i : i + 1] for n in beside.shapes["inputs"]} | states
        tensors = {n: here[n if n in here else n.rstrip("_")] for n in beside.arguments}
        y, *after = beside.functional(**tensors, mode="recurrent")
        states = dict(zip(names, after, strict=True))
        ys.append(y)
    return torch.cat(ys, 1)


# --- C --------------------------------------------------------------------------------------------


@pytest.mark.share(2, ci=9)
@pytest.mark.parametrize("name", with_kernels())
def test_steps_in_c_are_the_oracle_in_float64(
    name: str, load_target: Callable[..., ModuleType], oracle: Callable[[str], ModuleType]
) -> None:
    beside = Beside(load_target(name, "c"), oracle(name))
    given = beside.draw(LENGTH, 2)
    leaves = {n: x for n, x in given.items() if n not in beside.states}
    want, _ = beside.oracle.forward(leaves, beside.dims)
    assert off([by_steps(beside, given)], [want]) < 1e-12
    started = {key[0] for key in beside.module._NATIVE._functions}
    assert started and all(n.startswith(("step", "forward")) for n in started)


@pytest.mark.share(3, ci=27)
@pytest.mark.parametrize("name", with_kernels())
def test_steps_in_c_are_those_of_torch(name: str, load_target: Callable[..., ModuleType]) -> None:
    are_those_of_torch(name, "c", load_target)


@pytest.mark.share(3, ci=0)
@pytest.mark.parametrize("name", with_kernels())
def test_steps_of_modules_for_both_targets_are_those_of_torch(
    name: str, load_target: Callable[..., ModuleType]
) -> None:
    are_those_of_torch(name, "all", load_target)


def are_those_of_torch(name: str, target: str, load_target: Callable[..., ModuleType]) -> None:
    modules = load_target(name, target), load_target(name, "torch")
    for dtype, bar in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        samples = [sample_of(m, dtype) for m in modules]
        samples[1] = same_parameters(samples[1], samples[0])
        got, want = (stepped(surface(m), s, dtype) for m, s in zip(modules, samples, strict=True))
        assert off(got, want) < bar, dtype


@pytest.mark.share(6, ci=0)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("name", FORMS)
def test_narrow_steps_err_at_most_twice_as_much_as_torch(
    name: str, dtype: torch.dtype, load_target: Callable[..., ModuleType]
) -> None:
    modules = load_target(name, "c"), load_target(name, "torch")
    narrow = [sample_of(m, dtype) for m in modules]
    narrow[1] = same_parameters(narrow[1], narrow[0])
    wide = same_parameters(sample_of(modules[1], torch.float64), narrow[0])
    want = stepped(surface(modules[1]), wide, torch.float64)
    got, plain = (stepped(surface(m), s, dtype) for m, s in zip(modules, narrow, strict=True))
    assert off(got, want) <= 2 * off(plain, want) + torch.finfo(dtype).eps


@pytest.mark.share(6, ci=0)
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("name", FORMS)
def test_a_sequence_that_chunks_begin_steps_go_on_with(
    name: str, batch: int, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, "c")
    sample = sample_of(module, torch.float64, batch)
    want, last = ends(sample.layer(**sample.inputs, return_state=True))
    _, state = ends(
        sample.layer(**{n: x[:, :3] for n, x in sample.inputs.items()}, return_state=True)
    )
    for i in range(3, LENGTH):
        y, state = sample.layer.step(*(x[:, i] for x in sample.inputs.values()), state)
        assert off([y], [want[:, i]]) < 1e-12
    tensors = surface(module).tensors
    assert off([*tensors(state).values()], [*tensors(last).values()]) < 1e-12


@pytest.mark.ci
@pytest.mark.share(1, ci=3)
@pytest.mark.parametrize("name", FORMS)
def test_one_token_of_mode_auto_runs_the_kernel_of_one_token(
    name: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, "c")
    sample = sample_of(module, torch.float64)
    module._NATIVE._functions.clear()
    sample.layer(**{n: x[:, :1] for n, x in sample.inputs.items()})
    assert {key[0] for key in module._NATIVE._functions} == {"step"}


@pytest.mark.parametrize("name", FORMS)
def test_with_gradients_torch_runs_a_token(
    name: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, "c")
    sample = sample_of(module, torch.float64)
    module._NATIVE._functions.clear()
    with torch.enable_grad():
        state = sample.layer.initial_state(2)
        y, _ = sample.layer.step(*(x[:, 0] for x in sample.inputs.values()), state)
        assert y.requires_grad
        y.sum().backward()
    assert not module._NATIVE._functions


@pytest.mark.parametrize("name", FORMS)
def test_a_row_that_is_not_a_number_spoils_no_other(
    name: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, "c")
    sample = sample_of(module, torch.float64)
    tokens = [x[:, 0].clone() for x in sample.inputs.values()]
    clean, _ = sample.layer.step(*tokens, sample.layer.initial_state(2))
    for x in tokens:
        x[1] = torch.nan
    y, state = sample.layer.step(*tokens, sample.layer.initial_state(2))
    assert torch.equal(y[0], clean[0]) and y[1].isnan().any()
    assert all(x[0].isfinite().all() for x in surface(module).tensors(state).values())


# --- in place -------------------------------------------------------------------------------------


@pytest.mark.share(18, ci=52)
@pytest.mark.parametrize("target", ["torch", "c"])
@pytest.mark.parametrize("name", with_kernels((*FIRST, *TORCH_AS_WELL)))
def test_in_place_is_the_same_and_stays_where_it_is(
    name: str, target: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, target)
    found, sample = surface(module), sample_of(module, torch.float32)
    want = stepped(found, sample, torch.float32)
    state = sample.layer.initial_state(2, dtype=torch.float32)
    places = [x.data_ptr() for x in found.tensors(state).values()]
    tokens = [x[:, 0] for x in sample.inputs.values()]
    if name == "softmax":
        with pytest.raises(ValueError, match="no room behind the tokens"):
            sample.layer.step(*tokens, state, in_place=True)
        return
    got = stepped(found, sample, torch.float32, in_place=True)
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
    _, after = sample.layer.step(*tokens, state, in_place=True)
    assert after is state
    assert places == [x.data_ptr() for x in found.tensors(after).values()]


def test_by_default_no_state_is_overwritten(load_target: Callable[..., ModuleType]) -> None:
    module = load_target("gla", "c")
    sample = sample_of(module, torch.float32)
    state = sample.layer.initial_state(2)
    sample.layer.step(*(x[:, 0] for x in sample.inputs.values()), state)
    assert not state.S.any()


def test_a_state_that_is_not_dense_is_written_where_it_lies(
    load_target: Callable[..., ModuleType],
) -> None:
    module = load_target("gla", "c")
    sample = sample_of(module, torch.float32)
    tokens = [x[:, 0] for x in sample.inputs.values()]
    state = sample.layer.initial_state(2)
    _, want = sample.layer.step(*tokens, state)
    turned = module.State(state.S.mT.contiguous().mT)
    sample.layer.step(*tokens, turned, in_place=True)
    assert torch.equal(turned.S, want.S) and not turned.S.is_contiguous()


@pytest.mark.parametrize("target", ["torch", "c"])
def test_in_place_is_refused_where_gradients_are_asked_for(
    target: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target("gla", target)
    sample = sample_of(module, torch.float32)
    state = sample.layer.initial_state(2)
    tokens = [x[:, 0] for x in sample.inputs.values()]
    with torch.enable_grad(), pytest.raises(ValueError, match=r"under torch\.no_grad"):
        sample.layer.step(*tokens, state, in_place=True)
    assert not state.S.any()


# --- what watches operators -----------------------------------------------------------------------


def test_steps_are_traced_mapped_and_counted(load_target: Callable[..., ModuleType]) -> None:
    from torch._subclasses import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    module = load_target("gla", "c")
    sample = sample_of(module, torch.float32)
    (u,), state = (x[:, 0] for x in sample.inputs.values()), sample.layer.initial_state(2)
    want, _ = sample.layer.step(u, state)

    def one(u: Tensor, S: Tensor) -> Tensor:
        y, _ = sample.layer.step(u[None], module.State(S[None]))
        return y[0]

    assert torch.allclose(torch.func.vmap(one)(u, state.S), want, atol=1e-6)
    with FakeTensorMode(allow_non_fake_inputs=True):
        y, _ = sample.layer.step(torch.empty_like(u), sample.layer.initial_state(2))
        assert y.shape == want.shape
    module.register_flops()
    with FlopCounterMode(display=False) as counter:
        sample.layer.step(u, state)
    assert any("forward" in str(op) for op in counter.get_flop_counts()["Global"])


# --- Triton ---------------------------------------------------------------------------------------


@pytest.mark.share(12, ci=43)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", with_kernels())
def test_steps_in_triton_are_those_of_torch(
    name: str,
    dtype: torch.dtype,
    in_place: bool,
    load_target: Callable[..., ModuleType],
) -> None:
    pytest.importorskip("triton")
    modules = load_target(name, "triton"), load_target(name, "torch")
    narrow = [sample_of(m, dtype) for m in modules]
    narrow[1] = same_parameters(narrow[1], narrow[0])
    wide = same_parameters(sample_of(modules[1], torch.float64), narrow[0])
    got = stepped(surface(modules[0]), narrow[0], dtype, in_place=in_place)
    plain = stepped(surface(modules[1]), narrow[1], dtype)
    want = stepped(surface(modules[1]), wide, torch.float64)
    if dtype == torch.float32:
        assert off(got, plain) < 1e-5
    assert off(got, want) <= 2 * off(plain, want) + torch.finfo(dtype).eps
