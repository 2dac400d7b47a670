"""Whether there is a next token to mix: models and caches go on from what came before."""

from __future__ import annotations

from dsfc.diagnostics.catalogue import NoStep
from dsfc.diagnostics.report import DiagnosticError
from dsfc.plan.ir import Plan
from dsfc.source import NOWHERE, Span
from dsfc.system.ir import System


def require_next_token(plan: Plan, system: System, span: Span | None, hint: str) -> None:
    """Refuses a mixer whose outputs need tokens to come.

    Args:
        plan: of the mixer.
        system: of the mixer, which says where a state stands in the text.
        span: where the text names the mixer.
        hint: what to do instead, in words.

    Raises:
        DiagnosticError: E-STEP, at a state that runs backwards in time.
    """
    if plan.backwards is None:
        return
    backward = {s.name for s in plan.states if s.backward}
    spans = (b.span for b in system.blocks if b.state in backward)
    place = next((s for s in spans if s is not None), span or NOWHERE)
    raise DiagnosticError((NoStep(place, mixer=plan.name, states=plan.backwards, hint=hint),))
