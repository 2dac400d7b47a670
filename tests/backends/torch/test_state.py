"""The state of an emitted module: it is kept, taken back, brought into its gauge, or refused."""

from __future__ import annotations

import copy
import io
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import dsfc


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("state") / "normalized_attn.py"
    return dsfc.import_module(dsfc.compile("normalized_attn", out=path))


@pytest.fixture(scope="module")
def layer(module):
    torch.manual_seed(0)
    layer = module.NormalizedAttn(d=8, h=2, n=3, p=5, dtype=torch.float64)
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return layer


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    return torch.randn(2, 9, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def in_the_papers_gauge(layer, u: Tensor) -> tuple[Tensor, Tensor]:
    """S̃_i = (η_{i-1} S̃_{i-1} + k_i v_iᵀ) / η_i and η after the last token (Sieber et al. 2024)."""
    eta = torch.exp(u @ layer.w_eta.T + layer.b_eta)
    k, v = (torch.einsum("BLd,hnd->BLhn", u, w) for w in (layer.W_K, layer.W_V))
    state = torch.zeros(len(u), layer.h, layer.n, layer.p, dtype=u.dtype)
    for i in range(u.shape[1]):
        scale = eta[:, i - 1] / eta[:, i] if i else torch.zeros_like(eta[:, 0])
        drive = torch.einsum("Bhn,Bhp->Bhnp", k[:, i], v[:, i]) / eta[:, i, :, None, None]
        state = scale[..., None, None] * state + drive
    return state, eta[:, -1]


def test_a_state_of_another_gauge_is_converted_by_its_factor(module, layer, tokens) -> None:
    want = layer(tokens)[:, 5:]
    stored, eta = in_the_papers_gauge(layer, tokens[:, :5])
    kept = {"gauge": "S: eta", "spec": module.SPEC, "S": stored, "S_factor": eta}
    got = layer(tokens[:, 5:], module.State.from_dict(kept))
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_a_state_of_another_gauge_is_refused_without_its_factor(module, layer, tokens) -> None:
    stored, _ = in_the_papers_gauge(layer, tokens)
    with pytest.raises(ValueError, match="'S: eta', want 'S: identity': give S_factor to convert"):
        module.State.from_dict({"gauge": "S: eta", "spec": module.SPEC, "S": stored})


@pytest.mark.parametrize("spec", ["0123456789abcdef", None])
def test_a_state_of_another_mixer_is_refused(module, layer, tokens, spec: str | None) -> None:
    _, state = layer(tokens, return_state=True)
    kept = state.to_dict() | {"spec": spec}
    with pytest.raises(ValueError, match=f"a state of spec {spec}, want {module.SPEC}"):
        module.State.from_dict(kept)


def test_a_state_that_lacks_a_tensor_is_refused_by_its_name(module, layer, tokens) -> None:
    _, state = layer(tokens, return_state=True)
    kept = state.to_dict()
    del kept["S"]
    with pytest.raises(ValueError, match="a state needs S too, got "):
        module.State.from_dict(kept)
    with pytest.raises(ValueError, match="a state needs S too, got "):
        module.State.from_dict(kept | {"gauge": "S: eta", "S_factor": torch.ones(2, 3)})


def test_a_call_that_refuses_a_state_says_whose_it_is(module, layer, tokens) -> None:
    @dataclass
    class State:
        spec: str = "0123456789abcdef"
        mixer: str = "ssd"

    name = module.State.mixer
    with pytest.raises(ValueError, match=f"must be a State of {name}, got one of ssd"):
        layer(tokens, State())
    with pytest.raises(ValueError, match=f"got one of another {name}: of spec .*{module.SPEC}"):
        layer(tokens, State(mixer=name))
    with pytest.raises(ValueError, match=f"must be a State of {name}, got tuple"):
        layer(tokens, ())


def test_a_pickle_of_another_version_is_refused_when_it_is_read(module, layer, tokens) -> None:
    with torch.no_grad():
        _, state = layer(tokens, return_state=True)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    other = buffer.getvalue().replace(module.SPEC.encode(), b"0" * len(module.SPEC))
    with pytest.raises(ValueError, match="another mixer's"):
        torch.load(io.BytesIO(other), weights_only=True)


def test_copies_are_equal(module, layer, tokens) -> None:
    with torch.no_grad():
        _, state = layer(tokens, return_state=True)
    for made in (copy.copy(state), copy.deepcopy(state), module.State.from_dict(state.to_dict())):
        assert type(made) is module.State and torch.equal(made.S, state.S)


def test_a_state_is_frozen(layer, tokens) -> None:
    _, state = layer(tokens, return_state=True)
    with pytest.raises(AttributeError, match="cannot assign"):
        state.S = state.S + 1
