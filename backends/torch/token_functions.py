"""Prints functions of tensors with the spec's axes behind any number of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dsfc.expr.tree import Axis, Expr, Ref
from dsfc.plan.recurrence_ir import Assignment

from .code import Code
from .layout import WIDTH, assign, wrapped
from .nodes import Printer


def function_lines(
    name: str,
    about: str,
    places: list[tuple[str, tuple[Axis, ...]]],
    like: str,
    names: Callable[[str], str],
    body: Sequence[Assignment],
    results: Sequence[Expr],
    axes: Sequence[tuple[Axis, ...]],
) -> list[str]:
    """Returns a function of tensors that have any number of axes in front of those of the spec.

    Args:
        name: of the function.
        about: its docstring.
        places: identifier and axes of each argument.
        like: a real tensor, whose device and width constants have.
        names: identifier of each name of the plan.
        body: assignments, in order.
        results: what it returns.
        axes: of each result.
    """
    printer = _Printer(places, like, names, [names(a.name) for a in body])
    params = [f"{n}: Tensor" for n, _ in places]
    head = wrapped(f"def {name}", params, " -> tuple[Tensor, ...]:", "")
    lines = [*head.split("\n"), f'    """{about}"""']
    for a in body:
        lines += printer.assigned(names(a.name), a.value)
    returned = []
    for value, over in zip(results, axes, strict=True):
        code = printer.print(value)
        text = code.aligned(over, True)
        if code.number or len(text) > _SHORT:
            text = printer.fresh("result")
            lines += printer.assigned(text, value, over)
        returned.append(text)
    tail = "," if len(returned) == 1 else ""
    line = f"    return {', '.join(returned) or '()'}{tail}"
    if len(line) <= WIDTH:
        return [*lines, line]
    return [*lines, "    return (", *(f"        {x}," for x in returned), "    )"]


_SHORT = 60
"""Results of longer texts get a name."""


class _Printer(Printer):
    """Prints the expressions of one function; sizes are read off its arguments."""

    def __init__(
        self,
        places: list[tuple[str, tuple[Axis, ...]]],
        like: str,
        names: Callable[[str], str],
        assigned: Iterable[str],
    ) -> None:
        self._places = places
        self._ident = names
        self._axes: dict[str, tuple[Axis, ...]] = dict(places)
        self._used = {*self._axes, *assigned}  # a part has no name of a later value either
        super().__init__(self._named, _Sizes(places), like)

    def _named(self, ref: Ref) -> Code:
        name = self._ident(ref.name)
        return Code(name, self._axes[name], True)

    def assigned(self, name: str, value: Expr, over: tuple[Axis, ...] | None = None) -> list[str]:
        """Returns the statements that give a name to a value, laid out over axes if asked for."""

        def wrap(code: Code) -> str:
            if code.number:
                return f"{self._like}.new_tensor({code.text})"
            return code.text if over is None else code.aligned(over, True)

        axes = self.print(value).axes
        lines = assign(name, value, self, self.fresh, wrap=wrap)
        self._axes[name] = axes if over is None else over
        return lines

    def fresh(self, name: str) -> str:
        """Returns an unused variable name."""
        count = 1
        while f"{name}_{count}" in self._used:
            count += 1
        fresh = f"{name}_{count}"
        self._used.add(fresh)
        return fresh


class _Sizes(dict[str, str]):
    """Axis sizes by name, as text that reads them off an argument."""

    def __init__(self, places: list[tuple[str, tuple[Axis, ...]]]) -> None:
        super().__init__()
        self._places = places

    def __missing__(self, name: str) -> str:
        return size_in(name, self._places)


def size_in(name: str, places: list[tuple[str, tuple[Axis, ...]]]) -> str:
    """Returns the text that reads the size of an axis off the first argument that has the axis.

    Args:
        name: of the axis.
        places: identifier and axes of each argument.

    Raises:
        KeyError: no argument has the axis.
    """
    for ident, axes in places:
        for at, a in enumerate(axes):
            if name in (a.name, a.copy_of):
                return f"{ident}.shape[{at - len(axes)}]"
    raise KeyError(name)
