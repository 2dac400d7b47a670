"""k tokens in one call are k steps, and every state between them can be gone on from."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from emitted import causal, soon
from stepping import off, same_parameters, sample_of, with_kernels
from torch import Tensor

import dsfc
from dsfc.validate.surface import Sample, Surface, ends, surface

pytestmark = pytest.mark.usefixtures("own_cache")

BATCH = 3
BARS = {torch.float64: 1e-12, torch.float32: 1e-5}
"""Largest error relative to the largest entry: a product of k rows rounds otherwise than of one."""


def drawn(module: ModuleType, count: int, dtype: torch.dtype = torch.float64) -> Sample:
    """A layer, a state that was reached, and two tokens more than are to be stepped through."""
    return surface(module).sample(count + 2, batch=BATCH, dtype=dtype, seed=count)


def tokens(sample: Sample, start: int, stop: int) -> list[Tensor]:
    return [x[:, start:stop] for x in sample.inputs.values()]


def by_step(sample: Sample, count: int) -> tuple[Tensor, list[Any]]:
    """Outputs and states of so many calls of `step`, the state before the first in front."""
    ys, states = [], [sample.state]
    for i in range(count):
        y, after = sample.layer.step(*(x[:, i] for x in sample.inputs.values()), states[-1])
        ys.append(y)
        states.append(after)
    return torch.stack(ys, 1), states


def are_steps(sample: Sample, found: Surface, count: int, bar: float) -> None:
    """Holds `step_k` to `step`: outputs, the state after any number of tokens, and rows of each."""
    y, states = sample.layer.step_k(*tokens(sample, 0, count), sample.state)
    want, reached = by_step(sample, count)
    assert y.shape == want.shape and y.dtype == want.dtype and off([y], [want]) < bar
    assert states.count == count and states.at(0) is sample.state
    for j, state in enumerate(reached):
        same(found, states.at(j), state, bar)
        same(found, states.select(torch.full((BATCH,), j)), state, bar)
    accepted = [0, count, random.Random(count).randint(0, count)]
    goes_on(sample, found, states.select(torch.tensor(accepted)), accepted, bar)


def same(found: Surface, state: Any, want: Any, bar: float) -> None:
    pairs = zip(found.tensors(state).values(), found.tensors(want).values(), strict=True)
    assert all(x.shape == y.shape and x.dtype == y.dtype for x, y in pairs)
    assert off([*found.tensors(state).values()], [*found.tensors(want).values()]) < bar


def goes_on(sample: Sample, found: Surface, state: Any, accepted: list[int], bar: float) -> None:
    """From the state of each row, two other tokens are what they are in the whole sequence."""
    last = found.draw(2, BATCH, next(iter(sample.inputs.values())).dtype, 77)
    y, _ = ends(sample.layer(**last, state=state, return_state=True))
    for row, j in enumerate(accepted):
        whole = {n: torch.cat((x[:, :j], last[n]), 1) for n, x in sample.inputs.items()}
        want = sample.layer(**whole, state=sample.state)[row, j:]
        assert off([y[row]], [want]) < bar, (row, j)


# --- torch ----------------------------------------------------------------------------------------


@pytest.mark.share(2, ci=5)
@pytest.mark.parametrize("name", soon(causal()))
def test_k_tokens_are_k_steps(module: ModuleType) -> None:
    found = surface(module)
    with torch.no_grad():
        for count in (1, random.Random(found.mixer).randint(2, 6)):
            for dtype, bar in BARS.items():
                are_steps(drawn(module, count, dtype), found, count, bar)


@pytest.mark.parametrize("name", ["s4d", "short_convolution"])
def test_the_same_arithmetic_gives_the_same_bits(name: str, module: ModuleType) -> None:
    """Where no product of matrices stands in front of the recurrence."""
    sample = drawn(module, 4)
    y, states = sample.layer.step_k(*tokens(sample, 0, 4), sample.state)
    want, reached = by_step(sample, 4)
    assert torch.equal(y, want)
    values = surface(module).tensors
    for j, state in enumerate(reached):
        pairs = zip(values(states.at(j)).values(), values(state).values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", ["gla", "softmax", pytest.param("mlstm", marks=pytest.mark.ci)])
def test_gradients_flow_through_all_states(name: str, module: ModuleType) -> None:
    sample, values = drawn(module, 3), surface(module).tensors

    def gradients(y: Tensor, states: list[Any]) -> list[Tensor]:
        sizes = [x.abs().square().sum() for s in states for x in values(s).values()]
        total = y.square().sum() + sum(x * (k + 1) for k, x in enumerate(sizes))
        return list(torch.autograd.grad(total, [*sample.layer.parameters()]))

    y, states = sample.layer.step_k(*tokens(sample, 0, 3), sample.state)
    rows = torch.tensor([0, 3, 2])
    want, reached = by_step(sample, 3)
    by_row = [states.at(j) for j in range(4)]
    found = gradients(y, by_row)
    assert off(found, gradients(want, reached)) < 1e-11
    (some, *_) = values(states.select(rows)).values()
    assert some.requires_grad


def test_growing_states_are_lengths_of_one_cache(load: Callable[[str], ModuleType]) -> None:
    module = load("softmax")
    sample = drawn(module, 4)
    _, states = sample.layer.step_k(*tokens(sample, 0, 4), sample.state)
    for name, x, before in zip(
        module.GROWING, states.after, surface(module).tensors(sample.state).values(), strict=True
    ):
        assert x.shape[1] == before.shape[1] + 4
        assert getattr(states.at(2), name).data_ptr() == x.data_ptr()
    some = states.select(torch.tensor([1, 0, 2]))
    seen = {n: x for n, x in surface(module).tensors(some).items() if x.ndim == 2}
    (present,) = seen.values()  # no longer than the row that keeps most, and nothing in front
    assert present[:, :3].tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 1]]
    assert present.shape[1] == before.shape[1] + 2


def test_of_no_sequence(load: Callable[[str], ModuleType]) -> None:
    for name in ("gla", "softmax"):
        module = load(name)
        layer = surface(module).sample(2).layer
        state = layer.initial_state(0, dtype=torch.float64)
        (d,) = surface(module).inputs.values()
        y, states = layer.step_k(torch.zeros(0, 3, *d, dtype=torch.float64), state)
        assert y.shape[:2] == (0, 3) and states.count == 3
        chosen = states.select(torch.zeros(0, dtype=torch.int64))
        assert all(len(x) == 0 for x in surface(module).tensors(chosen).values())


def test_states_are_not_overwritten_by_what_goes_on_from_others(
    load: Callable[[str], ModuleType],
) -> None:
    module = load("gla")
    sample = drawn(module, 3)
    with torch.no_grad():
        _, states = sample.layer.step_k(*tokens(sample, 0, 3), sample.state)
        kept, chosen = states.at(2).S.clone(), states.select(torch.tensor([2, 2, 2]))
        (u,) = (x[:, 3] for x in sample.inputs.values())
        sample.layer.step(u, chosen, in_place=True)
    assert torch.equal(states.at(2).S, kept) and not torch.equal(chosen.S, kept)


def test_what_is_refused(load: Callable[[str], ModuleType]) -> None:
    sample = drawn(load("gla"), 3)
    (u,) = sample.inputs.values()
    with pytest.raises(ValueError, match="no token"):
        sample.layer.step_k(u[:, :0], sample.state)
    with pytest.raises(ValueError, match=r"u must be \[B, L, d\]"):
        sample.layer.step_k(u[:, 0], sample.state)
    with pytest.raises(ValueError, match=r"state\.S must be"):
        sample.layer.step_k(u[:1], sample.state)
    _, states = sample.layer.step_k(u, sample.state)
    for wrong in (-1, u.shape[1] + 1):
        with pytest.raises(ValueError, match="from 0 to 5"):
            states.at(wrong)
        with pytest.raises(ValueError, match="from 0 to 5"):
            states.select(torch.tensor([0, 1, wrong]))
    for wrong_rows in (torch.tensor([1, 2]), torch.tensor(1), torch.ones(3, 1, dtype=torch.int64)):
        with pytest.raises(ValueError, match=r"must be \[B\]"):
            states.select(wrong_rows)
    for no_number in (torch.ones(3), torch.ones(3) > 0):
        with pytest.raises(TypeError, match="whole numbers"):
            states.select(no_number)


def test_a_mixer_that_needs_all_tokens_has_no_steps(load: Callable[[str], ModuleType]) -> None:
    module = load("dlr_bidirectional")
    sample = surface(module).sample(3)
    state = sample.layer.initial_state(2)
    with pytest.raises(ValueError, match="E-STEP"):
        sample.layer.step_k(*sample.inputs.values(), state)


# --- token by token, in sums over pairs ---------------------------------------------------------

STEPPED = """
  dims d = 2
  input u : d
  state S : d
  S = u * S[i-1] + u * u
  y = S
"""
PAIRS = """
  dims d = 2
  input u : d
  y = sum[j ≤ i](tanh(u + u[j]))
"""


@pytest.mark.parametrize("body", [STEPPED, PAIRS], ids=["recurrence", "pairs"])
def test_forms_of_no_scan(body: str, tmp_path: Path) -> None:
    path = tmp_path / "other.dsf"
    path.write_text(f"mixer other {{{body}}}\n", encoding="utf-8")
    module = dsfc.import_module(dsfc.compile(path, out=tmp_path / "other.py"))
    are_steps(drawn(module, 4), surface(module), 4, 1e-12)


# --- kernels --------------------------------------------------------------------------------------


def is_torch(
    name: str, target: str, dtype: torch.dtype, load_target: Callable[..., ModuleType]
) -> ModuleType:
    """Holds outputs and all states of a target's kernels to those of torch; returns the module."""
    modules = load_target(name, target), load_target(name, "torch")
    results, before = [], None
    with torch.no_grad():
        for module in modules:
            sample = drawn(module, 4, dtype)
            before = before or sample
            sample = same_parameters(sample, before)
            start = module.State(*surface(module).tensors(before.state).values())
            if hasattr(module, "_NATIVE"):
                module._NATIVE._functions.clear()
            y, states = sample.layer.step_k(*sample.inputs.values(), start)
            results.append([y, *states.after])
    assert [x.shape for x in results[0]] == [x.shape for x in results[1]]
    assert off(*results) < BARS[dtype]
    return modules[0]


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("name", with_kernels())
def test_k_tokens_in_c_are_those_of_torch_by_one_kernel(
    name: str, load_target: Callable[..., ModuleType]
) -> None:
    for dtype in BARS:
        module = is_torch(name, "c", dtype, load_target)
        started = {key[0] for key in module._NATIVE._functions}
        assert started and all(n.startswith("steps") for n in started)


@pytest.mark.share(12, ci=111)
@pytest.mark.parametrize("target", ["triton", "all"])
@pytest.mark.parametrize("name", with_kernels())
def test_k_tokens_in_triton_are_those_of_torch(
    name: str, target: str, load_target: Callable[..., ModuleType]
) -> None:
    pytest.importorskip("triton")
    is_torch(name, target, torch.float32, load_target)


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("target", ["c", "triton"])
@pytest.mark.parametrize("name", ["gla", pytest.param("mlstm", marks=pytest.mark.full)])
def test_chunks_go_on_from_states_that_kernels_kept(
    name: str, target: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, target)
    with torch.no_grad():
        are_steps(drawn(module, 3, torch.float32), surface(module), 3, 1e-5)


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("name", ["gla", "mlstm"])
def test_one_triton_kernel_runs_all_tokens(
    name: str, load_target: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever k: the launches of the module are counted where all of them pass."""
    triton = pytest.importorskip("triton")
    module = load_target(name, "triton")
    launched = []
    kernels = triton.runtime.interpreter.InterpretedFunction
    run = kernels.__getitem__

    def counted(self: Any, grid: Any) -> Any:
        launched.append(self.__name__)
        return run(self, grid)

    monkeypatch.setattr(kernels, "__getitem__", counted)
    with torch.no_grad():
        for count in (2, 5):
            sample = drawn(module, count, torch.float32)
            launched.clear()
            sample.layer.step_k(*tokens(sample, 0, count), sample.state)
            assert launched == ["_steps_kernel"]


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("target", ["c", "triton"])
@pytest.mark.parametrize("name", ["gla", pytest.param("retnet", marks=pytest.mark.full)])
def test_narrow_tokens_err_at_most_twice_as_much_as_torch(
    name: str, target: str, dtype: torch.dtype, load_target: Callable[..., ModuleType]
) -> None:
    modules = load_target(name, target), load_target(name, "torch")
    narrow = [sample_of(m, dtype) for m in modules]
    narrow[1] = same_parameters(narrow[1], narrow[0])
    wide = same_parameters(sample_of(modules[1], torch.float64), narrow[0])
    results = []
    with torch.no_grad():
        for sample in (narrow[0], narrow[1], wide):
            width = next(iter(sample.inputs.values())).dtype
            start = sample.layer.initial_state(2, dtype=width)
            y, states = sample.layer.step_k(*sample.inputs.values(), start)
            results.append([y, *states.after])
    got, plain, want = results
    assert off(got, want) <= 2 * off(plain, want) + torch.finfo(dtype).eps


@pytest.mark.ci
@pytest.mark.parametrize("name", ["gla"])
def test_with_gradients_torch_runs_the_tokens(
    name: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, "c")
    sample = drawn(module, 3)
    module._NATIVE._functions.clear()
    y, states = sample.layer.step_k(*tokens(sample, 0, 3), sample.state)
    assert y.requires_grad and states.at(2).S.requires_grad
    assert not module._NATIVE._functions


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("name", ["gla", "s4d"])
def test_a_row_that_is_not_a_number_spoils_no_other(
    name: str, load_target: Callable[..., ModuleType]
) -> None:
    module = load_target(name, "c")
    sample = drawn(module, 3)
    with torch.no_grad():
        clean, _ = sample.layer.step_k(*tokens(sample, 0, 3), sample.state)
        spoilt = [x.clone() for x in tokens(sample, 0, 3)]
        for x in spoilt:
            x[1] = torch.nan
        y, states = sample.layer.step_k(*spoilt, sample.state)
        rows = states.select(torch.tensor([3, 0, 2]))  # a draft that is thrown away leaves nothing
    assert torch.equal(y[0], clean[0]) and torch.equal(y[2], clean[2]) and y[1].isnan().any()
    assert all(x.isfinite().all() for x in surface(module).tensors(rows).values())


# --- what watches operators -----------------------------------------------------------------------


@pytest.mark.parametrize("target", ["torch", pytest.param("c", marks=pytest.mark.ci)])
def test_states_are_trees_that_are_mapped_and_traced(
    target: str, load_target: Callable[..., ModuleType]
) -> None:
    from torch._subclasses import FakeTensorMode

    module = load_target("gla", target)
    sample = drawn(module, 3)
    (u,) = tokens(sample, 0, 3)
    with torch.no_grad():
        want, states = sample.layer.step_k(u, sample.state)
        leaves, tree = torch.utils._pytree.tree_flatten(states)
        again = torch.utils._pytree.tree_unflatten(leaves, tree)
        assert torch.equal(again.at(2).S, states.at(2).S) and again.count == 3

        def one(u: Tensor, S: Tensor) -> tuple[Tensor, Any]:
            return sample.layer.step_k(u[None], module.State(S[None]))

        y, mapped = torch.func.vmap(one)(u, sample.state.S)
        assert torch.allclose(y[:, 0], want, atol=1e-6)
        assert torch.allclose(mapped.after[0][:, :, 0].transpose(0, 1), states.after[0], atol=1e-6)
        with FakeTensorMode(allow_non_fake_inputs=True):
            y, fake = sample.layer.step_k(torch.empty_like(u), sample.layer.initial_state(BATCH))
            assert y.shape == want.shape and fake.at(1).S.shape == states.at(1).S.shape


@pytest.mark.ci
def test_compiled_whole(load_target: Callable[..., ModuleType]) -> None:
    module = load_target("gla", "c")
    sample = drawn(module, 3)
    (u,) = tokens(sample, 0, 3)
    with torch.no_grad():
        want, states = sample.layer.step_k(u, sample.state)
        compiled = torch.compile(sample.layer.step_k, fullgraph=True, backend="aot_eager")
        y, reached = compiled(u, sample.state)
    assert off([y, *reached.after], [want, *states.after]) < 1e-12
    assert type(reached) is module.States and reached.count == 3


@pytest.mark.ci
def test_under_autocast(load_target: Callable[..., ModuleType]) -> None:
    module = load_target("gla", "c")
    sample = drawn(module, 3, torch.float32)
    with torch.no_grad(), torch.autocast("cpu"):
        y, states = sample.layer.step_k(*tokens(sample, 0, 3), sample.state)
        want, reached = by_step(sample, 3)
    assert y.dtype == want.dtype and off([y], [want]) < 2e-2
    assert off([states.at(3).S], [reached[3].S]) < 2e-2
