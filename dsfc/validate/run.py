"""Runs every check on an emitted module.

    >>> import dsfc
    >>> module = dsfc.import_module("normalized_attn.py")          # doctest: +SKIP
    >>> print(validate(module).render())                             # doctest: +SKIP

The checks know nothing of the mixer: names, shapes and parameters are read off the module's public
surface, the judge is the definition that the module carries along. What a definition is worth is
the compiler's promise and is tested there; this holds the module to it, and to PyTorch's rules.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch

from dsfc.validate import (
    attention,
    compilers,
    cost,
    derivatives,
    precision,
    rows,
    torch_surface,
    values,
)
from dsfc.validate.compare import BrokenPromiseError
from dsfc.validate.report import Outcome, Report, Row
from dsfc.validate.surface import Surface, surface

Progress = Callable[[int, int, str], None]
"""Called before each check with how many are done, how many there are, and the next one's name."""


@dataclass(frozen=True, slots=True)
class Check:
    """A promise and what holds a module to it.

    Attributes:
        name: short, unique.
        run: returns what it measured; raises `BrokenPromiseError`.
        slow: left out of a quick run: it compiles machine code or takes thousands of steps.
        fast: part of a fast run: it compares values and gradients.
    """

    name: str
    run: Callable[[Surface], str]
    slow: bool = False
    fast: bool = False

    @property
    def promise(self) -> str:
        """What is promised: the first line of the check's docstring."""
        function = self.run.func if isinstance(self.run, partial) else self.run
        return (function.__doc__ or "").strip().splitlines()[0].rstrip(".")


CHECKS = (
    Check("definition", values.definition, fast=True),
    Check("modes", values.modes, fast=True),
    Check("segments", values.segments, fast=True),
    Check("past", values.memory_of_the_past, fast=True),
    Check("steps", values.steps, fast=True),
    Check("causality", values.causality, fast=True),
    Check("layouts", values.layouts, fast=True),
    Check("rows", values.rows, fast=True),
    Check("fused", attention.fused, fast=True),
    Check("masks", rows.masks, fast=True),
    Check("packs", rows.packs, fast=True),
    Check("extremes", precision.extremes),
    Check("precision", precision.low_precision),
    Check("wide sums", precision.wide_sums),
    Check("dtypes", precision.dtypes),
    Check("autocast", precision.autocast),
    Check("streaming", cost.streaming),
    Check("streaming long", partial(cost.streaming, tokens=10_000), slow=True),
    Check("memory", cost.memory),
    Check("owned memory", torch_surface.owned),
    Check("opcheck", torch_surface.opcheck),
    Check("gradcheck", derivatives.gradcheck),
    Check("gradgradcheck", derivatives.gradgradcheck),
    Check("func grad", derivatives.func_grad),
    Check("hessian", derivatives.hessian),
    Check("third order", derivatives.third_order),
    Check("forward mode", derivatives.forward_mode),
    Check("vmap", derivatives.vectorized),
    Check("per sample", derivatives.per_sample),
    Check("checkpointing", torch_surface.checkpointing),
    Check("meta", torch_surface.meta),
    Check("flops", cost.flops),
    Check("copies", torch_surface.copies),
    Check("imports", torch_surface.imports),
    Check("complaints", torch_surface.complaints),
    Check("compile", compilers.compiled),
    Check("dynamic", compilers.dynamic),
    Check("export", compilers.exported),
    Check("inductor", compilers.inductor, slow=True),
    Check("package", compilers.packaged, slow=True),
)
"""All checks, cheap ones and those about values first."""


def validate(
    module: ModuleType,
    *,
    sizes: Mapping[str, int] | None = None,
    quick: bool = True,
    fast: bool = False,
    progress: Progress | None = None,
    unit: frozenset[str] = frozenset(),
    more: tuple[Check, ...] = (),
) -> Report:
    """Holds an emitted module to its promises.

    Args:
        module: as `dsfc.import_module` returns it.
        sizes: of the axes; by default small ones, all different.
        quick: leave out what compiles machine code and what takes thousands of steps.
        fast: leave out all but values and gradients: modes, cuts, steps, masks and packs.
        progress: called before each check.
        unit: inputs to draw from (0, 1), see `dsfc.validate.surface.unit_inputs`.
        more: checks of this module beside those of all.

    Returns:
        one row per check; `report.kept` says whether all promises are kept.

    Raises:
        SurfaceError: this is no emitted module, or its class refuses the sizes.
    """
    chosen = tuple(c for c in (*CHECKS, *more) if c.fast or not (fast or (quick and c.slow)))
    with deterministic_torch():
        described = surface(module, sizes, unit)
        rows = []
        for done, check in enumerate(chosen):
            if progress is not None:
                progress(done, len(chosen), check.name)
            rows.append(run(check, described))
    if progress is not None:
        progress(len(chosen), len(chosen), "")
    return Report(described.mixer, described.namespace, dict(described.sizes), tuple(rows))


def run(check: Check, described: Surface) -> Row:
    """Runs one check and returns its row.

    Args:
        check: which.
        described: the module's surface.
    """
    start = time.perf_counter()
    outcome = Outcome.KEPT
    try:
        figure = check.run(described)
    except BrokenPromiseError as e:
        outcome, figure = Outcome.BROKEN, str(e)
    except Exception as e:
        # Whatever PyTorch raises on a module that does not follow its rules is a finding.
        first = (str(e).strip().splitlines() or [""])[0]
        outcome, figure = Outcome.BROKEN, f"{type(e).__name__}: {first}"
    return Row(check.name, check.promise, outcome, figure, time.perf_counter() - start)


@contextmanager
def deterministic_torch() -> Iterator[None]:
    """Fresh memory holds NaN, PyTorch's own warnings are silent; the caller's settings come back.

    Memory that a module reads before it wrote it then shows in every result. One thread runs: the
    tensors are small, and threads would wait for each other longer than they compute.
    """
    memory: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    fill = memory.fill_uninitialized_memory
    threads = torch.get_num_threads()
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.use_deterministic_algorithms(True, warn_only=True)
        memory.fill_uninitialized_memory = True
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(before, warn_only=warn_only)
            memory.fill_uninitialized_memory = fill
