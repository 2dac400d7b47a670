r"""One symbol of LaTeX, such as `W_Q` or `\boldsymbol{\alpha}`: what papers name a quantity by.

Nothing else of LaTeX is read, so that no text of a spec brings a command into a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_GREEK = frozenset(
    (
        "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu"
        " xi pi rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma"
        " Upsilon Phi Psi Omega ell"
    ).split()
)
_DRESSES = frozenset(
    (
        "bar hat tilde dot vec overline widehat widetilde overrightarrow overleftarrow"
        " mathbf mathrm mathcal mathbb mathsf mathfrak boldsymbol"
    ).split()
)
_SIGNS = frozenset("prime top star dagger leftarrow rightarrow leftrightarrow times".split())

_TOKEN = re.compile(r"\\[A-Za-z]+|.", re.DOTALL)

# The patterns match kinds of tokens: `a` is a letter, D a dress, S a sign, L a logarithm, and
# punctuation is itself. Commands are looked up before, as a pattern that lists them takes long to
# compile. There is one way to read each text: else a long one that is no symbol would be read in
# all of them.
_PLAIN = r"(?:a|D\{(?:a|D\{a+\})+\})"
_BASE = rf"(?:{_PLAIN}|\((?:L )?{_PLAIN}\))"
_SCRIPT = rf"(?:{_PLAIN}|S|\{{(?:{_PLAIN}|[S ,()+*'-])+\}})"
_SYMBOL = re.compile(
    rf"(?P<base>{_BASE})(?:_(?P<below>{_SCRIPT}))?(?:\^(?P<above>{_SCRIPT}))?"
    rf"|(?P<base_2>{_BASE})\^(?P<above_2>{_SCRIPT})_(?P<below_2>{_SCRIPT})"
)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A letter with what stands below and above it, in LaTeX.

    Attributes:
        base: the letter, plain or dressed.
        below: its subscript without braces, empty if there is none.
        above: its superscript without braces, empty if there is none.
    """

    base: str
    below: str = ""
    above: str = ""

    def at(self, *indices: str) -> str:
        r"""Returns the symbol with indices behind its own subscript: `W_{Q, t}`.

        Args:
            indices: such as the token, `t-1`.
        """
        below = ", ".join([*filter(None, (self.below,)), *indices])
        above = f"^{{{self.above}}}" if self.above else ""
        return self.base + (f"_{{{below}}}" if below else "") + above


def parsed_symbol(latex: str) -> Symbol | None:
    r"""Returns the parts of a symbol; None of a text that is none.

    A symbol is a letter of the Latin or Greek alphabet, or a digit, plain, dressed (`\bar{A}`,
    `\mathbf{h}`) or in parentheses, there also its logarithm (`(\log \Lambda)_{\mathrm{re}}`). It
    has at most one subscript and one superscript.

    Args:
        latex: such as `\boldsymbol{\alpha}`, `W_Q` or `\Lambda^{(h)}`.
    """
    tokens = _TOKEN.findall(latex)
    read = _SYMBOL.fullmatch("".join(map(_kind, tokens)))
    if read is None:
        return None
    base, *scripts = (
        "".join(tokens[slice(*read.span(part if read[part] else f"{part}_2"))])
        for part in ("base", "below", "above")
    )
    below, above = (s[1:-1] if s.startswith("{") else s for s in scripts)
    return Symbol(base, below, above)


def _kind(token: str) -> str:
    """The character that stands for a token where symbols are matched."""
    if token.startswith("\\"):
        command = token[1:]
        kinds = {"a": _GREEK, "D": _DRESSES, "S": _SIGNS, "L": {"log"}}
        return next((kind for kind, commands in kinds.items() if command in commands), "?")
    return "a" if token.isascii() and token.isalnum() else token if token in "{}_^() ,+*'-" else "?"
