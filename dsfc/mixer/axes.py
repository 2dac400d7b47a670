"""Axes and their sizes: from `dims` to typed dimensions, and from given sizes to all sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from dsfc.diagnostics.catalogue import Size as SizeProblem
from dsfc.diagnostics.catalogue import UnknownAxis
from dsfc.diagnostics.report import Reporter, nearest
from dsfc.expr.arithmetic import steepness
from dsfc.expr.build import add, div, mul, neg, num, power, walk
from dsfc.expr.declarations import Dimension, MapTensor
from dsfc.expr.graph import components, shortest_path
from dsfc.expr.size import LARGEST, STEEPEST, size_value
from dsfc.expr.tree import Axis, Expr, Num, Rename, Size
from dsfc.mixer.ir import Mixer
from dsfc.source import NOWHERE, Span
from dsfc.syntax import ast


def dimensions(
    dims: Mapping[str, ast.Dim], consts: Mapping[str, ast.Const], reporter: Reporter
) -> tuple[Dimension, ...]:
    """Returns the dimensions of a mixer, in canonical order.

    Args:
        dims: declarations by name, in order.
        consts: constants that a size may name.
        reporter: takes sizes that name what is not an axis, and sizes that depend on themselves.
    """
    axes = {name: Axis(k, name, dim.heads) for k, (name, dim) in enumerate(dims.items())}
    reader = _SizeReader(axes, consts, reporter)
    out = []
    for name, dim in dims.items():
        size = None if dim.size is None else reader.read(name, dim.size)
        if size is not None and not any(isinstance(e, Size) for e in walk(size)):
            value = size_value(size, {})
            size = num(0 if value is None else value)
        default = isinstance(size, Num)
        if isinstance(size, Num) and not _is_size(size.value):
            problem = f"must be a positive integer, at most {LARGEST}"
            reporter.add(SizeProblem(dim.span, axis=name, problem=problem))
            size = None
        out.append(Dimension(axes[name], size, default, dim.span))
    _report_cycles(out, reporter)
    return tuple(out)


class _SizeReader:
    """Reads the arithmetic of sizes."""

    def __init__(
        self, axes: Mapping[str, Axis], consts: Mapping[str, ast.Const], reporter: Reporter
    ) -> None:
        self._axes = axes
        self._consts = consts
        self._reporter = reporter
        self._inside: list[str] = []
        self._owner = ""

    def read(self, owner: str, node: ast.Expr) -> Expr | None:
        """Returns the size of `owner` over numbers and sizes, None if it is something else."""
        self._owner = owner
        return self._read(node)

    def _read(self, node: ast.Expr) -> Expr | None:
        match node:
            case ast.Num():
                return num(node.value)
            case ast.Name():
                return self._name(node)
            case ast.Neg():
                inner = self._read(node.operand)
                return None if inner is None else neg(inner)
            case ast.Pow():
                return self._power(node)
            case ast.Add():
                return self._chain(node.operands, [op is ast.AddOp.MINUS for op in node.operators])
            case ast.Mul():
                return self._product(node)
            case _:
                self._refuse(node, "is not arithmetic of numbers and sizes")
                return None

    def _power(self, node: ast.Pow) -> Expr | None:
        base, exponent = self._read(node.base), self._read(node.exponent)
        if base is None or exponent is None:
            return None
        out = power(base, exponent)
        if steepness(out, {}) > STEEPEST:
            self._refuse(node, f"has powers beyond {STEEPEST}")
            return None
        return out

    def _name(self, node: ast.Name) -> Expr | None:
        if node.id in self._axes:
            return Size(self._axes[node.id])
        if node.id in self._consts and node.id not in self._inside:
            self._inside.append(node.id)
            value = self._read(self._consts[node.id].expr)
            self._inside.pop()
            return value
        self._reporter.add(unknown_axis(self._owner, node.id, node.span, self._axes))
        return None

    def _chain(self, operands: Iterable[ast.Expr], minus: list[bool]) -> Expr | None:
        terms = [self._read(operand) for operand in operands]
        signed = [
            t if t is None or not m else neg(t) for t, m in zip(terms, [False, *minus], strict=True)
        ]
        known = [t for t in signed if t is not None]
        return add(*known) if len(known) == len(signed) else None

    def _product(self, node: ast.Mul) -> Expr | None:
        out = self._read(node.operands[0])
        for op, operand in zip(node.operators, node.operands[1:], strict=True):
            factor = self._read(operand)
            if out is None or factor is None:
                return None
            if op is ast.MulOp.OVER and isinstance(factor, Num) and factor.value == 0:
                self._refuse(node, "divides by zero")
                return None
            out = mul(out, factor) if op is ast.MulOp.TIMES else div(out, factor)
        return out

    def _refuse(self, node: ast.Expr, problem: str) -> None:
        self._reporter.add(SizeProblem(node.span, axis=self._owner, problem=problem))


def unknown_axis(owner: str, name: str, span: Span, axes: Iterable[str]) -> UnknownAxis:
    """Returns the complaint about a word in `owner` that is not an axis (T1)."""
    known = tuple(axes)
    close = nearest(name, known)
    said = f"axes are {', '.join(known)}" if known else f"no axis is declared; write `dims {name}`"
    if known and close is None and name.isidentifier():
        way = _OVER_TOKENS.get(owner, f"declare it: `dims {name}`").replace("[j", f"[{name}")
        said = f"{said}; {_TYPES if name.lower() in _TYPE_NAMES else way}"
    return UnknownAxis(span, owner=owner, axis=name, known=said, nearest=close)


_OVER_TOKENS = {
    "sum": "over tokens `sum[j ≤ i](…)`",
    "softmax": "over tokens `sum[j ≤ i](exp(s) * v[j]) / sum[j ≤ i](exp(s))`",
    "mean": "a mean over tokens is `sum[j ≤ i](x[j]) / sum[j ≤ i](1)`",
}
"""Functions that run along an axis → how each is written over tokens."""
_TYPE_NAMES = ("float", "real", "int", "tensor", "float32", "double")
_TYPES = "a shape names axes; values are real, or `complex` by a flag"


def _is_size(value: Fraction) -> bool:
    return value.denominator == 1 and 0 < value <= LARGEST


def _short(value: Fraction) -> str:
    return f"more than {LARGEST}" if value > LARGEST else str(value)


def _report_cycles(dims: Iterable[Dimension], reporter: Reporter) -> None:
    by_name = {d.axis.name: d for d in dims}
    needs = {name: [a.name for a in size_axes(d)] for name, d in by_name.items()}
    for part in components(needs):
        first = min(part, key=list(by_name).index)
        following = next((name for name in needs[first] if name in part), None)
        if following is None:
            continue
        path = " → ".join((first, *shortest_path(needs, following, first)))
        span = by_name[first].span or NOWHERE
        reporter.add(SizeProblem(span, axis=first, problem=f"depends on itself ({path})"))


def size_axes(dim: Dimension) -> tuple[Axis, ...]:
    """Returns the axes whose sizes a dimension's size is computed from."""
    if dim.size is None:
        return ()
    return tuple(e.axis for e in walk(dim.size) if isinstance(e, Size))


def sizes(mixer: Mixer, fixed: Mapping[str, int]) -> dict[str, int]:
    """Returns the size of every axis of a mixer.

    Args:
        mixer: the mixer.
        fixed: sizes chosen by the user, by axis name; they override defaults and derivations.

    Raises:
        DiagnosticError: `E-DIM` for an axis without a size, a name that is no axis, a derived size
            that is not a positive integer, or axes renamed into each other with different sizes.
    """
    reporter = Reporter()
    by_name = {d.axis.name: d for d in mixer.axes}
    for name, value in fixed.items():
        if name not in by_name:
            reporter.add(unknown_axis(mixer.name, name, mixer.span or NOWHERE, by_name))
        elif value < 1:
            problem = f"must be a positive integer, not {value}"
            span = by_name[name].span or NOWHERE
            reporter.add(SizeProblem(span, axis=name, problem=problem))
    reporter.raise_errors()
    out: dict[str, int] = dict(fixed)
    needed = {a.name for a in used_axes(mixer)}
    for name in by_name:
        if name in needed:
            _solve(by_name[name], by_name, out, reporter)
    reporter.raise_errors()
    _check_renames(mixer, out, reporter)
    reporter.raise_errors()
    return {name: out[name] for name in by_name if name in out}


def _solve(
    dim: Dimension, by_name: Mapping[str, Dimension], out: dict[str, int], reporter: Reporter
) -> bool:
    """Finds the size of one axis; reports and returns False if there is none."""
    name = dim.axis.name
    if name in out:
        return True
    span = dim.span or NOWHERE
    if dim.size is None:
        reporter.add(SizeProblem(span, axis=name, problem="must be given"))
        return False
    for axis in size_axes(dim):
        if not _solve(by_name[axis.name], by_name, out, reporter):
            return False
    value = size_value(dim.size, out)
    if value is None or not _is_size(value):
        parts = ", ".join(f"{a.name} = {out[a.name]}" for a in size_axes(dim))
        shown = "not a number" if value is None else _short(value)
        problem = f"comes out as {shown} for {parts}; it must be a positive integer"
        reporter.add(SizeProblem(span, axis=name, problem=problem))
        return False
    out[name] = int(value)
    return True


def used_axes(mixer: Mixer) -> frozenset[Axis]:
    """Returns the axes that some tensor or expression of the mixer has."""
    out: set[Axis] = set()
    for tensor in (*mixer.inputs, *mixer.params, *mixer.buffers):
        if isinstance(tensor, MapTensor):
            out.update(tensor.map.each, tensor.map.source, tensor.map.target)
        else:
            out.update(tensor.axes)
    for state in mixer.states:
        out.update(state.axes)
    for expr in expressions(mixer):
        out |= expression_axes(expr)
    return frozenset(out)


def expression_axes(expr: Expr) -> frozenset[Axis]:
    """Returns every axis an expression mentions, bound ones and sizes included."""
    out: set[Axis] = set()
    for node in walk(expr):
        out |= node.axes
        axis = getattr(node, "axis", None)
        if isinstance(axis, Axis):
            out.add(axis)
        if isinstance(node, Rename):
            out |= {node.old, node.new}
    return frozenset(out)


def expressions(mixer: Mixer) -> Iterator[Expr]:
    """Yields the top expressions of definitions, state updates and initialisers."""
    for definition in mixer.definitions:
        yield definition.value
    for state in mixer.states:
        if state.update is not None:
            yield state.update
        if state.flow is not None:
            yield state.flow.drift
            yield state.flow.step
    for tensor in (*mixer.params, *mixer.buffers):
        if tensor.init is not None:
            yield tensor.init.value


def _check_renames(mixer: Mixer, known: Mapping[str, int], reporter: Reporter) -> None:
    pairs = {
        (node.old.name, node.new.name)
        for expr in expressions(mixer)
        for node in walk(expr)
        if isinstance(node, Rename)
    }
    for old, new in sorted(pairs):
        if known[old] != known[new]:
            problem = f"is {known[new]}, but `{old}`, which is renamed to it, has {known[old]}"
            reporter.add(SizeProblem(mixer.span or NOWHERE, axis=new, problem=problem))
