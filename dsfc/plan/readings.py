"""Reads of blocks as columns of scans to be: which form runs a block, and what it reads.

Reads of blocks that share decay, key and read vector become columns of one scan: numerator and
denominator of a ratio take one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsfc.expr.build import (
    ONE,
    add,
    is_one,
    is_zero,
    lean,
    mul,
    num,
    ones,
    prim,
    walk,
)
from dsfc.expr.declarations import AbstractMap, MapTensor, Tensor
from dsfc.expr.tree import Axis, Expr, Field, Mul, Now, Ones, Ref, Time
from dsfc.plan.forms.row import Candidate
from dsfc.plan.forms.table import narrowed
from dsfc.plan.graph import bounded_log
from dsfc.plan.scan_ir import Form
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
    strength: Expr | None = None
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
        backward: whether the block runs backwards in time: a scan of reversed buffers.
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
    part = _low_rank(block, structure) if form is Form.LOW_RANK else None
    drive = _drive(block, structure, ONE if part is None else part.after)
    # What the contraction does not touch stands outside of it.
    vector = split_by_axes(term.right, frozenset(keys))
    assert structure.decay is not None
    log = _log_of(structure.decay)
    rises = block.gauge.kind is GaugeKind.RUNNING_MAX or _rises(block, maxima)
    if rises and block.decay is not None:
        # With definitions put in, log λ would lose its digits beside m before the two m are taken
        # from one another.
        log = prim("max", _log_of(block.decay), _FORGOTTEN)
    steady = all(e.time is Time.CONST for e in (log, drive.key, vector.key))
    fixed = steady and not divided and not is_zero(log)
    strength = None if part is None else _strength(part, drive.key, frozenset(keys))
    form = narrowed(form, Candidate(structure, log, fixed, strength is not None))
    low_rank = None if part is None or strength is not None else part.vectors
    if form is Form.CONVOLUTION:
        # Every output has a kernel of its own: all axes but the keys enumerate recurrences.
        heads, channels = tuple(sorted((*heads, *channels))), ()
        if keys and vector.rest.time is Time.CONST:
            vector = Split(mul(vector.key, vector.rest), ONE)
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
    if part is not None and Field.COMPLEX in (field, *(e.field for e in part.vectors)):
        raise Unsupported(block, "a low-rank part stands in a complex transition")
    before = term.lag != 0
    signature = Signature(
        form, heads, keys, log, key, read, field, before, low_rank, strength, backward
    )
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


_NOT_POSITIVE = (
    "its decay is not proved positive, and kernels store log λ; declare it `unit` or `positive`, "
    "or use `sigmoid(…)`"
)


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
        raise Unsupported(block, _NOT_POSITIVE)


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
    return split_by_axes(mul(after, drive.key, drive.stream), frozenset(structure.keys))


@dataclass(frozen=True, slots=True)
class _LowRank:
    """The low-rank part of a chain, and the diagonals around it.

    Attributes:
        left, right: its vectors as they stand in their factor.
        before: diagonals of the factors before it, which come to its right side.
        beside: diagonal of its own factor.
        behind: diagonals of the factors behind it, which come to its left side.
        after: those behind the drive's factor, which scale the drive.
    """

    left: Expr
    right: Expr
    before: Expr
    beside: Expr
    behind: Expr = ONE
    after: Expr = ONE

    @property
    def vectors(self) -> tuple[Expr, Expr]:
        """Left and right of the whole transition."""
        return mul(self.behind, self.left), mul(self.before, self.right)


def _strength(part: _LowRank, key: Expr, keys: frozenset[Axis]) -> Expr | None:
    """Returns s where the low-rank part is key ⊗ s (Σ_keys key · λ h); None where it is not.

    What it reads is λ h up to a factor without keys: nothing decays beside it, nor key by key
    behind it.
    """
    left, right = (split_by_axes(e, keys) for e in (part.left, part.right))
    if not left.key == right.key == key or not is_one(part.beside) or part.behind.axes & keys:
        return None
    return mul(left.rest, right.rest)


def _low_rank(block: Block, structure: BlockStructure) -> _LowRank:
    """Returns the low-rank part of a chain."""
    part: _LowRank | None = None
    scale: Expr | None = None
    keys = frozenset(structure.keys)
    diagonal: Expr = ONE
    for factor in block.chain:
        here, terms = _parts(factor, block)
        if (terms and part is not None) or len(terms) > 1:
            raise Unsupported(block, "its transition has more than one low-rank part")
        if terms and scale is not None:
            raise Unsupported(block, "a low-rank part stands behind its drive")
        if part is not None:
            part = replace(part, behind=mul(here, part.behind))
        if scale is not None:
            scale = mul(here, scale)
        for t in terms:
            if t.source != block.state:
                raise Unsupported(block, READS_ANOTHER)
            if t.matrix is not None or t.after is not None:
                raise Unsupported(block, _MIXES)
            if t.over != keys or not t.left.axes | t.right.axes <= {*structure.heads, *keys}:
                raise Unsupported(block, "its low-rank part does not act on its keys alone")
            part = _LowRank(t.left, t.right, diagonal, here)
        if factor.drives:
            scale = ONE
        diagonal = mul(diagonal, here)
    assert part is not None and scale is not None
    if not diagonal.axes <= {*structure.heads, *keys}:
        raise Unsupported(block, "its decay varies along channels, beside a low-rank part")
    return replace(part, after=scale)


def _parts(factor: ChainFactor, block: Block) -> tuple[Expr, list[Term]]:
    """The diagonal of a factor, and its other terms."""
    own = [t for t in factor.terms if t.source == block.state and not t.over]
    plain = [t for t in own if t.matrix is None and t.after is None]
    others = [t for t in factor.terms if t not in plain]
    return add(*(mul(t.left, t.right) for t in plain)), others


def split_by_axes(product: Expr, keys: frozenset[Axis]) -> Split:
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
