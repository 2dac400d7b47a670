"""The closed expression type that mixers and systems share.

One immutable, interned, typed node: two expressions that are structurally equal *are* the same
object, so equality is identity and hashing is free. The type of an expression is its set of named
axes, its field and its dependence on time; it is computed when the node is built. There is no
layout here: an axis has a name, not a position.

Build nodes with the constructors of `dsfc.expr.build`, which flatten and fold; the classes
here do not simplify. Nothing in this module evaluates text.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum
from fractions import Fraction
from threading import RLock
from typing import Any, ClassVar
from weakref import WeakValueDictionary


@dataclass(frozen=True, slots=True, order=True)
class Axis:
    """A named axis.

    Sorting axes gives the canonical layout: the order in which `dims` declares them.

    Attributes:
        index: position in the mixer's list of axes.
        name: ASCII name, unique in a mixer.
        heads: whether the axis only enumerates independent heads (never contracted by `·`).
        copy_of: name of the axis this one is a fresh copy of (tensor powers), else None.
    """

    index: int
    name: str
    heads: bool = False
    copy_of: str | None = None

    def __repr__(self) -> str:
        """Shows the name alone: axes stand inside long expressions."""
        return self.name


class Field(IntEnum):
    """The field an expression takes its values in."""

    REAL = 0
    COMPLEX = 1


class Time(IntEnum):
    """How an expression depends on time; the larger absorbs the smaller.

    CONST: no time index. TOKEN: a function of the inputs. PAIR: depends on i and on a summed j.
    STATE: depends on a declared state, or on a sum over the past.
    """

    CONST = 0
    TOKEN = 1
    PAIR = 2
    STATE = 3


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression: (axes, field, time)."""

    axes: frozenset[Axis]
    field: Field
    time: Time


@dataclass(frozen=True, slots=True)
class Now:
    """The time index i - lag. A negative lag reads the future (systems that run backwards)."""

    lag: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """The time index var - lag, where `var` is bound by an enclosing sum over time."""

    var: str
    lag: int = 0


@dataclass(frozen=True, slots=True)
class LinearMap:
    """A declared linear map, stored as an array `[*each, *target, *source]`.

    Attributes:
        name: the parameter or buffer that holds the matrix.
        each: axes with one matrix per index (block-diagonal maps).
        source: axes it contracts.
        target: axes that appear.
        field: field of the entries.
        adjoint: True for the conjugate transpose of the stored array; source and target are then
            already exchanged: they always say what the map does.
    """

    name: str
    each: tuple[Axis, ...]
    source: tuple[Axis, ...]
    target: tuple[Axis, ...]
    field: Field = Field.REAL
    adjoint: bool = False


class _Interned(type):
    """Metaclass: building a node twice from the same arguments gives the same object."""

    _table: ClassVar[WeakValueDictionary[tuple[Any, ...], Any]] = WeakValueDictionary()
    _names: ClassVar[dict[type, tuple[str, ...]]] = {}
    _lock: ClassVar[AbstractContextManager[object]] = RLock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Builds the node, or returns the one built before."""
        node = super().__call__(*args, **kwargs)
        key = (cls, *(getattr(node, name) for name in argument_names(cls)))
        # `setdefault` of a dictionary of weak values looks first and stores then.
        with _Interned._lock:
            return _Interned._table.setdefault(key, node)


def argument_names(node: type) -> tuple[str, ...]:
    """Returns the names of a node class's constructor arguments, in order."""
    names = _Interned._names.get(node)
    if names is None:
        names = tuple(f.name for f in fields(node) if f.init)
        _Interned._names[node] = names
    return names


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Expr(metaclass=_Interned):
    """Base of all expression nodes.

    Attributes:
        type: axes, field and time dependence, computed from the arguments.
    """

    type: Type = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Computes the type."""
        object.__setattr__(self, "type", self._infer())

    def _infer(self) -> Type:
        raise TypeError(f"{type(self).__name__} has no type rule")

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes of the value."""
        return self.type.axes

    @property
    def field(self) -> Field:
        """The field of the value."""
        return self.type.field

    @property
    def time(self) -> Time:
        """The dependence on time."""
        return self.type.time

    def __copy__(self) -> Expr:
        """Returns itself: nodes are immutable and unique."""
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        """Returns itself: nodes are immutable and unique."""
        return self


_SCALAR = Type(frozenset(), Field.REAL, Time.CONST)


def join(types: Iterable[Type]) -> Type:
    """Returns the type of an elementwise combination: union of axes, maxima of field and time."""
    axes: frozenset[Axis] = frozenset()
    kind, time = Field.REAL, Time.CONST
    for t in types:
        axes |= t.axes
        kind = max(kind, t.field)
        time = max(time, t.time)
    return Type(axes, kind, time)


# --- leaves ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Num(Expr):
    """An exact rational number."""

    value: Fraction

    def _infer(self) -> Type:
        return _SCALAR


@dataclass(frozen=True, slots=True, eq=False)
class Size(Expr):
    """The size of an axis, as a number."""

    axis: Axis

    def _infer(self) -> Type:
        return _SCALAR


@dataclass(frozen=True, slots=True, eq=False)
class Ones(Expr):
    """The tensor of ones over some axes."""

    over: frozenset[Axis]

    def _infer(self) -> Type:
        return Type(self.over, Field.REAL, Time.CONST)


@dataclass(frozen=True, slots=True, eq=False)
class Iota(Expr):
    """0, 1, 2, … along an axis."""

    axis: Axis

    def _infer(self) -> Type:
        return Type(frozenset({self.axis}), Field.REAL, Time.CONST)


@dataclass(frozen=True, slots=True, eq=False)
class Param(Expr):
    """A parameter or a buffer used as a tensor."""

    name: str
    over: frozenset[Axis]
    kind: Field = Field.REAL

    def _infer(self) -> Type:
        return Type(self.over, self.kind, Time.CONST)


@dataclass(frozen=True, slots=True, eq=False)
class Ref(Expr):
    """The value of an input, definition, stream or state at a time index; 0 outside the sequence.

    `first` (1 at the first token of a sequence, else 0) is the Ref of that reserved name.

    Attributes:
        name: what is read.
        over: its axes.
        kind: its field.
        when: its own dependence on time (CONST for definitions that reach no input).
        at: the time index; None exactly for CONST definitions.
    """

    name: str
    over: frozenset[Axis]
    kind: Field
    when: Time
    at: Now | Bound | None

    def _infer(self) -> Type:
        time = max(self.when, Time.PAIR) if isinstance(self.at, Bound) else self.when
        return Type(self.over, self.kind, time)


# --- arithmetic -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Add(Expr):
    """A sum of terms with equal axes (or none)."""

    args: tuple[Expr, ...]

    def _infer(self) -> Type:
        return join(a.type for a in self.args)


@dataclass(frozen=True, slots=True, eq=False)
class Mul(Expr):
    """A product. `*` and `⊗` are the same node: they differ only in what the type checker asks."""

    args: tuple[Expr, ...]

    def _infer(self) -> Type:
        return join(a.type for a in self.args)


@dataclass(frozen=True, slots=True, eq=False)
class Div(Expr):
    """num / den, elementwise."""

    num: Expr
    den: Expr

    def _infer(self) -> Type:
        return join((self.num.type, self.den.type))


@dataclass(frozen=True, slots=True, eq=False)
class Pow(Expr):
    """base ^ exponent, elementwise. In a mixer the exponent may be a `Lag`."""

    base: Expr
    exponent: Expr

    def _infer(self) -> Type:
        return join((self.base.type, self.exponent.type))


class Reduction(Enum):
    """How `Reduce` combines the entries along an axis."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expr):
    """A reduction along one axis. The contraction `a · b` is `Reduce(SUM, axis, a * b)`."""

    how: Reduction
    axis: Axis
    arg: Expr

    def _infer(self) -> Type:
        t = self.arg.type
        return Type(t.axes - {self.axis}, t.field, t.time)


@dataclass(frozen=True, slots=True, eq=False)
class Map(Expr):
    """A declared linear map applied to a value: contracts its source, gives its target."""

    map: LinearMap
    arg: Expr

    def _infer(self) -> Type:
        t = self.arg.type
        axes = (t.axes - frozenset(self.map.source)) | frozenset(self.map.target)
        return Type(axes | frozenset(self.map.each), max(t.field, self.map.field), t.time)


@dataclass(frozen=True, slots=True, eq=False)
class Fir(Expr):
    """Causal finite impulse response: Σ_r weight[r] · arg[i - r] with r along `axis`.

    `reverse` reads arg[i + r] instead: the adjoint of the causal filter.
    """

    axis: Axis
    weight: Expr
    arg: Expr
    reverse: bool = False

    def _infer(self) -> Type:
        t = join((self.weight.type, self.arg.type))
        return Type(t.axes - {self.axis}, t.field, t.time)


@dataclass(frozen=True, slots=True, eq=False)
class Rename(Expr):
    """The same values with axis `old` called `new`."""

    old: Axis
    new: Axis
    arg: Expr

    def _infer(self) -> Type:
        t = self.arg.type
        return Type((t.axes - {self.old}) | {self.new}, t.field, t.time)


@dataclass(frozen=True, slots=True, eq=False)
class Prim(Expr):
    """A primitive of the table, elementwise or along one axis (l2norm, rmsnorm, softmax).

    Attributes:
        name: row of `dsfc.expr.table`.
        args: arguments.
        kind: field of the result (`re` and `abs` of a complex value are real).
        axis: the axis for primitives that need one, else None.
    """

    name: str
    args: tuple[Expr, ...]
    kind: Field
    axis: Axis | None = None

    def _infer(self) -> Type:
        t = join(a.type for a in self.args)
        return Type(t.axes, self.kind, t.time)


@dataclass(frozen=True, slots=True, eq=False)
class Series(Expr):
    """The truncated exponential series Σ_{r ≤ order} arg^r / r! (`taylor[order](arg)`)."""

    order: int
    arg: Expr

    def _infer(self) -> Type:
        return self.arg.type


@dataclass(frozen=True, slots=True, eq=False)
class Abstract(Expr):
    """An uninterpreted feature map applied to a value: source axes go, target axes appear."""

    name: str
    source: tuple[Axis, ...]
    target: tuple[Axis, ...]
    arg: Expr

    def _infer(self) -> Type:
        t = self.arg.type
        return Type((t.axes - frozenset(self.source)) | frozenset(self.target), t.field, t.time)


@dataclass(frozen=True, slots=True, eq=False)
class Draw(Expr):
    """A random draw; stands in initialisers only.

    Two draws of one initialiser are two numbers, however alike they are written: `number`, from 0,
    says which of them this is.
    """

    distribution: str
    args: tuple[Expr, ...]
    over: frozenset[Axis]
    number: int = 0

    def _infer(self) -> Type:
        return Type(self.over, Field.REAL, Time.CONST)


# --- the tree itself ---------------------------------------------------------------------------


def children(expr: Expr) -> tuple[Expr, ...]:
    """Returns the direct sub-expressions of a node, in order."""
    out: list[Expr] = []
    for name in argument_names(type(expr)):
        value = getattr(expr, name)
        if isinstance(value, Expr):
            out.append(value)
        elif isinstance(value, tuple):
            out.extend(v for v in value if isinstance(v, Expr))
    return tuple(out)


def rebuild(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """Returns the node with its direct sub-expressions replaced, in order.

    The same object when nothing changed. Does not simplify; see `dsfc.expr.build.remake`.
    """
    if new == children(expr):
        return expr
    rest = iter(new)
    values: list[Any] = []
    for name in argument_names(type(expr)):
        value = getattr(expr, name)
        if isinstance(value, Expr):
            value = next(rest)
        elif isinstance(value, tuple) and any(isinstance(v, Expr) for v in value):
            value = tuple(next(rest) if isinstance(v, Expr) else v for v in value)
        values.append(value)
    expr_made: Expr = type(expr)(*values)
    return expr_made
