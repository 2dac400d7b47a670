"""Collects the diagnostics, claims and notes of one spec.

`dsfc check` prints them and the language server shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsfc.api.decide import claims as decided
from dsfc.api.notes import notes
from dsfc.api.pipeline import SpecText
from dsfc.claims.verdict import Decided, Refuted, Unknown
from dsfc.current_search import unheard
from dsfc.diagnostics.catalogue import (
    ClaimNote,
    ClaimOpen,
    ClaimRefuted,
    NoOutput,
    RecurrentOnly,
    WhichMixer,
)
from dsfc.diagnostics.report import Diagnostic, DiagnosticError, defined, in_order
from dsfc.source import NOWHERE

_BASE = "it has no output: define `y = …`, or extend it in another mixer"


@dataclass(frozen=True, slots=True)
class CheckedMixer:
    """The structure class, the claims and the refusal of one mixer.

    Attributes:
        name: the mixer.
        title: its structure class; None for a base without output.
        refusal: why this version cannot compile it, or None.
        slow: why it runs one token after another only, or None.
        claims: its claims with their verdicts.
    """

    name: str
    title: str | None
    refusal: str | None
    slow: str | None = None
    claims: tuple[Decided, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """The mixers and the diagnostics of one spec.

    Attributes:
        spec: as the user gave it.
        source: the name that its diagnostics use.
        mixers: those that derive.
        diagnostics: errors and notes, in the order of the text.
    """

    spec: str
    source: str
    mixers: tuple[CheckedMixer, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> int:
        """How many of the diagnostics are errors."""
        return sum(d.severity == "error" for d in self.diagnostics)


def checked(
    text: SpecText,
    spec: str,
    strict: bool = False,
    require_parallel: bool = False,
    tell: Callable[[Checked], None] = unheard,
    only: str | None = None,
) -> Checked:
    """Types, derives and classifies the mixers of a text, and decides their claims.

    Args:
        text: the text.
        spec: the name that the user gave.
        strict: whether a claim that is not decided is an error.
        require_parallel: whether a mixer that runs one token after another only is an error.
        tell: takes what is known whenever one more claim is decided.
        only: the mixer that is checked; all of the text by default.

    Raises:
        DiagnosticError: E-MIXER, the text has no mixer of that name.
    """
    if not text.spec.units:
        nothing = WhichMixer(text.spec.span, problem="the text defines no mixer", known=defined(()))
        return Checked(spec, spec, (), (nothing,))
    mixers: list[CheckedMixer] = []
    diagnostics: list[Diagnostic] = []
    source = text.spec.span.source.name

    def so_far(mixer: CheckedMixer) -> None:
        said = in_order((*diagnostics, *_claims(mixer.claims, strict)))
        tell(Checked(spec, source, (*mixers, mixer), said))

    names = text.mixers if only is None else (text.compilation(only).name,)
    for name in names:
        mixer, said = _mixer(text, name, strict, require_parallel, so_far)
        diagnostics += said
        if mixer is not None:
            mixers.append(mixer)
    return Checked(spec, source, tuple(mixers), in_order(diagnostics))


def _mixer(
    text: SpecText,
    name: str,
    strict: bool,
    require_parallel: bool,
    so_far: Callable[[CheckedMixer], None],
) -> tuple[CheckedMixer | None, tuple[Diagnostic, ...]]:
    """Returns one mixer of a text, None if it does not derive, and its diagnostics."""
    compilation = text.compilation(name)
    try:
        title = compilation.structure.title
        claims = decided(
            compilation, tell=lambda known: so_far(CheckedMixer(name, title, None, None, known))
        )
    except DiagnosticError as e:
        if all(isinstance(d, NoOutput) for d in e.diagnostics):
            return CheckedMixer(name, None, _BASE), ()
        return None, e.diagnostics
    refusal: str | None = None
    slow: RecurrentOnly | None = None
    try:
        slow = compilation.recurrent_only
    except DiagnosticError as e:
        refusal = "; ".join(d.message for d in e.diagnostics)
    said = (*_claims(claims, strict), *notes(compilation))
    if slow is not None and require_parallel:
        said = (*said, slow)
    return CheckedMixer(name, title, refusal, None if slow is None else slow.why, claims), said


def _claims(claims: tuple[Decided, ...], strict: bool) -> Iterator[Diagnostic]:
    """Yields an error for each refuted claim and a note for each undecided one."""
    for claim in claims:
        span, text = claim.statement.span or NOWHERE, claim.statement.text
        match claim.verdict:
            case Refuted(shown, point):
                hint = f"the point: {point}" if point else None
                yield ClaimRefuted(span, claim=text, witness=shown, hint=hint)
            case Unknown(obstacle) if strict:
                yield ClaimOpen(span, claim=text, obstacle=obstacle)
            case Unknown(obstacle):
                yield ClaimNote(span, claim=text, obstacle=obstacle)
