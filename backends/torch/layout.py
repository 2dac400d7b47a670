"""Statements that fit a line: long expressions are cut into named parts.

The text must look as a formatter would leave it. No expression is ever wrapped: what does not fit
gets an intermediate variable, which reads better too.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dsfc.expr.build import add, mul, rewrite
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.tree import Add, Expr, Fir, Mul, Now, Ref, Time, children

from .code import Code
from .nodes import Printer

WIDTH = 100


_NAME = 16
"""Intermediate variables are called after what is assigned, unless its name is longer than this."""


def assign(
    target: str,
    expr: Expr,
    printer: Printer,
    fresh: Callable[[str], str],
    indent: str = "    ",
    wrap: Callable[[Code], str] = lambda code: code.text,
) -> list[str]:
    """Returns the lines of `target = expr`, intermediate variables first.

    Args:
        target: left-hand side.
        expr: the value.
        printer: prints it; learns the names of intermediate variables.
        fresh: gives an unused variable name close to the one asked for.
        indent: of every line.
        wrap: makes the right-hand side from the printed value.
    """
    lines: list[str] = []
    base = target if len(target) <= _NAME else "part"
    while True:
        line = f"{indent}{target} = {wrap(printer.print(expr))}"
        if len(line) <= WIDTH:
            return [*lines, line]
        part = _part(expr, printer, WIDTH - len(indent) - len(base) - 5)
        if part is None:
            return [*lines, line]
        code = printer.part(part, expr)
        if len(code.text) <= len(base) + 3:
            return [*lines, line]  # a name for it would be no shorter
        name = fresh(base)
        lines.append(f"{indent}{name} = {code.text}")
        at = Now(0) if code.lead else None
        ref = Ref(name, part.axes, part.field, Time.TOKEN if code.lead else Time.CONST, at)
        printer.bind(name, Code(name, code.axes, code.lead, number=code.number))
        expr = _replaced(expr, part, ref)


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    parts = old.args if isinstance(old, Add | Mul) else ()

    def rule(e: Expr) -> Expr | None:
        if e is old:
            return new
        if isinstance(e, Fir) and e.arg is new:
            return Fir(e.axis, e.weight, old, e.reverse)  # it reads the past of the name
        if parts and type(e) is type(old) and isinstance(e, Add | Mul):
            rest = _without(e.args, parts, new)
            return None if rest is None else add(*rest) if isinstance(e, Add) else mul(*rest)
        return None

    return rewrite(expr, rule)


def _without(terms: Sequence[Expr], parts: Sequence[Expr], instead: Expr) -> list[Expr] | None:
    """Terms with one of them, each as often as it is a part, in one; None where a part is not."""
    out = list(terms)
    for at, part in enumerate(parts):
        if part not in out:
            return None
        where = out.index(part)
        out[where : where + 1] = [] if at else [instead]
    return out


def _part(expr: Expr, printer: Printer, room: int) -> Expr | None:
    """The largest sub-expression that fits a line of its own and is worth a name.

    Of a long sum or product of small things, its first two.
    """
    best: tuple[int, Expr] | None = None
    pair: Expr | None = None
    stack = [expr]
    seen: set[Expr] = set()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if isinstance(e, Add | Mul) and len(e.args) > 2:
            first = [a for a in e.args if not printer.print(a).number][:2]
            pair = (add if isinstance(e, Add) else mul)(*first) if len(first) == 2 else pair
        size = len(printer.print(e).text)
        if e is not expr and size <= room:
            if size > (8 if children(e) else 30) and (best is None or size > best[0]):
                best = (size, e)
        elif isinstance(e, Fir):
            stack.append(e.weight)  # what is filtered has a past, a part of a line has none
        elif not isinstance(e, Past | Lag | Run):  # the parts of a sum mean something else outside
            stack.extend(children(e))
    return pair if best is None else best[1]


@dataclass(frozen=True, slots=True)
class Call:
    """A call as an item of another one's arguments: it wraps on its own where it does not fit.

    Attributes:
        head: what stands before the parenthesis.
        items: what stands inside.
    """

    head: str
    items: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.head}({', '.join(self.items)})"


def wrapped(
    head: str, items: Sequence[str | Call], tail: str, indent: str, started: bool = False
) -> str:
    """Returns `head(items)tail` as a formatter lays it out: on one line, on three, or exploded.

    Args:
        head: what stands before the parenthesis, without indent.
        items: what stands inside.
        tail: what follows the parenthesis.
        indent: of the statement.
        started: whether `head` has the indent already.
    """
    head = head if started else f"{indent}{head}"
    inside = ", ".join(map(str, items))
    line = f"{head}({inside}){tail}"
    if len(line) <= WIDTH:
        return line
    if _takes(head) and len(indent) + 4 + len(inside) <= WIDTH:
        return f"{head}(\n{indent}    {inside}\n{indent}){tail}"
    rows = "".join(f"{_row(item, indent + '    ')}\n" for item in items)
    return f"{head}(\n{rows}{indent}){tail}"


def tuple_text(items: Sequence[str]) -> str:
    """Returns the text of a tuple of texts."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def returned_text(items: Sequence[str], indent: str) -> str:
    """Returns `return f"item, item"`, a string per item where one would not fit a line."""
    line = f'{indent}return {"f" if items else ""}"{", ".join(items)}"'
    if len(line) <= WIDTH:
        return line
    rows = [f'{indent}    f"{item}, "\n' for item in items[:-1]]
    return f'{indent}return (\n{"".join(rows)}{indent}    f"{items[-1]}"\n{indent})'


def _takes(head: str) -> bool:
    """Whether brackets behind this text call or index; each item of a tuple gets a line."""
    return head[-1:].isidentifier() or head[-1:].isdigit() or head[-1:] in (")", "]")


def _row(item: str | Call, indent: str) -> str:
    if isinstance(item, Call):
        return wrapped(item.head, item.items, ",", indent)
    return _item(f"{item},", indent)


def literals(line: str, width: int) -> list[str]:
    """Returns one line of text as literals that stand below one another, each of that width."""
    parts = textwrap.wrap(line, width - 3, break_long_words=False)
    return [f'"{part} "' for part in parts[:-1]] + [f'"{parts[-1]}"']


def bound_text(head: str, line: str, indent: str) -> list[str]:
    """Returns the lines of a statement that ends with a text, which is cut where it does not fit.

    Args:
        head: what the statement begins with, up to its sign.
        line: the text, without quotes and braces.
        indent: of the statement.
    """
    whole = f'{indent}{head} "{line}"'
    if len(whole) <= WIDTH:
        return [whole]
    inner = f"{indent}    "
    is_one = len(inner) + len(line) + 2 <= WIDTH
    parts = [f'"{line}"'] if is_one else literals(line, WIDTH - len(inner))
    return [f"{indent}{head} (", *(f"{inner}{part}" for part in parts), f"{indent})"]


_RAW = re.compile(r'r"""')
_QUOTES = '"""'


def fitted_lines(text: str) -> str:
    """Returns a text with each statement laid out as `fitted` does; raw strings stay as they are.

    Raw strings hold programs in other languages, which are not laid out as Python.
    """
    lines, is_raw = [], False
    for line in text.split("\n"):
        before = is_raw
        opened = _RAW.search(line) if not is_raw else None
        if opened is not None:
            is_raw = _QUOTES not in line[opened.end() :]
        elif is_raw:
            is_raw = _QUOTES not in line
        lines.append(line if before or opened is not None else fitted(line))
    return "\n".join(lines)


def fitted(line: str) -> str:
    """Returns a statement as a formatter lays it out where it does not fit.

    It is cut at brackets, a function's head at that of its parameters. A tuple gets brackets, one
    of one thing always, and so do several operators, each on a line of its own. Long names are the
    only reason for a cut: `assign` and `wrapped` have cut what can be cut before.
    """
    bare = _BARE.fullmatch(line)
    if bare is not None and _is_tuple(bare[2], len(line) > WIDTH):
        return fitted(f"{bare[1]}({bare[2]})")
    if len(line) <= WIDTH:
        return line
    if bare is not None and _takes_brackets(bare[2]):
        line = f"{bare[1]}({bare[2]})"
    indent = line[: len(line) - len(line.lstrip())]
    return _cut(line, line[: line.rfind(" -> ")] if _is_head(line) else line, indent)


def _cut(line: str, head: str, indent: str) -> str:
    """A line that does not fit, cut at the first bracket of its head that it is too long behind."""
    pairs = _brackets(head)
    if not pairs:
        return line
    # Behind a pair the next one could be cut, and only what is up to there has to fit.
    reach = [*(start + 1 for start, _ in pairs[1:]), len(line)]
    start, end = next(pair for pair, at in zip(pairs, reach, strict=True) if at > WIDTH)
    head, inside, tail = line[: start + 1], line[start + 1 : end], f"{indent}{line[end:]}"
    if len(tail) > WIDTH:
        tail = _cut(tail, tail, indent)
    if _takes(head[:-1]) and len(indent) + 4 + len(inside) <= WIDTH:
        return f"{head}\n{indent}    {inside}\n{tail}"
    items = _items(inside)
    # One value in brackets of its own is no tuple, and a comma would make it one.
    comma = "," if len(items) > 1 or _takes(head[:-1]) or inside.endswith(",") else ""
    rows = "".join(f"{_item(f'{item}{comma}', f'{indent}    ')}\n" for item in items)
    return f"{head}\n{rows}{tail}"


def _item(text: str, indent: str) -> str:
    """What stands in brackets, on a line or several: one for each operand, where there are any."""
    line = f"{indent}{text}"
    if len(line) <= WIDTH:
        return line
    operands = _operands(text)
    if len(operands) == 1:
        return _cut(line, line, indent)
    return "\n".join(_item(operand, indent) for operand in operands)


def _operands(value: str) -> list[str]:
    """What stands between the operators that bind least, each but the first with its operator."""
    depth, words = 0, []
    for at, c in _code(value):
        depth += (c in "([{") - (c in ")]}")
        if c == " " and depth == 0:
            words.append((at + 1, value[at + 1 :].partition(" ")[0]))
    levels = ([at for at, word in words if word in level] for level in _LEVELS)
    cuts = next(filter(None, levels), [])
    if not cuts or any(word in _WHOLE for _, word in words):
        return [value]
    ends = [*cuts[1:], len(value)]
    return [value[: cuts[0] - 1], *(value[a:b].rstrip() for a, b in zip(cuts, ends, strict=True))]


_LEVELS = {"<", "<=", "==", "!=", ">=", ">"}, {"+", "-"}, {"*", "/", "//", "%", "@"}
_WHOLE = {"if", "for", "and", "or", "not", "in", "is", "|", "&"}
"""Expressions of these are short, and not taken apart."""


_BARE = re.compile(r"( *(?:return|\w+ [-+*]?=) )(\S.*)")
"""A statement that gives a value; an argument by name has no blank at its `=`."""


def _is_tuple(value: str, long: bool) -> bool:
    """Whether a whole value is a tuple of one thing, or of more than fit."""
    depth = sum((c in "([{") - (c in ")]}") for _, c in _code(value))
    return depth == 0 and (value.endswith(",") or (long and len(_items(value)) > 1))


def _takes_brackets(value: str) -> bool:
    """Whether a long value gets brackets of its own: not where some stand at an only operator."""
    operands = _operands(value)
    bracketed = operands[0][0] == "(" or operands[-1][-1] in ")}"  # no index is broken
    return len(operands) > (2 if bracketed else 1)


def _is_head(line: str) -> bool:
    """Whether a line is that of a function with the type of its result."""
    return line.lstrip().startswith("def ") and " -> " in line


def _brackets(line: str) -> list[tuple[int, int]]:
    """Positions of the pairs of brackets that are not inside others, nor empty."""
    open_at: list[int] = []
    found = []
    for at, c in _code(line):
        if c in "([{":
            open_at.append(at)
        elif c in ")]}" and open_at:
            start = open_at.pop()
            if not open_at and at > start + 1:
                found.append((start, at))
    return found


def _items(inside: str) -> list[str]:
    """What stands between the outermost commas."""
    depth, start, out = 0, 0, []
    for at, c in _code(inside):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append(inside[start:at].strip())
            start = at + 1
    return [*out, *filter(None, [inside[start:].strip()])]


def _code(line: str) -> Iterator[tuple[int, str]]:
    """The characters outside of strings, with their positions."""
    quoted = False
    for at, c in enumerate(line):
        if c == '"':
            quoted = not quoted
        elif not quoted:
            yield at, c


def paragraph(text: str, indent: str, first: str | None = None) -> str:
    """Returns a text of a docstring or comment in lines that fit.

    Args:
        text: one paragraph.
        indent: of every line.
        first: what the first line starts with instead.
    """
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def entry(text: str, indent: int) -> str:
    """Returns an item of a docstring's list, `indent` blanks deep."""
    return paragraph(text, " " * (indent + 4), " " * indent)


def rule(title: str) -> str:
    """Returns a comment that heads a section: a line, or several where names in it are long."""
    *lines, last = paragraph(f"{title} -", "# ", "# --- ").split("\n")
    return "\n".join((*lines, last.ljust(WIDTH, "-")))
