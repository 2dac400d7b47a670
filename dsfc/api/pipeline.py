"""The stages in order, from the path of a spec to the text of a module.

| stage    | function                    | in → out                        | package          |
|----------|-----------------------------|---------------------------------|------------------|
| parse    | `parse(source)`             | `Source` → `Spec`, the tree     | `dsfc/syntax`    |
| resolve  | `resolve(spec, …, library)` | `Spec` → `Mixer`, typed         | `dsfc/mixer`     |
| derive   | `derive(mixer)`             | `Mixer` → `System`              | `dsfc/derive`    |
| classify | `classify(system)`          | `System` → `Structure`          | `dsfc/structure` |
| plan     | `plan(system, structure)`   | → `Plan`, a graph of kernels    | `dsfc/plan`      |
| fuse     | `fuse(plan, computes)`      | `Plan` → `FusedPlan`            | `dsfc/fused`     |
| emit     | `emit(fused, backend)`      | `FusedPlan` → `ModuleText`      | `dsfc/emit`      |

The System is a value of `dsfc/system`, which `dsfc/transform` takes to other Systems (its adjoint
among them). What a spec claims is decided by `dsfc/claims`, from System and Structure. Running an
emitted module against its definition is `dsfc/validate`: no stage imports torch. A plan is always
verified, accounted for and tried against its System, a fused plan verified and tried against its
plan; with `DSFC_CHECK=1` in the environment the mixer and the System are verified too where they
are made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from dsfc.api.locate import Place, locate
from dsfc.api.stage import stage, verified
from dsfc.derive.derive import derive, refusals
from dsfc.diagnostics.catalogue import RecurrentOnly, WhichMixer
from dsfc.diagnostics.render import render_all
from dsfc.diagnostics.report import DiagnosticError, defined, nearest
from dsfc.emit import RUNTIMES
from dsfc.emit.backend import load_backend
from dsfc.emit.module import ModuleText, emit, identifiers
from dsfc.expr.declarations import Projection
from dsfc.fused.fuse import every_real_function, fuse
from dsfc.fused.ir import FusedPlan
from dsfc.fused.self_test import compare as compare_fused
from dsfc.layer_parts import LayerSignature
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.mixer.ir import Mixer
from dsfc.mixer.library import Library
from dsfc.mixer.projections import projected
from dsfc.mixer.resolve import resolve
from dsfc.mixer.sample import sample, small_sizes
from dsfc.mixer.undeclared import UndeclaredStates
from dsfc.mixer.verify import verify as verify_mixer
from dsfc.plan.accounting import settle
from dsfc.plan.build import plan
from dsfc.plan.heads import independent_heads
from dsfc.plan.ir import Plan
from dsfc.plan.next_token import require_next_token
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.self_test import LENGTH, Point, compare, compare_gauges, starts
from dsfc.plan.verify import verify as verify_plan
from dsfc.plan.whole_layer import WholeLayer, whole_layer
from dsfc.source import NOWHERE, Span
from dsfc.structure.classify import classify
from dsfc.structure.ir import Structure
from dsfc.structure.running_max import stabilised
from dsfc.syntax.ast import MixerUnit, Spec
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source
from dsfc.system.ir import System
from dsfc.system.traverse import arrays
from dsfc.system.verify import verify as verify_system

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dsfc.analysis.shown import ShownInfluence, ShownKernel, ShownSpectrum, Subject
    from dsfc.matrices.matrices import Matrices

    Arrays = Mapping[str, NDArray[Any]]

_POINTS = 4
"""How many points a trial of a plan takes where a mixer has no finite value at the first ones."""


@dataclass(frozen=True)
class SpecText:
    """A parsed spec text and the place it was read from.

    Attributes:
        place: the file.
        spec: its syntax tree.
        limits: bounds that every stage respects.
    """

    place: Place
    spec: Spec = field(repr=False)
    limits: Limits = field(default=DEFAULT_LIMITS, repr=False)

    @property
    def mixers(self) -> tuple[str, ...]:
        """Names of the mixers that the text defines, in order."""
        return tuple(u.name.text for u in self.spec.units if isinstance(u, MixerUnit))

    def compilation(self, mixer: str | None = None) -> Compilation:
        """Returns the way of one mixer through the stages.

        Args:
            mixer: its name; by default the one named like the file, or the only one.

        Raises:
            DiagnosticError: E-MIXER, where that does not say which.
        """
        return Compilation(self, self._chosen(mixer))

    def _chosen(self, mixer: str | None) -> str:
        names = self.mixers
        if mixer is None and self.place.file.stem in names:
            return self.place.file.stem
        if mixer is None and len(names) == 1:
            return names[0]
        if mixer in names:
            return mixer
        if not names:
            problem = "the text defines no mixer"
        elif mixer is None:
            problem = "the text defines several mixers and none is named like the file"
        else:
            problem = f"the text defines no mixer `{mixer}`"
        near = nearest(mixer, names) if mixer else None
        span = self.spec.span.source.span(0, 0)
        raise DiagnosticError(
            (WhichMixer(span, problem=problem, known=defined(names), nearest=near),)
        )


@dataclass(frozen=True)
class Compilation:
    """One mixer's way through the stages; each stage runs once, when its value is first read.

    Every value may raise `DiagnosticError`, which holds all that the stage found wrong; E-LIMIT if
    the stage takes longer, or more memory, than the limits of the text say.

    Attributes:
        text: the spec text.
        name: the mixer.
        in_layer: whether maps of its input are inputs, as its layer hands them in.
    """

    text: SpecText
    name: str
    in_layer: bool = False

    @property
    def spec(self) -> Spec:
        """The syntax tree of the whole text."""
        return self.text.spec

    @property
    def _span(self) -> Span | None:
        """Where the text names the mixer."""
        named = (u.name.span for u in self.spec.units if u.name.text == self.name)
        return next(named, None)

    @cached_property
    def mixer(self) -> Mixer:
        """The mixer: names bound, bases merged, shapes and fields inferred."""
        with self._stage("resolve"):
            if self.in_layer:
                return verified(self._projected[0], verify_mixer)
            return verified(resolve(self.spec, self.name, self.library), verify_mixer)

    @cached_property
    def _projected(self) -> tuple[Mixer, tuple[Projection, ...]]:
        """The mixer with maps of its input as inputs, and these maps."""
        return projected(replace(self, in_layer=False).mixer)

    @property
    def core(self) -> Compilation:
        """The mixer as a layer has it: linear maps of its input are inputs."""
        return replace(self, in_layer=True)

    @cached_property
    def library(self) -> Library:
        """Where names outside the text are looked up."""
        return Library(folder=self.text.place.file.parent, limits=self.text.limits)

    @cached_property
    def system(self) -> System:
        """Its Dynamical Systems Form.

        Raises:
            DiagnosticError: of a state that is not declared, with what the derivation refuses too.
        """
        try:
            mixer = self.mixer
        except UndeclaredStates as undeclared:
            with self._stage("derive"):
                also = refusals(undeclared.mixer)
            raise DiagnosticError((*undeclared.diagnostics, *also)) from None
        with self._stage("derive"):
            return verified(derive(mixer), verify_system)

    @cached_property
    def structure(self) -> Structure:
        """What kind of system it is."""
        system = self.system
        with self._stage("classify"):
            return classify(system)

    @cached_property
    def computed(self) -> System:
        """The System in the basis that kernels run in: with running maxima, where it needs any."""
        system = self.system
        with self._stage("plan"):
            stabilised_system = stabilised(system)
            if stabilised_system is system:
                return stabilised_system
            compare_gauges(system, verified(stabilised_system, verify_system), self._points())
            return stabilised_system

    @cached_property
    def plan(self) -> Plan:
        """The graph of kernels that computes it and its gradient."""
        system, structure = self.computed, self.structure
        with self._stage("plan"):
            if system is not self.system:
                structure = classify(system)
            whole = plan(system, structure, self.text.limits)
            verify_plan(whole)
            settle(whole, system)
            compare(whole, system, self._points())
            return whole

    @property
    def recurrent_only(self) -> RecurrentOnly | None:
        """What is said of a mixer that runs one token after another only; None where it does not.

        Raises:
            DiagnosticError: it has no plan.
        """
        why = self.plan.recurrent_only
        if why is None:
            return None
        kernels = (k for k in self.plan.kernels if isinstance(k, Recurrence))
        stepped = {s.state for k in kernels for s in k.states}
        places = [b.span for b in self.system.blocks if b.state in stepped]
        span = next((p for p in places if p is not None), self._span or NOWHERE)
        return RecurrentOnly(span, mixer=self.name, why=why)

    def _points(self) -> Iterator[Point]:
        """Draws arguments for a trial of the plan; inputs of every other point are positive."""
        system = self.system
        known = small_sizes(self.mixer, (axes for axes, _ in arrays(system)))
        for d in system.axes:
            known.setdefault(d.axis.name, known[d.axis.copy_of or d.axis.name])
        for seed in range(_POINTS):
            drawn = sample(self.mixer, known, seed, LENGTH)
            inputs = {n: abs(v) if seed % 2 else v for n, v in drawn.inputs.items()}
            yield Point(inputs, drawn.params, starts(system, known, seed), known)

    def _repr_markdown_(self) -> str:
        """Returns what a notebook shows: name, structure class and equations, or what is wrong."""
        try:
            system, structure = self.system, self.structure
        except DiagnosticError as e:
            return f"```text\n{render_all(e.diagnostics)}\n```"
        from dsfc.matrices.latex import display  # only a notebook pays for it

        doc = f", {escape(self.mixer.doc)}" if self.mixer.doc else ""
        return f"**{self.name}**{doc}: {structure.title} ({structure.label})\n\n{display(system)}"

    def matrices(
        self,
        gauge: str = "lowered",
        sizes: Mapping[str, int] | None = None,
        length: int | None = None,
    ) -> Matrices:
        """Returns Λ_i, B_i, C_i, D_i and Φ of the System as SymPy objects.

        Args:
            gauge: "lowered" (as stored) or "paper" (states divided by their normaliser).
            sizes: None for matrix expressions in Kronecker form, of symbolic size; else the size of
                each axis by name for explicit matrices (left out: 1 for heads, 2 for others).
            length: number of tokens; only for explicit matrices that read the future.

        Raises:
            ValueError: no such gauge or axis, or a size below 1.
        """
        # SymPy takes a quarter of a second to import; only who asks for matrices pays for it.
        from dsfc.matrices.matrices import matrices

        return matrices(self.system, gauge, sizes, length)

    def spectrum(
        self,
        sizes: Mapping[str, int] | None = None,
        tokens: int | None = None,
        params: Arrays | None = None,
        inputs: Arrays | None = None,
    ) -> ShownSpectrum:
        """Returns the eigenvalues of Λ over tokens and by head; a notebook shows pictures.

        Args:
            sizes: by name of the axis; small ones that fit them where left out.
            tokens: L; 64 by default, or as many as `inputs` have.
            params: parameters and buffers by name, as they are stored; as the spec starts them
                where left out.
            inputs: `[L, *axes]` by name; standard normal ones where left out.

        Raises:
            DiagnosticError: E-DIM, the sizes do not fit the mixer.
        """
        from dsfc.analysis.shown import spectrum

        return spectrum(self._at(sizes, tokens, params, inputs))

    def kernel(
        self,
        sizes: Mapping[str, int] | None = None,
        tokens: int | None = None,
        params: Arrays | None = None,
        inputs: Arrays | None = None,
    ) -> ShownKernel:
        """Returns the kernel Φ of y = Φ u at given tokens as numbers, with its memory.

        Args:
            sizes: as for `spectrum`.
            tokens: as for `spectrum`.
            params: as for `spectrum`.
            inputs: as for `spectrum`.

        Raises:
            DiagnosticError: E-DIM, the sizes do not fit the mixer.
            ValueError: it has no Φ, or too large a one.
        """
        from dsfc.analysis.shown import phi

        return phi(self._at(sizes, tokens, params, inputs))

    def influence(
        self,
        sizes: Mapping[str, int] | None = None,
        tokens: int | None = None,
        params: Arrays | None = None,
        inputs: Arrays | None = None,
    ) -> ShownInfluence:
        """Returns ‖∂y_t / ∂u_s‖ of all tokens t and s, by the adjoint of the System.

        Args:
            sizes: as for `spectrum`.
            tokens: as for `spectrum`.
            params: as for `spectrum`.
            inputs: as for `spectrum`.

        Raises:
            DiagnosticError: E-DIM, the sizes do not fit the mixer.
            ValueError: it has no derivative, or needs too much room.
        """
        from dsfc.analysis.shown import influences

        return influences(self._at(sizes, tokens, params, inputs))

    def _at(
        self,
        sizes: Mapping[str, int] | None,
        tokens: int | None,
        params: Arrays | None,
        inputs: Arrays | None,
    ) -> Subject:
        """The mixer at sizes, parameters and tokens."""
        from dsfc.analysis.shown import at  # charts and analyses are for who asks for them

        return at(self.mixer, self.system, self.structure, sizes, tokens, params, inputs)

    def fused(self, backend: str | None = None) -> FusedPlan:
        """Returns the plan with what the kernels of its scans compute besides their recurrences.

        Args:
            backend: whose kernels; by default those of a target that computes every real function.

        Raises:
            DiagnosticError: E-BACKEND.
        """
        if backend not in self._fused:
            planned = self.plan
            with self._stage("fuse"):
                loaded = None if backend is None else load_backend(backend)
                fused = fuse(planned, loaded.computes if loaded else every_real_function)
                compare_fused(fused, self._points())
            self._fused[backend] = fused
        return self._fused[backend]

    @cached_property
    def _fused(self) -> dict[str | None, FusedPlan]:
        """The fused plans made so far, by backend."""
        return {}

    def module(
        self,
        backend: str = "torch",
        runtime: str = "inside",
        layer: bool = False,
        context_parallel: bool = False,
        tensor_parallel: bool = False,
        signature: str = LayerSignature.DSFC,
    ) -> ModuleText:
        """Returns the text of a module.

        Args:
            backend: which backend prints it.
            runtime: where the functions stand that all modules share; one of `RUNTIMES`.
            layer: whether it holds a layer of a model around the mixer, `[B, L, d]` to `[B, L, d]`.
            context_parallel: whether processes may share a sequence: `forward` takes their group.
            tensor_parallel: whether processes may share out the heads of the layer: it gives a plan
                for `torch.distributed.tensor.parallel.parallelize_module`.
            signature: how the layer is called: a `LayerSignature`.

        Raises:
            DiagnosticError: E-BACKEND, E-LAYER, E-TENSOR-PARALLEL or E-STEP.
            ValueError: `runtime` is none of `RUNTIMES`, `tensor_parallel` or the signature of fla
                is asked for without a layer, or that and `context_parallel` together.
        """
        called = LayerSignature(signature)
        if tensor_parallel and not layer:
            raise ValueError("tensor parallelism needs a layer: processes add up its outputs")
        if called is LayerSignature.FLA and (context_parallel or not layer):
            raise ValueError("the signature of fla is of a layer, and takes no group of processes")
        if runtime not in RUNTIMES:
            raise ValueError(f"runtime is {' or '.join(map(repr, RUNTIMES))}, not {runtime!r}")
        inside = self.core if layer else self
        fused = inside.fused(backend)
        with self._stage("emit"):
            source, beside = self.text.place.file.name, runtime == "beside"
            whole = inside._layer(tensor_parallel, called) if layer else None
            papers = self.mixer.papers
            return emit(fused, backend, source, beside, papers, whole, context_parallel)

    def _layer(self, tensor_parallel: bool, signature: LayerSignature) -> WholeLayer:
        """The layer around the mixer whose inputs are maps."""
        mixer, maps = self._projected
        own = replace(self, in_layer=False).mixer.inputs[0]
        whole = whole_layer(self.plan, own, maps, mixer.layer, self._span)
        if signature is LayerSignature.FLA:
            hint = "without --signature fla a layer mixes whole sequences, and keeps no cache"
            require_next_token(self.plan, self.system, self._span, hint)
            whole = replace(whole, signature=signature)
        if not tensor_parallel:
            return whole
        return replace(whole, heads=independent_heads(self.plan, whole.tensors, self._span))

    def identifiers(self, backend: str = "torch") -> Callable[[str], str]:
        """Returns the function that gives the identifier that a name of the spec has in its module.

        Args:
            backend: which backend prints the module.
        """
        return identifiers(self.plan, backend)

    def _stage(self, name: str) -> AbstractContextManager[None]:
        return stage(name, self.name, self._span, self.text.limits)


def read(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> SpecText:
    """Returns the parsed text of a file.

    Args:
        path: a spec file, or the bare name of a shipped spec, such as `s6`.
        limits: bounds on size, depth, number, and time and memory of each stage; going over one is
            the diagnostic E-LIMIT.

    Raises:
        DiagnosticError: E-FILE, or all mistakes in the writing of the text.
    """
    place = locate(path)
    source = read_source(place.file, limits=limits)
    with stage("parse", place.file.name, source.span(0, 0), limits):
        return SpecText(place, parse(source, limits), limits)


def load(
    path: str | os.PathLike[str], mixer: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Compilation:
    """Returns a mixer of a spec: its `.mixer`, `.system`, `.structure`, `.plan` and `.module()`.

    Args:
        path: a spec file, or the bare name of a shipped spec, such as `s6`.
        mixer: its name; by default the one named like the file, or the only one in it.
        limits: bounds on size, depth, number, and time and memory of each stage.

    Raises:
        DiagnosticError: with every problem found up to here; later stages raise when asked for.
    """
    return read(path, limits).compilation(mixer)
