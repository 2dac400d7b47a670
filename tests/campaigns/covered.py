"""What of the language and the compiler random mixers reach, counted.

Productions are alternatives of the rules of the grammar file, counted by the parser's own
reductions. Node kinds are the classes of values that the stages of one mixer hold, and pairs of
them are a node and one that it holds. Which kinds and pairs there may be, the annotations of fields
say; the rules of a stage leave out many of these pairs (no sum holds a sum).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from lark import Lark

from dsfc.diagnostics.report import Reporter
from dsfc.limits import DEFAULT_LIMITS
from dsfc.mixer.ir import Mixer
from dsfc.plan.ir import Plan
from dsfc.source import Source
from dsfc.syntax.grammar import grammar_text
from dsfc.syntax.lex import read_tokens
from dsfc.system.ir import System


@dataclass(frozen=True)
class StageOf:
    """A stage: the class of its values, the compilation's names of them, the homes of its nodes."""

    root: type
    values: tuple[str, ...]
    homes: tuple[str, ...]


STAGES = {
    "mixer": StageOf(Mixer, ("mixer",), ("dsfc.mixer.", "dsfc.expr.")),
    "system": StageOf(System, ("system", "computed"), ("dsfc.system.", "dsfc.expr.")),
    "plan": StageOf(Plan, ("plan",), ("dsfc.plan.", "dsfc.expr.")),
}
UNREACHABLE = {
    "start: ": "a text without a mixer",
    "start: _SEP": "a text of line ends alone",
    "Abstract": "abstract maps stand for any function: they are proved of, not compiled",
    "AbstractMap": "abstract maps stand for any function: they are proved of, not compiled",
}
"""What no mixer that compiles can have, and why."""
_LEFT_OUT = ("Span", "Source")


class _Productions:
    """The grammar's parser, which counts its reductions."""

    def __init__(self) -> None:
        self.lark = Lark(grammar_text(), parser="lalr", lexer="basic", maybe_placeholders=False)
        self.counts: Counter[str] = Counter()
        self.names = {rule: self._name(rule) for rule in self.lark.rules}
        callbacks = self.lark.parser.parser.parser.callbacks
        for rule, call in list(callbacks.items()):
            callbacks[rule] = self._counted(rule, call)

    @staticmethod
    def _name(rule: Any) -> str:
        return f"{rule.origin.name}: {' '.join(s.name for s in rule.expansion)}"

    def _counted(self, rule: Any, call: Any) -> Any:
        def reduce(children: list[Any]) -> Any:
            self.counts[self.names[rule]] += 1
            return call(children)

        return reduce

    def of(self, text: str) -> Counter[str]:
        """Returns how often each production stands in a text."""
        self.counts.clear()
        parser = self.lark.parse_interactive("")
        for token in read_tokens(Source("<random>", text), DEFAULT_LIMITS, Reporter()):
            parser.feed_token(token)
        parser.feed_eof()
        return Counter(self.counts)


@cache
def _productions() -> _Productions:
    return _Productions()


def productions(text: str) -> Counter[str]:
    """Returns how often each production of the grammar stands in a text."""
    return _productions().of(text)


def every_production() -> tuple[str, ...]:
    """Returns the names of all productions, without those that only repeat."""
    return tuple(sorted({n for n in _productions().names.values() if not n.startswith("__")}))


def nodes(stage: str, value: object) -> tuple[Counter[str], Counter[str]]:
    """Returns how often each kind of node, and each pair of neighbours, stands in a value.

    Args:
        stage: `mixer`, `system` or `plan`.
        value: what the stage made: values, or a tuple of them.
    """
    kinds: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    homes = STAGES[stage].homes
    seen: set[int] = set()
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        above, node = stack.pop()
        name = type(node).__name__
        if dataclasses.is_dataclass(node) and name not in _LEFT_OUT:
            if type(node).__module__.startswith(homes):
                pairs[f"{above} > {name}"] += bool(above)
                if id(node) in seen:
                    continue
                kinds[name] += 1
                above = name
            seen.add(id(node))
            stack += [(above, getattr(node, f.name)) for f in dataclasses.fields(node)]
        else:
            stack += [(above, part) for part in _parts(node)]
    return kinds, pairs


def _parts(node: object) -> Iterator[object]:
    match node:
        case dict():
            yield from node.values()
        case tuple() | list() | frozenset():
            yield from node


def possible(what: str) -> tuple[str, ...]:
    """Returns the productions, or the kinds or pairs of nodes of a stage, that there may be.

    Args:
        what: `productions`, or a stage and `kinds` or `pairs`.
    """
    if what == "productions":
        return every_production()
    stage, _, of = what.partition(" ")
    kinds, pairs = _by_type(stage)
    return kinds if of == "kinds" else pairs


@cache
def _by_type(stage: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of nodes that a stage's value may hold, and pairs, by the annotations of fields."""
    homes, root = STAGES[stage].homes, STAGES[stage].root
    kinds: set[type] = set()
    pairs: set[str] = set()
    pending = [root]
    while pending:
        above = pending.pop()
        if above in kinds:
            continue
        kinds.add(above)
        hints = get_type_hints(above)
        for field in dataclasses.fields(above):
            for below in _concrete(hints[field.name], homes):
                pairs.add(f"{above.__name__} > {below.__name__}")
                pending.append(below)
    # A class with slots stands beside the one that it was made from.
    return tuple(sorted({k.__name__ for k in kinds})), tuple(sorted(pairs))


def _concrete(hint: Any, homes: tuple[str, ...]) -> Iterator[type]:
    """The classes of nodes that an annotation names; a base class stands for those below it."""
    if not isinstance(hint, type) or get_args(hint):
        for part in get_args(hint):
            yield from _concrete(part, homes)
    elif hint.__module__.startswith(homes):
        below = hint.__subclasses__()
        for one in below:
            yield from _concrete(one, homes)
        if not below and dataclasses.is_dataclass(hint) and hint.__name__ not in _LEFT_OUT:
            yield hint
