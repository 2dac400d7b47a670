"""Reads a spec text into plain tuples, with a scanner and a parser that share nothing with dsfc.

An expression is a tuple whose first entry says what it is: `("num", 0.5)`, `("name", "q")`,
`("index", "x", conditions)`, `("call", "f", brackets, arguments)`, `("apply", "W", operand)`,
`("neg", x)`, `("pow", x, e)`, `("dot", parts)`, `("mul", signs, parts)`, `("outer", parts)`,
`("add", signs, parts)`, `("compare", operators, parts)`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

Tree = tuple[Any, ...]

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\f\r]+|\#[^\n]*)
    |(?P<end>[;\n])
    |(?P<string>"[^"\n]*")
    |(?P<number>\d+(\.\d+)?([eE][+-]?\d+)?)
    |(?P<name>[^\W\d_]\w*)
    |(?P<sign>->|\(\*\)|<=|>=|==|!=|[-+*/^.,:='~(){}\[\]<>≤≥·⊗×])""",
    re.VERBOSE,
)
_ONE = {"(*)": "⊗", ".": "·", "<=": "≤", ">=": "≥"}
_OPEN_ENDED = {*"+-*/^.,:=~(·⊗×≤≥<>[", "->", "==", "!=", "by", "on", "when", "and"}
"""After these a line goes on."""
_FLAGS = {"complex", "positive", "nonneg", "unit", "nonzero", "backward"}
_KINDS = {"input", "param", "buffer", "state", "abstract"}


def folded(name: str) -> str:
    """Returns a name in ASCII: each Greek letter by its name in Unicode."""
    out = []
    for letter in name:
        if letter.isascii():
            out.append(letter)
            continue
        word = unicodedata.name(letter).split()
        spelled = {"LAMDA": "lambda"}.get(word[-1], word[-1].lower())
        if word[1] == "CAPITAL":
            spelled = {"sigma": "sum", "pi": "prod"}.get(spelled, spelled.capitalize())
        out.append(spelled)
    return "".join(out)


def tokens(text: str) -> list[tuple[str, str]]:
    """Returns pairs of kind and text; line ends stand only where an item may end."""
    out: list[tuple[str, str]] = []
    depth, at = 0, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise SyntaxError(f"nothing starts with {text[at]!r}")
        at = found.end()
        kind, word = str(found.lastgroup), found.group()
        if kind == "blank":
            continue
        if kind == "end":
            if depth or not out or out[-1][0] == "end" or out[-1][1] in _OPEN_ENDED:
                continue
        elif word in ("(", "["):
            depth += 1
        elif word in (")", "]"):
            depth -= 1
        out.append((kind, folded(word) if kind == "name" else _ONE.get(word, word)))
    return [*out, ("end", ""), ("", "")]


@dataclass
class Declaration:
    """One declared name: its kind, its axes by role, its flags and its value."""

    kind: str
    name: str
    axes: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    target: tuple[str, ...] | None = None
    flags: tuple[str, ...] = ()
    value: Tree | None = None
    drawn: bool = False


@dataclass
class Unit:
    """A mixer or modifier, as it is written."""

    kind: str
    name: str
    base: str | None = None
    target: str = ""
    dims: dict[str, tuple[bool, Tree | None]] = field(default_factory=dict)
    items: list[tuple[str, Any]] = field(default_factory=list)


def units(text: str) -> dict[str, Unit]:
    """Returns mixers and modifiers of a text by name."""
    reader = _Reader(tokens(text))
    out: dict[str, Unit] = {}
    while reader.skip_ends().word:
        unit = reader.unit()
        out[unit.name] = unit
    return out


class _Reader:
    """Recursive descent over tokens."""

    def __init__(self, stream: list[tuple[str, str]]) -> None:
        self.stream = stream
        self.at = 0
        self.kind_declared = ""

    @property
    def kind(self) -> str:
        return self.stream[self.at][0]

    @property
    def word(self) -> str:
        return self.stream[self.at][1]

    @property
    def following(self) -> str:
        return self.stream[self.at + 1][1]

    def take(self, wanted: str = "") -> str:
        kind, word = self.stream[self.at]
        if wanted and word != wanted:
            raise SyntaxError(f"wanted {wanted!r}, got {word!r}")
        if not kind:
            raise SyntaxError("the text ends")
        self.at += 1
        return word

    def name(self) -> str:
        if self.kind != "name":
            raise SyntaxError(f"wanted a name, got {self.word!r}")
        return self.take()

    def comes(self, *words: str) -> bool:
        if self.kind != "string" and self.word in words:
            self.at += 1
            return True
        return False

    def skip_ends(self) -> _Reader:
        while self.kind == "end":
            self.at += 1
        return self

    def names(self) -> list[str]:
        out = [self.name()]
        while self.comes(","):
            out.append(self.name())
        return out

    # --- items ------------------------------------------------------------------------------------

    def unit(self) -> Unit:
        unit = Unit(self.name(), self.name())
        if unit.kind == "modifier":
            self.take("on")
            unit.target = self.name()
        if self.kind == "string":
            self.take()
        if self.comes("extends"):
            unit.base = self.name()
        self.take("{")
        while self.skip_ends().word != "}":
            self.item(unit)
        self.take("}")
        return unit

    def item(self, unit: Unit) -> None:
        word, after = self.word, self.following
        if word in _KINDS and after != "=":
            self.kind_declared = self.take()
            self.declaration(unit)
        elif word == "dims":
            self.take()
            while True:
                heads = self.word == "heads" and self.comes("heads")
                name = self.name()
                unit.dims[name] = (heads, self.expression() if self.comes("=") else None)
                if not self.comes(","):
                    break
        elif word == "const" and after != "=":
            self.take()
            name = self.name()
            self.take("=")
            unit.items.append(("const", (name, self.expression())))
        elif word == "use":
            self.take()
            modifier = self.name()
            self.take("on")
            unit.items.append(("use", (modifier, self.names())))
        elif word in ("claim", "paper", "layer"):
            while self.kind != "end" and self.word != "}":
                self.at += 1
        elif after in (":", ","):
            self.declaration(unit)
        else:
            self.definition(unit)
        if self.kind == "string":
            self.take()

    def declaration(self, unit: Unit) -> None:
        names = self.names()
        made = Declaration(self.kind_declared, "")
        if self.comes(":"):
            if self.comes("each"):
                made.each = self.shape()
                self.take(":")
            made.axes = self.shape()
            if self.comes("->"):
                made.target = self.shape()
        flags = []
        while self.word in _FLAGS:
            flags.append(self.take())
        made.flags = tuple(flags)
        if self.word in ("=", "~"):
            made.drawn = self.take() == "~"
            made.value = self.expression()
        for name in names:
            unit.items.append(("declare", Declaration(**{**vars(made), "name": name})))

    def shape(self) -> tuple[str, ...]:
        out = [self.name()]
        while self.comes("×", "*"):
            out.append(self.name())
        return tuple(out)

    def definition(self, unit: Unit) -> None:
        name = self.name()
        if self.comes("'"):
            self.take("=")
            drift = self.expression()
            self.take("by")
            rule = self.name()
            self.take("(")
            step = self.expression()
            self.take(")")
            unit.items.append(("flow", (name, drift, rule, step)))
        elif self.comes("("):
            arguments = self.names()
            self.take(")")
            self.take("=")
            unit.items.append(("function", (name, arguments, self.expression())))
        else:
            self.take("=")
            unit.items.append(("define", (name, self.expression())))

    # --- expressions ------------------------------------------------------------------------------

    def condition(self) -> Tree:
        parts, operators = [self.expression()], []
        while self.word in ("<", ">", "≤", "≥", "==", "!="):
            operators.append(self.take())
            parts.append(self.expression())
        return ("compare", operators, parts) if operators else parts[0]

    def expression(self) -> Tree:
        return self.signed("add", self.outer, "+", "-")

    def outer(self) -> Tree:
        return self.chain("outer", self.term, "⊗")

    def term(self) -> Tree:
        return self.signed("mul", self.dotted, "*", "/")

    def dotted(self) -> Tree:
        return self.chain("dot", self.unary, "·")

    def signed(self, kind: str, part: Any, *signs: str) -> Tree:
        parts, found = [part()], [signs[0]]
        while self.kind == "sign" and self.word in signs:
            found.append(self.take())
            parts.append(part())
        return (kind, found, parts) if len(parts) > 1 else parts[0]

    def chain(self, kind: str, part: Any, sign: str) -> Tree:
        parts = [part()]
        while self.kind == "sign" and self.comes(sign):
            parts.append(part())
        return (kind, parts) if len(parts) > 1 else parts[0]

    def unary(self) -> Tree:
        if self.comes("-"):
            return ("neg", self.unary())
        base = self.applied()
        return ("pow", base, self.unary()) if self.comes("^") else base

    def applied(self) -> Tree:
        if self.kind == "number":
            return ("num", float(self.take()))
        if self.comes("("):
            inner = self.expression()
            self.take(")")
            return inner
        return self.operand()

    def operand(self) -> Tree:
        """A name, a call, an index, or a name in front of one of these."""
        name = self.name()
        if self.kind == "name" and self.word not in ("by", "when", "and"):
            return ("apply", name, self.operand())
        brackets = None
        if self.comes("["):
            brackets = self.listed(self.condition, "]")
        if self.comes("("):
            return ("call", name, brackets, self.listed(self.expression, ")"))
        return ("name", name) if brackets is None else ("index", name, brackets)

    def listed(self, part: Any, end: str) -> list[Tree]:
        out = [part()]
        while self.comes(","):
            out.append(part())
        self.take(end)
        return out
