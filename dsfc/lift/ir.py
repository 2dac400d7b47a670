"""Values of a module at one token, or at a pair of tokens: what `recognise` makes of a trace.

A node is a formula over named axes. Elementwise nodes broadcast: a node has the axes that its
arguments have together. Nodes are compared by identity; each knows where the user wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dsfc.lift.axes import Axis, axes_of


@dataclass(frozen=True, slots=True)
class Where:
    """A line of the user's code.

    Attributes:
        file: path of the file.
        line: number of the line, from 1.
        name: the variable that the line assigns the value to, if it is one.
    """

    file: str
    line: int
    name: str | None = None


@dataclass(eq=False)
class Node:
    """A value."""

    where: Where | None = field(default=None, kw_only=True)


@dataclass(eq=False)
class Num(Node):
    """A number.

    Attributes:
        value: the number.
        root_of: axes; it is 1 over the root of their size.
        axes: along which it was written down, as the entries of a constant tensor.
    """

    value: Fraction
    root_of: tuple[Axis, ...] = ()
    axes: tuple[Axis, ...] = ()


@dataclass(eq=False)
class Param(Node):
    """A parameter or buffer, or a part of one.

    Attributes:
        path: its name in the module, such as `attn.q_proj.weight`.
        dims: axes of each of its dimensions.
        cuts: (dimension, first, number of entries) of each part taken.
        flipped: dimensions whose entries are taken from the last to the first.
    """

    path: str
    dims: tuple[tuple[Axis, ...], ...]
    cuts: tuple[tuple[int, int, int], ...] = ()
    flipped: tuple[int, ...] = ()
    is_complex: bool = False
    buffer: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other parameters and parts."""
        return self.path, self.cuts, self.flipped


@dataclass(eq=False)
class Input(Node):
    """An argument of the module at the present token."""

    name: str
    axes: tuple[Axis, ...]


@dataclass(eq=False)
class Ones(Node):
    """The number 1 along axes; prints only as what broadcasts."""

    axes: tuple[Axis, ...]


@dataclass(eq=False)
class Iota(Node):
    """0, 1, 2, … along an axis."""

    axis: Axis


@dataclass(eq=False)
class First(Node):
    """1 at the first token, 0 after it."""


@dataclass(eq=False)
class Op(Node):
    """An elementwise operation: `+ - * / ^ neg` or a primitive of the language."""

    name: str
    args: tuple[Node, ...]


@dataclass(eq=False)
class Reduce(Node):
    """`sum`, `mean` or `max` over axes."""

    kind: str
    axes: tuple[Axis, ...]
    arg: Node


@dataclass(eq=False)
class Along(Node):
    """`softmax` or `l2norm` along an axis."""

    name: str
    axis: tuple[Axis, ...]
    arg: Node


@dataclass(eq=False)
class Contract(Node):
    """The sum of a product over axes."""

    left: Node
    right: Node
    axes: tuple[Axis, ...]


@dataclass(eq=False)
class Apply(Node):
    """A parameter as a linear map.

    Attributes:
        source: axes that are summed over.
        target: axes that appear.
        each: axes that the parameter and the argument share.
    """

    map: Param
    arg: Node
    source: tuple[Axis, ...]
    target: tuple[Axis, ...]
    each: tuple[Axis, ...] = ()


@dataclass(eq=False)
class Rename(Node):
    """A value with another name for an axis."""

    arg: Node
    old: Axis
    new: Axis


@dataclass(eq=False)
class Delay(Node):
    """The value some tokens earlier; 0 before the first token."""

    arg: Node
    lag: int


@dataclass(eq=False)
class Fir(Node):
    """A causal filter along time: taps along the axis `taps` of the weight."""

    weight: Node
    arg: Node
    taps: Axis


@dataclass(eq=False)
class Token(Node):
    """A stream at one numbered token of the trace, inside an unrolled loop."""

    arg: Node
    token: int


@dataclass(eq=False)
class State:
    """A value that is carried from token to token.

    Attributes:
        axes: of the state.
        update: its value at a token, from `Before` it.
        start: what it is before the first token; None for zero.
        where: where it is updated.
        added: for a cumulative sum, what is added at each token.
        hint: a name, where the user has none.
    """

    axes: tuple[Axis, ...]
    update: Node | None = None
    start: Node | None = None
    where: Where | None = None
    added: Node | None = None
    hint: str = "s"
    is_complex: bool = False


@dataclass(eq=False)
class Now(Node):
    """A state after the update of the present token."""

    state: State


@dataclass(eq=False)
class Before(Node):
    """A state before the update of the present token; `first` adds where it starts."""

    state: State


# Pairs of tokens


@dataclass(eq=False)
class At(Node):
    """A stream at one of the two tokens of a pair."""

    arg: Node
    variable: int


@dataclass(eq=False)
class Lag(Node):
    """Token 0 of the pair less token 1, in tokens."""


@dataclass(eq=False)
class Run(Node):
    """The product of a stream over the tokens after token 1 up to token 0."""

    arg: Node


MIRRORED = {"le": "ge", "ge": "le", "lt": "gt", "gt": "lt"}
"""How token 0 lies to token 1, by how token 1 lies to token 0."""


@dataclass(eq=False)
class Masked(Node):
    """A value of pairs where a relation holds, and `fill`, 0 or -inf, elsewhere."""

    arg: Node
    relation: str
    fill: float


@dataclass(eq=False)
class Past(Node):
    """The sum over token 1 of a value of pairs, where a relation holds; None for all tokens."""

    arg: Node
    relation: str | None


def children(node: Node) -> tuple[Node, ...]:
    """Returns the nodes that a node is computed from."""
    match node:
        case Op(args=args):
            return args
        case Contract(left=left, right=right):
            return left, right
        case Apply(map=map_, arg=arg):
            return map_, arg
        case Fir(weight=weight, arg=arg):
            return weight, arg
        case (
            Reduce(arg=arg) | Along(arg=arg) | Rename(arg=arg) | Delay(arg=arg) | Token(arg=arg)
            | At(arg=arg) | Run(arg=arg) | Masked(arg=arg) | Past(arg=arg)
        ):  # fmt: skip
            return (arg,)
    return ()


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """Returns a node with each child changed, the same node if none is."""
    before = children(node)
    after = tuple(map(change, before))
    if all(a is b for a, b in zip(before, after, strict=True)):
        return node
    match node:
        case Op():
            return replace(node, args=after)
        case Contract():
            return replace(node, left=after[0], right=after[1])
        case Apply():
            assert isinstance(after[0], Param)
            return replace(node, map=after[0], arg=after[1])
        case Fir():
            return replace(node, weight=after[0], arg=after[1])
    # All other nodes with a child hold it as `arg`, which `Node` itself does not have.
    return replace(node, arg=after[0])  # type: ignore[call-arg]


def own_axes(node: Node) -> tuple[Axis, ...]:
    """Returns the axes that a node names itself, in an order that tells nodes apart."""
    match node:
        case Reduce(axes=axes) | Input(axes=axes) | Ones(axes=axes) | Contract(axes=axes):
            return axes_of(axes)
        case Along(axis=axes):
            return axes_of(axes)
        case Iota(axis=axis):
            return axes_of((axis,))
        case Rename(old=old, new=new):
            return (*axes_of((old,)), *axes_of((new,)))
        case Apply(source=source, target=target, each=each):
            return (*axes_of(source), *axes_of(target), *axes_of(each))
    return ()


def walk(*roots: Node) -> Iterator[Node]:
    """Yields every node below roots once, children first; states are entered too."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        below = children(node)
        if isinstance(node, Now | Before):
            below = tuple(n for n in (node.state.update, node.state.start) if n is not None)
        stack += [(child, False) for child in reversed(below)]


def axes(node: Node, known: dict[int, tuple[Axis, ...]]) -> tuple[Axis, ...]:
    """Returns the resolved axes of a node, each once.

    Args:
        node: the node.
        known: axes of nodes by identity, which is filled.
    """
    if id(node) not in known:
        known[id(node)] = _axes(node, known)
    return known[id(node)]


def _axes(node: Node, known: dict[int, tuple[Axis, ...]]) -> tuple[Axis, ...]:
    match node:
        case Param(dims=dims):
            return axes_of(a for dim in dims for a in dim)
        case Input(axes=own) | Ones(axes=own):
            return axes_of(own)
        case Num(axes=own):
            return axes_of(own)
        case Iota(axis=axis):
            return axes_of((axis,))
        case Now(state=state) | Before(state=state):
            return axes_of(state.axes)
        case Fir(arg=arg):
            return axes(arg, known)
        case Apply(arg=arg, source=source, target=target):
            kept = tuple(a for a in axes(arg, known) if a not in axes_of(source))
            return tuple(dict.fromkeys((*kept, *axes_of(target))))
        case Rename(arg=arg, old=old, new=new):
            swap = dict(zip(axes_of((old,)), axes_of((new,)), strict=True))
            return tuple(swap.get(a, a) for a in axes(arg, known))
    below = tuple(dict.fromkeys(a for child in children(node) for a in axes(child, known)))
    match node:
        case Reduce(axes=gone) | Contract(axes=gone):
            return tuple(a for a in below if a not in axes_of(gone))
    return below
