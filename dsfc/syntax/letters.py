"""Letters and look-alikes: the one table between what people write and ASCII names.

A Greek letter in a name stands for its ASCII spelling: `W_Δ` and `W_Delta` are one name. Letters
that look like Latin ones (`ο`, `Α`, `Β`, …) are not in the table, nor is anything beyond it, so two
names that look the same are the same.
"""

from __future__ import annotations

import unicodedata

GREEK: dict[str, str] = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "ι": "iota",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "ν": "nu",
    "ξ": "xi",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "υ": "upsilon",
    "φ": "phi",
    "χ": "chi",
    "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma",
    "Δ": "Delta",
    "Θ": "Theta",
    "Λ": "Lambda",
    "Ξ": "Xi",
    "Π": "prod",
    "Σ": "sum",
    "Φ": "Phi",
    "Ψ": "Psi",
    "Ω": "Omega",
}
"""Letter to ASCII spelling; `Σ` and `Π` are the operations."""

_UNFOLD = {name: letter for letter, name in GREEK.items() if name not in ("sum", "prod", "iota")}

# Each character of the first string looks like, or is meant as, the one at its place in the second.
_SINGLE = (
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοϒ", "ABEZHIKMNOPTYXoY"),  # Greek that looks Latin
    ("ςϕϵϑϱϰϖµ∆\u2126∑∏ɑß", "σφεθρκπμΔΩΣΠαβ"),  # variants of the letters in the table
    ("аеорсухіѕјАВЕКМНОРСТХ", "aeopcyxisjABEKMHOPCTX"),  # Cyrillic that looks Latin
    ("−–—‐‑∙•⋅∗⨂⨯✕⊙∘⊕÷∕⁄", "-----···*⊗××**+///"),
    ("⩽⩾≦≧←∼′’‘⟨⟩", "≤≥≤≥=~'''()"),
    ("“”„«»", '"""""'),
    ("@`%", "·'#"),
)
_LOOK_ALIKES: dict[str, str] = {
    **{odd: plain for odds, plains in _SINGLE for odd, plain in zip(odds, plains, strict=True)},
    **{"≠": "!=", "≡": "==", "→": "->", "⟶": "->", "↦": "->", "∧": "and", "&": "and", "!": "!="},
    **{"√": "sqrt(…)", "²": "^2", "³": "^3", "\r": "a newline"},
}


_TRANSPOSED = "; axes have names, so nothing is transposed: write `q · k` or `k ⊗ v`"
_ADVICE: dict[str, str] = {
    "@": "; write `·` to sum over a shared axis, `⊗` for the outer product, `W u` to apply a map",
    "ᵀ": _TRANSPOSED,
    "⊤": _TRANSPOSED,
    "ℝ": "; leave it out: a shape is its axes alone, `h × n`",
    "∈": "; the axes follow a colon: `state S : h × n`",
    "|": "; write `abs(…)`",
    "∞": "; write a number",
    "…": "; write a sum, `sum[j ≤ i](…)`",
    "_": "; a name starts with a letter",
    "\\": "; commands of LaTeX are not read",
}
SIGNS = {"otimes": "⊗", "cdot": "·", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥"}
"""Commands of LaTeX, without their backslash → the signs of the language that they name."""
_LATEX: dict[str, str] = {
    **SIGNS,
    **{
        "sum": "sum[j ≤ i](…)",
        "prod": "prod[j < l ≤ i](…)",
        "frac": "(…) / (…)",
        "sqrt": "sqrt(…)",
    },
    **{"langle": "q · k", "rangle": "q · k", "odot": "*", "circ": "*", "ast": "*", "in": ":"},
    **{"to": "->", "rightarrow": "->", "mapsto": "->", "sigma": "sigmoid(…)"},
    **{word: word for word in ("exp", "log", "tanh", "max", "min", "sin", "cos")},
    **{name: letter for letter, name in GREEK.items() if name not in ("sum", "prod", "sigma")},
}


def latex_spelling(command: str) -> str | None:
    """What to write for a command of LaTeX, named without its backslash; None if nothing is."""
    return _LATEX.get(command)


def advice(char: str) -> str:
    """What to say of an illegal character that has several meanings; empty for all others."""
    return _ADVICE.get(char, "")


def fold(name: str) -> str:
    """ASCII spelling of a legal name: `W_Δ` becomes `W_Delta`."""
    return "".join(GREEK.get(char, char) for char in name)


def unfold(name: str) -> str:
    """Greek spelling of an ASCII name, for the parts between `_` that spell a letter.

    `W_Delta` becomes `W_Δ`, `alpha2` becomes `α2`, `Deltat` and `iota` stay; `fold` undoes it.
    """
    parts = []
    for part in name.split("_"):
        word = part.rstrip("0123456789")
        parts.append(_UNFOLD.get(word, word) + part[len(word) :])
    return "_".join(parts)


def legal_spelling(char: str) -> str | None:
    """What to write in the place of an illegal character, or None if nothing is close."""
    if char in _LOOK_ALIKES:
        return _LOOK_ALIKES[char]
    if char.isspace():
        return " "
    plain = unicodedata.normalize("NFKC", char)
    if plain != char and all(is_legal(item) for item in plain):
        return plain
    base = unicodedata.normalize("NFKD", char)[:1]
    return base if base != char and is_legal(base) else None


def is_legal(char: str) -> bool:
    """Whether a character may stand in a name or a number, first or later."""
    return char in GREEK or (char.isascii() and (char.isalnum() or char == "_"))


def describe(char: str) -> str:
    """A character as messages name it: itself, its code point and its Unicode name."""
    point = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "")
    if char.isascii() and char.isprintable():
        return f"`{char}`"
    shown = f"`{char}` " if char.isprintable() and not unicodedata.combining(char) else ""
    return f"{shown}({point} {name})" if name else f"{shown}({point})"
