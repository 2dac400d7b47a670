"""A mixer and all that a report says of it, computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dsfc.analysis.accounts import Account, account
from dsfc.analysis.analysis import TOKENS, Analyses, analyse
from dsfc.analysis.point import LAYER, Array, fitting_sizes, start
from dsfc.api.coverage import Coverage, on_targets
from dsfc.api.decide import claims
from dsfc.api.pipeline import Compilation
from dsfc.claims.verdict import Decided
from dsfc.current_search import unheard
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.backend import load_backend

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Compiled:
    """A mixer that compiles, with all that its report needs.

    Attributes:
        modes: its legal modes, and `step` where tokens can come one by one.
        account: what it costs.
        coverage: which calls run in kernels, by the title of the target.
        core: the modes of the emitted module, as text.
    """

    modes: tuple[str, ...]
    account: Account
    coverage: Mapping[str, Coverage]
    core: str


@dataclass(frozen=True)
class Subject:
    """A mixer and what a report says of it.

    Attributes:
        compilation: its way through the stages.
        start: the analyses with the parameters that its spec starts from.
        trained: those with given parameters; None where none are given.
        source: where parameters and tokens are from, in words.
        claims: its claims with verdicts.
        compiled: of a mixer that compiles, else the reason why it does not.
        relatives: what is known of other mixers, a statement each; None where nobody asked.
    """

    compilation: Compilation
    start: Analyses
    trained: Analyses | None
    source: str
    claims: tuple[Decided, ...]
    compiled: Compiled | str
    relatives: tuple[str, ...] | None

    @property
    def name(self) -> str:
        """Name of the mixer."""
        return self.compilation.name

    @property
    def analyses(self) -> Mapping[str, Analyses]:
        """The analyses by what the parameters are."""
        if self.trained is None:
            return {"at the start": self.start}
        return {"at the start": self.start, "trained": self.trained}


@dataclass(frozen=True)
class Given:
    """The module, weights and inputs that a user gives beside a spec.

    Attributes:
        sizes: sizes by name of the axis.
        params: trained parameters and buffers by name, tensors `[*axes]`, maps
            `[*each, *target, *source]`; None for those of the start alone.
        inputs: tokens by name of the input, `[L, *axes]`; None for standard normal ones.
        source: where parameters and tokens are from, in words; empty for nowhere.
        relatives: statements about other mixers; None where nobody asked.
        tokens: length of the sequences, in tokens.
    """

    sizes: Mapping[str, int]
    params: Mapping[str, Array] | None = None
    inputs: Mapping[str, Array] | None = None
    source: str = ""
    relatives: tuple[str, ...] | None = None
    tokens: int = TOKENS


def subject(compilation: Compilation, extra: Given, tell: Tell = unheard) -> Subject:
    """Returns a mixer with all that a report says of it.

    Args:
        compilation: its way through the stages.
        extra: what a user gives beside the spec.
        tell: is told what is computed next.

    Raises:
        DiagnosticError: it does not derive, or the sizes do not fit it.
    """
    mixer, system, structure = compilation.mixer, compilation.system, compilation.structure
    point = start(mixer, system, extra.tokens, extra.sizes)
    if extra.inputs is not None:
        point = replace(point, inputs=extra.inputs)
    begun = analyse(mixer, system, structure, point, tell)
    trained = None
    if extra.params is not None:
        trained = analyse(mixer, system, structure, replace(point, params=extra.params), tell)
    tell("claims")
    decided = claims(compilation)
    tell("costs")
    return Subject(
        compilation,
        begun,
        trained,
        extra.source,
        decided,
        _compiled(compilation, extra.sizes),
        extra.relatives,
    )


def _compiled(compilation: Compilation, chosen: Mapping[str, int]) -> Compiled | str:
    try:
        plan = compilation.plan
        text = compilation.module(runtime="beside").text
    except DiagnosticError as e:
        return "; ".join(d.message for d in e.diagnostics)
    sizes = fitting_sizes(compilation.mixer, compilation.system, chosen, LAYER)
    costs = load_backend("torch").modes(compilation.fused())
    return Compiled(
        (*(m.name for m in plan.modes if m.legal), *["step"] * plan.causal),
        account(compilation.system, plan, costs, sizes),
        on_targets(compilation),
        core(text),
    )


def core(text: str) -> str:
    """Returns the modes of an emitted module: its sections that begin with `# --- mode: `."""
    sections = text.split("\n# --- ")
    return "\n".join(f"# --- {s}" for s in sections if s.startswith("mode: ")).rstrip() + "\n"
