"""Kernels, run by Triton's interpreter, are the definition: values, gradients, states, masks."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from itertools import product
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from dsfc.backends.triton.cost.devices import H200, seconds
from dsfc.backends.triton.cost.scans import plan_costs
from dsfc.backends.triton.nodes import computes
from emitted import Beside, narrow
from interpreted import widened
from kernel_specs import SPECS, UNUSUAL
from test_torture import CHUNK, GATES, LENGTH, Operators, draw, narrowed, off, operators
from test_torture import run as run_operators
from test_torture import widened as in_double
from tiling import tiled
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import dsfc
from dsfc.fused.fuse import fuse
from dsfc.validate.compare import EXACT, Error, agree, bar_share, errors
from dsfc.validate.surface import Sample, Surface, ends, loss, surface
from dsfc.validate.values import outcome

pytest.importorskip("triton")
# What a kernel computes of places beyond the end is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Build = Callable[..., ModuleType]
FIRST = ("lru", "rg_lru", "rwkv4", "two_axes", "plain_parts")
FIRST += ("s6", "selective_rates", "selective_turned", "gateloop")
FIRST += ("normalized_attn", "linear_attn", "running_weight", "mlstm", "retnet")
"""One of each kind: what takes long is held of these in CI, of all in the last tier."""
QUICK = ("rg_lru", "two_axes", "inner_words", "retnet", "linear_attn")
ALL = [*((name, None) for name in SPECS), *UNUSUAL.items()]
LATER = {name: pytest.mark.ci for name, _ in ALL if name not in QUICK}
LONG = ("shared_leaves", "rotated_columns", "layers", "inner_words_of_matrices", "columns")
LATER |= {name: pytest.mark.full for name in LONG}
SOME = [pytest.param(*case, marks=LATER.get(case[0], ())) for case in ALL]
"""All, most of them in a later tier."""
CUT = [pytest.param(*c, marks=pytest.mark.ci if c[0] in FIRST else pytest.mark.full) for c in ALL]
TILE = (4, 4, 1, 2)
"""Several tiles along both axes, the last ones cut off."""
LENGTHS = (0, 1, 4, 5, 13)
ROUNDED = 1e-5
"""Largest relative error in float32: 13 steps of ten roundings of 6e-8 each, all one way."""


def small(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes the tiles of a module small; the list learns which directions are launched."""
    monkeypatch.setattr(module, "SPAN", 2 * TILE[0], raising=False)
    return tiled(module, TILE, monkeypatch)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], list[str]]:
    """Makes the tiles of a module small; see `small`."""
    return lambda module: small(module, monkeypatch)


@pytest.mark.share(4, ci=121)
@pytest.mark.parametrize(("name", "body"), SOME)
def test_kernels_are_the_definition(
    name: str, body: str | None, build: Build, launched: Callable[[ModuleType], list[str]]
) -> None:
    found = surface(build(name, body))
    plain = surface(build(name, body, "torch"))
    seen = launched(found.module)
    sample = found.sample(13, dtype=torch.float32)
    want = outcome(plain, widened(sample, plain), "recurrent", 1)
    agree(outcome(found, sample, "auto", 1), want, ROUNDED, "L = 13")
    assert {"forward", "backward"} <= set(seen)


class Watching(TorchDispatchMode):
    """A mode of a user, that lets everything pass."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.mark.share(4, ci=0)
@pytest.mark.parametrize(("name", "body"), SOME)
def test_a_user_may_watch_what_is_dispatched(name: str, body: str | None, build: Build) -> None:
    """PyTorch shuts torch.func out of what a mode runs: no operator may differentiate inside."""
    found = surface(build(name, body))
    sample = found.sample(5)
    given = {n: x.requires_grad_() for n, x in sample.inputs.items()}
    want = outcome(found, sample, "auto", 2)
    found.module.register_flops()
    flops = FlopCounterMode(display=False)
    for mode in (flops, Watching()):
        with mode:
            got = outcome(found, sample, "auto", 2)
            y, _ = ends(sample.layer(**given, state=sample.state, **found.carried))
            first = torch.autograd.grad(loss(y), list(given.values()), create_graph=True)
            torch.autograd.grad(loss(*first), list(given.values()))
        for n, x in want.items():
            assert torch.equal(got[n], x), n
    namespaces = {str(op).split(".")[0] for op in flops.get_flop_counts()["Global"]}
    assert found.namespace in namespaces


class Apart(TorchDispatchMode):
    """Checks that an operator's tensors, given and returned, are arrays of their own."""

    def __init__(self, namespace: str) -> None:
        super().__init__()
        self.namespace = namespace
        self.seen: set[str] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        outs = func(*args, **(kwargs or {}))
        if func.namespace == self.namespace:
            self.seen.add(func.name())
            given = {x.untyped_storage().data_ptr() for x in args if isinstance(x, Tensor)}
            made = [x.untyped_storage().data_ptr() for x in outs]
            assert len(set(made)) == len(made) and not given & set(made), func
        return outs


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize("name", ["hgrn", "lru", "rg_lru", "plain_parts"])
def test_outputs_of_operators_are_arrays_of_their_own(name: str, build: Build) -> None:
    """Of one number too: the parts of a complex one are contiguous where they lie."""
    module = build(name, UNUSUAL.get(name))
    mixer = getattr(module, module.__all__[0])
    layer = mixer(**{n: 1 for n in ("d", "n") if n in inspect.signature(mixer).parameters})
    scans, count = (2, 3) if name in UNUSUAL else (1, 1)
    inputs = [torch.ones(1, 1, 1, requires_grad=True) for _ in range(count)]
    for mode in ("auto", *module.MODES):
        with Apart(module.NAMESPACE) as apart:
            layer(*inputs, mode=mode).sum().backward()
        assert len(apart.seen) == 2 * scans, mode


@pytest.mark.ci
@pytest.mark.share(1, ci=86)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", SPECS)
def test_kernels_are_the_oracle(
    name: str,
    length: int,
    build: Build,
    oracle: Callable[[str], ModuleType],
    launched: Callable[[ModuleType], list[str]],
) -> None:
    beside = Beside(build(name), oracle(name))
    seen = launched(beside.module)
    for batch in (1, 3):
        given = {n: narrow(x, torch.float32) for n, x in beside.draw(length, batch).items()}
        want = beside.judged({n: narrow(x, torch.float64) for n, x in given.items()})
        where = f"L = {length}, B = {batch}"
        # Where a gradient vanishes (a ratio of one term), the plain loop in float32 is off as well.
        plain = agree(beside.judged(given), want, math.inf, where)
        agree(beside.ran(given, "auto", 1), want, max(ROUNDED, 3 * plain), where)
    assert seen


@pytest.mark.share(1, ci=29)
@pytest.mark.parametrize(("name", "body"), CUT)
def test_cut_sequences_hand_over_states_and_their_gradients(
    name: str, body: str | None, build: Build, launched: Callable[[ModuleType], list[str]]
) -> None:
    found = surface(build(name, body))
    launched(found.module)
    sample = found.sample(9, dtype=torch.float32)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    for cuts in ((0,), (3,), (4,), (1, 5, 5, 8)):
        got = outcome(found, sample, "auto", 1, cuts=cuts)
        agree(got, want, ROUNDED, f"cut at {cuts}")


@pytest.mark.share(1, ci=14)
@pytest.mark.parametrize(("name", "body"), CUT)
def test_segments_of_time_make_no_difference(
    name: str,
    body: str | None,
    build: Build,
    launched: Callable[[ModuleType], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = surface(build(name, body))
    launched(found.module)
    sample = found.sample(21, dtype=torch.float32)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    for tokens in (4, 8):
        monkeypatch.setattr(found.module, "SEGMENT", tokens)
        agree(outcome(found, sample, "auto", 1), want, ROUNDED, f"segments of {tokens}")


@pytest.fixture
def h200(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """As if there were one."""
    properties = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    return torch.device("cuda")


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize(("name", "width"), [("rg_lru", 2), ("rwkv4", 4), ("turned", 2)])
def test_segments_are_as_many_as_take_least_time(
    name: str, width: int, build: Build, h200: torch.device
) -> None:
    module = build(name, UNUSUAL.get(name))
    module._chip.cache_clear()
    work = getattr(module, "_forward_work", None) or module._forward_work_S
    for length in (0, 1, 100, 255, 256, 2048, 131072):
        for programs in (1, 8, 16, 132, 256, 600, 1 << 20):
            given = work, (width, 64), (1, length), programs, 1
            tokens = module._segment(*given, h200)
            count = max(-(-length // tokens), 1)
            assert tokens % 32 == 0 and tokens > 0
            assert count == 1 or (tokens >= 128 and count <= 32)
            if length >= 256:
                times = {
                    n: module._predicted_seconds(*given, module._chip(h200), n)
                    for n in (tokens, length, max(length // 4, 128), max(length // 32, 128))
                }
                assert times[tokens] <= 1.0001 * min(times.values())
            assert count == 1 or programs < 2 * 132  # more programs have no room
    assert module._segment(*given[:2], (1, 2048), 16, 1, h200) == 128  # 1,024 channels
    assert module._segment(*given[:2], (8, 2048), 264, 1, h200) == 2048  # all processors have two
    assert module._segment(*given[:2], (1, 256), 16, 1, h200) == 256  # a launch would take longer
    assert module._segment(*given[:2], (1, 2048), 16, 1, torch.device("cpu")) == 2048


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize("name", ["rg_lru", "s6", "ssd", "normalized_attn"])
def test_a_module_predicts_what_the_plan_does(name: str, build: Build, h200: torch.device) -> None:
    module, costs = build(name), plan_costs(fuse(dsfc.load(name).plan, computes))
    module._chip.cache_clear()
    B, L, H, K, V, D, tile, chunk = 2, 4096, 4, 16, 128, 1024, 64, 64
    sizes = {"batch": B, "length": L, "width": 2, "tile": tile, "chunk": chunk, "segment": 512}
    sizes |= {"h": H, "n": K, "p": V, "d": D}
    taken, programs, each = {
        "rg_lru": ((2, D), {"forward": B * D // tile, "backward": B * D // tile}, 1),
        "s6": ((2, 1, K, D), {"forward": B * D // 32, "backward": B * D // 32}, 1),
    }.get(name, ((2, H, K, V, tile, chunk), {}, chunk))
    # Backwards a matrix scan has programs by keys besides those by channels.
    programs = programs or {"forward": B * H * V // tile, "backward": B * H * (K + V) // tile}
    for cost, tokens in zip(costs, (L, 512), strict=True):
        for p in cost.passes:
            work = getattr(module, f"_{p.name}_work")
            given = work, taken, (B, L), programs[p.name], each, module._chip(h200), tokens
            assert module._predicted_seconds(*given) == pytest.approx(seconds(p, H200, sizes))


def test_explain_says_into_what_time_is_cut(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    module = build("rg_lru")
    monkeypatch.setattr(module, "SEGMENT", 128)
    said = module.RgLru(d=8, dtype=torch.float32).explain(512)
    assert "h forwards in 4 segments of 128 tokens, h backwards in 4 segments of 128" in said
    monkeypatch.setattr(module, "SEGMENT", 512)
    assert "h backwards in one segment" in module.RgLru(d=8, dtype=torch.float32).explain(512)
    module = build("s6")
    monkeypatch.setattr(module, "SEGMENT", 256)
    said = module.S6(d=16, n=16, dtype=torch.float32).explain(512)
    assert "S backwards in 2 segments of 256 tokens" in said
    module = build("mlstm")
    monkeypatch.setattr(module, "SEGMENT", 256)
    said = module.Mlstm(d=8, dtype=torch.float32).explain(512)
    assert "forwards in 2 segments of 256 tokens" in said
    assert "backwards in 2 segments of 384 tokens" in said  # of whole spans


def ran(found: Surface, sample: Sample, mode: str, given: dict[str, Any]) -> dict[str, Tensor]:
    """Y, the last state, and gradients of all inputs and parameters, of a call with arguments."""
    inputs = {n: x.detach().clone().requires_grad_() for n, x in sample.inputs.items()}
    y, state = sample.layer(**inputs, **given, mode=mode, return_state=True)
    outs = {"y": y, **found.tensors(state)}
    loss = sum(
        torch.sin(x.abs().double() if x.is_complex() else x.double()).sum() for x in outs.values()
    )
    wrt = {**inputs, **dict(sample.layer.named_parameters())}
    grads = torch.autograd.grad(loss, list(wrt.values()))
    return {**outs, **dict(zip((f"gradient of {n}" for n in wrt), grads, strict=True))}


def agree_with_the_loop_on_packs(found: Surface, how: str) -> None:
    """Holds kernels to the loop in float64 where tokens do not count: `mask` or `cu_seqlens`."""
    packed = how == "cu_seqlens"
    sample = found.sample(9, batch=1 if packed else 3, dtype=torch.float32, state=False)
    given: dict[str, Any] = {"cu_seqlens": torch.tensor([0, 0, 5, 6, 9])}
    if not packed:
        mask = torch.rand(3, 9, generator=torch.Generator().manual_seed(1)) < 0.6
        mask[1] = False
        given = {"mask": mask}

    want = ran(found, widened(sample, found), "recurrent", given)
    # Where a gradient vanishes (that of an input gate in a ratio), the plain loop is off as well.
    plain = agree(ran(found, sample, "recurrent", given), want, math.inf, how)
    agree(ran(found, sample, "auto", given), want, max(ROUNDED, 3 * plain), how)


@pytest.mark.share(2, ci=73)
@pytest.mark.parametrize(
    "name",
    [
        "rg_lru",
        *(pytest.param(n, marks=pytest.mark.ci) for n in ("lru", "rwkv4", "s6", "retnet", "mlstm")),
        *(pytest.param(n, marks=pytest.mark.ci) for n in ("gateloop", "selective_turned")),
    ],
)
@pytest.mark.parametrize("segment", [1 << 20, 4])
@pytest.mark.parametrize("how", ["mask", pytest.param("cu_seqlens", marks=pytest.mark.ci)])
def test_masked_tokens_and_packs(
    name: str,
    how: str,
    segment: int,
    build: Build,
    launched: Callable[[ModuleType], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = surface(build(name, UNUSUAL.get(name)))
    seen = launched(found.module)
    monkeypatch.setattr(found.module, "SEGMENT", segment)
    agree_with_the_loop_on_packs(found, how)
    assert "backward" in seen


DTYPES = (torch.bfloat16, torch.float16, torch.float32)
COMPLEX = ("gateloop", "hgrn", "lru")


def late(name: str, dtype: torch.dtype) -> bool:
    """Whether a case is of the last tier."""
    return dtype is not torch.bfloat16 or name in COMPLEX or name not in FIRST


@pytest.mark.share(1, ci=9)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(*case, marks=pytest.mark.full if late(*case) else pytest.mark.ci)
        for case in product(SPECS, DTYPES)
        if case
        not in product(COMPLEX, (torch.float16,))  # the plain loop has no such complex numbers
    ],
)
def test_low_precision_errs_no_more_than_the_plain_loop(
    name: str, dtype: torch.dtype, build: Build, oracle: Callable[[str], ModuleType]
) -> None:
    beside = Beside(build(name), oracle(name))
    plain: list[dict[str, Error]] = []
    got: list[dict[str, Error]] = []
    for seed in range(8):
        low = {n: narrow(x, dtype) for n, x in beside.draw(23, 2, seed=seed).items()}
        truth = beside.judged({n: narrow(x, torch.float64) for n, x in low.items()})
        plain.append(errors(beside.judged(low), truth))
        got.append(errors(beside.ran(low, "auto", 1), truth))
    bar_share(got, plain, dtype, f"auto, {dtype}")


@pytest.mark.share(3, ci=0)
@pytest.mark.parametrize(("name", "body"), SOME)
def test_the_torch_form_is_that_of_the_torch_module(
    name: str, body: str | None, build: Build
) -> None:
    found, plain = surface(build(name, body)), surface(build(name, body, "torch"))
    for length in (0, 1, 5):
        sample = found.sample(length)
        same = dataclasses.replace(sample, layer=plain.layer())
        same.layer.load_state_dict(sample.layer.state_dict())
        state = plain.module.State(**found.tensors(sample.state))
        same = dataclasses.replace(same, state=state)
        want = outcome(plain, same, "recurrent", 2)
        for mode in ("auto", *found.modes):
            agree(outcome(found, sample, mode, 2), want, EXACT, f"{mode}, L = {length}")


SCALED = """
  dims d = 8, heads h = 2, n = d / h, p = d / h
  input q : h × n; k : h × n; v : h × p
  state S : h × n × p
  S = S[i-1] + k ⊗ v
  y = -3/2 * (q · S)
"""


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_constant_factor_of_the_output_is_applied_in_float32(
    dtype: torch.dtype, build: Build
) -> None:
    """The kernels scale what they read of two bytes, forwards and backwards."""
    found = surface(build("scaled_output", SCALED))
    sample = found.sample(21, dtype=dtype)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    agree(outcome(found, sample, "auto", 1), want, 0.02, f"{dtype}")


def in_full(ops: Operators, module: ModuleType) -> Operators:
    """The operators where all tokens count; the backward one gets what it takes of the outputs."""
    count, taken = len(ops.names), module._OPS.backward.default._schema.arguments
    known: dict[str, Any] = {"lengths": None}

    def named(outs: tuple[Tensor, ...]) -> list[str]:
        return ["o", "o_w", "S"] if len(outs) == 3 else ["o", "S"]

    def forward(*x: Any) -> Any:
        outs = module._OPS.forward(*x[:count], None, *x[count:])
        known.update((n, o) for n, o in zip(named(outs), outs, strict=True) if n != "S")
        return outs

    def backward(*x: Any) -> Any:
        cotangents = [f"d{n}" for n in named(x[count:-2])]
        given = dict(zip((*ops.names, *cotangents, "mode", "chunk"), x, strict=True))
        return module._OPS.backward(*((known | given)[a.name] for a in taken))

    return dataclasses.replace(ops, forward=forward, backward=backward)


@pytest.mark.share(6, ci=0)
@pytest.mark.parametrize("inputs", ["random", pytest.param("large", marks=pytest.mark.ci)])
@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("name", ["ssd", pytest.param("mlstm", marks=pytest.mark.ci)])
@pytest.mark.parametrize("segment", [0, pytest.param(16, marks=pytest.mark.ci)])
def test_chunks_keep_what_the_loop_keeps(
    name: str, gates: str, inputs: str, segment: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one segment of time, and in segments of one chunk."""
    module = build(name)
    monkeypatch.setattr(module, "SEGMENT", segment)
    monkeypatch.setattr(module, "SPAN", segment or module.SPAN)
    ops = operators(module)
    seen = tiled(module, (16, 16, 1, 2), monkeypatch)
    ops = in_full(ops, module)
    tensors = [narrowed(x) for x in draw(ops, LENGTH, GATES[gates], inputs)]
    truth = run_operators(ops, [in_double(x) for x in tensors], "recurrent", CHUNK)
    plain = run_operators(ops, tensors, "recurrent", CHUNK)
    assert not seen
    outputs = [f"output {at}" for at in range(len(truth) - len(ops.names))]
    names = [*outputs, *(f"d{x}" for x in ops.names)]
    for name, got, want, loop in zip(
        names, run_operators(ops, tensors, "auto", CHUNK), truth, plain, strict=True
    ):
        assert torch.isfinite(got).all(), name
        assert off(got, want) <= max(1e-5, 8 * off(loop, want)), name
    assert seen


@pytest.mark.parametrize(
    ("length", "size"),
    [
        pytest.param(1024, 64, marks=pytest.mark.ci),
        pytest.param(65_536, 16, marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("segment", [0, 384])
def test_gradients_of_decays_do_not_drift(
    length: int, size: int, segment: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sums over time, of numbers that come from bfloat16 products: 0.4 % was measured."""
    module = build("retnet")
    tiled(module, (64, 64, 1, 2), monkeypatch)
    monkeypatch.setattr(module, "SEGMENT", segment)
    generator = torch.Generator().manual_seed(0)
    shape = (1, length, 1, size)
    q, k, v, do = (torch.randn(shape, generator=generator).bfloat16() for _ in range(4))
    g = -0.02 * math.log(2) * torch.rand(shape[:3], generator=generator)  # 0.01 bits on average
    S, dS = (torch.randn(1, 1, size, size, generator=generator) for _ in range(2))
    got = module._launch_backward(q, k, v, g, S, None, do, dS)[3].double()
    *wide, do, dS = (x.double() for x in (q, k, v, g, S, do, dS))
    want = module._backward(*wide, None, do, dS, "chunked", 64)[3]
    assert (got - want).square().mean().sqrt() <= 5e-3 * want.square().mean().sqrt()


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize("segment", [0, 8])
@pytest.mark.parametrize("reset", [3, pytest.param(4, marks=pytest.mark.ci), 9])
def test_a_decay_of_zero_ends_its_gradients(
    reset: int,
    segment: int,
    build: Build,
    launched: Callable[[ModuleType], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever comes behind, in the same chunk, span, segment or not: it enters nothing before."""
    module, length = build("retnet"), 13
    launched(module)
    monkeypatch.setattr(module, "SEGMENT", segment)
    generator = torch.Generator().manual_seed(0)
    shape = (1, length, 2, 4)
    q, k, v, do = (torch.randn(shape, generator=generator) for _ in range(4))
    for x in (q, k, v, do):
        x[:, reset:] *= 1e4
    g = -torch.rand(shape[:3], generator=generator)
    g[:, reset] = -math.inf
    S, dS = (torch.randn(1, 2, 4, 4, generator=generator) for _ in range(2))
    got = module._launch_backward(q, k, v, g, S, None, do, dS)[3]
    ahead = (x[:, :reset] for x in (q, k, v, g))
    before = module._launch_backward(*ahead, S, None, do[:, :reset], 0 * dS)[3]
    assert torch.allclose(got[:, :reset], before, rtol=0, atol=float(ROUNDED * before.abs().max()))
    assert (got[:, reset] == 0).all()
    *wide, do, dS = (x.double() for x in (q, k, v, g, S, do, dS))
    want = module._backward(*wide, None, do, dS, "recurrent", 4)[3]
    for part in (slice(0, reset), slice(reset, length)):
        assert off(got[:, part], want[:, part]) <= ROUNDED


@pytest.mark.parametrize(
    ("length", "size"),
    [
        pytest.param(1024, 64, marks=pytest.mark.ci),
        pytest.param(8192, 16, marks=pytest.mark.full),
    ],
)
def test_gradients_of_phases_do_not_drift(
    length: int, size: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are as those of decays, of values that bfloat16 has rounded once more: 1 % at most."""
    module = build("gateloop")
    tiled(module, (64, 64, 1, 2), monkeypatch)
    given, do, dS = phased((1, length, 1, size), (1, 1, size, size))
    q, k, v, do = (x.bfloat16() for x in (*given[:3], do))
    g, phase, S = 0.014 * given[3], *given[4:]
    got = module._launch_backward(q, k, v, g, phase, S, None, do, dS)
    wide = [narrow(x, torch.float64) for x in (q, k, v, g, phase, S)]
    rest = [narrow(x, torch.float64) for x in (do, dS)]
    want = module._backward(*wide, None, *rest, "chunked", 64)
    for at in (3, 4):
        error = (got[at].double() - want[at]).square().mean().sqrt()
        assert error <= 1.5e-2 * want[at].square().mean().sqrt(), at


def phased(keyed: tuple[int, ...], state: tuple[int, ...]) -> tuple[list[Tensor], Tensor, Tensor]:
    """Query, key, value, log |λ| from 0 to -1, phase and state of a complex scan; cotangents."""
    generator = torch.Generator().manual_seed(0)
    q, k, v, do = (torch.randn(keyed, generator=generator) for _ in range(4))
    g = -torch.rand(keyed[:3], generator=generator)
    phase = 3 * torch.randn(keyed[:3], generator=generator)
    S, dS = torch.randn(2, *state, generator=generator, dtype=torch.complex64)
    return [q, k, v, g, phase, S], do, dS


@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("segment", [0, pytest.param(8, marks=pytest.mark.ci)])
@pytest.mark.parametrize("reset", [3, pytest.param(9, marks=pytest.mark.ci)])
def test_a_complex_decay_of_zero_ends_its_gradients(
    reset: int,
    segment: int,
    build: Build,
    launched: Callable[[ModuleType], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is before it enters nothing behind it, not even through its phase."""
    module, length = build("gateloop"), 13
    launched(module)
    monkeypatch.setattr(module, "SEGMENT", segment)
    given, do, dS = phased((1, length, 2, 4), (1, 2, 4, 4))
    S = given[5]
    given[3][:, reset] = -math.inf
    for x in (*given[:3], do):
        x[:, reset:] *= 1e4
    o, last = module._launch_forward(*given, None)
    got = module._launch_backward(*given, None, do, dS)
    behind = [x[:, reset:] for x in given[:5]]
    for x, y in zip(
        (o[:, reset:], last), module._launch_forward(*behind, 0 * S, None), strict=True
    ):
        assert off(x, y) <= ROUNDED
    assert (got[3][:, reset] == 0).all() and (got[4][:, reset] == 0).all()
    wide = [narrow(x, torch.float64) for x in given]
    rest = [narrow(x, torch.float64) for x in (do, dS)]
    want = module._backward(*wide, None, *rest, "recurrent", 4)
    for x, y in zip(got[:5], want[:5], strict=True):
        for part in (slice(0, reset), slice(reset, length)):
            assert off(x[:, part], y[:, part]) <= ROUNDED
    assert off(torch.view_as_real(got[5]), torch.view_as_real(want[5])) <= ROUNDED


@pytest.mark.ci
def test_phases_are_added_up_over_131072_tokens(build: Build) -> None:
    """The next float32 number to their sum is 0.03 away."""
    module, length = build("gateloop"), 131_072
    generator = torch.Generator().manual_seed(0)
    phase = 3 + torch.rand(1, length, 1, generator=generator)
    by = module._rotations(phase, None)
    turns = sum(int(x * 2**60) for x in phase.double().flatten().tolist()) / 2**60
    want = complex(math.cos(turns), math.sin(turns))
    assert abs(complex(by[0, -1, 0]) - want) <= 1e-6
    assert (by.abs() - 1).abs().max() <= 1e-6


@pytest.mark.parametrize(("keys", "channels"), [(256, 16), (16, 256)])
def test_products_of_float32_have_few_terms_at_once(
    keys: int, channels: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has all terms of a sum in registers; of 256 they would not fit."""
    from triton.runtime.interpreter import InterpreterBuilder

    module, dot, terms = build("retnet"), InterpreterBuilder.create_dot, set()

    def watched(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        terms.add(a.data.shape[1])
        return dot(self, a, b, *rest)

    tiled(module, (16, 64, 1, 1), monkeypatch)
    monkeypatch.setattr(InterpreterBuilder, "create_dot", watched)
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 20, 1, keys, generator=generator) for _ in range(2))
    v, do = (torch.randn(1, 20, 1, channels, generator=generator) for _ in range(2))
    g = -torch.rand(1, 20, 1, generator=generator)
    S, dS = (torch.randn(1, 1, keys, channels, generator=generator) for _ in range(2))
    got = (
        *module._launch_forward(q, k, v, g, S, None),
        *module._launch_backward(q, k, v, g, S, None, do, dS),
    )
    leaves = [x.double() for x in (q, k, v, g, S)]
    want = (
        *module._forward(*leaves, None, "recurrent", 16),
        *module._backward(*leaves, None, do.double(), dS.double(), "recurrent", 16),
    )
    for x, y in zip(got, want, strict=True):
        assert off(x, y) <= ROUNDED
    assert max(terms) == 64


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize("inputs", [1.0, pytest.param(1e6, marks=pytest.mark.ci)])
def test_a_constant_decay_may_be_of_any_size(
    inputs: float, build: Build, launched: Callable[[ModuleType], list[str]]
) -> None:
    module, batch = build("lru"), 2
    launched(module)
    log = torch.tensor(GATES["mixed"]).reshape(1, -1, 1)
    generator = torch.Generator().manual_seed(0)
    phase = torch.randn(log.shape, generator=generator)
    turned = phase.cos(), phase.sin()
    shape = (batch, 13, log.shape[1])
    parts = [inputs * torch.randn(shape, generator=generator) for _ in range(4)]
    states = torch.randn(2, batch, *log.shape[1:], generator=generator, dtype=torch.complex64)
    S, dS = states
    leaves = (*parts[:2], torch.ones_like(log), log, phase, *turned, S, None)
    outs = module._launch_forward(*leaves)
    grads = module._launch_backward(*leaves, *outs[:2], *parts[2:], dS)

    in_double = [None if x is None else narrow(x, torch.float64) for x in leaves]
    options = "recurrent", 4, True
    want = module._forward(*in_double, *options)
    cotangents = (narrow(x, torch.float64) for x in (*parts[2:], dS))
    want += module._backward(*in_double, *want[:2], *cotangents, *options)
    for at, (x, y) in enumerate(zip((*outs, *grads), want, strict=True)):
        assert torch.isfinite(x).all(), at
        assert torch.equal(x, y.to(x.dtype)) or off(x, y) <= ROUNDED, at


@pytest.mark.ci
def test_each_sample_may_have_constants_of_its_own(build: Build) -> None:
    module, plain = build("lru"), build("lru", None, "torch")
    layer = module.Lru(d=3, n=5)
    reference = plain.Lru(d=3, n=5, dtype=torch.float64)
    given = dict(layer.named_parameters())
    params = {n: torch.stack([x.detach(), 1.1 * x.detach()]) for n, x in given.items()}
    u = torch.randn(2, 3, 7, 3, generator=torch.Generator().manual_seed(0))

    def gradients(layer: torch.nn.Module, dtype: torch.dtype) -> dict[str, Tensor]:
        def loss(params: dict[str, Tensor], u: Tensor) -> Tensor:
            return torch.func.functional_call(layer, params, (u,)).sin().sum()

        return torch.vmap(torch.func.grad(loss))(
            {n: x.to(dtype) for n, x in params.items()}, u.to(dtype)
        )

    agree(gradients(layer, torch.float32), gradients(reference, torch.float64), ROUNDED, "vmap")


def test_the_interpreter_rounds_as_a_gpu_does() -> None:
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    x = np.array([[1 + 3 / 256, 1 + 1 / 256, 2 - 1 / 512, -1e-40]], np.float32)
    low = interpreter._convert_float(x, tl.float32, tl.bfloat16, None)
    wide = interpreter._convert_float(low, tl.bfloat16, tl.float32, None).view(np.float32)
    assert np.array_equal(wide, torch.from_numpy(x).bfloat16().float().numpy())
    assert wide[0, :3].tolist() == [1 + 4 / 256, 1, 2]  # to the nearest, to even, with a carry
