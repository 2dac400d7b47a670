"""Which specs compile, their modules, and how a module is run beside its oracle."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

import dsfc
from dsfc.emit.module import ModuleText

SPECS = Path(__file__).parents[2] / "specs"

# Every class of structure that this version emits, and every feature of a module's text; but the
# dense class, of which machine code is made in the full tier alone.
PROMISED = (
    "normalized_attn",
    "s6",
    "rg_lru",
    "linear_attn",
    "ssd",
    "generalized_attn",
    "normalized_attn_softplus",
    "normalized_attn_sigmoid",
    "normalized_attn_multihead",
    "retnet",
    "qlstm",
    "qlstm_tanh",
    "qlstm_s6gate",
    "gla",
    "s4d",
    "h3",
    "lnssm",
    "rwkv4",
    "short_convolution",
    "gateloop",
    "retnet_rope",
    "deltanet",
    "gated_deltanet",
    "dlr_bidirectional",
)


# One spec of each class, and of those with other kernels: CI runs PyTorch's machinery on these,
# the full tier on all others.
KINDS = (
    "normalized_attn",
    "s6",
    "rg_lru",
    "linear_attn",
    "ssd",
    "gla",
    "s4d",
    "lnssm",
    "rwkv4",
    "short_convolution",
    "gateloop",
    "deltanet",
    "lru",
    "softmax",
)


# What the fast tier runs: one spec of each form of kernel. It sees what the others are in small
# mixers of `unusual_specs`, and running maxima in `test_running_max.py`; CI holds their values.
SOON = (
    "normalized_attn",
    "s6",
    "rg_lru",
    "gla",
    "s4d",
    "deltanet",
    "short_convolution",
    "softmax",
)


@cache
def text(name: str) -> ModuleText | None:
    """The module of a shipped spec; None where the compiler says that it cannot."""
    try:
        return dsfc.load(SPECS / f"{name}.dsf").module()
    except dsfc.DiagnosticError:
        return None


# What the compiler refuses; of all others the tests that follow say if it does.
REFUSED = (
    "gate",
    "lstm",
    "out_norm",
    "qk_norm",
    "qkv",
    "separable",
    "short_conv",
    "slstm",
    "token_shift",
)


@cache
def compiled() -> tuple[str, ...]:
    """Names of the specs that compile: the promised ones, then all others."""
    others = {path.stem for path in SPECS.glob("*.dsf")} - {*PROMISED, *REFUSED}
    return (*PROMISED, *sorted(others))


NEED_ALL_TOKENS = ("dlr_bidirectional",)
"""What has no state between tokens: its outputs need those to come."""


def soon(names: tuple[str, ...]) -> list[object]:
    """The names as cases of a test: those of `SOON` are fast."""
    return [pytest.param(n, marks=() if n in SOON else pytest.mark.ci) for n in names]


def causal() -> tuple[str, ...]:
    return tuple(name for name in compiled() if name not in NEED_ALL_TOKENS)


WITHOUT_C = (
    "linear_rnn",
    "s4",
    "short_convolution",
    "softmax",
)
"""The specs that compile and of which no scan has kernels in C."""


def in_c() -> tuple[str, ...]:
    """Names of the specs with a scan that has kernels in C."""
    return tuple(n for n in compiled() if n not in WITHOUT_C)


@cache
def one_per_class() -> tuple[str, ...]:
    """The first spec of each class of structure."""
    found: dict[str, str] = {}
    for name in PROMISED:
        found.setdefault(dsfc.load(SPECS / f"{name}.dsf").structure.title, name)
    return tuple(found.values())


@dataclass(frozen=True)
class Beside:
    """An emitted module beside the oracle of its mixer.

    Tensors go by the oracle's names; parameters are given by value, to the functional form.

    Attributes:
        module: the emitted module.
        oracle: `tests/oracles/<mixer>.py`.
    """

    module: ModuleType
    oracle: ModuleType

    @property
    def dims(self) -> dict[str, int]:
        return self.oracle.DIMS

    @property
    def shapes(self) -> dict[str, dict[str, tuple[int, ...]]]:
        return self.oracle.shapes(self.dims)

    @property
    def functional(self):
        (name,) = (
            n
            for n in self.module.__all__
            if n not in ("State", "reference") and inspect.isfunction(getattr(self.module, n))
        )
        return getattr(self.module, name)

    @property
    def layer(self) -> torch.nn.Module:
        (cls,) = (
            getattr(self.module, n)
            for n in self.module.__all__
            if n != "State" and isinstance(getattr(self.module, n), type)
        )
        accepted = inspect.signature(cls).parameters
        sizes = {n: self.dims[n.rstrip("_")] for n in accepted if n.rstrip("_") in self.dims}
        return cls(**sizes, dtype=torch.float64)

    @property
    def states(self) -> dict[str, tuple[int, ...]]:
        """States that the oracle has too, by name; none where it has others.

        The state of a sum over the past is the compiler's choice. The Performer's keeps a constant
        factor of the features out, which its oracle has in.
        """
        theirs = self.shapes["states"] or self.shapes.get("recurrent", {})
        if "Omega" in self.shapes["buffers"]:
            return {}
        mine = [f.name for f in fields(self.module.State)]
        return dict(theirs) if set(mine) == set(theirs) else {}

    def draw(self, length: int, batch: int, seed: int = 0) -> dict[str, Tensor]:
        """Inputs, parameters and buffers inside their constraints, states, in float64."""
        generator = torch.Generator().manual_seed(seed)
        groups = self.shapes
        lead = {"inputs": (batch, length), "states": (batch,)}
        wanted = {g: groups[g] for g in ("inputs", "params", "buffers")} | {"states": self.states}
        drawn = {}
        for group, tensors in wanted.items():
            for name, axes in tensors.items():
                shape = (*lead.get(group, ()), *axes)
                field = torch.complex128 if name in self.oracle.COMPLEX else torch.float64
                normal = 0.6 * torch.randn(shape, generator=generator, dtype=field)
                uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
                kind = self.oracle.CONSTRAINTS.get(name, "")
                if group == "states" and name == "z":
                    kind = "positive"  # a denominator's state is a sum of positive terms
                drawn[name] = {
                    "positive": uniform + 0.3,
                    "unit": 0.1 + 0.8 * uniform,
                    "nonzero": (0.4 + uniform) * normal.sgn(),
                    "": normal,
                }[kind]
        return drawn

    def judged(self, given: Mapping[str, Tensor], start: bool = False) -> dict[str, Tensor]:
        """y, the last state where a first one is given, and gradients, by the oracle's loop."""
        leaves = _leaves(given)
        states = {n: leaves.pop(n) for n in self.states}
        if start:
            named = "states" if self.shapes["states"] else "recurrent"
            run = self.oracle.forward if named == "states" else self.oracle.recurrent
            y, last = run(leaves, self.dims, states)
            return with_gradients(y, {n: last[n] for n in states}, {**leaves, **states})
        y, _ = self.oracle.forward(leaves, self.dims)
        return with_gradients(y, {}, leaves)

    def ran(
        self,
        given: Mapping[str, Tensor],
        mode: str,
        chunk: int,
        start: bool = False,
        cuts: tuple[int, ...] = (),
        **options: bool,
    ) -> dict[str, Tensor]:
        """The same by the emitted module, in one mode, in one piece or several."""
        leaves = _leaves(given)
        known = {n: leaves.pop(n) for n in self.states}
        inputs = {n: leaves[n] for n in self.shapes["inputs"]}
        some = next(iter(inputs.values()))
        fresh = self.layer.initial_state(some.shape[0], dtype=some.dtype)
        names = [f.name for f in fields(self.module.State)]
        states = {n: known[n] if start else getattr(fresh, n) for n in names}
        ys = []
        for a, b in zip((0, *cuts), (*cuts, some.shape[1]), strict=True):
            here = leaves | {n: x[:, a:b] for n, x in inputs.items()} | states
            tensors = {n: here[_plain(n, here)] for n in self.arguments}
            y, *after = self.functional(**tensors, mode=mode, chunk=chunk, **options)
            states = dict(zip(names, after, strict=True))
            ys.append(y)
        y = torch.cat(ys, 1)
        if start:
            return with_gradients(y, {n: states[n] for n in known}, {**leaves, **known})
        return with_gradients(y, {}, leaves)

    @property
    def arguments(self) -> list[str]:
        """Names of the tensors that the functional form takes."""
        declared = inspect.signature(self.functional).parameters.values()
        return [p.name for p in declared if p.kind is not p.KEYWORD_ONLY]

    @property
    def flags(self) -> list[str]:
        """Names of what the functional form takes besides tensors, mode and chunk."""
        declared = inspect.signature(self.functional).parameters.values()
        keywords = [p.name for p in declared if p.kind is p.KEYWORD_ONLY]
        return [n for n in keywords if n not in ("mode", "chunk")]

    def defined(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The same by the module's own reference, from nothing."""
        leaves = {n: x for n, x in _leaves(given).items() if n not in self.states}
        names = inspect.signature(self.module.reference).parameters
        y = self.module.reference(**{n: leaves[_plain(n, leaves)] for n in names})
        return with_gradients(y, {}, leaves)


def narrow(x: Tensor, dtype: torch.dtype) -> Tensor:
    """In a dtype; complex numbers have no narrower one than that of float32."""
    wide = torch.promote_types(dtype, torch.float32)
    return x.to(wide.to_complex()) if x.is_complex() else x.to(dtype)


def with_gradients(
    y: Tensor, last: Mapping[str, Tensor], leaves: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Outputs by name, and gradients of a scalar that weighs every entry of them differently."""
    outs = {"y": y, **{f"last {n}": x for n, x in last.items()}}
    generator = torch.Generator().manual_seed(7)
    scalar = 0 * sum(x.sum().real.double() for x in leaves.values())
    for x in outs.values():
        wide = torch.promote_types(x.dtype, torch.float64)
        weight = torch.randn(x.shape, generator=generator, dtype=wide)
        scalar = scalar + (x * weight.to(x.dtype)).sum().real.double()
    grads = torch.autograd.grad(scalar, list(leaves.values()))
    named = {f"gradient of {n}": g for n, g in zip(leaves, grads, strict=True)}
    return {n: x.detach() for n, x in (outs | named).items()}


def _leaves(given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n: x.detach().clone().requires_grad_() for n, x in given.items()}


def _plain(name: str, given: Mapping[str, Tensor]) -> str:
    """The oracle's name of an argument: a word that Python reserves has a trailing underscore."""
    return name if name in given else name.rstrip("_")
