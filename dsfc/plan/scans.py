"""Turns blocks and the reads of them into scans.

Reads of blocks that share decay, key and read vector become columns of one scan: numerator and
denominator of a ratio take one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsfc.expr.build import (
    ONE,
    ZERO,
    add,
    is_one,
    is_zero,
    lean,
    mul,
    neg,
    num,
    ones,
    prim,
    remake,
    rewrite,
    walk,
)
from dsfc.expr.declarations import AbstractMap, MapTensor, Tensor
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
    Ones,
    Pow,
    Prim,
    Ref,
    Series,
    Time,
    children,
)
from dsfc.plan.graph import TURNED, Graph, bounded_log
from dsfc.plan.ir import Column, Form, LogDecay, LowRank, Scan, Transition
from dsfc.structure.ir import BlockStructure, ClassName
from dsfc.system.ir import Block, Decay, GaugeKind, LogForm, Stream, Term
from dsfc.system.ir import Factor as ChainFactor


class Unsupported(Exception):
    """A System that is sound, but that no skeleton of this version runs.

    Attributes:
        about: what stands in the way: a state, an argument or a stream; None for the output.
        why: the reason, as a clause.
        hint: what would bring it in, where that is known.
    """

    def __init__(
        self,
        about: Block | Stream | Tensor | MapTensor | AbstractMap | None,
        why: str,
        hint: str | None = None,
    ) -> None:
        """Keeps what it is about, so that the diagnostic can point at the spec."""
        super().__init__(why)
        self.about = about
        self.why = why
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Split:
    """A product as key · rest: factors with key axes on one side, the others on the other."""

    key: Expr
    rest: Expr


@dataclass(frozen=True, slots=True)
class Signature:
    """What two reads must share to be columns of one scan."""

    form: Form
    heads: tuple[Axis, ...]
    keys: tuple[Axis, ...]
    decay: Expr
    key: Expr
    read: Expr
    field: Field
    before: bool
    low_rank: tuple[Expr, Expr] | None = None
    backward: bool = False
    transition: tuple[Expr, tuple[Axis, ...], tuple[Axis, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One read of one block, left · Σ_summed inner · out: a column `out` of a scan to be.

    Attributes:
        inner: multiplies the scan's output.
        summed: head axes that the read sums over.
        left: multiplies the sum.
    """

    block: Block
    signature: Signature
    channels: tuple[Axis, ...]
    value: Expr
    inner: Expr
    summed: frozenset[Axis]
    left: Expr


def reading(
    term: Term,
    block: Block,
    structure: BlockStructure,
    divided: bool,
    backward: bool,
    maxima: frozenset[str] = frozenset(),
) -> Reading:
    """Returns a read as a column.

    Args:
        term: what is read.
        block: the block it reads.
        structure: the block's.
        divided: whether the block stands in a ratio. A convolution errs by a share of the largest
            output of the sequence, and a quotient of small ones would lose all digits.
        backward: whether the block runs backwards in time: a scan of turned buffers.
        maxima: names of running maxima that the spec declares.

    Raises:
        Unsupported: no skeleton runs this block or this read.
    """
    _supported(block, structure)
    keys = structure.keys
    if term.matrix is not None:
        raise Unsupported(block, "a linear map stands inside its read")
    if not term.over >= frozenset(keys):
        raise Unsupported(block, "one read sums over other axes than another")
    form = _form(block, structure)
    heads, channels = structure.heads, structure.channels
    low_rank: tuple[Expr, Expr] | None = None
    after: Expr = ONE
    if form is Form.LOW_RANK:
        low_rank, after = _low_rank(block, structure)
        assert structure.decay is not None
        if structure.decay.value.axes & frozenset(keys):
            form = Form.KEYED_LOW_RANK
    drive = _drive(block, structure, after)
    # What the contraction does not touch stands outside of it.
    vector = sides(term.right, frozenset(keys))
    assert structure.decay is not None
    log = _log_of(structure.decay)
    rises = block.gauge.kind is GaugeKind.RUNNING_MAX or _rises(block, maxima)
    if rises and block.decay is not None:
        # With definitions put in, log λ would lose its digits beside m before the two m are taken
        # from one another.
        log = prim("max", _log_of(block.decay), _FORGOTTEN)
    plain = form is not Form.MATRIX and low_rank is None
    steady = plain and not divided and not is_zero(log)
    if steady and all(e.time is Time.CONST for e in (log, drive.key, vector.key)):
        # Every output has a kernel of its own: all axes but the keys enumerate recurrences.
        form = Form.CONVOLUTION
        heads, channels = tuple(sorted((*heads, *channels))), ()
        if keys and vector.rest.time is Time.CONST:
            vector = Split(mul(vector.key, vector.rest), ONE)
    elif form is Form.KEYED and log.axes & frozenset(channels):
        form = Form.SELECTIVE
    key = drive.key
    if keys and is_one(key):
        key = ones(keys)
    if drive.key.axes & frozenset(channels):
        raise Unsupported(block, "its drive is not a key times a value")
    lacking = vector.key.axes - {*heads, *keys}
    if lacking & frozenset(channels):
        raise Unsupported(block, "its read vector has channel axes")
    if lacking:
        names = ", ".join(f"`{a.name}`" for a in sorted(lacking))
        raise Unsupported(block, f"its read vector varies along {names}, which the state lacks")
    # An axis that a read sums over and nothing stands along it: the read vector is 1 there.
    read = mul(vector.key, ones(frozenset(keys) - vector.key.axes))
    field = max(block.field, log.field, key.field, read.field, drive.rest.field)
    if low_rank is not None and Field.COMPLEX in (field, *(e.field for e in low_rank)):
        raise Unsupported(block, "a low-rank part stands in a complex transition")
    before = term.lag != 0
    signature = Signature(form, heads, keys, log, key, read, field, before, low_rank, backward)
    summed = term.over - frozenset(keys)
    return Reading(block, signature, channels, drive.rest, vector.rest, summed, term.left)


def _rises(block: Block, maxima: frozenset[str]) -> bool:
    """Whether log λ holds the change m[i-1] - m of a running maximum."""
    log = None if block.decay is None else block.decay.log
    reads = () if log is None else (e for e in walk(log) if isinstance(e, Ref))
    return any(e.name in maxima and e.at == Now(1) for e in reads)


def _log_of(decay: Decay) -> Expr:
    """Returns log λ, complex where λ is."""
    log = decay.log if decay.form is LogForm.EXACT else bounded_log(decay.log)
    # What `ones` alone stretches over an axis has the axes of its class.
    return lean(log if decay.phase is None else prim("cplx", log, decay.phase))


_FORGOTTEN = num(-1000)
"""A logarithm whose exponential is 0 in every number format; far smaller ones spoil sums of them.

A running maximum that rises, from `LOWEST` at the first token, forgets all that came before.
"""


def build(graph: Graph, name: str, group: tuple[Reading, ...]) -> Scan:
    """Plans the scan of a group of readings with one signature, after all it needs."""
    first = group[0]
    s = first.signature

    def define(called: str, value: Expr) -> str:
        made = graph.define(called, value)
        return graph.turned(made) if s.backward else made

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
    transition = None
    if s.transition is not None:
        matrix, mixed, copies = s.transition
        transition = Transition(graph.define(f"{name}_transition", matrix), mixed, copies)
    values = []
    for r in group:
        one = is_one(r.value) and not r.channels and s.form in SHARED
        values.append(None if one else define(f"{r.block.state}_value", r.value))
    columns = []
    for v, r in zip(values, group, strict=True):
        state = r.block.state
        axes = tuple(sorted((*s.heads, *r.channels)))
        output = graph.scan_output(f"{state}_read{TURNED * s.backward}", axes, s.field)
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
        transition=transition,
    )
    graph.kernels.append(scan)
    return scan


SHARED = (Form.MATRIX, Form.KEYED, Form.LOW_RANK, Form.KEYED_LOW_RANK)
"""Forms whose scans share a pass over several columns: they have products of read and key."""

_RUN = {
    ClassName.SCALAR: Form.MATRIX,
    ClassName.PER_KEY: Form.KEYED,
    ClassName.PER_VALUE: Form.SELECTIVE,
    ClassName.SELECTIVE: Form.SELECTIVE,
    ClassName.ELEMENTWISE: Form.ELEMENTWISE,
    ClassName.LTI: Form.KEYED,
    ClassName.LOW_RANK: Form.LOW_RANK,
}
"""How a class runs where its key or read varies over time; with both fixed, as a convolution."""


def _supported(block: Block, structure: BlockStructure) -> None:
    if structure.name not in _RUN:
        raise Unsupported(block, f"its structure class is `{structure.name.value}`")
    if sum(len(f.drives) for f in block.chain) != 1:
        raise Unsupported(block, "its update has several drives, or none")
    if structure.name is not ClassName.LOW_RANK and len(block.chain) != 1:
        raise Unsupported(block, "its update has several factors")
    if structure.decay is None:
        raise Unsupported(block, "its transition has no diagonal part")
    if not structure.positive:
        raise Unsupported(block, "its decay is not proved positive, and kernels store log λ")


def _form(block: Block, structure: BlockStructure) -> Form:
    """Returns the form that runs a block.

    Raises:
        Unsupported: the update has a term that the form cannot carry. Every form carries the
            diagonal; the low-rank form carries one more term, and checks it in `_low_rank`.
    """
    # A class says how the decay varies; without a key axis there is nothing to contract.
    form = _RUN[structure.name] if structure.keys else Form.ELEMENTWISE
    if form is not Form.LOW_RANK:
        for term in (t for factor in block.chain for t in _parts(factor, block)[1]):
            raise Unsupported(block, READS_ANOTHER if term.source != block.state else _MIXES)
    return form


READS_ANOTHER = "its update reads another state of its stage"
"""Why a form that steps one state alone cannot run a block."""

_MIXES = "its update mixes its entries"


def _drive(block: Block, structure: BlockStructure, after: Expr) -> Split:
    """What is added to the state, `after` times what its factor of the chain adds."""
    ((drive,),) = (f.drives for f in block.chain if f.drives)
    return sides(mul(after, drive.key, drive.stream), frozenset(structure.keys))


def _low_rank(block: Block, structure: BlockStructure) -> tuple[tuple[Expr, Expr], Expr]:
    """Returns the low-rank part of a chain, left and right, and what scales its drive.

    The diagonals of the factors before the low-rank one come to its right side, those of the
    factors behind it to its left side; those behind the drive's factor scale the drive.
    """
    found: tuple[Expr, Expr] | None = None
    scale: Expr | None = None
    keys = frozenset(structure.keys)
    diagonal: Expr = ONE
    for factor in block.chain:
        here, terms = _parts(factor, block)
        if (terms and found is not None) or len(terms) > 1:
            raise Unsupported(block, "its transition has more than one low-rank part")
        if terms and scale is not None:
            raise Unsupported(block, "a low-rank part stands behind its drive")
        if found is not None:
            found = (mul(here, found[0]), found[1])
        if scale is not None:
            scale = mul(here, scale)
        for t in terms:
            if t.source != block.state:
                raise Unsupported(block, READS_ANOTHER)
            if t.matrix is not None or t.after is not None:
                raise Unsupported(block, _MIXES)
            if t.over != keys or not t.left.axes | t.right.axes <= {*structure.heads, *keys}:
                raise Unsupported(block, "its low-rank part does not act on its keys alone")
            found = (t.left, mul(diagonal, t.right))
        if factor.drives:
            scale = ONE
        diagonal = mul(diagonal, here)
    assert found is not None and scale is not None
    if not diagonal.axes <= {*structure.heads, *keys}:
        raise Unsupported(block, "its decay varies along channels, beside a low-rank part")
    return found, scale


def _parts(factor: ChainFactor, block: Block) -> tuple[Expr, list[Term]]:
    """The diagonal of a factor, and its other terms."""
    own = [t for t in factor.terms if t.source == block.state and not t.over]
    plain = [t for t in own if t.matrix is None and t.after is None]
    others = [t for t in factor.terms if t not in plain]
    return add(*(mul(t.left, t.right) for t in plain)), others


def sides(product: Expr, keys: frozenset[Axis]) -> Split:
    """Returns a product split into what has key axes and what has none."""
    factors = product.args if isinstance(product, Mul) else (product,)
    inside: list[Expr] = []
    outside: list[Expr] = []
    for f in factors:
        if isinstance(f, Ones):
            inside.append(ones(f.over & keys))
            outside.append(ones(f.over - keys))
        else:
            (inside if f.axes & keys else outside).append(f)
    return Split(mul(*inside), mul(*outside))


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
        made = define(f"{name}_rate", e)
        if made not in leaves:
            leaves.append(made)
        return _ref(graph, made)

    def go(e: Expr) -> Expr:
        if isinstance(e, Num):
            return e
        if e.time is Time.CONST or not e.axes >= {*s.keys, *channels} or not _splits(e, s.field):
            return leaf_of(e)
        if isinstance(e, Mul):
            return mul(*_grouped(e, go))
        return remake(e, tuple(map(go, children(e))))

    log = _unit_outside(log)
    tile = go(log)
    if not _has_values(tile):
        leaves.clear()
        return LogDecay(leaf_of(log), tuple(leaves))
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
                made = graph.define(f"{before.name}_change", add(before, now))
                return add(*rest, _ref(graph, made))
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
    found = pull([(e, _BAR)])
    return not (found.refs or found.params or found.maps or found.filters)


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
    return _ref(graph, graph.turned(column.output) if backward else column.output)
