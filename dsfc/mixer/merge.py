"""`extends`: lays a chain of bases into one untyped program, later texts over earlier ones.

An override replaces the definition, constant, function, declaration or state update of its name, in
place. A definition may take the place of a declaration (an input that is now computed) and the
other way round; only a declared state and its update live side by side.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from dsfc.diagnostics.catalogue import Base, NameClash
from dsfc.diagnostics.report import Label, Reporter, nearest
from dsfc.limits import Limits
from dsfc.mixer.ir import Rewrite
from dsfc.mixer.library import Found, Home, Library
from dsfc.mixer.rules.names import check_names, spelled
from dsfc.syntax import ast

Update = ast.Def | ast.Flow


@dataclass(frozen=True, slots=True)
class Alias:
    """A word in a modifier's shapes that stands for the axes of a definition."""

    word: str
    definition: str


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared name.

    Attributes:
        name: the name, ASCII, with the span of its declaration.
        decl: the declaration it stands in.
        alias: the word in its shape that means the axes of another definition, in modifiers.
    """

    name: ast.Ident
    decl: ast.Decl
    alias: Alias | None = None

    @property
    def kind(self) -> ast.DeclKind:
        """What it declares."""
        return self.decl.kind


@dataclass(slots=True)
class Program:
    """A mixer before any name is looked up; the working table of the merge.

    Attributes:
        own: names that the mixer's own text declares or defines (not its bases).
        uses: `use` lines in textual order, each with the place it was written in.
        modified: `use` lines that were applied, each with its modifier.
        renamed: inputs that modifiers replaced everywhere, with the name that replaces them.
        complete: whether all bases were found.
    """

    unit: ast.MixerUnit
    dims: dict[str, ast.Dim] = field(default_factory=dict)
    declared: dict[str, Declared] = field(default_factory=dict)
    consts: dict[str, ast.Const] = field(default_factory=dict)
    functions: dict[str, ast.FunDef] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    claims: list[ast.Claim] = field(default_factory=list)
    rewrites: list[Rewrite] = field(default_factory=list)
    uses: list[tuple[ast.Use, Home]] = field(default_factory=list)
    modified: list[tuple[ast.Use, ast.ModifierUnit]] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    complete: bool = True

    @property
    def names(self) -> frozenset[str]:
        """All that is declared, defined or an axis."""
        return frozenset().union(*self._tables)

    def taken(self, name: str) -> bool:
        """Whether the name is declared, defined or an axis."""
        return any(name in table for table in self._tables)

    @property
    def _tables(self) -> tuple[Mapping[str, object], ...]:
        return self.dims, self.declared, self.consts, self.functions, self.updates

    def fresh(self, stem: str, also: Container[str] = ()) -> str:
        """Returns `stem`, or `stem_2`, `stem_3`, … if it is taken or among `also`."""
        name, number = stem, 1
        while self.taken(name) or name in also:
            number += 1
            name = f"{stem}_{number}"
        return name


def merge(unit: Found, library: Library, reporter: Reporter) -> Program:
    """Returns the program of a mixer with all its bases.

    Args:
        unit: the mixer and the place it was found in.
        library: where bases are looked up.
        reporter: takes unknown, circular and too deep bases, and names defined twice.
    """
    program = Program(unit.unit)
    before = len(reporter)
    chain = _chain(unit, library, reporter)
    program.complete = len(reporter) == before
    for position, part in enumerate(chain):
        check_names(part.unit.items, reporter)
        if position:
            program.rewrites.append(
                Rewrite("extends", chain[position - 1].unit.name.text, part.unit.name.text)
            )
        _lay(part, program)
    return program


def _chain(unit: Found, library: Library, reporter: Reporter) -> list[Found]:
    """The bases of a mixer, root first, and the mixer itself."""
    chain = [unit]
    limits: Limits = library.limits
    while (base := chain[-1].unit.base) is not None:
        here = chain[-1]
        following = library.mixer(base.text, here.home)
        if following is None:
            close = nearest(base.text, library.names(here.home))
            problem = "there is no such mixer to extend"
            if close is None:
                problem += "; `dsfc list` shows those that are shipped"
            reporter.add(Base(base.span, name=base.text, problem=problem, nearest=close))
            break
        if any(following.unit is part.unit for part in chain):
            path = " → ".join(part.unit.name.text for part in (*chain, following))
            problem = f"a mixer cannot extend itself ({path})"
            reporter.add(Base(base.span, name=base.text, problem=problem))
            break
        if len(chain) > limits.extends_depth:
            reporter.add(
                Base(
                    base.span,
                    name=base.text,
                    problem=f"more than {limits.extends_depth} mixers extend one another",
                )
            )
            break
        chain.append(following)
    return chain[::-1]


def _lay(unit: Found, program: Program) -> None:
    """Lays one text over what its bases gave."""
    by = unit.unit.name.text
    last = unit.unit is program.unit
    declared: set[str] = set()
    for item in unit.unit.items:
        match item:
            case ast.Dims():
                program.dims.update({dim.name.text: dim for dim in item.dims})
            case ast.Use():
                program.uses.append((item, unit.home))
            case ast.Claim():
                program.claims.append(item)
            case ast.Decl():
                for name in item.names:
                    if name.text not in declared:  # of two in one text, a mistake, the first counts
                        _declare(program, Declared(name, item), by)
                declared.update(name.text for name in item.names)
            case ast.Const() | ast.FunDef() | ast.Def() | ast.Flow():
                _define(program, item, by)
        if last:
            program.own.update(name.text for name in introduced(item))


def introduced(item: ast.Item) -> tuple[ast.Ident, ...]:
    """Returns the names that an item introduces, axes left out."""
    match item:
        case ast.Decl():
            return item.names
        case ast.Const() | ast.FunDef() | ast.Def() | ast.Flow():
            return (item.name,)
        case _:
            return ()


def _declare(program: Program, declared: Declared, by: str) -> None:
    name = declared.name.text
    before = program.taken(name)
    program.consts.pop(name, None)
    program.functions.pop(name, None)
    if declared.kind is not ast.DeclKind.STATE:
        program.updates.pop(name, None)
    elif name not in program.declared and name in program.updates:
        before = False  # the update of this very state, written above its declaration
    program.declared[name] = declared
    if before:
        program.rewrites.append(Rewrite("override", name, by))


def _define(program: Program, item: ast.Const | ast.FunDef | ast.Def | ast.Flow, by: str) -> None:
    name = item.name.text
    declared = program.declared.get(name)
    update = isinstance(item, ast.Def | ast.Flow)
    state = declared is not None and declared.kind is ast.DeclKind.STATE
    if program.taken(name) and not (update and state and name not in program.updates):
        program.rewrites.append(Rewrite("override", name, by))
    if not (update and state):
        program.declared.pop(name, None)
    match item:
        case ast.Const():
            program.functions.pop(name, None)
            program.updates.pop(name, None)
            program.consts[name] = item
        case ast.FunDef():
            program.consts.pop(name, None)
            program.updates.pop(name, None)
            program.functions[name] = item
        case ast.Def() | ast.Flow():
            program.consts.pop(name, None)
            program.functions.pop(name, None)
            program.updates[name] = item


def report_axis_clashes(program: Program, reporter: Reporter) -> None:
    """Reports names that are also axes (a base's included), at the later of the two places."""
    for name, dim in program.dims.items():
        declared = program.declared.get(name)
        items = (program.consts.get(name), program.functions.get(name), program.updates.get(name))
        defined = next((item.name for item in items if item is not None), None)
        other = defined if declared is None else declared.name
        if other is not None:
            label = Label(dim.name.span, "the axis")
            reporter.add(
                NameClash(other.span, name=spelled(other), role="an axis", labels=(label,))
            )
