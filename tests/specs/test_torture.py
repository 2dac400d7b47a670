"""Operators where decays are 0, 1 and everything in between: no mode loses what the loop keeps.

The judge is the operator's own recurrence in float64; every mode in float32 is held to what that
recurrence errs in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import pytest
import torch
from emitted import SPECS, compiled
from torch import Tensor

import dsfc
from dsfc.plan.scan_ir import Scan
from dsfc.validate.compare import BACKWARD
from dsfc.validate.surface import surface

Load = Callable[[str], ModuleType]

# One per form and field of scans, with and without a decay; a test says that none is left out.
NAMES = (
    "normalized_attn",
    "ssd",
    "gateloop",
    "deltanet",
    "gated_deltanet",
    "kda",
    "gla",
    "retnet_rope",
    "s6",
    "rg_lru",
    "mega_ema",
    "s4d",
    "lru",
    "hgrn",
    "linear_rnn",
    "s4",
    "rwkv7",
    "taylor_softmax",  # its first scan is a sum, without a decay
)
ROTATING = ("gateloop", "retnet_rope", "s4d", "lru")
LENGTH, CHUNK, TURNS = 37, 8, 700
DENORMAL = math.log(1e-40)
ROUNDED = 2.0**-150 / 1e-40
"""The rounding of a denormal decay in float32, as a share of the decay."""
GATES = {
    "forget all": (-math.inf,),
    "forget nearly all": (-1e4,),
    "denormal": (DENORMAL,),
    "keep nearly all": (-1e-7,),
    "keep all": (0.0,),
    "mixed": (-math.inf, -1e4, DENORMAL, -20.0, -0.5, -1e-7, 0.0),
    # A product of rates has no gradient where one is infinite: this is for selective scans.
    "mixed and finite": (-1e4, DENORMAL, -20.0, -0.5, -1e-7, 0.0),
}
INPUTS = ("random", "cancelling", "large")


@dataclass(frozen=True)
class Operators:
    """The forward and backward operators of a module's first scan; a running maximum is none.

    Attributes:
        forward, backward: the operators.
        names: of the tensors that the forward one takes.
        shapes: of each, for a batch of 2; None stands for the time axis.
        dtypes: of each, in double precision.
        options: what it takes besides mode and chunk.
    """

    forward: Callable[..., tuple[Tensor, ...]]
    backward: Callable[..., tuple[Tensor, ...]]
    names: tuple[str, ...]
    shapes: tuple[tuple[int | None, ...], ...]
    dtypes: tuple[torch.dtype, ...]
    options: tuple[bool, ...]

    @property
    def rewrites(self) -> bool:
        """Whether the scan is a delta rule: its one key is rewritten with a strength."""
        return "r" in self.names

    def is_matrix(self, name: str) -> bool:
        """Whether an argument is a dense transition, not one side of a low-rank part."""
        return name == "a" and "b" not in self.names


def operators(module: ModuleType) -> Operators:
    found = surface(module)
    length = 11
    calls = found.calls(found.sample(length, batch=2))
    first = next(c for c in calls if "::forward" in c.op.name())
    back = first.op.name().replace("::forward", "::backward")
    second = next(c for c in calls if c.op.name() == back)
    arguments = first.op._schema.arguments
    tensors = [(a.name, x) for a, x in zip(arguments, first.args, strict=True)]
    tensors = [(name, x) for name, x in tensors if isinstance(x, Tensor)]
    shapes = [
        tuple(None if at == 1 and size == length else size for at, size in enumerate(x.shape))
        for _, x in tensors
    ]
    flags = tuple(x for x in first.args if isinstance(x, bool))
    return Operators(
        first.op,
        second.op,
        tuple(name for name, _ in tensors),
        tuple(shapes),
        tuple(x.dtype for _, x in tensors),
        flags,
    )


def draw(ops: Operators, length: int, gates: tuple[float, ...], inputs: str) -> list[Tensor]:
    """Arguments in double precision; decays are drawn from the gates."""
    generator = torch.Generator().manual_seed(0)
    out = []
    for name, shape, dtype in zip(ops.names, ops.shapes, ops.dtypes, strict=True):
        whole = tuple(length if size is None else size for size in shape)
        x = torch.randn(whole, generator=generator, dtype=dtype)
        if name.startswith("g"):
            real = torch.randint(len(gates), whole, generator=generator)
            x_real = torch.tensor(gates, dtype=torch.float64)[real]
            if name == "g1":  # a selective scan's log λ is −(a rate) · (a positive constant)
                x = -x_real
            elif name.startswith("g") and name != "g":
                x = torch.ones_like(x)
            else:
                x = torch.complex(x_real, x.imag) if dtype.is_complex else x_real
        elif name.endswith("_log_weight"):  # less its running maximum: at most 0
            x = -x.abs()
        elif ops.is_matrix(name):  # its eigenvalues are the decays, and no state grows
            rates = torch.tensor(gates, dtype=torch.float64).exp()
            rates = rates[torch.randint(len(gates), whole[:-1], generator=generator)]
            turned = torch.linalg.qr(x).Q
            x = turned * rates.unsqueeze(-2) @ turned.mH
        elif inputs == "large":
            x = 1e6 * x
        elif inputs == "cancelling" and name == "v" and length:
            sign = 1 - 2 * (torch.arange(length) % 2)
            x = 1e3 * sign.reshape(1, -1, *[1] * (x.ndim - 2)) + 1e-3 * x
        if name == "b":  # λ - β b bᵀ of a unit vector and 0 ≤ β ≤ 1 lets no state grow
            x = torch.nn.functional.normalize(x, dim=-1)
            share = torch.rand((*whole[:-1], 1), generator=generator, dtype=dtype)
            out[ops.names.index("a")] = -share * x
        if name == "k" and ops.rewrites:  # the same of a delta rule: λ + r k kᵀ
            x = torch.nn.functional.normalize(x, dim=-1)
        if name == "r":
            x = -torch.rand(whole, generator=generator, dtype=dtype)
        out.append(x)
    return out


def narrowed(x: Tensor) -> Tensor:
    return x.to(torch.complex64 if x.is_complex() else torch.float32)


def widened(x: Tensor) -> Tensor:
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def run(
    ops: Operators, tensors: list[Tensor], mode: str, chunk: int, signs: bool = True
) -> list[Tensor]:
    """Outputs and gradients, in the precision of the arguments; without signs nothing cancels."""
    if not signs:
        names = zip(ops.names, tensors, strict=True)
        tensors = [
            x if ops.is_matrix(n) else (x.real if n.startswith("g") else x.abs()).to(x.dtype)
            for n, x in names
        ]
    outs = list(ops.forward(*tensors, mode, chunk, *ops.options))
    generator = torch.Generator().manual_seed(1)
    cotangents = [
        torch.randn(x.shape, generator=generator, dtype=widened(x).dtype).to(x.dtype) for x in outs
    ]
    if not signs:
        cotangents = [x.abs().to(x.dtype) for x in cotangents]
    return outs + list(ops.backward(*tensors, *cotangents, mode, chunk, *ops.options))


def off(got: Tensor, want: Tensor) -> float:
    """The largest error as a share of the largest value."""
    if not want.numel():
        return 0.0
    scale = want.abs().max().item()
    return (widened(got) - want).abs().max().item() / (scale or 1.0)


@pytest.mark.share(140)
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("name", NAMES)
def test_every_mode_keeps_what_the_loop_keeps(
    name: str, gates: str, inputs: str, load: Load
) -> None:
    module = load(name)
    ops = operators(module)
    tensors = [narrowed(x) for x in draw(ops, LENGTH, GATES[gates], inputs)]
    truth = run(ops, [widened(x) for x in tensors], "recurrent", CHUNK)
    if not all(bool(torch.isfinite(x).all()) for x in truth):
        pytest.skip("the recurrence in float64 is not finite either")
    plain = run(ops, tensors, "recurrent", CHUNK)
    for mode in module.MODES:
        for at, got in enumerate(run(ops, tensors, mode, CHUNK)):
            assert torch.isfinite(got).all(), f"{mode}, result {at}"
            allowed = max(1e-5, 8 * off(plain[at], truth[at]))
            if ops.rewrites and gates == "denormal":
                # Chunks decay a key of length one, whose entries are then denormal and rounded
                # again; the loop decays the state, which is large.
                allowed = max(allowed, 8 * ROUNDED)
            assert off(got, truth[at]) <= allowed, f"{mode}, result {at}"


@pytest.mark.share(4)
@pytest.mark.parametrize("name", ROTATING)
def test_phases_are_kept_over_long_sequences(name: str, load: Load) -> None:
    """The phase of λ^l grows with l: rounded in float32, it would be off by l/2 ulp of arg λ."""
    module = load(name)
    ops = operators(module)
    tensors = [narrowed(x) for x in draw(ops, TURNS, (-1e-3,), "random")]
    at = ops.names.index("g")
    tensors[at] = torch.complex(tensors[at].real, torch.full_like(tensors[at].real, math.pi - 0.1))
    truth = run(ops, [widened(x) for x in tensors], "recurrent", CHUNK)
    plain = run(ops, tensors, "recurrent", CHUNK)
    for mode in module.MODES:
        for result, got in enumerate(run(ops, tensors, mode, TURNS)):
            # The loop may be lucky; a sum of as many terms as tokens is off by this.
            least = math.sqrt(TURNS) * torch.finfo(torch.float32).eps
            allowed = BACKWARD * max(off(plain[result], truth[result]), least)
            assert off(got, truth[result]) <= allowed, f"{mode}, result {result}"


LONG = {
    "slow": ((-1e-7, -1e-3, -0.5), "random"),
    "cancelling": ((-1e-7, -1e-3), "cancelling"),
    "anything": (GATES["mixed and finite"], "random"),
}


@pytest.mark.full
@pytest.mark.parametrize("case", LONG)
@pytest.mark.parametrize("name", NAMES)
def test_long_sequences_stay_finite_and_near(name: str, case: str, load: Load) -> None:
    module = load(name)
    ops = operators(module)
    length = 131_072
    tensors = [narrowed(x) for x in draw(ops, length, *LONG[case])]
    wide = [widened(x) for x in tensors]
    truth = run(ops, wide, "chunked", 64)
    if not all(bool(torch.isfinite(x).all()) for x in truth):
        pytest.skip("the operator in float64 is not finite either")
    for mode in module.MODES:
        if mode in ("recurrent", "parallel"):
            continue
        allowed = [1e-3] * len(truth)
        if mode == "fft":
            # A transform rounds by what is summed, however much of it cancels: log n roundings
            # (Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2).
            sizes = run(ops, wide, "chunked", 64, signs=False)
            roundings = 8 * math.log2(2 * length) * torch.finfo(torch.float32).eps
            pairs = zip(sizes, truth, strict=True)
            shares = (x.abs().max() / y.abs().max() for x, y in pairs)
            allowed = [max(1e-3, roundings * share.item()) for share in shares]
        found = run(ops, tensors, mode, 64)
        errors = [off(*pair) for pair in zip(found, truth, strict=True)]
        if any(error > most for error, most in zip(errors, allowed, strict=True)):
            # Of full matrices the loop itself errs by as much, where what is summed cancels.
            plain = run(ops, tensors, "recurrent", 64)
            loop = (BACKWARD * off(*pair) for pair in zip(plain, truth, strict=True))
            allowed = [max(*pair) for pair in zip(allowed, loop, strict=True)]
        for at, got in enumerate(found):
            assert torch.isfinite(got).all(), f"{mode}, result {at}"
            assert errors[at] <= allowed[at], f"{mode}, result {at}"


def kinds(name: str) -> set[tuple[object, ...]]:
    """The form of each scan, its field, whether it decays and whether a real part is read."""
    kernels = dsfc.load(SPECS / f"{name}.dsf").plan.kernels
    scans = (k for k in kernels if isinstance(k, Scan))
    return {(s.form, s.field, s.decay is not None, s.real) for s in scans}


@pytest.mark.ci
def test_every_kind_of_scan_is_tortured() -> None:
    tortured = set().union(*map(kinds, NAMES))
    left = {name: kinds(name) - tortured for name in compiled()}
    assert not {name: kind for name, kind in left.items() if kind}
