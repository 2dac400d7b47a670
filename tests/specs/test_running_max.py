"""Exponential weights of any size: finite, with gradients, in every mode, and right.

The judges are loops over tokens in float64 with a running maximum of their own, written from the
papers (xLSTM, appendix A; RWKV-4, appendix D; LLN, with a maximum per key). The specs are the
ratios of the shipped mixers over given queries, keys and gates: those are exact in any dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import ModuleType

import pytest
import torch
from torch import Tensor

import dsfc

LENGTH, CHUNK = 37, 8
SCALES = (1.0, 30.0, 100.0, 1e3, 1e4)
SIZES = {"n": 5, "p": 3, "d": 4}

SPECS = {
    "mlstm": """
  dims heads h = 1, n, p
  input q, k : h × n
        v : h × p
        a, b : h
  state C : h × n × p
        z : h × n
  C = sigmoid(b) * C[i-1] + (exp(a) * k) ⊗ v
  z = sigmoid(b) * z[i-1] + exp(a) * k
  y = (q · C) / max(abs(q · z), 1)
""",
    "rwkv4": """
  dims d
  input k, v : d
  param w : d positive = 1
        bonus : d = 0
  num = sum[j < i](exp(-(i - 1 - j) * w + k[j]) * v[j]) + exp(bonus + k) * v
  den = sum[j < i](exp(-(i - 1 - j) * w + k[j])) + exp(bonus + k)
  y = num / den
""",
    "lln": """
  dims n, p
  input q, k : n
        v : p
  score(a, b) = exp(a) · exp(b)
  y = sum[j ≤ i](score(q, k[j]) * v[j]) / sum[j ≤ i](score(q, k[j]))
""",
}
LARGE = {"mlstm": "ab", "rwkv4": "k", "lln": "qk"}
"""Inputs that are scaled: gate logits, keys, queries and keys."""


def mlstm(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    forget = torch.nn.functional.logsigmoid(b)
    top = torch.full_like(a[:, 0], -1e30)
    state, total = 0 * k[:, 0, :, None] * v[:, 0, None], 0 * k[:, 0]
    rows = []
    for i in range(q.shape[1]):
        reached = torch.maximum(top + forget[:, i], a[:, i]).detach()
        keep = torch.exp(forget[:, i] + (top - reached))[:, None]
        take = torch.exp(a[:, i] - reached)[:, None] * k[:, i]
        state = keep[..., None] * state + take[..., None] * v[:, i, None]
        total, top = keep * total + take, reached
        over = top.clamp(min=0)
        read = torch.exp(top - over)[:, None] * q[:, i]
        below = torch.maximum((read * total).sum(-1).abs(), torch.exp(-over))
        rows.append(torch.einsum("bn,bnp->bp", read, state) / below[:, None])
    return torch.stack(rows, 1)


def rwkv4(k: Tensor, v: Tensor, w: Tensor, bonus: Tensor) -> Tensor:
    top = torch.full_like(k[:, 0], -1e30)
    above, below = 0 * k[:, 0], 0 * k[:, 0]
    rows = []
    for i in range(k.shape[1]):
        now = bonus + k[:, i]
        over = torch.maximum(top, now).detach()
        past, new = torch.exp(top - over), torch.exp(now - over)
        rows.append((past * above + new * v[:, i]) / (past * below + new))
        reached = torch.maximum(top - w, k[:, i]).detach()
        keep, take = torch.exp((top - reached) - w), torch.exp(k[:, i] - reached)
        above, below, top = keep * above + take * v[:, i], keep * below + take, reached
    return torch.stack(rows, 1)


def lln(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    top = torch.full_like(k[:, 0], -1e30)
    above, below = 0 * k[:, 0, :, None] * v[:, 0, None], 0 * k[:, 0]
    rows = []
    for i in range(q.shape[1]):
        reached = torch.maximum(top, k[:, i]).detach()
        keep, take = torch.exp(top - reached), torch.exp(k[:, i] - reached)
        above = keep[..., None] * above + take[..., None] * v[:, i, None]
        below, top = keep * below + take, reached
        read = torch.exp(q[:, i] + top - (q[:, i] + top).amax(-1, keepdim=True).detach())
        rows.append(torch.einsum("bn,bnp->bp", read, above) / (read * below).sum(-1)[:, None])
    return torch.stack(rows, 1)


JUDGES: dict[str, Callable[..., Tensor]] = {"mlstm": mlstm, "rwkv4": rwkv4, "lln": lln}
AXES = {"q": "n", "k": "n", "v": "p", "a": "", "b": ""}


@pytest.fixture(scope="session")
def ratio(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    """Compiles the ratio of a mixer, once."""
    folder = tmp_path_factory.mktemp("ratios")
    made: dict[str, ModuleType] = {}

    def compiled(name: str) -> ModuleType:
        if name not in made:
            spec = folder / f"ratio_{name}.dsf"
            spec.write_text(f"mixer ratio_{name} {{{SPECS[name]}}}\n", encoding="utf-8")
            made[name] = dsfc.import_module(dsfc.compile(spec, out=folder))
        return made[name]

    return compiled


def drawn(name: str, scale: float, dtype: torch.dtype, length: int = LENGTH) -> dict[str, Tensor]:
    """Inputs of the ratio, those of `LARGE` times the scale, in numbers of the dtype."""
    torch.manual_seed(round(scale))
    inputs = dict.fromkeys(("k", "v")) if name == "rwkv4" else dict.fromkeys("qkv")
    inputs |= dict.fromkeys("ab") if name == "mlstm" else {}
    out = {}
    for given in inputs:
        axis = "d" if name == "rwkv4" else AXES[given]
        x = torch.randn(2, length, *((SIZES[axis],) if axis else ()), dtype=torch.float64)
        x = x * scale if given in LARGE[name] else x
        out[given] = x.to(dtype)
    return out


def layer(module: ModuleType, name: str, dtype: torch.dtype) -> torch.nn.Module:
    made = getattr(module, f"Ratio{name.capitalize()}")
    sizes = {"d": 4} if name == "rwkv4" else {"n": SIZES["n"], "p": SIZES["p"]}
    return made(**sizes, dtype=dtype)


def judged(name: str, inputs: dict[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Output and gradients of Σ y² of the loop in float64."""
    given = {n: x.detach().double().requires_grad_() for n, x in inputs.items()}
    extra = (torch.ones(4).double(), torch.zeros(4).double()) if name == "rwkv4" else ()
    y = JUDGES[name](*given.values(), *extra)
    return y.detach(), list(torch.autograd.grad(y.square().sum(), list(given.values())))


def ran(
    made: torch.nn.Module, inputs: dict[str, Tensor], **how: object
) -> tuple[Tensor, list[Tensor]]:
    given = [x.detach().requires_grad_() for x in inputs.values()]
    if "a" in inputs:  # a head of its own
        y = made(*(x.unsqueeze(2) for x in given), **how).squeeze(2)
    else:
        y = made(*given, **how)
    return y.detach(), list(torch.autograd.grad(y.double().square().sum(), given))


_NOTHING = 1e-30  # float32 has no use for less


def off(got: tuple[Tensor, list[Tensor]], want: tuple[Tensor, list[Tensor]]) -> tuple[float, float]:
    """Errors of the output and of all gradients, relative to the largest output and gradient.

    Where one token wins, the gradients of keys are differences of equal numbers: they are as exact
    as the largest gradient, not as they themselves.
    """
    (y, slopes), (y_want, slopes_want) = got, want
    largest = max([_NOTHING, *(float(s.abs().max()) for s in slopes_want)])
    worst = max(
        float((a.double() - b).abs().max()) for a, b in zip(slopes, slopes_want, strict=True)
    )
    error = float((y.double() - y_want).abs().max())
    return error / max(_NOTHING, float(y_want.abs().max())), worst / largest


BARS = {torch.float64: (1e-12, 1e-12), torch.float32: (3e-5, 2e-4), torch.bfloat16: (2e-2, 0.3)}
"""Errors of output and gradients. In float32 those of mLSTM, 1e-5 and 5e-5, are the largest: it
sums log-gates of size 30. In bfloat16 rounding the output to 8 bits is divided by a small |q · z|.
"""


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
