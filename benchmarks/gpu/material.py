"""Specs with kernels, and the arguments of their operators at any batch and length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import dsfc
from benchmarks.emitted import ROOT
from dsfc.fused.ir import FusedPlan
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form, Scan
from dsfc.validate.dispatch import Call
from dsfc.validate.surface import surface

_SEEN = 17
"""Tokens of the call whose arguments are taken; no axis has this size."""

_STATES = 16
"""Keys of a selective scan."""

_NARROW = 8
"""Numbers that a map may take with the parameters that layers are checked with."""

Arguments = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A problem.

    Attributes:
        batch, length: B, L.
        heads: H.
        width: keys and values of a head; a scan without heads has H · width channels.
    """

    batch: int
    length: int
    heads: int
    width: int

    def __str__(self) -> str:
        return f"B{self.batch} L{self.length} H{self.heads} D{self.width}"


@dataclass(frozen=True)
class Subject:
    """A mixer with kernels.

    Attributes:
        name: of its spec.
        module: what was emitted of it.
        fused: its plan, with what its kernels compute inside.
    """

    name: str
    module: ModuleType
    fused: FusedPlan

    @property
    def plan(self) -> Plan:
        """Its plan."""
        return self.fused.original

    @property
    def forms(self) -> frozenset[Form]:
        """Forms of its scans."""
        return frozenset(k.form for k in self.plan.kernels if isinstance(k, Scan))

    def sizes(self, shape: Shape) -> dict[str, int]:
        """Sizes of its axes."""
        scans = [k for k in self.plan.kernels if isinstance(k, Scan)]
        heads = {a.name for s in scans for a in s.heads}
        keys = {a.name for s in scans if s.form is Form.SELECTIVE for a in s.keys}
        channels = shape.width if heads else shape.heads * shape.width
        held = {a for s in scans for a in (*s.heads, *s.keys, *s.channels)}
        # A number in the spec of what no state has (the parts of an output of HGRN) stays as it is.
        given = [d.axis for d in self.plan.axes if d.axis in held or not d.default]
        own = [a.name for a in given if a.copy_of is None]
        return {n: shape.heads if n in heads else _STATES if n in keys else channels for n in own}


@dataclass(frozen=True)
class Operator:
    """An operator of a module, its gradient, and what they are given.

    Attributes:
        forward, backward: of one scan.
        given: arguments of `forward`.
        back: those of `backward`.
    """

    forward: Any
    backward: Any
    given: Arguments
    back: Arguments

    def outputs(self) -> tuple[Tensor, ...]:
        """Runs forwards."""
        found: tuple[Tensor, ...] = self.forward(*self.given)
        return found

    def gradients(self) -> tuple[Tensor, ...]:
        """Runs backwards, from outputs that were computed before."""
        found: tuple[Tensor, ...] = self.backward(*self.back)
        return found

    def both(self) -> tuple[Tensor, ...]:
        """Runs both ways."""
        return *self.outputs(), *self.gradients()

    def floor(self, training: bool) -> int:
        """Bytes of all arguments and results, each once."""
        calls = [(self.given, self.outputs)]
        calls += [(self.back, self.gradients)] if training else []
        return sum(
            x.numel() * x.element_size()
            for given, run in calls
            for x in (*given, *run())
            if isinstance(x, Tensor)
        )

    def widened(self) -> Operator:
        """The same numbers in float64, one token after another: the truth."""

        def wide(x: Any) -> Any:  # noqa: ANN401 - arguments of operators
            if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()):
                return x.to(torch.promote_types(x.dtype, torch.float64))
            return "recurrent" if isinstance(x, str) else x

        given, back = (tuple(map(wide, x)) for x in (self.given, self.back))
        return Operator(self.forward, self.backward, given, back)


@cache
def subject(name: str) -> Subject | None:
    """Returns a mixer of `specs/`, None if none of its scans has kernels."""
    folder = ROOT / "build" / "benchmarks" / "gpu"
    folder.mkdir(parents=True, exist_ok=True)
    compiled = dsfc.load(ROOT / "specs" / f"{name}.dsf")
    text = compiled.module("triton").text
    if "\n@_kernel" not in text:
        return None
    # A process registers the operators of a mixer once; these are of a module nobody else imports.
    (namespace,) = re.findall(r'^NAMESPACE = "(\w+)"$', text, re.MULTILINE)
    path = folder / f"{name}_on_gpu.py"
    path.write_text(text.replace(namespace, f"{namespace}_on_gpu"), encoding="utf-8")
    return Subject(name, dsfc.import_module(path), compiled.fused("triton"))


def subjects() -> Iterator[Subject]:
    """Yields all mixers of `specs/` that have kernels."""
    for path in sorted(Path(ROOT / "specs").glob("*.dsf")):
        try:
            found = subject(path.stem)
        except dsfc.DiagnosticError:
            continue  # the compiler does not emit it yet
        if found is not None:
            yield found


def operators(
    of: Subject, shape: Shape, dtype: torch.dtype, device: torch.device, seed: int = 0
) -> tuple[Operator, ...]:
    """Returns the operators of a mixer with the arguments of a problem, one per scan.

    A layer is called on a few tokens and its operators' arguments are kept: gates and parameters
    have the values that they have in the layer. Then their tokens are drawn again, many times.
    What goes through a wide layer is as large as in a narrow one; otherwise gates would be shut or
    open, and exponentials infinite.

    Raises:
        RuntimeError: kernels do not run there, and torch would be measured.
    """
    why = of.module._declined(device, dtype, "auto")
    if why:
        raise RuntimeError(f"no kernels of {of.name} run in {dtype}: {why}")
    found = surface(of.module, of.sizes(shape))
    sample = found.sample(_SEEN, batch=1, dtype=dtype, state=False, seed=seed)
    with torch.no_grad():
        for weight in (p for p in sample.layer.parameters() if p.ndim > 1):
            weight.mul_(min(1.0, (_NARROW / weight.shape[-1]) ** 0.5))
    with in_torch(of.module):
        calls = {call.op.name().rpartition("::")[2]: call for call in found.calls(sample)}
    drawn = torch.randint(_SEEN, (shape.length,), generator=torch.Generator().manual_seed(seed))

    def grown(x: Any) -> Any:  # noqa: ANN401 - arguments of operators
        if not isinstance(x, Tensor):
            return x
        x = x.detach()
        if x.ndim > 1 and x.shape[1] == _SEEN:
            x = x[:, drawn]
        return x.expand(shape.batch, *x.shape[1:]).to(device).contiguous()

    out = []
    for name in (n for n in calls if n.startswith("forward")):
        forward, back = calls[name], calls[name.replace("forward", "backward", 1)]
        op = Operator(
            forward.op, back.op, tuple(map(grown, forward.args)), tuple(map(grown, back.args))
        )
        out.append(_with_outputs(op, forward, back))
    return tuple(out)


def _with_outputs(made: Operator, call: Call, back: Call) -> Operator:
    """The same with the outputs of these tokens where the backward operator takes outputs."""
    places = {
        place: output
        for output, x in enumerate(call.outs)
        for place, y in enumerate(back.args)
        if isinstance(y, Tensor) and y.shape == x.shape and torch.equal(y, x) and x.any()
    }
    if not places:
        return made
    outputs = made.outputs()
    arguments = tuple(
        outputs[places[place]] if place in places else y for place, y in enumerate(made.back)
    )
    return Operator(made.forward, made.backward, made.given, arguments)


@contextmanager
def in_torch(module: ModuleType) -> Iterator[None]:
    """Runs the torch form of a module's operators, as if Triton were not installed."""
    found = module.triton
    vars(module)["triton"] = None
    try:
        yield
    finally:
        vars(module)["triton"] = found


def forget(module: ModuleType) -> None:
    """Lets a module forget the handles of its kernels."""
    module._COMPILED.clear()
    getattr(module, "_PLANS", {}).clear()
