"""Φ, memory functions and matrices as numbers are those of formulas by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.analysis.kernel import Kernel, NoKernel, impulse, kernel, token_matrices
from dsfc.system.evaluate import evaluate


def test_the_kernel_of_normalised_attention_is_its_weights(at) -> None:
    """Φ_ij v_j = (q_i · k_j) / η_i v_j in each head."""
    attn = at("normalized_attn", h=2, d=8)
    found = kernel(attn.system, attn.structure, attn.point)
    q, k = (np.einsum("hnd,ld->lhn", attn.param(w), attn.u()) for w in ("W_Q", "W_K"))
    eta = np.exp(attn.u() @ attn.param("w_eta").T)
    weights = np.einsum("ihn,jhn->ijh", q, k) / eta[:, None]
    want = np.einsum("ijh,hg,pr->ijhpgr", weights, np.eye(2), np.eye(4)).reshape(8, 8, 8, 8)
    want *= np.tri(8)[..., None, None]
    assert found.inputs == ("v",)
    np.testing.assert_allclose(found.values, want, atol=1e-15)


def test_the_kernel_of_softmax_is_its_weights(at) -> None:
    attn = at("softmax", h=2, d=8, params={"W_Q": np.random.default_rng(1).normal(size=(2, 4, 8))})
    found = kernel(attn.system, attn.structure, attn.point)
    q, k = (np.einsum("hnd,ld->lhn", attn.param(w), attn.u()) for w in ("W_Q", "W_K"))
    weights = np.exp(np.einsum("ihn,jhn->ijh", q, k) / 2) * np.tri(8)[..., None]
    np.testing.assert_allclose(
        found.values[..., 0], weights / weights.sum(axis=1, keepdims=True), rtol=1e-12
    )


def test_the_kernel_of_dlr_is_that_of_its_paper(at) -> None:
    """K_l = Re Σ w λ^l, beside D u (Gupta et al. 2022)."""
    dlr = at("dlr", d=3, n=4)
    found = kernel(dlr.system, dlr.structure, dlr.point)
    modes = np.exp(-(dlr.param("a") ** 2) + 1j * dlr.param("b"))
    want = np.real(np.einsum("dn,ln->ld", dlr.param("w"), modes ** np.arange(8)[:, None]))
    want[0] += dlr.param("D")
    for i, j in ((0, 0), (5, 5), (6, 2), (7, 0)):
        np.testing.assert_allclose(found.values[i, j], np.diag(want[i - j]), atol=1e-14)
    assert (found.values[2, 5] == 0).all()


def test_the_kernel_of_s4d_is_that_of_a_zero_order_hold(at) -> None:
    s4d = at("s4d", d=2, n=3)
    found = impulse(s4d.system, s4d.point).values[:, 0]
    a = -np.exp(s4d.param("a")) + 1j * s4d.param("omega")
    step = np.exp(a * np.exp(s4d.param("log_Delta"))[:, None])
    weights = s4d.param("C") * s4d.param("B") * (step - 1) / a
    want = 2 * np.real(np.einsum("dn,ldn->ld", weights, step ** np.arange(8)[:, None, None]))
    want[0] += s4d.param("D")
    np.testing.assert_allclose(np.einsum("ldd->ld", found), want, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "value"), [("gla", "v"), ("deltanet", "v"), ("rwkv6", "v"), ("mlstm", "v")]
)
def test_the_output_is_the_kernel_times_what_it_is_of(at, name: str, value: str) -> None:
    mixer = at(name, d=16)
    found = kernel(mixer.system, mixer.structure, mixer.point)
    run = evaluate(mixer.system, mixer.point.inputs, mixer.point.params, mixer.point.sizes)
    made = np.einsum("ijab,jb->ia", found.values, run.streams[value].reshape(8, -1))
    np.testing.assert_allclose(made, run.outputs["y"].reshape(8, -1), atol=1e-14)


def test_memory_is_the_mean_over_tokens_that_have_such_a_past() -> None:
    powers = 0.5 ** np.subtract.outer(np.arange(8), np.arange(8)) * np.tri(8)
    halves = Kernel("y", ("u",), powers[..., None, None])
    np.testing.assert_allclose(halves.memory, 0.5 ** np.arange(7))
    weights = 0.5 ** np.arange(1, 7)
    want = (np.arange(1, 7) * weights).sum() / weights.sum()
    assert halves.effective_memory == pytest.approx(want)
    assert halves.horizon == 6
    apart = Kernel("y", ("u",), np.eye(4)[..., None, None])
    assert (apart.effective_memory, apart.horizon) == (0.0, 0)


def test_matrices_of_a_dense_system_are_its_parameters(at) -> None:
    rnn = at("linear_rnn", d=3, n=4)
    found = token_matrices(rnn.system, rnn.point)
    np.testing.assert_allclose(found.Lambda, rnn.param("A"))
    np.testing.assert_allclose(found.B, rnn.param("B"))
    np.testing.assert_allclose(found.C[0], rnn.param("C"))
    assert list(found.C) == [0] and not found.D.any()


def test_a_complex_state_is_read_by_a_real_part(at) -> None:
    lru = at("lru", d=3, n=4)
    found = token_matrices(lru.system, lru.point)
    np.testing.assert_allclose(found.C[0], lru.param("C"))
    np.testing.assert_allclose(found.B, np.exp(lru.param("gamma"))[:, None] * lru.param("B"))
    np.testing.assert_allclose(found.D, np.diag(lru.param("D")))


def test_a_state_that_is_read_before_its_update_has_lag_1(at) -> None:
    rwkv = at("rwkv5", h=2, d=8)
    assert list(token_matrices(rwkv.system, rwkv.point).C) == [1]


def test_a_system_that_is_too_large_is_refused(at) -> None:
    with pytest.raises(NoKernel, match="numbers, more than"):
        gla = at("gla", tokens=64, d=128)
        kernel(gla.system, gla.structure, gla.point)
