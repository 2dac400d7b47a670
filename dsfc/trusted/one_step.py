"""One token of one system as sums of terms with indices, along one axis.

Over all tokens the terms of a state that an update couples (the delta rule) have ever more indices;
over one token, with the states before it as given, they have few.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.tree import Ref
from dsfc.system.ir import Stage, System, Term
from dsfc.trusted.claim import Claim
from dsfc.trusted.index_form import NO_TERMS, Form, NoCount
from dsfc.trusted.index_values import PRESENT
from dsfc.trusted.indices import Indices


def nothing(system: System) -> dict[str, Form]:
    """Returns the states before the first token: 0, which has no terms."""
    return {
        b.state: Form(carriers=dict.fromkeys(b.axes, NO_TERMS), stateful=True)
        for b in system.blocks
    }


def entries(system: System) -> dict[str, Form]:
    """Returns states of which the entries are generators: nothing is known to make them 0."""
    return {b.state: Form(stateful=True) for b in system.blocks}


class OneStep(Indices):
    """One system's terms at one token, along one axis and its copies; see `Indices`."""

    def __init__(
        self,
        claim: Claim,
        second: int,
        entries: bool,
        kinds: Mapping[str, str],
        kind: str,
        old: Mapping[str, Form],
    ) -> None:
        """Starts with the terms of the states before the token."""
        super().__init__(claim, bool(second), entries, kinds, kind)
        self.old = old

    def after(self, state: str) -> Form:
        """Returns the terms of a state after the token.

        Raises:
            NoCount: they have no bounded number of indices, or there is no such state.
        """
        if state not in self.blocks:
            raise NoCount(f"`{state}` is kept beside the states")
        return self._state(state)

    def _ref(self, e: Ref) -> Form:
        form = super()._ref(e)
        if form.stateful and e.at not in PRESENT:
            raise NoCount(f"`{e.name}`, made of states, is read at another token")
        return form

    def _read_state(self, t: Term) -> Form:
        return self.old[t.source] if t.lag == 1 else self._state(t.source)

    def _stage(self, stage: Stage) -> None:
        after = self._updated(stage, {b.state: self.old[b.state] for b in stage.blocks})
        if any(f.divided for f in after.values()):
            raise NoCount("an update divides by a value of the state")
        self._states.update(after)
