r"""One symbol of LaTeX, such as `W_Q` or `\boldsymbol{\alpha}`: what papers name a quantity by.

Nothing else of LaTeX is read, so that no text of a spec brings a command into a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|nu|xi|pi"
    "|rho|sigma|tau|upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon"
    "|Phi|Psi|Omega|ell"
)
_DRESSES = (
    "bar|hat|tilde|dot|vec|overline|widehat|widetilde|overrightarrow|overleftarrow"
    "|mathbf|mathrm|mathcal|mathbb|mathsf|mathfrak|boldsymbol"
)
_SIGNS = r"\\(?:prime|top|star|dagger|leftarrow|rightarrow|leftrightarrow|times)(?![A-Za-z])"

_BARE = rf"[A-Za-z0-9]|\\(?:{_GREEK})(?![A-Za-z])"
_DRESSED = rf"{_BARE}|\\(?:{_DRESSES})\{{(?:{_BARE})+\}}"
# One way to read each text: else a long one that is no symbol would be read in all of them.
_PLAIN = rf"{_BARE}|\\(?:{_DRESSES})\{{(?:{_DRESSED})+\}}"
_BASE = rf"{_PLAIN}|\((?:\\log )?(?:{_PLAIN})\)"
_SCRIPT = rf"(?:{_PLAIN}|{_SIGNS}|\{{(?:{_PLAIN}|{_SIGNS}|[ ,()+*'-])+\}})"
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
    read = _SYMBOL.fullmatch(latex)
    if read is None:
        return None
    parts = (read[part] or read[f"{part}_2"] or "" for part in ("base", "below", "above"))
    base, *scripts = parts
    below, above = (s[1:-1] if s.startswith("{") else s for s in scripts)
    return Symbol(base, below, above)
