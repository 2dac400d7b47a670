"""Carries the weights of one mixer's module over to another's, where a proof says that it can be.

The map of parameters is a value: pairs of names, constant in time. What is proved is that the two
mixers are one function for equal parameters under that map, at all sizes or at those of the
weights; then both modules are run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.catalogue import Conversion
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.importing import import_module
from dsfc.emit.module import write as write_module
from dsfc.expr.declarations import MapTensor
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import reach
from dsfc.prover.verdict import AtSizes, Conditionally, Equal, ProvedWhereDefined, Refuted, Unknown
from dsfc.source import NOWHERE
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import unlike
from dsfc.validate.surface import unit_inputs
from dsfc.validate.weights import Carried, Unfit, carry, read, sizes_of, write


@dataclass(frozen=True, slots=True)
class ParameterMap:
    """Which inputs and parameters of two mixers are one, the same at every token.

    Attributes:
        names: (name in the second, name in the first); names left out stand for themselves.
    """

    names: tuple[tuple[str, str], ...] = ()


def convert(
    a: Compilation,
    b: Compilation,
    weights: Path,
    out: Path,
    parameters: ParameterMap = ParameterMap(),
) -> Carried:
    """Writes the weights that make b's module the same function as a's with the weights given.

    Args:
        a: the mixer that the weights are of.
        b: the mixer to write weights of.
        weights: a `state_dict` of a's module, saved by torch.
        out: a new file.
        parameters: the map of parameters.

    Raises:
        DiagnosticError: E-CONVERT, with the reason; nothing is written then. Or whatever is wrong
            with the specs.
    """

    def refuse(problem: str) -> DiagnosticError:
        return DiagnosticError((Conversion(NOWHERE, a=a.name, b=b.name, problem=problem),))

    if os.path.lexists(out):
        raise refuse(f"{out} exists already")
    verdict = equivalent(a.system, b.system, parameters.names)
    if isinstance(verdict, Refuted):
        raise refuse("they are different functions of equal parameters, see `dsfc equiv`")
    assert not isinstance(verdict, Conditionally)  # nobody asked for conditions
    if isinstance(verdict, Unknown | ProvedWhereDefined):
        raise refuse(f"that they are one function is not proved: {verdict.obstacle}")
    modules = [compilation.module() for compilation in (a, b)]
    called = (a.identifiers(), b.identifiers())
    axes = {called[0](name): tensor_axes for name, tensor_axes in _axes(a.system).items()}
    try:
        weights_of_a = read(weights)
        with tempfile.TemporaryDirectory() as folder:
            imported = []
            for side, text in zip("ab", modules, strict=True):
                place = Path(folder) / side
                place.mkdir()
                file = place / f"{text.mixer}.py"
                write_module(text, file)
                imported.append(import_module(file))
            if isinstance(verdict, AtSizes):
                sizes = sizes_of(imported[0], weights_of_a, axes)
                problem = _at_sizes(a.system, b.system, parameters, verdict, sizes)
                if problem is not None:
                    raise Unfit(problem)
            shared = _shared(verdict.certificate.claim)
            names = {called[1](n): called[0](same) for n, same in shared.items()}
            theirs = unit_inputs(b.system.inputs)
            ours = unit_inputs(a.system.inputs) | {shared[n] for n in theirs if n in shared}
            unit = (frozenset(map(called[0], ours)), frozenset(map(called[1], theirs)))
            carried = carry(imported[0], imported[1], weights_of_a, axes, names, called, unit)
        write(carried.weights, out)
    except Unfit as e:
        raise refuse(str(e)) from None
    return carried


def _at_sizes(
    a: System, b: System, parameters: ParameterMap, verdict: AtSizes, sizes: Mapping[str, int]
) -> str | None:
    """Why what is proved at some sizes says nothing of modules with other ones, None if it does."""
    unknown = [name for name, _ in verdict.fixed if name not in sizes]
    if unknown:
        known = reach(verdict.certificate.claim)
        return f"they are proved equal {known}, and the weights do not say what {unknown[0]} is"
    asked = {name: sizes[name] for name, _ in verdict.fixed}
    if asked == dict(verdict.fixed):
        return None
    text = ", ".join(f"{name} = {size}" for name, size in asked.items())
    try:
        answer = equivalent(a, b, parameters.names, sizes=asked)
    except ValueError as e:
        return f"that they are one function for {text} is not proved: {e}"
    if isinstance(answer, Equal) and all(sizes.get(name) == size for name, size in answer.fixed):
        return None
    if isinstance(answer, Refuted):
        return f"they are different functions of equal parameters for {text}"
    return f"that they are one function for {text} is not proved"


def _shared(claim: Claim) -> dict[str, str]:
    """Arrays of the second mixer that are one with an array of the first: name → its name there.

    A buffer of the second whose value is another one keeps it.
    """
    first, second = ({t.name for t in (*s.inputs, *s.params, *s.buffers)}
                     for s in (claim.a, claim.b))  # fmt: skip
    names, apart = dict(claim.names), unlike(claim)
    return {n: names.get(n, n) for n in second if names.get(n, n) in first and n not in apart}


def _axes(system: System) -> dict[str, tuple[str, ...]]:
    """Names of the axes of each parameter and buffer, as it is stored."""
    out = {}
    for t in (*system.params, *system.buffers):
        if isinstance(t, MapTensor):
            axes = (*t.map.each, *t.map.target, *t.map.source)
        else:
            axes = t.axes
        out[t.name] = tuple(a.name for a in axes)
    return out
