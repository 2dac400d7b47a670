"""Random legal texts, derived from the grammar file itself, and random layouts of any text.

Every alternative of every rule, every spelling and every layout that a legal text may have is
drawn; what was is counted in `Drawn`. The texts are legal for the parser and mean nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from lark import Lark, Token
from lark.grammar import Rule

from dsfc.diagnostics.report import Reporter
from dsfc.limits import DEFAULT_LIMITS
from dsfc.source import Source
from dsfc.syntax.grammar import grammar_text, reserved, terminals
from dsfc.syntax.letters import GREEK, fold, unfold
from dsfc.syntax.lex import JOINERS, SEPARATOR, read_tokens

LARK = Lark(grammar_text(), parser="lalr", lexer="basic", maybe_placeholders=False)
SPELLINGS = {
    "CMP": ("<=", ">=", "==", "!=", "<", ">", "≤", "≥"),
    "OUTER": ("(*)", "⊗"),
    "DOT": (".", "·"),
    "DECL": reserved("DECL"),
    "FLAG": reserved("FLAG"),
}
_NAMES = (
    "a",
    "b2",
    "W_Delta",
    "eta",
    "W_Δ",
    "λ_1",
    "iota",
    "states",
    "inputs",
    "Σ",
    "i",
    "e5",
    "x_",
)
_LETTERS = "abzAZ09_" + "".join(GREEK)
_WORDS = (
    "eq. 3",
    "#",
    "{",
    "}",
    ";",
    "'",
    "λ⊗≤",
    "🙂",
    "\t",
    "\u00a0",
    "  ",
    "\\",
    "=",
    "W (",
    "é",
)
_AUTHORS = ('"Hochreiter, Schmidhuber"', '"Kimi Team"', '"De, Amo Alonso et al."', '" Ré ,GV"')
_KEPT = (
    ("arXiv", '"2312.06635"'),
    ("arXiv", '"cs.NE/0112017v2"'),
    ("doi", '"10.1162/neco.1997.9.8.1735"'),
    ("url", '"https://openreview.net/forum?id=P1TCHxJwLB"'),
)
_SYMBOLS = ('"x"', '"W_Q"', '"\\bar{A}"', '"\\boldsymbol{\\alpha}^{(h)}"', '"S_{\\Delta, 1}"')
_FUEL = 40
"""Steps of a derivation that one item may take before it is brought to its end."""

_LONG = 2
"""How much likelier than another an alternative is that makes a text or a body longer."""


def _heights(rules: Sequence[Rule]) -> dict[str, int]:
    """The least height of a tree of each rule."""
    found: dict[str, int] = {}
    while True:
        before = dict(found)
        for rule in rules:
            below = [found.get(s.name) for s in rule.expansion if not s.is_term]
            if None not in below:
                height = 1 + max((it for it in below if it is not None), default=0)
                found[rule.origin.name] = min(height, found.get(rule.origin.name, height))
        if found == before:
            return found


RULES: dict[str, list[Rule]] = defaultdict(list)
for _rule in LARK.rules:
    RULES[_rule.origin.name].append(_rule)
_HEIGHTS = _heights(LARK.rules)


def _height(rule: Rule) -> int:
    return max((_HEIGHTS[s.name] for s in rule.expansion if not s.is_term), default=0)


def _longer(rule: Rule) -> bool:
    """Whether an alternative is the way to several units or items."""
    return any(s.name in ("__start_star_0", "___body_star_1") for s in rule.expansion)


@dataclass
class Drawn:
    """How often what was drawn: rules by origin and alternative, spellings, layouts."""

    rules: Counter[tuple[str, int]] = field(default_factory=Counter)
    spellings: Counter[tuple[str, str]] = field(default_factory=Counter)
    layouts: Counter[str] = field(default_factory=Counter)


def random_text(seed: int, drawn: Drawn) -> str:
    """Returns a text that the parser reads; the same seed gives the same text."""
    random = Random(seed)
    tokens = _Derivation(random, drawn).tokens()
    return laid_out(tokens, random, drawn)


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Types and texts of the tokens of a legal text."""
    source = Source("<text>", text)
    found: tuple[Token, ...] = read_tokens(source, DEFAULT_LIMITS, Reporter())
    return [(it.type, str(it)) for it in found]


def respelled(tokens: Sequence[tuple[str, str]], random: Random) -> list[tuple[str, str]]:
    """The same tokens with other letters, signs and digits for the same names and values."""
    return [(kind, _respelled(kind, text, random)) for kind, text in tokens]


def _respelled(kind: str, text: str, random: Random) -> str:
    if kind == "NAME":
        return random.choice((text, fold(text), unfold(fold(text))))
    if kind == "NUMBER":
        value = Fraction(text)
        plain = [text, f"0{text}", f"{text}0" if "." in text and "e" not in text.lower() else text]
        return random.choice([it for it in plain if Fraction(it) == value])
    pairs = {"<=": "≤", ">=": "≥", "⊗": "(*)", "·": ".", "×": "*"}
    both = pairs | {there: here for here, there in pairs.items() if there != "*"}
    return random.choice((text, both.get(text, text)))


class _Derivation:
    """One walk from the start of the grammar down to tokens."""

    def __init__(self, random: Random, drawn: Drawn) -> None:
        self._random = random
        self._drawn = drawn
        self._fuel = _FUEL
        self._above = ""  # the item above, which says whether a declaration can go on
        self._named: set[str] = set()  # names that the paper at hand has letters for
        self._out: list[tuple[str, str]] = []

    def tokens(self) -> list[tuple[str, str]]:
        self._derive("start")
        return self._out

    def _derive(self, name: str) -> None:
        if name == "item":
            self._fuel = self._random.randrange(_FUEL)
        if name == "unit":
            self._fuel = _FUEL
        choices = [it for it in RULES[name] if name != "item" or self._may(it)]
        if self._fuel <= 0:
            least = min(map(_height, choices))
            choices = [it for it in choices if _height(it) == least]
        weights = [_LONG if _longer(it) else 1 for it in choices]
        (rule,) = self._random.choices(choices, weights)
        self._fuel -= 1
        self._drawn.rules[name, rule.order] += 1
        if name == "item":
            self._above = rule.expansion[0].name
        if name in ("mixer", "modifier"):
            self._above = ""
        if name == "paper":
            self._named = set()
            self._out += self._paper([symbol.name for symbol in rule.expansion if symbol.is_term])
            if rule.expansion[-1].name == "letters":
                self._derive("letters")
            return
        if name == "letter":
            self._out += self._letter()
            return
        if name == "part":
            self._out += self._part()
            return
        for symbol in rule.expansion:
            if symbol.is_term:
                word = "letters" if name == "letters" and symbol.name == "NAME" else ""
                self._out.append((symbol.name, word or self._spelled(symbol.name)))
                continue
            left = self._fuel
            if symbol.name in ("expr", "condition"):  # leaves something for what stands behind it
                self._fuel = self._random.randrange(max(left, 1))
                left -= 1
            self._derive(symbol.name)
            if symbol.name in ("expr", "condition"):
                self._fuel = left

    def _paper(self, kinds: Sequence[str]) -> list[tuple[str, str]]:
        """The tokens of a paper; most strings are no authors, and few are identifiers."""
        random = self._random
        register, value = random.choice(_KEPT)
        title = '"' + random.choice("λaé") + self._spelled("STRING")[1:]
        known = {1: random.choice(_AUTHORS), 3: str(random.randrange(1600, 3000)), 5: title}
        if "NAME" in kinds:
            known |= {7: register, 8: value}
        return [(k, known[at] if at in known else self._spelled(k)) for at, k in enumerate(kinds)]

    def _letter(self) -> list[tuple[str, str]]:
        """The tokens of one letter of a paper, of a name that has none yet."""
        name = self._name()
        while fold(name) in self._named:
            name += "q"
        self._named.add(fold(name))
        return [("NAME", name), ("STRING", self._random.choice(_SYMBOLS))]

    def _part(self) -> list[tuple[str, str]]:
        """The tokens of the norm of a layer, or of the gate behind it."""
        if self._out[-1][0] == "COMMA":
            return [("NAME", "gate"), ("NAME", self._random.choice(("silu", "sigmoid")))]
        return [("NAME", "norm"), ("NAME", self._random.choice(("rms", "layer")))]

    def _may(self, rule: Rule) -> bool:
        """Whether an item may stand here: `b : d` only goes on with a declaration."""
        return rule.expansion[0].name != "more" or self._above in ("decl", "more")

    def _spelled(self, kind: str) -> str:
        random = self._random
        if kind in SPELLINGS:
            text = random.choice(SPELLINGS[kind])
            self._drawn.spellings[kind, text] += 1
            return text
        if kind == "NAME":
            return self._name()
        if kind == "NUMBER":
            return self._number()
        if kind == "STRING":
            return '"' + "".join(random.choices(_WORDS, k=random.randrange(4))) + '"'
        known = terminals()[kind]
        return reserved(kind)[0] if r"\b" in known else known.replace("\\", "")

    def _name(self) -> str:
        random = self._random
        if random.random() < 0.7:
            return random.choice(_NAMES)
        length = random.randrange(8)
        # Ends in a letter that no reserved word ends in.
        return (
            random.choice("q" + "".join(GREEK)) + "".join(random.choices(_LETTERS, k=length)) + "q"
        )

    def _number(self) -> str:
        random = self._random
        text = str(random.choice((0, 1, 2, 10, 100000, random.randrange(10**9))))
        if random.random() < 0.4:
            text += random.choice((".0", ".5", ".05", ".250", ".000125"))
        if random.random() < 0.3:
            text += (
                random.choice("eE")
                + random.choice(("", "+", "-"))
                + random.choice(("0", "7", "64"))
            )
        return random.choice(("", "", "0", "00")) + text


def laid_out(tokens: Sequence[tuple[str, str]], random: Random, drawn: Drawn) -> str:
    """Returns a text of these tokens, with blanks, line ends and comments wherever they may be."""
    return _Layout(random, drawn).text(tokens)


class _Layout:
    def __init__(self, random: Random, drawn: Drawn) -> None:
        self._random = random
        self._drawn = drawn
        self._end = random.choice(("\n", "\n", "\r\n"))

    def text(self, tokens: Sequence[tuple[str, str]]) -> str:
        parts = [self._said("byte-order mark", "\ufeff")] if self._random.random() < 0.05 else []
        depth, before, text_before = 0, "", ""
        for kind, text in tokens:
            shown = self._separator() if kind == SEPARATOR else text
            parts.append(self._gap(before, text_before, text, depth))
            parts.append(shown)
            depth += (kind in ("LPAR", "LSQB")) - (kind in ("RPAR", "RSQB"))
            before, text_before = kind, shown
        if self._random.random() < 0.2:
            parts.append(self._said("comment at the end", " " + self._comment()))
        out = "".join(parts)
        if self._end == "\r\n":
            self._drawn.layouts["two characters end a line"] += 1
        return out.replace("\n", self._end)

    def _gap(self, before: str, text: str, after: str, depth: int) -> str:
        """What stands between two tokens; a line may end in brackets and after operators."""
        random = self._random
        if (depth or before in JOINERS) and random.random() < 0.15:
            where = "in brackets" if depth else "after an operator"
            if random.random() < 0.5:
                return self._said(f"comment {where}", f" {self._comment()}\n")
            return self._said(f"line end {where}", random.choice(("\n", " \n\n  ")))
        wordish = text[-1:].isalnum() or text[-1:] == "_"
        apart = wordish and (after[:1].isalnum() or after == ".")
        blanks = (" ", " ", "  ", "\t", "\f ") if apart else ("", "", " ", " ", "  ", "\t")
        return random.choice(blanks)

    def _separator(self) -> str:
        random = self._random
        return "".join(
            random.choice((self._plain, self._plain, self._behind, self._own_line))()
            for _ in range(random.choice((1, 1, 2, 3)))
        )

    def _plain(self) -> str:
        text = self._random.choice((";", " ; ", "\n", "\n  ", "\n\n", "\n \t\n", ";;"))
        return self._said({1: "line end", 2: "empty line"}.get(text.count("\n"), "semicolon"), text)

    def _behind(self) -> str:
        return self._said("comment behind", f" {self._comment()}\n")

    def _own_line(self) -> str:
        blank = self._random.choice(("", "\n"))
        return self._said("comment on its line", f"\n{blank} {self._comment()}\n{blank}")

    def _comment(self) -> str:
        words = self._random.choices((*_WORDS, '"', "mixer m {"), k=self._random.randrange(4))
        return "#" + "".join(words)

    def _said(self, what: str, text: str) -> str:
        self._drawn.layouts[what] += 1
        return text


LAYOUTS = (
    *("byte-order mark", "two characters end a line", "comment at the end", "comment behind"),
    *("comment on its line", "comment in brackets", "comment after an operator"),
    *("line end in brackets", "line end after an operator", "line end", "empty line", "semicolon"),
)
"""All that `Drawn.layouts` counts."""
