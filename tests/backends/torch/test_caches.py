"""Batches of states: rows are chosen, joined, copied, cast, and caches have room."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import dsfc

NAMES = ("gla", "softmax", "mlstm", "s4d", "short_convolution")


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    folder = tmp_path_factory.mktemp("caches")

    def imported(name: str) -> ModuleType:
        path = folder / f"{name}.py"
        return dsfc.import_module(path if path.exists() else dsfc.compile(name, out=path))

    return imported


def layer_of(module: ModuleType) -> Any:
    torch.manual_seed(0)
    kind = getattr(module, module.__all__[0])
    sizes = inspect.signature(kind).parameters.values()
    layer = kind(**{"d": 8} | {p.name: 3 for p in sizes if p.default is p.empty and p.name != "d"})
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return layer


def tensors(state: Any) -> dict[str, Tensor]:
    return {name: getattr(state, name) for name in state.layout}


def reached(layer: Any, batch: int, length: int, seed: int = 1) -> Any:
    u = torch.randn(batch, length, 8, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return layer(u, return_state=True)[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_layout_says_axes_dtypes_and_what_grows(
    name: str, load: Callable[[str], ModuleType]
) -> None:
    module = load(name)
    for narrow in (torch.float32, torch.bfloat16):
        layer = layer_of(module).to(narrow)
        state = layer.initial_state(3)
        for key, x in tensors(state).items():
            axes, rule, role = state.layout[key]
            assert len(axes) == x.ndim and axes[0] == "B" and x.shape[0] == 3
            sizes = [getattr(layer, a) for a in axes[1:] if a not in ("T", "K")]
            assert sizes == [*x.shape[1 + (axes[1:2] in (("T",), ("K",))) :]]
            dtypes = {"input": narrow, "accumulator": torch.float32, "complex": torch.complex64}
            assert x.dtype == dtypes[rule]
            assert (role == "whole") == (key not in getattr(module, "GROWING", ()))
    assert [r for *_, r in state.layout.values()].count("seen") == (name == "softmax")


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_chosen_by_any_index(name: str, load: Callable[[str], ModuleType]) -> None:
    state = reached(layer_of(load(name)), 4, 5)
    for rows in ([2, 0, 2], torch.tensor([2, 0, 2]), (2, 0, 2), [-2, 0, -2]):
        for key, x in tensors(state.index(rows)).items():
            assert torch.equal(x, getattr(state, key)[[2, 0, 2]])
    for rows in ([False, True, True, False], torch.tensor([False, True, True, False]), slice(1, 3)):
        for key, x in tensors(state.index(rows)).items():
            assert torch.equal(x, getattr(state, key)[1:3])
            assert x.data_ptr() != getattr(state, key)[1:3].data_ptr()
    assert all(len(x) == 0 for x in tensors(state.index([])).values())
    for wrong in (1, True, None, "12"):
        with pytest.raises((TypeError, ValueError)):
            state.index(wrong)
    with pytest.raises(TypeError, match="want whole numbers"):
        state.index([0.5])
    with pytest.raises(ValueError, match="one list"):
        state.index([[1]])
    with pytest.raises(IndexError):
        state.index([4])


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_repeated_copied_and_counted(name: str, load: Callable[[str], ModuleType]) -> None:
    state = reached(layer_of(load(name)), 2, 5)
    for key, x in tensors(state.repeat(3)).items():
        assert torch.equal(x, getattr(state, key)[[0, 0, 0, 1, 1, 1]])
    copied = state.clone()
    assert state.nbytes == copied.nbytes == sum(x.nbytes for x in tensors(state).values())
    for key, x in tensors(copied).items():
        assert (
            torch.equal(x, getattr(state, key)) and x.data_ptr() != getattr(state, key).data_ptr()
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_cast_keeps_sums_wide(name: str, load: Callable[[str], ModuleType]) -> None:
    module = load(name)
    layer = layer_of(module)
    state = reached(layer, 2, 5)
    for dtype in (torch.bfloat16, torch.float64, torch.float32):
        cast, fresh = state.to(dtype=dtype), layer.initial_state(2, dtype=dtype)
        assert [x.dtype for x in tensors(cast).values()] == [
            x.dtype for x in tensors(fresh).values()
        ]
    moved = state.to("meta")
    assert all(x.is_meta for x in tensors(moved).values())
    with pytest.raises(TypeError, match="floating-point"):
        state.to(dtype=torch.int64)


def test_requests_of_different_age_are_joined(load: Callable[[str], ModuleType]) -> None:
    module = load("softmax")
    layer = layer_of(module)
    young, old = reached(layer, 1, 2, 3), reached(layer, 2, 5, 4)
    both = module.State.cat([young, old, layer.initial_state(1)])
    assert both.seen.tolist() == [[0, 0, 0, 1, 1], [1] * 5, [1] * 5, [0] * 5]
    token = torch.randn(4, 8)
    with torch.no_grad():
        y, _ = layer.step(token, both)
        alone = [
            layer.step(token[:1], young)[0],
            layer.step(token[1:3], old)[0],
            layer(token[3:, None])[:, 0],
        ]
    torch.testing.assert_close(y, torch.cat(alone))
    # What no row keeps is let go.
    assert both.index([0, 3]).seen.tolist() == [[1, 1], [0, 0]]
    assert both.index([3]).seen.shape == (1, 0)


def test_states_that_do_not_belong_together_are_refused(load: Callable[[str], ModuleType]) -> None:
    module, other = load("gla"), load("softmax")
    state = reached(layer_of(module), 1, 2)
    with pytest.raises(ValueError, match="no state"):
        module.State.cat([])
    with pytest.raises(ValueError, match="must be of spec"):
        module.State.cat([state, reached(layer_of(other), 1, 2)])
    with pytest.raises(ValueError, match="differ in S in more than rows"):
        module.State.cat([state, state.to(dtype=torch.float64)])


# --- room ----------------------------------------------------------------------------------------


def test_tokens_are_written_into_the_room_that_a_cache_has(
    load: Callable[[str], ModuleType],
) -> None:
    module = load("softmax")
    layer = layer_of(module)
    u = torch.randn(2, 7, 8)
    with torch.no_grad():
        y, state = layer(u[:, :3], return_state=True)
        state = state.reserve(4)
        place = state.keys.data_ptr()
        for i in range(3, 7):
            y, state = layer.step(u[:, i], state, in_place=True)
            assert state.keys.data_ptr() == place and state.keys.shape[1] == i + 1
        torch.testing.assert_close(y, layer(u)[:, -1])
        with pytest.raises(ValueError, match="no room"):
            layer.step(u[:, 0], state, in_place=True)


def test_only_one_state_has_the_room(load: Callable[[str], ModuleType]) -> None:
    """Whatever else looks at the cache is refused, and finds what it kept unchanged."""
    layer = layer_of(load("softmax"))
    u = torch.randn(2, 4, 8)
    with torch.no_grad():
        first = layer.initial_state(2).reserve(8)
        _, second = layer.step(u[:, 0], first, in_place=True)
        kept = second.clone()
        _, third = layer.step(u[:, 1], second, in_place=True)
        for used in (first, second, kept, third.index([0, 1]), layer.initial_state(2)):
            with pytest.raises(ValueError, match="no room"):
                layer.step(u[:, 2], used, in_place=True)
        _, states = layer.step_k(u, third)
        for cut in (states.at(2), states.select(torch.tensor([1, 3]))):
            with pytest.raises(ValueError, match="no room"):
                layer.step(u[:, 2], cut, in_place=True)
        assert torch.equal(second.keys, kept.keys)
        _, states = layer.checkpoints(u, every=2)
        with pytest.raises(ValueError, match="no room"):
            layer.step(u[:, 2], states[0], in_place=True)
        layer.step(u[:, 2], states[0].reserve(1), in_place=True)
    with pytest.raises(ValueError, match="no_grad"):
        layer.step(u[:, 2], third, in_place=True)
    for wrong in (-1, 1.5):
        with pytest.raises(ValueError, match="whole number"):
            third.reserve(wrong)


# --- states on the way ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_are_the_states_of_shorter_sequences(
    name: str, load: Callable[[str], ModuleType]
) -> None:
    layer = layer_of(load(name)).double()
    u = torch.randn(2, 7, 8, dtype=torch.float64)
    mask = torch.tensor([[True] * 7, [True, False, True, False, False, True, True]])
    with torch.no_grad():
        before = layer(u[:, :3], return_state=True)[1]
        for kept in (None, mask):
            y, states = layer.checkpoints(u, before, every=3, mask=kept)
            torch.testing.assert_close(y, layer(u, before, mask=kept))
            for state, stop in zip(states, (3, 6, 7), strict=True):
                cut = None if kept is None else kept[:, :stop]
                wanted = layer(u[:, :stop], before, mask=cut, return_state=True)[1]
                for key, x in tensors(state).items():
                    want = getattr(wanted, key)
                    torch.testing.assert_close(
                        x[:, -want.shape[1] :] if key in ("keys", "values", "seen") else x, want
                    )
        assert layer.checkpoints(u[:, :0], before, every=3)[1] == ()
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="every must be"):
            layer.checkpoints(u, every=wrong)
    with pytest.raises(ValueError, match="mask must be"):
        layer.checkpoints(u, every=3, mask=mask[:, :6])


def test_checkpoints_of_a_cache_share_its_memory(load: Callable[[str], ModuleType]) -> None:
    layer = layer_of(load("softmax"))
    with torch.no_grad():
        _, states = layer.checkpoints(torch.randn(1, 6, 8), every=2)
    assert len({s.keys.data_ptr() for s in states}) == 1
    assert [s.keys.shape[1] for s in states] == [2, 4, 6]


def test_steps_refuse_other_modes(load: Callable[[str], ModuleType]) -> None:
    layer = layer_of(load("gla"))
    state = layer.initial_state(1)
    with pytest.raises(ValueError, match="recurrent or exact"):
        layer.step(torch.randn(1, 8), state, mode="chunked")
    with pytest.raises(ValueError, match="recurrent or exact"):
        layer.step_k(torch.randn(1, 2, 8), state, mode="auto")
    cache = layer_of(load("softmax"))
    room = cache.initial_state(1).reserve(2)
    with torch.no_grad(), pytest.raises(ValueError, match="not written in place in mode exact"):
        cache.step(torch.randn(1, 8), room, mode="exact", in_place=True)
