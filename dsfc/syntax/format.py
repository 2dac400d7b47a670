"""Syntax tree to canonical text.

One item per line (a long paper takes up to three, and its letters some more), two blanks of indent,
the keyword of a declaration only where it changes, the types of declarations in a row below each
other.
`parse(format_spec(spec))` is `spec` again; formatting twice changes nothing. Comments stay before
or behind the item they stand at, and where lines were left empty one stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby, repeat
from typing import TypeGuard

from dsfc.layer_parts import LayerParts
from dsfc.limits import DEFAULT_LIMITS
from dsfc.papers import Letter, Paper
from dsfc.source import Span
from dsfc.syntax import ast
from dsfc.syntax.letters import unfold

# How tightly a node binds, as in the grammar: sum, outer product, product, contraction, sign,
# power, application, atom.
_ADD, _OUTER, _MUL, _DOT, _NEG, _POW, _APPLY, _ATOM = range(1, 9)
_WIDTH = 98  # of a line, its indent left out
_PAPER_LINE = ",\n        "  # between the lines of a paper
_EMPTY_LINE = re.compile(r"\n[ \t\r]*\n[ \t]*\Z")


def format_spec(spec: ast.Spec, *, ascii: bool = False) -> str:
    """Canonical text of a spec, comments included, with a newline at its end.

    Args:
        spec: what to print.
        ascii: spell Greek letters and signs in ASCII (comments and strings stay as they are).

    Raises:
        ValueError: if the tree was built by a program and has a string, number, paper or operand
            that no text can have.
    """
    return _Writer(spec.comments, _Printer(ascii)).spec(spec)


def format_expr(node: ast.Condition, *, ascii: bool = False) -> str:
    """Canonical text of one expression or relation."""
    return _Printer(ascii).condition(node)


def format_item(item: ast.Item) -> str:
    """Canonical text of one item, a declaration with its keyword."""
    return _Printer(ascii=False).item(item)


def format_header(unit: ast.Unit) -> str:
    """Canonical text of what stands before the body of a unit."""
    provenance = _quoted(unit.provenance, " ")
    if isinstance(unit, ast.ModifierUnit):
        return f"modifier {unit.name} on {unit.target}{provenance}"
    base = "" if unit.base is None else f" extends {unit.base}"
    return f"mixer {unit.name}{provenance}{base}"


class _Printer:
    """Prints expressions and single items."""

    def __init__(self, ascii: bool) -> None:
        self._name: Callable[[str], str] = (lambda text: text) if ascii else unfold
        self._outer, self._dot, self._cross = (
            (" (*) ", " . ", " * ") if ascii else (" ⊗ ", " · ", " × ")
        )
        self._compare = {} if ascii else {ast.CmpOp.LE: "≤", ast.CmpOp.GE: "≥"}

    # Expressions

    def condition(self, node: ast.Condition) -> str:
        """A relation or an expression."""
        if not isinstance(node, ast.Relation):
            return self.expr(node)
        signs = [f" {self._compare.get(sign, str(sign))} " for sign in node.operators]
        over = "" if node.over is None else f" for {self.condition(node.over)}"
        return _chain([self._inside(operand) for operand in node.operands], signs) + over

    def expr(self, node: ast.Expr, level: int = _ADD) -> str:
        """An expression, in parentheses if it binds looser than `level`."""
        text, own = self._bare(node)
        return text if own >= level else f"({text})"

    def _bare(self, node: ast.Expr) -> tuple[str, int]:
        match node:
            case ast.Num():
                return number(node.value), _ATOM
            case ast.Name():
                return self._name(node.id), _ATOM
            case ast.Index():
                return f"{self._name(node.name.text)}{self._brackets(node.brackets)}", _ATOM
            case ast.Call():
                args = ", ".join(self.expr(arg) for arg in node.args)
                brackets = self._brackets(node.brackets) if node.brackets else ""
                return f"{self._name(node.name.text)}{brackets}({args})", _ATOM
            case ast.Apply():
                if not isinstance(node.operand, ast.Name | ast.Call | ast.Index | ast.Apply):
                    raise ValueError("a map is applied to a name, a call or an index")
                return f"{self._name(node.name.text)} {self.expr(node.operand)}", _APPLY
            case ast.Pow():
                base = self.expr(node.base, _APPLY)
                return f"{base}^{self._exponent(node.exponent)}", _POW
            case ast.Neg():
                return f"-{self.expr(node.operand, _NEG)}", _NEG
            case ast.Dot():
                return self._dot.join(self.expr(operand, _NEG) for operand in node.operands), _DOT
            case ast.Mul():
                return self._product(node), _MUL
            case ast.Outer():
                # Products bind tighter, but few know that by heart: they get parentheses.
                return self._outer.join(
                    self.expr(operand, _NEG) for operand in node.operands
                ), _OUTER
            case ast.Add():
                signs = [f" {sign} " for sign in node.operators]
                return _chain(
                    [self.expr(operand, _OUTER) for operand in node.operands], signs
                ), _ADD

    def _product(self, node: ast.Mul) -> str:
        """A product; a fraction of two numbers is written without blanks: `1/2`."""
        over, under = node.operands[:2]
        plain = over.operand if isinstance(over, ast.Neg) else over
        fraction = isinstance(plain, ast.Num) and isinstance(under, ast.Num)
        blank = "" if fraction and node.operators == (ast.MulOp.OVER,) else " "
        signs = [f"{blank}{sign}{blank}" for sign in node.operators]
        # What a contraction is divided by, or what divides by one, is seen at once in parentheses.
        level = _NEG if ast.MulOp.OVER in node.operators else _DOT
        return _chain([self.expr(operand, level) for operand in node.operands], signs)

    def _exponent(self, node: ast.Expr) -> str:
        return f"({self._inside(node)})" if isinstance(node, ast.Add) else self.expr(node, _NEG)

    def _inside(self, node: ast.Expr) -> str:
        """An index or exponent: a sum of plain names and numbers is written without blanks."""
        if isinstance(node, ast.Add) and all(
            isinstance(operand, ast.Name | ast.Num) for operand in node.operands
        ):
            return self.expr(node).replace(" ", "")
        return self.expr(node)

    def _brackets(self, brackets: Sequence[ast.Condition]) -> str:
        parts = (
            self.condition(bracket) if isinstance(bracket, ast.Relation) else self._inside(bracket)
            for bracket in brackets
        )
        return f"[{', '.join(parts)}]"

    # Items

    def item(self, item: ast.Item, above: ast.Item | None = None, width: int = 0) -> str:
        """One item.

        Args:
            item: what to print.
            above: the item on the line before.
            width: to which the names of a declaration are filled up.
        """
        match item:
            case ast.Dims():
                return "dims " + ", ".join(self._dim(dim) for dim in item.dims)
            case ast.Decl():
                return self._decl(item, above, width)
            case ast.Const():
                return f"const {self._name(item.name.text)} = {self.expr(item.expr)}"
            case ast.Def():
                left = self._name(item.name.text)
                return f"{left} = {self.expr(item.expr)}{_quoted(item.provenance, '  ')}"
            case ast.FunDef():
                left = f"{self._name(item.name.text)}({self._names(item.params)})"
                return f"{left} = {self.expr(item.expr)}{_quoted(item.provenance, '  ')}"
            case ast.Flow():
                rule = f"{item.rule}({self.expr(item.step)}){_quoted(item.provenance, '  ')}"
                return f"{self._name(item.name.text)}' = {self.expr(item.drift)} by {rule}"
            case ast.Use():
                return f"use {item.modifier} on {self._names(item.targets)}"
            case ast.Claim():
                when = " and ".join(self.condition(condition) for condition in item.when)
                return f"claim {self.condition(item.relation)}" + (f" when {when}" if when else "")
            case ast.Citation():
                return self._citation(item.paper)
            case ast.Layer():
                return _layer(item.parts)

    def _citation(self, paper: Paper) -> str:
        """A paper; title, and then what keeps it, on lines of their own where one is too long."""
        if not paper.writable:
            raise ValueError("a paper has authors, a year, a title and an identifier of its form")
        kept, place = paper.identifier, paper.place
        head, title = f"paper {_string(paper.named)}, {paper.year}", _string(paper.title)
        rest = [] if kept is None else [f"{kept.register} {_string(kept.value)}"]
        layouts = (
            [[head, title, *rest]],
            [[head], [title, *rest]],
            [[head], [title], *([r] for r in rest)],
        )
        texts = [_PAPER_LINE.join(map(", ".join, lines)) for lines in layouts]
        behind = "" if place is None else f"  {_string(place)}"
        letters = "".join(_PAPER_LINE + line for line in self._letters(paper.letters))
        last = f"{behind}{letters[:1]}"
        fitting = (t for t in texts if max(map(len, f"{t}{last}".split("\n"))) <= _WIDTH)
        return next(fitting, texts[-1]) + behind + letters

    def _letters(self, letters: Sequence[Letter]) -> list[str]:
        """The letters of a paper, as many on a line as it holds."""
        lines: list[str] = []
        room = _WIDTH - len(_PAPER_LINE.replace("\n", ""))
        for letter in letters:
            pair = f"{self._name(letter.name)} {_string(letter.latex)}"
            if lines and len(f"{lines[-1]}, {pair}") <= room:
                lines[-1] += f", {pair}"
            else:
                lines.append(f"{'' if lines else 'letters':8}{pair}")
        return lines

    def width(self, item: ast.Decl) -> int:
        """How much room the names of a declaration take."""
        return len(self._names(item.names))

    def _names(self, names: Iterable[ast.Ident]) -> str:
        return ", ".join(self._name(name.text) for name in names)

    def _dim(self, dim: ast.Dim) -> str:
        heads = "heads " if dim.heads else ""
        size = "" if dim.size is None else f" = {self.expr(dim.size)}"
        return f"{heads}{self._name(dim.name.text)}{size}"

    def _decl(self, decl: ast.Decl, above: ast.Item | None, width: int) -> str:
        continues = isinstance(above, ast.Decl) and above.kind is decl.kind
        word = " " * len(decl.kind) if continues and decl.type is not None else str(decl.kind)
        written = "" if decl.type is None else f" : {self._type(decl.type)}"
        flags = "".join(f" {flag}" for flag in decl.flags)
        init = "" if decl.init is None else f" {decl.init.kind} {self.expr(decl.init.expr)}"
        return f"{word} {self._names(decl.names):{width}}{written}{flags}{init}"

    def _type(self, written: ast.Type) -> str:
        if isinstance(written, ast.TensorType):
            return self._shape(written.axes)
        each = f"each {self._shape(written.each)} : " if written.each else ""
        return f"{each}{self._shape(written.source)} -> {self._shape(written.target)}"

    def _shape(self, axes: Iterable[ast.Ident]) -> str:
        return self._cross.join(self._name(axis.text) for axis in axes)


class _Writer:
    """Lays out units and puts every comment where it stood."""

    def __init__(self, comments: Iterable[ast.Comment], printer: _Printer) -> None:
        self._printer = printer
        self._comments = sorted(comments, key=lambda comment: comment.span.start)
        self._lines: list[str] = []
        self._top = 0

    def spec(self, spec: ast.Spec) -> str:
        """The whole text."""
        for unit in spec.units:
            if self._lines:
                self._lines.append("")
            self._before(unit.span.start, "")
            self._room(unit.span)
            self._unit(unit)
        if self._comments and self._lines:
            self._lines.append("")
        self._before(None, "")
        return "\n".join([*self._lines, ""]) if self._lines else ""

    def _unit(self, unit: ast.Unit) -> None:
        self._lines.append(f"{format_header(unit)} {{")
        self._top = len(self._lines)
        starts = [item.span.start for item in unit.items[1:]] + [unit.span.end]
        above: ast.Item | None = None
        widths = self._widths(unit.items)
        for item, width, end in zip(unit.items, widths, starts, strict=False):
            self._before(item.span.start, "  ")
            self._room(item.span)
            text = self._printer.item(item, above, width)
            self._lines.append(f"  {text}{self._behind(item.span, end)}")
            above = item
        self._before(unit.span.end, "  ")
        self._lines.append("}")

    def _widths(self, items: Iterable[ast.Item]) -> Iterator[int]:
        """To what width the names of each item are filled up: the widest of its row."""
        for _, row in groupby(items, lambda item: item.kind if _typed(item) else None):
            members = list(row)
            names = (self._printer.width(item) for item in members if _typed(item))
            yield from repeat(max(names, default=0), len(members))

    def _before(self, offset: int | None, indent: str) -> None:
        """The comments that stand before an offset, each on its line."""
        while self._comments and (offset is None or self._comments[0].span.start < offset):
            comment = self._comments.pop(0)
            self._room(comment.span)
            self._lines.append(indent + comment.text)

    def _room(self, span: Span) -> None:
        """An empty line, if there was one above; none at the top of a text or of a body."""
        before = span.source.text[: span.start]
        if _EMPTY_LINE.search(before) and len(self._lines) > self._top and self._lines[-1]:
            self._lines.append("")

    def _behind(self, item: Span, end: int) -> str:
        """The comment behind an item on its last line, if nothing else follows there."""
        if not self._comments:
            return ""
        comment = self._comments[0]
        last_line = item.source.position(item.end)[0]
        if item.end <= comment.span.start < end and comment.span.line == last_line:
            return f"  {self._comments.pop(0).text}"
        return ""


def _layer(parts: LayerParts) -> str:
    """Norm and gate, in this order."""
    if not parts.words:
        raise ValueError("a layer names a norm or a gate")
    return f"layer {', '.join(parts.words)}"


def _typed(item: ast.Item) -> TypeGuard[ast.Decl]:
    return isinstance(item, ast.Decl) and item.type is not None


def _quoted(provenance: ast.Provenance | None, lead: str) -> str:
    if provenance is None:
        return ""
    return lead + _string(provenance.text)


def _string(text: str) -> str:
    if '"' in text or "\n" in text:
        raise ValueError("a string has neither quotes nor newlines in it")
    return f'"{text}"'


def _chain(operands: Sequence[str], signs: Sequence[str]) -> str:
    return operands[0] + "".join(
        sign + operand for sign, operand in zip(signs, operands[1:], strict=True)
    )


def number(value: Fraction) -> str:
    """Shortest exact text of a number literal.

    Raises:
        ValueError: if no literal has this value: it is negative, or no finite decimal fraction.
    """
    if value < 0:
        raise ValueError("a negative number is written with Neg")
    digits, exponent = _decimal(value)
    bound = DEFAULT_LIMITS.exponent
    if -DEFAULT_LIMITS.integer_digits < exponent < 0:
        plain = digits.rjust(1 - exponent, "0")
        if len(plain) <= 8:
            return f"{plain[:exponent]}.{plain[exponent:]}"
    if 0 <= exponent and len(digits) + exponent <= 12:
        return digits + "0" * exponent
    if exponent > bound:
        return f"{digits}{'0' * (exponent - bound)}e{bound}"
    if exponent < -bound:
        places = -bound - exponent
        plain = digits.rjust(places + 1, "0")
        return f"{plain[:-places]}.{plain[-places:]}e-{bound}"
    return f"{digits}e{exponent}" if exponent else digits


def _decimal(value: Fraction) -> tuple[str, int]:
    """Digits without zeros at their end, and the power of ten behind them."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        raise ValueError(f"{value} is not a finite decimal fraction; divide two numbers")
    places = max(twos, fives)
    digits = str(value.numerator * 10**places // value.denominator)
    short = digits.rstrip("0") or "0"
    return short, (len(digits) - len(short) - places if value else 0)
