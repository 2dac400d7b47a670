"""How long a token of a GLA takes on a CPU, beside steps by hand: python -m benchmarks.decode.

The model is 12 blocks x + layer(norm(x)) around the layer that `dsfc compile gla --layer` writes:
no embedding and no MLP, so that nothing but the layers is timed. The step by hand is plain PyTorch
after equation 6 of Wang et al. 2025, one function on the same weights without a class or a check; a
second one calls `nn.Linear` and `nn.RMSNorm`, as models are written. All run as they are, the model
and the first under torch.compile too (`--plain` leaves that out), turn by turn in one process, and
none is timed before its outputs over some tokens are those of the step by hand.

Processor time of a token on one thread, so that others on the machine disturb little: the median
over the rounds, `low` and `high` its quartiles; `ratio` is that of `layer.step` over another one,
round by round. Beside them stand how many functions, in Python and in C, Python calls for a token,
and of what is traced for torch.compile graphs, graph breaks and those that later tokens add, which
are the same whatever compiles the graphs. Results are written to `benchmarks/results/decode.json`.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.utils import counters

import dsfc
from benchmarks.calls import functions_called

FILE = Path(__file__).parent / "results" / "decode.json"
LAYERS, HEADS, EPS = 12, 4, 1e-5
WIDTHS = (256, 1024)
"""Widths d of a token; the larger is the width of the paper's model of 340 million parameters."""

ROUNDS, TOKENS, CHECKED = 21, 10, 16
CLOSE = 1e-4
"""Relative difference in float32 after 12 layers: sums of up to 1024 terms in other orders."""

OURS, BY_HAND, MODULES = "layer.step", "by hand", "by hand, of modules"

Run = Callable[[Tensor, Any], tuple[Tensor, Any]]
"""A token `[B, d]` and the states before it to the output `[B, d]` and the states after it."""


class Model(nn.Module):
    """Blocks x + layer(norm(x)).

    Args:
        module: emitted from `gla` with its layer.
        width: d.
        layers: how many blocks.
    """

    def __init__(self, module: ModuleType, width: int, layers: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=EPS) for _ in range(layers))
        self.layers = nn.ModuleList(module.GlaLayer(width, h=HEADS) for _ in range(layers))

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yields the norm and the layer of each block, whose classes mypy does not know."""
        return zip(self.norms, self.layers, strict=True)

    def initial_state(self, batch: int) -> list[Any]:
        """Returns the states before the first token."""
        return [layer.initial_state(batch) for _, layer in self.blocks()]

    def step(self, x: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
        """Runs one token."""
        after = []
        for (norm, layer), state in zip(self.blocks(), states, strict=True):
            y, state = layer.step(norm(x), state)
            x = x + y
            after.append(state)
        return x, after


@dataclass(frozen=True)
class Weights:
    """Weights of one block, as the step by hand reads them."""

    norm: Tensor
    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_1: Tensor
    W_2: Tensor
    b: Tensor
    y_norm: Tensor
    gate: Tensor
    out: Tensor


def weights_of(model: Model) -> list[Weights]:
    """Returns the weights of each block; they share memory with the model's."""
    return [
        Weights(
            norm.weight,
            layer.W_Q.weight,
            layer.W_K.weight,
            layer.W_V.weight,
            layer.W_1.weight,
            layer.mixer.W_2.flatten(0, 1),
            layer.mixer.b_alpha.flatten(),
            layer.norm.weight,
            layer.gate_proj.weight,
            layer.out_proj.weight,
        )
        for norm, layer in model.blocks()
    ]


def step_by_hand(
    x: Tensor, states: Sequence[Tensor], blocks: Sequence[Weights]
) -> tuple[Tensor, list[Tensor]]:
    """Runs one token through plain PyTorch.

    Args:
        x: `[B, d]`.
        states: `[B, h, n, n]` of each block.
        blocks: their weights.
    """
    after = []
    for w, S in zip(blocks, states, strict=True):
        u = F.rms_norm(x, x.shape[-1:], w.norm, EPS)
        q, k, v = (F.linear(u, W).unflatten(-1, (HEADS, -1)) for W in (w.W_Q, w.W_K, w.W_V))
        gate = F.linear(F.linear(u, w.W_1), w.W_2, w.b).unflatten(-1, (HEADS, -1))
        decay = torch.exp(F.logsigmoid(gate) / 16)
        S = torch.addcmul(decay.unsqueeze(-1) * S, k.unsqueeze(-1), v.unsqueeze(-2))
        y = (q.unsqueeze(-2) @ S).squeeze(-2) * q.shape[-1] ** -0.5
        y = F.rms_norm(y, y.shape[-1:], w.y_norm, EPS).flatten(1)
        x = x + F.linear(y * F.silu(F.linear(u, w.gate)), w.out)
        after.append(S)
    return x, after


def step_of_modules(
    x: Tensor, states: Sequence[Tensor], model: Model
) -> tuple[Tensor, list[Tensor]]:
    """Runs one token through modules of PyTorch, as `step_by_hand` does without them."""
    after = []
    for (norm, layer), S in zip(model.blocks(), states, strict=True):
        u = norm(x)
        q, k, v = (W(u).unflatten(-1, (HEADS, -1)) for W in (layer.W_Q, layer.W_K, layer.W_V))
        gate = F.linear(layer.W_1(u), layer.mixer.W_2.flatten(0, 1), layer.mixer.b_alpha.flatten())
        decay = torch.exp(F.logsigmoid(gate.unflatten(-1, (HEADS, -1))) / 16)
        S = torch.addcmul(decay.unsqueeze(-1) * S, k.unsqueeze(-1), v.unsqueeze(-2))
        y = (q.unsqueeze(-2) @ S).squeeze(-2) * q.shape[-1] ** -0.5
        x = x + layer.out_proj(layer.norm(y).flatten(1) * F.silu(layer.gate_proj(u)))
        after.append(S)
    return x, after


def drawn(width: int, layers: int) -> Model:
    """Returns a model of weights so large that an error in any of them is seen in the outputs."""
    with tempfile.TemporaryDirectory() as folder:
        module = dsfc.import_module(dsfc.compile("gla", out=folder, layer=True))
    torch.manual_seed(0)
    model = Model(module, width, layers).eval().requires_grad_(False)
    for p in model.parameters():
        if p.ndim > 1 and not p.any():  # the bias of the decays
            p.normal_()
        elif p.ndim > 1:
            p.normal_(std=2 * p.shape[-1] ** -0.5)
        else:  # a norm
            p.add_(torch.randn_like(p), alpha=0.2)
    return model


def contenders(model: Model) -> dict[str, tuple[Run, Any]]:
    """Returns the model and both steps by hand, each with the states before the first token."""
    blocks = weights_of(model)

    def hand(x: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        return step_by_hand(x, states, blocks)

    first = model.initial_state(1)
    tensors = [state.S for state in first]
    modules = partial(step_of_modules, model=model)
    return {OURS: (model.step, first), BY_HAND: (hand, tensors), MODULES: (modules, tensors)}


def compiled(runs: dict[str, tuple[Run, Any]]) -> dict[str, tuple[Run, Any]]:
    """Returns the model and the step by hand under torch.compile."""
    return {f"{n}, compiled": (torch.compile(runs[n][0]), runs[n][1]) for n in (OURS, BY_HAND)}


def errors(runs: dict[str, tuple[Run, Any]], tokens: Tensor) -> dict[str, float]:
    """Returns the largest relative difference of each from the step by hand over some tokens."""
    want = outputs(*runs[BY_HAND], tokens)
    return {
        name: float((outputs(run, states, tokens) - want).abs().max() / want.abs().max())
        for name, (run, states) in runs.items()
    }


def outputs(run: Run, states: Any, tokens: Tensor) -> Tensor:  # noqa: ANN401 - of each its own
    """Returns what comes out at each token `[L, B, d]`."""
    seen = []
    for x in tokens:
        y, states = run(x, states)
        seen.append(y)
    return torch.stack(seen)


def compilations(run: Run, states: Any, tokens: Tensor) -> dict[str, int]:  # noqa: ANN401
    """Returns graph breaks, graphs at the first token, and those that later tokens add.

    Args:
        run: not compiled.
        states: before the first token.
        tokens: `[L, B, d]`.
    """
    torch._dynamo.reset()
    counters.clear()
    traced = torch.compile(run, backend="eager")
    outputs(traced, states, tokens[:1])
    graphs = counters["stats"]["unique_graphs"]
    outputs(traced, states, tokens)
    return {
        "graph_breaks": sum(counters["graph_break"].values()),
        "graphs": graphs,
        "recompilations": counters["stats"]["unique_graphs"] - graphs,
    }


def calls(run: Run, states: Any, token: Tensor) -> dict[str, int]:  # noqa: ANN401
    """Returns how many functions, in Python and in C, Python calls for a token."""
    python, c = functions_called(partial(run, token, states))
    # But for the call of `run` itself.
    return {"python": python - 1, "c": c}


def times(runs: dict[str, tuple[Run, Any]], tokens: Tensor) -> dict[str, list[float]]:
    """Returns milliseconds of processor time for a token, by contender and round."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(ROUNDS):
        names = list(runs) if turn % 2 == 0 else list(runs)[::-1]
        for name in names:
            run, states = runs[name]
            began = time.process_time()
            for x in tokens:
                _, states = run(x, states)
            found[name].append(1e3 * (time.process_time() - began) / len(tokens))
    return found


def summary(values: Sequence[float], digits: int = 4) -> dict[str, float]:
    """Returns the median and the quartiles."""
    low, middle, high = (round(q, digits) for q in statistics.quantiles(values, n=4))
    return {"median": middle, "low": low, "high": high}


@torch.no_grad()
def measured(width: int, under_compile: bool = True) -> dict[str, Any]:
    """Returns all that is measured of the model of a width.

    Args:
        width: d.
        under_compile: whether to time torch.compile too.

    Raises:
        ArithmeticError: two contenders do not do the same.
    """
    plain = contenders(drawn(width, LAYERS))
    tokens = torch.randn(TOKENS, 1, width)
    graphs = {name: compilations(*plain[name], tokens) for name in (OURS, BY_HAND)}
    runs = plain | (compiled(plain) if under_compile else {})
    off = errors(runs, torch.randn(CHECKED, 1, width))
    if not max(off.values()) < CLOSE:
        raise ArithmeticError(f"outputs differ: {off}")
    milliseconds = times(runs, tokens)
    pairs = {name: (OURS, name) for name in (BY_HAND, MODULES)}
    if under_compile:
        pairs["compiled"] = (f"{OURS}, compiled", f"{BY_HAND}, compiled")
    ratios = {
        name: [a / b for a, b in zip(milliseconds[ours], milliseconds[other], strict=True)]
        for name, (ours, other) in pairs.items()
    }
    return {
        "error": {name: float(f"{x:.1e}") for name, x in off.items()},
        "milliseconds": {name: summary(x) for name, x in milliseconds.items()},
        "ratio": {name: summary(each, 3) for name, each in ratios.items()},
        "calls": {name: calls(*run, tokens[0]) for name, run in plain.items()},
        "traced": graphs,
    }


def main(under_compile: bool) -> None:
    """Measures every width."""
    torch.set_num_threads(1)
    before, rows = os.getloadavg()[0], {}
    for width in WIDTHS:
        rows[str(width)] = measured(width, under_compile)
        print(width, json.dumps(rows[str(width)]), flush=True)
    about = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": {"python": platform.python_version(), "torch": version("torch"),
                     "dsfc": version("dsfc")},
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
        "threads": 1,
        "rounds": ROUNDS,
        "sizes": {"layers": LAYERS, "batch": 1, "h": HEADS, "tokens": TOKENS, "dtype": "float32"},
    }  # fmt: skip
    FILE.write_text(json.dumps({**about, "widths": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(under_compile="--plain" not in sys.argv[1:])
