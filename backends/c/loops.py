"""Runs in C: one nest of loops for all that computes entry by entry over the same axes."""

from __future__ import annotations

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Integer,
    Kernel,
    Kind,
    Let,
    Reduce,
    Storage,
    Store,
    Symbol,
)

from .expressions import integer
from .loop_fusion import Run
from .memory import Memory, Place, argument_place
from .text import Text, size

KINDS = {Kind.REAL: "real", Kind.INDEX: "int64_t", Kind.MASK: "int"}
"""C types of entries."""

_STARTS = {"sum": "0", "product": "1", "max": "-INFINITY"}
_OPERATORS = {"sum": "+", "product": "*", "max": "max"}


class Loops:
    """Prints the runs of one kernel."""

    def __init__(self, kernel: Kernel, memory: Memory, text: Text) -> None:
        self._kernel = kernel
        self._memory = memory
        self._text = text
        self._rows: dict[Store, str] = {}
        self.streamed: dict[str, Argument] = {}
        """Arguments that are stored row by row, past the caches where they are large."""

    def print(self, run: Run) -> None:
        """Prints a run."""
        axes = self._memory.ordered(tuple(run.axes))
        for s in run.statements:
            if isinstance(s, Let) and not isinstance(s.operation, Reduce):
                if self._memory.is_kept(s.name, run):
                    self._memory.new(s.name)
        self._find_rows(run, axes)
        folds = [(s.name, s.operation) for s in _lets(run) if isinstance(s.operation, Reduce)]
        along = [(n, r) for n, r in folds if r.axis == axes[-1]]
        across = [(n, r) for n, r in folds if r.axis != axes[-1]]
        self._start(across, axes)
        if len(axes) == 1:
            self._declare(along)
        counts = self._counts(run)
        if all(isinstance(s, Store) and s in self._rows for s in run.statements):
            self._store_rows(counts)
            return
        rows = self._text.loops(axes[:-1], counts, simd=False)
        with rows as outer:
            if len(axes) > 1:
                self._declare(along)
            with self._text.loops(axes[-1:], counts, _clause(along)) as inner:
                for s in run.statements:
                    self._statement(s, run, {**outer, **inner}, counts)
            for name, _ in along if len(axes) > 1 else ():
                to = self._memory.new(name)
                self._text.line(f"{to.entry(outer)} = {name}__so_far;")
        self._memory.locals.clear()
        self._store_rows(counts)
        for name, _ in along if len(axes) == 1 else ():
            self._memory.places[name] = Place(f"{name}__so_far", {})

    def _start(self, folds: list[tuple[str, Reduce]], axes: tuple[Axis, ...]) -> None:
        """Gives sums along an outer axis what they start from."""
        by_axis: dict[Axis, list[tuple[str, Reduce]]] = {}
        for name, reduce in folds:
            by_axis.setdefault(reduce.axis, []).append((name, reduce))
        for axis, mine in by_axis.items():
            places = [(self._memory.new(name), r) for name, r in mine]
            with self._text.loops(tuple(a for a in axes if a != axis)) as indices:
                for to, r in places:
                    self._text.line(f"{to.entry(indices)} = {_STARTS[r.function]};")

    def _declare(self, folds: list[tuple[str, Reduce]]) -> None:
        for name, reduce in folds:
            self._text.line(f"real {name}__so_far = {_STARTS[reduce.function]};")

    def _statement(
        self, s: Let | Store, run: Run, indices: dict[Axis, str], counts: dict[Axis, str]
    ) -> None:
        match s:
            case Let(name=name, operation=Reduce(function=function, operand=x, axis=axis)):
                is_along = axis == self._memory.ordered(tuple(indices))[-1]
                so_far = f"{name}__so_far" if is_along else self._memory.places[name].entry(indices)
                self._text.line(_folded(function, so_far, self._memory.use(x, indices)))
            case Let(name=name):
                formula = self._memory.formula(name, indices)
                place = self._memory.places.get(name)
                if place is not None and not self._memory.is_read(name, run):
                    self._text.line(f"{place.entry(indices)} = {formula};")
                    return
                kind = KINDS[self._memory.schedule.types[name].kind]
                self._text.line(f"const {kind} {name} = {formula};")
                self._memory.locals.add(name)
                if place is not None:
                    self._text.line(f"{place.entry(indices)} = {name};")
            case Store() if s not in self._rows:
                self.store(s, indices, counts)

    def _find_rows(self, run: Run, axes: tuple[Axis, ...]) -> None:
        """Notes the stores of rows without gaps whose values lie in memory besides."""
        self._rows = {}
        for s in run.statements if len(axes) == 1 else ():
            place = self._memory.places.get(s.value) if isinstance(s, Store) else None
            if not isinstance(s, Store) or place is None or place.strides != {axes[0]: "1"}:
                continue
            is_written = self._kernel.argument(s.argument).access is Access.WRITE
            if is_written and self._target(s).strides == {axes[0]: "1"}:
                self._rows[s] = place.pointer

    def _store_rows(self, counts: dict[Axis, str]) -> None:
        """Stores the rows of a run."""
        for s, pointer in self._rows.items():
            (along,) = (p for p in s.at if isinstance(p, Along))
            argument = self._kernel.argument(s.argument)
            self.streamed[argument.name] = argument
            store = "store_row" if argument.storage is Storage.GIVEN else "store_wide"
            count = counts.get(along.axis, live(along))
            target = self._target(s).pointer
            self._text.line(f"{store}({target}, {pointer}, {count}, {argument.name}__streams);")

    def _target(self, s: Store) -> Place:
        return argument_place(self._kernel.argument(s.argument), s.at)

    def store(self, s: Store, indices: dict[Axis, str], counts: dict[Axis, str]) -> None:
        """Prints the store of one entry.

        Args:
            s: the store.
            indices: of its axes.
            counts: how many entries count along axes whose loops end there.
        """
        argument = self._kernel.argument(s.argument)
        x = self._memory.use(s.value, indices)
        x = f"narrow({x})" if argument.storage is Storage.GIVEN else x
        place = self._target(s)
        target = place.entry(indices) if place.strides else f"*{place.pointer}"
        along = (p for p in s.at if isinstance(p, Along))
        short = [p for p in along if not is_all(p) and p.axis not in counts]
        exists = " && ".join(self._exists(p, indices[p.axis]) for p in short)
        self._text.line(f"if ({exists}) {target} = {x};" if exists else f"{target} = {x};")

    def _exists(self, p: Along, index: str) -> str:
        """Whether an entry exists; known to the compiler where tiles fill a static size."""
        exists = f"{index} < {live(p)}"
        entries, bound = size(p.axis), integer(p.bound)
        is_static = isinstance(p.bound, int) or bound in self._kernel.static
        if is_static and isinstance(p.start, Integer) and p.start.operator == "*":
            if entries in (integer(p.start.left), integer(p.start.right)):
                return f"({bound} % {entries} == 0 || {exists})"
        return exists

    def _counts(self, run: Run) -> dict[Axis, str]:
        """How many entries along each axis count, where it is the same for the whole run."""
        counts = [
            {p.axis: live(p) for p in s.at if isinstance(p, Along) and not is_all(p)}
            for s in run.statements
            if isinstance(s, Store)
        ]
        lets = [*_lets(run)]
        is_used = any(
            isinstance(s.operation, Reduce) or self._memory.is_kept(s.name, run) for s in lets
        )
        is_same = bool(counts) and all(c == counts[0] for c in counts)
        return counts[0] if is_same and not is_used else {}


def live(p: Along) -> str:
    """Returns how many entries of a position exist."""
    if is_all(p):
        return size(p.axis)
    start = integer(p.start)
    rest = integer(p.bound) if start == "0" else f"{integer(p.bound)} - {start}"
    return f"int_min({size(p.axis)}, {rest})"


def is_all(p: Along) -> bool:
    """Returns whether all entries of a position exist, whatever the sizes."""
    entries = Symbol(p.axis.size) if isinstance(p.axis.size, str) else p.axis.size
    return p.start == 0 and p.bound == entries


def _lets(run: Run) -> list[Let]:
    return [s for s in run.statements if isinstance(s, Let)]


def _clause(folds: list[tuple[str, Reduce]]) -> str:
    """The clauses by which a loop over vectors keeps sums of its own for each lane."""
    by_operator: dict[str, list[str]] = {}
    for name, reduce in folds:
        by_operator.setdefault(_OPERATORS[reduce.function], []).append(f"{name}__so_far")
    return " ".join(f"reduction({o} : {', '.join(names)})" for o, names in by_operator.items())


def _folded(function: str, so_far: str, x: str) -> str:
    if function == "max":
        return f"{so_far} = real_max({so_far}, {x});"
    return f"{so_far} {_OPERATORS[function]}= {x};"
