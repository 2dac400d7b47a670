"""Parameters and initialisers of an emitted `nn.Module`.

A constraint is kept by construction: a `positive` parameter is stored as its logarithm, a `unit`
one as its logit, a `nonneg` one as its root. The module's text computes the value from what is
stored, so what a proof assumes of the parameter holds of every weight that training can reach.
A complex parameter is stored as its two parts, so that a cast to a narrow dtype keeps both.

Only functions of `torch.nn.init` write to what is stored, the emitted `_start_at` by way of one:
a loader of weights that guards these functions keeps what it has loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from dsfc.expr.build import ZERO, prim, walk
from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.distributions import distribution
from dsfc.expr.starts import initialiser
from dsfc.expr.tree import Axis, Draw, Field, Num, Ref
from dsfc.plan.ir import Plan

from .code import Binding, Code
from .layout import WIDTH, assign
from .nodes import Printer


@dataclass(frozen=True, slots=True)
class Storage:
    """How a constrained parameter is stored.

    Attributes:
        prefix: of the stored name.
        inverse: text of the stored value, from `{0}`.
        value: text of the parameter, from the stored `{0}`.
        note: for the docstring.
    """

    prefix: str
    inverse: str
    value: str
    note: str


PARTS = Storage(
    "parts_", "torch.view_as_real({0})", "_complex({0})", "stored as its real and imaginary parts"
)
STORAGE = {
    Constraint.POSITIVE: Storage("log_", "torch.log({0})", "torch.exp({0})", "stored as its log"),
    Constraint.UNIT: Storage(
        "logit_", "torch.logit({0})", "torch.sigmoid({0})", "stored as its logit"
    ),
    Constraint.NONNEG: Storage("root_", "torch.sqrt({0})", "{0}.square()", "stored as its root"),
}


@dataclass(frozen=True, slots=True)
class ParameterText:
    """One parameter or buffer of the module.

    Attributes:
        name: identifier of its value in the functional form.
        attribute: identifier of what the module stores.
        shape: text of its shape in the constructor, such as `h, n, d`.
        axes: names of the axes in stored order, for shape comments.
        form: text of the value, from what is stored in its braces.
        init: statements of `reset_parameters`.
        buffer: whether it is fixed.
        note: what the docstring says besides its shape.
        complex: whether its value is complex.
        kept: whether it stays in float32 at least, whatever the layer is cast to.
        constrained: whether a function of it is stored, since its value has a constraint.
    """

    name: str
    attribute: str
    shape: str
    axes: tuple[str, ...]
    form: str
    init: tuple[str, ...]
    buffer: bool
    note: str
    complex: bool
    kept: bool
    constrained: bool

    @property
    def stored(self) -> str:
        """Text of what is stored."""
        return f"self.{self.attribute}"


def parameters(
    plan: Plan, names: Callable[[str], str], kept: frozenset[str]
) -> tuple[ParameterText, ...]:
    """Returns parameters, then buffers, in the order they are declared.

    Args:
        plan: the plan.
        names: name in the spec → identifier.
        kept: names of those that stay in float32 at least.
    """
    taken = {names(t.name) for t in (*plan.params, *plan.buffers, *plan.inputs)}
    taken |= {names(d.axis.name) for d in plan.axes}
    params = [_parameter(plan, t, names, taken, t.name in kept, False) for t in plan.params]
    buffers = [_parameter(plan, t, names, taken, t.name in kept, True) for t in plan.buffers]
    return (*params, *buffers)


def _parameter(
    plan: Plan,
    t: Tensor | MapTensor,
    names: Callable[[str], str],
    taken: set[str],
    kept: bool,
    buffer: bool,
) -> ParameterText:
    name = names(t.name)
    axes = stored_axes(t)
    storage = None if buffer or isinstance(t, MapTensor) else STORAGE.get(t.constraint)
    if _is_complex(t):
        storage = PARTS
    attribute = name
    if storage is not None:
        attribute = _fresh(f"{storage.prefix}{name}", taken)
    sizes = [names(a.copy_of or a.name) for a in axes]
    shape = ", ".join([*sizes, "2"] if storage is PARTS else sizes)
    init = _init(plan, t, names, f"self.{attribute}", axes, storage)
    return ParameterText(
        name,
        attribute,
        shape,
        tuple(a.name for a in axes),
        "{}" if storage is None else storage.value,
        tuple(init),
        buffer,
        "" if storage is None else storage.note,
        storage is PARTS,
        kept,
        storage not in (None, PARTS),
    )


def start(plan: Plan, t: MapTensor, names: Callable[[str], str], target: str) -> list[str]:
    """Returns statements that draw a map, stored as it is.

    Args:
        plan: in whose axes it lies.
        t: the map.
        names: name of an axis → the attribute that has its size.
        target: text of the tensor, with the axes of the map.
    """
    return _init(plan, t, names, target, stored_axes(t), None)


def _is_complex(t: Tensor | MapTensor) -> bool:
    return (t.map if isinstance(t, MapTensor) else t).field is Field.COMPLEX


def stored_axes(t: Tensor | MapTensor) -> tuple[Axis, ...]:
    """Returns the axes of an array in stored order."""
    if isinstance(t, MapTensor):
        return (*t.map.each, *t.map.target, *t.map.source)
    return t.axes


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _init(
    plan: Plan,
    t: Tensor | MapTensor,
    names: Callable[[str], str],
    target: str,
    axes: tuple[Axis, ...],
    storage: Storage | None,
) -> list[str]:
    value = initialiser(t).value
    if storage is PARTS:
        if isinstance(value, Num):
            return [f"_start_at({target}, torch.tensor(({float(value.value)!r}, 0.0)))"]
        if value.field is Field.REAL:
            value = prim("cplx", value, ZERO)
    if storage is None and isinstance(value, Num):
        constant = float(value.value)
        named = {0.0: f"zeros_({target})", 1.0: f"ones_({target})"}
        return [f"nn.init.{named.get(constant, f'constant_({target}, {constant!r})')}"]
    printer = _InitPrinter(plan, names, target)
    if storage is None and isinstance(value, Draw) and value.distribution in ("uniform", "normal"):
        low, high = (printer.text(a) for a in value.args)
        return [f"nn.init.{value.distribution}_({target}, {low}, {high})"]
    code = printer.print(value)
    if code.number:
        text = f"torch.full_like({target}, {code.text})"
        text = text if storage is None else storage.inverse.format(text)
        return [f"_start_at({target}, {text})"]
    # What is computed from draws and positions loses itself in a narrow dtype.
    numbers = f"{target}[..., 0]" if storage is PARTS else target
    like = f"{_LIKE} = {numbers}.to(_accumulator({target}.dtype))"
    printer = _InitPrinter(plan, names, _LIKE)
    code = printer.print(value)
    text = code.text
    drawn = any(isinstance(e, Draw) and e.over == frozenset(axes) for e in walk(value))
    if code.axes and code.axes != axes and not drawn:
        text = code.aligned(tuple(sorted(axes)), code.lead)
    stored = text if storage is None else storage.inverse.format(text)
    line = f"_start_at({target}, {stored})"
    if len(line) + 8 <= WIDTH:
        return [like, line]
    name = "start"
    if isinstance(value, Draw) and code.binding is Binding.PRODUCT:
        first, *rest = text.split(" * ")
        lines = [f"{name} = {first}", *(f"{name} = {name} * {factor}" for factor in rest)]
    else:
        parts = count(1)
        indent = " " * 8
        long = assign(name, value, printer, lambda wish: f"{wish}_{next(parts)}", indent)
        lines = [line.removeprefix(indent) for line in long]
    if storage is not None:
        name = storage.inverse.format(name)
    return [like, *lines, f"_start_at({target}, {name})"]


_LIKE = "like"


class _InitPrinter(Printer):
    """Prints initialisers: draws take shape, dtype and device from the parameter itself."""

    def __init__(self, plan: Plan, names: Callable[[str], str], target: str) -> None:
        table = {d.axis.name: f"self.{names(d.axis.copy_of or d.axis.name)}" for d in plan.axes}

        def ref(r: Ref) -> Code:
            raise TypeError(f"{r.name} in an initialiser")

        super().__init__(ref, table, target)
        self._target = target

    def draw(self, expr: Draw) -> Code:
        """Returns the code of a draw of the parameter's shape, or of a sequence along its axis."""
        text = distribution(expr.distribution).torch
        if distribution(expr.distribution).sequence is not None:
            (axis,) = expr.over
            parts = (*(self.print(a).text for a in expr.args),)
            text = text.format(*parts, size=self._names[axis.name], like=self._target)
            return Code(text, (axis,), False)
        text = text.replace("torch.empty({shape})", f"torch.empty_like({self._target})")
        text = text.replace("torch.randn({shape})", f"torch.randn_like({self._target})")
        text = text.replace("torch.nn.init", "nn.init")
        args = [self.print(a) for a in expr.args]
        for i, a in enumerate(args):
            atom = a.at_least(Binding.UNARY)
            text = text.replace(f"({{{i}}}) *", f"{atom} *").replace(f"{{{i}}}", a.text)
        text = text.removeprefix("1 * ")
        binding = Binding.PRODUCT if " * " in text else Binding.ATOM
        return Code(text, tuple(sorted(expr.over)), False, binding)
