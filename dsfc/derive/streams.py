"""Token-wise values of a System: every state-dependent value that another stage uses gets a name.

An expression in a System reads inputs, parameters and streams only. `Streams.token` rewrites an
expression of the model into such a one: definitions become streams of the same name, and parts that
read states become streams whose value is a read-out.
"""

from __future__ import annotations

from collections.abc import Callable

from dsfc.derive.model import Equation, Model
from dsfc.expr.build import remake
from dsfc.expr.over_time import Past
from dsfc.expr.tree import Add, Bound, Div, Expr, Mul, Now, Ref, Time, children
from dsfc.system.ir import Direct, MaxPlus, ReadOut, Stream

_ELEMENTWISE = (Add, Mul, Div)


class Streams:
    """The streams of one System, made when they are first read.

    Attributes:
        made: name → stream.
    """

    def __init__(self, model: Model, read_out: Callable[[Expr], ReadOut]) -> None:
        """Takes the model and the function that makes a read-out of a value."""
        self.model = model
        self.made: dict[str, Stream] = {}
        self._read_out = read_out
        self._tokens: dict[Expr, Expr] = {}
        self._named: dict[Expr, Ref] = {}

    def token(self, e: Expr) -> Expr:
        """Returns the expression over streams alone."""
        read = self._tokens.get(e)
        if read is None:
            read = self._tokens[e] = self._find(e)
        return read

    def _find(self, e: Expr) -> Expr:
        if isinstance(e, Ref):
            return self._ref(e)
        if not self.model.reach(e):
            return self._inside(e)
        if isinstance(e, _ELEMENTWISE) or not self._reads_directly(e):
            return self._inside(e)
        return self._fresh(e)

    def _inside(self, e: Expr) -> Expr:
        return remake(e, tuple(self.token(c) for c in children(e)))

    def _reads_directly(self, e: Expr) -> bool:
        """Whether a read-out node could hold the expression's state or sum that stayed a sum.

        A state further back than a read can reach is a delayed stream, wherever it stands.
        """
        if isinstance(e, Past):
            return True
        if isinstance(e, Ref):
            s = self.model.states.get(e.name)
            return s is not None and e.at in (Now(0), Now(s.step))
        return any(self._reads_directly(c) for c in children(e))

    def _ref(self, e: Ref) -> Expr:
        if e.name in self.model.states:
            return self._state(e, self.model.states[e.name])
        if e.name in self.model.definitions or e.name in self.model.maxima:
            self.ensure(e.name)
        return e

    def _state(self, e: Ref, s: Equation) -> Expr:
        """A state as a stream: of its value now, or of the one before, which knows the start."""
        if e.at is None:
            raise AssertionError(f"the state {e.name} is read without a time index")
        before = e.at.lag * s.step > 0
        stream = self._fresh(s.ref(Now(s.step if before else 0)))
        lag = e.at.lag - (s.step if before else 0)
        at = Now(lag) if isinstance(e.at, Now) else Bound(e.at.var, lag)
        return Ref(stream.name, stream.over, stream.kind, stream.when, at)

    def named(self, e: Expr) -> Expr:
        """Returns a value as the name of a stream, which is a leaf from now on."""
        stream = self.token(e) if isinstance(e, Ref) else self._fresh(e)
        assert isinstance(stream, Ref)
        self.model.cut(stream.name)
        return stream

    def _fresh(self, e: Expr) -> Ref:
        """Returns the stream of a value that is no definition."""
        if e not in self._named:
            wish = "read"
            if isinstance(e, Ref):
                wish = f"{e.name}_now" if e.at == Now(0) else f"{e.name}_before"
            name = self.model.define(wish, e)
            self._named[e] = Ref(name, e.axes, e.field, Time.STATE, Now(0))
        self.ensure(self._named[e].name)
        return self._named[e]

    def ensure(self, name: str) -> Stream:
        """Returns the stream of a definition or running maximum, made now if it was not yet."""
        if name not in self.made and name in self.model.maxima:
            self.made[name] = self._maximum(self.model.maxima[name])
        if name not in self.made:
            d = self.model.definitions[name]
            value: Expr | ReadOut
            if self.model.reach(d.value):
                value = self._read_out(d.value)
                if isinstance(value, Direct):
                    value = value.value
            else:
                value = self.token(d.value)
            constant = d.value.time is Time.CONST
            self.made[name] = Stream(
                name, value, tuple(sorted(d.value.axes)), d.value.field, constant,
                d.provenance, d.span,
            )  # fmt: skip
        return self.made[name]

    def _maximum(self, s: Equation) -> Stream:
        decay, weight = map(self.token, s.body)
        value = MaxPlus(decay, weight, declared=True)
        self.model.note("L3 max-plus", s.name, s.span)
        return Stream(s.name, value, s.axes, s.field, False, s.provenance, s.span)

    def cached(self, past: Past) -> Past:
        """Returns a sum that stays, its body over streams.

        States in the body are read through streams of their values, at the summed index too.
        """

        def go(e: Expr) -> Expr:
            if isinstance(e, Ref):
                return self._ref(e)
            free = not any(isinstance(x, Bound) for x in _indices(e))
            if free and not isinstance(e, Past) and self.model.reach(e):
                return self.token(e)
            return remake(e, tuple(go(c) for c in children(e)))

        return Past(past.var, past.relation, go(past.body), past.outer, past.lag)


def _indices(e: Expr) -> list[Now | Bound | None]:
    own: list[Now | Bound | None] = [e.at] if isinstance(e, Ref) else []
    return own + [i for c in children(e) for i in _indices(c)]
