"""Turns a sum over time without a finite state into an `AllPairs`: all pairs of tokens.

The summand is cut into what a pair has of token i, of token j and of no token. These are buffers,
computed token by token before; what is left of the summand is an expression over their values and
the number of tokens between i and j. Its derivative is derived from the primitives, as that of any
token-wise expression is, and summed over the pairs that each value stands in.
"""

from __future__ import annotations

from dsfc.expr.build import ONE, ZERO, add, mul, num, prim, remake, rewrite, sub, walk
from dsfc.expr.derivative import pull
from dsfc.expr.over_time import Lag, Past, Relation, Run, index_name
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Bound, Expr, Field, Fir, Map, Now, Num, Pow, Ref, Time, children
from dsfc.plan.graph import Graph
from dsfc.plan.pairs_ir import AllPairs, PairGradient, PairLeaf
from dsfc.plan.readings import Unsupported
from dsfc.system.ir import Cache


def build(graph: Graph, cache: Cache) -> Expr:
    """Returns a sum as an expression over buffers, its `AllPairs` planned.

    Raises:
        Unsupported: it holds another sum, a running product, a filter or a linear map of pairs.
    """
    if cache not in graph.paired:
        graph.paired[cache] = _Builder(graph, cache).build()
    return graph.paired[cache]


class _Builder:
    def __init__(self, graph: Graph, cache: Cache) -> None:
        self.graph = graph
        self.past = cache.past
        self.why = cache.why
        if cache in graph.unlike_attention:
            self.why += f"; no softmax attention: {graph.unlike_attention[cache]}"
        self.later = cache.past.relation in (Relation.FROM, Relation.AFTER)
        self.strict = cache.past.relation in (Relation.BEFORE, Relation.AFTER)
        self.leaves: dict[str, dict[str, Ref]] = {side: {} for side in ("query", "key", "fixed")}
        self.lag: Ref | None = None
        self.lowered: dict[Expr, Expr] = {}
        self.free: dict[Expr, frozenset[str]] = {}
        self.below: set[Expr] = set()

    def build(self) -> Expr:
        past, graph = self.past, self.graph
        if past.outer is not None:
            raise self._unsupported("is nested in another")
        if self.bound < 0 and not self.later:
            raise self._unsupported("looks ahead")
        body = self._lower(past.body)
        axes = tuple(sorted(past.axes))
        # Of tokens to come none is kept: a sequence that needs them has no past.
        present = graph.ones() if self.later else graph.kept("present", "seen", ONE)
        bar = Ref(graph.fresh("sum_bar"), past.axes, past.field, Time.TOKEN, Now(0))
        queries, keys, fixed = (
            tuple(
                PairLeaf(r.name, buffer, graph.arrays[buffer].axes)
                for buffer, r in self.leaves[side].items()
            )
            for side in ("query", "key", "fixed")
        )
        kernel = AllPairs(
            output=graph.scan_output("summed", axes, past.field),
            axes=axes,
            relation=past.relation,
            offset=past.lag,
            queries=queries,
            keys=keys,
            fixed=fixed,
            lag=None if self.lag is None else self.lag.name,
            present=present,
            body=body,
            bar=bar.name,
            gradients=self._gradients(body, bar),
            why=f"no finite state: {self.why}",
        )
        graph.kernels.append(kernel)
        return Ref(kernel.output, past.axes, past.field, Time.TOKEN, Now(0))

    @property
    def bound(self) -> int:
        """The number of tokens between i and j at least, or of sums over later tokens at most."""
        return self.past.lag + (-1 if self.later else 1) * self.strict

    def _unsupported(self, problem: str) -> Unsupported:
        hint = "a sum over tokens whose summand reads values of the two tokens alone runs"
        return Unsupported(None, f"it has no finite state ({self.why}), and {problem}", hint)

    # --- the summand ------------------------------------------------------------------------------

    def _lower(self, e: Expr) -> Expr:
        if e not in self.lowered:
            self.lowered[e] = self._lowered(e)
        return self.lowered[e]

    def _lowered(self, e: Expr) -> Expr:
        free = self._free(e)
        if isinstance(e, Num):
            return e
        if not free:
            return self._leaf("fixed", self.graph.define("pair_fixed", e))
        if free == {TIME}:
            return self._leaf("query", self.graph.define("pair_query", e))
        if free == {self.past.var}:
            value = _moved(e, self.past.var)
            if self.later:
                return self._leaf("key", self.graph.define("pair_key", value))
            return self._leaf("key", self.graph.kept("pair_key", "pair_keys", value))
        match e:
            case Lag(terms, constant):
                return self._distance(dict(terms), constant)
            case Past():
                raise self._unsupported("the sum holds another one")
            case Run():
                raise self._unsupported("the sum holds a product between its tokens")
            case Fir():
                raise self._unsupported("the sum holds a filter of pairs of tokens")
            case Map():
                raise self._unsupported("the sum holds a linear map of pairs of tokens")
        return remake(e, tuple(map(self._lower, children(e))))

    def _leaf(self, side: str, buffer: str) -> Ref:
        known = self.leaves[side]
        if buffer not in known:
            b = self.graph.arrays[buffer]
            mark = {"query": "i", "key": "j", "fixed": "c"}[side]
            name = self.graph.fresh(f"{buffer}_{mark}")
            known[buffer] = Ref(name, frozenset(b.axes), b.field, Time.TOKEN, Now(0))
        return known[buffer]

    def _distance(self, terms: dict[str, int], constant: int) -> Expr:
        """A number of tokens that grows with the distance between i and j."""
        step = terms.get(TIME, 0)
        if terms.get(self.past.var, 0) != -step or set(terms) - {TIME, self.past.var}:
            raise self._unsupported("the sum holds a number that grows with the position")
        if self.lag is None:
            name = self.graph.fresh("distance")
            self.lag = Ref(name, frozenset(), Field.REAL, Time.TOKEN, Now(0))
        value = add(mul(num(step), self.lag), num(constant))
        grows = step < 0 if self.later else step > 0
        if grows and step * self.bound + constant >= 0:
            self.below.add(sub(value, ONE))
        return value

    def _free(self, e: Expr) -> frozenset[str]:
        """The time indices that an expression depends on."""
        if e not in self.free:
            inner: frozenset[str] = frozenset().union(*(self._free(c) for c in children(e)))
            match e:
                case Ref(at=at) if at is not None:
                    inner = frozenset({index_name(at)})
                case Lag(terms):
                    inner = frozenset(v for v, c in terms if c)
                case Past(var, _, _, outer):
                    inner = (inner - {var}) | {outer or TIME}
                case Run(var, low, high):
                    inner = (inner - {var}) | {index_name(low), index_name(high)}
            self.free[e] = inner
        return self.free[e]

    # --- its derivative ---------------------------------------------------------------------------

    def _gradients(self, body: Expr, bar: Ref) -> tuple[PairGradient, ...]:
        gradients = pull([(body, bar)]).refs
        values = {r.name: rewrite(value, self._defined) for r, value in gradients.items()}
        leaves = (r for side in self.leaves.values() for r in side.values())
        return tuple(PairGradient(r.name, values[r.name]) for r in leaves if r.name in values)

    def _defined(self, e: Expr) -> Expr | None:
        """Of n λ^(n - 1), where n is 0: 0, also for λ = 0."""
        if isinstance(e, Pow) and e.exponent in self.below:
            return Pow(e.base, prim("max", e.exponent, ZERO))
        return None


def _moved(e: Expr, var: str) -> Expr:
    """A value of the summed token, as that of the present one."""

    def rule(x: Expr) -> Expr | None:
        match x:
            case Ref(at=Bound(name, lag)) if name == var:
                return Ref(x.name, x.over, x.kind, x.when, Now(lag))
            case Past(outer=outer) if outer == var:
                return Past(x.var, x.relation, x.body, None, x.lag)
            case Run(low=low, high=high):
                below, above = (Now(a.lag) if index_name(a) == var else a for a in (low, high))
                return Run(x.var, below, above, x.arg)
        return None

    return rewrite(e, rule)


def sensitive_leaves(kernel: AllPairs) -> frozenset[str]:
    """Returns the buffers that powers of the distance are taken of: decays."""
    buffers = {x.name: x.buffer for x in kernel.leaves}
    powers = (e for e in walk(kernel.body) if isinstance(e, Pow))
    based = (p.base for p in powers if kernel.lag in _names(p.exponent))
    return frozenset(buffers[n] for base in based for n in _names(base) if n in buffers)


def _names(e: Expr) -> set[str]:
    return {x.name for x in walk(e) if isinstance(x, Ref)}
