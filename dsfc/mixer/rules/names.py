"""W1: names are defined once; axes and words with a meaning are not names."""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.diagnostics.catalogue import Declaration, NameClash
from dsfc.diagnostics.report import Label, Reporter
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.table import SPELLINGS
from dsfc.mixer.reserved_names import FORMS, OUTPUT
from dsfc.syntax import ast
from dsfc.syntax.letters import fold

_RESERVED = {TIME: "the time index", FIRST: "the mark of the first token"}

_OF_VALUES = "a function takes values, not tokens: `s(a, b) = a · b`, called as `s(q, k[j])`"


def check_names(items: Iterable[ast.Item], reporter: Reporter) -> None:
    """Reports names that one text introduces twice, and reserved ones.

    A declared state and its update share a name; nothing else does.
    """
    axes: dict[str, ast.Ident] = {}
    kinds: dict[str, ast.DeclKind] = {}
    values: dict[str, ast.Ident] = {}
    states: dict[str, ast.Ident] = {}
    layers = 0
    for item in items:
        match item:
            case ast.Layer():
                layers += 1
                if layers > 1:
                    problem = "a mixer says once what its layer is"
                    reporter.add(Declaration(item.span, name="layer", problem=problem))
            case ast.Dims():
                for dim in item.dims:
                    _introduce(dim.name, axes, "an axis", reporter)
            case ast.Decl():
                table = states if item.kind is ast.DeclKind.STATE else values
                for ident in item.names:
                    _introduce(ident, table, "already declared", reporter)
                    kinds.setdefault(ident.text, item.kind)
                    if ident.text == OUTPUT and item.kind is not ast.DeclKind.STATE:
                        reporter.add(NameClash(ident.span, name=OUTPUT, role="the output"))
            case ast.Const() | ast.FunDef():
                _introduce(item.name, values, "already defined", reporter)
                if isinstance(item, ast.FunDef):
                    _check_function(item, reporter)
                if item.name.text == OUTPUT:
                    reporter.add(NameClash(item.name.span, name=OUTPUT, role="the output"))
            case ast.Def() | ast.Flow():
                kind = kinds.get(item.name.text)
                if kind is None or item.name.text not in values:
                    _introduce(item.name, values, "already defined", reporter)
                else:
                    reporter.add(_declared(item, kind, values[item.name.text]))
            case _:
                pass
    for name, first in axes.items():
        for table in (values, states):
            if name in table:
                label = Label(first.span, "the axis")
                reporter.add(
                    NameClash(
                        table[name].span, name=spelled(table[name]), role="an axis", labels=(label,)
                    )
                )
    _check_state_clashes(items, states, reporter)


def _declared(item: ast.Def | ast.Flow, kind: ast.DeclKind, first: ast.Ident) -> NameClash:
    """A definition of what is declared, and not as a state."""
    name, role = spelled(item.name), f"declared as `{kind}`"
    label = Label(first.span, "first here")
    value = item.expr if isinstance(item, ast.Def) else item.drift
    past = isinstance(item, ast.Flow) or any(
        isinstance(part, ast.Index) and part.name.text == item.name.text for part in ast.walk(value)
    )
    if not past:
        return NameClash(item.name.span, name=name, role=role, labels=(label,))
    repair = f"what has a past is a state, `state {name} : …`"
    return NameClash(item.name.span, name=name, role=role, repair=repair, labels=(label,))


def _introduce(name: ast.Ident, table: dict[str, ast.Ident], what: str, reporter: Reporter) -> None:
    if name.text in _RESERVED:
        reporter.add(NameClash(name.span, name=spelled(name), role=_RESERVED[name.text]))
    elif name.text in table:
        label = Label(table[name.text].span, "first here")
        reporter.add(NameClash(name.span, name=spelled(name), role=what, labels=(label,)))
    else:
        table[name.text] = name


def _check_function(item: ast.FunDef, reporter: Reporter) -> None:
    """A function may not hide a primitive or a form of the language."""
    name = item.name.text
    if name in SPELLINGS or name in FORMS:
        reporter.add(
            NameClash(item.name.span, name=spelled(item.name), role="a function of the language")
        )
    seen: dict[str, ast.Ident] = {}
    for param in item.params:
        if param.text == TIME:
            reporter.add(NameClash(param.span, name=TIME, role=_RESERVED[TIME], repair=_OF_VALUES))
        else:
            _introduce(param, seen, "already an argument", reporter)


def _check_state_clashes(
    items: Iterable[ast.Item], states: dict[str, ast.Ident], reporter: Reporter
) -> None:
    """A state shares its name with its update only, not with a constant, function or tensor."""
    for item in items:
        others: tuple[ast.Ident, ...] = ()
        if isinstance(item, ast.Decl) and item.kind is not ast.DeclKind.STATE:
            others = item.names
        elif isinstance(item, ast.Const | ast.FunDef):
            others = (item.name,)
        for name in others:
            if name.text in states:
                label = Label(states[name.text].span, "the state")
                reporter.add(
                    NameClash(name.span, name=spelled(name), role="a state", labels=(label,))
                )


def spelled(name: ast.Ident) -> str:
    """Returns a name as its text spells it: `η` where it says so, though its name is `eta`.

    What a modifier brings has another name in the mixer than in the modifier's text: that one.
    """
    written = name.span.text
    return written if fold(written) == name.text else name.text
