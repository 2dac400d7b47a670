"""Turns the weights of a published layer into those of an emitted module, by a layout map.

What a map does is first run on the numbers of all entries: which published number each entry of the
module is, is then known and not believed. Then the published layer, where it can be imported, and
the module are run on random inputs.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from dsfc.api.pipeline import load
from dsfc.diagnostics.catalogue import Conversion, LayoutProblem
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.importing import import_module
from dsfc.emit.module import write as write_module
from dsfc.layouts.addresses import Moved, addressed, names_of, sizes_of
from dsfc.layouts.dims import Dim, solve
from dsfc.layouts.ir import Layout
from dsfc.layouts.read import load_layout
from dsfc.source import NOWHERE
from dsfc.validate.published import Compared, backward, check_shapes, compare, forward
from dsfc.validate.reference import AbsentError, Running, running
from dsfc.validate.surface import surface
from dsfc.validate.weights import Unfit, Weights, demand_entries, demand_names, read, write

WIDTH = "d"
"""The size that is the width of a layer, in every map."""


@dataclass(frozen=True)
class Request:
    """The weights to convert, and the layout map to convert them by.

    Attributes:
        layout: the name of a shipped map, or a file.
        weights: the file to read: a `state_dict` saved by torch, or safetensors.
        out: the file to write, which must not exist; the same two kinds.
        prefix: what the names of the published layer's tensors begin with in its file.
        sizes: that the weights do not tell, by name.
        back: from the module to the published layer, and not from that to the module.
        run_reference: whether the class that a map of the user's own names is imported and run;
            that of a shipped map is anyway.
    """

    layout: str
    weights: Path
    out: Path
    prefix: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    back: bool = False
    run_reference: bool = False


@dataclass(frozen=True)
class Turned:
    """The result of a conversion.

    Attributes:
        title: what the published weights are of.
        mixer: whose module the others are of.
        sizes: by name.
        moved: the rows, with the places of all entries.
        unused: published tensors that the map leaves out.
        reference: the published layer that was run, with the version of its package.
        compared: how far it is from the module; None where it was not run.
        absent: why it was not run; empty where it was.
    """

    title: str
    mixer: str
    sizes: Mapping[str, int]
    moved: tuple[Moved, ...]
    unused: tuple[str, ...]
    reference: str
    compared: Compared | None
    absent: str


def convert_published(request: Request) -> Turned:
    """Writes the weights of an emitted module that make it a published layer, or the other way.

    Args:
        request: the weights and the map.

    Raises:
        DiagnosticError: E-LAYOUT, of the map; E-CONVERT, of the weights, or where both layers are
            run and differ; nothing is written then. E-FILE.
    """
    layout, file, shipped = load_layout(request.layout)
    compilation = load(_spec(layout, file, shipped))
    ends = (layout.title, compilation.name)
    a, b = reversed(ends) if request.back else ends

    def refuse(problem: str) -> DiagnosticError:
        return DiagnosticError((Conversion(NOWHERE, a=a, b=b, problem=problem),))

    if os.path.lexists(request.out):
        raise refuse(f"{request.out} exists already")
    module = compilation.module(layer=layout.layer)
    try:
        weights = read(request.weights, "" if request.back else request.prefix)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{module.mixer}.py"
            write_module(module, path)
            emitted = import_module(path)
            trusted = shipped or request.run_reference
            turned, written = _turn(request, layout, emitted, trusted, compilation.name, weights)
        if request.back:
            written = {f"{request.prefix}{name}": value for name, value in written.items()}
        write(written, request.out)
    except Unfit as e:
        raise refuse(str(e)) from None
    return turned


def _spec(layout: Layout, file: Path, shipped: bool) -> str:
    """The spec that a map names: a file beside it, or a shipped one."""
    beside = file.parent / layout.spec
    return str(beside) if not shipped and beside.is_file() else layout.spec


def _turn(
    request: Request,
    layout: Layout,
    module: ModuleType,
    trusted: bool,
    mixer: str,
    weights: Weights,
) -> tuple[Turned, Weights]:
    """Returns the result of the conversion, and the weights to write."""
    own_surface = surface(module)
    cls = own_surface.layer_cls or own_surface.cls
    known = dict(request.sizes)
    if request.back:
        known = _module_sizes(cls, layout, weights, known)
    else:
        names = [tensor.name for tensor in layout.published]
        hint = "; --prefix says what the names of one layer begin with"
        demand_names(weights, names, "the layout", hint)
        known = sizes_of(layout, {name: tuple(x.shape) for name, x in weights.items()}, known)
    unknown = [name for name in (WIDTH, *names_of(layout)) if name not in known]
    if unknown:
        raise Unfit(f"the weights do not say what {unknown[0]} is; pass --size {unknown[0]}=…")
    shapes = {t.name: tuple(d.value(known) for d in t.shape) for t in layout.published}
    if not request.back:
        check_shapes(layout, weights, shapes)
    axes = {name: dim.value(known) for name, dim in layout.axes.items()}
    layer = _made(cls, {**known, **axes}, "meta")
    entries = {name: tuple(x.shape) for name, x in layer.state_dict().items()}
    if request.back:
        demand_entries(weights, entries, "the module")
    moved = addressed(layout, known, entries)

    def turn(tensors: Weights) -> Weights:
        return backward(moved, tensors, shapes) if request.back else forward(moved, tensors)

    # The layers that run get weights in float64: rounding by functions is no difference of layers.
    wide = {name: x.double() for name, x in weights.items()}
    published, own = (turn(wide), wide) if request.back else (wide, turn(wide))
    reference, absent = _reference(request, trusted, layout, known, published)
    compared, named = None, ""
    if reference is not None:
        layer = _made(cls, {**known, **axes}, "cpu")
        layer.load_state_dict(own)
        compared = compare(reference, layer, known[WIDTH])
        named = f"{reference.name} of {reference.package}"
    done = Turned(layout.title, mixer, known, moved, layout.unused, named,
                  compared, absent)  # fmt: skip
    return done, turn(weights)


def _made(cls: type[nn.Module], sizes: Mapping[str, int], device: str) -> nn.Module:
    """The module at those of the sizes that it has, in float64; without memory on `meta`."""
    taken = inspect.signature(cls).parameters
    try:
        with torch.random.fork_rng(devices=[]):
            own = {n: k for n, k in sizes.items() if n in taken}
            return cls(**own, device=device, dtype=torch.float64)
    except (TypeError, ValueError) as e:
        raise Unfit(f"{cls.__name__} has no such sizes: {e}") from None


_PRIMES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069)
"""Sizes by which axes are told apart: of a product of them, the factors are known."""


def _module_sizes(
    cls: type[nn.Module], layout: Layout, weights: Weights, known: Mapping[str, int]
) -> dict[str, int]:
    """Sizes that the weights of a module tell.

    How the shapes of its entries hang on its sizes is seen from one that is made, without memory,
    with different primes for sizes.
    """
    taken = inspect.signature(cls).parameters
    names = [n for n in dict.fromkeys((*names_of(layout), *layout.axes)) if n in taken]
    primes = dict(zip(names, _PRIMES, strict=False))
    try:
        probe = cls(**primes, device="meta")
    except (TypeError, ValueError) as e:
        raise Unfit(f"{cls.__name__} does not say how its weights hang on sizes: {e}") from None
    equations = [
        (Dim(((1, factors),)), actual)
        for entry, x in probe.state_dict().items()
        if entry in weights
        for size, actual in zip(x.shape, weights[entry].shape, strict=False)
        if (factors := tuple(n for n, prime in primes.items() if size % prime == 0))
        and size == prod(primes[n] for n in factors)
    ]
    own = solve(equations, {n: k for n, k in known.items() if n in names})
    told = {n: k for n, k in own.items() if n not in layout.axes}
    return solve([(dim, own[n]) for n, dim in layout.axes.items() if n in own], {**told, **known})


def _reference(
    request: Request, trusted: bool, layout: Layout, sizes: Mapping[str, int], published: Weights
) -> tuple[Running | None, str]:
    """The published layer with its weights; or None, and why there is none."""
    if layout.reference is None:
        return None, "the layout names no published layer"
    if not trusted:
        return None, f"{layout.reference.of[0]} is imported and run only with --run-reference"
    unknown = {n for dim in layout.reference.sizes.values() for n in dim.names} - sizes.keys()
    if unknown:
        problem = f"the sizes {', '.join(sorted(unknown))} are none of the layout"
        raise DiagnosticError((LayoutProblem(layout.reference.span, problem=problem),))
    try:
        return running(layout.reference, sizes, published), ""
    except AbsentError as e:
        if request.run_reference:
            raise Unfit(str(e)) from None
        return None, str(e)
