"""The axes that a definition seems to have, read off the text before anything is typed.

A definition that reads its own past has no type until its axes are declared. What else stands in it
mostly says which they are: `c = f * c[i-1] + g * tanh(W u)` has those of `W u`. A guess is only
good for going on after a mistake; whoever makes one types the text with it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dsfc.mixer.merge import Alias, Program
from dsfc.syntax import ast

Axes = frozenset[str]
Arguments = Mapping[str, Axes | None]


def guessed_axes(program: Program, names: Iterable[str]) -> dict[str, Axes]:
    """Returns the axes that definitions seem to have; those without a guess are left out."""
    guess = _Guess(program)
    wanted = tuple(names)
    for _ in wanted:  # what is found for one helps the next: a circle is as long as its names
        for name in wanted:
            axes_guessed = guess.definition(name)
            if axes_guessed is not None:
                guess.known[name] = axes_guessed
    return {name: guess.known[name] for name in wanted if name in guess.known}


class _Guess:
    """Axes of expressions; None where nothing says which."""

    def __init__(self, program: Program) -> None:
        self.known: dict[str, Axes] = {}
        self._program = program
        self._open: set[str] = set()

    def definition(self, name: str) -> Axes | None:
        """The axes of a definition's value."""
        update = self._program.updates[name]
        return self._once(name, lambda: self._of(_value(update), {}))

    def _once(self, name: str, find: Callable[[], Axes | None]) -> Axes | None:
        """What is found for a name, unless it is being looked for already."""
        if name in self._open:
            return None
        self._open.add(name)
        value = find()
        self._open.discard(name)
        return value

    def _of(self, node: ast.Condition, args: Arguments) -> Axes | None:
        match node:
            case ast.Name():
                return args[node.id] if node.id in args else self._name(node.id)
            case ast.Index():
                name = node.name.text
                if name in ("ones", "iota"):
                    return self._bracketed(node.brackets)
                return args[name] if name in args else self._name(name)
            case ast.Apply():
                return self._mapped(node.name.text, self._of(node.operand, args))
            case ast.Call():
                return self._call(node, args)
            case ast.Neg():
                return self._of(node.operand, args)
            case ast.Pow():
                return self._joined((node.base, node.exponent), args)
            case ast.Dot():
                return self._contracted(node.operands, args)
            case ast.Add() | ast.Mul() | ast.Outer():
                return self._joined(node.operands, args)
            case _:
                return frozenset()

    def _joined(self, nodes: Iterable[ast.Condition], args: Arguments) -> Axes | None:
        known = [axes for node in nodes if (axes := self._of(node, args)) is not None]
        return frozenset().union(*known) if known else None

    def _contracted(self, nodes: Iterable[ast.Condition], args: Arguments) -> Axes | None:
        out: Axes = frozenset()
        for node in nodes:
            axes = self._of(node, args)
            if axes is None:
                return None
            shared = {a for a in out & axes if not self._program.dims[a].heads}
            out = (out | axes) - shared
        return out

    def _name(self, name: str) -> Axes | None:
        program = self._program
        if name in self.known:
            return self.known[name]
        declared = program.declared.get(name)
        if declared is not None:
            kind = declared.decl.type
            if isinstance(kind, ast.MapType):
                return None
            return frozenset() if kind is None else self._shape(kind.axes, declared.alias)
        return self.definition(name) if name in program.updates else frozenset()

    def _shape(self, words: tuple[ast.Ident, ...], alias: Alias | None) -> Axes | None:
        out: Axes = frozenset()
        for word in words:
            axes: Axes | None = frozenset({word.text})
            if alias is not None and word.text == alias.word:
                axes = self._name(alias.definition)
            if axes is None:
                return None
            out |= axes
        return out

    def _mapped(self, name: str, inner: Axes | None) -> Axes | None:
        declared = self._program.declared.get(name)
        if declared is None or not isinstance(declared.decl.type, ast.MapType):
            return None
        groups = (declared.decl.type.each, declared.decl.type.source, declared.decl.type.target)
        each, source, target = (self._shape(words, declared.alias) for words in groups)
        if each is None or source is None or target is None:
            return None
        return target | (each if inner is None else inner - source)

    def _call(self, node: ast.Call, args: Arguments) -> Axes | None:
        name = node.name.text
        function = self._program.functions.get(name)
        if function is not None:
            values = [self._of(arg, args) for arg in node.args]
            words = [param.text for param in function.params]
            inner = dict(zip(words, values, strict=False))
            return self._once(f"{name}()", lambda: self._of(function.expr, inner))
        if name in self._program.declared:
            return self._mapped(name, self._of(node.args[0], args))
        if name == "fir":
            return self._of(node.args[-1], args)
        out = self._joined(node.args, args)
        if out is None:
            return None
        along = self._bracketed(node.brackets)
        if name == "rename" and len(node.brackets) == 2:
            return (out - self._bracketed(node.brackets[:1])) | self._bracketed(node.brackets[1:])
        return out - along if name in ("sum", "mean", "max") else out

    def _bracketed(self, brackets: tuple[ast.Condition, ...]) -> Axes:
        return frozenset(b.id for b in brackets if isinstance(b, ast.Name))


def _value(update: ast.Def | ast.Flow) -> ast.Expr:
    return update.expr if isinstance(update, ast.Def) else update.drift
