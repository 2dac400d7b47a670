"""Kernel → a C function that runs all its programs, on as many threads as it is told.

    int name(const int64_t *given): pointer and strides of each argument, dynamic sizes, threads

Static sizes are macros, set when the text is compiled. Tiles lie in one piece of memory a thread,
cut into slots; a slot is used again when the tile in it is not read any more. A tile that is loaded
whole is read where it lies.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Between,
    Compare,
    Const,
    Cumulate,
    Dot,
    Index,
    InverseUnit,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Map,
    Part,
    Position,
    Reduce,
    Rename,
    Statement,
    Storage,
    Store,
    Symbol,
    Triangle,
)
from dsfc.kernel_ir.rename import renamed

from .expressions import function_call, integer
from .schedule import Addition, Schedule, is_lower, schedule
from .words import safe_names


@dataclass(frozen=True)
class Place:
    """Where a tile lies.

    Attributes:
        pointer: C expression of its first entry; of a tile without axes, its value.
        strides: of its axes, C expressions.
    """

    pointer: str
    strides: dict[Axis, str]

    def entry(self, indices: dict[Axis, str]) -> str:
        """Returns the entry at some indices."""
        if not self.strides:
            return self.pointer
        return f"{self.pointer}[{_sum(_product(indices[a], s) for a, s in self.strides.items())}]"

    def at(self, indices: dict[Axis, str]) -> str:
        """Returns the pointer to an entry; axes that are not named are at their start."""
        terms = [_product(indices[a], s) for a, s in self.strides.items() if a in indices]
        offset = _sum(terms)
        return self.pointer if offset == "0" else f"{self.pointer} + {offset}"


_WIDTH = 98
"""The most characters of a line."""


def print_kernel(kernel: Kernel) -> str:
    """Returns the text of a kernel as a C function."""
    return _Printer(renamed(kernel, safe_names())).text()


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._plan: Schedule = schedule(kernel)
        self._reads = Counter(n for s in _flat(kernel.body) for n in self._reads_of(s))
        self._rank = {a: i for i, a in enumerate(kernel.order)}
        self._lines: list[str] = []
        self._indent = 0
        self._places: dict[str, Place] = {}
        self._slots: list[str] = []  # size of each, a C expression
        self._free: dict[str, list[int]] = {}
        self._held: dict[str, int] = {}  # value → its slot
        self._targets: dict[str, str] = {}  # value → pointer that it must be written to

    # --- the function -----------------------------------------------------------------------------

    def text(self) -> str:
        """Returns the function."""
        kernel = self._kernel
        self._indent = 3
        for g in kernel.grid:
            self._line(f"for (int64_t {g.index} = 0; {g.index} < {integer(g.count)}; {g.index}++)")
        with self._block(""):
            self._line("if (!memory) continue;")
            self._body(kernel.body)
        program, self._lines = self._lines, []
        self._indent = 0
        self._line(f"/* {kernel.doc} */")
        with self._block(f"int {kernel.name}(const int64_t *given_)"):
            self._unpack()
            self._line(f"int64_t failed = 0, entries = {self._entries()};")
            self._line("#pragma omp parallel num_threads(threads) reduction(+ : failed)")
            with self._block(""):
                self._line("real *memory = allocate(entries), *free_ = memory;")
                self._line("if (!memory) failed = 1;")
                self._carve()
                count = len(kernel.grid)
                self._line(f"#pragma omp for collapse({count}) schedule(static)")
                self._lines += program
                self._line("free(memory);")
            self._line("return failed != 0;")
        return "\n".join(self._lines) + "\n"

    def _unpack(self) -> None:
        at = 0
        for a in self._kernel.arguments:
            if a.access is Access.SCRATCH:
                continue
            kind = "real" if a.storage is Storage.WIDE else "given"
            const = "const " if a.access is Access.READ else ""
            self._line(f"{const}{kind} *{a.name} = ({const}{kind} *)(intptr_t)given_[{at}];")
            at += 1
            if a.access is Access.WRITE:  # dense: the caller made it
                continue
            names = [f"{a.name}__{k}" for k in range(len(a.shape))]
            values = ", ".join(f"{n} = given_[{at + k}]" for k, n in enumerate(names))
            self._line(f"const int64_t {values};")
            at += len(names)
        for name in self._kernel.dynamic:
            self._line(f"const int64_t {name} = given_[{at}];")
            at += 1
        self._line(f"const int threads = (int)given_[{at}];")

    def _entries(self) -> str:
        scratch = [
            f"PAD({_times(integer(n) for n in a.shape)})"
            for a in self._kernel.arguments
            if a.access is Access.SCRATCH
        ]
        return " + ".join([*(f"PAD({s})" for s in self._slots), *scratch]) or "0"

    def _carve(self) -> None:
        for k, size in enumerate(self._slots):
            self._line(f"real *const slot_{k} = free_; free_ += PAD({size});")
        for a in self._kernel.arguments:
            if a.access is Access.SCRATCH:
                size = _times(integer(n) for n in a.shape)
                self._line(f"real *const {a.name} = free_; free_ += PAD({size});")
        self._line("(void)free_;")

    # --- statements -------------------------------------------------------------------------------

    def _body(self, body: tuple[Statement, ...]) -> None:
        last: dict[str, int] = {}
        for at, s in enumerate(body):
            for name in self._plan.reads(s):
                last[name] = at
        for s in reversed(body):  # of no iterations, a loop gives what it was given
            for c in s.carries if isinstance(s, Loop) else ():
                last[c.first] = max(last.get(c.first, -1), last.get(c.last, -1))
        own = {s.name for s in body if isinstance(s, Let)}
        own |= {c.last for s in body if isinstance(s, Loop) for c in s.carries}
        for at, s in enumerate(body):
            dying = {self._root(n) for n in own if last.get(n, -1) == at}
            living = {self._root(n) for n in own if last.get(n, -1) > at}
            self._statement(s, dying - living)
            # In order, so that a kernel is the same text in every process.
            for name in sorted(dying - living):
                self._release(name)

    def _statement(self, s: Statement, dying: set[str]) -> None:
        match s:
            case Let(name=name):
                if name not in self._plan.inlined and name not in self._plan.deferred:
                    self._let(s, dying)
            case Store():
                self._store(s)
            case Loop():
                self._loop(s)

    def _let(self, s: Let, dying: set[str]) -> None:
        name = s.name
        match s.operation:
            case Load():
                self._load(name, s.operation)
            case Rename(operand=x, axis=axis, to=to):
                place = self._places[x]
                strides = {to if a == axis else a: n for a, n in place.strides.items()}
                self._places[name] = Place(place.pointer, strides)
            case Map() if name in self._plan.additions:
                self._add(name, self._plan.additions[name], dying)
            case Dot():
                self._dot(self._new(name), s.operation, False)
            case Reduce():
                self._reduce(name, s.operation)
            case Cumulate():
                self._cumulate(name, s.operation)
            case Between():
                self._between(name, s.operation)
            case InverseUnit(operand=x, row=row, column=column):
                target, source = self._new(name), self._places[x]
                assert source.strides[column] == "1"
                rows = f"{source.pointer}, {source.strides[row]}"
                rows = f"{rows}, {target.pointer}, {target.strides[row]}"
                self._line(f"inverse_unit({_size(row)}, {rows});")
            case _:
                self._entrywise(name)

    def _entrywise(self, name: str) -> None:
        """A value that is computed entry by entry."""
        axes = self._ordered(self._plan.types[name].axes)
        if not axes:
            kind = {Kind.REAL: "real", Kind.INDEX: "int64_t", Kind.MASK: "int"}
            kind_name = kind[self._plan.types[name].kind]
            self._line(f"const {kind_name} {name} = {self._formula(name, {})};")
            self._places[name] = Place(name, {})
            return
        to = self._new(name)
        with self._loops(axes) as indices:
            self._line(f"{to.entry(indices)} = {self._formula(name, indices)};")

    def _store(self, s: Store) -> None:
        argument = self._kernel.argument(s.argument)
        value = self._plan.types[s.value]
        along = {p.axis: p for p in s.at if isinstance(p, Along)}
        counts = {a: _live(p) for a, p in along.items()}
        axes = self._ordered(tuple(along))
        assert set(value.axes) <= set(axes)
        target = self._argument_place(argument, s.at)
        narrow = argument.storage is Storage.GIVEN
        with self._loops(axes, counts) as indices:
            x = self._use(s.value, indices)
            self._line(f"{target.entry(indices)} = {f'narrow({x})' if narrow else x};")

    def _loop(self, s: Loop) -> None:
        for c in s.carries:
            self._start_carry(c.name, c.first, c.next)
        i, count = s.counter, integer(s.count)
        if s.reverse:
            head = f"for (int64_t {i} = {count} - 1; {i} >= 0; {i}--)"
        else:
            head = f"for (int64_t {i} = 0, {i}_end = {count}; {i} < {i}_end; {i}++)"
        with self._block(head):
            self._body(s.body)
            for c in s.carries:
                self._end_carry(c.name, c.next)
        for c in s.carries:
            self._places[c.last] = self._places[c.name]
            self._held[c.last] = self._held.pop(c.name, -1)
            for suffix in ("__a", "__b"):
                if f"{c.name}{suffix}" in self._held:
                    self._held[f"{c.last}{suffix}"] = self._held.pop(f"{c.name}{suffix}")

    def _start_carry(self, name: str, first: str, following: str) -> None:
        axes = self._ordered(self._plan.types[name].axes)
        source = self._places[first]
        if not axes:
            self._line(f"real {name} = {self._use(first, {})};")
            self._places[name] = Place(name, {})
            return
        spare = []
        for suffix in ("__a", "__b"):
            slot = self._allocate(_times(_size(a) for a in axes))
            self._held[f"{name}{suffix}"] = slot
            spare.append(f"slot_{slot}")
        self._line(f"real *{name}__next = {spare[0]}, *{name}__spare = {spare[1]};")
        # The first tile may lie anywhere; the tiles of later iterations lie densely.
        row = [f"{name}__{a.name}" for a in axes[:-1]]
        dense = source.strides.get(axes[-1]) == "1"
        assert dense, "a carried tile whose last axis is not dense"
        pointer = source.pointer if " " not in source.pointer else f"({source.pointer})"
        self._line(f"const real *{name} = {pointer};")
        for a, n in zip(axes, row, strict=False):
            self._line(f"int64_t {n} = {source.strides[a]};")
        inside = {a: n for a, n in zip(axes, row, strict=False)} | {axes[-1]: "1"}
        self._places[name] = Place(name, inside)
        self._targets[following] = f"{name}__next"

    def _end_carry(self, name: str, following: str) -> None:
        axes = self._ordered(self._plan.types[name].axes)
        if not axes:
            self._line(f"{name} = {self._use(following, {})};")
            return
        strides = self._dense(axes)
        if self._places[following].pointer != f"{name}__next":
            to = Place(f"{name}__next", strides)
            with self._loops(axes) as indices:
                self._line(f"{to.entry(indices)} = {self._use(following, indices)};")
        self._line(f"real *{name}__done = {name}__next;")
        self._line(
            f"{name} = {name}__done, {name}__next = {name}__spare, {name}__spare = {name}__done;"
        )
        for a in axes[:-1]:
            self._line(f"{name}__{a.name} = {strides[a]};")

    # --- operations -------------------------------------------------------------------------------

    def _load(self, name: str, load: Load) -> None:
        argument = self._kernel.argument(load.argument)
        along = {p.axis: p for p in load.at if isinstance(p, Along)}
        axes = self._ordered(tuple(along))
        source = self._argument_place(argument, load.at)
        if not axes:
            x = source.pointer
            entry = f"*({x})" if argument.storage is Storage.WIDE else f"widen(*({x}))"
            self._line(f"const real {name} = {entry};")
            self._places[name] = Place(name, {})
            return
        rows, columns = ([None, *axes] if len(axes) == 1 else list(axes))[-2:]
        assert columns is not None and len(axes) <= 2
        dense = source.strides[columns]
        whole = [] if dense == "1" else [f"{dense} == 1"]
        whole += [t for t in (_is_whole(along[a]) for a in axes) if t]
        if argument.storage is Storage.GIVEN:
            whole.insert(0, "GIVEN_IS == REAL_")
        live = [_live(along[a]) for a in axes]
        sizes = [_size(a) for a in axes]
        if rows is None:
            live, sizes = ["1", *live], ["1", *sizes]
        row_stride = "0" if rows is None else source.strides[rows]
        if not whole:
            strides = {columns: "1"} if rows is None else {rows: row_stride, columns: "1"}
            self._line(f"const real *{name} = {source.pointer};")
            self._places[name] = Place(name, strides)
            return
        slot = self._allocate(_times(_size(a) for a in axes))
        self._held[name] = slot
        self._line(f"const real *{name} = slot_{slot};")
        stride = f"{name}__{rows.name}" if rows is not None else ""
        if stride:
            self._line(f"int64_t {stride} = {sizes[1]};")
        wide = "load_wide" if argument.storage is Storage.WIDE else "load_tile"
        with self._block(f"if ({' && '.join(whole)})"):
            self._line(f"{name} = (const real *)({source.pointer});")
            if stride:
                self._line(f"{stride} = {row_stride};")
        with self._block("else"):
            self._line(
                f"{wide}(slot_{slot}, {sizes[1]}, {sizes[0]}, {sizes[1]}, {source.pointer}, "
                f"{row_stride}, {source.strides[columns]}, {live[0]}, {live[1]});"
            )
        strides = {columns: "1"} if rows is None else {rows: stride, columns: "1"}
        self._places[name] = Place(name, strides)

    def _add(self, name: str, addition: Addition, dying: set[str]) -> None:
        base = addition.base
        place = self._places[base]
        root = self._root(base)
        target = self._target_of(name)
        own = root in dying and root in self._held and place.pointer == f"slot_{self._held[root]}"
        if target is not None and place.pointer == target:
            self._places[name] = place
        elif own and target is None:
            self._held[name] = self._held.pop(root)
            self._places[name] = place
        else:
            to = self._new(name)
            axes = self._ordered(self._plan.types[name].axes)
            with self._loops(axes) as indices:
                self._line(f"{to.entry(indices)} = {self._use(base, indices)};")
        to = self._places[name]
        back = {new: old for old, new in addition.renames[::-1]}
        strides = {back.get(a, a): n for a, n in to.strides.items()}
        dot = self._plan.operations[addition.dot]
        assert isinstance(dot, Dot)
        self._dot(Place(to.pointer, strides), dot, True)

    def _dot(self, to: Place, dot: Dot, accumulate: bool) -> None:
        left, right = self._places[dot.left], self._places[dot.right]
        left_part, right_part = dot.left_part, dot.right_part
        axes = self._ordered(tuple(to.strides))
        row = axes[0] if len(axes) == 2 else None
        column = axes[-1]
        if (row is not None and row not in left.strides) or column not in right.strides:
            left, right, left_part, right_part = right, left, right_part, left_part
        name = dot.left if left is self._places[dot.left] else dot.right
        assert right_part is None and column in right.strides
        for part in (dot.out, left_part):
            if part is not None and part.block is not None:
                self._blocks(to, dot, left, right, row, column, part, accumulate)
                return
        terms = "ALL_TERMS"
        if left_part is not None:
            assert is_lower(name, self._plan.operations), name
            terms = "TERMS_UP_TO_ROW" if left_part.row == row else "TERMS_FROM_ROW"
        elif dot.out is not None and dot.out.row == row:
            terms = "COLUMNS_UP_TO_ROW"
        self._call_dot(to, left, right, row, column, dot.over, {}, {}, accumulate, terms)
        if dot.out is not None:
            strict = int(dot.out.part is Part.STRICTLY_LOWER)
            assert row is not None and dot.out.row == row
            size = f"{_size(row)}, {_size(column)}"
            self._line(f"keep_lower({size}, {to.pointer}, {to.strides[row]}, {strict});")

    def _call_dot(
        self,
        to: Place,
        left: Place,
        right: Place,
        row: Axis | None,
        column: Axis,
        over: Axis,
        starts: dict[Axis, str],
        sizes: dict[Axis, str],
        accumulate: bool,
        terms: str,
    ) -> None:
        def size(a: Axis) -> str:
            return sizes.get(a, _size(a))

        m = "1" if row is None else size(row)
        a_row = "0" if row is None else left.strides[row]
        c_row = "0" if row is None else to.strides[row]
        self._line(
            f"dot({m}, {size(column)}, {size(over)}, {left.at(starts)}, {a_row}, "
            f"{left.strides[over]}, {right.at(starts)}, {right.strides[over]}, "
            f"{right.strides[column]}, {to.at(starts)}, {c_row}, {int(accumulate)}, {terms});"
        )

    @contextmanager
    def _each_block(self, triangle: Triangle) -> Iterator[tuple[dict[Axis, str], dict[Axis, str]]]:
        """Loops over blocks: their starts, and their sizes."""
        block = triangle.block
        size = triangle.row.size
        assert isinstance(size, int) and block is not None
        with self._block(f"for (int64_t at = 0; at < {size}; at += {2 * block})"):
            starts = {triangle.row: f"(at + {block})", triangle.column: "at"}
            yield starts, dict.fromkeys(starts, str(block))

    def _blocks(
        self,
        to: Place,
        dot: Dot,
        left: Place,
        right: Place,
        row: Axis | None,
        column: Axis,
        part: Triangle,
        accumulate: bool,
    ) -> None:
        """Multiplies block by block what a part of the result, or of the left operand, holds."""
        if not accumulate:
            self._zero(to)
        with self._each_block(part) as (starts, sizes):
            self._call_dot(to, left, right, row, column, dot.over, starts, sizes, True, "ALL_TERMS")

    def _zero(self, to: Place) -> None:
        axes = self._ordered(tuple(to.strides))
        with self._loops(axes) as indices:
            self._line(f"{to.entry(indices)} = 0;")

    def _reduce(self, name: str, reduce: Reduce) -> None:
        x, axis = reduce.operand, reduce.axis
        axes = self._ordered(self._plan.types[x].axes)
        start = {"sum": "0", "product": "1", "max": "-INFINITY"}[reduce.function]
        if len(axes) == 1:
            self._line(f"real {name} = {start};")
            self._places[name] = Place(name, {})
            self._fold(name, reduce, axes, {})
            return
        to = self._new(name)
        rest = tuple(a for a in axes if a != axis)
        if axis == axes[-1]:
            with self._loops(rest, simd=False) as indices:
                self._line(f"real {name}__so_far = {start};")
                self._fold(f"{name}__so_far", reduce, (axis,), indices)
                self._line(f"{to.entry(indices)} = {name}__so_far;")
            return
        with self._loops(rest) as indices:
            self._line(f"{to.entry(indices)} = {start};")
        with self._loops(axes) as indices:
            entry = to.entry(indices)
            self._line(_folded(reduce.function, entry, self._use(x, indices)))

    def _fold(
        self,
        so_far: str,
        reduce: Reduce,
        axes: tuple[Axis, ...],
        indices: dict[Axis, str],
    ) -> None:
        operator = {"sum": "+", "product": "*", "max": "max"}[reduce.function]
        with self._loops(axes, simd=f"reduction({operator} : {so_far})") as inner:
            x = self._use(reduce.operand, {**indices, **inner})
            self._line(_folded(reduce.function, so_far, x))

    def _cumulate(self, name: str, c: Cumulate) -> None:
        axes = self._ordered(self._plan.types[name].axes)
        rest = tuple(a for a in axes if a != c.axis)
        to = self._new(name)
        size = c.axis.size
        assert isinstance(size, int)
        first, step = (size - 1, -1) if c.reverse else (0, 1)
        operator = "+" if c.function == "sum" else "*"
        neutral = "0" if c.function == "sum" else "1"
        i = f"i_{c.axis.name}"
        with self._block(f"for (int64_t i_ = 0, {i} = {first}; i_ < {size}; i_++, {i} += {step})"):
            block = c.block or size
            starts = f"i_ % {block} == 0" if block < size else "i_ == 0"
            before = {c.axis: f"({i} - {step})"}
            now = {c.axis: i}
            for start in (True, False):
                with self._block(f"if ({starts})" if start else "else"):
                    with self._loops(rest) as inner:
                        so_far = to.entry({**inner, **before})
                        if c.exclusive:
                            own = self._use(c.operand, {**inner, **before})
                            value = neutral if start else f"{so_far} {operator} {own}"
                        else:
                            own = self._use(c.operand, {**inner, **now})
                            value = own if start else f"{so_far} {operator} {own}"
                        self._line(f"{to.entry({**inner, **now})} = {value};")

    def _between(self, name: str, b: Between) -> None:
        to, x = self._new(name), self._places[b.operand]
        size, last = _size(b.to), int(b.exclusive)
        assert self._ordered(self._plan.types[name].axes) == (b.to, b.since)
        rows = f"{to.pointer}, {to.strides[b.to]}"
        self._line(f"between({size}, {x.pointer}, {x.strides[b.axis]}, {rows}, {last});")

    # --- formulas ---------------------------------------------------------------------------------

    def _use(self, name: str, indices: dict[Axis, str]) -> str:
        """An entry of a value, computed there where the value has no memory."""
        if name in self._plan.inlined:
            return self._formula(name, indices)
        return self._places[name].entry(indices)

    def _formula(self, name: str, indices: dict[Axis, str]) -> str:
        match self._plan.operations[name]:
            case Const(value=value):
                return _number(value)
            case Index(axis=axis, start=start):
                at = indices[axis]
                return at if start == 0 else f"({integer(start)} + {at})"
            case Compare(operator=operator, left=left, right=right):
                other = self._use(right, indices) if isinstance(right, str) else integer(right)
                return f"({self._use(left, indices)} {operator} {other})"
            case Map(function=function, operands=xs):
                return function_call(function, [self._use(x, indices) for x in xs])
            case operation:
                raise AssertionError(f"{name}: {operation} is not computed entry by entry")

    # --- memory -----------------------------------------------------------------------------------

    def _new(self, name: str) -> Place:
        """Gives a value memory."""
        axes = self._ordered(self._plan.types[name].axes)
        pointer = self._target_of(name)
        if pointer is None:
            slot = self._allocate(_times(_size(a) for a in axes))
            self._held[name] = slot
            pointer = f"slot_{slot}"
        self._places[name] = Place(pointer, self._dense(axes))
        return self._places[name]

    def _target_of(self, name: str) -> str | None:
        """Where a value must be written: it, or the sum that is added up in its place."""
        if name in self._targets:
            return self._targets[name]
        for total, addition in self._plan.additions.items():
            if addition.base == name and self._uses_once(name):
                target = self._target_of(total)
                if target is not None:
                    self._targets[name] = target
                return target
        return None

    def _uses_once(self, name: str) -> bool:
        return self._reads[name] == 1

    def _reads_of(self, s: Statement) -> Iterator[str]:
        match s:
            case Loop():
                for c in s.carries:
                    yield c.first
                    yield c.next
            case _:
                yield from self._plan.reads(s)

    def _dense(self, axes: tuple[Axis, ...]) -> dict[Axis, str]:
        sizes = [_size(a) for a in axes]
        return {a: _times(sizes[k + 1 :]) or "1" for k, a in enumerate(axes)}

    def _allocate(self, size: str) -> int:
        free = self._free.setdefault(size, [])
        if free:
            return free.pop()
        self._slots.append(size)
        return len(self._slots) - 1

    def _release(self, name: str) -> None:
        for key in (name, f"{name}__a", f"{name}__b"):
            slot = self._held.pop(key, -1)
            if slot >= 0:
                self._free[self._slots[slot]].append(slot)

    def _root(self, name: str) -> str:
        """The value whose memory a value lies in."""
        operation = self._plan.operations.get(name)
        while isinstance(operation, Rename):
            name = operation.operand
            operation = self._plan.operations.get(name)
        return name

    def _argument_place(self, argument: Argument, at: tuple[Position, ...]) -> Place:
        names = [f"{argument.name}__{k}" for k in range(len(argument.shape))]
        if argument.access is not Access.READ:
            sizes = [integer(n) for n in argument.shape]
            names = [_times(sizes[k + 1 :]) or "1" for k in range(len(sizes))]
        strides: dict[Axis, str] = {}
        terms = []
        for p, stride in zip(at, names, strict=True):
            if isinstance(p, Along):
                strides[p.axis] = stride
                terms.append(_product(integer(p.start), stride))
            else:
                terms.append(_product(integer(p), stride))
        offset = _sum(terms)
        pointer = argument.name if offset == "0" else f"({argument.name} + {offset})"
        return Place(pointer, strides)

    # --- text -------------------------------------------------------------------------------------

    def _ordered(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(sorted(axes, key=lambda a: self._rank[a]))

    @contextmanager
    def _loops(
        self,
        axes: tuple[Axis, ...],
        counts: dict[Axis, str] | None = None,
        simd: str | bool = True,
    ) -> Iterator[dict[Axis, str]]:
        """Nested loops over axes, the last one by vectors."""
        indices = {a: f"i_{a.name}" for a in axes}
        opened = 0
        for k, a in enumerate(axes):
            if k + 1 == len(axes) and simd is not False:
                self._line(f"#pragma omp simd{'' if simd is True else f' {simd}'}")
            count = (counts or {}).get(a, _size(a))
            i = indices[a]
            self._line(f"for (int64_t {i} = 0; {i} < {count}; {i}++) {{")
            self._indent += 1
            opened += 1
        yield indices
        for _ in range(opened):
            self._indent -= 1
            self._line("}")

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self._line(f"{head} {{" if head else "{")
        self._indent += 1
        yield
        self._indent -= 1
        self._line("}")

    def _line(self, text: str) -> None:
        indent = "  " * self._indent
        lines = textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        self._lines += [indent + text] if text.startswith("#") else lines


def _flat(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for s in body:
        yield s
        if isinstance(s, Loop):
            yield from _flat(s.body)


def _size(axis: Axis) -> str:
    return str(axis.size)


def _live(p: Along) -> str:
    """How many entries exist."""
    if _is_all(p):
        return _size(p.axis)
    rest = _sum_text(integer(p.bound), integer(p.start))
    return f"int_min({_size(p.axis)}, {rest})"


def _sum_text(bound: str, start: str) -> str:
    return bound if start == "0" else f"{bound} - {start}"


def _is_whole(p: Along) -> str:
    """Whether all entries exist, as a condition; empty where they do."""
    return "" if _is_all(p) else f"{integer(p.start)} + {_size(p.axis)} <= {integer(p.bound)}"


def _is_all(p: Along) -> bool:
    size = Symbol(p.axis.size) if isinstance(p.axis.size, str) else p.axis.size
    return p.start == 0 and p.bound == size


def _product(a: str, b: str) -> str:
    if "0" in (a, b):
        return "0"
    if a == "1":
        return b
    return a if b == "1" else f"{a} * {b}"


def _times(parts: Iterable[str]) -> str:
    return " * ".join(p for p in parts if p != "1")


def _sum(terms: Iterable[str]) -> str:
    return " + ".join(t for t in terms if t != "0") or "0"


def _folded(function: str, so_far: str, x: str) -> str:
    if function == "max":
        return f"{so_far} = real_max({so_far}, {x});"
    return f"{so_far} {'+' if function == 'sum' else '*'}= {x};"


def _number(value: float) -> str:
    if value == float("inf"):
        return "INFINITY"
    if value == -float("inf"):
        return "(-INFINITY)"
    return f"((real){value!r})"
