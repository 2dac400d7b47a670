"""Prints the functional form: token-wise kernels as statements around the calls of the scans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsfc.expr.build import ONE, add, walk
from dsfc.expr.tree import (
    Add,
    Axis,
    Expr,
    Field,
    Fir,
    Iota,
    LinearMap,
    Map,
    Mul,
    Now,
    Ones,
    Param,
    Prim,
    Ref,
    Size,
    Time,
    children,
)
from dsfc.plan.ir import Buffer, Plan, Pointwise, Register, Reverse, Role, RunningMax, Unit
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan
from dsfc.plan.sensitive import decay_buffers, outside_maps

from .attention import attention_lines
from .code import Binding, Code, cast, filtered
from .context import arriving_max
from .functions import FUNCTIONS, called
from .layout import assign, paragraph, wrapped
from .nodes import Printer
from .pairs import pair_lines, pairs
from .signature import size_read

ScanCall = Callable[[Scan | Recurrence], list[str]]


@dataclass(frozen=True, slots=True)
class BodyText:
    """The functional form's statements.

    Attributes:
        lines: indented by four blanks; the scans' calls included.
        result: text of the output.
        registers: text of each register's next value, in the order of the plan.
        sizes: sizes that no tensor has, which are arguments.
    """

    lines: tuple[str, ...]
    result: str
    registers: tuple[str, ...]
    sizes: tuple[str, ...]


class Body:
    """Prints kernels in order.

    Args:
        plan: the plan.
        names: identifier of each name of the plan.
        like: identifier of an input; gives batch, length, device and dtype.
        call: lines that call a scan's operator and bind its outputs.
        kept: parameters and buffers that are stored in float32 at least.
        distributed: whether processes may share a sequence, and what is before it arrives.
    """

    def __init__(
        self,
        plan: Plan,
        names: Callable[[str], str],
        like: str,
        call: ScanCall,
        kept: frozenset[str] = frozenset(),
        distributed: bool = False,
    ) -> None:
        self._plan = plan
        self._distributed = distributed
        self._ident = names
        self._like = like
        self._call = call
        self._arrays = {b.name: b for b in plan.arrays}
        self._registers = {r.buffer: r for r in plan.registers}
        self.kept = kept
        self._wide = wide_buffers(plan, kept)
        self._used = {names(n) for n in self._arrays} | {names(r.name) for r in plan.registers}
        self._used |= {names(t.name) for t in (*plan.params, *plan.buffers)} | {like}
        self._used |= {names(s.name) for s in plan.states} | {
            "dtype",
            "wide",
            "field",
            "mode",
            "chunk",
            "carry",
            "lengths",
            "counts",
            "run",
            "ranks",
            "write",
        }
        self._all: dict[str, str] = {}
        self._sizes: dict[str, str] = {}
        self._given: dict[str, None] = {}

    def text(self) -> BodyText:
        """Returns the statements."""
        lines: list[str] = []
        for t in self._plan.inputs:
            lines += self._extend(t.name)
        for k in self._plan.kernels:
            if isinstance(k, Scan):
                lines += self._call(k)
                for c in k.columns:
                    lines += self._extend(c.output)
            elif isinstance(k, Recurrence):
                lines += self._call(k)
                for r in k.reads:
                    lines += self._extend(r.output)
            elif isinstance(k, Unit):
                where = f"device={self._like}.device, dtype={self._like}.dtype"
                text = f"torch.eye({self.size(k.row)}, {where})"
                lines.append(f"    {self._ident(k.output)} = {text}")
            elif isinstance(k, Attention):
                lines += self._attention(k)
            elif isinstance(k, AllPairs):
                lines += self._pairs(k)
            elif isinstance(k, RunningMax):
                lines += self._running_max(k)
            elif isinstance(k, Reverse):
                source = self._ident(k.source)
                narrow = k.output in self._wide and k.source not in self._wide
                real = self._plan.array(k.output).field is Field.REAL
                text = f"_reversed({source}, lengths)"
                text = cast(text, "wide") if narrow and real else text
                lines.append(f"    {self._ident(k.output)} = {text}")
                lines += self._extend(k.output)
            else:
                lines += self._pointwise(k)
        sizes = [f"    {name} = {text}" for name, text in self._sizes.items()]
        return BodyText(
            tuple([*sizes, *lines]),
            self._ident(self._plan.output),
            tuple(self._next(r) for r in self._plan.registers),
            tuple(self._given),
        )

    def size(self, axis: Axis) -> str:
        """Returns the variable that holds an axis' size, bound in the prologue or given."""
        name = axis.copy_of or axis.name
        ident = self._ident(name)
        if ident not in self._sizes and ident not in self._given:
            where = self._where(name)
            if where is None:
                self._given[ident] = None
            else:
                self._sizes[ident] = where
        return ident

    def _where(self, name: str) -> str | None:
        read = size_read(self._plan, self._ident, name)
        if read is not None:
            return read
        for s in self._plan.states:
            for at, a in enumerate(s.axes):
                if a.name == name:
                    return f"{self._ident(s.name)}.shape[{at + 1}]"
        return None

    # --- kernels ---------------------------------------------------------------------------------

    def _pointwise(self, k: Pointwise) -> list[str]:
        b = self._arrays[k.output]
        ident = self._ident(b.name)
        if k.value is ONE and b.role is Role.STREAM and not b.axes:
            dtype = ", dtype=wide" if b.name in self._wide else ""
            lines = [f"    {ident} = {self._like}.new_ones({self._like}.shape[:2]{dtype})"]
        else:
            printer = _Printer(self, wide=b.name in self._wide)
            lines = assign(ident, k.value, printer, self._fresh, wrap=self._whole(b))
        if b.provenance is not None:
            lines = [*paragraph(b.provenance.text, "    # ").split("\n"), *lines]
        return lines + self._extend(k.output)

    def _whole(self, b: Buffer) -> Callable[[Code], str]:
        """Broadcasts a value that lacks axes or the lead of its buffer."""

        def wrap(code: Code) -> str:
            lead = b.role is not Role.CONSTANT
            if code.axes == b.axes and code.lead == lead and not code.number:
                return code.text
            sizes = ", ".join(self.size(a) for a in b.axes)
            shape = f"*{self._like}.shape[:2], {sizes}".rstrip(", ") if lead else sizes
            if code.number:
                dtype = ", dtype=wide" if b.name in self._wide else ""
                sizes = f"({shape}{',' if shape else ''})"
                return f"{self._like}.new_full({sizes}, {code.text}{dtype})"
            text = code.aligned(b.axes, code.lead)
            atom = text if text is not code.text else code.at_least(Binding.ATOM)
            # A result that is the same at every token is no view of what is stored.
            copied = ".clone()" if b.role is Role.OUTPUT and not code.lead else ""
            return f"{atom}.expand({shape}){copied}"

        return wrap

    def _attention(self, k: Attention) -> list[str]:
        scale = _Printer(self, wide=False).print(k.scale).text
        return attention_lines(k, self._arrays, self._ident, self._all, self.size, scale)

    def _pairs(self, k: AllPairs) -> list[str]:
        (text,) = (p for p in pairs(self._plan, self._ident) if p.kernel is k)
        lines = pair_lines(text, self._all, self._like, self.size, cast)
        return [*lines, *self._extend(k.output)]

    def _running_max(self, k: RunningMax) -> list[str]:
        """A call of the operator; a reference is computed of values without a gradient."""
        detached = "" if k.declared else ".detach()"
        axes = self._arrays[k.output].axes

        def cast_wide(name: str) -> str:
            b = self._arrays[name]
            lead = b.role is not Role.CONSTANT
            code = Code(self._ident(name), b.axes, lead)
            text = code.text
            if b.axes != axes or not lead:
                sizes = ", ".join(["*" + self._like + ".shape[:2]", *(self.size(a) for a in axes)])
                text = f"{code.aligned(axes, lead)}.expand({sizes})"
            return cast(f"{text}{detached}", "wide")

        last = f"{self._ident(self._registers[k.output].name)}[:, -1]{detached}"
        decay = "None" if k.decay is None else cast_wide(k.decay)
        items = [cast_wide(k.weight), cast(last, "wide"), decay]
        called = "_maximum" if k.declared else "_OPS.running_max"
        output = self._ident(k.output)
        if self._distributed:
            call = arriving_max(output, called, items, k.declared, self.unused)
        else:
            call = [wrapped(f"{output}, _ = {called}", items, "", "    ")]
        return [*call, *self._extend(k.output)]

    # --- earlier tokens --------------------------------------------------------------------------

    def _extend(self, name: str) -> list[str]:
        """Puts the register in front of a buffer, once it is computed."""
        register = self._registers.get(name)
        if register is None:
            return []
        ident, past = self._ident(name), self._ident(register.name)
        whole = self.unused(f"{ident}_all")
        self._all[name] = whole
        if register.grows:
            return [f"    {whole} = _appended({past}, {ident}, write)"]
        arrived = []
        if self._distributed:
            arrived = [f"    {past} = _tokens_before(ranks, {ident}, {past}, lengths)"]
        return [*arrived, f"    {whole} = torch.cat(({past}.to({ident}.dtype), {ident}), 1)"]

    def _next(self, register: Register) -> str:
        past, whole = self._ident(register.name), self._all[register.buffer]
        if register.grows:
            return f"_every({whole}, {past}, lengths)"
        return f"_last({whole}, {past}, lengths, mode)"

    def delayed(self, name: str, lag: int) -> str:
        """Returns text of a buffer's values `lag` tokens earlier."""
        past = self._ident(self._registers[name].name)
        start = f"{past}.shape[1] - {lag}"
        return f"{self._all[name]}.narrow(1, {start}, {self._like}.shape[1])"

    def filtered(self, fir: Fir, printer: _Printer) -> Code:
        """Returns the code of a causal filter."""
        assert isinstance(fir.arg, Ref)
        whole, past = self._all[fir.arg.name], self._ident(self._registers[fir.arg.name].name)
        lag = fir.arg.at.lag if isinstance(fir.arg.at, Now) else 0
        until, start = (f"[:, :-{lag}]", f" - {lag}") if lag else ("", "")
        values = Code(f"{whole}{until}", self._arrays[fir.arg.name].axes, True)
        values = printer.read(fir.arg, values)
        weight = printer.print(fir.weight)
        return filtered("_fir", fir, values, weight, f"{past}.shape[1]{start}")

    def named(self, ref: Ref) -> Code:
        """Returns the code that reads a buffer."""
        b = self._arrays[ref.name]
        if isinstance(ref.at, Now) and ref.at.lag:
            return Code(self.delayed(ref.name, ref.at.lag), b.axes, True)
        return Code(self._ident(ref.name), b.axes, b.role is not Role.CONSTANT)

    def is_wide(self, name: str) -> bool:
        """Whether a buffer is computed in the accumulation dtype."""
        return name in self._wide

    def lookup(self, name: str) -> str:
        """Returns the identifier of a parameter or buffer, or of an axis' size."""
        if any(t.name == name for t in (*self._plan.params, *self._plan.buffers)):
            return self._ident(name)
        (axis,) = (d.axis for d in self._plan.axes if d.axis.name == name)
        return self.size(axis)

    def _fresh(self, name: str) -> str:
        count = 1
        while f"{name}_{count}" in self._used:
            count += 1
        return self.unused(f"{name}_{count}")

    def unused(self, name: str) -> str:
        """Returns an unused variable name close to the one given, and takes it."""
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name

    @property
    def like(self) -> str:
        """Identifier of an input."""
        return self._like


class _Printer(Printer):
    """Reads buffers and parameters; widens what feeds a decay to the accumulation dtype."""

    def __init__(self, body: Body, wide: bool) -> None:
        super().__init__(body.named, _Names(body), body.like, fir=self._filter)
        self._body = body
        self._is_wide = wide
        self._part_is_wide = False
        self._wide_parts: set[str] = set()

    def _filter(self, fir: Fir) -> Code:
        return self._body.filtered(fir, self)

    def part(self, expr: Expr, whole: Expr) -> Code:
        """Returns the code of a part, which is wide where it stands outside of a narrow map too."""
        self._part_is_wide = self._is_wide and _widely_read(expr, whole, self._body.kept)
        before, self._is_wide = self._is_wide, self._part_is_wide
        code = super().part(expr, whole)
        self._is_wide = before
        return code

    def bind(self, name: str, code: Code) -> None:
        """Learns the variable that holds the part printed last, and whether it is wide."""
        super().bind(name, code)
        if self._part_is_wide:
            self._wide_parts.add(name)

    def along(self, expr: Prim, code: Code, at: int) -> Code:
        """Returns the code of a primitive along an axis; norms are functions of the module."""
        if expr.name in FUNCTIONS:
            return Code(f"{called(expr.name)}({code.text}, {at})", code.axes, code.lead)
        return super().along(expr, code, at)

    def stacked(self, code: Code, weight: str) -> str | None:
        """Returns the text of a map of one axis to several, which parses no string at run time."""
        return f"_linear({code.text}, {weight})"

    def weight(self, linear: LinearMap) -> str:
        """Returns the text of a weight; one that is stored wide may be given in a narrow dtype."""
        text = super().weight(linear)
        narrow = linear.name in self._body.kept and linear.field is Field.REAL
        return cast(text, "wide") if narrow else text

    def argument(self, expr: Prim, arg: Expr) -> Code:
        """Returns the code of an argument; `torch.complex` takes two tensors of one dtype.

        What is computed of numbers alone is a single float64, which other operators promote.
        """
        code = self.print(arg)
        atom = code.binding is Binding.ATOM and code.text.startswith("_as(")
        wide = atom and code.text.endswith(", wide)")
        single = not (code.number or code.axes or code.lead or wide)
        return self._as(code, "wide") if expr.name == "cplx" and single else code

    def print(self, expr: Expr) -> Code:
        """Returns the code of an expression.

        Everything in a wide expression is wide but the arguments of its maps, which have the
        weights' dtype. Complex numbers are always wide, and so is what they are computed of: a real
        value of complex ones is cast where it enters a narrow expression.
        """
        if isinstance(expr, Size):
            return Code(self._body.size(expr.axis), (), False, number=True)
        if isinstance(expr, Iota):
            dtype = "wide" if self._is_wide else f"{self._body.like}.dtype"
            where = f"device={self._body.like}.device, dtype={dtype}"
            return Code(f"torch.arange({self._body.size(expr.axis)}, {where})", (expr.axis,), False)
        if isinstance(expr, Map):
            wide, inside = self._is_wide, expr.map.name in self._body.kept
            self._is_wide = inside
            code = super().print(expr)
            self._is_wide = wide
            if wide == inside or expr.field is Field.COMPLEX:
                return code
            return self._as(code, "wide" if wide else "dtype")
        if any(e.field is Field.COMPLEX for e in (expr, *children(expr))):
            wide, self._is_wide = self._is_wide, True
            code = super().print(expr)
            self._is_wide = wide
            return code if wide or expr.field is Field.COMPLEX else self._as(code, "dtype")
        code = super().print(expr)
        if code.number:
            return code
        if isinstance(expr, Param | Ones):
            if self._is_wide:
                return self._as(code, "wide")
            kept = isinstance(expr, Param) and expr.name in self._body.kept
            return self._as(code, "dtype") if kept else code
        return self.read(expr, code) if isinstance(expr, Ref) else code

    def read(self, ref: Ref, code: Code) -> Code:
        """Returns the code of a buffer's or a part's values in the dtype they are read in."""
        part = ref.name in self.local
        wide = ref.name in self._wide_parts if part else self._body.is_wide(ref.name)
        if self._is_wide == wide or ref.field is Field.COMPLEX:
            return code
        return self._as(code, "wide" if self._is_wide else "dtype")

    def _as(self, code: Code, dtype: str) -> Code:
        return Code(cast(code.text, dtype), code.axes, code.lead)


class _Names(dict[str, str]):
    """Axis sizes and parameters by name, sizes bound on first use."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self._body = body

    def __missing__(self, name: str) -> str:
        return self._body.lookup(name)


def wide_buffers(plan: Plan, kept: frozenset[str] = frozenset()) -> frozenset[str]:
    """Returns the buffers computed in the accumulation dtype.

    Decays, running maxima, full transitions and what a recurrence multiplies its states by act over
    the whole sequence: what they are computed from is wide, from the maps on, and so is what is
    computed from that (1 - λ² loses everything in a narrow dtype). So is what is computed of
    parameters that are stored wide. There are no narrow complex numbers, so those are wide too.

    Args:
        plan: the plan.
        kept: parameters and buffers that are stored in float32 at least.
    """
    values = {k.output: k.value for k in plan.kernels if isinstance(k, Pointwise)}
    values |= {
        k.output: _same(plan.array(k.source)) for k in plan.kernels if isinstance(k, Reverse)
    }
    maxima = [k for k in plan.kernels if isinstance(k, RunningMax)]
    for k in maxima:
        read = (name for name in (k.weight, k.decay) if name is not None)
        values[k.output] = add(*(_same(plan.array(name)) for name in read))
    wide: set[str] = set()
    stack = list(decay_buffers(plan))
    stack += [n for n, v in values.items() if any(e.field is Field.COMPLEX for e in walk(v))]
    while stack:
        name = stack.pop()
        if name in wide or name not in values:
            continue
        wide.add(name)
        stack.extend(e.name for e in outside_maps(values[name]) if isinstance(e, Ref))
    for name, value in values.items():
        for e in outside_maps(value, kept):
            reads_wide = isinstance(e, Ref) and e.name in wide
            if reads_wide or (isinstance(e, Param) and e.name in kept):
                wide.add(name)
    return frozenset(wide)


def _same(b: Buffer) -> Expr:
    """Returns the buffer that a reversed one copies, as an expression."""
    return Ref(b.name, frozenset(b.axes), b.field, Time.TOKEN, Now(0))


def _widely_read(part: Expr, whole: Expr, kept: frozenset[str]) -> bool:
    """Whether a part of a wide expression, be it some terms of a sum, stands outside of maps."""
    terms = set(part.args) if isinstance(part, Add | Mul) else set()
    return any(
        e == part or (isinstance(e, Add | Mul) and type(e) is type(part) and terms <= set(e.args))
        for e in outside_maps(whole, kept)
    )
