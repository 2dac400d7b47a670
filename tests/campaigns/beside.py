"""Compiles one spec text and runs its module beside the literal loop.

Everything a module can do is done on one small case: values, last states and gradients of inputs,
parameters and given states in every legal mode; cut in two and token by token; with NaN under a
mask; packed with an empty sequence; in float32 and bfloat16. What is asked in every mode is asked
in every mode; the mode of a cut, mask, pack and narrow dtype is drawn from the seed.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import hashlib
import inspect
import math
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import torch
from literal import Literal, Program, program, sizes_of
from torch import Tensor
from torch.overrides import TorchFunctionMode

import dsfc

SPECS = Path(__file__).parents[2] / "specs"
LENGTH, BATCH = 7, 2
OPEN = 3
"""Size of an axis that has none."""

FACTOR = {torch.float64: 1024, torch.float32: 256, torch.bfloat16: 16}
"""How many roundings of the largest intermediate value a result may be off.

The unit is what rounding everything once to float32 costs the literal loop, scaled to the dtype:
that is the condition of the problem. A module sums in another order, over at most some hundred
terms (7 tokens, 7 · 3 · 2 entries), and takes decays through their logarithms, each of which
multiplies the unit by the number of operations in the worst case and its root in the mean.
bfloat16 has 2^-8 of room in all: a factor beyond 16 would see nothing.
"""
_NARROW = 0.5
"""A tolerance beyond half of the result says nothing; such a comparison is left out and counted."""

_DRAWS = 8
"""Changes of the arguments that are tried where a result is off.

No module knows its arguments better than to a rounding of its dtype, nor what it computes of them.
An entry may be off by as much as such a change moves it, beyond the tolerance: `min(a, b)` has the
derivative of the other argument, and the norm of a single number the other sign, a rounding away.
"""

_STORED: Mapping[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "complex": ("parts_", torch.view_as_complex),
    "positive": ("log_", torch.exp),
    "unit": ("logit_", torch.sigmoid),
    "nonneg": ("root_", torch.square),
}


@dataclass
class Outcome:
    """What came of one mixer.

    Attributes:
        kind: `agrees`, `refused`, `ill-typed` (the writer's fault), `internal error`, `crash`,
            `disagrees`, `undefined` (the literal loop is not finite) or `unread` (the literal loop
            could not run).
        where: the check that failed, or the stage that refused.
        what: the message.
        checks: comparisons made.
        skipped: comparisons left out as ill-conditioned.
        seconds: of the compiler, the literal loop and the module.
        modes: legal ones.
    """

    kind: str
    where: str = ""
    what: str = ""
    checks: int = 0
    skipped: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    modes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether this is a defect."""
        return self.kind in ("internal error", "crash", "disagrees", "unread", "ill-typed")

    @property
    def reason(self) -> str:
        """Returns where and what, without names and numbers: equal for equal faults."""
        short = re.sub(r"`[^`]*`", "`…`", self.what.splitlines()[0] if self.what else "")
        return f"{self.where}: {re.sub(r'[0-9.e+-]*[0-9]+', '#', short)}"


class DisagreementError(Exception):
    pass


def library(name: str) -> str | None:
    """Returns the text of a shipped spec."""
    path = SPECS / f"{name}.dsf"
    return path.read_text(encoding="utf-8") if path.exists() else None


def imported(text: str, folder: Path) -> ModuleType:
    """Imports the text of a module."""
    target = folder / f"m{hashlib.sha256(text.encode()).hexdigest()[:16]}.py"
    target.write_text(text, encoding="utf-8")
    try:
        return dsfc.import_module(target)
    finally:
        target.unlink()


def beside(
    text: str, seed: int, mixer: str, folder: Path | None = None, backend: str = "torch"
) -> Outcome:
    """Compiles a mixer, runs it beside the literal loop and says what came of it.

    Args:
        text: the text of the spec.
        seed: of tensors, cuts, masks and modes.
        mixer: its name.
        folder: where to write the module.
        backend: whose module is run.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return beside(text, seed, mixer, Path(made), backend)
    out = Outcome("agrees")
    start = time.perf_counter()
    (folder / "random.dsf").write_text(text, encoding="utf-8")
    stage = "resolve"
    try:
        compilation = dsfc.load(folder / "random.dsf", mixer)
        for stage in ("mixer", "system", "structure", "plan"):
            getattr(compilation, stage)
        stage = "emit"
        module = imported(compilation.module(backend).text, folder)
    except dsfc.DiagnosticError as e:
        first = e.diagnostics[0]
        out.kind = "ill-typed" if stage in ("resolve", "mixer") else "refused"
        out.where, out.what = f"{stage} {first.code}", str(first.message)
        return out
    except RecursionError as e:
        out.kind, out.where, out.what = "internal error", stage, repr(e)
        return out
    except Exception as e:
        out.kind, out.where, out.what = "internal error", stage, _said(e)
        return out
    out.seconds["compile"] = time.perf_counter() - start
    try:
        case = _Case.drawn(text, mixer, module, seed)
    except Exception as e:
        out.kind, out.where, out.what = "unread", "literal", _said(e)
        return out
    out.modes = tuple(module.MODES)
    _run(case, out)
    return out


def _said(e: BaseException) -> str:
    frames = traceback.extract_tb(e.__traceback__)
    file = Path(frames[-1].filename).name if frames else ""
    place = f" ({'module' if re.fullmatch('m[0-9a-f]{16}.py', file) else file})"
    first = (str(e).splitlines() or [""])[0]
    return f"{type(e).__name__}: {first[:300]}{place}"


def _run(case: _Case, out: Outcome) -> None:
    where = ""
    try:
        start = time.perf_counter()
        where = "literal"
        judge = case.judge()
        out.seconds["literal"] = time.perf_counter() - start
        if not all(bool(torch.isfinite(x).all()) for x in judge.want.values()):
            out.kind = "undefined"
            return
        start = time.perf_counter()
        for check, dtype, want, run in case.checks(judge):
            where = check
            got = run()
            out.checks += 1
            if not judge.agree(got, want, dtype):
                out.skipped += 1
        out.seconds["module"] = time.perf_counter() - start
    except DisagreementError as e:
        out.kind, out.where, out.what = "disagrees", where, str(e)
    except Exception as e:
        out.kind = "unread" if where == "literal" else "crash"
        out.where, out.what = where, _said(e)


Results = dict[str, Tensor]


@dataclass
class Judge:
    """What the literal loop gives, and how well the problem is conditioned.

    Attributes:
        want: values, last states and gradients of the whole batch.
        parts: those of the two shortened sequences.
        lost: by name, what rounding to float32 changes.
        moved: by dtype and name, by how much each entry moves where arguments, or the results of
            every operation of the loop, are rounded.
    """

    want: Results
    parts: Results
    lost: dict[str, float]
    moved: Callable[[torch.dtype], Results]

    def agree(self, got: Results, want: Results, dtype: torch.dtype) -> bool:
        """Whether a comparison says anything; raises where results differ.

        A gradient may be off by one rounding of the outputs in float64: that is what is left when
        terms of their size cancel. A dtype whose range the loop leaves is not asked.

        Raises:
            DisagreementError: naming the worst tensor.
        """
        eps, narrow = torch.finfo(dtype).eps, torch.finfo(torch.float32).eps
        exact, largest = torch.finfo(torch.float64).eps, torch.finfo(dtype).max
        said = True
        for group in ("gradient of ", ""):
            names = [n for n in want if n.startswith("gradient of ") == bool(group)]
            scale = max((_size(want[n]) for n in names), default=0.0)
            outputs = max((_size(x) for m, x in want.items() if m not in names), default=0.0)
            noise = exact * outputs if group else 0.0
            cancel = scale <= noise
            ratio = max(
                (self.lost[n] / _size(self.want[n]) for n in names
                 if n in self.lost and _size(self.want[n]) > 1e-6 * scale),
                default=0.0,
            )  # fmt: skip
            for n in names:
                if n not in got:
                    raise DisagreementError(f"{n} is missing")
                if got[n].shape != want[n].shape:
                    shapes = f"{list(got[n].shape)}, not {list(want[n].shape)}"
                    raise DisagreementError(f"{n} has shape {shapes}")
                lost = self.lost.get(n, 0.0)
                if dtype != torch.float64 and not (math.isfinite(lost) and scale < largest):
                    said = False
                    continue
                # Where all gradients cancel to 0, what cancels has the size of the outputs, or of
                # their weights.
                size = (outputs or 1.0) if cancel else scale
                units = max(size, lost / narrow, ratio / narrow * scale)
                bound = max(FACTOR[dtype] * eps * units, noise)
                if not cancel and not bound <= _NARROW * scale:
                    said = False
                    continue
                error = got[n].to(want[n].dtype) - want[n]
                off = _size(error)
                if not off <= bound and (moved := self.moved(dtype).get(n)) is not None:
                    steady = moved <= _NARROW * scale
                    if dtype == torch.float64:  # what jumps by a rounding here is compared as well
                        moved, steady = moved * (moved <= eps**0.5 * scale), steady | True
                    beyond = (error.abs() - moved)[steady].clamp(min=0)
                    said, off = said and bool(steady.all()), _size(beyond)
                if not off <= bound:
                    raise DisagreementError(
                        f"{n} is off by {off:.3g} of {scale:.3g}; {bound:.3g} is allowed"
                    )
        return said


def _like(dtype: torch.dtype, x: Tensor) -> torch.dtype:
    """The dtype, or that of complex numbers of such parts where a tensor is complex."""
    return dtype.to_complex() if x.is_complex() else dtype


def _size(x: Tensor) -> float:
    return float(x.abs().max()) if x.numel() else 0.0


@dataclass
class _Case:
    """A module, its literal loop and the tensors they are run with.

    Attributes:
        leaves: by name, what gradients are asked of: `input x`, `param x` as stored, `state x`.
        stored: parameter → (attribute of the layer, from the attribute to the value).
    """

    mixer: Program
    sizes: dict[str, int]
    module: ModuleType
    layer: Any
    leaves: dict[str, Tensor]
    stored: dict[str, tuple[str, Callable[[Tensor], Tensor]]]
    buffers: dict[str, Tensor]
    random: Random

    @property
    def causal(self) -> bool:
        return bool(getattr(self.module, "CAUSAL", True))

    @property
    def steps(self) -> bool:
        return self.causal and getattr(self.module, "NO_STEP", None) in (None, "")

    @staticmethod
    def drawn(text: str, name: str, module: ModuleType, seed: int) -> _Case:
        mixer = program(text, name, library)
        random = Random(seed)
        generator = torch.Generator().manual_seed(seed)
        (cls,) = (
            getattr(module, n)
            for n in module.__all__
            if n != "State" and isinstance(getattr(module, n), type)
        )
        asked = inspect.signature(cls).parameters
        known = sizes_of(mixer, {n: OPEN for n, (_, tree) in mixer.dims.items() if tree is None})
        sizes = {n: known[n.rstrip("_")] for n in asked if n.rstrip("_") in known}
        layer = cls(**sizes, dtype=torch.float64)
        shapes = Literal(mixer, known, {}, {}, LENGTH)

        def normal(axes: tuple[str, ...], complex_: bool, *lead: int) -> Tensor:
            dtype = torch.complex128 if complex_ else torch.float64
            size = (*lead, *(known[a] for a in axes))
            return torch.randn(size, generator=generator, dtype=dtype)

        leaves: dict[str, Tensor] = {}
        stored: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {}
        have = dict(layer.named_parameters())
        declared = mixer.named("param")  # `lambda_2` may be another parameter, `lambda` renamed
        for n, d in mixer.named("param").items():
            flag = next((f for f in d.flags if f in _STORED), "")
            prefix, read = _STORED.get(flag, ("", lambda x: x))
            attribute = next(
                (
                    a for a in (f"{prefix}{n}", f"{prefix}{n}_", f"{prefix}{n}_2")
                    if a in have and (a == n or a not in declared)
                ),
                "",
            )  # fmt: skip
            value = 0.6 * normal(shapes.layout(n), flag == "complex")
            if flag == "nonzero" or "nonzero" in d.flags:
                value = value + 0.4 * torch.sgn(value)
            raw = torch.view_as_real(value).contiguous() if flag == "complex" else value
            leaves[f"param {n}"] = raw
            stored[n] = attribute, read
        lost = set(have) - {a for a, _ in stored.values()}
        if lost:
            raise KeyError(f"the layer's {sorted(lost)} are no parameters of the text")
        for n, d in mixer.named("input").items():
            value = 0.8 * normal(shapes.layout(n), "complex" in d.flags, BATCH, LENGTH)
            if {"positive", "nonneg"} & set(d.flags):
                value = value.abs() + 0.2
            if "unit" in d.flags:
                value = torch.sigmoid(value)
            if "nonzero" in d.flags:
                value = value + 0.4 * torch.sgn(value)
            leaves[f"input {n}"] = value
        case = _Case(mixer, known, module, layer, leaves, stored, {}, random)
        if case.causal:
            fresh = layer.initial_state(BATCH)
            fields = {f.name: getattr(fresh, f.name) for f in dataclasses.fields(fresh)}
            gauged = str(module.State.gauge)
            for n, d in mixer.named("state").items():
                like = fields.get(n, fields.get(f"{n}_"))
                wanted = [known[a] for a in shapes.layout(n)]
                plain = re.search(rf"\b{n}_?\b[^:;]*: identity", gauged)
                if like is None and (held := _register(fields, n)):  # a running maximum
                    assert list(fields[held].shape[2:]) == wanted
                    leaves[f"state {n}"] = 0.5 * normal(shapes.layout(n), False, BATCH)
                    continue
                if like is None or list(like.shape[1:]) != wanted or not plain:
                    continue
                if like.is_complex() == ("complex" in d.flags):
                    value = 0.5 * normal(shapes.layout(n), "complex" in d.flags, BATCH)
                    # Denominators are sums of positive weights, and stay away from 0.
                    leaves[f"state {n}"] = value if like.is_complex() else value.abs()
        zero = Literal(mixer, known, {}, {}, LENGTH)
        for n, d in mixer.named("buffer").items():
            attribute = next((a for a in (n, f"{n}_") if a in dict(layer.named_buffers())), "")
            if d.value is None:
                value = normal(shapes.layout(n), "complex" in d.flags)
                if attribute:
                    layer.get_buffer(attribute).copy_(value)
                case.buffers[n] = value
            else:
                from literal import Place

                value = zero.expanded(zero.value(d.value, Place({})), zero.layout(n))
                case.buffers[n] = value.data[0].clone()
        return case

    # --- the judge --------------------------------------------------------------------------------

    def judge(self) -> Judge:
        leaves = self._fresh(torch.float64)
        want = self._results(*self._literal(leaves, slice(None), None), leaves)
        rounded = self._fresh(torch.float32)
        lost = self._results(*self._literal(rounded, slice(None), None), rounded)
        self._draw_parts()

        @functools.cache
        def moved(dtype: torch.dtype) -> Results:
            return self._moved(want, dtype)

        parts = self._literal_parts()
        return Judge(want, parts, {n: _size(want[n] - lost[n]) for n in want}, moved)

    def _moved(self, want: Results, dtype: torch.dtype) -> Results:
        """By how much each entry of a result moves at most, by changes of one rounding.

        Args:
            want: the results.
            dtype: whose roundings: those of the arguments and of every result of the loop, as they
                are and with drawn changes of the arguments, or a few of all arguments, drawn.
        """
        eps = torch.finfo(dtype).eps
        most = {n: torch.zeros_like(x.real) for n, x in want.items()}
        generator = torch.Generator().manual_seed(11)
        for k in range(-1, 2 * _DRAWS):
            size = 0 if k < 0 else (4, 1)[k % 2] * eps
            leaves = {
                n: (x if k >= 0 else x.to(_like(dtype, x)).to(x.dtype))
                * (1 + size * (2 * torch.rand(x.shape, generator=generator, dtype=torch.float64) - 1))
                for n, x in self._fresh(torch.float64).items()
            }
            leaves = {n: x.detach().requires_grad_() for n, x in leaves.items()}
            with Rounded(dtype) if k % 2 else nullcontext():
                y, last = self._literal({n: 1 * x for n, x in leaves.items()}, slice(None), None)
            got = self._results(y, last, leaves)
            # A norm of exactly 0 has no derivative: nothing is known of what is not finite.
            off = {n: (got[n] - x).abs().nan_to_num(nan=math.inf) for n, x in want.items()}
            most = {n: torch.maximum(x, off[n]) for n, x in most.items()}
        return most

    def _draw_parts(self) -> None:
        keep = [sorted(self.random.sample(range(LENGTH), k)) for k in (5, 3)]
        if self.random.random() < 0.1:
            keep[1] = []
        self.keep = keep

    def _fresh(self, dtype: torch.dtype) -> dict[str, Tensor]:
        return {n: x.to(_like(dtype, x)).clone().requires_grad_() for n, x in self.leaves.items()}

    def _literal(
        self, leaves: Mapping[str, Tensor], row: slice, tokens: list[int] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Values of the literal loop over some rows and tokens."""
        real = next(x.dtype.to_real() if x.is_complex() else x.dtype for x in leaves.values())
        values = {n: read(leaves[f"param {n}"]) for n, (_, read) in self.stored.items()}
        for n, x in self.buffers.items():
            values[n] = x.to(real.to_complex() if x.is_complex() else real)
        for n in self.mixer.named("input"):
            x = leaves[f"input {n}"][row]
            values[n] = x if tokens is None else x[:, tokens]
        initial = {n[6:]: x[row] for n, x in leaves.items() if n.startswith("state ")}
        length = LENGTH if tokens is None else len(tokens)
        inputs = {n: values.pop(n) for n in self.mixer.named("input")}
        loop = Literal(self.mixer, self.sizes, inputs | values, initial, length)
        if not length:
            axes = loop.shape("y").axes
            return torch.zeros(1, 0, *(self.sizes[a] for a in axes), dtype=real), initial
        y = loop.output()
        rows = next(iter(inputs.values())).shape[0]
        last = {n: loop.final(n) for n in initial}
        return y.expand(rows, *y.shape[1:]), {
            n: x.expand(rows, *x.shape[1:]) for n, x in last.items()
        }

    def _literal_parts(self) -> Results:
        """The two shortened sequences, each alone."""
        leaves = self._fresh(torch.float64)
        ys, lasts = [], []
        for k, tokens in enumerate(self.keep):
            y, last = self._literal(leaves, slice(k, k + 1), tokens)
            ys.append(y[0])
            lasts.append(last)
        joined = {n: torch.cat([x[n].expand(1, *x[n].shape[1:]) for x in lasts]) for n in lasts[0]}
        return self._results(torch.cat(ys), joined, leaves)

    @staticmethod
    def _results(y: Tensor, last: Mapping[str, Tensor], leaves: Mapping[str, Tensor]) -> Results:
        """Outputs, and gradients of a scalar that weighs every entry of them differently."""
        outs = {"y": y, **{f"last {n}": x for n, x in last.items()}}
        generator = torch.Generator().manual_seed(7)
        scalar = torch.zeros((), dtype=torch.float64)
        for x in outs.values():
            kind = torch.complex128 if x.is_complex() else torch.float64
            weight = torch.randn(x.shape, generator=generator, dtype=kind)
            scalar = scalar + (x.to(kind) * weight).sum().real
        names = [n for n, x in leaves.items() if x.requires_grad]
        found = [None] * len(names)
        if scalar.requires_grad:
            found = torch.autograd.grad(scalar, [leaves[n] for n in names], allow_unused=True)
        grads = {
            f"gradient of {n}": torch.zeros_like(leaves[n]) if g is None else g
            for n, g in zip(names, found, strict=True)
        }
        return {n: x.detach() for n, x in (outs | grads).items()}

    # --- the module -------------------------------------------------------------------------------

    def checks(
        self, judge: Judge
    ) -> Iterator[tuple[str, torch.dtype, Results, Callable[[], Results]]]:
        """Everything that is asked of the module: a name, a dtype, what is wanted, the run."""
        wide, modes = torch.float64, tuple(self.module.MODES)
        some = self.random.choice

        def whole(mode: str, dtype: torch.dtype = wide, cut: int = 0) -> Callable[[], Results]:
            return lambda: self._forward(mode, dtype, cut)

        for mode in modes:
            yield f"mode {mode}", wide, judge.want, whole(mode)
        if self.causal:
            mode = some(modes)
            yield f"cut in mode {mode}", wide, judge.want, whole(mode, wide, some(range(1, LENGTH)))
        if self.steps:
            yield "step", wide, judge.want, self._steps
        for how in ("mask", "pack"):
            mode = some([m for m in modes if m != "fft"] or ["auto"])
            run = self._masked if how == "mask" else self._packed
            yield f"{how} in mode {mode}", wide, judge.parts, lambda run=run, mode=mode: run(mode)
        for dtype in (torch.float32, torch.bfloat16):
            mode = some(("auto", *modes))
            label = f"{str(dtype).removeprefix('torch.')} in mode {mode}"
            yield label, dtype, judge.want, whole(mode, dtype)

    def _prepared(self, dtype: torch.dtype) -> tuple[dict[str, Tensor], Any]:
        """Leaves and the layer in a dtype; the layer's parameters are leaves."""
        layer = self.layer if dtype == torch.float64 else _copied(self.layer).to(dtype)
        leaves = {}
        for n, x in self.leaves.items():
            kind, _, name = n.partition(" ")
            if kind == "param":
                attribute = self.stored[name][0]
                if attribute:
                    parameter = layer.get_parameter(attribute)
                    with torch.no_grad():
                        parameter.copy_(x)
                    leaves[n] = parameter
                else:
                    leaves[n] = x.clone().requires_grad_()
            else:
                wide = torch.promote_types(dtype, torch.float32) if kind == "state" else dtype
                kept = wide.to_complex() if x.is_complex() else wide
                leaves[n] = x.to(kept).clone().requires_grad_()
        return leaves, layer

    def _inputs(self, leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The layer's arguments; it asks for the inputs first, by their names or nearly so."""
        asked = inspect.signature(self.layer.forward).parameters
        out = {}
        for a in asked:
            named = next((n for n in (a, a.rstrip("_")) if f"input {n}" in leaves), None)
            if a == "state" or named is None:
                break
            out[a] = leaves[f"input {named}"]
        return out

    def _state(
        self, layer: Any, leaves: Mapping[str, Tensor], rows: int, dtype: torch.dtype
    ) -> Any:
        """The state before the first token; a register of a given state holds it too."""
        fresh = layer.initial_state(rows, dtype=dtype)
        new = {}
        for f in dataclasses.fields(fresh):
            n = next((k for k in (f.name, f.name.rstrip("_")) if f"state {k}" in leaves), None)
            if n is not None:
                new[f.name] = leaves[f"state {n}"].to(getattr(fresh, f.name).dtype)
                continue
            bare = f.name.removesuffix("_past")
            source = next((k for k in (bare, bare.rstrip("_")) if f"state {k}" in leaves), None)
            if bare != f.name and source is not None:
                past = getattr(fresh, f.name)
                given = leaves[f"state {source}"].to(past.dtype).unsqueeze(1)
                new[f.name] = torch.cat((past[:, :-1], given), 1)
        return dataclasses.replace(fresh, **new)

    def _last(self, state: Any, leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
        fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
        out = {}
        for n in (n[6:] for n in leaves if n.startswith("state ")):
            name = next((k for k in (n, f"{n}_") if k in fields), None)
            out[n] = fields[_register(fields, n)][:, -1] if name is None else fields[name]
        return out

    def _call(
        self, layer: Any, leaves: Mapping[str, Tensor], inputs: Mapping[str, Tensor],
        state: Any, **how: Any,
    ) -> tuple[Tensor, Any]:  # fmt: skip
        if not self.causal:
            return layer(**inputs, **how), None
        return layer(**inputs, state=state, return_state=True, **how)  # type: ignore[no-any-return]

    def _forward(self, mode: str, dtype: torch.dtype, cut: int = 0) -> Results:
        leaves, layer = self._prepared(dtype)
        inputs = self._inputs(leaves)
        state = self._state(layer, leaves, BATCH, dtype) if self.causal else None
        chunk = self.random.choice((1, 2, 3, LENGTH, 64))
        ys = []
        for piece in (slice(0, cut), slice(cut, LENGTH)) if cut else (slice(None),):
            part = {n: x[:, piece] for n, x in inputs.items()}
            y, state = self._call(layer, leaves, part, state, mode=mode, chunk=chunk)
            ys.append(y)
        last = {} if state is None else self._last(state, leaves)
        return self._results(torch.cat(ys, 1), last, leaves)

    def _steps(self) -> Results:
        leaves, layer = self._prepared(torch.float64)
        inputs = self._inputs(leaves)
        state, ys = self._state(layer, leaves, BATCH, torch.float64), []
        for k in range(LENGTH):
            y, state = layer.step(**{n: x[:, k] for n, x in inputs.items()}, state=state)
            ys.append(y)
        return self._results(torch.stack(ys, 1), self._last(state, leaves), leaves)

    def _masked(self, mode: str) -> Results:
        """NaN stands at every token that is left out."""
        leaves, layer = self._prepared(torch.float64)
        mask = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
        for row, tokens in enumerate(self.keep):
            mask[row, tokens] = True
        for n in list(leaves):
            if n.startswith("input "):
                hole = mask[(..., *(None,) * (leaves[n].ndim - 2))]
                holed = torch.where(hole, leaves[n].detach(), float("nan"))
                leaves[n] = holed.requires_grad_()
        state = self._state(layer, leaves, BATCH, torch.float64) if self.causal else None
        y, state = self._call(layer, leaves, self._inputs(leaves), state, mode=mode, mask=mask)
        if not bool((y[~mask] == 0).all()):
            raise DisagreementError("the output at a masked token is not 0")
        last = {} if state is None else self._last(state, leaves)
        return self._results(y[mask], last, leaves)

    def _packed(self, mode: str) -> Results:
        """The shortened sequences one after the other, an empty one between them."""
        leaves, layer = self._prepared(torch.float64)
        packed = {
            n: torch.cat([x[k, tokens] for k, tokens in enumerate(self.keep)]).unsqueeze(0)
            for n, x in self._inputs(leaves).items()
        }
        a, b = (len(tokens) for tokens in self.keep)
        ends = torch.tensor([0, a, a, a + b])
        state = None
        if self.causal:
            three = {
                n: torch.cat((x[:1], x[:1] + 1, x[1:])) if n.startswith("state ") else x
                for n, x in leaves.items()
            }
            state = self._state(layer, three, 3, torch.float64)
        y, after = self._call(layer, leaves, packed, state, mode=mode, cu_seqlens=ends)
        last = {}
        if after is not None:
            full = self._last(after, leaves)
            for n, x in full.items():
                if not torch.equal(x[1], self.leaves[f"state {n}"][0] + 1):
                    raise DisagreementError(f"the state {n} of an empty sequence changes")
            last = {n: x[[0, 2]] for n, x in full.items()}
        return self._results(y[0], last, leaves)


def _register(fields: Mapping[str, Any], state: str) -> str:
    """Returns the name of the field that holds the last values of a state; empty without one."""
    return next((k for k in (f"{state}_past", f"{state}__past") if k in fields), "")


class Rounded(TorchFunctionMode):
    """Rounds the result of every operation to a narrow dtype; derivatives pass through."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if not isinstance(out, Tensor) or not (out.is_floating_point() or out.is_complex()):
            return out
        x = out.detach()
        parts = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
        rounded = parts.to(self.dtype).to(parts.dtype)
        return out + ((torch.view_as_complex(rounded) if x.is_complex() else rounded) - x)


def _copied(layer: Any) -> Any:
    import copy

    return copy.deepcopy(layer)


def quiet() -> None:
    """Settles what a process needs before it runs many mixers."""
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))
    gc.freeze()
