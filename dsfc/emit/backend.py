"""What a backend is, and loading one by name."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dsfc.diagnostics.catalogue import UnknownBackend
from dsfc.diagnostics.report import DiagnosticError, nearest
from dsfc.emit.audit import Runtime
from dsfc.expr.tree import Expr, Prim
from dsfc.fused.coverage import ScanCoverage
from dsfc.fused.ir import FusedPlan
from dsfc.source import NOWHERE

if TYPE_CHECKING:
    from dsfc.kernel_ir.ir import Kernel
    from dsfc.plan.whole_layer import WholeLayer


@dataclass(frozen=True, slots=True)
class Identity:
    """What a module says of its own origin.

    Attributes:
        spec: sha256 of the mixer's plan, as hexadecimal text.
        version: of dsfc.
        source: file name of the spec, without folders.
        stem: what the namespaces of the mixer's modules begin with.
        papers: that the spec names, each in a line.
    """

    spec: str
    version: str
    source: str
    stem: str
    papers: tuple[str, ...] = ()

    def namespace(self, text: str) -> str:
        """Returns the namespace of the operators of a module.

        Args:
            text: of the module, without the line that names the namespace.
        """
        return self.stem + hashlib.sha256(text.encode()).hexdigest()[:8]


class Fault(Protocol):
    """What some versions of a backend's compiler do wrong on some devices."""

    @property
    def first(self) -> str:
        """The first version that is known to have it."""

    @property
    def fixed(self) -> str:
        """The first version without it; empty where none is known."""

    @property
    def platform(self) -> str:
        """`cuda` or `hip`."""

    @property
    def architectures(self) -> tuple[int, ...]:
        """Those it was seen on, as 90 for a capability of 9.0."""

    @property
    def what(self) -> str:
        """What happens."""

    @property
    def source(self) -> str:
        """Who found it."""


class Probe(Protocol):
    """A question about a tool that the modules of a backend run."""

    @property
    def what(self) -> str:
        """The tool."""

    @property
    def program(self) -> str:
        """Python that prints JSON: `outcome` (ok, missing or fault) and `figure`, a line."""


class ModeCost(Protocol):
    """The cost of a mode of a plan as torch's operators, in expressions over sizes."""

    @property
    def mode(self) -> str:
        """Name of the mode."""

    @property
    def operations(self) -> Expr:
        """In products, per token and batch entry; a multiply-add is two."""

    @property
    def words(self) -> Expr:
        """Numbers read and written, per token and batch entry."""


class Backend(Protocol):
    """Prints modules.

    Attributes:
        name: as in `--backend`.
        reserved: words that a spec's names must not collide with in the emitted text.
        faults: what is known of versions of its compiler.
        probes: questions to a machine about the tools that its modules run.
        needs: device → what of `dsfc doctor` its kernels need there; empty without kernels.
    """

    name: str
    reserved: frozenset[str]
    faults: tuple[Fault, ...]
    probes: tuple[Probe, ...]
    needs: Mapping[str, tuple[str, ...]]

    @property
    def computes(self) -> Callable[[Prim], bool] | None:
        """Whether its kernels compute a primitive; None where they compute recurrences alone."""

    @property
    def costs(self) -> Callable[[FusedPlan], str]:
        """Returns what the kernels of a plan cost, as text; empty for a backend without kernels."""

    @property
    def modes(self) -> Callable[[FusedPlan], tuple[ModeCost, ...]]:
        """Returns what each legal mode of a plan costs as torch's operators."""

    @property
    def kernels(self) -> Callable[[FusedPlan], tuple[Kernel, ...]]:
        """Returns the kernels of a plan that are of the kernel IR; empty where there are none."""

    @property
    def coverage(self) -> Callable[[FusedPlan], tuple[ScanCoverage, ...]]:
        """Returns which calls of each scan run in kernels; empty for a backend without kernels."""

    def render(
        self,
        fused: FusedPlan,
        identity: Identity,
        identifier: Callable[[str], str],
        class_name: str,
        function_name: str,
        beside: bool = False,
        whole: WholeLayer | None = None,
    ) -> tuple[str, str]:
        """Returns the module's text, without the lines that state its origin, and its namespace.

        The namespace is made of all other text, so that the operators of two texts are apart.

        Args:
            fused: the plan, with what kernels compute besides their recurrences.
            identity: what the module says of its origin.
            identifier: name of a spec → its name in the text; injective, and never a word of
                `reserved`, `class_name` or `function_name`.
            class_name: of the `nn.Module`.
            function_name: of the functional form.
            beside: whether the runtime is imported from `runtime_file`; else the text holds it.
            whole: the layer to print beside the mixer; None for the mixer alone.
        """

    def context_parallel(self) -> Backend:
        """Returns the backend of modules whose sequences processes may share."""

    def runtime(self, fused: FusedPlan) -> Runtime | None:
        """Returns the section that a plan's module holds as it stands, or finds beside it, if any.

        Args:
            fused: the plan, with what kernels compute besides their recurrences.
        """

    def runtime_file(self, fused: FusedPlan) -> tuple[str, str]:
        """Returns the name and the text of the file with the runtime of modules beside it.

        The name holds a hash of the text: modules of several versions may share a folder.

        Args:
            fused: the plan of a module, with what kernels compute besides their recurrences.
        """


def backend_names() -> tuple[str, ...]:
    """Returns the names of the installed backends, sorted."""
    package = importlib.import_module("dsfc.backends")
    packages = {m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg}
    return tuple(sorted(packages - {"shared"}))


def load_backend(name: str) -> Backend:
    """Returns the backend of that name.

    Raises:
        DiagnosticError: E-BACKEND, naming the nearest one there is.
    """
    names = backend_names()
    if name not in names:
        near = nearest(name, names)
        known = ", ".join(names)
        problem = UnknownBackend(span=NOWHERE, name=name, known=known, nearest=near)
        raise DiagnosticError((problem,))
    backend: Backend = importlib.import_module(f"dsfc.backends.{name}").BACKEND
    return backend
