"""Builds the scan of a group of readings: its vectors, its log λ over leaves, its columns."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.build import (
    ONE,
    ZERO,
    add,
    is_one,
    is_zero,
    mul,
    neg,
    prim,
    remake,
    rewrite,
    walk,
)
from dsfc.expr.derivative import pull
from dsfc.expr.interval import POSITIVE
from dsfc.expr.polynomial import IMAGINARY
from dsfc.expr.ranges import Ranges
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Mul,
    Now,
    Num,
    Pow,
    Prim,
    Ref,
    Series,
    Time,
    children,
)
from dsfc.plan.forms.table import FORMS
from dsfc.plan.graph import REVERSED, Graph
from dsfc.plan.readings import Reading, Signature
from dsfc.plan.scan_ir import Column, DeltaRule, Form, LogDecay, LowRank, Scan, Transition


def build(graph: Graph, name: str, group: tuple[Reading, ...]) -> Scan:
    """Plans the scan of a group of readings with one signature, after all it needs."""
    first = group[0]
    s = first.signature

    def define(called: str, value: Expr) -> str:
        buffer_name = graph.define(called, value)
        return graph.in_reverse(buffer_name) if s.backward else buffer_name

    channels = max((r.channels for r in group), key=len)
    decay = _log_decay(graph, define, name, s, channels)
    key = read = None
    if s.keys:
        key = define(f"{name}_key", s.key)
        read = define(f"{name}_query", s.read)
    low_rank = None
    if s.low_rank is not None:
        names = (f"{name}_left", f"{name}_right")
        low_rank = LowRank(*(define(n, e) for n, e in zip(names, s.low_rank, strict=True)))
    delta = None
    if s.strength is not None:
        delta = DeltaRule(define(f"{name}_strength", s.strength))
    transition = None
    if s.transition is not None:
        matrix, mixed, copies = s.transition
        transition = Transition(graph.define(f"{name}_transition", matrix), mixed, copies)
    values = []
    for r in group:
        one = is_one(r.value) and not r.channels and FORMS[s.form].shares
        values.append(None if one else define(f"{r.block.state}_value", r.value))
    columns = []
    for v, r in zip(values, group, strict=True):
        state = r.block.state
        axes = tuple(sorted((*s.heads, *r.channels)))
        output = graph.scan_output(f"{state}_read{REVERSED * s.backward}", axes, s.field)
        columns.append(Column(v, output, state, r.channels))
    scan = Scan(
        name,
        s.form,
        s.heads,
        s.keys,
        channels,
        decay,
        key,
        read,
        tuple(columns),
        s.field,
        s.before,
        low_rank=low_rank,
        delta=delta,
        transition=transition,
    )
    graph.kernels.append(scan)
    return scan


def _log_decay(
    graph: Graph,
    define: Callable[[str, Expr], str],
    name: str,
    s: Signature,
    channels: tuple[Axis, ...],
) -> LogDecay | None:
    if is_zero(s.decay):
        return None
    log = graph.named(_changes(graph, s.decay))
    if s.form is not Form.SELECTIVE:
        leaf = define(f"{name}_log_decay", log)
        return LogDecay(_ref(graph, leaf), (leaf,))
    leaves: list[str] = []

    def leaf_of(e: Expr) -> Expr:
        factors = e.args if isinstance(e, Mul) else ()
        if IMAGINARY in factors:
            e = prim("cplx", ZERO, mul(*(a for a in factors if a != IMAGINARY)))
        leaf = define(f"{name}_rate", e)
        if leaf not in leaves:
            leaves.append(leaf)
        return _ref(graph, leaf)

    unknown: dict[Expr, Expr] = {}

    def any_value(e: Expr) -> Expr:
        return unknown.setdefault(e, Ref(f"leaf {len(unknown)}", e.axes, e.field, e.time, Now(0)))

    def of_leaves(e: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
        if isinstance(e, Num):
            return e
        if e.time is Time.CONST or not e.axes >= {*s.keys, *channels} or not _splits(e, s.field):
            return leaf(e)
        if isinstance(e, Mul):
            return mul(*_grouped(e, lambda a: of_leaves(a, leaf)))
        return remake(e, tuple(of_leaves(a, leaf) for a in children(e)))

    log = _unit_outside(log)
    if not _has_values(of_leaves(log, any_value)):
        return LogDecay(leaf_of(log), tuple(leaves))
    tile = of_leaves(log, leaf_of)
    if not _stops(log, {*s.keys, *channels}, s.field):
        leaves.append(graph.ones())
        tile = mul(_ref(graph, leaves[-1]), tile)
    return LogDecay(tile, tuple(leaves))


def _changes(graph: Graph, log: Expr) -> Expr:
    """Names the change m[i-1] - m of each declared maximum in log λ.

    Two large numbers: their difference has all digits, their sum with anything else has not.
    """

    def rule(e: Expr) -> Expr | None:
        if not isinstance(e, Add):
            return None
        for before in (a for a in e.args if isinstance(a, Ref) and a.at == Now(1)):
            now = neg(Ref(before.name, before.over, before.kind, before.when, Now(0)))
            if before.name in graph.maxima and now in e.args:
                rest = list(e.args)
                rest.remove(before)
                rest.remove(now)
                change = graph.define(f"{before.name}_change", add(before, now))
                return add(*rest, _ref(graph, change))
        return None

    return rewrite(log, rule) if graph.maxima else log


def _unit_outside(log: Expr) -> Expr:
    """Writes a + i b for cplx(a, b): the unit then is a factor, and goes into a leaf.

    Gradients are computed at the conjugates of all leaves (`dsfc.plan.adjoint`), so that log λ must
    be the conjugate there: it has complex leaves, and no other complex parts.
    """
    match log:
        case Prim(name="cplx", args=(re, im)):
            turns = im.args if isinstance(im, Add) else (im,)
            return add(re, *(mul(IMAGINARY, e) for e in turns))
        case Add() | Mul():
            return remake(log, tuple(map(_unit_outside, log.args)))
        case _:
            return log


def _has_values(tile: Expr) -> bool:
    """Whether a function of leaves is finite, with its slope, at all finite leaves.

    Leaves are 0 at tokens that do not count, where what the spec says of them does not hold.
    """
    ranges = Ranges()
    for e in walk(tile):
        match e:
            case Expr(time=Time.CONST) | Div(den=Expr(time=Time.CONST)):
                safe = True
            case Div(_, den):
                safe = 0.0 not in ranges.modulus(den)
            case Pow(base, Num(value)):
                safe = (value.denominator == 1 and value >= 0) or 0.0 not in ranges.modulus(base)
                safe &= value.denominator == 1 or ranges.of(base).within(POSITIVE)
            case Pow(base):
                safe = ranges.of(base).within(POSITIVE)
            case Prim("log" | "sqrt", (arg,)) if arg.field is Field.REAL:
                safe = ranges.of(arg).within(POSITIVE)
            case Prim("log1p", (arg,)):
                safe = ranges.of(add(ONE, arg)).within(POSITIVE)
            case _:
                safe = True
        if not safe:
            return False
    return True


def _stops(log: Expr, tile: set[Axis], field: Field) -> bool:
    """Whether log λ is 0 where its token-wise leaves are: so a token is told not to count."""
    if log.time is Time.CONST:
        return False
    if not log.axes >= tile or not _splits(log, field):
        return True  # a leaf
    if isinstance(log, Mul):
        return any(_stops(a, tile, field) for a in log.args)
    return isinstance(log, Add) and all(_stops(a, tile, field) for a in log.args)


def _splits(e: Expr, field: Field) -> bool:
    """Whether log λ computes an expression of its parts, entry by entry; else it is a leaf.

    Leaves have the scan's field: of complex numbers there are products and sums, not functions. A
    leaf has a gradient: what has none, as a sign, is one itself.
    """
    if isinstance(e, Add | Mul):
        return True
    entrywise = isinstance(e, Div | Pow | Series) or (isinstance(e, Prim) and e.axis is None)
    return field is Field.REAL and entrywise and not _is_flat(e)


def _is_flat(e: Expr) -> bool:
    """Whether the derivatives of an expression are 0 wherever they exist."""
    gradients = pull([(e, _BAR)])
    return not (gradients.refs or gradients.params or gradients.maps or gradients.filters)


_BAR = Ref("bar", frozenset(), Field.REAL, Time.TOKEN, Now(0))


def _grouped(product: Mul, go: Callable[[Expr], Expr]) -> list[Expr]:
    """Factors of a product: constants together, token-wise ones of one shape together.

    Where all are of one shape, each factor is split by itself.
    """
    numbers = [a for a in product.args if isinstance(a, Num)]
    groups: dict[tuple[frozenset[Axis], Time], list[Expr]] = {}
    for a in product.args:
        if not isinstance(a, Num):
            at = (a.axes if a.time is not Time.CONST else frozenset(), a.time)
            groups.setdefault(at, []).append(a)
    if len(groups) == 1 and not numbers:
        return [go(a) for a in product.args]
    return [*numbers, *(go(mul(*g)) for g in groups.values())]


def _ref(graph: Graph, name: str) -> Ref:
    b = graph.arrays[name]
    constant = b.role.value == "constant"
    at = None if constant else Now(0)
    time = Time.CONST if constant else Time.TOKEN
    return Ref(name, frozenset(b.axes), b.field, time, at)


def output_of(graph: Graph, column: Column, backward: bool) -> Ref:
    """Returns the expression that reads a column of a scan, in the order of time."""
    return _ref(graph, graph.in_reverse(column.output) if backward else column.output)
