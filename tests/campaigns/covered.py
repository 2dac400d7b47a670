"""What of the language and the compiler random mixers reach, counted.

Productions are alternatives of the rules of the grammar file, counted by the parser's own
reductions. Node kinds are the classes of values that the stages of one mixer hold, and pairs of
them are a node and one that it holds.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from lark import Lark

from dsfc.diagnostics.report import Reporter
from dsfc.limits import DEFAULT_LIMITS
from dsfc.source import Source
from dsfc.syntax.grammar import grammar_text
from dsfc.syntax.lex import legal_tokens

STAGES = {
    "mixer": ("dsfc.mixer.", "dsfc.primitives."),
    "system": ("dsfc.system.", "dsfc.primitives."),
    "plan": ("dsfc.plan.", "dsfc.primitives."),
}
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
        for token in legal_tokens(Source("<random>", text), DEFAULT_LIMITS, Reporter()):
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
        value: what the stage made.
    """
    kinds: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    homes = STAGES[stage]
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
