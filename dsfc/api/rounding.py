"""Certified bounds on the rounding errors of a mixer's module, on a domain given as text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import torch
from torch import Tensor

from dsfc.api.compile import compile_spec
from dsfc.api.pipeline import Compilation, load
from dsfc.bounds.domain import Limits, order_of_complex
from dsfc.diagnostics.catalogue import SyntaxProblem, UnknownName
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError, nearest
from dsfc.emit.importing import import_module
from dsfc.expr.interval import Interval
from dsfc.expr.ranges import PROMISED
from dsfc.rounding.analyse import Argument, Bound, Call, as_run, bound, sources
from dsfc.rounding.enclosure import UnknownError, between, within
from dsfc.rounding.report import Report, Row
from dsfc.rounding.search import Seen, search
from dsfc.syntax.domain import LENGTH, Bounded, parse_domain
from dsfc.validate.surface import Sample, Surface, SurfaceError, surface, unit_inputs

PathText = str | os.PathLike[str]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Dtypes by name."""

SHRINKS = 14
"""How often bounds of inputs are halved in search of a domain without warnings."""


@dataclass(frozen=True, slots=True)
class Box:
    """A domain: where entries lie, by the name that the module calls them; and how long it is."""

    ends: Mapping[str, tuple[float, float]]
    length: int


def rounding(
    spec: PathText,
    domain: str,
    mixer: str | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    modes: Sequence[str] = (),
    dtypes: Sequence[str] = ("float32", "bfloat16"),
    chunk: int | None = None,
    weights: PathText | None = None,
) -> Report:
    """Bounds |module(u) - definition(u)| for all inputs of a domain, mode by mode, dtype by dtype.

    Args:
        spec: a spec file, or the bare name of a shipped spec.
        domain: bounds of all inputs, of parameters that are to vary, and one length, such as
            "abs(u) <= 1, L == 256". Other parameters have the values of `weights`.
        mixer: which mixer of the spec.
        sizes: of the axes; by default small ones.
        modes: of the module; all if not given.
        dtypes: `float32`, `bfloat16`, `float16`.
        chunk: tokens of a chunk; the module's own number if not given.
        weights: a file of `torch.save(layer.state_dict())`; by default the values that the class
            draws with seed 0.

    Raises:
        DiagnosticError: the spec cannot be compiled, the domain is none of it, or a file is wrong.
        ValueError: there is no such mode, dtype or size.
    """
    known = load(spec, mixer)
    wrong = [d for d in dtypes if d not in DTYPES]
    if wrong:
        raise ValueError(f"no dtype {wrong[0]}; there are {', '.join(DTYPES)}")
    box = _box(domain, known)
    with tempfile.TemporaryDirectory(prefix="dsfc-") as folder:
        module = import_module(compile_spec(spec, out=folder, mixer=mixer))
        try:
            unit = frozenset(map(known.identifiers(), unit_inputs(known.system.inputs)))
            face = surface(module, sizes, unit)
        except SurfaceError as e:
            raise ValueError(str(e)) from e
        wrong = [m for m in modes if m not in face.modes]
        if wrong:
            raise ValueError(f"no mode {wrong[0]}; there are {', '.join(face.modes)}")
        rows = []
        for name in dtypes:
            values = _values(face, DTYPES[name], box.length, weights)
            rows += _rows(face, values, box, tuple(modes or face.modes), name, chunk)
    drawn = "as the class draws them with seed 0" if weights is None else f"of {weights}"
    return Report(known.name, domain, box.length, tuple(face.sizes.items()), drawn, tuple(rows))


def _rows(
    face: Surface,
    values: Mapping[str, Any],
    box: Box,
    modes: tuple[str, ...],
    dtype: str,
    chunk: int | None,
) -> list[Row]:
    """The rows of all modes in one dtype: bounds first, then the errors that a search sees."""
    rows = [_certified(face, values, box, mode, dtype, chunk) for mode in modes]
    worst = max(rows, key=lambda r: r.bound if r.bound is not None and r.bound < inf else -1.0)
    seen = _search(face, values, box, modes, chunk)
    out = []
    for row in rows:
        looked, call = seen[row.mode], _call(face, values, box, row.mode, chunk)
        row = replace(row, seen=looked.worst, points=looked.points, broken=looked.broken)
        if row.mode == worst.mode and row.bound is not None and row.bound < inf:
            row = replace(row, sources=sources(call, bound(call)))
        if row.bound is not None and looked.values is not None:
            point = replace(call, arguments={**values, **looked.values})
            own = as_run(point, _run(face, point.arguments, row.mode, chunk))
            row = replace(row, here=bound(point).worst, as_run=own)
        out.append(row)
    return out


def _certified(
    face: Surface, values: Mapping[str, Any], box: Box, mode: str, dtype: str, chunk: int | None
) -> Row:
    """The bound of one mode in one dtype, before anything is run."""
    try:
        whole = bound(_call(face, values, box, mode, chunk))
        safe = _safe(face, values, box, mode, chunk) if whole.hazards else None
    except UnknownError as e:
        return Row(mode, dtype, obstacle=str(e))
    return Row(mode, dtype, whole.worst, whole.size, hazards=whole.hazards, safe=safe)


def _call(
    face: Surface,
    values: Mapping[str, Any],
    box: Box,
    mode: str,
    chunk: int | None,
    factor: float = 1.0,
) -> Call:
    """A call whose arguments lie in a box, with the bounds of inputs times a factor."""
    arguments: dict[str, Argument] = dict(values)
    for name, (low, high) in box.ends.items():
        x = values[name]
        scale = factor if name in face.inputs else 1.0
        if x.is_complex():
            arguments[name] = within(_filled(x, high * scale), x.dtype)
        else:
            ends = _filled(x, low * scale), _filled(x, high * scale)
            arguments[name] = between(*ends, x.dtype)
    return Call(face.module, face.functional, arguments, _options(face, mode, chunk))


def _safe(
    face: Surface, values: Mapping[str, Any], box: Box, mode: str, chunk: int | None
) -> float | None:
    """A factor of the bounds of inputs with which nothing may go wrong, nearly the largest."""

    def clean(factor: float) -> Bound | None:
        smaller = bound(_call(face, values, box, mode, chunk, factor))
        return None if smaller.hazards else smaller

    factor = 1.0
    for _ in range(SHRINKS):
        factor /= 2
        if clean(factor) is not None:
            break
    else:
        return None
    for step in (1.5, 1.25):
        if clean(factor * step) is not None:
            return factor * step
    return factor


def _search(
    face: Surface, values: Mapping[str, Any], box: Box, modes: tuple[str, ...], chunk: int | None
) -> dict[str, Seen]:
    """The largest errors of points of a box, by mode; complex arrays keep their values."""
    real = {n: ends for n, ends in box.ends.items() if not values[n].is_complex()}
    where = {n: (_filled(values[n], low), _filled(values[n], high))
             for n, (low, high) in real.items()}  # fmt: skip
    dtypes = {name: values[name].dtype for name in real}

    def reference(point: Mapping[str, Tensor]) -> Tensor:
        return face.reference({k: v for k, v in {**values, **point}.items() if v is not None})

    def run(mode: str, point: Mapping[str, Tensor]) -> Tensor:
        return _run(face, {**values, **point}, mode, chunk)

    return search(where, dtypes, {m: partial(run, m) for m in modes}, reference)


def _filled(x: Tensor, value: float) -> Tensor:
    return torch.full(x.shape, value, dtype=torch.float64)


def _run(face: Surface, values: Mapping[str, Any], mode: str, chunk: int | None) -> Tensor:
    """The output of the module."""
    with torch.no_grad():
        result = face.functional(*values.values(), **_options(face, mode, chunk))
    y: Tensor = result[0] if isinstance(result, tuple) else result
    return y


def _options(face: Surface, mode: str, chunk: int | None) -> dict[str, Any]:
    """The options of the functional form."""
    return {"mode": mode} if chunk is None else {"mode": mode, "chunk": chunk}


def _values(
    face: Surface, dtype: torch.dtype, length: int, weights: PathText | None
) -> dict[str, Any]:
    """The functional form's tensors by name: inputs of 0, parameters as the layer hands them over.

    Raises:
        DiagnosticError: the weights are not those of the layer.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = face.cls(**face.sizes, dtype=dtype)
    if weights is not None:
        try:
            layer.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        except OSError as e:
            raise file_error(weights, e) from e
        except Exception as e:
            raise file_error(weights, f"these are no weights of {face.mixer}: {e}") from e
    inputs = {
        n: torch.full((1, length, *axes), 0.5, dtype=dtype) for n, axes in face.inputs.items()
    }
    with torch.no_grad():
        handed = face.values(Sample(layer, inputs))
    return {k: v.detach() if isinstance(v, Tensor) else v for k, v in handed.items()}


def _box(text: str, known: Compilation) -> Box:
    """The domain that a text states.

    Raises:
        DiagnosticError: it is none of the mixer, or bounds too little.
    """
    system, named = known.system, known.identifiers()
    tensors = {t.name: t for t in (*system.inputs, *system.params)}
    promises = {n: PROMISED[t.constraint] for n, t in tensors.items() if hasattr(t, "constraint")}
    ends, lengths = dict[str, Interval](), set[int]()
    bounds = parse_domain(text)
    for x in bounds:
        if x.name == LENGTH and LENGTH not in tensors:
            if x.low is None or x.low != x.high:
                raise _problem(x, "rounding is bounded for one length: write such as `L == 256`")
            lengths.add(int(x.low))
            continue
        if x.name not in tensors:
            close = nearest(x.name, set(tensors))
            instead = "" if close is None else f"; did you mean `{close}`?"
            raise DiagnosticError((UnknownName(x.span, name=x.name, instead=instead),))
        limit = Limits(x.name, x.low, x.high, x.axis, x.modulus)
        mistake = order_of_complex(limit, (system,))
        if x.axis:
            mistake = "rounding is bounded entry by entry: bound `abs(x)`, not a length"
        if mistake:
            raise _problem(x, mistake)
        here = limit.interval
        here = Interval(-here.high, here.high) if x.modulus else here
        ends[x.name] = ends[x.name].meet(here) if x.name in ends else here
    if len(lengths) != 1:
        raise _problem(bounds[-1], "give one length, such as `L == 256`")
    for name, promise in promises.items():
        if name in ends:
            ends[name] = ends[name].meet(promise)
        elif any(t.name == name for t in system.inputs):
            ends[name] = promise
    for name, e in ends.items():
        if not (e.low > -inf and e.high < inf and e.low <= e.high):
            raise _problem(
                bounds[-1], f"`{name}` has no bounds on both sides; give such as `abs({name}) <= 1`"
            )
    return Box({named(n): (e.low, e.high) for n, e in ends.items()}, lengths.pop())


def _problem(at: Bounded, problem: str) -> DiagnosticError:
    return DiagnosticError((SyntaxProblem(at.span, problem=problem),))
