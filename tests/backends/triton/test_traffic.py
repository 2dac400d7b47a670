"""What kernels read, write, exponentiate and multiply, counted in the interpreter."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from dsfc.backends.triton.cost import matrix as matrix_cost
from dsfc.backends.triton.cost import selective as selective_cost
from dsfc.backends.triton.cost.counts import Pass
from dsfc.backends.triton.cost.devices import value
from dsfc.backends.triton.cost.scans import plan_costs
from dsfc.backends.triton.nodes import computes
from interpreted import around_kernels
from kernel_specs import KINDS, MATRIX, SPECS, UNUSUAL
from tiling import tiled
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from traffic import Traffic

import dsfc
from dsfc.fused.fuse import fuse
from dsfc.fused.ir import Prologue, real_imag
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form, Scan

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

TILE = (4, 8, 1, 2)
SHAPES = [(1, 1, 3), (2, 5, 8), (3, 13, 11)]
"""Batch, length, channels: less than a tile, a whole one across, and parts of both."""


@dataclass(frozen=True)
class Case:
    """One scan with its operators' arguments."""

    module: ModuleType
    gates: Prologue
    leaves: tuple[Tensor, ...]
    shape: tuple[int, int, int]

    @property
    def expected(self) -> dict[str, Traffic]:
        """Entries of each pass: N of an array over time, B · d of one that is not."""
        batch, length, channels = self.shape
        whole, row = batch * length * channels, batch * channels
        tokens, constants = len(self.gates.tokens), len(self.gates.constants)
        n = len(real_imag(self.gates.value))  # numbers of a state's entry
        # Backwards also the gradient of the output, and the states: not that of the last token.
        return {
            "forward": Traffic(tokens * whole + (constants + n) * row, n * (whole + row)),
            "backward": Traffic(
                (tokens + 2 * n) * whole - n * row + (constants + 2 * n) * row,
                tokens * whole + (constants + n) * row,
            ),
        }

    def run(self, traffic: Traffic) -> dict[str, Traffic]:
        """Entries that were moved."""
        *outs, last = self.module._launch_forward(*self.leaves, None)
        forward = Traffic(traffic.read, traffic.written)
        dos, dS = [torch.randn_like(x) for x in outs], torch.randn_like(last)
        self.module._launch_backward(*self.leaves, None, *outs, *dos, dS)
        rest = Traffic(traffic.read - forward.read, traffic.written - forward.written)
        return {"forward": forward, "backward": rest}


def case(build: Callable[..., ModuleType], name: str, shape: tuple[int, int, int]) -> Case:
    batch, length, channels = shape
    (gates,) = fuse(dsfc.load(name).plan, computes).prologues
    (scan,) = (k for k in dsfc.load(name).plan.kernels if isinstance(k, Scan))
    row = (batch, channels, *(1,) * (scan.form is Form.CONVOLUTION))
    timed = [torch.randn(batch, length, channels) for _ in gates.tokens]
    fixed = [torch.rand(row) for _ in gates.constants]
    kind = torch.complex64 if len(real_imag(gates.value)) > 1 else torch.float32
    state = torch.randn(row, dtype=kind)
    return Case(build(name), gates, (*timed, *fixed, state), shape)


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("rg_lru", SHAPES[1]),
        *(
            pytest.param(name, shape, marks=pytest.mark.ci)
            for name, shape in (
                *(("rg_lru", SHAPES[2]), ("hgrn", SHAPES[2]), ("lru", SHAPES[2])),
                *(("qlstm", s) for s in SHAPES),
            )
        ),
    ],
)
def test_every_entry_is_moved_once(
    name: str,
    shape: tuple[int, int, int],
    build: Callable[..., ModuleType],
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = case(build, name, shape)
    tiled(found.module, TILE, monkeypatch)
    assert found.run(traffic) == found.expected


def test_one_more_read_is_seen(
    build: Callable[..., ModuleType],
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    found = case(build, "qlstm", (2, 5, 8))
    text = dsfc.load("qlstm").module("triton").text
    again = "        h += 0 * tl.load(p_W_f_u + i_b * D + o_d, mask=m_d, other=0)\n"
    changed = text.replace("        rows = ()\n", f"{again}        rows = ()\n")
    assert changed != text
    path = tmp_path / "changed.py"
    path.write_text(changed.replace("dsfc_qlstm_", "dsfc_changed_"), encoding="utf-8")
    module = dsfc.import_module(path)
    tiled(module, TILE, monkeypatch)
    moved, expected = replace(found, module=module).run(traffic), found.expected
    assert moved["forward"].read == expected["forward"].read + 2 * 2 * 8  # in each of two tiles
    assert moved["backward"] == expected["backward"]


HEADS, CHUNK, WIDTH, SPAN, LEAST = 2, 4, 4, 8, 16
CUT = [(1, 3, 4, 4), (2, 9, 5, 8), (1, 17, 8, 7)]
"""Batch, length, keys, channels: one part of a state, several of one side or of both."""


def chunked(shape: tuple[int, int, int, int], weights: int) -> dict[str, Traffic]:
    """What each pass of a matrix scan with a decay moves and computes, by its parts of WIDTH.

    Each side has LEAST places in a product at least. A weight of values is one number a token.
    """
    B, L, K, V = shape
    n_k, n_v, spans = -(-K // WIDTH), -(-V // WIDTH), -(-L // SPAN)
    # All of q, k, g for each part of v.
    by_columns = L * V + n_v * L * (2 * K + 1 + weights) + K * V
    by_keys = L * K + n_k * L * (2 * V + 1 + weights) + K * V  # likewise
    read = by_keys + L * K + K * V  # q for the gradient of λ, and that of the last state
    keys = by_keys + L * K + spans * K * V + n_k * L + n_k
    chunks = -(-L // CHUNK)
    powers = chunks * (CHUNK * CHUNK + 2 * CHUNK + 1)
    # A weight is a softplus, an exponential, a logarithm and a reciprocal; its derivative has two.
    slopes = weights * chunks * CHUNK
    powers += 3 * slopes
    half = 2 * CHUNK * CHUNK * (LEAST + WIDTH) + 4 * CHUNK * LEAST * WIDTH
    pairs = 2 * CHUNK * CHUNK * WIDTH  # of q and k, for the gradient of λ
    every = {
        "forward": Traffic(by_columns, L * V + K * V, n_v * powers, n_v * chunks * half),
        "backward": Traffic(
            read + keys + by_columns,
            (L * K + n_k * L + spans * K * V + n_k)
            + (L * K + n_k * L * (1 + weights) + K * V)
            + L * V,
            (2 * n_k + n_v) * powers + 2 * n_k * slopes,
            chunks * ((2 * n_k + n_v) * half + n_k * pairs),
        ),
    }
    heads = B * HEADS
    return {
        way: Traffic(**{n: heads * count for n, count in vars(x).items()})
        for way, x in every.items()
    }


def launched(
    module: ModuleType, name: str, shape: tuple[int, int, int, int], traffic: Traffic
) -> dict[str, Traffic]:
    """What a matrix scan's two passes moved and computed."""
    B, L, K, V = shape
    keyed = (B, L, K) if name == "ssd" else (B, L, HEADS, K)
    q, k, v = torch.randn(keyed), torch.randn(keyed), torch.randn(B, L, HEADS, V)
    g, S = -torch.rand(B, L, HEADS), torch.randn(B, HEADS, K, V)
    leaves = (q, k, v, *([torch.randn(g.shape)] if name == "ssd" else []), g, S)
    module._launch_forward(*leaves, None)
    forward = replace(traffic)
    module._launch_backward(*leaves, None, torch.randn_like(v), torch.randn_like(S))
    return {"forward": forward, "backward": traffic.since(forward)}


@pytest.mark.share(6, ci=0)
@pytest.mark.parametrize("shape", CUT)
@pytest.mark.parametrize("name", ["retnet", "ssd"])
def test_chunks_move_what_their_parts_need(
    name: str,
    shape: tuple[int, int, int, int],
    build: Callable[..., ModuleType],
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = build(name)
    tiled(module, (CHUNK, WIDTH, 1, 2), monkeypatch)
    monkeypatch.setattr(module, "SPAN", SPAN)
    assert launched(module, name, shape, traffic) == chunked(shape, int(name == "ssd"))


WHOLE = [
    {"h": 2, "n": 32, "p": 32, "r": 32, "d": 64},
    {"h": 1, "n": 16, "p": 64, "d": 16},
    {"h": 1, "n": 32, "p": 16, "d": 32},
]
"""Axes that whole tiles fill without a rest, of as many columns as a product has at least."""

SPREAD = 16
"""Columns of a tile of a matrix scan, and channels of one of another."""

SELECTIVE = {"s6": 16, "selective_turned": 16, "selective_pairs": 8}
"""Selective scans, and most states of a channel of which the fewest programs there are have all."""
LONG = ("selective_turned", "selective_pairs")
"""Scans whose products of complex numbers take the interpreter half a minute."""

ALONG = {"s6": (2, 2, 1), "selective_turned": (2, 2, 2), "selective_pairs": (5, 8, 3)}
"""What varies along their states: of tokens, with a rest of zeros up to a power of two; of none."""

SUMMED = {"retnet": 1, "mamba2_pseudo_lti": 2, "ssd": 2, "mlstm": 2}
SUMMED |= {n: 1 for n in MATRIX if n.startswith("normalized_attn") or n == "generalized_attn"}
"""Numbers of a token and head whose gradients come in parts, which torch adds up."""


def counted(
    module: ModuleType, plan: Plan, sizes: dict[str, int], tokens: int, traffic: Traffic
) -> list[Traffic]:
    """What a layer's kernels do for so many tokens, forwards and backwards."""
    cls = getattr(module, module.__all__[0])
    known = inspect.signature(cls).parameters
    layer = cls(**{n: size for n, size in sizes.items() if n in known})
    inputs = [
        torch.rand(1, tokens, *(sizes[a.name] for a in i.axes), requires_grad=True)
        for i in plan.inputs
    ]
    before = replace(traffic)
    y = layer(*inputs)
    forward = traffic.since(before)
    y.sum().backward()
    return [forward, traffic.since(before).since(forward)]


def tier(name: str, sizes: dict[str, int], way: str) -> list[Any]:
    """One case in CI; other sizes in the last tier, most scans with time cut, and what is long."""
    if (name, sizes, way) == ("mlstm", WHOLE[1], "fused"):
        return []
    held = name in KINDS or (way == "fused" and name not in LONG)
    return [pytest.mark.ci if held and sizes == WHOLE[0] else pytest.mark.full]


@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize(
    ("name", "sizes", "way"),
    [
        pytest.param(name, sizes, way, marks=tier(name, sizes, way))
        for name in (*SPECS, *list(SELECTIVE)[1:])
        if name != "gateloop"  # torch moves more around its kernels than they do: see below
        for sizes in (WHOLE if name in (*KINDS, "s6", "hgrn") else WHOLE[:1])
        for way in ("fused", "split")
    ],
)
def test_the_cost_model_is_what_the_interpreter_counts(
    name: str,
    sizes: dict[str, int],
    way: str,
    build: Callable[..., ModuleType],
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In float32, bytes are four times the numbers moved, each once and again where it says so.

    What four spans of tokens need more than two, in segments of one span where time is split.
    """
    if name in SELECTIVE:
        sizes = sizes | {"n": SELECTIVE[name], "d": 4 * SPREAD}
    module = build(name, UNUSUAL.get(name))
    plan = dsfc.load(
        Path(module.__file__ or "").with_name(f"{name}.dsf") if name in UNUSUAL else name
    ).plan
    tokens = CHUNK if name in MATRIX else TILE[0]
    tiled(module, (tokens, SPREAD, 1, 2), monkeypatch)
    monkeypatch.setattr(module, "SPAN", SPAN, raising=False)
    if way == "split":
        monkeypatch.setattr(module, "SEGMENT", SPAN)
    monkeypatch.setattr(matrix_cost, "SPAN", SPAN)
    monkeypatch.setattr(selective_cost, "TILES", (SPREAD, SPREAD))
    known = sizes | {"width": 4, "chunk": tokens, "tile": SPREAD, "batch": 1, "segment": SPAN}
    costs = [c for c in plan_costs(fuse(plan, computes)) if c.way == way]
    few, more = (counted(module, plan, sizes, n * SPAN, traffic) for n in (2, 4))
    for at, found in enumerate(late.since(early) for early, late in zip(few, more, strict=True)):
        passes = [c.passes[at] for c in costs]

        def each(*names: str, passes: list[Pass] = passes) -> float:
            counts = [getattr(p, n) for p in passes for n in names]
            return sum(
                sign * n * SPAN * value(e, known | {"length": n * SPAN})
                for sign, n in ((1, 4), (-1, 2))
                for e in counts
            )

        bytes_ = each("bytes", "redundant_reads")
        bytes_ -= 2 * in_torch(name, plan, sizes, way == "split") if at else 0
        assert 4 * (found.read + found.written) == bytes_, at
        assert found.powers == each("exponentials"), at
        if name in MATRIX:
            assert found.operations == each("operations"), at


def in_torch(name: str, plan: Plan, sizes: dict[str, int], cut: bool) -> int:
    """Bytes of a span of tokens that torch moves to add up parts of gradients.

    Where time is cut, those of constants come in parts too, one for each segment.
    """
    if name in MATRIX:
        return 4 * SPAN * sizes["h"] * SUMMED.get(name, 0) * (sizes["n"] // SPREAD + 1)
    gates = fuse(plan, computes).prologues
    channels = sizes["n" if name == "lru" else "d"]
    fixed = channels * sum(len(g.constants) for g in gates)
    sums = 0
    if name in SELECTIVE:
        states, (along, kinds, rates), groups = sizes["n"], ALONG[name], 1
        heads = sizes["h"] if name == "selective_pairs" else 1
        sums = states * (kinds * channels // SPREAD + along * heads)
        if rates > 1:  # complex, and a program has two states
            groups = states // 2
            sums += (groups + 1) * channels * sum(len(g.tokens) for g in gates)
        fixed = groups * fixed + rates * states * channels
    return 4 * (SPAN * sums + cut * fixed)


class Moved(TorchDispatchMode):
    """Counts the bytes that operations of torch read and write; views do neither."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if not func.is_view and "empty" not in func.name():
            self.total += sum(map(held, (*tree_leaves(args), *tree_leaves(out))))
        return out


def held(x: Any) -> int:
    """Bytes of the entries that a tensor has, of which one may stand at several places."""
    if not isinstance(x, Tensor):
        return 0
    entries = (n for n, step in zip(x.shape, x.stride(), strict=True) if step)
    return math.prod(entries) * x.element_size()


def test_what_torch_moves_around_a_complex_scan_is_in_the_cost_model(
    build: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, (B, L, H, K, V) = build("gateloop"), (2, 512, 2, 2, 128)
    cost, _ = plan_costs(fuse(dsfc.load("gateloop").plan, computes))
    real, _ = plan_costs(fuse(dsfc.load("retnet").plan, computes))
    sizes = {"n": K, "p": V, "h": 1, "chunk": 64, "tile": 64, "width": 2}
    both = sizes | {"p": 2 * V}
    v = torch.zeros(B, L, H, V, dtype=torch.bfloat16)
    q, k, g = v[..., :K], v[..., :K], torch.zeros(B, L, H)
    S = torch.zeros(B, H, K, V, dtype=torch.complex64)
    around_kernels(monkeypatch, lambda name, args, run: None)  # what they move is known
    for at, times in ((0, 1), (1, 2)):
        with Moved() as moved:
            if at == 0:
                module._launch_forward(q, k, v, g, g, S, None)
            else:
                module._launch_backward(q, k, v, g, g, S, None, v, S)
        kernels = times * value(real.passes[at].bytes, both)
        wider = times * 2 * V * (g.element_size() - v.element_size())  # written by kernels
        around = value(cost.passes[at].bytes, sizes) - kernels - wider
        assert moved.total / (B * L * H) == pytest.approx(around, rel=0.1), at


def test_a_span_is_that_of_the_cost_model(build: Callable[..., ModuleType]) -> None:
    module, size = build("retnet"), 64
    cost, _ = plan_costs(fuse(dsfc.load("retnet").plan, computes))
    sizes = {"h": 1, "n": size, "p": size, "width": 2, "tile": size}
    passed = cost.passes[1].bytes
    rows, states = 11 * size * 2, 2 * 2 * size * size / module.SPAN
    # λ twice, what its gradient is added up from, out and in twice, and the gradient.
    assert value(passed, sizes) - rows - states == pytest.approx(4 * 7)
