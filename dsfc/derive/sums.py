"""L1, sums over time become states.

Each sum over the past is replaced by reads of new states, innermost first:

    Σ_{j ≤ i} Σ_t F_t(i) G_t(j) λ_t^(i−j)   →   Σ_t F_t(i) S_t[i],   S_t = λ_t S_t[i−1] + G_t

Strict sums read the state before its update. Terms with equal drive, decay and direction share a
state. A sum that does not separate stays a sum: a cache of all tokens.
"""

from __future__ import annotations

from dataclasses import replace

from dsfc.derive.model import Equation, Model
from dsfc.derive.separated import RunFactor, Separated, separated_sum, sum_over
from dsfc.derive.separation import NotSeparable, Separator, integer_power
from dsfc.derive.times import Times, at_index, retimed
from dsfc.expr.build import ONE, add, mul, ones, prim, rewrite, shift, walk
from dsfc.expr.max_plus import RunningMaximum
from dsfc.expr.over_time import Past, Relation
from dsfc.expr.reserved_names import TIME
from dsfc.expr.text import text
from dsfc.expr.tree import Bound, Div, Expr, Field, Map, Now, Ref, Time
from dsfc.mixer.ir import Flow

_Key = tuple[Expr, Expr, bool]
"""(drive, decay, backward): what states are shared by."""


def separate(model: Model) -> None:
    """Replaces every sum over time in the model that separates; see the module docstring."""
    worker = _Sums(model)
    for name, d in list(model.definitions.items()):
        value = worker.replaced(d.value, name)
        model.definitions[name] = replace(d, value=value)
    for name, s in list(model.states.items()):
        if not s.declared:
            continue
        update = None if s.update is None else worker.replaced(s.update, name)
        flow = s.flow
        if flow is not None:
            drift, step = (worker.replaced(e, name) for e in (flow.drift, flow.step))
            flow = Flow(drift, flow.rule, step)
        model.states[name] = replace(s, update=update, flow=flow)
    for name, s in model.maxima.items():
        assert s.maximum is not None
        decay, weight = (worker.replaced(e, name) for e in s.body)
        model.maxima[name] = replace(s, maximum=RunningMaximum(decay, weight))
    model.forget()


class _Sums:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.times = Times()
        self.known: dict[_Key, Equation] = {}

    def replaced(self, value: Expr, where: str) -> Expr:
        """Returns the value of the definition `where` with its sums replaced."""
        if not any(isinstance(e, Past) for e in walk(value)):
            return value
        below = {e for d in walk(value) if isinstance(d, Div) for e in walk(d.den)}

        def rule(e: Expr) -> Expr | None:
            return self._sum(e, where, "z" if e in below else "S") if isinstance(e, Past) else None

        return rewrite(value, rule)

    def _sum(self, past: Past, where: str, wish: str) -> Expr | None:
        try:
            terms = Separator(past, self.model, self.times).terms(past.body)
            terms_read = [self._read(t, past, where, wish) for t in terms]
        except NotSeparable as problem:
            if isinstance(past.body, Map):
                return self._mapped(past, past.body, where, wish)
            why = problem.why or f"`{text(problem.culprit)}` does not separate"
            if problem.why:
                why = f"{problem.why} in `{text(problem.culprit)}`"
            return self._kept(past, where, why)
        names = sorted({r.name for v in terms_read for r in _states(v, self.model)})
        self.model.note(
            "L1 separate", f"`{text(past)}` reads {', '.join(names)}", self.model.span_of(where)
        )
        return separated_sum(terms_read)

    def _mapped(self, past: Past, body: Map, where: str, wish: str) -> Expr:
        """The sum of a linear map's values is the map's value of the sum."""
        inner = Past(past.var, past.relation, body.arg, past.outer, past.lag)
        summed = self._sum(inner, where, wish)
        return Map(body.map, inner if summed is None else summed)

    def _kept(self, past: Past, where: str, why: str) -> Expr | None:
        """A sum that stays; one over the tokens before a summed index gets a name of its own."""
        self.model.note("L1 cache", f"`{text(past)}`: {why}", self.model.span_of(where))
        if past.outer is None or self.times.free(past) != {past.outer}:
            self.model.why[past] = why
            return None
        body = retimed(past.body, past.outer, Now)
        alone = Past(past.var, past.relation, body, None, 0)
        self.model.why[alone] = why
        name = self.model.define(f"{where}_sum", alone)
        return Ref(name, alone.axes, alone.field, Time.STATE, Bound(past.outer, past.lag))

    # --- one term ---------------------------------------------------------------------------------

    def _read(self, term: Separated, past: Past, where: str, wish: str) -> Expr:
        """Makes (or finds) the state of a term and returns the value that replaces the term."""
        backward = past.relation in (Relation.FROM, Relation.AFTER)
        strict = {Relation.BEFORE: 1, Relation.AFTER: -1}.get(past.relation, 0)
        lag = past.lag + strict
        then, now = term.then, term.now
        decay: Expr = ONE
        # The distance from the index that the state is read at, instead of from the outer one.
        moved = -lag if backward else lag
        for x in term.lags:
            decay = mul(decay, x.base)
            now = mul(now, integer_power(x.base, x.shift + moved))
        for r in term.runs:
            factor, early, late = self._run(r, lag, past, backward)
            decay, now, then = mul(decay, factor), mul(now, early), mul(then, late)
        drive = retimed(then, past.var, Now)
        state = self._state(drive, decay, backward, where, wish)
        value = mul(now, state.ref(at_index(past.outer, lag)))
        for axis in sorted(term.over):
            value = sum_over(axis, value)
        return prim(term.part.value.lower(), value) if term.part else value

    def _run(self, run: RunFactor, lag: int, past: Past, backward: bool) -> tuple[Expr, Expr, Expr]:
        """Returns the decay of a run, and the factors that its ends leave at i and at j."""
        outer, here = past.outer or TIME, past.var
        if backward and run.then_lag == 1:
            # A state that decays by its own token's factor has those from there to before j.
            if run.now_lag <= lag:
                raise NotSeparable(run.arg, "the bounds of the running product leave the sum's")
            at_outer = mul(*(self._at(run.arg, outer, k) for k in range(lag + 1, run.now_lag)))
            return run.arg, at_outer, ONE
        if backward:
            if run.then_lag or run.now_lag < lag:
                raise NotSeparable(run.arg, "the bounds of the running product leave the sum's")
            ends = range(lag, run.now_lag)
            decay = self._later(run.arg)
        else:
            if run.then_lag < 0 or run.now_lag > lag:
                raise NotSeparable(run.arg, "the bounds of the running product leave the sum's")
            ends = range(run.now_lag, lag)
            decay = run.arg
        at_outer = mul(*(self._at(run.arg, outer, k) for k in ends))
        at_summed = mul(*(self._at(run.arg, here, k) for k in range(run.then_lag)))
        return decay, at_outer, at_summed

    def _at(self, arg: Expr, index: str, lag: int) -> Expr:
        # A factor at a token before the first is the expression with its names at 0, as anywhere.
        value = shift(arg, lag)
        return retimed(value, TIME, lambda k: at_index(None if index == TIME else index, k))

    def _later(self, arg: Expr) -> Expr:
        """The factor of a run one token later: the decay of a state that runs backwards.

        A name of its own makes it 0 after the end of the sequence, where nothing is before it.
        """
        if not self.times.free(arg):
            return arg
        if isinstance(arg, Ref):
            return shift(arg, -1)
        name = self.model.define("decay", arg)
        return Ref(name, arg.axes, arg.field, arg.time, Now(-1))

    def _state(self, drive: Expr, decay: Expr, backward: bool, where: str, wish: str) -> Equation:
        key = (drive, decay, backward)
        if key not in self.known:
            axes = drive.axes | decay.axes
            kind = max(drive.field, decay.field, Field.REAL)
            equation = Equation(
                self.model.fresh(wish), tuple(sorted(axes)), kind, backward, None, None, False,
                span=self.model.span_of(where),
            )  # fmt: skip
            past = mul(decay, equation.ref(Now(equation.step)))
            update = add(past, mul(drive, ones(axes - drive.axes)))
            self.known[key] = replace(equation, update=update)
            self.model.states[equation.name] = self.known[key]
        return self.known[key]


def _states(value: Expr, model: Model) -> list[Ref]:
    return [e for e in walk(value) if isinstance(e, Ref) and e.name in model.states]
