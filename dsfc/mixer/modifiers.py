"""`use m on a, b`: rewrites one definition after the other, in textual order.

The definition so far gets a name of its own (`q_before_short_conv`), so that a modifier may read
its past, and the modifier's body takes its place; in that body `q` too is the value so far. Names
that a modifier brings are prefixed with `<definition>_<modifier>_`. An input keeps its name, since
that is the argument of the module: everything else then reads the modified value, `u_token_shift`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dsfc.diagnostics.catalogue import BadUse
from dsfc.diagnostics.report import Reporter, nearest
from dsfc.mixer.ir import Rewrite
from dsfc.mixer.library import Home, Library
from dsfc.mixer.merge import Alias, Declared, Program, Update, introduced
from dsfc.mixer.rename import renamed
from dsfc.mixer.rules.names import check_names
from dsfc.mixer.rules.paper_letters import check_letters
from dsfc.syntax import ast

_RAW = "@"
"""Marks the raw value of a renamed input until all modifiers are applied; no name can hold it."""


def apply_modifiers(program: Program, library: Library, reporter: Reporter) -> None:
    """Applies all `use` lines of a program.

    Args:
        program: changed in place.
        library: where modifiers are looked up.
        reporter: takes `E-USE` for what is not a modifier or not a definition.
    """
    checked: set[int] = set()
    for use, home in program.uses:
        modifier = _modifier(use, home, library, reporter)
        if modifier is None:
            continue
        program.modified.append((use, modifier))
        if id(modifier) not in checked:
            checked.add(id(modifier))
            check_names(modifier.items, reporter)
            check_letters(modifier, _names(modifier), reporter)
        for target in use.targets:
            if _fits(program, target, reporter):
                _apply(program, modifier, target.text)
    _rename_inputs(program)


def _modifier(
    use: ast.Use, home: Home, library: Library, reporter: Reporter
) -> ast.ModifierUnit | None:
    """The modifier a line names, if it is one that can be applied."""
    name = use.modifier
    modifier = library.modifier(name.text, home)
    if modifier is None:
        close = nearest(name.text, library.names(home))
        reporter.add(BadUse(name.span, problem=f"no modifier `{name.text}`", nearest=close))
        return None
    unit = modifier.unit
    body = [i for i in unit.items if isinstance(i, ast.Def) and i.name.text == unit.target.text]
    if not body:
        problem = f"modifier `{unit.name.text}` does not define `{unit.target.text}`"
        reporter.add(BadUse(unit.name.span, problem=problem))
        return None
    for item in unit.items:
        if isinstance(item, ast.Use | ast.Claim | ast.Layer):
            held = "a `use`, a claim or a `layer`"
            problem = f"modifier `{unit.name.text}` holds {held}; only a mixer may"
            reporter.add(BadUse(item.span, problem=problem))
            return None
    return unit


def _names(modifier: ast.ModifierUnit) -> frozenset[str]:
    """The names of a modifier's text, its axes and what it is used on."""
    dims = (dim.name for item in modifier.items if isinstance(item, ast.Dims) for dim in item.dims)
    own = (name for item in modifier.items for name in introduced(item))
    return frozenset(name.text for name in (modifier.target, *dims, *own))


def _fits(program: Program, target: ast.Ident, reporter: Reporter) -> bool:
    """Whether a modifier can be applied to that name."""
    name = target.text
    declared = program.declared.get(name)
    if isinstance(program.updates.get(name), ast.Flow):
        problem = f"`{name}` is given by a flow, which a modifier cannot rewrite"
        reporter.add(BadUse(target.span, problem=problem))
        return False
    if name in program.updates or (declared is not None and declared.kind is ast.DeclKind.INPUT):
        return True
    inputs = (n for n, d in program.declared.items() if d.kind is ast.DeclKind.INPUT)
    close = nearest(name, (*program.updates, *inputs))
    problem = f"`{name}` is not a definition or an input"
    reporter.add(BadUse(target.span, problem=problem, nearest=close))
    return False


def _apply(program: Program, modifier: ast.ModifierUnit, target: str) -> None:
    """Rewrites one definition or input."""
    by, word = modifier.name.text, modifier.target.text
    before, after = _places(program, target, by)
    prefix = _prefix(program, modifier, target)
    names = {
        ident.text: prefix + ident.text
        for item in modifier.items
        for ident in introduced(item)
        if ident.text != word
    }
    names[word] = before
    names.setdefault(target, before)
    alias = Alias(word, before.removesuffix(_RAW))
    for item in modifier.items:
        match item:
            case ast.Dims():
                for dim in item.dims:
                    program.dims.setdefault(dim.name.text, dim)
            case ast.Decl():
                for ident in item.names:
                    _add_declaration(program, item, ident, names, alias)
            case ast.Const() | ast.FunDef() | ast.Def() | ast.Flow():
                _add_definition(program, item, names, word, after)
    program.rewrites.append(Rewrite("use", target, by))


def _places(program: Program, target: str, by: str) -> tuple[str, str]:
    """Names of the value before and after the modifier; moves the old definition aside."""
    if target in program.updates:
        before = program.fresh(f"{target}_before_{by}")
        old = program.updates[target]
        program.updates[before] = replace(old, name=ast.Ident(before, old.name.span))
        return before, target
    after = program.fresh(f"{target}_{by}")
    before = program.renamed.get(target, target + _RAW)
    program.renamed[target] = after
    return before, after


def _prefix(program: Program, modifier: ast.ModifierUnit, target: str) -> str:
    """`<definition>_<modifier>_`, numbered where the same modifier is applied twice."""
    stem, number = f"{target}_{modifier.name.text}", 1
    prefix = f"{stem}_"
    idents = [ident.text for item in modifier.items for ident in introduced(item)]
    while any(program.taken(prefix + name) for name in idents):
        number += 1
        prefix = f"{stem}{number}_"
    return prefix


def _add_declaration(
    program: Program, item: ast.Decl, ident: ast.Ident, names: Mapping[str, str], alias: Alias
) -> None:
    name = names.get(ident.text, ident.text)
    init = item.init
    if init is not None:
        init = replace(init, expr=renamed(init.expr, names))
    declared = Declared(ast.Ident(name, ident.span), replace(item, init=init), alias)
    program.declared[name] = declared


def _add_definition(
    program: Program,
    item: ast.Const | ast.FunDef | ast.Def | ast.Flow,
    names: Mapping[str, str],
    word: str,
    after: str,
) -> None:
    target = item.name.text == word
    name = ast.Ident(after if target else names[item.name.text], item.name.span)
    match item:
        case ast.Const():
            program.consts[name.text] = replace(item, name=name, expr=renamed(item.expr, names))
        case ast.FunDef():
            inner = {k: v for k, v in names.items() if k not in {p.text for p in item.params}}
            function = replace(item, name=name, expr=renamed(item.expr, inner))
            program.functions[name.text] = function
        case ast.Def() | ast.Flow():
            program.updates[name.text] = replace(_renamed_update(item, names), name=name)


def _renamed_update(update: Update, names: Mapping[str, str]) -> Update:
    """A definition with names in its expressions replaced; its own name stays."""
    if isinstance(update, ast.Def):
        return replace(update, expr=renamed(update.expr, names))
    drift, step = renamed(update.drift, names), renamed(update.step, names)
    return replace(update, drift=drift, step=step)


def _rename_inputs(program: Program) -> None:
    """Makes every reader of a modified input read the last modified value."""
    if not program.renamed:
        return
    names = {**program.renamed, **{name + _RAW: name for name in program.renamed}}
    for name, update in program.updates.items():
        program.updates[name] = _renamed_update(update, names)
    for name, function in program.functions.items():
        inner = {k: v for k, v in names.items() if k not in {p.text for p in function.params}}
        program.functions[name] = replace(function, expr=renamed(function.expr, inner))
