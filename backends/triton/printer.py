"""Kernel → a Triton function, one program of which computes one index of the grid.

    kernel(pointers, dynamic sizes, static sizes, sizes of padded axes, FACTORS, EXACT, STAGES)

Tiles are blocks with one dimension an axis; an axis whose size is a name has the next power of two
from 16 on as its size, `<name>_ALL`. A line is an operation; a function of entries that is used
once, and has no name of its own, stands where it is used. FACTORS and EXACT say how the factors of
products may be rounded (`_matmul`), STAGES how many iterations are loaded ahead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dsfc.kernel_ir.ir import (
    Along,
    Axis,
    Between,
    Compare,
    Const,
    Cumulate,
    Dot,
    Index,
    Int,
    Integer,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Position,
    Reduce,
    Rename,
    Shift,
    Statement,
    Store,
    Symbol,
    ToMiddle,
    Triangle,
    symbols,
)
from dsfc.kernel_ir.rename import renamed
from dsfc.kernel_ir.types import united
from dsfc.kernel_ir.uses import bound, uses

from ..torch.code import Binding, Code, called_as
from ..torch.layout import WIDTH, wrapped
from .blocks import ATOM, SUM, Block, PrintedKernel, bound_at_once, call, integer, joined, number
from .memory import address, conflicts, is_multiple, is_whole, offsets, scratch_accesses
from .names import is_nameless, safe_name
from .triangles import exponent, mask_name, triangle
from .zeros import Zeros, zeros_of

_LONGEST = 34
"""Letters of what stands where it is used."""

_KNOWN = {"add", "sub", "mul", "div", "neg", "max", "min", "where", "and"}


class NotPrintable(Exception):
    """A kernel has an operation that Triton has no block for."""


def print_kernel(
    kernel: Kernel,
    name: str,
    fixed: frozenset[str] = frozenset(),
    tiles: frozenset[str] = frozenset(),
) -> PrintedKernel:
    """Returns the text of a kernel.

    Args:
        kernel: the kernel.
        name: of the function.
        fixed: dynamic sizes that are fixed when it is compiled.
        tiles: static sizes that are powers of two from 16 on.

    Raises:
        NotPrintable: an operation has no form as blocks.
    """
    return _Printer(renamed(kernel, safe_name), name, fixed, tiles).printed()


class _Printer:
    def __init__(
        self, kernel: Kernel, name: str, fixed: frozenset[str], tiles: frozenset[str]
    ) -> None:
        self._kernel, self._name = kernel, name
        self._fixed, self._tiles = fixed, tiles
        self._zeros = zeros_of(kernel)
        self._uses = Counter(uses(kernel.body))
        self._blocks: dict[str, Block] = {}
        self._lines: list[str] = []
        self._first: list[str] = []  # statements at the start of the function
        self._depth = 1
        self._known: list[dict[str, str]] = [{}]  # text → variable, scope by scope
        names = {a.name for a in kernel.arguments} | {*bound(kernel.body)}
        self._stems = names
        outside = {*kernel.static, *kernel.dynamic, *(g.index for g in kernel.grid)}
        self._taken: list[set[str]] = [outside]  # variables, scope by scope
        self._ever = set(outside)
        self._waiting: set[tuple[str, bool]] = set()  # scratch accesses since the last barrier

    # --- the function -----------------------------------------------------------------------------

    def printed(self) -> PrintedKernel:
        """Returns the function."""
        kernel = self._kernel
        self._body(kernel.body)
        lines = [*self._grid(), *self._first, *self._lines]
        padded = tuple(n for n in kernel.static if n not in self._tiles)
        used = set(re.findall(r"\w+", "\n".join(lines)))
        dynamic = tuple(n for n in kernel.dynamic if n not in self._fixed and n in used)
        static = tuple(
            n for n in (*kernel.dynamic, *kernel.static) if n in used and n not in dynamic
        )
        padded = tuple(n for n in padded if f"{n}_ALL" in used)
        params = [f"p_{a.name}" for a in kernel.arguments]
        params += [f"{n}: tl.int32" for n in dynamic]
        constants = [*static, *(f"{n}_ALL" for n in padded), "FACTORS", "EXACT", "STAGES"]
        params += [f"{n}: tl.constexpr" for n in constants]
        head = wrapped(f"def {self._name}", params, ":", "")
        text = "\n".join(["@_kernel", head, f'    """{kernel.doc}"""', *lines])
        names = tuple(a.name for a in kernel.arguments)
        return PrintedKernel(self._name, text, names, dynamic, static, padded)

    def _grid(self) -> list[str]:
        """Statements that find the place of a program; neighbours differ in the last dimension."""
        out = ["    program = tl.program_id(0).to(tl.int64)"]
        rest = "program"
        for g in reversed(self._kernel.grid[1:]):
            count = integer(g.count).at_most(ATOM)
            out += [f"    {g.index} = {rest} % {count}", f"    rest = {rest} // {count}"]
            rest = "rest"
        first, *_ = self._kernel.grid
        return [*out, f"    {first.index} = {rest}"]

    # --- statements -------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self._lines.append(f"{'    ' * self._depth}{text}")

    def _body(self, body: tuple[Statement, ...]) -> None:
        own = Counter(uses(body, deep=False))
        for s in body:
            self._wait((s,))
            match s:
                case Let():
                    single = self._uses[s.name] == 1 == own[s.name]
                    self._let(s.name, s.operation, single)
                case Store():
                    self._store(s)
                case Loop():
                    self._loop(s)

    def _wait(self, statements: tuple[Statement, ...]) -> None:
        """Makes threads wait for each other where one reads scratch that another wrote."""
        new = scratch_accesses(statements, self._kernel)
        if conflicts(self._waiting, new):
            self._line("tl.debug_barrier()")
            self._waiting = set()
        self._waiting |= new

    def _let(self, name: str, operation: Operation, single: bool) -> None:
        block = self._block(operation)
        short = len(block.text) <= _LONGEST and single and is_nameless(name)
        free = isinstance(operation, Const | Index | Rename) or bool(
            re.fullmatch(r"[\w.]+", block.text)
        )
        if free or (short and isinstance(operation, Map | Compare)):
            self._blocks[name] = block
        else:
            self._assign(name, block)

    def _assign(self, name: str, block: Block) -> None:
        variable = self._variable(name)
        self._line(f"{variable} = {block.text}")
        self._blocks[name] = Block(variable, block.axes)

    def _store(self, s: Store) -> None:
        argument = self._kernel.argument(s.argument)
        where, mask = self._place(s.argument, s.at)
        axes = address(argument, s.at, Symbol("program")).axes
        value = self._blocks[s.value].over(axes)
        if axes and not value.axes:
            sizes = ", ".join(map(self._size, axes))
            value = Block(call("tl.full", f"({sizes},)", value, "tl.float32"), axes)
        text = call("_store", where, value, mask) if mask else call("tl.store", where, value)
        self._line(text)

    def _loop(self, loop: Loop) -> None:
        firsts = [self._blocks[c.first] for c in loop.carries]
        for c, first in zip(loop.carries, firsts, strict=True):
            self._assign(c.name, first)
        own, waiting = scratch_accesses(loop.body, self._kernel), self._waiting
        repeated = any((name, True) in own for name, stored in own if not stored)
        nested = any(isinstance(s, Loop) for s in loop.body)
        stages = "" if nested or repeated else ", num_stages=STAGES"
        stages += ", disable_licm=True"  # masks of all that follows would not fit the registers
        count = integer(loop.count).text
        if loop.reverse or len(count) > _LONGEST:
            count = self._common(count, "count")
        with self._scope():
            counter = loop.counter
            back = f"{counter}_back" if loop.reverse else counter
            self._lines.append(
                f"{'    ' * (self._depth - 1)}for {back} in tl.range(0, {count}{stages}):"
            )
            if loop.reverse:
                self._line(f"{counter} = {count} - 1 - {back}")
            if repeated:  # of what the last iteration stored or loaded
                self._line("tl.debug_barrier()")
            self._waiting = set()
            self._body(loop.body)
            self._carry(loop, firsts)
        self._waiting = waiting
        for c in loop.carries:
            self._blocks[c.last] = self._blocks[c.name]

    def _carry(self, loop: Loop, firsts: list[Block]) -> None:
        if not loop.carries:
            return
        rows = list(zip(loop.carries, firsts, strict=True))
        for c, first in rows:
            if set(self._blocks[c.next].axes) != set(first.axes):
                raise NotPrintable(f"{c.name} is carried over other axes")
        names = [self._blocks[c.name].text for c, _ in rows]
        values = [self._blocks[c.next].ordered(f.axes).text for c, f in rows]
        for line in bound_at_once(names, values, WIDTH - 4 * self._depth):
            self._line(line)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._depth += 1
        self._known.append({})
        self._taken.append(set())
        yield
        self._taken.pop()
        self._known.pop()
        self._depth -= 1

    # --- texts that are named ---------------------------------------------------------------------

    def _common(self, text: str, name: str) -> str:
        """Returns the variable of a text, which is computed where it is first asked for."""
        for known in self._known:
            if text in known:
                return known[text]
        variable = self._fresh(name)
        self._line(f"{variable} = {text}")
        self._known[-1][text] = variable
        return variable

    def _once(self, text: str, name: str) -> str:
        """Returns the variable of a text that is computed at the start of the function."""
        known = self._known[0]
        if text not in known:
            known[text] = self._fresh(name, self._ever)
            self._taken[0].add(known[text])
            self._first.append(f"    {known[text]} = {text}")
        return known[text]

    def _variable(self, name: str) -> str:
        """A variable for a value; what only another scope or an argument is called is no matter."""
        stem, _, place = name.rpartition("_")
        counted = place.isdecimal() and stem in self._stems
        return self._fresh(stem if counted else name)

    def _fresh(self, name: str, taken: set[str] | None = None) -> str:
        """A variable that no enclosing scope has, or nothing in `taken`."""
        taken = set().union(*self._taken) if taken is None else taken
        variable, count = name, 1
        while variable in taken:
            count += 1
            variable = f"{name}_{count}"
        self._taken[-1].add(variable)
        self._ever.add(variable)
        return variable

    # --- axes -------------------------------------------------------------------------------------

    def _size(self, axis: Axis) -> str:
        """The size of a block along an axis."""
        if isinstance(axis.size, str):
            return axis.size if axis.size in self._tiles else f"{axis.size}_ALL"
        if axis.size & (axis.size - 1):
            raise NotPrintable(f"{axis.size} entries are no power of two")
        return str(axis.size)

    def _is_padded(self, axis: Axis) -> bool:
        return isinstance(axis.size, str) and axis.size not in self._tiles

    def _index(self, axis: Axis) -> str:
        """The variable of the entries' places along an axis."""
        return self._once(f"tl.arange(0, {self._size(axis)})", f"o_{axis.name}")

    def _along(self, axis: Axis, axes: tuple[Axis, ...]) -> str:
        return Block(self._index(axis), (axis,)).over(axes).text

    # --- memory -----------------------------------------------------------------------------------

    def _place(self, name: str, at: tuple[Position, ...]) -> tuple[str, str]:
        """The text of an address, and of a mask; empty for a single entry."""
        where = address(self._kernel.argument(name), at, Symbol("program"))
        text = f"p_{name}"
        if where.base != 0:
            text += f" + {self._base(where.base)}"
        if not where.steps:
            return text, ""
        tile = offsets(where.steps, self._index)
        if len(where.axes) > 1:
            tile = self._once(tile, f"w_{''.join(a.name for a in where.axes)}")
        masks = [Block(self._mask(p), (p.axis,)).over(where.axes).text for p in where.bounds]
        return f"{text} + {tile}", " & ".join(masks)

    def _base(self, base: Int) -> str:
        """The variable of a base, in several steps where one would be too long for a line."""
        if isinstance(base, Integer) and len(integer(base).text) > WIDTH // 2 + _LONGEST:
            base = replace(base, left=Symbol(self._base(base.left)))
        return self._common(integer(base).text, "at")

    def _mask(self, p: Along) -> str:
        """The variable of a mask of the entries that exist."""
        o, bound = self._index(p.axis), integer(p.bound).text
        size = Symbol(p.axis.size) if isinstance(p.axis.size, str) else p.axis.size
        if is_whole(p):
            return self._once(f"_within({o}, 0, {bound})", f"m_{p.axis.name}")
        start = integer(p.start).at_most(SUM)
        static = set(symbols(p.bound)) <= {*self._kernel.static, *self._fixed}
        if static and is_multiple(p.start, size):
            return self._common(f"_within({o}, {start}, {bound})", f"m_{p.axis.name}")
        return self._common(f"{start} + {o} < {bound}", f"m_{p.axis.name}")

    # --- operations -------------------------------------------------------------------------------

    def _block(self, operation: Operation) -> Block:
        match operation:
            case Const(value=value):
                return Block(number(value))
            case Index(axis=axis, start=start):
                if start == 0:
                    return Block(self._index(axis), (axis,))
                text = f"{integer(start).at_most(SUM)} + {self._index(axis)}"
                return Block(text, (axis,), SUM)
            case Compare(left=left, right=right):
                other = self._blocks[right] if isinstance(right, str) else integer(right)
                both = self._blocks[left], other
                return joined(both, united(*(b.axes for b in both)), operation.operator)
            case Map():
                return self._map(operation)
            case Rename(operand=operand, axis=axis, to=to):
                return self._blocks[operand].renamed(axis, to)
            case Reduce():
                return self._reduce(operation)
            case Cumulate():
                return self._cumulate(operation)
            case ToMiddle():
                return self._to_middle(operation)
            case Between():
                if self._blocks[operation.operand].axes != (operation.axis,):
                    raise NotPrintable("products between tokens are of one number a token")
                exclusive = str(operation.exclusive)
                text = call("_passed", self._blocks[operation.operand], exclusive)
                return Block(text, (operation.to, operation.since))
            case Shift():
                return self._shift(operation)
            case Dot():
                return self._dot(operation)
            case InverseUnit(row=row, column=column):
                x = self._blocks[operation.operand].ordered((row, column))
                return Block(call("_inverse_unit", x, "EXACT"), (row, column))
            case Load(argument=argument, at=at):
                where, mask = self._place(argument, at)
                axes = tuple(p.axis for p in at if isinstance(p, Along))
                if not mask:
                    return Block(f"tl.load({where}).to(tl.float32)", axes)
                return Block(call("_load", where, mask), axes)

    def _map(self, operation: Map) -> Block:
        blocks = [self._blocks[x] for x in operation.operands]
        one = {"mul": "1.0", "add": "0.0"}.get(operation.function)
        if one is not None:
            for x, y in (blocks, blocks[::-1]):
                if x.text == one:
                    return y
        axes = united(*(b.axes for b in blocks))
        if operation.function == "where" and blocks[1] == blocks[2] and not blocks[1].axes:
            sizes = ", ".join(map(self._size, axes)) + "," * (len(axes) == 1)
            return Block(call("tl.full", f"({sizes})", blocks[1], "tl.float32"), axes)
        if operation.function in _KNOWN:
            return joined(blocks, axes, operation.function)
        texts = [Code(b.over(axes).at_most(ATOM), (), False) for b in blocks]
        code = called_as("triton", operation.function, texts)
        return Block(code.text, axes, ATOM if code.binding is Binding.ATOM else SUM)

    def _filled(self, name: str, axis: Axis, neutral: str) -> Block:
        """A value with a number in the padding of an axis, where that matters."""
        x = self._blocks[name]
        zero = axis in self._zeros.get(name, Zeros()).padding and neutral == "0.0"
        if not self._is_padded(axis) or zero:
            return x
        mask = self._mask(Along(axis, 0, Symbol(str(axis.size))))
        return Block(call("tl.where", Block(mask, (axis,)).over(x.axes), x, neutral), x.axes)

    def _reduce(self, operation: Reduce) -> Block:
        neutral = {"sum": "0.0", "product": "1.0", "max": number(-float("inf"))}
        x = self._filled(operation.operand, operation.axis, neutral[operation.function])
        at = x.axes.index(operation.axis)
        function = {"sum": "tl.sum", "product": "_product", "max": "tl.max"}[operation.function]
        return Block(call(function, x, str(at)), (*x.axes[:at], *x.axes[at + 1 :]))

    def _cumulate(self, operation: Cumulate) -> Block:
        product, size = operation.function == "product", self._size(operation.axis)
        neutral = "1.0" if product else "0.0"
        x = self._filled(operation.operand, operation.axis, neutral)
        if operation.block == 1:
            return Block(neutral) if operation.exclusive else x
        block = str(operation.block or size)
        plain = block == size and not operation.exclusive
        at = str(x.axes.index(operation.axis))
        if not product and at == "0" and len(x.axes) == 2 and block == size:
            # Tensor cores add up rows faster than threads that wait for one another.
            flags = [operation.reverse, operation.exclusive]
            return Block(call("_running_sums", x, *map(str, flags), "EXACT"), x.axes)
        if plain:
            turned = ["reverse=True"] if operation.reverse else []
            function = "tl.cumprod" if product else "tl.cumsum"
            return Block(call(function, x, at, *turned), x.axes)
        flags = [product, operation.reverse, operation.exclusive]
        return Block(call("_cumulated", x, at, *map(str, flags), block), x.axes)

    def _to_middle(self, operation: ToMiddle) -> Block:
        x = self._blocks[operation.operand]
        x = x.ordered((operation.axis, *(a for a in x.axes if a != operation.axis)))
        flags = [exponent(operation.half), str(operation.exclusive), str(operation.back)]
        return Block(call("_sums_to_middle", x, *flags, "EXACT"), x.axes)

    def _shift(self, operation: Shift) -> Block:
        axis, by = operation.axis, operation.by
        if self._is_padded(axis):
            raise NotPrintable(f"entries are shifted into the padding of {axis.name}")
        x = self._blocks[operation.operand]
        x = x.ordered((by, axis)) if by in x.axes else x
        flags = [self._size(by), str(operation.offset), str(operation.back)]
        return Block(call("_shifted", x, *flags), (by, axis))

    def _dot(self, operation: Dot) -> Block:
        over = operation.over
        left = self._factor(operation.left, operation.left_part)
        right = self._factor(operation.right, operation.right_part)
        if not all(over in self._zeros[x].padding for x in (operation.left, operation.right)):
            left = left if self._is_zero_beyond(operation, over) else self._beyond(left, over)
        rows, columns = ([a for a in x.axes if a != over] for x in (left, right))
        if set(rows) & set(columns) or max(len(rows), len(columns)) > 1:
            raise NotPrintable("products of matrices have no batch")
        if rows and columns:
            x, y = left.ordered((*rows, over)), right.ordered((over, *columns))
            factors = "EXACT" if operation.exact else "FACTORS"
            product = Block(call("_matmul", x, y, factors), (*rows, *columns))
        else:
            axes = (*rows, over, *columns)
            both = joined([left, right], axes, "mul")
            product = Block(call("tl.sum", both, str(len(rows))), (*rows, *columns))
        return self._within(product, operation.out)

    def _is_zero_beyond(self, operation: Dot, over: Axis) -> bool:
        """Whether padding adds nothing to a sum of products."""
        if not self._is_padded(over):
            return True
        x, y = self._zeros[operation.left], self._zeros[operation.right]
        return (over in x.padding and y.tame) or (over in y.padding and x.tame)

    def _beyond(self, x: Block, axis: Axis) -> Block:
        mask = self._mask(Along(axis, 0, Symbol(str(axis.size))))
        return Block(call("tl.where", Block(mask, (axis,)).over(x.axes), x, "0.0"), x.axes)

    def _factor(self, name: str, part: Triangle | None) -> Block:
        x = self._blocks[name]
        if part is None or self._zeros[name].outside(part):
            return x
        return self._within(x, part)

    def _within(self, x: Block, part: Triangle | None) -> Block:
        """A block with zeros outside of a triangle."""
        if part is None:
            return x
        if part.block is not None:
            # The masks of all levels would not fit the registers: each is made where it is used.
            row = str(x.axes.index(part.row))
            return Block(call("_across", x, exponent(part.block), row), x.axes)
        axes = tuple(a for a in x.axes if a in (part.row, part.column))
        row, column = self._along(part.row, axes), self._along(part.column, axes)
        mask = Block(self._once(triangle(part, row, column), mask_name(part)), axes)
        return Block(call("tl.where", mask.over(x.axes), x, "0.0"), x.axes)
