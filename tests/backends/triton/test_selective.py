"""Kernels of selective scans: what they move, how often they take powers, and hard decays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
import torch
from interpreted import widened
from tiling import tiled
from torch import Tensor

from dsfc.validate import values
from dsfc.validate.compare import agree
from dsfc.validate.surface import surface

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Build = Callable[..., ModuleType]
TILE = (4, 8, 1, 2)
SHAPES = [(1, 1, 3, 2), (2, 5, 8, 4), (2, 13, 11, 4)]
"""Batch, length, channels, states: less than a tile, a whole one across, and parts of both."""
GIVEN = """
  dims d, n
  input x, r : d; b, c : n
  param a : d × n
  state S : d × n
  S = exp(-r * a) * S[i-1] + x ⊗ b
  y = c · S
"""
"""Log-decays as they are given."""
TURNED = """
  dims d, n
  input x, r, w : d; b, c : n
  param a, θ : d × n
  state S : d × n complex
  S = exp(-r * a) * cis(w * θ) * S[i-1] + x ⊗ b
  y = Re(c · S)
"""
"""The same of a complex state, which turns by an angle of the token."""

NESTED = {
    "a sum of rates times a gate": "exp(-D * (exp(a) + D * exp(a + ones[d] ⊗ e)))",
    "a function of a rate and a gate": "sigmoid(D * a + ones[d] ⊗ e)",
    "a rate that is fixed besides": "exp(-D * exp(a) - ones[d] ⊗ exp(e))",
    "a quotient of rates": "exp(-exp(a) / (1 + D^2 * exp(a)))",
}
"""Log-decays whose constants of channel and state stand inside of a product or a function."""


@dataclass
class Counts:
    """What the interpreter did: entries read and written, powers of two, launches."""

    read: int = 0
    written: int = 0
    powers: int = 0
    launches: int = 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """Counts what the interpreter does, entry by entry."""
    from triton.runtime.interpreter import GridExecutor, InterpreterBuilder

    seen = Counts()
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store
    exp2, call = InterpreterBuilder.create_exp2, GridExecutor.__call__

    def counted_load(self: Any, ptrs: Any, mask: Any, *rest: Any) -> Any:
        seen.read += int(mask.data.sum())
        return load(self, ptrs, mask, *rest)

    def counted_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        seen.written += int(mask.data.sum())
        return store(self, ptrs, value, mask, *rest)

    def counted_exp2(self: Any, arg: Any) -> Any:
        seen.powers += arg.data.size
        return exp2(self, arg)

    def counted_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.launches += 1
        return call(self, *args, **kwargs)

    monkeypatch.setattr(InterpreterBuilder, "create_masked_load", counted_load)
    monkeypatch.setattr(InterpreterBuilder, "create_masked_store", counted_store)
    monkeypatch.setattr(InterpreterBuilder, "create_exp2", counted_exp2)
    monkeypatch.setattr(GridExecutor, "__call__", counted_call)
    yield seen


def expected(shape: tuple[int, int, int, int], step: int, kept: bool) -> tuple[Counts, Counts]:
    """What each pass of S6 should do: two token-wise leaves and two constants of channels."""
    B, L, P, N = shape
    rows, channels = -(-L // TILE[0]) * TILE[0], -(-P // TILE[1]) * TILE[1]
    programs = channels // TILE[1]  # of a row; each reads all queries and keys
    blocks = -(-L // step)
    state, keys, tokens = B * P * N, programs * B * L * N, B * L * P
    forward = Counts(
        read=2 * state + 2 * B * P + 2 * tokens + 2 * keys,
        written=state + tokens + (blocks * state if kept else 0),
        powers=B * rows * channels * N,
        launches=1,
    )
    backward = Counts(
        # Also the gradients of the output and of the last state, and for every block of tokens the
        # states kept and the constants.
        read=state + 2 * B * P + 3 * tokens + 2 * keys + 2 * blocks * state,
        written=2 * state + 2 * B * P + 2 * tokens + 2 * programs * B * blocks * step * N,
        powers=B * blocks * step * channels * N,
        launches=1,
    )
    return forward, backward


def arguments(shape: tuple[int, int, int, int]) -> list[Tensor]:
    B, L, P, N = shape
    tokens = [torch.randn(B, L, n) for n in (N, N, P, P)]
    return [
        *tokens,
        torch.randn(B, P),
        torch.randn(B, P),
        torch.rand(B, P, N),
        torch.randn(B, P, N),
    ]


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_entry_is_moved_once_and_every_decay_computed_once(
    shape: tuple[int, int, int, int],
    build: Build,
    counts: Counts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = build("s6")
    tiled(module, TILE, monkeypatch)
    leaves = arguments(shape)
    forward, backward = expected(shape, module.STEP, kept=True)
    room = module._room(leaves[-1], shape[1], torch.float32, "auto")
    out, last, states = module._launch_forward(*leaves, None, room)
    assert counts == forward
    for name in vars(counts):
        setattr(counts, name, 0)
    module._launch_backward(*leaves, None, states, torch.randn_like(out), torch.randn_like(last))
    assert counts == backward


@pytest.mark.share(3, ci=0)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_complex_decay_takes_one_power_forwards_and_one_backwards(
    shape: tuple[int, int, int, int],
    build: Build,
    counts: Counts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = build("turned_selective", TURNED)
    tiled(module, TILE, monkeypatch)
    B, L, P, N = shape
    layer = module.TurnedSelective(d=P, n=N)
    forward, backward = expected(shape, module.STEP, kept=True)
    tokens = {n: torch.randn(B, L, P, requires_grad=True) for n in ("x", "r", "w")}
    keys = {n: torch.randn(B, L, N, requires_grad=True) for n in ("b", "c")}
    y = layer(**tokens, **keys)
    assert (counts.powers, counts.launches) == (forward.powers, forward.launches)
    y.sum().backward()
    whole = forward.powers + backward.powers
    assert (counts.powers, counts.launches) == (whole, forward.launches + backward.launches)


def test_segments_move_inputs_again_and_a_decay_and_a_state_each(
    build: Build, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = build("s6")
    B, L, P, N = shape = 2, 16, 8, 4
    tiled(module, TILE, monkeypatch)
    monkeypatch.setattr(module, "SEGMENT", L // 4)
    leaves = arguments(shape)
    forward, backward = expected(shape, module.STEP, kept=True)
    state, keys, tokens, constants = B * P * N, -(-P // TILE[1]) * B * L * N, B * L * P, 2 * B * P
    # Of a segment: its decay and state; before it reads what it starts from, those ahead of it.
    summary = Counts(4 * (constants + state) + 2 * tokens + keys, 8 * state, forward.powers, 1)
    again = 3 * (constants + state) + 2 * (0 + 1 + 2 + 3) * state
    room = module._room(leaves[-1], L, torch.float32, "auto")
    out, last, states = module._launch_forward(*leaves, None, room)
    assert counts == Counts(
        forward.read + again + 3 * state + summary.read,
        forward.written + summary.written,
        2 * forward.powers,
        2,
    )
    for name in vars(counts):
        setattr(counts, name, 0)
    module._launch_backward(*leaves, None, states, torch.randn_like(out), torch.randn_like(last))
    assert counts == Counts(
        backward.read + again + summary.read + tokens,
        # Gradients of constants come out in slices.
        backward.written + 3 * (constants + state) + summary.written,
        backward.powers + forward.powers,
        2,
    )


def test_without_a_gradient_no_states_are_kept(
    build: Build, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = build("s6")
    tiled(module, TILE, monkeypatch)
    shape = SHAPES[1]
    layer = module.S6(d=16, n=shape[3])
    with torch.no_grad():
        layer(torch.randn(shape[0], shape[1], 16))
    forward, _ = expected((shape[0], shape[1], 16, shape[3]), module.STEP, kept=False)
    assert counts == forward


def outcome(
    module: ModuleType, given: dict[str, Tensor], mode: str, infinite: bool
) -> dict[str, Tensor]:
    """Values and gradients of a module of `GIVEN` or `TURNED`."""
    leaves = {n: x.clone().requires_grad_() for n, x in given.items()}
    state = module.State(S=leaves["S"])
    cls = getattr(module, module.__all__[0])
    layer = cls(d=leaves["x"].shape[-1], n=leaves["b"].shape[-1])
    params = {n: leaves[n] for n, _ in layer.named_parameters()}
    inputs = {n: x for n, x in leaves.items() if n not in (*params, "S")}
    y, after = torch.func.functional_call(
        layer, params, (), {**inputs, "state": state, "mode": mode, "return_state": True}
    )
    outs = {"y": y}
    parts = {"last_re": after.S.real, "last_im": after.S.imag} if after.S.is_complex() else None
    outs |= parts or {"last": after.S}
    loss = sum(
        (torch.sin(torch.arange(x.numel())).reshape(x.shape) * x).sum() for x in outs.values()
    )
    # An infinite rate leaves its constant no gradient.
    wanted = {n: x for n, x in leaves.items() if n != "a" or not infinite}
    grads = torch.autograd.grad(loss, list(wanted.values()))
    return {**outs, **dict(zip((f"d{n}" for n in wanted), grads, strict=True))}


DECAYS = {
    "forget all": (-math.inf,),
    "forget nearly all": (-1e4,),
    "denormal": (math.log(1e-40),),
    "keep nearly all": (math.log1p(-1e-7),),
    "keep all": (0.0,),
    "mixed": (-math.inf, -1e4, math.log(1e-40), -20.0, -0.5, -1e-7, 0.0),
}


@pytest.mark.share(6, ci=67)
@pytest.mark.parametrize("inputs", ["random", "cancelling"])
@pytest.mark.parametrize("decays", DECAYS)
@pytest.mark.parametrize(
    ("name", "body"), [("given", GIVEN), pytest.param("turned", TURNED, marks=pytest.mark.ci)]
)
def test_no_digit_is_lost_at_the_ends_of_decays(
    name: str, body: str, decays: str, inputs: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, plain = build(name, body), build(name, body, "torch")
    tiled(module, TILE, monkeypatch)
    generator = torch.Generator().manual_seed(0)
    B, L, P, N = 2, 13, 5, 3
    shapes = {"x": (B, L, P), "b": (B, L, N), "c": (B, L, N), "S": (B, P, N)}
    given = {n: torch.randn(s, generator=generator) for n, s in shapes.items()}
    if body == TURNED:
        given |= {"w": torch.randn(B, L, P, generator=generator), "theta": torch.rand(P, N)}
        given["S"] = torch.complex(given["S"], torch.randn(B, P, N, generator=generator))
    if inputs == "cancelling":
        sign = (1 - 2 * (torch.arange(L) % 2)).reshape(1, L, 1)
        given["x"] = 1e3 * sign + 1e-3 * given["x"]
    drawn = torch.randint(len(DECAYS[decays]), (B, L, P), generator=generator)
    given |= {"r": -torch.tensor(DECAYS[decays])[drawn], "a": torch.ones(P, N)}
    infinite = math.isinf(DECAYS[decays][0])
    wide = {n: x.to(torch.promote_types(x.dtype, torch.float64)) for n, x in given.items()}
    want = outcome(plain, wide, "recurrent", infinite)
    loop = outcome(plain, given, "recurrent", infinite)
    for what, got in outcome(module, given, "auto", infinite).items():
        scale = want[what].abs().max() + 1e-30
        error, known = ((x[what] - want[what]).abs().max() / scale for x in ({what: got}, loop))
        assert torch.isfinite(got).all(), what
        # Ten roundings of 6e-8, or what the plain loop errs.
        assert error <= max(1e-6, 3 * known), f"{what}: {error}, the plain loop {known}"


@pytest.mark.share(9, ci=0)
@pytest.mark.parametrize("states", [2, 17])
@pytest.mark.parametrize("decay", NESTED)
def test_constants_inside_a_log_decay_are_those_of_their_state(
    decay: str, states: int, build: Build
) -> None:
    body = f"""
      dims d, n
      input u : d
      param W_b, W_c : d -> n ~ normal(0, 1); W_D : d -> d ~ normal(0, 1); a : d × n; e : n
      D = softplus(W_D u);  b = W_b u;  c = W_c u
      state S : d × n
      S = {NESTED[decay]} * S[i-1] + u ⊗ b
      y = c · S
    """
    found = surface(build(f"nested_{list(NESTED).index(decay)}", body), {"d": 3, "n": states})
    sample = found.sample(11, dtype=torch.float32, state=False)
    each = sample, widened(sample, found)
    got, want = (values.outcome(found, x, "recurrent", 1) for x in each)
    agree(got, want, 1e-5, decay)
