"""Well-formedness of a System: what every pass and every stage after the derivation may rely on.

I1  No Past, Lag or Run outside a Cache, and no reference to a state outside the terms of reads.
I2  Coefficients (of updates and of reads) and drives refer to inputs, parameters and streams of
    earlier stages only.
I3  A term has the axes of what it adds to, and its right side those of its (mapped) source.
I4  Recurrence terms have the lag of their stage, terms inside a chain 0, reads one of the two.
I5  Every block reaches an output.
I6  A real output of complex states goes through a Cast (or a primitive that gives a part).
I7  The blocks of a stage run one way, and terms read states of their own stage only.
I8  Key times stream has the axes of the block.
I9  A denominator is real and has no axis that its numerator lacks.
I10 The diagonal terms of a factor are merged into one.
I11 A running maximum is the whole value of a stream that has a time, and is real.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dsfc.expr.build import walk
from dsfc.expr.declarations import MapTensor
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.table import row
from dsfc.expr.tree import Abstract, Axis, Expr, Field, LinearMap, Map, Param, Ref
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    Direct,
    Factor,
    Gate,
    MapOut,
    MaxPlus,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Stream,
    Sum,
    SumOver,
    System,
    Term,
)
from dsfc.system.traverse import expressions, own_expressions, parts, terms

Axes = frozenset[Axis]


class SystemInvariantError(AssertionError):
    """A System that breaks an invariant: a fault of the program, never of a spec."""


def verify(system: System) -> None:
    """Checks the invariants I1 to I10 (see the module docstring).

    Raises:
        SystemInvariantError: naming the node and the invariant it breaks.
    """
    for problem in _Checker(system).problems():
        raise SystemInvariantError(f"system `{system.name}`: {problem}")


class _Checker:
    def __init__(self, system: System) -> None:
        self.system = system
        self.axes = frozenset(d.axis for d in system.axes)
        self.blocks = {b.state: b for b in system.blocks}
        self.stage_of = {b.state: k for k, s in enumerate(system.stages) for b in s.blocks}
        self.streams = {s.name: s for s in system.streams}
        self.inputs = {t.name: t for t in system.inputs}
        stored = (*system.params, *system.buffers)
        self.tensors = {t.name: t for t in stored if not isinstance(t, MapTensor)}
        self.maps = {t.name: t for t in stored if isinstance(t, MapTensor)}
        self.abstracts = {a.name for a in system.abstracts}
        self._latest: dict[str, int] = {}

    def problems(self) -> Iterator[str]:
        """Yields what is wrong, in the order of the System."""
        yield from self._names()
        yield from self._streams()
        for k, stage in enumerate(self.system.stages):
            yield from self._stage(k, stage)
        for o in self.system.outputs:
            where = f"output `{o.name}`"
            yield from self._read_out(o.value, where)
            yield from self._typed(o.value, where, frozenset(o.axes), o.field)
        yield from self._reached()

    def _names(self) -> Iterator[str]:
        system = self.system
        held = Counter(t.name for t in (*system.inputs, *system.params, *system.buffers))
        held.update(s.name for s in system.streams)
        held.update(b.state for b in system.blocks)
        for name in sorted(n for n, count in held.items() if count > 1):
            yield f"`{name}` names two things"
        axes = [d.axis for d in self.system.axes]
        if axes != sorted(set(axes)) or len({a.name for a in axes}) != len(axes):
            yield f"axes {axes} are not in canonical order, each once"

    # --- expressions ------------------------------------------------------------------------------

    def _expression(self, e: Expr, where: str, cache: bool = False) -> Iterator[str]:
        """I1, I2 and the types of what an expression refers to."""
        for x in walk(e):
            match x:
                case Past() | Lag() | Run() if not cache:
                    yield f"{where}: I1: {type(x).__name__} outside a cache"
                case Ref():
                    yield from self._ref(x, where)
                case Param(name=name):
                    t = self.tensors.get(name)
                    if t is None or frozenset(t.axes) != x.axes or t.field is not x.field:
                        yield f"{where}: I2: `{name}` is no tensor of this type"
                case Map(map=m) if m.name not in self.maps:
                    yield f"{where}: I2: no map `{m.name}`"
                case Abstract(name=name) if name not in self.abstracts:
                    yield f"{where}: I2: no feature map `{name}`"
        if e.axes - self.axes:
            yield f"{where}: axes {sorted(e.axes - self.axes)} are not the system's"

    def _ref(self, r: Ref, where: str) -> Iterator[str]:
        if r.name == FIRST:
            return
        if r.name in self.blocks:
            yield f"{where}: I1: the state `{r.name}` is read outside a read"
            return
        held = self.streams.get(r.name) or self.inputs.get(r.name)
        if held is None:
            yield f"{where}: I2: no input or stream `{r.name}`"
        elif frozenset(held.axes) != r.axes or held.field is not r.field:
            yield f"{where}: `{r.name}` is read with another type"
        elif (r.at is None) != (isinstance(held, Stream) and held.constant):
            yield f"{where}: `{r.name}` has a time index exactly when it is no constant"

    def _last_stage(self, e: Expr) -> int:
        """Position of the last stage that an expression depends on; -1 for none."""
        return max(
            (self._latest.get(x.name, -1) for x in walk(e) if isinstance(x, Ref)), default=-1
        )

    # --- streams ----------------------------------------------------------------------------------

    def _streams(self) -> Iterator[str]:
        for s in self.system.streams:
            where = f"stream `{s.name}`"
            held = [s.value] if isinstance(s.value, Expr) else list(expressions(s.value))
            for e in held:
                for x in walk(e):
                    if isinstance(x, Ref) and x.name in self.streams and x.name not in self._latest:
                        yield f"{where}: I2: reads `{x.name}`, which stands behind it"
            latest = max((self._last_stage(e) for e in held), default=-1)
            if isinstance(s.value, Expr):
                yield from self._expression(s.value, where)
                if s.value.axes != frozenset(s.axes) or s.value.field > s.field:
                    yield f"{where}: its value has another type"
            else:
                yield from self._read_out(s.value, where, whole=isinstance(s.value, MaxPlus))
                if isinstance(s.value, MaxPlus) and s.constant:
                    yield f"{where}: I11: a running maximum has a time"
                yield from self._typed(s.value, where, frozenset(s.axes), s.field)
                for t in terms(s.value):
                    latest = max(latest, self.stage_of.get(t.source, -1))
            self._latest[s.name] = latest

    # --- stages -----------------------------------------------------------------------------------

    def _stage(self, k: int, stage: Stage) -> Iterator[str]:
        own = {b.state for b in stage.blocks}
        for b in stage.blocks:
            for position, factor in enumerate(b.chain):
                where = f"block `{b.state}`, factor {position}"
                lag = int(stage.direction) if position == 0 else 0
                yield from self._factor(k, own, b, factor, lag, where)
            if not b.chain:
                yield f"block `{b.state}` has no factor"

    def _factor(
        self, k: int, own: set[str], b: Block, factor: Factor, lag: int, where: str
    ) -> Iterator[str]:
        axes = frozenset(b.axes)
        diagonal = 0
        for t in factor.terms:
            if t.source not in own:
                yield f"{where}: I7: reads `{t.source}` of another stage"
                continue
            if t.lag != lag:
                yield f"{where}: I4: a term has lag {t.lag} instead of {lag}"
            yield from self._term(t, axes, where)
            if max(self._last_stage(t.left), self._last_stage(t.right)) >= k:
                yield f"{where}: I2: a coefficient depends on a stage that is not earlier"
            diagonal += t.source == b.state and not (t.over or t.matrix or t.after)
        if diagonal > 1:
            yield f"{where}: I10: {diagonal} diagonal terms"
        for d in factor.drives:
            yield from self._expression(d.key, where)
            yield from self._expression(d.stream, where)
            if max(self._last_stage(d.key), self._last_stage(d.stream)) >= k:
                yield f"{where}: I2: a drive depends on a stage that is not earlier"
            if d.key.axes | d.stream.axes != axes:
                yield f"{where}: I8: a drive has axes {sorted(d.key.axes | d.stream.axes)}"
            if max(d.key.field, d.stream.field) > b.field:
                yield f"{where}: a complex drive of a real state"

    def _term(self, t: Term, axes: Axes, where: str) -> Iterator[str]:
        """I3, and that a term's sides are expressions of the System."""
        yield from self._expression(t.left, where)
        yield from self._expression(t.right, where)
        for m in (t.matrix, t.after):
            if m is not None and m.name not in self.maps:
                yield f"{where}: I2: no map `{m.name}`"
        source = mapped(frozenset(self.blocks[t.source].axes), t)
        if not t.over <= source:
            yield f"{where}: I3: contracts {sorted(t.over - source)}, which its source lacks"
        expanding = t.right.axes - source
        if expanding and t.over & t.left.axes:
            yield f"{where}: I3: its right side expands while its left side re-introduces an axis"
        if expanding and not t.over:
            yield f"{where}: I3: its right side has axes {sorted(expanding)} beside its source's"
        if result_axes(t, source) != axes:
            yield f"{where}: I3: a term gives axes {sorted(result_axes(t, source))}"

    # --- read-outs --------------------------------------------------------------------------------

    def _read_out(self, r: ReadOut, where: str, whole: bool = False) -> Iterator[str]:
        for node in parts(r):
            for e in own_expressions(node):
                yield from self._expression(e, where, cache=isinstance(node, Cache))
            match node:
                case Read():
                    for t in node.terms:
                        yield from self._read_term(t, node, where)
                case MapOut(map=m) if m.name not in self.maps:
                    yield f"{where}: I2: no map `{m.name}`"
                case MaxPlus() if not whole:
                    yield f"{where}: I11: a running maximum stands inside a read-out"
                case Ratio(num, den):
                    below, above = self._type(den), self._type(num)
                    if below[1] is not Field.REAL:
                        yield f"{where}: I9: a complex denominator"
                    if below[0] - above[0]:
                        yield f"{where}: I9: a denominator with axes its numerator lacks"

    def _read_term(self, t: Term, read: Read, where: str) -> Iterator[str]:
        if t.source not in self.blocks:
            yield f"{where}: I2: no state `{t.source}`"
            return
        step = int(self.system.stages[self.stage_of[t.source]].direction)
        if t.lag not in (0, step):
            yield f"{where}: I4: a read of `{t.source}` has lag {t.lag}"
        yield from self._term(t, self._type(read)[0], where)
        if max(self._last_stage(t.left), self._last_stage(t.right)) >= self.stage_of[t.source]:
            yield f"{where}: I2: a coefficient of a read depends on a stage that is not earlier"

    def _typed(self, r: ReadOut, where: str, axes: Axes, kind: Field) -> Iterator[str]:
        have, field = self._type(r)
        if have != axes:
            yield f"{where}: its value has axes {sorted(have)}"
        if field > kind:
            yield f"{where}: I6: a complex value without a Cast"

    def _type(self, r: ReadOut) -> tuple[Axes, Field]:
        """Axes and field of a read-out."""
        match r:
            case Read(held, direct):
                types = [self._term_type(t) for t in held if t.source in self.blocks]
                if direct is not None:
                    types.append((direct.axes, direct.field))
                return _joined(types)
            case Direct(value):
                return value.axes, value.field
            case Cache(past):
                return past.axes, past.field
            case MaxPlus(log_decay, log_weight):
                return _joined([(e.axes, e.field) for e in (log_decay, log_weight)])
            case Gate(factor, arg):
                return _joined([(factor.axes, factor.field), self._type(arg)])
            case Cast(arg=arg):
                return self._type(arg)[0], Field.REAL
            case MapOut(map, arg):
                axes, field = self._type(arg)
                return _after_map(axes, map), max(field, map.field)
            case Post(name, args, axis):
                axes, field = _joined([self._type(a) for a in args])
                field = row(name).fields.result(field is Field.REAL)
                return axes | (frozenset() if axis is None else {axis}), field
            case SumOver(axis, arg):
                axes, field = self._type(arg)
                return axes - {axis}, field
            case Ratio(num, den):
                return _joined([self._type(num), self._type(den)])
            case Product(args) | Sum(args):
                return _joined([self._type(a) for a in args])

    def _term_type(self, t: Term) -> tuple[Axes, Field]:
        b = self.blocks[t.source]
        axes = result_axes(t, mapped(frozenset(b.axes), t))
        maps = [m.field for m in (t.matrix, t.after) if m is not None]
        return axes, max([b.field, t.left.field, t.right.field, *maps])

    def _reached(self) -> Iterator[str]:
        """I5."""
        seen: set[str] = set()
        waiting: list[str] = []
        for o in self.system.outputs:
            waiting += _mentioned(o.value)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.streams:
                value = self.streams[name].value
                waiting += _names_of(value) if isinstance(value, Expr) else _mentioned(value)
            elif name in self.blocks:
                for b in self.system.stages[self.stage_of[name]].blocks:
                    seen.add(b.state)
                    for f in b.chain:
                        for t in f.terms:
                            waiting += [t.source, *_names_of(t.left), *_names_of(t.right)]
                        for d in f.drives:
                            waiting += [*_names_of(d.key), *_names_of(d.stream)]
        for b in self.system.blocks:
            if b.state not in seen:
                yield f"block `{b.state}`: I5: no output depends on it"


def mapped(axes: Axes, t: Term) -> Axes:
    """Returns the axes of a term's source after its matrix."""
    if t.matrix is None:
        return axes
    return (
        (axes - frozenset(t.matrix.source)) | frozenset(t.matrix.target) | frozenset(t.matrix.each)
    )


def result_axes(t: Term, source: Axes) -> Axes:
    """Returns the axes of a term's value, from those of its mapped source."""
    axes = (source - t.over) | t.left.axes | (t.right.axes - source - t.over)
    return axes if t.after is None else _after_map(axes, t.after)


def _after_map(axes: Axes, map: LinearMap) -> Axes:
    return (axes - frozenset(map.source)) | frozenset(map.target) | frozenset(map.each)


def _joined(types: list[tuple[Axes, Field]]) -> tuple[Axes, Field]:
    axes: Axes = frozenset().union(*(a for a, _ in types))
    return axes, max((f for _, f in types), default=Field.REAL)


def _names_of(e: Expr) -> list[str]:
    return [x.name for x in walk(e) if isinstance(x, Ref)]


def _mentioned(r: ReadOut) -> list[str]:
    names = [t.source for t in terms(r)]
    for e in expressions(r):
        names += _names_of(e)
    return names
