"""One system as sums of terms with indices, along one axis: see `small_model_bound`."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.system.ir import (
    Block,
    Cast,
    Direct,
    Drive,
    Gate,
    GuardKind,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Sum,
    SumOver,
    Term,
)
from dsfc.trusted.claim import Claim
from dsfc.trusted.index_form import NO_TERMS, NONE, Form, NoCount, both, plus, times
from dsfc.trusted.index_values import GROWTH, LINEAR, Values


class Indices(Values):
    """One system's terms along one axis and its copies; see `Values`."""

    def __init__(
        self, claim: Claim, second: bool, entries: bool, kinds: Mapping[str, str], kind: str
    ) -> None:
        super().__init__(claim, second, entries, kinds, kind)
        self.blocks = {b.state: b for b in self.system.blocks}
        self._states: dict[str, Form] = {}

    def output(self) -> Form:
        """Returns the terms of the output."""
        return self._read(self.system.outputs[0].value)

    # --- states -----------------------------------------------------------------------------------

    def _state(self, name: str) -> Form:
        if name not in self._states:
            stage = next(s for s in self.system.stages if any(b.state == name for b in s.blocks))
            self._stage(stage)
        return self._states[name]

    def _read_state(self, t: Term) -> Form:
        """The terms of a state that is read, at whatever token."""
        return self._state(t.source)

    def _stage(self, stage: Stage) -> None:
        """The terms of states at any token: nothing before the first, then what the update adds."""
        forms = {
            b.state: Form(carriers=dict.fromkeys(b.axes, NO_TERMS), stateful=True)
            for b in stage.blocks
        }
        while all(f.summed <= GROWTH for f in forms.values()):
            # What earlier rounds need is met by more than there is: no less is true.
            after = self._updated(stage, forms)
            joined = {
                name: Form(
                    max(forms[name].summed, after[name].summed),
                    carriers={
                        a: both(hits, after[name].hits(a))
                        for a, hits in forms[name].carriers.items()
                    },
                    stateful=True,
                )
                for name in forms
            }
            if any(f.divided for f in after.values()):
                raise NoCount("an update divides by a value of the state")
            if joined == forms:
                break
            forms = joined
        else:
            raise NoCount("the update of a state couples its entries")
        self._states.update(forms)

    def _updated(self, stage: Stage, forms: Mapping[str, Form]) -> dict[str, Form]:
        current = dict(forms)
        for position in range(max(len(b.chain) for b in stage.blocks)):
            current = {
                b.state: self._factor(b, position, current)
                if position < len(b.chain)
                else current[b.state]
                for b in stage.blocks
            }
        return current

    def _factor(self, block: Block, position: int, current: Mapping[str, Form]) -> Form:
        factor = block.chain[position]
        parts = [self._term(t, current[t.source]) for t in factor.terms]
        parts += [self._drive(d) for d in factor.drives]
        return plus(*parts) if parts else Form(carriers=current[block.state].carriers)

    def _drive(self, d: Drive) -> Form:
        return times(self.value(d.key), self.value(d.stream))

    def _term(self, t: Term, source: Form) -> Form:
        """The terms of after(left · Σ_over(right · matrix(state)))."""
        form = self._applied(t.matrix, source) if t.matrix else source
        form = times(self.value(t.right), form)
        form = self._summed(form, t.over, NONE)
        form = times(self.value(t.left), form)
        return self._applied(t.after, form) if t.after else form

    # --- read-outs --------------------------------------------------------------------------------

    def _read(self, r: ReadOut) -> Form:
        match r:
            case Read(terms, direct):
                parts = [self._term(t, self._read_state(t)) for t in terms]
                if direct is not None:
                    parts.append(self.value(direct))
                return plus(*parts)
            case Direct(value):
                return self.value(value)
            case Gate(factor, arg):
                return times(self.value(factor), self._read(arg))
            case Product(args):
                return times(*(self._read(a) for a in args))
            case Sum(args):
                return plus(*(self._read(a) for a in args))
            case Ratio():
                return self._ratio(r)
            case Cast(arg=arg):
                return self._linear("re", [self._read(arg)])
            case MapOut(by, arg):
                return self._applied(by, self._read(arg))
            case SumOver(axis, arg):
                return self._summed(self._read(arg), (axis,), NONE)
            case Post(name=name, args=args, axis=None) if name in LINEAR:
                return self._linear(name, [self._read(a) for a in args])
            case Post(name=name):
                raise NoCount(f"`{name}` is applied to values of states")
        raise NoCount("a sum over the past has no finite state")

    def _ratio(self, r: Ratio) -> Form:
        den = self._read(r.den)
        if r.guard.kind is GuardKind.MAX_ABS:
            raise NoCount("`max` is applied to values of states")
        if r.guard.kind is GuardKind.ADD and r.guard.constant is not None:
            den = plus(den, self.value(r.guard.constant))
        return self._quotient(self._read(r.num), den, None)
