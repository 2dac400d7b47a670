"""Turns blocks with a dense transition, and the reads of them, into scans.

The chain of a block is a linear operator Λ on the axes that it mixes. What it makes of the unit
vectors of these axes are the columns of Λ, so that any chain comes out: linear maps, a diagonal
beside a low-rank part, factors behind one another.
"""

from __future__ import annotations

from dsfc.expr.build import ONE, ZERO, add, is_one, is_zero, mul, ones
from dsfc.expr.tree import Axis, Expr, Time
from dsfc.plan.graph import Graph
from dsfc.plan.readings import READS_ANOTHER, Reading, Signature, Split, Unsupported, split_by_axes
from dsfc.plan.recurrence import columns_of
from dsfc.plan.scan_ir import Form
from dsfc.system.formulas import apply_term, drive_value
from dsfc.system.ir import Block, Term


def reading(graph: Graph, term: Term, block: Block, divided: bool, backward: bool) -> Reading:
    """Returns a read as a column of a dense scan.

    Where drive and read are constants times streams, each axis that Λ leaves alone has one response
    K_l = read · Λ^l · key; else the scan gives all of its state, and the read stands behind it.

    Args:
        graph: learns the unit vectors.
        term: what is read.
        block: the block it reads.
        divided: whether the block stands in a ratio; see `dsfc.plan.readings.reading`.
        backward: whether the block runs backwards in time.

    Raises:
        Unsupported: no skeleton runs this block.
    """
    rows = _mixed(block)
    columns = columns_of(rows)
    units = (graph.unit(a, b) for a, b in zip(rows, columns, strict=True))
    matrix = _applied(block, mul(*units), driven=False)
    if matrix.time is not Time.CONST:
        raise Unsupported(block, "its transition is a full matrix that varies over time")
    transition = (matrix, rows, columns)
    heads = tuple(a for a in block.axes if a not in rows)
    before = term.lag != 0
    key, read = _key(block, frozenset(rows)), split_by_axes(term.right, frozenset(rows))
    within = frozenset(block.axes)
    fixed = key is not None and Time.CONST is key.key.time is read.key.time
    plain = term.matrix is None and term.over >= frozenset(rows) and read.key.axes <= within
    if key is not None and fixed and plain and not divided:
        if read.rest.time is Time.CONST and read.rest.axes <= within:
            read = Split(mul(read.key, read.rest), ONE)
        left, right = (ones(rows) if is_one(x) else x for x in (key.key, read.key))
        signature = Signature(
            Form.DENSE_CONVOLUTION,
            heads,
            rows,
            ZERO,
            left,
            right,
            max(block.field, matrix.field, key.rest.field, left.field, right.field),
            before,
            backward=backward,
            transition=transition,
        )
        summed = term.over - frozenset(rows)
        return Reading(block, signature, (), key.rest, read.rest, summed, term.left)
    drive = _applied(block, ZERO, driven=True)
    field = max(block.field, matrix.field, drive.field)
    signature = Signature(
        Form.DENSE,
        heads,
        (),
        ZERO,
        ONE,
        ONE,
        field,
        before,
        backward=backward,
        transition=transition,
    )
    return Reading(block, signature, rows, drive, term.right, term.over, term.left)


def _mixed(block: Block) -> tuple[Axis, ...]:
    """Axes of a state whose entries its transition mixes, in canonical order."""
    mixed: set[Axis] = set()
    for t in (t for factor in block.chain for t in factor.terms):
        if t.source != block.state:
            raise Unsupported(block, READS_ANOTHER)
        mixed |= t.over
        for m in (t.matrix, t.after):
            mixed |= {*m.source, *m.target} if m is not None else set()
    if not mixed <= set(block.axes):
        raise Unsupported(block, "its transition goes through axes that the state lacks")
    return tuple(sorted(mixed))


def _applied(block: Block, state: Expr, driven: bool) -> Expr:
    """What the chain makes of a state, with what its factors add or without."""
    for factor in block.chain:
        parts = [] if is_zero(state) else [apply_term(t, state) for t in factor.terms]
        if driven:
            parts += [drive_value(d) for d in factor.drives]
        state = add(*parts)
    return state


def _key(block: Block, rows: frozenset[Axis]) -> Split | None:
    """The only drive of the last factor as key · value; None where there is no such thing."""
    drives = [d for factor in block.chain for d in factor.drives]
    if len(drives) != 1 or not block.chain[-1].drives:
        return None
    return split_by_axes(mul(drives[0].key, drives[0].stream), rows)
