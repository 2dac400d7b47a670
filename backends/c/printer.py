"""Kernel → a C function that runs all its programs, on as many threads as it is told.

    int name(const int64_t *given): pointer and strides of each argument, dynamic sizes, threads

Static sizes are macros, set when the text is compiled. Tiles lie in one piece of memory a thread,
cut into slots. A tile that is loaded whole is read where it lies.
"""

from __future__ import annotations

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Between,
    Cumulate,
    Dot,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Rename,
    Statement,
    Storage,
    Store,
)
from dsfc.kernel_ir.rename import renamed

from .cumulative import Cumulative
from .expressions import integer
from .loop_fusion import Run, reordered, runs
from .loops import KINDS, Loops, is_all, live
from .memory import Memory, Place, argument_place
from .products import Products
from .reserved_names import safe_names
from .schedule import Schedule, schedule
from .text import Text, size, times


def print_kernel(kernel: Kernel) -> str:
    """Returns the text of a kernel as a C function."""
    kernel = renamed(kernel, safe_names())
    plan = schedule(kernel)
    return _Printer(reordered(kernel, plan), plan).text()


class _Printer:
    def __init__(self, kernel: Kernel, plan: Schedule) -> None:
        self._kernel = kernel
        self._text = Text()
        self._memory = Memory(kernel, plan)
        self._products = Products(self._memory, self._text)
        self._folds = Cumulative(self._memory, self._text)
        self._loops = Loops(kernel, self._memory, self._text)

    # --- the function -----------------------------------------------------------------------------

    def text(self) -> str:
        """Returns the function."""
        kernel = self._kernel
        self._text.indent = 3
        for g in kernel.grid:
            self._text.line(
                f"for (int64_t {g.index} = 0; {g.index} < {integer(g.count)}; {g.index}++)"
            )
        with self._text.block(""):
            self._text.line("if (!memory) continue;")
            self._body(kernel.body)
        program, self._text.lines = self._text.lines, []
        self._text.indent = 0
        self._text.line(f"/* {kernel.doc}")
        indices = ", ".join(g.index for g in kernel.grid)
        self._text.line(f" * One program for each {indices}; programs run in parallel. */")
        with self._text.block(f"int {kernel.name}(const int64_t *given_)"):
            self._unpack()
            self._text.line(f"int64_t failed = 0, entries = {self._entries()};")
            for a in self._loops.streamed.values():
                entries = times(integer(n) for n in a.shape)
                self._text.line(f"const int {a.name}__streams = streams({a.name}, {entries});")
            self._text.line("#pragma omp parallel num_threads(threads) reduction(+ : failed)")
            with self._text.block(""):
                self._text.line("real *memory = allocate(entries), *free_ = memory;")
                self._text.line("if (!memory) failed = 1;")
                self._carve()
                count = len(kernel.grid)
                self._text.line(f"#pragma omp for collapse({count}) schedule(static)")
                self._text.lines += program
                if self._loops.streamed:
                    self._text.line("STREAM_FENCE();")
                self._text.line("free(memory);")
            self._text.line("return failed != 0;")
        return "\n".join(self._text.lines) + "\n"

    def _unpack(self) -> None:
        at = 0
        for a in self._kernel.arguments:
            if a.access is Access.SCRATCH:
                continue
            kind = "given" if a.storage is Storage.GIVEN else "real"
            const = "const " if a.access is Access.READ else ""
            self._text.line(f"{const}{kind} *{a.name} = ({const}{kind} *)(intptr_t)given_[{at}];")
            at += 1
            if a.access is Access.WRITE:  # dense: the caller made it
                continue
            names = [f"{a.name}__{k}" for k in range(len(a.shape))]
            values = ", ".join(f"{n} = given_[{at + k}]" for k, n in enumerate(names))
            self._text.line(f"const int64_t {values};")
            at += len(names)
        for name in self._kernel.dynamic:
            self._text.line(f"const int64_t {name} = given_[{at}];")
            at += 1
        self._text.line(f"const int threads = (int)given_[{at}];")

    def _entries(self) -> str:
        scratch = [
            f"PAD({times(integer(n) for n in a.shape)})"
            for a in self._kernel.arguments
            if a.access is Access.SCRATCH
        ]
        return " + ".join([*(f"PAD({s})" for s in self._memory.slots), *scratch]) or "0"

    def _carve(self) -> None:
        for k, entries in enumerate(self._memory.slots):
            self._text.line(f"real *const slot_{k} = free_; free_ += PAD({entries});")
        for a in self._kernel.arguments:
            if a.access is Access.SCRATCH:
                entries = times(integer(n) for n in a.shape)
                self._text.line(f"real *const {a.name} = free_; free_ += PAD({entries});")
        self._text.line("(void)free_;")

    def _body(self, body: tuple[Statement, ...]) -> None:
        schedule = self._memory.schedule
        last: dict[str, int] = {}
        items = [*runs(body, schedule)]
        for at, item in enumerate(items):
            for s in item.statements if isinstance(item, Run) else (item,):
                last |= dict.fromkeys(schedule.reads(s), at)
        for loop in reversed(items):  # of no iterations, a loop gives what it was given
            for c in loop.carries if isinstance(loop, Loop) else ():
                last[c.first] = max(last.get(c.first, -1), last.get(c.last, -1))
        own = {s.name for s in body if isinstance(s, Let)}
        own |= {c.last for s in body if isinstance(s, Loop) for c in s.carries}
        for at, item in enumerate(items):
            dying = {self._memory.root(n) for n in own if last.get(n, -1) == at}
            living = {self._memory.root(n) for n in own if last.get(n, -1) > at}
            self._item(item, dying - living)
            # In order, so that a kernel is the same text in every process.
            for name in sorted(dying - living):
                self._memory.release(name)

    def _item(self, item: Run | Statement, dying: set[str]) -> None:
        match item:
            case Run():
                self._loops.print(item)
            case Let():
                self._let(item, dying)
            case Store():
                self._loops.store(item, {}, {})
            case Loop():
                self._loop(item)

    def _let(self, s: Let, dying: set[str]) -> None:
        name = s.name
        match s.operation:
            case Load():
                self._load(name, s.operation)
            case Rename(operand=x, axis=axis, to=to):
                place = self._memory.places[x]
                strides = {to if a == axis else a: n for a, n in place.strides.items()}
                self._memory.places[name] = Place(place.pointer, strides)
            case Map() if name in self._memory.schedule.additions:
                self._products.add(name, self._memory.schedule.additions[name], dying)
            case Dot():
                self._products.dot(self._memory.new(name), s.operation, False)
            case Cumulate():
                self._folds.cumulate(name, s.operation)
            case Between():
                self._folds.between(name, s.operation)
            case InverseUnit(operand=x, row=row, column=column):
                target, source = self._memory.new(name), self._memory.places[x]
                assert source.strides[column] == "1"
                rows = f"{source.pointer}, {source.strides[row]}"
                rows = f"{rows}, {target.pointer}, {target.strides[row]}"
                self._text.line(f"inverse_unit({size(row)}, {rows});")
            case _:
                self._scalar(name)

    def _scalar(self, name: str) -> None:
        """Prints a value without axes."""
        kind = KINDS[self._memory.schedule.types[name].kind]
        self._text.line(f"const {kind} {name} = {self._memory.formula(name, {})};")
        self._memory.places[name] = Place(name, {})

    def _loop(self, s: Loop) -> None:
        for c in s.carries:
            self._start_carry(c.name, c.first, c.next)
        i, count = s.counter, integer(s.count)
        if s.reverse:
            head = f"for (int64_t {i} = {count} - 1; {i} >= 0; {i}--)"
        else:
            head = f"for (int64_t {i} = 0, {i}_end = {count}; {i} < {i}_end; {i}++)"
        with self._text.block(head):
            self._body(s.body)
            for c in s.carries:
                self._end_carry(c.name, c.next)
        for c in s.carries:
            self._memory.places[c.last] = self._memory.places[c.name]
            self._memory.held[c.last] = self._memory.held.pop(c.name, -1)
            for suffix in ("__a", "__b"):
                if f"{c.name}{suffix}" in self._memory.held:
                    self._memory.held[f"{c.last}{suffix}"] = self._memory.held.pop(
                        f"{c.name}{suffix}"
                    )

    def _start_carry(self, name: str, first: str, following: str) -> None:
        axes = self._memory.ordered(self._memory.schedule.types[name].axes)
        source = self._memory.places[first]
        if not axes:
            self._text.line(f"real {name} = {self._memory.use(first, {})};")
            self._memory.places[name] = Place(name, {})
            return
        spare = []
        for suffix in ("__a", "__b"):
            slot = self._memory.allocate(times(size(a) for a in axes))
            self._memory.held[f"{name}{suffix}"] = slot
            spare.append(f"slot_{slot}")
        self._text.line(f"real *{name}__next = {spare[0]}, *{name}__spare = {spare[1]};")
        # The first tile may lie anywhere; the tiles of later iterations lie densely.
        row = [f"{name}__{a.name}" for a in axes[:-1]]
        dense = source.strides.get(axes[-1]) == "1"
        assert dense, "a carried tile whose last axis is not dense"
        pointer = source.pointer if " " not in source.pointer else f"({source.pointer})"
        self._text.line(f"const real *{name} = {pointer};")
        for a, n in zip(axes, row, strict=False):
            self._text.line(f"int64_t {n} = {source.strides[a]};")
        inside = {a: n for a, n in zip(axes, row, strict=False)} | {axes[-1]: "1"}
        self._memory.places[name] = Place(name, inside)
        self._memory.targets[following] = f"{name}__next"

    def _end_carry(self, name: str, following: str) -> None:
        axes = self._memory.ordered(self._memory.schedule.types[name].axes)
        if not axes:
            self._text.line(f"{name} = {self._memory.use(following, {})};")
            return
        strides = self._memory.dense(axes)
        if self._memory.places[following].pointer != f"{name}__next":
            to = Place(f"{name}__next", strides)
            with self._text.loops(axes) as indices:
                self._text.line(f"{to.entry(indices)} = {self._memory.use(following, indices)};")
        self._text.line(f"real *{name}__done = {name}__next;")
        self._text.line(
            f"{name} = {name}__done, {name}__next = {name}__spare, {name}__spare = {name}__done;"
        )
        for a in axes[:-1]:
            self._text.line(f"{name}__{a.name} = {strides[a]};")

    def _load(self, name: str, load: Load) -> None:
        argument = self._kernel.argument(load.argument)
        along = {p.axis: p for p in load.at if isinstance(p, Along)}
        axes = self._memory.ordered(tuple(along))
        source = argument_place(argument, load.at)
        if not axes:
            x = source.pointer
            entry = f"widen(*({x}))" if argument.storage is Storage.GIVEN else f"*({x})"
            self._text.line(f"const real {name} = {entry};")
            self._memory.places[name] = Place(name, {})
            return
        *rows, columns = axes
        outer, row = axes[:-2], rows[-1] if rows else None
        assert all(is_all(along[a]) for a in outer)
        strides = {a: source.strides[a] for a in axes}
        whole = [] if strides[columns] == "1" else [f"{strides[columns]} == 1"]
        whole += [t for t in (_is_whole(along[a]) for a in axes) if t]
        if argument.storage is Storage.GIVEN:
            whole.insert(0, "GIVEN_IS == REAL_")
        if not whole:
            self._text.line(f"const real *{name} = {source.pointer};")
            self._memory.places[name] = Place(name, strides)
            return
        slot = self._memory.allocate(times(size(a) for a in axes))
        self._memory.held[name] = slot
        self._text.line(f"const real *{name} = slot_{slot};")
        copy = Place(f"slot_{slot}", self._memory.dense(axes))
        kept = {a: f"{name}__{a.name}" for a in rows}
        for a, stride in kept.items():
            self._text.line(f"int64_t {stride} = {copy.strides[a]};")
        with self._text.block(f"if ({' && '.join(whole)})"):
            self._text.line(f"{name} = (const real *)({source.pointer});")
            for a, stride in kept.items():
                self._text.line(f"{stride} = {strides[a]};")
        wide = "load_tile" if argument.storage is Storage.GIVEN else "load_wide"
        with self._text.block("else"), self._text.loops(outer, simd=False) as at:
            width, lines = size(columns), size(row) if row else "1"
            step, present = (strides[row], live(along[row])) if row else ("0", "1")
            self._text.line(
                f"{wide}({copy.at(at)}, {width}, {lines}, {width}, {source.at(at)}, "
                f"{step}, {strides[columns]}, {present}, {live(along[columns])});"
            )
        self._memory.places[name] = Place(name, kept | {columns: "1"})


def _is_whole(p: Along) -> str:
    """Whether all entries exist, as a condition; empty where they do."""
    return "" if is_all(p) else f"{integer(p.start)} + {size(p.axis)} <= {integer(p.bound)}"
