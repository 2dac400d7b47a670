"""What names mean: axes, declared tensors, maps and states, with their types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dsfc.diagnostics.report import Reporter
from dsfc.expr.declarations import AbstractMap, Dimension, MapTensor, Tensor
from dsfc.expr.tree import Axis, Field
from dsfc.mixer.merge import Program
from dsfc.syntax import ast


@dataclass(frozen=True, slots=True)
class State:
    """A declared state before its update is typed."""

    name: str
    axes: tuple[Axis, ...]
    field: Field
    backward: bool


@dataclass(slots=True)
class Scope:
    """The names of one mixer.

    Declarations are typed when first asked for, because in a modifier the shape of a parameter may
    be that of a definition. A declaration that is wrong is None: it was reported, and whatever
    reads it is not typed.

    Attributes:
        program: the merged text.
        dimensions: axes with their sizes, in canonical order.
        axes: axes by name.
    """

    program: Program
    dimensions: tuple[Dimension, ...]
    reporter: Reporter
    axes: dict[str, Axis] = field(init=False)
    tensors: dict[str, Tensor | MapTensor | None] = field(default_factory=dict)
    inputs: dict[str, Tensor | None] = field(default_factory=dict)
    abstracts: dict[str, AbstractMap | None] = field(default_factory=dict)
    states: dict[str, State | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Indexes the axes."""
        self.axes = {d.axis.name: d.axis for d in self.dimensions}

    def kind(self, name: str) -> ast.DeclKind | None:
        """Returns what a name is declared as, None if it is not declared."""
        declared = self.program.declared.get(name)
        return None if declared is None else declared.kind

    def is_state(self, name: str) -> bool:
        """Whether the name is a declared state."""
        return self.kind(name) is ast.DeclKind.STATE

    def is_definition(self, name: str) -> bool:
        """Whether the name is defined and is not a state."""
        return name in self.program.updates and not self.is_state(name)

    def values(self) -> Iterable[str]:
        """Names that stand for values, for suggestions."""
        program = self.program
        return (*program.declared, *program.consts, *program.updates, *self.axes)

    def applied(self) -> Iterable[str]:
        """Names of the mixer that stand before an argument, for suggestions."""
        maps = (n for n, d in self.program.declared.items() if isinstance(d.decl.type, ast.MapType))
        return (*self.program.functions, *maps)

    def callables(self) -> Iterable[str]:
        """Names of the mixer that can be applied, for suggestions."""
        return (*self.program.functions, *self.program.declared)
