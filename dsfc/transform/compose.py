"""Systems from Systems: series, sums, products, masks, sequence starts; and steps from steps.

Names of parameters, streams and states of the second System are made fresh beside those of the
first; inputs and axes of the same name are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dsfc.expr.build import ONE, mul, ones
from dsfc.expr.declarations import Dimension
from dsfc.expr.tree import Axis, Expr, Rename, Size
from dsfc.system.ir import (
    Block,
    Drive,
    Factor,
    Product,
    Read,
    Stage,
    Step,
    Stream,
    Sum,
    System,
    Term,
)
from dsfc.transform.gauge import diagonal_of
from dsfc.transform.inline import Inliner
from dsfc.transform.order import ordered
from dsfc.transform.record import Record
from dsfc.transform.rename import Renamer, joined_axes, tensor_names
from dsfc.transform.terms import Names


class CompositionError(ValueError):
    """Systems that cannot be put together in the way asked for."""


# --- two Systems ----------------------------------------------------------------------------------


def series(first: System, second: System, into: str) -> tuple[System, Record]:
    """Returns the System that feeds the output of the first to an input of the second.

    Args:
        first: a System with one output.
        second: the System that reads it.
        into: the input of the second System that the output replaces.

    Raises:
        CompositionError: there is no such input, or it has other axes or another field.
    """
    (output,) = first.outputs
    if into not in {t.name for t in second.inputs}:
        raise CompositionError(f"`{second.name}` has no input `{into}`")
    names = Names.of(first)
    link = names.fresh(f"{output.name}_of_{first.name}")
    shared = _shared_inputs(first, second, {into})
    second, record = _beside(first, second, names, shared, {into: link})
    (seen,) = (t for t in second.inputs if t.name == link)
    if frozenset(seen.axes) != frozenset(output.axes) or seen.field != output.field:
        raise CompositionError(f"`{into}` and `{output.name}` have different types")
    stream = Stream(link, output.value, output.axes, output.field)
    rest = tuple(t for t in second.inputs if t.name != link)
    made = _union(first, replace(second, inputs=rest), "series", (stream,))
    return ordered(replace(made, outputs=second.outputs)), record


def added(first: System, second: System) -> tuple[System, Record]:
    """Returns the System whose output is the sum of those of two Systems.

    Raises:
        CompositionError: the outputs have different axes or fields.
    """
    return _combined(first, second, "sum")


def multiplied(first: System, second: System) -> tuple[System, Record]:
    """Returns the System whose output is the elementwise product of those of two Systems.

    Raises:
        CompositionError: the outputs have different axes or fields.
    """
    return _combined(first, second, "product")


def kronecker(first: System, second: System) -> tuple[System, Record]:
    """Returns the System whose kernel is the product of the kernels of two Systems.

    With y_i = Σ_j Φ(i, j) x_j and y'_i = Σ_j Φ'(i, j) x_j over the same stream x it computes
    Σ_j Φ(i, j) Φ'(i, j) x_j: its transition is the Kronecker product of the two, Λ ⊗ Λ'.

    Raises:
        CompositionError: a System is not one read of one diagonal block with one drive, or the
            drives have different streams.
    """
    names = Names.of(first)
    second, record = _beside(first, second, names, _shared_inputs(first, second, set()), {})
    a, read_a = _single(first)
    b, read_b = _single(second)
    made = _union(first, second, "kronecker", ())
    shared = read_a.over & read_b.over
    dims = list(made.axes)
    moved = {axis: _copy(dims, axis, names) for axis in sorted(shared)}

    def apart(e: Expr) -> Expr:
        # Parameters keep their axes: the copy is made where they are read.
        for old, new in moved.items():
            e = Rename(old, new, e) if old in e.axes else e
        return e

    (drive_a,), (drive_b,) = a.chain[0].drives, b.chain[0].drives
    same = _inlined(first, drive_a.stream) is _inlined(second, drive_b.stream)
    if not same or moved.keys() & drive_b.stream.axes:
        raise CompositionError("the two kernels act on different streams")
    lam_a, lam_b = _lambda(a), apart(_lambda(b))
    axes = tuple(sorted({*a.axes, *(moved.get(x, x) for x in b.axes)}))
    state = names.fresh(f"{a.state}_x_{b.state}")
    kind = max(a.field, b.field)
    key = mul(drive_a.key, apart(drive_b.key))
    missing = frozenset(axes) - key.axes - drive_a.stream.axes
    factor = Factor(
        (Term(state, 1, mul(lam_a, lam_b), frozenset(), ONE),),
        (Drive(mul(key, ones(missing)), drive_a.stream),),
    )
    block = Block(state, axes, kind, (factor,), None, declared=False)
    read = Term(
        state,
        0,
        mul(read_a.left, read_b.left),
        read_a.over | frozenset(moved.get(x, x) for x in read_b.over),
        mul(read_a.right, apart(read_b.right)),
    )
    output = replace(first.outputs[0], value=Read((read,)), field=kind)
    stage = Stage(first.stages[0].direction, (block,))
    made = replace(made, axes=tuple(dims), stages=(stage,), outputs=(output,))
    return ordered(made, reached_only=True), record


def _single(system: System) -> tuple[Block, Term]:
    value = system.outputs[0].value
    if len(system.blocks) != 1 or not isinstance(value, Read) or value.direct is not None:
        raise CompositionError(f"`{system.name}` is not one read of one state")
    (block,) = system.blocks
    plain = len(value.terms) == 1 and value.terms[0].lag == 0 and value.terms[0].matrix is None
    if not plain or diagonal_of(block) is None or len(block.chain[0].drives) != 1:
        raise CompositionError(f"`{system.name}` is not one read of one diagonal state")
    return block, value.terms[0]


def _lambda(block: Block) -> Expr:
    value = diagonal_of(block)
    if value is None:
        raise CompositionError(f"`{block.state}` is not diagonal")
    return value


def _inlined(system: System, expr: Expr) -> Expr:
    return Inliner(system).of(expr)


def _copy(dims: list[Dimension], axis: Axis, names: Names) -> Axis:
    root = axis.copy_of or axis.name
    new = Axis(1 + max(d.axis.index for d in dims), names.fresh(f"{root}_2"), axis.heads, root)
    dims.append(Dimension(new, Size(axis), False))
    return new


def _combined(first: System, second: System, rule: str) -> tuple[System, Record]:
    names = Names.of(first)
    shared = _shared_inputs(first, second, set())
    second, record = _beside(first, second, names, shared, {})
    (a,), (b,) = first.outputs, second.outputs
    if frozenset(a.axes) != frozenset(b.axes) or a.field != b.field:
        raise CompositionError(f"`{a.name}` and `{b.name}` have different types")
    made = _union(first, second, rule, ())
    value = Sum((a.value, b.value)) if rule == "sum" else Product((a.value, b.value))
    return ordered(replace(made, outputs=(replace(a, value=value),))), record


def _shared_inputs(first: System, second: System, but: set[str]) -> set[str]:
    known = {t.name for t in first.inputs}
    return {t.name for t in second.inputs if t.name in known and t.name not in but}


def _beside(
    first: System, second: System, names: Names, shared: set[str], given: Mapping[str, str]
) -> tuple[System, Record]:
    """The second System over the axes of the first, with fresh names for all that is not shared."""
    _, moved = joined_axes(first.axes, second.axes)
    owned = [t.name for t in second.inputs if t.name not in shared and t.name not in given]
    owned += [*tensor_names(second), *(s.name for s in second.streams)]
    owned += [b.state for b in second.blocks]
    table = {n: names.fresh(n) for n in owned} | dict(given)
    record = Record("compose", (Step("rename", second.name),), tuple(table.items()))
    return Renamer(table, moved).system(second), record


def _union(first: System, second: System, rule: str, between: tuple[Stream, ...]) -> System:
    axes = {d.axis: d for d in (*second.axes, *first.axes)}
    known = {t.name for t in first.inputs}
    return System(
        name=f"{first.name}_{rule}_{second.name}",
        doc=None,
        axes=tuple(axes[a] for a in sorted(axes)),
        inputs=first.inputs + tuple(t for t in second.inputs if t.name not in known),
        params=first.params + second.params,
        buffers=first.buffers + second.buffers,
        abstracts=first.abstracts + second.abstracts,
        streams=first.streams + between + second.streams,
        stages=first.stages + second.stages,
        outputs=(),
        definition=(),
        claims=(),
        derivation=(*first.derivation, *second.derivation, Step("compose", rule)),
    )
