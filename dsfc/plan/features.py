"""Which token-wise kernels a matrix scan can compute where it loads and where it stores.

A matrix scan reads queries φ(q), keys ψ(k) and values w v, with one number w a token and head, and
what it gives is often divided by another one, η, and multiplied by a constant. Its kernels can
compute all of that of what lies before it: φ and ψ as they load, w and η of their own leaves, and
the quotient as they store. Then nothing but q, k, v and these leaves comes from memory, and only
their gradients go there. Backends that have such kernels ask for it; the plan itself stays as it
is.

Each tile of queries is loaded by several programs, so φ is taken in only where it reads one buffer
of its size: it moves no more then than its result. A function that kernels do not know, or that
something else reads too, stays in front.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from dsfc.expr.build import ONE, ZERO, add, is_one, mul, prim, remake, rewrite, walk
from dsfc.expr.derivative import pull
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
    Size,
    Time,
    children,
)
from dsfc.plan.gates import Gates, absorb, called, fresh
from dsfc.plan.ir import Buffer, Column, Form, Kernel, Plan, Pointwise, Role, Scan
from dsfc.plan.planes import in_planes, is_paired
from dsfc.plan.verify import reads, written_by

FEATURE_BAR = "feature_bar"
"""Name under which gradients of leaves read that of what is computed of them."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A value that a kernel computes of leaves, entry by entry.

    Attributes:
        leaves: buffers of its axes.
        value: over the leaves.
        gradients: of the leaves, over them and `Ref("feature_bar")`.
    """

    leaves: tuple[str, ...]
    value: Expr
    gradients: tuple[Expr, ...]

    @property
    def plain(self) -> bool:
        """Whether nothing is computed."""
        return isinstance(self.value, Ref)


@dataclass(frozen=True, slots=True)
class Features:
    """What the kernels of a matrix scan compute besides its recurrence.

    Attributes:
        scan: its name.
        read: φ, of one leaf.
        key: ψ, of one leaf.
        weight: w, a number a token and head that all values have as a factor; None for 1.
        normaliser: η, a number a token and head that divides the output; None for 1.
        running: whether η is computed of what is read of a column of the state by itself: of
            Σ φ(q) · ψ(k) w in the denominator of linear attention.
        factor: of the output and of φ, a number over sizes of keys.
    """

    scan: str
    read: Feature
    key: Feature
    weight: Feature | None
    normaliser: Feature | None
    factor: Expr
    running: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        """Leaves of one number a token and head: those of the weight, then of the normaliser."""
        read = None if self.running else self.normaliser
        return tuple(n for f in (self.weight, read) if f is not None for n in f.leaves)

    @property
    def plain(self) -> bool:
        """Whether the scan computes nothing but its recurrence."""
        alone = self.weight is None and self.normaliser is None and is_one(self.factor)
        return self.read.plain and self.key.plain and alone


@dataclass(frozen=True, slots=True)
class Taken:
    """A plan whose matrix scans compute their features.

    Attributes:
        plan: without the kernels that the features hold, and with one for each leaf that had none.
        features: one per matrix scan of real numbers or of pairs, in order.
    """

    plan: Plan
    features: tuple[Features, ...]


def take_features(plan: Plan, knows: Callable[[Prim], bool], held: Collection[str] = ()) -> Taken:
    """Returns the plan with the features of its matrix scans taken in.

    Args:
        plan: the plan.
        knows: whether a kernel can compute a primitive; others are left in front of the scan.
        held: buffers that kernels of other scans read, which the plan does not say.
    """
    found: list[Features] = []
    read = set(held)
    for name in [k.name for k in plan.kernels if isinstance(k, Scan) and k.form is Form.MATRIX]:
        whole = in_planes(plan, name, read)
        scan = next(k for k in whole.kernels if isinstance(k, Scan) and k.name == name)
        if scan.field is Field.REAL or is_paired(scan):
            plan, features = _Taking(whole, scan, knows, read).result()
            found.append(features)
            read |= set(features.numbers)
    return Taken(plan, tuple(found))


@dataclass(frozen=True, slots=True)
class FusedPlan:
    """A plan without what the kernels of its scans compute, and that, by scan.

    A scan without gates and features has no kernels.
    """

    plan: Plan
    gates: dict[str, Gates]
    features: dict[str, Features]

    @property
    def scans(self) -> dict[str, Scan]:
        """The scans, with the leaves of what their kernels compute."""
        return {k.name: k for k in self.plan.kernels if isinstance(k, Scan)}


def take_in(plan: Plan, knows: Callable[[Prim], bool]) -> FusedPlan:
    """Returns what the kernels of a plan's scans compute.

    No kernel sums products of keys in double precision: where one scan does, none has any.

    Args:
        plan: the plan.
        knows: whether a kernel can compute a primitive; others are left in front of the scan.
    """
    if any(isinstance(k, Scan) and k.powers for k in plan.kernels):
        return FusedPlan(plan, {}, {})
    absorbed = absorb(plan, knows)
    held = [n for g in absorbed.gates for n in (*g.tokens, *g.constants)]
    taken = take_features(absorbed.plan, knows, held)
    gates = {g.scan: g for g in absorbed.gates}
    return FusedPlan(taken.plan, gates, {f.scan: f for f in taken.features})


class _Taking:
    """The features of one scan of a plan under change."""

    def __init__(
        self, plan: Plan, scan: Scan, knows: Callable[[Prim], bool], held: Collection[str]
    ) -> None:
        self._plan = plan
        self._scan = scan
        self._knows = knows
        self._kernels: list[Kernel] = list(plan.kernels)
        self._arrays = {b.name: b for b in plan.arrays}
        self._outside = {plan.output, *(r.buffer for r in plan.registers), *held}
        self._names = {t.name for t in (*plan.params, *plan.buffers)} | set(self._arrays)
        self._names |= {d.axis.name for d in plan.axes} | {s.name for s in plan.states}
        self._names |= {r.name for r in plan.registers}
        self._made = {k.output: k.value for k in plan.kernels if isinstance(k, Pointwise)}
        self._readers: dict[str, list[Kernel]] = {}
        for kernel in plan.kernels:
            for name in {n for n, _ in reads(kernel)}:
                self._readers.setdefault(name, []).append(kernel)
        self._new: list[Pointwise] = []
        self._closed: set[str] = set()

    def result(self) -> tuple[Plan, Features]:
        """Returns the plan, and what was taken in."""
        scan = self._scan
        assert scan.read is not None and scan.key is not None
        if scan.before:
            # A read of what was there before a token looks at another token's query.
            read, key = self._plain(scan.read), self._plain(scan.key)
            return self._plan, Features(scan.name, read, key, None, None, ONE)
        number, read = self._of_buffer(scan.read)
        _, key = self._of_buffer(scan.key, numbers=False)
        weight: Feature | None = None
        normaliser: Feature | None = None
        factor: Expr = ONE
        columns = scan.columns
        if not is_paired(scan):
            # Values of pairs are rotated in front of their kernels, and outputs behind them.
            weight, columns = self._weighted(scan.columns)
            factor, normaliser, columns = self._divided(columns, weight)
        running = normaliser is not None and normaliser.leaves == (columns[-1].output,)
        features = Features(scan.name, read, key, weight, normaliser, mul(factor, number), running)
        if features.plain:
            return self._plan, features
        now = replace(scan, read=read.leaves[0], key=key.leaves[0], columns=columns)
        at = self._kernels.index(scan)
        self._kernels[at : at + 1] = [*self._new, now]
        self._forget(features.numbers)
        kept = self._outside | {n for k in self._kernels for n in written_by(k)}
        left = (b for b in self._arrays.values() if b.role is Role.INPUT or b.name in kept)
        return replace(self._plan, kernels=tuple(self._kernels), arrays=tuple(left)), features

    def _forget(self, numbers: tuple[str, ...]) -> None:
        """Leaves out what is not read any more; the scan reads these as well."""
        while True:
            read = {n for k in self._kernels for n, _ in reads(k)} | self._outside | set(numbers)
            left = [k for k in self._kernels if not self._is_unread(k, read)]
            if len(left) == len(self._kernels):
                return
            self._kernels = left

    def _is_unread(self, kernel: Kernel, read: set[str]) -> bool:
        return isinstance(kernel, Pointwise) and kernel.output not in read

    # --- features --------------------------------------------------------------------------------

    def _of_buffer(self, name: str, numbers: bool = True) -> tuple[Expr, Feature]:
        """What is computed of one leaf of the buffer's axes; the buffer itself, if nothing is.

        Its numbers apart, if asked for: those of a read are a factor of what is read.
        """
        ref = self._ref(name)
        value, leaves = self._cut(ref, ref.axes)
        if len(leaves) != 1:
            return ONE, self._plain(name)
        apart = [a for a in value.args if self._is_number(a)] if isinstance(value, Mul) else []
        if not apart or not numbers or not isinstance(value, Mul):
            return ONE, self._feature(value)
        return mul(*apart), self._feature(mul(*(a for a in value.args if a not in apart)))

    def _plain(self, name: str) -> Feature:
        """A buffer as it is."""
        ref = self._ref(name)
        return Feature((name,), ref, (replace(ref, name=FEATURE_BAR),))

    def _feature(self, value: Expr, name: str = "") -> Feature:
        """A value as a function of buffers; those that are made are called after it."""
        leaves = self._cut(value, value.axes)[1]
        refs = {leaf: self._stored(leaf, name) for leaf in leaves}
        value = rewrite(value, refs.get)
        bar = Ref(FEATURE_BAR, value.axes, Field.REAL, Time.TOKEN, Now(0))
        pulled = pull([(value, bar)]).refs
        names = tuple(r.name for r in refs.values())
        return Feature(names, rewrite(value, _shorter), tuple(pulled[r] for r in refs.values()))

    def _weighted(self, columns: tuple[Column, ...]) -> tuple[Feature | None, tuple[Column, ...]]:
        """The factor that all values share, and the columns without it."""
        heads = frozenset(self._scan.heads)
        weights, rests, named = [], [], set()
        for c in columns:
            value: Expr = ONE if c.value is None else self._opened(self._ref(c.value))
            factors = value.args if isinstance(value, Mul) else (value,)
            narrow = [f for f in factors if f.time is Time.TOKEN and f.axes <= heads]
            named |= {f.name for f in narrow if isinstance(f, Ref)}
            weights.append(self._cut(mul(*narrow), heads)[0])
            rests.append(mul(*(f for f in factors if f not in narrow)))
        first = weights[0]
        alike = all(w is first for w in weights) and first.axes == heads
        # What is left of a column of all channels is no constant: there is something to weigh.
        bare = any(is_one(r) and c.channels for r, c in zip(rests, columns, strict=True))
        if is_one(first) or not alike or bare or first.field is not Field.REAL:
            return None, columns
        names = [None if is_one(r) else self._stored(r).name for r in rests]
        now = tuple(replace(c, value=n) for c, n in zip(columns, names, strict=True))
        return self._feature(self._of_one(first), min(named, default="")), now

    def _of_one(self, value: Expr) -> Expr:
        """A function of one number of a token; one of several is computed in front of the scan.

        A kernel has no registers for more.
        """
        if len(self._cut(value, value.axes)[1]) < 2:
            return value
        inner = value.args[0] if isinstance(value, Prim) and len(value.args) == 1 else value
        made = self._stored(inner)
        self._closed.add(made.name)
        return made if inner is value else remake(value, (made,))

    def _divided(
        self, columns: tuple[Column, ...], weight: Feature | None
    ) -> tuple[Expr, Feature | None, tuple[Column, ...]]:
        """Factor and normaliser of the one output wherever it is read, and its column."""
        nothing = ONE, None, columns
        column, *others = columns
        readers = self._readers.get(column.output, [])
        if len(others) > 1 or len(readers) != 1 or column.output in self._outside:
            return nothing
        (reader,) = readers
        if not isinstance(reader, Pointwise):
            return nothing
        out = self._ref(column.output)
        done = replace(out, name=f"{out.name} ")
        seen: dict[tuple[Expr, Expr], None] = {}

        def go(e: Expr) -> Expr:
            top, eta = (e.num, e.den) if isinstance(e, Div) else (e, ONE)
            factors = top.args if isinstance(top, Mul) else (top,)
            numbers = [f for f in factors if self._is_number(f)]
            rest = [f for f in factors if f not in numbers and f is not out]
            if out not in factors or (rest and not is_one(eta)):
                return remake(e, tuple(go(c) for c in children(e)))
            seen[mul(*numbers), eta] = None
            return mul(done, *map(go, rest))

        value = go(reader.value)
        left = {e.name for e in walk(value) if isinstance(e, Ref)}
        if len(seen) != 1 or {out.name, *(c.output for c in others)} & left:
            return nothing
        ((factor, eta),) = seen
        normaliser = None
        if not is_one(eta):
            if eta.axes != frozenset(self._scan.heads) or eta.time is Time.CONST:
                return nothing
            name = eta.name if isinstance(eta, Ref) else ""
            normaliser = self._feature(self._cut(eta, eta.axes)[0], name)
            if weight is not None and set(weight.leaves) & set(normaliser.leaves):
                return nothing
        if others and not self._is_running(others[0], reader, normaliser, factor):
            return nothing
        at = self._kernels.index(reader)
        if value is done:
            del self._kernels[at]
            return factor, normaliser, (replace(column, output=reader.output), *others)
        self._kernels[at] = Pointwise(
            reader.output, rewrite(value, lambda e: out if e is done else None)
        )
        return factor, normaliser, columns

    def _is_running(
        self, other: Column, reader: Kernel, normaliser: Feature | None, factor: Expr
    ) -> bool:
        """Whether a normaliser is computed of one column's output, which nothing else needs.

        A factor of the quotient is none of what the normaliser is computed of.
        """
        of_it = normaliser is not None and normaliser.leaves == (other.output,)
        alone = not other.channels and self._is_for(other.output, reader)
        return alone and of_it and is_one(factor)

    def _is_for(self, name: str, reader: Kernel) -> bool:
        """Whether one kernel alone needs a buffer, under this name or another."""
        readers = [k for k in self._readers.get(name, []) if k is not reader]
        return name not in self._outside and all(
            isinstance(k, Pointwise) and isinstance(k.value, Ref) and self._is_for(k.output, reader)
            for k in readers
        )

    # --- leaves ----------------------------------------------------------------------------------

    def _cut(self, e: Expr, axes: frozenset[Axis]) -> tuple[Expr, tuple[Expr, ...]]:
        """The value as arithmetic of what is none, and that."""
        if self._is_number(e):
            return e, ()
        opened = self._opened(e)
        if isinstance(opened, Ref):
            return opened, (opened,)
        if not self._is_arithmetic(opened, axes):
            return e, (e,)
        parts = [self._cut(c, axes) for c in children(opened)]
        value = remake(opened, tuple(p for p, _ in parts))
        return value, tuple(dict.fromkeys(leaf for _, leaves in parts for leaf in leaves))

    def _opened(self, e: Expr) -> Expr:
        """What a buffer that nothing else needs is computed from."""
        if not isinstance(e, Ref) or e.at != Now(0) or e.name in self._closed:
            return e
        return self._made[e.name] if self._is_private(e.name) else e

    def _is_private(self, name: str) -> bool:
        if name in self._outside or name not in self._made:
            return False
        behind = [k for c in self._scan.columns for k in self._readers.get(c.output, [])]
        return all(
            k is self._scan
            or k in behind
            or (isinstance(k, Pointwise) and self._is_private(k.output))
            for k in self._readers[name]
        )

    def _is_arithmetic(self, e: Expr, axes: frozenset[Axis]) -> bool:
        """Whether a kernel can compute an entry of it from the same entry of its parts."""
        if e.axes != axes or e.time is Time.CONST or e.field is not Field.REAL:
            return False
        if any(c.time is Time.CONST and not self._is_number(c) for c in children(e)):
            return False  # a sum with a parameter, say: a leaf as it is
        if isinstance(e, Prim):
            return e.axis is None and self._knows(e)
        if isinstance(e, Pow):
            return isinstance(e.exponent, Num) and e.exponent.value in (2, 3)
        return isinstance(e, Add | Mul | Div)

    def _is_number(self, e: Expr) -> bool:
        """Whether it is made of numbers and of how many keys there are."""
        sizes = [s.axis for s in walk(e) if isinstance(s, Size)]
        made = all(isinstance(n, Num | Size | Pow | Mul) for n in walk(e))
        return made and all(self._scan.keys == (a,) for a in sizes)

    def _ref(self, name: str) -> Ref:
        b = self._arrays[name]
        constant = b.role is Role.CONSTANT
        time, at = (Time.CONST, None) if constant else (Time.TOKEN, Now(0))
        return Ref(name, frozenset(b.axes), b.field, time, at)

    def _stored(self, e: Expr, name: str = "") -> Ref:
        """The buffer that holds a leaf, made if there is none."""
        if isinstance(e, Ref) and e.at in (Now(0), None):
            return self._ref(e.name)
        known = {
            k.value: k.output for k in (*self._new, *self._kernels) if isinstance(k, Pointwise)
        }
        if e not in known:
            name = fresh(f"{name}_{called(e)}" if name else called(e), self._names)
            self._names.add(name)
            self._arrays[name] = Buffer(name, tuple(sorted(e.axes)), e.field, Role.STREAM)
            self._new.append(Pointwise(name, e))
            return self._ref(name)
        return self._ref(known[e])


def _shorter(e: Expr) -> Expr | None:
    """elu(x) + 1 as max(x, 0) + exp(min(x, 0)), which takes no digits of exp(x) - 1 near 0."""
    if not isinstance(e, Add) or ONE not in e.args:
        return None
    for a in e.args:
        if isinstance(a, Prim) and a.name == "elu":
            (x,) = a.args
            rest = [b for b in e.args if b is not a and b is not ONE]
            return add(prim("relu", x), prim("exp", prim("min", x, ZERO)), *rest)
    return None
