"""Exponential weights of any size: finite, with gradients, in every mode, and right."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
import torch
from ratios import LARGE, LENGTH, SCALES, SPECS, drawn, judged, layer, off, ran

import dsfc

CHUNK = 8


@pytest.fixture(scope="session")
def ratio(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    """Compiles the ratio of a mixer, once."""
    folder = tmp_path_factory.mktemp("ratios")
    made: dict[str, ModuleType] = {}

    def of(name: str) -> ModuleType:
        if name not in made:
            spec = folder / f"ratio_{name}.dsf"
            spec.write_text(f"mixer ratio_{name} {{{SPECS[name]}}}\n", encoding="utf-8")
            made[name] = dsfc.import_module(dsfc.compile(spec, out=folder))
        return made[name]

    return of


BARS = {torch.float64: (1e-12, 1e-12), torch.float32: (3e-5, 2e-4), torch.bfloat16: (2e-2, 0.3)}
"""Errors of output and gradients. In float32 those of mLSTM, 1e-5 and 5e-5, are the largest: it
sums log-gates of size 30. In bfloat16 rounding the output to 8 bits is divided by a small |q · z|.
"""


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", BARS, ids=str)
@pytest.mark.parametrize("name", SPECS)
def test_weights_of_any_size_are_right_in_every_mode(
    name: str, dtype: torch.dtype, ratio: Callable[[str], ModuleType]
) -> None:
    made = layer(ratio(name), name, dtype)
    for scale in SCALES:
        inputs = drawn(name, scale, dtype)
        want = judged(name, inputs)
        for mode in ratio(name).MODES:
            error, slope = off(ran(made, inputs, mode=mode, chunk=CHUNK), want)
            assert error <= BARS[dtype][0], (scale, mode)
            assert slope <= BARS[dtype][1], (scale, mode)


@pytest.mark.parametrize("name", SPECS)
def test_the_maximum_is_handed_on_across_cuts_and_token_by_token(
    name: str, ratio: Callable[[str], ModuleType]
) -> None:
    made = layer(ratio(name), name, torch.float32)
    inputs = drawn(name, 1e4, torch.float32)
    given = [x.unsqueeze(2) if "a" in inputs else x for x in inputs.values()]
    whole = made(*given)
    assert torch.isfinite(whole).all()
    for mode in ratio(name).MODES:
        head, state = made(*(x[:, :15] for x in given), mode=mode, return_state=True)
        tail = made(*(x[:, 15:] for x in given), state, mode=mode)
        assert torch.allclose(torch.cat((head, tail), 1), whole, rtol=1e-4, atol=1e-4), mode
    state, rows = made.initial_state(2), []
    for i in range(LENGTH):
        row, state = made.step(*(x[:, i] for x in given), state)
        rows.append(row)
    assert torch.allclose(torch.stack(rows, 1), whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SPECS)
def test_masked_tokens_and_neighbours_in_a_pack_have_no_say_whatever_they_weigh(
    name: str, ratio: Callable[[str], ModuleType]
) -> None:
    made = layer(ratio(name), name, torch.float32)
    inputs = drawn(name, 100.0, torch.float32)
    given = [x.unsqueeze(2) if "a" in inputs else x for x in inputs.values()]
    mask = torch.ones(2, LENGTH, dtype=torch.bool)
    mask[0, 3:9] = mask[1, :4] = mask[1, -2:] = False
    for value in (1e4, float("nan")):
        spoilt = [torch.where(mask.view(2, LENGTH, *(1,) * (x.ndim - 2)), x, value) for x in given]
        for x in spoilt:
            x.requires_grad_()
        for mode in ratio(name).MODES:
            y, state = made(*spoilt, mask=mask, mode=mode, chunk=CHUNK, return_state=True)
            for row in range(2):
                alone, last = made(
                    *(x[row : row + 1, mask[row]] for x in given), mode=mode, return_state=True
                )
                assert torch.allclose(y[row, mask[row]], alone[0], rtol=1e-4, atol=1e-5)
                maxima = [n for n in vars(last) if n.endswith("_max_past")]
                assert maxima
                for n in maxima:
                    assert torch.equal(getattr(state, n)[row], getattr(last, n)[0])
            slopes = torch.autograd.grad(y.square().sum(), spoilt)
            assert all(torch.isfinite(s).all() for s in slopes)
    ends = torch.tensor([0, 11, 11, 20, LENGTH])
    rows = [x[:1].clone() for x in given]
    for x in rows:
        x[:, 11:20] *= 100  # the neighbour of two sequences
    for mode in ratio(name).MODES:
        y = made(*rows, cu_seqlens=ends, mode=mode, chunk=CHUNK)
        for start, end in pairwise(ends):
            if start < end:
                alone = made(*(x[:, start:end] for x in rows), mode=mode, chunk=CHUNK)
                assert torch.allclose(y[:, start:end], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shift", [-1e4, -100.0, -1.0, 0.0, 1.0, 100.0, 1e4])
def test_a_guard_that_holds_and_one_that_does_not(
    shift: float, ratio: Callable[[str], ModuleType]
) -> None:
    made = layer(ratio("mlstm"), "mlstm", torch.float32)
    inputs = drawn("mlstm", 1.0, torch.float32)
    inputs["a"] = inputs["a"] + shift
    want = judged("mlstm", inputs)
    assert want[0].abs().max() <= (1e-30 if shift <= -100 else 1e3)
    for mode in ratio("mlstm").MODES:
        error, slope = off(ran(made, inputs, mode=mode, chunk=CHUNK), want)
        # A quotient of sums that cancel: the loop in float32 errs as much.
        assert error <= 2e-4 and slope <= 2e-3, mode


@pytest.mark.parametrize("name", SPECS)
def test_ties_share_their_gradient(name: str, ratio: Callable[[str], ModuleType]) -> None:
    made = layer(ratio(name), name, torch.float64)
    inputs = drawn(name, 1.0, torch.float64)
    for large in LARGE[name]:
        inputs[large] = torch.full_like(inputs[large], 50.0)
    want = judged(name, inputs)
    for mode in ratio(name).MODES:
        error, slope = off(ran(made, inputs, mode=mode, chunk=CHUNK), want)
        assert error <= 1e-12 and slope <= 1e-12


def compiled(text: str, folder: Path) -> ModuleType:
    spec = folder / "ratio.dsf"
    spec.write_text(f"mixer ratio {{{text}}}\n", encoding="utf-8")
    return dsfc.import_module(dsfc.compile(spec, out=folder))


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_states_that_are_stepped_have_a_maximum_too(scale: float, tmp_path: Path) -> None:
    module = compiled(
        """
  dims n, p
  input k : n
        v, b : p
        g : n × p
  state S, Z : n × p
  w = exp(b)
  S = 1/2 * S[i-1] + w * (k ⊗ v)
  Z = 1/2 * Z[i-1] + ones[n] ⊗ w
  y = sum[n](g * S) / sum[n](Z)
""",
        tmp_path,
    )
    assert module.MODES == ("recurrent",)
    torch.manual_seed(0)
    k, v, b, g = (torch.randn(2, 7, *x, dtype=torch.float64) for x in ((5,), (3,), (3,), (5, 3)))
    b = (scale * b).requires_grad_()
    lag = (torch.arange(7)[:, None] - torch.arange(7)).double()
    exponent = b[:, None] - math.log(2) * lag[:, :, None]
    weight = torch.softmax(exponent.masked_fill(lag[:, :, None] < 0, -math.inf), 2)
    want = torch.einsum("bijp,binp,bjn,bjp->bip", weight, g, k, v) / 5
    y = module.Ratio(n=5, p=3).double()(k, v, b, g)
    torch.testing.assert_close(y, want, rtol=1e-11, atol=1e-11)
    slopes = [torch.autograd.grad(x.square().sum(), b)[0] for x in (y, want)]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("decay", ["tanh(a)", "max(a, 0)"])
def test_decays_that_are_0_or_less_are_as_written(decay: str, tmp_path: Path) -> None:
    module = compiled(
        f"""
  dims d
  input u, a, b : d
  state s, t : d
  s = ({decay}) * s[i-1] + exp(b) * u
  t = ({decay}) * t[i-1] + exp(b)
  y = s / t
""",
        tmp_path,
    )
    torch.manual_seed(0)
    u, a, b = (torch.randn(2, 9, 3, dtype=torch.float64) for _ in range(3))
    taken = torch.tanh(a) if "tanh" in decay else a.clamp(min=0)
    s, t, rows = torch.zeros(2, 3), torch.zeros(2, 3), []
    for i in range(9):
        s = taken[:, i] * s + b[:, i].exp() * u[:, i]
        t = taken[:, i] * t + b[:, i].exp()
        rows.append(s / t)
    want = torch.stack(rows, 1)
    for mode in module.MODES:
        y = module.Ratio(d=3).double()(u, a, b, mode=mode)
        torch.testing.assert_close(y, want, rtol=1e-10, atol=1e-10)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["mlstm", "rwkv4", "lln", "lnssm", "lnssm_block", "performer"])
def test_shipped_mixers_stay_finite(
    name: str, dtype: torch.dtype, load: Callable[[str], ModuleType]
) -> None:
    module = load(name)
    torch.manual_seed(0)
    sizes = (
        {"d": 8} | ({"h": 2} if name != "rwkv4" else {}) | ({"r": 6} if name == "performer" else {})
    )
    made = getattr(module, module.__all__[0])(**sizes)
    weights = [
        n
        for n, _ in made.named_parameters()
        if n in ("W_k", "W_K", "W_Q", "w_i", "w_f", "g_q", "g_k")
    ]
    weights = ["w_i", "w_f"] if name == "mlstm" else weights
    for n, p in made.named_parameters():
        torch.nn.init.normal_(p, 0, 1e4 / 8**0.5 if n in weights else 0.3)
    made = made.to(dtype)
    u = torch.randn(2, LENGTH, 8, dtype=dtype, requires_grad=True)
    for mode in module.MODES:
        y = made(u, mode=mode, chunk=CHUNK)
        slopes = torch.autograd.grad(y.double().square().sum(), [u, *made.parameters()])
        assert torch.isfinite(y).all(), mode
        assert all(torch.isfinite(s).all() for s in slopes), mode


def test_a_state_without_a_maximum_is_taken_as_it_is(load: Callable[[str], ModuleType]) -> None:
    module = load("mlstm")
    made = module.Mlstm(d=8, h=2, dtype=torch.float64)
    u = torch.randn(1, 9, 8, dtype=torch.float64)
    _, state = made(u[:, :4], return_state=True)
    kept = state.to_dict()
    top = kept.pop("C_max_past")[:, 0]
    plain = kept | {"gauge": "C, z: identity"}
    plain["C"], plain["z"] = (
        kept[x] * torch.exp(top)[(..., *(None,) * n)] for x, n in (("C", 2), ("z", 1))
    )
    ones = {f"{x}_factor": torch.ones(1, 2, dtype=torch.float64) for x in ("C", "z")}
    again = module.State.from_dict(plain | ones)
    assert not again.C_max_past.any()
    assert torch.allclose(made(u[:, 4:], again), made(u[:, 4:], state), rtol=1e-12, atol=1e-12)
