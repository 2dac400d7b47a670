"""Typed declarations: which axes, field and constraint a declared name has (T1, T2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dsfc.diagnostics.catalogue import AxisTwice, ComplexValue, Declaration
from dsfc.expr.declarations import AbstractMap, Constraint, Init, MapTensor, Tensor
from dsfc.expr.tree import Axis, Field, LinearMap
from dsfc.mixer.axes import unknown_axis
from dsfc.mixer.expressions import Expressions
from dsfc.mixer.initial import initialiser
from dsfc.mixer.merge import Declared
from dsfc.mixer.scope import Scope, State
from dsfc.source import Span
from dsfc.syntax import ast

_CONSTRAINTS = {
    ast.Flag.POSITIVE: Constraint.POSITIVE,
    ast.Flag.NONNEG: Constraint.NONNEG,
    ast.Flag.UNIT: Constraint.UNIT,
    ast.Flag.NONZERO: Constraint.NONZERO,
}
_HELD = (ast.DeclKind.PARAM, ast.DeclKind.BUFFER)


class Declarations:
    """Types the declarations of one mixer, each when it is first asked for.

    Attributes:
        axes_of: returns the axes of a definition, for shapes in modifiers; None if ill-typed.
    """

    def __init__(
        self,
        scope: Scope,
        typer: Expressions,
        axes_of: Callable[[str], Iterable[Axis] | None],
    ) -> None:
        self._scope = scope
        self._typer = typer
        self._axes_of = axes_of
        self._done: dict[str, bool] = {}

    def typed(self, name: str) -> bool:
        """Whether the declaration of a name is right; types it if that was not done."""
        if name not in self._done:
            self._done[name] = False
            self._done[name] = self._type(name, self._scope.program.declared[name])
        return self._done[name]

    def _type(self, name: str, declared: Declared) -> bool:
        decl = declared.decl
        right = self._check_flags(declared)
        match decl.type:
            case ast.MapType():
                each = self._shape(declared, decl.type.each, decl.type.span)
                source = self._shape(declared, decl.type.source, decl.type.span)
                target = self._shape(declared, decl.type.target, decl.type.span)
                if each is None or source is None or target is None:
                    return False
                return self._map(name, declared, each, source, target) and right
            case ast.TensorType():
                axes = self._shape(declared, decl.type.axes, decl.type.span)
            case None:
                axes = ()
        if axes is None or not right:
            return False
        return self._tensor(name, declared, axes)

    # Shapes

    def _shape(
        self, declared: Declared, words: tuple[ast.Ident, ...], span: Span
    ) -> tuple[Axis, ...] | None:
        """The axes of one group of a shape in canonical order, None after a report."""
        out: list[Axis] = []
        for word in words:
            axes = self._word(declared, word)
            if axes is None:
                return None
            for axis in axes:
                if axis in out:
                    shape = " × ".join(w.text for w in words)
                    owner = declared.name.text
                    way = _way_out(declared.kind, axis.name)
                    self._typer.add(
                        AxisTwice(word.span, owner=owner, shape=shape, axis=axis.name, way=way)
                    )
                    return None
                out.append(axis)
        return tuple(sorted(out))

    def _word(self, declared: Declared, word: ast.Ident) -> Iterable[Axis] | None:
        alias = declared.alias
        if alias is not None and word.text == alias.word:
            return self._axes_of(alias.definition)
        axis = self._scope.axes.get(word.text)
        if axis is None:
            owner = declared.name.text
            self._typer.add(unknown_axis(owner, word.span.text, word.span, self._scope.axes))
            return None
        return (axis,)

    # Flags

    def _check_flags(self, declared: Declared) -> bool:
        """Whether the flags and the initialiser fit what is declared."""
        decl, kind = declared.decl, declared.kind
        flags = set(decl.flags)
        is_map = isinstance(decl.type, ast.MapType)
        constraints = [f for f in decl.flags if f in _CONSTRAINTS]
        problem = None
        if ast.Flag.BACKWARD in flags and kind is not ast.DeclKind.STATE:
            problem = "only a state runs `backward`"
        elif is_map and kind in (ast.DeclKind.INPUT, ast.DeclKind.STATE):
            problem = f"a linear map is a parameter or a buffer, not {_article(kind)}"
        elif kind is ast.DeclKind.ABSTRACT and not is_map:
            problem = "an abstract map says what it takes and gives: `n -> r`"
        elif kind is ast.DeclKind.ABSTRACT and (flags or _each(decl)):
            problem = "an abstract map has no flags and no `each`"
        elif constraints and (is_map or kind is ast.DeclKind.STATE):
            what = "a linear map" if is_map else "a state"
            problem = f"{what} cannot be `{constraints[0]}`"
        elif len(set(constraints)) > 1:
            problem = f"it cannot be both `{constraints[0]}` and `{constraints[1]}`"
        elif constraints and constraints[0] is not ast.Flag.NONZERO and ast.Flag.COMPLEX in flags:
            problem = f"a complex value cannot be `{constraints[0]}`"
        elif decl.init is not None and kind not in _HELD:
            starts = "; it is 0 before the first token" if kind is ast.DeclKind.STATE else ""
            problem = f"{_article(kind)} has no initialiser{starts}"
        if problem is not None:
            self._typer.add(Declaration(decl.span, name=declared.name.text, problem=problem))
            return False
        if kind is ast.DeclKind.INPUT and ast.Flag.COMPLEX in flags:
            text = f"input `{declared.name.text}` must be real"
            self._typer.add(ComplexValue(decl.span, problem=text))
            return False
        return True

    # What is declared

    def _tensor(self, name: str, declared: Declared, axes: tuple[Axis, ...]) -> bool:
        decl, kind, scope = declared.decl, declared.kind, self._scope
        field = Field.COMPLEX if ast.Flag.COMPLEX in decl.flags else Field.REAL
        if kind is ast.DeclKind.STATE:
            backward = ast.Flag.BACKWARD in decl.flags
            scope.states[name] = State(name, axes, field, backward)
            return True
        constraints = (_CONSTRAINTS[f] for f in decl.flags if f in _CONSTRAINTS)
        constraint = next(constraints, Constraint.NONE)
        span = declared.name.span
        if kind is ast.DeclKind.INPUT:
            scope.inputs[name] = Tensor(name, axes, field, constraint, None, span)
            return True
        init, right = self._init(name, decl, axes, field)
        scope.tensors[name] = Tensor(name, axes, field, constraint, init, span)
        return right

    def _map(
        self,
        name: str,
        declared: Declared,
        each: tuple[Axis, ...],
        source: tuple[Axis, ...],
        target: tuple[Axis, ...],
    ) -> bool:
        decl, span = declared.decl, declared.name.span
        for axis in each:
            if axis in source or axis in target:
                shape = " × ".join(a.name for a in (*each, *source))
                way = _way_out(declared.kind, axis.name)
                self._typer.add(
                    AxisTwice(decl.span, owner=name, shape=shape, axis=axis.name, way=way)
                )
                return False
        if declared.kind is ast.DeclKind.ABSTRACT:
            self._scope.abstracts[name] = AbstractMap(name, source, target, span)
            return True
        if declared.kind not in _HELD:
            return False
        field = Field.COMPLEX if ast.Flag.COMPLEX in decl.flags else Field.REAL
        init, right = self._init(name, decl, (*each, *target, *source), field)
        linear = LinearMap(name, each, source, target, field)
        self._scope.tensors[name] = MapTensor(linear, init, span)
        return right

    def _init(
        self, name: str, decl: ast.Decl, axes: tuple[Axis, ...], field: Field
    ) -> tuple[Init | None, bool]:
        if decl.init is None:
            return None, True
        init = initialiser(self._typer, name, decl.init, axes, field)
        # A wrong initialiser says nothing about the shape: readers of the name are still typed.
        return init, True


def _each(decl: ast.Decl) -> bool:
    return isinstance(decl.type, ast.MapType) and bool(decl.type.each)


def _article(kind: ast.DeclKind) -> str:
    return f"an {kind}" if kind[0] in "ai" else f"a {kind}"


def _way_out(kind: ast.DeclKind, axis: str) -> str:
    """What to write in place of an axis that stands twice in a shape."""
    if kind in (ast.DeclKind.PARAM, ast.DeclKind.BUFFER):
        return f"a square matrix is a map, write `{axis} -> {axis}`"
    return f"give the second a name of its own: `dims {axis}2 = {axis}`"
