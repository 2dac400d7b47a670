"""Masks and packs of an emitted module: what they cost, what they refuse, and compiled."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

import dsfc

LENGTHS = (0, 3, 70, 1, 5, 64, 0)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("rows")
    return {
        name: dsfc.import_module(dsfc.compile(name, out=folder / f"{name}.py"))
        for name in ("gla", "s4d", "dlr_real", "linear_attn")
    }


@pytest.fixture(scope="module")
def layer(modules):
    return modules["gla"].Gla(d=8, h=2, dtype=torch.float64)


def tokens(batch: int, length: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(batch, length, 8, dtype=torch.float64, generator=generator)


def ends(lengths: tuple[int, ...]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0)


def test_a_pack_mixes_at_most_twice_its_tokens(modules, layer, monkeypatch) -> None:
    seen = []
    inner = modules["gla"].gla

    def counted(u: Tensor, *rest: object, **how: object):
        seen.append(u.shape[0] * u.shape[1])
        return inner(u, *rest, **how)

    monkeypatch.setattr(modules["gla"], "gla", counted)
    layer(tokens(1, sum(LENGTHS)), cu_seqlens=ends(LENGTHS))
    assert sum(LENGTHS) <= sum(seen) <= 2 * sum(LENGTHS)
    # One call for each power of two between the lengths, and one for the empty ones.
    assert len(seen) == len({n.bit_length() for n in LENGTHS})


def test_outputs_of_masked_tokens_are_zero(layer) -> None:
    mask = torch.tensor([[True, False, True, False], [False] * 4])
    y = layer(tokens(2, 4), mask=mask)
    assert bool((y[~mask] == 0).all()) and bool((y[mask] != 0).any())


def test_a_masked_token_reaches_nothing_not_even_as_nan(layer) -> None:
    mask = torch.tensor([[True, False, True]])
    u = tokens(1, 3)
    u[0, 1] = torch.nan
    u.requires_grad_()
    layer(u, mask=mask).sum().backward()
    assert u.grad is not None and bool(u.grad.isfinite().all())
    assert all(bool(p.grad.isfinite().all()) for p in layer.parameters())
    assert bool((u.grad[0, 1] == 0).all())


def test_a_row_is_not_filled_with_a_token_of_another(layer) -> None:
    mask = torch.tensor([[True, True, True], [True, False, False]])
    u = tokens(2, 3)
    u[0, 0] = torch.nan
    u.requires_grad_()
    y, state = layer(u, mask=mask, return_state=True)
    assert bool(y[1].isfinite().all()) and bool(state.S[1].isfinite().all())
    (y[1].sum() + state.S[1].sum()).backward()
    assert u.grad is not None and bool(u.grad[1].isfinite().all())


def test_where_no_token_counts_nothing_held_reaches_a_gradient(layer) -> None:
    u = torch.full((2, 3, 8), torch.nan, dtype=torch.float64, requires_grad=True)
    layer.zero_grad()
    y, state = layer(u, mask=torch.zeros(2, 3, dtype=torch.bool), return_state=True)
    assert bool((y == 0).all()) and bool((state.S == 0).all())
    (y.sum() + state.S.sum()).backward()
    assert u.grad is not None and bool((u.grad == 0).all())
    assert all(bool((p.grad == 0).all()) for p in layer.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", ["s4d", "dlr_real"])
def test_autocast_leaves_the_state_of_a_masked_convolution_alone(modules, name: str) -> None:
    module = modules[name]
    mixer = getattr(module, module.__all__[0])(d=8, n=4)
    u = tokens(1, 40).float()
    mask = torch.ones(1, 40, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, state = mixer(u, mask=mask, return_state=True)
        _, alone = mixer(u, mode="chunked", return_state=True)
    # Both sum in float32 the same inputs, which are rounded to bfloat16: 2⁻⁸ would show.
    for x, y in zip(vars(state).values(), vars(alone).values(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Dynamo makes an autograd function
@pytest.mark.parametrize("name", ["gla", "s4d", "dlr_real", "linear_attn"])
def test_one_graph_serves_masks_of_ten_lengths(modules, name: str) -> None:
    module = modules[name]
    mixer = getattr(module, module.__all__[0])(d=8, n=4, dtype=torch.float64)
    counter = CompileCounter()

    def eager(u: Tensor, mask: Tensor):
        return mixer(u, mask=mask, return_state=True)

    run = torch.compile(eager, backend=counter, fullgraph=True, dynamic=True)
    for length in range(2, 12):
        u, mask = tokens(3, length), torch.arange(length) % 3 < torch.tensor([[1], [2], [3]])
        (y, state), (want, last) = run(u, mask), eager(u, mask)
        torch.testing.assert_close(y, want, rtol=1e-12, atol=1e-12)
        for field, x in last.to_dict().items():
            if isinstance(x, Tensor):
                torch.testing.assert_close(getattr(state, field), x, rtol=1e-12, atol=1e-12)
    assert counter.frame_count == 1


@pytest.mark.ci
@pytest.mark.share(1, ci=3)
@pytest.mark.parametrize("name", ["gla", "s4d", "linear_attn"])
def test_an_exported_mask_takes_any_shape(modules, name: str) -> None:
    module = modules[name]
    mixer = getattr(module, module.__all__[0])(d=8, n=4)

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mixer = mixer

        def forward(self, u: Tensor, mask: Tensor) -> Tensor:
            return self.mixer(u, mask=mask)

    def given(batch: int, length: int) -> tuple[Tensor, Tensor]:
        mask = torch.arange(length) % 3 < torch.arange(1, batch + 1)[:, None]
        return tokens(batch, length).float(), mask

    sizes = {0: torch.export.Dim("B", min=2, max=9), 1: torch.export.Dim("L", min=2, max=64)}
    program = torch.export.export(Masked(), given(2, 6), dynamic_shapes=(sizes, sizes))
    for shape in ((2, 6), (3, 17), (7, 40)):
        u, mask = given(*shape)
        torch.testing.assert_close(program.module()(u, mask), mixer(u, mask=mask))


def test_a_fourier_transform_takes_neither(modules) -> None:
    s4d = modules["s4d"].S4d(d=8, n=4)
    u, mask = torch.randn(1, 40, 8), torch.ones(1, 40, dtype=torch.bool)
    for how in ({"mask": mask}, {"cu_seqlens": torch.tensor([0, 40])}):
        with pytest.raises(ValueError, match="mode fft takes no mask or cu_seqlens"):
            s4d(u, mode="fft", **how)
        asked = {"masked": "mask" in how, "packed": "cu_seqlens" in how}
        with pytest.raises(ValueError, match="mode fft takes no mask or cu_seqlens"):
            s4d.explain(40, mode="fft", **asked)
        torch.testing.assert_close(s4d(u, **how), s4d(u), rtol=1e-4, atol=1e-5)


WRONG = {
    "both": (
        {"mask": torch.ones(1, 9, dtype=torch.bool), "cu_seqlens": torch.tensor([0, 9])},
        "give mask or cu_seqlens, not both",
    ),
    "mask that may be added": ({"mask": torch.ones(1, 9)}, r"give mask.bool\(\), or mask == 0"),
    "mask of sequences": ({"mask": torch.arange(9)[None]}, "must hold 0 and 1, got other numbers"),
    "mask too short": ({"mask": torch.ones(1, 8, dtype=torch.bool)}, r"got torch.bool \[1, 8\]"),
    "falling": ({"cu_seqlens": torch.tensor([0, 5, 4, 9])}, r"got \[0, 5, 4, 9\]"),
    "starts late": ({"cu_seqlens": torch.tensor([1, 9])}, "rise in whole numbers from 0 to L = 9"),
    "ends early": ({"cu_seqlens": torch.tensor([0, 8])}, "rise in whole numbers from 0 to L = 9"),
    "empty": ({"cu_seqlens": torch.tensor([], dtype=torch.long)}, r"got \[\]"),
    "one end": ({"cu_seqlens": torch.tensor([9])}, r"got \[9\]"),
    "table": ({"cu_seqlens": torch.tensor([[0, 9]])}, r"got \[\[0, 9\]\] and a batch of 1"),
    "mask elsewhere": (
        {"mask": torch.ones(1, 9, dtype=torch.bool, device="meta")},
        r"got torch.bool \[1, 9\] on meta",
    ),
    "fractions": ({"cu_seqlens": torch.tensor([0.0, 9.0])}, "rise in whole numbers"),
    "a number": ({"cu_seqlens": torch.tensor(9)}, "rise in whole numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(layer, name: str) -> None:
    how, words = WRONG[name]
    with pytest.raises(ValueError, match=words):
        layer(tokens(1, 9), **how)


@pytest.mark.share(2)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Dynamo makes an autograd function
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_a_mask_may_hold_0_and_1(layer, dtype: torch.dtype) -> None:
    u, mask = tokens(2, 9), torch.tensor([[0, 1, 1, 0, 1, 1, 1, 1, 0], [1] * 9])
    wanted = layer(u, mask=mask.bool())
    assert torch.equal(layer(u, mask=mask.to(dtype)), wanted)
    run = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.equal(run(u, mask=mask.to(dtype)), wanted)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"mask": [[True] * 9]}, "mask must be a tensor, got list"),
        ({"cu_seqlens": [0, 9]}, "cu_seqlens must be a tensor, got list"),
        ({"cu_seqlens": np.asarray([0, 9])}, "cu_seqlens must be a tensor, got ndarray"),
    ],
)
def test_what_is_no_tensor_is_said(layer, how, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        layer(tokens(1, 9), **how)
    with pytest.raises(TypeError, match="u must be a tensor, got list"):
        layer(tokens(1, 9).tolist())


@pytest.mark.parametrize("chunk", [0, -64, 2.5, 64.0, "64", None, torch.tensor([64])])
def test_a_chunk_is_a_whole_number_of_tokens(layer, chunk) -> None:
    with pytest.raises(ValueError, match="chunk must be a whole number from 1 on, got"):
        layer(tokens(1, 9), chunk=chunk)


def test_a_chunk_may_be_longer_than_the_sequence(layer) -> None:
    u = tokens(1, 9)
    torch.testing.assert_close(layer(u, mode="chunked", chunk=10**12), layer(u, mode="recurrent"))


def test_a_pack_is_a_batch_of_one(layer) -> None:
    with pytest.raises(ValueError, match="a batch of 2"):
        layer(tokens(2, 9), cu_seqlens=torch.tensor([0, 9]))


def test_a_pack_takes_a_state_per_sequence(layer) -> None:
    state = layer.initial_state(2)
    with pytest.raises(ValueError, match=r"state.S must be \[3, "):
        layer(tokens(1, 9), state, cu_seqlens=torch.tensor([0, 2, 2, 9]))
